//! The sending ends of connections: packets that are not acknowledged, their time-outs, and what goes again.
//!
//! An interface may have a connection to each other one, and few at a time have packets under way: of the
//! others it keeps the next number alone.

use super::{AckState, Connection, ConnectionParameters, Psn, Retransmission};
use crate::key_table::KeyTable;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use weft_units::Time;

/// A packet that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Kept<P> {
    packet: P,
    /// The time at which it was sent last.
    sent: Time,
    /// Whether it has come, while one before it has not.
    has_come: bool,
    /// Whether it waits to be sent again.
    waits: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SendingEnd<P> {
    /// The number of the first packet that is not acknowledged.
    first: Psn,
    kept: VecDeque<Kept<P>>,
    /// Time-outs since the connection was last brought on.
    retries: u32,
    /// `None`: nothing is under way, or what is missing waits to be sent again.
    deadline: Option<Time>,
    /// No packet before this place waits to be sent again.
    cursor: usize,
}

impl<P> Default for SendingEnd<P> {
    fn default() -> SendingEnd<P> {
        SendingEnd { first: Psn::default(), kept: VecDeque::new(), retries: 0, deadline: None, cursor: 0 }
    }
}

impl<P> SendingEnd<P> {
    /// The number of the next new packet.
    fn next(&self) -> Psn {
        self.first.after(self.kept.len() as u32)
    }

    /// The packets of which that is said are to be sent again.
    fn repeat(&mut self, is_missing: impl Fn(&Kept<P>) -> bool) {
        self.cursor = 0;
        self.kept.iter_mut().filter(|kept| is_missing(kept)).for_each(|kept| kept.waits = true);
    }

    /// The place of the next packet that waits to be sent again.
    fn waiting(&mut self) -> Option<usize> {
        let place = (self.cursor..self.kept.len()).find(|&place| self.kept[place].waits);
        self.cursor = place.unwrap_or(self.kept.len());
        place
    }
}

/// A packet that is sent for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NumberedPacket {
    /// The number.
    pub number: Psn,
    /// Whether the connection wants an acknowledgement of it.
    pub asks: bool,
    /// The time to set a timer for; `None`: one is pending that fires by then.
    pub timer: Option<Time>,
}

/// A packet that is sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Repeat<P> {
    /// The connection.
    pub connection: Connection,
    /// The number, as before.
    pub number: Psn,
    /// The packet.
    pub packet: P,
    /// The time at which it was sent last.
    pub sent: Time,
}

/// Packets that have been acknowledged for good.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settled<P> {
    /// The packets.
    pub packets: Vec<P>,
    /// The time to set a timer for; `None`: one is pending, or nothing is under way.
    pub timer: Option<Time>,
}

/// A connection that has failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BrokenConnection<P> {
    /// The connection.
    pub connection: Connection,
    /// The number with which it goes on.
    pub next: Psn,
    /// Packets that were not acknowledged.
    pub packets: Vec<P>,
}

/// The outcome of a look at the deadlines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Expired<P> {
    /// Connections that have failed.
    pub failed: Vec<BrokenConnection<P>>,
    /// Connections whose time was up.
    pub timeouts: u64,
    /// The time to set a timer for; `None`: one is pending, or nothing is under way.
    pub timer: Option<Time>,
}

/// All sending ends of an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sender<P> {
    /// The next number of each connection that has nothing under way, by [`Connection::key`].
    idle: KeyTable<Psn>,
    /// Those that have, likewise.
    ends: KeyTable<SendingEnd<P>>,
    /// Deadlines of all ends that have one.
    deadlines: BTreeSet<(Time, u64)>,
    /// Ends with packets that wait to be sent again; one may have none any more.
    repeating: VecDeque<u64>,
    /// The time at which the timer fires. One that fires at another time is of the past.
    timer: Option<Time>,
}

impl<P> Default for Sender<P> {
    fn default() -> Sender<P> {
        Sender {
            idle: KeyTable::default(),
            ends: KeyTable::default(),
            deadlines: BTreeSet::new(),
            repeating: VecDeque::new(),
            timer: None,
        }
    }
}

impl<P: Copy> Sender<P> {
    /// Whether the window of a connection has room for another packet.
    #[inline]
    pub fn has_room(&self, connection: Connection, parameters: &ConnectionParameters) -> bool {
        let end = self.ends.get(connection.key());
        end.is_none_or(|end| end.kept.len() < parameters.window as usize)
    }

    /// A packet is sent for the first time.
    pub fn send(
        &mut self,
        connection: Connection,
        (packet, now): (P, Time),
        parameters: &ConnectionParameters,
    ) -> NumberedPacket {
        let key = connection.key();
        let end = self.ends.get_or_add(key);
        if end.kept.is_empty() {
            end.first = *self.idle.get_or_add(key);
        }
        let number = end.next();
        end.kept.push_back(Kept { packet, sent: now, has_come: false, waits: false });
        let fills = end.kept.len() >= parameters.window as usize;
        let asks = fills || number.after(1).bits().is_multiple_of(parameters.ack_every);
        let timer = (end.kept.len() == 1).then(|| self.set_deadline(key, now, parameters)).flatten();
        NumberedPacket { number, asks, timer }
    }

    /// The time-out of a connection begins. Returns the time to set a timer for, if none fires by then.
    fn set_deadline(&mut self, key: u64, now: Time, parameters: &ConnectionParameters) -> Option<Time> {
        let deadline = now.saturating_add(parameters.ack_timeout);
        self.clear_deadline(key);
        self.ends.get_mut(key)?.deadline = Some(deadline);
        self.deadlines.insert((deadline, key));
        self.set_timer(deadline)
    }

    fn clear_deadline(&mut self, key: u64) {
        if let Some(deadline) = self.ends.get_mut(key).and_then(|end| end.deadline.take()) {
            self.deadlines.remove(&(deadline, key));
        }
    }

    /// Nothing of a connection is under way any more.
    fn rest(&mut self, key: u64) {
        if let Some(end) = self.ends.remove(key) {
            *self.idle.get_or_add(key) = end.first;
        }
    }

    fn set_timer(&mut self, at: Time) -> Option<Time> {
        if self.timer.is_some_and(|timer| timer <= at) {
            return None;
        }
        self.timer = Some(at);
        self.timer
    }

    /// An acknowledgement has come. `None`: it says nothing new.
    pub fn acknowledged(
        &mut self,
        connection: Connection,
        acknowledgement: AckState,
        now: Time,
        parameters: &ConnectionParameters,
    ) -> Option<Settled<P>> {
        let key = connection.key();
        let end = self.ends.get_mut(key)?;
        let through = acknowledgement.expected.since(end.first) as usize;
        if through > end.kept.len() {
            return None;
        }
        let packets: Vec<P> = end.kept.drain(..through).map(|kept| kept.packet).collect();
        end.first = acknowledgement.expected;
        end.cursor = end.cursor.saturating_sub(through);
        let mut beyond = acknowledgement.beyond;
        while beyond != 0 {
            if let Some(kept) = end.kept.get_mut(beyond.trailing_zeros() as usize + 1) {
                (kept.has_come, kept.waits) = (true, false);
            }
            beyond &= beyond - 1;
        }
        if through > 0 {
            end.retries = 0;
        }
        let is_empty = end.kept.is_empty();
        if acknowledgement.is_negative && !is_empty {
            end.repeat(|_| true);
            self.repeating.push_back(key);
        }
        let mut timer = None;
        if is_empty {
            self.clear_deadline(key);
            self.rest(key);
        } else if through > 0 || acknowledgement.is_negative {
            timer = self.set_deadline(key, now, parameters);
        }
        Some(Settled { packets, timer })
    }

    /// The timer has fired; `None`: it is of the past.
    pub fn expired(&mut self, now: Time, parameters: &ConnectionParameters) -> Option<Expired<P>> {
        if self.timer != Some(now) {
            return None;
        }
        self.timer = None;
        let (mut failed, mut timeouts) = (Vec::new(), 0);
        while let Some(&(deadline, key)) = self.deadlines.first().filter(|(deadline, _)| *deadline <= now) {
            self.deadlines.remove(&(deadline, key));
            let Some(end) = self.ends.get_mut(key) else { continue };
            end.deadline = None;
            timeouts += 1;
            if end.retries >= parameters.retry_count {
                let next = end.next();
                let packets = end.kept.drain(..).map(|kept| kept.packet).collect();
                end.first = next;
                self.rest(key);
                let connection = Connection::of_key(key);
                failed.push(BrokenConnection { connection, next, packets });
                continue;
            }
            end.retries += 1;
            match parameters.kind {
                Retransmission::SelectiveRepeat => end
                    .repeat(|kept| !kept.has_come && kept.sent.saturating_add(parameters.ack_timeout) <= now),
                Retransmission::GoBackN | Retransmission::None => end.repeat(|_| true),
            }
            self.repeating.push_back(key);
        }
        let next = self.deadlines.first().map(|(deadline, _)| *deadline);
        Some(Expired { failed, timeouts, timer: next.and_then(|at| self.set_timer(at)) })
    }

    /// Whether packets may wait to be sent again.
    pub fn repeats(&self) -> bool {
        !self.repeating.is_empty()
    }

    /// The next packet that waits to be sent again.
    pub fn next_repeat(&mut self) -> Option<(Connection, P)> {
        while let Some(&key) = self.repeating.front() {
            if let Some(end) = self.ends.get_mut(key)
                && let Some(place) = end.waiting()
            {
                return Some((Connection::of_key(key), end.kept[place].packet));
            }
            self.repeating.pop_front();
        }
        None
    }

    /// Takes that packet: it is sent now. Returns also the time to set a timer for, if none is pending.
    pub fn take_repeat(
        &mut self,
        now: Time,
        parameters: &ConnectionParameters,
    ) -> Option<(Repeat<P>, Option<Time>)> {
        let (connection, _) = self.next_repeat()?;
        let key = connection.key();
        let end = self.ends.get_mut(key)?;
        let place = end.waiting()?;
        let kept = end.kept.get_mut(place)?;
        kept.waits = false;
        let (packet, sent) = (kept.packet, std::mem::replace(&mut kept.sent, now));
        let number = end.first.after(place as u32);
        let begins = end.deadline.is_none();
        let timer = begins.then(|| self.set_deadline(key, now, parameters)).flatten();
        Some((Repeat { connection, number, packet, sent }, timer))
    }

    /// Packets that are not acknowledged, of all connections.
    #[cfg(test)]
    pub fn outstanding(&self) -> usize {
        self.ends.entries().map(|end| end.kept.len()).sum()
    }

    /// A connection begins with another number.
    #[cfg(test)]
    pub fn start_at(&mut self, connection: Connection, number: Psn) {
        *self.idle.get_or_add(connection.key()) = number;
    }
}
