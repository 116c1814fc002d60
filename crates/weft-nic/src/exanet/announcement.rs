//! Announcements between interfaces: the simulation's stand-in for fields of headers that all packets of a
//! message carry alike, and the words of the simulation itself.
//!
//! ```text
//!   in every packet of a message (see wire)            the simulation's own
//!   protection domain, node, interface, address      offer, words of the host, watch
//!   first transaction, end of the transfer
//! ```
//! The destination packs the fields into the bits of a header as it hears of the message, and acts on what it
//! reads there.
//!
//! # Not modelled
//! These fields in simulated packets, which would be longer for them. [`wire::packet`] has a packet's bytes.

use super::wire::{self, PacketTarget};
use crate::data::Words;
use crate::gvas::{Gvas, Pdid};
use crate::rdma::{CellId, Location, TransferHeader};
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_units::{Address, Bytes, EndpointId, Time};

/// The fields that the headers of all packets of a message share, but for the node, which every simulated
/// packet has, and the address, which the host at the destination says.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MessageFields {
    /// The virtual interface that the message is for.
    pub(super) interface: u16,
    /// The protection domain of the sender.
    pub(super) domain: Pdid,
    /// The transaction of the first block of an RDMA write.
    pub(super) first: u32,
}

/// The words on a message that only the simulation has. No bits of its packets stand for them, but for the
/// `fields`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SimulationWords<T> {
    /// The fields of its packets.
    pub(super) fields: MessageFields,
    /// Payload of the message. In hardware its last packet ends it.
    pub(super) bytes: Bytes,
    /// The time at which the message was offered.
    pub(super) created_at: Time,
    /// The sending host's words to the receiving one. In hardware they are payload.
    pub(super) header: Option<T>,
    /// Whether the message is watched.
    pub(super) watch: bool,
}

/// A message that is to come, as its destination knows it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Expected<T> {
    /// As the receive unit sees it.
    pub(super) transfer: TransferHeader,
    /// Whether all of its addresses have the bits of a global address.
    pub(super) has_place: bool,
    /// The time at which the message was offered.
    pub(super) created_at: Time,
    /// The sending host's words to this one.
    pub(super) header: Option<T>,
    /// Payload of it that lies in memory.
    pub(super) came: Bytes,
}

impl<T> Expected<T> {
    /// A message of these words and this number for the endpoint `here`, which goes to `address`: as the
    /// headers of its packets say it. A machine may have more nodes and interfaces than they can name.
    pub(super) fn new(
        words: SimulationWords<T>,
        message: u32,
        here: EndpointId,
        address: Address,
    ) -> Expected<T> {
        let SimulationWords { fields, bytes, created_at, header, watch } = words;
        let MessageFields { interface, domain, first } = fields;
        let as_announced = (domain, interface, address);
        let target = PacketTarget::new(domain, here, interface, address);
        let (domain, interface, address) = target.map_or(as_announced, |target| {
            let read = PacketTarget::unpack(target.pack());
            (read.place.domain(), read.interface(), Address::new(read.place.address()))
        });
        let destination = Location { space: interface.into(), address };
        let transfer = TransferHeader { destination, bytes, domain, first, message, watch };
        let has_place = Gvas::reaches(address, bytes);
        Expected { transfer, has_place, created_at, header, came: Bytes::ZERO }
    }

    /// The virtual interface that it is for.
    pub(super) fn interface(&self) -> u16 {
        self.transfer.destination.space as u16
    }
}

/// An announcement of a message: no longer than a packet, so that no event is longer for it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Announcement<T> {
    /// The message is on its way.
    Header(SimulationWords<T>),
    /// The message is an RDMA write whose cells are about to come.
    Transfer {
        /// The transaction of its first block.
        first: u32,
    },
    /// The message has failed.
    Withdrawn,
    /// The source has read a cell, in a run with real bytes.
    Read {
        /// The cell.
        cell: CellId,
        /// The place of its first byte in the message.
        offset: u64,
    },
    /// A part of a vector between reduction modules, in a run with real bytes.
    Words(Words),
}

impl<T: Copy + Send + Sync> Payload for Announcement<T> {
    fn tie(&self) -> u128 {
        // The header comes before what refers to it: a transfer may begin at the instant of its message's
        // post.
        let kind = |kind: u64, of: u64| u128::from(kind << 60 | of & ((1 << 60) - 1));
        match self {
            Announcement::Header(_) => kind(0, 0),
            Announcement::Transfer { first } => kind(1, u64::from(*first)),
            Announcement::Read { cell, .. } => kind(2, wire::pack_cell(*cell)),
            Announcement::Words(words) => kind(3, u64::from(words.part)),
            Announcement::Withdrawn => kind(4, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exanet::ExanetTimer;
    use proptest::prelude::*;
    use weft_fabric::{Packet, Wire};

    /// Catches an announcement that makes all events longer than those of packets: over a cache line.
    #[test]
    fn an_announcement_is_no_longer_than_a_packet() {
        assert_eq!(size_of::<Wire<ExanetTimer<()>, Announcement<()>>>(), size_of::<Packet>());
    }

    proptest! {
        /// Catches a message that is taken for one of another process or place, and addresses that nobody has
        /// which are written to.
        #[test]
        fn a_message_is_expected_as_its_packets_name_it(
            (interface, domain, first) in any::<(u16, u16, u32)>(),
            (here, address, bytes) in (any::<u32>(), prop_oneof![any::<u64>(), 0u64..1 << 39], 0u64..1 << 20),
        ) {
            let domain = Pdid(domain);
            let fields = MessageFields { interface, domain, first };
            let (bytes, created_at, header, watch) = (Bytes::new(bytes), Time::ZERO, Some(()), true);
            let words = SimulationWords { fields, bytes, created_at, header, watch };
            let expected = Expected::new(words, 5, EndpointId(here), Address::new(address));
            let destination = Location { space: interface.into(), address: Address::new(address) };
            let transfer = TransferHeader { destination, bytes, domain, first, message: 5, watch };
            prop_assert_eq!((expected.transfer, expected.interface()), (transfer, interface));
            let last = address.saturating_add(bytes.get().saturating_sub(1));
            prop_assert_eq!(expected.has_place, last < 1 << 39);
        }
    }
}
