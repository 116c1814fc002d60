//! The fixed choices of Open MPI 4.1: its component `tuned`, and `basic` for what that leaves out.
//!
//! The choices are ladders: the first rung that holds fewer than so many members, and in it the first step
//! of fewer than so many bytes. `tuned` hands its algorithms a segment size of 0, so that none cuts its
//! messages: its `pipeline` is its `chain`, and its `segmented_ring` falls back to its `ring`.
//!
//! | Open MPI | here |
//! |---|---|
//! | allreduce `nonoverlapping`, reduce-scatter `non-overlapping` | [`A::NonOverlapping`], see below |
//! | reduce-scatter-block `basic_linear`, allgatherv `default` | [`A::NonOverlapping`] |
//! | allreduce `ring` of fewer elements than members | [`A::RecursiveDoubling`] |
//! | allreduce, reduce `rabenseifner` of fewer elements than the power of two of members | [`A::Linear`] |
//! | broadcast `scatter_allgather` of fewer elements than members | [`A::Linear`] |
//! | allgather `recursive_doubling` beyond a power of two | [`A::Bruck`] |
//! | broadcast `knomial` | [`A::Knomial`], radix 4 |
//! | `two_proc` of alltoall, allgather, allgatherv | [`A::Pairwise`], [`A::Ring`]: one exchange |
//! | alltoall `linear_sync`, scatter `linear_nb` | [`A::Linear`]: no limit on requests by default |
//! | barrier `bruck`, `tree` | [`A::Dissemination`], [`A::Binomial`] |
//!
//! The two collectives of which [`A::NonOverlapping`] consists go by this table too.
//!
//! # Source
//! Open MPI 4.1.6, `ompi/mca/coll/tuned/coll_tuned_decision_fixed.c`: the functions
//! `ompi_coll_tuned_*_intra_dec_fixed`; fall-backs in `ompi/mca/coll/base/coll_base_{allreduce,bcast,
//! reduce,allgather,allgatherv}.c`; radix in `coll_tuned_bcast_decision.c`; gatherv, scatterv and the scans
//! in `ompi/mca/coll/basic`.
//!
//! # Not modelled
//! - Operations that do not commute; buffers given in place.
//! - Other components with a higher priority: `han` and `sm` where ranks share a computer, `hcoll`, `ucc`,
//!   `libnbc` for non-blocking collectives, which here go by the same ladders.
//! - `recursive_doubling` of reduce-scatter-block, which stands for 2 to 7 members and up to 31 bytes a
//!   member: [`A::RecursiveHalving`] takes its place.
//! - `linear_sync` of gather announces each block: here a gather by [`A::Linear`] is not synchronized. Its
//!   `basic_linear` receives one block after the other: here all at once.
//! - The shape of its binomial trees, where a parent's number lacks the highest bit of its child's, here
//!   the lowest, and the sends to all children are under way together, here one after the other.
//! - Pairwise exchange with members that differ in bits: `tuned` counts forwards and backwards for every
//!   number of members, here for all but powers of two.

mod ladders;

use super::algorithm::Algorithm as A;
use super::rule::{Elements, Rule};
use ladders::{LADDERS, MORE};
use weft_trace::op::Collective as C;
use weft_units::Bytes;

/// The rules: every ladder ends with a step without bounds, so that one always holds.
pub(super) fn rules() -> Vec<Rule> {
    let always = Rule::always;
    let mut rules = Vec::new();
    for (collective, ladder) in LADDERS {
        for (members, steps) in *ladder {
            for (bytes, algorithm) in *steps {
                let rule = always(*collective, *algorithm);
                let rule = Rule { max_ranks: below(*members), max_bytes: Bytes::new(bytes - 1), ..rule };
                rules.extend(with_fall_back(rule));
            }
        }
    }
    rules.extend([
        always(C::Gatherv, A::Linear),
        always(C::Scatterv, A::Linear),
        always(C::Scan, A::Linear),
        always(C::Exscan, A::Linear),
    ]);
    rules
}

/// The largest number below; the largest of all where there is no bound.
fn below(members: u32) -> u32 {
    if members == MORE { MORE } else { members - 1 }
}

/// A rule, after it what its algorithm falls back to.
fn with_fall_back(rule: Rule) -> Vec<Rule> {
    let otherwise = |algorithm| Rule { algorithm, ..rule };
    match (rule.collective, rule.algorithm) {
        (C::Allreduce, A::Ring) => vec![rule.with(Elements::Members), otherwise(A::RecursiveDoubling)],
        (C::Allreduce | C::Reduce, A::Rabenseifner) => {
            vec![rule.with(Elements::PowerOfTwo), otherwise(A::Linear)]
        }
        (C::Broadcast, A::ScatterDoubling) => vec![rule.with(Elements::Members), otherwise(A::Linear)],
        (C::Allgather, A::RecursiveDoubling) => {
            vec![rule.per_member().on_powers_of_two(), otherwise(A::Bruck).per_member()]
        }
        (C::Allgather | C::Allgatherv | C::ReduceScatterBlock, _) => vec![rule.per_member()],
        _ => vec![rule],
    }
}
