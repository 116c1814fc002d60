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
use crate::congestion::{ControlContext, MAX_HELD, crossing};
use crate::constants::{AgeBits, Constants};
use crate::credit::Credit;
use crate::endpoint::Endpoint;
use crate::event::{Entity, EventKind, Wire};
use crate::fault::Fate;
use crate::hop::{CrossedLink, HopRecord, Instants};
use crate::injection::InjectionChannels;
use crate::interface::{
    Admission, Directory, EndpointPlace, Injection, Interface, InterfaceContext, schedule_injection,
};
use crate::link::{EarliestSend, LinkEnd, LinkKind, LinkReport, SentPacket, Size};
use crate::link_layer::LayerState;
use crate::outlet::EventOutlet;
use crate::packet::{Age, Packet, PacketLabel};
use crate::parameters::FlowControl;
use crate::pause::Pause;
use crate::queue_board::QueueBoard;
use crate::receive_buffer::{Freed, ReceiveSpace};
use crate::reroute::Reroutes;
use crate::switch::{Filled, InputOccupancy, Peer, Sink, Switch, SwitchContext};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weft_congestion::Crossing as LinkCrossing;
use weft_engine::{Context, Event, Model, Pulses, Simulation, SiteId, prefetch};
use weft_topo::{Attachment, Routing, Topology};
use weft_units::{Bytes, EndpointId, PacketCounts, PortId, Span, SwitchId, Time, VcId};

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

    /// Makes switches route by tables while links are off, before the run begins. The parameters of the
    /// network must have [a channel for them](crate::parameters::ChannelParameters::failover).
    pub fn reroute(&mut self, reroutes: Reroutes) {
        assert!(self.constants.switch.channels.failover, "tables need a channel of their own");
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
        link.longest(payload + self.constants.format.overhead())
    }

    /// Time from which no packet or credit is on a line from a site or its endpoints, as far as is decided.
    pub fn lines_idle(&self, site: &Site<N>) -> Time {
        let injection = site.endpoints.iter().map(Endpoint::line_free);
        let switch = site.switch.state();
        let outputs = (0..switch.ports.len()).map(|output| switch.line_idle(output, &self.constants));
        injection.chain(outputs).max().unwrap_or(Time::ZERO)
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
        let state = site.switch.state();
        let outputs = (0..state.links()).map(move |output| {
            let (sender, port) = (state.sender_state(output, constants, now), PortId(output as u32));
            sender.report(LinkEnd::Port(switch, port), layout.peer(switch, port), overhead)
        });
        injection.chain(outputs).filter(|link| link.to != Attachment::Nothing)
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Counters of each direction of each link, site by site, as of [`Network::links_of`], with what the
    /// buffers behind them have counted.
    pub fn links(simulation: &Simulation<Network<T, N>>) -> impl Iterator<Item = LinkReport> {
        Self::links_until(simulation, simulation.now())
    }

    /// The same as they were at `until`, after which no packet was on a line.
    pub fn links_until(
        simulation: &Simulation<Network<T, N>>,
        until: Time,
    ) -> impl Iterator<Item = LinkReport> {
        let network = simulation.model();
        let Constants { channels, switch, .. } = &network.constants;
        // Empty under credits.
        let mut behind: BTreeMap<(SwitchId, PortId), Filled> = BTreeMap::new();
        for (SiteId(site), state) in simulation.sites() {
            let switch = state.switch.state();
            if let Some(occupancy) = &switch.occupancy {
                for port in 0..switch.links() {
                    let filled = occupancy.filled(channels.of_port(port));
                    behind.insert((SwitchId(site), PortId(port as u32)), filled);
                }
            }
        }
        let all = simulation.sites().flat_map(move |(id, site)| network.links_of(id, site, until));
        all.map(move |mut link| {
            if let Attachment::Switch(to, port) = link.to
                && let Some(filled) = behind.get(&(to, port))
            {
                link.most_held = switch.credit.bytes(filled.most);
                link.counts += filled.counts();
            }
            link
        })
    }

    /// The first input buffer, by switch and channel, that has lost a packet although its sender was to
    /// pause: its head-room is too small. `None`: none has, or nothing pauses.
    pub fn overrun(simulation: &Simulation<Network<T, N>>) -> Option<Overrun> {
        let Network { constants, .. } = simulation.model();
        if !matches!(constants.switch.flow_control, FlowControl::Pause(_)) {
            return None;
        }
        simulation.sites().find_map(|(SiteId(site), state)| {
            let (number, packets) = state.switch.state().occupancy.as_deref()?.first_loss()?;
            let Channel { port, vc } = constants.channels.channel(number);
            Some(Overrun { switch: SwitchId(site), port: PortId(port.into()), vc: VcId(vc.into()), packets })
        })
    }
}

/// An input buffer that has lost packets under pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overrun {
    /// The switch.
    pub switch: SwitchId,
    /// The port that the packets came by.
    pub port: PortId,
    /// The virtual channel.
    pub vc: VcId,
    /// Packets that found no space.
    pub packets: u64,
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overrun { switch, port, vc, packets } = self;
        write!(
            f,
            "the input buffer of switch {switch}, port {port}, virtual channel {vc}, was full although its \
             sender was to pause: {packets} packets lost; its head-room is too small"
        )
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
        self.switch.state_mut().reset_counters(now);
    }

    /// Time at which its counters were last reset.
    pub fn counted_from(&self) -> Time {
        self.switch.state().counted_from
    }

    /// Links from it and its endpoints that acknowledgements have crossed since the counters were last reset.
    pub fn acknowledgements(&self) -> u64 {
        let injected: u64 = self.endpoints.iter().map(Endpoint::acknowledgements).sum();
        injected + self.switch.state().acknowledgements()
    }

    /// Whether one of its endpoints waits for a credit that is known to come.
    pub fn expects_credits(&self) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.waiting() > 0 && endpoint.next_credit() < Time::NEVER)
    }

    /// Packets in its buffers, those at endpoints that wait for credits included.
    pub fn buffered(&self) -> usize {
        self.switch.packets() + self.endpoints.iter().map(Endpoint::waiting).sum::<usize>()
    }

    /// Payload bytes that its endpoints have received since the run began.
    pub fn received(&self) -> Bytes {
        Bytes::new(self.endpoints.iter().map(|e| e.received_payload).sum())
    }

    /// Packets of its endpoints that tables routed at its switch, and packets that it dropped because they
    /// could not go on, both since the counters were last reset.
    pub fn failover(&self) -> PacketCounts {
        self.switch.state().failover.ledger.counts
    }

    /// Packets that its links and those of its endpoints have lost, corrupted, … since the run began.
    pub fn faults(&self) -> PacketCounts {
        let injection = self.endpoints.iter().filter_map(|endpoint| endpoint.fault.as_deref());
        let mut counts = self.switch.state().failover.ledger.total();
        injection.chain(&self.switch.state().faults).for_each(|fault| counts += fault.total());
        let layers = self.endpoints.iter().filter_map(|endpoint| endpoint.layer.as_deref());
        let layers = layers.chain(&self.switch.state().layers);
        layers.for_each(|layer| counts += layer.total());
        counts.full = self.switch.state().occupancy.as_deref().map_or(0, InputOccupancy::lost);
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
    directory: &'a Directory,
    events: &'a mut Context<'b, Wire<N::Timer, N::Announcement>, Credit>,
    output: &'a mut N::Output,
}

impl<N: Interface> Sink for Departures<'_, '_, N> {
    #[inline(always)]
    fn packet(&mut self, peer: Peer, mut packet: Packet, sent: &SentPacket) {
        let (time, site, entity) = match peer {
            Peer::Switch { site, port } => {
                packet.set_arrival_port(port);
                (sent.head(), SiteId(site), Entity::Switch)
            }
            Peer::Endpoint(index) => (sent.tail(), self.events.site(), Entity::Endpoint(index)),
            Peer::Nothing => unreachable!("routes lead to ports that are joined to something"),
        };
        let order = entity.order(EventKind::Packet);
        self.events.send_with(Event { time, site, order, payload: () }, move || Wire::Packet(packet));
    }

    #[inline(always)]
    fn credit(&mut self, peer: Peer, vc: u8, amount: u32, at: Time) {
        match peer {
            Peer::Switch { site, port } => {
                self.events.send_note(at, SiteId(site), Credit { channel: Channel { port, vc }, amount });
            }
            Peer::Endpoint(index) => {
                let endpoint = &mut self.endpoints[index as usize];
                endpoint.expect_credit(at, vc, amount);
                if endpoint.waiting() > 0 {
                    let place = EndpointPlace { site: self.events.site(), index };
                    schedule_injection(&mut endpoint.next_injection, at, place, self.events);
                }
            }
            Peer::Nothing => unreachable!("packets come in by ports that are joined to something"),
        }
    }

    #[cold]
    fn pause(&mut self, peer: Peer, (vc, stops): (u8, bool), at: Time) {
        let (site, entity, port) = match peer {
            Peer::Switch { site, port } => (SiteId(site), Entity::Switch, port),
            Peer::Endpoint(index) => (self.events.site(), Entity::Endpoint(index), 0),
            Peer::Nothing => unreachable!("packets come in by ports that are joined to something"),
        };
        let payload = Wire::Pause(Pause { channel: Channel { port, vc }, stops });
        self.events.send(Event { time: at, site, order: entity.order(EventKind::Pause), payload });
    }

    #[cold]
    fn answer(&mut self, answer: Packet, at: Time) {
        let place = self.directory.place(answer.destination);
        // Notices count the time on their way in few bits: of a very late one they have next to nothing.
        let is_near = place.site == self.events.site();
        let least = if is_near { Span::ZERO } else { self.directory.lookahead() };
        let at = at.max(self.events.now() + least);
        self.events.send(place.event(EventKind::Packet, at, Wire::Packet(answer)));
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
                let Wire::Packet(packet) = &event.payload else {
                    return self.on_pause(site, &event.payload, context.now());
                };
                let (now, undisturbed_until) = (context.now(), context.undisturbed_until());
                let Network { topology, constants, directory, .. } = self;
                let sink =
                    &mut Departures { endpoints: &mut site.endpoints, directory, events: context, output };
                let mut context = SwitchContext { now, topology, constants, sink };
                match &constants.reroutes {
                    None => site.switch.arrive(packet, undisturbed_until, &mut context),
                    Some(reroutes) => {
                        reroutes.arrive(&mut site.switch, packet, undisturbed_until, &mut context);
                    }
                }
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
        site.switch.state_mut().learn_of_credit(start, time, credit, &self.constants);
    }

    fn settle(&self, site: &mut Site<N>, before: Time) {
        // Credits are counted when they are needed, which depends on which packets have passed without
        // queueing.
        let last = Time::from_ps(before.as_ps().saturating_sub(1));
        let switch = site.switch.state_mut();
        switch.collect_all_credits(last, &self.constants);
        switch.occupancy.iter_mut().for_each(|occupancy| occupancy.work_off(last));
        // Changes of routes ask for edges of their own.
        if self.constants.reroutes.is_none() {
            site.switch.settle_decision();
        }
    }

    fn pulses(&self) -> Option<Pulses> {
        self.constants.board.pulses()
    }

    fn pulse<'a>(&mut self, at: Time, sites: impl Iterator<Item = &'a mut Site<N>>) {
        let mut board = std::mem::replace(&mut self.constants.board, QueueBoard::NONE);
        for (site, index) in sites.zip(0..) {
            let queues = site.switch.state().queues_before(at, &self.constants);
            board.publish(SwitchId(index), at, queues);
        }
        self.constants.board = board;
    }

    fn save_shared(&self) -> Vec<u8> {
        self.constants.board.contents()
    }

    fn resume_shared(&mut self, saved: &[u8]) -> bool {
        self.constants.board.restore(saved)
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
        let (now, Network { topology, constants, directory, .. }) = (context.now(), self);
        let sink = &mut Departures { endpoints: &mut site.endpoints, directory, events: context, output };
        let mut context = SwitchContext { now, topology, constants, sink };
        match &constants.reroutes {
            None => site.switch.decide(&mut context),
            Some(reroutes) => reroutes.decide(&mut site.switch, &mut context),
        }
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Handles what comes to a switch and is not a packet.
    #[cold]
    fn on_pause(&self, site: &mut Site<N>, event: &Wire<N::Timer, N::Announcement>, now: Time) {
        let Wire::Pause(pause) = event else { unreachable!("switches get packets and pauses only") };
        site.switch.state_mut().on_pause(*pause, now, &self.constants);
    }

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
        if let Wire::Pause(pause) = event {
            endpoint.on_pause(*pause, events.now());
            if endpoint.waiting() > 0 && !pause.stops {
                let place = EndpointPlace { site: events.site(), index };
                schedule_injection(&mut endpoint.next_injection, events.now(), place, events);
            }
            return;
        }
        let (id, directory) = (endpoint.id, &self.directory);
        let mut context = InterfaceContext {
            now: events.now(),
            endpoint: id,
            place: EndpointPlace { site: events.site(), index },
            directory,
            events: EventOutlet::Engine(events),
            output,
            injection_requested: false,
            admission: Admission::of(&self.constants),
            flow_table: None,
            received_space: None,
            freed: Vec::new(),
        };
        let is_limited = self.constants.receive_buffer.is_some();
        if is_limited && let Wire::Packet(packet) = event {
            let space = ReceiveSpace::of(packet, &self.constants);
            endpoint.held_space += space.units();
            context.received_space = Some(space);
        }
        self.serve_endpoint(endpoint, (site.endpoint_ports[index as usize], event), &mut context);
        if is_limited {
            let at = context.now();
            let unwanted = context.received_space.take().map(|space| Freed { space, at });
            let freed = std::mem::take(&mut context.freed);
            self.give_back_freed(site, index, freed.into_iter().chain(unwanted));
        }
    }

    /// Hands an event to an endpoint, which is joined to a port of the switch, and injects what it then has.
    #[inline(always)]
    fn serve_endpoint(
        &self,
        endpoint: &mut Endpoint<N>,
        (port, event): (u16, &Wire<N::Timer, N::Announcement>),
        context: &mut InterfaceContext<'_, '_, N>,
    ) {
        if let Wire::Packet(packet) = event {
            endpoint.received += 1;
            if endpoint.has_receive_hook && self.on_receive(endpoint, packet) {
                return self.receive_under_control(endpoint, (packet, port), context);
            }
            endpoint.received_payload += u64::from(packet.bytes);
        }
        let Endpoint { interface, next_injection, .. } = endpoint;
        context.hand(event, interface, next_injection, &self.interface);
        if context.injection_requested {
            let tells = !matches!(event, Wire::Inject) && endpoint.interface.tells_when_ready();
            if tells && endpoint.has_nothing_staged() {
                let free = endpoint.line_free().max(context.now());
                let ready = free.max(endpoint.interface.next_injection(free, &self.interface));
                if ready > context.now() {
                    return context.schedule_injection(&mut endpoint.next_injection, ready);
                }
            }
            self.inject(endpoint, port, context);
        }
    }

    /// Injects a packet if the interface has one, the line is free and the switch has space. Otherwise, and
    /// for the packet after it, schedules the next injection.
    fn inject(&self, endpoint: &mut Endpoint<N>, port: u16, context: &mut InterfaceContext<'_, '_, N>) {
        let now = context.now();
        let free = endpoint.line_free();
        if free > now {
            return context.schedule_injection(&mut endpoint.next_injection, free);
        }
        if endpoint.channels.is_some() {
            return self.inject_on_channels(endpoint, port, context);
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
        if !endpoint.has_credit(size.space, now) {
            endpoint.staged = Some(packet);
            let next = endpoint.next_credit();
            return context.schedule_injection(&mut endpoint.next_injection, next);
        }
        endpoint.stall.end(now);
        let free = self.put_on_link(endpoint, packet, (Channel { port, vc: 0 }, came), context);
        let next = free.max(endpoint.interface.next_injection(free, &self.interface));
        context.schedule_injection(&mut endpoint.next_injection, next);
    }

    /// The same where the link has several channels to inject on: fills the places of the traffic classes
    /// from the interface, then sends one of their packets. The line is free.
    #[inline(never)]
    fn inject_on_channels(
        &self,
        endpoint: &mut Endpoint<N>,
        port: u16,
        context: &mut InterfaceContext<'_, '_, N>,
    ) {
        let (now, constants) = (context.now(), &self.constants);
        if constants.congestion.is_some() {
            return self.inject_under_control(endpoint, port, context);
        }
        endpoint.collect_credits(now);
        let Some(mut channels) = endpoint.channels.take() else { return };
        let mut ask_at = Time::NEVER;
        while let Some(places) = channels.free_places(&constants.plan).filter(|places| *places != 0) {
            context.admission.places = places;
            match endpoint.interface.inject(&self.interface, context) {
                Injection::Packet(packet) => {
                    endpoint.supplied += 1;
                    channels.stage(packet, now, constants);
                }
                Injection::NotBefore(time) => {
                    ask_at = time;
                    break;
                }
                Injection::Nothing => break,
            }
        }
        self.send_staged(endpoint, port, (channels, Later::of_interface(ask_at)), context);
    }

    /// Sends one of the packets that wait in the places of an endpoint. The line is free. Returns when it is
    /// free again, where that was the last of them.
    #[inline]
    fn send_staged(
        &self,
        endpoint: &mut Endpoint<N>,
        port: u16,
        (mut channels, later): (Box<InjectionChannels>, Later),
        context: &mut InterfaceContext<'_, '_, N>,
    ) -> Option<Time> {
        let taken = channels.take(&self.constants);
        let waits = channels.staged() > 0;
        let stalled = std::mem::replace(&mut channels.stalls, taken.is_none() && waits);
        match (stalled, channels.stalls) {
            (false, true) => endpoint.stall.begin(context.now()),
            (true, false) => endpoint.stall.end(context.now()),
            _ => {}
        }
        endpoint.channels = Some(channels);
        let Later { ask_at, own, at_once } = later;
        let mut drained = None;
        let next = match taken {
            Some((staged, vc)) => {
                let channel = Channel { port, vc };
                let free = self.put_on_link(endpoint, staged.packet, (channel, staged.came), context);
                drained = (!waits).then_some(free);
                match waits || at_once {
                    true => free,
                    false => free.max(own.min(endpoint.interface.next_injection(free, &self.interface))),
                }
            }
            None if waits => endpoint.next_credit().min(ask_at).min(own),
            None => ask_at.min(own),
        };
        context.schedule_injection(&mut endpoint.next_injection, next);
        drained
    }

    /// A packet has come to an endpoint that counts by flow, or is under congestion control. Whether it is.
    #[inline(never)]
    fn on_receive(&self, endpoint: &mut Endpoint<N>, packet: &Packet) -> bool {
        if let Some(meter) = &mut endpoint.meter
            && packet.label != PacketLabel::TRIMMED
            && !packet.label.is_acknowledgement()
        {
            // Since it was injected, its channel says its class.
            let class = self.constants.plan.class(packet.channel().vc.into()) as u8;
            meter.count(packet.source, class, packet.bytes);
        }
        endpoint.flow_table.is_some()
    }

    /// A packet has come to an endpoint under congestion control.
    #[inline(never)]
    fn receive_under_control(
        &self,
        endpoint: &mut Endpoint<N>,
        (packet, port): (&Packet, u16),
        context: &mut InterfaceContext<'_, '_, N>,
    ) {
        let (now, constants) = (context.now(), &self.constants);
        let Endpoint { flow_table, interface, received_payload, next_injection, .. } = endpoint;
        let (Some(flow_table), Some(control)) = (flow_table, constants.congestion.as_deref()) else { return };
        let control_context = ControlContext { control, constants, now };
        if packet.label == PacketLabel::NOTICE {
            flow_table.on_notice(packet, &control_context);
        } else {
            if flow_table.receive(packet, &control_context) {
                *received_payload += u64::from(packet.bytes);
                interface.received(packet, &self.interface, context);
            }
        }
        let answers_by = flow_table.answers_by();
        if context.injection_requested || flow_table.is_awaited() || answers_by <= now {
            self.inject(endpoint, port, context);
        } else {
            context.schedule_injection(next_injection, answers_by);
        }
    }

    /// [`Network::inject_on_channels`] under congestion control: notices first, then packets that were lost,
    /// then those that were held, then those of the interface that may go.
    #[inline(never)]
    fn inject_under_control(
        &self,
        endpoint: &mut Endpoint<N>,
        port: u16,
        context: &mut InterfaceContext<'_, '_, N>,
    ) {
        let (now, constants) = (context.now(), &self.constants);
        endpoint.collect_credits(now);
        let Some(control) = constants.congestion.as_deref() else { return };
        if endpoint.channels.is_none() || endpoint.flow_table.is_none() {
            return;
        }
        let lent = endpoint.channels.take().zip(endpoint.flow_table.take());
        let Some((mut channels, mut flow_table)) = lent else { return };
        let control_context = ControlContext { control, constants, now };
        flow_table.ask(now);
        flow_table.step(endpoint.id, &control_context);
        flow_table.forget_refusals();
        let mut ask_at = Time::NEVER;
        while let Some(places) = channels.free_places(&constants.plan).filter(|places| *places != 0) {
            if let Some(notice) = flow_table.notice(places, constants) {
                endpoint.supplied += 1;
                channels.stage(notice, now, constants);
                continue;
            }
            if let Some(packet) = flow_table.send_again(places, &control_context) {
                endpoint.supplied += 1;
                channels.stage(packet, now, constants);
                continue;
            }
            if let Some(packet) = flow_table.release(places, &control_context) {
                channels.stage(packet, now, constants);
                continue;
            }
            let places = control.of_interface(&endpoint.interface, places);
            if flow_table.held() >= MAX_HELD || places == 0 {
                break;
            }
            context.admission.places = places;
            context.flow_table = Some(flow_table);
            let injection = endpoint.interface.inject(&self.interface, context);
            let Some(lent) = context.flow_table.take() else { return };
            flow_table = lent;
            match injection {
                Injection::Packet(packet) => {
                    endpoint.supplied += 1;
                    if let Some(packet) = flow_table.take(packet, &control_context) {
                        channels.stage(packet, now, constants);
                    }
                }
                Injection::NotBefore(time) => {
                    ask_at = time;
                    flow_table.is_empty_of(places);
                    break;
                }
                Injection::Nothing => {
                    flow_table.is_empty_of(places);
                    break;
                }
            }
        }
        // A flow that has begun may have a first step to take at once.
        flow_table.step(endpoint.id, &control_context);
        while let Some(places) = channels.free_places(&constants.plan)
            && let Some(notice) = flow_table.notice(places, constants)
        {
            endpoint.supplied += 1;
            channels.stage(notice, now, constants);
        }
        let later =
            Later { ask_at, own: flow_table.next(&control_context), at_once: flow_table.has_notices() };
        endpoint.flow_table = Some(flow_table);
        if let Some(free) = self.send_staged(endpoint, port, (channels, later), context)
            && endpoint.interface.next_injection(free, &self.interface) > free
            && let Some(flow_table) = &mut endpoint.flow_table
        {
            flow_table.is_empty_of(u8::MAX);
        }
    }

    /// Sends a packet, which the interface handed over at `came`, to a channel of a port of the switch.
    /// Returns the time from which the line is free.
    #[inline]
    fn put_on_link(
        &self,
        endpoint: &mut Endpoint<N>,
        mut packet: Packet,
        (channel, came): (Channel, Time),
        context: &mut InterfaceContext<'_, '_, N>,
    ) -> Time {
        let (now, site) = (context.now(), context.place.site);
        let class = self.topology.link_class(SwitchId(site.0), PortId(channel.port.into()));
        let earliest = EarliestSend { head: now, tail: now, granted: now, told: came };
        let size = self.constants.size(&packet);
        let kind = self.constants.link(class);
        let sent = endpoint.sender(kind, channel.vc).send(&packet, size, earliest);
        if packet.is_watched() || self.constants.follows_packets {
            let (from, to) = (LinkEnd::Endpoint(packet.source), Some(SwitchId(site.0)));
            let link = CrossedLink { from, to, class, latency: kind.latency, routing: kind.routing };
            let SentPacket { began, waking, ended, free, .. } = sent;
            let times =
                Instants { came, ready: came, could: came, crossed: began, began, waking, ended, free };
            N::hop(context.output, &HopRecord::new(&packet, link, times));
        }
        packet.address = match packet.is_multicast() {
            true => self.constants.trees.address(&packet),
            false => self.topology.endpoint_address(packet.destination),
        };
        packet.start_route(if packet.is_multicast() { 0 } else { self.constants.block_mask });
        packet.set_channel(channel);
        packet.hops = 0;
        match &self.constants.age_bits {
            AgeBits::Unused => {}
            AgeBits::Age => packet.age = Age::default().after(sent.head() - came),
            AgeBits::Lead(signal) => signal.stamp(&mut packet, came, &sent),
        }
        if let (Some(flow_table), Some(control)) = (&mut endpoint.flow_table, &self.constants.congestion) {
            let credit_words = endpoint.layer.as_deref().map_or(Bytes::ZERO, LayerState::credit_words);
            let at = LinkCrossing { credit_words, ..crossing(kind, &sent, size.bytes, Bytes::ZERO) };
            if control.acts_on(&packet)
                && let Some(place) = control.concerned(&packet, &at, &self.constants.plan)
            {
                let answer = flow_table.link_control.pass(&mut packet, &at, (control, place));
                debug_assert!(answer.is_none(), "an endpoint does not answer itself");
            }
        }
        if sent.fate != Fate::Arrives {
            return self.put_with_fate(endpoint, (packet, size), (kind, &sent), context);
        }
        depart(packet, &sent, context);
        sent.free
    }

    /// The rest of [`Network::put_on_link`] for a packet to which the link has done something.
    #[cold]
    fn put_with_fate(
        &self,
        endpoint: &mut Endpoint<N>,
        (packet, size): (Packet, Size),
        (kind, sent): (&LinkKind, &SentPacket),
        context: &mut InterfaceContext<'_, '_, N>,
    ) -> Time {
        let vc = packet.channel().vc;
        match sent.fate {
            Fate::Lost => endpoint.expect_credit_of_lost(sent.credit_back(), vc, size.space),
            Fate::Reordered => depart(packet, &sent.held_up(self.constants.largest_span(kind)), context),
            _ => depart(packet, sent, context),
        }
        if sent.fate != Fate::Duplicated {
            return sent.free;
        }
        endpoint.count_credits(context.now());
        let Some(copy) = endpoint.sender(kind, vc).copy(&packet, size, sent) else { return sent.free };
        match copy.fate {
            Fate::Lost => endpoint.expect_credit_of_lost(copy.credit_back(), vc, size.space),
            _ => depart(packet, &copy, context),
        }
        copy.free
    }
}

/// Whatever an endpoint has to send besides the packets in its places.
struct Later {
    /// Time at which the interface is to be asked again.
    ask_at: Time,
    /// Time at which congestion control has something to do or to let go.
    own: Time,
    /// Whether something is ready now.
    at_once: bool,
}

impl Later {
    /// Nothing but what the interface has.
    fn of_interface(ask_at: Time) -> Later {
        Later { ask_at, own: Time::NEVER, at_once: false }
    }
}

/// A packet that its endpoint has sent comes to the switch.
#[inline]
fn depart<N: Interface>(mut packet: Packet, sent: &SentPacket, context: &mut InterfaceContext<'_, '_, N>) {
    sent.stamp::<true>(&mut packet);
    let (site, order) = (context.place.site, Entity::Switch.order(EventKind::Packet));
    let head = Event { time: sent.head(), site, order, payload: () };
    context.events.send_with(head, move || Wire::Packet(packet));
}
