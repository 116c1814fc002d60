//! Clocks: rational frequencies whose edges are computed, never accumulated.

use crate::{Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A clock with edge n at ceil(n · 10¹² / f) picoseconds, for a rational frequency f.
///
/// 150 MHz has a period of 6666⅔ ps: its edges lie at 0, 6667, 13334, 20000 ps, and the millionth
/// edge is exactly where hardware has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "Period", into = "Period")]
pub struct Clock {
    /// The period is `numerator / denominator` ps, in lowest terms.
    numerator: u64,
    denominator: u64,
    /// Of the numerator: finding how many periods a time holds must not divide.
    reciprocal: u64,
    /// 2^64 / denominator, rounded up where that is more than 1: nor must finding when an edge is.
    denominator_reciprocal: u64,
    /// The last edge of which that is true.
    last_near: u64,
}

/// How a clock is written: its period.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename = "Clock")]
struct Period {
    numerator: u64,
    denominator: u64,
}

impl From<Period> for Clock {
    fn from(Period { numerator, denominator }: Period) -> Clock {
        // Of damaged bytes comes some clock.
        Clock::of_period(numerator.max(1), denominator.max(1))
    }
}

impl From<Clock> for Period {
    fn from(Clock { numerator, denominator, .. }: Clock) -> Period {
        Period { numerator, denominator }
    }
}

impl Clock {
    /// A clock of `hertz`; `None` for zero and for frequencies above 1 THz, whose edges picoseconds
    /// cannot tell apart.
    pub const fn from_hertz(hertz: u64) -> Option<Clock> {
        Clock::from_ratio(hertz, 1)
    }

    /// A clock of `hertz / divisor`; `None` as for [`Clock::from_hertz`].
    pub const fn from_ratio(hertz: u64, divisor: u64) -> Option<Clock> {
        let Some(period) = 1_000_000_000_000u64.checked_mul(divisor) else { return None };
        if hertz == 0 || divisor == 0 || hertz > period {
            return None;
        }
        let common = gcd(period, hertz);
        Some(Clock::of_period(period / common, hertz / common))
    }

    const fn of_period(numerator: u64, denominator: u64) -> Clock {
        // By a reciprocal that is too large by up to 1, a quotient is exact of what is less than 2^64 /
        // denominator.
        let exact = (u64::MAX / denominator).saturating_sub(denominator);
        Clock {
            numerator,
            denominator,
            reciprocal: reciprocal(numerator),
            denominator_reciprocal: reciprocal(denominator).wrapping_add(1),
            last_near: exact / numerator,
        }
    }

    /// floor(`product` / numerator).
    #[inline]
    const fn periods(&self, product: u64) -> u64 {
        quotient(product, self.numerator, self.reciprocal)
    }

    /// The first edge at or after `time`.
    #[inline]
    pub const fn edge_at_or_after(&self, time: Time) -> Time {
        if self.denominator != 1 {
            return self.uneven_edge_at_or_after(time);
        }
        let before = self.periods(time.as_ps()) * self.numerator;
        Time::from_ps(before + if before < time.as_ps() { self.numerator } else { 0 })
    }

    const fn uneven_edge_at_or_after(&self, time: Time) -> Time {
        self.edge(self.edges_before(time))
    }

    /// Edges before `time`, which is the number of the first edge at or after it.
    #[inline]
    pub const fn edges_before(&self, time: Time) -> u64 {
        // Edge n is at ceil(n·num/den): the first n with n·num/den > t - 1, i.e. n > (t-1)·den/num.
        let t = time.as_ps();
        if t == 0 {
            return 0;
        }
        self.whole_periods(t - 1) + 1
    }

    /// floor(`ps` · denominator / numerator): how many periods `ps` holds.
    #[inline]
    const fn whole_periods(&self, ps: u64) -> u64 {
        match ps.checked_mul(self.denominator) {
            Some(product) => self.periods(product),
            None => (ps as u128 * self.denominator as u128 / self.numerator as u128) as u64,
        }
    }

    /// The first edge strictly after `time`.
    #[inline]
    pub const fn edge_after(&self, time: Time) -> Time {
        self.edge_at_or_after(Time::from_ps(time.as_ps() + 1))
    }

    /// Edge number `n`.
    #[inline]
    pub const fn edge(&self, n: u64) -> Time {
        if n > self.last_near {
            return self.far_edge(n);
        }
        let product = n * self.numerator;
        Time::from_ps(if self.denominator == 1 {
            product
        } else {
            high(product + (self.denominator - 1), self.denominator_reciprocal)
        })
    }

    #[cold]
    const fn far_edge(&self, n: u64) -> Time {
        Time::from_ps((n as u128 * self.numerator as u128).div_ceil(self.denominator as u128) as u64)
    }

    /// The last edge at or before `time`.
    #[inline]
    pub const fn edge_at_or_before(&self, time: Time) -> Time {
        if self.denominator != 1 {
            return self.uneven_edge_at_or_before(time);
        }
        Time::from_ps(self.periods(time.as_ps()) * self.numerator)
    }

    /// The same where the period is no whole number: on its own, so that the common case stays short where
    /// it is inlined.
    const fn uneven_edge_at_or_before(&self, time: Time) -> Time {
        // The last n with ceil(n·num/den) <= t, i.e. n <= t·den/num.
        self.edge(self.whole_periods(time.as_ps()))
    }

    /// The edge `count` cycles after the edge at `edge`.
    #[inline]
    pub const fn later_edge(&self, edge: Time, count: u64) -> Time {
        if self.denominator != 1 {
            return self.uneven_later_edge(edge, count);
        }
        Time::from_ps(edge.as_ps() + count * self.numerator)
    }

    const fn uneven_later_edge(&self, edge: Time, count: u64) -> Time {
        // edge = ceil(n·num/den) and num >= den, so n = floor(edge·den/num).
        self.edge(self.whole_periods(edge.as_ps()) + count)
    }

    /// How long `count` cycles last, rounded up once.
    #[inline]
    pub const fn cycles(&self, count: u64) -> Span {
        Span::from_ps(self.edge(count).as_ps())
    }

    /// The frequency in hertz, for reports only.
    pub fn hertz_f64(&self) -> f64 {
        1e12 * self.denominator as f64 / self.numerator as f64
    }

    /// The frequency in hertz where it is a whole number.
    pub const fn hertz(&self) -> Option<u64> {
        let product = 1_000_000_000_000u128 * self.denominator as u128;
        if product % (self.numerator as u128) == 0 {
            Some((product / self.numerator as u128) as u64)
        } else {
            None
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hertz() {
            Some(hz) if hz % 1_000_000_000 == 0 => write!(f, "{}GHz", hz / 1_000_000_000),
            Some(hz) if hz % 1_000_000 == 0 => write!(f, "{}MHz", hz / 1_000_000),
            Some(hz) if hz % 1_000 == 0 => write!(f, "{}kHz", hz / 1_000),
            Some(hz) => write!(f, "{hz}Hz"),
            None => write!(f, "{}Hz", self.hertz_f64()),
        }
    }
}

/// floor(2^64 / divisor), at most 2^64 - 1.
const fn reciprocal(divisor: u64) -> u64 {
    if divisor <= 1 { u64::MAX } else { ((1u128 << 64) / divisor as u128) as u64 }
}

/// floor(`one` · `other` / 2^64).
#[inline]
const fn high(one: u64, other: u64) -> u64 {
    ((one as u128 * other as u128) >> 64) as u64
}

/// floor(`dividend` / `divisor`), by the [`reciprocal`] of the divisor.
#[inline]
const fn quotient(dividend: u64, divisor: u64, reciprocal: u64) -> u64 {
    let below = high(dividend, reciprocal);
    // The reciprocal is short by less than 1, so the quotient by at most 1.
    below + (dividend - below * divisor >= divisor) as u64
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_of_150_mhz_never_drift() {
        let clock = Clock::from_hertz(150_000_000).unwrap();
        assert_eq!([0, 1, 2, 3].map(|n| clock.edge(n).as_ps()), [0, 6_667, 13_334, 20_000]);
        assert_eq!(clock.edge(150_000_000).as_ps(), 1_000_000_000_000);
    }

    proptest! {
        /// Catches a reciprocal that puts an edge a period too early or too late, near the end of time
        /// too; and a period of 1 ps, whose reciprocal does not fit.
        #[test]
        fn whole_periods_need_no_division(period in 1u64..1 << 41, t in 0u64..u64::MAX >> 1) {
            let clock = Clock::of_period(period, 1);
            prop_assert_eq!(clock.edge_at_or_after(Time::from_ps(t)).as_ps(), t.div_ceil(period) * period);
            prop_assert_eq!(clock.edge_at_or_before(Time::from_ps(t)).as_ps(), t / period * period);
            let least = Clock::of_period(1, 1);
            prop_assert_eq!(least.edge_at_or_after(Time::from_ps(t)).as_ps(), t);
        }

        /// Catches a quotient that is one off: of what is large, where the reciprocal alone is too short,
        /// and at whole multiples; and an edge whose product does not fit.
        #[test]
        fn an_edge_needs_no_division(numerator: u64, denominator in 1u64..1 << 20, n: u64, bits in 1u32..64) {
            let multiple = n / denominator * denominator;
            for dividend in [n, multiple, multiple.saturating_sub(1)] {
                let found = quotient(dividend, denominator, reciprocal(denominator));
                prop_assert_eq!(found, dividend / denominator);
            }
            let (clock, n) = (Clock::of_period((numerator >> bits).max(1), denominator), n >> (64 - bits));
            let edge = (u128::from(n) * u128::from(clock.numerator)).div_ceil(u128::from(denominator));
            if let Ok(edge) = u64::try_from(edge) {
                prop_assert_eq!(clock.edge(n).as_ps(), edge);
            }
        }

        /// Catches an edge that lies before the asked time, or a nearer edge that was skipped.
        #[test]
        fn the_edge_found_is_the_first(hertz in 1u64..2_000_000_000, t in 0u64..1 << 50) {
            let clock = Clock::from_hertz(hertz).unwrap();
            let edge = clock.edge_at_or_after(Time::from_ps(t)).as_ps() as u128;
            let n = edge * hertz as u128 / 1_000_000_000_000;
            prop_assert!(edge >= t as u128);
            prop_assert_eq!((n * 1_000_000_000_000).div_ceil(hertz as u128), edge);
            prop_assert_eq!(clock.edges_before(Time::from_ps(t)) as u128, n);
            prop_assert_eq!(clock.edge_at_or_before(Time::from_ps(edge as u64)).as_ps(), edge as u64);
            prop_assert_eq!(clock.later_edge(clock.edge(n as u64), 7), clock.edge(n as u64 + 7));
            if t > 0 {
                let before = clock.edge_at_or_before(Time::from_ps(t - 1));
                prop_assert!(before.as_ps() < t && clock.edge_after(before).as_ps() >= t);
            }
            if n > 0 {
                prop_assert!(((n - 1) * 1_000_000_000_000).div_ceil(hertz as u128) < t as u128);
            }
        }
    }
}
