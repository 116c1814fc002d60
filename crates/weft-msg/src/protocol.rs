//! The costs of messaging and its limits: machine data.

use crate::algorithms::AlgorithmTable;
use crate::envelope::Access;
use crate::rails::{Rails, RailsBy};
use crate::work::InMemory;
use serde::{Deserialize, Serialize};
use weft_keys::RateLimit;
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

weft_keys::keys! {
    /// Software costs and limits of a messaging library on one machine.
    ///
    /// Two-sided messages and collectives:
    ///
    /// - An eager send: `send_call`, and a copy at `send_copy_rate`. With `eager_ack` it completes when the
    ///   acknowledgement of the receiver's interface is there, for which the rank only waits.
    /// - A rendezvous send: `send_call` + `control_send`; later `control_receive` + `data_send`;
    ///   `control_receive` for an acknowledgement.
    /// - A receive is posted: `receive_call` + `matching_entry` × unexpected messages looked at.
    /// - An eager message arrives: `receive_message` + `matching_entry` × posted receives looked at. A copy
    ///   at `receive_copy_rate` when it is matched, then or later.
    /// - A request to send arrives: `control_receive` + `matching_entry` × posted receives looked at.
    ///   `control_send` when it is matched, then or later.
    /// - Announced data arrives: `receive_message`; `control_send` for an acknowledgement.
    /// - A receipt of a synchronous send: `receive_call` at its posting; `send_call` at the receiver;
    ///   `receive_message` + `matching_entry` × posted receives at the sender.
    /// - A wait is called: `wait_call`. Where `wait_costs` are of polls, for each of its polls.
    /// - A collective is called: `collective_call`, and its sends, receives, copies and reductions;
    ///   `temporary_buffer` where it reduces; `sendrecv_call` for every step that sends and receives,
    ///   `wait_call` for every step that waits for messages, `copy_call` for every copy, `reduce_call` for
    ///   every reduction.
    /// - An accelerated allreduce: `collective_call`, a copy, `accelerated_call` + `wait_call`; the rest is
    ///   the interface's.
    ///
    /// Where `rendezvous` is read, the receiver spends `data_send` in place of the `control_send` of a clear
    /// to send, the sender nothing between `control_send` and the acknowledgement. Where `clear_to_send` is
    /// the interface's, the sender spends neither the `control_receive` of the clear to send nor `data_send`.
    ///
    /// A message in parts, where `rails_by` is software's: `data_send` for each part after the first,
    /// whatever it is of.
    ///
    /// One-sided operations, at the origin and then at the target:
    ///
    /// - Native: `send_call` + `data_send`, and `control_receive` when it is complete; nothing at the target.
    /// - An emulated put, accumulate or fetch within the eager limit: `send_call` and a copy at
    ///   `send_copy_rate`; `receive_message` and a copy at `receive_copy_rate`.
    /// - A longer one: `send_call` + `control_send`, then `control_receive` + `data_send`; `control_receive`
    ///   + `control_send`, then `receive_message`.
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
        /// Largest payload that is sent without asking.
        eager_limit: Bytes;
        /// Largest payload of a standard send that is complete as soon as it is posted.
        buffered_limit: Option<Bytes>;
        /// Whether an eager send is complete as soon as it is posted.
        eager_buffered: bool;
        /// Whether an eager send completes only when the receiver's interface has acknowledged it; `false`
        /// where not given.
        eager_ack: bool = false;
        /// Whether the receiver acknowledges announced data, which completes the send.
        rendezvous_ack: bool;
        /// How a synchronous send learns that it has been matched: announced, or by a receipt.
        synchronous_sends: SynchronousSends = SynchronousSends::default();
        /// Who moves announced data: the sender writes it, or the receiver reads it.
        rendezvous: Rendezvous = Rendezvous::default();
        /// Who acts on a clear to send: the sender's processor, or its interface.
        clear_to_send: ClearToSend = ClearToSend::default();
        /// Who carries out put and get at the target.
        one_sided: OneSidedPath = OneSidedPath::default();
        /// Who carries out accumulate, fetch-and-op and compare-and-swap at the target.
        atomics: OneSidedPath = OneSidedPath::default();
        /// The messages of its own by which the library carries out one-sided communication.
        active_messages: ActiveMessages = ActiveMessages::default();
        /// How the messages of a rank are spread over the interfaces of its host: not at all (`none`), in
        /// parts (`striping`), or in turn (`multiplexing`).
        rails: Rails = Rails::default();
        /// Who gives the parts of a message to the rails: the library, or the first interface.
        rails_by: RailsBy = RailsBy::default();
        /// Largest message on the wire that `striping` does not cut; 0 where not given.
        stripe_above: Bytes = Bytes::ZERO;
        /// Bytes of the envelope of an eager message, besides packet headers.
        eager_header: Bytes;
        /// Bytes of a control message of the rendezvous, besides packet headers.
        control_bytes: Bytes;
        /// Bytes of the envelope of announced data, besides packet headers.
        data_header: Bytes;
        /// Time to start a send.
        send_call: Span;
        /// Time to post a receive.
        receive_call: Span;
        /// Time of a call that waits.
        wait_call: Span;
        /// Whether `wait_call` is spent once per call (`call`), or `host.poll` for each poll that finds
        /// nothing (`polls`), where the host has it.
        wait_costs: WaitCosts = WaitCosts::default();
        /// Time to start a collective, besides its sends and receives.
        collective_call: Span;
        /// Time to allocate the temporary buffer of a collective that reduces; none where not given.
        temporary_buffer: Span = Span::ZERO;
        /// Time of each step of a collective that sends and receives, besides its send and its receive; none
        /// where not given.
        sendrecv_call: Span = Span::ZERO;
        /// Time of each copy within a collective, besides that of its bytes; none where not given.
        copy_call: Span = Span::ZERO;
        /// Time of each reduction within a collective, besides that of its bytes; none where not given.
        reduce_call: Span = Span::ZERO;
        /// Time to hand an allreduce to the accelerator, once for all of its blocks; none where not given.
        accelerated_call: Span = Span::ZERO;
        /// Time to take an arrived message from the interface.
        receive_message: Span;
        /// Time to post a control message.
        control_send: Span;
        /// Time to take an arrived control message.
        control_receive: Span;
        /// Time to hand announced data to the interface.
        data_send: Span;
        /// Time to look at one entry of the posted or the unexpected queue.
        matching_entry: Span;
        /// Rate of copying an eager message into the interface.
        send_copy_rate: Option<BitRate>, read_as(RateLimit);
        /// Rate of copying an eager message out of the interface.
        receive_copy_rate: Option<BitRate>, read_as(RateLimit);
        /// Rate of copying within memory.
        memory_copy_rate: Option<BitRate>, read_as(RateLimit);
        /// Rate at which a reduction takes in operands.
        reduction_rate: Option<BitRate>, read_as(RateLimit);
        beside {
            /// How receives with wildcards are replayed.
            wildcards: Wildcards = Wildcards::default();
            /// Which algorithm carries out which collective.
            algorithms: AlgorithmTable = AlgorithmTable::mpich();
        }
    }
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
