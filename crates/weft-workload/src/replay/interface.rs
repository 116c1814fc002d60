//! Between messaging and the interface: how messages travel, and those that the interface answers without
//! the rank's processor.

use super::rank::{Ledger, Port, ReplayRank, Surroundings};
use super::record::{Cause, MessageId};
use super::{ReplayHost, ReplayParameters, Taking};
use slab::Slab;
use weft_msg::{Envelope, EnvelopeKind, InterfaceAnswer, Nic, OneSidedPath, Protocol};
use weft_nic::{HostContext, Primitive};
use weft_units::{RankId, Time};

/// How a message travels: into a queue of the receiver, or into memory that the sender knows of.
pub(super) fn primitive(envelope: &Envelope, protocol: &Protocol) -> Primitive {
    match envelope.kind {
        EnvelopeKind::Data => Primitive::Write,
        EnvelopeKind::Access(access)
            if access.takes_data() && protocol.path(access) == OneSidedPath::Native =>
        {
            Primitive::Write
        }
        EnvelopeKind::Answer(access) if access.returns_data() => match protocol.path(access) {
            OneSidedPath::Emulated if envelope.bytes <= protocol.eager_limit => Primitive::Automatic,
            _ => Primitive::Write,
        },
        _ => Primitive::Automatic,
    }
}

impl ReplayRank {
    /// Its interface answers the message `cause` of rank `to`, counted over all programs, by itself and at once: the
    /// rank's processor has no part in it.
    pub fn answer_by_interface(
        &mut self,
        answer: InterfaceAnswer,
        (to, cause): (u32, MessageId),
        seat: u32,
        tokens: &mut Slab<Taking>,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        let (now, to) = (context.now(), parameters.program_rank(self.ledger.program, RankId(to)));
        let mut around = Surroundings { seat, tokens, parameters, context };
        let mut port = Port::new(now, Cause::Arrived(cause), None, &mut self.ledger, &mut around);
        port.post(to, answer.envelope, answer.payload, answer.token);
        port.end();
    }
}

impl Ledger {
    /// Since when the time of a message counts that is posted in a call that began at `begun`: announced
    /// data counts from its announcement, not from when it may go.
    pub fn born(&mut self, envelope: &Envelope, begun: Time) -> Time {
        let exchange = envelope.exchange() as usize;
        if envelope.kind == EnvelopeKind::Data {
            return self.announced[exchange];
        }
        if envelope.announces() {
            if self.announced.len() <= exchange {
                self.announced.resize(exchange + 1, Time::ZERO);
            }
            self.announced[exchange] = begun;
        }
        begun
    }
}
