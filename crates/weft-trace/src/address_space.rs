//! From the memory that a process uses to virtual memory of 39 bits, in the order of first use.
//!
//! Where a buffer lies in a real process depends on address randomization, on the size of the environment and
//! on the C library. None of that may change a result. So the process's memory is laid out anew, by nothing
//! but the order in which the program names its buffers, and their distances within one piece of memory:
//!
//! | a buffer that begins | lies |
//! |---|---|
//! | within a known piece, or at most 64 bytes behind it | as far from its virtual begin; the piece grows |
//! | anywhere else, or would outgrow the piece's room | at the begin of a new piece, at the next free place |
//!
//! ```text
//!   process:     ──[ a ]──────[   b   ]───────────[c]──        wherever they happen to lie
//!   virtual:  ·[ a ......room ]·[   b ......room ]·[c ......room ]·     · a page that stays free
//! ```
//!
//! A buffer that covers the begin of a known piece takes it in: from then on the two are one.
//!
//! # Not modelled
//! Memory that was freed and is used again for something else is still the piece that it was. Which memory is
//! used again is up to the C library, and to all that the process allocates in between: an MPI library does
//! so when messages arrive. In virtual time that is the same in every run; in real time it is chance. Derived
//! types count by their bytes, without gaps. Pieces begin at pages of their own, where real allocations of a
//! few bytes share one.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use weft_units::{Address, Bytes};

/// A page: of the smallest size that the interfaces' tables of pages have.
const PAGE_BYTES: u64 = 4096;

/// Least room of a piece, to grow in.
const MIN_ROOM_BYTES: u64 = 16 << 20;

/// Most bytes between neighbours in one piece: a line of a cache, so that the cells of a pool share their
/// pages. What the loader puts at a distance of whole pages, by chance, is no neighbour.
const GAP_BYTES: u64 = 64;

/// One past the last virtual address.
const END: u64 = 1 << AddressSpace::BITS;

/// The virtual memory of one process.
///
/// Its addresses have [`AddressSpace::BITS`] bits. When the next piece does not fit any more, all pieces are
/// forgotten and the next begins at the bottom: after 32,760 pieces at the earliest. So at most so many are
/// kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddressSpace {
    /// The pieces by their begin in the process. They do not overlap.
    pieces: BTreeMap<u64, Piece>,
    /// Virtual begin of the next piece.
    free: u64,
}

/// A piece of memory that was used as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Piece {
    /// Bytes from its begin that were used; at most its room.
    bytes: u64,
    /// Virtual begin.
    place: u64,
    /// Bytes that it may grow to.
    room: u64,
}

impl Default for AddressSpace {
    fn default() -> AddressSpace {
        // The first page stays free: 0 is no buffer.
        AddressSpace { pieces: BTreeMap::new(), free: PAGE_BYTES }
    }
}

impl AddressSpace {
    /// Bits of a virtual address: as many as ExaNet's global addresses have for it (TR-488 §4.3).
    pub const BITS: u32 = 39;

    /// The virtual address of a buffer that the process names by `address`. A buffer of no bytes is taken for
    /// one byte.
    pub fn place(&mut self, address: u64, bytes: Bytes) -> Address {
        let bytes = bytes.get().max(1);
        let begin = self.piece_of(address, bytes).unwrap_or_else(|| self.begin_piece(address, bytes));
        let distance = address - begin;
        self.cover(begin, distance.saturating_add(bytes));
        Address::new(self.pieces[&begin].place + distance)
    }

    /// The begin of the known piece that the buffer belongs to.
    fn piece_of(&self, address: u64, bytes: u64) -> Option<u64> {
        let (&begin, piece) = self.pieces.range(..=address).next_back()?;
        let distance = address - begin;
        (distance <= piece.bytes + GAP_BYTES && bytes <= piece.room.saturating_sub(distance)).then_some(begin)
    }

    /// Begins a piece at the next free place.
    fn begin_piece(&mut self, begin: u64, bytes: u64) -> u64 {
        let room = bytes.checked_next_power_of_two().unwrap_or(END).clamp(MIN_ROOM_BYTES, END - PAGE_BYTES);
        if self.free + room > END {
            *self = AddressSpace::default();
        }
        // The piece before gives way where the two overlap.
        if let Some((before, piece)) = self.pieces.range_mut(..begin).next_back() {
            piece.bytes = piece.bytes.min(begin - before);
        }
        self.pieces.insert(begin, Piece { bytes: 0, place: self.free, room });
        // Rooms are powers of two. Without a page between them all pieces would begin in the same set of a
        // cache of translations.
        self.free += room + PAGE_BYTES;
        begin
    }

    /// Makes the piece at `begin` so long at least, and takes in the pieces that it then covers.
    fn cover(&mut self, begin: u64, bytes: u64) {
        let piece = self.pieces[&begin];
        if bytes <= piece.bytes {
            return;
        }
        let mut bytes = bytes.min(piece.room);
        loop {
            let last = begin.saturating_add(bytes - 1);
            let Some((&other, taken)) = self.pieces.range((Excluded(begin), Included(last))).next() else {
                break;
            };
            bytes = bytes.max((other - begin).saturating_add(taken.bytes).min(piece.room));
            self.pieces.remove(&other);
        }
        self.pieces.insert(begin, Piece { bytes, ..piece });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;
    const GB: u64 = 1 << 30;

    fn place(space: &mut AddressSpace, address: u64, bytes: u64) -> u64 {
        space.place(address, Bytes::new(bytes)).get()
    }

    /// Virtual addresses of some buffers, named one after the other.
    fn placed(buffers: &[(u64, u64)]) -> Vec<u64> {
        let mut space = AddressSpace::default();
        buffers.iter().map(|&(address, bytes)| place(&mut space, address, bytes)).collect()
    }

    /// Addresses that hit each other's pieces, their ends and nothing, in a process of 47 bits.
    fn buffer() -> impl Strategy<Value = (u64, u64)> {
        let base = prop_oneof![Just(0x5555_0000_0010u64), Just(0x7fff_ffff_0000), Just(8 * GB)];
        let bytes = prop_oneof![0..100u64, 0..2 * MB, Just(16 * MB), 0..64 * GB];
        (base, prop_oneof![0..50u64, 0..4 * MB], bytes)
            .prop_map(|(base, offset, bytes)| (base + offset, bytes))
    }

    proptest! {
        /// Catches a place that depends on where the loader and the kernel have put the process's memory.
        #[test]
        fn the_same_accesses_elsewhere_give_the_same(
            buffers in vec(buffer(), 1..60),
            shift in 0..1u64 << 46,
        ) {
            let shifted: Vec<_> = buffers.iter().map(|&(address, bytes)| (address + shift, bytes)).collect();
            prop_assert_eq!(placed(&buffers), placed(&shifted));
        }

        /// Catches a part of a buffer that lies elsewhere than in it.
        #[test]
        fn what_lies_in_a_buffer_keeps_its_distance(
            buffers in vec(buffer(), 1..60),
            parts in vec((any::<u64>(), any::<u64>()), 60),
        ) {
            let mut space = AddressSpace::default();
            for ((address, bytes), (offset, length)) in buffers.into_iter().zip(parts) {
                let whole = place(&mut space, address, bytes);
                let bytes = bytes.max(1);
                let offset = offset % bytes;
                let part = place(&mut space, address + offset, length % (bytes - offset));
                prop_assert_eq!(part - whole, offset);
            }
        }

        /// Catches two places of the process at one virtual address, and addresses of more than 39 bits.
        #[test]
        fn a_virtual_address_is_one_place_of_the_process(buffers in vec(buffer(), 1..60)) {
            let mut space = AddressSpace::default();
            let mut known: Vec<(u64, u64, u64)> = Vec::new();
            for (address, bytes) in buffers {
                let free = space.free;
                let begin = place(&mut space, address, bytes);
                let end = begin + bytes.max(1);
                prop_assert!((PAGE_BYTES..=END).contains(&begin) && end <= END);
                if space.free < free {
                    known.clear(); // Begun anew.
                }
                for &(other_begin, other_end, other_address) in &known {
                    let apart = end <= other_begin || other_end <= begin;
                    let distance = address.wrapping_sub(other_address);
                    prop_assert!(apart || begin.wrapping_sub(other_begin) == distance);
                }
                known.push((begin, end, address));
            }
        }

        /// Catches pieces that overlap in the process, so that the search would not find the right one, and
        /// panics at the ends of the numbers.
        #[test]
        fn pieces_lie_one_after_the_other(buffers in vec((any::<u64>(), any::<u64>(), 0..64u32), 1..60)) {
            let mut space = AddressSpace::default();
            for (address, bytes, shift) in buffers {
                let begin = place(&mut space, address >> (shift / 2), bytes >> shift);
                prop_assert!(begin < END);
                let pieces: Vec<_> = space.pieces.iter().collect();
                for (_, piece) in &pieces {
                    prop_assert!((1..=piece.room).contains(&piece.bytes) && piece.place + piece.room <= END);
                }
                for pair in pieces.windows(2) {
                    prop_assert!(pair[0].1.bytes <= pair[1].0 - pair[0].0);
                }
            }
        }
    }

    /// Catches a space that goes on elsewhere after a run was saved and resumed.
    #[test]
    fn a_space_is_saved_with_its_pieces() {
        let mut space = AddressSpace::default();
        for i in 0..9 {
            place(&mut space, i * GB, 3 * MB);
        }
        let saved = serde_json::to_string(&space).unwrap();
        assert_eq!(serde_json::from_str::<AddressSpace>(&saved).unwrap(), space);
    }

    /// Catches a buffer that begins near the end of another and is taken for foreign, so that each cell of a
    /// pool has a page of its own, and one that lies far from it and is taken for its neighbour.
    #[test]
    fn the_bytes_close_behind_a_piece_belong_to_it() {
        let (a, b) = (0x7f00_0000_1234, 0x7f00_0000_1234 + 100);
        assert_eq!(placed(&[(a, 100), (b, 50), (b + 50, 8)]), [4096, 4196, 4246]);
        assert_eq!(placed(&[(a, 100), (b + 64, 50)]), [4096, 4260]);
        assert_eq!(placed(&[(a, 100), (b + 65, 50)]), [4096, 4096 + 16 * MB + 4096]);
    }

    /// Catches a piece that grows into the next.
    #[test]
    fn a_piece_grows_into_its_room_and_no_further() {
        let a = 0x7f00_0000_0000;
        let second = 4096 + 16 * MB + 4096;
        assert_eq!(placed(&[(a, 8), (9, 8), (a, 16 * MB)]), [4096, second, 4096]);
        assert_eq!(
            placed(&[(a, 8), (a, 17 * MB), (a + 17 * MB - 4, 4)]),
            [4096, second, second + 17 * MB - 4]
        );
        // What begins within a piece that has no room for it leaves the rest of the piece where it was.
        let buffers = [(a, 16 * MB), (a + 4 * KB, 16 * MB), (a + 100, 8), (a + 8 * KB, 8)];
        assert_eq!(placed(&buffers), [4096, second, 4196, second + 4 * KB]);
    }

    /// Catches a part of an array that stays apart after the program has used the whole.
    #[test]
    fn a_buffer_takes_in_the_pieces_that_it_covers() {
        let a = 0x7f00_0000_0000;
        let second = 4096 + 16 * MB + 4096;
        let buffers = [(a + 1000, 100), (a, 1050), (a + 1000, 100), (a + 1090, 10)];
        assert_eq!(placed(&buffers), [4096, second, second + 1000, second + 1090]);
    }

    /// Catches a panic, an address of 40 bits, or memory that grows without end where a program has more
    /// buffers than fit.
    #[test]
    fn a_full_space_begins_anew() {
        let mut space = AddressSpace::default();
        let first: Vec<_> = (0..32_760).map(|i| place(&mut space, i * GB, 8)).collect();
        assert!(first.is_sorted() && first.iter().all(|&begin| begin < END));
        assert_eq!(space.pieces.len(), 32_760);
        assert_eq!(place(&mut space, 99_999 * GB, 8), 4096);
        assert_eq!(space.pieces.len(), 1);
        // Known no more.
        assert_eq!(place(&mut space, 0, 8), 4096 + 16 * MB + 4096);
        // Longer than all there is.
        assert_eq!(place(&mut space, 5, u64::MAX), 4096);
    }
}
