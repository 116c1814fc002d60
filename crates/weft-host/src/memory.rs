//! The memory of a rank's process, which the simulated interface reads and writes.
//!
//! By `/proc/PID/mem`: plain reads and writes at an offset, which need no system call of their own and no
//! `unsafe`; permitted for the parent of the process. They pass over what the process itself may not do with
//! its pages: whoever cares asks its [`Mappings`] first.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use weft_client::device;

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

    /// The mappings as they are now.
    pub(crate) fn mappings(&self) -> io::Result<Mappings> {
        // Paths are of any bytes.
        let bytes = std::fs::read(format!("/proc/{}/maps", self.process))?;
        Ok(Mappings(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Bytes at an address, piece by piece: a length that a rank claims and does not have costs no more
    /// memory than it has.
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

/// A way to use memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The mappings of a process at one time, as its system tells them: the page table that an interface walks.
#[derive(Debug)]
pub(crate) struct Mappings(String);

impl Mappings {
    /// Whether the process has all of `length` bytes at `address`, for such access. The device by which a
    /// process is a rank is no memory: it stands for the registers of the interface itself.
    pub(crate) fn permit(&self, address: u64, length: u64, access: Access) -> bool {
        let Some(end) = address.checked_add(length) else { return false };
        let mut at = address;
        for line in self.0.lines() {
            if at >= end {
                break;
            }
            let Some((first, behind, rest)) = addresses(line) else { return false };
            if behind <= at {
                continue;
            }
            if first > at || !allows(rest, access) {
                return false;
            }
            at = behind;
        }
        at >= end
    }
}

/// The first address of a mapping, the one behind its last, and the rest of its line.
fn addresses(line: &str) -> Option<(u64, u64, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (first, behind) = range.split_once('-')?;
    Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(behind, 16).ok()?, rest))
}

/// Whether the rest of a mapping's line, from its permissions on, allows such access.
fn allows(rest: &str, access: Access) -> bool {
    let permissions = rest.as_bytes();
    let permitted = match access {
        Access::Read => permissions.first() == Some(&b'r'),
        Access::Write => permissions.get(1) == Some(&b'w'),
    };
    // Behind permissions, offset, device and inode.
    let path = rest.split_ascii_whitespace().nth(4);
    let is_device = path.and_then(|path| path.strip_prefix("/memfd:"));
    permitted && !is_device.is_some_and(|name| name.starts_with(device::NAME))
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

    /// Catches a range that is let through although it begins or ends in nothing, has a hole, may not be
    /// written, wraps around, or lies in a device.
    #[test]
    fn all_of_a_range_must_be_mapped_for_the_access() {
        let mappings = Mappings(
            [
                "1000-3000 rw-p 00000000 00:00 0",
                "3000-4000 r--p 00000000 fe:01 77                 /lib/a file",
                "5000-6000 ---p 00000000 00:00 0",
                "7000-8000 rw-s 00000000 00:01 9                  /memfd:weft-rank-3 (deleted)",
                "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
            ]
            .join("\n"),
        );
        let (reads, writes) = (
            |address, length| mappings.permit(address, length, Access::Read),
            |address, length| mappings.permit(address, length, Access::Write),
        );
        assert!(writes(0x1000, 0x2000) && reads(0x1000, 0x3000) && reads(0x3fff, 1));
        assert!(!writes(0x2fff, 2), "it may not be written to the end");
        assert!(!reads(0xfff, 2) && !reads(0x3fff, 2) && !reads(0x4000, 1), "there is nothing");
        assert!(!reads(0x1000, 0x4001) && !reads(0x5000, 1) && !reads(0x7000, 8) && !writes(0x7000, 8));
        assert!(!reads(0, 1) && !reads(u64::MAX, 1) && !reads(0x1000, u64::MAX) && !reads(0x8000, 1));
        assert!(!reads(0xffff_ffff_ff60_0000, 8) && writes(0, 0));
    }

    /// Catches mappings that are not those of the process.
    #[test]
    fn a_process_has_its_own_memory_mapped() {
        let own = ProcessMemory::of(std::process::id()).unwrap();
        let place = Box::new([7u8; 32]);
        let address = std::ptr::from_ref(&*place) as u64;
        let mappings = own.mappings().unwrap();
        assert!(mappings.permit(address, 32, Access::Write));
        let text = all_of_a_range_must_be_mapped_for_the_access as fn() as usize as u64;
        assert!(mappings.permit(text, 16, Access::Read) && !mappings.permit(text, 16, Access::Write));
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
