//! The ideal network: latency and gaps, no queues (LogGP, Alexandrov et al. 1995; the per-message and
//! per-byte overheads of LogGOPS, Hoefler et al. 2010, are the host's).
//!
//! ```text
//!  sender    ├─ size/rate ─┤
//!                          ├──── latency ────┤ arrives
//!            ├───── gap ──────┤ next message may start
//! ```

use crate::credit::Credit;
use crate::event::{Entity, EventKind, Wire};
use crate::hop::{CrossedLink, HopRecord, Instants};
use crate::interface::{Admission, Directory, EndpointPlace, Injection, Interface, InterfaceContext};
use crate::link::{CarriedCounts, Line, LineRate, LinkEnd};
use crate::multicast::{GroupMembers, Memberships, MulticastGroup};
use crate::outlet::EventOutlet;
use crate::packet::Packet;
use crate::parameters::IdealParameters;
use serde::{Deserialize, Serialize};
use weft_engine::{Context, Event, InitialState, Lookahead, Model, SiteId};
use weft_topo::LinkClass;
use weft_units::{Bytes, EndpointId, LineCode, Span, Time};

/// The ideal network: all that its endpoints share.
pub struct Ideal<N: Interface> {
    parameters: IdealParameters,
    rate: LineRate,
    directory: Directory,
    interface: N::Parameters,
}

/// Endpoints that share a site: one each, or all where latency is zero.
#[derive(Serialize, Deserialize)]
#[serde(bound = "N: Interface")]
pub struct IdealSite<N> {
    endpoints: Vec<IdealEndpoint<N>>,
}

#[derive(Serialize, Deserialize)]
struct IdealEndpoint<N> {
    id: EndpointId,
    interface: N,
    line: Line,
    /// The time at which the next injection is due; an event for another time is stale.
    next_injection: Time,
    carried: CarriedCounts,
    /// Acknowledgements among what has been carried.
    acknowledgements: u64,
}

impl<N: Interface> Ideal<N> {
    /// An ideal network of `endpoints`, with an interface behind each.
    pub fn build(
        parameters: IdealParameters,
        endpoints: u32,
        interface: N::Parameters,
        mut make_interface: impl FnMut(EndpointId, &N::Parameters) -> N,
    ) -> InitialState<Ideal<N>> {
        // Without latency no endpoint can look ahead of another, so that all are one site.
        let alone = parameters.latency > Span::ZERO;
        let place = |e: u32| match alone {
            true => EndpointPlace { site: SiteId(e), index: 0 },
            false => EndpointPlace { site: SiteId(0), index: e },
        };
        let mut events = Vec::new();
        let mut make = |id: EndpointId| {
            let interface = make_interface(id, &interface);
            if interface.is_active() {
                events.push(place(id.0).event(EventKind::Start, Time::ZERO, Wire::Start));
            }
            IdealEndpoint {
                id,
                interface,
                line: Line::default(),
                next_injection: Time::NEVER,
                carried: CarriedCounts::default(),
                acknowledgements: 0,
            }
        };
        let all = (0..endpoints).map(|e| make(EndpointId(e)));
        let sites = if alone {
            all.map(|endpoint| IdealSite { endpoints: vec![endpoint] }).collect()
        } else {
            vec![IdealSite { endpoints: all.collect() }]
        };
        let lookahead = Lookahead::across(alone.then_some((parameters.latency, "the ideal network")))
            .unwrap_or(Lookahead::UNLIMITED);
        let rate = parameters.rate.and_then(|rate| LineRate::new(rate, LineCode::NONE));
        let directory = Directory::new((0..endpoints).map(place).collect(), lookahead.span());
        let rate = rate.unwrap_or(LineRate::INSTANT);
        let model = Ideal { parameters, rate, directory, interface };
        InitialState { model, sites, events, lookahead }
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

    /// Constants that the interfaces share.
    pub fn interface_parameters(&self) -> &N::Parameters {
        &self.interface
    }

    /// Sends what the interface has, as long as the line is free; schedules the next injection.
    fn inject(&self, endpoint: &mut IdealEndpoint<N>, context: &mut InterfaceContext<'_, '_, N>) {
        loop {
            let free = endpoint.line.busy_until();
            if free > context.now() {
                return context.schedule_injection(&mut endpoint.next_injection, free);
            }
            match endpoint.interface.inject(&self.interface, context) {
                Injection::Packet(packet) => self.send(endpoint, packet, context),
                Injection::NotBefore(time) => {
                    return context.schedule_injection(&mut endpoint.next_injection, time);
                }
                Injection::Nothing => return,
            }
        }
    }

    fn send(
        &self,
        endpoint: &mut IdealEndpoint<N>,
        mut packet: Packet,
        context: &mut InterfaceContext<'_, '_, N>,
    ) {
        let (now, latency) = (context.now(), self.parameters.latency);
        let ended = endpoint.line.send(&self.rate, now, packet.payload());
        endpoint.line.hold(now + self.parameters.gap);
        endpoint.carried.packets += 1;
        endpoint.carried.payload += u64::from(packet.bytes);
        endpoint.acknowledgements += u64::from(packet.label.is_acknowledgement());
        packet.hops = 1;
        if packet.is_watched() {
            let free = endpoint.line.busy_until();
            let from = LinkEnd::Endpoint(packet.source);
            let link = CrossedLink { from, to: None, class: LinkClass(0), latency, routing: Span::ZERO };
            let (crossed, waking) = (now, Span::ZERO);
            let times =
                Instants { came: now, ready: now, could: now, crossed, began: now, waking, ended, free };
            N::hop(context.output, &HopRecord::new(&packet, link, times));
        }
        let arrives = ended + latency;
        if let Some(group) = MulticastGroup::of(packet.destination) {
            return self.send_to_group(group, (packet, arrives), context);
        }
        let place = self.directory.place(packet.destination);
        context.events.send(place.event(EventKind::Packet, arrives, Wire::Packet(packet)));
    }

    /// Brings a packet to each other member of its group, at the same time.
    #[cold]
    fn send_to_group(
        &self,
        group: MulticastGroup,
        (packet, arrives): (Packet, Time),
        context: &mut InterfaceContext<'_, '_, N>,
    ) {
        for member in self.directory.groups().of(group).others(packet.source) {
            let mut copy = packet;
            copy.destination = member;
            let place = self.directory.place(member);
            context.events.send(place.event(EventKind::Packet, arrives, Wire::Packet(copy)));
        }
    }

    /// Gives the network multicast groups of these members, numbered in their order, before the run begins.
    /// The packet takes its sender's line once, and comes to all members at the same time.
    pub fn set_groups(&mut self, groups: Vec<GroupMembers>) {
        self.directory.set_groups(Memberships::new(groups));
    }
}

impl<N: Interface> IdealSite<N> {
    /// The interfaces of its endpoints.
    pub fn interfaces(&self) -> impl Iterator<Item = (EndpointId, &N)> {
        self.endpoints.iter().map(|e| (e.id, &e.interface))
    }

    /// The interfaces of its endpoints, to be changed at an epoch.
    pub fn interfaces_mut(&mut self) -> impl Iterator<Item = (EndpointId, &mut N)> {
        self.endpoints.iter_mut().map(|e| (e.id, &mut e.interface))
    }

    /// Sets the counters of its links to zero, at the end of warm-up.
    pub fn reset_counters(&mut self) {
        for endpoint in &mut self.endpoints {
            (endpoint.carried, endpoint.acknowledgements) = (CarriedCounts::default(), 0);
        }
    }

    /// Acknowledgements among the packets sent since the counters were last reset.
    pub fn acknowledgements(&self) -> u64 {
        self.endpoints.iter().map(|endpoint| endpoint.acknowledgements).sum()
    }

    /// (endpoint, packets, payload) sent since the counters were last reset.
    pub fn sent(&self) -> impl Iterator<Item = (EndpointId, u64, Bytes)> {
        self.endpoints.iter().map(|e| (e.id, e.carried.packets, Bytes::new(e.carried.payload)))
    }
}

impl<N: Interface> Model for Ideal<N> {
    type Payload = Wire<N::Timer, N::Announcement>;
    type Note = Credit;
    type Site = IdealSite<N>;
    type Output = N::Output;

    #[inline]
    fn handle(
        &self,
        site: &mut IdealSite<N>,
        event: &Event<Self::Payload>,
        output: &mut N::Output,
        context: &mut Context<'_, Self::Payload, Credit>,
    ) {
        let Entity::Endpoint(index) = Entity::of(event.order) else {
            unreachable!("an ideal network has no switches")
        };
        let endpoint = &mut site.endpoints[index as usize];
        let mut context = InterfaceContext {
            now: context.now(),
            endpoint: endpoint.id,
            place: EndpointPlace { site: context.site(), index },
            directory: &self.directory,
            events: EventOutlet::Engine(context),
            output,
            injection_requested: false,
            admission: Admission::ALL,
            flow_table: None,
            received_space: None,
            freed: Vec::new(),
        };
        let IdealEndpoint { interface, next_injection, .. } = endpoint;
        context.hand(&event.payload, interface, next_injection, &self.interface);
        if context.injection_requested {
            self.inject(endpoint, &mut context);
        }
    }

    fn note(&self, _: &mut IdealSite<N>, _: Time, _: Time, _: Credit) {
        unreachable!("the ideal network has no credits")
    }

    #[inline]
    fn decision(_: &IdealSite<N>) -> Time {
        Time::NEVER
    }

    fn decide(&self, _: &mut IdealSite<N>, _: &mut N::Output, _: &mut Context<'_, Self::Payload, Credit>) {}
}
