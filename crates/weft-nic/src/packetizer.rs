//! The packetizer: turns what a process stores into a page of the interface into one packet, and watches
//! over it until the receiver has answered.
//!
//! ```text
//!              ┌─ interface 0 ─ channels 0 1 2 3 ─┐
//!   stores ───►│      …                           ├──► engine ──► packet
//!              └─ interface 63 ─ channels 0 1 2 3 ┘
//!
//!                      ┌──── acknowledge ──► acknowledged
//!   idle ── post ──► ongoing ─── refuse ───► negatively acknowledged ─┬─ clear ──► idle
//!     ▲                │ ▲ │                                          │
//!     │                └─┘ └──── give up ──► timed out ───────────────┘
//!     │               repeat
//!     └────────── an acknowledged channel is posted to again without further ado
//! ```
//! A process stores the payload into a channel, then size and destination, which starts the engine. The
//! channel is busy until the packet is acknowledged, refused, or given up; the process sees its state in
//! the page. A process whose channels are all busy waits: nothing is lost.
//!
//! A library that posts a refused message again does so by its number, by which the receiver tells a copy.
//! So an answer may be to a packet of the post before. It answers the channel once the descriptor has been
//! stored anew, and nothing before that. Packets of the post before that have not gone by then do not go.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.4. States and numbers of interfaces and channels are the text's; the inputs and
//! what happens on those that the text does not name are ours. §5.1 has messages of up to 64 bytes; §5.2.1
//! has 56 "in the current ExaNet version", which are here what MPI puts into a message.
//!
//! # Not modelled
//! The process's loads of the status bits, except in the time when it is told: a round trip of the host port
//! after the acknowledgement. Packets that a process begins to store and never
//! starts. The 56 bytes of §5.2.1 as a limit of the block.

use crate::block::{Block, block};
use crate::gvas::Pdid;
use crate::ports::SmallAnswer;
use crate::reliability::{Expiry, ReliabilityParameters, Retry, not_shorter};
use crate::server::{Server, Service};
use crate::transition::InvalidTransition;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::ClassTag;
use weft_keys::{Misfit, Problem};
use weft_units::{Bytes, Clock, EndpointId, Span, Time};

/// Interfaces and channels are numbered in 16 bits.
pub(crate) const MAX_INTERFACES: u32 = 1 << 15;

/// Cycles before the end of a time-out at which the logic looks at the channel to have the packet made again:
/// an answer whose tail comes later finds that begun. They are ours, those of `rtl/packetizer`.
const LOOK_AHEAD_CYCLES: u64 = 3;

/// The packetizer in reports: TR-488 §4.4.
pub const PACKETIZER: Block = block!(Logic "packetizer");

weft_keys::keys! {
    /// The packetizer's section of a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PacketizerParameters {
        /// The engine's clock.
        clock: Clock, of("nic.clock");
        /// Virtual interfaces: processes of an endpoint.
        interfaces: u32, within(1, MAX_INTERFACES);
        /// Channels of a virtual interface.
        channels: u32, within(1, MAX_INTERFACES);
        /// Largest payload.
        payload: Bytes;
        /// Bytes stored with the payload to start a packet: size and destination.
        descriptor: Bytes;
        /// The engine's time for a packet, in whole cycles; it makes one at a time.
        engine: u32, cycles_of("nic.clock");
        /// Time-outs and repetitions.
        reliability: ReliabilityParameters, group();
        /// From the refusal of a full mailbox to the library's next attempt; doubles each time.
        pause: Span;
        /// Longest such pause.
        longest_pause: Span;
    }
}

impl PacketizerParameters {
    /// Checks that a small message fits into a packet of the network, whose payload is `most` at most.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_payload(&self, most: Bytes) -> Result<(), Misfit> {
        if (Bytes::new(1)..=most).contains(&self.payload) {
            return Ok(());
        }
        let why = format!("a small message of {} is no packet", self.payload);
        let mend = format!("write a number from 1 to {most}, the payload of a packet");
        Err(Problem::new(why, "", mend).of("payload"))
    }

    /// Checks that the pauses fit together.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_pauses(&self) -> Result<(), Misfit> {
        not_shorter(("longest_pause", self.longest_pause), ("pause", self.pause))
    }
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

/// An input of a channel.
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

    /// The table of transitions: the state after `input`.
    ///
    /// # Errors
    /// An input that must not happen in this state.
    #[inline]
    pub const fn after(
        self,
        input: ChannelInput,
    ) -> Result<ChannelState, InvalidTransition<ChannelState, ChannelInput>> {
        use ChannelInput::{Acknowledge, Clear, GiveUp, Post, Refuse, Repeat};
        use ChannelState::{Acknowledged, Idle, NegativelyAcknowledged, Ongoing, TimedOut};
        match (self, input) {
            (Idle | Acknowledged, Post) => Ok(Ongoing),
            (Ongoing, Acknowledge) => Ok(Acknowledged),
            (Ongoing, Refuse) => Ok(NegativelyAcknowledged),
            (Ongoing, Repeat) => Ok(Ongoing),
            (Ongoing, GiveUp) => Ok(TimedOut),
            (NegativelyAcknowledged | TimedOut, Clear) => Ok(Idle),
            (state, input) => Err(InvalidTransition { state, input }),
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
    /// The input.
    pub input: ChannelInput,
    /// The state before.
    pub from: ChannelState,
    /// The state after.
    pub to: ChannelState,
}

/// A packet in a channel: what the process has stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parcel {
    /// The virtual interface of the process.
    pub interface: u16,
    /// The protection domain of the process, as it posts.
    pub domain: Pdid,
    /// The node that the packet is for.
    pub to: EndpointId,
    /// The virtual interface there.
    pub to_interface: u16,
    /// Whether it is a request of a read, for the send unit there.
    pub is_request: bool,
    /// The number of the message, counted by this interface.
    pub message: u32,
    /// Payload.
    pub bytes: Bytes,
    /// The time at which the message was offered.
    pub created_at: Time,
    /// How often a full mailbox has refused it.
    pub refused: u32,
    /// The sender's name for the message; `None`: the sender is not told when it has gone.
    pub token: Option<u32>,
    /// Whether the sender is told when the receiver has it, and not when it has gone.
    pub acknowledged: bool,
    /// Whether it is watched.
    pub watch: bool,
    /// The traffic class of the packet.
    pub class: ClassTag,
}

/// A packet that the engine makes, known ahead of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EnginePacket {
    /// The time from which on no repetition comes before it: the edge of its last store, or the look at its
    /// timer.
    pub came: Time,
    /// The time at which it is made.
    pub made: Time,
    /// The channel.
    pub channel: ChannelId,
    /// The number of the message.
    pub message: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Channel {
    state: ChannelState,
    parcel: Option<Parcel>,
    /// The edge at which the descriptor of the parcel comes: an answer before is to another post.
    stored: Time,
    retry: Retry,
}

/// A page that a process has.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct VirtualInterface {
    domain: Pdid,
    channels: Vec<Channel>,
    /// Parcels without a channel, in the order of their posts.
    waiting: VecDeque<(Time, Parcel)>,
}

/// The block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Packetizer {
    /// Pages in use; others take no memory.
    interfaces: Vec<VirtualInterface>,
    engine: Server,
    /// Ongoing packets, over all pages.
    ongoing: usize,
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

    #[inline]
    fn interface(&mut self, interface: u16) -> &mut VirtualInterface {
        let index = usize::from(interface);
        if self.interfaces.len() <= index {
            self.add_interfaces(index);
        }
        &mut self.interfaces[index]
    }

    /// Adds the interfaces that are missing up to the one at `index`.
    #[cold]
    fn add_interfaces(&mut self, index: usize) {
        self.interfaces.resize_with(index + 1, VirtualInterface::default);
    }

    /// A process wants to post at `now`: the channel that takes it, or `None` where it waits its turn.
    #[inline]
    pub fn post(
        &mut self,
        now: Time,
        parcel: Parcel,
        parameters: &PacketizerParameters,
        report: &mut impl FnMut(ChannelChange),
    ) -> Option<ChannelId> {
        let interface = parcel.interface;
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
        channel.take(id, ChannelInput::Post, report).expect("only free channels are taken");
        channel.parcel = Some(parcel);
        self.ongoing += 1;
        id
    }

    /// The last store of a post to a channel comes at an edge.
    #[inline]
    pub fn store(&mut self, id: ChannelId, edge: Time) {
        let channel = &mut self.interfaces[usize::from(id.interface)].channels[usize::from(id.channel)];
        channel.stored = edge;
    }

    /// The last store to a channel has come at `came`: the engine makes its packet.
    #[inline]
    pub fn start(&mut self, came: Time, parameters: &PacketizerParameters) -> Service {
        self.engine.serve(came, parameters.engine.into(), &parameters.clock)
    }

    /// The same, where another may have found when the packet is made.
    #[inline]
    pub(crate) fn start_as(
        &mut self,
        came: Time,
        found: Option<Time>,
        parameters: &PacketizerParameters,
    ) -> Service {
        match found {
            None => self.start(came, parameters),
            Some(made) => self.engine.serve_until(came, made, &parameters.clock),
        }
    }

    /// The time of a packet is up, as its timer says at `now`: when it comes to the engine again.
    pub fn repetition(now: Time, clock: &Clock) -> Time {
        clock.later_edge(clock.edge_at_or_after(now), LOOK_AHEAD_CYCLES)
    }

    /// Takes back from the packets that the engine makes those whose last store comes no earlier than a
    /// repetition at `came`: it makes that before them. In the hardware both wait in one queue.
    pub fn take_back(&mut self, came: Time, made: &mut VecDeque<EnginePacket>) -> VecDeque<EnginePacket> {
        let later = made.split_off(made.partition_point(|packet| packet.came < came));
        let Some(last) = later.back() else { return later };
        // What has left the queue was made before.
        let free = made.back().map_or(Time::ZERO, |packet| packet.made);
        let mut given = Span::ZERO;
        let mut began = free;
        for packet in &later {
            given = given.saturating_add(packet.made - began.max(packet.came));
            began = packet.made;
        }
        debug_assert_eq!(self.engine.free(), last.made);
        self.engine.take_back(free, given);
        later
    }

    /// The time in which the engine has worked.
    pub(crate) fn worked(&self) -> Span {
        self.engine.worked()
    }

    /// The parcel of a packet that the engine has made; `None` where its post has been answered.
    #[inline]
    pub fn parcel_of(&self, packet: &EnginePacket) -> Option<&Parcel> {
        let channel = self.channel(packet.channel)?;
        channel.parcel.as_ref().filter(|_| packet.came >= channel.stored)
    }

    /// The parcel that a channel holds.
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

    fn channel_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.interfaces.get_mut(usize::from(id.interface))?.channels.get_mut(usize::from(id.channel))
    }

    /// The packet of a channel has been put on the link. Returns when a timer is to be set.
    #[inline]
    pub fn sent(&mut self, now: Time, id: ChannelId, parameters: &PacketizerParameters) -> Option<Time> {
        let channel = &mut self.interfaces[usize::from(id.interface)].channels[usize::from(id.channel)];
        let (clock, reliability) = (&parameters.clock, &parameters.reliability);
        let looks_from = clock.edge(clock.edges_before(now).saturating_sub(LOOK_AHEAD_CYCLES));
        // The timer is set for later than now, however short the time-out is.
        let least = Time::from_ps((now.as_ps() + 1).saturating_sub(reliability.timeout.as_ps()));
        channel.retry.sent(looks_from.max(least), reliability)
    }

    /// An answer has come whole at `now`. Returns what its channel held, which is free again; `None` where
    /// the answer is to what has been answered before.
    #[inline]
    pub fn answered(
        &mut self,
        now: Time,
        answer: &SmallAnswer,
        report: &mut impl FnMut(ChannelChange),
    ) -> Option<Parcel> {
        let id = answer.channel;
        let channel = self.channel_mut(id)?;
        if now <= channel.stored {
            return None;
        }
        let parcel = channel.parcel.take_if(|parcel| parcel.message == answer.message)?;
        let accepted = answer.refusal.is_none();
        let input = if accepted { ChannelInput::Acknowledge } else { ChannelInput::Refuse };
        channel.take(id, input, report).expect("a channel with a parcel is ongoing");
        channel.retry.settled();
        if !accepted {
            channel.take(id, ChannelInput::Clear, report).expect("a refused packet is cleared once");
        }
        self.ongoing -= 1;
        Some(parcel)
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
        let expiry = self.timer_fired(now, id, parameters);
        (expiry, self.expire(id, expiry, report))
    }

    /// The timer of a channel has fired: what follows for the channel, which [`Packetizer::expire`] does.
    pub(crate) fn timer_fired(
        &mut self,
        now: Time,
        id: ChannelId,
        parameters: &PacketizerParameters,
    ) -> Expiry {
        let channel = self.channel_mut(id);
        channel.map_or(Expiry::Settled, |channel| channel.retry.expired(now, &parameters.reliability))
    }

    /// Does to a channel what follows. Returns what a channel has held that is given up.
    pub(crate) fn expire(
        &mut self,
        id: ChannelId,
        expiry: Expiry,
        report: &mut impl FnMut(ChannelChange),
    ) -> Option<Parcel> {
        let channel = self.channel_mut(id)?;
        match expiry {
            Expiry::Settled | Expiry::NotBefore(_) => None,
            Expiry::Repeat => {
                channel.take(id, ChannelInput::Repeat, report).expect(WAITS);
                None
            }
            Expiry::GiveUp => {
                channel.retry.settled();
                channel.take(id, ChannelInput::GiveUp, report).expect(WAITS);
                channel.take(id, ChannelInput::Clear, report).expect("a packet is given up once");
                let parcel = channel.parcel.take();
                self.ongoing -= 1;
                parcel
            }
        }
    }

    /// Whether the packet of a channel has been sent and not been answered in time.
    pub fn repeated(&self, id: ChannelId) -> bool {
        self.channel(id).is_some_and(|channel| channel.retry.repeated() > 0)
    }

    /// How long a channel has waited for an answer before it was last told to [repeat](Expiry::Repeat).
    pub fn waited(&self, id: ChannelId, parameters: &PacketizerParameters) -> Span {
        let page = self.interfaces.get(usize::from(id.interface));
        let channel = page.and_then(|page| page.channels.get(usize::from(id.channel)));
        channel.map_or(Span::ZERO, |channel| channel.retry.waited(&parameters.reliability))
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

    /// The parcels that are not done: in channels, and such that wait for one.
    pub fn parcels(&self) -> impl Iterator<Item = &Parcel> {
        self.interfaces.iter().flat_map(|page| {
            let ongoing = page.channels.iter().filter_map(|channel| channel.parcel.as_ref());
            ongoing.chain(page.waiting.iter().map(|(_, parcel)| parcel))
        })
    }

    /// Parcels in channels and such that wait for one.
    pub fn unfinished(&self) -> usize {
        self.ongoing + self.waiting
    }
}

/// The reason why a timer that is not settled fires in an ongoing channel only.
const WAITS: &str = "the timer of a channel runs while its packet is ongoing";

impl VirtualInterface {
    /// The first channel that can be posted to, if it exists or may be made.
    #[inline]
    fn idle(&self, parameters: &PacketizerParameters) -> Option<usize> {
        let free = self.channels.iter().position(|c| c.state.after(ChannelInput::Post).is_ok());
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
    /// Takes an input, which changes the state.
    #[inline]
    fn take(
        &mut self,
        channel: ChannelId,
        input: ChannelInput,
        report: &mut impl FnMut(ChannelChange),
    ) -> Result<(), InvalidTransition<ChannelState, ChannelInput>> {
        let from = self.state;
        let to = from.after(input)?;
        self.state = to;
        report(ChannelChange { channel, input, from, to });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Refusal;
    use proptest::prelude::*;

    fn parameters() -> PacketizerParameters {
        PacketizerParameters {
            clock: Clock::from_hertz(150_000_000).unwrap(),
            interfaces: 64,
            channels: 4,
            payload: Bytes::new(64),
            descriptor: Bytes::new(16),
            engine: 10,
            reliability: ReliabilityParameters {
                timeout: Span::from_us(10),
                backoff: 2,
                longest: Span::from_us(40),
                repetitions: 2,
            },
            pause: Span::from_us(1),
            longest_pause: Span::from_us(8),
        }
    }

    fn parcel(message: u32) -> Parcel {
        let (to, bytes, created_at) = (EndpointId(1), Bytes::new(8), Time::ZERO);
        Parcel {
            interface: 0,
            domain: Pdid(0),
            to,
            to_interface: 0,
            is_request: false,
            message,
            bytes,
            created_at,
            refused: 0,
            token: None,
            acknowledged: false,
            watch: false,
            class: ClassTag::default(),
        }
    }

    fn answer(channel: ChannelId, message: u32) -> SmallAnswer {
        SmallAnswer { from: EndpointId(1), message, channel, refusal: None, damaged: false }
    }

    fn of(interface: u16, message: u32) -> Parcel {
        Parcel { interface, ..parcel(message) }
    }

    /// Catches a transition that is missing or too much: the table as a reviewer can read it.
    #[test]
    fn the_table_of_transitions() {
        use ChannelInput::{Acknowledge, Clear, GiveUp, Post, Refuse, Repeat};
        use ChannelState::{Acknowledged, Idle, NegativelyAcknowledged, Ongoing, TimedOut};
        let inputs = [Post, Acknowledge, Refuse, Repeat, GiveUp, Clear];
        let rows = ChannelState::ALL.map(|state| (state, inputs.map(|input| state.after(input).ok())));
        let no = None;
        let expected = [
            (Idle, [Some(Ongoing), no, no, no, no, no]),
            (
                Ongoing,
                [no, Some(Acknowledged), Some(NegativelyAcknowledged), Some(Ongoing), Some(TimedOut), no],
            ),
            (Acknowledged, [Some(Ongoing), no, no, no, no, no]),
            (NegativelyAcknowledged, [no, no, no, no, no, Some(Idle)]),
            (TimedOut, [no, no, no, no, no, Some(Idle)]),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_engine_makes_one_packet_at_a_time() {
        let mut packetizer = Packetizer::default();
        let first = packetizer.start(Time::ZERO, &parameters());
        let second = packetizer.start(Time::ZERO, &parameters());
        assert_eq!((first.ended, second.began), (parameters().clock.edge(10), parameters().clock.edge(10)));
        assert_eq!(second.ended, parameters().clock.edge(20));
    }

    /// Catches a repetition that waits for posts which come to the engine behind it, goes before one that
    /// came first, or gives the engine time that it has not.
    #[test]
    fn a_repetition_comes_before_posts_that_are_on_their_way() {
        let (p, mut packetizer, mut made) = (parameters(), Packetizer::default(), VecDeque::new());
        let edge = |n| p.clock.edge(n);
        let start = |packetizer: &mut Packetizer, came, message| {
            let channel = ChannelId { interface: 0, channel: 0 };
            EnginePacket { came, made: packetizer.start(came, &p).ended, channel, message }
        };
        for (message, came) in [(0, 100), (1, 105), (2, 112), (3, 140)] {
            made.push_back(start(&mut packetizer, edge(came), message));
        }
        let before: Vec<_> = made.iter().map(|packet: &EnginePacket| packet.made).collect();
        assert_eq!(before, [110, 120, 130, 150].map(edge));
        // It comes in the cycle of the third.
        let up = Packetizer::repetition(edge(109), &p.clock);
        assert_eq!(up, edge(112));
        let later = packetizer.take_back(up, &mut made);
        let messages = |made: &VecDeque<EnginePacket>| made.iter().map(|p| p.message).collect::<Vec<_>>();
        assert_eq!((messages(&made), messages(&later)), (vec![0, 1], vec![2, 3]));
        let repeated = packetizer.start(up, &p);
        assert_eq!((repeated.began, repeated.ended), (edge(120), edge(130)));
        let again = later.iter().map(|packet| packetizer.start(packet.came, &p).ended);
        assert_eq!(again.collect::<Vec<_>>(), [140, 150].map(edge));
        assert_eq!(packetizer.worked(), edge(150) - edge(100));
        // Nothing is taken back where nothing comes.
        assert!(packetizer.take_back(edge(200), &mut made).is_empty());
    }

    /// Catches an answer to the post before that answers the next one while its stores are on their way, and
    /// a packet of the post before that goes for the next one.
    #[test]
    fn a_post_begins_when_its_descriptor_is_there() {
        let (p, mut packetizer, silent) = (parameters(), Packetizer::default(), &mut |_: ChannelChange| {});
        let edge = |n| p.clock.edge(n);
        let post = |packetizer: &mut Packetizer, now, came| {
            let channel = packetizer.post(now, parcel(1), &p, &mut |_| {}).unwrap();
            packetizer.store(channel, came);
            EnginePacket { came, made: packetizer.start(came, &p).ended, channel, message: 1 }
        };
        let first = post(&mut packetizer, edge(0), edge(10));
        assert_eq!(packetizer.parcel_of(&first), Some(&parcel(1)));
        let refused = SmallAnswer { refusal: Some(Refusal::Damaged), ..answer(first.channel, 1) };
        assert_eq!(packetizer.answered(edge(100), &refused, silent), Some(parcel(1)));
        assert_eq!(packetizer.parcel_of(&first), None);
        let next = post(&mut packetizer, edge(100), edge(110));
        for late in [edge(105), edge(110)] {
            assert_eq!(packetizer.answered(late, &refused, silent), None);
        }
        assert_eq!(packetizer.parcel_of(&first), None);
        assert_eq!(packetizer.parcel_of(&next), Some(&parcel(1)));
        let acknowledged = answer(next.channel, 1);
        let other = ChannelId { channel: 3, ..next.channel };
        let then = edge(110) + Span::from_ps(1);
        assert_eq!(packetizer.answered(then, &answer(other, 1), silent), None, "of another channel");
        assert_eq!(packetizer.answered(then, &acknowledged, silent), Some(parcel(1)));
    }

    /// Catches a timer that fires too late for the packet to be repeated at the end of its time, or never.
    #[test]
    fn the_logic_looks_at_a_channel_before_its_time_is_up() {
        let (p, mut packetizer) = (parameters(), Packetizer::default());
        let channel = packetizer.post(Time::ZERO, parcel(1), &p, &mut |_| {}).unwrap();
        let sent = p.clock.edge(300) - Span::from_ps(1);
        let timer = packetizer.sent(sent, channel, &p).unwrap();
        assert_eq!(timer, p.clock.edge(297) + p.reliability.timeout);
        assert_eq!(Packetizer::repetition(timer, &p.clock), p.clock.edge(300) + p.reliability.timeout);
        let mut hasty = p;
        hasty.reliability.timeout = Span::from_ps(1);
        let mut packetizer = Packetizer::default();
        let channel = packetizer.post(Time::ZERO, parcel(1), &hasty, &mut |_| {}).unwrap();
        assert!(packetizer.sent(sent, channel, &hasty).unwrap() > sent);
    }

    /// Catches a post that is lost or overtakes another when channels are exhausted.
    #[test]
    fn posts_wait_for_a_channel_in_their_order() {
        let mut packetizer = Packetizer::default();
        let (p, silent, now) = (parameters(), &mut |_: ChannelChange| {}, Time::ZERO + Span::from_us(1));
        for message in 0..7 {
            let channel = packetizer.post(Time::ZERO, of(5, message), &p, silent);
            assert_eq!(channel.is_some(), message < 4, "four channels");
        }
        assert_eq!((packetizer.waiting(), packetizer.unfinished()), (3, 7));
        // Another process is not in the way.
        assert!(packetizer.post(Time::ZERO, of(6, 7), &p, silent).is_some());
        let freed = ChannelId { interface: 5, channel: 2 };
        assert_eq!(packetizer.answered(now, &answer(freed, 2), silent), Some(of(5, 2)));
        // Who comes now is behind those that wait, although a channel is free.
        assert_eq!(packetizer.post(Time::ZERO, of(5, 8), &p, silent), None);
        let (_, next, channel) = packetizer.next_waiting(5, &p, silent).unwrap();
        assert_eq!((next.message, channel), (4, freed));
        assert_eq!(packetizer.next_waiting(5, &p, silent), None);
        assert_eq!(packetizer.answered(now, &answer(freed, 2), silent), None, "answered before");
        let nowhere = ChannelId { interface: 99, channel: 2 };
        assert_eq!(packetizer.answered(now, &answer(nowhere, 2), silent), None, "never posted");
    }

    #[test]
    fn a_channel_without_answer_times_out_and_is_used_again() {
        let mut packetizer = Packetizer::default();
        let p = parameters();
        let mut changes = Vec::new();
        let channel = packetizer.post(Time::ZERO, parcel(1), &p, &mut |c| changes.push(c)).unwrap();
        let mut now = Time::ZERO;
        let given_up = loop {
            now = packetizer.sent(now, channel, &p).unwrap();
            match packetizer.expired(now, channel, &p, &mut |c| changes.push(c)) {
                (Expiry::Repeat, None) => now = Packetizer::repetition(now, &p.clock),
                (Expiry::GiveUp, parcel) => break parcel,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(given_up, Some(parcel(1)));
        assert_eq!(now, Time::ZERO + Span::from_us(10 + 20 + 40));
        assert_eq!((packetizer.unfinished(), packetizer.state(channel)), (0, ChannelState::Idle));
        let inputs: Vec<ChannelInput> = changes.iter().map(|change| change.input).collect();
        use ChannelInput::{Clear, GiveUp, Post, Repeat};
        assert_eq!(inputs, [Post, Repeat, Repeat, GiveUp, Clear]);
        assert!(changes.iter().all(|c| c.from.after(c.input) == Ok(c.to)));
        assert!(packetizer.post(now, parcel(2), &p, &mut |_| {}).is_some());
    }

    #[test]
    fn the_pause_doubles_up_to_its_limit() {
        let us = [0, 1, 2, 3, 4, 5, 200].map(|refused| Packetizer::pause(refused, &parameters()));
        assert_eq!(us.map(|pause| pause.as_ps() / 1_000_000), [1, 1, 2, 4, 8, 8, 8]);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Post(u16),
        /// To what a channel holds, or to another message.
        Answer {
            interface: u16,
            channel: u16,
            off: u32,
            good: bool,
        },
        Expire(u16, u16),
    }

    proptest! {
        /// Catches a parcel that is lost or handed back twice, and a panic: any posts, answers to anything
        /// and timers of any channel.
        #[test]
        fn every_parcel_is_in_one_place(
            steps in prop::collection::vec(
                prop_oneof![
                    (0u16..3).prop_map(Step::Post),
                    (0u16..4, 0u16..6, 0u32..2, any::<bool>()).prop_map(
                        |(interface, channel, off, good)| Step::Answer { interface, channel, off, good }
                    ),
                    (0u16..70, 0u16..6).prop_map(|(interface, channel)| Step::Expire(interface, channel)),
                ],
                0..200,
            ),
        ) {
            let (mut packetizer, p) = (Packetizer::default(), parameters());
            let (mut posted, mut over) = (0u32, std::collections::BTreeSet::new());
            let mut now = Time::ZERO;
            let silent = &mut |_: ChannelChange| {};
            for step in steps {
                now += Span::from_us(3);
                match step {
                    Step::Post(interface) => {
                        if let Some(channel) = packetizer.post(now, of(interface, posted), &p, silent) {
                            packetizer.sent(now, channel, &p);
                        }
                        posted += 1;
                    }
                    Step::Answer { interface, channel, off, good } => {
                        let id = ChannelId { interface, channel };
                        let held = packetizer.parcel(id).copied();
                        let message = held.map_or(0, |parcel| parcel.message) + off;
                        let refusal = (!good).then_some(Refusal::Full);
                        let answer = SmallAnswer { refusal, ..answer(id, message) };
                        let answered = packetizer.answered(now, &answer, silent);
                        prop_assert_eq!(answered, held.filter(|_| off == 0));
                        if let Some(parcel) = answered {
                            prop_assert!(over.insert(parcel.message), "twice");
                            while let Some((_, _, id)) = packetizer.next_waiting(id.interface, &p, silent) {
                                packetizer.sent(now, id, &p);
                            }
                        }
                    }
                    Step::Expire(interface, channel) => {
                        let id = ChannelId { interface, channel };
                        match packetizer.expired(now, id, &p, silent) {
                            (Expiry::Repeat, _) => drop(packetizer.sent(now, id, &p)),
                            (_, Some(parcel)) => prop_assert!(over.insert(parcel.message), "twice"),
                            _ => {}
                        }
                    }
                }
                prop_assert_eq!(packetizer.unfinished() + over.len(), posted as usize);
            }
        }
    }
}
