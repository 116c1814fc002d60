//! Rounds in which every rank exchanges messages with the ranks next to it on a grid.

use super::program::RoundGroup;
use crate::grid::RankGrid;
use std::collections::{BTreeMap, BTreeSet};

/// A direction in which messages go, or from which they come, and their tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ShiftHeading {
    /// The way to the other rank, at most one step in each dimension.
    pub(super) offset: [i32; 3],
    /// The tag of the messages.
    pub(super) tag: i32,
}

impl ShiftHeading {
    /// The heading of the same message at its other end.
    pub(super) fn back(self) -> ShiftHeading {
        ShiftHeading { offset: self.offset.map(|step| -step), ..self }
    }
}

/// An exchange: the headings of a rank that has all neighbours, in the order of its operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NeighbourShift {
    pub(super) receives: Vec<ShiftHeading>,
    pub(super) sends: Vec<ShiftHeading>,
    /// Whether the grid closes upon itself.
    pub(super) periodic: bool,
    /// The dimensions along which a direction is not known: two ranks, and one message.
    pub(super) unknown: [bool; 3],
}

/// A rank's peers and tags in a list of messages.
pub(super) type PeerTags = Vec<(u32, i32)>;

/// The peers and tags of each rank that has messages: of receives and of sends.
pub(super) type RoundPattern = Vec<Option<(PeerTags, PeerTags)>>;

/// Who exchanges with whom in a round.
pub(super) fn pattern(round: &[Option<RoundGroup>]) -> RoundPattern {
    let peers =
        |list: &[super::group::PeerMessage]| list.iter().map(|message| (message.peer, message.tag)).collect();
    let of = |group: &RoundGroup| (peers(&group.messages.receives), peers(&group.messages.sends));
    round.iter().map(|group| group.as_ref().map(of)).collect()
}

/// The exchange on a grid of these extents that has this pattern; `None`: there is none.
///
/// Along a dimension of two ranks, one message of each can be both an exchange where the grid ends and one of
/// the two shifts of a closed grid. A round of one message is taken for a shift, unless there are two ranks.
pub(super) fn explain(pattern: &RoundPattern, extents: [u32; 3]) -> Option<NeighbourShift> {
    let closed = closed_exchange(pattern, extents);
    let is_shift = |exchange: &NeighbourShift| {
        exchange.sends.len() == 1 && exchange.unknown != [false; 3] && pattern.len() > 2
    };
    match closed {
        Some(closed) if is_shift(&closed) => Some(closed),
        closed => open_exchange(pattern, extents).or(closed),
    }
}

/// The way from a rank to another where the grid does not close; `None`: they do not touch.
fn way(grid: &RankGrid, from: u32, to: u32) -> Option<[i32; 3]> {
    let (here, there) = (grid.place(from), grid.place(to));
    let mut offset = [0; 3];
    for dimension in 0..3 {
        let mut step = i64::from(there[dimension]) - i64::from(here[dimension]);
        let extent = i64::from(grid.extents[dimension]);
        if grid.periodic && extent > 1 {
            step = step.rem_euclid(extent);
            step = if 2 * step > extent { step - extent } else { step };
        }
        offset[dimension] = i32::try_from(step).ok().filter(|step| step.abs() <= 1)?;
    }
    (offset != [0; 3]).then_some(offset)
}

/// A list of each rank, as headings.
fn headings<'a>(
    grid: &RankGrid,
    lists: impl Iterator<Item = (u32, &'a PeerTags)>,
) -> Option<Vec<Vec<ShiftHeading>>> {
    let of = |(rank, list): (u32, &PeerTags)| -> Option<Vec<ShiftHeading>> {
        list.iter().map(|&(peer, tag)| Some(ShiftHeading { offset: way(grid, rank, peer)?, tag })).collect()
    };
    lists.map(of).collect()
}

const NOTHING: &PeerTags = &Vec::new();

fn lists(pattern: &RoundPattern, sends: bool) -> impl Iterator<Item = (u32, &PeerTags)> {
    (0..).zip(pattern).map(move |(rank, group)| match group {
        Some((_, list)) if sends => (rank, list),
        Some((list, _)) => (rank, list),
        None => (rank, NOTHING),
    })
}

fn open_exchange(pattern: &RoundPattern, extents: [u32; 3]) -> Option<NeighbourShift> {
    let grid = RankGrid { extents, periodic: false };
    let [receives, sends] = [false, true].map(|sends| {
        let ranks = headings(&grid, lists(pattern, sends))?;
        let all: BTreeSet<ShiftHeading> = ranks.iter().flatten().copied().collect();
        // A rank has a message in each direction in which there is a rank, and once.
        let is_whole = (0..).zip(&ranks).all(|(rank, own)| {
            let there = all.iter().filter(|heading| grid.shifted(rank, heading.offset).is_some());
            there.clone().count() == own.len() && there.into_iter().all(|heading| own.contains(heading))
        });
        // Two messages to a rank where there are two along the dimension are one for each direction.
        let is_closed = all.iter().any(|one| {
            let is_alone = (0..3).all(|dimension| one.offset[dimension] == 0 || extents[dimension] == 2);
            is_alone && all.iter().any(|other| other.offset == one.offset && other.tag != one.tag)
        });
        (is_whole && !is_closed).then(|| in_order(&ranks, all))
    });
    finish(NeighbourShift { receives: receives?, sends: sends?, periodic: false, unknown: [false; 3] })
}

fn closed_exchange(pattern: &RoundPattern, extents: [u32; 3]) -> Option<NeighbourShift> {
    let grid = RankGrid { extents, periodic: true };
    let mut unknown = [false; 3];
    let mut one = |sends: bool| {
        let ranks = headings(&grid, lists(pattern, sends))?;
        let first = ranks.first()?;
        let sorted = |list: &[ShiftHeading]| {
            let mut list: Vec<_> = list.to_vec();
            list.sort_unstable();
            list
        };
        let is_same = ranks
            .iter()
            .all(|own| sorted(own).iter().map(|h| h.offset).eq(sorted(first).iter().map(|h| h.offset)));
        is_same.then(|| signed(first, extents, sends, &mut unknown))?
    };
    let (receives, sends) = (one(false)?, one(true)?);
    finish(NeighbourShift { receives, sends, periodic: true, unknown })
}

/// Along a dimension of two ranks, both directions lead to the same rank: of several messages to it, the
/// first goes down. One alone is taken to go down, and to come from above.
fn signed(
    list: &[ShiftHeading],
    extents: [u32; 3],
    sends: bool,
    unknown: &mut [bool; 3],
) -> Option<Vec<ShiftHeading>> {
    let mut seen: BTreeMap<[i32; 3], usize> = BTreeMap::new();
    let several = |offset: [i32; 3]| list.iter().filter(|heading| heading.offset == offset).count();
    let sign = |heading: &ShiftHeading| {
        let offset = heading.offset;
        let both: Vec<usize> = (0..3).filter(|&d| offset[d] != 0 && extents[d] == 2).collect();
        let (count, number) = (several(offset), seen.entry(offset).or_default());
        let mut signed = offset;
        match count {
            1 => both.iter().for_each(|&dimension| {
                signed[dimension] = if sends { -1 } else { 1 };
                unknown[dimension] = true;
            }),
            count if count == 1 << both.len() => {
                for (bit, &dimension) in both.iter().enumerate() {
                    signed[dimension] = if *number >> bit & 1 == 0 { -1 } else { 1 };
                }
            }
            _ => return None,
        }
        *number += 1;
        Some(ShiftHeading { offset: signed, ..*heading })
    };
    list.iter().map(sign).collect()
}

/// The exchange, if all that is sent one way is received the other way.
fn finish(exchange: NeighbourShift) -> Option<NeighbourShift> {
    let sent: BTreeSet<ShiftHeading> = exchange.sends.iter().copied().collect();
    let received: BTreeSet<ShiftHeading> = exchange.receives.iter().map(|heading| heading.back()).collect();
    (sent == received && sent.len() == exchange.sends.len()).then_some(exchange)
}

/// The headings in an order that the list of each rank has: by dimensions where one fits, as loops over
/// directions give it.
fn in_order(ranks: &[Vec<ShiftHeading>], all: BTreeSet<ShiftHeading>) -> Vec<ShiftHeading> {
    let mut all: Vec<ShiftHeading> = all.into_iter().collect();
    let orders = [[2, 1, 0], [2, 0, 1], [1, 2, 0], [1, 0, 2], [0, 1, 2], [0, 2, 1]];
    for order in orders {
        for signs in 0..8 {
            let key = |heading: &ShiftHeading| {
                order.map(|dimension: usize| {
                    heading.offset[dimension] * if signs >> dimension & 1 == 0 { 1 } else { -1 }
                })
            };
            if ranks.iter().all(|own| own.is_sorted_by_key(key)) {
                all.sort_by_key(key);
                return all;
            }
        }
    }
    // The order of the rank with most messages; others go behind.
    let most = ranks.iter().max_by_key(|own| own.len()).map_or(&[][..], Vec::as_slice);
    all.sort_by_key(|heading| most.iter().position(|other| other == heading).unwrap_or(most.len()));
    all
}
