//! The costs of messaging and its limits: machine data.

use crate::algorithms::AlgorithmTable;
use crate::envelope::Access;
use crate::rails::{Rails, RailsBy};
use crate::work::InMemory;
use serde::{Deserialize, Serialize};
use weft_trace::op::SendMode;
use weft_units::{BitRate, Bytes, Span};

/// How a receive from any source or with any tag is replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Wildcards {
    /// It receives the message that it received when the program was recorded, and a waitany waits
    /// for the request that completed then. Where the recording does not say, as `Free`.
    #[default]
    Recorded,
    /// It receives whichever message comes first, and a waitany goes on with any request.
    Free,
}

weft_keys::words! {
    /// Who moves announced data.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum Rendezvous: "Rendezvous", "a rendezvous" {
        /// The sender writes it, once the receiver has said where to.
        #[default]
        Write = "write",
        /// The receiver reads it: the announcement says where from.
        Read = "read",
    }
}

weft_keys::words! {
    /// Who acts on a clear to send.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum ClearToSend: "ClearToSend", "who acts on a clear to send" {
        /// The sender's processor, when it notices.
        #[default]
        Sender = "sender",
        /// The sender's interface, at once.
        Interface = "interface",
    }
}

weft_keys::words! {
    /// How a synchronous send learns that a receive has matched it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum SynchronousSends: "SynchronousSends", "synchronous sends" {
        /// It is announced, whatever its size, and the receive answers.
        #[default]
        Announced = "announced",
        /// It is sent as a standard one is; the receive sends a receipt.
        Receipt = "receipt",
    }
}

weft_keys::words! {
    /// The cost of a call that waits.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum WaitCosts: "WaitCosts", "costs of a wait" {
        /// [`Protocol::wait_call`], whether it has to wait or not.
        #[default]
        Call = "call",
        /// That much for each poll: two before a rank waits, and again after something has come that does not
        /// end the wait. A poll takes all that has come by its end. A call that has to wait for nothing costs
        /// nothing, and a rank that waits sees what comes at once. Such a library keeps messages of a rank to
        /// itself from the interface: they cost neither calls nor looks through its queues.
        Polls = "polls",
    }
}

weft_keys::words! {
    /// Who carries out a one-sided operation at its target.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum OneSidedPath: "OneSidedPath", "who carries out one-sided operations" {
        /// The target's interface, at once.
        Native = "native",
        /// The target's processor, when it notices: the operation is emulated over messages.
        #[default]
        Emulated = "emulated",
    }
}

weft_keys::words! {
    /// The kinds of message by which one-sided communication is carried out at libraries of both sides.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum ActiveMessages: "ActiveMessages", "active messages" {
        /// Emulated operations, as control messages and data. Locks are granted at once.
        #[default]
        None = "none",
        /// As MPICH 5: atomics, locks, posts and completes, with its headers.
        Mpich5 = "mpich-5",
    }
}

/// Software costs and limits of a messaging library on one machine.
///
/// Two-sided messages and collectives:
///
/// - An eager send: `send_call`, and a copy at `send_copy_rate`. With `eager_ack` it completes when the
///   acknowledgement of the receiver's interface is there, for which the rank only waits.
/// - A rendezvous send: `send_call` + `control_send`; later `control_receive` + `data_send`;
///   `control_receive` for an acknowledgement.
/// - A receive is posted: `receive_call` + `matching_entry` × unexpected messages looked at.
/// - An eager message arrives: `receive_message` + `matching_entry` × posted receives looked at. A copy at
///   `receive_copy_rate` when it is matched, then or later.
/// - A request to send arrives: `control_receive` + `matching_entry` × posted receives looked at.
///   `control_send` when it is matched, then or later.
/// - Announced data arrives: `receive_message`; `control_send` for an acknowledgement.
/// - A receipt of a synchronous send: `receive_call` at its posting; `send_call` at the receiver;
///   `receive_message` + `matching_entry` × posted receives at the sender.
/// - A wait is called: `wait_call`. Where `wait_costs` are of polls, for each of its polls.
/// - A collective is called: `collective_call`, and its sends, receives, copies and reductions;
///   `temporary_buffer` where it reduces; `sendrecv_call` for every step that sends and receives, `wait_call`
///   for every step that waits for messages, `copy_call` for every copy, `reduce_call` for every reduction.
/// - An accelerated allreduce: `collective_call`, a copy, `accelerated_call` + `wait_call`; the rest is the
///   interface's.
///
/// Where `rendezvous` is read, the receiver spends `data_send` in place of the `control_send` of a clear to
/// send, the sender nothing between `control_send` and the acknowledgement. Where `clear_to_send` is the
/// interface's, the sender spends neither the `control_receive` of the clear to send nor `data_send`.
///
/// A message in parts, where `rails_by` is software's: `data_send` for each part after the first, whatever it
/// is of.
///
/// One-sided operations, at the origin and then at the target:
///
/// - Native: `send_call` + `data_send`, and `control_receive` when it is complete; nothing at the target.
/// - An emulated put, accumulate or fetch within the eager limit: `send_call` and a copy at
///   `send_copy_rate`; `receive_message` and a copy at `receive_copy_rate`.
/// - A longer one: `send_call` + `control_send`, then `control_receive` + `data_send`; `control_receive` +
///   `control_send`, then `receive_message`.
/// - An emulated get: `send_call` + `control_send`; `control_receive`.
/// - Operands that are reduced: nothing at the origin; `reduction_rate`.
/// - The answer without data: `control_receive`; `control_send`.
/// - The answer with data within the eager limit: `receive_message` and a copy at `receive_copy_rate`;
///   `control_send` and a copy at `send_copy_rate`.
/// - The answer with longer data: `receive_message`; `data_send`.
/// - An operation on the rank's own memory: `send_call` and a copy at `memory_copy_rate`, or
///   `reduction_rate`.
/// - A fence, a flush, an unlock: `wait_call` at the origin; for a fence a barrier.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Protocol {
    /// Starting a send.
    pub send_call: Span,
    /// Posting a receive.
    pub receive_call: Span,
    /// A call that waits.
    pub wait_call: Span,
    /// The rule by which a wait costs that: once, or for each poll.
    pub wait_costs: WaitCosts,
    /// Starting a collective, beside the sends and receives that it consists of.
    pub collective_call: Span,
    /// The temporary buffer of a collective that reduces: its allocation, once.
    pub temporary_buffer: Span,
    /// A step of a collective that sends and receives, beside the send and the receive.
    pub sendrecv_call: Span,
    /// A copy within a collective, beside the time of its bytes.
    pub copy_call: Span,
    /// A reduction within a collective, beside the time of its bytes.
    pub reduce_call: Span,
    /// Handing an allreduce to the accelerator, once for all blocks.
    pub accelerated_call: Span,
    /// Taking an arrived message (eager, or announced data) from the interface.
    pub receive_message: Span,
    /// Posting a control message of the rendezvous (request to send, clear to send,
    /// acknowledgement).
    pub control_send: Span,
    /// Taking an arrived control message.
    pub control_receive: Span,
    /// Handing announced data to the interface, such as writing an RDMA descriptor.
    pub data_send: Span,
    /// Looking at one entry of the posted or the unexpected queue.
    pub matching_entry: Span,
    /// Copy of an eager message into the interface; `None`: it costs nothing.
    pub send_copy_rate: Option<BitRate>,
    /// Copy of an eager message out of the interface; `None`: it costs nothing.
    pub receive_copy_rate: Option<BitRate>,
    /// Copy within memory: messages to oneself, buffered sends, copies inside collectives;
    /// `None`: it costs nothing.
    pub memory_copy_rate: Option<BitRate>,
    /// Bytes of operand that a reduction takes in; `None`: it costs nothing.
    pub reduction_rate: Option<BitRate>,
    /// Largest payload that is sent without asking.
    pub eager_limit: Bytes,
    /// Standard sends of at most so much are complete as soon as they are posted, also such as are announced:
    /// the library keeps a copy. `None`: only what is [sent eagerly](Protocol::eager_buffered).
    pub buffered_limit: Option<Bytes>,
    /// An eager send is complete as soon as it is posted, since its data has been copied; otherwise
    /// when the interface has taken it.
    pub eager_buffered: bool,
    /// An eager send of standard mode completes with the acknowledgement of the receiver's interface, whether
    /// its data has been copied or not.
    pub eager_ack: bool,
    /// The receiver acknowledges announced data, and the send completes with that; otherwise when
    /// the interface has taken the data. A receiver that reads always does.
    pub rendezvous_ack: bool,
    /// Envelope on the wire of an eager message, beside packet headers.
    pub eager_header: Bytes,
    /// A control message on the wire, beside packet headers.
    pub control_bytes: Bytes,
    /// Envelope on the wire of announced data, beside packet headers: nothing where RDMA writes it.
    pub data_header: Bytes,
    /// How a synchronous send learns that it has been matched.
    pub synchronous_sends: SynchronousSends,
    /// Who moves announced data.
    pub rendezvous: Rendezvous,
    /// Who acts on a clear to send.
    pub clear_to_send: ClearToSend,
    /// Who carries out put and get.
    pub one_sided: OneSidedPath,
    /// Who carries out accumulate, get-accumulate, fetch-and-op and compare-and-swap.
    pub atomics: OneSidedPath,
    /// The messages of its own by which the library carries out one-sided communication.
    pub active_messages: ActiveMessages,
    /// How messages are spread over the interfaces of a host.
    pub rails: Rails,
    /// Who gives the parts of a message to the rails.
    pub rails_by: RailsBy,
    /// Messages of more than so much on the wire are cut, where `rails` is striping.
    pub stripe_above: Bytes,
    /// How receives with wildcards are replayed.
    pub wildcards: Wildcards,
    /// Which algorithm carries out which collective.
    pub algorithms: AlgorithmTable,
}

impl Protocol {
    /// No software costs, no headers, everything eager, MPICH's algorithms.
    pub fn zero() -> Protocol {
        Protocol {
            send_call: Span::ZERO,
            receive_call: Span::ZERO,
            wait_call: Span::ZERO,
            wait_costs: WaitCosts::Call,
            collective_call: Span::ZERO,
            temporary_buffer: Span::ZERO,
            sendrecv_call: Span::ZERO,
            copy_call: Span::ZERO,
            reduce_call: Span::ZERO,
            accelerated_call: Span::ZERO,
            receive_message: Span::ZERO,
            control_send: Span::ZERO,
            control_receive: Span::ZERO,
            data_send: Span::ZERO,
            matching_entry: Span::ZERO,
            send_copy_rate: None,
            receive_copy_rate: None,
            memory_copy_rate: None,
            reduction_rate: None,
            eager_limit: Bytes::new(u64::MAX),
            buffered_limit: None,
            eager_buffered: true,
            eager_ack: false,
            rendezvous_ack: false,
            eager_header: Bytes::ZERO,
            control_bytes: Bytes::ZERO,
            data_header: Bytes::ZERO,
            synchronous_sends: SynchronousSends::Announced,
            rendezvous: Rendezvous::Write,
            clear_to_send: ClearToSend::Sender,
            one_sided: OneSidedPath::Emulated,
            atomics: OneSidedPath::Emulated,
            active_messages: ActiveMessages::None,
            rails: Rails::None,
            rails_by: RailsBy::Software,
            stripe_above: Bytes::ZERO,
            wildcards: Wildcards::Recorded,
            algorithms: AlgorithmTable::mpich(),
        }
    }

    /// Whether the library keeps messages of a rank to itself from its interface, so that they cost no calls:
    /// MPICH does, which polls.
    pub(crate) fn keeps_own_messages(&self) -> bool {
        self.wait_costs == WaitCosts::Polls
    }

    /// Whether a send of this mode that is sent eagerly is complete as soon as it is posted.
    pub(crate) fn completes_at_once(&self, mode: SendMode) -> bool {
        mode == SendMode::Buffered || self.eager_buffered && !self.eager_ack
    }

    /// Copying `bytes` within memory: each is read and written.
    pub(crate) fn copy(&self, bytes: Bytes) -> InMemory {
        in_memory(self.memory_copy_rate, bytes, 2)
    }

    /// Taking in `bytes` of operand: of each two are read and one is written.
    pub(crate) fn reduction(&self, bytes: Bytes) -> InMemory {
        in_memory(self.reduction_rate, bytes, 3)
    }

    /// Who carries out `access` at its target.
    pub fn path(&self, access: Access) -> OneSidedPath {
        if access.reduces() { self.atomics } else { self.one_sided }
    }
}

/// The memory traffic of `data`, each byte of which is moved `times` times. Alone it takes as long as `data`
/// at `rate`; without a rate there is no work.
fn in_memory(rate: Option<BitRate>, data: Bytes, times: u64) -> InMemory {
    rate.map_or(InMemory::default(), |rate| InMemory {
        moved: Bytes::new(data.get().saturating_mul(times)),
        alone: rate.span(data),
    })
}

/// How long `data` takes at `rate`; no time where there is none.
pub(crate) fn cost(rate: Option<BitRate>, data: Bytes) -> Span {
    rate.map_or(Span::ZERO, |rate| rate.span(data))
}
