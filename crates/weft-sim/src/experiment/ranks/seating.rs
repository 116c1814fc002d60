//! Ranks on places of a machine.

use crate::experiment::ExperimentError;
use crate::experiment::replay::Mapping;
use weft_machine::Machine;
use weft_topo::{Layout, Topology as _};
use weft_units::EndpointId;
use weft_workload::jobs::{HostGroups, Job};
use weft_workload::mapping::{CorePlace, Hosts};

/// The hosts of a machine.
pub(crate) fn hosts(machine: &Machine) -> Hosts {
    Hosts {
        hosts: u32::try_from(machine.hosts()).unwrap_or(u32::MAX),
        cores: machine.host.cores,
        endpoints_per_host: machine.host.endpoints_per_host,
    }
}

/// Jobs that are to be put on a machine.
pub struct Placement<'a> {
    /// The mapping.
    pub map: &'a Mapping,
    /// The jobs, in their order.
    pub jobs: &'a [Job<'a>],
    /// Ranks on each host, where the mapping is not a file; `None`: one per core.
    pub ranks_per_host: Option<u32>,
    /// Of the random mapping.
    pub seed: u64,
}

impl Placement<'_> {
    /// The places of the ranks, one job after another.
    ///
    /// # Errors
    /// Ranks that do not fit on the machine, and a mapping file that does not fit the ranks.
    pub fn places(&self, machine: &Machine, layout: &Layout) -> Result<Vec<CorePlace>, ExperimentError> {
        let Placement { map, jobs, ranks_per_host: per_host, seed } = *self;
        let hosts = hosts(machine);
        let room = || hosts.room_for(jobs, per_host);
        let places = match map {
            Mapping::Linear => room().and_then(|ranks| hosts.linear(ranks, per_host)),
            Mapping::Random => room().and_then(|ranks| hosts.random(ranks, per_host, seed)),
            Mapping::Switch => {
                let switch_of = |host| layout.attachment(EndpointId(host * hosts.endpoints_per_host)).0;
                hosts.dealt(jobs, per_host, &HostGroups::switches(hosts, switch_of))
            }
            Mapping::Node => hosts.dealt(jobs, per_host, &HostGroups::nodes(hosts)),
            Mapping::File(text) => {
                let ranks = jobs.iter().map(|job| job.ranks).sum();
                hosts.from_file(text, ranks, |name| layout.endpoint(name).map_err(|error| error.to_string()))
            }
        }
        .map_err(ExperimentError::input)?;
        let mut left = &places[..];
        for job in jobs {
            let (own, others) = left.split_at((job.ranks as usize).min(left.len()));
            let joined = check_joined(own, layout);
            if jobs.len() > 1 {
                joined.map_err(|error| ExperimentError::input(format!("{}: {error}", job.name)))?;
            } else {
                joined?;
            }
            left = others;
        }
        Ok(places)
    }
}

/// Refuses ranks of one job in parts of the machine that no link joins, such as the two sub-systems of the
/// ExaNeSt rack.
pub(crate) fn check_joined(places: &[CorePlace], layout: &Layout) -> Result<(), ExperimentError> {
    let Some(first) = places.first() else { return Ok(()) };
    let is_apart = |place: &CorePlace| !layout.reachable(first.endpoint, place.endpoint);
    let Some(other) = places.iter().position(is_apart) else { return Ok(()) };
    let part = (0..layout.endpoints()).map(EndpointId).filter(|at| layout.reachable(first.endpoint, *at));
    Err(ExperimentError::input(format!(
        "rank 0 on {} and rank {other} on {} lie in parts of the machine that no link joins; keep the job \
         within one part ({} endpoints are joined to rank 0's): use fewer ranks, or --map FILE",
        layout.endpoint_name(first.endpoint),
        layout.endpoint_name(places[other].endpoint),
        part.count(),
    )))
}
