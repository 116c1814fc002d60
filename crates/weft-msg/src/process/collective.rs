//! Carries out schedules: one executor for all collectives and algorithms, blocking or not.

use super::memory::CollectiveMemory;
use super::rank::Rank;
use super::{Process, WaitingFor};
use crate::accelerator::Allreduce;
use crate::algorithms::{Algorithm, CollectiveSize, collective_name};
use crate::collective::member_part::{MemberPart, MemberPlace};
use crate::collective::registry::neighbours;
use crate::collective::{RankBuffer, RoundStep, RoundSteps, non_overlapping};
use crate::collectives::{CollectiveCall, RunningCollective};
use crate::communicator::CommIndex;
use crate::envelope::{Match, MatchContext, RankEndpoints};
use crate::error::MsgError;
use crate::hierarchy::Hierarchy;
use crate::matching::{Owner, PostedReceive};
use crate::multicast_limit::MulticastLimit;
use crate::sends::{Content, MessageToSend};
use crate::transport::{SendToken, Transport};
use crate::work::Work;
use std::sync::Arc;
use weft_trace::op::SendMode;
use weft_units::Bytes;

impl Process {
    /// An allreduce as an interface sees it.
    fn allreduce(&self, comm: CommIndex, part: &MemberPart, bytes: u64) -> Allreduce<'_> {
        let group = self.communicators.group(comm);
        let number = self.communicators.begun(comm);
        let (element, reduction) = (part.element, part.reduction);
        Allreduce { group, number, bytes: Bytes::new(bytes), element, reduction }
    }
}

impl<T: Transport> Rank<'_, T> {
    /// Starts a collective.
    pub(super) fn start_collective(&mut self, call: &CollectiveCall<'_>) -> Result<(), MsgError> {
        let Process { communicators, rank, ranks, .. } = &mut *self.process;
        let comm = communicators.index(call.comm, *rank, *ranks)?;
        let (members, me) = (communicators.size(comm), communicators.me(comm));
        let root = call.root_of(&self.process.communicators, comm)?;
        let mut part = MemberPart::new(call.kind, MemberPlace { members, me, root }, call.sizes)?;
        let algorithm = self.choose(comm, &part, call.request.is_some())?;
        if algorithm == Algorithm::NonOverlapping {
            let table = &self.protocol.algorithms;
            part.stages = non_overlapping::stages(&part, |kind, size| table.choose_stage(kind, size));
        }
        if algorithm.follows_topology() {
            let hierarchy = self.transport.hierarchy(self.process.communicators.group(comm));
            let hierarchy = hierarchy.unwrap_or_else(|| Arc::new(Hierarchy::flat(members)));
            part.neighbours = neighbours(algorithm, MemberPlace { members, me, root: part.root }, &hierarchy);
        }
        if let Some(request) = call.request {
            self.process.requests.open(request)?;
        }
        let number = self.process.communicators.begin_collective(comm);
        self.spend(Work::CollectiveCall, self.protocol.collective_call);
        if call.kind.reduces() && members > 1 && !algorithm.is_by_hardware() {
            self.spend(Work::TemporaryBuffer, self.protocol.temporary_buffer);
        }
        let memory = CollectiveMemory::new(call.comm, call.kind, call.buffers);
        let running = RunningCollective::new((part, memory), algorithm, (comm, number), call.request);
        let key = self.process.collectives.begin(running);
        if call.request.is_none() {
            self.process.call.waiting = WaitingFor::Collective(key);
        }
        self.start_round(key);
        self.carry_on(key);
        Ok(())
    }

    /// The algorithm by the machine's table, and by what the interface can do.
    fn choose(
        &mut self,
        comm: CommIndex,
        part: &MemberPart,
        non_blocking: bool,
    ) -> Result<Algorithm, MsgError> {
        let (table, kind) = (&self.protocol.algorithms, part.kind);
        let size = CollectiveSize { non_blocking, ..part.size() };
        let mut algorithm = table.choose(kind, size);
        let allreduce = || self.process.allreduce(comm, part, part.layout().total());
        if algorithm == Some(Algorithm::Accelerator) {
            if let Some(limit) = self.transport.accelerator_limit(&allreduce()) {
                if table.is_forced(kind) {
                    return Err(MsgError::Accelerator { limit });
                }
                algorithm = table.choose_software(kind, size);
            }
        }
        if algorithm == Some(Algorithm::Multicast) {
            if let Some(limit) = self.transport.multicast_limit(self.process.communicators.group(comm)) {
                // Another algorithm would make of a record of the run that of another run.
                if table.is_forced(kind) || limit == MulticastLimit::Recorded {
                    return Err(MsgError::Multicast { limit });
                }
                algorithm = table.choose_software(kind, size);
            }
        }
        algorithm.ok_or_else(|| MsgError::Unsupported { operation: collective_name(kind).to_owned() })
    }

    /// A message of collective `key` is complete.
    pub(super) fn collective_message_done(&mut self, key: u32) {
        self.process.collectives.message_done(key);
        self.carry_on(key);
    }

    /// Carries the collective on for as long as rounds are complete.
    fn carry_on(&mut self, key: u32) {
        while let Some(work) = self.process.collectives.end_round(key) {
            self.transport.spend_in_memory(Work::CollectiveWork, work);
            if let Some(finished) = self.process.collectives.finish(key) {
                match finished.request {
                    Some(request) => self.process.complete_request(request),
                    None => self.process.collective_over(key),
                }
                return;
            }
            self.start_round(key);
        }
    }

    /// Starts the receives and sends of the present round, and of those that overlap with it. Messages
    /// that complete at once do not carry the collective on: the caller does.
    fn start_round(&mut self, key: u32) {
        // One more than there are: the round is not over before all are started.
        self.process.collectives.expect_message(key);
        let mut waits = false;
        loop {
            let mut steps = RoundSteps::default();
            let overlaps = self.process.collectives.start_round(key, &mut steps);
            waits |= self.process.collectives.count(key, &steps, self.protocol);
            self.start_steps(key, &steps);
            if !overlaps {
                break;
            }
        }
        if waits {
            self.begin_wait();
        }
        self.process.collectives.message_done(key);
    }

    /// Starts the messages of a round.
    fn start_steps(&mut self, key: u32, steps: &RoundSteps) {
        let Process { collectives, communicators, .. } = &*self.process;
        let RunningCollective { comm, number, algorithm, request, memory, ref part, .. } =
            *collectives.get(key);
        let sends_first = request.is_some() && self.protocol.algorithms.sends_first(part.kind, algorithm);
        let (owner, id) = (Owner::Collective(key), communicators.id(comm));
        if steps.exchanges() {
            self.spend(Work::SendrecvCall, self.protocol.sendrecv_call);
        }
        for step in steps.in_order(sends_first) {
            match step {
                RoundStep::Receive { from, buffer, piece, .. } => {
                    let source = self.process.communicators.rank(comm, *from);
                    self.receive(PostedReceive {
                        endpoints: RankEndpoints::FIRST,
                        ignore: 0,
                        repeats: false,
                        comm: id,
                        collective: true,
                        source: Some(source),
                        number: Some(number),
                        bytes: Bytes::new(piece.bytes),
                        owner,
                        buffer: memory.of(*buffer).plus(piece.offset),
                    });
                }
                RoundStep::Send { to, from, piece } => {
                    let to = self.process.communicators.rank(comm, *to);
                    let content =
                        Content::Matched(Match { comm: id, context: MatchContext::Collective(number) });
                    let (bytes, mode) = (Bytes::new(piece.bytes), SendMode::Standard);
                    let buffer = memory.of(*from).plus(piece.offset);
                    self.send(MessageToSend { to, content, bytes, mode, owner, buffer });
                }
                RoundStep::Multicast { piece } => {
                    let content =
                        Content::Matched(Match { comm: id, context: MatchContext::Collective(number) });
                    let (bytes, mode) = (Bytes::new(piece.bytes), SendMode::Standard);
                    let (to, buffer) = (self.process.rank, memory.of(RankBuffer::Data).plus(piece.offset));
                    self.multicast(comm, &MessageToSend { to, content, bytes, mode, owner, buffer });
                }
                RoundStep::Accelerate { bytes } => {
                    let part = &self.process.collectives.get(key).part;
                    let allreduce = self.process.allreduce(comm, part, *bytes);
                    let allreduce = Allreduce { number: number as u32, ..allreduce };
                    self.transport.spend(Work::AcceleratedCall, self.protocol.accelerated_call);
                    self.transport.allreduce(&allreduce, SendToken::of_collective(key));
                }
                RoundStep::Copy { .. } => {}
            }
        }
    }
}
