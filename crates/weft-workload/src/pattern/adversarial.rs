//! Adversarial traffic: each group to the next, so that minimal paths share the few links between them.
//!
//! ```text
//!   group 0 ══► group 1 ══► group 2 ══► … ══► group 0
//!   all of its endpoints, each message to one of the next group
//! ```

use super::{PatternError, PatternInput, TrafficPattern};
use crate::below;
use serde::{Deserialize, Serialize};
use weft_topo::{Topology, Undefined};
use weft_units::EndpointId;

/// Every message goes to an endpoint of the next group, all of them equally likely. What a group is says the
/// topology: [`Topology::group_of`].
///
/// # Source
/// J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable Dragonfly topology", ISCA
/// 2008, §4.2: the worst case, "each node in group Gi sends traffic to randomly selected node in group Gi+1".
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Adversarial {
    /// The first endpoint of every group, and the number of all endpoints.
    first: Vec<u32>,
}

impl Adversarial {
    /// On the groups of a machine.
    ///
    /// # Errors
    /// Where all endpoints are in one group.
    pub fn new(machine: &impl Topology) -> Result<Adversarial, PatternError> {
        let endpoints = machine.endpoints();
        let group = |endpoint| machine.group_of(EndpointId(endpoint));
        let begins = |&endpoint: &u32| endpoint == 0 || group(endpoint) != group(endpoint - 1);
        let mut first: Vec<u32> = (0..endpoints).filter(begins).collect();
        if first.len() < 2 {
            return Err(PatternError::OneGroup { endpoints });
        }
        first.push(endpoints);
        Ok(Adversarial { first })
    }

    /// The endpoints that one sends to: from the first to below the second.
    pub fn next_group(&self, source: EndpointId) -> (EndpointId, EndpointId) {
        let groups = self.first.len() - 1;
        let next = self.first.partition_point(|&first| first <= source.0) % groups;
        (EndpointId(self.first[next]), EndpointId(self.first[next + 1]))
    }
}

impl TrafficPattern for Adversarial {
    const DRAWS: bool = true;

    fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<Adversarial, PatternError> {
        let groups = Adversarial::new(input.machine)?;
        let mut pairs =
            (0..input.endpoints()).map(|from| (EndpointId(from), groups.next_group(EndpointId(from)).0));
        match pairs.find(|&(from, to)| !input.machine.reachable(from, to)) {
            Some((from, to)) => Err(Undefined::Unreachable { from, to }.into()),
            None => Ok(groups),
        }
    }

    #[inline]
    fn destination(&self, source: EndpointId, _: u64, random: &mut impl FnMut() -> u64) -> EndpointId {
        let (first, end) = self.next_group(source);
        EndpointId(first.0 + below(end.0 - first.0, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::rng;
    use weft_topo::{Dragonfly, DragonflySize, GlobalLinks, Star};

    /// Catches messages to another group than the next, and endpoints of it that nothing is sent to.
    #[test]
    fn each_group_sends_to_all_of_the_next() {
        let size = DragonflySize { p: 2, a: 3, h: 1, g: 4 };
        let machine = Dragonfly::new(size, GlobalLinks::Palmtree).unwrap();
        let pattern = Adversarial::new(&machine).unwrap();
        let mut random = rng(3);
        for source in 0..24 {
            let mut reached: Vec<u32> =
                (0..200).map(|_| pattern.destination(EndpointId(source), 0, &mut random).0).collect();
            reached.sort_unstable();
            reached.dedup();
            let next = (source / 6 + 1) % 4 * 6;
            assert_eq!(reached, (next..next + 6).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_group_has_no_next() {
        let error = Adversarial::new(&Star::new(8).unwrap()).unwrap_err().to_string();
        assert_eq!(error, "pattern adversarial needs two groups or more; all 8 endpoints are in one");
    }
}
