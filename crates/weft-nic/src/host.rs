//! What uses a network interface.

use crate::observer::Observer;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::Interface;
use weft_units::{Bytes, EndpointId, Time};

/// By which of its primitives an interface with several carries a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Primitive {
    /// The one that suits its size.
    #[default]
    Automatic,
    /// Into a queue of the receiver: small messages only, as from packetizer to mailbox.
    Small,
    /// Into the receiver's memory, with a notification that goes along with the data: an RDMA write.
    Write,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Message<H> {
    /// Where to.
    pub to: EndpointId,
    /// Payload.
    pub bytes: Bytes,
    /// When it was offered: its completion time counts from here.
    pub born: Time,
    /// What the receiving host is told with it; `None`: nothing but its arrival.
    pub header: Option<H>,
    /// Comes back in [`Host::sent`] when the interface has taken all its data; `None`: not wanted.
    pub token: Option<u32>,
    /// How it travels, where the interface has a choice.
    pub primitive: Primitive,
    /// Whether the [observer](Observer) is to be told of every stage and hop of its critical packet.
    pub watch: bool,
}

/// A message that has arrived whole.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<H> {
    /// Where from.
    pub from: EndpointId,
    /// Its number, counted by the sender.
    pub number: u32,
    /// Payload.
    pub bytes: Bytes,
    /// When it was offered.
    pub born: Time,
    /// When the host notices it: now, except for a host that is [passive](Host::PASSIVE).
    pub noticed: Time,
    /// Links crossed by its last packet, injection and ejection included.
    pub hops: u8,
    /// What the sender said with it.
    pub header: Option<H>,
}

/// What a host has to send when the interface has nothing else to do.
#[derive(Clone, Copy, Debug)]
pub enum Offer<H> {
    /// This message.
    Message(Message<H>),
    /// One, but not before this time.
    NotBefore(Time),
    /// Nothing until something happens to the host.
    Nothing,
}

/// What a host may do when it is called, whichever interface it uses.
pub trait HostContext<H: Host> {
    /// The present virtual time.
    fn now(&self) -> Time;

    /// The host's endpoint.
    fn endpoint(&self) -> EndpointId;

    /// Where the host reports.
    fn output(&mut self) -> &mut H::Output;

    /// Calls the host back at `at`, which must not lie in the past.
    fn set_timer(&mut self, at: Time, timer: H::Timer);

    /// Hands a message to the interface at `at`, now or later, and returns its number.
    ///
    /// Several ranks may share an interface and be ahead of the present time by different spans: their
    /// messages go out in the order of `at`, those of one time in the order of the calls.
    fn send(&mut self, message: Message<H::Header>, at: Time) -> u32;

    /// Makes the interface ask for the host's offer.
    fn request_offer(&mut self);

    /// Nothing that the interface does not know of yet can reach the host before this time.
    fn quiet_until(&self) -> Time {
        self.now()
    }
}

/// An interface of one of the models, with its host.
pub trait Nic<H: Host>: Interface<Output = H::Output> {
    /// The interface of `host` at `endpoint`.
    fn new(host: H, endpoint: EndpointId, parameters: &Self::Parameters) -> Self;

    /// A timer of the host as one of the interface.
    fn host_timer(timer: H::Timer) -> Self::Timer;

    /// Its host.
    fn host(&self) -> &H;

    /// Messages that it has not sent whole, and such that have not arrived whole.
    fn unfinished(&self) -> (usize, usize);
}

/// A rank, a traffic source: whatever uses an interface.
pub trait Host: Sized + Send + Serialize + DeserializeOwned + 'static {
    /// What all hosts of a run share.
    type Parameters: Sync;
    /// The host's own events.
    type Timer: Payload + Serialize + DeserializeOwned + 'static;
    /// What a message tells the receiving host.
    type Header: Copy + Send + Sync + Serialize + DeserializeOwned + 'static;
    /// Where it reports.
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

    /// A message has arrived.
    fn delivered(
        &mut self,
        message: &Delivered<Self::Header>,
        parameters: &Self::Parameters,
        context: &mut impl HostContext<Self>,
    );

    /// There will be nothing to offer before this time, unless something happens to the host;
    /// [`Time::MAX`]: nothing at all.
    fn next_offer(&self) -> Time;

    /// The interface is idle and could send. Asked again after every call of the host and every packet.
    fn offer(&mut self, parameters: &Self::Parameters, now: Time) -> Offer<Self::Header>;
}
