//! The collectives of one rank that are under way: how far each has come.
//!
//! ```text
//!            ┌──────────────────────────────────────────────┐
//!            ▼                                              │
//!   begin ─▶ start_round ─▶ count ─▶ (messages) ─▶ end_round ─▶ finish: over?
//! ```

use crate::algorithms::algorithm::Algorithm;
use crate::algorithms::collective_name;
use crate::collective::member_part::{MemberPart, has_root};
use crate::collective::registry::schedule;
use crate::collective::{RoundStep, RoundSteps};
use crate::communicator::{CommIndex, Communicators};
use crate::error::MsgError;
use crate::process::memory::CollectiveMemory;
use crate::protocol::Protocol;
use crate::requests::Renamed;
use crate::work::InMemory;
use serde::{Deserialize, Serialize};
use slab::Slab;
use weft_trace::op::{Collective, CollectiveBuffers, CollectiveSizes, CommId, RequestId};
use weft_units::RankId;

/// A collective as the program calls it.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveCall<'a> {
    /// Which.
    pub kind: Collective,
    /// Among whom.
    pub comm: CommId,
    /// The root, where there is one.
    pub root: Option<RankId>,
    /// Bytes given and taken.
    pub sizes: &'a CollectiveSizes,
    /// The buffers for them.
    pub buffers: CollectiveBuffers,
    /// `None`: it blocks.
    pub request: Option<RequestId>,
}

impl CollectiveCall<'_> {
    /// The root's member number; 0 for collectives without.
    pub(crate) fn root_of(&self, communicators: &Communicators, comm: CommIndex) -> Result<u32, MsgError> {
        let rooted = has_root(self.kind);
        match self.root {
            Some(root) if rooted => communicators.member(comm, root).ok_or_else(|| MsgError::NotAMember {
                role: "root".to_owned(),
                rank: root,
                comm: self.comm,
            }),
            None if rooted => Err(MsgError::NoRoot { collective: collective_name(self.kind).to_owned() }),
            _ => Ok(0),
        }
    }
}

/// A collective in progress.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct RunningCollective {
    /// This rank's part.
    pub part: MemberPart,
    /// The places of its buffers.
    pub memory: CollectiveMemory,
    /// How it is carried out.
    pub algorithm: Algorithm,
    /// Among whom.
    pub comm: CommIndex,
    /// The collective's number in its communicator: the context of its messages.
    pub number: i32,
    /// The present round.
    pub round: u32,
    /// Messages of the present round that are not complete.
    pending: u32,
    /// Copies and reductions that follow the messages of the present round.
    work: InMemory,
    /// The request that its completion completes; `None`: it blocks the rank.
    pub request: Option<RequestId>,
}

impl RunningCollective {
    /// A collective before its first round.
    pub fn new(
        (part, memory): (MemberPart, CollectiveMemory),
        algorithm: Algorithm,
        (comm, number): (CommIndex, i32),
        request: Option<RequestId>,
    ) -> RunningCollective {
        let (round, pending, work) = (0, 0, InMemory::default());
        RunningCollective { part, memory, algorithm, comm, number, round, pending, work, request }
    }
}

/// The collectives of one rank that are under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Collectives {
    running: Slab<RunningCollective>,
}

impl Default for Collectives {
    fn default() -> Collectives {
        Collectives { running: Slab::new() }
    }
}

impl Collectives {
    /// A collective begins: its entry.
    pub fn begin(&mut self, running: RunningCollective) -> u32 {
        if self.running.capacity() == 0 {
            // Most programs have one at a time: a hundred thousand ranks need not keep room for four.
            self.running.reserve_exact(1);
        }
        self.running.insert(running) as u32
    }

    /// The collective in this entry, which must be there.
    #[inline]
    pub fn get(&self, key: u32) -> &RunningCollective {
        &self.running[key as usize]
    }

    /// All of them, with their entries.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &RunningCollective)> {
        self.running.iter().map(|(key, running)| (key as u32, running))
    }

    /// One more message of the present round is to be waited for.
    pub fn expect_message(&mut self, key: u32) {
        self.running[key as usize].pending += 1;
    }

    /// One message of the present round is complete.
    #[inline]
    pub fn message_done(&mut self, key: u32) {
        self.running[key as usize].pending -= 1;
    }

    /// Adds the steps of the present round to `steps`; whether the next round is started together with it.
    /// Then that is the present one.
    pub fn start_round(&mut self, key: u32, steps: &mut RoundSteps) -> bool {
        let running = &mut self.running[key as usize];
        let schedule = schedule(running.algorithm);
        let rounds = schedule.rounds(&running.part);
        if running.round < rounds {
            schedule.round(&running.part, running.round, steps);
        }
        let overlaps = running.round + 1 < rounds && schedule.overlaps(&running.part, running.round);
        running.round += u32::from(overlaps);
        overlaps
    }

    /// Counts the messages and the work in memory of these steps; whether there are any messages.
    pub fn count(&mut self, key: u32, steps: &RoundSteps, protocol: &Protocol) -> bool {
        let running = &mut self.running[key as usize];
        let before = running.pending;
        for step in steps.iter() {
            running.work += step.work(protocol);
            running.pending += u32::from(!matches!(step, RoundStep::Copy { .. }));
        }
        running.pending > before
    }

    /// Ends the present round: the work in memory that follows it. `None`: messages of it are not complete.
    pub fn end_round(&mut self, key: u32) -> Option<InMemory> {
        let running = &mut self.running[key as usize];
        if running.pending > 0 {
            return None;
        }
        running.round += 1;
        Some(std::mem::take(&mut running.work))
    }

    /// Takes a collective out of the table if it has no round left.
    pub fn finish(&mut self, key: u32) -> Option<RunningCollective> {
        let running = &self.running[key as usize];
        let over = running.round >= schedule(running.algorithm).rounds(&running.part);
        over.then(|| self.running.remove(key as usize))
    }

    /// A pending request goes on under another's name.
    pub fn rename(&mut self, renamed: Renamed) {
        for (_, running) in &mut self.running {
            if running.request == Some(renamed.pending) {
                running.request = Some(renamed.name);
            }
        }
    }
}
