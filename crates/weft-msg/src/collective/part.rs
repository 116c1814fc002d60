//! One rank's part in one collective: who takes part, and with how much.

use super::layout::Layout;
use crate::algorithms::{Algorithm, CollectiveSize, collective_name};
use crate::error::MsgError;
use crate::protocol::LARGEST;
use serde::{Deserialize, Serialize};
use weft_trace::op::{Collective, CollectiveSizes};
use weft_units::Bytes;

/// Bytes given and taken, checked and in the form that schedules need.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Sizes {
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

/// One rank's part in one collective.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Which.
    pub kind: Collective,
    /// How many members.
    pub members: u32,
    /// The rank's own number among them.
    pub me: u32,
    /// The root's number among them; 0 where there is none.
    pub root: u32,
    /// Size of one element.
    pub element: u32,
    /// Bytes given and taken.
    pub sizes: Sizes,
    /// How the two collectives are carried out that some algorithms consist of.
    pub stages: Stages,
}

impl Part {
    /// The part of member `me`. Errors where the sizes cannot be.
    pub fn new(
        kind: Collective,
        members: u32,
        me: u32,
        root: u32,
        given: &CollectiveSizes,
    ) -> Result<Part, MsgError> {
        let root = if has_root(kind) { root } else { 0 };
        let (send, receive) = (given.send.get(), given.receive.get());
        let counts = |side: &str, counts: &[u64]| ends(kind, members, side, counts);
        let sizes = match kind {
            Collective::Barrier => Sizes::None,
            Collective::Broadcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Scan
            | Collective::Exscan => Sizes::Vector(send.max(receive)),
            Collective::Gather => Sizes::Block(if me == root { receive } else { send }),
            Collective::Scatter => Sizes::Block(if me == root { send } else { receive }),
            Collective::Allgather | Collective::Alltoall | Collective::ReduceScatterBlock => {
                Sizes::Block(receive)
            }
            Collective::Allgatherv | Collective::ReduceScatter => {
                Sizes::Blocks(counts("receive", &given.receive_counts)?)
            }
            Collective::Gatherv if me == root => {
                Sizes::Rooted { own: send, ends: counts("receive", &given.receive_counts)? }
            }
            Collective::Scatterv if me == root => {
                Sizes::Rooted { own: receive, ends: counts("send", &given.send_counts)? }
            }
            Collective::Gatherv => Sizes::Rooted { own: send, ends: Box::default() },
            Collective::Scatterv => Sizes::Rooted { own: receive, ends: Box::default() },
            // Of those who are no neighbours the counts are zero.
            Collective::Alltoallv
            | Collective::NeighborAllgather
            | Collective::NeighborAllgatherv
            | Collective::NeighborAlltoall
            | Collective::NeighborAlltoallv => Sizes::Pairs {
                send_ends: counts("send", &given.send_counts)?,
                receive_ends: counts("receive", &given.receive_counts)?,
            },
        };
        let largest = match &sizes {
            Sizes::None => Some(0),
            Sizes::Vector(bytes) => Some(*bytes),
            Sizes::Block(block) => block.checked_mul(u64::from(members)),
            Sizes::Rooted { own, .. } => Some(*own),
            // Their sums have been checked.
            Sizes::Blocks(_) | Sizes::Pairs { .. } => Some(0),
        };
        if largest.is_none_or(|bytes| bytes > LARGEST) {
            return Err(too_large(kind, members));
        }
        Ok(Part { kind, members, me, root, element: given.element.max(1), sizes, stages: Stages::default() })
    }

    /// The size that the machine's table asks for, of a call that blocks.
    pub fn size(&self) -> CollectiveSize {
        let bytes = match (&self.sizes, self.kind) {
            (Sizes::None | Sizes::Rooted { .. } | Sizes::Pairs { .. }, _) => 0,
            (Sizes::Vector(bytes), _) => *bytes,
            (Sizes::Block(_), Collective::Allgather | Collective::ReduceScatterBlock)
            | (Sizes::Blocks(_), _) => self.layout().total(),
            (Sizes::Block(block), _) => *block,
        };
        CollectiveSize {
            members: self.members,
            bytes: Bytes::new(bytes),
            elements: bytes / u64::from(self.element),
            non_blocking: false,
        }
    }

    /// The blocks of the data. A vector is one block, see [`Part::split`].
    pub fn layout(&self) -> Layout<'_> {
        match &self.sizes {
            Sizes::None => Layout::Ends(&[]),
            Sizes::Vector(bytes) => Layout::Equal { block: *bytes, count: 1 },
            Sizes::Block(block) => Layout::Equal { block: *block, count: self.members },
            Sizes::Blocks(ends) => Layout::Ends(ends),
            Sizes::Rooted { own, .. } if self.me != self.root => Layout::Equal { block: *own, count: 1 },
            Sizes::Rooted { ends, .. } => Layout::Ends(ends),
            Sizes::Pairs { receive_ends, .. } => Layout::Ends(receive_ends),
        }
    }

    /// The blocks of what the rank gives, where that is a buffer apart.
    pub fn input(&self) -> Layout<'_> {
        match &self.sizes {
            Sizes::Pairs { send_ends, .. } => Layout::Ends(send_ends),
            _ => self.layout(),
        }
    }

    /// The vector, or all blocks as one vector, cut into `count` blocks between elements.
    pub fn split(&self, count: u32) -> Layout<'_> {
        // A broadcast does not reduce: it may be cut anywhere.
        let element = if self.kind == Collective::Broadcast { 1 } else { u64::from(self.element) };
        Layout::Split { bytes: self.layout().total(), element, count }
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
        end = end.checked_add(*count).filter(|end| *end <= LARGEST)?;
        Some(end)
    });
    ends.collect::<Option<_>>().ok_or_else(|| too_large(kind, members))
}

fn too_large(kind: Collective, members: u32) -> MsgError {
    MsgError::TooLarge { collective: collective_name(kind).to_owned(), members }
}
