//! Two simpler collectives, one after the other: allreduce, reduce-scatter, allgatherv.
//!
//! | collective | first, to member 0 | then, from member 0 |
//! |---|---|---|
//! | allreduce | reduce | broadcast |
//! | reduce-scatter, reduce-scatter-block | reduce | scatter |
//! | allgatherv | gather | broadcast |
//!
//! Both go by the machine's table, for the size that they have.
//!
//! # Source
//! Open MPI 4.1, `ompi_coll_base_allreduce_intra_nonoverlapping`,
//! `ompi_coll_base_reduce_scatter_intra_nonoverlapping`,
//! `ompi_coll_base_reduce_scatter_block_basic_linear`, `ompi_coll_base_allgatherv_intra_basic_default`.

use super::member_part::{BlockSizes, MemberPart, Stages};
use super::topology_tree::Neighbours;
use super::{RoundSteps, Schedule, registry::schedule};
use crate::algorithms::algorithm::Algorithm;
use crate::algorithms::rule::CollectiveSize;
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct NonOverlapping;

impl Schedule for NonOverlapping {
    fn performs(&self) -> &'static [Collective] {
        &[
            Collective::Allreduce,
            Collective::ReduceScatter,
            Collective::ReduceScatterBlock,
            Collective::Allgatherv,
        ]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        rounds(part, Stages::FIRST) + rounds(part, Stages::SECOND)
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let (stage, round) = place(part, round);
        schedule(part.stages.0[stage]).round(&stage_of(part, stage), round, steps);
    }

    fn overlaps(&self, part: &MemberPart, round: u32) -> bool {
        let (stage, round) = place(part, round);
        schedule(part.stages.0[stage]).overlaps(&stage_of(part, stage), round)
    }
}

/// Rounds of one of the two collectives.
fn rounds(part: &MemberPart, stage: usize) -> u32 {
    schedule(part.stages.0[stage]).rounds(&stage_of(part, stage))
}

/// Which of the two collectives a round belongs to, and its number in it.
fn place(part: &MemberPart, round: u32) -> (usize, u32) {
    match round.checked_sub(rounds(part, Stages::FIRST)) {
        None => (Stages::FIRST, round),
        Some(round) => (Stages::SECOND, round),
    }
}

/// The algorithms of the two collectives, of which `table` chooses each.
pub(crate) fn stages(
    part: &MemberPart,
    table: impl Fn(Collective, CollectiveSize) -> Option<Algorithm>,
) -> Stages {
    let choose = |stage: usize| {
        let part = stage_of(part, stage);
        let (kind, size) = match (&part.sizes, part.kind) {
            // A gather or scatter of blocks of different sizes is that of their name.
            (BlockSizes::Blocks(_), Collective::Gather) => (Collective::Gatherv, part.size()),
            (BlockSizes::Blocks(_), Collective::Scatter) => (Collective::Scatterv, part.size()),
            _ => (part.kind, part.size()),
        };
        table(kind, size).filter(|algorithm| algorithm.performs(part.kind)).unwrap_or(Algorithm::Linear)
    };
    Stages([choose(Stages::FIRST), choose(Stages::SECOND)])
}

/// This member's part in one of the two collectives.
fn stage_of(part: &MemberPart, stage: usize) -> MemberPart {
    let vector = || BlockSizes::Vector(part.layout().total());
    let (kind, sizes) = match (part.kind, stage) {
        (Collective::Allgatherv, Stages::FIRST) => (Collective::Gather, part.sizes.clone()),
        (_, Stages::FIRST) => (Collective::Reduce, vector()),
        (Collective::Allreduce | Collective::Allgatherv, _) => (Collective::Broadcast, vector()),
        _ => (Collective::Scatter, part.sizes.clone()),
    };
    let neighbours = Neighbours::default();
    MemberPart { kind, sizes, root: 0, stages: Stages::default(), neighbours, ..*part }
}
