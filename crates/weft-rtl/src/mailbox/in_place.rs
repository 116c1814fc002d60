//! The mailbox in the place of its model: the answer to a packet is what the RTL gives.
//!
//! As the tail of a packet comes, the RTL has been stepped up to the header. It is saved, runs ahead until it
//! has answered, and is put back. A head is stored in the cycle that begins when its process has taken the
//! entry.

use super::NAME;
use super::inputs::{MailboxInputs, MailboxOutputs, MailboxPorts, begin, message};
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::words::{answer_of, edge};
use std::sync::Arc;
use weft_nic::edge_form::EdgeMailbox;
use weft_nic::gvas::Pdid;
use weft_nic::ports::{SmallPacket, Verdict};
use weft_units::{Clock, EndpointId, Time};

/// Cycles from a tail within which an answer has to come: all slots are full, each of a check of 63 cycles.
/// One that does not come is taken to come then, and found to be missing by the RTL in step.
const MOST_CYCLES: u64 = 1 << 14;

/// The block.
pub(crate) struct MailboxInPlace {
    endpoint: EndpointId,
    clock: Clock,
    rtl: Instance,
    ports: MailboxPorts,
    inputs: MailboxInputs,
    /// Entries taken and put, by interface.
    heads: Vec<u16>,
    tails: Vec<u16>,
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
            heads: vec![0; interfaces],
            tails: vec![0; interfaces],
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
        let Some(tail) = self.tails.get_mut(usize::from(interface)) else { return };
        (*tail, self.heads[usize::from(interface)]) = (0, 0);
        self.inputs.open(interface, domain, edge(&self.clock, at));
    }

    fn arrive(&mut self, packet: &SmallPacket, tail: Time) -> Verdict {
        let (first, behind) = (edge(&self.clock, packet.head), edge(&self.clock, tail));
        self.advance(first);
        let small = message(self.endpoint, packet);
        self.inputs.packet(self.ports.buses(&small, packet), first, behind);
        self.unanswered += 1;
        let (inputs, unanswered) = (self.inputs.clone(), self.unanswered);
        self.rtl.save();
        let verdict = self.answer(behind);
        self.rtl.restore();
        (self.inputs, self.unanswered) = (inputs, unanswered);
        if verdict.put
            && let Some(tail) = self.tails.get_mut(usize::from(small.to_interface))
        {
            *tail = tail.wrapping_add(1);
        }
        verdict
    }

    fn take(&mut self, interface: u16, at: Time) {
        let place = usize::from(interface);
        let (Some(head), Some(tail)) = (self.heads.get_mut(place), self.tails.get(place)) else { return };
        // A process that takes more than there is moves no head.
        if head != tail {
            *head = head.wrapping_add(1);
            self.inputs.head(interface, *head, edge(&self.clock, at));
        }
    }
}
