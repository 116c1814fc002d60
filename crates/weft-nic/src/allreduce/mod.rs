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
//! A vector is fetched and stored through the host port as any other burst. Packets come a word per cycle: of
//! two whose tails are closer than that, the second is there later. A reduction takes a cycle per
//! word of the datapath and the latency of the arithmetic; packets take what the fabric takes. Start
//! (software programs the module), finish (the module tells the software) and lookup are spans of the machine
//! file. A module looks an address up for what it sends, one for all members of its board, whose pairs of
//! rank and address lie side by side.
//!
//! # Source
//! TR-488 §4.7 and Fig. 10; §4.2 for datapath and clock. The text counts levels 1 to log2(N) - 1, which for
//! 16 ranks would be three exchanges; its own Fig. 10 has two, partners 4 and 8 ranks apart: log2(N/4).
//!
//! # Loss
//! A module that waits too long for a vector asks for it: see `repair`. What comes twice is ignored.
//!
//! # Not modelled
//! - A number of boards that is no power of two: the exchanges do not reduce it, and [`AcceleratorLimits`]
//!   refuses it. It also refuses ranks that are not numbered board by board, which the text does not exclude.
//! - The table of ranks and addresses in memory, to which software gives a pointer: a lookup takes its time,
//!   and the module knows the members when it is programmed.
//! - Translation of the vector's address, and protection domains of packets (§4.3). The text has neither for
//!   the accelerator.
//! - One exchange of the log2(N) - 1 that §4.7 counts: Fig. 10 does without it, and so does the result.

mod limits;
mod packet;
mod repair;
mod state;
#[cfg(test)]
mod tests;
mod vector;

pub use limits::{AcceleratorError, AcceleratorLimits};
pub use packet::{
    AllreduceParameters, AllreduceRequest, ModuleCallbacks, ModuleContext, ModulePacket, ModulePacketKind,
    OperationId,
};
pub use state::{ModuleEvent, ModuleState, Role};
pub use vector::{DataType, Operation, reduce, reference};

use crate::memory_path::MemoryPath;
use crate::ports::{ModuleCrossing, PacketOfModule, ProgrammedModule, ResultWrite};
use crate::reliability::Expiry;
use crate::server::Server;
use repair::Repair;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use weft_units::{Bytes, EndpointId, Time};

/// Of every packet (TR-488 §4.2).
const HEADER_AND_FOOTER: Bytes = Bytes::new(32);

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
    /// Of the board.
    server: Option<EndpointId>,
    /// The servers to exchange with, level by level.
    partners: Vec<EndpointId>,
    /// Vectors that are reduced, of the board and then of levels.
    reduced: u8,
    /// The time at which the vector reduced so far is ready.
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
    /// The time at which its software begins.
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
    early: BTreeMap<(OperationId, ModulePacketKind), EarlyVector>,
    arithmetic: Server,
    /// The edge until which the way in has words of the last packet.
    way_in: Time,
    /// Results of earlier blocks of the request under way.
    result: Vec<u8>,
    repair: Repair,
}

impl Module {
    /// A rank asks at `at`, now or later, with its vector where values are to be carried. Requests of the
    /// MPSoC are served one after the other, a vector block by block.
    ///
    /// # Errors
    /// Where the group is beyond the accelerator's limits.
    pub fn request(
        &mut self,
        request: AllreduceRequest,
        values: Option<Vec<u8>>,
        at: Time,
        context: &mut ModuleContext<'_, impl ModuleCallbacks>,
    ) -> Result<(), AcceleratorError> {
        context.parameters.limits.check(&request.members)?;
        self.pending.push_back(Pending { request, values, block: 0, at });
        if self.pending.len() == 1 {
            self.program(context);
        }
        Ok(())
    }

    /// Software programs the next block of the first request, which the module then fetches.
    fn program(&mut self, context: &mut ModuleContext<'_, impl ModuleCallbacks>) {
        while let Some(Pending { request, block, at, .. }) = self.pending.front()
            && let AllreduceRequest { group, sequence, own, ref members, .. } = *request
            && self.repair.has_failed(OperationId { group, sequence, block: *block })
        {
            context.callbacks.failed(*at, request, members[own as usize]);
            self.pending.pop_front();
        }
        let Some(pending) = self.pending.front() else { return };
        let Pending { request, block, at, values } = pending;
        let AllreduceRequest {
            group, sequence, ref members, own, bytes, operation, data_type, token, ..
        } = *request;
        let AcceleratorLimits { board: width, vector, .. } = context.parameters.limits;
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
            server: server(number),
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
        let programmed = *at + context.parameters.start;
        self.running.insert(id, running);
        context.callbacks.begins(token, *at);
        context.callbacks.wake(programmed, id);
    }

    /// Carries on with an operation: it is programmed, its vector has come from memory,
    /// or its result is ready.
    pub fn woken(
        &mut self,
        id: OperationId,
        path: &mut MemoryPath<'_>,
        context: &mut ModuleContext<'_, impl ModuleCallbacks>,
    ) {
        let Some(running) = self.running.get_mut(&id) else { return };
        match running.state {
            ModuleState::Programming => {
                context.callbacks.was(running.token, running.state, context.now);
                running.event(ModuleEvent::Programmed);
                let fetched = path.read(running.bytes, running.bytes, context.now);
                context.callbacks.wake(fetched, id);
                context.callbacks.crossed(|| {
                    let values = running.values.clone();
                    ModuleCrossing::Programmed { module: running.programmed(id), fetched, values }
                });
            }
            ModuleState::Fetching => self.fetched(id, context),
            ModuleState::Finishing => self.finish(id, path, context),
            _ => {}
        }
    }

    fn fetched(&mut self, id: OperationId, context: &mut ModuleContext<'_, impl ModuleCallbacks>) {
        let Some(running) = self.running.get_mut(&id) else { return };
        context.callbacks.was(running.token, running.state, context.now);
        running.event(ModuleEvent::Fetched);
        running.ready = context.now;
        let step = ModulePacketKind::Contribution(running.own);
        match running.role {
            Role::Client => {
                if let Some(to) = running.server {
                    let (bytes, values) = (running.bytes, running.values.clone());
                    let due = context.now + context.parameters.lookup;
                    let packet = ModulePacket { to, id, step, bytes, due, values };
                    self.repair.keep(&packet);
                    context.callbacks.send(packet);
                }
            }
            Role::Server => {
                let values = running.values.take();
                self.early.insert((id, step), (context.now, values));
            }
        }
        self.advance(id, context.now, context);
    }

    /// Takes the words of a packet whose tail comes now, one per cycle, header and footer with them, behind
    /// those of the packet before it. Returns when it is there.
    pub fn take_words(&mut self, bytes: Bytes, now: Time, parameters: &AllreduceParameters) -> Time {
        let AllreduceParameters { clock, word, .. } = parameters;
        let words = (HEADER_AND_FOOTER + bytes).div_ceil(*word);
        let (tail, free) = (clock.edge_at_or_after(now), clock.later_edge(self.way_in, words));
        self.way_in = tail.max(free);
        if free > tail { free } else { now }
    }

    /// A packet of another module has come, which is not damaged.
    pub fn received(
        &mut self,
        packet: &PacketOfModule,
        values: Option<Vec<u8>>,
        context: &mut ModuleContext<'_, impl ModuleCallbacks>,
    ) {
        let PacketOfModule { other: from, id, step, bytes } = *packet;
        let came = self.take_words(bytes, context.now, context.parameters);
        match step {
            ModulePacketKind::Ask => self.answer(packet, came, context),
            ModulePacketKind::NotYet if self.running.contains_key(&id) => {
                let since = context.parameters.clock.edge_at_or_after(came);
                self.repair
                    .alive(since, &context.parameters.reliability)
                    .into_iter()
                    .for_each(|at| context.callbacks.arm(at));
            }
            ModulePacketKind::Failed if self.running.contains_key(&id) => self.fail(id, from, context),
            ModulePacketKind::NotYet | ModulePacketKind::Failed => {}
            vector if self.wants(id, vector) => {
                self.early.insert((id, vector), (came, values));
                self.advance(id, came, context);
            }
            _ => context.callbacks.came_again(),
        }
    }

    /// Whether a vector has not come yet.
    fn wants(&self, id: OperationId, step: ModulePacketKind) -> bool {
        use ModuleState::{Awaiting, Exchanging, Fetching, Gathering, Programming};
        if self.early.contains_key(&(id, step)) {
            return false;
        }
        let Some(running) = self.running.get(&id) else { return !self.repair.is_over(id) };
        let reduced = running.reduced;
        match (running.state, step) {
            (Programming | Fetching, _) => true,
            (Gathering, ModulePacketKind::Contribution(member)) => member >= reduced,
            (Gathering, ModulePacketKind::Exchange(_)) => true,
            (Exchanging, ModulePacketKind::Exchange(level)) => level > reduced,
            (Awaiting, ModulePacketKind::Result) => true,
            _ => false,
        }
    }

    /// Another module waits for a vector of this one. The question was there at `came`.
    fn answer(
        &self,
        question: &PacketOfModule,
        came: Time,
        context: &mut ModuleContext<'_, impl ModuleCallbacks>,
    ) {
        let PacketOfModule { other: from, id, .. } = *question;
        let says = |step| ModulePacket { to: from, id, step, bytes: Bytes::ZERO, due: came, values: None };
        let edge = |time| context.parameters.clock.edge_at_or_after(time);
        // One whose receiver is still looked up comes soon.
        match self.repair.sent_to(from, id).filter(|sent| edge(sent.due) <= edge(came)) {
            // Behind itself, where both are due with one edge.
            Some(sent) => {
                let due = came.max(sent.due);
                context.callbacks.send_again(ModulePacket { due, ..sent.clone() });
            }
            None if self.repair.has_failed(id) => context.callbacks.send(says(ModulePacketKind::Failed)),
            None => context.callbacks.send(says(ModulePacketKind::NotYet)),
        }
    }

    /// The timer has fired: asks for what is missing, or gives up.
    pub fn expired(&mut self, context: &mut ModuleContext<'_, impl ModuleCallbacks>) {
        let timer = match self.repair.expired(context.now, &context.parameters.reliability) {
            Expiry::Settled => None,
            Expiry::NotBefore(at) => Some(at),
            expiry => {
                let Some((&id, running)) = self.running.first_key_value() else { return };
                context.callbacks.timed_out();
                let missing = self.missing(id, running);
                if expiry == Expiry::GiveUp {
                    let Some(&first) = missing.first() else { return };
                    return self.fail(id, first, context);
                }
                for to in missing {
                    let (step, bytes) = (ModulePacketKind::Ask, Bytes::ZERO);
                    context.callbacks.send(ModulePacket {
                        to,
                        id,
                        step,
                        bytes,
                        due: context.now,
                        values: None,
                    });
                }
                self.repair.asked(context.now, &context.parameters.reliability)
            }
        };
        timer.into_iter().for_each(|at| context.callbacks.arm(at));
    }

    /// Whose vectors an operation waits for.
    fn missing(&self, id: OperationId, running: &Running) -> Vec<EndpointId> {
        let came = |step| self.early.contains_key(&(id, step));
        match running.state {
            ModuleState::Awaiting => running.server.into_iter().collect(),
            ModuleState::Gathering => {
                let members = (0u8..).zip(&running.board).skip(usize::from(running.reduced));
                members
                    .filter(|(member, _)| !came(ModulePacketKind::Contribution(*member)))
                    .map(|(_, to)| *to)
                    .collect()
            }
            ModuleState::Exchanging => {
                running.partners.get(usize::from(running.reduced)).copied().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The operation under way cannot be finished, because of another module.
    fn fail(
        &mut self,
        id: OperationId,
        other: EndpointId,
        context: &mut ModuleContext<'_, impl ModuleCallbacks>,
    ) {
        self.running.remove(&id);
        self.early.retain(|(of, _), _| of.group != id.group);
        self.result.clear();
        self.repair.failed(id);
        context.callbacks.crossed(|| ModuleCrossing::Failed { id, other });
        if let Some(Pending { request, .. }) = self.pending.pop_front() {
            context.callbacks.failed(context.now, &request, other);
        }
        if let Some(pending) = self.pending.front_mut() {
            pending.at = pending.at.max(context.now);
        }
        self.program(context);
    }

    /// Takes an operation as far as the vectors that have come allow, the last of which has come at `came`.
    fn advance(
        &mut self,
        id: OperationId,
        came: Time,
        context: &mut ModuleContext<'_, impl ModuleCallbacks>,
    ) {
        self.reduce_what_came(id, context);
        let Some(running) = self.running.get(&id) else { return };
        match running.state {
            ModuleState::Finishing => {
                self.repair.settled();
                context.callbacks.wake(running.ready, id);
            }
            ModuleState::Awaiting | ModuleState::Gathering | ModuleState::Exchanging => {
                let since = context.parameters.clock.edge_at_or_after(came);
                let timer = self.repair.waits(since, &context.parameters.reliability);
                timer.into_iter().for_each(|at| context.callbacks.arm(at));
            }
            ModuleState::Programming | ModuleState::Fetching => {}
        }
    }

    fn reduce_what_came(&mut self, id: OperationId, context: &mut ModuleContext<'_, impl ModuleCallbacks>) {
        let Some(running) = self.running.get_mut(&id) else { return };
        let repair = &mut self.repair;
        let mut send = |packet: ModulePacket, callbacks: &mut dyn ModuleCallbacks| {
            repair.keep(&packet);
            callbacks.send(packet);
        };
        let words = running.bytes.div_ceil(context.parameters.word);
        let cycles = words + u64::from(context.parameters.latency_cycles);
        while running.state == ModuleState::Gathering {
            let step = ModulePacketKind::Contribution(running.reduced);
            let Some((came, values)) = self.early.remove(&(id, step)) else { return };
            if running.reduced == 0 {
                // The first operand: nothing to compute.
                running.ready = running.ready.max(came);
                running.values = values;
            } else {
                let from = running.ready.max(came);
                running.ready = self.arithmetic.serve(from, cycles, &context.parameters.clock).ended;
                running.combine(values, false);
            }
            running.reduced += 1;
            if usize::from(running.reduced) == running.board.len() {
                context.callbacks.was(running.token, running.state, running.ready);
                running.event(ModuleEvent::Gathered);
                running.reduced = 0;
                running
                    .exchange(id, context.parameters)
                    .into_iter()
                    .for_each(|packet| send(packet, context.callbacks));
            }
        }
        while running.state == ModuleState::Exchanging {
            if usize::from(running.reduced) == running.partners.len() {
                context.callbacks.was(running.token, running.state, running.ready);
                running.event(ModuleEvent::Exchanged);
                let due = running.ready + context.parameters.lookup;
                for &to in
                    running.board.iter().filter(|to| !to.0.is_multiple_of(context.parameters.limits.board))
                {
                    let (bytes, values) = (running.bytes, running.values.clone());
                    send(
                        ModulePacket { to, id, step: ModulePacketKind::Result, bytes, due, values },
                        context.callbacks,
                    );
                }
                break;
            }
            let level = running.reduced + 1;
            let Some((came, values)) = self.early.remove(&(id, ModulePacketKind::Exchange(level))) else {
                return;
            };
            let from = running.ready.max(came);
            running.ready = self.arithmetic.serve(from, cycles, &context.parameters.clock).ended;
            running.combine(values, running.number >> running.reduced & 1 == 1);
            running.reduced = level;
            running
                .exchange(id, context.parameters)
                .into_iter()
                .for_each(|packet| send(packet, context.callbacks));
        }
        if running.state == ModuleState::Awaiting {
            let Some((came, values)) = self.early.remove(&(id, ModulePacketKind::Result)) else { return };
            context.callbacks.was(running.token, running.state, came);
            running.event(ModuleEvent::Result);
            running.ready = came;
            running.values = values;
        }
    }

    /// The result goes to memory, the software is told, and goes on with the next block or request.
    fn finish(
        &mut self,
        id: OperationId,
        path: &mut MemoryPath<'_>,
        context: &mut ModuleContext<'_, impl ModuleCallbacks>,
    ) {
        let Some(running) = self.running.remove(&id) else { return };
        self.repair.finished(id);
        let (issued, written) = path.write(running.bytes, context.now);
        let write = ResultWrite { id, ready: context.now, issued, written };
        context.callbacks.crossed(|| ModuleCrossing::Written { write, values: running.values.clone() });
        let done = written + context.parameters.finish;
        context.callbacks.was(running.token, running.state, done);
        let carries = running.values.is_some();
        self.result.extend(running.values.unwrap_or_default());
        if running.last {
            let result = std::mem::take(&mut self.result);
            context.callbacks.finished(done, running.token, carries.then_some(result));
            self.pending.pop_front();
        } else if let Some(pending) = self.pending.front_mut() {
            pending.block += 1;
        }
        if let Some(pending) = self.pending.front_mut() {
            pending.at = pending.at.max(done);
        }
        self.program(context);
    }

    /// Requests that are not done.
    pub fn unfinished(&self) -> usize {
        self.pending.len()
    }
}

impl Running {
    fn event(&mut self, event: ModuleEvent) {
        let next = self.state.next(event, self.role);
        self.state = next.expect("a module gives itself the events of its state and role");
    }

    /// The operation, as software has programmed it.
    fn programmed(&self, id: OperationId) -> ProgrammedModule {
        let width = self.board.len() as u32;
        ProgrammedModule {
            id,
            ranks: width << self.partners.len(),
            own: self.number * width + u32::from(self.own),
            board: std::array::from_fn(|member| self.board.get(member).copied().unwrap_or(EndpointId(0))),
            bytes: self.bytes,
            operation: self.operation,
            data_type: self.data_type,
        }
    }

    /// The vector for the partner of the next level, if there is one.
    fn exchange(&self, id: OperationId, parameters: &AllreduceParameters) -> Option<ModulePacket> {
        let &to = self.partners.get(usize::from(self.reduced))?;
        let (step, due) = (ModulePacketKind::Exchange(self.reduced + 1), self.ready + parameters.lookup);
        Some(ModulePacket { to, id, step, bytes: self.bytes, due, values: self.values.clone() })
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
