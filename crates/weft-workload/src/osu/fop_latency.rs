//! `osu_fop_latency`, `osu_cas_latency`: rank 0 fetches and adds to eight bytes of rank 1, or compares and
//! swaps them, and flushes.

use super::one_sided::{access, setup, sync, teardown};
use super::repeat::Iteration;
use super::{Figures, Stopwatch};
use weft_trace::op::{OneSided, Op, WindowSync};
use weft_units::Bytes;

/// Size of the operand: OSU adds an `MPI_LONG_LONG`.
pub(super) const OPERAND: Bytes = Bytes::new(8);

pub(super) struct FopLatency {
    pub kind: OneSided,
}

impl Iteration for FopLatency {
    fn steps(&self, rank: u32) -> u64 {
        if rank == 0 { 2 } else { 0 }
    }

    fn timed(&self, _: u32, step: u64) -> Op {
        if step == 0 { access(self.kind, OPERAND) } else { sync(WindowSync::Flush) }
    }

    fn is_timed(&self, rank: u32) -> bool {
        rank == 0
    }

    fn setup(&self, rank: u32, step: u64) -> Option<Op> {
        setup(rank, OPERAND, step)
    }

    fn teardown(&self, rank: u32, step: u64) -> Option<Op> {
        teardown(rank, step)
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        Figures::latency(times[0].mean_ps())
    }
}
