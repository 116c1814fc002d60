//! Age: the oldest packet first, counted since its interface handed it over.
//!
//! Round robin at each output shares the output among inputs, not among sources: where flows of one source
//! and of a hundred meet, that source gets half. The oldest packet first gives every source the same,
//! whatever way its packets come by (the parking-lot problem). Of packets of one age the first in turn goes.
//!
//! # Source
//! Abts and Weisser, "Age-Based Packet Arbitration in Large-Radix k-ary n-cubes", SC 2007; the parking-lot
//! problem: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, §15.4.1.

use super::round_robin;

/// The oldest of `requests` that `is_eligible` accepts; among those of one age the first from `pointer` on.
#[inline(always)]
pub(crate) fn choose(
    requests: &[u64],
    pointer: usize,
    mut is_eligible: impl FnMut(usize) -> bool,
    age: impl Fn(usize) -> u64,
) -> Option<usize> {
    let mut oldest: Option<(usize, u64)> = None;
    // No request is taken, so that all are looked at, in turn.
    round_robin::choose(requests, pointer, |request| {
        if is_eligible(request) {
            let age = age(request);
            if oldest.is_none_or(|(_, most)| age > most) {
                oldest = Some((request, age));
            }
        }
        false
    });
    oldest.map(|(request, _)| request)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a younger packet that goes first, and a tie that always favours the same input.
    #[test]
    fn the_oldest_goes_and_ties_go_in_turn() {
        let ages = [5, 9, 9, 7];
        let age = |request: usize| ages[request];
        assert_eq!(choose(&[0b1111], 0, |_| true, age), Some(1));
        assert_eq!(choose(&[0b1111], 2, |_| true, age), Some(2));
        assert_eq!(choose(&[0b1001], 0, |_| true, age), Some(3));
        assert_eq!(choose(&[0b1111], 0, |request| request == 0, age), Some(0));
        assert_eq!(choose(&[0b1111], 0, |_| false, age), None);
    }
}
