//! Envelopes that no peer that keeps to the protocol can have sent.
//!
//! Simulated ranks send no such envelopes. A real one can: it is a process, and may write anything into its
//! device. A rank asks before it takes an envelope, so that a peer's nonsense is told and does not bring it
//! down.

use super::Process;
use crate::envelope::{Body, Envelope, ReceiveEntry, SendEntry};
use crate::sends::SendState;
use weft_units::{Bytes, RankId};

/// The reason why an envelope cannot come from a correct rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FalseEnvelope {
    /// It is from nobody, or from the rank itself.
    #[error("a message from rank {source_rank}, which cannot have sent one")]
    Source {
        /// The rank that is said to have sent it.
        source_rank: RankId,
    },
    /// The length that the envelope states is not that of its data.
    #[error("a message of {said} with {carried} of data")]
    Length {
        /// The length that the envelope states.
        said: Bytes,
        /// The length of the data that it carries.
        carried: Bytes,
    },
    /// It clears, or acknowledges, a send that is not there, is another's, or does not wait for that.
    #[error(
        "an answer of rank {source_rank} to send {index}, which waits for none of its",
        index = .send.index()
    )]
    Send {
        /// Who is said to have sent it.
        source_rank: RankId,
        /// The send that it names.
        send: SendEntry,
    },
    /// It carries the data of a receive that is not there, or is another's.
    #[error("data of rank {source_rank} for receive {index}, which expects none of its", index = .receive.0)]
    Receive {
        /// Who is said to have sent it.
        source_rank: RankId,
        /// The receive that it names.
        receive: ReceiveEntry,
    },
    /// Real ranks send none of that kind.
    #[error("a message of a kind that real ranks do not send")]
    Kind,
}

impl Process {
    /// Whether [`Rank::delivered`](crate::Rank::delivered) can take an envelope of a real rank, with this
    /// much data.
    ///
    /// # Errors
    /// It cannot: the peer does not keep to the protocol.
    pub fn check_delivered(&self, envelope: &Envelope, carried: Bytes) -> Result<(), FalseEnvelope> {
        let Envelope { source: source_rank, bytes: said, .. } = *envelope;
        if source_rank.0 >= self.ranks || source_rank == self.rank {
            return Err(FalseEnvelope::Source { source_rank });
        }
        let (fits, error) = match envelope.body {
            Body::Eager { .. } => (said == carried, FalseEnvelope::Length { said, carried }),
            Body::RequestToSend { .. } => return Ok(()),
            Body::ClearToSend { send, .. } => {
                let fits = self.sends.awaits(send, source_rank, SendState::Announced);
                (fits, FalseEnvelope::Send { source_rank, send })
            }
            Body::Ack { send, .. } => {
                let fits = self.sends.awaits(send, source_rank, SendState::Unacknowledged);
                (fits, FalseEnvelope::Send { source_rank, send })
            }
            Body::Data { send, receive } => {
                let fits = self.receives.awaits(receive, source_rank, send);
                (fits, FalseEnvelope::Receive { source_rank, receive })
            }
            _ => return Err(FalseEnvelope::Kind),
        };
        if fits { Ok(()) } else { Err(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        EnvelopeKind, Match, Posting, Protocol, RankEndpoints, TaggedReceive, TaggedSend, Transport, Work,
    };
    use proptest::prelude::*;
    use weft_units::Span;

    /// Keeps the last envelope that was posted.
    struct Last(Option<Envelope>);

    impl Transport for Last {
        fn spend(&mut self, _: Work, _: Span) {}
        fn post(&mut self, posting: Posting) {
            self.0 = Some(posting.envelope);
        }
    }

    fn exchange() -> (Process, Process, Protocol, Envelope) {
        let (mut sender, mut receiver) = (Process::new(RankId(0), 3), Process::new(RankId(1), 3));
        let (protocol, mut nic) = (Protocol::zero(), Last(None));
        let bytes = Bytes::new(9);
        let (to, endpoints) = (RankId(1), RankEndpoints::FIRST);
        let send = TaggedSend { to, endpoints, tagged: true, tag: 5, bytes, synchronous: true, key: Some(1) };
        sender.on(&protocol, &mut nic).send_tagged(&send);
        let announced = nic.0.unwrap();
        let receive = TaggedReceive {
            from: Some(RankId(0)),
            endpoints,
            tagged: true,
            tag: 5,
            ignore: 0,
            bytes,
            repeats: false,
            key: 1,
        };
        receiver.on(&protocol, &mut nic).receive_tagged(&receive);
        (sender, receiver, protocol, announced)
    }

    /// Catches a check that refuses what peers do, or lets a repetition or a stranger through.
    #[test]
    fn each_step_is_taken_once_and_from_the_peer() {
        let (mut sender, mut receiver, protocol, announced) = exchange();
        let mut nic = Last(None);
        let none = Bytes::ZERO;
        receiver.check_delivered(&announced, none).unwrap();
        receiver.on(&protocol, &mut nic).delivered(announced);
        let clear = nic.0.unwrap();
        let stranger = Envelope { source: RankId(2), ..clear };
        assert!(matches!(sender.check_delivered(&stranger, none), Err(FalseEnvelope::Send { .. })));
        sender.check_delivered(&clear, none).unwrap();
        sender.on(&protocol, &mut nic).delivered(clear);
        assert!(sender.check_delivered(&clear, none).is_err(), "it has been cleared");
        let data = nic.0.unwrap();
        assert_eq!(data.kind(), EnvelopeKind::Data);
        receiver.check_delivered(&data, none).unwrap();
        receiver.on(&protocol, &mut nic).delivered(data);
        let twice = receiver.check_delivered(&data, none).unwrap_err();
        assert_eq!(twice.to_string(), "data of rank 0 for receive 0, which expects none of its");
        let own = Envelope { source: RankId(1), ..announced };
        assert_eq!(
            receiver.check_delivered(&own, none),
            Err(FalseEnvelope::Source { source_rank: RankId(1) })
        );
    }

    proptest! {
        /// Catches an envelope that is let through and then brings the rank down.
        #[test]
        fn what_is_let_through_can_be_taken(
            envelopes in prop::collection::vec((0usize..5, 0u32..4, 0u32..3, 0u32..3, 0u64..12), 0..60),
        ) {
            let (mut sender, mut receiver, protocol, announced) = exchange();
            let mut nic = Last(None);
            receiver.on(&protocol, &mut nic).delivered(announced);
            let matching = Match::of_real_rank(RankEndpoints::FIRST, true, 5);
            for (kind, source, send, receive, bytes) in envelopes {
                let (send, receive) = (SendEntry::new(send), ReceiveEntry(receive));
                let body = match kind {
                    0 => Body::Eager { matching, receipt: None },
                    1 => Body::RequestToSend { matching, send, receipt: false },
                    2 => Body::ClearToSend { send, receive },
                    3 => Body::Data { send, receive },
                    _ => Body::Ack { send, receive },
                };
                let envelope = Envelope::new(RankId(source), Bytes::new(bytes), body);
                for rank in [&mut sender, &mut receiver] {
                    if rank.check_delivered(&envelope, Bytes::new(9)).is_ok() {
                        rank.on(&protocol, &mut nic).delivered(envelope);
                    }
                }
            }
        }
    }
}
