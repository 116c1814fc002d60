//! Between messaging and the interface: the primitive of each message, the accelerator's limits, and answers
//! of the interface without the rank's processor.

use super::ReplayHost;
use super::account::RankAccount;
use super::rank::ReplayRank;
use super::record::{Cause, MessageId};
use super::transport::{CallStart, CallTransport, RankContext};
use weft_fabric::{Operations, Purpose};
use weft_msg::{
    AcceleratorLimit, Body, Envelope, InterfaceAnswer, OneSidedPath, OperationKind, Posting, Protocol,
    Transport,
};
use weft_nic::allreduce::{AcceleratorError, AcceleratorLimits, DataType, Operation};
use weft_nic::{HostContext, MessageOptions, Primitive, TokenWhenAcknowledged};
use weft_trace::Reduction;
use weft_trace::op::CommId;
use weft_units::{EndpointId, RankId, Time};

/// The primitive for a message: into a queue of the receiver, or into memory that the sender knows of. A
/// message that the receiver's interface answers with such data is the request of a read.
pub(super) fn primitive(envelope: &Envelope, protocol: &Protocol) -> Primitive {
    let answer = protocol.by_interface(envelope.source, envelope);
    match own_primitive(envelope, protocol) {
        Primitive::Automatic
            if answer.is_some_and(|it| own_primitive(&it.envelope, protocol) == Primitive::Write) =>
        {
            Primitive::ReadRequest
        }
        own => own,
    }
}

/// The same, whatever it is answered with.
fn own_primitive(envelope: &Envelope, protocol: &Protocol) -> Primitive {
    match envelope.body {
        Body::Data { .. } => Primitive::Write,
        // A word to be reduced goes and comes back by packetizer and mailbox: ours. TR-488 §5.2.2 has atomic
        // operations on top of messages, and does not say of which.
        Body::Access { access, .. }
            if access.takes_data() && !access.reduces() && protocol.path(access) == OneSidedPath::Native =>
        {
            Primitive::Write
        }
        Body::Answer { access, .. } if access.returns_data() => match protocol.path(access) {
            OneSidedPath::Emulated if envelope.bytes <= protocol.eager_limit => Primitive::Automatic,
            OneSidedPath::Native if access.reduces() => Primitive::Automatic,
            _ => Primitive::Write,
        },
        _ => Primitive::Automatic,
    }
}

/// The options of a message whose token is to come back when it has been acknowledged, or not.
pub(super) fn options(acknowledged: bool) -> MessageOptions {
    if acknowledged { MessageOptions::of(&TokenWhenAcknowledged) } else { MessageOptions::NONE }
}

/// The purpose of a message of an application, as traffic classes tell messages apart.
pub fn purpose(envelope: &Envelope, operation: OperationKind, job: u16) -> Purpose {
    let operation = match operation {
        OperationKind::TwoSided => Operations::TWO_SIDED,
        OperationKind::Collective => Operations::COLLECTIVE,
        OperationKind::Put => Operations::PUT,
        OperationKind::Get => Operations::GET,
        OperationKind::Atomic => Operations::ATOMIC,
        OperationKind::Other => Operations::NONE,
    };
    Purpose { operation, job, is_reply: envelope.is_reply(), ..Purpose::PLAIN }
}

/// The limit that keeps the accelerator from an allreduce among ranks at these endpoints; `None`: it can do
/// it.
pub(super) fn accelerator_limit(
    limits: Option<AcceleratorLimits>,
    members: &[EndpointId],
    element: u32,
    reduction: Reduction,
) -> Option<AcceleratorLimit> {
    let Some(limits) = limits else { return Some(AcceleratorLimit::Absent) };
    if let Err(what) = accelerated(element, reduction) {
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
    })
}

/// The operation and the type of an allreduce as the accelerator has them (TR-488 §4.7). A trace that does
/// not say which is taken for a sum of floating-point numbers of the elements' size: all that the
/// accelerator has take the same time.
///
/// # Errors
/// What the accelerator does not compute, in words.
pub(super) fn accelerated(element: u32, reduction: Reduction) -> Result<(Operation, DataType), String> {
    use weft_trace::{DataType as Element, ReductionOperation};
    let Reduction { operation, data_type } = reduction;
    let operation = match operation {
        None | Some(ReductionOperation::Sum) => Operation::Sum,
        Some(ReductionOperation::Min) => Operation::Min,
        Some(ReductionOperation::Max) => Operation::Max,
        Some(other) => return Err(format!("the operation {other}")),
    };
    let data_type = match (data_type, element) {
        (Some(Element::Int32), _) => DataType::Int,
        (Some(Element::Float32), _) | (None, 4) => DataType::Float,
        (Some(Element::Float64), _) | (None, 8) => DataType::Double,
        (Some(other), _) => return Err(format!("elements of the type {other}")),
        (None, element) => return Err(format!("elements of {element} bytes")),
    };
    Ok((operation, data_type))
}

/// The accelerator's number of a group. It tells groups apart by program, first rank and the count of that
/// rank's communicators, folded into 32 bits.
pub(super) fn accelerator_group(CommId(comm): CommId, program: u32) -> u32 {
    (comm ^ comm >> 32 << 20 ^ comm >> 44) as u32 ^ program.wrapping_mul(0x9E37_79B9)
}

impl ReplayRank {
    /// Sends the interface's own answer to the message `cause` of rank `to`, counted over all programs. It
    /// goes out at once: the rank's processor has no part in it.
    pub fn answer_by_interface(
        &mut self,
        answer: InterfaceAnswer,
        (to, cause): (u32, MessageId),
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let to = context.parameters.program_rank(self.account.program, RankId(to));
        let start = CallStart::new(context.host.now(), Cause::Arrived(cause), None);
        let InterfaceAnswer { envelope, payload, token } = answer;
        let (buffer, operation) = (self.process.source(&envelope), self.process.operation(&envelope));
        let mut transport = CallTransport::new(start, &mut self.account, context);
        transport.by_interface = true;
        transport.post(Posting { to, envelope, operation, payload, buffer, token });
        transport.end();
    }
}

impl RankAccount {
    /// The time from which a message counts that is posted in a call that began at `begun`. Announced data
    /// counts from its announcement: its wait for the receiver is part of its time.
    pub fn posted_at(&mut self, envelope: &Envelope, begun: Time) -> Time {
        if let Body::Data { send, .. } = envelope.body {
            return self.announced[send.index() as usize];
        }
        let to_read = match envelope.body {
            Body::Active { message } | Body::AnnounceActive { message, .. } => message.data_to_read(),
            _ => None,
        };
        for send in envelope.announces().into_iter().chain(to_read) {
            let exchange = send.index() as usize;
            if self.announced.len() <= exchange {
                self.announced.resize(exchange + 1, Time::ZERO);
            }
            self.announced[exchange] = begun;
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_msg::{Access, ClearToSend, ReceiveEntry, SendEntry};
    use weft_units::Bytes;

    /// Catches a reduction that the accelerator of TR-488 §4.7 does not have, such as an exclusive or of
    /// longs, and one that it has and is refused.
    #[test]
    fn the_accelerator_has_what_the_text_lists() {
        use weft_trace::{DataType as Element, ReductionOperation};
        let of = |operation, data_type, element| accelerated(element, Reduction { operation, data_type });
        for &operation in ReductionOperation::ALL {
            for &data_type in Element::ALL {
                let has = matches!(operation.name(), "sum" | "min" | "max")
                    && matches!(data_type.name(), "int32" | "float32" | "float64");
                assert_eq!(of(Some(operation), Some(data_type), 8).is_ok(), has, "{operation} {data_type}");
            }
        }
        // Of traces that say less, as much as can be known is.
        assert_eq!(of(None, None, 4), Ok((Operation::Sum, DataType::Float)));
        assert_eq!(of(None, None, 8), Ok((Operation::Sum, DataType::Double)));
        assert_eq!(of(None, Some(Element::Int64), 8), Err("elements of the type int64".to_owned()));
        let exclusive_or = Some(ReductionOperation::BitwiseXor);
        assert_eq!(of(exclusive_or, None, 4), Err("the operation bxor".to_owned()));
    }

    /// Catches the request of a read that goes to a process, and a message that needs one and does not: each
    /// message that its receiver's interface may answer, by the path of its operation.
    #[test]
    fn what_is_answered_with_data_is_the_request_of_a_read() {
        let (send, receive) = (SendEntry::new(0), ReceiveEntry(0));
        let of =
            |body, protocol: &Protocol| primitive(&Envelope::new(RankId(0), Bytes::new(8), body), protocol);
        let access = |access| Body::Access { access, send, window: 0 };
        let native =
            Protocol { one_sided: OneSidedPath::Native, atomics: OneSidedPath::Native, ..Protocol::zero() };
        let emulated = Protocol { one_sided: OneSidedPath::Emulated, ..native.clone() };
        assert_eq!(of(access(Access::Get), &native), Primitive::ReadRequest);
        assert_eq!(of(access(Access::Get), &emulated), Primitive::Automatic);
        assert_eq!(of(access(Access::Put), &native), Primitive::Write);
        // A word to be reduced comes back by packetizer and mailbox.
        assert_eq!(of(access(Access::Fetch), &native), Primitive::Automatic);
        assert_eq!(of(Body::Read { send, receive }, &native), Primitive::ReadRequest);
        let cleared = Protocol { clear_to_send: ClearToSend::Interface, ..native.clone() };
        for body in [Body::ClearToSend { send, receive }, Body::Admit { send, receive }] {
            assert_eq!(of(body, &native), Primitive::Automatic, "the process starts the transfer");
            assert_eq!(of(body, &cleared), Primitive::ReadRequest);
        }
    }

    /// Catches a limit that a user is not told of, or not how to keep.
    #[test]
    fn every_limit_of_the_accelerator_says_what_to_do() {
        let limits = AcceleratorLimits { ranks: 64, board: 4, vector: Bytes::new(256) };
        let said = |limits, members: &[u32], element| {
            let members: Vec<_> = members.iter().copied().map(EndpointId).collect();
            let limit = accelerator_limit(limits, &members, element, Reduction::default());
            limit.map(|limit| limit.to_string()).unwrap_or_default()
        };
        let of = |members: &[u32]| said(Some(limits), members, 8);
        let first = |ranks| (0..ranks).collect::<Vec<u32>>();
        assert_eq!(of(&first(64)), "");
        assert!(said(None, &first(4), 8).contains("this machine has none"));
        assert!(said(Some(limits), &first(4), 3).contains("elements of 3 bytes"));
        assert!(of(&first(128)).contains("128 ranks exceed its 64"));
        assert!(of(&[0, 1, 1, 2]).contains("ranks 1 and 2 are on one endpoint"));
        assert!(of(&first(6)).contains("6 ranks are no whole boards of 4; use a multiple of 4"));
        assert!(of(&[]).contains("0 ranks"));
        assert!(of(&[0, 1, 2, 4, 3, 5, 6, 7]).contains("the 4 ranks from 0 on are not"));
        assert!(of(&first(12)).contains("3 boards of 4, and servers exchange in pairs; use a power of two"));
    }
}
