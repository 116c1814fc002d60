//! Redistribution of a grid from one layout of boxes to another: a rank sends each other rank the points that
//! it has and the other gets.

use super::{RECEIVE_BUFFER, SEND_BUFFER};
use crate::part::KernelPhase;
use std::ops::Range;
use weft_trace::Kind;
use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId};

/// Grid points of one dimension, cut into parts. No part is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GridSplit {
    /// Number of points.
    pub points: u64,
    /// Number of parts, at most [`GridSplit::points`].
    pub parts: u32,
    /// Which points a part has.
    pub rule: SplitRule,
}

/// Which points a part has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitRule {
    /// A part ends before the point where its share of the points ends, rounded down.
    Floor,
    /// A part has the points in whose middle it lies.
    Middle,
}

impl GridSplit {
    /// The points of a part.
    pub fn range(&self, part: u32) -> Range<u64> {
        self.start(part)..self.start(part + 1)
    }

    fn start(&self, part: u32) -> u64 {
        let (part, parts) = (u64::from(part), u64::from(self.parts));
        match self.rule {
            SplitRule::Floor => part * self.points / parts,
            SplitRule::Middle => (2 * part * self.points).saturating_sub(parts).div_ceil(2 * parts),
        }
    }

    /// The part that has a point.
    fn owner(&self, point: u64) -> u32 {
        let parts = u64::from(self.parts);
        let owner = match self.rule {
            SplitRule::Floor => ((point + 1) * parts - 1) / self.points,
            SplitRule::Middle => (2 * point + 1) * parts / (2 * self.points),
        };
        // Below the number of parts, which is a u32.
        owner as u32
    }
}

/// A grid cut into boxes, one for each rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GridLayout {
    /// The parts along x, y and z.
    pub splits: [GridSplit; 3],
    /// The dimensions, from that in which the next rank lies to that in which rank numbers differ most.
    pub order: [usize; 3],
}

impl GridLayout {
    /// The points of a rank.
    pub fn points(&self, rank: u32) -> [Range<u64>; 3] {
        let mut rest = rank;
        let mut points = [0..0, 0..0, 0..0];
        for dimension in self.order {
            let split = &self.splits[dimension];
            points[dimension] = split.range(rest % split.parts);
            rest /= split.parts;
        }
        points
    }

    /// The ranks whose boxes have any of these points.
    fn owners(&self, points: &[Range<u64>; 3]) -> Owners<'_> {
        let parts = |dimension: usize| {
            let (split, points) = (&self.splits[dimension], &points[dimension]);
            split.owner(points.start)..split.owner(points.end - 1) + 1
        };
        Owners { layout: self, parts: [parts(0), parts(1), parts(2)] }
    }
}

/// Ranks that are a box of parts of a layout, in the order of their numbers.
struct Owners<'a> {
    layout: &'a GridLayout,
    parts: [Range<u32>; 3],
}

impl Owners<'_> {
    fn count(&self) -> u32 {
        self.parts.iter().map(ExactSizeIterator::len).product::<usize>() as u32
    }

    /// Rank number `index` of them.
    fn rank(&self, mut index: u32) -> u32 {
        let (mut rank, mut stride) = (0, 1);
        for dimension in self.layout.order {
            let parts = &self.parts[dimension];
            let length = parts.end - parts.start;
            rank += stride * (parts.start + index % length);
            index /= length;
            stride *= self.layout.splits[dimension].parts;
        }
        rank
    }

    /// Number of them below `rank`, and whether it is one of them.
    fn below(&self, rank: u32) -> (u32, bool) {
        let (mut below, mut alike) = (0, self.count());
        let mut stride: u32 = self.layout.splits.iter().map(|split| split.parts).product();
        for dimension in self.layout.order.into_iter().rev() {
            let parts = &self.parts[dimension];
            stride /= self.layout.splits[dimension].parts;
            let part = rank / stride % self.layout.splits[dimension].parts;
            // Those that are alike in the dimensions before, for each part of this one.
            alike /= parts.end - parts.start;
            below += alike * (part.clamp(parts.start, parts.end) - parts.start);
            if !parts.contains(&part) {
                return (below, false);
            }
        }
        (below, true)
    }

    /// Number of them besides `rank`.
    fn others(&self, rank: u32) -> u32 {
        self.count() - u32::from(self.below(rank).1)
    }

    /// Rank number `index` of those besides `rank`, from the next after it on, the first after the last.
    fn other(&self, rank: u32, index: u32) -> u32 {
        let (below, is_one) = self.below(rank);
        self.rank((below + u32::from(is_one) + index) % self.count())
    }
}

/// A redistribution: receives from all, `MPI_Send` to each from the next rank on, then a wait for each
/// receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remap {
    /// The layout before.
    pub from: GridLayout,
    /// The layout afterwards.
    pub to: GridLayout,
    /// Payload of a point.
    pub point: u64,
}

impl Remap {
    /// Payload of the message from one rank to another.
    pub(crate) fn bytes(&self, sender: u32, receiver: u32) -> Bytes {
        let (from, to) = (self.from.points(sender), self.to.points(receiver));
        let common = |(from, to): (&Range<u64>, &Range<u64>)| {
            from.end.min(to.end).saturating_sub(from.start.max(to.start))
        };
        Bytes::new(self.point * from.iter().zip(&to).map(common).product::<u64>())
    }

    fn receive(&self, rank: u32, index: u32) -> Op {
        let from = self.from.owners(&self.to.points(rank)).other(rank, index);
        let (bytes, buffer) = (self.bytes(from, rank), Some(RECEIVE_BUFFER));
        let (from, comm, request) = (Some(RankId(from)), CommId::WORLD, RequestId(index));
        Op::Irecv { from, tag: Some(0), comm, bytes, matched: None, buffer, request }
    }

    fn send(&self, rank: u32, index: u32, request: RequestId) -> Op {
        let to = self.to.owners(&self.from.points(rank)).other(rank, index);
        let (bytes, mode, buffer) = (self.bytes(rank, to), SendMode::Standard, Some(SEND_BUFFER));
        Op::Isend { to: RankId(to), tag: 0, comm: CommId::WORLD, bytes, mode, buffer, request }
    }

    /// Number of messages that a rank receives, and that it sends.
    fn messages(&self, rank: u32) -> (u32, u32) {
        let receives = self.from.owners(&self.to.points(rank)).others(rank);
        (receives, self.to.owners(&self.from.points(rank)).others(rank))
    }
}

impl KernelPhase for Remap {
    fn length(&self, rank: u32) -> u64 {
        let (receives, sends) = self.messages(rank);
        2 * (u64::from(receives) + u64::from(sends))
    }

    fn operation(&self, rank: u32, _: u64, step: u64) -> Op {
        // Two operations for each message, which a u32 counts.
        let (step, (receives, sends)) = (step as u32, self.messages(rank));
        let sent = RequestId(receives);
        match step.checked_sub(receives) {
            None => self.receive(rank, step),
            Some(step) if step >= 2 * sends => Op::Wait { request: RequestId(step - 2 * sends) },
            Some(step) if step.is_multiple_of(2) => self.send(rank, step / 2, sent),
            Some(_) => Op::Wait { request: sent },
        }
    }

    fn count(&self, rank: u32, each: &mut dyn FnMut(Kind, u64)) {
        let (receives, sends) = self.messages(rank);
        let (receives, sends) = (u64::from(receives), u64::from(sends));
        [(Kind::Irecv, receives), (Kind::Isend(SendMode::Standard), sends), (Kind::Wait, receives + sends)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .for_each(|(kind, count)| each(kind, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn layout(points: [u64; 3], parts: [u32; 3], rule: SplitRule, order: [usize; 3]) -> GridLayout {
        let split = |dimension: usize| {
            let (points, parts) = (points[dimension], parts[dimension]);
            GridSplit { points, parts, rule }
        };
        GridLayout { splits: [split(0), split(1), split(2)], order }
    }

    proptest! {
        /// Catches points that two parts have, or none, and an owner that does not have its point.
        #[test]
        fn every_point_has_one_owner(points in 1u64..200, parts in 1u32..200, middle: bool) {
            prop_assume!(u64::from(parts) <= points);
            let rule = if middle { SplitRule::Middle } else { SplitRule::Floor };
            let split = GridSplit { points, parts, rule };
            prop_assert_eq!((split.range(0).start, split.range(parts - 1).end), (0, points));
            for part in 0..parts {
                prop_assert!(!split.range(part).is_empty());
                prop_assert!(split.range(part).all(|point| split.owner(point) == part));
            }
        }

        /// Catches a message that no rank receives or whose sizes differ at its ends, points that get lost,
        /// and an order that does not start behind the sender.
        #[test]
        fn messages_are_all_overlaps(points in prop::array::uniform3(6u64..20), pick in 0usize..4) {
            let parts = [[2, 3, 2], [1, 3, 4], [6, 2, 1], [12, 1, 1]];
            let points = points.map(|points| points.max(12));
            let from = layout(points, parts[pick], SplitRule::Middle, [2, 1, 0]);
            let to = layout(points, parts[(pick + 1) % 4], SplitRule::Floor, [0, 1, 2]);
            let remap = Remap { from, to, point: 16 };
            let mut received = BTreeMap::new();
            let mut sent = BTreeMap::new();
            for rank in 0..12u32 {
                let mut last = 0;
                for step in 0..remap.length(rank) {
                    match remap.operation(rank, 0, step) {
                        Op::Isend { to, bytes, .. } => {
                            let distance = (to.0 + 12 - rank) % 12;
                            prop_assert!(distance > last);
                            last = distance;
                            sent.insert((rank, to.0), bytes);
                        }
                        Op::Irecv { from: Some(from), bytes, .. } => {
                            received.insert((from.0, rank), bytes);
                        }
                        _ => (),
                    }
                }
                sent.insert((rank, rank), remap.bytes(rank, rank));
            }
            let all: u64 = sent.values().map(|bytes| bytes.get()).sum();
            prop_assert_eq!(all, 16 * points.iter().product::<u64>());
            sent.retain(|(from, to), _| from != to);
            prop_assert_eq!(sent, received);
        }
    }
}
