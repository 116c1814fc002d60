//! Random permutation traffic: every endpoint has one fixed partner to send to.

use super::{PatternError, PatternInput, TrafficPattern};
use crate::below;
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// Every endpoint sends to one destination and receives from one source, never itself.
///
/// The permutation is uniform among those without fixed points (derangements): shuffles by Fisher
/// and Yates (Knuth, TAOCP vol. 2, §3.4.2, algorithm P) are drawn until one has none, e ≈ 2.7 times
/// on average for any size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Permutation {
    partner: Vec<EndpointId>,
}

impl Permutation {
    /// Draws the permutation of `endpoints`.
    ///
    /// # Errors
    /// [`PatternError::TooFewEndpoints`] below two endpoints: only a fixed point is left.
    pub fn new(endpoints: u32, random: &mut impl FnMut() -> u64) -> Result<Permutation, PatternError> {
        PatternError::require("permutation", endpoints, 2)?;
        let mut partner: Vec<EndpointId> = (0..endpoints).map(EndpointId).collect();
        while !shuffle_without_fixed_points(&mut partner, random) {}
        Ok(Permutation { partner })
    }
}

impl TrafficPattern for Permutation {
    const GOES_EVERYWHERE: bool = true;

    fn on(input: &PatternInput<'_>, random: &mut impl FnMut() -> u64) -> Result<Permutation, PatternError> {
        Permutation::new(input.endpoints(), random)
    }

    #[inline]
    fn destination(&self, source: EndpointId, _: u64, _: &mut impl FnMut() -> u64) -> EndpointId {
        self.partner[source.index()]
    }
}

/// Shuffles from the last place down and gives up (`false`) at the first fixed point: a place is
/// final once it has been swapped into.
fn shuffle_without_fixed_points(partner: &mut [EndpointId], random: &mut impl FnMut() -> u64) -> bool {
    for place in (0..partner.len()).rev() {
        partner.swap(place, below(place as u32 + 1, random) as usize);
        if partner[place].index() == place {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{evenly_spread, rng};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Catches a destination that two endpoints share, one that is missed, and a fixed point.
        #[test]
        fn it_is_a_permutation_without_fixed_points(endpoints in 2u32..500, seed: u64) {
            let pattern = Permutation::new(endpoints, &mut rng(seed)).unwrap();
            let to = |endpoint| pattern.destination(EndpointId(endpoint), 0, &mut || 0);
            let mut reached: Vec<_> = (0..endpoints).map(to).collect();
            prop_assert!(reached.iter().enumerate().all(|(source, to)| to.index() != source));
            reached.sort();
            prop_assert!(reached.into_iter().eq((0..endpoints).map(EndpointId)));
        }
    }

    /// Catches a shuffle that favours some permutations: the 9 derangements of four are equally
    /// likely, the 6 that are one cycle no more than the 3 that are two swaps.
    #[test]
    fn all_derangements_are_equally_likely() {
        let mut random = rng(3);
        let mut counts = BTreeMap::new();
        for _ in 0..9_000 {
            *counts.entry(Permutation::new(4, &mut random).unwrap().partner).or_insert(0u64) += 1;
        }
        assert_eq!(counts.len(), 9);
        assert!(evenly_spread(&counts.values().copied().collect::<Vec<_>>()), "{counts:?}");
    }
}
