//! List entries and match list entries: the target's side of an operation.
//!
//! An entry of a non-matching interface is one that ignores all match bits and takes any process.

use crate::handle::CountingHandle;
use crate::match_list::Listed;
use crate::memory::Region;
use crate::request::{Action, Header, ProcessId};
use serde::{Deserialize, Serialize};

/// Options of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EntryOptions {
    /// `PTL_ME_OP_PUT`: takes puts, and with gets atomic operations that fetch.
    pub puts: bool,
    /// `PTL_ME_OP_GET`.
    pub gets: bool,
    /// `PTL_ME_USE_ONCE`: unlinked after one message.
    pub use_once: bool,
    /// `PTL_ME_MANAGE_LOCAL`: messages lie one behind the other, whatever offset they ask for.
    pub local_offset: bool,
    /// `PTL_ME_NO_TRUNCATE`: matches no message that is longer than what is left.
    pub no_truncation: bool,
    /// `PTL_ME_ACK_DISABLE`.
    pub no_acknowledgements: bool,
    /// `PTL_ME_UNEXPECTED_HDR_DISABLE`: on the overflow list, keeps no headers.
    pub no_unexpected_headers: bool,
    /// `PTL_ME_EVENT_COMM_DISABLE`.
    pub no_communication_events: bool,
    /// `PTL_ME_EVENT_FLOWCTRL_DISABLE`.
    pub no_flow_control_events: bool,
    /// `PTL_ME_EVENT_SUCCESS_DISABLE`.
    pub no_success_events: bool,
    /// `PTL_ME_EVENT_OVER_DISABLE`.
    pub no_overflow_events: bool,
    /// `PTL_ME_EVENT_LINK_DISABLE`.
    pub no_link_events: bool,
    /// `PTL_ME_EVENT_UNLINK_DISABLE`.
    pub no_unlink_events: bool,
    /// `PTL_ME_EVENT_CT_COMM`.
    pub counts_communication: bool,
    /// `PTL_ME_EVENT_CT_OVERFLOW`.
    pub counts_overflow: bool,
    /// `PTL_ME_EVENT_CT_BYTES`: counts bytes, not messages.
    pub counts_bytes: bool,
}

/// An entry (`ptl_me_t`, `ptl_le_t`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListEntry {
    /// The memory.
    pub region: Region,
    /// The counting event.
    pub counting: Option<CountingHandle>,
    /// The user that it is for; [`ListEntry::ANY_USER`]: for any.
    pub user: u32,
    /// Options.
    pub options: EntryOptions,
    /// The processes that it is for.
    pub source: ProcessId,
    /// Match bits.
    pub match_bits: u64,
    /// Bits of them that do not count.
    pub ignore_bits: u64,
    /// With [local offsets](EntryOptions::local_offset): unlinked when less is left, if it is not 0.
    pub least_free: u64,
    /// The process's word, for events.
    pub word: u64,
}

impl ListEntry {
    /// `PTL_UID_ANY`.
    pub const ANY_USER: u32 = u32::MAX;

    /// Whether a message with these header fields is for it, where so many bytes of it are used already.
    pub fn accepts(&self, header: &Header, used: u64) -> bool {
        let bits = (self.match_bits ^ header.match_bits) & !self.ignore_bits == 0;
        let source = header.initiator.process.is_of(self.source);
        bits && source && (!self.options.no_truncation || header.length <= self.room(header, used))
    }

    /// The offset of a message in it.
    pub fn offset(&self, header: &Header, used: u64) -> u64 {
        if self.options.local_offset { used } else { header.remote_offset }
    }

    /// Bytes from the message's offset to the end.
    pub fn room(&self, header: &Header, used: u64) -> u64 {
        self.region.length().saturating_sub(self.offset(header, used))
    }

    /// Whether it takes such operations.
    pub fn takes(&self, action: Action) -> bool {
        match action {
            Action::Put | Action::Atomic(..) => self.options.puts,
            Action::Get => self.options.gets,
            Action::FetchAtomic(..) => self.options.puts && self.options.gets,
        }
    }

    /// Whether it is unlinked after a message, with so many bytes used.
    pub fn is_done(&self, used: u64) -> bool {
        let left = self.region.length().saturating_sub(used);
        self.options.use_once || self.options.local_offset && self.least_free > 0 && left < self.least_free
    }
}

/// An entry on a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Linked {
    /// The entry.
    pub entry: ListEntry,
    /// Bytes that messages have used, with local offsets.
    pub used: u64,
    /// On the overflow list: messages whose headers are kept.
    pub headers: u32,
    /// On the overflow list: takes no more messages, and stays until its headers are taken.
    pub unlinked: bool,
}

impl Linked {
    /// An entry that has just been appended.
    pub fn new(entry: ListEntry) -> Linked {
        Linked { entry, used: 0, headers: 0, unlinked: false }
    }
}

impl Listed for Linked {
    fn exact_bits(&self) -> Option<u64> {
        (self.entry.ignore_bits == 0).then_some(self.entry.match_bits)
    }
}
