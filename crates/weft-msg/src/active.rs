//! Active messages: what one-sided communication says to the library at the other side, which handles it when it notices.
//!
//! ```text
//!   origin                                        target
//!     lock, unlock      ── Ask (40 B) ──────────▶ answers at once: locks count as shared
//!                       ◀─────────── Answer ────
//!     accumulate, fetch ── Accumulate, Fetch ───▶ reduces
//!                       ◀──── Answer (with data) ─
//!     complete          ── Completed ───────────▶ told, as of a post
//! ```
//! They are messages as those of programs, sent eagerly or by rendezvous by their size, in the space of collectives with tags that no
//! collective has. Nobody posts a receive for them.
//!
//! # Source
//! MPICH 5.0, `src/mpid/ch4/src/mpidig_win.h`, `mpidig_rma.h`: the exchanges. The sizes are those of the messages in runs of `weft run`
//! (MPICH 5.0.2, `ch4:ofi` without atomics).

use crate::matching::{Owner, Posted};
use crate::nic::{Access, Envelope, EnvelopeKind, Nic};
use crate::process::{Message, Process};
use crate::protocol::{ActiveMessages, LARGEST, Protocol, cost};
use crate::work::Work;
use weft_trace::op::{CommId, SendMode, WindowId};
use weft_units::{Bytes, RankId};

/// What an active message is; its number is in the tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Active {
    /// A lock or its end is asked for.
    Ask,
    /// Data to be reduced into the target's.
    Accumulate,
    /// Data for that which comes back.
    Fetch,
    /// What was asked for has been done.
    Answer,
    /// The window of the source may be accessed.
    Posted,
    /// The accesses of the source are over.
    Completed,
}

/// Tags of collectives count up from 0.
const FIRST_TAG: i32 = i32::MIN;
const ALL: [Active; 6] =
    [Active::Ask, Active::Accumulate, Active::Fetch, Active::Answer, Active::Posted, Active::Completed];

/// What precedes the data of an operation.
const OPERATION_HEADER: Bytes = Bytes::new(96);
/// What precedes the data that an operation brings back, or is all that says that it is done.
const ANSWER_HEADER: Bytes = Bytes::new(32);
/// A message about locks, and its answer; a post; a complete.
const CONTROL: Bytes = Bytes::new(40);

/// Whether a message that is to be matched is one of those.
pub(crate) fn is_active(envelope: &Envelope, protocol: &Protocol) -> bool {
    protocol.active_messages != ActiveMessages::None && envelope.collective && envelope.tag < 0
}

fn tag_of(active: Active) -> i32 {
    FIRST_TAG + active as i32
}

fn of_tag(tag: i32) -> Option<Active> {
    ALL.get(tag.wrapping_sub(FIRST_TAG) as usize).copied()
}

impl Process {
    /// Asks `to` for a lock or its end; the answer is that to the send `key`.
    pub(crate) fn ask(&mut self, to: RankId, key: u32, protocol: &Protocol, nic: &mut impl Nic) {
        self.send_active(Active::Ask, to, key.into(), CONTROL, protocol, nic);
    }

    /// Sends an operation that reduces; the answer is that to the send `key`.
    pub(crate) fn send_operation(
        &mut self,
        access: Access,
        to: RankId,
        key: u32,
        bytes: Bytes,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        let active = if access.returns_data() { Active::Fetch } else { Active::Accumulate };
        self.send_active(active, to, key.into(), OPERATION_HEADER + bytes, protocol, nic);
    }

    /// Tells `to` of a post or complete.
    pub(crate) fn tell_active(
        &mut self,
        kind: EnvelopeKind,
        to: RankId,
        window: WindowId,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        let active = if kind == EnvelopeKind::Posted { Active::Posted } else { Active::Completed };
        self.send_active(active, to, window.0, CONTROL, protocol, nic);
    }

    /// Sends an active message. In place of a communicator: the send that waits for its answer, or the window.
    fn send_active(
        &mut self,
        active: Active,
        to: RankId,
        about: u64,
        bytes: Bytes,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        let message = Message {
            to,
            comm: CommId(about),
            collective: true,
            tag: tag_of(active),
            bytes,
            mode: SendMode::Standard,
            owner: Owner::Nobody,
        };
        self.send(message, protocol, nic);
    }

    /// One is there, or is announced.
    pub(crate) fn active_arrived(&mut self, envelope: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::Matching, protocol.matching_entry);
        if envelope.kind == EnvelopeKind::RequestToSend {
            let posted = Posted {
                comm: envelope.comm,
                collective: true,
                source: Some(envelope.source),
                tag: Some(envelope.tag),
                ignore: 0,
                repeats: false,
                bytes: Bytes::new(LARGEST),
                owner: Owner::Active,
            };
            return self.receive_announced(envelope, &posted, protocol, nic);
        }
        nic.spend(Work::ReceiveCopy, cost(protocol.receive_copy_rate, envelope.bytes));
        self.complete(Owner::Active, protocol, nic);
        self.handle(envelope, protocol, nic);
    }

    /// Does what one says.
    pub(crate) fn handle(&mut self, envelope: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        let (about, source) = (envelope.comm.0, envelope.source);
        let data = envelope.bytes.saturating_sub(OPERATION_HEADER);
        match of_tag(envelope.tag) {
            Some(Active::Ask) => self.send_active(Active::Answer, source, about, CONTROL, protocol, nic),
            Some(active @ (Active::Accumulate | Active::Fetch)) => {
                nic.spend_in_memory(Work::CollectiveWork, protocol.reduction(data));
                let back = if active == Active::Fetch { data } else { Bytes::ZERO };
                self.send_active(Active::Answer, source, about, ANSWER_HEADER + back, protocol, nic);
            }
            Some(Active::Answer) => self.done(about as usize, protocol, nic),
            Some(Active::Posted) => self.told_of_window(EnvelopeKind::Posted, WindowId(about), source),
            Some(Active::Completed) => self.told_of_window(EnvelopeKind::Completed, WindowId(about), source),
            None => {}
        }
    }
}
