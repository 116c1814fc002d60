//! The transmit engine's side: flows, the packets that are not acknowledged, and their time-outs.

use super::{FlowId, OPENING_BITS, Sequence, TransportParameters};
use crate::key_table::KeyTable;
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};
use weft_units::{Span, Time};

/// A packet that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Outstanding<P> {
    packet: P,
    flow: FlowId,
    /// The packet's number in the flow's present opening.
    number: u32,
    /// Packets that the engine had sent before.
    serial: u64,
    repeated: u32,
    sent: Time,
    /// `None`: its time is up, and it waits to be sent again.
    deadline: Option<Time>,
    /// The next one of its flow.
    next: Option<u32>,
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
struct Flow {
    opening: u32,
    next: u32,
    outstanding: Option<Chain>,
    /// Of its last packet or acknowledgement.
    used: Time,
}

/// A flow that is over: the next packet opens it.
impl Default for Flow {
    fn default() -> Flow {
        Flow { opening: 0, next: u32::MAX, outstanding: None, used: Time::ZERO }
    }
}

impl Flow {
    fn is_over(&self, now: Time, idle: Span) -> bool {
        let used_up = self.next == u32::MAX;
        self.outstanding.is_none() && (used_up || now > self.used.saturating_add(idle))
    }

    /// The place of a packet, behind that of the one before it. Acknowledgements come in the order of the
    /// packets, or nearly so: it is among the first.
    fn find<P>(&self, sequence: Sequence, all: &Slab<Outstanding<P>>) -> Option<(Option<u32>, u32)> {
        if self.opening != sequence.opening {
            return None;
        }
        let (mut before, mut place) = (None, self.outstanding?.oldest);
        loop {
            let packet = &all[place as usize];
            if packet.number >= sequence.number {
                return (packet.number == sequence.number).then_some((before, place));
            }
            (before, place) = (Some(place), packet.next?);
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
    /// The next deadline, for which the timer is to be set; `None`: nothing is awaited.
    pub next: Option<Time>,
}

/// The time at which a packet is due, its serial number and its place.
type Due = (Time, u64, u32);

/// All flows of a transmit engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sender<P> {
    /// By [`FlowId::key`].
    flows: KeyTable<Flow>,
    next_opening: u32,
    /// Of all flows: a flow alone has few, and there are many flows.
    outstanding: Slab<Outstanding<P>>,
    /// Packets sent.
    sent: u64,
    /// Deadlines of packets sent for the first time, in order. The first is of one that is outstanding.
    first: VecDeque<Due>,
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

    /// Whether a flow has room for another packet.
    pub fn has_room(&mut self, flow: FlowId, parameters: &TransportParameters) -> bool {
        if let Some(known) = self.flows.get(flow.key()) {
            return known
                .outstanding
                .is_none_or(|chain| known.next - chain.number < parameters.window && known.next < u32::MAX);
        }
        if self.flows.len() < parameters.flows as usize {
            return true;
        }
        // Each of these may begin anew at any time: its next opening is a later one.
        self.flows.retain(|known| known.outstanding.is_some());
        self.flows.len() < parameters.flows as usize
    }

    /// A packet of a flow that has [room](Sender::has_room) is sent. Returns its number, and the time to set
    /// a timer for, if none is pending.
    pub fn send(
        &mut self,
        flow: FlowId,
        packet: P,
        now: Time,
        parameters: &TransportParameters,
    ) -> (Sequence, Option<Time>) {
        let known = self.flows.get_or_add(flow.key());
        if known.is_over(now, parameters.idle) {
            (known.opening, known.next) = (self.next_opening, 0);
            self.next_opening = (self.next_opening + 1) & ((1 << OPENING_BITS) - 1);
        }
        let sequence = Sequence { opening: known.opening, number: known.next };
        let deadline = now + parameters.reliability.timeout;
        let (serial, number) = (self.sent, sequence.number);
        self.sent += 1;
        let place = self.outstanding.insert(Outstanding {
            packet,
            flow,
            number,
            serial,
            repeated: 0,
            sent: now,
            deadline: Some(deadline),
            next: None,
        }) as u32;
        known.next += 1;
        known.used = now;
        match &mut known.outstanding {
            None => known.outstanding = Some(Chain { number, oldest: place, newest: place }),
            Some(chain) => {
                self.outstanding[chain.newest as usize].next = Some(place);
                chain.newest = place;
            }
        }
        self.first.push_back((deadline, serial, place));
        (sequence, self.set_timer(deadline))
    }

    /// A packet that is not acknowledged.
    pub fn packet_mut(&mut self, flow: FlowId, sequence: Sequence) -> Option<&mut P> {
        let (_, place) = self.flows.get(flow.key())?.find(sequence, &self.outstanding)?;
        Some(&mut self.outstanding[place as usize].packet)
    }

    fn set_timer(&mut self, at: Time) -> Option<Time> {
        if self.timer.is_some_and(|timer| timer <= at) {
            return None;
        }
        self.timer = Some(at);
        self.timer
    }

    /// A packet has been acknowledged: it comes back, unless it was before.
    pub fn acknowledged(&mut self, flow: FlowId, sequence: Sequence, now: Time) -> Option<P> {
        let known = self.flows.get_mut(flow.key())?;
        let (before, place) = known.find(sequence, &self.outstanding)?;
        let chain = known.outstanding?;
        let Outstanding { packet, serial, deadline, next, .. } = self.outstanding.remove(place as usize);
        known.outstanding = match before {
            None => next.map(|oldest| {
                let first = &mut self.outstanding[oldest as usize];
                // It may have been repeated in vain, behind this one: it begins anew.
                if !flow.kind.unordered {
                    first.repeated = 0;
                }
                Chain { number: first.number, oldest, ..chain }
            }),
            Some(before) => {
                self.outstanding[before as usize].next = next;
                Some(Chain { newest: if next.is_none() { before } else { chain.newest }, ..chain })
            }
        };
        known.used = now;
        if let Some(deadline) = deadline {
            self.later.remove(&(deadline, serial, place));
        }
        self.forget_acknowledged();
        Some(packet)
    }

    /// Whether a packet is still not acknowledged.
    fn is_outstanding(&self, serial: u64, place: u32) -> bool {
        self.outstanding.get(place as usize).is_some_and(|packet| packet.serial == serial)
    }

    /// Forgets the deadlines of packets that have been acknowledged, up to the first that has not.
    fn forget_acknowledged(&mut self) {
        while let Some((_, serial, place)) = self.first.front()
            && !self.is_outstanding(*serial, *place)
        {
            self.first.pop_front();
        }
    }

    /// The timer has fired. One that fires at another time than the last that was set is of the past.
    pub fn expired(&mut self, now: Time, parameters: &TransportParameters) -> Option<Expired<P>> {
        if self.timer != Some(now) {
            return None;
        }
        self.timer = None;
        let mut failed = Vec::new();
        while let Some((_, serial, place)) = self.take_due(now) {
            if !self.is_outstanding(serial, place) {
                continue;
            }
            let packet = &mut self.outstanding[place as usize];
            let chain = self.flows.get(packet.flow.key()).and_then(|known| known.outstanding);
            // Of an ordered flow the oldest alone can tell that nothing arrives any more.
            let decides = packet.flow.kind.unordered || chain.is_some_and(|chain| chain.oldest == place);
            if !decides || packet.repeated < parameters.reliability.repetitions {
                packet.deadline = None;
                self.repeats.push_back((serial, place));
            } else {
                let flow = packet.flow;
                failed.extend(self.give_up(flow));
            }
        }
        self.forget_acknowledged();
        let next = [self.first.front().map(|of| of.0), self.later.first().map(|of| of.0)];
        let next = next.into_iter().flatten().min();
        Some(Expired {
            failed,
            repeats: !self.repeats.is_empty(),
            next: next.and_then(|at| self.set_timer(at)),
        })
    }

    /// Takes the first deadline that has passed.
    fn take_due(&mut self, now: Time) -> Option<Due> {
        let is_due = |entry: &Due| entry.0 <= now;
        if self.first.front().is_some_and(is_due) {
            return self.first.pop_front();
        }
        let later = *self.later.first().filter(|entry| is_due(entry))?;
        self.later.remove(&later);
        Some(later)
    }

    /// Ends a flow, and returns all packets of it that are not acknowledged.
    fn give_up(&mut self, flow: FlowId) -> Vec<(FlowId, P)> {
        let chain = self.flows.remove(flow.key()).and_then(|known| known.outstanding);
        let (mut packets, mut next) = (Vec::new(), chain.map(|chain| chain.oldest));
        while let Some(place) = next {
            let outstanding = self.outstanding.remove(place as usize);
            if let Some(deadline) = outstanding.deadline {
                self.later.remove(&(deadline, outstanding.serial, place));
            }
            packets.push((flow, outstanding.packet));
            next = outstanding.next;
        }
        packets
    }

    /// Whether packets wait to be sent again.
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
    pub fn take_repeat(
        &mut self,
        now: Time,
        parameters: &TransportParameters,
    ) -> Option<(Repeat<P>, Option<Time>)> {
        while let Some((serial, place)) = self.repeats.pop_front() {
            if !self.is_outstanding(serial, place) {
                continue;
            }
            let outstanding = &mut self.outstanding[place as usize];
            let Some(known) = self.flows.get_mut(outstanding.flow.key()) else { continue };
            outstanding.repeated = outstanding.repeated.saturating_add(1);
            let deadline = now + parameters.reliability.timeout_after(outstanding.repeated);
            let Outstanding { packet, flow, number, sent, .. } = *outstanding;
            (outstanding.deadline, outstanding.sent) = (Some(deadline), now);
            known.used = now;
            let sequence = Sequence { opening: known.opening, number };
            self.later.insert((deadline, serial, place));
            return Some((Repeat { flow, sequence, packet, sent }, self.set_timer(deadline)));
        }
        None
    }
}
