//! Requests to reduction modules, packets between them, and the surroundings of a module.

use super::limits::AcceleratorLimits;
use super::state::ModuleState;
use super::vector::{DataType, Operation};
use crate::reliability::ReliabilityParameters;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Clock, EndpointId, Span, Time};

/// The accelerator's section of a machine file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AllreduceParameters {
    /// The groups and vectors that it serves.
    pub limits: AcceleratorLimits,
    /// The modules' clock.
    pub clock: Clock,
    /// Bytes that their datapath reduces per cycle.
    pub word: Bytes,
    /// Cycles from the last word of a vector to the last of its reduction.
    pub latency_cycles: u32,
    /// Before a module sends: it reads the address of the member in the table that software has pointed to.
    pub lookup: Span,
    /// From the call to the module's first step, per operation: software programs it.
    pub start: Span,
    /// From the vector's being in memory to the call's return, per operation: the module notifies.
    pub finish: Span,
    /// When a module asks for what has not come, and when it gives up.
    pub reliability: ReliabilityParameters,
}

/// A rank's request to the module of its MPSoC.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AllreduceRequest {
    /// The group, among those whose operations overlap.
    pub group: u32,
    /// Counts the group's operations.
    pub sequence: u32,
    /// The members' endpoints, in rank order.
    pub members: Vec<EndpointId>,
    /// Which of them asks.
    pub own: u32,
    /// Bytes of the vector.
    pub bytes: Bytes,
    /// The operation on two elements.
    pub operation: Operation,
    /// The type of the elements.
    pub data_type: DataType,
    /// Comes back when it is done.
    pub token: u32,
    /// The virtual interface of the rank that asks.
    pub interface: u16,
    /// Whether the observer is to be told of it.
    pub watch: bool,
}

/// An operation of a group on one block of the vector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OperationId {
    /// The group.
    pub group: u32,
    /// The operation, counted by the group.
    pub sequence: u32,
    /// The block of the vector.
    pub block: u32,
}

/// The kind of a packet between two modules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum ModulePacketKind {
    /// A client's vector; which of the board's members it is.
    Contribution(u8),
    /// A server's vector, at a level from 1 on.
    Exchange(u8),
    /// The reduced vector.
    Result,
    /// The sender waits for the receiver's vector.
    Ask,
    /// The sender is asked for a vector that it does not have yet.
    NotYet,
    /// The sender is asked for a vector that it will not have.
    Failed,
}

/// A packet between modules.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ModulePacket {
    /// The node that the packet is for.
    pub to: EndpointId,
    /// The operation.
    pub id: OperationId,
    /// The step of the operation.
    pub step: ModulePacketKind,
    /// Payload.
    pub bytes: Bytes,
    /// Not before.
    pub due: Time,
    /// The vector, where values are carried.
    pub values: Option<Vec<u8>>,
}

/// Whoever drives a module.
pub trait ModuleCallbacks {
    /// Calls [`Module::woken`](super::Module::woken) at `at`.
    fn wake(&mut self, at: Time, id: OperationId);
    /// Puts a packet on the link when it is due.
    fn send(&mut self, packet: ModulePacket);
    /// A block of a rank's request begins at `at`.
    fn begins(&mut self, token: u32, at: Time);
    /// It has been in `state` since it began, or since it was in another, and is in the next one from `until`
    /// on.
    fn was(&mut self, token: u32, state: ModuleState, until: Time);
    /// A rank's request is done at `at`; the reduced vector where values are carried.
    fn finished(&mut self, at: Time, token: u32, values: Option<Vec<u8>>);
    /// Calls [`Module::expired`](super::Module::expired) at `at`.
    fn arm(&mut self, at: Time);
    /// A rank's request has failed, since the module of `other` does not answer or has failed itself.
    fn failed(&mut self, at: Time, request: &AllreduceRequest, other: EndpointId);
}

/// The surroundings of a module while it is called.
pub struct ModuleContext<'a, S: ModuleCallbacks> {
    /// The present time.
    pub now: Time,
    /// The machine file's section.
    pub parameters: &'a AllreduceParameters,
    /// The driver of the module.
    pub callbacks: &'a mut S,
}
