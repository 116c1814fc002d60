//! Post, start, complete and wait: one-sided communication in epochs that both sides bound.
//!
//! ```text
//!   origin                              target
//!     start ◀──────────── Posted ────── post        (the target's window may be accessed)
//!     put, get … ──▶ ◀── Answer
//!     complete ─────── Completed ─────▶ wait        (all accesses of the origin are over)
//! ```
//! A post tells every origin of its group; it waits for nobody. A start waits until its target has posted.
//! A complete waits for the answers to all operations of the rank on the window, then tells every target of
//! its group. A wait waits until every origin of its group has completed. A trace has a post and a start for
//! each member of a group.
//!
//! # Source
//! MPI 4.1 §12.5.2; MPICH 4 `src/mpid/ch4/generic/mpidig_win.h`: messages of posts and completes, which
//! `MPIDIG_mpi_win_start` and `MPIDIG_mpi_win_wait` wait for.
//!
//! # Not modelled
//! A start that lets the program go on before its targets have posted, which MPI allows.

use super::Process;
use super::rank::Rank;
use crate::envelope::Body;
use crate::error::MsgError;
use crate::protocol::ActiveMessages;
use crate::transport::Transport;
use crate::windows::EpochNotice;
use crate::work::Work;
use weft_trace::op::WindowId;
use weft_units::{Bytes, RankId};

impl Process {
    /// `from` has posted or completed.
    pub(super) fn note(&mut self, notice: EpochNotice, window: WindowId, from: RankId) {
        match self.windows.as_mut().and_then(|windows| windows.exposure(window)) {
            Some(exposure) => exposure.note(notice, from),
            None => self.fail_later(MsgError::UnknownWindow { rank: self.rank, window }),
        }
    }
}

impl<T: Transport> Rank<'_, T> {
    /// Notifies `to` that this rank has posted or completed.
    pub(super) fn notify_epoch(&mut self, notice: EpochNotice, to: RankId, window: WindowId) {
        if to == self.process.rank {
            return self.process.note(notice, window, to);
        }
        if self.protocol.active_messages != ActiveMessages::None {
            return self.send_epoch_notice(notice, to, window);
        }
        let body = match notice {
            EpochNotice::Posted => Body::Posted { window },
            EpochNotice::Completed => Body::Completed { window },
        };
        self.post_control(to, Bytes::ZERO, body);
    }

    /// A control message of another rank says that it has posted or completed.
    pub(super) fn epoch_notice(&mut self, notice: EpochNotice, window: WindowId, from: RankId) {
        self.spend(Work::ControlReceive, self.protocol.control_receive);
        self.process.note(notice, window, from);
    }
}
