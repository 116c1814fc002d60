//! Carries out schedules: one executor for all collectives and algorithms, blocking or not.

use super::part::{Part, has_root};
use super::{Step, Steps, non_overlapping, schedule};
use crate::accelerator::Allreduce;
use crate::algorithms::{Algorithm, CollectiveSize, collective_name};
use crate::communicator::CommIndex;
use crate::error::MsgError;
use crate::matching::{Owner, Posted};
use crate::nic::{Nic, SendToken};
use crate::process::{Message, Process, WaitingFor};
use crate::protocol::Protocol;
use crate::work::{InMemory, Work};
use serde::{Deserialize, Serialize};
use weft_trace::op::{Collective, CollectiveSizes, CommId, RequestId, SendMode};
use weft_units::{Bytes, RankId};

/// A collective in progress.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Running {
    /// This rank's part.
    pub part: Part,
    /// How it is carried out.
    pub algorithm: Algorithm,
    /// Among whom.
    pub comm: CommIndex,
    /// Its number among the communicator's collectives: the tag of its messages.
    pub number: i32,
    /// The present round.
    pub round: u32,
    /// Messages of the present round that are not complete.
    pub pending: u32,
    /// Copies and reductions that follow the messages of the present round.
    work: InMemory,
    /// What its completion completes; `None`: it blocks the rank.
    pub request: Option<RequestId>,
}

/// A collective as the program calls it.
pub(crate) struct Call<'a> {
    pub kind: Collective,
    pub comm: CommId,
    pub root: Option<RankId>,
    pub sizes: &'a CollectiveSizes,
    pub request: Option<RequestId>,
}

impl Process {
    /// Starts a collective.
    pub(crate) fn start_collective(
        &mut self,
        call: &Call<'_>,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) -> Result<(), MsgError> {
        let comm = self.communicators.index(call.comm, self.rank, self.ranks)?;
        let root = self.root(call, comm)?;
        let (members, me) = (self.communicators.size(comm), self.communicators.me(comm));
        let mut part = Part::new(call.kind, members, me, root, call.sizes)?;
        let algorithm = self.choose(comm, &part, call.request.is_some(), protocol, nic)?;
        if algorithm == Algorithm::NonOverlapping {
            part.stages = non_overlapping::stages(&part, &protocol.algorithms);
        }
        if let Some(request) = call.request {
            self.requests.open(request)?;
        }
        let number = self.communicators.begin_collective(comm);
        nic.spend(Work::CollectiveCall, protocol.collective_call);
        let running = Running {
            part,
            algorithm,
            comm,
            number,
            round: 0,
            pending: 0,
            work: InMemory::default(),
            request: call.request,
        };
        if self.collectives.capacity() == 0 {
            // Most programs have one at a time: a hundred thousand ranks need not keep room for four.
            self.collectives.reserve_exact(1);
        }
        let key = self.collectives.insert(running) as u32;
        if call.request.is_none() {
            self.waiting = WaitingFor::Collective(key);
        }
        self.start_round(key, protocol, nic);
        self.go_on(key, protocol, nic);
        Ok(())
    }

    /// The algorithm by the machine's table, and by what the interface can do.
    fn choose(
        &self,
        comm: CommIndex,
        part: &Part,
        non_blocking: bool,
        protocol: &Protocol,
        nic: &impl Nic,
    ) -> Result<Algorithm, MsgError> {
        let (table, kind) = (&protocol.algorithms, part.kind);
        let size = CollectiveSize { non_blocking, ..part.size() };
        let mut algorithm = table.choose(kind, size);
        if algorithm == Some(Algorithm::Accelerator)
            && let Some(limit) = nic.accelerator_limit(&self.allreduce(comm, part, part.layout().total()))
        {
            if table.is_forced(kind) {
                return Err(MsgError::Accelerator { limit });
            }
            algorithm = table.choose_software(kind, size);
        }
        algorithm.ok_or_else(|| MsgError::Unsupported { operation: collective_name(kind).to_owned() })
    }

    /// An allreduce as an interface sees it.
    fn allreduce(&self, comm: CommIndex, part: &Part, bytes: u64) -> Allreduce<'_> {
        let group = self.communicators.group(comm);
        let number = self.communicators.begun(comm);
        Allreduce { group, number, bytes: Bytes::new(bytes), element: part.element }
    }

    /// The interface has carried out an allreduce, and the rank notices it.
    pub fn accelerated(&mut self, token: SendToken, protocol: &Protocol, nic: &mut impl Nic) {
        if let Some(key) = token.key() {
            self.collective_message_done(key as u32, protocol, nic);
        }
    }

    /// A message of collective `key` is complete.
    pub(crate) fn collective_message_done(&mut self, key: u32, protocol: &Protocol, nic: &mut impl Nic) {
        self.collectives[key as usize].pending -= 1;
        self.go_on(key, protocol, nic);
    }

    /// Carries the collective on for as long as rounds are complete.
    fn go_on(&mut self, key: u32, protocol: &Protocol, nic: &mut impl Nic) {
        loop {
            let running = &mut self.collectives[key as usize];
            if running.pending > 0 {
                return;
            }
            nic.spend_in_memory(Work::CollectiveWork, std::mem::take(&mut running.work));
            running.round += 1;
            if running.round >= schedule(running.algorithm).rounds(&running.part) {
                let finished = self.collectives.remove(key as usize);
                match finished.request {
                    Some(request) => self.complete_request(request),
                    None => self.waiting = WaitingFor::Nothing,
                }
                return;
            }
            self.start_round(key, protocol, nic);
        }
    }

    /// Starts the receives and sends of the present round, and of those that overlap with it. Messages
    /// that complete at once do not carry the collective on: the caller does.
    fn start_round(&mut self, key: u32, protocol: &Protocol, nic: &mut impl Nic) {
        // One more than there are: the round is not over before all are started.
        self.collectives[key as usize].pending = 1;
        let mut waits = false;
        loop {
            let running = &mut self.collectives[key as usize];
            let (schedule, mut steps) = (schedule(running.algorithm), Steps::default());
            let rounds = schedule.rounds(&running.part);
            if running.round < rounds {
                schedule.round(&running.part, running.round, &mut steps);
            }
            let overlaps = running.round + 1 < rounds && schedule.overlaps(&running.part, running.round);
            running.round += u32::from(overlaps);
            waits |= self.start_steps(key, &steps, protocol, nic);
            if !overlaps {
                break;
            }
        }
        if waits {
            self.begin_wait(protocol, nic);
        }
        self.collectives[key as usize].pending -= 1;
    }

    /// Starts the messages of a round; whether there are any.
    fn start_steps(&mut self, key: u32, steps: &Steps, protocol: &Protocol, nic: &mut impl Nic) -> bool {
        let running = &mut self.collectives[key as usize];
        let (comm, number, before) = (running.comm, running.number, running.pending);
        for step in steps.iter() {
            match step {
                Step::Copy { bytes } => {
                    running.work += protocol.copy(Bytes::new(*bytes));
                }
                Step::Receive { piece, into, .. } => {
                    running.pending += 1;
                    let operands = piece.bytes.saturating_mul(into.reductions());
                    running.work += protocol.reduction(Bytes::new(operands));
                }
                Step::Send { .. } | Step::Accelerate { .. } => running.pending += 1,
            }
        }
        let waits = running.pending > before;
        let (owner, id) = (Owner::Collective(key), self.communicators.id(comm));
        let non_blocking = running.request.is_some();
        let sends_first =
            non_blocking && protocol.algorithms.sends_first(running.part.kind, running.algorithm);
        for step in steps.in_order(sends_first) {
            match step {
                Step::Receive { from, piece, .. } => {
                    let posted = Posted {
                        ignore: 0,
                        repeats: false,
                        comm: id,
                        collective: true,
                        source: Some(self.communicators.rank(comm, *from)),
                        tag: Some(number),
                        bytes: Bytes::new(piece.bytes),
                        owner,
                    };
                    self.receive(posted, protocol, nic);
                }
                Step::Send { to, piece, .. } => {
                    let message = Message {
                        to: self.communicators.rank(comm, *to),
                        comm: id,
                        collective: true,
                        tag: number,
                        bytes: Bytes::new(piece.bytes),
                        mode: SendMode::Standard,
                        owner,
                    };
                    self.send(message, protocol, nic);
                }
                Step::Accelerate { bytes } => {
                    let part = &self.collectives[key as usize].part;
                    let number = number as u32;
                    nic.allreduce(
                        &Allreduce { number, ..self.allreduce(comm, part, *bytes) },
                        SendToken::of(key),
                    );
                }
                Step::Copy { .. } => {}
            }
        }
        waits
    }

    /// The root's member number; 0 for collectives without.
    fn root(&self, call: &Call<'_>, comm: CommIndex) -> Result<u32, MsgError> {
        let rooted = has_root(call.kind);
        match call.root {
            Some(root) if rooted => self
                .communicators
                .member(comm, root)
                .ok_or_else(|| MsgError::NotAMember { role: "root".to_owned(), rank: root, comm: call.comm }),
            None if rooted => Err(MsgError::NoRoot { collective: collective_name(call.kind).to_owned() }),
            _ => Ok(0),
        }
    }
}
