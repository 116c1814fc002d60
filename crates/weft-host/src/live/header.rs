//! Headers that travel with the messages of real ranks.

use super::rails::SendPart;
use crate::virtual_interfaces::{Carried, What};
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_msg::{Envelope, RankEndpoints};
use weft_nic::{Operations, Purpose};
use weft_units::EndpointId;

/// A message of messaging.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LiveMessage {
    pub envelope: Envelope,
    /// Counts the messages from rank to rank that are to be matched.
    pub number: u32,
    /// The 64-bit tag, where it is matched by one.
    pub tag: Option<u64>,
    /// 64 bits for the receiver's completion.
    pub data: Option<u64>,
}

/// An RDMA write to an address under a key.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LiveWrite {
    pub remote: u64,
    pub key: u64,
    pub endpoints: RankEndpoints,
    /// The operation at the rank that writes.
    pub token: u32,
    /// 64 bits for the target's completion.
    pub data: Option<u64>,
}

/// A request to write bytes back.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LiveRead {
    pub remote: u64,
    pub key: u64,
    pub length: u64,
    pub local: u64,
    /// The opening of the rank whose memory is to take them.
    pub opening: u32,
    /// The operation at the rank that reads.
    pub token: u32,
}

/// The kind of a live rank's message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum LiveKind {
    Message(LiveMessage),
    Write(LiveWrite),
    /// The answer to a write or a read: the operation, and an errno.
    Done {
        token: u32,
        error: i32,
    },
    Read(LiveRead),
    /// The data that was read, for the memory of that opening.
    Answer {
        local: u64,
        token: u32,
        opening: u32,
    },
    /// Between virtual interfaces.
    Interface(Carried),
}

impl LiveKind {
    /// The purpose of such a message. A real rank's collectives are sends of its MPI, which says no more.
    pub(super) fn purpose(&self) -> Purpose {
        let (operation, is_reply) = match self {
            LiveKind::Message(message) => (Operations::TWO_SIDED, message.envelope.is_reply()),
            LiveKind::Write(_) => (Operations::PUT, false),
            LiveKind::Read(_) => (Operations::GET, false),
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
    /// The rank that it is for, among those of its endpoint. Of no meaning between virtual interfaces.
    pub(super) seat: u32,
    /// The message's bytes in the job's store.
    pub(super) payload: Option<u32>,
    pub(super) part: SendPart,
}

impl LiveHeader {
    /// The header of a message without bytes.
    pub(super) fn new(kind: LiveKind, source: u32, seat: u32) -> LiveHeader {
        LiveHeader { kind, source, seat, payload: None, part: SendPart::ALONE }
    }
}

/// For what a host of live ranks sets a timer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Resume {
    /// The rank on this seat goes on: virtual time has reached its clock.
    Seat(u32),
    /// The rank on this seat has waited as long as it wants to, if it still does.
    Until {
        /// The seat.
        seat: u32,
        /// Counts the waits of the rank.
        wait: u32,
    },
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
            Resume::Until { seat, wait } => 2 << 64 | u128::from(*seat) << 32 | u128::from(*wait),
            Resume::EndOfTurn => u32::MAX.into(),
            Resume::Rail { from, order } => 1 << 64 | u128::from(from.0) << 32 | u128::from(*order),
        }
    }
}
