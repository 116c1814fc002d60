//! The mailbox in step with its model.
//!
//! A packet's words are on the bus from the cycle of its header on, the footer in the cycle that ends with
//! the edge of its tail. The head of its queue is written in the cycle of the footer, as far as the process
//! has moved it by then. A packet for which the model has no slot is on the bus all the same, and the RTL
//! takes its header in the model's cycle.

use super::inputs::{Beat, MailboxInputs, MailboxPorts, OnBus, begin, message};
use super::{ENTRY, NAME, base, check};
use crate::block::BlockInStep;
use crate::bus::BusWords;
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::words::{AnswerWords, edge};
use std::collections::VecDeque;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::mailbox::{QueueChange, QueueInput};
use weft_nic::ports::{Arrival, Crossing, PortEvent, SmallPacket, Verdict};
use weft_units::Time;

/// The block.
pub(crate) struct MailboxInStep {
    place: BlockPlace,
    rtl: Instance,
    ports: MailboxPorts,
    inputs: MailboxInputs,
    answers: VecDeque<Beat>,
    /// Addresses of entries, by the cycle in which they are on the bus.
    addresses: VecDeque<(u64, u64)>,
    entry_words: VecDeque<Beat>,
    /// Cycles in which headers are taken; those of buses of several words are not compared.
    headers: VecDeque<u64>,
    /// Packets on the bus for which the model has had no slot.
    waiting: usize,
    /// Entries taken and put, by interface.
    heads: Vec<u16>,
    tails: Vec<u16>,
    head_moved: bool,
    entries: u64,
}

impl MailboxInStep {
    /// A small message comes, the last word of it at `tail`.
    fn comes(&mut self, packet: &SmallPacket, tail: Time) {
        let BlockPlace { clock, endpoint, .. } = self.place;
        let buses = self.ports.buses(&message(endpoint, packet), packet);
        self.inputs.packet(buses, edge(&clock, packet.head), edge(&clock, tail));
    }

    /// A small message is taken.
    fn arrived(&mut self, arrival: &Arrival, tail: Time) {
        let BlockPlace { clock, endpoint, .. } = self.place;
        let Arrival { packet, verdict: Verdict { checked, refusal, put } } = *arrival;
        let SmallPacket { from, message: number, channel, .. } = packet;
        let small = message(endpoint, &packet);
        let behind = edge(&clock, tail);
        match self.waiting.checked_sub(1) {
            Some(others) => self.waiting = others,
            None => self.comes(&packet, tail),
        }
        if !self.ports.answer_data.is_wide() {
            self.headers.push_back(edge(&clock, packet.head));
        }
        let to_interface = small.to_interface;
        let head = self.heads.get(usize::from(to_interface)).filter(|_| std::mem::take(&mut self.head_moved));
        self.inputs.taken(behind, head.map(|head| (to_interface, *head)));
        let answer = AnswerWords { from: endpoint, to: from, number, channel, refusal };
        let done = edge(&clock, checked);
        self.answers.extend(beats(done, self.ports.answer_data.side_by_side(&answer.words())));
        if put && let Some(tail) = self.tails.get_mut(usize::from(to_interface)) {
            let index = u64::from(*tail) % self.entries;
            *tail = tail.wrapping_add(1);
            self.addresses.push_back((done, base(to_interface, self.entries) + index * ENTRY));
            self.entry_words.extend(beats(done, self.ports.w_data.side_by_side(&small.entry())));
        }
    }

    /// Compares a stream of words with those that are to come, and takes those of this cycle.
    fn compare_words(
        place: &BlockPlace,
        cycle: u64,
        expected: &mut VecDeque<Beat>,
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
                for (found, word) in found.words.into_iter().zip(word.words) {
                    place.compare(cycle, data, found, word)?;
                }
                place.compare(cycle, is_last, found.last, word.last.into())
            }
            None => Ok(()),
        }
    }
}

/// Words on a bus, from a cycle on, one bus after the other.
fn beats(from: u64, buses: Vec<BusWords>) -> impl Iterator<Item = Beat> {
    let last = buses.len() - 1;
    let beat = move |(place, words)| Beat {
        cycle: from + place as u64,
        words,
        first: place == 0,
        last: place == last,
    };
    buses.into_iter().enumerate().map(beat)
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
            headers: VecDeque::new(),
            waiting: 0,
            heads: vec![0; interfaces],
            tails: vec![0; interfaces],
            head_moved: false,
            entries: library.parameter(NAME, "ENTRIES")?,
        })
    }

    fn take(&mut self, event: &PortEvent) {
        match &event.what {
            Crossing::Opened { interface, domain } if usize::from(*interface) < self.tails.len() => {
                self.inputs.open(*interface, *domain, edge(&self.place.clock, event.at));
            }
            Crossing::Queue(QueueChange { interface, input: QueueInput::Take, .. }) => {
                if let Some(head) = self.heads.get_mut(usize::from(*interface)) {
                    *head = head.wrapping_add(1);
                    self.head_moved = true;
                }
            }
            Crossing::Waits(packet) => {
                self.comes(packet, event.at);
                self.waiting += 1;
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
            for (signal, port, value) in self.ports.burst {
                place.compare(cycle, signal, self.rtl.get(port), value)?;
            }
        }
        if outputs.entry.valid != 0 {
            let (port, all) = self.ports.strobes;
            place.compare(cycle, "m_axi_wstrb", self.rtl.get(port), all)?;
        }
        Self::compare_words(place, cycle, &mut self.entry_words, &outputs.entry)?;
        if let Some(takes) = outputs.takes_header.filter(|_| !self.ports.answer_data.is_wide()) {
            let expected = self.headers.front().is_some_and(|header| *header <= cycle);
            if takes {
                self.headers.pop_front();
            }
            place.compare(cycle, "s_axis_net_tready", takes.into(), expected.into())?;
        }
        Ok(())
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}
