//! `osu_put_latency`, `osu_get_latency`, `osu_acc_latency`, `osu_get_acc_latency`, `osu_put_bw`,
//! `osu_get_bw`: rank 0 works on the memory of rank 1.
//!
//! ```text
//!   rank 0   window lock │ barrier │ ⏱ put × n  flush ⏱ … │ unlock barrier free
//!   rank 1   window  –   │ barrier │                        │        barrier free
//! ```
//! n is 1 for latency, [`WINDOW`](super::WINDOW) for bandwidth. As OSU by default: a window that is
//! allocated, a shared lock held all the time, a flush per iteration.

use super::ops::{SEND_BUFFER, WINDOW_BUFFER, barrier};
use super::repeat::Iteration;
use super::{Figures, Stopwatch};
use weft_trace::op::{CommId, OneSided, Op, WindowId, WindowSync};
use weft_units::{Bytes, RankId};

const TARGET: RankId = RankId(1);
const MEMORY: WindowId = WindowId(0);

/// Before the loop: the window is there, and rank 0 has locked the memory of rank 1.
pub(super) fn setup(rank: u32, bytes: Bytes, step: u64) -> Option<Op> {
    match (rank, step) {
        (_, 0) => {
            Some(Op::Window { window: MEMORY, comm: CommId::WORLD, bytes, buffer: Some(WINDOW_BUFFER) })
        }
        (0, 1) => Some(sync(WindowSync::Lock)),
        _ => None,
    }
}

/// After the loop.
pub(super) fn teardown(rank: u32, step: u64) -> Option<Op> {
    match (rank, step) {
        (0, 0) => Some(sync(WindowSync::Unlock)),
        (0, 1) | (_, 0) => Some(barrier()),
        (0, 2) | (_, 1) => Some(Op::Sync { kind: WindowSync::Free, window: MEMORY, target: None }),
        _ => None,
    }
}

/// A synchronization with the target.
pub(super) fn sync(kind: WindowSync) -> Op {
    Op::Sync { kind, window: MEMORY, target: Some(TARGET) }
}

/// An operation on the target's memory.
pub(super) fn access(kind: OneSided, bytes: Bytes) -> Op {
    Op::OneSided { kind, window: MEMORY, target: TARGET, bytes, buffer: Some(SEND_BUFFER), request: None }
}

pub(super) struct OneSidedAccess {
    pub kind: OneSided,
    pub bytes: Bytes,
    /// Operations per flush.
    pub window: u32,
}

impl Iteration for OneSidedAccess {
    fn steps(&self, rank: u32) -> u64 {
        if rank == 0 { u64::from(self.window) + 1 } else { 0 }
    }

    fn timed(&self, _: u32, step: u64) -> Op {
        if step < u64::from(self.window) { access(self.kind, self.bytes) } else { sync(WindowSync::Flush) }
    }

    fn is_timed(&self, rank: u32) -> bool {
        rank == 0
    }

    fn setup(&self, rank: u32, step: u64) -> Option<Op> {
        setup(rank, Bytes::new(self.bytes.get().saturating_mul(self.window.into())), step)
    }

    fn teardown(&self, rank: u32, step: u64) -> Option<Op> {
        teardown(rank, step)
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        if self.window == 1 {
            return Figures::latency(times[0].mean_ps());
        }
        let messages = f64::from(self.window) * f64::from(times[0].iterations());
        Figures::rate(messages, self.bytes, times[0].elapsed_ps())
    }
}
