//! Answers of a rank's interface, which it sends for messaging without the rank's processor.
//!
//! | arrives | asked for by | the interface sends back |
//! |---|---|---|
//! | [`Body::Read`] | `rendezvous = read` | the announced data |
//! | [`Body::ClearToSend`], [`Body::Admit`] | `clear_to_send = interface` | the announced data |
//! | [`Body::Access`] | `one_sided`, `atomics = native` | an acknowledgement, or what was read |
//!
//! Whoever drives a [`Process`](crate::Process) asks [`Protocol::by_interface`] of every message that
//! arrives, and hands the process those only of which the interface knows nothing.
//!
//! # Source
//! TR-488 §5.2.1: the clear to send "targets the mailbox of senders's RDMA"; §4.5 for reads as requests
//! that are answered by writes.

use crate::envelope::{Body, Envelope};
use crate::protocol::{ClearToSend, OneSidedPath, Protocol, Rendezvous};
use crate::transport::SendToken;
use weft_units::{Bytes, RankId};

/// A message that an interface sends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceAnswer {
    /// The message. It goes to the source of the message that it answers.
    pub envelope: Envelope,
    /// The bytes that it occupies on the wire in addition to packet headers.
    pub payload: Bytes,
    /// Comes back through [`Rank::sent`](crate::Rank::sent) when the interface has taken the data.
    pub token: SendToken,
}

impl Protocol {
    /// The message that the interface of `rank` sends back when `envelope` arrives; `None`: it is for the
    /// process.
    #[inline]
    pub fn by_interface(&self, rank: RankId, envelope: &Envelope) -> Option<InterfaceAnswer> {
        let (bytes, cleared) = (envelope.bytes, self.clear_to_send == ClearToSend::Interface);
        let with_data = self.data_header + bytes;
        let (body, payload, token) = match envelope.body {
            Body::Read { send, receive } => (Body::Data { send, receive }, with_data, SendToken::UNAWAITED),
            Body::ClearToSend { send, receive } if cleared => {
                let token = match self.sender_awaits_ack() {
                    true => SendToken::UNAWAITED,
                    false => SendToken::of_send(send),
                };
                (Body::Data { send, receive }, with_data, token)
            }
            Body::Admit { send, receive } if cleared => {
                (Body::Data { send, receive }, with_data, SendToken::UNAWAITED)
            }
            Body::Access { access, send, window } if self.path(access) == OneSidedPath::Native => {
                let payload = if access.returns_data() { with_data } else { Bytes::ZERO };
                (Body::Answer { access, send, window }, payload, SendToken::UNAWAITED)
            }
            _ => return None,
        };
        Some(InterfaceAnswer { envelope: Envelope::new(rank, bytes, body), payload, token })
    }

    /// Whether a send by rendezvous completes with the receiver's acknowledgement.
    pub fn sender_awaits_ack(&self) -> bool {
        self.rendezvous_ack || self.rendezvous == Rendezvous::Read
    }
}
