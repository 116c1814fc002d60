//! Credits: space in the buffer behind a link, as the sender counts it.
//!
//! ```text
//!   sender: credits ──packet──► receiver's buffer ──packet leaves──► credit returns, a latency later
//!              ▲                                                          │
//!              └───────────────── returning, known ahead ◄────────────────┘
//! ```
//! Where the link's layer [says so](crate::LinkLayer::credit), a word on the line comes before the latency.
//!
//! When a packet leaves the buffer is known as soon as it is granted its output. The sender learns of the
//! credit then, and keeps it in a list until the time from which it counts. A switch learns of it at the
//! beginning of the window of the engine in which it will count, so that its list holds no more than the
//! credits of one window: few, and they stay in the cache. The list is searched only where a decision depends
//! on it.

use crate::channel::{Channel, ChannelNumbers};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_engine::prefetch;
use weft_units::Time;

/// Space that a sender may use in the buffer behind its link, in units of credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Credits(u32);

impl Credits {
    /// Credits of a link whose far end always consumes: they are never spent.
    pub(crate) const UNLIMITED: Credits = Credits(u32::MAX);

    /// Credits of a sender that is told to pause. Otherwise it has [unlimited](Credits::UNLIMITED) ones.
    pub(crate) const PAUSED: Credits = Credits(0);

    /// Credits for an empty buffer of `units`.
    pub(crate) fn new(units: u32) -> Credits {
        Credits(units)
    }

    /// Units that are left.
    pub(crate) fn units(self) -> u32 {
        self.0
    }

    /// Whether they are never spent.
    #[inline(always)]
    pub(crate) fn is_unlimited(self) -> bool {
        self == Credits::UNLIMITED
    }

    /// Whether a packet that takes `room` may be sent.
    #[inline(always)]
    pub(crate) fn cover(self, space: u32) -> bool {
        self.0 >= space
    }

    /// Units that are taken of a buffer of `capacity`.
    #[inline(always)]
    pub(crate) fn taken_of(self, capacity: u32) -> u32 {
        capacity.saturating_sub(self.0)
    }

    /// A packet that takes `room` is sent.
    #[inline(always)]
    pub(crate) fn spend(&mut self, space: u32) {
        if !self.is_unlimited() {
            self.0 -= space;
        }
    }

    /// A credit has returned.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, amount: u32) {
        self.0 += amount;
    }
}

/// Space that becomes free in the buffer behind a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Credit {
    /// The sender's port, and the virtual channel on which it may send again.
    pub(crate) channel: Channel,
    /// Units of credit.
    pub(crate) amount: u32,
}

/// A packet's tail on its way out of an input buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailOut {
    /// The time at which that was decided.
    pub(crate) granted: Time,
    /// The time from which the space is free.
    pub(crate) left: Time,
}

/// A credit that will count from `time` on.
#[derive(Clone, Copy)]
struct PendingCredit {
    time: Time,
    credit: Credit,
}

/// The returning credits of a switch, or of the only channel of an endpoint.
#[derive(Default)]
pub(crate) struct ReturningCredits {
    /// In no particular order.
    entries: Vec<PendingCredit>,
    /// A bit for each output, modulo 64, that one of them may be for.
    outputs: u64,
}

impl ReturningCredits {
    /// Asks for its memory.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.entries);
    }

    /// Adds a credit.
    #[inline]
    pub(crate) fn push(&mut self, time: Time, credit: Credit) {
        self.entries.push(PendingCredit { time, credit });
        self.outputs |= 1 << (credit.channel.port % 64);
    }

    /// Whether there may be one for `output`.
    #[inline]
    pub(crate) fn may_be_for(&self, output: usize) -> bool {
        self.outputs >> (output % 64) & 1 == 1
    }

    /// Takes those for `output` that have returned by `now`.
    #[inline]
    pub(crate) fn take(&mut self, output: usize, now: Time, mut count: impl FnMut(Credit)) {
        if self.may_be_for(output) {
            let come =
                |entry: &PendingCredit| usize::from(entry.credit.channel.port) == output && entry.time <= now;
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

    /// Takes all that have returned by `now`.
    #[inline]
    pub(crate) fn take_all(&mut self, now: Time, mut count: impl FnMut(Credit)) {
        self.outputs = 0;
        let outputs = &mut self.outputs;
        self.entries.retain(|entry| {
            let stays = entry.time > now;
            if stays {
                *outputs |= 1 << (entry.credit.channel.port % 64);
            } else {
                count(entry.credit);
            }
            stays
        });
    }

    /// Counts all that have returned by `now`. `credits` has a count for each channel, by its number.
    #[inline]
    pub(crate) fn count(&mut self, now: Time, credits: &mut [Credits], channels: ChannelNumbers) {
        self.take_all(now, |credit| credits[channels.number(credit.channel)].give_back(credit.amount));
    }

    /// Time at which the first credit of `output` returns; [`Time::NEVER`]: none is known to return.
    pub(crate) fn first(&self, output: usize) -> Time {
        self.of(output).map(|(time, _)| time).min().unwrap_or(Time::NEVER)
    }

    /// The returning credits of `output`, in no particular order.
    #[inline]
    pub(crate) fn of(&self, output: usize) -> impl Iterator<Item = (Time, Credit)> {
        let entries = if self.may_be_for(output) { &*self.entries } else { &[] };
        let of_output = entries.iter().filter(move |entry| usize::from(entry.credit.channel.port) == output);
        of_output.map(|entry| (entry.time, entry.credit))
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Time, Credit)> {
        self.entries.iter().map(|entry| (entry.time, entry.credit))
    }
}

/// In a snapshot credits are sorted: their order in memory depends on partitions.
impl Serialize for ReturningCredits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut credits: Vec<(Time, Credit)> = self.all().collect();
        credits.sort_unstable();
        credits.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReturningCredits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReturningCredits, D::Error> {
        let mut returning = ReturningCredits::default();
        for (time, credit) in Vec::<(Time, Credit)>::deserialize(deserializer)? {
            returning.push(time, credit);
        }
        Ok(returning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    fn credit(port: u16, amount: u32) -> Credit {
        Credit { channel: Channel { port, vc: 1 }, amount }
    }

    /// Catches credits that are given to another output, too early, twice or never, also where two outputs
    /// share a bit.
    #[test]
    fn every_output_gets_its_own_credits_when_they_come() {
        let mut returning = ReturningCredits::default();
        let come = |returning: &mut ReturningCredits, output, now| {
            let mut amounts = Vec::new();
            returning.take(output, at(now), |credit| amounts.push(credit.amount));
            amounts.sort_unstable();
            amounts
        };
        for (time, port, amount) in [(5, 0, 10), (3, 1, 20), (7, 0, 30), (3, 64, 40), (5, 0, 50)] {
            returning.push(at(time), credit(port, amount));
        }
        assert_eq!((returning.first(0), returning.first(1), returning.first(64)), (at(5), at(3), at(3)));
        assert_eq!(come(&mut returning, 0, 4), []);
        assert_eq!(come(&mut returning, 0, 6), [10, 50]);
        assert_eq!(come(&mut returning, 64, 6), [40]);
        assert_eq!((returning.first(0), returning.first(64)), (at(7), Time::NEVER));
        let mut rest = 0;
        returning.take_all(at(6), |credit| rest += credit.amount);
        assert_eq!((rest, returning.may_be_for(1), returning.first(0)), (20, false, at(7)));
        assert_eq!(come(&mut returning, 0, 7), [30]);
        assert_eq!(returning.all().count(), 0);
    }

    /// Catches a snapshot that depends on the order in which credits became known.
    #[test]
    fn snapshots_do_not_depend_on_the_order_of_arrival() {
        let (mut one, mut other) = (ReturningCredits::default(), ReturningCredits::default());
        one.push(at(5), credit(0, 1));
        one.push(at(5), credit(1, 2));
        other.push(at(5), credit(1, 2));
        other.push(at(5), credit(0, 1));
        let bytes = postcard::to_stdvec(&one).unwrap();
        assert_eq!(bytes, postcard::to_stdvec(&other).unwrap());
        let back: ReturningCredits = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(back.all().collect::<Vec<_>>(), one.all().collect::<Vec<_>>());
    }
}
