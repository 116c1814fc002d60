//! The order of events within a window: sorted are keys, which take a quarter of the memory of events.
//!
//! ```text
//!   events of a block      site by site, in order
//!   [c][a][b][a][c]   ->   [a][a] END [b] END [c][c] END
//! ```

use crate::event::{Event, Payload};
use crate::event_queue::BLOCK;
use weft_units::Time;

/// An event's place in the order of its site within a window, without its payload.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    /// Picoseconds since the window began (windows are shorter than 2^32 ps), then [`crate::Order`].
    rank: u64,
    /// In the batch of the window.
    pub(crate) index: u32,
}

impl Key {
    /// Comes after all events of a window.
    pub(crate) const END: Key = Key { rank: u64::MAX, index: u32::MAX };

    #[inline]
    pub(crate) fn new<P: Payload>(event: &Event<P>, start: Time, index: u32) -> Key {
        let since = event.time.as_ps() - start.as_ps();
        Key { rank: since << 32 | u64::from(event.order.rank()), index }
    }

    /// The event's time, in a window that began at `start`.
    #[inline]
    pub(crate) fn time(self, start: Time) -> Time {
        Time::from_ps(start.as_ps() + (self.rank >> 32))
    }

    /// Whether it is the mark behind a site's events.
    #[inline]
    pub(crate) fn is_end(self) -> bool {
        self.index == u32::MAX
    }
}

/// The exchanges of Batcher's odd-even merge sort for so many keys, a power of two (Knuth, The Art of
/// Computer Programming 3, algorithm 5.2.2M).
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

/// Most keys that are sorted by a network of exchanges. It has no branch that depends on a key, which for so
/// few keys is faster than comparing less and guessing wrong.
pub(crate) const FEW: usize = 16;

/// Sorts the first `count` of `packed`; behind them lies [`u64::MAX`].
#[inline]
fn sort_few(packed: &mut [u64; FEW], count: usize) {
    match count {
        0 | 1 => {}
        2..=4 => exchange(packed, &SORT_4),
        5..=8 => exchange(packed, &SORT_8),
        _ => exchange(packed, &SORT_16),
    }
}

#[inline(always)]
fn exchange(packed: &mut [u64; FEW], network: &[(u8, u8)]) {
    for &(one, other) in network {
        let (low, high) = (packed[usize::from(one)], packed[usize::from(other)]);
        packed[usize::from(one)] = low.min(high);
        packed[usize::from(other)] = low.max(high);
    }
}

/// Room for sorted keys; a default one has none.
#[derive(Default)]
pub(crate) struct Sorted(Vec<Key>);

impl Sorted {
    pub(crate) fn new() -> Sorted {
        // With a mark for each of as many sites.
        Sorted(vec![Key::END; 2 * FEW + 1])
    }

    /// The events of one site in order, with [`Key::END`] behind them.
    #[inline]
    pub(crate) fn of_site<P: Payload>(&mut self, keys: &[Key], events: &[Event<P>]) -> &[Key] {
        match *keys {
            [] => self.0[0] = Key::END,
            [key] => (self.0[0], self.0[1]) = (key, Key::END),
            _ if keys.len() <= FEW && self.few_of_site(keys, events) => {}
            _ => self.many_of_site(keys, events),
        }
        &self.0[..=keys.len()]
    }

    /// The same for few, where time since the window's beginning, order and place fit a word; otherwise does
    /// nothing and says so.
    fn few_of_site<P: Payload>(&mut self, keys: &[Key], events: &[Event<P>]) -> bool {
        const ORDER: u32 = 24;
        let mut packed = [u64::MAX; FEW];
        let mut orders = 0;
        for ((key, place), packed) in keys.iter().zip(0u64..).zip(&mut packed) {
            let order = key.rank as u32;
            orders |= order;
            *packed = key.rank >> 32 << 32 | u64::from(order) << 8 | place;
        }
        if orders >> ORDER != 0 {
            return false;
        }
        sort_few(&mut packed, keys.len());
        let mut ties = false;
        let mut before = u64::MAX;
        for (&packed, sorted) in packed[..keys.len()].iter().zip(&mut self.0) {
            ties |= packed >> 8 == before >> 8;
            before = packed;
            *sorted = keys[packed as usize % FEW];
        }
        self.0[keys.len()] = Key::END;
        if ties {
            settle(&mut self.0[..keys.len()], events);
        }
        true
    }

    #[inline(never)]
    fn many_of_site<P: Payload>(&mut self, keys: &[Key], events: &[Event<P>]) {
        let count = keys.len();
        self.0.resize(self.0.len().max(count + 1), Key::END);
        let sorted = &mut self.0[..count];
        sorted.copy_from_slice(keys);
        sorted.sort_unstable_by_key(|key| key.rank);
        settle(sorted, events);
        self.0[count] = Key::END;
    }

    /// The events of a block site by site in order, with [`Key::END`] behind those of each site. `None` where
    /// they are more than [`FEW`], and where site, time since the window's beginning, order and place do not
    /// fit a word.
    #[inline]
    pub(crate) fn few_of_block<P: Payload>(&mut self, events: &[Event<P>], start: Time) -> Option<&[Key]> {
        if events.len() > FEW {
            return None;
        }
        const SITE: u32 = 58;
        const SINCE: u32 = 36;
        let mut packed = [u64::MAX; FEW];
        let mut too_large = 0;
        for ((event, place), packed) in events.iter().zip(0u64..).zip(&mut packed) {
            let since = event.time.as_ps() - start.as_ps();
            let order = u64::from(event.order.rank());
            too_large |= since >> (SITE - SINCE) | order >> (SINCE - 8);
            let site = event.site.index() % BLOCK;
            *packed = (site as u64) << SITE | since << SINCE | order << 8 | place;
        }
        if too_large != 0 {
            return None;
        }
        sort_few(&mut packed, events.len());
        let mut count = 0;
        let mut ties = false;
        let mut before = packed[0];
        for (&packed, place) in packed[..events.len()].iter().zip(0..) {
            if packed >> SITE != before >> SITE {
                self.0[count] = Key::END;
                count += 1;
            }
            ties |= place > 0 && packed >> 8 == before >> 8;
            before = packed;
            let since = packed >> SINCE & ((1 << (SITE - SINCE)) - 1);
            let order = packed >> 8 & ((1 << (SINCE - 8)) - 1);
            self.0[count] = Key { rank: since << 32 | order, index: packed as u32 & 0xff };
            count += 1;
        }
        self.0[count] = Key::END;
        if ties {
            settle(&mut self.0[..count], events);
        }
        Some(&self.0[..=count])
    }
}

/// Orders sorted keys of the same rank by the payloads of their events.
fn settle<P: Payload>(sorted: &mut [Key], events: &[Event<P>]) {
    for run in sorted.chunk_by_mut(|one, next| one.rank == next.rank) {
        run.sort_unstable_by_key(|key| events[key.index as usize].payload.tie());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Order, SiteId};
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    struct Number(u128);

    impl Payload for Number {
        fn tie(&self) -> u128 {
            self.0
        }
    }

    /// (picoseconds, site, entity, payload): times, orders and payloads that often agree, and times and
    /// orders too large to be packed.
    fn events(most: usize) -> impl Strategy<Value = Vec<Event<Number>>> {
        let since = prop::sample::select(vec![0u64, 1, 2, 3, 1 << 30]);
        let entity = prop::sample::select(vec![0u32, 1, 2, 1 << 20, 1 << 26]);
        let event = (since, 0u32..3, entity, 0u128..3).prop_map(|(since, site, entity, tie)| Event {
            time: Time::from_ps(1000 + since),
            site: SiteId(128 + site),
            order: Order::new(entity, 0),
            payload: Number(tie),
        });
        prop::collection::vec(event, 0..most)
    }

    /// Whether keys are those of `events`, each once and in order.
    fn in_order(keys: &[Key], events: &[(u32, &Event<Number>)]) -> bool {
        let of = |key: &Key| events.iter().find(|(index, _)| *index == key.index).map(|(_, event)| *event);
        let mut indices: Vec<u32> = keys.iter().map(|key| key.index).collect();
        indices.sort_unstable();
        indices.into_iter().eq(events.iter().map(|(index, _)| *index))
            && keys.is_sorted_by(|one, next| of(one).zip(of(next)).is_some_and(|(a, b)| a.compare(b).is_le()))
    }

    proptest! {
        /// Catches events of a site that come out of order, get lost or are doubled.
        #[test]
        fn events_of_a_site_are_sorted(events in events(40)) {
            let start = Time::from_ps(1000);
            let keys = events.iter().zip(0..).map(|(event, index)| Key::new(event, start, index));
            let keys: Vec<Key> = keys.collect();
            let mut room = Sorted::new();
            let (end, sorted) = room.of_site(&keys, &events).split_last().expect("the mark");
            prop_assert!(end.is_end());
            prop_assert!(sorted.iter().all(|key| key.time(start) == events[key.index as usize].time));
            prop_assert!(in_order(sorted, &(0..).zip(&events).collect::<Vec<_>>()));
        }

        /// The same for a block; also a site's events among another's.
        #[test]
        fn events_of_a_block_are_sorted_by_site(events in events(FEW + 2)) {
            let start = Time::from_ps(1000);
            let mut room = Sorted::new();
            let packs = |event: &Event<_>| {
                (event.time - start).as_ps() < 1 << 22 && event.order.rank() < 1 << 28
            };
            let fits = events.len() <= FEW && events.iter().all(packs);
            let sorted = room.few_of_block(&events, start);
            prop_assert_eq!(sorted.is_some(), fits);
            let sites = (128..131).filter(|&site| events.iter().any(|event| event.site.0 == site));
            if let Some((end, sorted)) = sorted.and_then(|sorted| sorted.split_last()) {
                prop_assert!(end.is_end());
                for (keys, site) in sorted.split(|key| key.is_end()).zip(sites) {
                    prop_assert!(keys.iter().all(|key| key.time(start) == events[key.index as usize].time));
                    let of_site = (0..).zip(&events).filter(|(_, event)| event.site.0 == site);
                    prop_assert!(in_order(keys, &of_site.collect::<Vec<_>>()));
                }
            }
        }
    }
}
