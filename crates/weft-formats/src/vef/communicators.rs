//! Communicators of a VEF file.

use super::line::{number, printable, words};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use weft_trace::op::{CommId, Op, RankRange};

/// Most members of all communicators together: 256 MB of them.
const MAX_MEMBERS: usize = 1 << 26;

/// A communicator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct VefCommunicator {
    /// The number that the file gives it.
    pub(super) id: u32,
    pub(super) comm: CommId,
    /// The tasks in order.
    pub(super) members: Vec<u32>,
    /// The tasks with their places, sorted; made when a place is first asked for.
    places: Vec<(u32, u32)>,
}

/// The communicators of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct VefCommunicators {
    list: Vec<VefCommunicator>,
    by_id: BTreeMap<u32, u32>,
    /// Communicators whose first member is this task.
    of_first: BTreeMap<u32, u64>,
    members: usize,
}

impl VefCommunicators {
    /// Adds that of a line, of a program of so many tasks. Errors with the fault and the mend.
    pub(super) fn add(&mut self, line: &[u8], tasks: u32) -> Result<(), String> {
        let mut words = words(line);
        let name = words.next().unwrap_or_default();
        let id = name.strip_prefix(b"C").and_then(number).and_then(|id| u32::try_from(id).ok());
        let Some(id) = id else {
            let text = printable(line);
            return Err(format!(
                "`{text}` is no communicator; expected as many as NumCOMM, such as C0 0 1 2"
            ));
        };
        let mut members = Vec::new();
        for word in words {
            let task = number(word).and_then(|task| u32::try_from(task).ok()).filter(|task| *task < tasks);
            let text = || format!("task: `{}`; expected a task, 0 to {}", printable(word), tasks - 1);
            members.push(task.ok_or_else(text)?);
        }
        self.members += members.len();
        if self.members > MAX_MEMBERS {
            return Err(format!("more than {MAX_MEMBERS} members of communicators; leave unused ones out"));
        }
        let Some(&first) = members.first() else {
            return Err(format!("C{id} has no tasks; write them behind it, or leave the line out"));
        };
        let mut sorted = members.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("C{id} has task {} twice; write it once", pair[0]));
        }
        let is_world = id == 0 && members.len() == tasks as usize && members.is_sorted();
        let comm = if is_world {
            CommId::WORLD
        } else {
            let count = self.of_first.entry(first).or_default();
            *count += 1;
            CommId(u64::from(first) << 32 | *count)
        };
        if self.by_id.contains_key(&id) {
            return Err(format!("C{id} stands on two lines; give each communicator a number of its own"));
        }
        self.by_id.insert(id, self.list.len() as u32);
        self.list.push(VefCommunicator { id, comm, members, places: Vec::new() });
        Ok(())
    }

    /// The place of the communicator of this number.
    pub(super) fn find(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn get(&self, place: u32) -> &VefCommunicator {
        &self.list[place as usize]
    }

    /// All, by their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &VefCommunicator)> {
        (0..).zip(&self.list)
    }

    /// The place of a task among the members of a communicator.
    pub(super) fn place_of(&mut self, communicator: u32, task: u32) -> Option<usize> {
        let VefCommunicator { members, places, .. } = &mut self.list[communicator as usize];
        if places.is_empty() {
            places.extend(members.iter().copied().zip(0..));
            places.sort_unstable();
        }
        let found = places.binary_search_by_key(&task, |(task, _)| *task).ok()?;
        Some(places[found].1 as usize)
    }
}

impl VefCommunicator {
    /// The operation with which it exists for a member; `None`: it is the world, which always does.
    pub(super) fn creation(&self) -> Option<Op> {
        (self.comm != CommId::WORLD)
            .then(|| Op::Communicator { comm: self.comm, members: ranges(&self.members) })
    }
}

/// Tasks as ranges.
fn ranges(members: &[u32]) -> Vec<RankRange> {
    let mut ranges: Vec<RankRange> = Vec::new();
    for &task in members {
        if let Some(range) = ranges.last_mut() {
            let last = i64::from(range.first) + i64::from(range.stride) * (i64::from(range.count) - 1);
            let step = i32::try_from(i64::from(task) - last).ok();
            let fits = step.filter(|step| range.count == 1 || *step == range.stride);
            if let Some(step) = fits {
                (range.stride, range.count) = (step, range.count + 1);
                continue;
            }
        }
        ranges.push(RankRange { first: task, stride: 1, count: 1 });
    }
    ranges
}

/// The line of a communicator.
pub(super) fn line(id: usize, members: &[RankRange]) -> String {
    let mut text = format!("C{id}");
    for range in members {
        for place in 0..i64::from(range.count) {
            let _ = write!(text, " {}", i64::from(range.first) + i64::from(range.stride) * place);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches members that are lost, invented or in another order where they are written as ranges.
        #[test]
        fn ranges_keep_the_members(mut members in prop::collection::vec(0..50u32, 1..20), sorted: bool) {
            if sorted {
                members.sort_unstable();
            }
            let mut unique = members.clone();
            unique.sort_unstable();
            unique.dedup();
            prop_assume!(unique.len() == members.len());
            let mut communicators = VefCommunicators::default();
            let text = line(3, &ranges(&members));
            communicators.add(text.as_bytes(), 50).unwrap();
            prop_assert_eq!(&communicators.get(0).members, &members);
            for (place, task) in members.iter().enumerate() {
                prop_assert_eq!(communicators.place_of(0, *task), Some(place));
            }
        }
    }

    /// Catches communicators that cannot be, and a first one that is not taken for the world.
    #[test]
    fn a_communicator_has_each_task_once() {
        let mut communicators = VefCommunicators::default();
        let mut said = |line: &str| communicators.add(line.as_bytes(), 4).err().unwrap_or_default();
        assert_eq!(said("C0 0 1 2 3"), "");
        assert_eq!(said("C7 2 1"), "");
        assert!(said("C8 1 2 1").contains("task 1 twice"));
        assert!(said("C8 4").contains("`4`; expected a task, 0 to 3"));
        assert!(said("C8").contains("no tasks"));
        assert!(said("C7 1").contains("two lines"));
        assert!(said("8 1").contains("as many as NumCOMM"));
        assert_eq!(communicators.get(0).comm, CommId::WORLD);
        assert_eq!(communicators.get(communicators.find(7).unwrap()).comm, CommId(2 << 32 | 1));
    }
}
