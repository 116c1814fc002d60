//! A partition: neighbouring sites that one thread works off, window by window.

use crate::event::{Earliest, Event, Payload, SiteId};
use crate::lookahead::Windows;
use crate::model::{Context, Model};
use crate::prefetch::prefetch;
use crate::wheel::{BLOCK, BLOCK_SHIFT, Batch, Outgoing};
use std::collections::BinaryHeap;
use weft_units::Time;

pub(crate) struct Partition<M: Model> {
    pub(crate) first_site: u32,
    pub(crate) sites: Vec<M::Site>,
    /// For each site the earliest decision that the wheel knows of; [`Time::MAX`]: none.
    armed: Vec<Time>,
    pub(crate) pending: Outgoing<M::Payload, M::Note>,
    pub(crate) output: M::Output,
    pub(crate) events_handled: u64,
    /// The events of a block by site.
    keys: Vec<Key>,
    /// Room for those of a site with few.
    few: Vec<Key>,
    /// The notes of a block by site, those of a site as they came.
    note_order: Vec<u32>,
    local: BinaryHeap<Earliest<M::Payload>>,
}

/// An event's place in the order of its site within a window, without its payload.
#[derive(Clone, Copy)]
struct Key {
    /// Picoseconds since the window began (windows are shorter than 2^32 ps), then [`crate::Order`].
    rank: u64,
    /// In the batch of the window.
    index: u32,
}

impl Key {
    #[inline]
    fn new<P: Payload>(event: &Event<P>, start: Time, index: u32) -> Key {
        let since = event.time.as_ps() - start.as_ps();
        Key { rank: since << 32 | u64::from(event.order.rank()), index }
    }
}

/// Up to so many keys are sorted by counting.
const FEW: usize = 16;

/// Sorts the events of one site, into `few` where they are few. Sorting keys moves a quarter of the memory
/// that sorting events would.
#[inline]
fn sort<'a, P: Payload>(keys: &'a mut [Key], few: &'a mut [Key], events: &[Event<P>]) -> &'a mut [Key] {
    if keys.len() < 2 { keys } else { sort_several(keys, few, events) }
}

fn sort_several<'a, P: Payload>(
    keys: &'a mut [Key],
    few: &'a mut [Key],
    events: &[Event<P>],
) -> &'a mut [Key] {
    let count = keys.len();
    let mut ties = true;
    let sorted = if count <= FEW {
        // By counting for each how many come before it: a fixed number of comparisons without a branch
        // that depends on one, which for so few is faster than comparing less and guessing wrong.
        let mut equal = 0;
        for (at, key) in keys.iter().enumerate() {
            let mut before = 0;
            for other in &keys[..at] {
                before += usize::from(other.rank <= key.rank);
                equal += usize::from(other.rank == key.rank);
            }
            let after: usize = keys[at + 1..].iter().map(|other| usize::from(other.rank < key.rank)).sum();
            few[before + after] = *key;
        }
        ties = equal > 0;
        &mut few[..count]
    } else {
        keys.sort_unstable_by_key(|key| key.rank);
        keys
    };
    if ties {
        settle(sorted, events);
    }
    sorted
}

/// Orders sorted keys of the same rank by the payloads of their events.
fn settle<P: Payload>(sorted: &mut [Key], events: &[Event<P>]) {
    for run in sorted.chunk_by_mut(|one, next| one.rank == next.rank) {
        run.sort_unstable_by_key(|key| events[key.index as usize].payload.tie());
    }
}

/// A block with no more events and notes than this in a window is searched for those of each site, which for
/// so few costs less than going through all sites of the block.
const SPARSE: usize = 12;

/// The place of a site in its block.
#[inline]
fn member(site: SiteId) -> usize {
    site.index() & (BLOCK - 1)
}

impl<M: Model> Partition<M> {
    pub(crate) fn new(first_site: u32, sites: Vec<M::Site>, pending: Outgoing<M::Payload, M::Note>) -> Self {
        let mut partition = Partition {
            first_site,
            armed: vec![Time::MAX; sites.len()],
            sites,
            pending,
            output: M::Output::default(),
            events_handled: 0,
            keys: Vec::new(),
            few: vec![Key { rank: 0, index: 0 }; FEW],
            note_order: Vec::new(),
            local: BinaryHeap::new(),
        };
        for index in 0..partition.sites.len() {
            partition.arm(index);
        }
        partition
    }

    /// Makes sure that the wheel knows of the site's next decision.
    #[inline]
    fn arm(&mut self, index: usize) {
        let decision = M::decision(&self.sites[index]);
        if decision < self.armed[index] {
            self.armed[index] = decision;
            self.pending.push_decision(decision, SiteId(self.first_site + index as u32));
        }
    }

    /// Works off `window` up to `until` (exclusive).
    pub(crate) fn run_window(&mut self, model: &M, window: u64, windows: Windows, until: Time) {
        self.pending.enter(window);
        if !self.pending.is_occupied() {
            return;
        }
        let window_end = windows.start(window + 1);
        let end = window_end.min(until);
        let blocks = self.sites.len().div_ceil(BLOCK);
        for block in 0..blocks {
            if let Some(batch) = self.pending.take(block) {
                if batch.events.len() + batch.notes.len() <= SPARSE {
                    self.run_sparse_block(model, block, batch, windows.start(window), end);
                } else {
                    self.run_block(model, block, batch, windows.start(window), end);
                }
            }
        }
        self.pending.leave(end == window_end);
    }

    /// The same as [`Self::run_block`] where little happens.
    fn run_sparse_block(
        &mut self,
        model: &M,
        block: usize,
        batch: Batch<M::Payload, M::Note>,
        start: Time,
        end: Time,
    ) {
        let Batch { events, notes, decisions } = &batch;
        let sites = events.iter().map(|event| event.site).chain(notes.iter().map(|note| note.site));
        let mut active =
            sites.chain(decisions.iter().copied()).fold(0u64, |all, site| all | 1 << member(site));
        let first = block << BLOCK_SHIFT;
        let mut keys = std::mem::take(&mut self.keys);
        let mut few = std::mem::take(&mut self.few);
        while active != 0 {
            let index = first + active.trailing_zeros() as usize;
            active &= active - 1;
            let site = SiteId(self.first_site + index as u32);
            for note in notes.iter().filter(|note| note.site == site) {
                model.note(&mut self.sites[index], note.time, note.note);
            }
            keys.clear();
            let of_site = events.iter().zip(0..).filter(|(event, _)| event.site == site);
            keys.extend(of_site.map(|(event, index)| Key::new(event, start, index)));
            let sorted = sort(&mut keys, &mut few, events);
            self.run_site(model, index, events, sorted, end);
        }
        self.keys = keys;
        self.few = few;
        self.pending.recycle(batch);
    }

    fn run_block(
        &mut self,
        model: &M,
        block: usize,
        batch: Batch<M::Payload, M::Note>,
        start: Time,
        end: Time,
    ) {
        let Batch { events, notes, decisions } = &batch;
        let mut bounds = [0u32; BLOCK + 1];
        for event in events {
            bounds[member(event.site) + 1] += 1;
        }
        let mut note_bounds = [0u32; BLOCK + 1];
        for note in notes {
            note_bounds[member(note.site) + 1] += 1;
        }
        let mut active = 0u64;
        for member in 0..BLOCK {
            let any = bounds[member + 1] | note_bounds[member + 1];
            active |= u64::from(any != 0) << member;
            bounds[member + 1] += bounds[member];
            note_bounds[member + 1] += note_bounds[member];
        }
        for site in decisions {
            active |= 1 << member(*site);
        }
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys.resize(events.len(), Key { rank: 0, index: 0 });
        let mut next = bounds;
        for (index, event) in events.iter().enumerate() {
            let slot = &mut next[member(event.site)];
            keys[*slot as usize] = Key::new(event, start, index as u32);
            *slot += 1;
        }
        let mut note_order = std::mem::take(&mut self.note_order);
        note_order.clear();
        note_order.resize(notes.len(), 0);
        let mut next = note_bounds;
        for (index, note) in notes.iter().enumerate() {
            let slot = &mut next[member(note.site)];
            note_order[*slot as usize] = index as u32;
            *slot += 1;
        }
        let first = block << BLOCK_SHIFT;
        let far = self.pending.far;
        if far && active != 0 {
            model.prefetch(&self.sites[first + active.trailing_zeros() as usize]);
        }
        let mut few = std::mem::take(&mut self.few);
        while active != 0 {
            let member = active.trailing_zeros() as usize;
            active &= active - 1;
            // The next site is asked for while this one is worked off, the one after that only where it is.
            if far && active != 0 {
                let next = active.trailing_zeros() as usize;
                let site = &self.sites[first + next];
                model.prefetch(site);
                for key in &keys[bounds[next] as usize..bounds[next + 1] as usize] {
                    model.prefetch_event(site, &events[key.index as usize]);
                }
                let later = active & (active - 1);
                if later != 0 {
                    prefetch(&self.sites[first + later.trailing_zeros() as usize]);
                }
            }
            for &index in &note_order[note_bounds[member] as usize..note_bounds[member + 1] as usize] {
                let note = &notes[index as usize];
                model.note(&mut self.sites[first + member], note.time, note.note);
            }
            let keys = &mut keys[bounds[member] as usize..bounds[member + 1] as usize];
            let sorted = sort(keys, &mut few, events);
            self.run_site(model, first + member, events, sorted, end);
        }
        self.keys = keys;
        self.few = few;
        self.note_order = note_order;
        self.pending.recycle(batch);
    }

    /// Handles the events of one site up to `end`, in order, with those it sends itself. On its own: what it
    /// goes by stays in registers.
    #[inline(never)]
    fn run_site(&mut self, model: &M, index: usize, events: &[Event<M::Payload>], keys: &[Key], end: Time) {
        debug_assert!(self.local.is_empty());
        let site = &mut self.sites[index];
        let mut context = Context {
            now: Time::ZERO,
            site: SiteId(self.first_site + index as u32),
            window_end: end,
            undisturbed_until: Time::ZERO,
            local: &mut self.local,
            outgoing: &mut self.pending,
        };
        let mut next = 0;
        let mut handled = 0;
        loop {
            let arrived = keys.get(next).map(|key| &events[key.index as usize]);
            let mut time = arrived.map_or(Time::MAX, |e| e.time);
            let mut own = false;
            if let Some(Earliest(local)) = context.local.peek() {
                own = arrived.is_none_or(|e| local.compare(e).is_lt());
                if own {
                    time = local.time;
                }
            }
            // Decisions come after all events of their instant.
            let decision = M::decision(site);
            if decision < time {
                if decision >= end {
                    break;
                }
                context.now = decision;
                model.decide(site, &mut self.output, &mut context);
                continue;
            }
            if time >= end {
                break;
            }
            context.now = time;
            if own {
                if let Some(Earliest(event)) = context.local.pop() {
                    context.quiet_until(arrived, end);
                    model.handle(site, &event, &mut self.output, &mut context);
                }
            } else if let Some(event) = arrived {
                next += 1;
                context.quiet_until(keys.get(next).map(|key| &events[key.index as usize]), end);
                model.handle(site, event, &mut self.output, &mut context);
            }
            handled += 1;
        }
        // Only when a window is cut short by an epoch.
        for key in &keys[next..] {
            context.outgoing.push(events[key.index as usize]);
        }
        debug_assert!(context.local.is_empty(), "local events lie before the end of the window");
        self.events_handled += handled;
        // The wheel has handed out this window's decisions, also those that an epoch now postpones.
        if self.armed[index] < self.pending.window_end() {
            self.armed[index] = Time::MAX;
        }
        self.arm(index);
    }
}
