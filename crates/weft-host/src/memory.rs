//! The memory of a rank's process, which the simulated interface reads and writes.
//!
//! By `/proc/PID/mem`: plain reads and writes at an offset, which need no system call of their own and no
//! `unsafe`; permitted for the parent of the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are read at once.
const PIECE: u64 = 16 << 20;

/// The memory of one process.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    memory: File,
    process: u32,
}

impl ProcessMemory {
    /// Of the process with this number.
    pub(crate) fn of(process: u32) -> io::Result<ProcessMemory> {
        let memory = File::options().read(true).write(true).open(format!("/proc/{process}/mem"))?;
        Ok(ProcessMemory { memory, process })
    }

    /// The number of the process.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// Bytes of its address space that are mapped; `None`: it has ended.
    pub(crate) fn size(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    }

    /// Bytes at an address, piece by piece: a length that a rank claims and does not have costs no more memory
    /// than it has.
    pub(crate) fn read(&self, address: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            let (read, left) = (bytes.len(), length - bytes.len() as u64);
            bytes.resize(read + left.min(PIECE) as usize, 0);
            let at = address.checked_add(read as u64).ok_or(io::ErrorKind::InvalidInput)?;
            self.memory.read_exact_at(&mut bytes[read..], at)?;
        }
        Ok(bytes)
    }

    /// Puts bytes at an address.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }
}

/// Whether `process` is `ancestor` or descends from it.
pub(crate) fn descends(process: u32, ancestor: u32) -> bool {
    let parent = |process: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name may hold spaces and parentheses: the last one ends it.
        stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let mut process = process;
    while process != ancestor {
        match parent(process) {
            Some(next) if next > 1 => process = next,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_written_where_it_lies() {
        let own = ProcessMemory::of(std::process::id()).unwrap();
        let place = Box::new([7u8; 32]);
        let address = std::ptr::from_ref(&*place) as u64;
        assert_eq!(own.read(address, 32).unwrap(), [7; 32]);
        own.write(address, &[9; 4]).unwrap();
        assert_eq!(own.read(address, 5).unwrap(), [9, 9, 9, 9, 7]);
        assert!(own.read(8, 1).is_err());
        assert!(own.read(address, u64::MAX).is_err(), "no process has so much");
        assert!(own.size().unwrap() > 1 << 20);
        drop(std::hint::black_box(place));
    }

    #[test]
    fn descent_ends_at_the_first_process() {
        let own = std::process::id();
        assert!(descends(own, own));
        assert!(!descends(1, own));
        assert!(!descends(u32::MAX - 5, own));
    }
}
