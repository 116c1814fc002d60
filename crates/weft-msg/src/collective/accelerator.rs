//! The interfaces reduce among themselves: allreduce.
//!
//! The member copies its vector to where the result is to be, hands that to its interface, and goes on when
//! the interface reports the result. The copy is there since the interface gets one pointer to the data,
//! which it overwrites, and MPI leaves the vector that was given as it was. No other member's processor takes
//! part in between. Which collectives an interface can carry out, and how many operations of its own one
//! takes, is the interface's: see [`Transport::accelerator_limit`](crate::Transport::accelerator_limit).
//!
//! # Source
//! TR-488 §4.7, §6.1.5.

use super::{RoundSteps, Schedule, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Accelerator;

impl Schedule for Accelerator {
    fn is_by_hardware(&self) -> bool {
        true
    }

    fn performs(&self) -> &'static [Collective] {
        &[Collective::Allreduce]
    }

    fn rounds(&self, _: &MemberPart) -> u32 {
        2
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let bytes = part.layout().total();
        if round == 0 { steps.copy(bytes) } else { steps.accelerate(bytes) }
    }
}
