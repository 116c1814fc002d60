//! Post, start, complete and wait: one-sided communication that both sides bound, each with a group.
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

use crate::error::MsgError;
use crate::nic::{Envelope, EnvelopeKind, Nic};
use crate::process::Process;
use crate::protocol::{ActiveMessages, Protocol};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_trace::op::{CommId, WindowId};
use weft_units::{Bytes, RankId};

/// The groups of one window, as one rank sees them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Groups {
    /// Whom the rank may access until it completes.
    started: Vec<RankId>,
    /// Who may access the rank until it has waited.
    exposed: Vec<RankId>,
    /// Posts of others for this rank that no start has taken.
    posts: BTreeMap<RankId, u32>,
    /// Completes of others that no wait has taken.
    completes: BTreeMap<RankId, u32>,
}

/// Takes one of `from`, if there is one.
fn take(counts: &mut BTreeMap<RankId, u32>, from: RankId) -> bool {
    match counts.get_mut(&from) {
        Some(count) if *count > 1 => *count -= 1,
        Some(_) => drop(counts.remove(&from)),
        None => return false,
    }
    true
}

impl Groups {
    /// The rank lets `origin` access it.
    pub fn expose(&mut self, origin: RankId) {
        self.exposed.push(origin);
    }

    /// Whether `target` has posted, so that it may be accessed from now on.
    pub fn start(&mut self, target: RankId) -> bool {
        let posted = take(&mut self.posts, target);
        if posted {
            self.started.push(target);
        }
        posted
    }

    /// The accesses are over: whom to tell.
    pub fn complete(&mut self) -> Vec<RankId> {
        std::mem::take(&mut self.started)
    }

    /// Whether all that were let in have completed; then nobody is let in any more.
    pub fn wait(&mut self) -> bool {
        let over = self.exposed.iter().all(|origin| self.completes.contains_key(origin));
        if over {
            for origin in std::mem::take(&mut self.exposed) {
                take(&mut self.completes, origin);
            }
        }
        over
    }

    fn note(&mut self, kind: EnvelopeKind, from: RankId) {
        let counts = if kind == EnvelopeKind::Posted { &mut self.posts } else { &mut self.completes };
        *counts.entry(from).or_default() += 1;
    }
}

impl Process {
    /// Tells `to` that this rank has posted or completed.
    pub(crate) fn tell_of_window(
        &mut self,
        kind: EnvelopeKind,
        to: RankId,
        window: WindowId,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        if to == self.rank {
            return self.told_of_window(kind, window, to);
        }
        if protocol.active_messages != ActiveMessages::None {
            return self.tell_active(kind, to, window, protocol, nic);
        }
        let envelope = Envelope {
            kind,
            collective: false,
            source: to,
            tag: 0,
            // In place of a communicator: the window, by the name that it has at all members.
            comm: CommId(window.0),
            bytes: Bytes::ZERO,
            send: 0,
            receive: 0,
        };
        self.control(kind, &envelope, protocol, nic);
    }

    /// Another rank has posted or completed.
    pub(crate) fn told_by_other(&mut self, envelope: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::ControlReceive, protocol.control_receive);
        self.told_of_window(envelope.kind, WindowId(envelope.comm.0), envelope.source);
    }

    /// `from` has posted or completed.
    pub(crate) fn told_of_window(&mut self, kind: EnvelopeKind, window: WindowId, from: RankId) {
        match self.groups(window) {
            Some(groups) => groups.note(kind, from),
            None => self.fault = Some(Box::new(MsgError::UnknownWindow { rank: self.rank, window })),
        }
    }
}
