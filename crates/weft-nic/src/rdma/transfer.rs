//! The words of the RDMA engine's units to each other and to their users: descriptors, cells, answers.

use crate::gvas::Pdid;
use serde::{Deserialize, Serialize};
use weft_fabric::ClassTag;
use weft_units::{Address, Bytes, EndpointId, Time};

/// A location of a process on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Location {
    /// The process: its rank within the node.
    pub space: u32,
    /// The virtual address, of 39 bits.
    pub address: Address,
}

/// Which channels of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum ChannelKind {
    /// For transfers of local processes.
    Write,
    /// For the answers to reads of remote ones.
    Read,
}

/// A channel of a send unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ChannelId(pub u16);

/// A descriptor of a transfer, which a process writes into a channel: 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Descriptor {
    /// The location of the data.
    pub source: Location,
    /// The node to which it goes.
    pub to: EndpointId,
    /// The location that the data goes to there.
    pub destination: Location,
    /// The bytes of the transfer.
    pub bytes: Bytes,
    /// The initiator's protection domain.
    pub domain: Pdid,
    /// The transfer's number, counted by its source.
    pub message: u32,
    /// The time at which it was handed to the unit.
    pub posted: Time,
    /// The user's name for the transfer.
    pub token: Option<u32>,
    /// Whether the observer is to be told of its way.
    pub watch: bool,
    /// The traffic class of its cells.
    pub class: ClassTag,
}

/// The header of a transfer at its destination: in hardware, fields of the cells' headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TransferHeader {
    /// The location that the data goes to.
    pub destination: Location,
    /// The bytes of the transfer.
    pub bytes: Bytes,
    /// The initiator's protection domain.
    pub domain: Pdid,
    /// The transaction of its first block; the others follow.
    pub first: u32,
    /// The transfer's number, counted by its source.
    pub message: u32,
    /// Whether the observer is to be told.
    pub watch: bool,
}

/// The identity of a cell among all those of its source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CellId {
    /// The channel that sends it.
    pub channel: ChannelId,
    /// The block, counted by the channel over all its transfers.
    pub transaction: u32,
    /// The cell within the block, below 64.
    pub index: u8,
    /// Whether it is the block's last.
    pub last: bool,
    /// How often the block has been sent before, modulo 256.
    pub attempt: u8,
}

impl CellId {
    /// The number of its block among those of its endpoint, for routings that spread blocks.
    pub fn block(self) -> u32 {
        (self.transaction << 8 ^ u32::from(self.channel.0)) | 1 << 31
    }
}

/// Why a block was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// The receive unit had no context left.
    NoContext,
    /// A page was not mapped at the destination; now it is.
    PageFault,
    /// The destination belongs to another protection domain.
    Protection,
}

/// The receive unit's answer to a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// It is in memory.
    Ack,
    /// It is not.
    Nack(Refusal),
}

/// Why a transfer ended without its data being there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum TransferError {
    /// No answer after all repetitions.
    #[error("no answer from the destination; is it up, and are the links on the way?")]
    TimedOut,
    /// The destination belongs to another protection domain.
    #[error("the destination belongs to another protection domain; open both sides in the same one")]
    Protection,
}
