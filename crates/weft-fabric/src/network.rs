//! The packet network: switches with their endpoints as sites of the engine.
//!
//! ```text
//!   event for an endpoint ─► handle_at_endpoint ─► interface: received, timer, announced, start
//!                                │ it asks for an injection, or one is due
//!                                └─► inject ─► interface: inject ─► Sender ─► event for the switch
//!   event for the switch ──► Switch::arrive ─┐                                ▲
//!   clock edge ────────────► Switch::decide ─┴─► Departures ─► event for the next switch or an endpoint
//!                                                    └──────► credit: note to the previous switch,
//!                                                             or ReturningCredits of an endpoint
//! ```
//! A site shares nothing with another. Packets and credits between switches are events and notes of the
//! engine; those between a switch and its endpoints stay in the site.

use crate::channel::Channel;
use crate::constants::Constants;
use crate::credit::Credit;
use crate::endpoint::Endpoint;
use crate::event::{Entity, EventKind, Wire};
use crate::fault::{Fate, FaultCounts};
use crate::hop::{Crossed, HopRecord, Instants};
use crate::interface::{
    Directory, EndpointPlace, Injection, Interface, InterfaceContext, schedule_injection,
};
use crate::link::{Earliest, LinkEnd, LinkKind, LinkReport, Sent, Size};
use crate::packet::Packet;
use crate::reroute::Reroutes;
use crate::switch::{Peer, Sink, Switch, SwitchContext};
use serde::{Deserialize, Serialize};
use weft_engine::{Context, Event, Model, SiteId, prefetch};
use weft_topo::{Attachment, Routing, Topology};
use weft_units::{Bytes, EndpointId, PortId, Span, SwitchId, Time};

/// The packet network: all that its sites share.
pub struct Network<T, N: Interface> {
    pub(crate) topology: T,
    pub(crate) constants: Constants,
    pub(crate) directory: Directory,
    pub(crate) interface: N::Parameters,
}

/// A switch with its endpoints. In whole cache lines, so that what hops ask for first lies in as few as it
/// can.
#[derive(Serialize, Deserialize)]
#[serde(bound = "N: Interface")]
#[repr(C, align(64))]
pub struct Site<N> {
    pub(crate) switch: Switch,
    pub(crate) endpoints: Box<[Endpoint<N>]>,
    /// By endpoint: the port of the switch that it is joined to.
    pub(crate) endpoint_ports: Box<[u16]>,
}

impl<T: Topology + Routing, N: Interface> Network<T, N> {
    /// The same network with every packet queued in every switch, also one that is sure to win its output.
    /// Only the speed may differ: the tests compare the two.
    #[doc(hidden)]
    pub fn queueing_always(mut self) -> Network<T, N> {
        self.constants.passes = false;
        self
    }

    /// Makes switches route by tables while links are off, before the run begins.
    pub fn reroute(&mut self, reroutes: Reroutes) {
        self.constants.reroutes = Some(Box::new(reroutes));
    }

    /// The event by which a timer of an endpoint's interface fires at `at`, to be inserted between runs.
    pub fn timer(
        &self,
        endpoint: EndpointId,
        at: Time,
        timer: N::Timer,
    ) -> Event<Wire<N::Timer, N::Announcement>> {
        self.directory.timer(endpoint, at, timer)
    }

    /// Topology and routing.
    pub fn layout(&self) -> &T {
        &self.topology
    }

    /// Constants that the interfaces share.
    pub fn interface_parameters(&self) -> &N::Parameters {
        &self.interface
    }

    /// Time that one packet of `payload` takes on the link of `endpoint`, header, footer and framing
    /// included.
    pub fn injection_span(&self, endpoint: EndpointId, payload: Bytes) -> Span {
        let (switch, port) = self.topology.attachment(endpoint);
        let link = self.constants.link(self.topology.link_class(switch, port));
        link.rate.span(payload + self.constants.format.overhead() + link.framing)
    }

    /// Counters of each direction of each link, from when they were last reset until `now`, the
    /// virtual time that the run has reached.
    pub fn links_of<'a>(
        &'a self,
        id: SiteId,
        site: &'a Site<N>,
        now: Time,
    ) -> impl Iterator<Item = LinkReport> + 'a {
        let (layout, constants) = (&self.topology, &self.constants);
        let (switch, overhead) = (SwitchId(id.0), constants.format.overhead());
        let injection = site.endpoints_with_ports().map(move |(endpoint, port)| {
            let port = PortId(port.into());
            let state = endpoint.sender_state(layout.link_class(switch, port), constants, now);
            state.report(LinkEnd::Endpoint(endpoint.id), Attachment::Switch(switch, port), overhead)
        });
        let ports = site.switch.ports();
        let outputs = (0..ports.ports.len()).map(move |output| {
            let (state, port) = (ports.sender_state(output, constants, now), PortId(output as u32));
            state.report(LinkEnd::Port(switch, port), layout.peer(switch, port), overhead)
        });
        injection.chain(outputs).filter(|link| link.to != Attachment::Nothing)
    }
}

impl<N: Interface> Site<N> {
    /// The interfaces of its endpoints.
    pub fn interfaces(&self) -> impl Iterator<Item = (EndpointId, &N)> {
        self.endpoints.iter().map(|e| (e.id, &e.interface))
    }

    /// The interfaces of its endpoints, to be changed at an epoch.
    pub fn interfaces_mut(&mut self) -> impl Iterator<Item = (EndpointId, &mut N)> {
        self.endpoints.iter_mut().map(|e| (e.id, &mut e.interface))
    }

    /// Sets the counters of its links to zero, at the end of warm-up. A stall that is running then counts
    /// from `now`.
    pub fn reset_counters(&mut self, now: Time) {
        self.endpoints.iter_mut().for_each(|endpoint| endpoint.reset_counters(now));
        self.switch.ports_mut().reset_counters(now);
    }

    /// Links from it and its endpoints that acknowledgements have crossed since the counters were last reset.
    pub fn acknowledgements(&self) -> u64 {
        let injected: u64 = self.endpoints.iter().map(Endpoint::acknowledgements).sum();
        injected + self.switch.ports().acknowledgements()
    }

    /// Whether one of its endpoints waits for a credit that is known to come.
    pub fn expects_credits(&self) -> bool {
        self.endpoints
            .iter()
            .any(|endpoint| endpoint.staged.is_some() && endpoint.next_credit() < Time::NEVER)
    }

    /// Packets in its buffers, those at endpoints that wait for credits included.
    pub fn buffered(&self) -> usize {
        self.switch.packets() + self.endpoints.iter().filter(|e| e.staged.is_some()).count()
    }

    /// Payload bytes that its endpoints have received since the run began.
    pub fn received(&self) -> Bytes {
        Bytes::new(self.endpoints.iter().map(|e| e.received_payload).sum())
    }

    /// Packets of its endpoints that tables routed at its switch, and packets that it dropped because no link
    /// led towards their destination, both since the counters were last reset.
    pub fn detours(&self) -> (u64, u64) {
        let detours = &self.switch.ports().detours;
        (detours.rerouted, detours.cut_off)
    }

    /// Packets that its links and those of its endpoints have lost, corrupted, … since the run began.
    pub fn faults(&self) -> FaultCounts {
        let injection = self.endpoints.iter().filter_map(|endpoint| endpoint.fault.as_deref());
        let mut counts =
            FaultCounts { unreachable: self.switch.ports().detours.cut_off_in_all(), ..Default::default() };
        injection.chain(&self.switch.ports().faults).for_each(|fault| counts += fault.total());
        counts
    }

    pub(crate) fn endpoints_with_ports(&self) -> impl Iterator<Item = (&Endpoint<N>, u16)> {
        self.endpoints.iter().zip(self.endpoint_ports.iter().copied())
    }

    /// Damages the switch, for the tests of checks.
    #[cfg(test)]
    pub(crate) fn lose_a_buffered_packet(&mut self) {
        let Switch::InputQueued(switch) = &mut self.switch else { panic!("an input-queued switch") };
        switch.buffer.forget_one();
    }
}

/// Hands what leaves a switch to the engine, and to the endpoints of its site.
struct Departures<'a, 'b, N: Interface> {
    /// By reference, so that a site's own memory of them is asked for only where one is concerned.
    endpoints: &'a mut Box<[Endpoint<N>]>,
    events: &'a mut Context<'b, Wire<N::Timer, N::Announcement>, Credit>,
    output: &'a mut N::Output,
}

impl<N: Interface> Sink for Departures<'_, '_, N> {
    #[inline(always)]
    fn packet(&mut self, peer: Peer, mut packet: Packet, sent: &Sent) {
        let (time, site, entity) = match peer {
            Peer::Switch { site, port } => {
                packet.set_arrival_port(port);
                (sent.head(), SiteId(site), Entity::Switch)
            }
            Peer::Endpoint(index) => (sent.tail(), self.events.site(), Entity::Endpoint(index)),
            Peer::Nothing => unreachable!("routes lead to ports that are joined to something"),
        };
        let order = entity.order(EventKind::Packet);
        self.events.send(Event { time, site, order, payload: Wire::Packet(packet) });
    }

    #[inline(always)]
    fn credit(&mut self, peer: Peer, vc: u8, amount: u32, at: Time) {
        match peer {
            Peer::Switch { site, port } => {
                self.events.send_note(at, SiteId(site), Credit { channel: Channel { port, vc }, amount });
            }
            Peer::Endpoint(index) => {
                let endpoint = &mut self.endpoints[index as usize];
                endpoint.expect_credit(at, amount);
                if endpoint.staged.is_some() {
                    let place = EndpointPlace { site: self.events.site(), index };
                    schedule_injection(&mut endpoint.next_injection, at, place, self.events);
                }
            }
            Peer::Nothing => unreachable!("packets come in by ports that are joined to something"),
        }
    }

    #[cold]
    fn hop(&mut self, hop: HopRecord) {
        N::hop(self.output, &hop);
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Model for Network<T, N> {
    type Payload = Wire<N::Timer, N::Announcement>;
    type Note = Credit;
    type Site = Site<N>;
    type Output = N::Output;

    #[inline]
    fn handle(
        &self,
        site: &mut Site<N>,
        event: &Event<Self::Payload>,
        output: &mut N::Output,
        context: &mut Context<'_, Self::Payload, Credit>,
    ) {
        match Entity::of(event.order) {
            Entity::Switch => {
                let Wire::Packet(packet) = &event.payload else { unreachable!("switches get packets only") };
                let (now, undisturbed_until) = (context.now(), context.undisturbed_until());
                let Network { topology, constants, .. } = self;
                let sink = &mut Departures { endpoints: &mut site.endpoints, events: context, output };
                let mut context = SwitchContext { now, topology, constants, sink };
                if let Some(reroutes) = &constants.reroutes
                    && reroutes.cut_off(now, site.switch.ports().switch, packet.destination)
                {
                    return site.switch.ports_mut().discard(packet, &mut context);
                }
                site.switch.arrive(packet, undisturbed_until, &mut context);
            }
            Entity::Endpoint(index) => {
                self.handle_at_endpoint(site, (index, &event.payload), output, context)
            }
        }
    }

    #[inline]
    fn prefetch(&self, site: &Site<N>) {
        site.switch.prefetch();
    }

    #[inline]
    fn prefetch_event(&self, site: &Site<N>, event: &Event<Self::Payload>) {
        if let Entity::Endpoint(index) = Entity::of(event.order) {
            prefetch(&site.endpoints[index as usize]);
            prefetch(&*site.endpoint_ports);
        }
    }

    #[inline]
    fn note(&self, site: &mut Site<N>, start: Time, time: Time, credit: Credit) {
        site.switch.ports_mut().learn_of_credit(start, time, credit, &self.constants);
    }

    fn settle(&self, site: &mut Site<N>, before: Time) {
        // Credits are counted when they are needed, which depends on which packets have passed without
        // queueing.
        let last = Time::from_ps(before.as_ps().saturating_sub(1));
        site.switch.ports_mut().collect_all_credits(last, &self.constants);
    }

    #[inline]
    fn decision(site: &Site<N>) -> Time {
        site.switch.decision()
    }

    #[inline]
    fn decide(
        &self,
        site: &mut Site<N>,
        output: &mut N::Output,
        context: &mut Context<'_, Self::Payload, Credit>,
    ) {
        let (now, Network { topology, constants, .. }) = (context.now(), self);
        let sink = &mut Departures { endpoints: &mut site.endpoints, events: context, output };
        site.switch.decide(&mut SwitchContext { now, topology, constants, sink });
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Handles an event of one of the endpoints, by its place in the site. On its own: most events are a
    /// switch's, whose short way must not pay for what interfaces do.
    #[inline(never)]
    fn handle_at_endpoint(
        &self,
        site: &mut Site<N>,
        (index, event): (u32, &Wire<N::Timer, N::Announcement>),
        output: &mut N::Output,
        events: &mut Context<'_, Wire<N::Timer, N::Announcement>, Credit>,
    ) {
        let endpoint = &mut site.endpoints[index as usize];
        let (id, directory) = (endpoint.id, &self.directory);
        let mut context =
            InterfaceContext { endpoint: id, index, directory, events, output, injection_requested: false };
        if let Wire::Packet(packet) = event {
            endpoint.received += 1;
            endpoint.received_payload += u64::from(packet.bytes);
        }
        let Endpoint { interface, next_injection, .. } = endpoint;
        context.hand(event, interface, next_injection, &self.interface);
        if context.injection_requested {
            self.inject(endpoint, site.endpoint_ports[index as usize], &mut context);
        }
    }

    /// Injects a packet if the interface has one, the line is free and the switch has room. Otherwise, and
    /// for the packet after it, schedules the next injection.
    fn inject(&self, endpoint: &mut Endpoint<N>, port: u16, context: &mut InterfaceContext<'_, '_, N>) {
        let now = context.now();
        let free = endpoint.line_free();
        if free > now {
            return context.schedule_injection(&mut endpoint.next_injection, free);
        }
        let (packet, came) = match endpoint.staged.take() {
            Some(staged) => (staged, endpoint.stall.since()),
            None => match endpoint.interface.inject(&self.interface, context) {
                Injection::Packet(packet) => {
                    endpoint.supplied += 1;
                    (packet, now)
                }
                Injection::NotBefore(time) => {
                    return context.schedule_injection(&mut endpoint.next_injection, time);
                }
                Injection::Nothing => return,
            },
        };
        let size = self.constants.size(&packet);
        endpoint.stall.begin(came);
        if !endpoint.has_credit(size.room, now) {
            endpoint.staged = Some(packet);
            let next = endpoint.next_credit();
            return context.schedule_injection(&mut endpoint.next_injection, next);
        }
        endpoint.stall.end(now);
        let ended = self.put_on_link(endpoint, packet, (port, came), context);
        let next = ended.max(endpoint.interface.next_injection(ended, &self.interface));
        context.schedule_injection(&mut endpoint.next_injection, next);
    }

    /// Sends a packet, which the interface handed over at `came`, to a port of the switch. Returns the time from
    /// which the line is free.
    #[inline]
    fn put_on_link(
        &self,
        endpoint: &mut Endpoint<N>,
        mut packet: Packet,
        (port, came): (u16, Time),
        context: &mut InterfaceContext<'_, '_, N>,
    ) -> Time {
        let (now, site) = (context.now(), context.events.site());
        let class = self.topology.link_class(SwitchId(site.0), PortId(port.into()));
        let earliest = Earliest { head: now, tail: now };
        let size = self.constants.size(&packet);
        let kind = self.constants.link(class);
        let sent = endpoint.sender(kind).send(&packet, size, earliest);
        if packet.watch {
            let (from, to) = (LinkEnd::Endpoint(packet.source), Some(SwitchId(site.0)));
            let link = Crossed { from, to, class, latency: kind.latency, routing: kind.routing };
            let Sent { began, ended, .. } = sent;
            let times = Instants { came, ready: came, could: came, began, ended, free: ended };
            N::hop(context.output, &HopRecord::new(&packet, link, times));
        }
        packet.address = self.topology.endpoint_address(packet.destination);
        packet.set_channel(Channel { port, vc: 0 });
        packet.hops = 0;
        if sent.fate != Fate::Arrives {
            return self.put_with_fate(endpoint, (packet, size), (kind, &sent), context);
        }
        depart(packet, &sent, context);
        sent.ended
    }

    /// The rest of [`Network::put_on_link`] for a packet to which the link has done something.
    #[cold]
    fn put_with_fate(
        &self,
        endpoint: &mut Endpoint<N>,
        (packet, size): (Packet, Size),
        (kind, sent): (&LinkKind, &Sent),
        context: &mut InterfaceContext<'_, '_, N>,
    ) -> Time {
        match sent.fate {
            Fate::Lost => endpoint.expect_credit(sent.credit_back(), size.room),
            Fate::Reordered => depart(packet, &sent.held_up(self.constants.largest_span(kind)), context),
            _ => depart(packet, sent, context),
        }
        if sent.fate != Fate::Duplicated || !endpoint.has_credit(size.room, context.now()) {
            return sent.ended;
        }
        let Some(copy) = endpoint.sender(kind).copy(&packet, size, sent) else { return sent.ended };
        match copy.fate {
            Fate::Lost => endpoint.expect_credit(copy.credit_back(), size.room),
            _ => depart(packet, &copy, context),
        }
        copy.ended
    }
}

/// A packet that its endpoint has sent comes to the switch.
#[inline]
fn depart<N: Interface>(mut packet: Packet, sent: &Sent, context: &mut InterfaceContext<'_, '_, N>) {
    sent.stamp::<true>(&mut packet);
    let (site, order) = (context.events.site(), Entity::Switch.order(EventKind::Packet));
    context.events.send(Event { time: sent.head(), site, order, payload: Wire::Packet(packet) });
}
