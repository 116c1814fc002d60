//! What a machine file says of the block-level interface.

use crate::host_port::HostPortParameters;
use crate::mailbox::MailboxParameters;
use crate::packetizer::PacketizerParameters;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FullParameters {
    /// The port between processors, memory and interface.
    pub host_port: HostPortParameters,
    /// Small messages out.
    pub packetizer: PacketizerParameters,
    /// Small messages in.
    pub mailbox: MailboxParameters,
    /// RDMA writes.
    pub rdma: WriteParameters,
    /// Largest payload of a packet.
    pub cell: Bytes,
}

/// RDMA writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WriteParameters {
    /// What a process stores to start one.
    pub descriptor: Bytes,
    /// What the segmentation agent takes to start one; it starts one at a time.
    pub start: Span,
    /// Transfers that may be under way.
    pub channels: u32,
    /// What is written beside the data to tell the receiver.
    pub notification: Bytes,
}
