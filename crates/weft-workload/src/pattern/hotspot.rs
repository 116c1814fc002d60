//! Hotspot traffic: uniform, but a share of the messages goes to a few hot endpoints.

use super::{PatternError, PatternInput, TrafficPattern, Uniform};
use crate::below;
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// A share of every endpoint's messages goes to the hot endpoints, each equally likely; the rest is
/// uniform over all endpoints, the hot ones included. Nothing goes to its source: a hot endpoint
/// sends its hot share to the other hot ones, or uniformly where it is the only one.
///
/// # Source
/// G. Pfister, V. Norton, "Hot spot contention and combining in multistage interconnection
/// networks", IEEE Trans. Comput. C-34(10), 1985: the same share over a uniform background.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hotspot {
    uniform: Uniform,
    /// In ascending order, without repetition, not empty.
    hot: Vec<EndpointId>,
    /// Share of the messages, in parts per million.
    share_ppm: u32,
}

impl Hotspot {
    /// `share_ppm` parts per million of the messages go to `hot`.
    ///
    /// # Errors
    /// Below two endpoints, without a hot endpoint, with one that does not exist, or with a share
    /// above one million.
    pub fn new(endpoints: u32, hot: &[EndpointId], share_ppm: u32) -> Result<Hotspot, PatternError> {
        PatternError::require("hotspot", endpoints, 2)?;
        if hot.is_empty() {
            return Err(PatternError::NoHotEndpoint);
        }
        if let Some(&endpoint) = hot.iter().find(|e| e.0 >= endpoints) {
            return Err(PatternError::UnknownEndpoint { pattern: "hotspot", endpoint, endpoints });
        }
        if share_ppm > 1_000_000 {
            return Err(PatternError::ShareAboveOne { share_ppm });
        }
        let mut hot = hot.to_vec();
        hot.sort();
        hot.dedup();
        Ok(Hotspot { uniform: Uniform::new(endpoints, false)?, hot, share_ppm })
    }
}

impl TrafficPattern for Hotspot {
    const DRAWS: bool = true;
    const GOES_EVERYWHERE: bool = true;

    fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<Hotspot, PatternError> {
        Hotspot::new(input.endpoints(), &input.settings.hot, input.settings.hot_share_ppm)
    }

    #[inline]
    fn destination(&self, source: EndpointId, message: u64, random: &mut impl FnMut() -> u64) -> EndpointId {
        if below(1_000_000, random) >= self.share_ppm {
            return self.uniform.destination(source, message, random);
        }
        match self.hot.binary_search(&source) {
            Err(_) => self.hot[below(self.hot.len() as u32, random) as usize],
            Ok(_) if self.hot.len() == 1 => self.uniform.destination(source, message, random),
            Ok(own) => {
                let other = below(self.hot.len() as u32 - 1, random) as usize;
                self.hot[other + usize::from(other >= own)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{evenly_spread, rng};

    fn counts(pattern: &Hotspot, source: u32, messages: u32) -> Vec<u64> {
        let mut random = rng(11);
        let mut counts = vec![0; 50];
        for _ in 0..messages {
            counts[pattern.destination(EndpointId(source), 0, &mut random).index()] += 1;
        }
        counts
    }

    /// Catches a share that is wrong, and a background that is not even: 20 % to two hot endpoints
    /// plus their 2 of 49 parts of the rest.
    #[test]
    fn the_hot_share_is_met() {
        let pattern = Hotspot::new(50, &[EndpointId(30), EndpointId(4)], 200_000).unwrap();
        let mut counts = counts(&pattern, 9, 490_000);
        let (hot, expected) = (counts[30] + counts[4], 490_000.0 * (0.2 + 0.8 * 2.0 / 49.0));
        assert!((hot as f64 - expected).abs() < 4.0 * f64::sqrt(expected * 0.8), "{hot} vs {expected}");
        assert!(evenly_spread(&[counts[30], counts[4]]));
        for removed in [30, 9, 4] {
            counts.remove(removed);
        }
        assert!(evenly_spread(&counts));
    }

    /// Catches a hot endpoint that sends to itself.
    #[test]
    fn a_hot_endpoint_sends_to_the_others() {
        let two = Hotspot::new(50, &[EndpointId(4), EndpointId(30)], 1_000_000).unwrap();
        assert_eq!(counts(&two, 4, 1000)[30], 1000);
        let one = Hotspot::new(50, &[EndpointId(4)], 1_000_000).unwrap();
        assert_eq!(counts(&one, 4, 1000)[4], 0);
        assert_eq!(counts(&one, 5, 1000)[4], 1000);
    }
}
