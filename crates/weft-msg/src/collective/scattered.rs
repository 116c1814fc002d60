//! Everybody directly, so many at a time: alltoall(v).
//!
//! As [linear], but a member has up to [`MAX_SCATTERED_PARTNERS`] partners at a time, and goes on to the
//! next ones when it has done with all of those.
//!
//! # Source
//! MPICH 3.2.1, `alltoall.c` and `alltoallv.c` with `MPIR_CVAR_ALLTOALL_THROTTLE`; MPICH 5
//! `alltoall_intra_scattered`.

use super::{MAX_SCATTERED_PARTNERS, RoundSteps, Schedule, linear, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Scattered;

impl Schedule for Scattered {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Alltoall, Collective::Alltoallv]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        (part.members - 1).div_ceil(MAX_SCATTERED_PARTNERS) + 1
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        linear::alltoall(part, round, steps);
    }
}
