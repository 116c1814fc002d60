//! Probes: waiting for a message without receiving it.
//!
//! ```text
//!   probe ──▶ unexpected queue ──found──▶ goes on; the message stays
//!                  ▲      └─none──▶ waits, and looks again when something has come
//!                  arrival
//! ```
//! # Source
//! MPI 4.1 §3.8.1. A matching probe (§3.8.2) is one as well: the receive behind it takes the message.

use crate::matching::{Owner, Posted};
use crate::nic::Nic;
use crate::process::{Process, WaitingFor};
use crate::protocol::{Protocol, WaitCosts};
use crate::work::Work;
use weft_trace::op::CommId;
use weft_units::{Bytes, RankId};

impl Process {
    /// The program waits for a message.
    pub(crate) fn look_for(&mut self, from: RankId, tag: i32, comm: CommId) {
        self.probe = Some(Box::new(Posted {
            comm,
            collective: false,
            source: Some(from),
            tag: Some(tag),
            ignore: 0,
            repeats: false,
            bytes: Bytes::ZERO,
            owner: Owner::Nobody,
        }));
        self.waiting = WaitingFor::Probe;
    }

    /// Looks for it. The look that finds it costs one at each message before it, as that of a receive does.
    pub(crate) fn look(&mut self, protocol: &Protocol, nic: &mut impl Nic) {
        let Some(found) = self.probe.as_deref().map(|probe| self.matching.peek(probe)) else { return };
        if found.entry.is_some() {
            if protocol.wait_costs == WaitCosts::Polls {
                // A library that polls does so around each look (MPICH: `MPIDI_OFI_do_iprobe` and the loop of `MPID_Probe`).
                nic.spend(Work::WaitCall, protocol.wait_call * 2);
            }
            nic.spend(Work::Matching, protocol.matching_entry * found.scanned);
            self.probe = None;
            self.waiting = WaitingFor::Nothing;
        }
    }
}
