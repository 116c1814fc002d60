//! Counter-based random streams.

use serde::{Deserialize, Serialize};

/// A stream of random numbers that depends on (seed, entity, purpose) alone, never on who else drew
/// from another stream before: SplitMix64 (Steele, Lea, Flood 2014) read as a counter-based generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stream {
    key: u64,
    counter: u64,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of `entity` for `purpose` under `seed`.
    pub const fn new(seed: u64, entity: u64, purpose: u32) -> Stream {
        let key = mix(mix(mix(seed.wrapping_add(GOLDEN)) ^ entity).wrapping_add(GOLDEN) ^ purpose as u64);
        Stream { key, counter: 0 }
    }

    /// The next number, uniform over 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        mix(self.key.wrapping_add(self.counter.wrapping_mul(GOLDEN)))
    }

    /// The number that belongs to `place`, whatever has been drawn: for what must not depend on how often
    /// something was looked at. Places count back from the stream's end, which drawing never reaches.
    #[inline]
    pub const fn at(&self, place: u64) -> u64 {
        mix(self.key.wrapping_sub(place.wrapping_mul(GOLDEN)))
    }

    /// The next number, uniform over 0..`bound`, which must not be zero: [`below`].
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        below(bound, &mut || self.next_u64())
    }
}

/// A uniform integer in `0..bound` from 64 uniform bits per call of `random`. `bound` must not be 0.
///
/// Multiply-shift with rejection: D. Lemire, "Fast random integer generation in an interval", ACM
/// TOMACS 29(1), 2019. The high half of `random × bound` is the result; the few products whose low
/// half is below 2⁶⁴ mod `bound` would favour some results and are drawn again. The division is
/// reached only with probability `bound` / 2⁶⁴.
#[inline]
pub fn below(bound: u32, random: &mut impl FnMut() -> u64) -> u32 {
    debug_assert!(bound > 0, "no integer is below zero");
    let bound = u64::from(bound);
    let mut product = u128::from(random()) * u128::from(bound);
    if (product as u64) < bound {
        let threshold = bound.wrapping_neg() % bound;
        while (product as u64) < threshold {
            product = u128::from(random()) * u128::from(bound);
        }
    }
    (product >> 64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_each_of_their_keys() {
        let first = |seed, entity, purpose| Stream::new(seed, entity, purpose).next_u64();
        let mut seen = vec![first(1, 2, 3), first(2, 2, 3), first(1, 3, 3), first(1, 2, 4), first(2, 1, 3)];
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5);
    }

    /// Catches a result that a modulo or a float would favour, and one that is never drawn.
    #[test]
    fn all_results_are_equally_likely() {
        for bound in [1u32, 2, 3, 6, 7, 342, 1000] {
            let mut stream = Stream::new(7, bound.into(), 0);
            let mut counts = vec![0u32; bound as usize];
            for _ in 0..bound * 1000 {
                counts[stream.below(bound) as usize] += 1;
            }
            // Pearson's chi-square within four standard deviations of its mean.
            let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
            let freedom = f64::from(bound) - 1.0;
            assert!((chi - freedom).abs() <= 4.0 * (2.0 * freedom).sqrt(), "{bound}: {chi}");
        }
    }

    /// Catches a missing rejection: for bound 3, 2⁶⁴ mod 3 = 1, so exactly the draw 0 is refused.
    #[test]
    fn the_surplus_draw_is_rejected() {
        let mut draws = [0, u64::MAX].into_iter();
        assert_eq!(below(3, &mut || draws.next().unwrap()), 2);
        assert_eq!(draws.next(), None);
    }
}
