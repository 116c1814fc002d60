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
//! ```
//! They travel as messages of programs do, sent eagerly or by rendezvous by their size. Nobody posts a
//! receive for them.
//!
//! # Source
//! MPICH 5.0, `src/mpid/ch4/src/mpidig_win.h`, `mpidig_rma.h`: the exchanges. The sizes are those of the
//! messages in runs of `weft run` (MPICH 5.0.2, `ch4:ofi` without atomics).

use super::rank::Rank;
use crate::envelope::{Access, ActiveMessage, Envelope, SendEntry};
use crate::matching::Owner;
use crate::protocol::{OneSidedPath, cost};
use crate::sends::{Content, MessageToSend};
use crate::transport::Transport;
use crate::windows::EpochNotice;
use crate::work::Work;
use weft_trace::op::{SendMode, WindowId};
use weft_units::{Address, Bytes, RankId};

/// The header before the data of an operation.
const OPERATION_HEADER: Bytes = Bytes::new(96);
/// The header before the data that an operation brings back, or the whole answer of one that brings none.
const ANSWER_HEADER: Bytes = Bytes::new(32);
/// A message about locks, and its answer; a post; a complete.
const CONTROL_BYTES: Bytes = Bytes::new(40);

impl<T: Transport> Rank<'_, T> {
    /// Asks `to` for a lock or its end, for an own operation.
    pub(super) fn ask(&mut self, to: RankId, operation: SendEntry) {
        self.send_active(ActiveMessage::Ask { operation }, to, CONTROL_BYTES);
    }

    /// Sends an operation that reduces.
    pub(super) fn send_operation(&mut self, access: Access, to: RankId, operation: SendEntry, bytes: Bytes) {
        let message = match access.returns_data() {
            true => ActiveMessage::Fetch { operation },
            false => ActiveMessage::Accumulate { operation },
        };
        self.send_active(message, to, OPERATION_HEADER + bytes);
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
                self.send_active(ActiveMessage::Answer { operation }, source, CONTROL_BYTES);
            }
            ActiveMessage::Accumulate { operation } => {
                self.reduce(bytes);
                self.send_active(ActiveMessage::Answer { operation }, source, ANSWER_HEADER);
            }
            ActiveMessage::Fetch { operation } => {
                let data = self.reduce(bytes);
                self.send_active(ActiveMessage::Answer { operation }, source, ANSWER_HEADER + data);
            }
            ActiveMessage::Answer { operation } => self.operation_done(operation, OneSidedPath::Emulated),
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
