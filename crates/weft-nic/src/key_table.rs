//! Entries by their keys, as hardware has a table of flows: each at the place that its key gives, or at the
//! next free one.
//!
//! ```text
//!   key ─ hash ─► place   [ entry ][ entry ][       ][ entry ] …    at most three of four are taken
//!                             ▲ another key ────────────▲
//! ```
//! Written here because each packet asks for the flow of its own peer, and the flows of a few hundred
//! endpoints fit no cache: what counts is the lines of memory that a look takes. Here it is mostly one. A
//! tree takes three or four, a table of places beside its entries three. The two took the same time: a third
//! of that of a packet over `nic.model = "portals"` (bench/diary.md).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The key of a place that is free.
const FREE: u64 = u64::MAX;

/// Places of a table with an entry: a power of two.
const FEWEST: usize = 4;

/// Places of a table that keeps them when its entries have gone.
const SMALL: usize = 64;

/// In one line of memory where the entry has no more than 24 bytes.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct TableSlot<T> {
    key: u64,
    entry: T,
}

/// Entries by keys, none of which is [`u64::MAX`].
#[derive(Clone, Debug)]
pub(crate) struct KeyTable<T> {
    /// None, or a power of two, or one and a half of it.
    places: Vec<TableSlot<T>>,
    len: usize,
}

impl<T> Default for KeyTable<T> {
    fn default() -> Self {
        KeyTable { places: Vec::new(), len: 0 }
    }
}

impl<T: Default> KeyTable<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entries, in no particular order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter(|place| place.key != FREE).map(|place| &place.entry)
    }

    /// The place at which a key would be first.
    #[inline]
    fn first_place(&self, key: u64) -> usize {
        // Fibonacci hashing (Knuth, The Art of Computer Programming 3, §6.4): consecutive keys lie far apart,
        // and fill the table evenly.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((hash * self.places.len() as u64) >> 32) as usize
    }

    #[inline]
    fn next_place(&self, place: usize) -> usize {
        if place + 1 == self.places.len() { 0 } else { place + 1 }
    }

    /// The place of a key, or the free one at which it would be.
    #[inline]
    fn find(&self, key: u64) -> usize {
        let mut place = self.first_place(key);
        while self.places[place].key != key && self.places[place].key != FREE {
            place = self.next_place(place);
        }
        place
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&T> {
        if self.places.is_empty() {
            return None;
        }
        let place = &self.places[self.find(key)];
        (place.key == key).then_some(&place.entry)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        if self.places.is_empty() {
            return None;
        }
        let place = self.find(key);
        let place = &mut self.places[place];
        (place.key == key).then_some(&mut place.entry)
    }

    /// The entry of a key; if there is none, a default one is added.
    #[inline]
    pub(crate) fn get_or_add(&mut self, key: u64) -> &mut T {
        if 4 * self.len >= 3 * self.places.len() {
            let before = self.places.len();
            let more = if before.is_power_of_two() { before / 2 } else { before / 3 };
            self.resize((before + more).max(FEWEST));
        }
        let place = self.find(key);
        let place = &mut self.places[place];
        if place.key != key {
            place.key = key;
            self.len += 1;
        }
        &mut place.entry
    }

    /// Gives it so many places.
    #[cold]
    fn resize(&mut self, places: usize) {
        let before = std::mem::take(&mut self.places);
        self.places.resize_with(places, || TableSlot { key: FREE, entry: T::default() });
        for place in before.into_iter().filter(|place| place.key != FREE) {
            let free = self.find(place.key);
            self.places[free] = place;
        }
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        if self.places.is_empty() {
            return None;
        }
        let mut hole = self.find(key);
        if self.places[hole].key != key {
            return None;
        }
        self.len -= 1;
        let removed = std::mem::replace(&mut self.places[hole], TableSlot { key: FREE, entry: T::default() });
        // Those behind it that the hole would hide move up.
        let mut place = self.next_place(hole);
        while self.places[place].key != FREE {
            let first = self.first_place(self.places[place].key);
            let distance = |to: usize| if to < first { to + self.places.len() - first } else { to - first };
            if distance(hole) < distance(place) {
                self.places.swap(hole, place);
                hole = place;
            }
            place = self.next_place(place);
        }
        if self.places.len() > SMALL && 8 * self.len < self.places.len() {
            self.resize(self.places.len() / 2);
        }
        Some(removed.entry)
    }

    /// Keeps the entries of which that is said.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let gone = self.places.iter().filter(|place| place.key != FREE && !keep(&place.entry));
        for key in gone.map(|place| place.key).collect::<Vec<u64>>() {
            self.remove(key);
        }
    }
}

/// In the order of keys: the same entries are saved as the same bytes, whatever came before.
impl<T: Serialize> Serialize for KeyTable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let taken = self.places.iter().filter(|place| place.key != FREE);
        let mut entries: Vec<(u64, &T)> = taken.map(|place| (place.key, &place.entry)).collect();
        entries.sort_by_key(|(key, _)| *key);
        entries.serialize(serializer)
    }
}

impl<'de, T: Default + Deserialize<'de>> Deserialize<'de> for KeyTable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = KeyTable::default();
        for (key, entry) in Vec::<(u64, T)>::deserialize(deserializer)? {
            if key == FREE {
                return Err(serde::de::Error::custom("no entry has this key"));
            }
            *table.get_or_add(key) = entry;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Catches memory of a burst that is kept for ever, and entries that are lost when it is given back.
    #[test]
    fn a_table_gives_the_memory_of_a_burst_back() {
        let mut table = KeyTable::default();
        for key in 0..1000u64 {
            *table.get_or_add(key) = key;
        }
        for key in 3..1000 {
            assert_eq!(table.remove(key), Some(key));
        }
        assert!(table.places.len() <= SMALL);
        assert_eq!([0, 1, 2, 3].map(|key| table.get(key).copied()), [Some(0), Some(1), Some(2), None]);
    }

    proptest! {
        /// Catches an entry that is lost, found twice or under another's key, after others have gone.
        #[test]
        fn it_holds_what_a_map_holds(
            steps in prop::collection::vec((0u64..40, 0u8..5, any::<u32>()), 1..300),
        ) {
            let (mut table, mut map) = (KeyTable::default(), BTreeMap::new());
            for (peer, step, value) in steps {
                // Few places are the first of many keys.
                let key = peer << 38;
                match step {
                    0 | 1 => {
                        *table.get_or_add(key) = value;
                        map.insert(key, value);
                    }
                    2 => prop_assert_eq!(table.remove(key), map.remove(&key)),
                    3 => {
                        table.retain(|kept| *kept > 1 << 30);
                        map.retain(|_, kept: &mut u32| *kept > 1 << 30);
                    }
                    _ => prop_assert_eq!(table.get_mut(key), map.get_mut(&key)),
                }
                prop_assert_eq!(table.len(), map.len());
                for peer in 0..40u64 {
                    prop_assert_eq!(table.get(peer << 38), map.get(&(peer << 38)));
                }
            }
            let saved = serde_json::to_string(&table).unwrap();
            prop_assert_eq!(&saved, &serde_json::to_string(&map.iter().collect::<Vec<_>>()).unwrap());
            let read: KeyTable<u32> = serde_json::from_str(&saved).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), saved);
        }
    }
}
