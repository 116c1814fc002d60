//! One rank's part in one collective: who takes part, and with how much.

use super::blocks::Blocks;
use super::topology_tree::Neighbours;
use crate::algorithms::algorithm::Algorithm;
use crate::algorithms::names::collective_name;
use crate::algorithms::rule::CollectiveSize;
use crate::envelope::MAX_MESSAGE_BYTES;
use crate::error::MsgError;
use serde::{Deserialize, Serialize};
use weft_trace::Reduction;
use weft_trace::op::{Collective, CollectiveSizes};
use weft_units::Bytes;

/// Bytes given and taken, checked and in the form that schedules need.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum BlockSizes {
    /// Nothing: barrier.
    None,
    /// A vector that all members have: broadcast, reductions, scans.
    Vector(u64),
    /// A block of the same size per member.
    Block(u64),
    /// Blocks of different sizes that all members know, by their ends: allgatherv, reduce-scatter.
    Blocks(Box<[u64]>),
    /// Blocks of different sizes that only the root knows; the others know their `own`: gatherv,
    /// scatterv.
    Rooted { own: u64, ends: Box<[u64]> },
    /// Blocks of different sizes that two members know: alltoallv, neighbourhood collectives.
    Pairs { send_ends: Box<[u64]>, receive_ends: Box<[u64]> },
}

impl BlockSizes {
    /// The sizes that the member in this place gives and takes. Errors where they cannot be.
    fn new(kind: Collective, place: MemberPlace, given: &CollectiveSizes) -> Result<BlockSizes, MsgError> {
        let MemberPlace { members, me, root } = place;
        let (send, receive) = (given.send.get(), given.receive.get());
        let counts = |side: &str, counts: &[u64]| ends(kind, members, side, counts);
        let sizes = match kind {
            Collective::Barrier => BlockSizes::None,
            Collective::Broadcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Scan
            | Collective::Exscan => BlockSizes::Vector(send.max(receive)),
            Collective::Gather => BlockSizes::Block(if me == root { receive } else { send }),
            Collective::Scatter => BlockSizes::Block(if me == root { send } else { receive }),
            Collective::Allgather | Collective::Alltoall | Collective::ReduceScatterBlock => {
                BlockSizes::Block(receive)
            }
            Collective::Allgatherv | Collective::ReduceScatter => {
                BlockSizes::Blocks(counts("receive", &given.receive_counts)?)
            }
            Collective::Gatherv if me == root => {
                BlockSizes::Rooted { own: send, ends: counts("receive", &given.receive_counts)? }
            }
            Collective::Scatterv if me == root => {
                BlockSizes::Rooted { own: receive, ends: counts("send", &given.send_counts)? }
            }
            Collective::Gatherv => BlockSizes::Rooted { own: send, ends: Box::default() },
            Collective::Scatterv => BlockSizes::Rooted { own: receive, ends: Box::default() },
            // Of those who are no neighbours the counts are zero.
            Collective::Alltoallv
            | Collective::NeighborAllgather
            | Collective::NeighborAllgatherv
            | Collective::NeighborAlltoall
            | Collective::NeighborAlltoallv => BlockSizes::Pairs {
                send_ends: counts("send", &given.send_counts)?,
                receive_ends: counts("receive", &given.receive_counts)?,
            },
        };
        if sizes.largest_vector(members).is_none_or(|bytes| bytes > MAX_MESSAGE_BYTES) {
            return Err(too_large(kind, members));
        }
        Ok(sizes)
    }

    /// Bytes of the longest vector of `members` members, as far as it is not a sum of counts: those have
    /// been checked. `None`: more than a number can hold.
    fn largest_vector(&self, members: u32) -> Option<u64> {
        match self {
            BlockSizes::None => Some(0),
            BlockSizes::Vector(bytes) => Some(*bytes),
            BlockSizes::Block(block) => block.checked_mul(u64::from(members)),
            BlockSizes::Rooted { own, .. } => Some(*own),
            BlockSizes::Blocks(_) | BlockSizes::Pairs { .. } => Some(0),
        }
    }
}

/// The algorithms of a collective that consists of two others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Stages(pub [Algorithm; 2]);

impl Stages {
    /// The collective that goes first.
    pub const FIRST: usize = 0;
    /// The one after it.
    pub const SECOND: usize = 1;
}

impl Default for Stages {
    /// That which carries out most; the table says another.
    fn default() -> Stages {
        Stages([Algorithm::Linear; 2])
    }
}

/// A member's place in a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MemberPlace {
    /// The number of members.
    pub members: u32,
    /// The rank's own number among them.
    pub me: u32,
    /// The root's number among them; of no meaning where the collective has no root.
    pub root: u32,
}

/// One rank's part in one collective.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct MemberPart {
    /// Which.
    pub kind: Collective,
    /// The number of members.
    pub members: u32,
    /// The rank's own number among them.
    pub me: u32,
    /// The root's number among them; 0 where there is none.
    pub root: u32,
    /// Size of one element.
    pub element: u32,
    /// The computation of a reduction.
    pub reduction: Reduction,
    /// Bytes given and taken.
    pub sizes: BlockSizes,
    /// How the two collectives are carried out that some algorithms consist of.
    pub stages: Stages,
    /// Those in a tree that follows the topology; of no meaning in other algorithms.
    pub neighbours: Neighbours,
}

impl MemberPart {
    /// The part of the member in this place. Errors where the sizes cannot be.
    pub fn new(
        kind: Collective,
        place: MemberPlace,
        given: &CollectiveSizes,
    ) -> Result<MemberPart, MsgError> {
        let MemberPlace { members, me, root } = place;
        let root = if has_root(kind) { root } else { 0 };
        let sizes = BlockSizes::new(kind, MemberPlace { members, me, root }, given)?;
        Ok(MemberPart {
            kind,
            members,
            me,
            root,
            element: given.element.max(1),
            reduction: given.reduction,
            sizes,
            stages: Stages::default(),
            neighbours: Neighbours::default(),
        })
    }

    /// The size that the machine's table asks for, of a call that blocks.
    pub fn size(&self) -> CollectiveSize {
        let bytes = match (&self.sizes, self.kind) {
            (BlockSizes::None | BlockSizes::Rooted { .. } | BlockSizes::Pairs { .. }, _) => 0,
            (BlockSizes::Vector(bytes), _) => *bytes,
            (BlockSizes::Block(_), Collective::Allgather | Collective::ReduceScatterBlock)
            | (BlockSizes::Blocks(_), _) => self.layout().total(),
            (BlockSizes::Block(block), _) => *block,
        };
        CollectiveSize {
            members: self.members,
            bytes: Bytes::new(bytes),
            elements: bytes / u64::from(self.element),
            non_blocking: false,
        }
    }

    /// The blocks of the data. A vector is one block, see [`MemberPart::split`].
    pub fn layout(&self) -> Blocks<'_> {
        match &self.sizes {
            BlockSizes::None => Blocks::Ends(&[]),
            BlockSizes::Vector(bytes) => Blocks::Equal { block: *bytes, count: 1 },
            BlockSizes::Block(block) => Blocks::Equal { block: *block, count: self.members },
            BlockSizes::Blocks(ends) => Blocks::Ends(ends),
            BlockSizes::Rooted { own, .. } if self.me != self.root => Blocks::Equal { block: *own, count: 1 },
            BlockSizes::Rooted { ends, .. } => Blocks::Ends(ends),
            BlockSizes::Pairs { receive_ends, .. } => Blocks::Ends(receive_ends),
        }
    }

    /// The blocks of what the rank gives, where that is a buffer apart.
    pub fn input(&self) -> Blocks<'_> {
        match &self.sizes {
            BlockSizes::Pairs { send_ends, .. } => Blocks::Ends(send_ends),
            _ => self.layout(),
        }
    }

    /// The vector, or all blocks as one vector, cut into `count` blocks between elements.
    pub fn split(&self, count: u32) -> Blocks<'_> {
        // A broadcast does not reduce: it may be cut anywhere.
        let element = if self.kind == Collective::Broadcast { 1 } else { u64::from(self.element) };
        Blocks::Split { bytes: self.layout().total(), element, count }
    }

    /// The rank's own number when members are counted from the root.
    pub fn relative(&self) -> u32 {
        (self.me + self.members - self.root) % self.members
    }

    /// The member `distance` after this one, around the end.
    pub fn after(&self, distance: u32) -> u32 {
        around(self.me, distance % self.members, self.members)
    }

    /// The member `distance` before this one, around the end.
    pub fn before(&self, distance: u32) -> u32 {
        around(self.me, self.members - distance % self.members, self.members)
    }

    /// The member whose number counted from the root is `relative`.
    pub fn nth_from_root(&self, relative: u32) -> u32 {
        around(relative, self.root, self.members)
    }
}

/// Whether a collective has a root.
pub(crate) fn has_root(kind: Collective) -> bool {
    matches!(
        kind,
        Collective::Broadcast
            | Collective::Reduce
            | Collective::Gather
            | Collective::Gatherv
            | Collective::Scatter
            | Collective::Scatterv
    )
}

/// `(a + b) mod members`, also where the sum exceeds 32 bits.
pub(crate) fn around(a: u32, b: u32, members: u32) -> u32 {
    ((u64::from(a) + u64::from(b)) % u64::from(members)) as u32
}

/// Counts as the ends of the blocks.
fn ends(kind: Collective, members: u32, side: &str, counts: &[u64]) -> Result<Box<[u64]>, MsgError> {
    if counts.len() != members as usize {
        return Err(MsgError::Counts {
            collective: collective_name(kind).to_owned(),
            side: side.to_owned(),
            counts: counts.len(),
            members,
        });
    }
    let mut end = 0u64;
    let ends = counts.iter().map(|count| {
        end = end.checked_add(*count).filter(|end| *end <= MAX_MESSAGE_BYTES)?;
        Some(end)
    });
    ends.collect::<Option<_>>().ok_or_else(|| too_large(kind, members))
}

fn too_large(kind: Collective, members: u32) -> MsgError {
    MsgError::TooLarge { collective: collective_name(kind).to_owned(), members }
}
