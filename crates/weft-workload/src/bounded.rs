//! Unbiased bounded integers.

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
    use crate::dice::{dice, evenly_spread};

    /// Catches a result that a modulo or a float would favour, and one that is never drawn.
    #[test]
    fn all_results_are_equally_likely() {
        for bound in [1, 2, 3, 7, 342, 1000] {
            let mut random = dice(u64::from(bound));
            let mut counts = vec![0; bound as usize];
            for _ in 0..bound * 1000 {
                counts[below(bound, &mut random) as usize] += 1;
            }
            assert!(bound == 1 || evenly_spread(&counts), "{bound}: {counts:?}");
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
