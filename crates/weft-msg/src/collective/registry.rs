//! The schedule of each algorithm.

use super::{
    Schedule, accelerator, binary_tree, binomial, bruck, butterfly, chain, dissemination, global_first,
    in_order_binary_tree, knomial, linear, local_first, multicast, neighbor_exchange, non_overlapping,
    pairwise, pipelined_ring, rabenseifner, recursive_doubling, recursive_halving, ring, scatter_allgather,
    scattered, split_binary_tree, topology_tree,
};
use crate::algorithms::algorithm::Algorithm;
use crate::collective::member_part::MemberPlace;
use crate::collective::topology_tree::Neighbours;
use crate::hierarchy::Hierarchy;
use weft_trace::op::Collective;

/// The schedule of an algorithm.
pub(crate) fn schedule(algorithm: Algorithm) -> &'static dyn Schedule {
    match algorithm {
        Algorithm::Binomial => &binomial::Binomial,
        Algorithm::BinomialAtOnce => &binomial::BinomialAtOnce,
        Algorithm::RecursiveDoubling => &recursive_doubling::RecursiveDoubling,
        Algorithm::RecursiveHalving => &recursive_halving::RecursiveHalving,
        Algorithm::Ring => &ring::Ring,
        Algorithm::PipelinedRing => &pipelined_ring::PipelinedRing,
        Algorithm::Rabenseifner => &rabenseifner::Rabenseifner,
        Algorithm::Bruck => &bruck::Bruck,
        Algorithm::Pairwise => &pairwise::Pairwise,
        Algorithm::Linear => &linear::Linear,
        Algorithm::Dissemination => &dissemination::Dissemination,
        Algorithm::ScatterRing => &scatter_allgather::ScatterRing,
        Algorithm::ScatterDoubling => &scatter_allgather::ScatterDoubling,
        Algorithm::Scattered => &scattered::Scattered,
        Algorithm::Chain => &chain::Chain,
        Algorithm::BinaryTree => &binary_tree::BINARY_TREE,
        Algorithm::InOrderBinaryTree => &in_order_binary_tree::InOrderBinaryTree,
        Algorithm::SplitBinaryTree => &split_binary_tree::SplitBinaryTree,
        Algorithm::Knomial => &knomial::KNOMIAL,
        Algorithm::NeighborExchange => &neighbor_exchange::NeighborExchange,
        Algorithm::Butterfly => &butterfly::Butterfly,
        Algorithm::NonOverlapping => &non_overlapping::NonOverlapping,
        Algorithm::LocalFirst | Algorithm::GlobalFirst => &topology_tree::TopologyTree,
        Algorithm::Accelerator => &accelerator::Accelerator,
        Algorithm::Multicast => &multicast::Multicast,
    }
}

/// The neighbours of the member in this place by an algorithm that [follows the
/// topology](Algorithm::follows_topology).
pub(crate) fn neighbours(algorithm: Algorithm, place: MemberPlace, hierarchy: &Hierarchy) -> Neighbours {
    let (root, position) = (hierarchy.position(place.root), hierarchy.position(place.me));
    match algorithm {
        Algorithm::LocalFirst => local_first::neighbours(hierarchy, root, position),
        _ => global_first::neighbours(hierarchy, root, position),
    }
}

impl Algorithm {
    /// Whether it can carry out `collective`.
    pub fn performs(self, collective: Collective) -> bool {
        schedule(self).performs().contains(&collective)
    }

    /// All algorithms that can carry out `collective`; none where messaging has none yet.
    pub fn performing(collective: Collective) -> impl Iterator<Item = Algorithm> + Clone {
        Algorithm::ALL.into_iter().filter(move |algorithm| algorithm.performs(collective))
    }
}
