//! Histograms of times with logarithmic buckets.
//!
//! Each octave is cut into 2^`BITS` buckets, so that a value is known to a relative 2^-`BITS`. Only the
//! range between the least and the largest value seen is stored, since flows have one each and there
//! may be a million of them: a general histogram crate takes kilobytes for an empty one.

use serde::{Deserialize, Serialize};
use weft_units::Span;

/// A histogram with 2^`BITS` buckets per octave of picoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Histogram<const BITS: u32> {
    /// Index of the bucket that `counts[0]` counts.
    first: u32,
    counts: Vec<u32>,
    total: u64,
    sum: u128,
    max: Span,
}

impl<const BITS: u32> Histogram<BITS> {
    /// The bucket of a value.
    #[inline]
    const fn bucket(value: u64) -> u32 {
        if value < 1 << BITS {
            return value as u32;
        }
        let octave = value.ilog2() - BITS;
        ((octave + 1) << BITS) + ((value >> octave) as u32 - (1 << BITS))
    }

    /// The largest value of a bucket.
    const fn upper(bucket: u32) -> u64 {
        let octave = bucket >> BITS;
        if octave == 0 {
            return bucket as u64;
        }
        let mantissa = (1u64 << BITS) + (bucket & ((1 << BITS) - 1)) as u64;
        (((mantissa as u128 + 1) << (octave - 1)) - 1) as u64
    }

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: Span) {
        self.add(Self::bucket(value.as_ps()), 1);
        self.total += 1;
        self.sum += u128::from(value.as_ps());
        self.max = self.max.max(value);
    }

    #[inline]
    fn add(&mut self, bucket: u32, count: u32) {
        let index = bucket.wrapping_sub(self.first) as usize;
        if index >= self.counts.len() {
            self.widen(bucket);
        }
        self.counts[(bucket - self.first) as usize] += count;
    }

    #[cold]
    fn widen(&mut self, bucket: u32) {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = (self.first - bucket) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let length = (bucket - self.first) as usize + 1;
        if length > self.counts.len() {
            self.counts.resize(length, 0);
        }
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Histogram<BITS>) {
        for (index, &count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.add(other.first + index as u32, count);
        }
        self.total += other.total;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The number of values counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The exact mean, rounded down; `None`: no values.
    pub fn mean(&self) -> Option<Span> {
        let mean = self.sum.checked_div(u128::from(self.total))?;
        Some(Span::from_ps(mean as u64))
    }

    /// The exact largest value; zero where there is none.
    pub fn max(&self) -> Span {
        self.max
    }

    /// The value that `percent` of 100 values do not exceed, to the bucket's upper end; `None`: no values.
    pub fn percentile(&self, percent: u32) -> Option<Span> {
        self.per_mille(percent * 10)
    }

    /// The value that `thousandths` of 1,000 values do not exceed, to the bucket's upper end; `None`: no
    /// values.
    pub fn per_mille(&self, thousandths: u32) -> Option<Span> {
        if self.total == 0 {
            return None;
        }
        let rank = (u128::from(self.total) * u128::from(thousandths)).div_ceil(1_000).max(1);
        let mut seen = 0u128;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                let upper = Span::from_ps(Self::upper(self.first + index as u32));
                return Some(upper.min(self.max));
            }
        }
        Some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches buckets that overlap, leave gaps or are wider than promised, and a merge that loses.
        #[test]
        fn percentiles_are_within_a_bucket(
            values in prop::collection::vec(0u64..1 << 45, 1..300), at in 1u32..=100,
        ) {
            let mut halves = [Histogram::<6>::default(), Histogram::<6>::default()];
            for (i, &value) in values.iter().enumerate() {
                halves[i % 2].record(Span::from_ps(value));
            }
            let [mut all, other] = halves;
            all.merge(&other);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let exact = sorted[(sorted.len() * at as usize).div_ceil(100).max(1) - 1];
            let found = all.percentile(at).unwrap().as_ps();
            prop_assert!(found >= exact && found - exact <= exact >> 6, "{} for {}", found, exact);
            prop_assert_eq!(all.max().as_ps(), *sorted.last().unwrap());
            let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
            prop_assert_eq!(u128::from(all.mean().unwrap().as_ps()), sum / values.len() as u128);
        }
    }
}
