//! The algorithms by their names.

use super::names::collective_name;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_trace::op::Collective;

weft_keys::words! {
    /// A way to carry out collectives. Each is described in the file of its name under `collective/`.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    pub enum Algorithm: "Algorithm", "an algorithm" {
        /// Binomial tree.
        Binomial = "binomial",
        /// Binomial tree, to all children at once.
        BinomialAtOnce = "binomial-at-once",
        /// Pairwise exchange with partners at distance 1, 2, 4 …
        RecursiveDoubling = "recursive-doubling",
        /// Pairwise exchange of halves with partners at half the distance each time.
        RecursiveHalving = "recursive-halving",
        /// Neighbour to neighbour around a ring.
        Ring = "ring",
        /// Neighbour to neighbour around a ring, in pieces.
        PipelinedRing = "pipelined-ring",
        /// Reduce-scatter by halving, then the reverse.
        Rabenseifner = "rabenseifner",
        /// Distances 1, 2, 4 … with blocks that pass through others.
        Bruck = "bruck",
        /// Every pair exchanges its block directly, one partner at a time.
        Pairwise = "pairwise",
        /// Everybody directly, all partners at once.
        Linear = "linear",
        /// Tokens at distance 1, 2, 4 …
        Dissemination = "dissemination",
        /// Scatter by a binomial tree, then allgather around a ring.
        ScatterRing = "scatter-ring",
        /// Scatter by a binomial tree, then allgather by recursive doubling.
        ScatterDoubling = "scatter-doubling",
        /// Everybody directly, a window of partners at a time.
        Scattered = "scattered",
        /// Along a chain of the members.
        Chain = "chain",
        /// Binary tree, level by level.
        BinaryTree = "binary-tree",
        /// Binary tree whose subtrees are consecutive members.
        InOrderBinaryTree = "in-order-binary-tree",
        /// Halves down the two sides of a binary tree, then an exchange between the sides.
        SplitBinaryTree = "split-binary-tree",
        /// Tree of radix 4.
        Knomial = "knomial",
        /// Pairs of neighbours, to the left and to the right by turns.
        NeighborExchange = "neighbor-exchange",
        /// Pairwise exchange of halves with partners at doubling distance.
        Butterfly = "butterfly",
        /// Two simpler collectives, one after the other.
        NonOverlapping = "non-overlapping",
        /// Tree that serves the root's own group first, then the others.
        LocalFirst = "local-first",
        /// Tree that serves the other groups first, then the root's own.
        GlobalFirst = "global-first",
        /// The interfaces, without the processors.
        Accelerator = "accelerator",
        /// Switches, which copy the root's message.
        Multicast = "multicast",
    }
}

impl Algorithm {
    /// Whether interfaces or switches carry it out, which have limits that software has not.
    pub const fn is_by_hardware(self) -> bool {
        matches!(self, Algorithm::Accelerator | Algorithm::Multicast)
    }

    /// Whether it asks for the places of the members in the machine.
    pub const fn follows_topology(self) -> bool {
        matches!(self, Algorithm::LocalFirst | Algorithm::GlobalFirst)
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
