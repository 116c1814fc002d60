//! `osu_mbw_mr`: `osu_bw` between many pairs at once, rank i of the first half with rank i of the second.
//!
//! ```text
//!   sender 0     ⏱ window … window ⏱
//!   sender 1          ⏱ window … window … window ⏱
//!                |◄──────── the time of all ────────►|
//! ```
//! The bandwidth is the payload of all pairs, by the time from the first sender's beginning to the last one's
//! end: all of it has crossed the wires within that time, so that no wire carries more than it can. OSU has
//! no clock that all ranks share and takes the longest of the senders' times, which is less by how far apart
//! they leave the barrier: a sender that is out first fills the wire with its window while another one's
//! clock does not run yet. Over OSU's 100 iterations that is no more than a hundredth.

use super::bw::Bw;
use super::repeat::{Barriers, Iteration};
use super::{Figures, Stopwatch};
use weft_trace::op::Op;

pub(super) struct MbwMr {
    /// The windows of each pair.
    pub bw: Bw,
    /// Half of the ranks.
    pub pairs: u32,
}

impl Iteration for MbwMr {
    fn steps(&self, _: u32) -> u64 {
        self.bw.steps()
    }

    fn timed(&self, rank: u32, step: u64) -> Op {
        match rank.checked_sub(self.pairs) {
            None => self.bw.sender(rank + self.pairs, step),
            Some(from) => self.bw.receiver(from, step),
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
        let each = f64::from(self.bw.window) * f64::from(senders[0].iterations());
        Figures::rate(each * f64::from(self.pairs), self.bw.bytes, Stopwatch::elapsed_of_all_ps(senders))
    }
}
