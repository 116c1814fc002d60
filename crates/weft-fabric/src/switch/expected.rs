//! Credits that are known to come: what the neighbours of a switch have told it ahead.
//!
//! A list per output, all in one arena, which is as large as the switch ever expected credits and whose
//! places are used again at once: they stay in the cache, as queues on their own would not.

use crate::packet::Credit;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::hint::select_unpredictable;
use weft_engine::prefetch;
use weft_units::Time;

/// The place of an entry that comes after all others: what the list of an output ends with.
const END: u32 = 0;
/// The place of an entry that comes before all others: what an empty list has for its last.
const BEGIN: u32 = 1;

/// A credit that will count from `time` on.
#[derive(Clone, Copy)]
struct Entry {
    time: Time,
    amount: u32,
    /// The next of the same output, or the next free place.
    next: u32,
    vc: u8,
}

impl Entry {
    #[inline]
    fn order(&self) -> (Time, u8, u32) {
        (self.time, self.vc, self.amount)
    }
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: END, last: BEGIN };

/// The expected credits of a switch, for each output in the order in which they come.
///
/// Whether there are any, no processor can guess: adding one and looking for one go without a branch on it.
pub(crate) struct Expected {
    entries: Vec<Entry>,
    /// The first free place; [`END`]: none.
    free: u32,
    lists: Box<[List]>,
}

impl Expected {
    pub(crate) fn new(outputs: usize) -> Expected {
        let end = Entry { time: Time::MAX, amount: 0, next: END, vc: 0 };
        let begin = Entry { time: Time::ZERO, ..end };
        Expected { entries: vec![end, begin], free: END, lists: vec![EMPTY; outputs].into() }
    }

    /// Asks for its memory.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.entries);
        prefetch(&*self.lists);
    }

    /// Adds a credit.
    #[inline]
    pub(crate) fn push(&mut self, time: Time, Credit { port, vc, amount }: Credit) {
        let entry = Entry { time, amount, next: END, vc };
        let mut place = self.free;
        if place == END {
            place = self.entries.len() as u32;
            self.entries.push(entry);
        } else {
            let entry_there = &mut self.entries[place as usize];
            self.free = entry_there.next;
            *entry_there = entry;
        }
        let list = &mut self.lists[usize::from(port)];
        let last = &mut self.entries[list.last as usize];
        if last.order() <= entry.order() {
            // Of an empty list this is the entry before all others, whose next nobody asks for.
            last.next = place;
            list.first = select_unpredictable(list.first == END, place, list.first);
            list.last = place;
        } else {
            self.insert_before_last(place, usize::from(port));
        }
    }

    /// Credits of output-queued switches may overtake one another: a packet that had to wait for room at
    /// its output can have left its input before another, which did not wait, has come whole.
    #[cold]
    fn insert_before_last(&mut self, place: u32, output: usize) {
        let order = self.entries[place as usize].order();
        let mut before = None;
        let mut after = self.lists[output].first;
        while self.entries[after as usize].order() <= order {
            before = Some(after);
            after = self.entries[after as usize].next;
        }
        self.entries[place as usize].next = after;
        match before {
            Some(before) => self.entries[before as usize].next = place,
            None => self.lists[output].first = place,
        }
    }

    /// Takes the first credit of `output` if it has come by `now`: virtual channel and amount.
    #[inline(always)]
    pub(crate) fn pop_come(&mut self, output: usize, now: Time) -> Option<(u8, u32)> {
        let list = &mut self.lists[output];
        let place = list.first;
        let entry = &mut self.entries[place as usize];
        if entry.time > now {
            return None;
        }
        list.first = entry.next;
        list.last = select_unpredictable(entry.next == END, BEGIN, list.last);
        entry.next = self.free;
        self.free = place;
        Some((entry.vc, entry.amount))
    }

    /// When the first credit of `output` comes; [`Time::MAX`]: none is known to come.
    #[inline]
    pub(crate) fn first(&self, output: usize) -> Time {
        self.entries[self.lists[output].first as usize].time
    }

    /// The expected credits of `output`, in order.
    #[inline]
    pub(crate) fn of(&self, output: usize) -> impl Iterator<Item = (Time, Credit)> {
        let mut place = self.lists[output].first;
        std::iter::from_fn(move || {
            let Entry { time, amount, next, vc } = self.entries[place as usize];
            let credit = (time, Credit { port: output as u16, vc, amount });
            (std::mem::replace(&mut place, next) != END).then_some(credit)
        })
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Time, Credit)> {
        (0..self.lists.len()).flat_map(|output| self.of(output))
    }
}

/// Places depend on the order in which different neighbours told, which partitions change: what is
/// written does not.
impl Serialize for Expected {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.lists.len(), self.all().collect::<Vec<_>>()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expected, D::Error> {
        let (outputs, credits) = <(u16, Vec<(Time, Credit)>)>::deserialize(deserializer)?;
        let mut expected = Expected::new(usize::from(outputs));
        for (time, credit) in credits {
            if credit.port >= outputs {
                return Err(serde::de::Error::custom("a credit for a port that the switch does not have"));
            }
            expected.push(time, credit);
        }
        Ok(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credit(port: u16, amount: u32) -> Credit {
        Credit { port, vc: 1, amount }
    }

    /// Catches lists that run into one another when places are used again.
    #[test]
    fn every_output_gets_its_own_credits_in_order() {
        let mut expected = Expected::new(2);
        for round in 0..3u64 {
            let at = |step| Time::from_ps(round * 100 + step);
            expected.push(at(1), credit(0, 10));
            expected.push(at(2), credit(1, 20));
            expected.push(at(3), credit(0, 30));
            assert_eq!(expected.first(0), at(1));
            assert_eq!(expected.of(0).map(|(_, c)| c.amount).collect::<Vec<_>>(), [10, 30]);
            assert_eq!(expected.pop_come(0, at(0)), None);
            assert_eq!(expected.pop_come(0, at(3)), Some((1, 10)));
            assert_eq!(expected.pop_come(1, at(3)), Some((1, 20)));
            assert_eq!(expected.pop_come(0, at(3)), Some((1, 30)));
            assert_eq!(expected.pop_come(0, at(3)), None);
            assert_eq!((expected.first(0), expected.all().count()), (Time::MAX, 0));
        }
        // The two at either end, and three in use at once.
        assert_eq!(expected.entries.len(), 2 + 3);
    }

    /// Catches credits that are held back by others that come later.
    #[test]
    fn credits_may_be_told_in_any_order() {
        let mut expected = Expected::new(1);
        for ps in [5, 9, 3, 7, 5] {
            expected.push(Time::from_ps(ps), credit(0, ps as u32));
        }
        let times: Vec<u64> = expected.of(0).map(|(time, _)| time.as_ps()).collect();
        assert_eq!(times, [3, 5, 5, 7, 9]);
    }

    /// Catches a snapshot that tells in which order neighbours told.
    #[test]
    fn snapshots_do_not_depend_on_the_order_of_telling() {
        let (mut one, mut other) = (Expected::new(2), Expected::new(2));
        let now = Time::from_ps(5);
        one.push(now, credit(0, 1));
        one.push(now, credit(1, 2));
        other.push(now, credit(1, 2));
        other.push(now, credit(0, 1));
        let bytes = postcard::to_stdvec(&one).unwrap();
        assert_eq!(bytes, postcard::to_stdvec(&other).unwrap());
        let back: Expected = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(back.all().collect::<Vec<_>>(), one.all().collect::<Vec<_>>());
    }
}
