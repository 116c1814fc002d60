//! `osu_latency`: a ping-pong between two ranks with blocking calls.
//!
//! ```text
//!   rank 0   ⏱ send ───▶     recv ⏱
//!   rank 1     recv     ───▶ send          latency = ⏱ … ⏱ / 2
//! ```

use super::ops::{irecv, isend, wait};
use super::repeat::Iteration;
use super::{Figures, Stopwatch};
use weft_trace::op::Op;
use weft_units::Bytes;

const TAG: i32 = 1;

pub(super) struct Latency {
    pub bytes: Bytes,
}

impl Iteration for Latency {
    fn steps(&self, _: u32) -> u64 {
        4
    }

    fn timed(&self, rank: u32, step: u64) -> Op {
        let other = 1 - rank;
        match (rank, step) {
            (0, 0) | (1, 2) => isend(other, TAG, self.bytes, 0),
            (0, 2) | (1, 0) => irecv(other, TAG, self.bytes, 0),
            _ => wait(0),
        }
    }

    fn is_timed(&self, rank: u32) -> bool {
        rank == 0
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        Figures::latency(times[0].mean_ps() / 2.0)
    }
}
