//! One rank's side of messaging.
//!
//! ```text
//!              start ──▶ send ──▶ eager | rendezvous ──▶ Nic::post
//!   program              receive ─▶ matching ◀── delivered ◀── network
//!              resume ◀── requests ◀── complete ◀── sent
//! ```
//! A [`Process`] knows no time. Its driver calls [`delivered`](Process::delivered) and
//! [`sent`](Process::sent) when the machine's progress rule lets the rank notice: at once, or only
//! while it is inside a messaging call.
//!
//! # Not modelled
//! A limit on buffered or unexpected messages, cancelling, persistent requests (traces have them as the
//! sends and receives that they start).

use crate::active;
use crate::collective::executor::{Call, Running};
use crate::communicator::Communicators;
use crate::error::MsgError;
use crate::matching::{Matching, Owner, Posted};
use crate::nic::{Envelope, EnvelopeKind, Nic, SendToken};
use crate::one_sided::{AccessCall, Windows};
use crate::protocol::{LARGEST, Protocol, SynchronousSends, WaitCosts, Wildcards};
use crate::requests::{Renamed, Requests};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use slab::Slab;
use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId, Span};

/// Whether the program can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Progress {
    /// With its next operation.
    Ready,
    /// Not before a notification: then ask [`Process::resume`].
    Blocked,
}

/// The call that a rank blocks in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum WaitingFor {
    /// None.
    Nothing,
    /// A message that no receive has matched.
    Probe,
    /// A wait for one request.
    Wait,
    /// A wait for all of some requests.
    Waitall,
    /// A wait for one of some requests.
    Waitany,
    /// A blocking collective, by its entry in the table.
    Collective(u32),
    /// A synchronization of one-sided communication.
    Window,
}

/// How far a send has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum SendState {
    /// The data is with the interface, which has not taken all of it.
    Posted,
    /// Announced: no receive has answered.
    Announced,
    /// The data is on its way: the receiver has not acknowledged it.
    Unacknowledged,
    /// To the rank itself: no receive has matched.
    Unmatched,
    /// The data is with the interface or has gone out, and no receipt of it has come.
    Unreceipted,
    /// The receipt has come, before it is known that the data has gone out.
    Receipted,
    /// A one-sided operation: its target has not answered.
    Access,
}

/// A send that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Outgoing {
    pub owner: Owner,
    pub to: RankId,
    pub state: SendState,
    pub envelope: Envelope,
}

/// A matched receive whose data is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Incoming {
    pub owner: Owner,
    /// The envelope that announced it.
    pub envelope: Envelope,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub to: RankId,
    pub comm: CommId,
    pub collective: bool,
    pub tag: i32,
    pub bytes: Bytes,
    pub mode: SendMode,
    pub owner: Owner,
}

/// One rank's side of messaging. An idle one owns no memory beside itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    pub(crate) rank: RankId,
    pub(crate) ranks: u32,
    pub(crate) waiting: WaitingFor,
    /// How often it still polls before it waits: see [`WaitCosts::Polls`].
    pub(crate) polls_left: u8,
    pub(crate) requests: Requests,
    pub(crate) matching: Matching,
    pub(crate) sends: Slab<Outgoing>,
    pub(crate) receives: Slab<Incoming>,
    pub(crate) communicators: Communicators,
    pub(crate) collectives: Slab<Running>,
    /// The message that it looks for.
    pub(crate) probe: Option<Box<Posted>>,
    /// Of programs with one-sided communication.
    pub(crate) windows: Option<Box<Windows>>,
    /// What a notification found wrong: the next call says so.
    pub(crate) fault: Option<Box<MsgError>>,
}

/// Polls before a rank waits, where these are what a wait costs: MPICH yields after the first, and waits in the second.
const POLLS: u8 = 2;

const _: () = assert!(size_of::<Process>() <= 312, "a hundred thousand ranks must fit");

impl Process {
    /// Rank `rank` of `ranks`, at the start of its program. As in MPI, there are less than 2^31 ranks.
    pub fn new(rank: RankId, ranks: u32) -> Process {
        Process {
            rank,
            ranks,
            waiting: WaitingFor::Nothing,
            polls_left: 0,
            requests: Requests::default(),
            matching: Matching::default(),
            sends: Slab::new(),
            receives: Slab::new(),
            communicators: Communicators::default(),
            collectives: Slab::new(),
            probe: None,
            windows: None,
            fault: None,
        }
    }

    /// Starts an operation of the program. `Ready`: go on with the next. `Blocked`: call
    /// [`resume`](Process::resume) after each notification until it is ready.
    ///
    /// Computation and markers are the driver's: here they are over at once. Errors where the operation
    /// cannot be carried out, is not supported ([`unsupported`](crate::unsupported)), or a message that has arrived since the
    /// last call exceeds its receive; the program cannot go on after an error.
    pub fn start(&mut self, op: &Op, protocol: &Protocol, nic: &mut impl Nic) -> Result<Progress, MsgError> {
        self.check()?;
        if self.waiting != WaitingFor::Nothing {
            return Err(MsgError::StillBlocked);
        }
        match op {
            Op::Compute { .. } | Op::Marker { .. } => {}
            Op::Isend { to, tag, comm, bytes, mode, request } => {
                self.check_peer("destination", *to, *comm)?;
                if bytes.get() > LARGEST {
                    return Err(MsgError::MessageTooLarge { bytes: *bytes });
                }
                self.requests.open(*request)?;
                let message = Message {
                    to: *to,
                    comm: *comm,
                    collective: false,
                    tag: *tag,
                    bytes: *bytes,
                    mode: *mode,
                    owner: Owner::Request(*request),
                };
                self.send(message, protocol, nic);
            }
            Op::Irecv { from, tag, comm, bytes, matched, request } => {
                let (source, tag) = match (protocol.wildcards, matched) {
                    (Wildcards::Recorded, Some((source, tag))) => (Some(*source), Some(*tag)),
                    _ => (*from, *tag),
                };
                self.check_peer("source", source.unwrap_or(self.rank), *comm)?;
                self.requests.open(*request)?;
                let owner = Owner::Request(*request);
                let posted = Posted {
                    comm: *comm,
                    collective: false,
                    source,
                    tag,
                    ignore: 0,
                    repeats: false,
                    bytes: *bytes,
                    owner,
                };
                self.receive(posted, protocol, nic);
            }
            Op::Probe { from, tag, comm } => {
                self.check_peer("source", *from, *comm)?;
                self.begin_wait(protocol, nic);
                self.look_for(*from, *tag, *comm);
            }
            Op::Wait { request } => {
                self.begin_wait(protocol, nic);
                self.requests.wait(*request)?;
                self.waiting = WaitingFor::Wait;
            }
            Op::Waitall { requests } => {
                self.begin_wait(protocol, nic);
                for request in requests {
                    self.requests.wait(*request)?;
                }
                self.waiting = WaitingFor::Waitall;
            }
            Op::Waitany { requests, completed } => {
                self.begin_wait(protocol, nic);
                self.wait_any(requests, *completed, protocol)?;
                self.waiting = WaitingFor::Waitany;
            }
            Op::Collective { kind, comm, root, sizes, request } => {
                let call = Call { kind: *kind, comm: *comm, root: *root, sizes, request: *request };
                self.start_collective(&call, protocol, nic)?;
            }
            Op::Communicator { comm, members } => {
                self.communicators.create(*comm, members, self.rank, self.ranks)?;
            }
            Op::Window { window, comm, .. } => self.create_window(*window, *comm, protocol, nic)?,
            Op::OneSided { kind, window, target, bytes, request } => {
                let (kind, window, target, bytes) = (*kind, *window, *target, *bytes);
                self.access(&AccessCall { kind, window, target, bytes, request: *request }, protocol, nic)?;
            }
            Op::Sync { kind, window, target } => self.synchronize(*kind, *window, *target, protocol, nic)?,
        }
        let progress = self.resume(protocol, nic);
        self.check()?;
        Ok(progress)
    }

    /// Whether what the rank waits for has come. Asking may be repeated.
    ///
    /// It may carry the rank on within its call, so that it spends time and posts messages.
    #[inline]
    pub fn resume(&mut self, protocol: &Protocol, nic: &mut impl Nic) -> Progress {
        if self.waiting == WaitingFor::Window {
            self.resume_synchronization(protocol, nic);
        }
        if self.waiting == WaitingFor::Probe {
            self.look(protocol, nic);
        }
        let blocked = match self.waiting {
            WaitingFor::Nothing => false,
            WaitingFor::Wait | WaitingFor::Waitall | WaitingFor::Waitany => self.requests.is_waiting(),
            // The collective itself ends this, the others above.
            WaitingFor::Probe | WaitingFor::Collective(_) | WaitingFor::Window => true,
        };
        if blocked {
            return Progress::Blocked;
        }
        self.waiting = WaitingFor::Nothing;
        self.polls_left = 0;
        Progress::Ready
    }

    /// A call begins to wait, or goes on to wait for something else.
    pub(crate) fn begin_wait(&mut self, protocol: &Protocol, nic: &mut impl Nic) {
        match protocol.wait_costs {
            WaitCosts::Call => nic.spend(Work::WaitCall, protocol.wait_call),
            WaitCosts::Polls => self.polls_left = POLLS,
        }
    }

    /// A rank that waits polls; says whether it does at all before it waits for what comes.
    #[inline]
    pub fn polls(&mut self, protocol: &Protocol, nic: &mut impl Nic) -> bool {
        let polls = self.polls_left > 0;
        if polls {
            self.polls_left -= 1;
            nic.spend(Work::WaitCall, protocol.wait_call);
        }
        polls
    }

    /// A rank that waits has taken something that has not ended its wait.
    pub fn goes_on_waiting(&mut self, protocol: &Protocol) {
        if protocol.wait_costs == WaitCosts::Polls {
            self.polls_left = self.polls_left.max(1);
        }
    }

    /// A message has arrived whole that is not [the interface's](Protocol::by_interface), and the rank
    /// notices it.
    pub fn delivered(&mut self, envelope: Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        match envelope.kind {
            EnvelopeKind::Eager => {
                nic.spend(Work::ReceiveMessage, protocol.receive_message);
                self.arrived(envelope, protocol, nic);
            }
            EnvelopeKind::RequestToSend => {
                nic.spend(Work::ControlReceive, protocol.control_receive);
                self.arrived(envelope, protocol, nic);
            }
            EnvelopeKind::ClearToSend => self.clear_to_send(envelope.source, &envelope, protocol, nic),
            EnvelopeKind::Data => self.data_arrived(&envelope, protocol, nic),
            EnvelopeKind::Ack => self.acknowledged(&envelope, protocol, nic),
            EnvelopeKind::Receipt => self.receipted(&envelope, protocol, nic),
            EnvelopeKind::Access(access) => self.carry_out(access, &envelope, protocol, nic),
            EnvelopeKind::Announce(_) => self.admit(&envelope, protocol, nic),
            EnvelopeKind::Admit => self.admitted(&envelope, protocol, nic),
            EnvelopeKind::Answer(access) => self.answered(access, &envelope, protocol, nic),
            EnvelopeKind::Posted | EnvelopeKind::Completed => self.told_by_other(&envelope, protocol, nic),
            // Its interface answers those.
            EnvelopeKind::Read => {}
        }
    }

    /// For how long a rank that notices such a message is busy with it, at least, before it [does](Process::delivered) anything else.
    pub fn least_work(kind: EnvelopeKind, protocol: &Protocol) -> Span {
        match kind {
            EnvelopeKind::Eager | EnvelopeKind::Data | EnvelopeKind::Receipt => protocol.receive_message,
            EnvelopeKind::RequestToSend | EnvelopeKind::ClearToSend | EnvelopeKind::Ack => {
                protocol.control_receive
            }
            _ => Span::ZERO,
        }
    }

    /// The interface has taken a message, and the rank notices it.
    pub fn sent(&mut self, token: SendToken, protocol: &Protocol, nic: &mut impl Nic) {
        if let Some(key) = token.key().filter(|key| self.sends.contains(*key)) {
            self.gone_out(key, protocol, nic);
        }
    }

    /// An error that a notification found, such as a message longer than its receive. [`Process::start`]
    /// checks it too: call this at the end of the program.
    #[inline]
    pub fn check(&self) -> Result<(), MsgError> {
        match &self.fault {
            Some(fault) => Err(MsgError::clone(fault)),
            None => Ok(()),
        }
    }

    /// Sends a message.
    #[inline]
    pub(crate) fn send(&mut self, mut message: Message, protocol: &Protocol, nic: &mut impl Nic) {
        if message.mode == SendMode::Buffered && protocol.wait_costs == WaitCosts::Polls {
            // MPICH looks after the buffered sends before it (`MPIR_Bsend_check_active`).
            nic.spend(Work::WaitCall, protocol.wait_call);
        }
        if message.to != self.rank || !protocol.keeps_own_messages() {
            nic.spend(Work::SendCall, protocol.send_call);
        }
        let is_buffered = protocol.buffered_limit.is_some_and(|limit| message.bytes <= limit);
        if matches!(message.mode, SendMode::Standard | SendMode::Ready) && is_buffered {
            message.mode = SendMode::Buffered;
        }
        let with_receipt =
            message.mode == SendMode::Synchronous && protocol.synchronous_sends == SynchronousSends::Receipt;
        if with_receipt && message.to != self.rank {
            self.send_with_receipt(&message, protocol, nic);
        } else if message.to == self.rank {
            self.send_to_self(&message, protocol, nic);
        } else if message.bytes <= protocol.eager_limit && message.mode != SendMode::Synchronous {
            self.send_eager(&message, protocol, nic);
        } else {
            self.send_rendezvous(&message, protocol, nic);
        }
    }

    /// Posts a receive, which may find its message in the unexpected queue.
    #[inline]
    pub(crate) fn receive(&mut self, posted: Posted, protocol: &Protocol, nic: &mut impl Nic) {
        if posted.source != Some(self.rank) || !protocol.keeps_own_messages() {
            nic.spend(Work::ReceiveCall, protocol.receive_call);
        }
        let found = self.matching.post(posted);
        nic.spend(Work::Matching, protocol.matching_entry * found.scanned);
        if let Some(envelope) = found.entry {
            self.matched(&envelope, &posted, protocol, nic);
        }
    }

    /// A message to be matched is there: a receive may wait for it.
    pub(crate) fn arrived(&mut self, envelope: Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        if active::is_active(&envelope, protocol) {
            return self.active_arrived(&envelope, protocol, nic);
        }
        let found = self.matching.arrive(envelope);
        nic.spend(Work::Matching, protocol.matching_entry * found.scanned);
        if let Some(posted) = found.entry {
            self.matched(&envelope, &posted, protocol, nic);
        }
    }

    pub(crate) fn matched(
        &mut self,
        envelope: &Envelope,
        posted: &Posted,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        // A real rank sees to it itself: it is an error of its one operation.
        let live = matches!(posted.owner, Owner::Live(_));
        if envelope.bytes > posted.bytes && self.fault.is_none() && !live {
            self.fault = Some(Box::new(MsgError::Truncated {
                source_rank: envelope.source,
                tag: envelope.tag,
                message: envelope.bytes,
                buffer: posted.bytes,
            }));
        }
        match envelope.kind {
            EnvelopeKind::RequestToSend => self.receive_announced(envelope, posted, protocol, nic),
            _ => self.receive_eager(envelope, posted, protocol, nic),
        }
    }

    /// A send or receive has completed.
    #[inline]
    pub(crate) fn complete(&mut self, owner: Owner, protocol: &Protocol, nic: &mut impl Nic) {
        if protocol.wait_costs == WaitCosts::Polls {
            self.polls_left = POLLS;
        }
        match owner {
            Owner::Nobody | Owner::Active => {}
            Owner::Request(request) => self.complete_request(request),
            Owner::Collective(key) => self.collective_message_done(key, protocol, nic),
            Owner::Live(key) => nic.completed(key),
        }
    }

    /// A request of the program has completed.
    #[inline]
    pub(crate) fn complete_request(&mut self, request: RequestId) {
        if let Some(renamed) = self.requests.complete(request) {
            self.rename(renamed);
        }
    }

    /// The envelope of a message of this rank.
    pub(crate) fn envelope(&self, kind: EnvelopeKind, message: &Message) -> Envelope {
        Envelope {
            kind,
            collective: message.collective,
            source: self.rank,
            tag: message.tag,
            comm: message.comm,
            bytes: message.bytes,
            send: 0,
            receive: 0,
        }
    }

    /// Keeps a send until it completes.
    pub(crate) fn remember(&mut self, message: &Message, state: SendState, envelope: Envelope) -> u32 {
        self.sends.insert(Outgoing { owner: message.owner, to: message.to, state, envelope }) as u32
    }

    fn wait_any(
        &mut self,
        requests: &[RequestId],
        completed: u32,
        protocol: &Protocol,
    ) -> Result<(), MsgError> {
        let recorded = requests.get(completed as usize);
        let recorded = *recorded.ok_or(MsgError::WaitanyIndex { requests: requests.len(), completed })?;
        match protocol.wildcards {
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
        let posted = self.matching.posted_mut().map(|posted| &mut posted.owner);
        let sends = self.sends.iter_mut().map(|(_, outgoing)| &mut outgoing.owner);
        let receives = self.receives.iter_mut().map(|(_, incoming)| &mut incoming.owner);
        for owner in posted.chain(sends).chain(receives).filter(|owner| **owner == old) {
            *owner = new;
        }
        for (_, running) in &mut self.collectives {
            if running.request == Some(renamed.pending) {
                running.request = Some(renamed.name);
            }
        }
    }

    /// Whether `peer` can be the other side of an operation on `comm`.
    #[inline]
    pub(crate) fn check_peer(&self, role: &str, peer: RankId, comm: CommId) -> Result<(), MsgError> {
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
