//! `osu_bw`: windows of messages one way, each window answered by four bytes.
//!
//! ```text
//!   rank 0   ⏱ isend × 64  waitall        recv 4 B ⏱
//!   rank 1     irecv × 64  waitall ─────▶ send 4 B
//! ```

use super::ops::{irecv, isend, wait, waitall};
use super::repeat::Iteration;
use super::{Figures, Stopwatch, WINDOW};
use weft_trace::op::Op;
use weft_units::Bytes;

const TAG: i32 = 100;
const ANSWER_TAG: i32 = 101;
const ANSWER: Bytes = Bytes::new(4);

/// Operations of a window and its answer.
pub(super) const STEPS: u64 = WINDOW as u64 + 3;

/// Operation `step` of the sender of a window.
pub(super) fn sender(to: u32, bytes: Bytes, step: u64) -> Op {
    match step as u32 {
        step @ 0..WINDOW => isend(to, TAG, bytes, step),
        WINDOW => waitall(0, WINDOW),
        step if step == WINDOW + 1 => irecv(to, ANSWER_TAG, ANSWER, 0),
        _ => wait(0),
    }
}

/// Operation `step` of the receiver of a window.
pub(super) fn receiver(from: u32, bytes: Bytes, step: u64) -> Op {
    match step as u32 {
        step @ 0..WINDOW => irecv(from, TAG, bytes, step),
        WINDOW => waitall(0, WINDOW),
        step if step == WINDOW + 1 => isend(from, ANSWER_TAG, ANSWER, 0),
        _ => wait(0),
    }
}

pub(super) struct Bw {
    pub bytes: Bytes,
}

impl Iteration for Bw {
    fn steps(&self, _: u32) -> u64 {
        STEPS
    }

    fn timed(&self, rank: u32, step: u64) -> Op {
        if rank == 0 { sender(1, self.bytes, step) } else { receiver(0, self.bytes, step) }
    }

    fn is_timed(&self, rank: u32) -> bool {
        rank == 0
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        let messages = f64::from(WINDOW) * f64::from(times[0].iterations());
        Figures::rate(messages, self.bytes, times[0].elapsed_ps())
    }
}
