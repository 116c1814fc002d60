//! One process standing in for another: what of a real rank's messaging decides how it answers while it
//! waits.
//!
//! A rank that waits takes part in messaging by what has come for it only. Whoever knows which receives it
//! has posted and which sends it has announced can let a [`Process`] with the same ones answer in its place,
//! until something is received or complete: matching and protocol are those of the rank itself. The rank is
//! handed the same messages later, and comes to the same state.
//!
//! # Not covered
//! Messages that the rank has kept without a receive: nothing that arrives looks at them.

use super::Process;
use super::tagged::TaggedReceive;
use crate::envelope::{Match, RankEndpoints, ReceiveEntry, SendEntry};
use crate::matching::Owner;
use crate::sends::{Content, PendingSend, Purpose, SendState};
use crate::transport::SendToken;
use weft_units::{Address, Bytes, RankId};

/// A send that a real rank has announced, and that no receive has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnnouncedSend {
    /// The entry of the send in the rank's table of sends.
    pub send: SendEntry,
    /// The receiver.
    pub to: RankId,
    /// Payload.
    pub bytes: Bytes,
}

impl AnnouncedSend {
    /// The token that comes back when the interface has taken its data.
    pub fn token(&self) -> SendToken {
        SendToken::of_send(self.send)
    }
}

impl Process {
    /// The receives that a real rank has posted and that wait for a message, oldest first.
    pub fn open_receives(&self) -> impl Iterator<Item = TaggedReceive> {
        self.matching.posted().filter_map(TaggedReceive::of)
    }

    /// The sends that it has announced and that wait for an answer.
    pub fn open_sends(&self) -> impl Iterator<Item = AnnouncedSend> {
        self.sends.announced().map(|(send, pending)| AnnouncedSend {
            send,
            to: pending.to,
            bytes: pending.bytes,
        })
    }

    /// The entries of the next `count` announced messages that meet a receive, as long as none of them is
    /// complete.
    pub fn next_receives(&self, count: usize) -> Vec<ReceiveEntry> {
        self.receives.next_entries(count)
    }

    /// A process that stands in for a rank with these receives and sends. Its own numbers count from 0: of
    /// sends in the order in which they are given, of receives in that in which they meet announced messages.
    pub fn standing_in(
        (rank, ranks): (RankId, u32),
        receives: impl Iterator<Item = TaggedReceive>,
        sends: impl Iterator<Item = AnnouncedSend>,
    ) -> Process {
        let mut process = Process::new(rank, ranks);
        receives.for_each(|receive| process.matching.keep(receive.posted()));
        for AnnouncedSend { to, bytes, .. } in sends {
            // An answer names the send; nobody asks for its tag.
            let content = Content::Matched(Match::of_real_rank(RankEndpoints::FIRST, true, 0));
            let purpose = Purpose::Message { content, state: SendState::Announced, receipt: false };
            let (owner, buffer) = (Owner::Nobody, Address::default());
            process.sends.insert(PendingSend { owner, to, bytes, purpose, buffer });
        }
        process
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Body, Envelope};
    use crate::{Posting, Protocol, TaggedSend, Transport, Work};
    use proptest::prelude::*;
    use weft_units::Span;

    /// The actions of a process, as the transport has seen them.
    #[derive(Clone, PartialEq, Debug, Default)]
    struct Deeds {
        spent: Vec<(Work, Span)>,
        /// Of that, before it did anything else.
        first: Span,
        posted: Vec<(RankId, Envelope, SendToken)>,
        announced: Vec<(u32, ReceiveEntry)>,
        over: bool,
    }

    impl Transport for Deeds {
        fn spend(&mut self, work: Work, span: Span) {
            self.spent.push((work, span));
            if self.posted.is_empty() && self.announced.is_empty() && !self.over {
                self.first += span;
            }
        }
        fn post(&mut self, Posting { to, envelope, token, .. }: Posting) {
            self.posted.push((to, envelope, token));
        }
        fn announced(&mut self, key: u32, receive: ReceiveEntry, _: &Envelope) {
            self.announced.push((key, receive));
        }
        fn received(&mut self, _: u32, _: Option<ReceiveEntry>, _: &Envelope) {
            self.over = true;
        }
        fn completed(&mut self, _: u32) {
            self.over = true;
        }
    }

    fn receive(from: Option<u32>, tag: u64, key: u32) -> TaggedReceive {
        let (from, bytes) = (from.map(RankId), Bytes::new(1 << 20));
        let endpoints = RankEndpoints::FIRST;
        TaggedReceive { from, endpoints, tagged: true, tag, ignore: 0, bytes, repeats: false, key }
    }

    fn match_of(tag: u64) -> Match {
        Match::of_real_rank(RankEndpoints::FIRST, true, tag)
    }

    fn send_to(to: RankId, bytes: Bytes) -> TaggedSend {
        let endpoints = RankEndpoints::FIRST;
        TaggedSend { to, endpoints, tagged: true, tag: 1, bytes, synchronous: true, key: Some(80) }
    }

    fn protocol() -> Protocol {
        let step = Span::from_ns(7);
        let receive_message = Span::from_ns(11);
        Protocol {
            control_send: step,
            control_receive: step,
            matching_entry: step,
            receive_message,
            ..Protocol::zero()
        }
    }

    /// Catches a rank that does something with a message before the time is over in which it is said to do
    /// nothing.
    #[test]
    fn a_rank_is_busy_with_a_message_first() {
        for rendezvous_ack in [false, true] {
            let protocol = Protocol { rendezvous_ack, ..protocol() };
            let mut rank = Process::new(RankId(0), 2);
            let mut deeds = Deeds::default();
            for key in 0..3 {
                rank.on(&protocol, &mut deeds).receive_tagged(&receive(Some(1), 1, key));
            }
            let (to, bytes) = (RankId(1), Bytes::new(5));
            let send = send_to(to, bytes);
            rank.on(&protocol, &mut deeds).send_tagged(&send);
            let matching = match_of(1);
            let (send, receive) = (SendEntry::new(0), ReceiveEntry(0));
            let mut bodies = vec![
                Body::Eager { matching, receipt: None },
                Body::RequestToSend { matching, send, receipt: false },
                Body::Data { send, receive },
                Body::ClearToSend { send, receive },
            ];
            bodies.extend(rendezvous_ack.then_some(Body::Ack { send, receive }));
            for body in bodies {
                let mut deeds = Deeds::default();
                let envelope = Envelope::new(RankId(1), bytes, body);
                rank.on(&protocol, &mut deeds).delivered(envelope);
                let least = Process::least_work(envelope.kind(), &protocol);
                assert!(least > Span::ZERO && deeds.first >= least, "{body:?}: {deeds:?}");
            }
        }
    }

    proptest! {
        /// Catches a stand-in that answers otherwise than the rank: whatever the rank has open, and whatever
        /// has made holes in its numbers, both do the same for what arrives, up to the first message that
        /// ends something.
        #[test]
        fn a_stand_in_does_what_the_rank_does(
            finished in prop::collection::vec(any::<bool>(), 0..5),
            receives in prop::collection::vec((prop::option::of(1u32..4), 0u64..3), 0..6),
            sends in prop::collection::vec(1u32..4, 0..4),
            arriving in prop::collection::vec((1u32..4, 0u64..3, 0u32..3), 0..10),
        ) {
            let (protocol, mut ignored) = (protocol(), Deeds::default());
            let mut rank = Process::new(RankId(0), 4);
            // Exchanges before, of which some are over.
            for number in 0..finished.len() as u32 {
                rank.on(&protocol, &mut ignored).receive_tagged(&receive(Some(1), 99, 50 + number));
                let (matching, send) = (match_of(99), SendEntry::new(100 + number));
                let body = Body::RequestToSend { matching, send, receipt: false };
                rank.on(&protocol, &mut ignored).delivered(Envelope::new(RankId(1), Bytes::new(9), body));
            }
            for number in (0..finished.len()).filter(|number| finished[*number]) {
                let Envelope { bytes, body, .. } = ignored.posted[number].1;
                let Body::ClearToSend { send, receive } = body else {
                    return Err(TestCaseError::fail("an announced message is cleared"));
                };
                let data = Envelope::new(RankId(1), bytes, Body::Data { send, receive });
                rank.on(&protocol, &mut ignored).delivered(data);
            }
            for (key, (from, tag)) in (0..).zip(&receives) {
                rank.on(&protocol, &mut ignored).receive_tagged(&receive(*from, *tag, key));
            }
            for to in &sends {
                let (to, bytes) = (RankId(*to), Bytes::new(5));
                let send = send_to(to, bytes);
                rank.on(&protocol, &mut ignored).send_tagged(&send);
            }
            let open: Vec<AnnouncedSend> = rank.open_sends().collect();
            let numbers = rank.next_receives(receives.len());
            let mut other =
                Process::standing_in((RankId(0), 4), rank.open_receives(), open.iter().copied());
            for (source, tag, kind) in arriving {
                let sent = open.iter().position(|send| send.to == RankId(source));
                let (matching, receive) = (match_of(tag), ReceiveEntry(0));
                // The stand-in has entries of its own.
                let (body, own) = match (kind, sent) {
                    (0, _) => (Body::Eager { matching, receipt: None }, None),
                    (1, Some(index)) => {
                        let own = SendEntry::new(index as u32);
                        (
                            Body::ClearToSend { send: open[index].send, receive },
                            Some(Body::ClearToSend { send: own, receive }),
                        )
                    }
                    _ => {
                        let send = SendEntry::new(0);
                        (Body::RequestToSend { matching, send, receipt: false }, None)
                    }
                };
                let envelope = Envelope::new(RankId(source), Bytes::new(5), body);
                let own = Envelope { body: own.unwrap_or(body), ..envelope };
                if rank.check_delivered(&envelope, Bytes::new(5)).is_err() {
                    prop_assert!(other.check_delivered(&own, Bytes::new(5)).is_err());
                    continue;
                }
                let (mut does, mut stands) = (Deeds::default(), Deeds::default());
                other.on(&protocol, &mut stands).delivered(own);
                rank.on(&protocol, &mut does).delivered(envelope);
                prop_assert_eq!(does.over, stands.over);
                if does.over {
                    break;
                }
                for (_, envelope, _) in &mut stands.posted {
                    match &mut envelope.body {
                        Body::ClearToSend { receive, .. } => *receive = numbers[receive.0 as usize],
                        Body::Data { send, .. } => *send = open[send.index() as usize].send,
                        other => return Err(TestCaseError::fail(format!("a stand-in posts {other:?}"))),
                    }
                }
                stands.announced.iter_mut().for_each(|(_, number)| *number = numbers[number.0 as usize]);
                prop_assert_eq!(does, stands);
            }
        }
    }
}
