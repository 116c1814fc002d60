//! Ranks on places of a machine.

use crate::experiment::ExperimentError;
use crate::experiment::replay::Mapping;
use crate::machine::Machine;
use weft_topo::Layout;
use weft_workload::mapping::{Hosts, Place};

/// The hosts of a machine.
pub(crate) fn hosts(machine: &Machine) -> Hosts {
    Hosts {
        hosts: u32::try_from(machine.hosts()).unwrap_or(u32::MAX),
        cores: machine.host.cores,
        endpoints_per_host: machine.host.endpoints_per_host,
    }
}

/// The places of `ranks` ranks, `per_host` on each host (`None`: one per core) where the mapping is no
/// file.
pub(crate) fn places(
    map: &Mapping,
    ranks: u64,
    per_host: Option<u32>,
    seed: u64,
    machine: &Machine,
    layout: &Layout,
) -> Result<Vec<Place>, ExperimentError> {
    let hosts = hosts(machine);
    match map {
        Mapping::Linear => hosts.linear(ranks, per_host),
        Mapping::Random => hosts.random(ranks, per_host, seed),
        Mapping::File(text) => {
            hosts.from_file(text, ranks, |name| layout.endpoint(name).map_err(|error| error.to_string()))
        }
    }
    .map_err(ExperimentError::input)
}
