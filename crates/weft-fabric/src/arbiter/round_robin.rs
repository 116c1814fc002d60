//! Round robin: the first eligible request after the one that was served last.

use super::next_from;

/// The first of `requests` from `pointer` on, around the end, that `is_eligible` accepts.
#[inline(always)]
pub(crate) fn choose(
    requests: &[u64],
    pointer: usize,
    is_eligible: impl FnMut(usize) -> bool,
) -> Option<usize> {
    choose_of(u64::MAX, requests, pointer, is_eligible)
}

/// The same among those of `requests` that have a bit in `mask`, which is that of every word.
#[inline(always)]
pub(crate) fn choose_of(
    mask: u64,
    requests: &[u64],
    pointer: usize,
    mut is_eligible: impl FnMut(usize) -> bool,
) -> Option<usize> {
    if let [word] = *requests {
        // All requests in one word: those from `pointer` on come first. A pointer behind the last is the
        // first.
        let pointer = pointer as u32 % 64;
        let mut bits = (word & mask).rotate_right(pointer);
        while bits != 0 {
            let request = ((bits.trailing_zeros() + pointer) % 64) as usize;
            if is_eligible(request) {
                return Some(request);
            }
            bits &= bits - 1;
        }
        return None;
    }
    let mut is_eligible = |request: usize| mask >> (request % 64) & 1 == 1 && is_eligible(request);
    let mut at = pointer;
    while let Some(request) = next_from(requests, at) {
        if is_eligible(request) {
            return Some(request);
        }
        at = request + 1;
    }
    at = 0;
    while let Some(request) = next_from(requests, at) {
        if request >= pointer {
            return None;
        }
        if is_eligible(request) {
            return Some(request);
        }
        at = request + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_round_and_skips_what_is_not_eligible() {
        let requests = [0b1010_0001, 1];
        assert_eq!(choose(&requests, 6, |_| true), Some(7));
        assert_eq!(choose(&requests, 8, |_| true), Some(64));
        assert_eq!(choose(&requests, 65, |_| true), Some(0));
        assert_eq!(choose(&requests, 6, |r| r == 5), Some(5));
        assert_eq!(choose(&requests, 0, |_| false), None);
        assert_eq!(choose_of(1, &requests, 8, |_| true), Some(64));
        assert_eq!(choose_of(1 << 5, &requests[..1], 6, |_| true), Some(5));
        let last = [1 << 63 | 1];
        assert_eq!(choose(&last, 63, |_| true), Some(63));
        assert_eq!(choose(&last, 64, |_| true), Some(0));
        assert_eq!(choose(&last, 1, |r| r == 0), Some(0));
    }
}
