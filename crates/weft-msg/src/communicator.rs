//! Communicators: who their members are, and how many collectives they have begun.
//!
//! Members are kept as the ranges that the trace gives, never as a list; the world needs none. Ranks
//! in operations and envelopes are world ranks; collectives count members from 0.

use crate::error::MsgError;
use serde::{Deserialize, Serialize};
use weft_trace::op::{CommId, RankRange};
use weft_units::RankId;

/// The members of a communicator, in order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Members {
    /// All ranks of the world.
    World,
    /// One range, as rows and columns of process grids are.
    Range(RankRange),
    /// Several ranges, each with the number of members up to its end.
    Ranges(Box<[(RankRange, u32)]>),
}

/// One communicator, as one of its members sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Communicator {
    id: CommId,
    members: Members,
    size: u32,
    /// The number of the rank itself among the members.
    me: u32,
    /// The number of collectives that the rank has begun here: the tag of the next one's messages.
    collectives: u32,
}

/// The members of a communicator, in order, as one of them sees it.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a>(&'a Communicator);

impl Group<'_> {
    /// The communicator.
    pub fn comm(&self) -> CommId {
        self.0.id
    }

    /// The number of members.
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// The number of the rank itself.
    pub fn me(&self) -> u32 {
        self.0.me
    }

    /// The world rank of member `member`, which must be below the size.
    pub fn rank(&self, member: u32) -> RankId {
        self.0.members.rank(member)
    }

    /// The world ranks of all members, in order.
    pub fn ranks(&self) -> impl Iterator<Item = RankId> + '_ {
        (0..self.size()).map(|member| self.rank(member))
    }
}

/// A place in a rank's table of communicators.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct CommIndex(u32);

/// The communicators of one rank. The first is the world.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Communicators {
    table: Vec<Communicator>,
}

impl Communicators {
    /// A communicator exists from here on. Errors where its members cannot be, or do not include
    /// `rank`.
    pub fn create(
        &mut self,
        comm: CommId,
        ranges: &[RankRange],
        rank: RankId,
        ranks: u32,
    ) -> Result<(), MsgError> {
        let bad = |why: String| MsgError::BadCommunicator { comm, why };
        self.world(rank, ranks);
        if self.table.iter().any(|known| known.id == comm) {
            return Err(bad("its number is in use".to_owned()));
        }
        let mut total = 0u64;
        for range in ranges.iter().filter(|range| range.count > 0) {
            let last = i64::from(range.first) + i64::from(range.stride) * i64::from(range.count - 1);
            let outside =
                [i64::from(range.first), last].into_iter().find(|end| !(0..i64::from(ranks)).contains(end));
            if let Some(end) = outside {
                return Err(bad(format!("its member {end} is none of the {ranks} ranks")));
            }
            total += u64::from(range.count);
            if total > u64::from(ranks) {
                return Err(bad(format!("it has more members than the {ranks} ranks of the program")));
            }
        }
        if let Some(twice) = repeated(ranges, ranks) {
            return Err(bad(format!("rank {twice} is a member twice")));
        }
        let mut end = 0;
        let ends = ranges.iter().filter(|range| range.count > 0).map(|range| {
            end += range.count;
            (*range, end)
        });
        let ends: Box<[_]> = ends.collect();
        let members = match *ends {
            [(range, _)] => Members::Range(range),
            _ => Members::Ranges(ends),
        };
        let me = members.find(rank).ok_or_else(|| bad(format!("rank {rank} is not among its members")))?;
        self.table.push(Communicator { id: comm, members, size: end, me, collectives: 0 });
        Ok(())
    }

    /// The place of `comm` in the table.
    pub fn index(&mut self, comm: CommId, rank: RankId, ranks: u32) -> Result<CommIndex, MsgError> {
        self.world(rank, ranks);
        let place = self.table.iter().position(|known| known.id == comm);
        place.map(|place| CommIndex(place as u32)).ok_or(MsgError::UnknownCommunicator { rank, comm })
    }

    /// Whether `comm` exists and `rank` belongs to it.
    pub fn contains(&self, comm: CommId, rank: RankId, ranks: u32) -> Option<bool> {
        match self.table.iter().find(|known| known.id == comm) {
            Some(known) => Some(known.members.find(rank).is_some_and(|member| member < known.size)),
            None => (comm == CommId::WORLD).then_some(rank.0 < ranks),
        }
    }

    /// The number of members.
    pub fn size(&self, comm: CommIndex) -> u32 {
        self.table[comm.0 as usize].size
    }

    /// The rank's own number among them.
    pub fn me(&self, comm: CommIndex) -> u32 {
        self.table[comm.0 as usize].me
    }

    /// The communicator's id.
    pub fn id(&self, comm: CommIndex) -> CommId {
        self.table[comm.0 as usize].id
    }

    /// The world rank of member `member`.
    pub fn rank(&self, comm: CommIndex, member: u32) -> RankId {
        self.table[comm.0 as usize].members.rank(member)
    }

    /// The number of world rank `rank` among the members.
    pub fn member(&self, comm: CommIndex, rank: RankId) -> Option<u32> {
        let known = &self.table[comm.0 as usize];
        known.members.find(rank).filter(|member| *member < known.size)
    }

    /// The members, for an interface.
    pub fn group(&self, comm: CommIndex) -> Group<'_> {
        Group(&self.table[comm.0 as usize])
    }

    /// The number of collectives that have begun.
    pub fn begun(&self, comm: CommIndex) -> u32 {
        self.table[comm.0 as usize].collectives
    }

    /// A collective begins: its number, the same for all members since all begin them in one order.
    pub fn begin_collective(&mut self, comm: CommIndex) -> i32 {
        let count = &mut self.table[comm.0 as usize].collectives;
        let number = *count;
        *count = count.wrapping_add(1);
        number as i32
    }

    /// The world is entered with the first communicator that is asked for: idle ranks own no memory.
    fn world(&mut self, rank: RankId, ranks: u32) {
        if self.table.is_empty() {
            let id = CommId::WORLD;
            self.table.reserve_exact(1);
            self.table.push(Communicator {
                id,
                members: Members::World,
                size: ranks,
                me: rank.0,
                collectives: 0,
            });
        }
    }
}

impl Members {
    fn rank(&self, member: u32) -> RankId {
        match self {
            Members::World => RankId(member),
            Members::Range(range) => rank_in(range, member),
            Members::Ranges(ranges) => {
                let place = ranges.partition_point(|(_, end)| *end <= member);
                let (range, end) = &ranges[place];
                rank_in(range, member - (end - range.count))
            }
        }
    }

    fn find(&self, rank: RankId) -> Option<u32> {
        match self {
            Members::World => Some(rank.0),
            Members::Range(range) => place_in(range, rank),
            Members::Ranges(ranges) => ranges
                .iter()
                .find_map(|(range, end)| place_in(range, rank).map(|place| end - range.count + place)),
        }
    }
}

fn rank_in(range: &RankRange, place: u32) -> RankId {
    // Creation has checked that both ends, and so all in between, are ranks.
    RankId((i64::from(range.first) + i64::from(range.stride) * i64::from(place)) as u32)
}

fn place_in(range: &RankRange, rank: RankId) -> Option<u32> {
    let distance = i64::from(rank.0) - i64::from(range.first);
    let place = match i64::from(range.stride) {
        0 => (distance == 0).then_some(0)?,
        stride => (distance % stride == 0).then(|| distance / stride)?,
    };
    u32::try_from(place).ok().filter(|place| *place < range.count)
}

/// A rank that the ranges, all within `0..ranks`, hold twice.
fn repeated(ranges: &[RankRange], ranks: u32) -> Option<RankId> {
    if let [range] = ranges {
        return (range.stride == 0 && range.count > 1).then_some(RankId(range.first));
    }
    let mut seen = vec![0u64; (ranks as usize).div_ceil(64)];
    let all = ranges.iter().flat_map(|range| (0..range.count).map(|place| rank_in(range, place)));
    all.into_iter().find(|rank| {
        let (word, bit) = (&mut seen[rank.index() / 64], 1u64 << (rank.0 % 64));
        let twice = *word & bit != 0;
        *word |= bit;
        twice
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMM: CommId = CommId(5);

    fn range(first: u32, stride: i32, count: u32) -> RankRange {
        RankRange { first, stride, count }
    }

    #[test]
    fn members_that_cannot_be_are_refused() {
        let error = |ranges: &[RankRange]| {
            Communicators::default().create(COMM, ranges, RankId(0), 8).unwrap_err().to_string()
        };
        assert!(error(&[range(0, 1, 9)]).contains("member 8 is none of the 8 ranks"));
        assert!(error(&[range(0, -1, 2)]).contains("member -1"));
        assert!(error(&[range(0, i32::MAX, u32::MAX)]).contains("none of the 8 ranks"));
        assert!(error(&[range(0, 0, u32::MAX)]).contains("more members"));
        assert!(error(&[range(0, 0, 2)]).contains("rank 0 is a member twice"));
        assert!(error(&[range(0, 2, 4), range(4, 1, 1)]).contains("rank 4 is a member twice"));
        assert!(error(&[range(1, 1, 3)]).contains("rank 0 is not among its members"));
        assert!(error(&[]).contains("rank 0 is not among its members"));
        let mut communicators = Communicators::default();
        let again = communicators.create(CommId::WORLD, &[range(0, 1, 1)], RankId(0), 8);
        assert!(again.unwrap_err().to_string().contains("in use"));
    }

    proptest! {
        /// Catches a wrong translation either way, against the members written out.
        #[test]
        fn members_and_ranks_translate_both_ways(
            (first, stride, count) in (0u32..20, -3i32..4, 1u32..6),
            (second, others) in (60u32..70, 1u32..20),
        ) {
            prop_assume!(stride != 0 && i64::from(first) + i64::from(stride) * i64::from(count - 1) >= 0);
            let ranges = [range(first, stride, count), range(0, 1, 0), range(second, 1, others)];
            let expected: Vec<u32> = (0..count)
                .map(|i| (first as i32 + stride * i as i32) as u32)
                .chain(second..second + others)
                .collect();
            for (me, rank) in expected.iter().enumerate() {
                let mut communicators = Communicators::default();
                communicators.create(COMM, &ranges, RankId(*rank), 100).unwrap();
                let comm = communicators.index(COMM, RankId(*rank), 100).unwrap();
                prop_assert_eq!(communicators.me(comm), me as u32);
                prop_assert_eq!(communicators.size(comm), expected.len() as u32);
                for world in 0..100 {
                    let member = expected.iter().position(|m| *m == world).map(|m| m as u32);
                    prop_assert_eq!(communicators.member(comm, RankId(world)), member);
                    prop_assert_eq!(communicators.contains(COMM, RankId(world), 100), Some(member.is_some()));
                    if let Some(member) = member {
                        prop_assert_eq!(communicators.rank(comm, member), RankId(world));
                    }
                }
            }
        }
    }
}
