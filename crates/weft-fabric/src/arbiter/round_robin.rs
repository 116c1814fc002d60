//! Round robin: the first eligible request after the one that was served last.

use super::{Arbiter, OutputRequests, Properties};
use serde::{Deserialize, Serialize};

/// The first in turn.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RoundRobin;

impl Arbiter for RoundRobin {
    const PROPERTIES: Properties = Properties { passes_alone: true, ..Properties::PLAIN };
    const MEMORYLESS: Option<RoundRobin> = Some(RoundRobin);

    #[inline(always)]
    fn choose<'a>(&mut self, _: usize, requests: &mut impl OutputRequests<'a>) -> Option<usize> {
        let request = first_from(requests.all(), requests.turn(), |request| requests.can_go(request))?;
        requests.take_turn(request);
        Some(request)
    }
}

/// The first of `requests` from `pointer` on, around the end, that `is_eligible` accepts.
#[inline(always)]
pub fn first_from(requests: &[u64], pointer: usize, is_eligible: impl FnMut(usize) -> bool) -> Option<usize> {
    first_of(u64::MAX, requests, pointer, is_eligible)
}

/// The same among those of `requests` that have a bit in `mask`, which is that of every word.
#[inline(always)]
pub(crate) fn first_of(
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

/// A set of requests or ports: bits in words.
#[inline]
pub(crate) fn next_from(words: &[u64], start: usize) -> Option<usize> {
    let first = start / 64;
    if first < words.len() {
        let bits = words[first] & u64::MAX << (start % 64);
        if bits != 0 {
            return Some(first * 64 + bits.trailing_zeros() as usize);
        }
        for (index, &word) in words.iter().enumerate().skip(first + 1) {
            if word != 0 {
                return Some(index * 64 + word.trailing_zeros() as usize);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_round_and_skips_what_is_not_eligible() {
        let requests = [0b1010_0001, 1];
        assert_eq!(first_from(&requests, 6, |_| true), Some(7));
        assert_eq!(first_from(&requests, 8, |_| true), Some(64));
        assert_eq!(first_from(&requests, 65, |_| true), Some(0));
        assert_eq!(first_from(&requests, 6, |r| r == 5), Some(5));
        assert_eq!(first_from(&requests, 0, |_| false), None);
        assert_eq!(first_of(1, &requests, 8, |_| true), Some(64));
        assert_eq!(first_of(1 << 5, &requests[..1], 6, |_| true), Some(5));
        let last = [1 << 63 | 1];
        assert_eq!(first_from(&last, 63, |_| true), Some(63));
        assert_eq!(first_from(&last, 64, |_| true), Some(0));
        assert_eq!(first_from(&last, 1, |r| r == 0), Some(0));
    }
}
