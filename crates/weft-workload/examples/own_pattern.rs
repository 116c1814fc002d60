//! A pattern of one's own: every endpoint sends to the one half the machine away.
//!
//! The book's page on adding a pattern walks through it.

use serde::{Deserialize, Serialize};
use weft_topo::{Layout, Star, StarRouting};
use weft_units::EndpointId;
use weft_workload::pattern::{PatternError, PatternInput, Settings, TrafficPattern};

// ANCHOR: pattern
/// Every message goes to the endpoint half the machine away, in the order of endpoints.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Halfway {
    endpoints: u32,
}

impl TrafficPattern for Halfway {
    const GOES_EVERYWHERE: bool = true;

    fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<Halfway, PatternError> {
        let endpoints = input.endpoints();
        PatternError::require("halfway", endpoints, 2)?;
        Ok(Halfway { endpoints })
    }

    fn destination(&self, source: EndpointId, _message: u64, _: &mut impl FnMut() -> u64) -> EndpointId {
        EndpointId((source.0 + self.endpoints / 2) % self.endpoints)
    }
}
// ANCHOR_END: pattern

/// The destinations of all endpoints of a machine of so many.
fn destinations(endpoints: u32) -> Result<Vec<u32>, PatternError> {
    let star = Star::new(endpoints.into()).expect("a star of a few endpoints");
    let machine = Layout::Star(StarRouting::new(star));
    let input = PatternInput { machine: &machine, settings: &Settings::default() };
    let mut random = || 0;
    let pattern = Halfway::on(&input, &mut random)?;
    Ok((0..endpoints).map(|source| pattern.destination(EndpointId(source), 0, &mut random).0).collect())
}

fn main() -> Result<(), PatternError> {
    println!("of 8 endpoints: {:?}", destinations(8)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an endpoint that sends to itself or beyond the machine, and a machine that is too small.
    #[test]
    fn half_the_machine_away() {
        assert_eq!(destinations(8), Ok(vec![4, 5, 6, 7, 0, 1, 2, 3]));
        assert_eq!(destinations(3), Ok(vec![1, 2, 0]));
        assert!(destinations(1).is_err());
    }
}
