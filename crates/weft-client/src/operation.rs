//! What a real rank has under way, and what it is told when that is over.

use crate::device::{Awaited, AwaitedKind};
use std::collections::BTreeMap;

/// Flags of `weft.h`.
pub mod flag {
    /// Matched by tag.
    pub const TAGGED: u64 = 1 << 0;
    /// 64 bits travel with the message.
    pub const DATA: u64 = 1 << 1;
    /// The buffer may be used again at once.
    pub const INJECT: u64 = 1 << 2;
    /// Reports a completion.
    pub const COMPLETION: u64 = 1 << 3;
    /// The buffer takes one message after the other.
    pub const MULTI_RECEIVE: u64 = 1 << 5;
    /// Keeps the message that was found.
    pub const CLAIM: u64 = 1 << 6;
    /// Drops it.
    pub const DISCARD: u64 = 1 << 7;
    /// Completes when a receive has matched the message. (Delivery, bit 4, is what every completion of a
    /// message that has left amounts to here: nothing is lost on the way.)
    pub const MATCH_COMPLETE: u64 = 1 << 8;
    /// A send is complete.
    pub const SENT: u64 = 1 << 16;
    /// A receive is.
    pub const RECEIVED: u64 = 1 << 17;
    /// An RDMA write is.
    pub const WRITTEN: u64 = 1 << 18;
    /// An RDMA read is.
    pub const READ: u64 = 1 << 19;
    /// A peer has written.
    pub const REMOTE_WRITE: u64 = 1 << 21;
    /// A multi-receive buffer is the program's again.
    pub const BUFFER_RELEASED: u64 = 1 << 22;
}

/// `weft_completion` of `weft.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Completion {
    /// As given to the operation: a pointer of the program's, which is never followed.
    pub context: usize,
    /// What has happened.
    pub flags: u64,
    /// Bytes received.
    pub length: usize,
    /// Where in a multi-receive buffer: an address in the program's memory.
    pub buffer: usize,
    /// Travelled with the message.
    pub data: u64,
    /// Its tag.
    pub tag: u64,
    /// Who sent it.
    pub source: u32,
    /// 0, or an errno.
    pub error: i32,
    /// Bytes that did not fit.
    pub overflow: usize,
}

impl Completion {
    pub(crate) fn of(context: usize, flags: u64) -> Completion {
        Completion { context, flags, length: 0, buffer: 0, data: 0, tag: 0, source: 0, error: 0, overflow: 0 }
    }
}

/// A piece of the program's memory, which the program has lent until the operation is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lent {
    /// Its address.
    pub address: usize,
    /// Its length.
    pub length: usize,
}

impl Lent {
    /// Its bytes, as they are now.
    #[expect(unsafe_code, reason = "the program has lent the memory by a call of weft.h")]
    pub(crate) fn copy(self) -> Vec<u8> {
        if self.length == 0 {
            return Vec::new();
        }
        let mut bytes = vec![0; self.length];
        // SAFETY: weft.h says that a buffer is valid for its length until the operation is complete; the
        // destination is as long and our own.
        unsafe {
            std::ptr::copy_nonoverlapping(self.address as *const u8, bytes.as_mut_ptr(), self.length);
        }
        bytes
    }

    /// Puts `bytes` there, as many as fit.
    #[expect(unsafe_code, reason = "the program has lent the memory by a call of weft.h")]
    pub(crate) fn fill(self, bytes: &[u8]) {
        let length = bytes.len().min(self.length);
        if length > 0 {
            // SAFETY: as in `copy`; the source is our own.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address as *mut u8, length) };
        }
    }
}

/// An operation under way.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A send: its completion, and the copy that it owns where the buffer was free at once.
    Send { completion: Option<Completion>, copy: Vec<u8>, about: About },
    /// A receive into one buffer.
    Receive { context: usize, flags: u64, buffer: Lent, outcome: Option<Completion>, about: About },
    /// A receive that takes one message after the other.
    MultiReceive {
        context: usize,
        flags: u64,
        buffer: Lent,
        used: usize,
        /// Messages matched whose data has not come.
        pending: u32,
        /// Whether it takes no more.
        closed: bool,
        /// Whether the program has cancelled it.
        cancelled: bool,
    },
    /// An RDMA write or read: its completion, and whether it is reported where nothing went wrong.
    Remote { completion: Completion, reports: bool, about: About },
    /// One that the program has left behind by closing the rank: nobody hears of it.
    Forgotten {
        /// What it owns, where the buffer was free at once.
        copy: Vec<u8>,
        /// How often it is yet to complete.
        left: u32,
    },
}

/// What an operation is about, for the report of who waits for what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About {
    /// The peer; `None`: any.
    pub peer: Option<u32>,
    pub tag: u64,
    pub bytes: u64,
}

impl Operation {
    /// What a rank that waits waits for, if for this.
    pub fn awaited(&self) -> Option<Awaited> {
        let (kind, about) = match self {
            Operation::Send { about, .. } => (AwaitedKind::Send, about),
            Operation::Receive { about, .. } => (AwaitedKind::Receive, about),
            Operation::Remote { about, .. } => (AwaitedKind::Remote, about),
            Operation::MultiReceive { .. } | Operation::Forgotten { .. } => return None,
        };
        let peer = about.peer.unwrap_or(u32::MAX);
        Some(Awaited { kind: kind as u32, peer, tag: about.tag, bytes: about.bytes })
    }
}

/// The payload of a small message that no receive has taken, with what travelled beside it.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub bytes: Vec<u8>,
    pub data: Option<u64>,
}

/// What lies at the source of an announced message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub buffer: Lent,
    pub data: Option<u64>,
}

/// Announced messages: what was said beside them, by who announced and under which number.
pub(crate) type Announced = BTreeMap<(u32, u32), u64>;
