//! A list that is searched in order, with an index by exact match bits beside it.
//!
//! ```text
//!   order    ─ 0 ─ 1 ─ 2 ─ 3 ─ 4 ─ 5 ─►       what the hardware walks: virtual time is by its entries
//!   exact      bits 7: 0, 3   bits 9: 4       what a search looks at: those of its own bits,
//!   inexact    1, 2, 5                        and those that ignore some
//! ```
//! The first that accepts is found in the order of the list, whatever the index finds first. How many
//! entries the walk would have looked at comes from counts over the slots of the list (Fenwick, "A new
//! data structure for cumulative frequency tables", 1994).

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The list of a portal table entry that an entry is on (`ptl_list_t`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum ListKind {
    /// `PTL_PRIORITY_LIST`.
    Priority,
    /// `PTL_OVERFLOW_LIST`.
    Overflow,
}

/// The number of an entry: the list counts its entries, and gives no number twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct EntryNumber(pub u64);

/// The outcome of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The first entry that accepts; `None`: none does.
    pub entry: Option<EntryNumber>,
    /// Entries that a walk along the list has looked at.
    pub searched: u32,
}

/// An element of the list.
pub trait Listed {
    /// The match bits, if no other ones match.
    fn exact_bits(&self) -> Option<u64>;
}

/// The list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MatchList<T> {
    /// In order of their numbers; a hole is `None`.
    slots: Vec<(EntryNumber, Option<T>)>,
    /// Counts of entries that are there, as a Fenwick tree over the slots.
    counts: Vec<u32>,
    present: usize,
    exact: BTreeSet<(u64, EntryNumber)>,
    inexact: BTreeSet<EntryNumber>,
    next: u64,
}

impl<T> Default for MatchList<T> {
    fn default() -> MatchList<T> {
        let (slots, counts) = (Vec::new(), Vec::new());
        MatchList { slots, counts, present: 0, exact: BTreeSet::new(), inexact: BTreeSet::new(), next: 0 }
    }
}

impl<T: Listed> MatchList<T> {
    /// Entries.
    pub fn len(&self) -> usize {
        self.present
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// Puts an entry at the end.
    pub fn append(&mut self, entry: T) -> EntryNumber {
        if self.slots.len() == self.slots.capacity() && self.slots.len() > 2 * self.present {
            self.close_holes();
        }
        let number = EntryNumber(self.next);
        self.next += 1;
        match entry.exact_bits() {
            Some(bits) => self.exact.insert((bits, number)),
            None => self.inexact.insert(number),
        };
        self.slots.push((number, Some(entry)));
        self.present += 1;
        let place = self.slots.len();
        // The node of the tree counts the slots (place - lowest bit, place].
        let below = place - (place & place.wrapping_neg());
        self.counts.push(1 + self.present_before(place - 1) - self.present_before(below));
        number
    }

    /// Entries in the first `slots` slots.
    fn present_before(&self, slots: usize) -> u32 {
        let (mut place, mut sum) = (slots, 0);
        while place > 0 {
            sum += self.counts[place - 1];
            place &= place - 1;
        }
        sum
    }

    /// Numbers stay, slots are given anew.
    fn close_holes(&mut self) {
        self.slots.retain(|(_, entry)| entry.is_some());
        self.counts = (1..=self.slots.len()).map(|place| (place & place.wrapping_neg()) as u32).collect();
    }

    fn slot(&self, number: EntryNumber) -> Option<usize> {
        self.slots.binary_search_by_key(&number, |slot| slot.0).ok()
    }

    /// An entry.
    pub fn get(&self, number: EntryNumber) -> Option<&T> {
        self.slots[self.slot(number)?].1.as_ref()
    }

    /// An entry, to be changed: not in its match bits.
    pub fn get_mut(&mut self, number: EntryNumber) -> Option<&mut T> {
        let slot = self.slot(number)?;
        self.slots[slot].1.as_mut()
    }

    /// Takes an entry out.
    pub fn remove(&mut self, number: EntryNumber) -> Option<T> {
        let slot = self.slot(number)?;
        let entry = self.slots[slot].1.take()?;
        match entry.exact_bits() {
            Some(bits) => self.exact.remove(&(bits, number)),
            None => self.inexact.remove(&number),
        };
        self.present -= 1;
        let mut place = slot + 1;
        while place <= self.counts.len() {
            self.counts[place - 1] -= 1;
            place += place & place.wrapping_neg();
        }
        Some(entry)
    }

    /// The first entry that accepts, of those for `bits`; of all where `bits` is `None`.
    pub fn find(&self, bits: Option<u64>, accepts: impl Fn(&T) -> bool) -> Found {
        let accepted = |number: &EntryNumber| self.get(*number).is_some_and(&accepts);
        let entry = match bits {
            None => {
                let mut all = self.slots.iter().filter_map(|(number, entry)| Some((number, entry.as_ref()?)));
                all.find(|(_, entry)| accepts(entry)).map(|(number, _)| *number)
            }
            Some(bits) => {
                let range = (bits, EntryNumber(0))..=(bits, EntryNumber(u64::MAX));
                let exact = self.exact.range(range).map(|(_, number)| *number).find(accepted);
                let before = exact.unwrap_or(EntryNumber(u64::MAX));
                self.inexact.range(..before).copied().find(accepted).or(exact)
            }
        };
        let searched = match entry.and_then(|number| self.slot(number)) {
            Some(slot) => self.present_before(slot + 1),
            None => self.present as u32,
        };
        Found { entry, searched }
    }

    /// An entry that accepts `bits`, in no order: one that matches exactly is found in a table, which counts
    /// as one entry; the others are walked along.
    pub fn find_unordered(&self, bits: u64, accepts: impl Fn(&T) -> bool) -> Found {
        let accepted = |number: &EntryNumber| self.get(*number).is_some_and(&accepts);
        let range = (bits, EntryNumber(0))..=(bits, EntryNumber(u64::MAX));
        if let Some(number) = self.exact.range(range).map(|(_, number)| *number).find(accepted) {
            return Found { entry: Some(number), searched: 1 };
        }
        let place = self.inexact.iter().position(accepted);
        let entry = place.and_then(|place| self.inexact.iter().nth(place).copied());
        Found { entry, searched: 1 + place.map_or(self.inexact.len(), |place| place + 1) as u32 }
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|(_, entry)| entry.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Match bits, ignored bits.
    #[derive(Clone, Copy, Debug)]
    struct Bits(u64, u64);

    impl Listed for Bits {
        fn exact_bits(&self) -> Option<u64> {
            (self.1 == 0).then_some(self.0)
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Append(u64, u64),
        Remove(usize),
        Find(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0u64..8, 0u64..4).prop_map(|(bits, ignored)| Step::Append(bits, ignored)),
            (0u64..8).prop_map(|bits| Step::Append(bits, 0)),
            any::<usize>().prop_map(Step::Remove),
            (0u64..10).prop_map(Step::Find),
        ];
        prop::collection::vec(step, 1..300)
    }

    proptest! {
        /// Catches an index that finds another entry than a walk, and counts that have drifted.
        #[test]
        fn the_index_finds_what_a_walk_finds(steps in steps()) {
            let mut list = MatchList::default();
            let mut walked: Vec<(EntryNumber, Bits)> = Vec::new();
            for step in steps {
                match step {
                    Step::Append(bits, ignored) => {
                        let entry = Bits(bits, ignored);
                        walked.push((list.append(entry), entry));
                    }
                    Step::Remove(place) if !walked.is_empty() => {
                        let (number, _) = walked.remove(place % walked.len());
                        prop_assert!(list.remove(number).is_some());
                        prop_assert!(list.remove(number).is_none());
                    }
                    Step::Remove(_) => {}
                    Step::Find(bits) => {
                        let accepts = |entry: &Bits| (entry.0 ^ bits) & !entry.1 == 0;
                        let place = walked.iter().position(|(_, entry)| accepts(entry));
                        let expected = Found {
                            entry: place.map(|place| walked[place].0),
                            searched: place.map_or(walked.len(), |place| place + 1) as u32,
                        };
                        prop_assert_eq!(list.find(Some(bits), accepts), expected);
                        prop_assert_eq!(list.find(None, accepts), expected);
                    }
                }
                prop_assert_eq!(list.len(), walked.len());
            }
        }
    }

    /// Catches a list that grows without bound while as many entries go as come.
    #[test]
    fn holes_are_closed() {
        let mut list = MatchList::default();
        let mut numbers = std::collections::VecDeque::new();
        let standing = list.append(Bits(0, 0));
        for bits in 0..100_000 {
            numbers.push_back(list.append(Bits(bits, 0)));
            if numbers.len() > 10 {
                list.remove(numbers.pop_front().unwrap());
            }
        }
        assert!(list.slots.len() < 1_000, "{}", list.slots.len());
        assert_eq!(list.find(Some(0), |entry| entry.0 == 0), Found { entry: Some(standing), searched: 1 });
    }
}
