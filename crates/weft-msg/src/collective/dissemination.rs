//! Dissemination: barrier.
//!
//! In round k every member sends a token 2^k members ahead and awaits the one from 2^k behind. After
//! ⌈log2 p⌉ rounds each has heard, at least indirectly, of all.
//!
//! # Source
//! Hensgen, Finkel and Manber 1988; MPICH `barrier`.

use super::{RoundSteps, Schedule, ceil_log2, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Dissemination;

impl Schedule for Dissemination {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Barrier]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        ceil_log2(part.members)
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        steps.tokens(part.after(1 << round), part.before(1 << round));
    }
}
