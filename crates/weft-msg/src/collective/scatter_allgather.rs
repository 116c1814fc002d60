//! Broadcast of long vectors (van de Geijn): scatter by a binomial tree, then allgather around a ring
//! or by recursive doubling.
//!
//! Members are counted from the root; the i-th of them gets the i-th block of the vector.
//!
//! # Source
//! MPICH `bcast_scatter_ring_allgather`, `bcast_scatter_recursive_doubling_allgather`.

use super::{Schedule, Steps, binomial, part::Part, recursive_doubling, ring};
use weft_trace::op::Collective;

/// With an allgather around a ring.
pub(crate) struct ScatterRing;

/// With an allgather by recursive doubling.
pub(crate) struct ScatterDoubling;

impl Schedule for ScatterRing {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast]
    }

    fn rounds(&self, part: &Part) -> u32 {
        binomial::tree_rounds(part) + ring::half(part)
    }

    fn round(&self, part: &Part, round: u32, steps: &mut Steps) {
        let vector = part.split(part.members);
        match round.checked_sub(binomial::tree_rounds(part)) {
            None => binomial::scatter_from_root(part, vector, round, steps),
            Some(round) => ring::allgather(part, vector, part.relative(), round, steps),
        }
    }
}

impl Schedule for ScatterDoubling {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast]
    }

    fn rounds(&self, part: &Part) -> u32 {
        binomial::tree_rounds(part) + recursive_doubling::allgather_rounds(part)
    }

    fn round(&self, part: &Part, round: u32, steps: &mut Steps) {
        let vector = part.split(part.members);
        match round.checked_sub(binomial::tree_rounds(part)) {
            None => binomial::scatter_from_root(part, vector, round, steps),
            Some(round) => {
                let name = |position| part.nth_from_root(position);
                recursive_doubling::allgather(part, vector, part.relative(), name, round, steps);
            }
        }
    }
}
