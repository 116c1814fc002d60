//! The mailbox in the place of its model: the answer to a packet is what the RTL gives.
//!
//! As the tail of a packet comes, the RTL has been stepped up to the header. It is saved, runs ahead until it
//! has answered, and is put back. The head of its queue is stored in the cycle of the footer, as far as the
//! process has moved it by the tail.

use super::NAME;
use super::inputs::{MailboxInputs, MailboxOutputs, MailboxPorts, begin, message};
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::words::{answer_of, edge};
use std::collections::VecDeque;
use std::sync::Arc;
use weft_nic::edge_form::EdgeMailbox;
use weft_nic::gvas::Pdid;
use weft_nic::ports::{SmallPacket, Verdict};
use weft_units::{Clock, EndpointId, Time};

/// Cycles from a tail within which an answer has to come: all slots are full, each of a check of 63 cycles.
/// One that does not come is taken to come then, and found to be missing by the RTL in step.
const MOST_CYCLES: u64 = 1 << 14;

/// A queue, as its process knows it.
#[derive(Clone, Default)]
struct QueueInPlace {
    /// Entries taken and put.
    head: u16,
    tail: u16,
    /// When the process takes entries, as far as that is known, ascending.
    takes: VecDeque<Time>,
}

impl QueueInPlace {
    /// The head at `now`, if it has moved.
    fn moves_head(&mut self, now: Time) -> Option<u16> {
        let before = self.head;
        while self.takes.front().is_some_and(|at| *at <= now) {
            self.takes.pop_front();
            // A process that takes more than there is moves no head.
            if self.head != self.tail {
                self.head = self.head.wrapping_add(1);
            }
        }
        (self.head != before).then_some(self.head)
    }
}

/// The block.
pub(crate) struct MailboxInPlace {
    endpoint: EndpointId,
    clock: Clock,
    rtl: Instance,
    ports: MailboxPorts,
    inputs: MailboxInputs,
    /// By interface.
    queues: Vec<QueueInPlace>,
    /// Packets that have come and whose answers the RTL has still to give.
    unanswered: u64,
}

impl MailboxInPlace {
    /// The mailbox of an endpoint, after its reset.
    pub fn new(
        library: &Arc<RtlLibrary>,
        endpoint: EndpointId,
        clock: Clock,
    ) -> Result<MailboxInPlace, RtlError> {
        let (rtl, ports) = begin(library, endpoint)?;
        let interfaces = library.parameter(NAME, "INTERFACES")? as usize;
        Ok(MailboxInPlace {
            endpoint,
            clock,
            rtl,
            ports,
            inputs: MailboxInputs::default(),
            queues: vec![QueueInPlace::default(); interfaces],
            unanswered: 0,
        })
    }

    fn step(&mut self, cycle: u64) -> MailboxOutputs {
        let outputs = self.inputs.step(&mut self.rtl, &self.ports, cycle);
        self.unanswered -= u64::from(outputs.answer.ends());
        outputs
    }

    /// Steps the RTL as far as before a cycle.
    fn advance(&mut self, before: u64) {
        while let Some(cycle) = self.inputs.next_cycle().filter(|cycle| *cycle < before) {
            self.step(cycle);
        }
    }

    /// Runs ahead to the answer of the packet that has come last.
    fn answer(&mut self, behind: u64) -> Verdict {
        let (mut began, mut words, mut put) = (behind, Vec::new(), false);
        while let Some(cycle) = self.inputs.next_cycle().filter(|cycle| *cycle < behind + MOST_CYCLES) {
            let outputs = self.step(cycle);
            let answer = &outputs.answer;
            if answer.valid != 0 && words.is_empty() {
                (began, put) = (cycle, false);
            }
            put |= outputs.address_valid != 0;
            if answer.valid != 0 {
                words.extend(self.ports.answer_data.on_bus(&answer.words));
            }
            if answer.ends() {
                if self.unanswered == 0 {
                    let refusal = answer_of(words[0], words[1]);
                    return Verdict { checked: self.clock.edge(began), refusal, put };
                }
                words.clear();
            }
        }
        Verdict { checked: self.clock.edge(behind + MOST_CYCLES), refusal: None, put: false }
    }
}

impl EdgeMailbox for MailboxInPlace {
    fn open(&mut self, interface: u16, domain: Pdid, at: Time) {
        if usize::from(interface) < self.queues.len() {
            self.inputs.open(interface, domain, edge(&self.clock, at));
        }
    }

    fn arrive(&mut self, packet: &SmallPacket, tail: Time) -> Verdict {
        let (first, behind) = (edge(&self.clock, packet.head), edge(&self.clock, tail));
        self.advance(first);
        let small = message(self.endpoint, packet);
        self.inputs.packet(self.ports.buses(&small, packet), first, behind);
        let interface = small.to_interface;
        let head = self.queues.get_mut(usize::from(interface)).and_then(|queue| queue.moves_head(tail));
        self.inputs.taken(behind, head.map(|head| (interface, head)));
        self.unanswered += 1;
        let (inputs, unanswered) = (self.inputs.clone(), self.unanswered);
        self.rtl.save();
        let verdict = self.answer(behind);
        self.rtl.restore();
        (self.inputs, self.unanswered) = (inputs, unanswered);
        if verdict.put
            && let Some(queue) = self.queues.get_mut(usize::from(interface))
        {
            queue.tail = queue.tail.wrapping_add(1);
        }
        verdict
    }

    fn take(&mut self, interface: u16, at: Time) {
        let Some(queue) = self.queues.get_mut(usize::from(interface)) else { return };
        let place = queue.takes.partition_point(|other| *other <= at);
        queue.takes.insert(place, at);
    }
}
