//! Messages and collectives by communicator.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use weft_trace::op::{CollectiveSizes, CommId, RankRange};
use weft_units::Bytes;

/// Communicators with a row each. What happens in others is counted together.
const MAX_ROWS: usize = 10_000;

/// A communicator, and what its members did in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CommunicatorStats {
    /// The world rank of its first member: with `number` the id of a communicator.
    pub first_rank: u32,
    /// The number that it has among the communicators of that rank; the world is 0 of rank 0.
    pub number: u32,
    /// The members, compared with the world's. A trace has them, and not the call that made the communicator.
    pub members: MemberKind,
    /// Number of members.
    pub ranks: u64,
    /// The counts.
    #[serde(flatten)]
    pub totals: CommunicatorTotals,
}

/// The members of a communicator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberKind {
    /// The world communicator itself.
    World,
    /// The same ranks in the same order, as MPI_Comm_dup makes it.
    LikeWorld,
    /// All ranks in another order.
    AllRanks,
    /// Some of the ranks, as MPI_Comm_split makes them.
    SomeRanks,
    /// One rank.
    OneRank,
    /// No operation says who they are.
    Unknown,
}

impl MemberKind {
    /// The name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            MemberKind::World => "world",
            MemberKind::LikeWorld => "like-world",
            MemberKind::AllRanks => "all-ranks",
            MemberKind::SomeRanks => "some-ranks",
            MemberKind::OneRank => "one-rank",
            MemberKind::Unknown => "unknown",
        }
    }

    fn of(members: &[RankRange], ranks: u32) -> MemberKind {
        let is_like_world = |(range, next): (&RankRange, &mut u64)| {
            let follows = u64::from(range.first) == *next && (range.stride == 1 || range.count == 1);
            *next += u64::from(range.count);
            follows
        };
        let mut next = 0;
        let in_order = members.iter().all(|range| is_like_world((range, &mut next)));
        match (size(members), u64::from(ranks)) {
            (all, world) if all == world && in_order => MemberKind::LikeWorld,
            (1, _) => MemberKind::OneRank,
            (all, world) if all == world => MemberKind::AllRanks,
            _ => MemberKind::SomeRanks,
        }
    }
}

fn size(members: &[RankRange]) -> u64 {
    members.iter().map(|range| u64::from(range.count)).sum()
}

/// The sums over all members of a communicator, or of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct CommunicatorTotals {
    pub messages: u64,
    pub message_bytes: u64,
    pub collective_calls: u64,
    pub collective_send_bytes: u64,
    pub collective_receive_bytes: u64,
}

impl CommunicatorTotals {
    pub(super) fn message(&mut self, bytes: Bytes) {
        self.messages += 1;
        self.message_bytes = self.message_bytes.saturating_add(bytes.get());
    }

    pub(super) fn collective(&mut self, sizes: &CollectiveSizes) {
        self.collective_calls += 1;
        self.collective_send_bytes = self.collective_send_bytes.saturating_add(sizes.send.get());
        self.collective_receive_bytes = self.collective_receive_bytes.saturating_add(sizes.receive.get());
    }
}

/// The communicators so far.
#[derive(Debug)]
pub(super) struct CommunicatorCount {
    ranks: u32,
    rows: BTreeMap<CommId, CommunicatorStats>,
    pub(super) others: CommunicatorTotals,
    /// All that were made.
    made: BTreeSet<CommId>,
}

impl CommunicatorCount {
    pub(super) fn new(ranks: u32) -> CommunicatorCount {
        let mut count = CommunicatorCount {
            ranks,
            rows: BTreeMap::new(),
            others: CommunicatorTotals::default(),
            made: BTreeSet::new(),
        };
        if let Some(world) = count.row(CommId::WORLD) {
            (world.members, world.ranks) = (MemberKind::World, u64::from(ranks));
        }
        count
    }

    /// A communicator is made.
    pub(super) fn make(&mut self, id: CommId, members: &[RankRange]) {
        self.made.insert(id);
        let of = MemberKind::of(members, self.ranks);
        if let Some(row) = self.row(id).filter(|row| row.members != MemberKind::World) {
            (row.members, row.ranks) = (of, size(members));
        }
    }

    /// The sums of a communicator.
    pub(super) fn totals(&mut self, id: CommId) -> &mut CommunicatorTotals {
        let has_row = self.rows.contains_key(&id) || self.rows.len() < MAX_ROWS;
        if has_row {
            &mut self.rows.entry(id).or_insert_with(|| new_row(id)).totals
        } else {
            &mut self.others
        }
    }

    /// Number of those that were made, besides the world.
    pub(super) fn made(&self) -> u64 {
        self.made.len() as u64
    }

    pub(super) fn into_rows(self) -> Vec<CommunicatorStats> {
        self.rows.into_values().collect()
    }

    /// The row of a communicator; `None`: it has none, as there are too many.
    fn row(&mut self, id: CommId) -> Option<&mut CommunicatorStats> {
        let has_row = self.rows.contains_key(&id) || self.rows.len() < MAX_ROWS;
        has_row.then(|| self.rows.entry(id).or_insert_with(|| new_row(id)))
    }
}

fn new_row(id: CommId) -> CommunicatorStats {
    CommunicatorStats {
        first_rank: (id.0 >> 32) as u32,
        number: id.0 as u32,
        members: MemberKind::Unknown,
        ranks: 0,
        totals: CommunicatorTotals::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches members in another order that are taken for the world's, and a world of two ranges.
    #[test]
    fn members_are_compared_with_the_world() {
        let range = |first, stride, count| RankRange { first, stride, count };
        let cases: [(&[RankRange], MemberKind); 6] = [
            (&[range(0, 1, 4)], MemberKind::LikeWorld),
            (&[range(0, 9, 1), range(1, 1, 3)], MemberKind::LikeWorld),
            (&[range(3, -1, 4)], MemberKind::AllRanks),
            (&[range(0, 2, 2), range(1, 2, 2)], MemberKind::AllRanks),
            (&[range(0, 1, 3)], MemberKind::SomeRanks),
            (&[range(2, 1, 1)], MemberKind::OneRank),
        ];
        for (members, expected) in cases {
            assert_eq!(MemberKind::of(members, 4), expected, "{members:?}");
        }
    }

    /// Catches memory that grows with the number of communicators, and sums that are lost there.
    #[test]
    fn too_many_communicators_are_counted_together() {
        let mut count = CommunicatorCount::new(2);
        for number in 1..=MAX_ROWS as u64 + 4 {
            count.make(CommId(number), &[RankRange { first: 0, stride: 1, count: 2 }]);
            count.totals(CommId(number)).message(Bytes::new(10));
        }
        // One row is the world's.
        assert_eq!((count.made(), count.others.messages), (MAX_ROWS as u64 + 4, 5));
        assert_eq!(count.into_rows().len(), MAX_ROWS);
    }
}
