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

    /// The next number, uniform over 0..`bound` (Lemire 2019: multiply, reject the few that would
    /// favour some). `bound` must not be zero.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0);
        let mut product = (self.next_u64() >> 32) * u64::from(bound);
        if (product as u32) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u32) < threshold {
                product = (self.next_u64() >> 32) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }
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

    #[test]
    fn below_is_uniform() {
        let mut stream = Stream::new(7, 0, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[stream.below(6) as usize] += 1;
        }
        // Chi-square with 5 degrees of freedom: 20.5 is exceeded once in a thousand.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 20.5, "{counts:?}");
    }
}
