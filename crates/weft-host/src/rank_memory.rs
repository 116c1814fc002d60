//! Reading and writing the memory of a rank's process.

use crate::job::Job;
use crate::memory::{Access, ProcessMemory, descends};
use crate::turns::Turn;

/// Bytes of data that is read without a check that it is there: the read itself tells.
const MAX_UNCHECKED_BYTES: u64 = 64 << 10;
/// Bytes of data that is not compared with the memory that the rank has in all: asking the system for that
/// takes longer than simulating less.
const MAX_UNCOMPARED_BYTES: u64 = 16 << 20;

/// Why a rank's memory cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// The rank's process has ended.
    Gone,
    /// It has no memory there.
    NoSuchMemory,
}

/// An access that the rank's process could not make itself: it has no such memory, or not for that. No system
/// can handle the page fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageFault;

impl PageFault {
    /// The error number by which programs learn of it.
    pub(crate) const ERRNO: i32 = libc::EFAULT;
}

/// The memory of a rank.
pub(crate) struct RankMemory<'a> {
    job: &'a Job,
    rank: u32,
}

impl RankMemory<'_> {
    /// The memory of this rank.
    pub(crate) fn of(job: &Job, rank: u32) -> RankMemory<'_> {
        RankMemory { job, rank }
    }

    /// Reads `length` bytes at `address`.
    pub(crate) fn read(&self, address: u64, length: u64) -> Result<Vec<u8>, Unread> {
        if length == 0 {
            return Ok(Vec::new());
        }
        match self.with_memory(|memory| Some(memory.read(address, length))) {
            Some(Ok(bytes)) => Ok(bytes),
            // A process that has ended has no memory at all; an address that is not mapped is an error of its
            // own.
            Some(Err(error)) if error.raw_os_error() != Some(libc::EIO) => Err(Unread::Gone),
            None if self.job.process(self.rank).is_some() => Err(Unread::Gone),
            _ => Err(Unread::NoSuchMemory),
        }
    }

    /// Whether the rank has `length` bytes at `address`: both ends are read, and the length is compared with
    /// all its memory.
    pub(crate) fn contains(&self, address: u64, length: u64) -> bool {
        let Some(last) = length.checked_sub(1) else { return true };
        let Some(last) = address.checked_add(last) else { return false };
        if length <= MAX_UNCHECKED_BYTES {
            return true;
        }
        let is_mapped = |address| self.read(address, 1) != Err(Unread::NoSuchMemory);
        let all = || self.with_memory(|memory| memory.size());
        is_mapped(address)
            && is_mapped(last)
            && (length <= MAX_UNCOMPARED_BYTES || all().is_none_or(|all| length <= all))
    }

    /// Writes `bytes` at `address`. Returns whether it could.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> bool {
        bytes.is_empty() || self.with_memory(|memory| memory.write(address, bytes).ok()).is_some()
    }

    /// Writes all pieces, each at its address, one behind the other, or none of them.
    ///
    /// # Errors
    /// The process may not write one of them.
    pub(crate) fn put(&self, pieces: &[(u64, &[u8])]) -> Result<(), PageFault> {
        let put = |memory: &ProcessMemory| {
            let mappings = memory.mappings().ok()?;
            let may = |(address, bytes): &(u64, &[u8])| {
                mappings.permit(*address, bytes.len() as u64, Access::Write)
            };
            let write = |(address, bytes): &(u64, &[u8])| memory.write(*address, bytes).ok();
            if pieces.iter().all(may) { pieces.iter().try_for_each(write) } else { None }
        };
        self.with_memory(put).ok_or(PageFault)
    }

    /// Reads `length` bytes at `address`.
    ///
    /// # Errors
    /// The process may not read all of them.
    pub(crate) fn get(&self, address: u64, length: u64) -> Result<Vec<u8>, PageFault> {
        let get = |memory: &ProcessMemory| {
            let permitted = memory.mappings().ok()?.permit(address, length, Access::Read);
            if permitted { memory.read(address, length).ok() } else { None }
        };
        self.with_memory(get).ok_or(PageFault)
    }

    fn with_memory<T>(&self, call: impl FnOnce(&ProcessMemory) -> Option<T>) -> Option<T> {
        // A write of a rank in its turn comes before the interface's.
        Turn::of(self.job, self.rank).let_finish();
        let mut reach = self.job.reach(self.rank);
        let process = self.job.process(self.rank)?;
        // A process that a rank starts may run one program after the other.
        if reach.memory.as_ref().is_none_or(|memory| memory.process() != process) {
            // The rank says which process it is; only one that was started for it is believed.
            if !descends(process, self.job.started_process(self.rank)?) {
                return None;
            }
            reach.memory = ProcessMemory::of(process).ok();
        }
        call(reach.memory.as_ref()?)
    }
}
