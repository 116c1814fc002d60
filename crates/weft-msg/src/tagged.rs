//! Messages of a real rank: tags of 64 bits of which a receive may ignore some, as libfabric has them.
//!
//! ```text
//!   tag   63 ………………… 32 | 31 ………………… 0        a real rank names its operations by numbers of its own;
//!         communicator    tag                what becomes of them comes back through Nic::received
//!   space tagged | untagged                  and Nic::completed
//! ```
//! The library above (MPICH, say) has communicators and collectives of its own and expresses them in
//! these tags. Matching, eager and rendezvous are those of simulated ranks: the two halves of a tag
//! stand where they have communicator and tag, and the untagged space where they have collectives.

use crate::matching::{Owner, Posted};
use crate::nic::{Envelope, EnvelopeKind, Nic};
use crate::process::{Message, Process, SendState};
use crate::protocol::Protocol;
use crate::work::Work;
use weft_trace::op::{CommId, SendMode};
use weft_units::{Bytes, RankId};

/// A message that a real rank sends.
#[derive(Clone, Copy, Debug)]
pub struct TaggedSend {
    /// The receiver.
    pub to: RankId,
    /// Whether it is matched by tag; if not, it lies in a space of its own.
    pub tagged: bool,
    /// The tag.
    pub tag: u64,
    /// Payload.
    pub bytes: Bytes,
    /// Whether it completes only when a receive has matched it.
    pub synchronous: bool,
    /// What the rank calls the operation; `None`: it need not know when it completes.
    pub key: Option<u32>,
}

/// A receive that a real rank posts, or a message that it looks for.
#[derive(Clone, Copy, Debug)]
pub struct TaggedReceive {
    /// The sender; `None`: any.
    pub from: Option<RankId>,
    /// Whether it is matched by tag.
    pub tagged: bool,
    /// The tag.
    pub tag: u64,
    /// Bits of the tag that need not be equal.
    pub ignore: u64,
    /// Room in the buffer.
    pub bytes: Bytes,
    /// Whether it takes one message after the other until it is [withdrawn](Process::withdraw).
    pub repeats: bool,
    /// What the rank calls the operation.
    pub key: u32,
}

fn halves(tag: u64) -> (CommId, i32) {
    (CommId(tag >> 32), tag as u32 as i32)
}

fn whole(comm: CommId, tag: i32) -> u64 {
    comm.0 << 32 | u64::from(tag as u32)
}

impl TaggedReceive {
    /// What a real rank has posted; `None`: it is a simulated one's.
    pub(crate) fn of(posted: &Posted) -> Option<TaggedReceive> {
        let (Owner::Live(key), Some(tag)) = (posted.owner, posted.tag) else { return None };
        Some(TaggedReceive {
            from: posted.source,
            tagged: !posted.collective,
            tag: whole(posted.comm, tag),
            ignore: posted.ignore,
            bytes: posted.bytes,
            repeats: posted.repeats,
            key,
        })
    }

    /// Whether it takes a message of this envelope, if no other does.
    pub fn accepts(&self, envelope: &Envelope) -> bool {
        self.posted().accepts(envelope)
    }

    pub(crate) fn posted(&self) -> Posted {
        let (comm, tag) = halves(self.tag);
        Posted {
            comm,
            collective: !self.tagged,
            source: self.from,
            tag: Some(tag),
            ignore: self.ignore,
            repeats: self.repeats,
            bytes: self.bytes,
            owner: Owner::Live(self.key),
        }
    }
}

impl Envelope {
    /// The envelope of a message between real ranks that has come from another process.
    pub fn of_real_rank(
        kind: EnvelopeKind,
        tagged: bool,
        source: RankId,
        tag: u64,
        bytes: Bytes,
    ) -> Envelope {
        let (comm, tag) = halves(tag);
        Envelope { kind, collective: !tagged, source, tag, comm, bytes, send: 0, receive: 0 }
    }

    /// The 64-bit tag of a real rank's message.
    pub fn tag64(&self) -> u64 {
        whole(self.comm, self.tag)
    }

    /// Whether it is matched by that tag.
    pub fn is_tagged(&self) -> bool {
        !self.collective
    }
}

impl Process {
    /// Sends a message to another rank.
    pub fn send_tagged(&mut self, send: &TaggedSend, protocol: &Protocol, nic: &mut impl Nic) {
        let message = self.message(send);
        self.send(message, protocol, nic);
    }

    /// Sends a message to the rank itself, whose payload the rank has put aside under `payload`: it comes back as
    /// `send` of an eager envelope, and as `receive` of an announced one.
    pub fn send_to_own(&mut self, send: &TaggedSend, payload: u32, protocol: &Protocol, nic: &mut impl Nic) {
        let message = self.message(send);
        nic.spend(Work::SendCall, protocol.send_call);
        let envelope = if send.synchronous {
            let envelope = self.envelope(EnvelopeKind::RequestToSend, &message);
            let send = self.remember(&message, SendState::Unmatched, envelope);
            Envelope { send, receive: payload, ..envelope }
        } else {
            self.complete(message.owner, protocol, nic);
            Envelope { send: payload, ..self.envelope(EnvelopeKind::Eager, &message) }
        };
        self.arrived(envelope, protocol, nic);
    }

    fn message(&self, send: &TaggedSend) -> Message {
        let (comm, tag) = halves(send.tag);
        Message {
            to: send.to,
            comm,
            collective: !send.tagged,
            tag,
            bytes: send.bytes,
            mode: if send.synchronous { SendMode::Synchronous } else { SendMode::Standard },
            owner: send.key.map_or(Owner::Nobody, Owner::Live),
        }
    }

    /// Posts a receive. One that repeats takes all messages that it finds, as long as
    /// [`Nic::wants_more`].
    pub fn receive_tagged(&mut self, receive: &TaggedReceive, protocol: &Protocol, nic: &mut impl Nic) {
        let posted = receive.posted();
        if !receive.repeats {
            return self.receive(posted, protocol, nic);
        }
        nic.spend(Work::ReceiveCall, protocol.receive_call);
        while nic.wants_more(receive.key) {
            let Some(envelope) = self.matching.claim(&posted) else {
                return self.matching.keep(posted);
            };
            self.matched(&envelope, &posted, protocol, nic);
        }
    }

    /// The oldest message that a receive like this would get. Looking costs a look at each entry.
    pub fn peek(
        &mut self,
        like: &TaggedReceive,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) -> Option<Envelope> {
        let found = self.matching.peek(&like.posted());
        nic.spend(Work::Matching, protocol.matching_entry * found.scanned);
        found.entry
    }

    /// Whether there is such a message, for those who do not go by what looking costs.
    pub fn has(&self, like: &TaggedReceive) -> bool {
        self.matching.peek(&like.posted()).entry.is_some()
    }

    /// Takes the message that [`peek`](Process::peek) found, so that no other receive gets it.
    pub fn claim(&mut self, like: &TaggedReceive) -> Option<Envelope> {
        self.matching.claim(&like.posted())
    }

    /// Receives a message that was claimed.
    pub fn receive_claimed(
        &mut self,
        envelope: &Envelope,
        receive: &TaggedReceive,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        nic.spend(Work::ReceiveCall, protocol.receive_call);
        self.matched(envelope, &receive.posted(), protocol, nic);
    }

    /// Withdraws the receive that the rank calls `key`; says whether it was still posted.
    pub fn withdraw(&mut self, key: u32) -> bool {
        self.matching.withdraw(Owner::Live(key))
    }
}
