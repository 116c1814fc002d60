//! The collectives by their names.

use super::algorithm::AlgorithmError;
use weft_trace::op::Collective;

/// The collectives by the names that they have in machine files and on the command line.
pub const COLLECTIVE_NAMES: [(Collective, &str); 20] = [
    (Collective::Barrier, "barrier"),
    (Collective::Broadcast, "broadcast"),
    (Collective::Reduce, "reduce"),
    (Collective::Allreduce, "allreduce"),
    (Collective::Gather, "gather"),
    (Collective::Gatherv, "gatherv"),
    (Collective::Scatter, "scatter"),
    (Collective::Scatterv, "scatterv"),
    (Collective::Allgather, "allgather"),
    (Collective::Allgatherv, "allgatherv"),
    (Collective::Alltoall, "alltoall"),
    (Collective::Alltoallv, "alltoallv"),
    (Collective::ReduceScatter, "reduce-scatter"),
    (Collective::ReduceScatterBlock, "reduce-scatter-block"),
    (Collective::Scan, "scan"),
    (Collective::Exscan, "exscan"),
    (Collective::NeighborAllgather, "neighbor-allgather"),
    (Collective::NeighborAllgatherv, "neighbor-allgatherv"),
    (Collective::NeighborAlltoall, "neighbor-alltoall"),
    (Collective::NeighborAlltoallv, "neighbor-alltoallv"),
];

/// The name of a collective.
pub fn collective_name(collective: Collective) -> &'static str {
    let entry = COLLECTIVE_NAMES.iter().find(|(known, _)| *known == collective);
    entry.map(|(_, name)| *name).expect("every collective has a name")
}

/// The collective of a name.
pub fn collective_of(name: &str) -> Result<Collective, AlgorithmError> {
    let entry = COLLECTIVE_NAMES.iter().find(|(_, known)| *known == name);
    entry
        .map(|(collective, _)| *collective)
        .ok_or_else(|| AlgorithmError::unknown("collective", name, COLLECTIVE_NAMES.map(|(_, known)| known)))
}
