//! Blocks: the parts of an interface that breakdowns and telemetry name.
//!
//! ```text
//!   packetizer.rs ── PACKETIZER ──┐
//!   rdma/blocks.rs ── RDMA_SEND ──┼──► Block in a Stage ──► breakdowns: name, kind, cause of waiting
//!   your_interface.rs ── … ───────┘
//! ```
//! A block is declared beside the code that it names. There is no list of all of them.

/// The part of an endpoint that a block belongs to, as breakdowns add it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// Logic of the interface.
    Logic,
    /// Logic whose time for a packet is the pace at which the interface sends.
    Pace,
    /// A buffer of the interface.
    Buffer,
    /// The memory of the host, or a process of it that waits.
    Host,
    /// Work of a processor.
    Software,
}

/// The properties of a block that reports tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockDeclaration {
    /// The name in reports.
    pub name: &'static str,
    /// The part of the endpoint.
    pub kind: BlockKind,
    /// The cause for which a message waits before this block, where that is an interface's way of working and
    /// not other packets on the same way.
    pub waits_for: Option<&'static str>,
}

/// A part of a network interface or of what it is attached to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block(&'static BlockDeclaration);

/// The block of a kind and a name.
macro_rules! block {
    ($kind:ident $name:literal) => {
        $crate::block::block!($kind $name, None)
    };
    ($kind:ident $name:literal, waits for $cause:literal) => {
        $crate::block::block!($kind $name, Some(concat!("waits for ", $cause)))
    };
    ($kind:ident $name:literal, $waits_for:expr) => {
        $crate::Block::of(&$crate::BlockDeclaration {
            name: $name,
            kind: $crate::BlockKind::$kind,
            waits_for: $waits_for,
        })
    };
}
pub(crate) use block;

impl Block {
    /// An interface as a whole: that of overheads has no parts.
    pub const INTERFACE: Block = block!(Pace "interface");
    /// The memory channel that cores and interface share.
    pub const MEMORY: Block = block!(Host "memory");
    /// The timer of what was sent and not answered: TR-488 §4.4, §4.5.2.
    pub const TIMEOUT: Block = block!(Logic "time-out");
    /// Packets of all blocks take turns on the way into the network.
    pub const TRANSMIT: Block = block!(Logic "transmit");
    /// The process that polls for what has come.
    pub const POLLING: Block = block!(Host "polling");

    /// The block that is declared so.
    pub const fn of(declaration: &'static BlockDeclaration) -> Block {
        Block(declaration)
    }

    /// The name of the block in reports.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The part of the endpoint that it belongs to.
    pub const fn kind(self) -> BlockKind {
        self.0.kind
    }

    /// Whether it is work of a processor.
    pub const fn is_software(self) -> bool {
        matches!(self.0.kind, BlockKind::Software)
    }

    /// The cause for which a message waits before this block, where that is an interface's way of working and
    /// not other packets on the same way.
    pub const fn waits_for(self) -> Option<&'static str> {
        self.0.waits_for
    }
}
