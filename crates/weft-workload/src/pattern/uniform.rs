//! Uniform random traffic: every destination equally likely.

use super::{PatternError, PatternInput, TrafficPattern};
use crate::below;
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// Each message goes to an endpoint drawn uniformly, never to its source unless `include_self`.
///
/// # Source
/// W. Dally, B. Towles, Principles and Practices of Interconnection Networks, 2004, §3.2. With
/// `include_self` the destinations are those of M. Karol, M. Hluchyj, S. Morgan, IEEE Trans. Commun.
/// 35(12), 1987, whose saturation values hold for uniform choice over all outputs, one's own included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Uniform {
    endpoints: u32,
    include_self: bool,
}

impl Uniform {
    /// Uniform traffic among `endpoints`.
    ///
    /// # Errors
    /// [`PatternError::TooFewEndpoints`] where a message would have nowhere to go.
    pub fn new(endpoints: u32, include_self: bool) -> Result<Uniform, PatternError> {
        PatternError::require("uniform", endpoints, if include_self { 1 } else { 2 })?;
        Ok(Uniform { endpoints, include_self })
    }
}

impl TrafficPattern for Uniform {
    const DRAWS: bool = true;
    const GOES_EVERYWHERE: bool = true;
    const BOUND: Option<weft_topo::Pattern> = Some(weft_topo::Pattern::Uniform);

    fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<Uniform, PatternError> {
        Uniform::new(input.endpoints(), input.settings.include_self)
    }

    #[inline]
    fn destination(&self, source: EndpointId, _: u64, random: &mut impl FnMut() -> u64) -> EndpointId {
        if self.include_self {
            return EndpointId(below(self.endpoints, random));
        }
        // One of the others: those from the source upwards move up by one.
        let other = below(self.endpoints - 1, random);
        EndpointId(other + u32::from(other >= source.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{evenly_spread, rng};

    fn counts(pattern: &Uniform, source: u32) -> Vec<u64> {
        let mut random = rng(7);
        let mut counts = vec![0; pattern.endpoints as usize];
        for _ in 0..pattern.endpoints * 2000 {
            counts[pattern.destination(EndpointId(source), 0, &mut random).index()] += 1;
        }
        counts
    }

    /// Catches a neighbour of the source that is favoured or left out, and messages to oneself.
    #[test]
    fn the_others_are_equally_likely() {
        for source in [0, 20, 40] {
            let mut counts = counts(&Uniform::new(41, false).unwrap(), source);
            assert_eq!(counts.remove(source as usize), 0);
            assert!(evenly_spread(&counts), "{source}: {counts:?}");
        }
    }

    /// Catches an own output that Karol's switch would not get its share of.
    #[test]
    fn oneself_is_as_likely_as_any_other() {
        assert!(evenly_spread(&counts(&Uniform::new(8, true).unwrap(), 3)));
    }
}
