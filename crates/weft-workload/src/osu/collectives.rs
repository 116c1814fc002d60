//! `osu_bcast`, `osu_allreduce`, `osu_reduce`, `osu_allgather`, `osu_alltoall`, `osu_barrier`: one blocking
//! call per iteration.
//!
//! ```text
//!   every rank   ⏱ collective ⏱ barrier
//! ```
//! The latency is the mean over ranks of each rank's mean. Without the barrier one iteration runs into
//! the next, and the mean is over all of them as one (TR-488 §6.1.4's second variant).
//!
//! The barrier benchmark has no barrier beside the one that it measures.

use super::ops::collective;
use super::repeat::{Barriers, Iteration};
use super::{Figures, Stopwatch};
use weft_trace::op::{Collective, Op};
use weft_units::Bytes;

pub(super) struct Collectives {
    pub kind: Collective,
    pub bytes: Bytes,
}

impl Iteration for Collectives {
    fn steps(&self, _: u32) -> u64 {
        1
    }

    fn timed(&self, _: u32, _: u64) -> Op {
        collective(self.kind, self.bytes)
    }

    fn is_timed(&self, _: u32) -> bool {
        true
    }

    fn barriers(&self) -> Barriers {
        if self.kind == Collective::Barrier { Barriers::None } else { Barriers::AfterEach }
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        Figures::over_ranks(times)
    }
}
