//! The mailbox: queues in host memory, one for each virtual interface, into which packets of other nodes
//! are written.
//!
//! ```text
//!   packet ──► good? ── domain? ── room? ──► entry at the tail ──► written to the cache ──► process polls
//!                │         │         │
//!                └─────────┴─────────┴──► negative acknowledgement
//!
//!   empty ◄── take ── holding ◄── take ── full      the hardware moves the tail, the process the head
//!         ── put ──►         ── put ──►
//! ```
//! # Source
//! FORTH-ICS / TR-488 §4.4; footnote 1 of §4.6: payload buffers are in host memory. The text does not say
//! how many entries a queue has.
//!
//! # Not modelled
//! The order of writes by several sources into one queue beside that of their arrival; the cache's own
//! evictions. Writes of entries to main memory, which §4.4 has beside the cache: they take nothing of the
//! memory channel. The store by which a process tells the logic of its head: the logic knows it at once.

use crate::block::{Block, block};
use crate::gvas::Pdid;
use crate::packetizer::MAX_INTERFACES;
use crate::server::{Server, Service};
use crate::transition::InvalidTransition;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_keys::{Misfit, Problem};
use weft_units::{Bytes, Clock, EndpointId, Span, Time};

/// The mailbox in reports: TR-488 §4.4.
pub const MAILBOX: Block = block!(Logic "mailbox");

/// Cycles from the edge of a footer to answer and entry, at least: one each to check the sum, to look up
/// queue and number, to decide, and for the queue of verdicts. They are ours, those of `rtl/mailbox`; where
/// the footer comes soon behind the header, they pass within `check`.
pub(crate) const VERDICT_CYCLES: u64 = 4;

weft_keys::keys! {
    /// The mailbox's section of a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct MailboxParameters {
        /// The block's clock.
        clock: Clock, of("nic.clock");
        /// Virtual interfaces: processes of an endpoint.
        interfaces: u32, within(1, MAX_INTERFACES);
        /// Entries of a queue.
        entries: u32;
        /// The time for a packet from its header on, in whole cycles: checks, tail, acknowledgement; one at a
        /// time.
        check: u32, cycles_of("nic.clock");
        /// Bytes of an entry in memory, which is written whole.
        entry: Bytes;
        /// From an entry in the cache to its process, which polls.
        poll: Span;
        /// Packets that it holds until they are answered and their entries written; others wait. Not given:
        /// as many as come.
        slots: Option<u32>;
        /// Accepted packets that it knows if they come again, a power of two; another takes the place of each
        /// in time. Not given: all.
        remembered: Option<u32>;
    }
}

impl MailboxParameters {
    /// Checks that accepted packets have places by the bits of their numbers.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_remembered(&self) -> Result<(), Misfit> {
        match self.remembered {
            Some(places) if !places.is_power_of_two() || places < 4 => {
                let why = format!("{places} places for accepted packets are no power of two from 4 on");
                let mend = "write a number such as 1024, or leave the key out".to_owned();
                Err(Problem::new(why, "", mend).of("remembered"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that an entry holds a small message, whose payload is `most` at most.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_entry(&self, most: Bytes) -> Result<(), Misfit> {
        if self.entry >= most {
            return Ok(());
        }
        let why = format!("an entry of {} does not hold a small message", self.entry);
        let mend = format!("write at least {most}, which is nic.packetizer.payload");
        Err(Problem::new(why, "", mend).of("entry"))
    }
}

/// Why a packet is refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// It was damaged on the way.
    Damaged,
    /// It is of another protection domain than the queue.
    Domain,
    /// There is no such interface.
    Interface,
    /// The queue has no room.
    Full,
}

/// The state of a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum QueueState {
    /// Head and tail agree.
    #[default]
    Empty,
    /// Some entries are taken, some free.
    Holding,
    /// No entry is free.
    Full,
}

/// An input of a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum QueueInput {
    /// The hardware moves the tail.
    Put,
    /// The process moves the head.
    Take,
}

impl QueueState {
    /// All states.
    pub const ALL: [QueueState; 3] = [QueueState::Empty, QueueState::Holding, QueueState::Full];

    /// The table of transitions of a queue that holds `held` of `entries` before `input`.
    ///
    /// # Errors
    /// A packet for a full queue, and one taken from an empty queue.
    pub const fn after(
        self,
        input: QueueInput,
        held: u32,
        entries: u32,
    ) -> Result<QueueState, InvalidTransition<QueueState, QueueInput>> {
        let held = match (self, input) {
            (QueueState::Empty | QueueState::Holding, QueueInput::Put) => held + 1,
            (QueueState::Holding | QueueState::Full, QueueInput::Take) => held - 1,
            (state @ QueueState::Full, QueueInput::Put) | (state @ QueueState::Empty, QueueInput::Take) => {
                return Err(InvalidTransition { state, input });
            }
        };
        Ok(match held {
            0 => QueueState::Empty,
            held if held == entries => QueueState::Full,
            _ => QueueState::Holding,
        })
    }
}

/// The fields of a packet by which the mailbox accepts or refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The virtual interface that the packet is for.
    pub interface: u16,
    /// The protection domain of the sender.
    pub domain: Pdid,
    /// Whether the packet was found to be damaged.
    pub damaged: bool,
}

/// A change of a queue's state, to be reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueChange {
    /// The virtual interface.
    pub interface: u16,
    /// The time of the change: moves of the head are seen when the hardware next looks at the queue.
    pub at: Time,
    /// The input.
    pub input: QueueInput,
    /// The state before.
    pub from: QueueState,
    /// The state after.
    pub to: QueueState,
}

/// The queue of one virtual interface.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Queue {
    interface: u16,
    domain: Pdid,
    state: QueueState,
    held: u32,
    /// When the process moves the head, as far as that is known, ascending.
    takes: VecDeque<Time>,
}

/// The block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Mailbox {
    /// Queues in use; others take no memory.
    queues: Vec<Queue>,
    checks: Server,
    /// `None` before the first packet, or where nothing limits them: an idle mailbox is small.
    taken: Option<Box<TakenPackets>>,
}

/// The packets that have been taken.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct TakenPackets {
    /// When their slots are free again, ascending.
    slots: VecDeque<Time>,
    /// The edge from which on words come again behind those that have waited.
    words_from: Time,
    /// Packets that were accepted, by source and number, each in its place.
    accepted: Vec<Option<(EndpointId, u32)>>,
}

/// The words of a packet on their way into the mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Taken {
    /// The time of its header.
    pub head: Time,
    /// The time at which it is whole.
    pub tail: Time,
}

impl Mailbox {
    /// The system software gives a queue to a process of `domain`.
    pub fn open(&mut self, interface: u16, domain: Pdid) {
        self.queue(interface).domain = domain;
    }

    #[inline]
    fn queue(&mut self, interface: u16) -> &mut Queue {
        let index = usize::from(interface);
        if self.queues.len() <= index {
            self.add_queues(index);
        }
        &mut self.queues[index]
    }

    /// Adds the queues that are missing up to the one at `index`.
    #[cold]
    fn add_queues(&mut self, index: usize) {
        let missing = (self.queues.len()..=index).map(|interface| interface as u16);
        self.queues.extend(missing.map(|interface| Queue { interface, ..Queue::default() }));
    }

    /// The time in which the block has looked at packets.
    pub(crate) fn worked(&self) -> Span {
        self.checks.worked()
    }

    /// Whether a packet was accepted before, and is remembered.
    pub fn has_accepted(&self, source: EndpointId, number: u32) -> bool {
        let Some(TakenPackets { accepted, .. }) = self.taken.as_deref() else { return false };
        let place = place_of(source, number, accepted.len());
        accepted.get(place).is_some_and(|accepted| *accepted == Some((source, number)))
    }

    /// A packet is accepted.
    #[inline]
    pub fn accept(&mut self, source: EndpointId, number: u32, parameters: &MailboxParameters) {
        let Some(places) = parameters.remembered else { return };
        let TakenPackets { accepted, .. } = &mut **self.taken.get_or_insert_default();
        if accepted.is_empty() {
            *accepted = vec![None; places as usize];
        }
        let place = place_of(source, number, accepted.len());
        accepted[place] = Some((source, number));
    }

    /// When a packet of so many words is taken: as it has come, or later where all slots are taken, or where
    /// those before it have waited.
    #[inline]
    pub fn takes(&self, came: Taken, words: u64, parameters: &MailboxParameters) -> Taken {
        let Some(TakenPackets { slots, words_from, .. }) = self.taken.as_deref() else { return came };
        let (clock, most) = (&parameters.clock, parameters.slots.map_or(usize::MAX, |slots| slots as usize));
        let free = slots.len().checked_sub(most).and_then(|first| slots.get(first)).copied();
        let may = free.unwrap_or_default().max(*words_from);
        if may <= clock.edge_at_or_after(came.head) {
            return came;
        }
        Taken { head: may, tail: came.tail.max(clock.later_edge(may, words)) }
    }

    /// A packet that has come so is taken, and has its slot until the edge `written`.
    #[inline]
    pub fn hold_slot(&mut self, taken: Taken, came: Taken, written: Time, parameters: &MailboxParameters) {
        if parameters.slots.is_none() {
            return;
        }
        let TakenPackets { slots, words_from, .. } = &mut **self.taken.get_or_insert_default();
        if taken != came {
            *words_from = parameters.clock.edge_at_or_after(taken.tail);
        }
        while slots.front().is_some_and(|free| *free <= taken.head) {
            slots.pop_front();
        }
        slots.push_back(written);
    }

    /// The block looks at a packet whose header has come at `head`, and which is whole at `tail`: its time,
    /// whatever comes of it. It is done when the check is, and the verdict on the whole packet.
    #[inline]
    pub fn check(&mut self, head: Time, tail: Time, parameters: &MailboxParameters) -> Service {
        let looked = self.checks.serve(head, parameters.check.into(), &parameters.clock);
        let decided = parameters.clock.later_edge(parameters.clock.edge_at_or_after(tail), VERDICT_CYCLES);
        let ended = self.checks.hold(decided, &parameters.clock);
        Service { came: tail, began: looked.began.max(tail), ended }
    }

    /// The same, where another has found when it is done.
    pub(crate) fn check_until(&mut self, head: Time, tail: Time, checked: Time, clock: &Clock) -> Service {
        let Service { began, ended, .. } = self.checks.serve_until(head, checked, clock);
        Service { came: tail, began: began.max(tail), ended }
    }

    /// Another has looked at the queue of `interface` at `now`: reports what its process has taken.
    pub(crate) fn follow_takes(
        &mut self,
        now: Time,
        interface: u16,
        parameters: &MailboxParameters,
        report: &mut impl FnMut(QueueChange),
    ) {
        self.queue(interface).apply_takes(now, parameters.entries, report);
    }

    /// Another has put a packet into the queue of `interface` at `now`, and reports that.
    pub(crate) fn follow_put(
        &mut self,
        now: Time,
        interface: u16,
        parameters: &MailboxParameters,
        report: &mut impl FnMut(QueueChange),
    ) {
        self.follow_takes(now, interface, parameters, report);
        let queue = self.queue(interface);
        if queue.state != QueueState::Full {
            let put = queue.change(now, QueueInput::Put, parameters.entries, report);
            put.expect("a queue that is not full has room");
        }
    }

    /// Puts the packet that arrived at `now` into the queue of its interface.
    ///
    /// # Errors
    /// The reason for which the packet is refused; nothing is changed then.
    #[inline]
    pub fn put(
        &mut self,
        now: Time,
        packet: &Envelope,
        parameters: &MailboxParameters,
        report: &mut impl FnMut(QueueChange),
    ) -> Result<(), Refusal> {
        let Envelope { interface, domain, damaged } = *packet;
        if damaged {
            return Err(Refusal::Damaged);
        }
        if u32::from(interface) >= parameters.interfaces {
            return Err(Refusal::Interface);
        }
        let queue = self.queue(interface);
        domain.check(queue.domain).map_err(|_| Refusal::Domain)?;
        queue.apply_takes(now, parameters.entries, report);
        // The one input that the table forbids here is a packet for a full queue.
        queue.change(now, QueueInput::Put, parameters.entries, report).map_err(|_| Refusal::Full)
    }

    /// The process moves the head at `at`, now or later: it has taken the oldest entry.
    #[inline]
    pub fn take(&mut self, interface: u16, at: Time) {
        let queue = self.queue(interface);
        match queue.takes.back() {
            Some(last) if *last > at => {
                let place = queue.takes.partition_point(|other| *other <= at);
                queue.takes.insert(place, at);
            }
            _ => queue.takes.push_back(at),
        }
    }

    /// Entries in use at `now`, over all queues.
    pub fn held(&self, now: Time) -> usize {
        let taken = |queue: &Queue| queue.takes.iter().filter(|at| **at <= now).count();
        self.queues.iter().map(|queue| (queue.held as usize).saturating_sub(taken(queue))).sum()
    }
}

/// The place of a packet among so many, a power of two: that of `rtl/common/accepted_packets.sv`.
fn place_of(source: EndpointId, number: u32, places: usize) -> usize {
    let (bits, mask) = (places.max(1).trailing_zeros(), places.wrapping_sub(1));
    let (low, high) = (bits / 2, bits - bits / 2);
    let source = source.0 as usize & mask;
    (number as usize & mask) ^ ((source & ((1 << low) - 1)) << high | source >> low)
}

impl Queue {
    /// Looks where the head is.
    #[inline]
    fn apply_takes(&mut self, now: Time, entries: u32, report: &mut impl FnMut(QueueChange)) {
        while let Some(at) = self.takes.front().copied().filter(|at| *at <= now) {
            self.takes.pop_front();
            // A process that takes more than there is moves no head.
            if self.state != QueueState::Empty {
                let taken = self.change(at, QueueInput::Take, entries, report);
                taken.expect("a queue that is not empty has an entry to take");
            }
        }
    }

    #[inline]
    fn change(
        &mut self,
        at: Time,
        input: QueueInput,
        entries: u32,
        report: &mut impl FnMut(QueueChange),
    ) -> Result<(), InvalidTransition<QueueState, QueueInput>> {
        let from = self.state;
        let to = from.after(input, self.held, entries)?;
        self.state = to;
        match input {
            QueueInput::Put => self.held += 1,
            QueueInput::Take => self.held -= 1,
        }
        report(QueueChange { interface: self.interface, at, input, from, to });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parameters() -> MailboxParameters {
        MailboxParameters {
            clock: Clock::from_hertz(150_000_000).unwrap(),
            interfaces: 64,
            entries: 3,
            check: 10,
            entry: Bytes::new(64),
            poll: Span::from_ns(20),
            slots: Some(2),
            remembered: Some(16),
        }
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    fn whole(interface: u16) -> Envelope {
        Envelope { interface, domain: Pdid(0), damaged: false }
    }

    /// Catches a transition that is missing or too much: a queue of three entries.
    #[test]
    fn the_table_of_transitions() {
        use QueueState::{Empty, Full, Holding};
        let row = |state: QueueState, held| {
            [QueueInput::Put, QueueInput::Take].map(|input| state.after(input, held, 3).ok())
        };
        assert_eq!(row(Empty, 0), [Some(Holding), None]);
        assert_eq!(row(Holding, 1), [Some(Holding), Some(Empty)]);
        assert_eq!(row(Holding, 2), [Some(Full), Some(Holding)]);
        assert_eq!(row(Full, 3), [None, Some(Holding)]);
        assert_eq!(Empty.after(QueueInput::Put, 0, 1), Ok(Full), "a queue of one entry");
        assert_eq!(Full.after(QueueInput::Take, 1, 1), Ok(Empty));
    }

    /// Catches checks that begin with the tail, or end before there is a verdict on the whole packet.
    #[test]
    fn checks_begin_with_the_header_and_end_with_the_verdict() {
        let (mut mailbox, p) = (Mailbox::default(), parameters());
        let edge = |n| p.clock.edge(n);
        let short = mailbox.check(edge(3), edge(5), &p);
        assert_eq!((short.came, short.began, short.ended), (edge(5), edge(5), edge(13)));
        let long = mailbox.check(edge(20), edge(50), &p);
        assert_eq!((long.came, long.began, long.ended), (edge(50), edge(50), edge(54)));
        // One that came meanwhile.
        let behind = mailbox.check(edge(49), edge(52), &p);
        assert_eq!((behind.began, behind.ended), (edge(54), edge(64)));
        // A tail between two edges comes with the second.
        let between = mailbox.check(edge(70), edge(77) + Span::from_ps(1), &p);
        assert_eq!(between.ended, edge(78 + 4));
    }

    /// Catches a packet that changes anything although it must not: foreign, damaged, or for nobody.
    #[test]
    fn what_is_refused_changes_nothing() {
        let (mut mailbox, p, silent) = (Mailbox::default(), parameters(), &mut |_: QueueChange| {});
        mailbox.open(2, Pdid(7));
        let mut put = |interface, domain, damaged| {
            mailbox.put(at(0), &Envelope { interface, domain: Pdid(domain), damaged }, &p, silent)
        };
        assert_eq!(put(2, 8, false), Err(Refusal::Domain));
        assert_eq!(put(1, 7, false), Err(Refusal::Domain), "an interface that is not open is of domain 0");
        assert_eq!(put(2, 7, true), Err(Refusal::Damaged));
        assert_eq!(put(64, 7, false), Err(Refusal::Interface));
        assert_eq!(put(2, 7, false), Ok(()));
        assert_eq!(mailbox.held(at(0)), 1);
    }

    /// Catches a packet that is taken without a slot, or later than there is one.
    #[test]
    fn packets_wait_for_a_slot_in_their_order() {
        let (mut mailbox, p) = (Mailbox::default(), parameters());
        let edge = |n| p.clock.edge(n);
        let came = |head| Taken { head: edge(head), tail: edge(head + 6) };
        let mut take = |head, free| {
            let taken = mailbox.takes(came(head), 6, &p);
            mailbox.hold_slot(taken, came(head), edge(free), &p);
            taken
        };
        assert_eq!(take(0, 30), came(0));
        assert_eq!(take(6, 40), came(6));
        assert_eq!(take(12, 50), came(30), "its slot is that of the first");
        assert_eq!(take(33, 60), came(40), "the second's");
        assert_eq!(take(44, 70), came(50));
        assert_eq!(take(54, 80), came(60));
        assert_eq!(take(75, 90), came(75), "both are free");
    }

    /// Catches words of two packets in one cycle, where one has waited.
    #[test]
    fn words_follow_those_that_have_waited() {
        let (mut mailbox, p) = (Mailbox::default(), MailboxParameters { slots: Some(1), ..parameters() });
        let edge = |n| p.clock.edge(n);
        let came = |head, tail| Taken { head: edge(head), tail: edge(tail) };
        mailbox.hold_slot(came(0, 6), came(0, 6), edge(20), &p);
        let waited = mailbox.takes(came(6, 30), 6, &p);
        assert_eq!(waited, came(20, 30), "its tail came late");
        mailbox.hold_slot(waited, came(6, 30), edge(24), &p);
        assert_eq!(mailbox.takes(came(25, 31), 6, &p), came(30, 36));
    }

    /// Catches a packet that is taken for another, and one that is remembered behind another in its place.
    #[test]
    fn a_packet_is_forgotten_when_another_takes_its_place() {
        let (mut mailbox, p) = (Mailbox::default(), parameters());
        let first = (EndpointId(0b0110), 0b1_0011);
        assert!(!mailbox.has_accepted(first.0, first.1));
        mailbox.accept(first.0, first.1, &p);
        assert!(mailbox.has_accepted(first.0, first.1));
        assert!(!mailbox.has_accepted(first.0, 0b0_0011), "another number of the same place");
        // Of 16 places: 0011 with the halves of 0110 changed, 1001, is 1010, as is 1010 of source 0.
        mailbox.accept(EndpointId(0), 0b1010, &p);
        assert!(!mailbox.has_accepted(first.0, first.1));
    }

    /// Catches a head that moves too early, and room that does not come back.
    #[test]
    fn a_full_queue_refuses_until_its_process_takes() {
        let (mut mailbox, p, silent) = (Mailbox::default(), parameters(), &mut |_: QueueChange| {});
        let mut put = |mailbox: &mut Mailbox, now, to| mailbox.put(now, &whole(to), &p, silent);
        for _ in 0..3 {
            assert_eq!(put(&mut mailbox, at(0), 0), Ok(()));
        }
        assert_eq!(put(&mut mailbox, at(1), 0), Err(Refusal::Full));
        assert_eq!(put(&mut mailbox, at(1), 1), Ok(()), "another queue");
        mailbox.take(0, at(50));
        mailbox.take(0, at(20));
        assert_eq!(put(&mut mailbox, at(19), 0), Err(Refusal::Full));
        assert_eq!(put(&mut mailbox, at(20), 0), Ok(()));
        assert_eq!(put(&mut mailbox, at(49), 0), Err(Refusal::Full));
        assert_eq!(put(&mut mailbox, at(50), 0), Ok(()));
    }

    proptest! {
        /// Catches a queue that holds more than it has entries or less than nothing, and reported changes
        /// that are not those of the table: processes that take as they like, more than there is included.
        #[test]
        fn a_queue_holds_what_was_put_and_not_taken(
            steps in prop::collection::vec((any::<bool>(), 0u64..40), 0..200),
        ) {
            let (mut mailbox, p) = (Mailbox::default(), parameters());
            let (mut now, mut state, mut held) = (Time::ZERO, QueueState::Empty, 0u32);
            for (put, ns) in steps {
                now += Span::from_ns(ns);
                if !put {
                    mailbox.take(0, now);
                    continue;
                }
                let mut changes = Vec::new();
                let result = mailbox.put(now, &whole(0), &p, &mut |change| changes.push(change));
                for change in changes {
                    prop_assert_eq!(change.from, state);
                    prop_assert_eq!(Ok(change.to), state.after(change.input, held, p.entries));
                    state = change.to;
                    held = if change.input == QueueInput::Put { held + 1 } else { held - 1 };
                }
                prop_assert_eq!(result.is_err(), state == QueueState::Full && result == Err(Refusal::Full));
                prop_assert!(held <= p.entries && mailbox.held(now) == held as usize);
            }
        }
    }
}
