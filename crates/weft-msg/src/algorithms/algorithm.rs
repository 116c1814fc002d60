//! The algorithms by their names.

use super::names::collective_name;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_trace::op::Collective;

/// A way to carry out collectives. Each is described in the file of its name under `collective/`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Algorithm {
    /// Binomial tree.
    Binomial,
    /// Binomial tree, to all children at once.
    BinomialAtOnce,
    /// Pairwise exchange with partners at distance 1, 2, 4 …
    RecursiveDoubling,
    /// Pairwise exchange of halves with partners at half the distance each time.
    RecursiveHalving,
    /// Neighbour to neighbour around a ring.
    Ring,
    /// Neighbour to neighbour around a ring, in pieces.
    PipelinedRing,
    /// Reduce-scatter by halving, then the reverse.
    Rabenseifner,
    /// Distances 1, 2, 4 … with blocks that pass through others.
    Bruck,
    /// Every pair exchanges its block directly, one partner at a time.
    Pairwise,
    /// Everybody directly, all partners at once.
    Linear,
    /// Tokens at distance 1, 2, 4 …
    Dissemination,
    /// Scatter by a binomial tree, then allgather around a ring.
    ScatterRing,
    /// Scatter by a binomial tree, then allgather by recursive doubling.
    ScatterDoubling,
    /// Everybody directly, a window of partners at a time.
    Scattered,
    /// Along a chain of the members.
    Chain,
    /// Binary tree, level by level.
    BinaryTree,
    /// Binary tree whose subtrees are consecutive members.
    InOrderBinaryTree,
    /// Halves down the two sides of a binary tree, then an exchange between the sides.
    SplitBinaryTree,
    /// Tree of radix 4.
    Knomial,
    /// Pairs of neighbours, to the left and to the right by turns.
    NeighborExchange,
    /// Pairwise exchange of halves with partners at doubling distance.
    Butterfly,
    /// Two simpler collectives, one after the other.
    NonOverlapping,
    /// The interfaces, without the processors.
    Accelerator,
    /// Switches, which copy the root's message.
    Multicast,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 24] = [
        Algorithm::Binomial,
        Algorithm::BinomialAtOnce,
        Algorithm::RecursiveDoubling,
        Algorithm::RecursiveHalving,
        Algorithm::Ring,
        Algorithm::PipelinedRing,
        Algorithm::Rabenseifner,
        Algorithm::Bruck,
        Algorithm::Pairwise,
        Algorithm::Linear,
        Algorithm::Dissemination,
        Algorithm::ScatterRing,
        Algorithm::ScatterDoubling,
        Algorithm::Scattered,
        Algorithm::Chain,
        Algorithm::BinaryTree,
        Algorithm::InOrderBinaryTree,
        Algorithm::SplitBinaryTree,
        Algorithm::Knomial,
        Algorithm::NeighborExchange,
        Algorithm::Butterfly,
        Algorithm::NonOverlapping,
        Algorithm::Accelerator,
        Algorithm::Multicast,
    ];

    /// The name of the algorithm in machine files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Binomial => "binomial",
            Algorithm::BinomialAtOnce => "binomial-at-once",
            Algorithm::RecursiveDoubling => "recursive-doubling",
            Algorithm::RecursiveHalving => "recursive-halving",
            Algorithm::Ring => "ring",
            Algorithm::PipelinedRing => "pipelined-ring",
            Algorithm::Rabenseifner => "rabenseifner",
            Algorithm::Bruck => "bruck",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Linear => "linear",
            Algorithm::Dissemination => "dissemination",
            Algorithm::ScatterRing => "scatter-ring",
            Algorithm::ScatterDoubling => "scatter-doubling",
            Algorithm::Scattered => "scattered",
            Algorithm::Chain => "chain",
            Algorithm::BinaryTree => "binary-tree",
            Algorithm::InOrderBinaryTree => "in-order-binary-tree",
            Algorithm::SplitBinaryTree => "split-binary-tree",
            Algorithm::Knomial => "knomial",
            Algorithm::NeighborExchange => "neighbor-exchange",
            Algorithm::Butterfly => "butterfly",
            Algorithm::NonOverlapping => "non-overlapping",
            Algorithm::Accelerator => "accelerator",
            Algorithm::Multicast => "multicast",
        }
    }
}

impl Algorithm {
    /// Whether interfaces or switches carry it out, which have limits that software has not.
    pub const fn is_by_hardware(self) -> bool {
        matches!(self, Algorithm::Accelerator | Algorithm::Multicast)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;
    fn from_str(name: &str) -> Result<Algorithm, AlgorithmError> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| AlgorithmError::unknown("algorithm", name, Algorithm::ALL.map(Algorithm::name)))
    }
}

/// An entry of a table of algorithms that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// A name that is not known.
    #[error("unknown {what} `{name}`: did you mean `{near}`? ({known})")]
    Unknown {
        /// The kind of the name: "algorithm", "collective" or "table of algorithms".
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest known name.
        near: &'static str,
        /// All known names.
        known: String,
    },
    /// An algorithm that does not carry out the collective.
    #[error("{algorithm} cannot carry out {}: expected one of {expected}", collective_name(*.collective))]
    CannotPerform {
        /// The algorithm.
        algorithm: Algorithm,
        /// The collective.
        collective: Collective,
        /// The names of those that can.
        expected: String,
    },
}

impl AlgorithmError {
    pub(super) fn unknown(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'static str, IntoIter: Clone>,
    ) -> AlgorithmError {
        let known = known.into_iter();
        let near = known.clone().min_by_key(|candidate| strsim::damerau_levenshtein(candidate, name));
        AlgorithmError::Unknown {
            what,
            name: name.to_owned(),
            near: near.expect("there is at least one known name"),
            known: known.collect::<Vec<_>>().join(", "),
        }
    }
}
