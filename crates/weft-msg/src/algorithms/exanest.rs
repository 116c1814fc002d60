//! ExaNet-MPI's own choices; for all else it goes by MPICH 3.2.1.
//!
//! # Source
//! TR-488 §6.1.3: broadcast by a binomial tree, allreduce by recursive doubling, at every size; §5.2.1 for
//! MPICH 3.2.1. §6.1.5: the accelerated allreduce is a configuration apart, which a rule of the machine
//! file or `--algorithm accelerator` asks for.
//!
//! # Not modelled
//! - The gaps of ExaNet-MPI (§5.2.1): one-sided operations, collectives that do not block, scan and
//!   persistent requests work. Its context identifiers of 16 bits, and its two libraries over MPICH 3.2.1.
//!   The kernel's part in the initialization of a transfer: §5.1 has it in that of an interface only.
//! - MPICH 3.2.1's choices for long broadcasts and allreduces, which §5.2.1 implies and §6.1.3 contradicts.

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
