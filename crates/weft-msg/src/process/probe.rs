//! Probes: waiting for a message without receiving it.
//!
//! ```text
//!   probe ──▶ unexpected queue ──found──▶ goes on; the message stays
//!                  ▲      └─none──▶ waits, and looks again when something has come
//!                  arrival
//! ```
//! # Source
//! MPI 4.1 §3.8.1. A matching probe (§3.8.2) is one as well: the receive behind it takes the message.

use super::rank::Rank;
use super::{Process, WaitingFor};
use crate::envelope::RankEndpoints;
use crate::matching::{Owner, PostedReceive};
use crate::protocol::WaitCosts;
use crate::transport::Transport;
use crate::work::Work;
use weft_trace::op::CommId;
use weft_units::{Address, Bytes, RankId};

impl Process {
    /// The program waits for a message.
    pub(super) fn look_for(&mut self, from: RankId, tag: i32, comm: CommId) {
        self.call.probe = Some(Box::new(PostedReceive {
            comm,
            collective: false,
            source: Some(from),
            number: Some(tag),
            endpoints: RankEndpoints::FIRST,
            ignore: 0,
            repeats: false,
            bytes: Bytes::ZERO,
            owner: Owner::Nobody,
            buffer: Address::default(),
        }));
        self.call.waiting = WaitingFor::Probe;
    }
}

impl<T: Transport> Rank<'_, T> {
    /// Looks for the message. The look that finds it costs one at each message before it, as that of a
    /// receive does.
    pub(super) fn look(&mut self) {
        let process = &mut *self.process;
        let Some(found) = process.call.probe.as_deref().map(|probe| process.matching.peek(probe)) else {
            return;
        };
        if found.entry.is_some() {
            process.call.probe = None;
            process.call.waiting = WaitingFor::Nothing;
            if self.protocol.wait_costs == WaitCosts::Polls {
                // A library that polls does so before each look, and after the one that ends a probe; a test
                // returns at once (MPICH: `MPIDI_OFI_do_iprobe` and the loop of `MPID_Probe`).
                let polls = if self.process.call.tests { 1 } else { 2 };
                self.spend(Work::WaitCall, self.protocol.wait_call * polls);
            }
            self.spend(Work::Matching, self.protocol.matching_entry * found.scanned);
        }
    }
}
