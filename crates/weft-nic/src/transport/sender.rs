//! The transmit engine's side: flows, the packets that are not acknowledged, and their time-outs.

use super::{FlowId, OPENING_BITS, Sequence, TransportParameters};
use crate::key_table::KeyTable;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_units::{Span, Time};

/// A packet that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Outstanding<P> {
    packet: P,
    flow: FlowId,
    /// The packet's number in the flow's present opening.
    number: u32,
    /// Number of the next one of its flow.
    next_number: u32,
    /// By how much more serial that one is; 0: there is none.
    next: u32,
    /// The time at which it was sent first.
    sent: Time,
}

/// An outstanding packet whose time has been up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Late<P> {
    outstanding: Outstanding<P>,
    repeated: u32,
    /// The time at which it was sent last.
    sent: Time,
    /// `None`: its time is up, and it waits to be sent again.
    deadline: Option<Time>,
}

/// The packets of a flow that are not acknowledged: a chain in the order of their numbers. Serial numbers are
/// the low halves: so many packets are never on their way.
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
struct Flow {
    opening: u32,
    next: u32,
    state: State,
}

/// A flow that is over: the next packet opens it.
impl Default for Flow {
    fn default() -> Flow {
        Flow { opening: 0, next: u32::MAX, state: State::Idle(Time::ZERO) }
    }
}

impl Flow {
    fn chain(&self) -> Option<Chain> {
        match self.state {
            State::Idle(_) => None,
            State::Outstanding(chain) => Some(chain),
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

/// A packet that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The packet's number.
    pub sequence: Sequence,
    /// Whether the receiver knows the opening of the flow: it has acknowledged the first packet of it.
    pub is_known: bool,
    /// The time to set a timer for, if none is pending.
    pub timer: Option<Time>,
}

/// The outcome of a look at the deadlines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expired<P> {
    /// Packets whose time is up for the first time, and when they were sent.
    pub late: Vec<(FlowId, P, Time)>,
    /// Packets of flows that have been given up, the oldest of each first.
    pub failed: Vec<(FlowId, P)>,
    /// Whether packets wait to be sent again.
    pub repeats: bool,
    /// The next deadline, for which the timer is to be set; `None`: nothing is awaited.
    pub next: Option<Time>,
}

/// The packets of a transmit engine that are not acknowledged, by their serial numbers: how many it has sent
/// before.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "P: Serialize + DeserializeOwned")]
struct Log<P> {
    /// Packets sent.
    sent: u64,
    /// The last packets sent, in order, whose time has not been up; none where one has been acknowledged. The
    /// first is outstanding. In order, since acknowledgements come nearly so: what is asked for lies close
    /// together.
    recent: VecDeque<Option<Outstanding<P>>>,
    /// Others, by serial number.
    late: BTreeMap<u64, Late<P>>,
    /// Deadlines and serial numbers of packets that were repeated.
    later: BTreeSet<(Time, u64)>,
}

impl<P: Copy> Log<P> {
    /// Adds a packet that is sent.
    #[inline]
    fn push(&mut self, outstanding: Outstanding<P>) {
        self.recent.push_back(Some(outstanding));
        self.sent += 1;
    }

    /// The serial number of an outstanding packet with this low half.
    #[inline]
    fn serial_of(&self, low: u32) -> u64 {
        self.sent - u64::from((self.sent as u32).wrapping_sub(low))
    }

    /// The serial number of the first of the recent packets.
    #[inline]
    fn first_recent(&self) -> u64 {
        self.sent - self.recent.len() as u64
    }

    #[inline]
    fn get_mut(&mut self, serial: u64) -> Option<&mut Outstanding<P>> {
        match serial.checked_sub(self.first_recent()) {
            Some(place) => self.recent.get_mut(place as usize)?.as_mut(),
            None => Some(&mut self.late.get_mut(&serial)?.outstanding),
        }
    }

    /// Takes a packet out. Returns also whether its time has been up.
    #[inline]
    fn take(&mut self, serial: u64) -> Option<(Outstanding<P>, bool)> {
        let Some(place) = serial.checked_sub(self.first_recent()) else { return self.take_late(serial) };
        let taken = self.recent.get_mut(place as usize)?.take();
        self.forget_acknowledged();
        taken.map(|outstanding| (outstanding, false))
    }

    #[cold]
    #[inline(never)]
    fn take_late(&mut self, serial: u64) -> Option<(Outstanding<P>, bool)> {
        let Late { outstanding, deadline, .. } = self.late.remove(&serial)?;
        if let Some(deadline) = deadline {
            self.later.remove(&(deadline, serial));
        }
        Some((outstanding, true))
    }

    /// Forgets recent packets that have been acknowledged, up to the first that has not.
    #[inline]
    fn forget_acknowledged(&mut self) {
        while self.recent.front().is_some_and(Option::is_none) {
            self.recent.pop_front();
        }
    }

    /// Takes the first deadline that has passed: the serial number of its packet, which is late, and the
    /// packet itself where it has not been before.
    fn take_due(&mut self, now: Time, timeout: Span) -> Option<(u64, Option<Outstanding<P>>)> {
        if let Some(outstanding) = self.recent.front().copied().flatten()
            && outstanding.sent + timeout <= now
        {
            let serial = self.first_recent();
            self.recent.pop_front();
            self.forget_acknowledged();
            let sent = outstanding.sent;
            self.late.insert(serial, Late { outstanding, repeated: 0, sent, deadline: None });
            return Some((serial, Some(outstanding)));
        }
        let later = *self.later.first().filter(|entry| entry.0 <= now)?;
        self.later.remove(&later);
        Some((later.1, None))
    }

    /// The next deadline.
    fn next_due(&self, timeout: Span) -> Option<Time> {
        let first = self.recent.front().copied().flatten().map(|packet| packet.sent + timeout);
        [first, self.later.first().map(|of| of.0)].into_iter().flatten().min()
    }
}

/// A packet that has been acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledged<P> {
    /// The packet.
    pub packet: P,
    /// Whether its time has been up.
    pub was_late: bool,
}

/// All flows of a transmit engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "P: Serialize + DeserializeOwned")]
pub struct Sender<P> {
    /// By [`FlowId::key`].
    flows: KeyTable<Flow>,
    next_opening: u32,
    log: Log<P>,
    /// Serial numbers of packets to be sent again, those acknowledged since included.
    repeats: VecDeque<u64>,
    /// The time at which the timer fires.
    timer: Option<Time>,
}

impl<P> Default for Sender<P> {
    fn default() -> Sender<P> {
        Sender {
            flows: KeyTable::default(),
            next_opening: 0,
            log: Log { sent: 0, recent: VecDeque::new(), late: BTreeMap::new(), later: BTreeSet::new() },
            repeats: VecDeque::new(),
            timer: None,
        }
    }
}

impl<P: Copy> Sender<P> {
    /// Packets that are not acknowledged.
    pub fn outstanding(&self) -> usize {
        self.log.recent.iter().flatten().count() + self.log.late.len()
    }

    /// Flows in the table.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Whether the table, which is full, has room for a flow, when those that are over have been forgotten.
    #[cold]
    #[inline(never)]
    fn makes_room(&mut self, flow: FlowId, parameters: &TransportParameters) -> bool {
        if self.flows.get(flow.key()).is_some() {
            return true;
        }
        // Each of these may begin anew at any time: its next opening is a later one.
        self.flows.retain(|known| known.chain().is_some());
        self.flows.len() < parameters.flows as usize
    }

    /// A packet is sent. `None`: its flow has no room for another.
    #[inline]
    pub fn send(
        &mut self,
        flow: FlowId,
        packet: P,
        now: Time,
        parameters: &TransportParameters,
    ) -> Option<Sent> {
        if self.flows.len() >= parameters.flows as usize && !self.makes_room(flow, parameters) {
            return None;
        }
        let serial = self.log.sent as u32;
        let known = self.flows.get_or_add(flow.key());
        let mut chain = match known.state {
            State::Outstanding(chain) => {
                if known.next - chain.number >= parameters.window || known.next == u32::MAX {
                    return None;
                }
                if let Some(before) = self.log.get_mut(self.log.serial_of(chain.newest)) {
                    before.next = serial.wrapping_sub(chain.newest);
                    before.next_number = known.next;
                }
                chain
            }
            State::Idle(since) => {
                if known.next == u32::MAX || now > since.saturating_add(parameters.idle) {
                    (known.opening, known.next) = (self.next_opening, 0);
                    self.next_opening = (self.next_opening + 1) & ((1 << OPENING_BITS) - 1);
                }
                Chain { number: known.next, oldest: serial, newest: serial }
            }
        };
        chain.newest = serial;
        let number = known.next;
        (known.next, known.state) = (number + 1, State::Outstanding(chain));
        let (sequence, is_known) = (Sequence { opening: known.opening, number }, chain.number > 0);
        self.log.push(Outstanding { packet, flow, number, next_number: 0, next: 0, sent: now });
        Some(Sent { sequence, is_known, timer: self.set_timer(now + parameters.reliability.timeout) })
    }

    /// The serial number of a packet, behind that of the one before it, if any. Acknowledgements come in the
    /// order of the packets, or nearly so: it is among the first.
    fn find(&mut self, flow: FlowId, sequence: Sequence) -> Option<(Option<u64>, u64)> {
        let known = self.flows.get(flow.key()).filter(|known| known.opening == sequence.opening)?;
        let (mut before, mut serial) = (None, self.log.serial_of(known.chain()?.oldest));
        loop {
            let packet = self.log.get_mut(serial)?;
            if packet.number >= sequence.number || packet.next == 0 {
                return (packet.number == sequence.number).then_some((before, serial));
            }
            let next = serial + u64::from(packet.next);
            (before, serial) = (Some(serial), next);
        }
    }

    /// A packet that is not acknowledged.
    #[cold]
    pub fn packet_mut(&mut self, flow: FlowId, sequence: Sequence) -> Option<&mut P> {
        let (_, serial) = self.find(flow, sequence)?;
        Some(&mut self.log.get_mut(serial)?.packet)
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
    pub fn acknowledged(&mut self, flow: FlowId, sequence: Sequence, now: Time) -> Option<Acknowledged<P>> {
        let known = self.flows.get_mut(flow.key())?;
        let State::Outstanding(chain) = known.state else { return None };
        if known.opening != sequence.opening || chain.number != sequence.number {
            return self.acknowledged_behind(flow, sequence);
        }
        let serial = self.log.serial_of(chain.oldest);
        let (Outstanding { packet, next, next_number, .. }, was_late) = self.log.take(serial)?;
        let oldest = chain.oldest.wrapping_add(next);
        known.state = match next {
            0 => State::Idle(now),
            _ => State::Outstanding(Chain { number: next_number, oldest, ..chain }),
        };
        if !self.log.late.is_empty() && !flow.kind.unordered {
            self.begin_anew(serial + u64::from(next));
        }
        Some(Acknowledged { packet, was_late })
    }

    /// The same of a packet that is not the oldest of its flow.
    #[cold]
    #[inline(never)]
    fn acknowledged_behind(&mut self, flow: FlowId, sequence: Sequence) -> Option<Acknowledged<P>> {
        let (before, serial) = self.find(flow, sequence)?;
        let before = before?;
        let (Outstanding { packet, next, next_number, .. }, was_late) = self.log.take(serial)?;
        let link = self.log.get_mut(before)?;
        link.next = if next == 0 { 0 } else { (serial - before) as u32 + next };
        link.next_number = next_number;
        if let State::Outstanding(chain) = &mut self.flows.get_mut(flow.key())?.state
            && next == 0
        {
            chain.newest = before as u32;
        }
        Some(Acknowledged { packet, was_late })
    }

    /// A packet has become the oldest of an ordered flow. It may have been repeated in vain, behind the one
    /// before it: it begins anew.
    #[cold]
    #[inline(never)]
    fn begin_anew(&mut self, serial: u64) {
        if let Some(late) = self.log.late.get_mut(&serial) {
            late.repeated = 0;
        }
    }

    /// The timer has fired. One that fires at another time than the last that was set is of the past.
    pub fn expired(&mut self, now: Time, parameters: &TransportParameters) -> Option<Expired<P>> {
        if self.timer != Some(now) {
            return None;
        }
        self.timer = None;
        let timeout = parameters.reliability.timeout;
        let (mut failed, mut late) = (Vec::new(), Vec::new());
        while let Some((serial, first_time)) = self.log.take_due(now, timeout) {
            late.extend(first_time.map(|packet| (packet.flow, packet.packet, packet.sent)));
            let Some(due) = self.log.late.get_mut(&serial) else { continue };
            due.deadline = None;
            let flow = due.outstanding.flow;
            let chain = self.flows.get(flow.key()).and_then(Flow::chain);
            // Of an ordered flow the oldest alone can tell that nothing arrives any more.
            let decides = flow.kind.unordered || chain.is_some_and(|chain| chain.oldest == serial as u32);
            if !decides || due.repeated < parameters.reliability.repetitions {
                self.repeats.push_back(serial);
            } else {
                failed.extend(self.give_up(flow));
            }
        }
        let next = self.log.next_due(timeout);
        let repeats = !self.repeats.is_empty();
        Some(Expired { failed, late, repeats, next: next.and_then(|at| self.set_timer(at)) })
    }

    /// Ends a flow, and returns all packets of it that are not acknowledged.
    fn give_up(&mut self, flow: FlowId) -> Vec<(FlowId, P)> {
        let mut packets = Vec::new();
        let chain = self.flows.remove(flow.key()).and_then(|known| known.chain());
        let mut serial = chain.map(|chain| self.log.serial_of(chain.oldest));
        while let Some((outstanding, _)) = serial.and_then(|serial| self.log.take(serial)) {
            packets.push((flow, outstanding.packet));
            let next = u64::from(outstanding.next);
            serial = serial.filter(|_| next > 0).map(|serial| serial + next);
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
        let mut waiting = self.repeats.iter().filter_map(|serial| self.log.late.get(serial));
        waiting.next().map(|late| &late.outstanding.packet)
    }

    /// Takes the next packet that is to be sent again, now, and the time to set a timer for, if none is
    /// pending.
    #[cold]
    pub fn take_repeat(
        &mut self,
        now: Time,
        parameters: &TransportParameters,
    ) -> Option<(Repeat<P>, Option<Time>)> {
        while let Some(serial) = self.repeats.pop_front() {
            let Some(late) = self.log.late.get_mut(&serial) else { continue };
            let Outstanding { packet, flow, number, .. } = late.outstanding;
            let Some(known) = self.flows.get(flow.key()) else { continue };
            late.repeated = late.repeated.saturating_add(1);
            let deadline = now + parameters.reliability.timeout_after(late.repeated);
            let sent = std::mem::replace(&mut late.sent, now);
            late.deadline = Some(deadline);
            let sequence = Sequence { opening: known.opening, number };
            self.log.later.insert((deadline, serial));
            return Some((Repeat { flow, sequence, packet, sent }, self.set_timer(deadline)));
        }
        None
    }
}
