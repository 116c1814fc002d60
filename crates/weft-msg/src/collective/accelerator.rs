//! The interfaces reduce among themselves: allreduce.
//!
//! One round: the member hands its vector to its interface, and goes on when the interface reports the
//! result. No other member's processor takes part in between. Which collectives an interface can carry
//! out, and how many operations of its own one takes, is the interface's: see
//! [`Nic::accelerates`](crate::Nic::accelerates).
//!
//! # Source
//! TR-488 §4.7, §6.1.5.

use super::{Schedule, Step, Steps, part::Part};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Accelerator;

impl Schedule for Accelerator {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Allreduce]
    }

    fn rounds(&self, _: &Part) -> u32 {
        1
    }

    fn round(&self, part: &Part, _: u32, steps: &mut Steps) {
        steps.push(Step::Accelerate { bytes: part.layout().total() });
    }
}
