//! Active messages: what one-sided communication says to the library at the other side, which handles it when
//! it notices.
//!
//! ```text
//!   origin                                        target
//!     lock, unlock      ── Ask (40 B) ──────────▶ answers at once: locks count as shared
//!                       ◀─────────── Answer ────
//!     accumulate, fetch ── Accumulate, Fetch ───▶ reduces
//!                       ◀──── Answer (with data) ─
//!     complete          ── Completed ───────────▶ noted, as a post is
//!
//!     with much data    ── Accumulate, Fetch ───▶ reads the data by RDMA
//!                       ◀──────────── HasRead ─── has it, and reduces
//!                       ◀───────────── Answer ─── read by RDMA too, where it has much data
//! ```
//! They travel as messages of programs do, sent eagerly or by rendezvous by their size. Nobody posts a
//! receive for them.
//!
//! # Source
//! MPICH 5.0, `src/mpid/ch4/src/mpidig_win.h`, `mpidig_rma.h`: the exchanges; `src/mpid/ch4/netmod/ofi/`
//! `ofi_am.h`, `ofi_am_events.h`: which data is read (`MPIDI_OFI_AM_RDMA_READ`). The sizes are those of the
//! messages in runs of `weft run` (MPICH 5.0.2, `ch4:ofi` without atomics).

use super::rank::Rank;
use crate::envelope::{Access, ActiveMessage, Body, Envelope, SendEntry};
use crate::matching::Owner;
use crate::protocol::{OneSidedPath, cost};
use crate::receives::PendingReceive;
use crate::sends::{Content, MessageToSend, SendState};
use crate::transport::Transport;
use crate::windows::EpochNotice;
use crate::work::Work;
use std::num::NonZeroU64;
use weft_trace::op::{SendMode, WindowId};
use weft_units::{Address, Bytes, RankId};

/// The header before the data of an operation.
const OPERATION_HEADER: Bytes = Bytes::new(96);
/// The header before the data that an operation brings back, or the whole answer of one that brings none.
const ANSWER_HEADER: Bytes = Bytes::new(32);
/// A message about locks, and its answer; a post; a complete.
const CONTROL_BYTES: Bytes = Bytes::new(40);
/// The longest message that holds its data, header included; the data of a longer one is read.
const MOST_WITHIN: Bytes = Bytes::new(16 << 10);
/// Where the data to be read is, behind the header.
const READ_HEADER: Bytes = Bytes::new(48);
/// The message that says that data has been read.
const HAS_READ_BYTES: Bytes = Bytes::new(32);

impl<T: Transport> Rank<'_, T> {
    /// Asks `to` for a lock or its end, for an own operation.
    pub(super) fn ask(&mut self, to: RankId, operation: SendEntry) {
        self.send_active(ActiveMessage::Ask { operation }, to, CONTROL_BYTES);
    }

    /// Sends an operation that reduces.
    pub(super) fn send_operation(&mut self, access: Access, to: RankId, operation: SendEntry, bytes: Bytes) {
        let is_read = OPERATION_HEADER + bytes > MOST_WITHIN;
        let to_read = NonZeroU64::new(bytes.get()).filter(|_| is_read);
        let message = match access.returns_data() {
            true => ActiveMessage::Fetch { operation, to_read },
            false => ActiveMessage::Accumulate { operation, to_read },
        };
        self.send_active(message, to, OPERATION_HEADER + if is_read { READ_HEADER } else { bytes });
    }

    /// Answers an operation, with so many bytes of data.
    fn send_answer(&mut self, to: RankId, operation: SendEntry, bytes: Bytes) {
        if ANSWER_HEADER + bytes <= MOST_WITHIN {
            let message = ActiveMessage::Answer { operation, to_read: None };
            return self.send_active(message, to, ANSWER_HEADER + bytes);
        }
        // What it keeps until the origin has read it.
        let content = Content::Active(ActiveMessage::Answer { operation, to_read: None });
        let (mode, owner, buffer) = (SendMode::Standard, Owner::Nobody, Address::default());
        let kept = MessageToSend { to, content, bytes, mode, owner, buffer };
        let to_read = Some(self.process.sends.keep(&kept, SendState::Posted, false));
        self.send_active(ActiveMessage::Answer { operation, to_read }, to, ANSWER_HEADER + READ_HEADER);
    }

    /// Reads the data that a message of `source` has named: so many bytes of that send.
    fn read_data(&mut self, message: ActiveMessage, source: RankId, send: SendEntry, bytes: Bytes) {
        self.spend(Work::SendCall, self.protocol.send_call);
        self.spend(Work::DataSend, self.protocol.data_send);
        let buffer = match message {
            ActiveMessage::Answer { operation, .. } => {
                self.process.sends.get(operation).map(|own| own.buffer)
            }
            _ => None,
        };
        let announced = Envelope::new(source, bytes, Body::Active { message });
        let buffer = buffer.unwrap_or_default();
        let receive =
            self.process.receives.insert(PendingReceive { owner: Owner::Nobody, announced, buffer });
        self.post(source, bytes, Body::Read { send, receive }, self.protocol.control_bytes);
    }

    /// The data that a message of `source` has named is here.
    pub(super) fn data_read(&mut self, message: ActiveMessage, source: RankId, bytes: Bytes) {
        self.spend(Work::ControlReceive, self.protocol.control_receive);
        let (message, kept) = match message {
            ActiveMessage::Accumulate { operation, .. } => {
                (ActiveMessage::Accumulate { operation, to_read: None }, None)
            }
            ActiveMessage::Fetch { operation, .. } => {
                (ActiveMessage::Fetch { operation, to_read: None }, None)
            }
            ActiveMessage::Answer { operation, to_read } => {
                (ActiveMessage::Answer { operation, to_read: None }, to_read)
            }
            other => (other, None),
        };
        self.send_active(ActiveMessage::HasRead { kept }, source, HAS_READ_BYTES);
        self.handle(message, source, OPERATION_HEADER + bytes);
        self.complete(Owner::Nobody);
    }

    /// Sends `to` the active message that says that this rank has posted or completed.
    pub(super) fn send_epoch_notice(&mut self, notice: EpochNotice, to: RankId, window: WindowId) {
        let message = match notice {
            EpochNotice::Posted => ActiveMessage::Posted { window },
            EpochNotice::Completed => ActiveMessage::Completed { window },
        };
        self.send_active(message, to, CONTROL_BYTES);
    }

    fn send_active(&mut self, message: ActiveMessage, to: RankId, bytes: Bytes) {
        let content = Content::Active(message);
        let (mode, owner, buffer) = (SendMode::Standard, Owner::Nobody, Address::default());
        self.send(MessageToSend { to, content, bytes, mode, owner, buffer });
    }

    /// One has arrived with its data.
    pub(super) fn active_arrived(&mut self, message: ActiveMessage, source: RankId, bytes: Bytes) {
        self.spend(Work::ReceiveMessage, self.protocol.receive_message);
        self.spend(Work::Matching, self.protocol.matching_entry);
        self.spend(Work::ReceiveCopy, cost(self.protocol.receive_copy_rate, bytes));
        self.complete(Owner::Nobody);
        self.handle(message, source, bytes);
    }

    /// One is announced.
    pub(super) fn active_announced(&mut self, send: SendEntry, envelope: Envelope) {
        self.spend(Work::ControlReceive, self.protocol.control_receive);
        self.spend(Work::Matching, self.protocol.matching_entry);
        self.receive_announced(&envelope, send, (Owner::Nobody, Address::default()));
    }

    /// Acts on a message of `source` that is here, with its headers so many bytes long.
    pub(super) fn handle(&mut self, message: ActiveMessage, source: RankId, bytes: Bytes) {
        match message {
            ActiveMessage::Ask { operation } => {
                let message = ActiveMessage::Answer { operation, to_read: None };
                self.send_active(message, source, CONTROL_BYTES);
            }
            ActiveMessage::Accumulate { operation, to_read: Some(data) }
            | ActiveMessage::Fetch { operation, to_read: Some(data) } => {
                self.read_data(message, source, operation, Bytes::new(data.get()));
            }
            ActiveMessage::Accumulate { operation, to_read: None } => {
                self.reduce(bytes);
                self.send_answer(source, operation, Bytes::ZERO);
            }
            ActiveMessage::Fetch { operation, to_read: None } => {
                let data = self.reduce(bytes);
                self.send_answer(source, operation, data);
            }
            ActiveMessage::Answer { operation, to_read: Some(kept) } => {
                let bytes = self.process.sends.get(operation).map_or(Bytes::ZERO, |own| own.bytes);
                self.read_data(message, source, kept, bytes);
            }
            ActiveMessage::Answer { operation, to_read: None } => {
                self.operation_done(operation, OneSidedPath::Emulated);
            }
            ActiveMessage::HasRead { kept } => {
                if let Some(kept) = kept {
                    self.process.sends.take(kept);
                }
            }
            ActiveMessage::Posted { window } => self.process.note(EpochNotice::Posted, window, source),
            ActiveMessage::Completed { window } => self.process.note(EpochNotice::Completed, window, source),
        }
    }

    /// Reduces the data of an operation with so many bytes, its header included: the bytes of data.
    fn reduce(&mut self, bytes: Bytes) -> Bytes {
        let data = bytes.saturating_sub(OPERATION_HEADER);
        self.transport.spend_in_memory(Work::CollectiveWork, self.protocol.reduction(data));
        data
    }
}
