//! The mailbox in step with its model.
//!
//! A packet's words are on the bus from the cycle of its header on, the footer in the cycle that ends with
//! the edge of its tail. The head of its queue is written in the cycle of the footer, as far as the process
//! has moved it by then.

use super::inputs::{MailboxInputs, MailboxPorts, OnBus, Targets, begin};
use super::{ENTRY, NAME, base, check};
use crate::block::BlockInStep;
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::words::{AnswerWords, BusWord, edge};
use std::collections::VecDeque;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::mailbox::{QueueChange, QueueInput};
use weft_nic::ports::{Arrival, Crossing, PortEvent, SmallPacket, Verdict};
use weft_units::Time;

/// Cycles of the RTL from the edge of a tail to the answer, at least: look-up and verdict. The model answers
/// at the tail where that comes last, as it does over links that are slower than the interface.
const BEHIND_TAIL: u64 = 4;

/// The block.
pub(crate) struct MailboxInStep {
    place: BlockPlace,
    rtl: Instance,
    ports: MailboxPorts,
    inputs: MailboxInputs,
    answers: VecDeque<BusWord>,
    /// Addresses of entries, by the cycle in which they are on the bus.
    addresses: VecDeque<(u64, u64)>,
    entry_words: VecDeque<BusWord>,
    /// Entries taken and put, by interface.
    heads: Vec<u16>,
    tails: Vec<u16>,
    head_moved: bool,
    entries: u64,
    /// Cycles of a check, and the cycle in which the last one was done.
    check: u64,
    free: u64,
    targets: Targets,
}

impl MailboxInStep {
    /// A small message comes.
    fn arrived(&mut self, arrival: &Arrival, tail: Time) {
        let BlockPlace { clock, endpoint, .. } = self.place;
        let Arrival { packet, verdict: Verdict { checked, refusal, put } } = *arrival;
        let SmallPacket { head, from, message, channel, .. } = packet;
        let small = self.targets.message(endpoint, &packet);
        if put {
            self.targets.remember(&packet);
        }
        self.inputs.packet(&small, &packet, tail, &clock);
        let to_interface = small.to_interface;
        let (first, behind) = (edge(&clock, head), edge(&clock, tail));
        if std::mem::take(&mut self.head_moved)
            && let Some(head) = self.heads.get(usize::from(to_interface))
        {
            self.inputs.head(to_interface, *head, behind.saturating_sub(1));
        }
        let answer = AnswerWords { from: endpoint, to: from, number: message, channel, refusal };
        let done = edge(&clock, checked);
        let done = if self.place.in_place {
            done
        } else {
            let behind_another = if self.free > first { self.free + self.check } else { 0 };
            done.max(behind + BEHIND_TAIL).max(behind_another)
        };
        self.free = done;
        for (place, data) in answer.words().into_iter().enumerate() {
            self.answers.push_back(BusWord { cycle: done + place as u64, data, last: place == 1 });
        }
        if put && let Some(tail) = self.tails.get_mut(usize::from(to_interface)) {
            let index = u64::from(*tail) % self.entries;
            *tail = tail.wrapping_add(1);
            self.addresses.push_back((done, base(to_interface, self.entries) + index * ENTRY));
            for (place, data) in small.entry().into_iter().enumerate() {
                self.entry_words.push_back(BusWord { cycle: done + place as u64, data, last: place == 3 });
            }
        }
    }

    /// Compares a stream of words with those that are to come, and takes those of this cycle.
    fn compare_words(
        place: &BlockPlace,
        cycle: u64,
        expected: &mut VecDeque<BusWord>,
        found: &OnBus,
    ) -> Result<(), Difference> {
        let word = expected.front().copied().filter(|word| word.cycle <= cycle);
        if word.is_some() {
            expected.pop_front();
        }
        let [is_valid, data, is_last] = found.signals;
        place.compare(cycle, is_valid, found.valid, word.is_some().into())?;
        match word {
            Some(word) => {
                place.compare(cycle, data, found.data, word.data)?;
                place.compare(cycle, is_last, found.last, word.last.into())
            }
            None => Ok(()),
        }
    }
}

impl BlockInStep for MailboxInStep {
    fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
        check(library, parameters)
    }

    fn begin(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<MailboxInStep, RtlError> {
        let (rtl, ports) = begin(library, place.endpoint)?;
        let interfaces = library.parameter(NAME, "INTERFACES")? as usize;
        Ok(MailboxInStep {
            place,
            rtl,
            ports,
            inputs: MailboxInputs::default(),
            answers: VecDeque::new(),
            addresses: VecDeque::new(),
            entry_words: VecDeque::new(),
            heads: vec![0; interfaces],
            tails: vec![0; interfaces],
            head_moved: false,
            entries: library.parameter(NAME, "ENTRIES")?,
            check: library.parameter(NAME, "CHECK")?,
            free: 0,
            targets: Targets::default(),
        })
    }

    fn take(&mut self, event: &PortEvent) {
        match &event.what {
            Crossing::Opened { interface, domain } => {
                let Some(tail) = self.tails.get_mut(usize::from(*interface)) else { return };
                (*tail, self.heads[usize::from(*interface)]) = (0, 0);
                self.inputs.open(*interface, *domain, edge(&self.place.clock, event.at));
            }
            Crossing::Queue(QueueChange { interface, input: QueueInput::Take, .. }) => {
                if let Some(head) = self.heads.get_mut(usize::from(*interface)) {
                    *head = head.wrapping_add(1);
                    self.head_moved = true;
                }
            }
            Crossing::Arrived(arrival) => self.arrived(arrival, event.at),
            _ => {}
        }
    }

    fn next_cycle(&self) -> Option<u64> {
        let words = [&self.answers, &self.entry_words].into_iter();
        let expected = words.filter_map(|words| words.front().map(|word| word.cycle)).min();
        let expected = expected.map(|cycle| cycle.max(self.inputs.cycle));
        self.inputs.next_cycle().into_iter().chain(expected).min()
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let outputs = self.inputs.step(&mut self.rtl, &self.ports, cycle);
        let place = &self.place;
        Self::compare_words(place, cycle, &mut self.answers, &outputs.answer)?;
        let expected = self.addresses.front().copied().filter(|(at, _)| *at <= cycle);
        if expected.is_some() {
            self.addresses.pop_front();
        }
        place.compare(cycle, "m_axi_awvalid", outputs.address_valid, expected.is_some().into())?;
        if let Some((_, expected)) = expected {
            place.compare(cycle, "m_axi_awaddr", outputs.address, expected.into())?;
        }
        Self::compare_words(place, cycle, &mut self.entry_words, &outputs.entry)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}
