//! Rounds that redistribute a grid of points, as the transposes of a Fourier transform do.
//!
//! A redistribution is known by its messages: for a grid of points and two ways to cut it, every rank sends
//! every other one the points that it has and the other gets. It is sought among the ways that programs cut
//! grids in, and has to give every message of the recording, in order and to the byte.

use super::group::PeerMessage;
use super::program::RoundGroup;
use crate::grid::{least_edges, near_square};
use crate::part::KernelPhase as _;
use crate::phase::{GridLayout, GridSplit, Remap, RemapPhase, SplitRule};
use weft_trace::op::Op;

/// A redistribution at any number of ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Redistribution {
    /// Points along each dimension of the grid of ranks.
    pub(super) points: [u64; 3],
    /// Bytes of a point.
    point: u64,
    /// The ways to cut the grid, before and after. All make the recorded messages; the first is taken.
    shapes: Vec<[LayoutShape; 2]>,
    /// The tag of its messages.
    pub(super) tag: i32,
}

/// A way to cut a grid of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LayoutShape {
    /// A brick for each place of the grid of ranks.
    Bricks(SplitRule),
    /// Whole lines along one dimension; the ranks of the second dimension follow one another.
    Lines { along: usize, fast: usize, rule: PencilRule },
}

/// How ranks are divided between two dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PencilRule {
    /// The largest part has the shortest edges.
    LeastEdges,
    /// Nearest to a square, fewer ranks along the fast dimension.
    FewFast,
    /// The same, more ranks there.
    ManyFast,
    /// All along one.
    AllFast,
    AllSlow,
}

impl LayoutShape {
    fn all() -> impl Iterator<Item = LayoutShape> {
        let bricks = [SplitRule::Middle, SplitRule::Floor].map(LayoutShape::Bricks);
        let rules = [
            PencilRule::LeastEdges,
            PencilRule::FewFast,
            PencilRule::ManyFast,
            PencilRule::AllFast,
            PencilRule::AllSlow,
        ];
        let lines = rules.into_iter().flat_map(|rule| {
            (0..3).flat_map(move |along| {
                let fast = (0..3).filter(move |fast| *fast != along);
                fast.map(move |fast| LayoutShape::Lines { along, fast, rule })
            })
        });
        bricks.into_iter().chain(lines)
    }

    /// The layout of `points` on a grid of ranks; `None`: there are fewer points than parts.
    fn layout(self, points: [u64; 3], extents: [u32; 3]) -> Option<GridLayout> {
        let (parts, order, rule) = match self {
            LayoutShape::Bricks(rule) => (extents, [0, 1, 2], rule),
            LayoutShape::Lines { along, fast, rule } => {
                let slow = 3 - along - fast;
                let ranks = extents.iter().product();
                let [few, many] = near_square(ranks);
                let mut parts = [1; 3];
                [parts[fast], parts[slow]] = match rule {
                    PencilRule::LeastEdges => least_edges(ranks, [points[fast], points[slow]]),
                    PencilRule::FewFast => [few, many],
                    PencilRule::ManyFast => [many, few],
                    PencilRule::AllFast => [ranks, 1],
                    PencilRule::AllSlow => [1, ranks],
                };
                (parts, [fast, slow, along], SplitRule::Floor)
            }
        };
        let split = |dimension: usize| GridSplit { points: points[dimension], parts: parts[dimension], rule };
        let is_enough = (0..3).all(|dimension| u64::from(parts[dimension]) <= points[dimension]);
        is_enough.then(|| GridLayout { splits: [split(0), split(1), split(2)], order })
    }
}

/// Bytes of a point that are tried: a complex and a real number of 64 bits, and of 32.
const POINT_BYTES: [u64; 3] = [16, 8, 4];
/// Most points along a dimension of a grid that is sought.
const MAX_POINTS: u64 = 4_096;
/// Most times that the longest extent of such a grid is the shortest.
const MAX_FLATNESS: u64 = 4;

/// A round that may redistribute points, with what tells it from others.
struct SoughtRound<'a> {
    round: &'a [Option<RoundGroup>],
    extents: [u32; 3],
    tag: i32,
    /// Bytes of all messages.
    bytes: u64,
    /// Bytes that a point can have.
    sizes: Vec<u64>,
}

impl<'a> SoughtRound<'a> {
    fn new(round: &'a [Option<RoundGroup>], extents: [u32; 3]) -> Option<SoughtRound<'a>> {
        let sends = || round.iter().flatten().flat_map(|group| &group.messages.sends);
        let tag = sends().next()?.tag;
        let is_plain = sends().all(|message| message.tag == tag && message.bytes > 0);
        let bytes = sends().map(|message| message.bytes).sum();
        let unit = sends().fold(0, |unit, message| gcd(unit, message.bytes));
        let sizes = POINT_BYTES.into_iter().filter(|size| unit.is_multiple_of(*size)).collect();
        is_plain.then_some(SoughtRound { round, extents, tag, bytes, sizes })
    }

    /// The redistribution of a grid of these points.
    fn of(&self, points: [u64; 3]) -> Option<Redistribution> {
        let mut layouts: Vec<(GridLayout, Vec<LayoutShape>)> = Vec::new();
        for shape in LayoutShape::all() {
            let Some(layout) = shape.layout(points, self.extents) else { continue };
            match layouts.iter_mut().find(|(other, _)| *other == layout) {
                Some((_, shapes)) => shapes.push(shape),
                None => layouts.push((layout, vec![shape])),
            }
        }
        let layouts = &layouts;
        self.sizes.iter().find_map(|&point| {
            let pairs = layouts.iter().flat_map(|from| layouts.iter().map(move |to| (from, to)));
            let made = pairs.filter(|((one, _), (two, _))| {
                one != two && self.is_made_by(&Remap { from: *one, to: *two, point })
            });
            let both = |(from, to): (&(_, Vec<LayoutShape>), &(_, Vec<LayoutShape>))| -> Vec<_> {
                from.1.iter().flat_map(|from| to.1.iter().map(|to| [*from, *to])).collect()
            };
            let shapes: Vec<[LayoutShape; 2]> = made.flat_map(both).collect();
            (!shapes.is_empty()).then_some(Redistribution { points, point, shapes, tag: self.tag })
        })
    }

    fn is_made_by(&self, remap: &Remap) -> bool {
        // A look at one message first: nearly all candidates fail it.
        let mut groups = (0..).zip(self.round);
        let first = groups.find_map(|(rank, group)| Some((rank, group.as_ref()?.messages.sends.first()?)));
        if first.is_some_and(|(rank, message)| remap.bytes(rank, message.peer).get() != message.bytes) {
            return false;
        }
        let phase = RemapPhase::new(*remap);
        (0..).zip(self.round).all(|(rank, group)| {
            let RemapMessages { receives, sends } = messages(&phase, rank, self.tag);
            match group {
                None => receives.is_empty() && sends.is_empty(),
                Some(group) => group.messages.sends == sends && group.messages.receives == receives,
            }
        })
    }
}

impl Redistribution {
    /// The redistribution that a round makes of a grid of these points; `None`: it makes none.
    pub(super) fn of_grid(
        round: &[Option<RoundGroup>],
        extents: [u32; 3],
        points: [u64; 3],
    ) -> Option<Redistribution> {
        SoughtRound::new(round, extents)?.of(points)
    }

    /// All grids of points that a round may redistribute, the most cubic first.
    pub(super) fn grids(round: &[Option<RoundGroup>], extents: [u32; 3]) -> Vec<[u64; 3]> {
        let Some(sought) = SoughtRound::new(round, extents) else { return Vec::new() };
        // A transform's lengths have small factors. All points are those sent and those kept, of which there
        // are at most three times as many.
        let smooth: Vec<u64> = (2..=MAX_POINTS).filter(|points| has_small_factors(*points)).collect();
        let least = sought.sizes.first().map_or(0, |size| sought.bytes / size);
        let most = sought.sizes.last().map_or(0, |size| 4 * sought.bytes / size);
        let mut grids = Vec::new();
        for &x in &smooth {
            for &y in smooth.iter().filter(|y| x * **y <= most && x.max(**y) <= MAX_FLATNESS * x.min(**y)) {
                let third = smooth.iter().filter(|z| (least..=most).contains(&(x * y * **z)));
                grids.extend(
                    third.map(|z| [x, y, *z]).filter(|points| flatness(points) <= MAX_FLATNESS as f64),
                );
            }
        }
        grids.sort_by(|one, other| flatness(one).total_cmp(&flatness(other)));
        grids.retain(|points| sought.of(*points).is_some());
        grids
    }

    /// The redistribution of so many points on a grid of ranks; `None`: there are fewer points than parts.
    pub(super) fn on(&self, extents: [u32; 3], points: [u64; 3]) -> Option<Remap> {
        self.remap(self.shapes[0], extents, points)
    }

    fn remap(&self, [from, to]: [LayoutShape; 2], extents: [u32; 3], points: [u64; 3]) -> Option<Remap> {
        let (from, to) = (from.layout(points, extents)?, to.layout(points, extents)?);
        Some(Remap { from, to, point: self.point })
    }

    /// The ways to cut bricks of which one is before or after.
    pub(super) fn brick_rules(&self) -> impl Iterator<Item = SplitRule> {
        self.shapes.iter().flatten().filter_map(|shape| match shape {
            LayoutShape::Bricks(rule) => Some(*rule),
            LayoutShape::Lines { .. } => None,
        })
    }

    /// Whether all ways to cut the grid that make the recorded messages also make the same on these ranks.
    pub(super) fn is_told_on(&self, extents: [u32; 3], points: [u64; 3]) -> bool {
        let mut remaps: Vec<RemapPhase> = Vec::new();
        for remap in self.shapes.iter().filter_map(|shapes| self.remap(*shapes, extents, points)) {
            let remap = RemapPhase::new(remap);
            if !remaps.contains(&remap) {
                remaps.push(remap);
            }
        }
        let Some((first, others)) = remaps.split_first() else { return true };
        (0..extents.iter().product()).all(|rank| {
            let expected = messages(first, rank, self.tag);
            others.iter().all(|other| messages(other, rank, self.tag) == expected)
        })
    }
}

/// The longest extent by the shortest.
fn flatness(points: &[u64; 3]) -> f64 {
    let (least, most) = (points.iter().min(), points.iter().max());
    most.zip(least).map_or(1.0, |(most, least)| *most as f64 / *least as f64)
}

/// The messages of a rank in a redistribution.
#[derive(PartialEq, Eq)]
pub(super) struct RemapMessages {
    pub(super) receives: Vec<PeerMessage>,
    pub(super) sends: Vec<PeerMessage>,
}

/// The messages of a rank in a redistribution, in order.
pub(super) fn messages(remap: &RemapPhase, rank: u32, tag: i32) -> RemapMessages {
    let (mut receives, mut sends) = (Vec::new(), Vec::new());
    for step in 0..remap.length(rank) {
        match remap.operation(rank, 0, step) {
            Op::Irecv { from: Some(from), bytes, .. } => {
                receives.push(PeerMessage { peer: from.0, tag, bytes: bytes.get() });
            }
            Op::Isend { to, bytes, .. } => sends.push(PeerMessage { peer: to.0, tag, bytes: bytes.get() }),
            _ => {}
        }
    }
    RemapMessages { receives, sends }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

fn has_small_factors(mut points: u64) -> bool {
    for factor in [2, 3, 5] {
        while points.is_multiple_of(factor) {
            points /= factor;
        }
    }
    points == 1
}
