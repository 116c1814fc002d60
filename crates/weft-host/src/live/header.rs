//! Headers that travel with the messages of real ranks.

use super::rails::SendPart;
use crate::virtual_interfaces::{Carried, What};
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_msg::{Envelope, RankEndpoints};
use weft_nic::{Operations, Purpose};
use weft_units::EndpointId;

/// The kind of a live rank's message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum LiveKind {
    /// Of messaging.
    Message(Envelope),
    /// An RDMA write to this address under this key, between these endpoints.
    Write { remote: u64, key: u64, endpoints: RankEndpoints },
    /// The answer to a write or a read: the operation, and an errno.
    Done { token: u32, error: i32 },
    /// A request to write so many bytes back.
    Read { remote: u64, key: u64, length: u64, local: u64, opening: u32 },
    /// The data that was read, for the memory of that opening.
    Answer { local: u64, token: u32, opening: u32 },
    /// Between virtual interfaces.
    Interface(Carried),
}

impl LiveKind {
    /// The purpose of such a message. A real rank's collectives are sends of its MPI, which says no more.
    pub(super) fn purpose(&self) -> Purpose {
        let (operation, is_reply) = match self {
            LiveKind::Message(envelope) => (Operations::TWO_SIDED, envelope.is_reply()),
            LiveKind::Write { .. } => (Operations::PUT, false),
            LiveKind::Read { .. } => (Operations::GET, false),
            LiveKind::Answer { .. } => (Operations::GET, true),
            LiveKind::Done { .. } => (Operations::NONE, true),
            LiveKind::Interface(carried) => match carried.what {
                What::Small => (Operations::TWO_SIDED, false),
                What::Put { .. } => (Operations::PUT, false),
                What::Get { .. } => (Operations::GET, false),
                What::Got { .. } => (Operations::GET, true),
                What::Ended { .. } => (Operations::NONE, true),
            },
        };
        Purpose { operation, is_reply, ..Purpose::PLAIN }
    }
}

/// The header that travels with a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LiveHeader {
    pub(super) kind: LiveKind,
    pub(super) source: u32,
    /// The rank that it is for, among those of its endpoint.
    pub(super) seat: u32,
    /// Counts the messages from rank to rank that are to be matched.
    pub(super) number: u32,
    /// The 64-bit tag, of a message of messaging that is matched by one.
    pub(super) tag: Option<u64>,
    /// The message's bytes in the job's store.
    pub(super) payload: Option<u32>,
    pub(super) data: u64,
    pub(super) with_data: bool,
    pub(super) token: u32,
    pub(super) part: SendPart,
}

impl LiveHeader {
    pub(super) fn is_matched(&self) -> bool {
        matches!(&self.kind, LiveKind::Message(envelope) if envelope.is_ordered())
    }
}

/// For what a host of live ranks sets a timer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Resume {
    /// The rank on this seat goes on: virtual time has reached its clock.
    Seat(u32),
    /// The turn that is under way ends.
    EndOfTurn,
    /// Another endpoint of the host has handed something over.
    Rail {
        /// That endpoint.
        from: EndpointId,
        /// Counts what it hands over.
        order: u32,
    },
}

impl Payload for Resume {
    fn tie(&self) -> u128 {
        match self {
            Resume::Seat(seat) => (*seat).into(),
            Resume::EndOfTurn => u32::MAX.into(),
            Resume::Rail { from, order } => 1 << 64 | u128::from(from.0) << 32 | u128::from(*order),
        }
    }
}
