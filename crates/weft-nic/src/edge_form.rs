//! Packetizer and mailbox in edge form: what either decides, asked for as things cross its ports.
//!
//! ```text
//!   stores ──► packetizer: made when?    packets ──► mailbox: answered when, how? put?
//!   answers, time ──► packetizer: acknowledged, refused, repeated, given up?
//! ```
//! Interfaces ask for decisions ahead of time: at the time of an input, a block says at which edge of its
//! clock its output comes. An output does not depend on inputs behind its own, so that a block that works
//! edge by edge answers by running ahead, and is then put back. The blocks of `weft-rtl` have RTL in this
//! form, and take the model's place where a run asks for that.

use crate::gvas::Pdid;
use crate::packetizer::{ChannelId, ChannelState};
use crate::ports::{SmallAnswer, SmallPacket, StoredParcel, Verdict};
use std::fmt;
use std::sync::Arc;
use weft_units::{EndpointId, Time};

/// A mailbox. Times of calls do not decrease.
pub trait EdgeMailbox: Send {
    /// System software gives an interface to a domain.
    fn open(&mut self, interface: u16, domain: Pdid, at: Time);

    /// The tail of a packet has come at `tail`: the answer to it.
    fn arrive(&mut self, packet: &SmallPacket, tail: Time) -> Verdict;

    /// The process of an interface takes its oldest entry at `at`, now or later.
    fn take(&mut self, interface: u16, at: Time);
}

/// The end of a channel's wait for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelExpiry {
    /// The packet has been made again at that time.
    Repeated(Time),
    /// The packet is given up.
    GivenUp,
}

/// A packetizer. Times of calls do not decrease.
pub trait EdgePacketizer: Send {
    /// System software gives an interface to a domain.
    fn open(&mut self, interface: u16, domain: Pdid, at: Time);

    /// A process stores a parcel at `now`, whose last store comes later: the time at which the engine has
    /// made its packet.
    fn store(&mut self, parcel: &StoredParcel, now: Time) -> Time;

    /// The network takes the packet of a message from `at` on.
    fn send(&mut self, channel: ChannelId, message: u32, at: Time);

    /// The turn of a packet has come, which has been answered before it could be repeated.
    fn drop_stale(&mut self, channel: ChannelId, message: u32, at: Time);

    /// The tail of an answer has come: the state that the channel goes to, if to another. The next message is
    /// stored over one that was refused.
    fn answer(&mut self, answer: &SmallAnswer, at: Time) -> Option<ChannelState>;

    /// The time for an answer is up soon behind `at`, when nothing can stop it any more. The next message is
    /// stored over one that is given up.
    fn expire(&mut self, channel: ChannelId, message: u32, at: Time) -> ChannelExpiry;

    /// The time at which the engine has made a packet that a repetition has come before, as is known at `at`.
    fn made_behind(&mut self, channel: ChannelId, message: u32, at: Time) -> Time;
}

/// The blocks of an interface that others take the place of; `None`: the model's.
#[derive(Default)]
pub struct EdgeBlocks {
    /// The mailbox.
    pub mailbox: Option<Box<dyn EdgeMailbox>>,
    /// The packetizer.
    pub packetizer: Option<Box<dyn EdgePacketizer>>,
}

/// The source of such blocks.
pub trait EdgeBlockSource: Send + Sync {
    /// The blocks of an endpoint.
    fn blocks(&self, endpoint: EndpointId) -> EdgeBlocks;
}

/// The use of ports of packetizer and mailbox by a run.
#[derive(Clone, Default)]
pub struct PortUse {
    /// Whether what crosses them is [reported](crate::Observer::port).
    pub reported: bool,
    /// The blocks that take the place of the model's; `None`: none do.
    pub in_place: Option<Arc<dyn EdgeBlockSource>>,
}

impl fmt::Debug for PortUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PortUse { reported, in_place } = self;
        f.debug_struct("PortUse").field("reported", reported).field("in_place", &in_place.is_some()).finish()
    }
}

impl PortUse {
    /// The blocks of an endpoint that take the place of the model's.
    pub(crate) fn blocks(&self, endpoint: EndpointId) -> Option<Box<EdgeBlocks>> {
        self.in_place.as_ref().map(|source| Box::new(source.blocks(endpoint)))
    }
}
