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
    /// Room for those of a site in order.
    sorted: Vec<Key>,
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
    /// Comes after all events of a window.
    const END: Key = Key { rank: u64::MAX, index: u32::MAX };

    #[inline]
    fn new<P: Payload>(event: &Event<P>, start: Time, index: u32) -> Key {
        let since = event.time.as_ps() - start.as_ps();
        Key { rank: since << 32 | u64::from(event.order.rank()), index }
    }

    /// The event's time, in a window that began at `start`.
    #[inline]
    fn time(self, start: Time) -> Time {
        Time::from_ps(start.as_ps() + (self.rank >> 32))
    }
}

/// The exchanges of Batcher's odd-even merge sort for so many keys, a power of two (Knuth, The Art of Computer
/// Programming 3, algorithm 5.2.2M).
const fn merge_sort<const EXCHANGES: usize>(keys: usize) -> [(u8, u8); EXCHANGES] {
    let mut exchanges = [(0, 0); EXCHANGES];
    let mut count = 0;
    let mut run = 1;
    while run < keys {
        let mut apart = run;
        while apart > 0 {
            let mut low = apart % run;
            while low + apart < keys {
                let of_same_runs = low / (2 * run) == (low + apart) / (2 * run);
                if of_same_runs && (low - apart % run) % (2 * apart) < apart {
                    exchanges[count] = (low as u8, (low + apart) as u8);
                    count += 1;
                }
                low += 1;
            }
            apart /= 2;
        }
        run *= 2;
    }
    assert!(count == EXCHANGES);
    exchanges
}

const SORT_4: [(u8, u8); 5] = merge_sort(4);
const SORT_8: [(u8, u8); 19] = merge_sort(8);
const SORT_16: [(u8, u8); 63] = merge_sort(16);
/// So many keys are sorted by a network.
const FEW: usize = 16;

/// Sorts the events of one site into `sorted` and puts [`Key::END`] behind them. Sorting keys moves a quarter of
/// the memory that sorting events would.
#[inline]
fn sort<'a, P: Payload>(keys: &[Key], sorted: &'a mut Vec<Key>, events: &[Event<P>]) -> &'a [Key] {
    let ties = match keys.len() {
        1 => {
            (sorted[0], sorted[1]) = (keys[0], Key::END);
            return &sorted[..2];
        }
        0..=4 => sort_by_network::<4>(keys, sorted, &SORT_4),
        5..=8 => sort_by_network::<8>(keys, sorted, &SORT_8),
        9..=FEW => sort_by_network::<FEW>(keys, sorted, &SORT_16),
        _ => sort_many(keys, sorted),
    };
    let count = keys.len();
    if ties {
        settle(&mut sorted[..count], events);
    }
    sorted[count] = Key::END;
    &sorted[..=count]
}

/// Sorts keys without a branch that depends on one, which for so few is faster than comparing less and guessing
/// wrong. Says whether there may be ties.
///
/// What is compared is `picoseconds << 32 | order << 8 | place`.
#[inline(always)]
fn sort_by_network<const KEYS: usize>(keys: &[Key], sorted: &mut Vec<Key>, network: &[(u8, u8)]) -> bool {
    let mut packed = [u64::MAX; KEYS];
    let mut orders = 0;
    for ((key, place), packed) in keys.iter().zip(0u64..).zip(&mut packed) {
        orders |= key.rank as u32;
        *packed = key.rank >> 32 << 32 | (key.rank as u32 as u64) << 8 | place;
    }
    if orders >= 1 << 24 {
        return sort_many(keys, sorted);
    }
    for &(one, other) in network {
        let (low, high) = (packed[usize::from(one)], packed[usize::from(other)]);
        packed[usize::from(one)] = low.min(high);
        packed[usize::from(other)] = low.max(high);
    }
    let mut ties = false;
    let mut before = u64::MAX;
    for (&packed, sorted) in packed.iter().zip(&mut *sorted).take(keys.len()) {
        ties |= packed >> 8 == before >> 8;
        before = packed;
        *sorted = keys[packed as usize % FEW];
    }
    ties
}

/// The same for any number of keys.
#[inline(never)]
fn sort_many(keys: &[Key], sorted: &mut Vec<Key>) -> bool {
    sorted.clear();
    sorted.extend_from_slice(keys);
    sorted.sort_unstable_by_key(|key| key.rank);
    sorted.resize(keys.len().max(FEW) + 1, Key::END);
    true
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
            sorted: vec![Key::END; FEW + 1],
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
        let mut sorted = std::mem::take(&mut self.sorted);
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
            let in_order = sort(&keys, &mut sorted, events);
            self.run_site(model, index, events, in_order, start, end);
        }
        self.keys = keys;
        self.sorted = sorted;
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
        let mut sorted = std::mem::take(&mut self.sorted);
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
            let keys = &keys[bounds[member] as usize..bounds[member + 1] as usize];
            let in_order = sort(keys, &mut sorted, events);
            self.run_site(model, first + member, events, in_order, start, end);
        }
        self.keys = keys;
        self.sorted = sorted;
        self.note_order = note_order;
        self.pending.recycle(batch);
    }

    /// Handles the events of one site up to `end`, in the order of `keys`, with those it sends itself. On its
    /// own: what it goes by stays in registers.
    #[inline(never)]
    fn run_site(
        &mut self,
        model: &M,
        index: usize,
        events: &[Event<M::Payload>],
        keys: &[Key],
        start: Time,
        end: Time,
    ) {
        debug_assert!(self.local.is_empty());
        let site = &mut self.sites[index];
        let mut context = Context {
            now: Time::ZERO,
            site: SiteId(self.first_site + index as u32),
            window_end: end,
            undisturbed_until: Time::ZERO,
            first_local: Time::MAX,
            local: &mut self.local,
            outgoing: &mut self.pending,
        };
        let mut next = 0;
        let mut arrival = keys[0].time(start);
        loop {
            let time = arrival.min(context.first_local);
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
            self.events_handled += 1;
            if context.first_local < arrival
                || context.first_local == arrival && {
                    let arrived = &events[keys[next].index as usize];
                    context.local.peek().is_some_and(|Earliest(local)| local.compare(arrived).is_lt())
                }
            {
                if let Some(event) = context.pop_local() {
                    context.undisturbed_until = arrival.min(context.first_local).min(end);
                    model.handle(site, &event, &mut self.output, &mut context);
                }
            } else {
                let event = &events[keys[next].index as usize];
                next += 1;
                arrival = keys[next].time(start);
                context.undisturbed_until = arrival.min(context.first_local).min(end);
                model.handle(site, event, &mut self.output, &mut context);
            }
        }
        // Only when a window is cut short by an epoch.
        for key in &keys[next..keys.len() - 1] {
            context.outgoing.push(events[key.index as usize]);
        }
        debug_assert!(context.local.is_empty(), "local events lie before the end of the window");
        // The wheel has handed out this window's decisions, also those that an epoch now postpones.
        if self.armed[index] < self.pending.window_end() {
            self.armed[index] = Time::MAX;
        }
        self.arm(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy)]
    struct Number(u128);

    impl Payload for Number {
        fn tie(&self) -> u128 {
            self.0
        }
    }

    proptest! {
        /// Catches events that come out of order, get lost or are doubled: few and many, with times, orders and
        /// payloads that often agree, and orders too large to be packed.
        #[test]
        fn events_are_sorted(
            events in prop::collection::vec((0u64..4, prop::sample::select(vec![0u32, 1, 2, 1 << 26]), 0u128..3), 0..40),
        ) {
            let event = |&(ps, entity, tie): &(u64, u32, u128)| Event {
                time: Time::from_ps(1000 + ps),
                site: SiteId(0),
                order: crate::Order::new(entity, 0),
                payload: Number(tie),
            };
            let events: Vec<Event<Number>> = events.iter().map(event).collect();
            let start = Time::from_ps(1000);
            let keys: Vec<Key> = events.iter().zip(0..).map(|(event, index)| Key::new(event, start, index)).collect();
            let mut sorted = vec![Key::END; FEW + 1];
            let in_order = sort(&keys, &mut sorted, &events);
            prop_assert_eq!(in_order.len(), events.len() + 1);
            prop_assert!(in_order[events.len()].rank == u64::MAX);
            let mut indices: Vec<u32> = in_order[..events.len()].iter().map(|key| key.index).collect();
            let at = |index: u32| &events[index as usize];
            prop_assert!(indices.is_sorted_by(|&one, &next| at(one).compare(at(next)).is_le()));
            indices.sort_unstable();
            prop_assert!(indices.into_iter().eq(0..events.len() as u32));
        }
    }
}
