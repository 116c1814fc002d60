//! Messages under way: the interfaces that hold them, their fluids, and when these end.
//!
//! ```text
//!   posted ──► waiting ──► a channel, at the earliest after its start-up ──► fluids ──► all have ended
//!                                                                  shares ───┘
//! ```

use crate::event::{FlowEvent, MessageHandle};
use crate::lone::{LoneCase, LoneMessage};
use crate::shares::{FluidId, LineId, NewShare, Shares};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};
use weft_engine::{Context, Payload};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Parts of a bit in which what is left of a fluid is counted: rate × time in ps is a whole number of them.
pub(crate) const PARTS_OF_A_BIT: u128 = 1_000_000_000_000;

/// While fluids meet all the time, shares are worked out so many times within the time that a message takes
/// alone: what begins or ends in between waits for the next solution.
pub(crate) const SOLUTIONS_PER_MESSAGE: u64 = 32;

/// The messages between hosts.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned")]
pub(crate) struct Between<T> {
    pub(crate) interfaces: Vec<FluidInterface>,
    pub(crate) messages: Slab<UnderWay<T>>,
    pub(crate) shares: Shares,
    /// By number; those that have ended are left as they were.
    pub(crate) fluids: Vec<Fluid>,
    /// The fluids that have shares, by when they end.
    pub(crate) ends: BTreeSet<(Time, FluidId)>,
    /// The time of the next solution; never: nothing has changed. That of the last one.
    pub(crate) solve_at: Time,
    pub(crate) solved_at: Time,
    /// By line: fluids that will cross it and have not begun.
    pub(crate) planned: Vec<u32>,
    pub(crate) crossed: Vec<LineCount>,
}

/// A fluid: a message, or a part of one.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Fluid {
    /// The place of the message.
    pub(crate) message: u32,
    pub(crate) wire_bits: u64,
    pub(crate) packets: u64,
    pub(crate) payload: u64,
    /// The parts of a bit that are left of it at a time, and its share since.
    pub(crate) left: u128,
    pub(crate) since: Time,
    pub(crate) share: BitRate,
    /// The time at which it ends if its share stays; `None`: it has none.
    pub(crate) ends_at: Option<Time>,
}

impl Fluid {
    /// The payload that has come by a time.
    pub(crate) fn came(&self, now: Time) -> u64 {
        let whole = u128::from(self.wire_bits) * PARTS_OF_A_BIT;
        let gone = whole - self.left + parts(self.share, now.saturating_since(self.since)).min(self.left);
        (u128::from(self.payload) * (gone / PARTS_OF_A_BIT) / u128::from(self.wire_bits.max(1))) as u64
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
    pub(crate) paths: Vec<Vec<LineId>>,
    pub(crate) begins_at: Time,
    /// Fluids of it that have not ended, and the payload of those that have.
    pub(crate) flowing: Vec<FluidId>,
    pub(crate) came: u64,
    pub(crate) ended_at: Time,
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
            let LoneMessage { start_up, send_gap, holds_channel, .. } = message.lone;
            // Start-ups overlap; a message that waits for a channel is ready when it gets one.
            let sent_at = message.posted_at.max(interface.next_send);
            let begins = engine.now().max(sent_at + start_up);
            message.begins_at = begins;
            interface.next_send = sent_at + send_gap;
            interface.sending += u32::from(holds_channel);
            let key = MessageHandle { place, from, number: message.number };
            engine.send(FlowEvent::Begin(key).at(from, begins));
        }
    }

    /// The fluids of a message begin.
    pub(crate) fn begin(&mut self, place: u32, now: Time) {
        let message = &mut self.messages[place as usize];
        let parts = message.paths.len() as u64;
        message.flowing.clear();
        let (lone, bytes) = (message.lone, message.bytes);
        // Of what cannot be divided evenly the first parts have one more.
        let part = |whole: u64, number: u64| whole / parts + u64::from(number < whole % parts);
        for (number, path) in (0..).zip(std::mem::take(&mut message.paths)) {
            path.iter().for_each(|line| self.planned[line.index()] -= 1);
            let wire_bits = part(lone.wire_bits, number);
            let most = BitRate::from_bits_per_second(part(lone.most.bits_per_second(), number).max(1));
            let fluid = Fluid {
                message: place,
                wire_bits,
                packets: part(lone.packets, number),
                payload: part(bytes.get(), number),
                left: u128::from(wire_bits) * PARTS_OF_A_BIT,
                since: now,
                share: BitRate::from_bits_per_second(0),
                ends_at: None,
            };
            let id = self.shares.begin(path, most);
            if self.fluids.len() <= id.index() {
                self.fluids.resize(id.index() + 1, fluid);
            }
            self.fluids[id.index()] = fluid;
            self.messages[place as usize].flowing.push(id);
            self.give(id, self.shares.share(id), now);
        }
        self.solve_within(lone, now);
    }

    /// Has shares worked out where fluids have begun or ended: at this instant, or a part of such a message's
    /// time after the last solution.
    pub(crate) fn solve_within(&mut self, lone: LoneMessage, now: Time) {
        if self.shares.is_touched() {
            let ps =
                u128::from(lone.wire_bits) * PARTS_OF_A_BIT / u128::from(lone.most.bits_per_second().max(1));
            let pause = Span::from_ps(ps as u64 / SOLUTIONS_PER_MESSAGE);
            self.solve_at = self.solve_at.min(now.max(self.solved_at.saturating_add(pause)));
        }
    }

    /// A fluid has another share from now on.
    pub(crate) fn give(&mut self, id: FluidId, share: BitRate, now: Time) {
        let fluid = &mut self.fluids[id.index()];
        if let Some(end) = fluid.ends_at {
            self.ends.remove(&(end, id));
        }
        fluid.left -= parts(fluid.share, now - fluid.since).min(fluid.left);
        (fluid.share, fluid.since) = (share, now);
        fluid.ends_at = end_of(fluid.left, share, now);
        self.ends.extend(fluid.ends_at.map(|end| (end, id)));
    }

    /// Takes the fluids that end now from their lines. Returns the messages of which all have ended.
    pub(crate) fn take_ended(&mut self, now: Time) -> Vec<u32> {
        let mut ended = Vec::new();
        while let Some(&(time, id)) = self.ends.first()
            && time <= now
        {
            self.ends.pop_first();
            let fluid = self.fluids[id.index()];
            for line in self.shares.end(id) {
                let count = &mut self.crossed[line.index()];
                count.packets += fluid.packets;
                count.payload += fluid.payload;
                count.wire_bits += fluid.wire_bits;
            }
            let message = &mut self.messages[fluid.message as usize];
            let lone = message.lone;
            message.flowing.retain(|flowing| *flowing != id);
            message.came += fluid.payload;
            if message.flowing.is_empty() {
                message.ended_at = now;
                ended.push(fluid.message);
            }
            self.solve_within(lone, now);
        }
        ended
    }

    /// Works out the shares, and when fluids whose shares have changed will end.
    pub(crate) fn solve(&mut self, now: Time) {
        self.solve_at = Time::NEVER;
        self.solved_at = now;
        for NewShare { fluid, share } in self.shares.solve() {
            self.give(fluid, share, now);
        }
    }
}

/// Parts of a bit that go over a line at a rate in a time.
pub(crate) fn parts(rate: BitRate, time: Span) -> u128 {
    u128::from(rate.bits_per_second()) * u128::from(time.as_ps())
}

/// The time at which a fluid ends of which so much is left; `None`: it does not move.
pub(crate) fn end_of(left: u128, share: BitRate, now: Time) -> Option<Time> {
    let rate = u128::from(share.bits_per_second());
    let ps = left.checked_div(rate)? + u128::from(!left.is_multiple_of(rate));
    Some(now.saturating_add(Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))))
}
