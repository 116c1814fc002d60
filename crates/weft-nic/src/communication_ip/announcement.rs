//! Announcements between interfaces: the simulation's stand-in for what the headers of a message have in
//! common, and for the words of kernels to each other.
//!
//! # Not modelled
//! These fields in packets: `proc_id` and the upper bits of `dest_addr` have space for them.

use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_units::{Bytes, Time};

/// A message that is on its way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MessageHeader<T> {
    /// Payload of the message.
    pub(super) bytes: Bytes,
    /// The time at which the message was offered.
    pub(super) created_at: Time,
    /// The sending host's words to the receiving one.
    pub(super) header: Option<T>,
    /// The IntraNode port of the receiving endpoint.
    pub(super) interface: u16,
    /// Whether it stays in the receiving FIFO until its kernel takes it.
    pub(super) stays: bool,
}

/// An announcement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Announcement<T> {
    /// A message is on its way, with this header: in parts, since a whole one leaves no space
    /// for the mark that it is one.
    Message {
        /// Payload of the message.
        bytes: Bytes,
        /// The time at which the message was offered.
        created_at: Time,
        /// The sending host's words to the receiving one.
        header: Option<T>,
        /// The IntraNode port of the receiving endpoint.
        interface: u16,
        /// Whether it stays in the receiving FIFO until its kernel takes it.
        stays: bool,
    },
    /// Packets of a packet generator are.
    Test {
        /// The number of them.
        packets: u32,
        /// The time at which the first footer is written.
        began: Time,
    },
}

impl<T: Copy + Send + Sync> Payload for Announcement<T> {
    fn tie(&self) -> u128 {
        match self {
            Announcement::Message { .. } => 0, // of a message there is one
            Announcement::Test { packets, .. } => 1 << 64 | u128::from(*packets),
        }
    }
}
