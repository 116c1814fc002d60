//! Pending events, by window.
//!
//! ```text
//!            slot = window mod 256
//!   block 0  [ v ][ v ][   ][ v ] …       a block is 64 neighbouring sites;
//!   block 1  [ v ][   ][   ][ v ] …       v: its events of that window, unsorted
//!   …
//!   beyond   a heap of all that lies further ahead than 256 windows
//! ```
//! Appending to the end of a short list is all that sending an event costs; a block's share of a
//! window fits the cache when its time comes.

use crate::batch::{Batch, FEW_EVENTS, SpareBatches};
use crate::event::{Earliest, Event, Payload, SiteId};
use crate::lookahead::Windows;
use crate::prefetch::prefetch;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weft_units::Time;

/// log2 of the sites in a block.
pub(crate) const BLOCK_SHIFT: u32 = 6;
/// Sites in a block.
pub(crate) const BLOCK: usize = 1 << BLOCK_SHIFT;
/// Windows ahead for which there are lists.
const SLOTS: usize = 256;
/// Blocks that fit a megabyte with their events, where switches have a few ports each.
const NEAR_BLOCKS: usize = 8;

/// A note that has been sent, and the time from which it counts.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Note<N> {
    pub(crate) time: Time,
    pub(crate) site: SiteId,
    pub(crate) note: N,
}

/// Events and notes that one partition sends another in a window.
pub(crate) struct Letters<P, K> {
    events: Vec<Event<P>>,
    notes: Vec<Note<K>>,
}

impl<P, K> Default for Letters<P, K> {
    fn default() -> Self {
        Letters { events: Vec::new(), notes: Vec::new() }
    }
}

impl<P, K> Letters<P, K> {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.notes.is_empty()
    }
}

/// Appends to the list of a batch; where memory is far, asks for the place of the next entry: by the time
/// that it comes, other lists have had their turn.
#[inline(always)]
fn append<T>(list: &mut Vec<T>, entry: T, far: bool) {
    list.push(entry);
    if far && let Some(next) = list.spare_capacity_mut().first() {
        prefetch(next);
    }
}

/// The batches that may hold something.
struct Occupied {
    /// A bit per slot: whether any of its batches may hold something.
    slots: [u64; SLOTS / 64],
    /// `[slot * words + block / 64]`: a bit per batch that may.
    blocks: Vec<u64>,
    words: usize,
}

impl Occupied {
    fn new(blocks: usize) -> Occupied {
        let words = blocks.div_ceil(64);
        Occupied { slots: [0; SLOTS / 64], blocks: vec![0; SLOTS * words], words }
    }

    /// Something will be added to the batch of a slot and block. If it is the first, that is noted, and the
    /// batch gets memory.
    #[inline(always)]
    fn begin<P: Payload, K>(
        &mut self,
        batch: &mut Batch<P, K>,
        (slot, local_block): (usize, usize),
        spare: &mut SpareBatches<P, K>,
    ) {
        if batch.is_empty() {
            self.slots[slot / 64] |= 1 << (slot % 64);
            self.blocks[slot * self.words + local_block / 64] |= 1 << (local_block % 64);
            spare.begin(batch);
        }
    }
}

/// The pending events of one partition, and its mail for the others.
pub(crate) struct PendingEvents<P: Payload, K> {
    windows: Windows,
    /// This partition's blocks: `first_block .. first_block + blocks`.
    first_block: usize,
    blocks: usize,
    /// The window that is being worked off; no event may be earlier.
    window: u64,
    /// `[slot * blocks + block]`.
    slots: Vec<Batch<P, K>>,
    occupied: Occupied,
    beyond: BinaryHeap<Earliest<P>>,
    /// Notes further ahead, by window, in the order in which they were sent.
    notes_beyond: BTreeMap<u64, Vec<Note<K>>>,
    decisions_beyond: BinaryHeap<Reverse<(Time, SiteId)>>,
    spare: SpareBatches<P, K>,
    /// Whether there are so many sites that their state and events fit no cache of one core, which makes
    /// asking for memory ahead worth its instructions.
    pub(crate) far: bool,
    /// First block of each partition, and the end.
    bounds: Vec<usize>,
    /// By partition: what it must take over after this window.
    pub(crate) mail: Vec<Letters<P, K>>,
    /// The earliest time in the mail of this window.
    pub(crate) mail_earliest: Time,
}

impl<P: Payload, K: Copy> PendingEvents<P, K> {
    /// `bounds[i]..bounds[i + 1]` are the blocks of partition i; this one is `own`.
    pub(crate) fn new(windows: Windows, bounds: &[usize], own: usize) -> PendingEvents<P, K> {
        let (first_block, blocks) = (bounds[own], bounds[own + 1] - bounds[own]);
        PendingEvents {
            windows,
            first_block,
            blocks,
            window: 0,
            slots: std::iter::repeat_with(Batch::default).take(SLOTS * blocks).collect(),
            occupied: Occupied::new(blocks),
            beyond: BinaryHeap::new(),
            notes_beyond: BTreeMap::new(),
            decisions_beyond: BinaryHeap::new(),
            spare: SpareBatches::default(),
            far: blocks > NEAR_BLOCKS,
            bounds: bounds.to_vec(),
            mail: std::iter::repeat_with(Letters::default).take(bounds.len() - 1).collect(),
            mail_earliest: Time::NEVER,
        }
    }

    /// Adds an event, for this partition or by mail for another.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event<P>) {
        self.push_with(event.head(), move || event.payload);
    }

    /// The same for an event whose payload is made where the event stays.
    #[inline(always)]
    pub(crate) fn push_with(&mut self, head: Event<()>, payload: impl FnOnce() -> P) {
        let block = (head.site.0 >> BLOCK_SHIFT) as usize;
        let local = block.wrapping_sub(self.first_block);
        if local >= self.blocks {
            return self.mail_event(block, head.with(payload()));
        }
        let window = self.windows.of(head.time);
        if window - self.window >= SLOTS as u64 {
            return self.put_beyond(head.with(payload()));
        }
        let slot = window as usize % SLOTS;
        let batch = &mut self.slots[slot * self.blocks + local];
        // One question for most events: a list that begins has none, and one that gets full has few.
        if batch.events.len().is_multiple_of(FEW_EVENTS) {
            self.occupied.begin(batch, (slot, local), &mut self.spare);
            if batch.events.len() == FEW_EVENTS {
                self.spare.make_room(batch);
            }
        }
        append(&mut batch.events, head.with(payload()), self.far);
    }

    /// Adds an event to the mail for the partition of a block.
    #[inline(never)]
    fn mail_event(&mut self, block: usize, event: Event<P>) {
        let to = self.partition_of(block);
        self.mail_earliest = self.mail_earliest.min(event.time);
        self.mail[to].events.push(event);
    }

    /// Adds an event that lies further ahead than all lists.
    #[inline(never)]
    fn put_beyond(&mut self, event: Event<P>) {
        self.beyond.push(Earliest(event));
    }

    /// The partition of a block: partitions are few, and a search of their bounds costs less than a table of
    /// blocks.
    #[inline]
    fn partition_of(&self, block: usize) -> usize {
        self.bounds.partition_point(|&first| first <= block) - 1
    }

    /// Adds a note, for this partition or by mail for another.
    #[inline(always)]
    pub(crate) fn push_note(&mut self, note: Note<K>) {
        let block = (note.site.0 >> BLOCK_SHIFT) as usize;
        let local = block.wrapping_sub(self.first_block);
        if local >= self.blocks {
            let to = self.partition_of(block);
            self.mail_earliest = self.mail_earliest.min(note.time);
            self.mail[to].notes.push(note);
            return;
        }
        let window = self.windows.of(note.time);
        if window - self.window >= SLOTS as u64 {
            self.notes_beyond.entry(window).or_default().push(note);
            return;
        }
        let slot = window as usize % SLOTS;
        let batch = &mut self.slots[slot * self.blocks + local];
        self.occupied.begin(batch, (slot, local), &mut self.spare);
        append(&mut batch.notes, note, self.far);
    }

    /// Takes over what another partition has sent, and empties it.
    pub(crate) fn take_over(&mut self, letters: &mut Letters<P, K>) {
        letters.events.drain(..).for_each(|event| self.push(event));
        letters.notes.drain(..).for_each(|note| self.push_note(note));
    }

    /// Adds a site that wants to decide at `time`.
    #[inline]
    pub(crate) fn push_decision(&mut self, time: Time, site: SiteId) {
        let window = self.windows.of(time);
        if window - self.window >= SLOTS as u64 {
            self.decisions_beyond.push(Reverse((time, site)));
            return;
        }
        let local = (site.0 >> BLOCK_SHIFT) as usize - self.first_block;
        let slot = window as usize % SLOTS;
        let batch = &mut self.slots[slot * self.blocks + local];
        self.occupied.begin(batch, (slot, local), &mut self.spare);
        batch.decisions.push(site);
    }

    /// The first window that may hold something; `None`: nothing is pending (mail aside).
    pub(crate) fn next_window(&self) -> Option<u64> {
        let start = self.window as usize % SLOTS;
        let mut first = u64::MAX;
        for step in 0..=SLOTS / 64 {
            let word = (start / 64 + step) % (SLOTS / 64);
            let mut bits = self.occupied.slots[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == SLOTS / 64 {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                first = self.window + ((slot + SLOTS - start) % SLOTS) as u64;
                break;
            }
        }
        if let Some(Earliest(event)) = self.beyond.peek() {
            first = first.min(self.windows.of(event.time));
        }
        if let Some(Reverse((time, _))) = self.decisions_beyond.peek() {
            first = first.min(self.windows.of(*time));
        }
        if let Some((&window, _)) = self.notes_beyond.first_key_value() {
            first = first.min(window);
        }
        (first != u64::MAX).then_some(first)
    }

    /// Moves on to `window`, which must not be later than [`PendingEvents::next_window`].
    pub(crate) fn enter(&mut self, window: u64) {
        debug_assert!(window >= self.window);
        self.window = window;
        let end = self.windows.start(window + 1);
        while self.beyond.peek().is_some_and(|e| e.0.time < end) {
            if let Some(Earliest(event)) = self.beyond.pop() {
                self.push(event);
            }
        }
        while self.notes_beyond.first_key_value().is_some_and(|(&first, _)| first <= window) {
            for note in self.notes_beyond.pop_first().into_iter().flat_map(|(_, notes)| notes) {
                self.push_note(note);
            }
        }
        while self.decisions_beyond.peek().is_some_and(|d| d.0.0 < end) {
            if let Some(Reverse((time, site))) = self.decisions_beyond.pop() {
                self.push_decision(time, site);
            }
        }
    }

    /// The end (exclusive) of the present window.
    pub(crate) fn window_end(&self) -> Time {
        self.windows.start(self.window + 1)
    }

    /// Words of the bits that say which blocks have something in a window.
    pub(crate) fn words(&self) -> usize {
        self.occupied.words
    }

    /// Takes one of them for the present window: what it says must be [taken](Self::take).
    #[inline]
    pub(crate) fn take_occupied(&mut self, word: usize) -> u64 {
        let slot = self.window as usize % SLOTS;
        let words = self.words();
        std::mem::take(&mut self.occupied.blocks[slot * words + word])
    }

    /// Takes what waits for a block in the present window.
    #[inline]
    pub(crate) fn take(&mut self, local_block: usize) -> Batch<P, K> {
        let slot = self.window as usize % SLOTS;
        std::mem::take(&mut self.slots[slot * self.blocks + local_block])
    }

    /// Whether the present window may hold something for this partition.
    pub(crate) fn is_occupied(&self) -> bool {
        let slot = self.window as usize % SLOTS;
        self.occupied.slots[slot / 64] & 1 << (slot % 64) != 0
    }

    /// Says that the present window has been worked off, or (`whole` = false) that events of it may remain.
    pub(crate) fn leave(&mut self, whole: bool) {
        let slot = self.window as usize % SLOTS;
        let words = self.words();
        if whole || self.occupied.blocks[slot * words..(slot + 1) * words].iter().all(|&word| word == 0) {
            self.occupied.slots[slot / 64] &= !(1 << (slot % 64));
        }
    }

    /// Returns a batch, so that its memory is used again.
    pub(crate) fn recycle(&mut self, batch: Batch<P, K>) {
        self.spare.recycle(batch);
    }

    /// Every pending event, in no particular order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Event<P>> {
        self.slots.iter().flat_map(|b| &b.events).chain(self.beyond.iter().map(|e| &e.0))
    }

    /// Every note that has not been given to its site, those of one sender in order.
    pub(crate) fn pending_notes(&self) -> impl Iterator<Item = &Note<K>> {
        let start = self.window as usize % SLOTS;
        let slots = (0..SLOTS).map(move |step| (start + step) % SLOTS);
        let near = slots.flat_map(|slot| &self.slots[slot * self.blocks..(slot + 1) * self.blocks]);
        near.flat_map(|batch| &batch.notes).chain(self.notes_beyond.values().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Order;
    use crate::lookahead::Lookahead;
    use weft_units::Span;

    #[derive(Clone, Copy)]
    struct Nothing;

    impl Payload for Nothing {
        fn tie(&self) -> u128 {
            0
        }
    }

    /// Bytes of the lists of pending events, used and spare.
    fn bytes(pending: &PendingEvents<Nothing, ()>) -> usize {
        let lists = pending.slots.iter().chain(pending.spare.all());
        lists.map(|batch| batch.events.capacity() * size_of::<Event<Nothing>>()).sum()
    }

    /// Catches lists that are made anew again and again instead of used again: memory that grows with the
    /// time simulated, which happened with lists that were begun early and then grew.
    #[test]
    fn lists_of_past_windows_are_used_again() {
        let nanosecond = Lookahead::across([(Span::from_ns(1), "a link")]).expect("it has latency");
        let windows = nanosecond.windows();
        let mut pending: PendingEvents<Nothing, ()> = PendingEvents::new(windows, &[0, 2], 0);
        let mut after_some = 0;
        for window in 0..4_000u64 {
            pending.enter(window);
            let occupied = pending.take_occupied(0);
            for block in (0..2).filter(|block| occupied >> block & 1 == 1) {
                let batch = pending.take(block);
                pending.recycle(batch);
            }
            pending.leave(true);
            // One early event for most windows, and for every third many that come late.
            let many = if window % 3 == 0 { 3 * FEW_EVENTS } else { FEW_EVENTS / 2 };
            for (ahead, count) in [(100, 1), (200, 1), (1, many)] {
                for event in 0..count as u32 {
                    let (time, order) = (windows.start(window + ahead), Order::new(event, 0));
                    let site = SiteId(event % (2 * BLOCK as u32));
                    pending.push(Event { time, site, order, payload: Nothing });
                }
            }
            if window == 1_000 {
                after_some = bytes(&pending);
            }
        }
        assert!(
            after_some > 0 && bytes(&pending) <= 2 * after_some,
            "{after_some} B, then {} B",
            bytes(&pending)
        );
    }
}
