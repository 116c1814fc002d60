//! Reports of an interface on its work: the seam for breakdowns, telemetry and RTL tests.
//!
//! ```text
//!   block:   came ──── waits ────► began ──── works ────► ended  =  came of the next block or link
//! ```
//! The stages of one message and the [hops](HopRecord) of the packet that decides its arrival are a chain
//! in time, from when the host posted it to when the host is told of it. An interface watches the first
//! packet of a message and the last: from the first packet's hops one reads how long the message's own
//! packets take on the slowest link.

use crate::allreduce::ModuleState;
use crate::apenetx::CardPart;
use crate::data::DataError;
use crate::host::Failure;
use crate::mailbox::QueueChange;
use crate::packetizer::ChannelChange;
use crate::rdma::RdmaChange;
use serde::{Deserialize, Serialize};
use weft_fabric::HopRecord;
use weft_units::{Bytes, EndpointId, Time};

/// A part of a network interface or of what it is attached to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Block {
    /// The overheads interface, which has no parts.
    Interface,
    /// The port between processor and interface: TR-488 §4.2.
    HostPort,
    /// TR-488 §4.4.
    Packetizer,
    /// TR-488 §4.4.
    Mailbox,
    /// The segmentation agent: the R5 co-processor of TR-488 §4.5.2, or hardware.
    Segmentation,
    /// The channels of a page of the send unit (TR-488 §4.5): one must be free.
    RdmaChannel,
    /// The descriptors of a process in on-chip memory (D1.4 §8): a context must be free for the first.
    DescriptorChannel,
    /// The allocation of a context of the send unit, up to the first read of memory: D1.4 §8.2.
    SourceContext,
    /// The blocks that a channel of the send unit may have outstanding: one must be acknowledged.
    OutstandingBlock,
    /// The send unit of TR-488 §4.5.
    RdmaSend,
    /// The receive unit of TR-488 §4.5.
    RdmaReceive,
    /// Address translation: TR-488 §4.5.3.
    Iommu,
    /// The memory channel that cores and interface share.
    Memory,
    /// The timer of what was sent and not answered: TR-488 §4.4, §4.5.2.
    Timeout,
    /// The reduction module of TR-488 §4.7, in this state of an operation.
    Allreduce(ModuleState),
    /// A kernel's aggregator of the Communication IP: D2.8 §3.
    Aggregator,
    /// The transmitting FIFOs of an IntraNode port: D2.8 §2.
    TransmitFifo,
    /// The dispatcher of an IntraNode port: D2.8 §3.
    Dispatcher,
    /// Packets of all blocks take turns on the way into the network.
    Transmit,
    /// The process that polls for what has come.
    Polling,
    /// Portals: from a command to its first packet; the doorbell, and the read of the data.
    Command,
    /// Portals: the transmit engine of RED-SEA D1.4 §2.2.
    TransmitEngine,
    /// Portals: the receive engine of RED-SEA D1.4 §2.2.
    ReceiveEngine,
    /// Portals: the writes of data and event into the host's memory.
    EventWrite,
    /// A part of the APEnetX card, its port and its software: APX §3, D1.4 §9.2.1.
    Apenetx(CardPart),
}

impl Block {
    /// The name of the block in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Block::Interface => "interface",
            Block::HostPort => "host port",
            Block::Packetizer => "packetizer",
            Block::Mailbox => "mailbox",
            Block::Segmentation => "segmentation",
            Block::RdmaChannel => "rdma channel",
            Block::DescriptorChannel => "descriptor channel",
            Block::SourceContext => "source context",
            Block::OutstandingBlock => "outstanding blocks",
            Block::RdmaSend => "rdma send",
            Block::RdmaReceive => "rdma receive",
            Block::Iommu => "iommu",
            Block::Memory => "memory",
            Block::Timeout => "time-out",
            Block::Allreduce(state) => state.name(),
            Block::Aggregator => "aggregator",
            Block::TransmitFifo => "tx fifo",
            Block::Dispatcher => "dispatcher",
            Block::Transmit => "transmit",
            Block::Polling => "polling",
            Block::Command => "command",
            Block::TransmitEngine => "transmit engine",
            Block::ReceiveEngine => "receive engine",
            Block::EventWrite => "event write",
            Block::Apenetx(part) => part.name(),
        }
    }

    /// Whether it is work of a processor.
    pub const fn is_software(self) -> bool {
        match self {
            Block::Allreduce(ModuleState::Programming) => true,
            Block::Apenetx(part) => part.is_software(),
            _ => false,
        }
    }

    /// The cause for which a message waits before this block, where that is an interface's way of working and
    /// not other packets on the same way.
    pub const fn waits_for(self) -> Option<&'static str> {
        match self {
            Block::Segmentation => Some("waits for the agent"),
            Block::RdmaChannel => Some("waits for a channel"),
            Block::DescriptorChannel => Some("waits for a context"),
            Block::OutstandingBlock => Some("waits for outstanding blocks"),
            _ => None,
        }
    }
}

/// The work of one block on one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// The endpoint of the block.
    pub endpoint: EndpointId,
    /// The endpoint that sends the message.
    pub source: EndpointId,
    /// The message, counted by its source.
    pub message: u32,
    /// The block.
    pub block: Block,
    /// The time at which the message came to the block.
    pub came: Time,
    /// The time at which the block began on it.
    pub began: Time,
    /// The time at which the block was done, and handed it on.
    pub ended: Time,
}

/// A block has gone from one state to another: what telemetry and RTL tests compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateChange {
    /// The endpoint of the block.
    pub endpoint: EndpointId,
    /// The time of the change.
    pub at: Time,
    /// The block, and its change.
    pub change: BlockChange,
}

/// The change of state of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BlockChange {
    /// A channel of the packetizer.
    Packetizer(ChannelChange),
    /// A queue of the mailbox.
    Mailbox(QueueChange),
    /// A channel, block or context of the RDMA engine.
    Rdma(RdmaChange),
}

/// The receiver of reports. It must not influence the model.
pub trait Observer {
    /// A watched packet was put on a link.
    fn hop(&mut self, _hop: &HopRecord) {}

    /// A block has dealt with a watched message.
    fn stage(&mut self, _stage: &Stage) {}

    /// Whether it hears of changes of state. Of those that nobody hears of the RDMA engine keeps none.
    const HEARS_STATES: bool = false;

    /// A block has changed its state. Not called by all blocks without [`Observer::HEARS_STATES`].
    fn state(&mut self, _change: &StateChange) {}

    /// A message has failed, and its host did not want to know.
    fn failed(&mut self, _failure: &Failure) {}

    /// The memory of source and target has been compared for a message or a reduction of so many bytes, and
    /// agrees.
    fn compared(&mut self, _bytes: Bytes) {}

    /// It does not agree, and the host did not want to know.
    fn damaged(&mut self, _error: &DataError) {}
}

impl Observer for () {}
