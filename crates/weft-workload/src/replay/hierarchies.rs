//! The places of communicators' members in the machine: one table for each communicator, which its ranks
//! share.

use super::Seating;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use weft_msg::{Group, Hierarchy, TopologyPlace};
use weft_topo::Topology;
use weft_trace::op::CommId;
use weft_units::{EndpointId, RankId};

/// A communicator by its program, its number and its first member, since programs that are generated may give
/// one number to several. A rank belongs to one of them.
type CommunicatorName = (u32, CommId, RankId);

/// The places of all endpoints, and the tables that ranks have asked for.
#[derive(Debug)]
pub(super) struct Hierarchies {
    places: Vec<TopologyPlace>,
    /// Made by the first rank that asks; the others get the same.
    made: Mutex<BTreeMap<CommunicatorName, Arc<Hierarchy>>>,
}

impl Hierarchies {
    /// No tables yet.
    pub fn new(topology: &impl Topology) -> Hierarchies {
        let place = |endpoint: EndpointId| {
            let [group, switch] = topology.parts_of(endpoint);
            TopologyPlace { group, switch, endpoint: endpoint.0 }
        };
        let places = (0..topology.endpoints()).map(EndpointId).map(place).collect();
        Hierarchies { places, made: Mutex::default() }
    }

    /// The members of a program's communicator.
    pub fn of(&self, program: u32, group: Group<'_>, seating: &Seating) -> Arc<Hierarchy> {
        let name = (program, group.comm(), group.rank(0));
        let make = || {
            let endpoint = |rank| seating.endpoint(seating.number(program, rank));
            let place = |rank| self.places[endpoint(rank).index()];
            Arc::new(Hierarchy::new(group.ranks().map(place)))
        };
        // A panic leaves no table half made.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry(name).or_insert_with(make).clone()
    }
}
