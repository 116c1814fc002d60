//! Envelopes that no peer that keeps to the protocol can have sent.
//!
//! Simulated ranks send no such envelopes. A real one can: it is a process, and may write anything into its device. A rank
//! asks before it takes an envelope, so that a peer's nonsense is told and does not bring it down.

use crate::nic::{Envelope, EnvelopeKind};
use crate::process::{Process, SendState};
use weft_units::{Bytes, RankId};

/// What is wrong with an envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FalseEnvelope {
    /// It is from nobody, or from the rank itself.
    #[error("a message from rank {source_rank}, which cannot have sent one")]
    Source {
        /// Who is said to have sent it.
        source_rank: RankId,
    },
    /// Its data is not as long as it says.
    #[error("a message of {said} with {carried} of data")]
    Length {
        /// What it says.
        said: Bytes,
        /// What it carries.
        carried: Bytes,
    },
    /// It clears, or acknowledges, a send that is not there, is another's, or does not wait for that.
    #[error("an answer of rank {source_rank} to send {send}, which waits for none of its")]
    Send {
        /// Who is said to have sent it.
        source_rank: RankId,
        /// The send that it names.
        send: u32,
    },
    /// It carries the data of a receive that is not there, or is another's.
    #[error("data of rank {source_rank} for receive {receive}, which expects none of its")]
    Receive {
        /// Who is said to have sent it.
        source_rank: RankId,
        /// The receive that it names.
        receive: u32,
    },
    /// Real ranks send none of that kind.
    #[error("a message of a kind that real ranks do not send")]
    Kind,
}

impl Process {
    /// Whether [`Process::delivered`] can take an envelope of a real rank, with so many bytes of data beside it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_delivered(&self, envelope: &Envelope, carried: Bytes) -> Result<(), FalseEnvelope> {
        let Envelope { kind, source: source_rank, send, receive, bytes: said, .. } = *envelope;
        if source_rank.0 >= self.ranks || source_rank == self.rank {
            return Err(FalseEnvelope::Source { source_rank });
        }
        let of_send = |state| {
            let outgoing = self.sends.get(send as usize);
            let fits = outgoing.is_some_and(|send| send.to == source_rank && send.state == state);
            if fits { Ok(()) } else { Err(FalseEnvelope::Send { source_rank, send }) }
        };
        match kind {
            EnvelopeKind::Eager if said != carried => Err(FalseEnvelope::Length { said, carried }),
            EnvelopeKind::Eager | EnvelopeKind::RequestToSend => Ok(()),
            EnvelopeKind::ClearToSend => of_send(SendState::Announced),
            EnvelopeKind::Ack => of_send(SendState::Unacknowledged),
            EnvelopeKind::Data => {
                let incoming = self.receives.get(receive as usize).map(|incoming| &incoming.envelope);
                let fits = |announced: &Envelope| {
                    announced.kind == EnvelopeKind::RequestToSend
                        && announced.source == source_rank
                        && announced.send == send
                };
                if incoming.is_some_and(fits) {
                    Ok(())
                } else {
                    Err(FalseEnvelope::Receive { source_rank, receive })
                }
            }
            _ => Err(FalseEnvelope::Kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nic, Protocol, SendToken, TaggedReceive, TaggedSend, Work};
    use proptest::prelude::*;
    use weft_units::Span;

    /// Keeps the last envelope that was posted.
    struct Last(Option<Envelope>);

    impl Nic for Last {
        fn spend(&mut self, _: Work, _: Span) {}
        fn post(&mut self, _: RankId, envelope: Envelope, _: Bytes, _: SendToken) {
            self.0 = Some(envelope);
        }
    }

    fn exchange() -> (Process, Process, Protocol, Envelope) {
        let (mut sender, mut receiver) = (Process::new(RankId(0), 3), Process::new(RankId(1), 3));
        let (protocol, mut nic) = (Protocol::zero(), Last(None));
        let bytes = Bytes::new(9);
        let send = TaggedSend { to: RankId(1), tagged: true, tag: 5, bytes, synchronous: true, key: Some(1) };
        sender.send_tagged(&send, &protocol, &mut nic);
        let announced = nic.0.unwrap();
        let receive = TaggedReceive {
            from: Some(RankId(0)),
            tagged: true,
            tag: 5,
            ignore: 0,
            bytes,
            repeats: false,
            key: 1,
        };
        receiver.receive_tagged(&receive, &protocol, &mut nic);
        (sender, receiver, protocol, announced)
    }

    /// Catches a check that refuses what peers do, or lets a repetition or a stranger through.
    #[test]
    fn each_step_is_taken_once_and_from_the_peer() {
        let (mut sender, mut receiver, protocol, announced) = exchange();
        let mut nic = Last(None);
        let none = Bytes::ZERO;
        receiver.check_delivered(&announced, none).unwrap();
        receiver.delivered(announced, &protocol, &mut nic);
        let clear = nic.0.unwrap();
        let stranger = Envelope { source: RankId(2), ..clear };
        assert!(matches!(sender.check_delivered(&stranger, none), Err(FalseEnvelope::Send { .. })));
        sender.check_delivered(&clear, none).unwrap();
        sender.delivered(clear, &protocol, &mut nic);
        assert!(sender.check_delivered(&clear, none).is_err(), "it has been cleared");
        let data = nic.0.unwrap();
        assert_eq!(data.kind, EnvelopeKind::Data);
        receiver.check_delivered(&data, none).unwrap();
        receiver.delivered(data, &protocol, &mut nic);
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
            receiver.delivered(announced, &protocol, &mut nic);
            let kinds = [
                EnvelopeKind::Eager,
                EnvelopeKind::RequestToSend,
                EnvelopeKind::ClearToSend,
                EnvelopeKind::Data,
                EnvelopeKind::Ack,
            ];
            for (kind, source, send, receive, bytes) in envelopes {
                let envelope = Envelope {
                    kind: kinds[kind],
                    source: RankId(source),
                    send,
                    receive,
                    bytes: Bytes::new(bytes),
                    ..announced
                };
                for rank in [&mut sender, &mut receiver] {
                    if rank.check_delivered(&envelope, Bytes::new(9)).is_ok() {
                        rank.delivered(envelope, &protocol, &mut nic);
                    }
                }
            }
        }
    }
}
