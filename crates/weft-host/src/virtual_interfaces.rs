//! The virtual interfaces that the programs of a node have allocated: the system software's table, and what
//! of an operation is not the network interface's own.
//!
//! ```text
//!   initiator                                     target
//!   Small ──► packetizer ───────────────────────► mailbox, if the domains are one ──► notice
//!   Put ────► RDMA ─────────────────────────────► memory that its process may write, then the word ──► Ended
//!   Get ────► packetizer ───────────────────────► memory that it may read ──► RDMA back ──► memory, Ended
//!     ▲ refused: Ended with an error ◄────────────┘
//! ```
//! The domain of an operation is never what its descriptor says: it is that with which the initiator's
//! interface was opened, as the hardware has it in the interface's page. The block-level interface refuses
//! foreign packets itself; where the machine has only the simple one, it is done here.
//!
//! An interface opens the whole address space of its process to its domain. Nothing is registered: what the
//! process has mapped when the operation comes can be reached, as by the page table that the hardware walks.
//! One that is restricted opens what is registered when the operation comes, and no more.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.3, §4.4, §4.5.3, §5.1.
//!
//! # Not modelled
//! The answer to an RDMA write that has been carried out is a small message here. The hardware's own
//! acknowledgement of the last block comes as late. Blocks before the one whose page fault cannot be handled
//! are written by the hardware; here nothing is. The word of a notification takes no translation of its own.

use crate::nonsense::Nonsense;
use crate::rank_memory::{PageFault, RankMemory};
use crate::reach::Reach;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use weft_client::device::{Notice, NoticeKind, Post, PostKind};
use weft_nic::gvas::{Field, Gvas, GvasError, Pdid};
use weft_nic::{FailureReason, RegisterError};

/// The header of a message between virtual interfaces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub what: What,
    /// The initiator's interface, or the one that answers.
    pub from: u16,
    /// The domain of `from`.
    pub domain: Pdid,
    /// The initiator's name for the operation.
    pub context: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// A small message.
    Small,
    /// Data for `remote`, and a word for an address behind it.
    /// `is_silent`: nothing is answered unless it cannot be carried out.
    Put { remote: u64, notify: Option<(u64, u64)>, is_silent: bool },
    /// A request for `length` bytes at `remote`, which are to be written to `local`.
    Get { remote: u64, length: u64, local: u64 },
    /// They are these.
    Got { local: u64 },
    /// An operation of that kind has ended with this errno, or 0.
    Ended { kind: u32, error: i32 },
}

impl What {
    /// The kind of post that it comes from.
    pub(crate) fn kind(&self) -> u32 {
        match self {
            What::Small => PostKind::Small as u32,
            What::Put { .. } => PostKind::Put as u32,
            What::Get { .. } | What::Got { .. } => PostKind::Get as u32,
            What::Ended { kind, .. } => *kind,
        }
    }
}

/// An interface that is open.
#[derive(Debug)]
pub(crate) struct Open {
    /// Whose, among the ranks of the node.
    pub seat: usize,
    /// Address 0 of its process in the global address space: domain, node, and the seat as the rank.
    pub place: Gvas,
    /// Messages in the mailbox that the program has not taken.
    pub in_mailbox: u32,
    /// Whether peers reach registered memory only.
    pub is_restricted: bool,
}

impl Open {
    /// Whether the memory of a write is reached by it: its data, and the word behind them.
    pub(crate) fn admits_write(&self, reach: &Reach, data: (u64, u64), notify: Option<(u64, u64)>) -> bool {
        let word = notify.map(|(place, word)| (place, size_of_val(&word) as u64));
        let pieces = [Some(data), word].into_iter().flatten();
        !self.is_restricted || pieces.into_iter().all(|(at, length)| reach.registers(at, length, true))
    }

    /// Whether `length` bytes at `address`, which are to be read, are reached by it.
    pub(crate) fn admits_read(&self, reach: &Reach, (address, length): (u64, u64)) -> bool {
        !self.is_restricted || reach.registers(address, length, false)
    }
}

/// Carries out an RDMA write in the memory of a rank: an errno, or 0.
pub(crate) fn put(memory: &RankMemory<'_>, remote: u64, notify: Option<(u64, u64)>, bytes: &[u8]) -> i32 {
    let word = notify.map(|(place, word)| (place, word.to_ne_bytes()));
    // The notification comes behind the data.
    let pieces: Vec<(u64, &[u8])> =
        [(remote, bytes)].into_iter().chain(word.as_ref().map(|(place, word)| (*place, &word[..]))).collect();
    memory.put(&pieces).map_or(PageFault::ERRNO, |()| 0)
}

/// The interfaces of a node.
#[derive(Debug, Default)]
pub(crate) struct VirtualInterfaces {
    open: BTreeMap<u16, Open>,
}

impl VirtualInterfaces {
    /// Opens the lowest of these numbers that is free and that `claims` says this endpoint has on its node,
    /// for the rank in a seat, with its place. `None`: there is none.
    pub(crate) fn open(
        &mut self,
        numbers: Range<u32>,
        claims: impl Fn(u16) -> bool,
        (seat, place): (usize, Gvas),
    ) -> Option<u16> {
        let mut numbers = (numbers.start..numbers.end.min(u16::MAX.into())).map(|number| number as u16);
        let number = numbers.find(|number| !self.open.contains_key(number) && claims(*number))?;
        self.open.insert(number, Open { seat, place, in_mailbox: 0, is_restricted: false });
        Some(number)
    }

    /// Whether none is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The mailboxes with messages that no process has taken: number, seat and count.
    pub(crate) fn mailboxes(&self) -> impl Iterator<Item = (u16, usize, u32)> {
        let filled = self.open.iter().filter(|(_, open)| open.in_mailbox > 0);
        filled.map(|(number, open)| (*number, open.seat, open.in_mailbox))
    }

    /// The interface of that number, if it is open.
    pub(crate) fn get_mut(&mut self, number: u16) -> Option<&mut Open> {
        self.open.get_mut(&number)
    }

    /// The interface that a post names, which must be its rank's.
    ///
    /// # Errors
    /// It is another's, or none.
    pub(crate) fn of_post(&mut self, post: &Post, seat: usize) -> Result<(u16, &mut Open), Nonsense> {
        let wrong = Nonsense::Interface(post.interface);
        let number = u16::try_from(post.interface).map_err(|_| wrong)?;
        let open = self.open.get_mut(&number).filter(|open| open.seat == seat).ok_or(wrong)?;
        Ok((number, open))
    }

    /// Closes an interface.
    pub(crate) fn close(&mut self, number: u16) -> Option<Open> {
        self.open.remove(&number)
    }

    /// The interfaces of a rank.
    pub(crate) fn of_seat(&self, seat: usize) -> Vec<u16> {
        self.open.iter().filter(|(_, open)| open.seat == seat).map(|(number, _)| *number).collect()
    }
}

/// The notice to an interface that one of its operations has ended.
pub(crate) fn ended(interface: u16, kind: u32, context: u64, error: i32) -> Notice {
    let (interface, token, data) = (interface.into(), kind, context);
    Notice { kind: NoticeKind::Ended as u32, interface, token, data, error, ..Notice::default() }
}

/// The error number by which a program learns which field of a global address does not fit.
pub(crate) fn field_errno(error: &GvasError) -> i32 {
    match error {
        GvasError::TooLarge { field: Field::Node, .. } => libc::ENETUNREACH,
        GvasError::TooLarge { field: Field::Address, .. } => libc::EFAULT,
        _ => libc::ENXIO,
    }
}

/// The error number by which a program learns of a refusal of the interface.
pub(crate) fn errno(reason: FailureReason) -> i32 {
    match reason {
        FailureReason::Domain => libc::EACCES,
        FailureReason::NoInterface => libc::ENXIO,
        FailureReason::NoNode => libc::ENETUNREACH,
        FailureReason::TimedOut => libc::ETIMEDOUT,
        FailureReason::TooLarge => libc::EMSGSIZE,
        FailureReason::Memory => libc::ENODEV,
        _ => libc::EIO,
    }
}

/// The error number by which a program learns that a register refuses an access.
pub(crate) fn register_errno(error: &RegisterError) -> i32 {
    match error {
        RegisterError::NoRegisters => libc::ENOTSUP,
        RegisterError::Unknown { .. } => libc::EFAULT,
        RegisterError::ReadOnly { .. } => libc::EACCES,
        _ => libc::EINVAL,
    }
}
