//! `osu_one_way_lat` of TR-488: one rank only sends, the other only receives, with blocking calls.
//!
//! ```text
//!   rank 0     send    send    send
//!   rank 1   ⏱ recv ⏱⏱ recv ⏱⏱ recv ⏱        latency = the receiver's time per message
//! ```
//! The latency is the interval at which messages stream, whichever side limits it, and not half of a
//! ping-pong: nobody waits for an answer.
//!
//! # Source
//! TR-488 §6.1.4: "each rank either performs a blocking send or a blocking receive, as is the case in
//! each step of the broadcast schedule"; "as low as 750 ns", which is less than half a ping-pong.
//!
//! The text does not say how ranks are timed. That they stream is our reading. The interval knows its path
//! where a send waits for the acknowledgement of the other interface, as on `exanest`. The other reading is a
//! mean over both ranks behind a barrier, as broadcasts are timed. It cannot be as low as 750 ns: the
//! receiver leaves the barrier before the sender and waits longer than a message takes.

use super::ops::{irecv, isend, wait};
use super::repeat::Iteration;
use super::{Figures, Stopwatch};
use weft_trace::op::Op;
use weft_units::Bytes;

const TAG: i32 = 1;

pub(super) struct OneWay {
    pub bytes: Bytes,
}

impl Iteration for OneWay {
    fn steps(&self, _: u32) -> u64 {
        2
    }

    fn timed(&self, rank: u32, step: u64) -> Op {
        match (rank, step) {
            (0, 0) => isend(1, TAG, self.bytes, 0),
            (_, 0) => irecv(0, TAG, self.bytes, 0),
            _ => wait(0),
        }
    }

    fn is_timed(&self, rank: u32) -> bool {
        rank == 1
    }

    fn figures(&self, times: &[Stopwatch]) -> Figures {
        Figures::latency(times[1].mean_ps())
    }
}
