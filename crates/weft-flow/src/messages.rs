//! Messages under way: the interfaces that hold them, their fluids, and when these end.
//!
//! ```text
//!   posted ──► waiting ──► a channel, at the earliest after its start-up ──► fluids ──► all have ended
//!                                                                  shares ───┘
//! ```

use crate::counts::LineCount;
use crate::event::{FlowEvent, MessageHandle};
use crate::lone::{LoneCase, LoneMessage};
use crate::path::{FluidPaths, FoundPaths};
use crate::shares::{FluidId, LineId, NewShare, Shares, Wish};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use weft_engine::{Context, Payload};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Parts of a bit in which what is left of a fluid is counted: rate × time in ps is a whole number of them.
pub(crate) const PARTS_OF_A_BIT: u128 = 1_000_000_000_000;

/// While fluids meet all the time, shares are worked out so many times within the time that a message takes:
/// what begins or ends in between waits for the next solution.
const SOLUTIONS_PER_MESSAGE: u64 = 32;
/// Where there are more fluids than this, the time is at least what messages have taken lately: one short
/// message has not all the long ones solved anew.
const CROWD: usize = 1 << 12;
/// Of the time that messages have taken lately the last counts for one in so many.
const LATELY: u64 = 64;
/// Solutions where there are more fluids than this: one takes seconds there, and what one of so many leaves
/// matters to few.
const SOLUTIONS_IN_A_HUGE_CROWD: u64 = 8;
const HUGE_CROWD: usize = 1 << 15;

/// Entries of the queue of ends for each stream, above which those that are no longer true are taken out.
const UNTRUE_ENDS: usize = 4;

/// The messages between hosts.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned")]
pub(crate) struct Between<T> {
    pub(crate) interfaces: Vec<FluidInterface>,
    pub(crate) messages: Slab<UnderWay<T>>,
    pub(crate) shares: Shares,
    pub(crate) streams: Slab<FluidStream>,
    /// By number; those that have ended are left as they were.
    pub(crate) fluids: Vec<Fluid>,
    /// The streams that move, by when they end, or by a time before: one that has got slower is moved when
    /// its turn comes. The first is always of a stream.
    pub(crate) ends: BinaryHeap<Reverse<(Time, FluidStreamId)>>,
    /// The time of the next solution; never: nothing has changed. That of the last one.
    pub(crate) solve_at: Time,
    pub(crate) solved_at: Time,
    /// How long the fluids of a message have taken lately.
    pub(crate) lately: Span,
    /// By line: fluids that will cross it and have not begun.
    pub(crate) planned: Vec<u32>,
    /// By line: what streams that have ended have carried; and what all had when the counters were last
    /// reset, or nothing.
    pub(crate) crossed: Vec<LineCount>,
    pub(crate) crossed_before: Vec<LineCount>,
    /// The time at which they were.
    pub(crate) counted_from: Time,
    /// Header and footer of a packet.
    pub(crate) envelope: Bytes,
    #[serde(skip)]
    pub(crate) spare: SpareLists,
}

/// Empty lists of what has ended, for others: most messages are short, and making them would take longer than
/// all else.
#[derive(Default)]
pub(crate) struct SpareLists {
    pub(crate) paths: Vec<FluidPaths>,
    pub(crate) found: FoundPaths,
    streams: Vec<Vec<FluidStreamId>>,
    fluids: Vec<Vec<FluidId>>,
    changed: Vec<FluidStreamId>,
}

/// A stream, from when it begins until it ends; the number is used again then.
pub(crate) type FluidStreamId = u32;

/// A message, or a part of one: what its fluids carry together. Where a routing looks at queues, what goes
/// over each path is not fixed before, so that a slow path carries less; elsewhere a stream is one fluid.
#[derive(Serialize, Deserialize)]
pub(crate) struct FluidStream {
    /// The place of the message.
    pub(crate) message: u32,
    pub(crate) wire_bits: u64,
    pub(crate) packets: u64,
    pub(crate) packet_bytes: u64,
    pub(crate) payload: u64,
    /// The parts of a bit that are left of it at a time, and the shares of its fluids together since.
    pub(crate) left: u128,
    pub(crate) since: Time,
    pub(crate) share: u64,
    /// The time at which it ends if its shares stay; `None`: it has none.
    pub(crate) ends_at: Option<Time>,
    /// The time at which it is in the queue of ends; entries of other times are no longer true.
    pub(crate) queued_at: Time,
    pub(crate) fluids: Vec<FluidId>,
    /// Whether its message is watched: what stops its fluids is of interest.
    pub(crate) is_watched: bool,
}

/// A fluid: what a stream carries over one path.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Fluid {
    pub(crate) stream: FluidStreamId,
    pub(crate) share: u64,
    /// The parts of a bit that it has carried by then.
    pub(crate) since: Time,
    pub(crate) carried: u128,
    /// The line that lets it have no more, where its message is watched.
    pub(crate) stopped_by: Option<LineId>,
}

impl FluidStream {
    /// The payload that has come by a time.
    pub(crate) fn came(&self, now: Time) -> u64 {
        let whole = u128::from(self.wire_bits) * PARTS_OF_A_BIT;
        let gone = whole - self.left + parts(self.share, now.saturating_since(self.since)).min(self.left);
        (u128::from(self.payload) * (gone / PARTS_OF_A_BIT) / u128::from(self.wire_bits.max(1))) as u64
    }
}

impl Fluid {
    /// It has another share from now on. Returns what it had.
    fn take(&mut self, share: u64, now: Time) -> u64 {
        self.carried += parts(self.share, now - self.since);
        self.since = now;
        std::mem::replace(&mut self.share, share)
    }

    /// Since its last share: the line that has stopped it, and for how long.
    fn was_stopped(&self, now: Time) -> Option<(LineId, Span)> {
        Some((self.stopped_by?, now - self.since))
    }
}

/// The interface of an endpoint.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct FluidInterface {
    /// Messages posted so far: the number of the next.
    pub(crate) posted: u32,
    /// Messages that are to be posted later.
    pub(crate) to_post: u32,
    /// Messages that are posted and wait for a channel.
    pub(crate) waiting: VecDeque<u32>,
    /// Messages that hold a channel.
    pub(crate) sending: u32,
    /// Before this it does not begin to send another message.
    pub(crate) next_send: Time,
    /// The time by which all that it has sent would be, had each taken as long as many after each other do.
    pub(crate) steady: Time,
    /// Before this no other message for it is noticed.
    pub(crate) next_notice: Time,
    /// The time at which its host is to be asked for a message next.
    pub(crate) ask_at: Option<Time>,
}

/// A message under way.
#[derive(Serialize, Deserialize)]
pub(crate) struct UnderWay<T> {
    pub(crate) from: EndpointId,
    pub(crate) to: EndpointId,
    pub(crate) number: u32,
    pub(crate) bytes: Bytes,
    pub(crate) created_at: Time,
    pub(crate) header: Option<T>,
    pub(crate) token: Option<u32>,
    pub(crate) interface: u16,
    pub(crate) to_interface: u16,
    /// The message as far as its times depend on it, without its path.
    pub(crate) case: LoneCase,
    pub(crate) is_watched: bool,
    pub(crate) posted_at: Time,
    /// Once it is posted.
    pub(crate) lone: LoneMessage,
    pub(crate) paths: FluidPaths,
    /// Whether its routing has looked at queues.
    pub(crate) adapts: bool,
    pub(crate) begins_at: Time,
    /// Streams of it that have not ended, and the payload of those that have.
    pub(crate) flowing: Vec<FluidStreamId>,
    pub(crate) came: u64,
    pub(crate) ended_at: Time,
    /// The lines that have stopped fluids of it, and for how long, where it is watched.
    pub(crate) stops: BTreeMap<LineId, Span>,
}

impl<T> UnderWay<T> {
    /// Counts a line that has stopped one of its fluids.
    fn stop(&mut self, stopped: Option<(LineId, Span)>) {
        if let Some((line, time)) = stopped {
            *self.stops.entry(line).or_default() += time;
        }
    }

    /// The line that has stopped its fluids for longest, the first of several; `None`: none has.
    pub(crate) fn bottleneck(&self) -> Option<LineId> {
        let longest = self.stops.iter().max_by_key(|(line, time)| (**time, Reverse(**line)));
        longest.map(|(line, _)| *line)
    }
}

impl<T> Between<T> {
    /// The host of an endpoint is asked for a message at a time, or before.
    pub(crate) fn ask<P: Payload>(
        &mut self,
        endpoint: EndpointId,
        at: Time,
        engine: &mut Context<'_, FlowEvent<P>, ()>,
    ) {
        let FluidInterface { ask_at, next_send, .. } = &mut self.interfaces[endpoint.index()];
        let at = at.max(*next_send);
        if ask_at.is_none_or(|known| at < known) {
            *ask_at = Some(at);
            engine.send(FlowEvent::Ask.at(endpoint, at));
        }
    }

    /// The interface of an endpoint gives its free channels to messages that wait.
    pub(crate) fn fill_channels<P: Payload>(
        &mut self,
        from: EndpointId,
        channels: u32,
        engine: &mut Context<'_, FlowEvent<P>, ()>,
    ) {
        let interface = &mut self.interfaces[from.index()];
        while interface.sending < channels
            && let Some(place) = interface.waiting.pop_front()
        {
            let message = &mut self.messages[place as usize];
            let LoneMessage { start_up, send_gap, steady_gap, slack, holds_channel, .. } = message.lone;
            // Start-ups overlap; a message that waits for a channel is ready when it gets one.
            let sent_at = message.posted_at.max(interface.next_send);
            let begins = engine.now().max(sent_at + start_up);
            message.begins_at = begins;
            interface.steady = interface.steady.max(sent_at) + steady_gap;
            let steady = Time::from_ps(interface.steady.as_ps().saturating_sub(slack.as_ps()));
            interface.next_send = (sent_at + send_gap).max(steady);
            interface.sending += u32::from(holds_channel);
            let key = MessageHandle { place, from, number: message.number };
            engine.send(FlowEvent::Begin(key).at(from, begins));
        }
    }

    /// The fluids of a message begin.
    pub(crate) fn begin(&mut self, place: u32, now: Time) {
        let message = &mut self.messages[place as usize];
        let UnderWay { lone, bytes, adapts, is_watched, .. } = *message;
        let mut paths = std::mem::take(&mut message.paths);
        message.flowing = self.spare.streams.pop().unwrap_or_default();
        for (parts, lines) in paths.iter() {
            lines.iter().for_each(|line| self.planned[line.index()] -= parts);
        }
        let packet_bytes = (bytes + self.envelope * lone.packets).get();
        let all = paths.iter().map(|(parts, _)| parts).sum();
        let mut from = 0;
        for (parts, lines) in paths.iter() {
            let own = from..from + parts;
            from = own.end;
            // Where the routing looks at queues one stream has all paths, elsewhere each has one.
            if !adapts || own.start == 0 {
                let carried = if adapts { 0..all } else { own.clone() };
                let of = |whole| part(whole, &carried, all);
                let wire_bits = of(lone.wire_bits);
                let stream = self.streams.insert(FluidStream {
                    message: place,
                    wire_bits,
                    packets: of(lone.packets),
                    packet_bytes: of(packet_bytes),
                    payload: of(bytes.get()),
                    left: u128::from(wire_bits) * PARTS_OF_A_BIT,
                    since: now,
                    share: 0,
                    ends_at: None,
                    queued_at: Time::NEVER,
                    fluids: self.spare.fluids.pop().unwrap_or_default(),
                    is_watched,
                });
                self.messages[place as usize].flowing.push(stream as FluidStreamId);
            }
            let most = part(lone.most.bits_per_second(), &own, all).max(1);
            let wish = Wish { most: BitRate::from_bits_per_second(most), weight: parts };
            let id = self.shares.begin(lines, wish);
            let share = self.shares.share(id).bits_per_second();
            let flowing = &self.messages[place as usize].flowing;
            let stream = flowing[flowing.len() - 1];
            let fluid = Fluid { stream, share, since: now, carried: 0, stopped_by: None };
            if self.fluids.len() <= id.index() {
                self.fluids.resize(id.index() + 1, fluid);
            }
            self.fluids[id.index()] = fluid;
            let stream = &mut self.streams[stream as usize];
            stream.fluids.push(id);
            stream.share += share;
        }
        paths.clear();
        self.spare.paths.push(paths);
        for number in 0..self.messages[place as usize].flowing.len() {
            self.await_end(self.messages[place as usize].flowing[number], now);
        }
        self.solve_within(lone.lasts(), now);
    }

    /// Has shares worked out where fluids have begun or ended: at this instant, or a part of such a message's
    /// time after the last solution.
    fn solve_within(&mut self, lasts: Span, now: Time) {
        if self.shares.is_touched() {
            let is_huge = self.shares.fluids() > HUGE_CROWD;
            let solutions = if is_huge { SOLUTIONS_IN_A_HUGE_CROWD } else { SOLUTIONS_PER_MESSAGE };
            let lasts = if self.shares.fluids() > CROWD { lasts.max(self.lately) } else { lasts };
            let pause = Span::from_ps(lasts.as_ps() / solutions);
            self.solve_at = self.solve_at.min(now.max(self.solved_at.saturating_add(pause)));
        }
    }

    /// The end of a stream is known, if its shares stay.
    fn await_end(&mut self, id: FluidStreamId, now: Time) {
        let stream = &mut self.streams[id as usize];
        stream.ends_at = end_of(stream.left, stream.share, now);
        if let Some(end) = stream.ends_at
            && end < stream.queued_at
        {
            stream.queued_at = end;
            self.ends.push(Reverse((end, id)));
        }
        if self.ends.len() > UNTRUE_ENDS * self.streams.len().max(64) {
            let streams = &self.streams;
            self.ends.retain(|Reverse(entry)| is_true(streams, *entry));
        }
    }

    /// Takes the streams that end now from their lines. Returns the messages of which all have ended.
    pub(crate) fn take_ended(&mut self, now: Time) -> Vec<u32> {
        let mut ended = Vec::new();
        while let Some(&Reverse((time, id))) = self.ends.peek() {
            if !is_true(&self.streams, (time, id)) {
                self.ends.pop();
                continue;
            }
            if time > now {
                break;
            }
            self.ends.pop();
            let stream = &mut self.streams[id as usize];
            if stream.ends_at != Some(time) {
                stream.queued_at = stream.ends_at.unwrap_or(Time::NEVER);
                self.ends.extend(stream.ends_at.map(|end| Reverse((end, id))));
                continue;
            }
            let mut stream = self.streams.remove(id as usize);
            let message = &mut self.messages[stream.message as usize];
            stream.fluids.iter().for_each(|id| message.stop(self.fluids[id.index()].was_stopped(now)));
            self.count(&stream, now);
            stream.fluids.drain(..).for_each(|id| self.shares.end(id));
            self.spare.fluids.push(stream.fluids);
            let message = &mut self.messages[stream.message as usize];
            let took = now - message.begins_at;
            let lasted = message.lone.lasts().max(took);
            message.flowing.retain(|flowing| *flowing != id);
            message.came += stream.payload;
            if message.flowing.is_empty() {
                message.ended_at = now;
                self.spare.streams.push(std::mem::take(&mut message.flowing));
                let lately = self.lately.as_ps();
                self.lately = Span::from_ps(lately - lately / LATELY + took.as_ps() / LATELY);
                ended.push(stream.message);
            }
            self.solve_within(lasted, now);
        }
        ended
    }

    /// Works out the shares, and when streams whose shares have changed will end.
    pub(crate) fn solve(&mut self, now: Time) {
        self.solve_at = Time::NEVER;
        self.solved_at = now;
        let mut changed = std::mem::take(&mut self.spare.changed);
        for NewShare { fluid, share, stopped_by } in self.shares.solve() {
            let share = share.bits_per_second();
            let fluid = &mut self.fluids[fluid.index()];
            let id = fluid.stream;
            let stream = &mut self.streams[id as usize];
            if stream.is_watched {
                self.messages[stream.message as usize].stop(fluid.was_stopped(now));
                fluid.stopped_by = *stopped_by;
            }
            let before = fluid.take(share, now);
            stream.left -= parts(stream.share, now - stream.since).min(stream.left);
            stream.since = now;
            changed.push(id);
            stream.share = stream.share - before + share;
        }
        changed.sort_unstable();
        changed.dedup();
        changed.drain(..).for_each(|id| self.await_end(id, now));
        self.spare.changed = changed;
    }
}

/// Some of all equal parts of a whole. Where it cannot be divided evenly the first have one more.
fn part(whole: u64, own: &Range<u32>, all: u32) -> u64 {
    let (each, rest) = (whole / u64::from(all), whole % u64::from(all));
    let upto = |parts: u32| each * u64::from(parts) + rest.min(u64::from(parts));
    upto(own.end) - upto(own.start)
}

/// Whether an entry of the queue of ends is that of a stream.
fn is_true(streams: &Slab<FluidStream>, (time, id): (Time, FluidStreamId)) -> bool {
    streams.get(id as usize).is_some_and(|stream| stream.queued_at == time)
}

/// Parts of a bit that go over a line at a rate in a time.
pub(crate) fn parts(rate: u64, time: Span) -> u128 {
    u128::from(rate) * u128::from(time.as_ps())
}

/// The time at which a fluid ends of which so much is left; `None`: it does not move.
fn end_of(left: u128, share: u64, now: Time) -> Option<Time> {
    let rate = u128::from(share);
    let ps = left.checked_div(rate)? + u128::from(!left.is_multiple_of(rate));
    Some(now.saturating_add(Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))))
}
