//! All-to-all: each endpoint sends to all others in shifted order.

use super::{PatternError, PatternInput, TrafficPattern};
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// Message m of endpoint s goes to s + 1 + m, around the end and past s itself: in step, the
/// messages of equal number form a permutation, so that no destination is hit twice at once.
///
/// # Source
/// The linear shift exchange of all-to-all collectives: R. Thakur, R. Rabenseifner, W. Gropp,
/// "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AllToAll {
    endpoints: u32,
}

impl AllToAll {
    /// All-to-all among `endpoints`.
    ///
    /// # Errors
    /// [`PatternError::TooFewEndpoints`] below two.
    pub fn new(endpoints: u32) -> Result<AllToAll, PatternError> {
        PatternError::require("all-to-all", endpoints, 2)?;
        Ok(AllToAll { endpoints })
    }
}

impl TrafficPattern for AllToAll {
    const DRAWS: bool = true;
    const GOES_EVERYWHERE: bool = true;
    /// All others equally often, in turn.
    const BOUND: Option<weft_topo::Pattern> = Some(weft_topo::Pattern::Uniform);

    fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<AllToAll, PatternError> {
        AllToAll::new(input.endpoints())
    }

    #[inline]
    fn destination(&self, source: EndpointId, message: u64, _: &mut impl FnMut() -> u64) -> EndpointId {
        let endpoints = u64::from(self.endpoints);
        let shift = 1 + message % (endpoints - 1);
        EndpointId(((u64::from(source.0) + shift) % endpoints) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches a destination left out or met twice in a round, and two sources that hit the same
        /// destination in the same step.
        #[test]
        fn a_round_meets_all_others_and_a_step_is_a_permutation(
            endpoints in 2u32..100, s in 0u32..100, m: u64,
        ) {
            let pattern = AllToAll::new(endpoints).unwrap();
            let (source, others) = (EndpointId(s % endpoints), u64::from(endpoints - 1));
            let first = m / 2 / others * others;
            let in_round = |message| pattern.destination(source, first + message, &mut || 0);
            let mut round: Vec<_> = (0..others).map(in_round).collect();
            round.push(source);
            round.sort();
            prop_assert!(round.into_iter().eq((0..endpoints).map(EndpointId)));
            let to = |e| pattern.destination(EndpointId(e), m, &mut || 0);
            let mut step: Vec<_> = (0..endpoints).map(to).collect();
            step.sort();
            prop_assert!(step.into_iter().eq((0..endpoints).map(EndpointId)));
        }
    }
}
