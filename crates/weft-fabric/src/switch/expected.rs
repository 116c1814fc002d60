//! Credits that are known to come: what the neighbours of a switch have told it ahead.
//!
//! They are told at the beginning of the window in which they will count, so that those of one window are all
//! that is kept: few, in one list, which stays in the cache. When the next window begins, all of them have come.
//! Within a window they are looked through only where a decision hangs on them.

use crate::packet::Credit;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_engine::prefetch;
use weft_units::Time;

/// A credit that will count from `time` on.
#[derive(Clone, Copy)]
struct Entry {
    time: Time,
    credit: Credit,
}

/// The expected credits of a switch.
#[derive(Default)]
pub(crate) struct Expected {
    /// In no particular order.
    entries: Vec<Entry>,
    /// A bit for each output, modulo 64, that one of them may be for.
    outputs: u64,
}

impl Expected {
    /// Asks for its memory.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.entries);
    }

    /// Adds a credit.
    #[inline]
    pub(crate) fn push(&mut self, time: Time, credit: Credit) {
        self.entries.push(Entry { time, credit });
        self.outputs |= 1 << (credit.port % 64);
    }

    /// Whether there may be one for `output`.
    #[inline]
    pub(crate) fn may_be_for(&self, output: usize) -> bool {
        self.outputs >> (output % 64) & 1 == 1
    }

    /// Takes those for `output` that have come by `now`.
    #[inline]
    pub(crate) fn take(&mut self, output: usize, now: Time, mut count: impl FnMut(Credit)) {
        if self.may_be_for(output) {
            let come = |entry: &Entry| usize::from(entry.credit.port) == output && entry.time <= now;
            let mut place = 0;
            while let Some(entry) = self.entries.get(place) {
                if come(entry) {
                    count(entry.credit);
                    self.entries.swap_remove(place);
                } else {
                    place += 1;
                }
            }
        }
    }

    /// Takes all that have come by `now`.
    #[inline]
    pub(crate) fn take_all(&mut self, now: Time, mut count: impl FnMut(Credit)) {
        self.outputs = 0;
        let outputs = &mut self.outputs;
        self.entries.retain(|entry| {
            let stays = entry.time > now;
            if stays {
                *outputs |= 1 << (entry.credit.port % 64);
            } else {
                count(entry.credit);
            }
            stays
        });
    }

    /// When the first credit of `output` comes; [`Time::MAX`]: none is known to come.
    pub(crate) fn first(&self, output: usize) -> Time {
        self.of(output).map(|(time, _)| time).min().unwrap_or(Time::MAX)
    }

    /// The expected credits of `output`, in no particular order.
    #[inline]
    pub(crate) fn of(&self, output: usize) -> impl Iterator<Item = (Time, Credit)> {
        let entries = if self.may_be_for(output) { &*self.entries } else { &[] };
        let of_output = entries.iter().filter(move |entry| usize::from(entry.credit.port) == output);
        of_output.map(|entry| (entry.time, entry.credit))
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Time, Credit)> {
        self.entries.iter().map(|entry| (entry.time, entry.credit))
    }
}

/// Their order depends on that in which neighbours told, which partitions change: what is written does not.
impl Serialize for Expected {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut credits: Vec<(Time, Credit)> = self.all().collect();
        credits.sort_unstable();
        credits.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expected, D::Error> {
        let mut expected = Expected::default();
        for (time, credit) in Vec::<(Time, Credit)>::deserialize(deserializer)? {
            expected.push(time, credit);
        }
        Ok(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    fn credit(port: u16, amount: u32) -> Credit {
        Credit { port, vc: 1, amount }
    }

    /// Catches credits that are given to another output, too early, twice or never, also where two outputs share a
    /// bit.
    #[test]
    fn every_output_gets_its_own_credits_when_they_come() {
        let mut expected = Expected::default();
        let come = |expected: &mut Expected, output, now| {
            let mut amounts = Vec::new();
            expected.take(output, at(now), |credit| amounts.push(credit.amount));
            amounts.sort_unstable();
            amounts
        };
        for (time, port, amount) in [(5, 0, 10), (3, 1, 20), (7, 0, 30), (3, 64, 40), (5, 0, 50)] {
            expected.push(at(time), credit(port, amount));
        }
        assert_eq!((expected.first(0), expected.first(1), expected.first(64)), (at(5), at(3), at(3)));
        assert_eq!(come(&mut expected, 0, 4), []);
        assert_eq!(come(&mut expected, 0, 6), [10, 50]);
        assert_eq!(come(&mut expected, 64, 6), [40]);
        assert_eq!((expected.first(0), expected.first(64)), (at(7), Time::MAX));
        let mut rest = 0;
        expected.take_all(at(6), |credit| rest += credit.amount);
        assert_eq!((rest, expected.may_be_for(1), expected.first(0)), (20, false, at(7)));
        assert_eq!(come(&mut expected, 0, 7), [30]);
        assert_eq!(expected.all().count(), 0);
    }

    /// Catches a snapshot that tells in which order neighbours told.
    #[test]
    fn snapshots_do_not_depend_on_the_order_of_telling() {
        let (mut one, mut other) = (Expected::default(), Expected::default());
        one.push(at(5), credit(0, 1));
        one.push(at(5), credit(1, 2));
        other.push(at(5), credit(1, 2));
        other.push(at(5), credit(0, 1));
        let bytes = postcard::to_stdvec(&one).unwrap();
        assert_eq!(bytes, postcard::to_stdvec(&other).unwrap());
        let back: Expected = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(back.all().collect::<Vec<_>>(), one.all().collect::<Vec<_>>());
    }
}
