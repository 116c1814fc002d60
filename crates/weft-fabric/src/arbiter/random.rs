//! Random choice: any eligible request with the same probability.

use super::next_from;
use weft_engine::Stream;

/// A uniformly random one of the `requests` that `is_eligible` accepts.
pub(crate) fn choose(
    requests: &[u64],
    rng: &mut Stream,
    mut is_eligible: impl FnMut(usize) -> bool,
) -> Option<usize> {
    // Reservoir of one: the n-th eligible request replaces the choice with probability 1/n.
    let (mut chosen, mut seen, mut at) = (None, 0, 0);
    while let Some(request) = next_from(requests, at) {
        if is_eligible(request) {
            seen += 1;
            if rng.below(seen) == 0 {
                chosen = Some(request);
            }
        }
        at = request + 1;
    }
    chosen
}
