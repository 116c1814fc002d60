//! The network interface behind an endpoint, as the fabric sees it.

use crate::congestion::FlowTable;
use crate::constants::Constants;
use crate::credit::Credit;
use crate::event::{Entity, EventKind, Wire};
use crate::hop::HopRecord;
use crate::multicast::{Memberships, MulticastGroup};
use crate::outlet::{EventOutlet, Relayed};
use crate::packet::{MessagePart, Packet, PacketLabel};
use crate::receive_buffer::{Freed, ReceiveSpace};
use crate::traffic_class::{ClassTag, Purpose, TrafficClasses};
use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_engine::{Context, Event, Payload, SiteId};
use weft_units::{Bytes, CountLedger, EndpointId, Span, Time};

/// The answer of an interface that may inject a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Injection {
    /// This packet, now.
    Packet(Packet),
    /// A packet, but not before this time.
    NotBefore(Time),
    /// Nothing until something happens to the interface.
    Nothing,
}

impl Injection {
    /// A packet, but not before `time`; [`Time::NEVER`]: when something happens to the interface.
    pub fn not_before(time: Time) -> Injection {
        if time == Time::NEVER { Injection::Nothing } else { Injection::NotBefore(time) }
    }
}

/// An announcement that has reached the destination of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announced<A> {
    /// The source of the message.
    pub from: EndpointId,
    /// The number that the source gave the message.
    pub message: u32,
    /// The content, as the source's interface wrote it.
    pub content: A,
}

/// A network interface. The fabric takes packets from it whenever the link can take one, and hands it those
/// that arrive.
pub trait Interface: Sized + Send + Serialize + DeserializeOwned + 'static {
    /// Constants that all interfaces of a machine share.
    type Parameters: Sync;
    /// The interface's own events.
    type Timer: Payload + Serialize + DeserializeOwned + 'static;
    /// An announcement to the destination of a message, ahead of its packets.
    type Announcement: Payload + Serialize + DeserializeOwned + 'static;
    /// The destination of its reports.
    type Output: Send + Default;

    /// Whether [`Interface::next_injection`] changes nothing and may be asked at any time. Then the fabric
    /// asks for a packet when one is ready: little of what blocks hear of makes one at once. The same for all
    /// interfaces of a machine.
    fn tells_when_ready(&self) -> bool {
        false
    }

    /// Whether it may hand over packets that only answer others. The same for all interfaces of a machine.
    fn answers(&self) -> bool {
        true
    }

    /// The interface's own counts, as those of its link; `None`: it counts nothing.
    fn counts(&self) -> Option<&CountLedger> {
        None
    }

    /// The same, to be set to zero.
    fn counts_mut(&mut self) -> Option<&mut CountLedger> {
        None
    }

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

    /// Another interface has announced a message.
    fn announced(
        &mut self,
        announced: Announced<Self::Announcement>,
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

    /// The link can take a packet from `free` on: there will be none to supply before the returned time,
    /// unless something happens to the interface; [`Time::NEVER`]: none at all. The fabric need not ask
    /// before.
    fn next_injection(&mut self, free: Time, parameters: &Self::Parameters) -> Time;

    /// The link can take a packet now.
    fn inject(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Injection;
}

/// The place of each endpoint in the model.
pub struct Directory {
    places: Vec<EndpointPlace>,
    /// The least time to another site.
    lookahead: Span,
    /// The members of multicast groups.
    groups: Memberships,
    /// The traffic classes that messages are told apart by.
    classes: TrafficClasses,
}

/// The site of an endpoint, and its place among the endpoints of that site.
#[derive(Clone, Copy)]
pub(crate) struct EndpointPlace {
    pub(crate) site: SiteId,
    pub(crate) index: u32,
}

impl EndpointPlace {
    /// An event for the endpoint.
    #[inline(always)]
    pub(crate) fn event<T, A>(self, kind: EventKind, time: Time, payload: Wire<T, A>) -> Event<Wire<T, A>> {
        Event { time, site: self.site, order: Entity::Endpoint(self.index).order(kind), payload }
    }

    /// The same without its payload.
    #[inline(always)]
    fn head(self, kind: EventKind, time: Time) -> Event<()> {
        Event { time, site: self.site, order: Entity::Endpoint(self.index).order(kind), payload: () }
    }
}

impl Directory {
    pub(crate) fn new(places: Vec<EndpointPlace>, lookahead: Span) -> Directory {
        Directory { places, lookahead, groups: Memberships::default(), classes: TrafficClasses::default() }
    }

    /// The same of a network with these traffic classes.
    pub(crate) fn with_classes(self, classes: TrafficClasses) -> Directory {
        Directory { classes, ..self }
    }

    /// Sets the members of multicast groups.
    pub(crate) fn set_groups(&mut self, groups: Memberships) {
        self.groups = groups;
    }

    /// The members of multicast groups.
    pub(crate) fn groups(&self) -> &Memberships {
        &self.groups
    }

    /// The least time to another site.
    pub(crate) fn lookahead(&self) -> Span {
        self.lookahead
    }

    /// The event by which a timer of an endpoint's interface fires.
    pub(crate) fn timer<T, A>(&self, endpoint: EndpointId, time: Time, timer: T) -> Event<Wire<T, A>> {
        self.place(endpoint).event(EventKind::Timer, time, Wire::Timer(timer))
    }

    /// The place of an endpoint.
    #[inline]
    pub(crate) fn place(&self, endpoint: EndpointId) -> EndpointPlace {
        self.places[endpoint.index()]
    }
}

/// The context in which an interface is called: all that it may do.
pub struct InterfaceContext<'a, 'b, N: Interface> {
    pub(crate) now: Time,
    pub(crate) endpoint: EndpointId,
    /// The endpoint's place.
    pub(crate) place: EndpointPlace,
    pub(crate) directory: &'a Directory,
    pub(crate) events: EventOutlet<'a, 'b, N::Timer, N::Announcement>,
    pub(crate) output: &'a mut N::Output,
    /// Whether the fabric is to look for a packet to inject before this instant is over.
    pub(crate) injection_requested: bool,
    /// The packets that may be handed over.
    pub(crate) admission: Admission<'a>,
    /// Congestion control, while it is asked for packets.
    pub(crate) flow_table: Option<Box<FlowTable>>,
    /// Space in the receiving buffer, while the interface receives a packet and does not keep it.
    pub(crate) received_space: Option<ReceiveSpace>,
    /// Space that the interface gives back.
    pub(crate) freed: Vec<Freed>,
}

/// The traffic classes of which an interface may hand over packets.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a> {
    /// `None`: there is one, and it may.
    classes: Option<&'a TrafficClasses>,
    /// `None`: congestion is not controlled.
    congestion: Option<&'a Constants>,
    /// A bit for each that may.
    pub(crate) places: u8,
}

impl<'a> Admission<'a> {
    /// All packets.
    pub(crate) const ALL: Admission<'static> = Admission { classes: None, congestion: None, places: u8::MAX };

    /// All packets of a network with these constants.
    #[inline]
    pub(crate) fn of(constants: &'a Constants) -> Admission<'a> {
        let classes = (!constants.plain_channels).then_some(&constants.switch.channels.classes);
        let congestion = constants.congestion.is_some().then_some(constants);
        Admission { classes, congestion, places: u8::MAX }
    }
}

impl<N: Interface> InterfaceContext<'_, '_, N> {
    /// The present virtual time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
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

    /// The traffic class of the packets of a message of so many bytes, which they must carry
    /// ([`Packet::of_class`]). An interface asks for it once, when it takes the message over.
    #[inline]
    pub fn class_of(&self, purpose: &Purpose, bytes: Bytes) -> ClassTag {
        self.directory.classes.tag(purpose, bytes)
    }

    /// Whether [`Interface::inject`] may hand over a packet of no message, of this label, part and payload
    /// now: whether there is a place for its traffic class. An interface that has packets of several classes
    /// asks for each, and answers [`Injection::Nothing`] where it may hand over none of those that are ready:
    /// it is asked again when that changes. A packet that is handed over unasked holds up all classes until
    /// it has gone.
    #[inline]
    pub fn admits(&self, label: PacketLabel, part: MessagePart, bytes: u32) -> bool {
        let Admission { classes, places, .. } = self.admission;
        let has_place = |classes: &TrafficClasses| {
            places >> classes.find(label.is_acknowledgement(), part == MessagePart::Whole, bytes) & 1 == 1
        };
        classes.is_none_or(has_place)
    }

    /// The same of a packet of a message of this class.
    #[inline]
    pub fn admits_class(&self, tag: ClassTag) -> bool {
        let Admission { classes, places, .. } = self.admission;
        classes.is_none() || places >> tag.class().unwrap_or(0) & 1 == 1
    }

    /// The same of a packet for `to`, of so many bytes: whether congestion control lets it go as well. An
    /// interface that has packets for several endpoints asks this for each, so that none waits for another's
    /// flow.
    pub fn admits_class_to(&self, to: EndpointId, tag: ClassTag, bytes: u32) -> bool {
        if !self.admits_class(tag) {
            return false;
        }
        let Some((flow_table, constants)) = self.flow_table.as_deref().zip(self.admission.congestion) else {
            return true;
        };
        let is_free = MulticastGroup::of(to).is_some();
        let Some(control) = constants.congestion.as_deref().filter(|_| !is_free) else { return true };
        let bytes = Bytes::new(bytes.into()) + constants.format.overhead();
        flow_table.admits((to, tag.class().unwrap_or(0)), bytes, (control, self.now()))
    }

    /// Whether it may hand over packets of every kind.
    #[inline]
    pub fn admits_all(&self) -> bool {
        self.admission.congestion.is_none()
            && self
                .admission
                .classes
                .is_none_or(|classes| self.admission.places.trailing_ones() >= classes.count())
    }

    /// The destination of the interface's reports.
    #[inline]
    pub fn output(&mut self) -> &mut N::Output {
        self.output
    }

    /// Calls the interface back at `at`, which must not lie in the past.
    pub fn set_timer(&mut self, at: Time, timer: N::Timer) {
        self.events.timer(self.place.head(EventKind::Timer, at), move || timer);
    }

    /// Calls the interface of another endpoint of its host back at `at`, which must not lie in the past. Both
    /// endpoints must hang off one switch.
    pub fn set_timer_of(&mut self, endpoint: EndpointId, at: Time, timer: N::Timer) {
        let place = self.directory.place(endpoint);
        assert!(place.site == self.place.site, "endpoints of a host with rails share a switch");
        self.events.timer(place.head(EventKind::Timer, at), move || timer);
    }

    /// Announces a message to its destination, or to each other member of the [group](MulticastGroup) that it
    /// is for. Must be called no later than its first packet is injected.
    pub fn announce(&mut self, to: EndpointId, message: u32, what: N::Announcement) {
        match MulticastGroup::of(to) {
            Some(group) => self.announce_to_group(group, message, what),
            None => self.announce_to_one(to, message, what),
        }
    }

    /// Announces a message to each other member of a group.
    #[cold]
    fn announce_to_group(&mut self, group: MulticastGroup, message: u32, what: N::Announcement) {
        let directory = self.directory;
        for member in directory.groups().of(group).others(self.endpoint) {
            self.announce_to_one(member, message, what);
        }
    }

    #[inline]
    fn announce_to_one(&mut self, to: EndpointId, message: u32, what: N::Announcement) {
        let place = self.directory.place(to);
        let local = place.site == self.place.site;
        let time = if local { self.now() } else { self.now() + self.directory.lookahead };
        let head = place.head(EventKind::Announcement, time);
        self.events.announcement(head, (self.endpoint, message), move || what);
    }

    /// Hands an event to the interface. An injection counts if it is the one that is `due`.
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
            Wire::Inject => {
                if *due == self.now() {
                    *due = Time::NEVER;
                    self.injection_requested = true;
                }
            }
            Wire::Start => interface.start(parameters, self),
            Wire::Pause(_) => unreachable!("the fabric's own"),
            Wire::Timer(timer) => interface.timer(*timer, parameters, self),
            Wire::Announcement { from, message, what } => {
                let announced = Announced { from: *from, message: *message, content: *what };
                interface.announced(announced, parameters, self);
            }
        }
    }

    /// Keeps the space of the packet that is being received in the receiving buffer of the endpoint, until it
    /// is [freed](InterfaceContext::free). Space that nobody keeps is free at once. `None`: there is no such
    /// buffer.
    #[inline]
    pub fn keep_space(&mut self) -> Option<ReceiveSpace> {
        self.received_space.take()
    }

    /// Gives space in the receiving buffer back at `at`, which must not lie in the past.
    #[inline]
    pub fn free(&mut self, space: ReceiveSpace, at: Time) {
        debug_assert!(at >= self.now, "space was free before");
        self.freed.push(Freed { space, at });
    }

    /// Makes the fabric look for a packet to [inject](Interface::inject) as soon as the link can take one.
    #[inline]
    pub fn request_injection(&mut self) {
        self.injection_requested = true;
    }

    /// Makes sure that the endpoint looks for a packet to inject at `at`; `due` is the time at which it will
    /// anyway.
    #[inline(always)]
    pub(crate) fn schedule_injection(&mut self, due: &mut Time, at: Time) {
        if at < *due {
            *due = at;
            self.events.send(self.place.event(EventKind::Injection, at, Wire::Inject));
        }
    }

    /// Lends the context to an interface that this one is made of. Its timers and announcements become those
    /// of this one by the two functions.
    #[inline]
    pub fn lend<I: Interface<Output = N::Output>, R>(
        &mut self,
        timer: impl Fn(I::Timer) -> N::Timer,
        announcement: impl Fn(I::Announcement) -> N::Announcement,
        call: impl FnOnce(&mut InterfaceContext<'_, '_, I>) -> R,
    ) -> R {
        let mut relayed = Relayed { outer: &mut self.events, timer, announcement };
        let mut inner = InterfaceContext {
            now: self.now,
            endpoint: self.endpoint,
            place: self.place,
            directory: self.directory,
            events: EventOutlet::Outer(&mut relayed),
            output: &mut *self.output,
            injection_requested: self.injection_requested,
            admission: self.admission,
            flow_table: self.flow_table.take(),
            received_space: self.received_space.take(),
            freed: std::mem::take(&mut self.freed),
        };
        let answer = call(&mut inner);
        self.injection_requested = inner.injection_requested;
        (self.received_space, self.freed) = (inner.received_space, inner.freed);
        self.flow_table = inner.flow_table;
        answer
    }
}

/// The same without an interface's context.
#[inline(always)]
pub(crate) fn schedule_injection<T: Payload, A: Payload>(
    due: &mut Time,
    at: Time,
    place: EndpointPlace,
    events: &mut Context<'_, Wire<T, A>, Credit>,
) {
    if at < *due {
        *due = at;
        events.send(place.event(EventKind::Injection, at, Wire::Inject));
    }
}
