//! Rabenseifner's algorithm: allreduce, reduce.
//!
//! A vector cut into as many blocks as there are cores (see [`super::fold`]) is reduce-scattered:
//! nearest partners first, which exchange halves, then quarters, and so on. An allreduce then runs the
//! same exchanges backwards as an allgather; a reduce gathers along the tree that the root's half of
//! them forms. In a reduce members are counted from the root, so that the root is always a core.
//!
//! Bytes per core, both ways: 2·n·(1 − 1/cores).
//!
//! # Source
//! Rabenseifner 2004, "Optimization of Collective Reduction Operations"; MPICH
//! `allreduce_reduce_scatter_allgather`, `reduce_reduce_scatter_gather`.

use super::layout::{Layout, Piece};
use super::{Into, Schedule, Steps, fold::Fold, part::Part};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Rabenseifner;

impl Schedule for Rabenseifner {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Allreduce, Collective::Reduce]
    }

    fn rounds(&self, part: &Part) -> u32 {
        2 * Fold::new(part.members, part.me).log2() + 3
    }

    fn round(&self, part: &Part, round: u32, steps: &mut Steps) {
        // The root is 0 where there is none.
        let fold = Fold::new(part.members, part.relative());
        let name = |position| part.nth_from_root(position);
        let (log2, vector) = (fold.log2(), part.split(fold.cores));
        if round == 0 {
            return steps.copy(vector.total());
        } else if round == 1 {
            return fold.fold(vector.whole(), Into::Combine, name, steps);
        }
        let Some(core) = fold.core() else {
            if part.kind == Collective::Allreduce && round == 2 * log2 + 2 {
                fold.unfold(vector.whole(), name, steps);
            }
            return;
        };
        let partner = |bit: u32| name(fold.position(core ^ (1 << bit)));
        if round < log2 + 2 {
            let bit = round - 2;
            steps.receive(partner(bit), half(vector, core, bit), Into::Combine);
            steps.send(partner(bit), half(vector, core ^ (1 << bit), bit));
        } else if round < 2 * log2 + 2 {
            let bit = 2 * log2 + 1 - round;
            let (own, other) = (half(vector, core, bit), half(vector, core ^ (1 << bit), bit));
            if part.kind == Collective::Allreduce {
                steps.receive(partner(bit), other, Into::Store);
                steps.send(partner(bit), own);
            } else if core >> (bit + 1) == 0 {
                match core >> bit {
                    0 => steps.receive(partner(bit), other, Into::Store),
                    _ => steps.send(partner(bit), own),
                }
            }
        } else if part.kind == Collective::Allreduce {
            fold.unfold(vector.whole(), name, steps);
        }
    }
}

/// What core `core` keeps when it exchanges halves with the partner that differs in `bit`: bit 0 of
/// its number chooses the half of the vector, bit 1 the half of that, and so on.
fn half(vector: Layout<'_>, core: u32, bit: u32) -> Piece {
    let blocks = vector.count();
    let first: u32 = (0..=bit).map(|b| (core >> b & 1) * (blocks >> (b + 1))).sum();
    vector.between(first, first + (blocks >> (bit + 1)))
}
