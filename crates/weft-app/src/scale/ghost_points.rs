//! Ghost points of a grid, as charges and fields on a grid have: whole planes of points beside the brick of
//! each rank.
//!
//! ```text
//!          brick of the rank below │ own points
//!    ·  ·  ·  ·  ·  ·  ·  o  o  o  │  ·  ·  ·          ghosts of the rank above the cut reach this far
//!                        ◄── reach ┘
//! ```
//! Ghosts are the planes within a fixed distance of where the box is cut, in spacings of the grid. A cut lies
//! between two points, elsewhere for each part, so that parts have one plane more or fewer. The recorded
//! planes bound the distance, and with it the planes of any other cut are known. The distance is counted in
//! cells so narrow that all distances of a cell give the same planes at all scales.

use super::learned::{LearnedProgram, RoundKind};
use super::sweep::{GhostSweep, RecordedSweep, SweepSense};
use crate::grid::RankGrid;
use crate::phase::{GridSplit, SplitRule};
use std::ops::RangeInclusive;

/// A grid of points cut into bricks, one for each place of the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PointBricks {
    /// Points along each dimension.
    pub(super) points: [u64; 3],
    pub(super) rule: SplitRule,
    /// Ranks along each dimension.
    pub(super) extents: [u32; 3],
}

impl PointBricks {
    fn split(&self, dimension: usize) -> GridSplit {
        GridSplit { points: self.points[dimension], parts: self.extents[dimension], rule: self.rule }
    }

    /// The points of each place, by dimension.
    fn lengths(&self) -> [Vec<u64>; 3] {
        [0, 1, 2].map(|dimension: usize| {
            let ranges = (0..self.extents[dimension]).map(|place| self.split(dimension).range(place));
            ranges.map(|range| range.end - range.start).collect()
        })
    }
}

/// The law of a sweep of ghost points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct GhostPoints {
    /// Bytes of a point.
    point: u64,
    sense: SweepSense,
    /// Of each dimension, the distance that ghosts reach below a cut and above it, in cells.
    reaches: [[RangeInclusive<i64>; 2]; 3],
    /// Cells in the spacing of two points, by dimension.
    resolution: [i64; 3],
}

/// The bytes of a round's messages: the product of what each dimension gives at the place of the sender.
pub(super) type PlaceFactors = [Vec<u64>; 3];

/// Most bytes of a point: a few numbers.
const MAX_POINT_BYTES: u64 = 96;
/// The side of a cut.
const SIDES: [usize; 2] = [BELOW, ABOVE];
const BELOW: usize = 0;
const ABOVE: usize = 1;

/// Planes below and above each cut, by dimension.
type GhostPlanes = [[Vec<u64>; 2]; 3];

impl GhostPoints {
    /// The law under which a sweep makes all its messages to the byte; `None`: there is none. The resolution
    /// is a multiple of the ranks along each dimension, at all scales.
    pub(super) fn learn(
        recorded: &RecordedSweep<'_>,
        bricks: &PointBricks,
        resolution: [i64; 3],
    ) -> Option<GhostPoints> {
        let steps = recorded.sweep.passes.iter().flat_map(|pass| pass.steps);
        let unit = steps.flat_map(|step| recorded.sent(step)).fold(0, super::scaled::gcd);
        // With a larger point there are fewer planes; only one size fits messages with and without ghosts.
        let sizes =
            (1..=MAX_POINT_BYTES / 4).rev().map(|size| 4 * size).filter(|size| unit.is_multiple_of(*size));
        let mut all = sizes.flat_map(|point| SweepSense::BOTH.map(|sense| (point, sense)));
        all.find_map(|(point, sense)| {
            let planes = SweptPoints { recorded, bricks, point, sense }.planes()?;
            let mut reaches = [0; 3].map(|_| [0..=0, 0..=0]);
            for dimension in 0..3 {
                for side in SIDES {
                    let split = bricks.split(dimension);
                    reaches[dimension][side] =
                        reach(&split, &planes[dimension][side], side, resolution[dimension])?;
                }
            }
            Some(GhostPoints { point, sense, reaches, resolution })
        })
    }

    /// The law of both recordings; `None`: they are not of the same law.
    pub(super) fn and(&self, other: &GhostPoints) -> Option<GhostPoints> {
        let mut both = self.clone();
        if (self.point, self.sense) != (other.point, other.sense) {
            return None;
        }
        for (one, two) in both.reaches.iter_mut().flatten().zip(other.reaches.iter().flatten()) {
            *one = *one.start().max(two.start())..=*one.end().min(two.end());
            if one.is_empty() {
                return None;
            }
        }
        Some(both)
    }

    /// The planes below and above each cut, with the middle of what the recordings leave open; and whether
    /// all of that gives the same.
    fn planes(&self, bricks: &PointBricks) -> (GhostPlanes, bool) {
        let mut is_told = true;
        let planes = [0, 1, 2].map(|dimension: usize| {
            SIDES.map(|side| {
                let split = bricks.split(dimension);
                let of = |cell: i64| cut_planes(&split, side, cell, self.resolution[dimension]);
                let range = &self.reaches[dimension][side];
                let middle = of((range.start() + range.end()) / 2);
                is_told &= range.clone().all(|cell| of(cell) == middle);
                middle.into_iter().map(|planes| planes.max(0) as u64).collect()
            })
        });
        (planes, is_told)
    }

    /// The bytes of the messages of each step of a sweep, and whether the recordings tell them; `None`: a
    /// part has fewer points than ghosts.
    pub(super) fn on(
        &self,
        sweep: &GhostSweep,
        bricks: &PointBricks,
    ) -> Option<(Vec<(usize, PlaceFactors)>, bool)> {
        let (planes, is_told) = self.planes(bricks);
        let mut factors = bricks.lengths();
        let mut steps = Vec::new();
        for pass in sweep.bare_first(self.sense) {
            let dimension = pass.dimension;
            let count = factors[dimension].len();
            for (is_up, step) in [(false, pass.steps[0]), (true, pass.steps[1])] {
                let thickness = &planes[dimension][crossed(self.sense, is_up)];
                let mut own = factors.clone();
                for place in 0..count {
                    let planes = thickness[cut(place, is_up, count)];
                    if planes == 0 || planes > factors[dimension][place] {
                        return None;
                    }
                    own[dimension][place] = self.point * planes;
                }
                steps.push((step, own));
            }
            for (place, factor) in factors[dimension].iter_mut().enumerate() {
                *factor += ghosts(&planes[dimension], place);
            }
        }
        Some((steps, is_told))
    }
}

/// The side of a cut whose ghosts a message across it has.
fn crossed(sense: SweepSense, is_up: bool) -> usize {
    match (sense, is_up) {
        (SweepSense::FromOwners, true) | (SweepSense::ToOwners, false) => BELOW,
        _ => ABOVE,
    }
}

/// The cut that a message from a place crosses, of a closed row.
fn cut(place: usize, is_up: bool, count: usize) -> usize {
    (place + usize::from(is_up)) % count
}

/// All planes of ghosts of a place.
fn ghosts(planes: &[Vec<u64>; 2], place: usize) -> u64 {
    planes[BELOW][place] + planes[ABOVE][cut(place, true, planes[ABOVE].len())]
}

/// A sweep that may be of points of a grid.
struct SweptPoints<'a> {
    recorded: &'a RecordedSweep<'a>,
    bricks: &'a PointBricks,
    /// Bytes of a point.
    point: u64,
    sense: SweepSense,
}

impl SweptPoints<'_> {
    /// The planes that the sweep's messages are of; `None`: they are of none.
    fn planes(&self) -> Option<GhostPlanes> {
        let SweptPoints { recorded, bricks, point, sense } = *self;
        let grid = RankGrid { extents: bricks.extents, periodic: true };
        let mut lengths = bricks.lengths();
        let mut planes: GhostPlanes = Default::default();
        for pass in recorded.sweep.bare_first(sense) {
            let dimension = pass.dimension;
            let count = lengths[dimension].len();
            for (is_up, step) in [(false, pass.steps[0]), (true, pass.steps[1])] {
                let mut thickness = vec![0; count];
                for (rank, bytes) in (0..).zip(recorded.sent(step)) {
                    let place = grid.place(rank).map(|place| place as usize);
                    let others = (0..3).filter(|other| *other != dimension);
                    let across: u64 = others.map(|other| lengths[other][place[other]]).product();
                    let planes = bytes / (point * across);
                    let known: &mut u64 = &mut thickness[cut(place[dimension], is_up, count)];
                    if planes * point * across != bytes || planes == 0 || (*known != 0 && *known != planes) {
                        return None;
                    }
                    *known = planes;
                }
                planes[dimension][crossed(sense, is_up)] = thickness;
            }
            for (place, length) in lengths[dimension].iter_mut().enumerate() {
                *length += ghosts(&planes[dimension], place);
            }
        }
        Some(planes)
    }
}

/// The planes on a side of each cut that a distance reaches, which is the middle of a cell.
fn cut_planes(split: &GridSplit, side: usize, cell: i64, resolution: i64) -> Vec<i64> {
    let (points, parts) = (split.points as i64, i64::from(split.parts));
    let scale = 2 * resolution * parts;
    let of = |cut: u32| {
        let first = split.range(cut).start as i64;
        let (at, reach) = (2 * resolution * points * i64::from(cut), (2 * cell + 1) * parts);
        match side {
            BELOW => first - (at - reach).div_euclid(scale),
            _ => (at + reach).div_euclid(scale) - first,
        }
    };
    (0..split.parts).map(of).collect()
}

/// The distances that reach these planes, in cells.
fn reach(split: &GridSplit, planes: &[u64], side: usize, resolution: i64) -> Option<RangeInclusive<i64>> {
    let most = planes.iter().max().copied().unwrap_or(0) as i64;
    let is_one = |cell: &i64| {
        let made = cut_planes(split, side, *cell, resolution);
        made.iter().zip(planes).all(|(made, planes)| *made == *planes as i64)
    };
    let mut cells = (-2 * resolution..(most + 2) * resolution).filter(is_one);
    let first = cells.next()?;
    Some(first..=cells.next_back().unwrap_or(first))
}

/// The grids of points that a program redistributes from bricks, or into them, on these ranks.
pub(super) fn bricks(learned: &LearnedProgram) -> Vec<PointBricks> {
    let mut all = Vec::new();
    for round in learned.rounds.iter().flatten() {
        let RoundKind::Redistribution(found) = &round.kind else { continue };
        for rule in found.brick_rules() {
            let bricks = PointBricks { points: found.points, rule, extents: learned.extents };
            if !all.contains(&bricks) {
                all.push(bricks);
            }
        }
    }
    all
}
