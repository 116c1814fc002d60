//! Replication: a switch copies a packet for a [group](crate::MulticastGroup) for each branch of its tree.
//!
//! ```text
//!   input 2, vc 0 ── packet ──► copies, one per branch:
//!                                 replication port of output 1, vc 0 ▢▢ ─┐
//!                                 replication port of output 4, vc 1 ▢  ─┤ requests, as of any input
//!                    space of the packet in input 2: held until ◄─────────┘
//!                    the last copy's tail has left
//! ```
//! Every output has a replication port of its own: an input of the crossbar that holds copies for this output
//! alone, a queue per virtual channel. Copies are made as the packet's head arrives. Each takes part in the
//! arbitration of its output as a packet of one more input, and goes as soon as it is granted and has space
//! in the next buffer. No copy waits for another (fan-out splitting, Hayes, Breault and Mehmet-Ali 1991;
//! Prabhakar, McKeown and Ahuja 1997), and the read port of the input is not occupied by them: the packet
//! is read once, and each copy is taken from that.
//!
//! A copy waits in the packet's own space, of which there is one: it counts against the credits of the
//! packet's input until all copies have left. So a copy waits for its own channel alone, and holds the
//! channel that the packet came by: the turns of [`MulticastTree`](weft_topo::MulticastTree).
//!
//! # Not modelled
//! A limit on the copies that one clock edge can make, or on their queues beside the space of their packets.
//! A packet for a group passes by packets in its input's queue that wait for their outputs. So it may
//! overtake packets of its own source to one of the members; it never overtakes another packet for its group.
//!
//! # Source
//! None of the documents says how switches copy: all of it is assumed.

use super::buffer::Buffered;
use super::{Peer, Port, Sink, Switch, SwitchContext, SwitchState};
use crate::channel::{Channel, ChannelNumbers};
use crate::constants::Constants;
use crate::credit::{Credit, Credits, TailOut};
use crate::link::CreditStall;
use crate::multicast::MulticastGroup;
use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use weft_topo::{Address, BranchEnd, LinkClass, RouteState, Routing, Topology};
use weft_units::{EndpointId, Time};

/// Set in the route of a copy that goes to a member, whose number is the rest; otherwise it is that of the
/// next node.
const TO_MEMBER: u32 = 1 << 31;

/// The space of a packet that has been copied.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CopiedSpace {
    /// The channel that the packet came by.
    from: Channel,
    /// Space it takes, in units of credit.
    space: u32,
    /// Copies that have not left.
    copies: u32,
    /// Time at which the tails of those that have left are out of the buffer.
    free: Time,
}

/// The copies in a switch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Replication {
    /// Links of the switch: ports from this number on are replication ports.
    links: u16,
    /// Copies made since the run began, less one for each packet that they were made of.
    made: u64,
    held: Vec<Option<CopiedSpace>>,
    free_places: Vec<u32>,
}

impl Replication {
    /// Keeps the space of a packet until all its copies have left.
    fn hold(&mut self, held: CopiedSpace) -> u32 {
        self.made += u64::from(held.copies) - 1;
        match self.free_places.pop() {
            Some(place) => {
                self.held[place as usize] = Some(held);
                place
            }
            None => {
                self.held.push(Some(held));
                (self.held.len() - 1) as u32
            }
        }
    }

    /// A copy's tail leaves the buffer at `at`; the space, if it was the last.
    fn release(&mut self, place: u32, at: Time) -> Option<CopiedSpace> {
        let entry = &mut self.held[place as usize];
        let held = entry.as_mut().expect("a copy's packet has space");
        held.copies -= 1;
        held.free = held.free.max(at);
        if held.copies > 0 {
            return None;
        }
        self.free_places.push(place);
        entry.take()
    }
}

impl SwitchState {
    /// Adds a replication port for each link.
    fn add_replication_ports(&mut self, channels: ChannelNumbers) {
        let links = self.ports.len();
        let more = std::iter::repeat_with(|| Port::new(Peer::Nothing, LinkClass(0))).take(links);
        self.ports = std::mem::take(&mut self.ports).into_iter().chain(more).collect();
        let all = 2 * links;
        let mut credits = std::mem::take(&mut self.credits).into_vec();
        credits.resize(channels.of_ports(all), Credits::UNLIMITED);
        self.credits = credits.into();
        self.look_at = vec![Time::NEVER; all].into();
        self.awaited = vec![0; all.div_ceil(64)].into();
        self.stalls = vec![CreditStall::default(); all].into();
        self.replication = Some(Box::new(Replication { links: links as u16, ..Replication::default() }));
    }

    /// Ports that a link is joined to, or could be.
    pub(crate) fn links(&self) -> usize {
        self.replication.as_ref().map_or(self.ports.len(), |replication| replication.links.into())
    }

    /// Packets that the switch has made since the run began: copies, beside the packets that they were made
    /// of, and answers to notices that went on.
    pub(crate) fn packets_made(&self) -> u64 {
        let copies = self.replication.as_ref().map_or(0, |replication| replication.made);
        copies + self.link_controls.iter().map(|link_control| link_control.answered).sum::<u64>()
    }

    /// The input channels and spaces of the packets that have been copied.
    fn copied_spaces(&self) -> impl Iterator<Item = (Channel, u32)> {
        let held = self.replication.iter().flat_map(|replication| replication.held.iter().flatten());
        held.map(|held| (held.from, held.space))
    }

    /// The tail of a copy leaves the input buffer. If it was the last, the packet's space is free.
    #[cold]
    pub(super) fn release_copy(
        &mut self,
        copy: &Packet,
        tail: TailOut,
        constants: &Constants,
        sink: &mut impl Sink,
    ) {
        let replication = self.replication.as_mut().expect("a switch that copies");
        if let Some(CopiedSpace { from, space, free, .. }) = replication.release(place_of(copy), tail.left) {
            if !constants.has_credits {
                return self.expect_departure(from, space, free, constants);
            }
            let credit = Credit { channel: from, amount: space };
            self.give_back(credit, TailOut { left: free, ..tail }, constants, sink);
        }
    }
}

impl Switch {
    /// The switch with a replication port for each link. It must be empty.
    pub(crate) fn with_replication(mut self, constants: &Constants) -> Switch {
        self.state_mut().add_replication_ports(constants.channels);
        self.with_ports_again(constants)
    }

    /// The head of a packet for a group has come: its copies are queued.
    #[cold]
    #[inline(never)]
    pub(super) fn replicate<T: Topology + Routing>(
        &mut self,
        packet: &Packet,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        let SwitchContext { now, constants, topology, .. } = *context;
        let (tree, node) = constants.trees.node(packet, topology);
        let branches = tree.branches(node);
        let (from, space) = (packet.channel(), constants.space(packet));
        // Class and lane stay as they are on the way.
        let of_lane = u32::from(from.vc) - constants.plan.of_routing(from.vc.into());
        let held = CopiedSpace { from, space, copies: branches.len() as u32, free: now };
        let replication = self.state_mut().replication.as_mut();
        let replication = replication.expect("a network with groups has replication ports");
        let (place, links) = (replication.hold(held), replication.links);
        for branch in branches {
            let mut copy = Buffered::new(packet, now, space);
            let to = Channel { port: branch.port.0 as u16, vc: (of_lane + branch.vc.0) as u8 };
            copy.packet.set_channel(to);
            copy.packet.address = Address(packet.address.0 | u64::from(place) << 32);
            copy.packet.route = match branch.to {
                BranchEnd::Node(node) => RouteState(node),
                BranchEnd::Member(EndpointId(member)) => RouteState(TO_MEMBER | member),
            };
            let bytes = constants.packet_bytes(packet).get() as u32;
            self.state_mut().ports[usize::from(to.port)].waiting += bytes;
            let through = Channel { port: links + to.port, ..to };
            match self {
                Switch::InputQueued(switch) => switch.queue_copy(through, &copy, context),
                Switch::VirtualOutputQueued(switch) => switch.queue_copy(through, &copy, context),
                Switch::OutputQueued(switch) => switch.queue_copy(through, &copy, context),
                Switch::Combined(switch) => switch.queue_copy(through, &copy, context),
            }
        }
    }

    /// Puts the space of packets that have been copied in the place of the copies themselves, among the
    /// spaces in input buffers.
    pub(super) fn count_copied_spaces(&self, spaces: &mut Vec<(Channel, u32)>) {
        let links = self.state().links();
        spaces.retain(|(channel, _)| usize::from(channel.port) < links);
        spaces.extend(self.state().copied_spaces());
    }

    /// The buffer that a copy is in: that of the packet.
    pub(super) fn buffer_of_copy(&self, copy: &Packet) -> Option<Channel> {
        let held = &self.state().replication.as_ref()?.held;
        held.get(place_of(copy) as usize)?.map(|held| held.from)
    }
}

/// The place of the space that a copy shares.
fn place_of(copy: &Packet) -> u32 {
    (copy.address.0 >> 32) as u32
}

/// Makes of a copy in a switch the packet on the link: for the next node of its tree, or for a member.
#[cold]
pub(super) fn depart(copy: &mut Packet) {
    debug_assert!(MulticastGroup::of(copy.destination).is_some(), "a copy is for a group");
    copy.address = Address(copy.address.0 & u64::from(u32::MAX));
    if copy.route.0 & TO_MEMBER != 0 {
        copy.destination = EndpointId(copy.route.0 & !TO_MEMBER);
        (copy.address, copy.route) = (Address::default(), RouteState::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches space that is given back before the last copy has left, twice, or never, and a place that two
    /// packets share.
    #[test]
    fn space_is_held_until_the_last_copy_has_left() {
        let mut replication = Replication::default();
        let at = Time::from_ps;
        let held =
            |port, copies| CopiedSpace { from: Channel { port, vc: 1 }, space: 7, copies, free: at(0) };
        let (one, other) = (replication.hold(held(3, 3)), replication.hold(held(4, 1)));
        assert_ne!(one, other);
        assert!(replication.release(one, at(50)).is_none());
        assert_eq!(
            replication.release(other, at(5)).map(|held| (held.from.port, held.free)),
            Some((4, at(5)))
        );
        assert!(replication.release(one, at(20)).is_none());
        let third = replication.hold(held(5, 1));
        assert_eq!(third, other);
        // The second copy left last, whoever was granted last.
        let last = replication.release(one, at(30)).unwrap();
        assert_eq!((last.from.port, last.space, last.free), (3, 7, at(50)));
        assert_eq!((replication.made, replication.held.iter().flatten().count()), (2, 1));
    }
}
