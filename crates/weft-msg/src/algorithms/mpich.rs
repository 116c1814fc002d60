//! The fixed choices of MPICH: versions 3.2.1 and 5.0.
//!
//! Both choose by the number of members, the size, and whether the vector has an element for each of the
//! largest power of two of members. All reductions count as built-in and commutative.
//!
//! # Source
//! MPICH 3.2.1, `src/mpi/coll/`: `bcast.c` (`MPIR_Bcast_intra`), `reduce.c` (`MPIR_Reduce_intra`),
//! `allreduce.c` (`MPIR_Allreduce_intra`), `allgather.c`, `allgatherv.c`, `alltoall.c`, `alltoallv.c`,
//! `red_scat.c`, `red_scat_block.c`, `gather.c`, `gatherv.c`, `scatter.c`, `scatterv.c`, `scan.c`,
//! `exscan.c`, `barrier.c` (`MPIR_Barrier_intra`), with the defaults of their `MPIR_CVAR_*`.
//! MPICH 5.0, `maint/tuning/coll/mpir/generic.json`, which is compiled in where no tuning file is given.
//!
//! # Not modelled
//! - Both are aware of the ranks that share a computer where a communicator has several on one
//!   (`MPIR_CVAR_ENABLE_SMP_COLLECTIVES`; `comm_hierarchy=parent` and the compositions of
//!   `maint/tuning/coll/ch4/generic.json`): one rank per computer then speaks for all. Messaging does
//!   not know who shares a computer, and takes the choice for communicators without hierarchy, also where
//!   the second names the hierarchical one (`MPIR_Allreduce_intra_smp` for 0 bytes, `MPIR_Scan_intra_smp`).
//! - Buffers given in place, operations that are user-defined or do not commute, intercommunicators.
//! - In 3.2.1 a gatherv of 32 or more sends synchronously (`MPIR_CVAR_GATHERV_INTER_SSEND_MIN_PROCS`).
//! - Shared-memory collectives, and those that a provider of libfabric or UCX takes over.

use super::algorithm::Algorithm as A;
use super::rule::{Elements, Rule};
use weft_trace::op::Collective as C;

/// Version 3.2.1. Every collective ends with a rule without conditions, so that one always holds.
pub(super) fn rules_3_2_1() -> Vec<Rule> {
    let always = Rule::always;
    let enough = Elements::PowerOfTwo;
    vec![
        always(C::Barrier, A::Dissemination),
        // MPIR_CVAR_BCAST_SHORT_MSG_SIZE 12288, _MIN_PROCS 8, _LONG_MSG_SIZE 524288.
        always(C::Broadcast, A::Binomial).up_to(12_287),
        always(C::Broadcast, A::Binomial).on_at_most(7),
        always(C::Broadcast, A::ScatterDoubling).up_to(524_287).on_powers_of_two(),
        always(C::Broadcast, A::ScatterRing),
        // MPIR_CVAR_REDUCE_SHORT_MSG_SIZE 2048.
        always(C::Reduce, A::Binomial).up_to(2_048),
        always(C::Reduce, A::Rabenseifner).with(enough),
        always(C::Reduce, A::Binomial),
        // MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE 2048.
        always(C::Allreduce, A::RecursiveDoubling).up_to(2_048),
        always(C::Allreduce, A::Rabenseifner).with(enough),
        always(C::Allreduce, A::RecursiveDoubling),
        always(C::Gather, A::Binomial),
        always(C::Gatherv, A::Linear),
        always(C::Scatter, A::Binomial),
        always(C::Scatterv, A::Linear),
        // MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE 524288, _SHORT_MSG_SIZE 81920.
        always(C::Allgather, A::RecursiveDoubling).up_to(524_287).on_powers_of_two(),
        always(C::Allgather, A::Bruck).up_to(81_919),
        always(C::Allgather, A::Ring),
        always(C::Allgatherv, A::RecursiveDoubling).up_to(524_287).on_powers_of_two(),
        always(C::Allgatherv, A::Bruck).up_to(81_919),
        always(C::Allgatherv, A::Ring).not_blocking(),
        // MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE 32768, of shorter blocks it is a ring.
        always(C::Allgatherv, A::PipelinedRing),
        // MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE 256, _MEDIUM_MSG_SIZE 32768.
        always(C::Alltoall, A::Bruck).up_to(256).on_at_least(8),
        always(C::Alltoall, A::Scattered).up_to(32_768),
        always(C::Alltoall, A::Pairwise),
        always(C::Alltoallv, A::Scattered),
        // MPIR_CVAR_REDSCAT_COMMUTATIVE_LONG_MSG_SIZE 524288.
        always(C::ReduceScatter, A::RecursiveHalving).up_to(524_287),
        always(C::ReduceScatter, A::Pairwise),
        always(C::ReduceScatterBlock, A::RecursiveHalving).up_to(524_287),
        always(C::ReduceScatterBlock, A::Pairwise),
        always(C::Scan, A::RecursiveDoubling),
        always(C::Exscan, A::RecursiveDoubling),
    ]
}

/// Version 5.0: the choices of 3.2.1 but for thresholds that now include the size that they name, an
/// allreduce that goes by recursive doubling up to 8 bytes only, and a short alltoall that goes by Bruck's
/// among more than 8. Calls that do not block have thresholds of their own for both, and broadcasts of theirs
/// go to all children at once.
pub(super) fn rules_5() -> Vec<Rule> {
    let always = Rule::always;
    let enough = Elements::PowerOfTwo;
    let own = vec![
        // k_dissemination with k = 2.
        always(C::Barrier, A::Dissemination),
        always(C::Broadcast, A::BinomialAtOnce).on_at_most(7).not_blocking(),
        always(C::Broadcast, A::BinomialAtOnce).up_to(12_288).not_blocking(),
        always(C::Broadcast, A::Binomial).on_at_most(7),
        always(C::Broadcast, A::Binomial).up_to(12_288),
        always(C::Broadcast, A::ScatterDoubling).up_to(524_288).on_powers_of_two(),
        always(C::Broadcast, A::ScatterRing),
        always(C::Allreduce, A::RecursiveDoubling).up_to(2_048).not_blocking(),
        always(C::Allreduce, A::RecursiveDoubling).up_to(8),
        always(C::Allreduce, A::Rabenseifner).with(enough),
        always(C::Allreduce, A::RecursiveDoubling),
        always(C::Allgather, A::RecursiveDoubling).up_to(524_287).on_powers_of_two(),
        always(C::Allgather, A::Ring).on_powers_of_two(),
        always(C::Allgatherv, A::RecursiveDoubling).up_to(524_287).on_powers_of_two(),
        always(C::Allgatherv, A::Ring).on_powers_of_two().not_blocking(),
        always(C::Allgatherv, A::PipelinedRing).on_powers_of_two(),
        always(C::Alltoall, A::Bruck).up_to(2_048).on_at_least(9).not_blocking(),
        // As 5.0.2 does (messages of 8 B: 7 per rank among 8, 4 among 9); generic.json says 8 still.
        always(C::Alltoall, A::Bruck).up_to(256).on_at_least(9),
        always(C::Alltoall, A::Scattered).up_to(32_768),
    ];
    // Reduce, gather(v), scatter(v), long alltoalls, alltoallv, reduce-scatter, the scans, and the allgathers
    // of other numbers of members are those of 3.2.1, value by value.
    [own, rules_3_2_1()].concat()
}

/// Whether the schedule of a collective that does not block has the sends of an exchange before its receives,
/// in version 5.0.
///
/// # Source
/// The order of `MPIR_Sched_send` and `MPIR_Sched_recv` in `src/mpi/coll/i*/*_sched_*.c`.
pub(super) fn schedule_sends_first(collective: C, algorithm: A) -> bool {
    !matches!(
        (collective, algorithm),
        (C::Allreduce | C::Alltoallv | C::Gatherv, _)
            | (C::Alltoall, A::Scattered)
            | (C::Allgatherv, A::Ring)
    )
}
