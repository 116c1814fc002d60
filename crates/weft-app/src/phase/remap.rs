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
    /// The part that a rank has along each dimension.
    fn place(&self, rank: u32) -> [u32; 3] {
        let mut rest = rank;
        let mut place = [0; 3];
        for dimension in self.order {
            let parts = self.splits[dimension].parts;
            (place[dimension], rest) = (rest % parts, rest / parts);
        }
        place
    }

    /// The rank that has these parts.
    fn rank(&self, place: [u32; 3]) -> u32 {
        let of = |rank, dimension: usize| rank * self.splits[dimension].parts + place[dimension];
        self.order.into_iter().rev().fold(0, of)
    }

    /// The points of a rank.
    fn points(&self, rank: u32) -> [Range<u64>; 3] {
        let place = self.place(rank);
        [0, 1, 2].map(|dimension| self.splits[dimension].range(place[dimension]))
    }
}

/// Ranks that are a box of parts of a layout, in the order of their numbers.
struct Owners<'a> {
    layout: &'a GridLayout,
    parts: [&'a Range<u32>; 3],
}

impl Owners<'_> {
    fn count(&self) -> u32 {
        let [x, y, z] = self.parts;
        (x.end - x.start) * (y.end - y.start) * (z.end - z.start)
    }

    /// The parts of number `index` of them.
    fn place(&self, mut index: u32) -> [u32; 3] {
        let mut place = [0; 3];
        for dimension in self.layout.order {
            let parts = self.parts[dimension];
            let length = parts.end - parts.start;
            place[dimension] = parts.start + index % length;
            index /= length;
        }
        place
    }

    /// Number of them below the rank at a place of the layout, and whether it is one of them.
    fn below(&self, place: [u32; 3]) -> (u32, bool) {
        let (mut below, mut alike) = (0, self.count());
        for dimension in self.layout.order.into_iter().rev() {
            let (parts, part) = (self.parts[dimension], place[dimension]);
            // Those that are alike in the dimensions before, for each part of this one.
            alike /= parts.end - parts.start;
            below += alike * (part.clamp(parts.start, parts.end) - parts.start);
            if !parts.contains(&part) {
                return (below, false);
            }
        }
        (below, true)
    }
}

/// The ranks with which a rank exchanges messages of one direction: all owners of its points but itself, from
/// the next after it on, the first after the last.
struct Peers<'a> {
    owners: Owners<'a>,
    /// Owners up to the rank, itself included, and whether it is one.
    before: u32,
    is_owner: bool,
}

impl<'a> Peers<'a> {
    fn new(rank: u32, owners: Owners<'a>) -> Peers<'a> {
        let (below, is_owner) = owners.below(owners.layout.place(rank));
        Peers { owners, before: below + u32::from(is_owner), is_owner }
    }

    fn count(&self) -> u32 {
        self.owners.count() - u32::from(self.is_owner)
    }

    /// The place of number `index` of them.
    fn place(&self, index: u32) -> [u32; 3] {
        self.owners.place((self.before + index) % self.owners.count())
    }
}

/// A redistribution.
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
        Bytes::new(self.point * from.iter().zip(&to).map(common).product::<u64>())
    }
}

/// Number of points that two parts have in common.
fn common((one, other): (&Range<u64>, &Range<u64>)) -> u64 {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

/// A part of a dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PartOverlap {
    points: Range<u64>,
    /// The parts of the other layout that have any of them.
    others: Range<u32>,
}

/// The parts of each dimension of a layout, and their overlaps with those of another.
fn overlaps(layout: &GridLayout, other: &GridLayout) -> [Vec<PartOverlap>; 3] {
    [0, 1, 2].map(|dimension| {
        let (split, other) = (&layout.splits[dimension], &other.splits[dimension]);
        let overlap = |part| {
            let points = split.range(part);
            let others = other.owner(points.start)..other.owner(points.end - 1) + 1;
            PartOverlap { points, others }
        };
        (0..split.parts).map(overlap).collect()
    })
}

/// The parts of the other layout that overlap those at a place.
fn others(of: &[Vec<PartOverlap>; 3], [x, y, z]: [u32; 3]) -> [&Range<u32>; 3] {
    [&of[0][x as usize].others, &of[1][y as usize].others, &of[2][z as usize].others]
}

/// The messages of a redistribution: receives from all, `MPI_Send` to each from the next rank on, then a wait
/// for each receive. What parts have in common is worked out once, and not for each message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemapPhase {
    remap: Remap,
    /// Parts of the layout before, and of that afterwards.
    from: [Vec<PartOverlap>; 3],
    to: [Vec<PartOverlap>; 3],
}

impl RemapPhase {
    /// The messages of this redistribution.
    pub fn new(remap: Remap) -> RemapPhase {
        let (from, to) = (overlaps(&remap.from, &remap.to), overlaps(&remap.to, &remap.from));
        RemapPhase { remap, from, to }
    }

    /// The ranks that send to a rank.
    fn senders(&self, rank: u32) -> Peers<'_> {
        let parts = others(&self.to, self.remap.to.place(rank));
        Peers::new(rank, Owners { layout: &self.remap.from, parts })
    }

    /// The ranks to which a rank sends.
    fn receivers(&self, rank: u32) -> Peers<'_> {
        let parts = others(&self.from, self.remap.from.place(rank));
        Peers::new(rank, Owners { layout: &self.remap.to, parts })
    }

    /// Payload of the message from one place to another.
    fn bytes(&self, sender: [u32; 3], receiver: [u32; 3]) -> Bytes {
        let points = |dimension: usize| {
            let from = &self.from[dimension][sender[dimension] as usize];
            common((&from.points, &self.to[dimension][receiver[dimension] as usize].points))
        };
        Bytes::new(self.remap.point * points(0) * points(1) * points(2))
    }

    fn receive(&self, rank: u32, sender: [u32; 3], request: RequestId) -> Op {
        let from = Some(RankId(self.remap.from.rank(sender)));
        let (bytes, buffer) = (self.bytes(sender, self.remap.to.place(rank)), Some(RECEIVE_BUFFER));
        Op::Irecv { from, tag: Some(0), comm: CommId::WORLD, bytes, matched: None, buffer, request }
    }

    fn send(&self, rank: u32, receiver: [u32; 3], request: RequestId) -> Op {
        let to = RankId(self.remap.to.rank(receiver));
        let (bytes, mode) = (self.bytes(self.remap.from.place(rank), receiver), SendMode::Standard);
        Op::Isend { to, tag: 0, comm: CommId::WORLD, bytes, mode, buffer: Some(SEND_BUFFER), request }
    }
}

impl KernelPhase for RemapPhase {
    fn length(&self, rank: u32) -> u64 {
        2 * (u64::from(self.senders(rank).count()) + u64::from(self.receivers(rank).count()))
    }

    fn operation(&self, rank: u32, _: u64, step: u64) -> Op {
        // Two operations for each message, which a u32 counts.
        let (step, senders) = (step as u32, self.senders(rank));
        let receives = senders.count();
        let Some(step) = step.checked_sub(receives) else {
            return self.receive(rank, senders.place(step), RequestId(step));
        };
        let receivers = self.receivers(rank);
        match step.checked_sub(2 * receivers.count()) {
            Some(received) => Op::Wait { request: RequestId(received) },
            None if step.is_multiple_of(2) => self.send(rank, receivers.place(step / 2), RequestId(receives)),
            None => Op::Wait { request: RequestId(receives) },
        }
    }

    fn count(&self, rank: u32, each: &mut dyn FnMut(Kind, u64)) {
        let (receives, sends) = (self.senders(rank).count(), self.receivers(rank).count());
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
            let phase = RemapPhase::new(remap);
            let mut received = BTreeMap::new();
            let mut sent = BTreeMap::new();
            for rank in 0..12u32 {
                let mut last = 0;
                for step in 0..phase.length(rank) {
                    match phase.operation(rank, 0, step) {
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
