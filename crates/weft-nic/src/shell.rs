//! The shell of an interface: what stands between fabric, host and board, the same for every board.
//!
//! ```text
//!   fabric ──► NicShell ─┬─ host ◄── delivered, sent, … ──┐
//!                        └─ board: NicBoard ──────────────┤
//!   for one call:  Hosted ─┬─ host, with its parameters   │
//!                          └─ NicNode ─┬─ hardware: the board
//!                                      ├─ parameters: the board's
//!                                      └─ fabric: the clock, timers, announcements, the link, the observer
//! ```
//! The fabric lends all of it for one call. A board carries out what concerns itself and the network on a
//! [`NicNode`], and what the host has to know on a [`Hosted`].

use crate::capability::{Capabilities, NoCapabilities};
use crate::data::DataError;
use crate::failure::Failure;
use crate::host::{BlockWork, Delivered, Host, HostContext, Message, Nic, NicParameters, Refused};
use crate::observer::Observer as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::{Announced, HopRecord, Injection, Interface, InterfaceContext, Packet};
use weft_units::{Bytes, CountLedger, EndpointId, Time};

/// The board of an interface: its state, and what it does.
pub trait NicBoard<H: Host>: Sized + Send + Serialize + DeserializeOwned + 'static {
    /// The parameters that all boards of a machine share.
    type Parameters: Sync;
    /// The board's events, with those of the host among them.
    type Timer: Payload + Serialize + DeserializeOwned + 'static;
    /// The words of one board to another, beside packets.
    type Announcement: Payload + Serialize + DeserializeOwned + 'static;

    /// Whether the fabric need only ask for a packet when there is one: see
    /// [`tells_when_ready`](Interface::tells_when_ready).
    const TELLS_WHEN_READY: bool = true;

    /// The board of an endpoint.
    fn new(endpoint: EndpointId, parameters: &NicParameters<Self::Parameters, H::Parameters>) -> Self;

    /// A timer of the host as one of the board.
    fn host_timer(timer: H::Timer) -> Self::Timer;

    /// Takes a message of the host: see [`HostContext::send`].
    fn send(node: &mut NicNode<'_, '_, '_, Self, H>, message: Message<H::Header>, at: Time) -> u32;

    /// The capabilities of the board: none by default.
    fn capabilities<'n>(node: &'n mut NicNode<'_, '_, '_, Self, H>) -> &'n mut dyn Capabilities {
        &mut node.without
    }

    /// A timer has fired.
    fn timer(hosted: &mut Hosted<'_, '_, '_, Self, H>, timer: Self::Timer);

    /// Another board has announced something of a message.
    fn announced(hosted: &mut Hosted<'_, '_, '_, Self, H>, announced: Announced<Self::Announcement>);

    /// The tail of a packet has come.
    fn received(hosted: &mut Hosted<'_, '_, '_, Self, H>, packet: &Packet);

    /// The time before which there is no packet, where the link is free from `free` on and nothing else
    /// happens: see [`next_injection`](Interface::next_injection).
    fn next_injection(&mut self, host: &H, free: Time, parameters: &Self::Parameters) -> Time;

    /// The next packet for the link.
    fn inject(hosted: &mut Hosted<'_, '_, '_, Self, H>) -> Injection;

    /// See [`Interface::answers`].
    fn answers(&self) -> bool {
        true
    }

    /// See [`Interface::counts`].
    fn counts(&self) -> Option<&CountLedger> {
        None
    }

    /// See [`Interface::counts_mut`].
    fn counts_mut(&mut self) -> Option<&mut CountLedger> {
        None
    }

    /// See [`Nic::unfinished`].
    fn unfinished(&self) -> (usize, usize);

    /// See [`Nic::refused`].
    fn refused(&self) -> Refused {
        Refused::default()
    }

    /// See [`Nic::visit_arriving`].
    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes));

    /// See [`Nic::visit_work`].
    fn visit_work(&self, _visit: &mut dyn FnMut(BlockWork)) {}
}

/// An interface: a board, with its host.
#[derive(Serialize, Deserialize)]
#[serde(bound = "B: NicBoard<H>, H: Host")]
pub struct NicShell<B, H> {
    /// The host.
    pub host: H,
    board: B,
}

/// A board in its surroundings, while the fabric calls it: the interface as its host sees it.
pub struct NicNode<'a, 'b, 'c, B: NicBoard<H>, H: Host> {
    /// The board.
    pub hardware: &'a mut B,
    /// The parameters that all boards share.
    pub parameters: &'a B::Parameters,
    /// The endpoint's place in the network.
    pub fabric: &'a mut InterfaceContext<'b, 'c, NicShell<B, H>>,
    without: NoCapabilities,
}

/// A host, with the view of its interface that it has while it is called.
pub struct Hosted<'a, 'b, 'c, B: NicBoard<H>, H: Host> {
    /// The host.
    pub host: &'a mut H,
    /// The parameters that all hosts share.
    pub parameters: &'a H::Parameters,
    /// The interface, as the host sees it.
    pub node: NicNode<'a, 'b, 'c, B, H>,
}

impl<B: NicBoard<H>, H: Host> NicShell<B, H> {
    /// A board with its host.
    pub fn with_board(host: H, board: B) -> NicShell<B, H> {
        NicShell { host, board }
    }

    /// The host and its node, as the fabric calls them.
    #[inline(always)]
    fn hosted<'a, 'b, 'c>(
        &'a mut self,
        parameters: &'a NicParameters<B::Parameters, H::Parameters>,
        fabric: &'a mut InterfaceContext<'b, 'c, Self>,
    ) -> Hosted<'a, 'b, 'c, B, H> {
        let (hardware, without) = (&mut self.board, NoCapabilities);
        let node = NicNode { hardware, parameters: &parameters.interface, fabric, without };
        Hosted { host: &mut self.host, parameters: &parameters.host, node }
    }
}

impl<B: NicBoard<H>, H: Host> HostContext<H> for NicNode<'_, '_, '_, B, H> {
    #[inline]
    fn now(&self) -> Time {
        self.fabric.now()
    }

    #[inline]
    fn endpoint(&self) -> EndpointId {
        self.fabric.endpoint()
    }

    #[inline]
    fn output(&mut self) -> &mut H::Output {
        self.fabric.output()
    }

    #[inline]
    fn set_timer(&mut self, at: Time, timer: H::Timer) {
        self.fabric.set_timer(at, B::host_timer(timer));
    }

    fn set_timer_of(&mut self, endpoint: EndpointId, at: Time, timer: H::Timer) {
        self.fabric.set_timer_of(endpoint, at, B::host_timer(timer));
    }

    #[inline]
    fn send(&mut self, message: Message<H::Header>, at: Time) -> u32 {
        B::send(self, message, at)
    }

    #[inline]
    fn request_offer(&mut self) {
        self.fabric.request_injection();
    }

    #[inline]
    fn capabilities(&mut self) -> &mut dyn Capabilities {
        B::capabilities(self)
    }
}

impl<B: NicBoard<H>, H: Host> Hosted<'_, '_, '_, B, H> {
    /// A timer of the host has fired.
    #[inline]
    pub fn host_timer(&mut self, timer: H::Timer) {
        self.host.timer(timer, self.parameters, &mut self.node);
    }

    /// The interface has taken all data of the message that was sent with `token`.
    #[inline]
    pub fn sent(&mut self, token: u32) {
        self.host.sent(token, self.parameters, &mut self.node);
    }

    /// The host notices a message.
    #[inline]
    pub fn deliver(&mut self, message: &Delivered<H::Header>) {
        self.host.delivered(message, self.parameters, &mut self.node);
    }

    /// The allreduce that was asked for with `token` is done.
    #[inline]
    pub fn accelerated(&mut self, token: u32) {
        self.host.accelerated(token, self.parameters, &mut self.node);
    }

    /// A message of the host has failed.
    #[inline]
    pub fn fail(&mut self, failure: &Failure) {
        self.host.failed(failure, self.parameters, &mut self.node);
    }

    /// The bytes of a message to the host, or of a result, are wrong.
    #[inline]
    pub fn damage(&mut self, error: &DataError, header: Option<&H::Header>) {
        debug_assert_eq!(error.destination, self.node.endpoint());
        self.host.damaged(error, header, &mut self.node);
    }
}

impl<B: NicBoard<H>, H: Host> Nic<H> for NicShell<B, H> {
    fn new(host: H, endpoint: EndpointId, parameters: &Self::Parameters) -> NicShell<B, H> {
        NicShell { host, board: B::new(endpoint, parameters) }
    }

    fn host_timer(_: &Self::Parameters, timer: H::Timer) -> Self::Timer {
        B::host_timer(timer)
    }

    fn host(&self) -> &H {
        &self.host
    }

    fn unfinished(&self) -> (usize, usize) {
        self.board.unfinished()
    }

    fn refused(&self) -> Refused {
        self.board.refused()
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        self.board.visit_arriving(visit);
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        self.board.visit_work(visit);
    }
}

impl<B: NicBoard<H>, H: Host> Interface for NicShell<B, H> {
    type Parameters = NicParameters<B::Parameters, H::Parameters>;
    type Timer = B::Timer;
    type Announcement = B::Announcement;
    type Output = H::Output;

    fn tells_when_ready(&self) -> bool {
        B::TELLS_WHEN_READY
    }

    fn answers(&self) -> bool {
        self.board.answers()
    }

    fn counts(&self) -> Option<&CountLedger> {
        self.board.counts()
    }

    fn counts_mut(&mut self) -> Option<&mut CountLedger> {
        self.board.counts_mut()
    }

    fn is_active(&self) -> bool {
        self.host.is_active()
    }

    fn start(&mut self, parameters: &Self::Parameters, context: &mut InterfaceContext<'_, '_, Self>) {
        let Hosted { host, parameters, mut node } = self.hosted(parameters, context);
        host.start(parameters, &mut node);
        context.request_injection();
    }

    fn timer(
        &mut self,
        timer: Self::Timer,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        B::timer(&mut self.hosted(parameters, context), timer);
    }

    fn announced(
        &mut self,
        announced: Announced<Self::Announcement>,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        B::announced(&mut self.hosted(parameters, context), announced);
    }

    #[inline(always)]
    fn received(
        &mut self,
        packet: &Packet,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        B::received(&mut self.hosted(parameters, context), packet);
    }

    fn hop(output: &mut H::Output, hop: &HopRecord) {
        output.hop(hop);
    }

    #[inline]
    fn next_injection(&mut self, free: Time, parameters: &Self::Parameters) -> Time {
        self.board.next_injection(&self.host, free, &parameters.interface)
    }

    #[inline(always)]
    fn inject(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Injection {
        B::inject(&mut self.hosted(parameters, context))
    }
}
