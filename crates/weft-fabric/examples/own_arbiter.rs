//! An arbiter of one's own: the smallest packet first.
//!
//! The book's page on adding an arbiter walks through it.

use serde::{Deserialize, Serialize};
use weft_engine::Stream;
use weft_fabric::arbiter::{Arbiter, OutputRequests, RequestGroups, first_from};

// ANCHOR: arbiter
/// The smallest packet; of packets of one size the first in turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SmallestFirst;

impl Arbiter for SmallestFirst {
    const MEMORYLESS: Option<SmallestFirst> = Some(SmallestFirst);

    fn choose<'a>(&mut self, _output: usize, requests: &mut impl OutputRequests<'a>) -> Option<usize> {
        let mut smallest: Option<(u64, usize)> = None;
        // None is taken at once: all are looked at, from the one whose turn it is.
        first_from(requests.all(), requests.turn(), |request| {
            let bytes = requests.bytes(request);
            if requests.can_go(request) && smallest.is_none_or(|(least, _)| bytes < least) {
                smallest = Some((bytes, request));
            }
            false
        });
        let (_, request) = smallest?;
        requests.take_turn(request);
        Some(request)
    }
}
// ANCHOR_END: arbiter

// ANCHOR: requests
/// Inputs that always have a packet for the output, each of its size.
struct Inputs<'a> {
    bits: &'a [u64],
    groups: &'a RequestGroups,
    bytes: &'a [u64],
    turn: usize,
    random: Stream,
}

impl<'a> OutputRequests<'a> for Inputs<'a> {
    fn all(&self) -> &'a [u64] {
        self.bits
    }

    fn bytes(&self, request: usize) -> u64 {
        self.bytes[request]
    }

    fn turn(&self) -> usize {
        self.turn
    }

    fn take_turn(&mut self, request: usize) {
        self.turn = request + 1;
    }
    // ANCHOR_END: requests

    fn groups(&self) -> &'a RequestGroups {
        self.groups
    }

    fn can_go(&mut self, _: usize) -> bool {
        true
    }

    fn age(&self, _: usize) -> u64 {
        0
    }

    fn random(&mut self) -> &mut Stream {
        &mut self.random
    }
}

/// The inputs that send one after the other.
fn order(bytes: &[u64], packets: usize) -> Vec<usize> {
    let (bits, groups) = ([(1 << bytes.len()) - 1], RequestGroups::new(1, Vec::new()));
    let mut inputs = Inputs { bits: &bits, groups: &groups, bytes, turn: 0, random: Stream::new(1, 0, 0) };
    let mut arbiter = SmallestFirst;
    (0..packets).filter_map(|_| arbiter.choose(0, &mut inputs)).collect()
}

fn main() {
    println!("inputs with packets of 4096, 64, 256 and 64 bytes: {:?}", order(&[4096, 64, 256, 64], 6));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a larger packet that goes first, and inputs of equal packets of which one goes alone.
    #[test]
    fn the_smallest_go_in_turn() {
        assert_eq!(order(&[4096, 64, 256, 64], 4), [1, 3, 1, 3]);
        assert_eq!(order(&[64, 64, 64], 4), [0, 1, 2, 0]);
    }
}
