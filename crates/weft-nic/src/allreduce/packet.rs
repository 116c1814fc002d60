//! Requests to reduction modules, packets between them, and the surroundings of a module.

use super::limits::AcceleratorLimits;
use super::state::ModuleState;
use super::vector::{DataType, Operation};
use crate::ports::ModuleCrossing;
use crate::reliability::ReliabilityParameters;
use serde::{Deserialize, Serialize};
use weft_keys::{Misfit, Problem};
use weft_units::{Bytes, Clock, EndpointId, Span, Time};

weft_keys::keys! {
    /// The accelerator's section of a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct AllreduceParameters {
        /// The groups and vectors that it serves.
        limits: AcceleratorLimits, group();
        /// The modules' clock.
        clock: Clock, of("nic.clock");
        /// Bytes that their datapath reduces per cycle.
        word: Bytes, of("nic.host_port.word");
        /// From the last word of a vector to the last of its reduction, in whole cycles.
        latency_cycles: u32, key("latency"), cycles_of("nic.clock");
        /// Time to read a member's address in the table of ranks before something is sent to it; none where
        /// not given.
        lookup: Span = Span::ZERO;
        /// From the call to the module's first step, per operation: software programs it.
        start: Span;
        /// From the vector's being in memory to the call's return, per operation: the module notifies.
        finish: Span;
        beside {
            /// When a module asks for what has not come, and when it gives up: its packets are like the
            /// packetizer's.
            reliability: ReliabilityParameters = ReliabilityParameters::default();
        }
    }
}

impl AllreduceParameters {
    /// Checks that vectors have whole elements, and fit into packets of at most `payload`.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check(&self, payload: Bytes) -> Result<(), Misfit> {
        let vector = self.limits.vector;
        let (why, mend) = if vector == Bytes::ZERO || !vector.get().is_multiple_of(8) {
            let why = format!("vectors of {vector} do not hold whole numbers of each type");
            (why, "write a multiple of 8, such as 256".to_owned())
        } else if vector > payload {
            let mend = format!("write at most {payload}, the payload of a packet");
            (format!("a vector of {vector} does not fit a packet"), mend)
        } else {
            return Ok(());
        };
        Err(Problem::new(why, "", mend).of("vector"))
    }
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
    /// The same of a packet that was sent before, and is missing where it was sent to.
    fn send_again(&mut self, packet: ModulePacket) {
        self.send(packet);
    }
    /// An operation has waited too long, and asks for what is missing or gives up.
    fn timed_out(&mut self) {}
    /// A vector has come that had come before.
    fn came_again(&mut self) {}
    /// Something crosses a port of the module, other than a packet.
    fn crossed(&mut self, _: impl FnOnce() -> ModuleCrossing)
    where
        Self: Sized,
    {
    }
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
