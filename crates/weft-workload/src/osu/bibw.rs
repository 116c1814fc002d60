//! `osu_bibw`: windows of messages both ways at once; the bandwidth is that of both directions together.
//!
//! ```text
//!   both ranks   ⏱ irecv × n  isend × n  waitall (sends)  waitall (receives) ⏱
//! ```

use super::ops::{irecv, isend, waitall};
use super::repeat::Iteration;
use super::{Figures, Stopwatch};
use weft_trace::op::Op;
use weft_units::Bytes;

/// The tag of the messages that a rank receives: 10 at rank 0, 100 at rank 1.
const TAGS: [i32; 2] = [10, 100];

pub(super) struct Bibw {
    pub bytes: Bytes,
    /// Messages of a window.
    pub window: u32,
}

impl Iteration for Bibw {
    fn steps(&self, _: u32) -> u64 {
        2 * u64::from(self.window) + 2
    }

    fn timed(&self, rank: u32, step: u64) -> Op {
        let other = 1 - rank;
        let (step, window) = (step as u32, self.window);
        if step < window {
            irecv(other, TAGS[rank as usize], self.bytes, step)
        } else if step < 2 * window {
            isend(other, TAGS[other as usize], self.bytes, step)
        } else if step == 2 * window {
            waitall(window, window)
        } else {
            waitall(0, window)
        }
    }

    fn is_timed(&self, rank: u32) -> bool {
        rank == 0
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        let messages = 2.0 * f64::from(self.window) * f64::from(times[0].iterations());
        Figures::rate(messages, self.bytes, times[0].elapsed_ps())
    }
}
