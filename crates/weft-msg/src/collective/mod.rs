//! Collectives: each rank's part as a schedule of rounds, carried out over sends and receives.
//!
//! ```text
//!   Op ──▶ MemberPart (who, how much) ──▶ Algorithm (by the machine's table)
//!                                       │ round(0), round(1), …
//!                                       ▼
//!          round: receives, sends ── all complete ──▶ copies, reductions ──▶ next round
//! ```
//! A schedule is a function from the round's number to its steps: nothing is stored but the number,
//! so a collective on a hundred thousand ranks takes a few bytes on each. A round may be empty. Between
//! any two members, sends and receives come in the same order on both sides; that is how the k-th
//! message finds the k-th receive.
//!
//! Messages of no bytes are neither sent nor awaited, except in a barrier: both sides know the size. Nor is a
//! vector of no elements handed to the interface.
//!
//! Adding an algorithm: a file here, its `mod`, and a line of `algorithms!` in `registry`.

pub(crate) mod accelerator;
pub(crate) mod binary_tree;
pub(crate) mod binomial;
pub(crate) mod blocks;
pub(crate) mod bruck;
pub(crate) mod butterfly;
pub(crate) mod chain;
pub(crate) mod dissemination;
pub(crate) mod fold;
pub(crate) mod global_first;
pub(crate) mod in_order_binary_tree;
pub(crate) mod knomial;
pub(crate) mod linear;
pub(crate) mod local_first;
pub(crate) mod member_part;
pub(crate) mod multicast;
pub(crate) mod neighbor_exchange;
pub(crate) mod non_overlapping;
pub(crate) mod pairwise;
pub(crate) mod pipelined_ring;
pub(crate) mod rabenseifner;
pub(crate) mod recursive_doubling;
pub(crate) mod recursive_halving;
pub(crate) mod registry;
pub(crate) mod ring;
pub(crate) mod scan;
pub(crate) mod scatter_allgather;
pub(crate) mod scattered;
pub(crate) mod split_binary_tree;
pub(crate) mod topology_tree;
pub(crate) mod tree;

use crate::hierarchy::Hierarchy;
use crate::protocol::Protocol;
use crate::work::InMemory;
use arrayvec::ArrayVec;
use blocks::Extent;
use member_part::MemberPart;
use topology_tree::Neighbours;
use weft_trace::op::Collective;
use weft_units::Bytes;

/// The largest number of partners that a rank of [`Scattered`](scattered::Scattered) exchanges with at a
/// time, which is in one round.
///
/// # Source
/// `MPIR_CVAR_ALLTOALL_THROTTLE` of MPICH: 32.
pub(crate) const MAX_SCATTERED_PARTNERS: u32 = 32;

/// Which of a rank's buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RankBuffer {
    /// The one that holds the rank's result in the end. It begins with what the rank gives, where that
    /// has a place in it.
    Data,
    /// The rank's contribution, where it has a buffer of its own: alltoall(v).
    Input,
    /// The reduction over all members heard of, in scans.
    Running,
    /// Blocks in transit, sorted by how far they have to go, in Bruck's alltoall.
    Transit,
    /// The data with its blocks in the order of their reversed numbers, in the butterfly.
    Permuted,
}

/// The action of a receive on its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReceiveAction {
    /// It is stored.
    Store,
    /// It is reduced into what is there.
    Combine,
    /// It is reduced into the data as well as into the running reduction.
    CombineBoth,
}

impl ReceiveAction {
    /// The number of reductions that the action takes.
    pub fn reductions(self) -> u64 {
        match self {
            ReceiveAction::Store => 0,
            ReceiveAction::Combine => 1,
            ReceiveAction::CombineBoth => 2,
        }
    }
}

/// One thing a rank does in a round. Partners are member numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoundStep {
    /// Sends `piece` of `from`.
    Send { to: u32, from: RankBuffer, piece: Extent },
    /// Receives `piece` of `buffer`.
    Receive { from: u32, buffer: RankBuffer, piece: Extent, into: ReceiveAction },
    /// Copies so many bytes within memory.
    Copy { bytes: u64 },
    /// Hands a vector to the interface, which reduces it with those of all members.
    Accelerate { bytes: u64 },
    /// Sends `piece` of the data once, to all other members.
    Multicast { piece: Extent },
}

impl RoundStep {
    /// Copies and reductions that follow the messages of its round.
    pub fn work(&self, protocol: &Protocol) -> InMemory {
        let (mut work, calls) = match self {
            RoundStep::Copy { bytes } => (protocol.copy(Bytes::new(*bytes)), protocol.copy_call),
            RoundStep::Receive { piece, into, .. } => {
                let operands = piece.bytes.saturating_mul(into.reductions());
                (protocol.reduction(Bytes::new(operands)), protocol.reduce_call * into.reductions())
            }
            RoundStep::Send { .. } | RoundStep::Accelerate { .. } | RoundStep::Multicast { .. } => {
                return InMemory::default();
            }
        };
        work.alone += calls;
        work
    }
}

/// A message without data.
const NOTHING: Extent = Extent { offset: 0, bytes: 0 };

/// The steps of one round: receives are started first, then sends, or the other way round; copies and
/// reductions follow when all messages are there.
#[derive(Debug, Default)]
pub(crate) struct RoundSteps {
    steps: ArrayVec<RoundStep, { 2 * MAX_SCATTERED_PARTNERS as usize + 2 }>,
}

impl RoundSteps {
    /// Sends `piece` of the data to member `to`, if it is not empty.
    pub fn send(&mut self, to: u32, piece: Extent) {
        self.send_from(to, RankBuffer::Data, piece);
    }

    /// Sends `piece` of `from` to member `to`, if it is not empty.
    pub fn send_from(&mut self, to: u32, from: RankBuffer, piece: Extent) {
        if piece.bytes > 0 {
            self.steps.push(RoundStep::Send { to, from, piece });
        }
    }

    /// Receives `piece` of the data from member `from`, if it is not empty.
    pub fn receive(&mut self, from: u32, piece: Extent, into: ReceiveAction) {
        self.receive_into(from, RankBuffer::Data, piece, into);
    }

    /// Receives `piece` of `buffer` from member `from`, if it is not empty.
    pub fn receive_into(&mut self, from: u32, buffer: RankBuffer, piece: Extent, into: ReceiveAction) {
        if piece.bytes > 0 {
            self.steps.push(RoundStep::Receive { from, buffer, piece, into });
        }
    }

    /// Exchanges messages without data.
    pub fn tokens(&mut self, to: u32, from: u32) {
        self.token_from(from);
        self.token_to(to);
    }

    /// Sends a message without data to member `to`.
    pub fn token_to(&mut self, to: u32) {
        self.steps.push(RoundStep::Send { to, from: RankBuffer::Data, piece: NOTHING });
    }

    /// Receives a message without data from member `from`.
    pub fn token_from(&mut self, from: u32) {
        self.steps.push(RoundStep::Receive {
            from,
            buffer: RankBuffer::Data,
            piece: NOTHING,
            into: ReceiveAction::Store,
        });
    }

    /// Any step.
    pub fn push(&mut self, step: RoundStep) {
        self.steps.push(step);
    }

    /// Copies `bytes` within memory.
    pub fn copy(&mut self, bytes: u64) {
        if bytes > 0 {
            self.steps.push(RoundStep::Copy { bytes });
        }
    }

    /// Hands a vector to the interface, if it is not empty.
    pub fn accelerate(&mut self, bytes: u64) {
        if bytes > 0 {
            self.steps.push(RoundStep::Accelerate { bytes });
        }
    }

    /// Whether they are one send and one receive: MPI_Sendrecv does both.
    pub fn exchanges(&self) -> bool {
        let (mut sends, mut receives) = (0, 0);
        for step in &self.steps {
            sends += u32::from(matches!(step, RoundStep::Send { .. }));
            receives += u32::from(matches!(step, RoundStep::Receive { .. }));
        }
        (sends, receives) == (1, 1)
    }

    /// The steps.
    pub fn iter(&self) -> impl Iterator<Item = &RoundStep> {
        self.steps.iter()
    }

    /// The steps in the order in which they are started.
    pub fn in_order(&self, sends_first: bool) -> impl Iterator<Item = &RoundStep> {
        let goes_first = move |step: &&RoundStep| matches!(step, RoundStep::Send { .. }) && sends_first;
        let first = self.steps.iter().filter(goes_first);
        first.chain(self.steps.iter().filter(move |step| !goes_first(step)))
    }
}

/// Finds the neighbours of the member at a position, below a root at another.
pub(crate) type FindNeighbours = fn(hierarchy: &Hierarchy, root: u32, position: u32) -> Neighbours;

/// An algorithm: what each member does in each round.
pub(crate) trait Schedule: Sync {
    /// The collectives that it carries out.
    fn performs(&self) -> &'static [Collective];

    /// The number of rounds, the empty ones included.
    fn rounds(&self, part: &MemberPart) -> u32;

    /// Lists in `steps` what this member does in round `round`.
    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps);

    /// Whether the next round is started together with round `round`, and not after it.
    fn overlaps(&self, _part: &MemberPart, _round: u32) -> bool {
        false
    }

    /// Whether interfaces or switches carry it out.
    fn is_by_hardware(&self) -> bool {
        false
    }

    /// Where it asks for the members' places in the machine: how it finds the neighbours of a member, which
    /// stand in its part.
    fn neighbours(&self) -> Option<FindNeighbours> {
        None
    }
}

/// How often 2 must be doubled from 1 to reach at least `members`: the depth of a binomial tree.
pub(crate) fn ceil_log2(members: u32) -> u32 {
    members.max(1).next_power_of_two().trailing_zeros()
}
