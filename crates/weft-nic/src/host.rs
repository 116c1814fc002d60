//! Hosts: the users of a network interface.

use crate::capability::Capabilities;
use crate::data::DataError;
use crate::edge_form::PortUse;
use crate::failure::Failure;
use crate::message_options::MessageOptions;
use crate::observer::Observer;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::{Interface, Purpose};
use weft_units::{Address, Bytes, EndpointId, Span, Time};

/// By which of its primitives an interface with several carries a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Primitive {
    /// The one that suits its size.
    #[default]
    Automatic,
    /// Into a queue of the receiver: small messages only, as from packetizer to mailbox.
    Small,
    /// Into the receiver's memory, with a notification that goes along with the data: an RDMA write.
    Write,
    /// The same, in answer to a read of the receiver: by a channel for reads (TR-488 §4.5.1).
    WriteBack,
    /// A request that the interface which has the data answers by itself, with a [write
    /// back](Primitive::WriteBack), where it can; else a small message.
    ReadRequest,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Message<H> {
    /// The endpoint that the message is for, or the [group](weft_fabric::MulticastGroup), whose other members
    /// all get it: where the interface [can](Capabilities::multicasts).
    pub to: EndpointId,
    /// Payload.
    pub bytes: Bytes,
    /// The time of the offer, from which the completion time counts.
    pub created_at: Time,
    /// Words to the receiving host; `None`: it learns nothing but the arrival.
    pub header: Option<H>,
    /// Comes back in [`Host::sent`] when the interface has taken all its data; `None`: not wanted.
    pub token: Option<u32>,
    /// How it travels, where the interface has a choice.
    pub primitive: Primitive,
    /// The purpose, by which traffic classes tell messages apart.
    pub purpose: Purpose,
    /// The virtual interface of the sender that it goes out by: that of the process that sends it.
    pub interface: u16,
    /// The virtual interface of the receiver that it is for.
    pub to_interface: u16,
    /// The place of its data in the sender's memory, from which an interface fetches what it is not handed.
    pub buffer: Address,
    /// Whether that is memory of a program, and not of messaging's own.
    pub of_program: bool,
    /// Options that the interface of the machine may have.
    pub options: MessageOptions,
    /// Whether the [observer](Observer) is to be told of every stage and hop of its critical packet.
    pub watch: bool,
}

impl<H> Message<H> {
    /// A message without header and token, from the first virtual interface to the first, which the interface
    /// carries as it likes.
    #[inline]
    pub const fn new(to: EndpointId, bytes: Bytes, created_at: Time) -> Message<H> {
        Message {
            to,
            bytes,
            created_at,
            header: None,
            token: None,
            primitive: Primitive::Automatic,
            purpose: Purpose::PLAIN,
            interface: 0,
            to_interface: 0,
            buffer: Address::new(0),
            of_program: false,
            options: MessageOptions::NONE,
            watch: false,
        }
    }

    /// The same with another header.
    #[inline]
    pub fn with_header<T>(self, header: Option<T>) -> Message<T> {
        let Message { to, bytes, created_at, token, primitive, purpose, interface, .. } = self;
        let Message { to_interface, buffer, of_program, options, watch, .. } = self;
        Message {
            to,
            bytes,
            created_at,
            header,
            token,
            primitive,
            purpose,
            interface,
            to_interface,
            buffer,
            of_program,
            options,
            watch,
        }
    }
}

/// A message that has arrived whole.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Delivered<H> {
    /// The endpoint that sent the message.
    pub from: EndpointId,
    /// The number of the message, counted by the sender.
    pub number: u32,
    /// Payload.
    pub bytes: Bytes,
    /// The time of the offer.
    pub created_at: Time,
    /// When the host notices it: now, except for a host that is [passive](Host::PASSIVE).
    pub noticed: Time,
    /// Links crossed by its last packet, injection and ejection included.
    pub hops: u8,
    /// The virtual channel on which its last packet came to the switch of its endpoint, where that has
    /// [receiving buffers](weft_fabric::ReceiveSpace); 0 elsewhere.
    pub channel: u8,
    /// The sender's words.
    pub header: Option<H>,
    /// The virtual interface that it came for.
    pub interface: u16,
    /// Whether it lies in the queue of that interface, where it takes room until it is
    /// [taken](crate::Mailboxes::taken).
    pub in_mailbox: bool,
}

impl<H> Delivered<H> {
    /// The same with another header.
    #[inline]
    pub fn with_header<T>(&self, header: Option<T>) -> Delivered<T> {
        let Delivered { from, number, bytes, created_at, noticed, hops, channel, .. } = *self;
        let Delivered { interface, in_mailbox, .. } = *self;
        Delivered { from, number, bytes, created_at, noticed, hops, channel, header, interface, in_mailbox }
    }
}

/// A message on its way to a host, whose data the interface is to write into memory.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a, T> {
    /// The sender's words.
    pub header: &'a T,
    /// Payload.
    pub bytes: Bytes,
    /// The virtual interface that it is for.
    pub interface: u16,
}

/// The message that a host has for an idle interface.
#[derive(Clone, Copy, Debug)]
pub enum Offer<H> {
    /// This message.
    Message(Message<H>),
    /// One, but not before this time.
    NotBefore(Time),
    /// Nothing until something happens to the host.
    Nothing,
}

/// The interface as its host sees it while it is called, whichever interface it is.
pub trait HostContext<H: Host> {
    /// The present virtual time.
    fn now(&self) -> Time;

    /// The host's endpoint.
    fn endpoint(&self) -> EndpointId;

    /// The host's output.
    fn output(&mut self) -> &mut H::Output;

    /// Calls the host back at `at`, which must not lie in the past.
    fn set_timer(&mut self, at: Time, timer: H::Timer);

    /// Calls the host behind another endpoint of the same host and switch at `at`, which must not lie in the
    /// past. Machine files say of an interface whether it may be a rail of its host.
    fn set_timer_of(&mut self, endpoint: EndpointId, at: Time, timer: H::Timer);

    /// Hands a message to the interface at `at`, now or later, and returns its number.
    ///
    /// Several ranks may share an interface and be ahead of the present time by different spans: their
    /// messages go out in the order of `at`, those of one time in the order of the calls.
    fn send(&mut self, message: Message<H::Header>, at: Time) -> u32;

    /// Makes the interface ask for the host's offer.
    fn request_offer(&mut self);

    /// The capabilities that the interface has beside messages.
    fn capabilities(&mut self) -> &mut dyn Capabilities;
}

/// The parameters of an interface with its host: what all nodes of a machine share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NicParameters<I, H> {
    /// The interface's own.
    pub interface: I,
    /// The host's own.
    pub host: H,
}

/// Messages that full queues of their receivers have refused, and that are repeated until there is room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// Their number.
    pub messages: u64,
    /// How often they have been refused, all together.
    pub repeats: u64,
}

impl std::ops::AddAssign for Refused {
    fn add_assign(&mut self, other: Refused) {
        self.messages += other.messages;
        self.repeats += other.repeats;
    }
}

/// How long a block of an interface has worked since the run began: what telemetry divides by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockWork {
    /// The name of the block.
    pub block: &'static str,
    /// The side of the way that it is on.
    pub side: Side,
    /// The time in which it has worked.
    pub worked: Span,
}

/// The side of a message's way through the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The interface that sends, and its host's memory.
    Sender,
    /// The interface that receives.
    Receiver,
}

/// An interface of one of the models, with its host.
pub trait Nic<H: Host>: Interface<Output = H::Output> {
    /// The interface of `host` at `endpoint`.
    fn new(host: H, endpoint: EndpointId, parameters: &Self::Parameters) -> Self;

    /// A timer of the host as one of the interface.
    fn host_timer(parameters: &Self::Parameters, timer: H::Timer) -> Self::Timer;

    /// The host of the interface.
    fn host(&self) -> &H;

    /// Messages that it has not sent whole, and such that have not arrived whole.
    fn unfinished(&self) -> (usize, usize);

    /// The messages among those not sent whole that a full queue of their receiver has refused. None by
    /// default.
    fn refused(&self) -> Refused {
        Refused::default()
    }

    /// Calls `visit` with the header of every message with one that is on its way to this host, and how much
    /// of its payload has come, in no particular order.
    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes));

    /// Calls `visit` with each block that does one thing at a time, and how long it has worked since the run
    /// began, in the same order every time. None by default.
    fn visit_work(&self, _visit: &mut dyn FnMut(BlockWork)) {}
}

/// A rank, a traffic source: whatever uses an interface.
pub trait Host: Sized + Send + Serialize + DeserializeOwned + 'static {
    /// Constants that all hosts of a run share.
    type Parameters: Sync;
    /// The host's own events.
    type Timer: Payload + Serialize + DeserializeOwned + 'static;
    /// The words of a message to the receiving host.
    type Header: Copy + Send + Sync + Serialize + DeserializeOwned + 'static;
    /// The host's reports.
    type Output: Observer + Send + Default + 'static;

    /// Whether the host only counts what is delivered. It is then told as soon as the last packet has
    /// come, with the time at which it would notice, which saves an event per message.
    const PASSIVE: bool = false;

    /// Whether the host takes part at all.
    fn is_active(&self) -> bool;

    /// The run begins.
    fn start(&mut self, parameters: &Self::Parameters, context: &mut impl HostContext<Self>);

    /// A timer that the host set has fired.
    fn timer(
        &mut self,
        timer: Self::Timer,
        parameters: &Self::Parameters,
        context: &mut impl HostContext<Self>,
    );

    /// The interface has taken all data of the message that was sent with `token`.
    fn sent(&mut self, token: u32, parameters: &Self::Parameters, context: &mut impl HostContext<Self>);

    /// The place in this host's memory that the data of a message goes to, which is on its way: asked for
    /// once, where the interface writes data into memory by itself.
    fn destination(
        &mut self,
        _message: Incoming<'_, Self::Header>,
        _parameters: &Self::Parameters,
        _context: &mut impl HostContext<Self>,
    ) -> Address {
        Address::default()
    }

    /// A message has arrived.
    fn delivered(
        &mut self,
        message: &Delivered<Self::Header>,
        parameters: &Self::Parameters,
        context: &mut impl HostContext<Self>,
    );

    /// The allreduce that was asked for with `token` is done: the reduced vector is in memory.
    fn accelerated(
        &mut self,
        _token: u32,
        _parameters: &Self::Parameters,
        _context: &mut impl HostContext<Self>,
    ) {
    }

    /// A message of this host has failed. Tells the observer where the host does not care.
    fn failed(
        &mut self,
        failure: &Failure,
        _parameters: &Self::Parameters,
        context: &mut impl HostContext<Self>,
    ) {
        context.output().failed(failure);
    }

    /// With which seed the messages of a run carry real bytes; `None`: they carry none.
    fn data(_parameters: &Self::Parameters) -> Option<u64> {
        None
    }

    /// The use of the ports of packetizer and mailbox: whether what crosses them is
    /// [reported](crate::Observer::port), and what takes the place of these blocks.
    fn ports(_parameters: &Self::Parameters) -> PortUse {
        PortUse::default()
    }

    /// The bytes of a message to this host are not those that its sender has, or an allreduce of it has
    /// another result than it should. Tells the observer where the host does not care.
    fn damaged(
        &mut self,
        error: &DataError,
        _header: Option<&Self::Header>,
        context: &mut impl HostContext<Self>,
    ) {
        context.output().damaged(error);
    }

    /// There will be nothing to offer before this time, unless something happens to the host;
    /// [`Time::NEVER`]: nothing at all.
    fn next_offer(&self) -> Time;

    /// The interface is idle and could send. Asked again after every call of the host and every packet.
    fn offer(&mut self, parameters: &Self::Parameters, now: Time) -> Offer<Self::Header>;
}
