//! Triggered operations: they wait on a counting event until it has reached their threshold.
//!
//! Those of one counting event start in the order of their thresholds, those of one threshold in the order
//! of the calls.

use crate::counting_event::CountingEvent;
use crate::entry::ListEntry;
use crate::error::PortalsError;
use crate::handle::CountingHandle;
use crate::initiator::Operation;
use crate::match_list::ListKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name that a process has for an entry, before it is on a list and after.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct EntryName(pub u32);

/// The operation that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TriggeredOperation {
    /// A put, get or atomic operation.
    Start(Operation),
    /// `PtlTriggeredCTInc`.
    Increase(CountingHandle, CountingEvent),
    /// `PtlTriggeredCTSet`.
    Set(CountingHandle, CountingEvent),
    /// `PtlTriggeredMEAppend`: the entry gets this name.
    Append(EntryName, (u32, ListKind), ListEntry),
    /// `PtlTriggeredMEUnlink`.
    Unlink(EntryName),
}

/// All triggered operations of an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Triggered {
    waiting: BTreeMap<(CountingHandle, u64, u64), TriggeredOperation>,
    next: u64,
    most: u32,
}

impl Triggered {
    pub fn new(most: u32) -> Triggered {
        Triggered { waiting: BTreeMap::new(), next: 0, most }
    }

    /// Adds an operation that waits for a threshold.
    pub fn insert(
        &mut self,
        counting: CountingHandle,
        threshold: u64,
        operation: TriggeredOperation,
    ) -> Result<(), PortalsError> {
        if self.waiting.len() >= self.most as usize {
            return Err(PortalsError::NoSpace);
        }
        self.waiting.insert((counting, threshold, self.next), operation);
        self.next += 1;
        Ok(())
    }

    /// Takes the next operation of a counting event that starts, with this value.
    pub fn take(&mut self, counting: CountingHandle, value: CountingEvent) -> Option<TriggeredOperation> {
        let all = (counting, 0, 0)..=(counting, u64::MAX, u64::MAX);
        let (&key, _) = self.waiting.range(all).next()?;
        if value.triggers(key.1) { self.waiting.remove(&key) } else { None }
    }

    /// Forgets those of a counting event.
    pub fn cancel(&mut self, counting: CountingHandle) {
        self.waiting.retain(|(of, ..), _| *of != counting);
    }
}
