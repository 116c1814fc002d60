//! The memory that a rank has opened to the interface, and where the interface sees it.
//!
//! # Not modelled
//! A rank that goes on as another program has a virtual memory of its own, but its pages are taken for those
//! of the program before: they may be in the TLB.

use crate::memory::ProcessMemory;
use std::collections::BTreeMap;
use weft_client::device::Post;
use weft_trace::AddressSpace;
use weft_units::{Address, Bytes};

/// Bytes of the largest region that is laid out as one: who opens more opens all the memory that there is.
const MAX_WHOLE_BYTES: u64 = 1 << 36;

/// Memory that a rank lets its peers reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub address: u64,
    pub length: u64,
    pub may_read: bool,
    pub may_write: bool,
}

impl Region {
    /// The region that a rank has posted.
    pub(crate) fn of(post: &Post) -> Region {
        let allows = |flag| post.flags & flag != 0;
        let (may_read, may_write) = (allows(Post::MAY_READ), allows(Post::MAY_WRITE));
        Region { address: post.local, length: post.length, may_read, may_write }
    }

    /// Whether peers may reach `length` bytes at `address`.
    pub(crate) fn permits(&self, address: u64, length: u64, writes: bool) -> bool {
        self.holds(address, length) && if writes { self.may_write } else { self.may_read }
    }

    /// Whether `length` bytes at `address` are part of it.
    fn holds(&self, address: u64, length: u64) -> bool {
        address >= self.address && length <= self.length && address - self.address <= self.length - length
    }
}

/// The buffer of a message that a rank has let its sender send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedData {
    pub address: u64,
    pub length: u64,
    /// The virtual address by which the interface sees it.
    pub place: Address,
}

/// The memory of a rank that the interface may reach. Only the simulating thread uses it.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// The memory of its process, once it was needed.
    pub memory: Option<ProcessMemory>,
    /// Memory that peers may reach, by key.
    pub regions: BTreeMap<u64, Region>,
    /// Times that the rank has been closed: an answer to an earlier request is not put into its memory.
    pub opening: u32,
    /// Buffers of announced messages, by the receive's number.
    pub expected: BTreeMap<u32, ExpectedData>,
    /// The virtual memory of its process, as its interface sees it.
    space: AddressSpace,
}

impl Reach {
    /// Whether peers may reach `length` bytes at `address` under some key.
    pub(crate) fn registers(&self, address: u64, length: u64, writes: bool) -> bool {
        self.regions.values().any(|region| region.permits(address, length, writes))
    }

    /// The virtual address of `length` bytes of the rank's memory.
    pub(crate) fn place(&mut self, address: u64, length: u64) -> Address {
        self.space.place(address, Bytes::new(length))
    }

    /// The virtual address of `length` bytes that a peer reaches under this key. What lies in no
    /// region has no place: nothing is read or written there.
    pub(crate) fn place_in_region(&mut self, key: u64, address: u64, length: u64) -> Address {
        let whole = self.regions.get(&key).filter(|region| region.holds(address, length)).copied();
        let Some(whole) = whole else { return Address::default() };
        // A window is one piece of memory, whichever part of it is reached first.
        if whole.length <= MAX_WHOLE_BYTES {
            self.place(whole.address, whole.length);
        }
        self.place(address, length)
    }

    /// The rank is closed. Its process may become another program, with other memory.
    pub(crate) fn close(&mut self) {
        let opening = self.opening.wrapping_add(1);
        *self = Reach { opening, ..Reach::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 0x7f12_3456_7000;
    const LENGTH: u64 = 1 << 20;

    /// A rank that has opened memory under key 7.
    fn opened(address: u64, length: u64) -> Reach {
        let region = Region { address, length, may_read: true, may_write: true };
        Reach { regions: BTreeMap::from([(7, region)]), ..Reach::default() }
    }

    /// Catches a window whose parts lie apart, in the order in which peers reach them.
    #[test]
    fn a_region_is_one_piece_whichever_part_is_reached_first() {
        let mut reach = opened(WINDOW, LENGTH);
        let end = reach.place_in_region(7, WINDOW + LENGTH - 8, 8).get();
        assert_eq!(reach.place_in_region(7, WINDOW, 8).get() + LENGTH - 8, end);
        // The rank's own use of it is the same memory.
        assert_eq!(reach.place(WINDOW + 100, 8).get() + LENGTH - 108, end);
    }

    /// Catches a peer's wrong address that gets a place in the rank's memory, and moves what comes after it.
    #[test]
    fn what_lies_in_no_region_has_no_place() {
        let mut reach = opened(WINDOW, LENGTH);
        for (key, address, length) in
            [(7, WINDOW - 1, 8), (7, WINDOW + LENGTH - 4, 8), (7, u64::MAX, u64::MAX), (8, WINDOW, 8)]
        {
            assert_eq!(reach.place_in_region(key, address, length), Address::default());
        }
        assert_eq!(reach.place(WINDOW, 8), opened(0, 0).place(1 << 40, 8));
    }

    /// Catches a rank that opens all its memory, as for dynamic windows, and has no room left for any of it.
    #[test]
    fn all_memory_at_once_is_no_piece() {
        let mut reach = opened(0, u64::MAX);
        let places = [WINDOW, WINDOW + (1 << 46), WINDOW + 8].map(|at| reach.place_in_region(7, at, 8).get());
        assert!(places[0] != places[1] && places[2] == places[0] + 8, "{places:?}");
        assert!(places.iter().all(|place| *place < 1 << AddressSpace::BITS));
    }

    /// Catches a second program of a rank whose places depend on where the system has put the first.
    #[test]
    fn a_closed_rank_begins_anew() {
        let mut reach = opened(WINDOW, LENGTH);
        let first = reach.place(WINDOW, 8);
        reach.place(WINDOW + (1 << 30), 8);
        reach.close();
        assert_eq!(reach.place(WINDOW + (1 << 30), 8), first);
    }
}
