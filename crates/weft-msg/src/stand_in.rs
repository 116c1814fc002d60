//! One process standing in for another: what of a real rank's messaging decides how it answers while it waits.
//!
//! A rank that waits takes part in messaging by what has come for it only. Whoever knows which receives it has posted and which
//! sends it has announced can let a [`Process`] with the same ones answer in its place, until something is received or complete:
//! matching and protocol are those of the rank itself. The rank is handed the same messages later, and comes to the same state.
//!
//! # Not covered
//! Messages that the rank has kept without a receive: nothing that arrives looks at them.

use crate::matching::Owner;
use crate::nic::{Envelope, EnvelopeKind, SendToken};
use crate::process::{Incoming, Outgoing, Process, SendState};
use crate::tagged::TaggedReceive;
use weft_units::{Bytes, RankId};

/// A send that a real rank has announced, and that no receive has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnnouncedSend {
    /// Its number.
    pub number: u32,
    /// The receiver.
    pub to: RankId,
    /// Payload.
    pub bytes: Bytes,
}

impl AnnouncedSend {
    /// What comes back when the interface has taken its data.
    pub fn token(&self) -> SendToken {
        SendToken::of(self.number)
    }
}

impl Process {
    /// The receives that a real rank has posted and that wait for a message, oldest first.
    pub fn open_receives(&self) -> impl Iterator<Item = TaggedReceive> {
        self.matching.posted().filter_map(TaggedReceive::of)
    }

    /// The sends that it has announced and that wait for an answer.
    pub fn open_sends(&self) -> impl Iterator<Item = AnnouncedSend> {
        let announced = self.sends.iter().filter(|(_, send)| send.state == SendState::Announced);
        announced.map(|(number, send)| {
            let (number, to, bytes) = (number as u32, send.to, send.envelope.bytes);
            AnnouncedSend { number, to, bytes }
        })
    }

    /// The numbers of the next `count` announced messages that meet a receive, as long as none of them is complete.
    pub fn next_receives(&self, count: usize) -> Vec<u32> {
        if count <= 1 {
            return (0..count).map(|_| self.receives.vacant_key() as u32).collect();
        }
        let mut receives = self.receives.clone();
        let envelope = Envelope::of_real_rank(EnvelopeKind::Data, true, self.rank, 0, Bytes::ZERO);
        (0..count).map(|_| receives.insert(Incoming { owner: Owner::Nobody, envelope }) as u32).collect()
    }

    /// A process that stands in for a rank with these receives and sends. Its own numbers count from 0: of sends in the order in
    /// which they are given, of receives in that in which they meet announced messages.
    pub fn standing_in(
        (rank, ranks): (RankId, u32),
        receives: impl Iterator<Item = TaggedReceive>,
        sends: impl Iterator<Item = AnnouncedSend>,
    ) -> Process {
        let mut process = Process::new(rank, ranks);
        receives.for_each(|receive| process.matching.keep(receive.posted()));
        for AnnouncedSend { to, bytes, .. } in sends {
            let envelope = Envelope::of_real_rank(EnvelopeKind::RequestToSend, true, rank, 0, bytes);
            process.sends.insert(Outgoing {
                owner: Owner::Nobody,
                to,
                state: SendState::Announced,
                envelope,
            });
        }
        process
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nic, Protocol, TaggedSend, Work};
    use proptest::prelude::*;
    use weft_units::Span;

    /// What a process has done.
    #[derive(Clone, PartialEq, Debug, Default)]
    struct Deeds {
        spent: Vec<(Work, Span)>,
        /// Of that, before it did anything else.
        first: Span,
        posted: Vec<(RankId, Envelope, SendToken)>,
        announced: Vec<(u32, u32)>,
        over: bool,
    }

    impl Nic for Deeds {
        fn spend(&mut self, work: Work, span: Span) {
            self.spent.push((work, span));
            if self.posted.is_empty() && self.announced.is_empty() && !self.over {
                self.first += span;
            }
        }
        fn post(&mut self, to: RankId, envelope: Envelope, _: Bytes, token: SendToken) {
            self.posted.push((to, envelope, token));
        }
        fn announced(&mut self, key: u32, receive: u32, _: &Envelope) {
            self.announced.push((key, receive));
        }
        fn received(&mut self, _: u32, _: &Envelope) {
            self.over = true;
        }
        fn completed(&mut self, _: u32) {
            self.over = true;
        }
    }

    fn receive(from: Option<u32>, tag: u64, key: u32) -> TaggedReceive {
        let (from, bytes) = (from.map(RankId), Bytes::new(1 << 20));
        TaggedReceive { from, tagged: true, tag, ignore: 0, bytes, repeats: false, key }
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

    /// Catches a rank that does something with a message before the time is over in which it is said to do nothing.
    #[test]
    fn a_rank_is_busy_with_a_message_first() {
        for rendezvous_ack in [false, true] {
            let protocol = Protocol { rendezvous_ack, ..protocol() };
            let mut rank = Process::new(RankId(0), 2);
            let mut deeds = Deeds::default();
            for key in 0..3 {
                rank.receive_tagged(&receive(Some(1), 1, key), &protocol, &mut deeds);
            }
            let (to, bytes) = (RankId(1), Bytes::new(5));
            let send = TaggedSend { to, tagged: true, tag: 1, bytes, synchronous: true, key: Some(80) };
            rank.send_tagged(&send, &protocol, &mut deeds);
            let mut kinds = vec![EnvelopeKind::Eager, EnvelopeKind::RequestToSend, EnvelopeKind::Data];
            kinds.push(EnvelopeKind::ClearToSend);
            kinds.extend(rendezvous_ack.then_some(EnvelopeKind::Ack));
            for kind in kinds {
                let mut deeds = Deeds::default();
                rank.delivered(
                    Envelope::of_real_rank(kind, true, RankId(1), 1, bytes),
                    &protocol,
                    &mut deeds,
                );
                let least = Process::least_work(kind, &protocol);
                assert!(least > Span::ZERO && deeds.first >= least, "{kind:?}: {deeds:?}");
            }
        }
    }

    proptest! {
        /// Catches a stand-in that answers otherwise than the rank: whatever the rank has open, and whatever has made holes in
        /// its numbers, both do the same for what arrives, up to the first message that ends something.
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
                rank.receive_tagged(&receive(Some(1), 99, 50 + number), &protocol, &mut ignored);
                let mut envelope =
                    Envelope::of_real_rank(EnvelopeKind::RequestToSend, true, RankId(1), 99, Bytes::new(9));
                envelope.send = 100 + number;
                rank.delivered(envelope, &protocol, &mut ignored);
            }
            for number in (0..finished.len()).filter(|number| finished[*number]) {
                let data = Envelope { kind: EnvelopeKind::Data, source: RankId(1), ..ignored.posted[number].1 };
                rank.delivered(data, &protocol, &mut ignored);
            }
            for (key, (from, tag)) in (0..).zip(&receives) {
                rank.receive_tagged(&receive(*from, *tag, key), &protocol, &mut ignored);
            }
            for to in &sends {
                let (to, bytes) = (RankId(*to), Bytes::new(5));
                let send = TaggedSend { to, tagged: true, tag: 1, bytes, synchronous: true, key: Some(80) };
                rank.send_tagged(&send, &protocol, &mut ignored);
            }
            let open: Vec<AnnouncedSend> = rank.open_sends().collect();
            let numbers = rank.next_receives(receives.len());
            let mut other =
                Process::standing_in((RankId(0), 4), rank.open_receives(), open.iter().copied());
            for (source, tag, kind) in arriving {
                let sent = open.iter().position(|send| send.to == RankId(source));
                let kind = match (kind, sent) {
                    (0, _) => EnvelopeKind::Eager,
                    (1, Some(_)) => EnvelopeKind::ClearToSend,
                    _ => EnvelopeKind::RequestToSend,
                };
                let mut envelope = Envelope::of_real_rank(kind, true, RankId(source), tag, Bytes::new(5));
                let mut own = envelope;
                if let (EnvelopeKind::ClearToSend, Some(index)) = (kind, sent) {
                    (own.send, envelope.send) = (index as u32, open[index].number);
                }
                if rank.check_delivered(&envelope, Bytes::new(5)).is_err() {
                    prop_assert!(other.check_delivered(&own, Bytes::new(5)).is_err());
                    continue;
                }
                let (mut does, mut stands) = (Deeds::default(), Deeds::default());
                other.delivered(own, &protocol, &mut stands);
                rank.delivered(envelope, &protocol, &mut does);
                prop_assert_eq!(does.over, stands.over);
                if does.over {
                    break;
                }
                for (_, envelope, _) in &mut stands.posted {
                    match envelope.kind {
                        EnvelopeKind::ClearToSend => envelope.receive = numbers[envelope.receive as usize],
                        _ => envelope.send = open[envelope.send as usize].number,
                    }
                }
                stands.announced.iter_mut().for_each(|(_, number)| *number = numbers[*number as usize]);
                prop_assert_eq!(does, stands);
            }
        }
    }
}
