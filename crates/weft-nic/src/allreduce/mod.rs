//! The allreduce accelerator: a module in every MPSoC, client or server, that reduces without processors.
//!
//! ```text
//!   level 0       F2 ─┐                  levels 1 … log2(N/4)             then
//!                 F3 ─┼─► F1 reduces     F1 ◄──── exchange ────► F1       F1 ─► F2, F3, F4
//!                 F4 ─┘   in rank order  of boards 1, 2, 4 … apart        and all to memory
//! ```
//! # Order of reduction
//! On a board ((r0 ∘ r1) ∘ r2) ∘ r3 in the order of ranks, whichever comes first; in an exchange the lower
//! board's vector ∘ the upper one's. So both partners compute the same bits, and a result is the same in
//! every run.
//!
//! # Cost
//! A vector is fetched and stored through the host port as any other burst. A reduction takes a cycle per
//! word of the datapath and the latency of the arithmetic; packets take what the fabric takes. Only start
//! (software programs the module) and finish (the module tells the software) are spans of the machine file.
//!
//! # Source
//! TR-488 §4.7 and Fig. 10; §4.2 for datapath and clock. The text counts levels 1 to log2(N) - 1, which for
//! 16 ranks would be three exchanges; its own Fig. 10 has two, partners 4 and 8 ranks apart: log2(N/4).
//!
//! # Not modelled
//! Loss: the text has no retransmission between modules, and the links below lose nothing. A number of
//! boards that is no power of two: the exchanges do not reduce it, and [`AcceleratorLimits`] refuses it.

mod limits;
mod state;
#[cfg(test)]
mod tests;
mod vector;

pub use limits::{AcceleratorError, AcceleratorLimits};
pub use state::{ModuleEvent, ModuleState, Role};
pub use vector::{DataType, Operation, reduce};

use crate::memory_path::MemoryPath;
use crate::server::Server;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use weft_units::{Bytes, Clock, EndpointId, Span, Time};

/// What a machine file says of the accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AllreduceParameters {
    /// What it can do.
    pub limits: AcceleratorLimits,
    /// The modules' clock.
    pub clock: Clock,
    /// What their datapath reduces per cycle.
    pub word: Bytes,
    /// Cycles from the last word of a vector to the last of its reduction.
    pub latency_cycles: u32,
    /// From the call to the module's first step, per operation: software programs it.
    pub start: Span,
    /// From the vector's being in memory to the call's return, per operation: the module notifies.
    pub finish: Span,
}

/// What a rank asks of the module of its MPSoC.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AllreduceRequest {
    /// Tells groups apart whose operations overlap.
    pub group: u32,
    /// Counts the group's operations.
    pub sequence: u32,
    /// The members' endpoints, in rank order.
    pub members: Vec<EndpointId>,
    /// Which of them asks.
    pub own: u32,
    /// Bytes of the vector.
    pub bytes: Bytes,
    /// What is computed.
    pub operation: Operation,
    /// Of what.
    pub data_type: DataType,
    /// Comes back when it is done.
    pub token: u32,
    /// Whether the observer is to be told of it.
    pub watch: bool,
}

/// An operation of a group on one block of the vector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OperationId {
    /// The group.
    pub group: u32,
    /// Its operation.
    pub sequence: u32,
    /// The block of the vector.
    pub block: u32,
}

/// What one module sends another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Step {
    /// A client's vector; which of the board's members it is.
    Contribution(u8),
    /// A server's vector, at a level from 1 on.
    Exchange(u8),
    /// The reduced vector.
    Result,
}

/// A packet between modules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModulePacket {
    /// Where to.
    pub to: EndpointId,
    /// The operation.
    pub id: OperationId,
    /// Its step.
    pub step: Step,
    /// Payload.
    pub bytes: Bytes,
    /// Not before.
    pub due: Time,
    /// The vector, where values are carried.
    pub values: Option<Vec<u8>>,
}

/// Whoever drives a module.
pub trait ModuleSurface {
    /// Calls [`Module::woken`] at `at`.
    fn wake(&mut self, at: Time, id: OperationId);
    /// Puts a packet on the link when it is due.
    fn send(&mut self, packet: ModulePacket);
    /// A rank's request is done at `at`; the reduced vector where values are carried.
    fn finished(&mut self, at: Time, token: u32, values: Option<Vec<u8>>);
}

/// An operation under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Running {
    state: ModuleState,
    role: Role,
    /// The board's members in rank order, and which one this is.
    board: Vec<EndpointId>,
    own: u8,
    /// The board among the group's.
    number: u32,
    /// The servers to exchange with, level by level.
    partners: Vec<EndpointId>,
    /// Vectors that are reduced, of the board and then of levels.
    reduced: u8,
    /// When what is reduced is ready.
    ready: Time,
    bytes: Bytes,
    operation: Operation,
    data_type: DataType,
    token: u32,
    /// Whether it is the last block of the request.
    last: bool,
    values: Option<Vec<u8>>,
}

/// A request whose blocks are served one after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pending {
    request: AllreduceRequest,
    values: Option<Vec<u8>>,
    /// The next block.
    block: u32,
    /// When its software begins.
    at: Time,
}

/// When a vector came, with its values where they are carried.
type EarlyVector = (Time, Option<Vec<u8>>);

/// The module of one MPSoC.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Module {
    running: BTreeMap<OperationId, Running>,
    /// Requests that are not done, in their order; the first has an operation running.
    pending: VecDeque<Pending>,
    /// Vectors that came before they could be reduced, and when.
    early: BTreeMap<(OperationId, Step), EarlyVector>,
    arithmetic: Server,
    /// Results of earlier blocks of the request under way.
    result: Vec<u8>,
}

impl Module {
    /// A rank asks at `now`, with its vector where values are to be carried. Requests of the MPSoC are
    /// served one after the other, a vector block by block.
    ///
    /// # Errors
    /// Where the group is beyond the accelerator's limits.
    pub fn request(
        &mut self,
        request: AllreduceRequest,
        values: Option<Vec<u8>>,
        now: Time,
        parameters: &AllreduceParameters,
        surface: &mut impl ModuleSurface,
    ) -> Result<(), AcceleratorError> {
        parameters.limits.check(&request.members)?;
        self.pending.push_back(Pending { request, values, block: 0, at: now });
        if self.pending.len() == 1 {
            self.program(parameters, surface);
        }
        Ok(())
    }

    /// Software programs the next block of the first request, which the module then fetches.
    fn program(&mut self, parameters: &AllreduceParameters, surface: &mut impl ModuleSurface) {
        let Some(pending) = self.pending.front() else { return };
        let Pending { request, block, at, values } = pending;
        let AllreduceRequest {
            group, sequence, ref members, own, bytes, operation, data_type, token, ..
        } = *request;
        let AcceleratorLimits { board: width, vector, .. } = parameters.limits;
        let id = OperationId { group, sequence, block: *block };
        let offset = vector * u64::from(*block);
        let of_block = bytes.saturating_sub(offset).min(vector);
        let last = offset + vector >= bytes;
        let number = own / width;
        let board: Vec<EndpointId> =
            members.iter().skip((number * width) as usize).take(width as usize).copied().collect();
        let server = |number: u32| {
            let of_board = members.iter().skip((number * width) as usize).take(width as usize);
            of_board.copied().find(|endpoint| endpoint.0.is_multiple_of(width))
        };
        let levels = (members.len() as u32 / width).ilog2();
        let partners = (0..levels).filter_map(|level| server(number ^ 1 << level)).collect();
        let is_server = members.get(own as usize).is_some_and(|endpoint| endpoint.0.is_multiple_of(width));
        let slice = |values: &Vec<u8>| {
            let begin = (offset.get() as usize).min(values.len());
            values[begin..(begin + of_block.get() as usize).min(values.len())].to_vec()
        };
        let running = Running {
            state: ModuleState::Programming,
            role: if is_server { Role::Server } else { Role::Client },
            board,
            own: (own % width) as u8,
            number,
            partners,
            reduced: 0,
            ready: Time::ZERO,
            bytes: of_block,
            operation,
            data_type,
            token,
            last,
            values: values.as_ref().map(slice),
        };
        let programmed = *at + parameters.start;
        self.running.insert(id, running);
        surface.wake(programmed, id);
    }

    /// What the module wanted to be woken for: an operation is programmed, its vector has come from memory,
    /// or its result is ready.
    pub fn woken(
        &mut self,
        id: OperationId,
        now: Time,
        parameters: &AllreduceParameters,
        around: &mut MemoryPath<'_>,
        surface: &mut impl ModuleSurface,
    ) {
        let Some(running) = self.running.get_mut(&id) else { return };
        match running.state {
            ModuleState::Programming => {
                running.event(ModuleEvent::Programmed);
                surface.wake(around.read(running.bytes, now), id);
            }
            ModuleState::Fetching => self.fetched(id, now, parameters, surface),
            ModuleState::Finishing => self.finish(id, now, parameters, around, surface),
            _ => {}
        }
    }

    fn fetched(
        &mut self,
        id: OperationId,
        now: Time,
        parameters: &AllreduceParameters,
        surface: &mut impl ModuleSurface,
    ) {
        let Some(running) = self.running.get_mut(&id) else { return };
        running.event(ModuleEvent::Fetched);
        running.ready = now;
        let step = Step::Contribution(running.own);
        match running.role {
            Role::Client => {
                let server = running.board.iter().find(|to| to.0.is_multiple_of(parameters.limits.board));
                if let Some(&to) = server {
                    let (bytes, values) = (running.bytes, running.values.clone());
                    surface.send(ModulePacket { to, id, step, bytes, due: now, values });
                }
            }
            Role::Server => {
                let values = running.values.take();
                self.early.insert((id, step), (now, values));
            }
        }
        self.advance(id, parameters, surface);
    }

    /// A packet of another module has come.
    pub fn received(
        &mut self,
        id: OperationId,
        step: Step,
        values: Option<Vec<u8>>,
        now: Time,
        parameters: &AllreduceParameters,
        surface: &mut impl ModuleSurface,
    ) {
        self.early.insert((id, step), (now, values));
        self.advance(id, parameters, surface);
    }

    /// Takes an operation as far as the vectors that have come allow.
    fn advance(
        &mut self,
        id: OperationId,
        parameters: &AllreduceParameters,
        surface: &mut impl ModuleSurface,
    ) {
        let Some(running) = self.running.get_mut(&id) else { return };
        let words = running.bytes.div_ceil(parameters.word);
        let cycles = words + u64::from(parameters.latency_cycles);
        while running.state == ModuleState::Gathering {
            let step = Step::Contribution(running.reduced);
            let Some((came, values)) = self.early.remove(&(id, step)) else { return };
            if running.reduced == 0 {
                // The first operand: nothing to compute.
                running.ready = running.ready.max(came);
                running.values = values;
            } else {
                let from = running.ready.max(came);
                running.ready = self.arithmetic.serve(from, cycles, &parameters.clock).ended;
                running.combine(values, false);
            }
            running.reduced += 1;
            if usize::from(running.reduced) == running.board.len() {
                running.event(ModuleEvent::Gathered);
                running.reduced = 0;
                running.exchange(id, surface);
            }
        }
        while running.state == ModuleState::Exchanging {
            if usize::from(running.reduced) == running.partners.len() {
                running.event(ModuleEvent::Exchanged);
                for &to in running.board.iter().filter(|to| !to.0.is_multiple_of(parameters.limits.board)) {
                    let (bytes, due, values) = (running.bytes, running.ready, running.values.clone());
                    surface.send(ModulePacket { to, id, step: Step::Result, bytes, due, values });
                }
                break;
            }
            let level = running.reduced + 1;
            let Some((came, values)) = self.early.remove(&(id, Step::Exchange(level))) else { return };
            let from = running.ready.max(came);
            running.ready = self.arithmetic.serve(from, cycles, &parameters.clock).ended;
            running.combine(values, running.number >> running.reduced & 1 == 1);
            running.reduced = level;
            running.exchange(id, surface);
        }
        if running.state == ModuleState::Awaiting {
            let Some((came, values)) = self.early.remove(&(id, Step::Result)) else { return };
            running.event(ModuleEvent::Result);
            running.ready = came;
            running.values = values;
        }
        if running.state == ModuleState::Finishing {
            surface.wake(running.ready, id);
        }
    }

    /// The result goes to memory, the software is told, and goes on with the next block or request.
    fn finish(
        &mut self,
        id: OperationId,
        now: Time,
        parameters: &AllreduceParameters,
        around: &mut MemoryPath<'_>,
        surface: &mut impl ModuleSurface,
    ) {
        let Some(running) = self.running.remove(&id) else { return };
        let (_, written) = around.write(running.bytes, now);
        let done = written + parameters.finish;
        let carries = running.values.is_some();
        self.result.extend(running.values.unwrap_or_default());
        if running.last {
            let result = std::mem::take(&mut self.result);
            surface.finished(done, running.token, carries.then_some(result));
            self.pending.pop_front();
        } else if let Some(pending) = self.pending.front_mut() {
            pending.block += 1;
        }
        if let Some(pending) = self.pending.front_mut() {
            pending.at = pending.at.max(done);
        }
        self.program(parameters, surface);
    }

    /// Requests that are not done.
    pub fn unfinished(&self) -> usize {
        self.pending.len()
    }
}

impl Running {
    fn event(&mut self, event: ModuleEvent) {
        self.state = self.state.next(event, self.role).unwrap_or(self.state);
    }

    /// Sends the vector to the partner of the next level, if there is one.
    fn exchange(&self, id: OperationId, surface: &mut impl ModuleSurface) {
        if let Some(&to) = self.partners.get(usize::from(self.reduced)) {
            let step = Step::Exchange(self.reduced + 1);
            let (bytes, due, values) = (self.bytes, self.ready, self.values.clone());
            surface.send(ModulePacket { to, id, step, bytes, due, values });
        }
    }

    /// Reduces another vector with that of the module, which is the upper operand or the lower one.
    fn combine(&mut self, other: Option<Vec<u8>>, own_is_upper: bool) {
        let (Some(own), Some(mut other)) = (self.values.as_mut(), other) else { return };
        if own_is_upper {
            reduce(&mut other, own, self.operation, self.data_type);
            *own = other;
        } else {
            reduce(own, &other, self.operation, self.data_type);
        }
    }
}
