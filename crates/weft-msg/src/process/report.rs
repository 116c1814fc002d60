//! Who waits for what: for the report on a replay that cannot finish.

use super::{Process, WaitingFor};
use crate::algorithms::{Algorithm, collective_name};
use crate::envelope::Match;
use crate::matching::{Owner, PostedReceive};
use crate::receives::PendingReceive;
use crate::sends::{Content, PendingSend, Purpose, SendState};
use serde::Serialize;
use std::fmt;
use weft_trace::op::{CommId, EventId, StreamId};
use weft_units::{Bytes, RankId};

/// The call in which a rank blocks, and the operations that it waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Blocked {
    /// The rank.
    pub rank: RankId,
    /// Of a rank with several streams: which of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamId>,
    /// The call: `probe`, `wait`, `waitall`, `waitany`, the name of a collective, or `await` for events.
    pub call: &'static str,
    /// The events of the rank that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventId>,
    /// Of a non-blocking or blocking collective that it waits for: how far it has come.
    pub collectives: Vec<BlockedCollective>,
    /// The sends and receives that it waits for.
    pub pending: Vec<PendingOperation>,
}

/// A collective that is waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BlockedCollective {
    /// The name of the collective.
    pub name: &'static str,
    /// How it is carried out.
    pub algorithm: Algorithm,
    /// Among whom.
    pub comm: CommId,
    /// The collective's number in its communicator.
    pub number: u32,
    /// The present round.
    pub round: u32,
}

/// A send or receive that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PendingOperation {
    /// The kind of operation and the event that it lacks.
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

/// The event that a pending send, receive or probe lacks.
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

impl PendingOperation {
    fn of_receive(state: PendingState, receive: &PostedReceive) -> PendingOperation {
        let PostedReceive { comm, collective, source: peer, number: tag, bytes, .. } = *receive;
        PendingOperation { state, peer, tag, comm, collective, bytes }
    }

    fn of_message(state: PendingState, peer: RankId, matching: Match, bytes: Bytes) -> PendingOperation {
        let Match { comm, context } = matching;
        let (tag, collective) = (Some(context.number()), context.is_untagged());
        PendingOperation { state, peer: Some(peer), tag, comm, collective, bytes }
    }

    /// `None`: it is the library's own, for which the program does not wait.
    fn of_incoming(receive: &PendingReceive) -> Option<PendingOperation> {
        let announced = &receive.announced;
        let matching = announced.matching()?;
        Some(PendingOperation::of_message(
            PendingState::ReceiveData,
            announced.source,
            matching,
            announced.bytes,
        ))
    }
}

impl Process {
    /// The number of requests that the rank's wait still waits for.
    pub fn awaited_requests(&self) -> u32 {
        self.requests.waited()
    }

    /// The call that the rank blocks in, and the operations that it waits for; `None`: it does not block.
    pub fn waiting_for(&self) -> Option<Blocked> {
        let call = match self.call.waiting {
            WaitingFor::Nothing => return None,
            WaitingFor::Probe => "probe",
            WaitingFor::Wait => "wait",
            WaitingFor::Waitall => "waitall",
            WaitingFor::Waitany => "waitany",
            WaitingFor::Window => self.windows.as_ref().map_or("a synchronization", |windows| windows.call()),
            WaitingFor::Collective(key) => collective_name(self.collectives.get(key).part.kind),
        };
        let collectives = self.collectives.iter().filter(|(key, _)| self.waits_for_collective(*key));
        let collectives = collectives.map(|(_, running)| BlockedCollective {
            name: collective_name(running.part.kind),
            algorithm: running.algorithm,
            comm: self.communicators.id(running.comm),
            number: running.number as u32,
            round: running.round,
        });
        let probe = self.call.probe.as_deref().map(|probe| (PendingState::ProbeUnmatched, probe));
        let posted = self.matching.posted().filter(|posted| self.waits_for(posted.owner));
        let posted = posted.map(|posted| (PendingState::ReceiveUnmatched, posted));
        let posted = probe
            .into_iter()
            .chain(posted)
            .map(|(state, posted)| PendingOperation::of_receive(state, posted));
        let incoming = self.receives.iter().filter(|receive| self.waits_for(receive.owner));
        let incoming = incoming.filter_map(PendingOperation::of_incoming);
        let outgoing =
            self.sends.iter().filter(|send| self.waits_for(send.owner) || self.waits_for_access(send));
        let outgoing = outgoing.filter_map(|send| self.pending_send(send));
        let mut pending: Vec<PendingOperation> = posted.chain(incoming).chain(outgoing).collect();
        let mut collectives: Vec<BlockedCollective> = collectives.collect();
        // The tables' own order may change when a process is saved and loaded.
        pending.sort_by_key(|p| (p.comm, p.collective, p.tag, p.peer, p.bytes));
        collectives.sort_by_key(|collective| (collective.comm, collective.number));
        let stream = self.parked.is_some().then(|| self.stream());
        Some(Blocked { rank: self.rank, stream, call, events: Vec::new(), collectives, pending })
    }

    /// The call that another stream of the rank blocks in, as [`Process::waiting_for`].
    pub fn stream_waiting_for(&self, stream: StreamId) -> Option<Blocked> {
        let mut process = self.clone();
        process.switch_to(stream);
        process.waiting_for()
    }

    /// `None`: it is the library's own, for which the program does not wait.
    fn pending_send(&self, send: &PendingSend) -> Option<PendingOperation> {
        let PendingSend { to, bytes, purpose, .. } = *send;
        match purpose {
            Purpose::Message { content: Content::Matched(matching), state, .. } => {
                let state = match state {
                    SendState::Posted | SendState::Receipted => PendingState::SendPosted,
                    SendState::Announced | SendState::Unmatched => PendingState::SendUnmatched,
                    SendState::Unacknowledged => PendingState::SendUnacknowledged,
                    SendState::Unreceipted => PendingState::SendUnreceipted,
                };
                Some(PendingOperation::of_message(state, to, matching, bytes))
            }
            Purpose::Message { content: Content::Active(_), .. } => None,
            Purpose::Access { window, .. } => {
                let (state, peer) = (PendingState::AccessUnanswered, Some(to));
                let comm = self.windows.as_ref()?.comm(window);
                Some(PendingOperation { state, peer, tag: None, comm, collective: false, bytes })
            }
        }
    }

    /// The messages, receives, sends and requests that are left over when the program has ended; all zero if
    /// it completed them.
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
            Owner::Nobody | Owner::Live(_) => false,
            Owner::Request(request) => self.requests.is_waited(request),
            Owner::Collective(key) => self.waits_for_collective(key),
        }
    }

    fn waits_for_collective(&self, key: u32) -> bool {
        match self.collectives.get(key).request {
            None => self.call.waiting == WaitingFor::Collective(key),
            Some(request) => self.requests.is_waited(request),
        }
    }
}

/// The numbers of operations that are left over when a program has ended.
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

/// Operations and events of a rank that are named; of more the number is.
const SHOWN: usize = 8;

impl fmt::Display for Blocked {
    /// `rank 3 waits in waitall for a receive of 4K from rank 1 (tag 7, communicator 0): no message has
    /// matched`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if let Some(StreamId(stream)) = self.stream {
            write!(f, ", stream {stream},")?;
        }
        write!(f, " waits in {}", self.call)?;
        for (index, event) in self.events.iter().take(SHOWN).enumerate() {
            write!(f, "{}event {}", if index == 0 { " for " } else { ", " }, event.0)?;
        }
        if !self.events.is_empty() {
            write!(f, ": nothing has signalled it")?;
        }
        for collective in &self.collectives {
            let BlockedCollective { name, algorithm, comm, number, round } = collective;
            write!(f, ": {name} number {number} of communicator {} by {algorithm}, round {round}", comm.0)?;
        }
        for (index, pending) in self.pending.iter().take(SHOWN).enumerate() {
            write!(f, "{}{pending}", if index == 0 { " for " } else { "; " })?;
        }
        match self.pending.len().checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "; and {more} more"),
        }
    }
}

impl fmt::Display for PendingOperation {
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
