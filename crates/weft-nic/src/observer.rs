//! Reports of an interface on its work: the seam for breakdowns, telemetry and RTL tests.
//!
//! ```text
//!   block:   came ──── waits ────► began ──── works ────► ended  =  came of the next block or link
//! ```
//! The stages of one message and the [hops](HopRecord) of the packet that decides its arrival are a chain
//! in time, from when the host posted it to when the host is told of it. An interface watches the first
//! packet of a message and the last: from the first packet's hops one reads how long the message's own
//! packets take on the slowest link.

use crate::block::Block;
use crate::data::DataError;
use crate::failure::Failure;
use crate::mailbox::QueueChange;
use crate::packetizer::ChannelChange;
use crate::ports::PortEvent;
use crate::rdma::RdmaChange;
use weft_fabric::HopRecord;
use weft_units::{Bytes, EndpointId, Time};

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

    /// Something has crossed a port of packetizer or mailbox: of hosts that
    /// [watch them](crate::Host::ports).
    fn port(&mut self, _event: &PortEvent) {}

    /// A message has failed, and its host did not want to know.
    fn failed(&mut self, _failure: &Failure) {}

    /// The memory of source and target has been compared for a message or a reduction of so many bytes, and
    /// agrees.
    fn compared(&mut self, _bytes: Bytes) {}

    /// It does not agree, and the host did not want to know.
    fn damaged(&mut self, _error: &DataError) {}
}

impl Observer for () {}
