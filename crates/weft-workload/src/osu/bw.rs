//! `osu_bw`: windows of messages one way, each window answered by four bytes.
//!
//! ```text
//!   rank 0   ⏱ isend × n  waitall        recv 4 B ⏱
//!   rank 1     irecv × n  waitall ─────▶ send 4 B
//! ```
//! n is 64 where no other window is asked for.

use super::ops::{irecv, isend, wait, waitall};
use super::repeat::Iteration;
use super::{Figures, Stopwatch};
use weft_trace::op::Op;
use weft_units::Bytes;

const TAG: i32 = 100;
const ANSWER_TAG: i32 = 101;
const ANSWER: Bytes = Bytes::new(4);

pub(super) struct Bw {
    pub bytes: Bytes,
    /// Messages of a window.
    pub window: u32,
}

impl Bw {
    /// Operations of a window and its answer.
    pub fn steps(&self) -> u64 {
        u64::from(self.window) + 3
    }

    /// Operation `step` of the sender of a window.
    pub fn sender(&self, to: u32, step: u64) -> Op {
        let window = self.window;
        match step as u32 {
            step if step < window => isend(to, TAG, self.bytes, step),
            step if step == window => waitall(0, window),
            step if step == window + 1 => irecv(to, ANSWER_TAG, ANSWER, 0),
            _ => wait(0),
        }
    }

    /// Operation `step` of the receiver of a window.
    pub fn receiver(&self, from: u32, step: u64) -> Op {
        let window = self.window;
        match step as u32 {
            step if step < window => irecv(from, TAG, self.bytes, step),
            step if step == window => waitall(0, window),
            step if step == window + 1 => isend(from, ANSWER_TAG, ANSWER, 0),
            _ => wait(0),
        }
    }
}

impl Iteration for Bw {
    fn steps(&self, _: u32) -> u64 {
        Bw::steps(self)
    }

    fn timed(&self, rank: u32, step: u64) -> Op {
        if rank == 0 { self.sender(1, step) } else { self.receiver(0, step) }
    }

    fn is_timed(&self, rank: u32) -> bool {
        rank == 0
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        let messages = f64::from(self.window) * f64::from(times[0].iterations());
        Figures::rate(messages, self.bytes, times[0].elapsed_ps())
    }
}
