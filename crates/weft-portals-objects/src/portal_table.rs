//! The portal table: of each entry, its lists, its event queue, and whether it takes messages.
//!
//! ```text
//!              allocate                disable, or flow control
//!   free ────────────────► enabled ──────────────────────────────► disabled
//!    ▲                      │  ▲                                     │
//!    └──────── free ────────┘  └──────────── enable ────────────────┘
//! ```

use crate::entry::Linked;
use crate::error::PortalsError;
use crate::handle::QueueHandle;
use crate::match_list::{EntryNumber, ListKind, Listed, MatchList};
use crate::request::Header;
use serde::{Deserialize, Serialize};

/// Options of a portal table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TableEntryOptions {
    /// `PTL_PT_FLOWCTRL`: what has no room disables the entry.
    pub flow_control: bool,
    /// `PTL_PT_ONLY_USE_ONCE`: all its list entries are used once.
    pub only_use_once: bool,
    /// `PTL_PT_ONLY_TRUNCATE`: no list entry asks not to truncate.
    pub only_truncate: bool,
    /// `PTL_PT_MATCH_UNORDERED`: lists may be searched in any order: those that match exactly by a table, at
    /// the cost of one entry, then the others.
    pub match_unordered: bool,
    /// `PTL_PT_ALLOC_DISABLED`: takes no messages until it is enabled.
    pub begins_disabled: bool,
}

/// The header of a message that an entry of the overflow list has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnexpectedHeader {
    /// The header.
    pub header: Header,
    /// The entry that has the data.
    pub entry: EntryNumber,
    /// The address of the data.
    pub start: u64,
    /// The offset of the data in the entry.
    pub offset: u64,
    /// Bytes that were moved.
    pub moved: u64,
}

impl Listed for UnexpectedHeader {
    fn exact_bits(&self) -> Option<u64> {
        Some(self.header.match_bits)
    }
}

/// An entry of the portal table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableEntry {
    /// Options.
    pub options: TableEntryOptions,
    /// The queue of full events.
    pub queue: Option<QueueHandle>,
    /// Whether it takes messages.
    pub enabled: bool,
    /// The priority list.
    pub priority: MatchList<Linked>,
    /// The overflow list.
    pub overflow: MatchList<Linked>,
    /// The headers of messages that the overflow list has taken.
    pub unexpected: MatchList<UnexpectedHeader>,
}

impl TableEntry {
    fn new(options: TableEntryOptions, queue: Option<QueueHandle>) -> TableEntry {
        let (priority, overflow, unexpected) = Default::default();
        TableEntry { options, queue, enabled: !options.begins_disabled, priority, overflow, unexpected }
    }

    /// One of its lists.
    pub fn list(&mut self, kind: ListKind) -> &mut MatchList<Linked> {
        match kind {
            ListKind::Priority => &mut self.priority,
            ListKind::Overflow => &mut self.overflow,
        }
    }

    /// The list and entry that a message is for, and the entries that were looked at.
    pub fn search(&self, header: &Header) -> (Option<(ListKind, EntryNumber)>, u32) {
        let accepts = |linked: &Linked| !linked.unlinked && linked.entry.accepts(header, linked.used);
        let find = |list: &MatchList<Linked>| match self.options.match_unordered {
            true => list.find_unordered(header.match_bits, accepts),
            false => list.find(Some(header.match_bits), accepts),
        };
        let first = find(&self.priority);
        if let Some(number) = first.entry {
            return (Some((ListKind::Priority, number)), first.searched);
        }
        let second = find(&self.overflow);
        (second.entry.map(|number| (ListKind::Overflow, number)), first.searched + second.searched)
    }
}

/// The table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortalTable {
    entries: Vec<Option<TableEntry>>,
}

impl PortalTable {
    /// A table whose highest index is `highest`.
    pub fn new(highest: u32) -> PortalTable {
        PortalTable { entries: (0..=highest).map(|_| None).collect() }
    }

    /// Allocates an entry: the one that is wished for, or one that is free.
    ///
    /// # Errors
    /// A wish that is taken or beyond the table, no free entry, flow control without an event queue.
    pub fn allocate(
        &mut self,
        wish: Option<u32>,
        options: TableEntryOptions,
        queue: Option<QueueHandle>,
    ) -> Result<u32, PortalsError> {
        if options.flow_control && queue.is_none() {
            return Err(PortalsError::QueueNeeded);
        }
        let index = match wish {
            Some(wish) => match self.entries.get(wish as usize) {
                None => return Err(PortalsError::ArgumentInvalid),
                Some(Some(_)) => return Err(PortalsError::TableEntryInUse),
                Some(None) => wish as usize,
            },
            None => self.entries.iter().position(Option::is_none).ok_or(PortalsError::TableFull)?,
        };
        self.entries[index] = Some(TableEntry::new(options, queue));
        Ok(index as u32)
    }

    /// Frees an entry.
    ///
    /// # Errors
    /// An entry that is not allocated, or has list entries.
    pub fn free(&mut self, index: u32) -> Result<(), PortalsError> {
        let entry = self.get(index)?;
        if !entry.priority.is_empty() || !entry.overflow.is_empty() {
            return Err(PortalsError::TableEntryInUse);
        }
        self.entries[index as usize] = None;
        Ok(())
    }

    /// An entry.
    ///
    /// # Errors
    /// One that is not allocated.
    pub fn get(&self, index: u32) -> Result<&TableEntry, PortalsError> {
        self.entries.get(index as usize).and_then(Option::as_ref).ok_or(PortalsError::ArgumentInvalid)
    }

    /// An entry, to be changed.
    ///
    /// # Errors
    /// One that is not allocated.
    pub fn get_mut(&mut self, index: u32) -> Result<&mut TableEntry, PortalsError> {
        self.entries.get_mut(index as usize).and_then(Option::as_mut).ok_or(PortalsError::ArgumentInvalid)
    }

    /// Whether the queue reports for an entry.
    pub fn uses(&self, queue: QueueHandle) -> bool {
        self.entries.iter().flatten().any(|entry| entry.queue == Some(queue))
    }
}
