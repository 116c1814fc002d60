//! The algorithms: a line for each, with its name and its schedule.

use super::Schedule;
use crate::collective::member_part::MemberPlace;
use crate::collective::topology_tree::Neighbours;
use crate::hierarchy::Hierarchy;
use serde::{Deserialize, Serialize};
use weft_trace::op::Collective;

/// Declares [`Algorithm`], a word of machine files each, and the schedule of each.
macro_rules! algorithms {
    ($($(#[$meaning:meta])* $name:ident = $word:literal: $module:ident::$schedule:ident,)*) => {
        weft_keys::words! {
            /// A way to carry out collectives. Each is described in the file of its name under `collective/`.
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
            pub enum Algorithm: "Algorithm", "an algorithm" {
                $($(#[$meaning])* $name = $word,)*
            }
        }

        /// The schedule of an algorithm.
        pub(crate) fn schedule(algorithm: Algorithm) -> &'static dyn Schedule {
            match algorithm {
                $(Algorithm::$name => &super::$module::$schedule,)*
            }
        }
    };
}

algorithms! {
    /// Binomial tree.
    Binomial = "binomial": binomial::Binomial,
    /// Binomial tree, to all children at once.
    BinomialAtOnce = "binomial-at-once": binomial::BinomialAtOnce,
    /// Pairwise exchange with partners at distance 1, 2, 4 …
    RecursiveDoubling = "recursive-doubling": recursive_doubling::RecursiveDoubling,
    /// Pairwise exchange of halves with partners at half the distance each time.
    RecursiveHalving = "recursive-halving": recursive_halving::RecursiveHalving,
    /// Neighbour to neighbour around a ring.
    Ring = "ring": ring::Ring,
    /// Neighbour to neighbour around a ring, in pieces.
    PipelinedRing = "pipelined-ring": pipelined_ring::PipelinedRing,
    /// Reduce-scatter by halving, then the reverse.
    Rabenseifner = "rabenseifner": rabenseifner::Rabenseifner,
    /// Distances 1, 2, 4 … with blocks that pass through others.
    Bruck = "bruck": bruck::Bruck,
    /// Every pair exchanges its block directly, one partner at a time.
    Pairwise = "pairwise": pairwise::Pairwise,
    /// Everybody directly, all partners at once.
    Linear = "linear": linear::Linear,
    /// Tokens at distance 1, 2, 4 …
    Dissemination = "dissemination": dissemination::Dissemination,
    /// Scatter by a binomial tree, then allgather around a ring.
    ScatterRing = "scatter-ring": scatter_allgather::ScatterRing,
    /// Scatter by a binomial tree, then allgather by recursive doubling.
    ScatterDoubling = "scatter-doubling": scatter_allgather::ScatterDoubling,
    /// Everybody directly, a window of partners at a time.
    Scattered = "scattered": scattered::Scattered,
    /// Along a chain of the members.
    Chain = "chain": chain::Chain,
    /// Binary tree, level by level.
    BinaryTree = "binary-tree": binary_tree::BINARY_TREE,
    /// Binary tree whose subtrees are consecutive members.
    InOrderBinaryTree = "in-order-binary-tree": in_order_binary_tree::InOrderBinaryTree,
    /// Halves down the two sides of a binary tree, then an exchange between the sides.
    SplitBinaryTree = "split-binary-tree": split_binary_tree::SplitBinaryTree,
    /// Tree of radix 4.
    Knomial = "knomial": knomial::KNOMIAL,
    /// Pairs of neighbours, to the left and to the right by turns.
    NeighborExchange = "neighbor-exchange": neighbor_exchange::NeighborExchange,
    /// Pairwise exchange of halves with partners at doubling distance.
    Butterfly = "butterfly": butterfly::Butterfly,
    /// Two simpler collectives, one after the other.
    NonOverlapping = "non-overlapping": non_overlapping::NonOverlapping,
    /// Tree that serves the root's own group first, then the others.
    LocalFirst = "local-first": local_first::LOCAL_FIRST,
    /// Tree that serves the other groups first, then the root's own.
    GlobalFirst = "global-first": global_first::GLOBAL_FIRST,
    /// The interfaces, without the processors.
    Accelerator = "accelerator": accelerator::Accelerator,
    /// Switches, which copy the root's message.
    Multicast = "multicast": multicast::Multicast,
}

/// The neighbours of the member in this place by an algorithm that [follows the
/// topology](Algorithm::follows_topology); none by another.
pub(crate) fn neighbours(algorithm: Algorithm, place: MemberPlace, hierarchy: &Hierarchy) -> Neighbours {
    let (root, position) = (hierarchy.position(place.root), hierarchy.position(place.me));
    schedule(algorithm).neighbours().map(|of| of(hierarchy, root, position)).unwrap_or_default()
}

impl Algorithm {
    /// Whether interfaces or switches carry it out, which have limits that software has not.
    pub fn is_by_hardware(self) -> bool {
        schedule(self).is_by_hardware()
    }

    /// Whether it asks for the places of the members in the machine.
    pub fn follows_topology(self) -> bool {
        schedule(self).neighbours().is_some()
    }

    /// Whether it can carry out `collective`.
    pub fn performs(self, collective: Collective) -> bool {
        schedule(self).performs().contains(&collective)
    }

    /// All algorithms that can carry out `collective`; none where messaging has none yet.
    pub fn performing(collective: Collective) -> impl Iterator<Item = Algorithm> + Clone {
        Algorithm::ALL.into_iter().filter(move |algorithm| algorithm.performs(collective))
    }
}
