//! Pieces of a critical path: spans of time, each with its cause and its place.

use crate::replay::MessageId;
use weft_fabric::LinkEnd;
use weft_msg::Work;
use weft_nic::Block;
use weft_topo::LinkClass;
use weft_trace::Kind;
use weft_units::{EndpointId, RankId, Span, Time};

/// The kind of a piece: the work or the wait that takes the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieceKind {
    /// The program computes.
    Compute,
    /// Messaging software, in a call or in the background.
    Software(Work, Option<Kind>),
    /// A block of an interface works on the message.
    Block(Block),
    /// A switch: to the edge of its clock, and its pipeline.
    Switch,
    /// A link: SERDES and wire.
    Link,
    /// A link that slept wakes.
    Waking,
    /// The message's own bits: its last packet's, and what its packets before that kept the slowest link
    /// busy.
    Serialization,
    /// The interface's own way of working makes the message wait [for](Block::waits_for) what this block
    /// stands for: its agent, a free channel, an outstanding block.
    WaitsFor(Block),
    /// Others are served first, or a buffer is full.
    Waiting,
    /// Packets that came before stand in the output buffer of a switch.
    OutputBuffer,
    /// The partner has not come so far in its program.
    LatePartner,
    /// The recording does not reach back so far.
    NotRecorded,
}

/// The coarse categories.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Category {
    /// The program computes.
    Computation,
    /// Messaging software.
    Software,
    /// Network interfaces.
    Interface,
    /// Links and switches at zero load.
    Network,
    /// The messages' own bits.
    Serialization,
    /// Others in links, switches and interfaces.
    Contention,
    /// Waiting for a partner that has not come so far.
    LatePartner,
    /// Before the recording.
    NotRecorded,
}

impl Category {
    /// All, in the order of reports.
    pub const ALL: [Category; 8] = [
        Category::Computation,
        Category::Software,
        Category::Interface,
        Category::Network,
        Category::Serialization,
        Category::Contention,
        Category::LatePartner,
        Category::NotRecorded,
    ];

    /// The category's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Category::Computation => "computation",
            Category::Software => "software",
            Category::Interface => "interface",
            Category::Network => "network latency",
            Category::Serialization => "serialization",
            Category::Contention => "contention",
            Category::LatePartner => "late partner",
            Category::NotRecorded => "not recorded",
        }
    }
}

impl PieceKind {
    /// The category that it counts in.
    pub const fn category(self) -> Category {
        match self {
            PieceKind::Compute => Category::Computation,
            PieceKind::Software(..) => Category::Software,
            PieceKind::Block(block) if block.is_software() => Category::Software,
            PieceKind::Block(_) | PieceKind::WaitsFor(_) => Category::Interface,
            PieceKind::Switch | PieceKind::Link | PieceKind::Waking => Category::Network,
            PieceKind::Serialization => Category::Serialization,
            PieceKind::Waiting | PieceKind::OutputBuffer => Category::Contention,
            PieceKind::LatePartner => Category::LatePartner,
            PieceKind::NotRecorded => Category::NotRecorded,
        }
    }
}

/// The place at which time is spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// At a rank, counted over all programs.
    Rank(RankId),
    /// In a block of the interface of an endpoint.
    Block(EndpointId, Block),
    /// On the link that begins there, or before it in the switch.
    Link(LinkEnd, LinkClass),
}

/// A span of time that one thing explains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The time at which it begins.
    pub begin: Time,
    /// The time at which it ends.
    pub end: Time,
    /// The work or the wait.
    pub kind: PieceKind,
    /// The place.
    pub place: Location,
    /// The message that it is spent on, while that is on its way; of a late partner, the message that it is
    /// late with.
    pub message: Option<MessageId>,
    /// The MPI call that it is part of, of a real rank whose calls are known. In a rank's own time also the
    /// call in which it waits for a message, of any rank.
    pub within: Option<&'static str>,
}

impl Piece {
    /// The length of the piece.
    pub fn span(&self) -> Span {
        self.end - self.begin
    }
}
