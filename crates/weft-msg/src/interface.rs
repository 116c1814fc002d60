//! What a rank's interface does for messaging without the rank's processor.
//!
//! | arrives | asked for by | the interface sends back |
//! |---|---|---|
//! | [`EnvelopeKind::Read`] | `rendezvous = read` | the announced data |
//! | [`EnvelopeKind::ClearToSend`], [`EnvelopeKind::Admit`] | `clear_to_send = interface` | the announced data |
//! | [`EnvelopeKind::Access`] | `one_sided`, `atomics = native` | an acknowledgement, or what was read |
//!
//! Whoever drives a [`Process`](crate::Process) asks [`Protocol::by_interface`] of every message that
//! arrives, and hands the process those only of which the interface knows nothing.
//!
//! # Source
//! TR-488 §5.2.1: the clear to send "targets the mailbox of senders's RDMA"; §4.5 for reads as requests
//! that are answered by writes.

use crate::nic::{Envelope, EnvelopeKind, SendToken};
use crate::protocol::{ClearToSend, OneSidedPath, Protocol, Rendezvous};
use weft_units::{Bytes, RankId};

/// A message that an interface sends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceAnswer {
    /// What it is. It goes to the source of the message that it answers.
    pub envelope: Envelope,
    /// What it occupies on the wire beside packet headers.
    pub payload: Bytes,
    /// Comes back through [`Process::sent`](crate::Process::sent) when the interface has taken the data.
    pub token: SendToken,
}

impl Protocol {
    /// What the interface of `rank` sends back when `envelope` arrives; `None`: it is for the process.
    pub fn by_interface(&self, rank: RankId, envelope: &Envelope) -> Option<InterfaceAnswer> {
        let (kind, payload, token) = match envelope.kind {
            EnvelopeKind::Read => {
                (EnvelopeKind::Data, self.data_header + envelope.bytes, SendToken::UNAWAITED)
            }
            EnvelopeKind::ClearToSend if self.clear_to_send == ClearToSend::Interface => {
                let token = if self.sender_awaits_ack() {
                    SendToken::UNAWAITED
                } else {
                    SendToken::of(envelope.exchange())
                };
                (EnvelopeKind::Data, self.data_header + envelope.bytes, token)
            }
            EnvelopeKind::Admit if self.clear_to_send == ClearToSend::Interface => {
                (EnvelopeKind::Data, self.data_header + envelope.bytes, SendToken::UNAWAITED)
            }
            EnvelopeKind::Access(access) if self.path(access) == OneSidedPath::Native => {
                let payload =
                    if access.returns_data() { self.data_header + envelope.bytes } else { Bytes::ZERO };
                (EnvelopeKind::Answer(access), payload, SendToken::UNAWAITED)
            }
            _ => return None,
        };
        Some(InterfaceAnswer { envelope: Envelope { kind, source: rank, ..*envelope }, payload, token })
    }

    /// Whether a send by rendezvous completes with the receiver's acknowledgement.
    pub fn sender_awaits_ack(&self) -> bool {
        self.rendezvous_ack || self.rendezvous == Rendezvous::Read
    }
}
