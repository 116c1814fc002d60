//! Who waits for what: for the report on a replay that cannot finish.

use crate::algorithms::{Algorithm, collective_name};
use crate::matching::Owner;
use crate::nic::Envelope;
use crate::process::{Process, SendState, WaitingFor};
use serde::Serialize;
use std::fmt;
use weft_trace::op::CommId;
use weft_units::{Bytes, RankId};

/// What a rank blocks in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Blocked {
    /// The rank.
    pub rank: RankId,
    /// The call: `probe`, `wait`, `waitall`, `waitany` or the name of a collective.
    pub call: &'static str,
    /// Of a non-blocking or blocking collective that it waits for: how far it has come.
    pub collectives: Vec<BlockedCollective>,
    /// The sends and receives that it waits for.
    pub pending: Vec<Pending>,
}

/// A collective that is waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BlockedCollective {
    /// Its name.
    pub name: &'static str,
    /// How it is carried out.
    pub algorithm: Algorithm,
    /// Among whom.
    pub comm: CommId,
    /// Its number among the communicator's collectives.
    pub number: u32,
    /// The present round.
    pub round: u32,
}

/// A send or receive that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Pending {
    /// What it is and what it lacks.
    pub state: PendingState,
    /// The other side; `None`: any.
    pub peer: Option<RankId>,
    /// The tag; `None`: any. In a collective, its number among the communicator's collectives.
    pub tag: Option<i32>,
    /// The communicator.
    pub comm: CommId,
    /// Whether it belongs to a collective.
    pub collective: bool,
    /// Size of the message; of a receive that has none yet, of its buffer.
    pub bytes: Bytes,
}

/// What a pending send or receive lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum PendingState {
    /// A probe: there is no such message.
    ProbeUnmatched,
    /// A receive: no message has matched.
    ReceiveUnmatched,
    /// A receive: matched, the data has not arrived.
    ReceiveData,
    /// A send: the interface has not taken all of it.
    SendPosted,
    /// A send: announced, no receive has matched.
    SendUnmatched,
    /// A send: the receiver has not acknowledged the data.
    SendUnacknowledged,
    /// A synchronous send: no receipt has come.
    SendUnreceipted,
    /// A one-sided operation: its target has not answered.
    AccessUnanswered,
}

impl Process {
    /// What the rank blocks in, and what it waits for; `None`: it does not block.
    pub fn waiting_for(&self) -> Option<Blocked> {
        let call = match self.waiting {
            WaitingFor::Nothing => return None,
            WaitingFor::Probe => "probe",
            WaitingFor::Wait => "wait",
            WaitingFor::Waitall => "waitall",
            WaitingFor::Waitany => "waitany",
            WaitingFor::Window => self.windows.as_ref().map_or("a synchronization", |windows| windows.call()),
            WaitingFor::Collective(key) => collective_name(self.collectives[key as usize].part.kind),
        };
        let collectives = self.collectives.iter().filter(|(key, _)| self.waits_for_collective(*key));
        let collectives = collectives.map(|(_, running)| BlockedCollective {
            name: collective_name(running.part.kind),
            algorithm: running.algorithm,
            comm: self.communicators.id(running.comm),
            number: running.number as u32,
            round: running.round,
        });
        let probe = self.probe.as_deref().map(|probe| (PendingState::ProbeUnmatched, probe));
        let posted = self.matching.posted().filter(|posted| self.waits_for(posted.owner));
        let posted = posted.map(|posted| (PendingState::ReceiveUnmatched, posted));
        let posted = probe.into_iter().chain(posted).map(|(state, posted)| Pending {
            state,
            peer: posted.source,
            tag: posted.tag,
            comm: posted.comm,
            collective: posted.collective,
            bytes: posted.bytes,
        });
        let pending = |state, peer, envelope: &Envelope| Pending {
            state,
            peer: Some(peer),
            tag: Some(envelope.tag),
            comm: envelope.comm,
            collective: envelope.collective,
            bytes: envelope.bytes,
        };
        let incoming = self.receives.iter().filter(|(_, incoming)| self.waits_for(incoming.owner));
        let incoming = incoming.map(|(_, incoming)| {
            pending(PendingState::ReceiveData, incoming.envelope.source, &incoming.envelope)
        });
        let outgoing = self
            .sends
            .iter()
            .filter(|(_, outgoing)| self.waits_for(outgoing.owner) || self.waits_for_access(outgoing));
        let outgoing = outgoing.map(|(_, outgoing)| {
            let state = match outgoing.state {
                SendState::Posted => PendingState::SendPosted,
                SendState::Announced | SendState::Unmatched => PendingState::SendUnmatched,
                SendState::Unacknowledged => PendingState::SendUnacknowledged,
                SendState::Unreceipted => PendingState::SendUnreceipted,
                SendState::Receipted => PendingState::SendPosted,
                SendState::Access => PendingState::AccessUnanswered,
            };
            pending(state, outgoing.to, &outgoing.envelope)
        });
        let mut pending: Vec<Pending> = posted.chain(incoming).chain(outgoing).collect();
        let mut collectives: Vec<BlockedCollective> = collectives.collect();
        // The tables' own order may change when a process is saved and loaded.
        pending.sort_by_key(|p| (p.comm, p.collective, p.tag, p.peer, p.bytes));
        collectives.sort_by_key(|collective| (collective.comm, collective.number));
        Some(Blocked { rank: self.rank, call, collectives, pending })
    }

    /// What is left over when the program has ended; all zero where it was complete.
    pub fn leftovers(&self) -> Leftovers {
        Leftovers {
            unexpected: self.matching.unexpected().count(),
            posted: self.matching.posted().count(),
            sends: self.sends.len(),
            requests: self.requests.len(),
        }
    }

    fn waits_for(&self, owner: Owner) -> bool {
        match owner {
            Owner::Nobody | Owner::Active | Owner::Live(_) => false,
            Owner::Request(request) => self.requests.is_waited(request),
            Owner::Collective(key) => self.waits_for_collective(key as usize),
        }
    }

    fn waits_for_collective(&self, key: usize) -> bool {
        match self.collectives[key].request {
            None => self.waiting == WaitingFor::Collective(key as u32),
            Some(request) => self.requests.is_waited(request),
        }
    }
}

/// What is left over when a program has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Leftovers {
    /// Messages that were never received.
    pub unexpected: usize,
    /// Receives that never got a message.
    pub posted: usize,
    /// Sends that never completed.
    pub sends: usize,
    /// Requests that were never waited for. A program may leave those.
    pub requests: usize,
}

impl fmt::Display for Blocked {
    /// `rank 3 waits in waitall for a receive of 4K from rank 1 (tag 7, communicator 0): no message has matched`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} waits in {}", self.rank, self.call)?;
        for collective in &self.collectives {
            let BlockedCollective { name, algorithm, comm, number, round } = collective;
            write!(f, ": {name} number {number} of communicator {} by {algorithm}, round {round}", comm.0)?;
        }
        const SHOWN: usize = 8;
        for (index, pending) in self.pending.iter().take(SHOWN).enumerate() {
            write!(f, "{}{pending}", if index == 0 { " for " } else { "; " })?;
        }
        match self.pending.len().checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "; and {more} more"),
        }
    }
}

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, lacks) = match self.state {
            PendingState::ProbeUnmatched => ("a message", "there is none"),
            PendingState::ReceiveUnmatched => ("a receive of", "no message has matched"),
            PendingState::ReceiveData => ("a receive of", "matched, the data has not arrived"),
            PendingState::SendPosted => ("a send of", "the interface has not taken it"),
            PendingState::SendUnmatched => ("a send of", "no receive has matched"),
            PendingState::SendUnacknowledged => ("a send of", "not acknowledged"),
            PendingState::SendUnreceipted => ("a synchronous send of", "no receive has matched"),
            PendingState::AccessUnanswered => ("an access of", "not complete at its target"),
        };
        let preposition = match self.state {
            PendingState::ProbeUnmatched | PendingState::ReceiveUnmatched | PendingState::ReceiveData => {
                "from"
            }
            PendingState::AccessUnanswered => "at",
            _ => "to",
        };
        write!(f, "{what} ")?;
        if self.state != PendingState::ProbeUnmatched {
            write!(f, "{} ", self.bytes)?;
        }
        write!(f, "{preposition} ")?;
        match self.peer {
            Some(peer) => write!(f, "rank {peer}")?,
            None => write!(f, "any rank")?,
        }
        match self.tag {
            _ if self.collective || self.state == PendingState::AccessUnanswered => {}
            Some(tag) => write!(f, " (tag {tag}, communicator {})", self.comm.0)?,
            None => write!(f, " (any tag, communicator {})", self.comm.0)?,
        }
        write!(f, ": {lacks}")
    }
}
