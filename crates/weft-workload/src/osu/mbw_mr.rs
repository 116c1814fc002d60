//! `osu_mbw_mr`: `osu_bw` between many pairs at once, rank i of the first half with rank i of the second.
//!
//! The bandwidth is that of all pairs together, over the mean of the senders' times.

use super::bw::{STEPS, receiver, sender};
use super::repeat::{Barriers, Iteration};
use super::{Figures, Stopwatch, WINDOW};
use weft_trace::op::Op;
use weft_units::Bytes;

pub(super) struct MbwMr {
    pub bytes: Bytes,
    /// Half of the ranks.
    pub pairs: u32,
}

impl Iteration for MbwMr {
    fn steps(&self, _: u32) -> u64 {
        STEPS
    }

    fn timed(&self, rank: u32, step: u64) -> Op {
        match rank.checked_sub(self.pairs) {
            None => sender(rank + self.pairs, self.bytes, step),
            Some(from) => receiver(from, self.bytes, step),
        }
    }

    fn is_timed(&self, rank: u32) -> bool {
        rank < self.pairs
    }

    fn barriers(&self) -> Barriers {
        Barriers::BeforeMeasured
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        let senders = &times[..self.pairs as usize];
        let mean = senders.iter().map(Stopwatch::elapsed_ps).sum::<f64>() / f64::from(self.pairs);
        let each = f64::from(WINDOW) * f64::from(senders[0].iterations());
        Figures::rate(each * f64::from(self.pairs), self.bytes, mean)
    }
}
