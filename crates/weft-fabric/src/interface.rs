//! What sits behind an endpoint, as the fabric sees it.

use crate::hop::HopRecord;
use crate::packet::{Credit, Packet, Wire, kind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_engine::{Context, Event, Order, Payload, SiteId};
use weft_units::{EndpointId, Span, Time};

/// What an interface has to send when the fabric asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Supply {
    /// This packet, now.
    Packet(Packet),
    /// A packet, but not before this time.
    NotBefore(Time),
    /// Nothing until something happens to the interface.
    Nothing,
}

impl Supply {
    /// A packet, but not before `time`; [`Time::MAX`]: when something happens to the interface.
    pub fn not_before(time: Time) -> Supply {
        if time == Time::MAX { Supply::Nothing } else { Supply::NotBefore(time) }
    }
}

/// A network interface: the fabric asks it for packets whenever the link can take one, and hands it
/// those that arrive.
pub trait Interface: Sized + Send + Serialize + DeserializeOwned + 'static {
    /// What all interfaces of a machine share.
    type Parameters: Sync;
    /// The interface's own events.
    type Timer: Payload + Serialize + DeserializeOwned + 'static;
    /// What goes to the destination of a message beside its packets.
    type Announcement: Payload + Serialize + DeserializeOwned + 'static;
    /// Where it reports.
    type Output: Send + Default;

    /// Whether the interface has anything to do of its own accord; if not, it is not started.
    fn is_active(&self) -> bool;

    /// The run begins.
    fn start(&mut self, parameters: &Self::Parameters, context: &mut InterfaceContext<'_, '_, Self>);

    /// A timer that the interface set has fired.
    fn timer(
        &mut self,
        timer: Self::Timer,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    );

    /// Another interface has announced its message number `message`.
    fn announced(
        &mut self,
        from: EndpointId,
        message: u32,
        what: Self::Announcement,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    );

    /// The tail of a packet has arrived.
    fn received(
        &mut self,
        packet: &Packet,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    );

    /// A [watched](Packet::watch) packet of any interface has been put on a link.
    fn hop(_output: &mut Self::Output, _hop: &HopRecord) {}

    /// The link can take a packet from `free` on: there will be none to supply before the returned time, unless
    /// something happens to the interface; [`Time::MAX`]: none at all. The fabric need not ask before.
    fn next_supply(&mut self, free: Time, parameters: &Self::Parameters) -> Time;

    /// The link can take a packet now.
    fn supply(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Supply;
}

/// Where each endpoint is: its site and its entity within the site.
pub struct Directory {
    places: Vec<(SiteId, u32)>,
    /// The least time to another site.
    lookahead: Span,
}

impl Directory {
    pub(crate) fn new(places: Vec<(SiteId, u32)>, lookahead: Span) -> Directory {
        Directory { places, lookahead }
    }

    /// The event by which a timer of an endpoint's interface fires.
    pub(crate) fn timer<T, A>(&self, endpoint: EndpointId, time: Time, timer: T) -> Event<Wire<T, A>> {
        let (site, entity) = self.place(endpoint);
        Event { time, site, order: Order::new(entity, kind::TIMER), payload: Wire::Timer(timer) }
    }

    /// The site and entity of an endpoint.
    #[inline]
    pub(crate) fn place(&self, endpoint: EndpointId) -> (SiteId, u32) {
        self.places[endpoint.index()]
    }
}

/// What an interface may do when it is called.
pub struct InterfaceContext<'a, 'b, N: Interface> {
    pub(crate) endpoint: EndpointId,
    pub(crate) entity: u32,
    pub(crate) directory: &'a Directory,
    pub(crate) events: &'a mut Context<'b, Wire<N::Timer, N::Announcement>, Credit>,
    pub(crate) output: &'a mut N::Output,
    pub(crate) pump: bool,
}

impl<N: Interface> InterfaceContext<'_, '_, N> {
    /// The present virtual time.
    #[inline]
    pub fn now(&self) -> Time {
        self.events.now()
    }

    /// The endpoint that the interface sits behind.
    #[inline]
    pub fn endpoint(&self) -> EndpointId {
        self.endpoint
    }

    /// Endpoints of the network: they are numbered below this.
    #[inline]
    pub fn endpoints(&self) -> usize {
        self.directory.places.len()
    }

    /// Where the interface reports.
    #[inline]
    pub fn output(&mut self) -> &mut N::Output {
        self.output
    }

    /// Calls the interface back at `at`, which must not lie in the past.
    pub fn set_timer(&mut self, at: Time, timer: N::Timer) {
        let order = Order::new(self.entity, kind::TIMER);
        self.events.send(Event { time: at, site: self.events.site(), order, payload: Wire::Timer(timer) });
    }

    /// Tells the destination of a message about it. Must be called no later than its first packet is
    /// supplied.
    pub fn announce(&mut self, to: EndpointId, message: u32, what: N::Announcement) {
        let (site, entity) = self.directory.place(to);
        let order = Order::new(entity, kind::ANNOUNCEMENT);
        let local = site == self.events.site();
        let time = if local { self.now() } else { self.now() + self.directory.lookahead };
        let payload = Wire::Announcement { from: self.endpoint, message, what };
        self.events.send(Event { time, site, order, payload });
    }

    /// Hands an event to the interface. A pump counts if it is the one that is `due`.
    #[inline]
    pub(crate) fn hand(
        &mut self,
        event: &Wire<N::Timer, N::Announcement>,
        interface: &mut N,
        due: &mut Time,
        parameters: &N::Parameters,
    ) {
        match event {
            Wire::Packet(packet) => interface.received(packet, parameters, self),
            Wire::Pump => {
                if *due == self.now() {
                    *due = Time::MAX;
                    self.pump = true;
                }
            }
            Wire::Start => interface.start(parameters, self),
            Wire::Timer(timer) => interface.timer(*timer, parameters, self),
            Wire::Announcement { from, message, what } => {
                interface.announced(*from, *message, *what, parameters, self);
            }
        }
    }

    /// Asks the fabric to ask for a packet.
    #[inline]
    pub fn request_pump(&mut self) {
        self.pump = true;
    }
}
