//! The packetizer: turns what a process stores into a page of the interface into one packet, and watches
//! over it until the receiver has answered.
//!
//! ```text
//!              ┌─ interface 0 ─ channels 0 1 2 3 ─┐
//!   stores ───►│      …                           ├──► engine ──► packet
//!              └─ interface 63 ─ channels 0 1 2 3 ┘
//!
//!                      ┌──────── acknowledge ──────► acknowledged ─┐
//!   idle ── post ──► ongoing ─── refuse ───► negatively acknowledged ─┼─ clear ──► idle
//!     ▲                │ ▲ │                                       │
//!     │                └─┘ └──── give up ──────────► timed out ────┘
//!     │               repeat                            
//!     └────────── an acknowledged channel is posted to again without further ado
//! ```
//! A process stores the payload into a channel, then size and destination, which starts the engine. The
//! channel is busy until the packet is acknowledged, refused, or given up; the process sees its state in
//! the page. A process whose channels are all busy waits: nothing is lost.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.4. States and numbers of interfaces and channels are the text's; the inputs and
//! what happens on those that the text does not name are ours.
//!
//! # Not modelled
//! The process's loads of the status bits: it is told. Packets that a process begins to store and never
//! starts.

use crate::gvas::Pdid;
use crate::reliability::{Expiry, ReliabilityParameters, Retry};
use crate::server::{Server, Service};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Bytes, Clock, EndpointId, Span, Time};

/// What a machine file says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PacketizerParameters {
    /// The engine's clock.
    pub clock: Clock,
    /// Virtual interfaces, each in a page of its own.
    pub interfaces: u32,
    /// Channels of an interface.
    pub channels: u32,
    /// Largest payload.
    pub payload: Bytes,
    /// What the last store carries beside the payload: size and destination.
    pub descriptor: Bytes,
    /// Cycles of the engine for a packet.
    pub engine: u32,
    /// Time-outs and repetitions.
    pub reliability: ReliabilityParameters,
    /// How long the library waits before it posts again what a full mailbox has refused.
    pub pause: Span,
    /// The longest such wait: it doubles each time.
    pub longest_pause: Span,
}

/// The state of a channel, as its status bits show it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum ChannelState {
    /// Never used, or looked at after a failure.
    #[default]
    Idle,
    /// A packet has been posted and not been answered.
    Ongoing,
    /// The receiver has it.
    Acknowledged,
    /// The receiver has refused it.
    NegativelyAcknowledged,
    /// Nobody has answered.
    TimedOut,
}

/// What happens to a channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum ChannelInput {
    /// The process has stored a packet.
    Post,
    /// An acknowledgement has come.
    Acknowledge,
    /// A negative acknowledgement has come.
    Refuse,
    /// Time is up, and the packet is sent again.
    Repeat,
    /// Time is up for the last time.
    GiveUp,
    /// The process has seen the failure.
    Clear,
}

impl ChannelState {
    /// All states.
    pub const ALL: [ChannelState; 5] = [
        ChannelState::Idle,
        ChannelState::Ongoing,
        ChannelState::Acknowledged,
        ChannelState::NegativelyAcknowledged,
        ChannelState::TimedOut,
    ];

    /// The table of transitions: the state after `input`; `None` where it cannot or must not happen.
    #[inline]
    pub const fn after(self, input: ChannelInput) -> Option<ChannelState> {
        use ChannelInput::{Acknowledge, Clear, GiveUp, Post, Refuse, Repeat};
        use ChannelState::{Acknowledged, Idle, NegativelyAcknowledged, Ongoing, TimedOut};
        match (self, input) {
            (Idle | Acknowledged, Post) => Some(Ongoing),
            (Ongoing, Acknowledge) => Some(Acknowledged),
            (Ongoing, Refuse) => Some(NegativelyAcknowledged),
            (Ongoing, Repeat) => Some(Ongoing),
            (Ongoing, GiveUp) => Some(TimedOut),
            (NegativelyAcknowledged | TimedOut, Clear) => Some(Idle),
            _ => None,
        }
    }
}

/// A channel: virtual interface, and channel within it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ChannelId {
    /// The virtual interface.
    pub interface: u16,
    /// The channel of that interface.
    pub channel: u16,
}

/// A change of a channel's state, to be reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelChange {
    /// Which channel.
    pub channel: ChannelId,
    /// What happened.
    pub input: ChannelInput,
    /// Its state before.
    pub from: ChannelState,
    /// Its state after.
    pub to: ChannelState,
}

/// A packet in a channel: what the process has stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parcel {
    /// Where to.
    pub to: EndpointId,
    /// Its message, counted by this interface.
    pub message: u32,
    /// Payload.
    pub bytes: Bytes,
    /// When the message was offered.
    pub born: Time,
    /// How often a full mailbox has refused it.
    pub refused: u32,
    /// What its sender calls it; `None`: it does not want to know.
    pub token: Option<u32>,
    /// Whether it is watched.
    pub watch: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Channel {
    state: ChannelState,
    parcel: Option<Parcel>,
    retry: Retry,
}

/// A page that a process has.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct VirtualInterface {
    domain: Pdid,
    channels: Vec<Channel>,
    /// What processes want to post and has no channel, in the order in which they want it.
    waiting: VecDeque<(Time, Parcel)>,
}

/// The block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Packetizer {
    /// Pages in use; others take no memory.
    interfaces: Vec<VirtualInterface>,
    engine: Server,
    /// The ongoing packets by message, ascending.
    ongoing: Vec<(u32, ChannelId)>,
    /// Parcels that wait for a channel, over all pages.
    waiting: usize,
}

impl Packetizer {
    /// The system software gives a page to a process of `domain`.
    pub fn open(&mut self, interface: u16, domain: Pdid) {
        self.interface(interface).domain = domain;
    }

    /// The protection domain that packets of a page carry.
    pub fn domain(&self, interface: u16) -> Pdid {
        self.interfaces.get(usize::from(interface)).map_or(Pdid(0), |page| page.domain)
    }

    fn interface(&mut self, interface: u16) -> &mut VirtualInterface {
        let index = usize::from(interface);
        if self.interfaces.len() <= index {
            self.interfaces.resize_with(index + 1, VirtualInterface::default);
        }
        &mut self.interfaces[index]
    }

    /// A process wants to post at `now`: the channel that takes it, or `None` where it waits its turn.
    #[inline]
    pub fn post(
        &mut self,
        now: Time,
        interface: u16,
        parcel: Parcel,
        parameters: &PacketizerParameters,
        report: &mut impl FnMut(ChannelChange),
    ) -> Option<ChannelId> {
        let page = self.interface(interface);
        // Who came earlier goes first, even where a channel has become free at this instant.
        let free = if page.waiting.is_empty() { page.free(parameters) } else { None };
        let Some(channel) = free else {
            page.waiting.push_back((now, parcel));
            self.waiting += 1;
            return None;
        };
        Some(self.take(ChannelId { interface, channel }, parcel, report))
    }

    /// After a channel of `interface` has become free: the parcel that has waited longest, since when, and
    /// its channel.
    #[inline]
    pub fn next_waiting(
        &mut self,
        interface: u16,
        parameters: &PacketizerParameters,
        report: &mut impl FnMut(ChannelChange),
    ) -> Option<(Time, Parcel, ChannelId)> {
        let page = self.interfaces.get_mut(usize::from(interface))?;
        page.waiting.front()?;
        let channel = page.free(parameters)?;
        let (since, parcel) = page.waiting.pop_front()?;
        self.waiting -= 1;
        Some((since, parcel, self.take(ChannelId { interface, channel }, parcel, report)))
    }

    fn take(&mut self, id: ChannelId, parcel: Parcel, report: &mut impl FnMut(ChannelChange)) -> ChannelId {
        let channel = &mut self.interfaces[usize::from(id.interface)].channels[usize::from(id.channel)];
        channel.go(id, ChannelInput::Post, report).expect("only free channels are taken");
        channel.parcel = Some(parcel);
        let entry = (parcel.message, id);
        match self.ongoing.last() {
            Some(last) if last.0 > parcel.message => {
                let place = self.ongoing.partition_point(|other| other.0 < parcel.message);
                self.ongoing.insert(place, entry);
            }
            _ => self.ongoing.push(entry),
        }
        id
    }

    /// The last store to a channel has come at `came`: the engine makes its packet.
    #[inline]
    pub fn start(&mut self, came: Time, parameters: &PacketizerParameters) -> Service {
        self.engine.serve(came, parameters.engine.into(), &parameters.clock)
    }

    /// What a channel holds.
    #[inline]
    pub fn parcel(&self, id: ChannelId) -> Option<&Parcel> {
        self.channel(id)?.parcel.as_ref()
    }

    /// The state of a channel.
    pub fn state(&self, id: ChannelId) -> ChannelState {
        self.channel(id).map_or(ChannelState::Idle, |channel| channel.state)
    }

    fn channel(&self, id: ChannelId) -> Option<&Channel> {
        self.interfaces.get(usize::from(id.interface))?.channels.get(usize::from(id.channel))
    }

    /// The packet of a channel has been put on the link. Returns when a timer is to be set.
    #[inline]
    pub fn sent(&mut self, now: Time, id: ChannelId, parameters: &PacketizerParameters) -> Option<Time> {
        let channel = &mut self.interfaces[usize::from(id.interface)].channels[usize::from(id.channel)];
        channel.retry.sent(now, &parameters.reliability)
    }

    /// An answer to `message` has come. Returns the channel, free again, with what it held; `None` where
    /// the answer is to what has been answered before.
    #[inline]
    pub fn answered(
        &mut self,
        message: u32,
        accepted: bool,
        report: &mut impl FnMut(ChannelChange),
    ) -> Option<(ChannelId, Parcel)> {
        let input = if accepted { ChannelInput::Acknowledge } else { ChannelInput::Refuse };
        let place = self.ongoing.binary_search_by_key(&message, |entry| entry.0).ok()?;
        let id = self.ongoing.remove(place).1;
        let channel = &mut self.interfaces[usize::from(id.interface)].channels[usize::from(id.channel)];
        channel.go(id, input, report)?;
        channel.retry.settled();
        let parcel = channel.parcel.take()?;
        if !accepted {
            channel.go(id, ChannelInput::Clear, report);
        }
        Some((id, parcel))
    }

    /// The timer of a channel has fired. [`Expiry::GiveUp`] comes with what the channel held; it is free
    /// again.
    pub fn expired(
        &mut self,
        now: Time,
        id: ChannelId,
        parameters: &PacketizerParameters,
        report: &mut impl FnMut(ChannelChange),
    ) -> (Expiry, Option<Parcel>) {
        let page = self.interfaces.get_mut(usize::from(id.interface));
        let Some(channel) = page.and_then(|page| page.channels.get_mut(usize::from(id.channel))) else {
            return (Expiry::Settled, None);
        };
        let expiry = channel.retry.expired(now, &parameters.reliability);
        match expiry {
            Expiry::Settled | Expiry::NotBefore(_) => (expiry, None),
            Expiry::Repeat => {
                channel.go(id, ChannelInput::Repeat, report);
                (expiry, None)
            }
            Expiry::GiveUp => {
                channel.go(id, ChannelInput::GiveUp, report);
                channel.go(id, ChannelInput::Clear, report);
                let parcel = channel.parcel.take();
                self.ongoing.retain(|entry| entry.1 != id);
                (expiry, parcel)
            }
        }
    }

    /// Parcels that wait for a channel.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How long the library waits before it posts again what has been refused so often.
    pub fn pause(refused: u32, parameters: &PacketizerParameters) -> Span {
        let factor = 1u64.checked_shl(refused.saturating_sub(1)).unwrap_or(u64::MAX);
        let longest = parameters.longest_pause.max(parameters.pause);
        parameters.pause.checked_mul(factor).unwrap_or(longest).min(longest)
    }

    /// Parcels in channels and such that wait for one.
    pub fn unfinished(&self) -> usize {
        self.ongoing.len() + self.waiting
    }
}

impl VirtualInterface {
    /// The first channel that can be posted to, if it exists or may be made.
    #[inline]
    fn idle(&self, parameters: &PacketizerParameters) -> Option<usize> {
        let free = self.channels.iter().position(|c| c.state.after(ChannelInput::Post).is_some());
        free.or((self.channels.len() < parameters.channels as usize).then_some(self.channels.len()))
    }

    /// The first channel that can be posted to.
    #[inline]
    fn free(&mut self, parameters: &PacketizerParameters) -> Option<u16> {
        let free = self.idle(parameters)?;
        if free == self.channels.len() {
            self.channels.push(Channel::default());
        }
        Some(free as u16)
    }
}

impl Channel {
    /// Takes an input, where it may happen.
    #[inline]
    fn go(
        &mut self,
        channel: ChannelId,
        input: ChannelInput,
        report: &mut impl FnMut(ChannelChange),
    ) -> Option<()> {
        let from = self.state;
        let to = from.after(input)?;
        self.state = to;
        report(ChannelChange { channel, input, from, to });
        Some(())
    }
}
