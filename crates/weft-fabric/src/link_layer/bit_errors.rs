//! Bit errors: the chance that a packet is hit, in whole numbers.
//!
//! A packet of n bits of which each is wrong with chance p is hit with 1 − (1 − p)ⁿ. Chances are fixed-point
//! numbers
//! of 96 bits after the point, and the power is made by squaring: of two parts that are hit with a and b, one
//! at least is with a + b − ab. That way nothing small is taken from something near 1.

use serde::{Deserialize, Serialize};
use weft_engine::Stream;
use weft_keys::{KeyType, Problem, Writing, Written};

/// Error rates are counted in 10⁻¹⁵.
pub const PER: u64 = 1_000_000_000_000_000;

/// A chance, in 10⁻¹⁵.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorRate(u64);

impl ErrorRate {
    /// Never.
    pub const NONE: ErrorRate = ErrorRate(0);

    /// `count` in 10¹⁵, at most half of them.
    pub const fn new(count: u64) -> Option<ErrorRate> {
        if count <= PER / 2 { Some(ErrorRate(count)) } else { None }
    }

    /// The count in 10¹⁵.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// Whether it never happens.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl KeyType for ErrorRate {
    const NAME: &'static str = "ErrorRate";
    const WRITING: Writing =
        Writing::Described(&Writing::Whole { least: 0, most: Some(PER / 2) }, "Errors in 10^15.");

    fn read(value: &Written) -> Result<ErrorRate, Problem> {
        let problem = |label: String| {
            let help = format!("write how many in 10^15, from 0 to {}: 1000 is a rate of 10^-12", PER / 2);
            Problem::new("this is not an error rate", label, help)
        };
        match value {
            Written::Integer(integer) => {
                let rate = u64::try_from(*integer).ok().and_then(ErrorRate::new);
                rate.ok_or_else(|| problem(format!("{integer} in 10^15")))
            }
            other => Err(problem(format!("this is {}", other.describe()))),
        }
    }

    fn show(&self) -> String {
        self.count().to_string()
    }
}

/// A chance as a fixed-point number of 96 bits after the point; 1 is 2⁹⁶.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Chance(u128);

impl Chance {
    pub(super) const NEVER: Chance = Chance(0);
    const ONE: u128 = 1 << 96;

    /// `numerator / denominator`, at most 1; both below 2⁵⁰ or so.
    pub(super) fn ratio(numerator: u64, denominator: u64) -> Chance {
        let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
        let whole = (numerator << 64) / denominator;
        let rest = (numerator << 64) % denominator;
        Chance((whole << 32) + (rest << 32) / denominator)
    }

    /// `part / whole`, at most 1; both below 2¹²⁷.
    pub(super) fn share(part: u128, whole: u128) -> Chance {
        let (mut rest, mut share) = (part % whole, part / whole);
        for _ in 0..96 {
            rest <<= 1;
            share = share << 1 | u128::from(rest >= whole);
            rest -= if rest >= whole { whole } else { 0 };
        }
        Chance(share)
    }

    /// The chance of both. Rounded down.
    pub(super) fn and(self, other: Chance) -> Chance {
        // Products of the halves, so that 192 bits are not needed: the lowest carries less than the last
        // place.
        let (high, low) = (self.0 >> 48, self.0 & ((1 << 48) - 1));
        let (other_high, other_low) = (other.0 >> 48, other.0 & ((1 << 48) - 1));
        Chance(high * other_high + ((high * other_low) >> 48) + ((low * other_high) >> 48))
    }

    /// The chance of one at least of two that know nothing of each other.
    pub(super) fn or(self, other: Chance) -> Chance {
        Chance(self.0 + other.0 - self.and(other).0)
    }

    /// The chance that one of `count` is hit.
    pub(super) fn of_any(self, count: u64) -> Chance {
        let (mut power, mut any, mut left) = (self, Chance::NEVER, count);
        while left > 0 {
            if left & 1 == 1 {
                any = any.or(power);
            }
            power = power.or(power);
            left >>= 1;
        }
        any
    }

    /// Whether it is more than a half.
    pub(super) fn is_likely(self) -> bool {
        self.0 > Chance::ONE / 2
    }

    /// Whether random numbers have been drawn for it.
    pub(super) fn strikes(self, thrown: u64) -> bool {
        u128::from(thrown) < self.0 >> 32
    }

    /// For tests and reports.
    pub(super) fn to_f64(self) -> f64 {
        self.0 as f64 / Chance::ONE as f64
    }
}

impl ErrorRate {
    pub(super) fn chance(self) -> Chance {
        Chance::ratio(self.0, PER)
    }
}

/// The chance of packets to be hit, for all sizes.
#[derive(Clone, Debug)]
pub(super) struct PacketErrors {
    of_bit: Chance,
}

impl PacketErrors {
    /// `None`: bits are never wrong.
    pub(super) fn new(rate: ErrorRate) -> Option<PacketErrors> {
        (!rate.is_none()).then(|| PacketErrors { of_bit: rate.chance() })
    }

    /// The chance that one of so many bits is wrong.
    pub(super) fn of(&self, bits: u64) -> Chance {
        self.of_bit.of_any(bits)
    }

    /// Draws random numbers for a packet of so many bits.
    pub(super) fn strike(&self, bits: u64, rng: &mut Stream) -> bool {
        self.of(bits).strikes(rng.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches squaring that loses what is small, and chances that pass 1: against the closed form in
    /// floating point, by way of logarithms so that it is exact for small rates as well.
    #[test]
    fn a_packet_is_hit_as_the_closed_form_says() {
        for count in [1, 7, 1_000, 1_000_000_000, 3_000_000_000_000, PER / 2] {
            for bits in [1, 8, 2_304, 33_312, 1 << 20] {
                let rate = ErrorRate::new(count).unwrap();
                let chance = PacketErrors::new(rate).unwrap().of(bits).to_f64();
                let exact = -(bits as f64 * (-(count as f64) / PER as f64).ln_1p()).exp_m1();
                assert!((chance / exact - 1.0).abs() < 1e-9, "{count} {bits}: {chance} {exact}");
            }
        }
        assert_eq!(ErrorRate::new(PER / 2 + 1), None);
    }

    /// Catches fixed-point arithmetic that is off at its ends.
    #[test]
    fn chances_by_hand() {
        let half = Chance::ratio(1, 2);
        assert_eq!(
            (half.0, half.and(half), half.or(half)),
            (1 << 95, Chance::ratio(1, 4), Chance::ratio(3, 4))
        );
        let certain = Chance::ratio(5, 5);
        assert_eq!(
            (certain.and(certain), certain.or(half), Chance::share(7, 7)),
            (certain, certain, certain)
        );
        assert_eq!(Chance::share(3, 12), Chance::ratio(1, 4));
        assert!(certain.strikes(u64::MAX) && !Chance::NEVER.strikes(0));
        assert!(half.strikes(u64::MAX / 2) && !half.strikes(u64::MAX / 2 + 1));
    }
}
