//! One rank's side of messaging, as it lies in memory between two calls.
//!
//! ```text
//!                      ┌─────────────── Rank: a process at work ────────────────┐
//! program ── start ──▶ │  eager  rendezvous  receipt  collective  one_sided  …  │ ─ post, spend ─▶ Transport
//!         ◀─ resume ── │     │        │         │         │           │         │ ◀─ delivered, sent ─
//!                      └─────┼────────┼─────────┼─────────┼───────────┼─────────┘
//!                            ▼        ▼         ▼         ▼           ▼
//! Process             Requests  Matching  Sends  Receives  Collectives  Windows  Communicators
//! ```
//! A [`Process`] is data: tables that each look after themselves, and what the rank waits for. A [`Rank`] is
//! a process with its surroundings, the machine's [`Protocol`] and the [`Transport`]. It routes: each file of
//! this folder is one part of the protocol, which asks the tables and tells the transport.
//!
//! Neither knows time. The caller hands over what has [arrived](Rank::delivered) and [gone out](Rank::sent)
//! when the machine's progress rule lets the rank notice: at once, or only while it is inside a messaging
//! call.
//!
//! # Not modelled
//! A limit on buffered or unexpected messages, cancelling, persistent requests (traces have them as the
//! sends and receives that they start).

mod active;
mod call;
mod collective;
mod eager;
pub(crate) mod false_envelope;
pub(crate) mod memory;
mod one_sided;
mod post_start;
mod probe;
pub(crate) mod rank;
mod receipt;
mod rendezvous;
pub(crate) mod report;
pub(crate) mod stand_in;
pub(crate) mod tagged;

use crate::collectives::Collectives;
use crate::communicator::Communicators;
use crate::envelope::{Body, Envelope, EnvelopeKind, OperationKind};
use crate::error::MsgError;
use crate::matching::Matching;
use crate::protocol::{ActiveMessages, Protocol, WaitCosts};
use crate::receives::Receives;
use crate::requests::Requests;
use crate::sends::{Content, Purpose, Sends};
use crate::transport::Transport;
use crate::windows::Windows;
use call::StreamCall;
use rank::Rank;
use serde::{Deserialize, Serialize};
use weft_units::{RankId, Span};

/// The call that a rank blocks in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
enum WaitingFor {
    /// None.
    #[default]
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

/// One rank's side of messaging. An idle one owns no memory but its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    rank: RankId,
    ranks: u32,
    /// The call of the stream at work.
    call: StreamCall,
    /// Those of its other streams; that of the one at work is empty.
    #[expect(clippy::box_collection, reason = "few ranks have others, and there may be a million ranks")]
    parked: Option<Box<Vec<StreamCall>>>,
    requests: Requests,
    matching: Matching,
    sends: Sends,
    receives: Receives,
    communicators: Communicators,
    collectives: Collectives,
    /// Of programs with one-sided communication.
    windows: Option<Box<Windows>>,
    /// An error that a notification found: the next call reports it.
    fault: Option<Box<MsgError>>,
}

/// Polls before a rank waits, where polls are what a wait costs: MPICH yields after the first, and waits in
/// the second.
const POLLS_BEFORE_WAIT: u8 = 2;
/// Polls before a rank waits in a synchronization of MPICH's, as of real ranks: a few in a row are no wait.
const POLLS_ON_WINDOW: u8 = 8;

const _: () = assert!(size_of::<Process>() <= 368, "a hundred thousand ranks must fit");

impl Process {
    /// Rank `rank` of `ranks`, at the start of its program. As in MPI, there are less than 2^31 ranks.
    pub fn new(rank: RankId, ranks: u32) -> Process {
        Process {
            rank,
            ranks,
            call: StreamCall::default(),
            parked: None,
            requests: Requests::default(),
            matching: Matching::default(),
            sends: Sends::default(),
            receives: Receives::default(),
            communicators: Communicators::default(),
            collectives: Collectives::default(),
            windows: None,
            fault: None,
        }
    }

    /// The process at work, over a transport and at the costs of a machine.
    #[inline]
    pub fn on<'a, T: Transport>(&'a mut self, protocol: &'a Protocol, transport: &'a mut T) -> Rank<'a, T> {
        Rank { process: self, protocol, transport }
    }

    /// The error that a notification found, such as a message longer than its receive. [`Rank::start`]
    /// checks it too: call this at the end of the program.
    ///
    /// # Errors
    /// There was one.
    #[inline]
    pub fn check(&self) -> Result<(), MsgError> {
        match &self.fault {
            Some(fault) => Err(MsgError::clone(fault)),
            None => Ok(()),
        }
    }

    /// A rank that waits has taken something that has not ended its wait: it begins to wait anew.
    pub fn continue_wait(&mut self, protocol: &Protocol) {
        if protocol.wait_costs == WaitCosts::Polls {
            self.call.polls_left = self.polls_before_wait(protocol);
        }
    }

    /// The polls that a rank makes before it waits.
    fn polls_before_wait(&self, protocol: &Protocol) -> u8 {
        if self.waits_on_window(protocol) { POLLS_ON_WINDOW } else { POLLS_BEFORE_WAIT }
    }

    /// Whether the rank is in a synchronization of MPICH's, which polls also without waiting for anything.
    fn waits_on_window(&self, protocol: &Protocol) -> bool {
        self.call.waiting == WaitingFor::Window && protocol.active_messages != ActiveMessages::None
    }

    /// For how long a rank that notices a message of this kind is busy with it, at least, before it does
    /// anything else.
    pub fn least_work(kind: EnvelopeKind, protocol: &Protocol) -> Span {
        match kind {
            EnvelopeKind::Eager | EnvelopeKind::Multicast | EnvelopeKind::Data | EnvelopeKind::Receipt => {
                protocol.receive_message
            }
            EnvelopeKind::RequestToSend | EnvelopeKind::ClearToSend | EnvelopeKind::Ack => {
                protocol.control_receive
            }
            _ => Span::ZERO,
        }
    }

    /// The operation that a message is part of which this rank or its interface sends.
    pub fn operation(&self, envelope: &Envelope) -> OperationKind {
        match envelope.body {
            Body::Data { send, .. } => match self.sends.get(send).map(|send| send.purpose) {
                Some(Purpose::Message { content: Content::Matched(matching), .. }) => {
                    OperationKind::of_match(matching)
                }
                Some(Purpose::Message { content: Content::Active(message), .. }) => {
                    OperationKind::of_active(message)
                }
                Some(Purpose::Access { access, .. }) => OperationKind::of_access(access),
                None => OperationKind::Other,
            },
            Body::ClearToSend { receive, .. } | Body::Read { receive, .. } | Body::Admit { receive, .. } => {
                let announced = self.receives.get(receive).map(|receive| receive.announced.body);
                announced.map_or(OperationKind::Other, OperationKind::of_body)
            }
            body => OperationKind::of_body(body),
        }
    }

    /// The operation that a message with data is part of which has arrived for this rank and that it has not
    /// noticed.
    pub fn operation_arrived(&self, envelope: &Envelope) -> OperationKind {
        self.announced_body(envelope).map_or(OperationKind::Other, OperationKind::of_body)
    }

    /// The body of a message with data that has arrived for this rank, or of that which has announced it;
    /// `None`: nothing has.
    fn announced_body(&self, envelope: &Envelope) -> Option<Body> {
        match envelope.body {
            Body::Data { receive, .. } => Some(self.receives.get(receive)?.announced.body),
            body => Some(body),
        }
    }

    /// The tag of a message with data that has arrived for this rank and that it has not noticed. Of a
    /// one-sided operation: its origin's own number for the window. `None`: it is a collective's or the
    /// library's own.
    pub fn tag_of(&self, envelope: &Envelope) -> Option<i32> {
        match self.announced_body(envelope)? {
            Body::Eager { matching, .. } | Body::RequestToSend { matching, .. } => {
                matching.context.program_tag()
            }
            Body::Access { window, .. } | Body::Announce { window, .. } | Body::Answer { window, .. } => {
                Some(window as i32)
            }
            _ => None,
        }
    }

    /// An error is found while the program is elsewhere: its next call reports the first of them.
    fn fail_later(&mut self, error: MsgError) {
        if self.fault.is_none() {
            self.fault = Some(Box::new(error));
        }
    }
}
