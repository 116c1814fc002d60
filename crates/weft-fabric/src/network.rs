//! The packet network: switches with their endpoints as sites of the engine.

use crate::endpoint::Endpoint;
use crate::fault::{Fate, FaultCounts};
use crate::hop::HopRecord;
use crate::interface::{Directory, Interface, InterfaceContext, Supply};
use crate::packet::{Credit, Packet, Wire, kind};
use crate::switch::{Peer, Rules, Sink, Switch};
use serde::{Deserialize, Serialize};
use weft_engine::{Context, Event, Model, Order, SiteId, prefetch};
use weft_topo::{Attachment, LinkClass, Routing, Topology};
use weft_units::{Bytes, EndpointId, PortId, Span, SwitchId, Time};

/// The packet network: what all its sites share.
pub struct Network<T, N: Interface> {
    pub(crate) rules: Rules<T>,
    pub(crate) directory: Directory,
    pub(crate) interface: N::Parameters,
}

/// A switch with its endpoints. In whole cache lines, so that what hops ask for first lies in as few as it can.
#[derive(Serialize, Deserialize)]
#[serde(bound = "N: Interface")]
#[repr(C, align(64))]
pub struct Site<N> {
    pub(crate) switch: Switch,
    pub(crate) endpoints: Box<[Endpoint<N>]>,
    /// Where the links to endpoints begin in the switch's input.
    pub(crate) endpoint_ports: Box<[u16]>,
}

/// Where a link begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LinkEnd {
    /// At an endpoint: injection.
    Endpoint(EndpointId),
    /// At a port of a switch.
    Port(SwitchId, PortId),
}

/// What one direction of a link has done.
#[derive(Clone, Copy, Debug)]
pub struct LinkReport {
    /// Where it begins.
    pub from: LinkEnd,
    /// Where it ends.
    pub to: Attachment,
    /// Its kind.
    pub class: LinkClass,
    /// Packets.
    pub packets: u64,
    /// Payload.
    pub payload: Bytes,
    /// How long the line was busy with bits.
    pub busy: Span,
    /// How long a packet could have gone but for credits.
    pub stalled: Span,
    /// Which of the packets it has lost or corrupted.
    pub faults: FaultCounts,
}

impl<T: Topology + Routing, N: Interface> Network<T, N> {
    /// The same network with every packet queued in every switch, also one that is sure to win its output: which
    /// must change nothing but speed.
    pub fn queueing_always(mut self) -> Network<T, N> {
        self.rules.passes = false;
        self
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
        &self.rules.topology
    }

    /// What the interfaces share.
    pub fn interface_parameters(&self) -> &N::Parameters {
        &self.interface
    }

    /// Bytes on the wire per second of payload that a link to an endpoint carries at most: the span of
    /// one packet of `payload` on the link of `endpoint`, headers and framing included.
    pub fn injection_span(&self, endpoint: EndpointId, payload: Bytes) -> Span {
        let (switch, port) = self.rules.topology.attachment(endpoint);
        let link = &self.rules.links[usize::from(self.rules.topology.link_class(switch, port).0)];
        let format = &self.rules.format;
        link.rate.span(payload + format.header + format.footer + link.framing)
    }

    /// What each direction of each link has done from when the counters were last reset until `now`, the
    /// virtual time that the run has reached.
    pub fn links_of<'a>(
        &'a self,
        id: SiteId,
        site: &'a Site<N>,
        now: Time,
    ) -> impl Iterator<Item = LinkReport> + 'a {
        let layout = &self.rules.topology;
        let switch = SwitchId(id.0);
        let injection = site.endpoints.iter().zip(&site.endpoint_ports).map(move |(endpoint, &port)| {
            let class = layout.link_class(switch, PortId(port.into()));
            LinkReport {
                from: LinkEnd::Endpoint(endpoint.id),
                to: Attachment::Switch(switch, PortId(port.into())),
                class,
                packets: endpoint.packets,
                payload: Bytes::new(endpoint.payload),
                busy: self.rules.line_time(class, endpoint.packets, endpoint.payload),
                stalled: endpoint.stalled
                    + endpoint.staged.map_or(Span::ZERO, |(_, since)| now.saturating_since(since)),
                faults: endpoint.fault.as_ref().map_or(FaultCounts::default(), |fault| fault.counts),
            }
        });
        let ports = site.switch.ports();
        let outputs = ports.port.iter().enumerate().map(move |(index, port)| {
            let ((packets, payload), id) = (ports.sent(index), PortId(index as u32));
            LinkReport {
                from: LinkEnd::Port(switch, id),
                to: layout.peer(switch, id),
                class: port.class,
                packets,
                payload,
                busy: self.rules.line_time(port.class, packets, payload.get()),
                stalled: ports.stalled(index, now),
                faults: ports.faults.get(index).map_or(FaultCounts::default(), |fault| fault.counts),
            }
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

    /// Sets the counters of its links to zero, at the end of warm-up. What is stalled then counts from
    /// `now`.
    pub fn reset_counters(&mut self, now: Time) {
        for endpoint in &mut self.endpoints {
            (endpoint.packets, endpoint.payload, endpoint.acknowledgements) = (0, 0, 0);
            endpoint.stalled = Span::ZERO;
            endpoint.fault.iter_mut().for_each(|fault| fault.reset());
            if let Some((_, since)) = &mut endpoint.staged {
                *since = now;
            }
        }
        self.switch.ports_mut().reset_counters(now);
    }

    /// Links from it and its endpoints that acknowledgements have crossed since the counters were last reset.
    pub fn acknowledgements(&self) -> u64 {
        let injected: u64 = self.endpoints.iter().map(|endpoint| endpoint.acknowledgements).sum();
        injected + self.switch.ports().acknowledgements()
    }

    /// Whether one of its endpoints waits for a credit that is known to come.
    pub fn expects_credits(&self) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.staged.is_some() && endpoint.next_credit() < Time::MAX)
    }

    /// Packets in its buffers, those at endpoints that wait for credits included.
    pub fn buffered(&self) -> usize {
        self.switch.packets() + self.endpoints.iter().filter(|e| e.staged.is_some()).count()
    }

    /// Payload bytes that its endpoints have received since the run began.
    pub fn received(&self) -> Bytes {
        Bytes::new(self.endpoints.iter().map(|e| e.received_payload).sum())
    }

    /// What its links and those of its endpoints have lost and corrupted since the run began.
    pub fn faults(&self) -> FaultCounts {
        let injection = self.endpoints.iter().filter_map(|endpoint| endpoint.fault.as_deref());
        let mut counts = FaultCounts::default();
        injection.chain(&self.switch.ports().faults).for_each(|fault| counts += fault.total());
        counts
    }

    pub(crate) fn endpoints_with_ports(&self) -> impl Iterator<Item = (&Endpoint<N>, u16)> {
        self.endpoints.iter().zip(self.endpoint_ports.iter().copied())
    }

    /// Damages the switch, for the tests of checks.
    #[cfg(test)]
    pub(crate) fn lose_a_buffered_packet(&mut self) {
        let Switch::InputQueues(switch) = &mut self.switch else { panic!("an input-queued switch") };
        switch.pool.forget_one();
    }
}

/// Carries what leaves a switch to the engine.
struct Leaving<'a, 'b, N: Interface> {
    /// By reference, so that a site's own memory of them is asked for only where one is concerned.
    endpoints: &'a mut Box<[Endpoint<N>]>,
    events: &'a mut Context<'b, Wire<N::Timer, N::Announcement>, Credit>,
    output: &'a mut N::Output,
}

impl<N: Interface> Sink for Leaving<'_, '_, N> {
    #[inline(always)]
    fn packet(&mut self, peer: Peer, mut packet: Packet, head: Time, tail: Time) {
        let (time, site, entity) = match peer {
            Peer::Switch { site, port } => {
                packet.port = port;
                (head, SiteId(site), 0)
            }
            Peer::Endpoint { entity } => (tail, self.events.site(), entity),
            Peer::Nothing => unreachable!("routes lead to ports that are joined to something"),
        };
        let order = Order::new(entity, kind::PACKET);
        self.events.send(Event { time, site, order, payload: Wire::Packet(packet) });
    }

    #[inline(always)]
    fn credit(&mut self, peer: Peer, vc: u8, amount: u32, at: Time) {
        match peer {
            Peer::Switch { site, port } => {
                self.events.send_note(at, SiteId(site), Credit { port, vc, amount });
            }
            Peer::Endpoint { entity } => {
                let endpoint = &mut self.endpoints[entity as usize - 1];
                endpoint.expect_credit(at, amount);
                if endpoint.staged.is_some() {
                    endpoint.pump_at(at, entity, self.events);
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
        if event.order.entity() == 0 {
            let Wire::Packet(packet) = &event.payload else { unreachable!("switches get packets only") };
            let times = (context.now(), context.undisturbed_until());
            let mut leaving = Leaving { endpoints: &mut site.endpoints, events: context, output };
            return site.switch.arrive(packet, times, &self.rules, &mut leaving);
        }
        self.handle_at_endpoint(site, event, output, context);
    }

    #[inline]
    fn prefetch(&self, site: &Site<N>) {
        site.switch.prefetch();
    }

    #[inline]
    fn prefetch_event(&self, site: &Site<N>, event: &Event<Self::Payload>) {
        let entity = event.order.entity() as usize;
        if entity > 0 {
            prefetch(&site.endpoints[entity - 1]);
            prefetch(&*site.endpoint_ports);
        }
    }

    #[inline]
    fn note(&self, site: &mut Site<N>, start: Time, time: Time, credit: Credit) {
        site.switch.ports_mut().learn_of_credit(start, time, credit, &self.rules);
    }

    fn settle(&self, site: &mut Site<N>, before: Time) {
        // Which credits have been needed depends on which packets have passed without queueing.
        site.switch
            .ports_mut()
            .collect_all_credits(Time::from_ps(before.as_ps().saturating_sub(1)), &self.rules);
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
        let now = context.now();
        let mut leaving = Leaving { endpoints: &mut site.endpoints, events: context, output };
        site.switch.decide(now, &self.rules, &mut leaving);
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Handles an event of one of the endpoints. On its own: most events are a switch's, whose short way
    /// must not pay for what interfaces do.
    #[inline(never)]
    fn handle_at_endpoint(
        &self,
        site: &mut Site<N>,
        event: &Event<Wire<N::Timer, N::Announcement>>,
        output: &mut N::Output,
        context: &mut Context<'_, Wire<N::Timer, N::Announcement>, Credit>,
    ) {
        let entity = event.order.entity();
        let index = entity as usize - 1;
        let endpoint = &mut site.endpoints[index];
        let mut at_interface = InterfaceContext {
            endpoint: endpoint.id,
            entity,
            directory: &self.directory,
            events: context,
            output,
            pump: false,
        };
        if let Wire::Packet(packet) = &event.payload {
            endpoint.received += 1;
            endpoint.received_payload += u64::from(packet.bytes);
        }
        let Endpoint { interface, pump, .. } = endpoint;
        at_interface.hand(&event.payload, interface, pump, &self.interface);
        if at_interface.pump {
            self.pump(endpoint, site.endpoint_ports[index], &self.rules, &mut at_interface);
        }
    }

    /// Injects packets as long as the line is free and the switch has room.
    fn pump(
        &self,
        endpoint: &mut Endpoint<N>,
        port: u16,
        rules: &Rules<T>,
        context: &mut InterfaceContext<'_, '_, N>,
    ) {
        let now = context.now();
        if endpoint.line.busy_until() > now {
            let free = endpoint.line.busy_until();
            return endpoint.pump_at(free, context.entity, context.events);
        }
        let (mut packet, since) = match endpoint.staged.take() {
            Some(staged) => staged,
            None => match endpoint.interface.supply(&self.interface, context) {
                Supply::Packet(packet) => {
                    endpoint.supplied += 1;
                    (packet, now)
                }
                Supply::NotBefore(time) => return endpoint.pump_at(time, context.entity, context.events),
                Supply::Nothing => return,
            },
        };
        let room = rules.room(&packet);
        endpoint.collect_credits(now);
        if endpoint.credits < room {
            endpoint.staged = Some((packet, since));
            return endpoint.pump_at(endpoint.next_credit(), context.entity, context.events);
        }
        endpoint.stalled += now - since;
        endpoint.credits -= room;
        let layout = &self.rules.topology;
        let class = layout.link_class(SwitchId(context.events.site().0), PortId(port.into()));
        let link = &self.rules.links[usize::from(class.0)];
        let bytes = rules.packet_bytes(&packet) + link.framing;
        let end = endpoint.line.send(&link.rate, now, bytes);
        endpoint.packets += 1;
        endpoint.acknowledgements += packet.acknowledges();
        endpoint.payload += u64::from(packet.bytes);
        packet.address = layout.endpoint_address(packet.destination);
        packet.port = port;
        packet.vc = 0;
        packet.hops = 1;
        packet.stretch = (end - now).as_ps() as u32;
        if packet.watch {
            let Packet { source, message, label, .. } = packet;
            let (from, latency) = (LinkEnd::Endpoint(source), link.latency);
            let hop = HopRecord {
                source,
                message,
                label,
                from,
                to: Some(SwitchId(context.events.site().0)),
                class,
                came: since,
                ready: since,
                could: since,
                began: now,
                ended: end,
                free: end,
                latency,
            };
            N::hop(context.output, &hop);
        }
        let site = context.events.site();
        let tail = end + link.latency;
        let fate = endpoint.fault.as_mut().map_or(Fate::Arrives, |fault| fault.strike(&mut packet, tail));
        match fate {
            Fate::Arrives => {
                let (time, order) = (now + link.latency, Order::new(0, kind::PACKET));
                context.events.send(Event { time, site, order, payload: Wire::Packet(packet) });
            }
            Fate::Lost => endpoint.expect_credit(tail + link.latency, room),
        }
        let next = end.max(endpoint.interface.next_supply(end, &self.interface));
        endpoint.pump_at(next, context.entity, context.events);
    }
}
