//! Messages of a real rank: tags of 64 bits of which a receive may ignore some, as libfabric has them.
//!
//! ```text
//!   tag   63 ………………… 32 | 31 ………………… 0        a real rank names its operations by numbers of its own;
//!         communicator    tag                what becomes of them comes back through received
//!   space tagged | untagged                  and completed
//! ```
//! A real rank may have several endpoints, as libfabric has them: messages between two of them are matched
//! apart from all others. An endpoint has lists of its own (see [`crate::matching`]).
//!
//! The library above (MPICH, say) has communicators and collectives of its own and expresses them in
//! these tags. Matching, eager and rendezvous are those of simulated ranks: the two halves of a tag
//! stand where they have communicator and tag.

use super::Process;
use super::rank::Rank;
use crate::envelope::{Envelope, KeptEntry, Match, MatchContext, RankEndpoints};
use crate::matching::{Owner, PostedReceive};
use crate::sends::{Content, MessageToSend, SendState};
use crate::transport::Transport;
use crate::work::Work;
use weft_trace::op::{CommId, SendMode};
use weft_units::{Address, Bytes, RankId};

/// A message that a real rank sends.
#[derive(Clone, Copy, Debug)]
pub struct TaggedSend {
    /// The receiver.
    pub to: RankId,
    /// From which endpoint of this rank, to which of the receiver's.
    pub endpoints: RankEndpoints,
    /// Whether it is matched by tag; if not, it lies in a space of its own.
    pub tagged: bool,
    /// The tag.
    pub tag: u64,
    /// Payload.
    pub bytes: Bytes,
    /// Whether it completes only when a receive has matched it.
    pub synchronous: bool,
    /// The rank's name for the operation; `None`: it need not know when it completes.
    pub key: Option<u32>,
}

/// A receive that a real rank posts, or a message that it looks for.
#[derive(Clone, Copy, Debug)]
pub struct TaggedReceive {
    /// The sender; `None`: any.
    pub from: Option<RankId>,
    /// At which endpoint of this rank; and, unless any rank may send, from which of the sender's.
    pub endpoints: RankEndpoints,
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
    /// The rank's name for the operation.
    pub key: u32,
}

const fn halves(tag: u64) -> (CommId, i32) {
    (CommId(tag >> 32), tag as u32 as i32)
}

const fn whole(comm: CommId, tag: i32) -> u64 {
    comm.0 << 32 | tag as u32 as u64
}

impl TaggedReceive {
    /// The receive that a real rank has posted; `None`: it is a simulated one's.
    pub(crate) fn of(posted: &PostedReceive) -> Option<TaggedReceive> {
        let (Owner::Live(key), Some(tag)) = (posted.owner, posted.number) else { return None };
        Some(TaggedReceive {
            from: posted.source,
            endpoints: posted.endpoints,
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

    pub(super) fn posted(&self) -> PostedReceive {
        let (comm, tag) = halves(self.tag);
        PostedReceive {
            comm,
            collective: !self.tagged,
            source: self.from,
            number: Some(tag),
            endpoints: self.endpoints,
            ignore: self.ignore,
            repeats: self.repeats,
            bytes: self.bytes,
            owner: Owner::Live(self.key),
            buffer: Address::default(),
        }
    }
}

impl Match {
    /// The match of a real rank's message between these endpoints.
    pub const fn of_real_rank(endpoints: RankEndpoints, tagged: bool, tag: u64) -> Match {
        let (comm, number) = halves(tag);
        Match { comm, context: MatchContext::Live { tagged, endpoints, number } }
    }

    /// The 64-bit tag of a real rank's message.
    pub const fn tag64(&self) -> u64 {
        whole(self.comm, self.context.number())
    }

    /// Whether a real rank's message is matched by that tag.
    pub const fn is_tagged(&self) -> bool {
        !self.context.is_untagged()
    }
}

impl TaggedSend {
    fn message(&self) -> MessageToSend {
        MessageToSend {
            to: self.to,
            content: Content::Matched(Match::of_real_rank(self.endpoints, self.tagged, self.tag)),
            bytes: self.bytes,
            mode: if self.synchronous { SendMode::Synchronous } else { SendMode::Standard },
            owner: self.key.map_or(Owner::Nobody, Owner::Live),
            buffer: Address::default(),
        }
    }
}

impl Process {
    /// Whether there is a message that a receive like this would get, at no cost.
    pub fn has(&self, like: &TaggedReceive) -> bool {
        self.matching.peek(&like.posted()).entry.is_some()
    }

    /// Takes the message that [`peek`](Rank::peek) found, so that no other receive gets it.
    pub fn claim(&mut self, like: &TaggedReceive) -> Option<Envelope> {
        self.matching.claim(&like.posted())
    }

    /// Withdraws the receive that the rank calls `key`; whether it was still posted.
    pub fn withdraw(&mut self, key: u32) -> bool {
        self.matching.withdraw(Owner::Live(key))
    }
}

impl<T: Transport> Rank<'_, T> {
    /// Sends a message to another rank.
    pub fn send_tagged(&mut self, send: &TaggedSend) {
        self.send(send.message());
    }

    /// Sends a message to the rank itself, which keeps its data meanwhile.
    pub fn send_to_own(&mut self, send: &TaggedSend, kept: KeptEntry) {
        let message = send.message();
        self.spend(Work::SendCall, self.protocol.send_call);
        let body = if send.synchronous {
            let entry = self.process.sends.keep(&message, SendState::Unmatched, false);
            message.content.announcement(entry, false)
        } else {
            self.complete(message.owner);
            message.content.eager(None)
        };
        let envelope = Envelope::new(self.process.rank, message.bytes, body);
        self.arrived(Envelope { kept: Some(kept), ..envelope });
    }

    /// Posts a receive. One that repeats takes all messages that it finds, as long as it
    /// [wants more](Transport::wants_more).
    pub fn receive_tagged(&mut self, receive: &TaggedReceive) {
        let posted = receive.posted();
        if !receive.repeats {
            return self.receive(posted);
        }
        self.spend(Work::ReceiveCall, self.protocol.receive_call);
        while self.transport.wants_more(receive.key) {
            let Some(envelope) = self.process.matching.claim(&posted) else {
                return self.process.matching.keep(posted);
            };
            self.matched(&envelope, &posted);
        }
    }

    /// The oldest message that a receive like this would get. Looking costs a look at each entry.
    pub fn peek(&mut self, like: &TaggedReceive) -> Option<Envelope> {
        let found = self.process.matching.peek(&like.posted());
        self.spend(Work::Matching, self.protocol.matching_entry * found.scanned);
        found.entry
    }

    /// Receives a message that was claimed.
    pub fn receive_claimed(&mut self, envelope: &Envelope, receive: &TaggedReceive) {
        self.spend(Work::ReceiveCall, self.protocol.receive_call);
        self.matched(envelope, &receive.posted());
    }
}
