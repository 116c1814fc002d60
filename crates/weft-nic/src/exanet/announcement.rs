//! Announcements between interfaces: the simulation's stand-in for fields of headers that all packets of a
//! message carry alike.
//!
//! # Not modelled
//! These fields in packets, the global address and the protection domain of TR-488 §4.3 among them. They fit
//! the header of 16 bytes, so that no packet is longer for them.

use super::header::pack_cell;
use crate::data::Words;
use crate::gvas::Pdid;
use crate::rdma::{CellId, Location, TransferHeader};
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_units::{Address, Bytes, Time};

/// The fields that the headers of all packets of a message share.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MessageHeader<T> {
    /// Payload of the message.
    pub(super) bytes: Bytes,
    /// The time at which the message was offered.
    pub(super) created_at: Time,
    /// The sending host's words to the receiving one.
    pub(super) header: Option<T>,
    /// The virtual interface that the message is for.
    pub(super) interface: u16,
    /// The protection domain of the sender.
    pub(super) domain: Pdid,
    /// The transaction of the first block of an RDMA write.
    pub(super) first: u32,
    /// Whether the message is watched.
    pub(super) watch: bool,
}

/// A message that is to come, as its destination knows it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Expected<T> {
    /// As the receive unit sees it.
    pub(super) transfer: TransferHeader,
    /// The time at which the message was offered.
    pub(super) created_at: Time,
    /// The sending host's words to this one.
    pub(super) header: Option<T>,
    /// Payload of it that lies in memory.
    pub(super) came: Bytes,
}

impl<T> Expected<T> {
    /// A message of this header and number, which goes to `address`.
    pub(super) fn new(header: MessageHeader<T>, message: u32, address: Address) -> Expected<T> {
        let MessageHeader { bytes, created_at, header, interface, domain, first, watch } = header;
        let destination = Location { space: interface.into(), address };
        let transfer = TransferHeader { destination, bytes, domain, first, message, watch };
        Expected { transfer, created_at, header, came: Bytes::ZERO }
    }

    /// The virtual interface that it is for.
    pub(super) fn interface(&self) -> u16 {
        self.transfer.destination.space as u16
    }
}

/// An announcement of a message: no longer than a packet, so that no event is longer for it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Announcement<T> {
    /// The message is on its way.
    Header(MessageHeader<T>),
    /// The message is an RDMA write whose cells are about to come.
    Transfer {
        /// The transaction of its first block.
        first: u32,
    },
    /// The message has failed.
    Withdrawn,
    /// The source has read a cell, in a run with real bytes.
    Read {
        /// The cell.
        cell: CellId,
        /// The place of its first byte in the message.
        offset: u64,
    },
    /// A part of a vector between reduction modules, in a run with real bytes.
    Words(Words),
}

impl<T: Copy + Send + Sync> Payload for Announcement<T> {
    fn tie(&self) -> u128 {
        // The header comes before what refers to it: a transfer may begin at the instant of its message's
        // post.
        let kind = |kind: u64, of: u64| u128::from(kind << 60 | of & ((1 << 60) - 1));
        match self {
            Announcement::Header(_) => kind(0, 0),
            Announcement::Transfer { first } => kind(1, u64::from(*first)),
            Announcement::Read { cell, .. } => kind(2, pack_cell(*cell).bits()),
            Announcement::Words(words) => kind(3, u64::from(words.part)),
            Announcement::Withdrawn => kind(4, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exanet::ExanetTimer;
    use weft_fabric::{Packet, Wire};

    /// Catches an announcement that makes all events longer than those of packets: over a cache line.
    #[test]
    fn an_announcement_is_no_longer_than_a_packet() {
        assert_eq!(size_of::<Wire<ExanetTimer<()>, Announcement<()>>>(), size_of::<Packet>());
    }
}
