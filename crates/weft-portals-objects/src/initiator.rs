//! The initiator: operations on the memory of others, their responses, and bundles.
//!
//! ```text
//!   call ─► data is read ─► request ─► SEND      ...      response ─► ACK or REPLY
//! ```
//! The data of a put is read in the call, so that it has been sent when the call returns.

use crate::atomic::{AtomicOperation, DataType};
use crate::error::{Outcome, PortalsError};
use crate::event_queue::{Event, EventKind};
use crate::handle::DescriptorHandle;
use crate::interface::NetworkInterface;
use crate::memory::Memory;
use crate::memory_descriptor::MemoryDescriptor;
use crate::request::{Acknowledgement, Action, Header, OutgoingRequest, ProcessId, Request, Response};
use serde::{Deserialize, Serialize};

/// A place in a memory descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DescriptorPlace {
    /// The descriptor.
    pub descriptor: DescriptorHandle,
    /// The offset in it.
    pub offset: u64,
}

/// A put, get or atomic operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// The action at the target.
    pub action: Action,
    /// The data that goes to the target; `None`: of a get.
    pub from: Option<DescriptorPlace>,
    /// The place for the data that comes back; `None`: of a put.
    pub into: Option<DescriptorPlace>,
    /// Bytes.
    pub length: u64,
    /// The acknowledgement that is wanted.
    pub acknowledgement: Acknowledgement,
    /// The target.
    pub target: ProcessId,
    /// The index of the portal table there.
    pub portal: u32,
    /// Match bits.
    pub match_bits: u64,
    /// The offset there.
    pub remote_offset: u64,
    /// The process's word, for events.
    pub word: u64,
    /// A word for the target's event.
    pub header_data: u64,
    /// The operand of a swap that compares or masks.
    pub operand: Vec<u8>,
}

/// An operation whose response is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Pending {
    place: DescriptorPlace,
    /// Whether data comes back.
    replies: bool,
    acknowledgement: Acknowledgement,
    length: u64,
    word: u64,
}

impl NetworkInterface {
    /// Starts an operation.
    ///
    /// # Errors
    /// A descriptor that is not there, a place beyond it, more bytes than the limits grant, an operation that
    /// is not defined for its elements.
    pub fn start(&mut self, operation: &Operation, memory: &mut impl Memory) -> Result<(), PortalsError> {
        self.begin(operation, memory)?;
        self.run_triggered(memory);
        Ok(())
    }

    /// Checks an operation, as calls and triggered calls do.
    pub(super) fn check(&self, operation: &Operation) -> Result<(), PortalsError> {
        let limits = self.limits();
        let most = match operation.action {
            Action::Put | Action::Get => limits.message,
            Action::Atomic(..) => limits.atomic,
            Action::FetchAtomic(..) => limits.fetch_atomic,
        };
        let of_atomic = match operation.action {
            Action::Atomic(how, of) | Action::FetchAtomic(how, of) => Some((how, of)),
            _ => None,
        };
        let fits = of_atomic.is_none_or(|(how, of)| elements_fit(how, of, operation));
        if operation.length > most || !fits {
            return Err(PortalsError::ArgumentInvalid);
        }
        for place in [operation.from, operation.into].into_iter().flatten() {
            let length = self.descriptors.get(place.descriptor.0)?.region.length();
            if place.offset.checked_add(operation.length).is_none_or(|end| end > length) {
                return Err(PortalsError::ArgumentInvalid);
            }
        }
        Ok(())
    }

    /// Starts an operation, without what it triggers.
    pub(super) fn begin(&mut self, operation: &Operation, memory: &impl Memory) -> Result<(), PortalsError> {
        self.check(operation)?;
        let data = match operation.from {
            None => Vec::new(),
            Some(place) => {
                let region = &self.descriptors.get(place.descriptor.0)?.region;
                let data = region.read(place.offset, operation.length, memory);
                data.ok_or(PortalsError::ArgumentInvalid)?
            }
        };
        let waits = operation.into.or(operation.from.filter(|_| wants_response(operation.acknowledgement)));
        let number = match waits {
            None => None,
            Some(place) => Some(self.pending.insert(Pending {
                place,
                replies: operation.into.is_some(),
                acknowledgement: operation.acknowledgement,
                length: operation.length,
                word: operation.word,
            })?),
        };
        let Operation { action, portal, match_bits, remote_offset, length, header_data, .. } = *operation;
        let initiator = self.initiator();
        let header = Header { initiator, action, portal, match_bits, remote_offset, length, header_data };
        let operand = operation.operand.clone();
        self.send(OutgoingRequest::Request(
            operation.target,
            Request { header, operation: number, data, operand },
        ));
        if let Some(place) = operation.from {
            self.sent(place.descriptor, operation);
        }
        Ok(())
    }

    /// The data has been sent.
    fn sent(&mut self, descriptor: DescriptorHandle, operation: &Operation) {
        let Ok(MemoryDescriptor { options, queue, counting, .. }) = self.descriptors.get(descriptor.0) else {
            return;
        };
        let (options, queue, counting) = (*options, *queue, *counting);
        if !options.no_success_events && !options.no_send_events {
            let moved = operation.length;
            let event = Event::new(EventKind::Send, Outcome::Ok);
            self.report(queue, Event { user: operation.word, moved, ..event });
        }
        if options.counts_sends {
            self.count(counting, (Outcome::Ok, options.counts_bytes.then_some(operation.length)));
        }
    }

    /// A response has come. One that nobody waits for is ignored.
    pub fn respond(&mut self, response: &Response, memory: &mut impl Memory) {
        let Ok(pending) = self.pending.remove(response.operation) else { return };
        if let Ok(descriptor) = self.descriptors.get(pending.place.descriptor.0) {
            let MemoryDescriptor { region, options, queue, counting } = descriptor.clone();
            let mut outcome = response.outcome;
            let comes = pending.replies && outcome == Outcome::Ok;
            let fits = response.data.len() as u64 <= pending.length;
            if comes && (!fits || region.write(pending.place.offset, &response.data, memory).is_none()) {
                outcome = Outcome::Fault;
            }
            let kind = if pending.replies { EventKind::Reply } else { EventKind::Ack };
            let full = pending.replies || pending.acknowledgement == Acknowledgement::Full;
            let fails = outcome != Outcome::Ok;
            let silent = response.silent && !pending.replies && !fails;
            if full && !silent && (fails || !options.no_success_events) {
                let (list, moved, remote_offset) = (response.list, response.moved, response.remote_offset);
                let event = Event::new(kind, outcome);
                self.report(queue, Event { user: pending.word, list, moved, remote_offset, ..event });
            }
            let counts =
                if pending.replies { options.counts_replies } else { options.counts_acknowledgements };
            if counts && !silent {
                let completed = pending.acknowledgement == Acknowledgement::Completed && !pending.replies;
                // Without the bytes that were moved, those that were sent are counted.
                let bytes = if completed { pending.length } else { response.moved };
                self.count(counting, (outcome, options.counts_bytes.then_some(bytes)));
            }
        }
        self.run_triggered(memory);
    }

    /// `PtlStartBundle`: what is sent is held back until the bundle ends.
    pub fn start_bundle(&mut self) {
        self.bundles += 1;
    }

    /// `PtlEndBundle`.
    ///
    /// # Errors
    /// No bundle has been started.
    pub fn end_bundle(&mut self) -> Result<(), PortalsError> {
        self.bundles = self.bundles.checked_sub(1).ok_or(PortalsError::ArgumentInvalid)?;
        Ok(())
    }
}

fn wants_response(acknowledgement: Acknowledgement) -> bool {
    acknowledgement != Acknowledgement::None
}

/// Whether the bytes are whole elements, and the operation is defined for them and has its operand.
fn elements_fit(how: AtomicOperation, of: DataType, operation: &Operation) -> bool {
    let width = of.width() as u64;
    let whole = operation.length % width == 0;
    // A swap that compares or masks is of one element.
    let operand = !how.takes_operand() || operation.length == width && operation.operand.len() >= of.width();
    let swaps = how == AtomicOperation::Swap || how.takes_operand();
    let fetches = matches!(operation.action, Action::FetchAtomic(..));
    how.is_for(of) && whole && operand && (!swaps || fetches)
}
