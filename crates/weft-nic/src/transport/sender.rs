//! The transmit engine's side: flows, the packets that are not acknowledged, and their time-outs.

use super::{FlowId, OPENING_BITS, Sequence, TransportParameters};
use crate::key_table::KeyTable;
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_units::Time;

/// The place of no packet.
const NOWHERE: u32 = u32::MAX;

/// A packet that waits for its acknowledgement. There are as many as are on their way, of all interfaces:
/// what only some need is [apart](Repetition).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Outstanding<P> {
    packet: P,
    flow: FlowId,
    /// The packet's number in the flow's present opening.
    number: u32,
    /// The place of the next one of its flow, or [`NOWHERE`].
    next: u32,
    /// Packets that the engine had sent before.
    serial: u64,
}

/// An outstanding packet whose time has been up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Repetition {
    repeated: u32,
    sent: Time,
    /// `None`: its time is up, and it waits to be sent again.
    deadline: Option<Time>,
}

/// The packets of a flow that are not acknowledged: a chain in the order of their numbers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Chain {
    /// Number of the oldest.
    number: u32,
    oldest: u32,
    newest: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum State {
    /// All of it has been acknowledged, the last at this time.
    Idle(Time),
    Outstanding(Chain),
}

/// A flow, in 24 bytes: there is one for each peer of each interface.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SenderFlow {
    opening: u32,
    next: u32,
    state: State,
}

/// A flow that is over: the next packet opens it.
impl Default for SenderFlow {
    fn default() -> SenderFlow {
        SenderFlow { opening: 0, next: u32::MAX, state: State::Idle(Time::ZERO) }
    }
}

impl SenderFlow {
    fn chain(&self) -> Option<Chain> {
        match self.state {
            State::Idle(_) => None,
            State::Outstanding(chain) => Some(chain),
        }
    }

    /// The place of a packet, behind that of the one before it. Acknowledgements come in the order of the
    /// packets, or nearly so: it is among the first.
    fn find<P>(&self, sequence: Sequence, all: &Slab<Outstanding<P>>) -> Option<(u32, u32)> {
        if self.opening != sequence.opening {
            return None;
        }
        let (mut before, mut place) = (NOWHERE, self.chain()?.oldest);
        loop {
            let packet = all.get(place as usize)?;
            if packet.number >= sequence.number {
                return (packet.number == sequence.number).then_some((before, place));
            }
            (before, place) = (place, packet.next);
        }
    }
}

/// A packet that is to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat<P> {
    /// The flow.
    pub flow: FlowId,
    /// The sequence number, as before.
    pub sequence: Sequence,
    /// The packet.
    pub packet: P,
    /// The time at which it was sent last.
    pub sent: Time,
}

/// The outcome of a look at the deadlines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expired<P> {
    /// Packets of flows that have been given up, the oldest of each first.
    pub failed: Vec<(FlowId, P)>,
    /// Whether packets wait to be sent again.
    pub repeats: bool,
    /// Packets whose time was up.
    pub timeouts: u64,
    /// The next deadline, for which the timer is to be set; `None`: nothing is awaited.
    pub next: Option<Time>,
}

/// The time at which a packet is due, its serial number and its place.
type Due = (Time, u64, u32);

/// All flows of a transmit engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sender<P> {
    /// By [`FlowId::key`].
    flows: KeyTable<SenderFlow>,
    next_opening: u32,
    /// Of all flows: a flow alone has few, and there are many flows.
    outstanding: Slab<Outstanding<P>>,
    /// Packets sent.
    sent: u64,
    /// Deadlines and places of the last packets sent, in order, each for the first time. Those acknowledged
    /// since are [`NOWHERE`]; the first is not.
    first: VecDeque<(Time, u32)>,
    /// By serial number.
    repetitions: BTreeMap<u64, Repetition>,
    /// Deadlines of packets that were repeated.
    later: BTreeSet<Due>,
    /// Serial numbers and places of packets to be sent again, those acknowledged since included.
    repeats: VecDeque<(u64, u32)>,
    /// The time at which the timer fires.
    timer: Option<Time>,
}

impl<P> Default for Sender<P> {
    fn default() -> Sender<P> {
        Sender {
            flows: KeyTable::default(),
            next_opening: 0,
            outstanding: Slab::new(),
            sent: 0,
            first: VecDeque::new(),
            repetitions: BTreeMap::new(),
            later: BTreeSet::new(),
            repeats: VecDeque::new(),
            timer: None,
        }
    }
}

impl<P: Copy> Sender<P> {
    /// Packets that are not acknowledged.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Flows in the table.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Whether the table, which is full, has space for a flow, when those that are over have been forgotten.
    #[cold]
    #[inline(never)]
    fn makes_space(&mut self, flow: FlowId, parameters: &TransportParameters) -> bool {
        if self.flows.get(flow.key()).is_some() {
            return true;
        }
        // Each of these may begin anew at any time: its next opening is a later one.
        self.flows.retain(|known| known.chain().is_some());
        self.flows.len() < parameters.flows as usize
    }

    /// A packet is sent. Returns its number, and the time to set a timer for, if none is pending; `None`: its
    /// flow has no space for another.
    #[inline]
    pub fn send(
        &mut self,
        flow: FlowId,
        packet: P,
        now: Time,
        parameters: &TransportParameters,
    ) -> Option<(Sequence, Option<Time>)> {
        if self.flows.len() >= parameters.flows as usize && !self.makes_space(flow, parameters) {
            return None;
        }
        let known = self.flows.get_or_add(flow.key());
        match known.state {
            State::Outstanding(chain) => {
                if known.next - chain.number >= parameters.window || known.next == u32::MAX {
                    return None;
                }
            }
            State::Idle(since) => {
                if known.next == u32::MAX || now > since.saturating_add(parameters.idle) {
                    (known.opening, known.next) = (self.next_opening, 0);
                    self.next_opening = (self.next_opening + 1) & ((1 << OPENING_BITS) - 1);
                }
            }
        }
        let sequence = Sequence { opening: known.opening, number: known.next };
        let (number, serial) = (sequence.number, self.sent);
        let outstanding = Outstanding { packet, flow, number, next: NOWHERE, serial };
        let place = self.outstanding.insert(outstanding) as u32;
        let mut chain = Chain { number, oldest: place, newest: place };
        if let State::Outstanding(before) = known.state {
            self.outstanding[before.newest as usize].next = place;
            chain = Chain { newest: place, ..before };
        }
        (known.next, known.state) = (number + 1, State::Outstanding(chain));
        self.sent += 1;
        let deadline = now + parameters.reliability.timeout;
        self.first.push_back((deadline, place));
        Some((sequence, self.set_timer(deadline)))
    }

    /// A packet that is not acknowledged.
    #[cold]
    pub fn packet_mut(&mut self, flow: FlowId, sequence: Sequence) -> Option<&mut P> {
        let (_, place) = self.flows.get(flow.key())?.find(sequence, &self.outstanding)?;
        Some(&mut self.outstanding.get_mut(place as usize)?.packet)
    }

    #[inline]
    fn set_timer(&mut self, at: Time) -> Option<Time> {
        if self.timer.is_some_and(|timer| timer <= at) {
            return None;
        }
        self.timer = Some(at);
        self.timer
    }

    /// A packet has been acknowledged: it comes back, unless it was before.
    #[inline]
    pub fn acknowledged(&mut self, flow: FlowId, sequence: Sequence, now: Time) -> Option<P> {
        let known = self.flows.get_mut(flow.key())?;
        let State::Outstanding(chain) = known.state else { return None };
        if known.opening != sequence.opening || chain.number != sequence.number {
            return self.acknowledged_behind(flow, sequence);
        }
        let Outstanding { packet, serial, next, .. } = self.outstanding.try_remove(chain.oldest as usize)?;
        known.state = match self.outstanding.get(next as usize) {
            None => State::Idle(now),
            Some(first) => State::Outstanding(Chain { number: first.number, oldest: next, ..chain }),
        };
        if !self.repetitions.is_empty() {
            self.begin_anew(flow, next);
        }
        self.settle(serial, chain.oldest);
        Some(packet)
    }

    /// The same of a packet that is not the oldest of its flow.
    #[cold]
    #[inline(never)]
    fn acknowledged_behind(&mut self, flow: FlowId, sequence: Sequence) -> Option<P> {
        let known = self.flows.get_mut(flow.key())?;
        let (before, place) = known.find(sequence, &self.outstanding)?;
        let Outstanding { packet, serial, next, .. } = self.outstanding.try_remove(place as usize)?;
        self.outstanding.get_mut(before as usize)?.next = next;
        if let State::Outstanding(chain) = &mut known.state
            && next == NOWHERE
        {
            chain.newest = before;
        }
        self.settle(serial, place);
        Some(packet)
    }

    /// A packet has become the oldest of an ordered flow. It may have been repeated in vain, behind the one
    /// before it: it begins anew.
    #[cold]
    #[inline(never)]
    fn begin_anew(&mut self, flow: FlowId, place: u32) {
        if let Some(packet) = self.outstanding.get(place as usize).filter(|_| !flow.kind.unordered)
            && let Some(repetition) = self.repetitions.get_mut(&packet.serial)
        {
            repetition.repeated = 0;
        }
    }

    /// Forgets the deadline of a packet that is not outstanding any more.
    #[inline]
    fn settle(&mut self, serial: u64, place: u32) {
        let serial_of_first = self.sent - self.first.len() as u64;
        if serial < serial_of_first {
            return self.forget_repetition(serial, place);
        }
        if let Some(first) = self.first.get_mut((serial - serial_of_first) as usize) {
            first.1 = NOWHERE;
        }
        self.forget_acknowledged();
    }

    /// Forgets the deadlines of packets that have been acknowledged, up to the first that has not.
    #[inline]
    fn forget_acknowledged(&mut self) {
        while self.first.front().is_some_and(|first| first.1 == NOWHERE) {
            self.first.pop_front();
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_repetition(&mut self, serial: u64, place: u32) {
        if let Some(Repetition { deadline: Some(deadline), .. }) = self.repetitions.remove(&serial) {
            self.later.remove(&(deadline, serial, place));
        }
    }

    /// Whether a packet is still not acknowledged.
    fn is_outstanding(&self, serial: u64, place: u32) -> bool {
        self.outstanding.get(place as usize).is_some_and(|packet| packet.serial == serial)
    }

    /// The timer has fired. One that fires at another time than the last that was set is of the past.
    pub fn expired(&mut self, now: Time, parameters: &TransportParameters) -> Option<Expired<P>> {
        if self.timer != Some(now) {
            return None;
        }
        self.timer = None;
        let (mut failed, mut timeouts) = (Vec::new(), 0);
        while let Some((deadline, serial, place)) = self.take_due(now) {
            let Some(packet) = self.outstanding.get(place as usize) else { continue };
            timeouts += 1;
            let flow = packet.flow;
            let timeout = parameters.reliability.timeout;
            let sent = Time::from_ps(deadline.as_ps().saturating_sub(timeout.as_ps()));
            let first = Repetition { repeated: 0, sent, deadline: None };
            let repetition = self.repetitions.entry(serial).or_insert(first);
            repetition.deadline = None;
            let chain = self.flows.get(flow.key()).and_then(SenderFlow::chain);
            // Of an ordered flow the oldest alone can tell that nothing arrives any more.
            let decides = flow.kind.unordered || chain.is_some_and(|chain| chain.oldest == place);
            if !decides || repetition.repeated < parameters.reliability.repetitions {
                self.repeats.push_back((serial, place));
            } else {
                failed.extend(self.give_up(flow));
            }
        }
        self.forget_acknowledged();
        let next = [self.first.front().map(|of| of.0), self.later.first().map(|of| of.0)];
        let next = next.into_iter().flatten().min();
        Some(Expired {
            failed,
            repeats: !self.repeats.is_empty(),
            timeouts,
            next: next.and_then(|at| self.set_timer(at)),
        })
    }

    /// Takes the first deadline that has passed, of a packet that is outstanding.
    fn take_due(&mut self, now: Time) -> Option<Due> {
        while let Some((deadline, place)) = self.first.front().copied().filter(|first| first.0 <= now) {
            let serial = self.sent - self.first.len() as u64;
            self.first.pop_front();
            if place != NOWHERE {
                return Some((deadline, serial, place));
            }
        }
        let later = *self.later.first().filter(|entry| entry.0 <= now)?;
        self.later.remove(&later);
        Some(later)
    }

    /// Ends a flow, and returns all packets of it that are not acknowledged.
    fn give_up(&mut self, flow: FlowId) -> Vec<(FlowId, P)> {
        let chain = self.flows.remove(flow.key()).and_then(|known| known.chain());
        let (mut packets, mut place) = (Vec::new(), chain.map_or(NOWHERE, |chain| chain.oldest));
        while let Some(outstanding) = self.outstanding.try_remove(place as usize) {
            packets.push((flow, outstanding.packet));
            self.settle(outstanding.serial, place);
            place = outstanding.next;
        }
        packets
    }

    /// Whether packets wait to be sent again.
    #[inline]
    pub fn has_repeats(&self) -> bool {
        !self.repeats.is_empty()
    }

    /// The next packet that is to be sent again; `None`: none waits.
    pub fn next_repeat(&self) -> Option<&P> {
        let mut waiting = self.repeats.iter().filter(|(serial, place)| self.is_outstanding(*serial, *place));
        waiting.next().map(|(_, place)| &self.outstanding[*place as usize].packet)
    }

    /// Takes the next packet that is to be sent again, now, and the time to set a timer for, if none is
    /// pending.
    #[cold]
    pub fn take_repeat(
        &mut self,
        now: Time,
        parameters: &TransportParameters,
    ) -> Option<(Repeat<P>, Option<Time>)> {
        while let Some((serial, place)) = self.repeats.pop_front() {
            let Some(outstanding) = self.outstanding.get(place as usize) else { continue };
            if outstanding.serial != serial {
                continue;
            }
            let Outstanding { packet, flow, number, .. } = *outstanding;
            let Some(known) = self.flows.get(flow.key()) else { continue };
            let Some(repetition) = self.repetitions.get_mut(&serial) else { continue };
            repetition.repeated = repetition.repeated.saturating_add(1);
            let deadline = now + parameters.reliability.timeout_after(repetition.repeated);
            let sent = std::mem::replace(&mut repetition.sent, now);
            repetition.deadline = Some(deadline);
            let sequence = Sequence { opening: known.opening, number };
            self.later.insert((deadline, serial, place));
            return Some((Repeat { flow, sequence, packet, sent }, self.set_timer(deadline)));
        }
        None
    }
}
