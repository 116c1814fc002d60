//! The process's own memory, as its interface reads and writes it.

use weft_portals_objects::Memory;

/// The memory of this process. Places come from the program, which answers for them.
pub struct ProcessMemory;

impl Memory for ProcessMemory {
    fn read(&self, address: u64, length: u64) -> Option<Vec<u8>> {
        let (start, length) = (usize::try_from(address).ok()? as *const u8, usize::try_from(length).ok()?);
        if start.is_null() || length > isize::MAX as usize {
            return None;
        }
        // SAFETY: the program has bound or appended this memory, and keeps it until it releases or unlinks
        // that.
        Some(unsafe { std::slice::from_raw_parts(start, length) }.to_vec())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        let start = usize::try_from(address).ok()? as *mut u8;
        if start.is_null() {
            return None;
        }
        // SAFETY: as in `read`; the bytes are the library's own.
        unsafe { std::ptr::copy(bytes.as_ptr(), start, bytes.len()) };
        Some(())
    }
}
