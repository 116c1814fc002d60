//! Points and spans of virtual time, in integer picoseconds.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// A point in virtual time: picoseconds since the start of the run. The range is 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of virtual time, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// The last point that can be written.
    pub const MAX: Time = Time(u64::MAX);
    /// Later than any event. The same point as [`Time::MAX`], named for what it says of an event: that it is
    /// not known to happen. The minimum of this and any other time is the other, without a branch.
    pub const NEVER: Time = Time::MAX;

    /// The point `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// `self + span`, or [`Time::MAX`] where that is out of range.
    pub const fn saturating_add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// The span from `earlier` to `self`; zero if `earlier` is in fact later.
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns * 1_000)
    }

    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us * 1_000_000)
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds, for reports only: the model never computes with it.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Microseconds, for reports only: the model never computes with it.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds, for reports only: the model never computes with it.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `self - other`, or zero where that is negative.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or [`Span::MAX`] where that is out of range.
    pub const fn saturating_add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// `self × count`, or `None` where that is out of range.
    pub const fn checked_mul(self, count: u64) -> Option<Span> {
        match self.0.checked_mul(count) {
            Some(ps) => Some(Span(ps)),
            None => None,
        }
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        debug_assert!(self.0 >= earlier.0, "a span runs from the earlier to the later point");
        Span(self.0 - earlier.0)
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(self.0 - span.0)
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, count: u64) -> Span {
        Span(self.0 * count)
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(iter: I) -> Span {
        iter.fold(Span::ZERO, Add::add)
    }
}

impl fmt::Display for Span {
    /// The largest unit in which the span is written without loss: `20us`, `1500ns`, `6667ps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0 => (1_000, "ns"),
            ps if ps % 1_000_000_000_000 == 0 => (1_000_000_000_000, "s"),
            ps if ps % 1_000_000_000 == 0 => (1_000_000_000, "ms"),
            ps if ps % 1_000_000 == 0 => (1_000_000, "us"),
            ps if ps % 1_000 == 0 => (1_000, "ns"),
            _ => (1, "ps"),
        };
        write!(f, "{}{unit}", self.0 / divisor)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_without_loss() {
        for (ps, text) in [(0, "0ns"), (6_667, "6667ps"), (20_000_000, "20us"), (1_500_000, "1500ns")] {
            assert_eq!(Span::from_ps(ps).to_string(), text);
            assert_eq!(text.parse::<Span>().unwrap(), Span::from_ps(ps));
        }
    }
}
