//! Collectives of a VEF file, as far as a task must know the parts of the others: who the root is, and how
//! much the others give.
//!
//! | collective | root | others |
//! |---|---|---|
//! | broadcast | (X, 0) | (0, X) |
//! | reduce | (0, X) | (X, 0) |
//! | allreduce | | (X, X) |
//! | gather | (X_i, sum) | (X_i, 0) |
//! | scatter | (sum, X_i) | (0, X_i) |
//! | allgather | | (X_i, sum) |
//! | barrier | | (0, 0) |
//! | alltoall | | (X, 0): X to each task, or (X, 1): X split over all |
//!
//! Where members give different sizes, it becomes the form with counts (gatherv and so on).

use super::communicators::VefCommunicators;
use super::line::{PartLine, VefCollective};
use std::collections::BTreeMap;
use weft_trace::op::{Collective, CollectiveBuffers, CollectiveSizes, Op};
use weft_units::{Bytes, RankId};

/// Most sizes of members that are kept, of collectives whose members differ: 128 MB of them.
const MAX_SIZES: usize = 1 << 24;

/// Sizes of elements: a reduction has the largest of them that divides its bytes.
const ELEMENTS: [u32; 4] = [8, 4, 2, 1];

/// A collective as its records so far say.
#[derive(Clone, PartialEq, Eq, Debug)]
struct VefCollectiveFacts {
    /// The place of its communicator.
    communicator: u32,
    operation: VefCollective,
    /// Of an alltoall: whether the size is split over all tasks.
    is_split: bool,
    root: Option<u32>,
    /// Number of its records, and the line of the last.
    parts: u32,
    last: u64,
    /// The size of each part.
    size: u64,
    /// The sizes by member, where they differ.
    sizes: Option<Box<[u64]>>,
}

/// The collectives of a file, in the order of their first records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct VefCollectives {
    list: Vec<VefCollectiveFacts>,
    by_id: BTreeMap<u64, u32>,
    /// Sizes that are kept.
    sizes: usize,
}

/// The size of a part, whether it is the root's, and whether it is split over all.
struct VefPart {
    size: Bytes,
    is_root: bool,
    is_split: bool,
}

fn part_of(line: &PartLine) -> Result<VefPart, String> {
    let PartLine { sent, received, operation, .. } = *line;
    let wrong = |expected: &str| {
        Err(format!("send_size, recv_size: {} and {}; expected {expected}", sent.get(), received.get()))
    };
    let both = sent > Bytes::ZERO && received > Bytes::ZERO;
    let (size, is_root) = match operation {
        VefCollective::Broadcast if both => return wrong("X and 0 of the root, 0 and X of the others"),
        VefCollective::Broadcast => (sent.max(received), sent > Bytes::ZERO),
        VefCollective::Reduce => (sent.max(received), received > Bytes::ZERO),
        VefCollective::Allreduce if sent != received => return wrong("the same of both in an allreduce"),
        VefCollective::Gather => (sent, received > Bytes::ZERO),
        VefCollective::Scatter => (received, sent > Bytes::ZERO),
        VefCollective::Barrier => (Bytes::ZERO, false),
        VefCollective::Alltoall if received.get() > 1 => {
            return wrong("a recv_size of 0 or 1 in an alltoall");
        }
        VefCollective::Allreduce | VefCollective::Allgather | VefCollective::Alltoall => (sent, false),
    };
    let is_split = operation == VefCollective::Alltoall && received.get() == 1;
    Ok(VefPart { size, is_root, is_split })
}

impl VefCollectives {
    /// Adds a record, of the line at this place; returns the number of its collective. Errors with the
    /// fault and the mend.
    pub(super) fn add(
        &mut self,
        at: u64,
        line: &PartLine,
        communicators: &mut VefCommunicators,
    ) -> Result<u32, String> {
        let communicator = communicators.find(line.communicator).ok_or_else(|| {
            format!("ID_COMM: there is no C{}; add its line, or name another", line.communicator)
        })?;
        let VefPart { size, is_root, is_split } = part_of(line)?;
        let number = *self.by_id.entry(line.id).or_insert(self.list.len() as u32);
        if number as usize == self.list.len() {
            self.list.push(VefCollectiveFacts {
                communicator,
                operation: line.operation,
                is_split,
                root: None,
                parts: 0,
                last: 0,
                size: size.get(),
                sizes: None,
            });
        }
        let id = line.id;
        let facts = &mut self.list[number as usize];
        if (facts.communicator, facts.operation) != (communicator, line.operation) {
            return Err(format!(
                "G{id} is another collective, or of another COMM, on an earlier line; mend one"
            ));
        }
        if facts.is_split != is_split {
            return Err(format!("recv_size: G{id} has 0 and 1 there; expected the same of all its records"));
        }
        let members = communicators.get(communicator).members.len();
        if facts.parts as usize >= members {
            return Err(format!(
                "G{id} has more records than C{} has tasks; take one out",
                line.communicator
            ));
        }
        if is_root && facts.root.replace(line.task).is_some() {
            return Err(format!("send_size, recv_size: G{id} has two roots; mend one of them"));
        }
        (facts.parts, facts.last) = (facts.parts + 1, at);
        if size.get() == facts.size && facts.sizes.is_none() {
            return Ok(number);
        }
        if let VefCollective::Broadcast | VefCollective::Reduce | VefCollective::Allreduce = line.operation {
            let (own, other) = (size.get(), facts.size);
            return Err(format!(
                "send_size, recv_size: {own}, and {other} on an earlier line of G{id}; mend one"
            ));
        }
        // Those that have been read are all of the first size.
        if facts.sizes.is_none() {
            self.sizes += members;
            if self.sizes > MAX_SIZES {
                return Err(format!(
                    "collectives whose tasks give different sizes have more than {MAX_SIZES} of them; \
                     cut the trace in two"
                ));
            }
            facts.sizes = Some(vec![facts.size; members].into());
        }
        match (communicators.place_of(communicator, line.task), &mut facts.sizes) {
            (Some(place), Some(sizes)) => sizes[place] = size.get(),
            _ => return Err(not_a_member(line.task, line.communicator)),
        }
        Ok(number)
    }

    /// Number of collectives.
    pub(super) fn len(&self) -> u64 {
        self.list.len() as u64
    }

    /// The number of the collective of an ID.
    pub(super) fn find(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// The line of the last record of a collective.
    pub(super) fn last_line(&self, number: u32) -> u64 {
        self.list[number as usize].last
    }

    /// Whether a collective ends for nobody before all have begun it.
    pub(super) fn is_joint(&self, number: u32) -> bool {
        let operation = self.list[number as usize].operation;
        matches!(
            operation,
            VefCollective::Allreduce
                | VefCollective::Allgather
                | VefCollective::Barrier
                | VefCollective::Alltoall
        )
    }

    /// The place of the communicator of a collective.
    pub(super) fn communicator(&self, number: u32) -> u32 {
        self.list[number as usize].communicator
    }

    /// Whether the records of all members have been read.
    pub(super) fn is_whole(&self, id: u64, communicators: &VefCommunicators) -> bool {
        let facts = self.find(id).map(|number| &self.list[number as usize]);
        facts.is_some_and(|facts| facts.parts as usize == communicators.get(facts.communicator).members.len())
    }

    /// The fault of a collective in which not all members take part, if there is one.
    pub(super) fn incomplete(&self, communicators: &VefCommunicators) -> Option<String> {
        let (id, number) = self.by_id.iter().find(|(id, _)| !self.is_whole(**id, communicators))?;
        let facts = &self.list[*number as usize];
        let communicator = communicators.get(facts.communicator);
        let (parts, members) = (facts.parts, communicator.members.len());
        Some(format!(
            "G{id} has records of {parts} tasks of the {members} of C{}; add those that are missing",
            communicator.id
        ))
    }

    /// The operation of a member.
    pub(super) fn operation(&self, number: u32, task: u32, communicators: &mut VefCommunicators) -> Op {
        let facts = &self.list[number as usize];
        let own = match &facts.sizes {
            None => facts.size,
            // A member: found when its record was read, or when its task was.
            Some(sizes) => communicators.place_of(facts.communicator, task).map_or(0, |place| sizes[place]),
        };
        let communicator = communicators.get(facts.communicator);
        let members = &communicator.members;
        let is_rooted = matches!(
            facts.operation,
            VefCollective::Broadcast | VefCollective::Reduce | VefCollective::Gather | VefCollective::Scatter
        );
        // Without bytes nobody is known as the root.
        let root = is_rooted.then(|| facts.root.unwrap_or(members[0]));
        let is_reduction = matches!(facts.operation, VefCollective::Reduce | VefCollective::Allreduce);
        let fits = |element: &u32| is_reduction && own.is_multiple_of((*element).into());
        let element = ELEMENTS.into_iter().find(fits).unwrap_or(1);
        let (send, receive) = (Bytes::new(own), Bytes::new(own));
        let same = |kind| (kind, CollectiveSizes { send, receive, element, ..none() });
        let (kind, sizes) = match (facts.operation, &facts.sizes) {
            (VefCollective::Barrier, _) => same(Collective::Barrier),
            (VefCollective::Broadcast, _) => same(Collective::Broadcast),
            (VefCollective::Reduce, _) => same(Collective::Reduce),
            (VefCollective::Allreduce, _) => same(Collective::Allreduce),
            (VefCollective::Gather, None) => same(Collective::Gather),
            (VefCollective::Scatter, None) => same(Collective::Scatter),
            (VefCollective::Allgather, None) => same(Collective::Allgather),
            (VefCollective::Gather, Some(sizes)) => {
                let receive_counts = if root == Some(task) { sizes.to_vec() } else { Vec::new() };
                let (send, receive) = (Bytes::new(own), sum(&receive_counts));
                (Collective::Gatherv, CollectiveSizes { send, receive, receive_counts, ..none() })
            }
            (VefCollective::Scatter, Some(sizes)) => {
                let send_counts = if root == Some(task) { sizes.to_vec() } else { Vec::new() };
                let (send, receive) = (sum(&send_counts), Bytes::new(own));
                (Collective::Scatterv, CollectiveSizes { send, receive, send_counts, ..none() })
            }
            (VefCollective::Allgather, Some(sizes)) => {
                let (send, receive, receive_counts) = (Bytes::new(own), sum(sizes), sizes.to_vec());
                (Collective::Allgatherv, CollectiveSizes { send, receive, receive_counts, ..none() })
            }
            (VefCollective::Alltoall, None) if !facts.is_split => same(Collective::Alltoall),
            (VefCollective::Alltoall, None) if own.is_multiple_of(members.len() as u64) => {
                let block = Bytes::new(own / members.len() as u64);
                (Collective::Alltoall, CollectiveSizes { send: block, receive: block, ..none() })
            }
            (VefCollective::Alltoall, sizes) => {
                let split = facts.is_split.then_some(members.len());
                let place = members.iter().position(|member| *member == task).unwrap_or(0);
                let of_member = |member: usize| sizes.as_ref().map_or(facts.size, |sizes| sizes[member]);
                let count = 0..members.len();
                let send_counts: Vec<u64> = count.clone().map(|to| block(own, to, split)).collect();
                let receive_counts: Vec<u64> =
                    count.map(|from| block(of_member(from), place, split)).collect();
                let (send, receive) = (sum(&send_counts), sum(&receive_counts));
                (
                    Collective::Alltoallv,
                    CollectiveSizes { send, receive, send_counts, receive_counts, ..none() },
                )
            }
        };
        let (comm, buffers) = (communicator.comm, CollectiveBuffers::default());
        Op::Collective { kind, comm, root: root.map(RankId), sizes, buffers, request: None }
    }
}

/// The fault of a task that takes part and is no member.
pub(super) fn not_a_member(task: u32, communicator: u32) -> String {
    format!("task: {task} is not one of C{communicator}; add it there, or name another COMM")
}

fn none() -> CollectiveSizes {
    CollectiveSizes { element: 1, ..CollectiveSizes::default() }
}

/// The bytes to the member at a place: all, or those of so many parts.
fn block(size: u64, place: usize, parts: Option<usize>) -> u64 {
    match parts.map(|parts| parts as u64) {
        None => size,
        Some(parts) => size / parts + u64::from((place as u64) < size % parts),
    }
}

fn sum(counts: &[u64]) -> Bytes {
    Bytes::new(counts.iter().copied().fold(0, u64::saturating_add).min(super::MAX_BYTES))
}
