//! What the interface may reach of ranks: their memory.

use crate::job::{Job, lock};
use crate::memory::{ProcessMemory, descends};
use std::collections::BTreeMap;
use std::sync::MutexGuard;
use weft_client::device::Post;

/// Data that is taken without a look at whether it is there.
const SMALL_ENOUGH: u64 = 64 << 10;
/// And without asking the system how much memory the rank has in all, which takes longer than simulating less.
const MODEST: u64 = 16 << 20;

/// Memory that a rank lets its peers reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub address: u64,
    pub length: u64,
    pub may_read: bool,
    pub may_write: bool,
}

impl Region {
    /// What a rank has posted of one.
    pub(crate) fn of(post: &Post) -> Region {
        let allows = |flag| post.flags & flag != 0;
        let (may_read, may_write) = (allows(Post::MAY_READ), allows(Post::MAY_WRITE));
        Region { address: post.local, length: post.length, may_read, may_write }
    }

    /// Whether peers may reach so many bytes there.
    pub(crate) fn permits(&self, address: u64, length: u64, writes: bool) -> bool {
        let inside = address >= self.address
            && length <= self.length
            && address - self.address <= self.length - length;
        inside && if writes { self.may_write } else { self.may_read }
    }
}

/// Why a rank's memory cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// Its process has ended.
    Gone,
    /// It has no memory there.
    NoSuchMemory,
}

/// What only the simulating thread touches of a rank.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    memory: Option<ProcessMemory>,
    pub regions: BTreeMap<u64, Region>,
    /// Counts how often the rank has been closed: what was asked for before is not put into its memory.
    pub opening: u32,
    /// Buffers of announced messages, by the receive's number: address and length.
    pub expected: BTreeMap<u32, (u64, u64)>,
}

impl Reach {
    /// The rank is closed. Its process may become another program, whose memory is to be asked for anew.
    pub(crate) fn close(&mut self) {
        let opening = self.opening.wrapping_add(1);
        *self = Reach { opening, ..Reach::default() };
    }
}

impl Job {
    /// What the interface may reach of a rank.
    pub(crate) fn reach(&self, rank: u32) -> MutexGuard<'_, Reach> {
        lock(&self.members[rank as usize].reach)
    }

    /// Reads a rank's memory.
    pub(crate) fn read(&self, rank: u32, address: u64, length: u64) -> Result<Vec<u8>, Unread> {
        if length == 0 {
            return Ok(Vec::new());
        }
        let read = self.with_memory(rank, |memory| Some(memory.read(address, length)));
        match read {
            Some(Ok(bytes)) => Ok(bytes),
            // What has ended has no memory at all; an address that is not mapped is an error of its own.
            Some(Err(error)) if error.raw_os_error() != Some(libc::EIO) => Err(Unread::Gone),
            None if self.members[rank as usize].device.process().is_some() => Err(Unread::Gone),
            _ => Err(Unread::NoSuchMemory),
        }
    }

    /// Whether a rank has so much memory there: its ends are looked at, and what it has in all.
    pub(crate) fn has_memory(&self, rank: u32, address: u64, length: u64) -> bool {
        let Some(last) = length.checked_sub(1) else { return true };
        let Some(last) = address.checked_add(last) else { return false };
        if length <= SMALL_ENOUGH {
            // Taking it will tell.
            return true;
        }
        let there = |address| self.read(rank, address, 1) != Err(Unread::NoSuchMemory);
        let all = || self.with_memory(rank, |memory| memory.size());
        there(address) && there(last) && (length <= MODEST || all().is_none_or(|all| length <= all))
    }

    /// Writes into a rank's memory; says whether it could.
    pub(crate) fn write(&self, rank: u32, address: u64, bytes: &[u8]) -> bool {
        bytes.is_empty() || self.with_memory(rank, |memory| memory.write(address, bytes).ok()).is_some()
    }

    fn with_memory<T>(&self, rank: u32, call: impl FnOnce(&ProcessMemory) -> Option<T>) -> Option<T> {
        self.let_finish(rank);
        let mut reach = self.reach(rank);
        let process = self.members[rank as usize].device.process()?;
        // What a rank starts may run one program after the other.
        if reach.memory.as_ref().is_none_or(|memory| memory.process() != process) {
            // The rank says which process it is; only one that was started for it is believed.
            let started = lock(&self.life).started[rank as usize]?;
            if !descends(process, started) {
                return None;
            }
            reach.memory = ProcessMemory::of(process).ok();
        }
        call(reach.memory.as_ref()?)
    }
}
