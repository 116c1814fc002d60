//! The interfaces reduce among themselves: allreduce.
//!
//! One round: the member hands its vector to its interface, and goes on when the interface reports the
//! result. No other member's processor takes part in between. Which collectives an interface can carry
//! out, and how many operations of its own one takes, is the interface's: see
//! [`Transport::accelerator_limit`](crate::Transport::accelerator_limit).
//!
//! # Source
//! TR-488 §4.7, §6.1.5.

use super::{RoundStep, RoundSteps, Schedule, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Accelerator;

impl Schedule for Accelerator {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Allreduce]
    }

    fn rounds(&self, _: &MemberPart) -> u32 {
        1
    }

    fn round(&self, part: &MemberPart, _: u32, steps: &mut RoundSteps) {
        steps.push(RoundStep::Accelerate { bytes: part.layout().total() });
    }
}
