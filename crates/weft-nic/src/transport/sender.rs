//! The transmit engine's side: flows, the packets that are not acknowledged, and their time-outs.

use super::{FlowId, OPENING_BITS, Sequence, TransportParameters};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_units::{Span, Time};

/// A packet that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Outstanding<P> {
    packet: P,
    repeated: u32,
    sent: Time,
    /// `None`: its time is up, and it waits to be sent again.
    deadline: Option<Time>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Flow<P> {
    opening: u32,
    next: u32,
    /// From the oldest that is not acknowledged on; `None`: acknowledged.
    outstanding: VecDeque<Option<Outstanding<P>>>,
    /// Of its last packet or acknowledgement.
    used: Time,
}

impl<P> Flow<P> {
    fn place(&self, sequence: Sequence) -> Option<usize> {
        let first = self.next - self.outstanding.len() as u32;
        (sequence.opening == self.opening)
            .then(|| sequence.number.checked_sub(first))?
            .map(|place| place as usize)
    }

    fn find(&mut self, sequence: Sequence) -> Option<&mut Outstanding<P>> {
        let place = self.place(sequence)?;
        self.outstanding.get_mut(place)?.as_mut()
    }

    fn is_over(&self, now: Time, idle: Span) -> bool {
        let used_up = self.next == u32::MAX;
        self.outstanding.is_empty() && (used_up || now > self.used.saturating_add(idle))
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

/// All flows of a transmit engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sender<P> {
    flows: BTreeMap<FlowId, Flow<P>>,
    next_opening: u32,
    /// Deadlines of packets sent for the first time, in order, those acknowledged since included.
    first: VecDeque<(Time, FlowId, Sequence)>,
    /// Deadlines of packets that were repeated.
    later: BTreeSet<(Time, FlowId, Sequence)>,
    repeats: VecDeque<(FlowId, Sequence)>,
    /// The time at which the timer fires.
    timer: Option<Time>,
    outstanding: usize,
}

impl<P> Default for Sender<P> {
    fn default() -> Sender<P> {
        Sender {
            flows: BTreeMap::new(),
            next_opening: 0,
            first: VecDeque::new(),
            later: BTreeSet::new(),
            repeats: VecDeque::new(),
            timer: None,
            outstanding: 0,
        }
    }
}

impl<P: Copy> Sender<P> {
    /// Packets that are not acknowledged.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Flows in the table.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Whether a flow has room for another packet.
    pub fn has_room(&mut self, flow: FlowId, parameters: &TransportParameters) -> bool {
        if let Some(known) = self.flows.get(&flow) {
            let is_open = (known.outstanding.len() as u32) < parameters.window && known.next < u32::MAX;
            return is_open || known.outstanding.is_empty();
        }
        if self.flows.len() < parameters.flows as usize {
            return true;
        }
        // Each of these may begin anew at any time: its next opening is a later one.
        self.flows.retain(|_, known| !known.outstanding.is_empty());
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
        let ended = self.flows.get(&flow).is_none_or(|known| known.is_over(now, parameters.idle));
        if ended {
            let opening = self.next_opening;
            self.next_opening = (opening + 1) & ((1 << OPENING_BITS) - 1);
            self.flows.insert(flow, Flow { opening, next: 0, outstanding: VecDeque::new(), used: now });
        }
        let known = self.flows.get_mut(&flow).expect("it was there, or is inserted above");
        let sequence = Sequence { opening: known.opening, number: known.next };
        let deadline = now + parameters.reliability.timeout;
        known.next += 1;
        known.used = now;
        known.outstanding.push_back(Some(Outstanding {
            packet,
            repeated: 0,
            sent: now,
            deadline: Some(deadline),
        }));
        self.outstanding += 1;
        self.first.push_back((deadline, flow, sequence));
        (sequence, self.set_timer(deadline))
    }

    /// A packet that is not acknowledged.
    pub fn packet_mut(&mut self, flow: FlowId, sequence: Sequence) -> Option<&mut P> {
        Some(&mut self.flows.get_mut(&flow)?.find(sequence)?.packet)
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
        let known = self.flows.get_mut(&flow)?;
        let place = known.place(sequence)?;
        let Outstanding { packet, deadline, .. } = known.outstanding.get_mut(place)?.take()?;
        known.used = now;
        if place == 0 {
            while let Some(None) = known.outstanding.front() {
                known.outstanding.pop_front();
            }
            // The next one may have been repeated in vain, behind this one: it begins anew.
            if let (false, Some(Some(next))) = (flow.kind.unordered, known.outstanding.front_mut()) {
                next.repeated = 0;
            }
        }
        self.outstanding -= 1;
        if let Some(deadline) = deadline {
            self.later.remove(&(deadline, flow, sequence));
        }
        if self.outstanding == 0 {
            self.first.clear();
        }
        Some(packet)
    }

    /// The timer has fired. One that fires at another time than the last that was set is of the past.
    pub fn expired(&mut self, now: Time, parameters: &TransportParameters) -> Option<Expired<P>> {
        if self.timer != Some(now) {
            return None;
        }
        self.timer = None;
        let mut failed = Vec::new();
        while let Some((_, flow, sequence)) = self.take_due(now) {
            let Some(known) = self.flows.get_mut(&flow) else { continue };
            // Of an ordered flow the oldest alone can tell that nothing arrives any more.
            let decides = flow.kind.unordered || known.place(sequence) == Some(0);
            let Some(packet) = known.find(sequence) else { continue };
            if !decides || packet.repeated < parameters.reliability.repetitions {
                packet.deadline = None;
                self.repeats.push_back((flow, sequence));
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
            next: next.and_then(|at| self.set_timer(at)),
        })
    }

    /// Takes the first deadline that has passed.
    fn take_due(&mut self, now: Time) -> Option<(Time, FlowId, Sequence)> {
        let is_due = |entry: &(Time, FlowId, Sequence)| entry.0 <= now;
        if self.first.front().is_some_and(is_due) {
            return self.first.pop_front();
        }
        let later = *self.later.first().filter(|entry| is_due(entry))?;
        self.later.remove(&later);
        Some(later)
    }

    /// Forgets the deadlines of packets that have been acknowledged, up to the first that has not.
    fn forget_acknowledged(&mut self) {
        while let Some((_, flow, sequence)) = self.first.front() {
            if self.flows.get_mut(flow).is_some_and(|known| known.find(*sequence).is_some()) {
                return;
            }
            self.first.pop_front();
        }
    }

    /// Ends a flow, and returns all packets of it that are not acknowledged.
    fn give_up(&mut self, flow: FlowId) -> Vec<(FlowId, P)> {
        let Some(known) = self.flows.remove(&flow) else { return Vec::new() };
        self.later.retain(|(_, of, _)| *of != flow);
        self.repeats.retain(|(of, _)| *of != flow);
        let packets: Vec<_> = known.outstanding.into_iter().flatten().map(|of| (flow, of.packet)).collect();
        self.outstanding -= packets.len();
        packets
    }

    /// Whether packets wait to be sent again.
    pub fn has_repeats(&self) -> bool {
        !self.repeats.is_empty()
    }

    /// Takes the next packet that is to be sent again, now, and the time to set a timer for, if none is
    /// pending.
    pub fn take_repeat(
        &mut self,
        now: Time,
        parameters: &TransportParameters,
    ) -> Option<(Repeat<P>, Option<Time>)> {
        while let Some((flow, sequence)) = self.repeats.pop_front() {
            let Some(known) = self.flows.get_mut(&flow) else { continue };
            let Some(outstanding) = known.find(sequence) else { continue };
            outstanding.repeated = outstanding.repeated.saturating_add(1);
            let deadline = now + parameters.reliability.timeout_after(outstanding.repeated);
            let (packet, sent) = (outstanding.packet, outstanding.sent);
            (outstanding.deadline, outstanding.sent) = (Some(deadline), now);
            known.used = now;
            self.later.insert((deadline, flow, sequence));
            return Some((Repeat { flow, sequence, packet, sent }, self.set_timer(deadline)));
        }
        None
    }
}
