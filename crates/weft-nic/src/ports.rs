//! The ports of the interface's blocks: what crosses them, for a comparison with their RTL.
//!
//! ```text
//!   process ── stores ──►┌────────────┐── packets ──►    ── packets ──►┌─────────┐── entries ──► memory
//!                        │ packetizer │                                │ mailbox │
//!   process ◄── status ──└────────────┘◄── answers ──    ◄── answers ──└─────────┘◄── heads ── process
//!
//!   process ── descriptors ──►┌───────────┐── cells, answers to requests ──►
//!   memory  ◄── reads ────────│ send unit │
//!   memory  ── words ────────►└───────────┘◄── requests, answers to blocks ──
//!
//!   ── cells ──►┌──────────────┐── words, notifications ──► memory
//!               │ receive unit │
//!   ◄─ answers ─└──────────────┘
//! ```
//! The model knows some of it ahead of time and some of it late: each event says when it happens, which need
//! not be when it is reported.

use crate::allreduce::{DataType, ModulePacketKind, Operation, OperationId};
use crate::gvas::Pdid;
use crate::mailbox::{QueueChange, Refusal};
use crate::memory_path::MemoryWrite;
use crate::packetizer::{ChannelChange, ChannelId, Parcel};
use crate::rdma::{self, Answer, Cell, CellId, Descriptor, TransferHeader};
use weft_units::{Bytes, EndpointId, Time};

/// An event at the ports of an endpoint's blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortEvent {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The time at which it is reported, at or after that of the report before it.
    pub at: Time,
    /// The port, and what crosses it.
    pub what: Crossing,
}

/// An event of one port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Crossing {
    /// System software gives an interface to a protection domain.
    Opened {
        /// The interface.
        interface: u16,
        /// The domain.
        domain: Pdid,
    },
    /// A process stores a parcel.
    Stored {
        /// The parcel.
        parcel: StoredParcel,
        /// The time at which the engine has made its packet.
        made: Time,
    },
    /// The engine makes a packet again, as its time is up; or later than was said, behind such a one.
    Made {
        /// The channel.
        channel: ChannelId,
        /// The number of the message.
        message: u32,
        /// The time at which the engine has made the packet.
        made: Time,
    },
    /// The network takes a packet of the packetizer, from now on.
    Sent {
        /// The channel.
        channel: ChannelId,
        /// The number of the message.
        message: u32,
    },
    /// A packet has been answered before the network has taken its repetition, which is not sent.
    Stale {
        /// The channel.
        channel: ChannelId,
        /// The number of the message.
        message: u32,
    },
    /// The tail of an answer has come to the packetizer.
    Answered(SmallAnswer),
    /// A channel of the packetizer has changed its state.
    Channel(ChannelChange),
    /// The tail of a small message has come to the mailbox, which has no slot for it yet.
    Waits(SmallPacket),
    /// The mailbox has a small message whole, the first of those that wait if any do.
    Arrived(Arrival),
    /// A queue of the mailbox has changed its state.
    Queue(QueueChange),
    /// The mailbox of the send unit has a verdict now on a request of a read.
    RequestArrived {
        /// The time at which its tail has come.
        tail: Time,
        /// The request, and the verdict, with which the read starts if it is `put`.
        arrival: Arrival,
    },
    /// A channel of the send unit takes a descriptor.
    Described(StoredDescriptor),
    /// The send unit reads the payload of a cell.
    CellRead {
        /// The cell.
        cell: Cell,
        /// The time at which its last word has come.
        ready: Time,
    },
    /// The network takes a cell, from now on.
    CellSent(CellId),
    /// The tail of an answer to a block has come to the send unit.
    BlockAnswered(BlockReply),
    /// The tail of a cell has come to the receive unit.
    CellArrived(CellArrival),
    /// The network takes an answer to a block, from now on.
    BlockReplied {
        /// The endpoint whose block it is.
        to: EndpointId,
        /// The block, its attempt, and the cell that is answered.
        id: CellId,
        /// The answer.
        answer: Answer,
    },
    /// Something has crossed a port of the reduction module.
    Module(ModuleCrossing),
}

/// An event of a port of the reduction module. Values are those of vectors, where they are carried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModuleCrossing {
    /// Software has programmed an operation, whose vector is read from now on.
    Programmed {
        /// The operation.
        module: ProgrammedModule,
        /// The time at which the vector has come from memory.
        fetched: Time,
        /// The vector.
        values: Option<Vec<u8>>,
    },
    /// A packet will be due.
    Made {
        /// The packet.
        packet: PacketOfModule,
        /// The time from which on the address of its receiver is looked up. A question, an answer and a
        /// vector that was sent before are without lookup: the time at which they are due.
        from: Time,
        /// The time from which on the network may take it.
        due: Time,
        /// The vector in it.
        values: Option<Vec<u8>>,
    },
    /// The network takes a packet, from now on.
    Sent(PacketOfModule),
    /// The tail of a packet has come from the module at `packet.other`.
    Arrived {
        /// The packet.
        packet: PacketOfModule,
        /// Whether it is damaged, and says nothing.
        damaged: bool,
        /// The vector in it.
        values: Option<Vec<u8>>,
    },
    /// The result goes to memory.
    Written {
        /// The write.
        write: ResultWrite,
        /// The result.
        values: Option<Vec<u8>>,
    },
    /// The operation under way has failed now.
    Failed {
        /// The operation.
        id: OperationId,
        /// Whose module has not answered, or has failed itself.
        other: EndpointId,
    },
}

/// The write of a result to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultWrite {
    /// The operation.
    pub id: OperationId,
    /// The time at which the module has the result.
    pub ready: Time,
    /// The time at which its last word has left the module.
    pub issued: Time,
    /// The time at which it is in memory.
    pub written: Time,
}

/// The operation that a module is programmed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgrammedModule {
    /// The operation.
    pub id: OperationId,
    /// Ranks of the group.
    pub ranks: u32,
    /// The module's own rank.
    pub own: u32,
    /// The first four members of its board, in rank order.
    pub board: [EndpointId; 4],
    /// Bytes of the vector.
    pub bytes: Bytes,
    /// The operation on two elements.
    pub operation: Operation,
    /// The type of the elements.
    pub data_type: DataType,
}

/// A packet between modules, without its vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketOfModule {
    /// The endpoint at the other end.
    pub other: EndpointId,
    /// The operation.
    pub id: OperationId,
    /// The step of the operation.
    pub step: ModulePacketKind,
    /// Payload.
    pub bytes: Bytes,
}

/// The payload of a small message, filled up with zeros.
pub type SmallPayload = [u8; 64];

/// A parcel that a process stores into a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredParcel {
    /// The channel.
    pub channel: ChannelId,
    /// The parcel.
    pub parcel: Parcel,
    /// The time at which the last store is at the packetizer.
    pub came: Time,
    /// The bytes, where they are known.
    pub payload: Option<SmallPayload>,
}

/// A descriptor that a process stores into a channel of the send unit, or its mailbox for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredDescriptor {
    /// The channel.
    pub channel: rdma::ChannelId,
    /// The descriptor.
    pub descriptor: Descriptor,
    /// The transaction of its first block.
    pub first: u32,
    /// The time at which the last store is at the unit; where the agent is logic, at which that takes it.
    pub came: Time,
}

/// An answer to a block, as it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockReply {
    /// The endpoint that answers.
    pub from: EndpointId,
    /// The block, its attempt, and the cell that is answered.
    pub id: CellId,
    /// The answer.
    pub answer: Answer,
    /// The time at which an agent of logic takes it; `None`: it is damaged, and says nothing.
    pub taken: Option<Time>,
}

/// An answer to a small message, as it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmallAnswer {
    /// The endpoint that answers.
    pub from: EndpointId,
    /// The number of the message.
    pub message: u32,
    /// The channel that the message was posted to.
    pub channel: ChannelId,
    /// Why it is refused; `None`: it is acknowledged.
    pub refusal: Option<Refusal>,
    /// Whether the answer is damaged, and says nothing.
    pub damaged: bool,
}

/// A cell at the receive unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellArrival {
    /// The time at which its header has begun to come. The tail comes now.
    pub head: Time,
    /// The endpoint that has sent it.
    pub from: EndpointId,
    /// The number of its transfer there.
    pub message: u32,
    /// The identity of the cell.
    pub id: CellId,
    /// Bytes of payload.
    pub bytes: Bytes,
    /// The header of the transfer; `None`: the model has forgotten it.
    pub transfer: Option<TransferHeader>,
    /// Whether it is found to be damaged.
    pub damaged: bool,
    /// The write of its payload; `None`: it writes nothing.
    pub write: Option<MemoryWrite>,
    /// Whether it completes its block, and with it its transfer.
    pub block: bool,
    /// See `block`.
    pub ends: bool,
    /// Whether it is answered.
    pub answered: bool,
    /// Blocks that have waited for a context, have one now, and are answered.
    pub kept: usize,
    /// Whether others wait.
    pub waiting: bool,
}

/// A small message whose tail has come to the mailbox, or a request of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmallPacket {
    /// The time at which its header has begun to come; of one that has waited, to be taken.
    pub head: Time,
    /// The endpoint that has sent it.
    pub from: EndpointId,
    /// The number of the message there.
    pub message: u32,
    /// The channel that it was posted to there.
    pub channel: ChannelId,
    /// Bytes of payload.
    pub bytes: Bytes,
    /// The interface that it is for, and the domain that it carries.
    pub target: Option<(u16, Pdid)>,
    /// Whether it is damaged.
    pub damaged: bool,
    /// The bytes, where they are known.
    pub payload: Option<SmallPayload>,
}

/// The answer of the mailbox to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The time at which the check is done: answer and entry are on their way.
    pub checked: Time,
    /// Why it is refused; `None`: it is acknowledged.
    pub refusal: Option<Refusal>,
    /// Whether it is put into the queue; of a request of a read, whether that starts.
    pub put: bool,
}

/// A small message at the mailbox, or a request of a read at that of the send unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The packet. The tail of a small message comes now.
    pub packet: SmallPacket,
    /// The answer.
    pub verdict: Verdict,
}
