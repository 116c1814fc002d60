//! A process at work: operations of the program, and what its interface reports.
//!
//! ```text
//!   Isend, Irecv ──▶ eager, rendezvous, receipt      delivered(envelope) ──▶ the part that its body is of
//!   Wait, Waitall ─▶ requests                        sent(token) ──────────▶ the send that it names
//!   Collective ────▶ collective                      accelerated(token) ───▶ the collective that it names
//!   OneSided, Sync ▶ one_sided, post_start                all end in complete(owner)
//! ```

use super::{Process, WaitingFor, memory};
use crate::collectives::CollectiveCall;
use crate::envelope::{
    Body, Envelope, MAX_MESSAGE_BYTES, Match, MatchContext, RankEndpoints, ReceiveEntry, SendEntry,
};
use crate::error::MsgError;
use crate::matching::{Owner, PostedReceive};
use crate::protocol::{Protocol, WaitCosts, Wildcards};
use crate::requests::Renamed;
use crate::sends::{Content, MessageToSend};
use crate::transport::{Posting, SendToken, Transport};
use crate::windows::{AccessCall, EpochNotice};
use crate::work::Work;
use weft_trace::op::{CommId, Op, RequestId};
use weft_units::{Bytes, RankId, Span};

/// Whether the program can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum CallStatus {
    /// With its next operation.
    Ready,
    /// Not before a notification: then ask [`Rank::resume`].
    Blocked,
}

/// A process at work: with the costs of its machine and the transport that carries its messages.
#[derive(Debug)]
pub struct Rank<'a, T> {
    pub(super) process: &'a mut Process,
    pub(super) protocol: &'a Protocol,
    pub(super) transport: &'a mut T,
}

impl<T: Transport> Rank<'_, T> {
    /// Starts an operation of the program. `Ready`: go on with the next. `Blocked`: call
    /// [`resume`](Rank::resume) after each notification until it is ready.
    ///
    /// Computation, events and markers are the caller's: here they are over at once.
    ///
    /// # Errors
    /// The operation cannot be carried out, is not supported ([`unsupported`](crate::unsupported)), or a
    /// message that has arrived since the last call exceeds its receive. The program cannot go on after an
    /// error.
    pub fn start(&mut self, op: &Op) -> Result<CallStatus, MsgError> {
        self.process.check()?;
        if self.process.call.waiting != WaitingFor::Nothing {
            return Err(MsgError::StillBlocked);
        }
        match op {
            Op::Compute { .. }
            | Op::Work { .. }
            | Op::Marker { .. }
            | Op::Signal { .. }
            | Op::Await { .. } => {}
            Op::Isend { to, tag, comm, bytes, mode, buffer, request } => {
                self.process.check_peer("destination", *to, *comm)?;
                if bytes.get() > MAX_MESSAGE_BYTES {
                    return Err(MsgError::MessageTooLarge { bytes: *bytes });
                }
                self.process.requests.open(*request)?;
                let content = Content::Matched(Match { comm: *comm, context: MatchContext::Program(*tag) });
                let owner = Owner::Request(*request);
                let buffer = buffer.unwrap_or_else(|| memory::sent(*comm, *to, *tag));
                self.send(MessageToSend { to: *to, content, bytes: *bytes, mode: *mode, owner, buffer });
            }
            Op::Irecv { from, tag, comm, bytes, matched, buffer, request } => {
                let (source, tag) = match (self.protocol.wildcards, matched) {
                    (Wildcards::Recorded, Some((source, tag))) => (Some(*source), Some(*tag)),
                    _ => (*from, *tag),
                };
                self.process.check_peer("source", source.unwrap_or(self.process.rank), *comm)?;
                self.process.requests.open(*request)?;
                let owner = Owner::Request(*request);
                let receive = PostedReceive {
                    comm: *comm,
                    collective: false,
                    source,
                    number: tag,
                    endpoints: RankEndpoints::FIRST,
                    ignore: 0,
                    repeats: false,
                    bytes: *bytes,
                    owner,
                    buffer: buffer.unwrap_or_else(|| memory::received(*comm, source, tag)),
                };
                self.receive(receive);
            }
            Op::Probe { from, tag, comm, tested } => {
                self.process.check_peer("source", *from, *comm)?;
                self.begin_wait();
                self.process.look_for(*from, *tag, *comm);
                self.process.call.tests = *tested;
            }
            Op::Wait { request } => {
                self.begin_wait();
                self.process.requests.wait(*request)?;
                self.process.call.waiting = WaitingFor::Wait;
            }
            Op::Waitall { requests } => {
                self.begin_wait();
                for request in requests {
                    self.process.requests.wait(*request)?;
                }
                self.process.call.waiting = WaitingFor::Waitall;
            }
            Op::Waitany { requests, completed } => {
                self.begin_wait();
                self.process.wait_any(requests, *completed, self.protocol.wildcards)?;
                self.process.call.waiting = WaitingFor::Waitany;
            }
            Op::Collective { kind, comm, root, sizes, buffers, request } => {
                let (kind, comm, root, request) = (*kind, *comm, *root, *request);
                let call = CollectiveCall { kind, comm, root, sizes, buffers: *buffers, request };
                self.start_collective(&call)?;
            }
            Op::Communicator { comm, members } => {
                let Process { communicators, rank, ranks, .. } = &mut *self.process;
                communicators.create(*comm, members, *rank, *ranks)?;
            }
            Op::Window { .. } | Op::OneSided { .. } | Op::Sync { .. } if self.process.parked.is_some() => {
                return Err(MsgError::OneSidedInStreams { operation: op.kind().name().to_owned() });
            }
            Op::Window { window, comm, buffer, .. } => self.create_window(*window, *comm, *buffer)?,
            Op::OneSided { kind, window, target, bytes, buffer, request } => {
                let (kind, window, target, bytes) = (*kind, *window, *target, *bytes);
                let (buffer, request) = (*buffer, *request);
                self.access(&AccessCall { kind, window, target, bytes, buffer, request })?;
            }
            Op::Sync { kind, window, target } => self.synchronize(*kind, *window, *target)?,
        }
        let status = self.resume();
        self.process.check()?;
        Ok(status)
    }

    /// Whether what the rank waits for is there. Asking may be repeated.
    ///
    /// It may carry the rank on within its call, so that it spends time and posts messages.
    #[inline]
    pub fn resume(&mut self) -> CallStatus {
        if self.process.call.waiting == WaitingFor::Window {
            self.resume_synchronization();
        }
        if self.process.call.waiting == WaitingFor::Probe {
            self.look();
        }
        let blocked = match self.process.call.waiting {
            WaitingFor::Nothing => false,
            WaitingFor::Wait | WaitingFor::Waitall | WaitingFor::Waitany => {
                self.process.requests.is_waiting()
            }
            // The collective itself ends this, the others above.
            WaitingFor::Probe | WaitingFor::Collective(_) | WaitingFor::Window => true,
        };
        if blocked {
            return CallStatus::Blocked;
        }
        self.process.call.waiting = WaitingFor::Nothing;
        self.process.call.polls_left = 0;
        CallStatus::Ready
    }

    /// Polls once, if a rank that waits does so before it waits for the next event; whether it did.
    #[inline]
    pub fn poll_once(&mut self) -> bool {
        let polls = self.process.call.polls_left > 0;
        if polls {
            self.process.call.polls_left -= 1;
            self.spend(Work::WaitCall, self.protocol.wait_call);
        }
        polls
    }

    /// A message has arrived whole that is not [the interface's](Protocol::by_interface), and the rank
    /// notices it.
    pub fn delivered(&mut self, envelope: Envelope) {
        let Envelope { source, bytes, .. } = envelope;
        match envelope.body {
            Body::Eager { .. } | Body::Multicast { .. } => {
                self.spend(Work::ReceiveMessage, self.protocol.receive_message);
                self.arrived(envelope);
            }
            Body::RequestToSend { .. } => {
                self.spend(Work::ControlReceive, self.protocol.control_receive);
                self.arrived(envelope);
            }
            Body::Active { message } => self.active_arrived(message, source, bytes),
            Body::AnnounceActive { send, .. } => self.active_announced(send, envelope),
            Body::ClearToSend { send, receive } => self.clear_to_send(source, send, receive),
            Body::Data { send, receive } => self.data_arrived(send, receive),
            Body::Ack { send, .. } => self.acknowledged(send),
            Body::Receipt { send } => self.receipted(send),
            Body::Access { access, send, window } => self.carry_out(access, &envelope, (send, window)),
            Body::Announce { send, .. } => self.admit(send, envelope),
            Body::Admit { send, receive } => self.admitted(source, bytes, (send, receive)),
            Body::Answer { access, send, .. } => self.answered(access, bytes, send),
            Body::Posted { window } => self.epoch_notice(EpochNotice::Posted, window, source),
            Body::Completed { window } => self.epoch_notice(EpochNotice::Completed, window, source),
            // Its interface answers those.
            Body::Read { .. } => {}
        }
    }

    /// The interface has taken a message, and the rank notices it.
    pub fn sent(&mut self, token: SendToken) {
        let send = token.key().map(SendEntry::new);
        if let Some(send) = send.filter(|send| self.process.sends.get(*send).is_some()) {
            self.gone_out(send);
        }
    }

    /// The interface has carried out an allreduce, and the rank notices it.
    pub fn accelerated(&mut self, token: SendToken) {
        if let Some(key) = token.key() {
            self.collective_message_done(key);
        }
    }

    /// The processor works for messaging.
    #[inline]
    pub(super) fn spend(&mut self, work: Work, span: Span) {
        self.transport.spend(work, span);
    }

    /// Posts a message for whose data nobody waits to be taken: `payload` bytes on the wire, packet headers
    /// aside.
    #[inline]
    pub(super) fn post(&mut self, to: RankId, bytes: Bytes, body: Body, payload: Bytes) {
        self.hand_over(to, self.envelope(bytes, body), payload, SendToken::UNAWAITED);
    }

    /// Hands a message to the interface, with the place of its data.
    #[inline]
    pub(super) fn hand_over(&mut self, to: RankId, envelope: Envelope, payload: Bytes, token: SendToken) {
        let buffer = self.process.source(&envelope);
        let operation = self.process.operation(&envelope);
        self.transport.post(Posting { to, envelope, operation, payload, buffer, token });
    }

    /// The envelope of a message of this rank.
    #[inline]
    pub(super) fn envelope(&self, bytes: Bytes, body: Body) -> Envelope {
        Envelope::new(self.process.rank, bytes, body)
    }

    /// Posts a control message.
    pub(super) fn post_control(&mut self, to: RankId, bytes: Bytes, body: Body) {
        self.spend(Work::ControlSend, self.protocol.control_send);
        self.post(to, bytes, body, self.protocol.control_bytes);
    }

    /// A call begins to wait, or goes on to wait for something else.
    pub(super) fn begin_wait(&mut self) {
        match self.protocol.wait_costs {
            WaitCosts::Call => self.spend(Work::WaitCall, self.protocol.wait_call),
            WaitCosts::Polls => self.process.call.polls_left = self.process.polls_before_wait(self.protocol),
        }
    }

    /// The message of a receive is here, whole: the transport is told whose it is.
    #[inline]
    pub(super) fn tell_received(&mut self, owner: Owner, receive: Option<ReceiveEntry>, envelope: &Envelope) {
        match owner {
            Owner::Live(key) => self.transport.received(key, receive, envelope),
            Owner::Request(request) => self.transport.request_received(request, envelope),
            Owner::Nobody | Owner::Collective(_) => {}
        }
    }

    /// A send or receive has completed.
    #[inline]
    pub(super) fn complete(&mut self, owner: Owner) {
        if self.protocol.wait_costs == WaitCosts::Polls {
            self.process.call.polls_left = self.process.polls_before_wait(self.protocol);
        }
        match owner {
            Owner::Nobody => {}
            Owner::Request(request) => self.process.complete_request(request),
            Owner::Collective(key) => self.collective_message_done(key),
            Owner::Live(key) => self.transport.completed(key),
        }
    }
}

impl Process {
    /// A request of the program has completed.
    #[inline]
    pub(super) fn complete_request(&mut self, request: RequestId) {
        if let Some(renamed) = self.requests.complete(request) {
            self.rename(renamed);
        }
    }

    /// The program waits for one of some requests, of which the recorded one got `completed`.
    fn wait_any(
        &mut self,
        requests: &[RequestId],
        completed: u32,
        wildcards: Wildcards,
    ) -> Result<(), MsgError> {
        let recorded = requests.get(completed as usize);
        let recorded = *recorded.ok_or(MsgError::WaitanyIndex { requests: requests.len(), completed })?;
        match wildcards {
            Wildcards::Recorded => self.requests.wait(recorded),
            Wildcards::Free => {
                if let Some(renamed) = self.requests.wait_any(requests, recorded)? {
                    self.rename(renamed);
                }
                Ok(())
            }
        }
    }

    /// A pending operation goes on under another request's name.
    fn rename(&mut self, renamed: Renamed) {
        let (old, new) = (Owner::Request(renamed.pending), Owner::Request(renamed.name));
        let owners =
            self.matching.owners_mut().chain(self.sends.owners_mut()).chain(self.receives.owners_mut());
        for owner in owners.filter(|owner| **owner == old) {
            *owner = new;
        }
        self.collectives.rename(renamed);
    }

    /// Whether `peer` can be the other side of an operation on `comm`.
    #[inline]
    pub(super) fn check_peer(&self, role: &str, peer: RankId, comm: CommId) -> Result<(), MsgError> {
        if peer.0 >= self.ranks {
            return Err(MsgError::NoSuchRank { role: role.to_owned(), rank: peer, ranks: self.ranks });
        }
        match self.communicators.contains(comm, peer, self.ranks) {
            Some(true) => Ok(()),
            Some(false) => Err(MsgError::NotAMember { role: role.to_owned(), rank: peer, comm }),
            None => Err(MsgError::UnknownCommunicator { rank: self.rank, comm }),
        }
    }
}
