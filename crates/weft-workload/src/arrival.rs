//! Arrivals: how long after one message the next is handed over.
//!
//! Integer arithmetic only, so that all platforms draw the same gaps. Means are rational numbers of
//! picoseconds, and what rounding to a picosecond cuts off one gap is carried into the next: the
//! rate is met exactly however many messages there are.

use serde::{Deserialize, Serialize};
use weft_engine::exponential::{self, neg_ln};
use weft_units::Span;

/// Why an arrival process cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a mean gap of {numerator}/{denominator} ps is no positive time")]
pub struct ArrivalError {
    numerator: u64,
    denominator: u64,
}

/// An arrival process of one endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// Equal gaps.
    Periodic(Periodic),
    /// Exponential gaps, independent of each other.
    Poisson(Poisson),
    /// No gaps: all messages are there from the beginning.
    AtOnce,
}

impl Arrival {
    /// The time from one message to the next. Only Poisson arrivals draw.
    #[inline]
    pub fn next_gap(&mut self, random: &mut impl FnMut() -> u64) -> Span {
        match self {
            Arrival::Periodic(process) => process.next_gap(),
            Arrival::Poisson(process) => process.next_gap(random),
            Arrival::AtOnce => Span::ZERO,
        }
    }

    /// The gaps as an endless iterator.
    pub fn gaps(&mut self, mut random: impl FnMut() -> u64) -> impl Iterator<Item = Span> {
        std::iter::repeat_with(move || self.next_gap(&mut random))
    }
}

/// Equal gaps: message n comes at floor(n · mean), to the picosecond for any n.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Periodic {
    numerator: u64,
    denominator: u64,
    /// The remainder that rounding has cut off so far, in 1/denominator ps; less than the denominator.
    remainder: u64,
}

impl Periodic {
    /// One message every `numerator / denominator` ps.
    ///
    /// # Errors
    /// Where either is zero.
    pub fn new(numerator: u64, denominator: u64) -> Result<Periodic, ArrivalError> {
        if numerator == 0 || denominator == 0 {
            return Err(ArrivalError { numerator, denominator });
        }
        Ok(Periodic { numerator, denominator, remainder: 0 })
    }

    /// The time to the next message.
    #[inline]
    pub fn next_gap(&mut self) -> Span {
        // The whole part is divided off first, so that the sum fits wherever the mean does.
        let rest = u128::from(self.numerator % self.denominator) + u128::from(self.remainder);
        let carry = u64::from(rest >= u128::from(self.denominator));
        self.remainder = (rest - u128::from(carry) * u128::from(self.denominator)) as u64;
        Span::from_ps((self.numerator / self.denominator).saturating_add(carry))
    }
}

/// Poisson arrivals: gaps −ln(u) · mean for u uniform in (0, 1].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Poisson {
    /// Whole picoseconds of the mean.
    whole: u64,
    /// The rest of the mean, in 2⁻⁶⁴ ps.
    fraction: u64,
    /// The remainder that rounding has cut off so far, in 2⁻⁵⁶ ps; less than one picosecond.
    carry: u64,
}

/// Fraction bits of [`neg_ln`].
const FRACTION_BITS: u32 = exponential::FRACTION_BITS;

impl Poisson {
    /// One message every `numerator / denominator` ps on average.
    ///
    /// # Errors
    /// Where either is zero.
    pub fn new(numerator: u64, denominator: u64) -> Result<Poisson, ArrivalError> {
        if numerator == 0 || denominator == 0 {
            return Err(ArrivalError { numerator, denominator });
        }
        let fraction = (u128::from(numerator % denominator) << 64) / u128::from(denominator);
        Ok(Poisson { whole: numerator / denominator, fraction: fraction as u64, carry: 0 })
    }

    /// The time to the next message.
    #[inline]
    pub fn next_gap(&mut self, random: &mut impl FnMut() -> u64) -> Span {
        let exponential = u128::from(neg_ln(random()));
        // Below 2⁶² · 2⁶⁴, so that nothing overflows.
        let exact = exponential * u128::from(self.whole)
            + ((exponential * u128::from(self.fraction)) >> 64)
            + u128::from(self.carry);
        self.carry = exact as u64 & ((1 << FRACTION_BITS) - 1);
        Span::from_ps(u64::try_from(exact >> FRACTION_BITS).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::rng;
    use proptest::prelude::*;

    proptest! {
        /// Catches drift: after n gaps the time is floor(n · mean), whatever the mean.
        #[test]
        fn periodic_arrivals_never_drift(
            numerator in 1u64..1 << 40, denominator in 1u64..1 << 20, n in 1u64..500,
        ) {
            let mut process = Periodic::new(numerator, denominator).unwrap();
            let sum: u64 = (0..n).map(|_| process.next_gap().as_ps()).sum();
            prop_assert_eq!(u128::from(sum), u128::from(n) * u128::from(numerator) / u128::from(denominator));
        }
    }

    /// Catches a wrong mean or spread: both are the mean of the process, here within 4 standard
    /// errors. The mean is a fraction of a picosecond, so that cutting off would show.
    #[test]
    fn poisson_gaps_have_the_mean_and_variance_of_an_exponential() {
        const N: usize = 1_000_000;
        for (numerator, denominator) in [(10, 3), (7, 10), (1_234_567_890, 7)] {
            let mut process = Arrival::Poisson(Poisson::new(numerator, denominator).unwrap());
            let mean = numerator as f64 / denominator as f64;
            let gaps: Vec<f64> = process.gaps(rng(5)).take(N).map(|gap| gap.as_ps() as f64).collect();
            let measured = gaps.iter().sum::<f64>() / N as f64;
            assert!((measured / mean - 1.0).abs() < 4.0 / (N as f64).sqrt(), "{measured} for {mean}");
            if mean > 1000.0 {
                // The variance of an exponential's sample variance is 8 σ⁴ / n.
                let variance = gaps.iter().map(|g| (g - measured).powi(2)).sum::<f64>() / (N - 1) as f64;
                assert!((variance / (mean * mean) - 1.0).abs() < 4.0 * (8.0 / N as f64).sqrt(), "{variance}");
            }
        }
    }

    /// Catches a distribution with the right moments and a wrong shape: Kolmogorov and Smirnov's
    /// distance to 1 − exp(−x), below 1.95/√n at the 0.1 % level.
    #[test]
    fn poisson_gaps_are_exponentially_distributed() {
        const N: usize = 200_000;
        const MEAN: u64 = 1 << 40;
        let mut process = Arrival::Poisson(Poisson::new(MEAN, 1).unwrap());
        let mut gaps: Vec<u64> = process.gaps(rng(6)).take(N).map(Span::as_ps).collect();
        gaps.sort();
        let distance = gaps.iter().enumerate().fold(0.0f64, |worst, (i, &gap)| {
            let theory = -(-(gap as f64) / MEAN as f64).exp_m1();
            worst.max((theory - i as f64 / N as f64).abs()).max((theory - (i + 1) as f64 / N as f64).abs())
        });
        assert!(distance < 1.95 / (N as f64).sqrt(), "{distance}");
    }

    #[test]
    fn a_mean_of_zero_is_refused() {
        assert!(Periodic::new(0, 1).is_err() && Poisson::new(0, 1).is_err());
        assert!(Periodic::new(1, 0).is_err() && Poisson::new(1, 0).is_err());
    }

    /// Catches an overflow where the mean is the longest time there is.
    #[test]
    fn the_longest_gap_is_the_end_of_time() {
        let mut process = Poisson::new(u64::MAX, 1).unwrap();
        assert_eq!(process.next_gap(&mut || 0), Span::from_ps(u64::MAX));
    }
}
