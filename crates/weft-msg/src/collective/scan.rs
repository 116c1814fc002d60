//! Scan and exscan, by recursive doubling and along a chain.
//!
//! Beside its result a member keeps the running reduction over all members that it has heard of. By
//! recursive doubling it exchanges that with m xor 2^k, if there is such a member; only what comes from
//! before it enters the result. Along the chain it passes on the result with its own contribution.
//!
//! # Source
//! MPICH `scan_recursive_doubling`, `exscan_recursive_doubling`.

use super::{RankBuffer, ReceiveAction, RoundSteps, ceil_log2, member_part::MemberPart};
use weft_trace::op::Collective;

/// Copy, receive, send.
pub(super) const CHAIN_ROUNDS: u32 = 3;

/// Rounds by recursive doubling.
pub(super) fn doubling_rounds(part: &MemberPart) -> u32 {
    ceil_log2(part.members) + 1
}

/// One round by recursive doubling.
pub(super) fn doubling(part: &MemberPart, round: u32, steps: &mut RoundSteps) {
    let whole = part.layout().whole();
    if round == 0 {
        return copies(part, steps);
    }
    let partner = part.me ^ (1 << (round - 1));
    if partner < part.members {
        let into = if partner < part.me { ReceiveAction::CombineBoth } else { ReceiveAction::Combine };
        steps.receive_into(partner, RankBuffer::Running, whole, into);
        steps.send_from(partner, RankBuffer::Running, whole);
    }
}

/// One round along the chain.
pub(super) fn chain(part: &MemberPart, round: u32, steps: &mut RoundSteps) {
    let whole = part.layout().whole();
    match round {
        0 => copies(part, steps),
        1 if part.me > 0 => {
            steps.receive_into(part.me - 1, RankBuffer::Running, whole, ReceiveAction::CombineBoth)
        }
        2 if part.me + 1 < part.members => steps.send_from(part.me + 1, RankBuffer::Running, whole),
        _ => {}
    }
}

/// The own contribution goes into the running reduction, and into the result of a scan.
fn copies(part: &MemberPart, steps: &mut RoundSteps) {
    let bytes = part.layout().total();
    steps.copy(if part.kind == Collective::Scan { 2 * bytes } else { bytes });
}
