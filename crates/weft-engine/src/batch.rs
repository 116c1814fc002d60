//! Batches: the events, notes and decisions of a block of sites in one window, in lists that are used again.
//!
//! ```text
//!   begin ─► a spare batch with little room ─► full ─► one with more room, if there is one
//!      ▲                                                   │
//!      └──────────────────── recycle ◄─────────────────────┘
//! ```

use crate::event::{Event, Payload, SiteId};
use crate::event_queue::Note;

/// Room of a list when it begins, in events. Most lists of later windows, such as those of timers, get no
/// more: with the room that near windows need, memory would lie idle in them, and be out of the cache when it
/// is used.
pub(crate) const FEW_EVENTS: usize = 32;

/// Events, notes and decisions of one block of sites in one window.
pub(crate) struct Batch<P, K> {
    pub(crate) events: Vec<Event<P>>,
    pub(crate) notes: Vec<Note<K>>,
    /// Sites that want to decide in this window.
    pub(crate) decisions: Vec<SiteId>,
}

impl<P, K> Default for Batch<P, K> {
    fn default() -> Self {
        Batch { events: Vec::new(), notes: Vec::new(), decisions: Vec::new() }
    }
}

impl<P, K> Batch<P, K> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.notes.is_empty() && self.decisions.is_empty()
    }
}

/// Empty batches, so that their memory is used again.
pub(crate) struct SpareBatches<P, K> {
    /// With room for more than [`FEW_EVENTS`].
    roomy: Vec<Batch<P, K>>,
    /// With less.
    small: Vec<Batch<P, K>>,
}

impl<P, K> Default for SpareBatches<P, K> {
    fn default() -> Self {
        SpareBatches { roomy: Vec::new(), small: Vec::new() }
    }
}

impl<P: Payload, K> SpareBatches<P, K> {
    /// Gives an empty batch memory, if there is some.
    #[inline]
    pub(crate) fn begin(&mut self, batch: &mut Batch<P, K>) {
        if let Some(spare) = self.small.pop() {
            *batch = spare;
        }
    }

    /// Moves what is more than few into a batch with room for it, if there is one.
    #[cold]
    pub(crate) fn make_room(&mut self, batch: &mut Batch<P, K>) {
        if batch.events.capacity() <= FEW_EVENTS
            && let Some(mut roomy) = self.roomy.pop()
        {
            roomy.events.append(&mut batch.events);
            roomy.notes.append(&mut batch.notes);
            roomy.decisions.append(&mut batch.decisions);
            self.small.push(std::mem::replace(batch, roomy));
        }
    }

    /// Takes back a batch that has been worked off.
    pub(crate) fn recycle(&mut self, mut batch: Batch<P, K>) {
        batch.events.clear();
        batch.notes.clear();
        batch.decisions.clear();
        let is_roomy = batch.events.capacity() > FEW_EVENTS;
        if is_roomy { self.roomy.push(batch) } else { self.small.push(batch) }
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Batch<P, K>> {
        self.small.iter().chain(&self.roomy)
    }
}
