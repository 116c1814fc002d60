//! Operations that a real rank has under way, and the completions that it gets of them.

use crate::device::{Awaited, AwaitedKind};
use std::collections::BTreeMap;
use std::ffi::c_void;
use weft_msg::RankEndpoints;

/// Flags of `weft.h`.
pub mod flag {
    /// A source that a receive may leave open.
    pub const ANY_SOURCE: u32 = u32::MAX;

    /// Of operations: matched by tag; without it, in a space of its own, matched by source alone.
    pub const TAGGED: u64 = 1 << 0;
    /// 64 bits travel with the message into the receiver's completion.
    pub const DATA: u64 = 1 << 1;
    /// The buffer may be used again on return; never completes.
    pub const INJECT: u64 = 1 << 2;
    /// Reports a completion; without it only errors are.
    pub const COMPLETION: u64 = 1 << 3;
    /// Complete when the receiver has the data, not when it has left.
    // What every completion of a message that has left amounts to here: nothing is lost on the way.
    #[allow(dead_code, reason = "for the header: see the comment above")]
    pub const DELIVERY_COMPLETE: u64 = 1 << 4;
    /// The buffer takes messages until less than weft_set_min_multi_receive is left.
    pub const MULTI_RECEIVE: u64 = 1 << 5;
    /// weft_peek: keeps the message for a receive with the same context.
    pub const CLAIM: u64 = 1 << 6;
    /// weft_peek, and weft_receive of a claimed message: drops it.
    pub const DISCARD: u64 = 1 << 7;
    /// Of a message: complete when a receive has matched it (a synchronous send).
    pub const MATCH_COMPLETE: u64 = 1 << 8;
    /// A rank has so many endpoints, numbered from 0. A message goes from one to another, and matches only
    /// receives there.
    pub const ENDPOINTS: u32 = 16;
    /// Of operations: the lowest bit of the number, of 8 bits, of the endpoint of this rank that sends or
    /// receives. Of what a completion says of a message or a WEFT_REMOTE_WRITE too.
    pub const ENDPOINT_SHIFT: u32 = 32;
    /// The same of the peer's endpoint: to which it goes, or from which it comes. Of no meaning with
    /// WEFT_ANY_SOURCE.
    pub const PEER_ENDPOINT_SHIFT: u32 = 40;

    /// Of a completion, beside the flags of the operation: a message has been sent.
    pub const SENT: u64 = 1 << 16;
    /// A message has been received.
    pub const RECEIVED: u64 = 1 << 17;
    /// An RDMA write is complete.
    pub const WRITTEN: u64 = 1 << 18;
    /// An RDMA read is complete.
    pub const READ: u64 = 1 << 19;
    /// An atomic operation is complete.
    #[allow(dead_code, reason = "for the header: providers report it of what they do by messages")]
    pub const ATOMIC: u64 = 1 << 20;
    /// A peer has written with WEFT_DATA into registered memory.
    pub const REMOTE_WRITE: u64 = 1 << 21;
    /// A multi-receive buffer is the program's again; may come alone.
    pub const BUFFER_RELEASED: u64 = 1 << 22;
    /// A service has answered.
    pub const SERVED: u64 = 1 << 23;

    /// Of registered memory: peers may read.
    pub const ACCESS_READ: u64 = 1 << 0;
    /// Peers may write and update.
    pub const ACCESS_WRITE: u64 = 1 << 1;

    /// Of weft_interface_allocate: in the job's own protection domain.
    pub const DOMAIN_JOB: u32 = u32::MAX;
    /// In one that no other process is in.
    pub const DOMAIN_PRIVATE: u32 = u32::MAX - 1;
    /// Of weft_interface_deliver: the path of completions that the machine file names.
    pub const PATH_MACHINE: u32 = 0;
    /// The driver copies the completion to the process.
    pub const PATH_KERNEL: u32 = 1;
    /// The driver copies it into a buffer that the process polls.
    pub const PATH_REMAPPED: u32 = 2;
    /// The interface writes it where the process polls.
    pub const PATH_DIRECT: u32 = 3;
    /// The interface writes it into a queue that the process polls.
    pub const PATH_USER_QUEUE: u32 = 4;
    /// Of weft_interface_deliver, added to a path: the target answers, and the completion comes with that.
    pub const ANSWERED: u32 = 1 << 8;
    /// Of weft_interface_deliver: a buffer lies in the kind of memory that the machine file names.
    pub const MEMORY_MACHINE: u32 = 0;
    /// In that of the host.
    pub const MEMORY_HOST: u32 = 1;
    /// In that of a GPU, which the interface reads and writes.
    pub const MEMORY_GPU_DIRECT: u32 = 2;
    /// In that of a GPU, by way of a buffer in the host.
    pub const MEMORY_GPU_STAGED: u32 = 3;
    /// The lowest bit of the kind of the buffer that is sent from, added to a path: WEFT_MEMORY_HOST <<
    /// WEFT_SOURCE_SHIFT.
    pub const SOURCE_SHIFT: u32 = 9;
    /// The same of the buffer at the target.
    pub const TARGET_SHIFT: u32 = 11;

    /// Of weft_kernel_time: the kernel computes, and reads and writes words.
    pub const KERNEL_WORKS: u32 = 0;
    /// It waits for a word of an empty stream.
    pub const KERNEL_READS: u32 = 1;
    /// It waits for room in a full stream.
    pub const KERNEL_WRITES: u32 = 2;
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Completion {
    /// As given to the operation.
    pub context: *mut c_void,
    /// WEFT_SENT, ...
    pub flags: u64,
    /// Bytes received; of WEFT_SERVED, of the answer.
    pub length: usize,
    /// Multi-receive: where in the buffer.
    pub buffer: *mut c_void,
    /// With WEFT_DATA.
    pub data: u64,
    /// Of a tagged message.
    pub tag: u64,
    /// Who sent it.
    pub source: u32,
    /// 0, or an errno: EMSGSIZE (truncated), ECANCELED, ENOMSG, EACCES, EPIPE (peer died). Of a request to a
    /// service: ENXIO, no such service there; ENOBUFS, 256 requests of the node are under way; ETIMEDOUT,
    /// never acknowledged.
    pub error: i32,
    /// Bytes that did not fit, with EMSGSIZE.
    pub overflow: usize,
}

impl Completion {
    pub(crate) fn of(context: usize, flags: u64) -> Completion {
        // Pointers of the program's, which are never followed.
        let (context, buffer) = (context as *mut c_void, std::ptr::null_mut());
        Completion { context, flags, length: 0, buffer, data: 0, tag: 0, source: 0, error: 0, overflow: 0 }
    }
}

const _: () = assert!(flag::ENDPOINTS == RankEndpoints::MOST as u32, "weft.h says how many there are");

/// The endpoints between which an operation of these flags goes, from this rank's to its peer's; `None`:
/// there are none of such numbers.
pub(crate) fn endpoints_in(flags: u64) -> Option<RankEndpoints> {
    RankEndpoints::new((flags >> flag::ENDPOINT_SHIFT) as u8, (flags >> flag::PEER_ENDPOINT_SHIFT) as u8)
}

/// The bits of a completion's flags that say to which endpoint of this rank something has come, and from
/// which of the peer's.
pub(crate) fn endpoint_flags(endpoints: RankEndpoints) -> u64 {
    u64::from(endpoints.to()) << flag::ENDPOINT_SHIFT
        | u64::from(endpoints.from()) << flag::PEER_ENDPOINT_SHIFT
}

/// A piece of the program's memory, which the program has lent until the operation is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lent {
    /// Address of the first byte.
    pub address: usize,
    /// Length in bytes.
    pub length: usize,
}

impl Lent {
    /// The address and length, for devices.
    pub(crate) fn place(self) -> (u64, u64) {
        (self.address as u64, self.length as u64)
    }

    /// A copy of the bytes, as they are now.
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
        /// The space that it must have left to take another message, in bytes.
        min_left: usize,
        /// Messages matched whose data has not come.
        pending: u32,
        /// Whether it takes no more.
        closed: bool,
        /// Whether the program has cancelled it.
        cancelled: bool,
    },
    /// An RDMA write or read: its completion, and whether it is reported where nothing went wrong.
    Remote { completion: Completion, reports: bool, about: About },
    /// A request to a service.
    Request { completion: Completion, about: About },
    /// One that the program has left behind by closing the rank: nobody hears of it.
    Forgotten {
        /// The copy that the operation owns, where the buffer was free at once.
        copy: Vec<u8>,
        /// How often it is yet to complete.
        left: u32,
    },
}

/// The peer, tag and size of an operation, for the report of who waits for what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About {
    /// The peer; `None`: any.
    pub peer: Option<u32>,
    pub tag: u64,
    /// Bits of the tag that do not count.
    pub ignored: u64,
    pub bytes: u64,
}

impl Operation {
    /// The entry for this operation in the report of a rank that waits; `None`: ranks do not wait for it.
    pub fn awaited(&self) -> Option<Awaited> {
        let (kind, about) = match self {
            Operation::Send { about, .. } => (AwaitedKind::Send, about),
            Operation::Receive { about, .. } => (AwaitedKind::Receive, about),
            Operation::Remote { about, .. } => (AwaitedKind::Remote, about),
            Operation::Request { about, .. } => (AwaitedKind::Service, about),
            Operation::MultiReceive { .. } | Operation::Forgotten { .. } => return None,
        };
        Some(about.awaited(kind))
    }
}

impl About {
    /// The entry in the report of a rank that waits for an operation of this kind.
    pub fn awaited(&self, kind: AwaitedKind) -> Awaited {
        let About { peer, tag, ignored, bytes } = *self;
        Awaited { kind: kind as u32, peer: peer.unwrap_or(u32::MAX), tag, ignored, bytes }
    }
}

/// The payload of a small message that no receive has taken, with what travelled beside it.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub bytes: Vec<u8>,
    pub data: Option<u64>,
}

/// The buffer and the data beside it at the source of an announced message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub buffer: Lent,
    pub data: Option<u64>,
}

/// Announced messages: what was said beside them, by who announced and under which number.
pub(crate) type Announced = BTreeMap<(u32, u32), u64>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches endpoints that are taken for those of the other side, and numbers that no rank has.
    #[test]
    fn endpoints_are_bits_of_flags() {
        let flags = |own: u64, peer: u64| {
            own << flag::ENDPOINT_SHIFT
                | peer << flag::PEER_ENDPOINT_SHIFT
                | flag::TAGGED
                | flag::REMOTE_WRITE
        };
        let sent = endpoints_in(flags(3, 15)).unwrap();
        assert_eq!((sent.from(), sent.to()), (3, 15));
        // At its receiver: own endpoint 15, from 3 of the peer's.
        assert_eq!(endpoint_flags(sent) | flag::TAGGED | flag::REMOTE_WRITE, flags(15, 3));
        assert!(endpoints_in(flags(16, 0)).is_none() && endpoints_in(flags(0, 16)).is_none());
        assert_eq!(endpoints_in(flag::TAGGED), Some(RankEndpoints::FIRST));
    }

    /// Catches a message that is written beyond the buffer that the program has lent.
    #[test]
    fn what_does_not_fit_a_buffer_is_left_out() {
        let mut memory = [0u8; 6];
        let lent = Lent { address: memory.as_mut_ptr() as usize, length: 4 };
        lent.fill(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(lent.copy(), [1, 2, 3, 4]);
        lent.fill(&[9]);
        assert_eq!(memory, [9, 2, 3, 4, 0, 0]);
        Lent::default().fill(&[1]);
        assert!(Lent::default().copy().is_empty());
    }

    /// Catches a report of a deadlock that blames a peer where any would do, or an operation that no rank
    /// waits for.
    #[test]
    fn ranks_wait_for_what_they_have_begun_themselves() {
        let (about, buffer) = (About { tag: 7, ..About::default() }, Lent::default());
        let any = Operation::Receive { context: 0, flags: 0, buffer, outcome: None, about };
        let expected =
            Awaited { kind: AwaitedKind::Receive as u32, peer: u32::MAX, tag: 7, ..Awaited::default() };
        assert_eq!(any.awaited(), Some(expected));
        let about = About { peer: Some(2), ..about };
        let send = Operation::Send { completion: None, copy: Vec::new(), about };
        assert_eq!(send.awaited().map(|awaited| (awaited.kind, awaited.peer)), Some((1, 2)));
        assert_eq!(Operation::Forgotten { copy: Vec::new(), left: 1 }.awaited(), None);
    }
}
