//! Choosing among several ways: at random, in turn, by a hash of the flow or of a block, by the shortest
//! queue.
//!
//! # Source
//! C. Hopps, "Analysis of an equal-cost multi-path algorithm", RFC 2992, 2000 (a hash per flow). The hash is
//! the finalizer of SplitMix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014.

use crate::traits::LocalView;
use weft_units::PortId;

/// A number below `count`, all as often if `random` is uniform over 64 bits.
#[inline]
pub(crate) fn below(count: u32, random: u64) -> u32 {
    ((u128::from(random) * u128::from(count)) >> 64) as u32
}

/// A number that looks random, another one for every other `x`.
#[inline]
pub(crate) fn hash(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Two numbers as one.
#[inline]
pub(crate) fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The hash of a flow, the same on all its way.
#[inline]
pub(crate) fn flow_hash(seed: u32, source: u32, destination: u64) -> u32 {
    (hash(hash(joined(seed, source)) ^ destination) >> 32) as u32
}

/// The hash of a block of a flow, the same on all its way; of block 0 that of the flow.
#[inline]
pub(crate) fn block_hash(flow: u32, block: u32) -> u32 {
    if block == 0 { flow } else { (hash(joined(flow, block)) >> 32) as u32 }
}

/// Which of `count` ways is the turn's. The ways are taken one after the other.
#[inline]
pub(crate) fn way_in_turn(turn: u32, count: u32) -> u32 {
    turn % count.max(1)
}

/// Which of `count` ways a flow takes at a switch. Every switch hashes anew: one hash for all would leave
/// ways unused, since flows that meet at a switch have chosen alike.
#[inline]
pub(crate) fn way_of_flow(flow: u32, switch: u32, count: u32) -> u32 {
    below(count, hash(joined(flow, switch)))
}

/// The port with the shortest queue, and the queue in bytes; one of them at random, where several are.
/// `None`: there are no ports.
#[inline]
pub(crate) fn shortest_queue(
    ports: impl Iterator<Item = PortId> + Clone,
    view: &mut impl LocalView,
) -> Option<(PortId, u64)> {
    view.take_stock();
    let (mut least, mut count) = (u64::MAX, 0);
    for port in ports.clone() {
        let queued = view.queued(port);
        if queued < least {
            (least, count) = (queued, 0);
        }
        count += u32::from(queued == least);
    }
    let drawn = if count > 1 { below(count, view.random()) } else { 0 };
    let port = ports.filter(|&port| view.queued(port) == least).nth(drawn as usize)?;
    Some((port, least))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Queues(Vec<u64>, u64);

    impl LocalView for Queues {
        fn queued(&self, port: PortId) -> u64 {
            self.0[port.index()]
        }

        fn random(&mut self) -> u64 {
            self.1
        }
    }

    /// Catches a longer queue that is chosen, and ties that always end alike.
    #[test]
    fn the_shortest_queue_is_chosen_at_random_among_equals() {
        let mut queues = Queues(vec![5, 2, 9, 2], 0);
        let ports = || (0..4).map(PortId);
        assert_eq!(shortest_queue(ports(), &mut queues), Some((PortId(1), 2)));
        queues.1 = u64::MAX;
        assert_eq!(shortest_queue(ports(), &mut queues), Some((PortId(3), 2)));
        assert_eq!(shortest_queue(ports().take(0), &mut queues), None);
    }
}
