//! ExaNet-MPI's own choices; for all else it goes by MPICH 3.2.1.
//!
//! # Source
//! TR-488 §6.1.3: broadcast by a binomial tree, allreduce by recursive doubling, at every size; §5.2.1 for
//! MPICH 3.2.1. §6.1.5: the accelerated allreduce is a configuration apart, which a rule of the machine
//! file or `--algorithm accelerator` asks for.

use super::algorithm::Algorithm;
use super::rule::Rule;
use weft_trace::op::Collective;

/// The rules before MPICH's.
pub(super) fn rules() -> Vec<Rule> {
    vec![
        Rule::always(Collective::Broadcast, Algorithm::Binomial),
        Rule::always(Collective::Allreduce, Algorithm::RecursiveDoubling),
    ]
}
