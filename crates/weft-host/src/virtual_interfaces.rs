//! The virtual interfaces that the programs of a node have allocated: the system software's table, and what of an
//! operation is not the network interface's own.
//!
//! ```text
//!   initiator                                     target
//!   Small ──► packetizer ───────────────────────► mailbox, if the domains are one ──► notice
//!   Put ────► RDMA ─────────────────────────────► memory that is shared so, then the word   ──► Ended
//!   Get ────► packetizer ───────────────────────► reads such memory ──► RDMA back ──► memory, Ended
//!     ▲ refused: Ended with an error ◄────────────┘
//! ```
//! The domain of an operation is never what its descriptor says: it is that with which the initiator's interface was opened,
//! as the hardware has it in the interface's page. The block-level interface refuses foreign packets itself; where the
//! machine has only the simple one, it is done here.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.3, §4.4, §5.1.
//!
//! # Not modelled
//! The answer to an RDMA write that has been carried out is a small message here. The hardware's own acknowledgement of the
//! last block comes as late, but knows nothing of what is shared.

use crate::job::Job;
use crate::nonsense::Nonsense;
use crate::reach::Region;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_client::device::{Notice, NoticeKind, Post, PostKind};
use weft_nic::FailureReason;
use weft_nic::gvas::Pdid;

/// The domain of interfaces that are open to all ranks of the job; a private one is so many above it as its rank's
/// number, and one.
pub(crate) const JOB_DOMAIN: u16 = 1;
/// Pieces of memory that an interface may share.
pub(crate) const SHARES: usize = 1 << 16;

/// What travels between virtual interfaces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub what: What,
    /// The initiator's interface, or the one that answers.
    pub from: u16,
    /// Its domain.
    pub domain: Pdid,
    /// What the initiator calls the operation.
    pub context: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// A small message.
    Small,
    /// Data for `remote`, and a word for an address behind it.
    Put { remote: u64, notify: Option<(u64, u64)> },
    /// So many bytes at `remote` are wanted at `local`.
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
    pub domain: Pdid,
    /// Messages in the mailbox that the program has not taken.
    pub in_mailbox: u32,
    shares: BTreeMap<u64, Region>,
}

impl Open {
    /// Memory becomes reachable.
    ///
    /// # Errors
    /// There is too much of it.
    pub(crate) fn share(&mut self, post: &Post) -> Result<(), Nonsense> {
        if self.shares.len() >= SHARES {
            return Err(Nonsense::Regions(SHARES));
        }
        self.shares.insert(post.key, Region::of(post));
        Ok(())
    }

    /// And no more.
    pub(crate) fn unshare(&mut self, key: u64) {
        self.shares.remove(&key);
    }

    fn permits(&self, address: u64, length: u64, writes: bool) -> bool {
        self.shares.values().any(|region| region.permits(address, length, writes))
    }

    /// Carries out an RDMA write in the memory of `rank`: an errno, or 0.
    pub(crate) fn put(
        &self,
        job: &Job,
        rank: u32,
        remote: u64,
        notify: Option<(u64, u64)>,
        bytes: &[u8],
    ) -> i32 {
        let word = notify.is_none_or(|(place, _)| self.permits(place, 8, true));
        if !word || !self.permits(remote, bytes.len() as u64, true) || !job.write(rank, remote, bytes) {
            return libc::EACCES;
        }
        // The notification comes behind the data.
        match notify {
            Some((place, word)) if !job.write(rank, place, &word.to_ne_bytes()) => libc::EACCES,
            _ => 0,
        }
    }

    /// What an RDMA read finds.
    pub(crate) fn get(&self, job: &Job, rank: u32, remote: u64, length: u64) -> Option<Vec<u8>> {
        if self.permits(remote, length, false) { job.read(rank, remote, length).ok() } else { None }
    }
}

/// The interfaces of a node.
#[derive(Debug, Default)]
pub(crate) struct VirtualInterfaces {
    open: BTreeMap<u16, Open>,
}

impl VirtualInterfaces {
    /// Opens the lowest number that is free behind those of the ranks' messaging. `None`: there is none.
    pub(crate) fn open(&mut self, ranks: usize, all: u32, seat: usize, domain: Pdid) -> Option<u16> {
        let number = (ranks as u32..all.min(u16::MAX.into())).map(|number| number as u16);
        let number = number.into_iter().find(|number| !self.open.contains_key(number))?;
        self.open.insert(number, Open { seat, domain, in_mailbox: 0, shares: BTreeMap::new() });
        Some(number)
    }

    /// Whether none is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
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

/// What an interface is told when an operation of its has ended.
pub(crate) fn ended(interface: u16, kind: u32, context: u64, error: i32) -> Notice {
    let (interface, token, data) = (interface.into(), kind, context);
    Notice { kind: NoticeKind::Ended as u32, interface, token, data, error, ..Notice::default() }
}

/// What a refusal of the interface is to a program.
pub(crate) fn errno(reason: FailureReason) -> i32 {
    match reason {
        FailureReason::Domain => libc::EACCES,
        FailureReason::NoInterface => libc::ENXIO,
        FailureReason::NoNode => libc::ENETUNREACH,
        FailureReason::TimedOut => libc::ETIMEDOUT,
        FailureReason::TooLarge => libc::EMSGSIZE,
        _ => libc::EIO,
    }
}
