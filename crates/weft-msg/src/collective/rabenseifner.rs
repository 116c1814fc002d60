//! Rabenseifner's algorithm: allreduce, reduce.
//!
//! A vector cut into as many blocks as there are cores (see [`super::fold`]) is reduce-scattered:
//! nearest partners first, which exchange halves, then quarters, and so on. An allreduce then runs the
//! same exchanges backwards as an allgather; a reduce gathers along the tree that the root's half of
//! them forms. A root that is no core takes over from core 0, which gives it its block.
//!
//! Bytes per core, both ways: 2·n·(1 − 1/cores).
//!
//! # Source
//! Rabenseifner 2004, "Optimization of Collective Reduction Operations"; MPICH
//! `allreduce_reduce_scatter_allgather`, `reduce_reduce_scatter_gather`; Open MPI 4.1
//! `ompi_coll_base_reduce_intra_redscat_gather`.

use super::blocks::{Blocks, Extent};
use super::{ReceiveAction, RoundSteps, Schedule, fold::Fold, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Rabenseifner;

impl Schedule for Rabenseifner {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Allreduce, Collective::Reduce]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        2 * Fold::new(part.members, part.me).log2() + 3
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let fold = match part.kind {
            Collective::Allreduce => Fold::onto_odd(part.members, part.me),
            _ => Fold::new(part.members, part.me),
        };
        let name = |position| position;
        let (log2, vector) = (fold.log2(), part.split(fold.cores));
        let halving = Halving { fold, vector };
        if round == 0 {
            return steps.copy(vector.total());
        } else if round == 1 {
            return fold.fold(vector.whole(), ReceiveAction::Combine, name, steps);
        }
        if let Some(after) = round.checked_sub(log2 + 2) {
            return match part.kind {
                Collective::Allreduce => halving.allgather(after, steps),
                _ => halving.gather(part.root, after, steps),
            };
        }
        halving.reduce_scatter(round - 2, steps);
    }
}

/// A vector of which the cores exchange halves.
#[derive(Clone, Copy)]
struct Halving<'v> {
    fold: Fold,
    vector: Blocks<'v>,
}

impl Halving<'_> {
    /// One round of the reduce-scatter: exchanges the halves that `bit` tells apart.
    fn reduce_scatter(self, bit: u32, steps: &mut RoundSteps) {
        if let Some(core) = self.fold.core() {
            let partner = self.fold.position(core ^ (1 << bit));
            steps.receive(partner, self.half(core, bit), ReceiveAction::Combine);
            steps.send(partner, self.half(core ^ (1 << bit), bit));
        }
    }

    /// One round of the allgather; after the last, the members that are no cores get the vector.
    fn allgather(self, round: u32, steps: &mut RoundSteps) {
        let fold = self.fold;
        let Some(bit) = (fold.log2()).checked_sub(round + 1) else {
            return fold.unfold(self.vector.whole(), |position| position, steps);
        };
        if let Some(core) = fold.core() {
            let partner = fold.position(core ^ (1 << bit));
            steps.receive(partner, self.half(core ^ (1 << bit), bit), ReceiveAction::Store);
            steps.send(partner, self.half(core, bit));
        }
    }

    /// One round of the gather to the root. In the first, core 0 hands over to a root that is none.
    fn gather(self, root: u32, round: u32, steps: &mut RoundSteps) {
        let fold = self.fold;
        let core_of_root = fold.core_at(root);
        let takes_over = core_of_root.is_none();
        let is_root = fold.is_at(root);
        let Some(done) = round.checked_sub(1) else {
            // What core 0 has reduced: its block, or all where it is the only core.
            let block = self.vector.between(0, 1);
            return match takes_over {
                true if is_root => steps.receive(fold.position(0), block, ReceiveAction::Store),
                true if fold.core() == Some(0) => steps.send(root, block),
                _ => {}
            };
        };
        let core = match fold.core() {
            None if is_root => 0,
            Some(0) if takes_over => return,
            None => return,
            Some(core) => core,
        };
        let (bit, root_core) = (fold.log2() - 1 - done, core_of_root.unwrap_or(0));
        let position = |core| if core == 0 && takes_over { root } else { fold.position(core) };
        // The others have given what they had.
        if core >> (bit + 1) == root_core >> (bit + 1) {
            let partner = core ^ (1 << bit);
            if core >> bit == root_core >> bit {
                steps.receive(position(partner), self.half(partner, bit), ReceiveAction::Store);
            } else {
                steps.send(position(partner), self.half(core, bit));
            }
        }
    }

    /// The half that core `core` keeps when it exchanges with the partner that differs in `bit`. Bit 0 of the
    /// core's number chooses the half of the vector, bit 1 the half of that half, and so on.
    fn half(&self, core: u32, bit: u32) -> Extent {
        let blocks = self.vector.count();
        let first: u32 = (0..=bit).map(|b| (core >> b & 1) * (blocks >> (b + 1))).sum();
        self.vector.between(first, first + (blocks >> (bit + 1)))
    }
}
