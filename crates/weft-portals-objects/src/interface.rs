//! A network interface of one process: its objects, and the calls that make and free them.
//!
//! ```text
//!              ┌ memory descriptors ── initiator ─► outbox ─► ...
//!   process ───┤ event queues, counting events ◄── both
//!              └ portal table, lists ── target ◄─ request
//! ```
//! Pure logic: it knows neither network nor time. Whoever owns it carries its
//! [outgoing](NetworkInterface::outgoing) messages, hands it those that come, and charges the time of the
//! entries that were searched.

use crate::counting_event::CountingEvent;
use crate::entry::{Linked, ListEntry};
use crate::error::{Outcome, PortalsError};
use crate::event_queue::{Event, EventKind, EventQueue};
use crate::handle::{CountingHandle, DescriptorHandle, EntryHandle, Objects, QueueHandle};
use crate::initiator::Pending;
use crate::limits::Limits;
use crate::match_list::ListKind;
use crate::memory::Memory;
use crate::memory_descriptor::MemoryDescriptor;
use crate::portal_table::{PortalTable, TableEntryOptions};
use crate::request::{Initiator, OutgoingRequest, ProcessId};
use crate::triggered::{EntryName, Triggered, TriggeredOperation};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Operations that may wait for their responses.
const MOST_PENDING: u32 = 1 << 20;

/// Names of entries that are gone, beside as many as there are entries, before they are looked through.
const NAMES_LEFT_BEHIND: usize = 1024;

/// Counts of messages that the interface has not carried out (`PTL_SR_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StatusRegisters {
    /// `PTL_SR_DROP_COUNT`.
    pub dropped: u64,
    /// `PTL_SR_PERMISSION_VIOLATIONS`.
    pub permission_violations: u64,
    /// `PTL_SR_OPERATION_VIOLATIONS`.
    pub operation_violations: u64,
}

/// The interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NetworkInterface {
    own: Initiator,
    limits: Limits,
    pub(super) table: PortalTable,
    pub(super) descriptors: Objects<MemoryDescriptor>,
    queues: Objects<EventQueue>,
    countings: Objects<CountingEvent>,
    pub(super) pending: Objects<Pending>,
    triggered: Triggered,
    /// Entries by the process's names for them.
    named: BTreeMap<EntryName, EntryHandle>,
    /// Headers that triggered operations have looked at, and nobody has charged.
    searched: u32,
    /// Counting events that have changed, and may trigger operations.
    changed: VecDeque<CountingHandle>,
    outbox: VecDeque<OutgoingRequest>,
    pub(super) bundles: u32,
    pub(super) entries: u32,
    pub(super) unexpected: u32,
    pub(super) status: StatusRegisters,
}

impl NetworkInterface {
    /// The interface of a process that asks for these limits.
    pub fn new(own: Initiator, wanted: &Limits) -> NetworkInterface {
        let limits = wanted.granted();
        NetworkInterface {
            own,
            limits,
            table: PortalTable::new(limits.portal_index),
            descriptors: Objects::new(limits.memory_descriptors),
            queues: Objects::new(limits.event_queues),
            countings: Objects::new(limits.counting_events),
            pending: Objects::new(MOST_PENDING),
            triggered: Triggered::new(limits.triggered),
            named: BTreeMap::new(),
            searched: 0,
            changed: VecDeque::new(),
            outbox: VecDeque::new(),
            bundles: 0,
            entries: 0,
            unexpected: 0,
            status: StatusRegisters::default(),
        }
    }

    /// The limits that it grants.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The process, as targets learn it.
    pub fn initiator(&self) -> Initiator {
        self.own
    }

    /// The process gets another name: with logical addresses, its rank.
    pub fn rename(&mut self, process: ProcessId) {
        self.own.process = process;
    }

    /// Takes the next message for another interface. None while a bundle is open.
    pub fn outgoing(&mut self) -> Option<OutgoingRequest> {
        if self.bundles > 0 { None } else { self.outbox.pop_front() }
    }

    pub(super) fn send(&mut self, message: OutgoingRequest) {
        self.outbox.push_back(message);
    }

    /// The status registers.
    pub fn status(&self) -> StatusRegisters {
        self.status
    }

    /// `PtlPTAlloc`.
    ///
    /// # Errors
    /// See [`PortalTable::allocate`]; a queue that is not there.
    pub fn allocate_table_entry(
        &mut self,
        wish: Option<u32>,
        options: TableEntryOptions,
        queue: Option<QueueHandle>,
    ) -> Result<u32, PortalsError> {
        if let Some(queue) = queue {
            self.queues.get(queue.0)?;
        }
        self.table.allocate(wish, options, queue)
    }

    /// `PtlPTFree`.
    ///
    /// # Errors
    /// See [`PortalTable::free`].
    pub fn free_table_entry(&mut self, index: u32) -> Result<(), PortalsError> {
        self.table.free(index)
    }

    /// `PtlPTEnable`, `PtlPTDisable`.
    ///
    /// # Errors
    /// An entry that is not allocated.
    pub fn enable_table_entry(&mut self, index: u32, enabled: bool) -> Result<(), PortalsError> {
        self.table.get_mut(index)?.enabled = enabled;
        Ok(())
    }

    /// `PtlMDBind`.
    ///
    /// # Errors
    /// Queues or counting events that are not there; no space.
    pub fn bind(&mut self, descriptor: MemoryDescriptor) -> Result<DescriptorHandle, PortalsError> {
        self.check_reports(descriptor.queue, descriptor.counting)?;
        Ok(DescriptorHandle(self.descriptors.insert(descriptor)?))
    }

    /// `PtlMDRelease`.
    ///
    /// # Errors
    /// A descriptor that is not there.
    pub fn release(&mut self, descriptor: DescriptorHandle) -> Result<(), PortalsError> {
        self.descriptors.remove(descriptor.0).map(drop)
    }

    fn check_reports(
        &self,
        queue: Option<QueueHandle>,
        counting: Option<CountingHandle>,
    ) -> Result<(), PortalsError> {
        queue.map_or(Ok(()), |queue| self.queues.get(queue.0).map(drop))?;
        counting.map_or(Ok(()), |counting| self.countings.get(counting.0).map(drop))
    }

    /// `PtlEQAlloc`.
    ///
    /// # Errors
    /// No space.
    pub fn allocate_queue(&mut self, events: usize) -> Result<QueueHandle, PortalsError> {
        if events > EventQueue::MOST_EVENTS {
            return Err(PortalsError::NoSpace);
        }
        Ok(QueueHandle(self.queues.insert(EventQueue::new(events))?))
    }

    /// `PtlEQFree`.
    ///
    /// # Errors
    /// A queue that is not there.
    pub fn free_queue(&mut self, queue: QueueHandle) -> Result<(), PortalsError> {
        self.queues.remove(queue.0).map(drop)
    }

    /// The kind of the oldest event of a queue.
    ///
    /// # Errors
    /// A queue that is not there or empty.
    pub fn next_event(&self, queue: QueueHandle) -> Result<EventKind, PortalsError> {
        self.queues.get(queue.0)?.first().map(|event| event.kind).ok_or(PortalsError::QueueEmpty)
    }

    /// `PtlEQGet`: the oldest event, and whether others before it were lost.
    ///
    /// # Errors
    /// A queue that is not there or empty.
    pub fn take_event(&mut self, queue: QueueHandle) -> Result<(Event, bool), PortalsError> {
        self.queues.get_mut(queue.0)?.take().ok_or(PortalsError::QueueEmpty)
    }

    /// Events that a queue has room for.
    pub(super) fn room(&self, queue: Option<QueueHandle>) -> usize {
        let queue = queue.and_then(|queue| self.queues.get(queue.0).ok());
        queue.map_or(usize::MAX, EventQueue::room)
    }

    /// Adds a full event to a queue.
    pub(super) fn report(&mut self, queue: Option<QueueHandle>, event: Event) {
        if let Some(queue) = queue.and_then(|queue| self.queues.get_mut(queue.0).ok()) {
            queue.push(event);
        }
    }

    /// `PtlCTAlloc`.
    ///
    /// # Errors
    /// No space.
    pub fn allocate_counting(&mut self) -> Result<CountingHandle, PortalsError> {
        Ok(CountingHandle(self.countings.insert(CountingEvent::default())?))
    }

    /// `PtlCTFree`: operations that wait on it are forgotten.
    ///
    /// # Errors
    /// A counting event that is not there.
    pub fn free_counting(&mut self, counting: CountingHandle) -> Result<(), PortalsError> {
        self.countings.remove(counting.0)?;
        self.triggered.cancel(counting);
        Ok(())
    }

    /// `PtlCTGet`.
    ///
    /// # Errors
    /// A counting event that is not there.
    pub fn counted(&self, counting: CountingHandle) -> Result<CountingEvent, PortalsError> {
        self.countings.get(counting.0).copied()
    }

    /// `PtlCTSet`.
    ///
    /// # Errors
    /// A counting event that is not there.
    pub fn set_counting(
        &mut self,
        counting: CountingHandle,
        value: CountingEvent,
        memory: &mut impl Memory,
    ) -> Result<(), PortalsError> {
        *self.countings.get_mut(counting.0)? = value;
        self.changed.push_back(counting);
        self.run_triggered(memory);
        Ok(())
    }

    /// `PtlCTInc`.
    ///
    /// # Errors
    /// A counting event that is not there.
    pub fn increase_counting(
        &mut self,
        counting: CountingHandle,
        by: CountingEvent,
        memory: &mut impl Memory,
    ) -> Result<(), PortalsError> {
        self.countings.get_mut(counting.0)?.increase(by);
        self.changed.push_back(counting);
        self.run_triggered(memory);
        Ok(())
    }

    /// Counts an operation: its bytes where they are given, one otherwise; a failure where it failed.
    pub(super) fn count(
        &mut self,
        counting: Option<CountingHandle>,
        (outcome, bytes): (Outcome, Option<u64>),
    ) {
        let Some(counting) = counting else { return };
        let Ok(event) = self.countings.get_mut(counting.0) else { return };
        let (success, failure) = if outcome == Outcome::Ok { (bytes.unwrap_or(1), 0) } else { (0, 1) };
        event.increase(CountingEvent { success, failure });
        self.changed.push_back(counting);
    }

    /// `PtlTriggered…`: starts an operation when a counting event has reached the threshold.
    ///
    /// # Errors
    /// A counting event that is not there, an operation that could not be started, no space.
    pub fn trigger(
        &mut self,
        (counting, threshold): (CountingHandle, u64),
        operation: TriggeredOperation,
        memory: &mut impl Memory,
    ) -> Result<(), PortalsError> {
        self.countings.get(counting.0)?;
        match &operation {
            TriggeredOperation::Start(operation) => self.check(operation)?,
            TriggeredOperation::Increase(other, _) | TriggeredOperation::Set(other, _) => {
                self.countings.get(other.0)?;
            }
            TriggeredOperation::Append(_, place, entry) => self.check_append(*place, entry)?,
            TriggeredOperation::Unlink(_) => {}
        }
        self.triggered.insert(counting, threshold, operation)?;
        self.changed.push_back(counting);
        self.run_triggered(memory);
        Ok(())
    }

    /// `PtlCTCancelTriggered`.
    ///
    /// # Errors
    /// A counting event that is not there.
    pub fn cancel_triggered(&mut self, counting: CountingHandle) -> Result<(), PortalsError> {
        self.countings.get(counting.0)?;
        self.triggered.cancel(counting);
        Ok(())
    }

    /// Starts the operations whose counting events have reached their thresholds.
    pub(super) fn run_triggered(&mut self, memory: &mut impl Memory) {
        while let Some(counting) = self.changed.pop_front() {
            while let Ok(value) = self.countings.get(counting.0).copied() {
                let Some(operation) = self.triggered.take(counting, value) else { break };
                match operation {
                    TriggeredOperation::Start(operation) => {
                        // Its descriptor may have gone since: there is nobody to tell.
                        let _ = self.begin(&operation, memory);
                    }
                    TriggeredOperation::Increase(other, by) => {
                        if let Ok(event) = self.countings.get_mut(other.0) {
                            event.increase(by);
                            self.changed.push_back(other);
                        }
                    }
                    TriggeredOperation::Set(other, value) => {
                        if let Ok(event) = self.countings.get_mut(other.0) {
                            *event = value;
                            self.changed.push_back(other);
                        }
                    }
                    TriggeredOperation::Append(name, place, entry) => {
                        // Its table entry may have gone since, or be full: again there is nobody to tell.
                        if let Ok((handle, searched)) = self.link(place, entry) {
                            self.name(name, handle);
                            self.searched = self.searched.saturating_add(searched);
                        }
                    }
                    TriggeredOperation::Unlink(name) => {
                        let _ = self.unlink_named(name);
                    }
                }
            }
        }
    }

    /// Headers that triggered operations have looked at since this was asked last.
    pub fn take_searched(&mut self) -> u32 {
        std::mem::take(&mut self.searched)
    }

    /// `PtlMEAppend`, `PtlLEAppend`. On the priority list it is first compared with the messages that have
    /// come before. Returns the entry, and how many headers were looked at.
    ///
    /// # Errors
    /// A portal table entry that is not allocated or does not allow the options, a counting event that is not
    /// there, no space.
    pub fn append(
        &mut self,
        (portal, list): (u32, ListKind),
        entry: ListEntry,
        memory: &mut impl Memory,
    ) -> Result<(EntryHandle, u32), PortalsError> {
        let linked = self.link((portal, list), entry)?;
        self.run_triggered(memory);
        Ok(linked)
    }

    /// Whether an entry may be appended, room aside.
    fn check_append(&mut self, (portal, _): (u32, ListKind), entry: &ListEntry) -> Result<(), PortalsError> {
        self.check_reports(None, entry.counting)?;
        let options = self.table.get(portal)?.options;
        if options.only_use_once && !entry.options.use_once
            || options.only_truncate && entry.options.no_truncation
        {
            return Err(PortalsError::ArgumentInvalid);
        }
        Ok(())
    }

    fn link(
        &mut self,
        (portal, list): (u32, ListKind),
        entry: ListEntry,
    ) -> Result<(EntryHandle, u32), PortalsError> {
        self.check_append((portal, list), &entry)?;
        let table_entry = self.table.get_mut(portal)?;
        if table_entry.list(list).len() >= self.limits.list as usize {
            return Err(PortalsError::ListTooLong);
        }
        if self.entries >= self.limits.entries {
            return Err(PortalsError::NoSpace);
        }
        let mut linked = Linked::new(entry);
        let (searched, stays) = match list {
            ListKind::Priority => self.take_unexpected(portal, &mut linked),
            ListKind::Overflow => (0, true),
        };
        let entry = linked.entry.clone();
        let number = self.table.get_mut(portal)?.list(list).append(linked);
        let handle = EntryHandle { portal, list, number };
        if stays {
            self.entries += 1;
            self.report_link(portal, &entry);
        } else {
            self.table.get_mut(portal)?.list(list).remove(number);
        }
        Ok((handle, searched))
    }

    /// Names an entry that has been appended.
    pub fn name(&mut self, name: EntryName, entry: EntryHandle) {
        // Entries that unlink themselves leave their names behind.
        if self.named.len() > 2 * self.entries as usize + NAMES_LEFT_BEHIND {
            let table = &mut self.table;
            self.named.retain(|_, of| {
                table.get_mut(of.portal).is_ok_and(|entry| entry.list(of.list).get(of.number).is_some())
            });
        }
        self.named.insert(name, entry);
    }

    /// `PtlMEUnlink` of an entry by its name.
    ///
    /// # Errors
    /// As [`NetworkInterface::unlink`]; a name that no entry has.
    pub fn unlink_named(&mut self, name: EntryName) -> Result<(), PortalsError> {
        let entry = *self.named.get(&name).ok_or(PortalsError::ArgumentInvalid)?;
        self.unlink(entry)?;
        self.named.remove(&name);
        Ok(())
    }

    /// `PtlMEUnlink`, `PtlLEUnlink`.
    ///
    /// # Errors
    /// An entry that is not there, or whose messages wait to be taken.
    pub fn unlink(&mut self, handle: EntryHandle) -> Result<(), PortalsError> {
        let list = self.table.get_mut(handle.portal)?.list(handle.list);
        let linked = list.get(handle.number).ok_or(PortalsError::ArgumentInvalid)?;
        if linked.headers > 0 {
            return Err(PortalsError::InUse);
        }
        list.remove(handle.number);
        self.entries -= 1;
        Ok(())
    }
}
