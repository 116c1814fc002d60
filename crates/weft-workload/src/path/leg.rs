//! Legs of a message's way: host, injection, fabric, ejection.
//!
//! ```text
//!  rank, library │ interface, wait for first link │ links, switches │ wait for last link, interface
//!      host      │           injection            │     fabric      │           ejection
//! ```
//! A wait belongs to the link that is waited for. So a full first link shows as injection, a full link to the
//! destination as ejection, and all that is full between them as fabric.

use super::piece::{Location, Piece, PieceKind};
use serde::{Deserialize, Serialize};
use weft_fabric::LinkEnd;
use weft_nic::BlockKind;
use weft_units::Span;

/// A leg of a message's way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Leg {
    /// Program, messaging library, memory: all that is not network.
    Host,
    /// The interface that sends, and its waits for the first link.
    Injection,
    /// Links and switches, the message's own bits on them included.
    Fabric,
    /// Waits in the last switch for the link to the destination, and the interface that receives.
    Ejection,
    /// The recording does not reach back so far.
    NotRecorded,
}

impl Leg {
    /// All, in the order of a message's way.
    pub const ALL: [Leg; 5] = [Leg::Host, Leg::Injection, Leg::Fabric, Leg::Ejection, Leg::NotRecorded];

    /// The leg's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Leg::Host => "host",
            Leg::Injection => "injection",
            Leg::Fabric => "fabric",
            Leg::Ejection => "ejection",
            Leg::NotRecorded => "not recorded",
        }
    }
}

/// The time of each leg.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LegTimes([u128; Leg::ALL.len()]);

impl LegTimes {
    /// More time on a leg.
    pub fn add(&mut self, leg: Leg, time: Span) {
        self.0[leg as usize] += u128::from(time.as_ps());
    }

    /// Time on a leg, in ps: a sum over messages may be longer than virtual time.
    pub const fn ps(&self, leg: Leg) -> u128 {
        self.0[leg as usize]
    }
}

impl std::ops::AddAssign for LegTimes {
    fn add_assign(&mut self, other: LegTimes) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, time)| *sum += time);
    }
}

impl Piece {
    /// The leg that it lies on. `ejects`: whether a link leads to an endpoint.
    pub fn leg(&self, ejects: impl Fn(LinkEnd) -> bool) -> Leg {
        let waits = matches!(self.kind, PieceKind::Waiting | PieceKind::OutputBuffer | PieceKind::Waking);
        match (self.place, self.kind) {
            (_, PieceKind::NotRecorded) => Leg::NotRecorded,
            (Location::Rank(_), _) => Leg::Host,
            (Location::Block(_, block), _)
                if matches!(block.kind(), BlockKind::Host | BlockKind::Software) =>
            {
                Leg::Host
            }
            // An interface that supplies packets one by one keeps them for the line: bits, not waiting.
            (Location::Block(..), PieceKind::Serialization) => Leg::Fabric,
            (Location::Block(endpoint, _), _) => match self.message {
                Some(message) if message.source != endpoint => Leg::Ejection,
                _ => Leg::Injection,
            },
            (Location::Link(LinkEnd::Endpoint(_), _), _) if waits => Leg::Injection,
            (Location::Link(from, _), _) if waits && ejects(from) => Leg::Ejection,
            (Location::Link(..), _) => Leg::Fabric,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::MessageId;
    use weft_nic::Block;
    use weft_nic::rdma::RDMA_RECEIVE;
    use weft_topo::LinkClass;
    use weft_units::{EndpointId, PortId, RankId, SwitchId, Time};

    /// Catches a wait that counts where the packet stands and not where it wants to go, an interface taken
    /// for the other end's, and bits on a line that count as a wait for it.
    #[test]
    fn a_wait_belongs_to_the_link_that_is_waited_for() {
        let message = MessageId { source: EndpointId(4), number: 0 };
        let leg = |kind, place| {
            let (begin, end) = (Time::ZERO, Time::from_ps(1));
            let piece = Piece { begin, end, kind, place, message: Some(message), within: None };
            piece.leg(|from| from == port(9))
        };
        let block = |endpoint, block| Location::Block(EndpointId(endpoint), block);
        let link = |from| Location::Link(from, LinkClass(0));
        fn port(switch: u32) -> LinkEnd {
            LinkEnd::Port(SwitchId(switch), PortId(0))
        }
        let endpoint = LinkEnd::Endpoint(EndpointId(4));
        for (kind, place, expected) in [
            (PieceKind::LatePartner, Location::Rank(RankId(7)), Leg::Host),
            (PieceKind::NotRecorded, Location::Rank(RankId(0)), Leg::NotRecorded),
            (PieceKind::Block(Block::MEMORY), block(7, Block::MEMORY), Leg::Host),
            (PieceKind::Waiting, block(4, Block::TRANSMIT), Leg::Injection),
            (PieceKind::Serialization, block(4, Block::TRANSMIT), Leg::Fabric),
            (PieceKind::Block(RDMA_RECEIVE), block(7, RDMA_RECEIVE), Leg::Ejection),
            (PieceKind::Waiting, link(endpoint), Leg::Injection),
            (PieceKind::Waking, link(endpoint), Leg::Injection),
            (PieceKind::Serialization, link(endpoint), Leg::Fabric),
            (PieceKind::Waiting, link(port(1)), Leg::Fabric),
            (PieceKind::Switch, link(port(9)), Leg::Fabric),
            (PieceKind::OutputBuffer, link(port(9)), Leg::Ejection),
            (PieceKind::Waiting, link(port(9)), Leg::Ejection),
        ] {
            assert_eq!(leg(kind, place), expected, "{kind:?} at {place:?}");
        }
    }
}
