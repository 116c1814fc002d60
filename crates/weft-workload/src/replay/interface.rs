//! Between messaging and the interface: how messages travel, and those that the interface answers without
//! the rank's processor.

use super::ledger::Ledger;
use super::port::{Port, Surroundings};
use super::rank::ReplayRank;
use super::record::{Cause, MessageId};
use super::{ReplayHost, ReplayParameters, Taking};
use slab::Slab;
use weft_msg::{
    AcceleratorLimit, Allreduce, Envelope, EnvelopeKind, InterfaceAnswer, Nic, OneSidedPath, Protocol,
};
use weft_nic::allreduce::{AcceleratorError, AcceleratorLimits, AllreduceRequest, DataType, Operation};
use weft_nic::{HostContext, Primitive};
use weft_units::{EndpointId, RankId, Time};

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

/// Why the accelerator cannot carry out an allreduce among ranks at these endpoints; `None`: it can.
pub(super) fn accelerator_limit(
    limits: Option<AcceleratorLimits>,
    members: &[EndpointId],
    element: u32,
) -> Option<AcceleratorLimit> {
    let Some(limits) = limits else { return Some(AcceleratorLimit::Absent) };
    if data_type(element).is_none() {
        let what = format!("elements of {element} bytes");
        return Some(AcceleratorLimit::Unsupported { what });
    }
    limits.check(members).err().map(|error| match error {
        AcceleratorError::Absent => AcceleratorLimit::Absent,
        AcceleratorError::TooManyRanks { ranks, limit } => AcceleratorLimit::TooManyRanks { ranks, limit },
        AcceleratorError::SharedEndpoint { first, second } => {
            AcceleratorLimit::SharedEndpoint { first, second }
        }
        AcceleratorError::PartialBoard { ranks, board } => AcceleratorLimit::PartialBoard { ranks, board },
        AcceleratorError::ScatteredBoard { first, board } => {
            AcceleratorLimit::ScatteredBoard { first, board }
        }
        AcceleratorError::Unpaired { ranks, boards, board } => {
            AcceleratorLimit::Unpaired { ranks, boards, board }
        }
        AcceleratorError::Unsupported { what } => AcceleratorLimit::Unsupported { what },
    })
}

/// A type of elements of this size: traces do not say more, and all of one size take the same time.
fn data_type(element: u32) -> Option<DataType> {
    match element {
        4 => Some(DataType::Float),
        8 => Some(DataType::Double),
        _ => None,
    }
}

/// An allreduce as the accelerator is asked for it. Groups are told apart by program, first rank and the
/// count of its communicators, folded into 32 bits.
pub(super) fn accelerated(
    allreduce: &Allreduce<'_>,
    program: u32,
    members: Vec<EndpointId>,
    (token, interface, watch): (u32, u16, bool),
) -> AllreduceRequest {
    let comm = allreduce.group.comm().0;
    AllreduceRequest {
        group: (comm ^ comm >> 32 << 20 ^ comm >> 44) as u32 ^ program.wrapping_mul(0x9E37_79B9),
        sequence: allreduce.number,
        members,
        own: allreduce.group.me(),
        bytes: allreduce.bytes,
        operation: Operation::Sum,
        data_type: data_type(allreduce.element).unwrap_or(DataType::Float),
        token,
        interface,
        watch,
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
        port.by_interface = true;
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
