//! Messages under way: the interfaces that hold them, their fluids, and when these end.
//!
//! ```text
//!   posted ──► waiting ──► a channel, at the earliest after its start-up ──► fluids ──► all have ended
//!                                                                  shares ───┘
//! ```

use crate::event::{FlowEvent, MessageHandle};
use crate::lone::{LoneCase, LoneMessage};
use crate::path::FluidPaths;
use crate::shares::{FluidId, LineId, NewShare, Shares};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_engine::{Context, Payload};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Parts of a bit in which what is left of a fluid is counted: rate × time in ps is a whole number of them.
pub(crate) const PARTS_OF_A_BIT: u128 = 1_000_000_000_000;

/// While fluids meet all the time, shares are worked out so many times within the time that a message takes:
/// what begins or ends in between waits for the next solution.
const SOLUTIONS_PER_MESSAGE: u64 = 32;
/// The same where there are more fluids than this: a solution takes seconds there, and what one of so many
/// leaves matters to few.
const SOLUTIONS_IN_A_HUGE_CROWD: u64 = 8;
const HUGE_CROWD: usize = 1 << 18;

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
    /// The streams that move, by when they end.
    pub(crate) ends: BTreeSet<(Time, FluidStreamId)>,
    /// The time of the next solution; never: nothing has changed. That of the last one.
    pub(crate) solve_at: Time,
    pub(crate) solved_at: Time,
    /// By line: fluids that will cross it and have not begun.
    pub(crate) planned: Vec<u32>,
    pub(crate) crossed: Vec<LineCount>,
    /// The time at which the counters were last reset.
    pub(crate) counted_from: Time,
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
    pub(crate) payload: u64,
    /// The parts of a bit that are left of it at a time, and the shares of its fluids together since.
    pub(crate) left: u128,
    pub(crate) since: Time,
    pub(crate) share: u64,
    /// The time at which it ends if its shares stay; `None`: it has none.
    pub(crate) ends_at: Option<Time>,
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

/// Counts of a line since the counters were last reset.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct LineCount {
    pub(crate) packets: u64,
    pub(crate) payload: u64,
    pub(crate) wire_bits: u64,
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
        let paths = std::mem::take(&mut message.paths);
        paths.lines().iter().for_each(|line| self.planned[line.index()] -= 1);
        let count = paths.count() as u64;
        // Of what cannot be divided evenly the first parts have one more.
        let part = |whole: u64, number: u64| whole / count + u64::from(number < whole % count);
        let of_stream = |whole: u64, number: u64| if adapts { whole } else { part(whole, number) };
        let each = if adapts { paths.count() } else { 1 };
        for own in (0..paths.count()).step_by(each.max(1)) {
            let number = own as u64;
            let wire_bits = of_stream(lone.wire_bits, number);
            let stream = FluidStream {
                message: place,
                wire_bits,
                packets: of_stream(lone.packets, number),
                payload: of_stream(bytes.get(), number),
                left: u128::from(wire_bits) * PARTS_OF_A_BIT,
                since: now,
                share: 0,
                ends_at: None,
                fluids: Vec::with_capacity(each),
                is_watched,
            };
            let stream = self.streams.insert(stream) as FluidStreamId;
            self.messages[place as usize].flowing.push(stream);
            for path in own..own + each {
                let most = part(lone.most.bits_per_second(), path as u64).max(1);
                let id = self.shares.begin(paths.of(path), BitRate::from_bits_per_second(most));
                let share = self.shares.share(id).bits_per_second();
                let fluid = Fluid { stream, share, since: now, carried: 0, stopped_by: None };
                if self.fluids.len() <= id.index() {
                    self.fluids.resize(id.index() + 1, fluid);
                }
                self.fluids[id.index()] = fluid;
                let stream = &mut self.streams[stream as usize];
                stream.fluids.push(id);
                stream.share += share;
            }
            self.await_end(stream, now);
        }
        self.solve_within(lone.lasts(), now);
    }

    /// Has shares worked out where fluids have begun or ended: at this instant, or a part of such a message's
    /// time after the last solution.
    fn solve_within(&mut self, lasts: Span, now: Time) {
        if self.shares.is_touched() {
            let is_huge = self.shares.fluids() > HUGE_CROWD;
            let solutions = if is_huge { SOLUTIONS_IN_A_HUGE_CROWD } else { SOLUTIONS_PER_MESSAGE };
            let pause = Span::from_ps(lasts.as_ps() / solutions);
            self.solve_at = self.solve_at.min(now.max(self.solved_at.saturating_add(pause)));
        }
    }

    /// The end of a stream is known, if its shares stay.
    fn await_end(&mut self, id: FluidStreamId, now: Time) {
        let stream = &mut self.streams[id as usize];
        stream.ends_at = end_of(stream.left, stream.share, now);
        self.ends.extend(stream.ends_at.map(|end| (end, id)));
    }

    /// Takes the streams that end now from their lines. Returns the messages of which all have ended.
    pub(crate) fn take_ended(&mut self, now: Time) -> Vec<u32> {
        let mut ended = Vec::new();
        while let Some(&(time, id)) = self.ends.first()
            && time <= now
        {
            self.ends.pop_first();
            let stream = self.streams.remove(id as usize);
            let message = &mut self.messages[stream.message as usize];
            stream.fluids.iter().for_each(|id| message.stop(self.fluids[id.index()].was_stopped(now)));
            self.leave_lines(&stream, now);
            let message = &mut self.messages[stream.message as usize];
            let lasted = message.lone.lasts().max(now - message.begins_at);
            message.flowing.retain(|flowing| *flowing != id);
            message.came += stream.payload;
            if message.flowing.is_empty() {
                message.ended_at = now;
                ended.push(stream.message);
            }
            self.solve_within(lasted, now);
        }
        ended
    }

    /// The fluids of a stream that has ended leave their lines, which count what each has carried.
    fn leave_lines(&mut self, stream: &FluidStream, now: Time) {
        let FluidStream { fluids, packets, payload, wire_bits, .. } = stream;
        fluids.iter().for_each(|id| {
            self.fluids[id.index()].take(0, now);
        });
        let whole = fluids.iter().map(|id| self.fluids[id.index()].carried).sum::<u128>() / PARTS_OF_A_BIT;
        // What is counted of all up to one of them, so that nothing is lost by rounding.
        let (mut carried, mut before) = (0, [0; 3]);
        for id in fluids {
            carried += self.fluids[id.index()].carried;
            let is_last = Some(id) == fluids.last();
            let of = |all: u64| {
                let part = u128::from(all) * (carried / PARTS_OF_A_BIT);
                if is_last { all } else { part.checked_div(whole).unwrap_or(0) as u64 }
            };
            let upto = [of(*packets), of(*payload), of(*wire_bits)];
            for line in self.shares.lines_of(*id) {
                let count = &mut self.crossed[line.index()];
                count.packets += upto[0] - before[0];
                count.payload += upto[1] - before[1];
                count.wire_bits += upto[2] - before[2];
            }
            before = upto;
            self.shares.end(*id);
        }
    }

    /// Works out the shares, and when streams whose shares have changed will end.
    pub(crate) fn solve(&mut self, now: Time) {
        self.solve_at = Time::NEVER;
        self.solved_at = now;
        let mut changed = Vec::new();
        for NewShare { fluid, share, stopped_by } in self.shares.solve() {
            let share = share.bits_per_second();
            let fluid = &mut self.fluids[fluid.index()];
            let id = fluid.stream;
            let stream = &mut self.streams[id as usize];
            if stream.is_watched {
                self.messages[stream.message as usize].stop(fluid.was_stopped(now));
                fluid.stopped_by = stopped_by;
            }
            let before = fluid.take(share, now);
            stream.left -= parts(stream.share, now - stream.since).min(stream.left);
            stream.since = now;
            if let Some(end) = stream.ends_at.take() {
                self.ends.remove(&(end, id));
            }
            changed.push(id);
            stream.share = stream.share - before + share;
        }
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().for_each(|id| self.await_end(id, now));
    }
}

/// Parts of a bit that go over a line at a rate in a time.
fn parts(rate: u64, time: Span) -> u128 {
    u128::from(rate) * u128::from(time.as_ps())
}

/// The time at which a fluid ends of which so much is left; `None`: it does not move.
fn end_of(left: u128, share: u64, now: Time) -> Option<Time> {
    let rate = u128::from(share);
    let ps = left.checked_div(rate)? + u128::from(!left.is_multiple_of(rate));
    Some(now.saturating_add(Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))))
}
