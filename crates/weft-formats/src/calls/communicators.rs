//! The members of the communicators of a program, found out from what all ranks did to make them.
//!
//! A rank's trace has the color and the key that it gave to MPI_Comm_split, not who else gave that color. The
//! creations on a communicator are collective: the first of one member is the first of each, and so on. So
//! they are gone through in step, from the world downwards.

use super::call::Creation;
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_trace::op::{CommId, RankRange};
use weft_units::RankId;

/// The number of the world among a rank's communicators.
pub(crate) const WORLD: usize = 0;

/// The number of MPI_COMM_SELF.
pub(crate) const OWN: usize = 1;

/// The number of the first that the program makes.
pub(crate) const FIRST_MADE: usize = 2;

/// A creation in which a rank took part. They are numbered from [`FIRST_MADE`] on.
#[derive(Clone, Debug)]
pub(crate) struct Created {
    /// The number of the communicator that it is made of.
    pub(crate) from: usize,
    pub(crate) how: Creation,
    /// Whether the rank is a member of the new one.
    pub(crate) member: bool,
}

/// A communicator whose members are known.
#[derive(Clone, Debug)]
pub(crate) struct RankedMembers {
    pub(crate) id: CommId,
    /// Their world ranks, in order.
    pub(crate) members: Arc<Vec<u32>>,
    ranges: Vec<RankRange>,
}

impl RankedMembers {
    fn new(first_number: usize, members: Vec<u32>) -> Arc<RankedMembers> {
        let first = members.first().copied().unwrap_or(0);
        let id = CommId(u64::from(first) << 32 | first_number as u64);
        Arc::new(RankedMembers { id, ranges: ranges(&members), members: Arc::new(members) })
    }

    pub(crate) fn ranges(&self) -> Vec<RankRange> {
        self.ranges.clone()
    }

    /// The world rank of a member.
    pub(crate) fn world(&self, rank: u32) -> Option<RankId> {
        self.members.get(rank as usize).map(|&rank| RankId(rank))
    }
}

/// World ranks as ranges: as few as follow from taking each as far as it goes.
pub(crate) fn ranges(members: &[u32]) -> Vec<RankRange> {
    let mut ranges: Vec<RankRange> = Vec::new();
    for &member in members {
        if let Some(range) = ranges.last_mut() {
            let last = i64::from(range.first) + i64::from(range.stride) * (i64::from(range.count) - 1);
            let step = i64::from(member) - last;
            let stride = if range.count == 1 { i32::try_from(step).ok() } else { Some(range.stride) };
            if let Some(stride) = stride.filter(|&stride| i64::from(stride) == step) {
                range.stride = stride;
                range.count += 1;
                continue;
            }
        }
        ranges.push(RankRange { first: member, stride: 1, count: 1 });
    }
    ranges
}

/// A rank's communicator of some number.
#[derive(Clone, Debug)]
enum Slot {
    /// The rank is not a member, or nothing has been found out.
    Nothing,
    Known(Arc<RankedMembers>),
    /// Made by this call, which does not tell its members.
    Unknown(&'static str),
}

/// The communicators of all ranks.
#[derive(Debug)]
pub(crate) struct CommTable {
    world: Arc<RankedMembers>,
    /// By rank, then by number from [`FIRST_MADE`].
    made: Vec<Vec<Slot>>,
}

/// A communicator while those that are made of it are found out.
struct Parent {
    members: Arc<Vec<u32>>,
    /// The number that each member gives it.
    numbers: Vec<usize>,
    /// Of a Cartesian one.
    dimensions: Vec<u32>,
}

/// One of the communicators that a creation makes.
struct MadePart {
    /// The places of its members in the parent, in order.
    places: Vec<usize>,
    /// Of a Cartesian one.
    dimensions: Vec<u32>,
}

impl CommTable {
    /// Those of a program without any of its own.
    pub(crate) fn none(ranks: u32) -> CommTable {
        let made = vec![Vec::new(); ranks as usize];
        CommTable { world: RankedMembers::new(WORLD, (0..ranks).collect()), made }
    }

    /// Finds out the members of all, from the creations of each rank.
    pub(crate) fn of(created: &[Vec<Created>]) -> Result<CommTable, String> {
        let ranks = created.len() as u32;
        let mut found = CommTable::none(ranks);
        for (made, created) in found.made.iter_mut().zip(created) {
            made.resize(created.len(), Slot::Nothing);
        }
        let children: Vec<_> = created.iter().map(|created| by_parent(created)).collect();
        let world = Arc::clone(&found.world.members);
        let mut parents =
            vec![Parent { numbers: vec![WORLD; world.len()], members: world, dimensions: Vec::new() }];
        for rank in (0..ranks).filter(|&rank| children[rank as usize].contains_key(&OWN)) {
            let members = Arc::new(vec![rank]);
            parents.push(Parent { numbers: vec![OWN], members, dimensions: Vec::new() });
        }
        while let Some(parent) = parents.pop() {
            let mut step = 0;
            while let Some(numbers) = in_step(&parent, &children, step)? {
                found.make(&parent, &numbers, created, &mut parents)?;
                step += 1;
            }
        }
        Ok(found)
    }

    /// Finds out what one creation on `parent` makes; `numbers`: of the new communicators, by member.
    fn make(
        &mut self,
        parent: &Parent,
        numbers: &[usize],
        created: &[Vec<Created>],
        parents: &mut Vec<Parent>,
    ) -> Result<(), String> {
        let creation = |place: usize| &created[parent.members[place] as usize][numbers[place] - FIRST_MADE];
        let kind = std::mem::discriminant(&creation(0).how);
        if let Some(place) = (1..numbers.len()).find(|&at| kind != std::mem::discriminant(&creation(at).how))
        {
            return Err(format!(
                "ranks {} and {} make a communicator of one that both are members of, by different calls; \
                 trace the program again",
                parent.members[0], parent.members[place]
            ));
        }
        for MadePart { places, dimensions } in self.parts(parent, &creation)? {
            let members: Vec<u32> = places.iter().map(|&place| parent.members[place]).collect();
            let own_numbers: Vec<usize> = places.iter().map(|&place| numbers[place]).collect();
            let (Some(&first), unknown) = (own_numbers.first(), &creation(places[0]).how) else { continue };
            let slot = match unknown {
                Creation::Unknown(call) => Slot::Unknown(call),
                _ => Slot::Known(RankedMembers::new(first, members.clone())),
            };
            for (&member, &number) in members.iter().zip(&own_numbers) {
                self.made[member as usize][number - FIRST_MADE] = slot.clone();
            }
            if let Slot::Known(communicator) = slot {
                parents.push(Parent {
                    members: Arc::clone(&communicator.members),
                    numbers: own_numbers,
                    dimensions,
                });
            }
        }
        Ok(())
    }

    /// The new communicators of a creation.
    fn parts<'c>(
        &self,
        parent: &Parent,
        creation: &impl Fn(usize) -> &'c Created,
    ) -> Result<Vec<MadePart>, String> {
        let members: Vec<usize> = (0..parent.members.len()).filter(|&place| creation(place).member).collect();
        let Some(&first) = members.first() else { return Ok(Vec::new()) };
        let whole = |places: Vec<usize>| Ok(vec![MadePart { places, dimensions: Vec::new() }]);
        match &creation(first).how {
            Creation::Duplicate | Creation::Unknown(_) => whole(members),
            Creation::Cartesian { dimensions } => {
                Ok(vec![MadePart { places: members, dimensions: dimensions.clone() }])
            }
            Creation::Split { .. } => {
                let mut colors: BTreeMap<i32, Vec<(i32, usize)>> = BTreeMap::new();
                for place in members {
                    if let Creation::Split { color, key } = creation(place).how {
                        colors.entry(color).or_default().push((key, place));
                    }
                }
                let sorted = colors.into_values().map(|mut part| {
                    part.sort_unstable();
                    let places = part.into_iter().map(|(_, place)| place).collect();
                    MadePart { places, dimensions: Vec::new() }
                });
                Ok(sorted.collect())
            }
            Creation::Group(_) => self.by_group(parent, &members, creation),
            Creation::Slice { keep } => Ok(slices(&parent.dimensions, keep, members)),
        }
    }

    /// Of MPI_Comm_create, in which groups that do not overlap make a communicator each.
    fn by_group<'c>(
        &self,
        parent: &Parent,
        members: &[usize],
        creation: &impl Fn(usize) -> &'c Created,
    ) -> Result<Vec<MadePart>, String> {
        let place_of: BTreeMap<u32, usize> =
            members.iter().map(|&place| (parent.members[place], place)).collect();
        let mut parts = Vec::new();
        let mut seen = vec![false; parent.members.len()];
        for &place in members {
            if seen[place] {
                continue;
            }
            let rank = parent.members[place];
            let Creation::Group(group) = &creation(place).how else { continue };
            let known = |number| self.communicator(rank, number).ok().map(|found| Arc::clone(&found.members));
            let places = group.members(&known).and_then(|members| {
                members.iter().map(|member| place_of.get(member).copied()).collect::<Option<Vec<_>>>()
            });
            let Some(places) = places.filter(|places| places.contains(&place)) else {
                return Err(format!(
                    "rank {rank} makes a communicator of a group whose members cannot be found out, or do \
                     not make it too; trace the program again"
                ));
            };
            places.iter().for_each(|&place| seen[place] = true);
            parts.push(MadePart { places, dimensions: Vec::new() });
        }
        Ok(parts)
    }

    /// A rank's communicator, by its number.
    pub(crate) fn communicator(&self, rank: u32, number: usize) -> Result<Arc<RankedMembers>, String> {
        match number {
            WORLD => Ok(Arc::clone(&self.world)),
            OWN => Ok(RankedMembers::new(OWN, vec![rank])),
            made => match self.made[rank as usize].get(made - FIRST_MADE) {
                Some(Slot::Known(communicator)) => Ok(Arc::clone(communicator)),
                Some(Slot::Unknown(call)) => Err(format!(
                    "a communicator made by {call}, whose members are not known; trace the program without it"
                )),
                Some(Slot::Nothing) | None => {
                    Err("a communicator that the rank is not a member of; trace the program again".to_owned())
                }
            },
        }
    }
}

/// The numbers of the communicators that a rank makes of each of its communicators.
fn by_parent(created: &[Created]) -> BTreeMap<usize, Vec<usize>> {
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (creation, number) in created.iter().zip(FIRST_MADE..) {
        children.entry(creation.from).or_default().push(number);
    }
    children
}

/// The numbers that the creation after `step` others has at each member; `None`: there are no more.
fn in_step(
    parent: &Parent,
    children: &[BTreeMap<usize, Vec<usize>>],
    step: usize,
) -> Result<Option<Vec<usize>>, String> {
    let number = |(&member, own): (&u32, &usize)| {
        children[member as usize].get(own).and_then(|made| made.get(step)).copied()
    };
    let numbers: Vec<Option<usize>> = parent.members.iter().zip(&parent.numbers).map(number).collect();
    let has_none = numbers.iter().position(Option::is_none);
    match (has_none, numbers.iter().position(Option::is_some)) {
        (None, _) => Ok(numbers.into_iter().collect()),
        (Some(_), None) => Ok(None),
        (Some(without), Some(with)) => Err(format!(
            "rank {} takes part in {} creations of communicators, and rank {} in fewer, of one that both are \
             members of; the files are of different runs, or were cut off: copy or trace them again",
            parent.members[with],
            step + 1,
            parent.members[without]
        )),
    }
}

/// The parts of a grid of which some dimensions stay: places whose other coordinates are equal.
fn slices(dimensions: &[u32], keep: &[bool], members: Vec<usize>) -> Vec<MadePart> {
    let mut parts: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for place in members {
        let mut rest = place;
        let mut fixed = Vec::new();
        for (&size, keeps) in dimensions.iter().zip(keep).rev() {
            let size = (size as usize).max(1);
            if !keeps {
                fixed.push(rest % size);
            }
            rest /= size;
        }
        parts.entry(fixed).or_default().push(place);
    }
    let kept: Vec<u32> =
        dimensions.iter().zip(keep).filter(|(_, keep)| **keep).map(|(&size, _)| size).collect();
    parts.into_values().map(|places| MadePart { places, dimensions: kept.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::group::RankGroup;

    fn created(from: usize, how: Creation, member: bool) -> Created {
        Created { from, how, member }
    }

    fn members(found: &CommTable, rank: u32, number: usize) -> Vec<u32> {
        found.communicator(rank, number).unwrap().members.to_vec()
    }

    /// Catches colors that are mixed, keys that do not sort, and ids that members do not agree on.
    #[test]
    fn a_split_is_by_color_and_key() {
        let rank = |rank: i32| {
            let (color, key) = (rank % 2, -rank);
            let first = created(WORLD, Creation::Split { color, key }, rank != 4);
            vec![
                first,
                created(WORLD, Creation::Duplicate, true),
                created(FIRST_MADE, Creation::Duplicate, true),
            ]
        };
        let mut ranks: Vec<_> = (0..5).map(rank).collect();
        // Rank 4 gave no color.
        ranks[4].pop();
        let found = CommTable::of(&ranks).unwrap();
        for number in [2, 4] {
            assert_eq!(members(&found, 0, number), [2, 0]);
            assert_eq!(members(&found, 3, number), [3, 1]);
        }
        assert_eq!(members(&found, 4, 3), [0, 1, 2, 3, 4]);
        assert!(found.communicator(4, 2).is_err());
        let id = |rank, number| found.communicator(rank, number).unwrap().id;
        assert_eq!((id(0, 2), id(2, 2)), (CommId(2 << 32 | 2), CommId(2 << 32 | 2)));
        assert_ne!(id(0, 2), id(0, 4));
    }

    /// Catches members by a group in the wrong order, and a rank that is not in it.
    #[test]
    fn a_group_makes_a_communicator_of_its_members() {
        let group = RankGroup::exclude(RankGroup::of(WORLD), vec![1]).unwrap();
        let group = RankGroup::include(group, vec![2, 0]).unwrap();
        let rank = |rank| vec![created(WORLD, Creation::Group(Arc::clone(&group)), [0, 3].contains(&rank))];
        let found = CommTable::of(&(0..4).map(rank).collect::<Vec<_>>()).unwrap();
        assert_eq!(members(&found, 0, 2), [3, 0]);
        let rank = |rank| vec![created(WORLD, Creation::Group(Arc::clone(&group)), rank == 1)];
        assert!(CommTable::of(&(0..4).map(rank).collect::<Vec<_>>()).unwrap_err().contains("rank 1"));
    }

    /// Catches a row of a grid taken for a column.
    #[test]
    fn a_grid_is_cut_along_the_dimensions_that_stay() {
        let rank = |_| {
            let grid = Creation::Cartesian { dimensions: vec![2, 3] };
            let rows = Creation::Slice { keep: vec![false, true] };
            vec![created(WORLD, grid, true), created(FIRST_MADE, rows, true)]
        };
        let found = CommTable::of(&(0..6).map(rank).collect::<Vec<_>>()).unwrap();
        assert_eq!(members(&found, 4, 3), [3, 4, 5]);
    }

    /// Catches files of two runs that are taken for one.
    #[test]
    fn ranks_that_do_not_make_the_same_are_named() {
        let ranks = [vec![created(WORLD, Creation::Duplicate, true)], vec![]];
        assert!(CommTable::of(&ranks).unwrap_err().contains("rank 0 takes part in 1"));
        let split = Creation::Split { color: 0, key: 0 };
        let ranks = [ranks[0].clone(), vec![created(WORLD, split, true)]];
        assert!(CommTable::of(&ranks).unwrap_err().contains("different calls"));
    }

    /// Catches ranges that are not the members in their order.
    #[test]
    fn members_are_ranges() {
        let range = |first, stride, count| RankRange { first, stride, count };
        assert_eq!(ranges(&[4, 2, 0, 1, 7]), [range(4, -2, 3), range(1, 6, 2)]);
        assert_eq!(ranges(&[5]), [range(5, 1, 1)]);
    }
}
