//! The ideal network: latency and gaps, no queues (LogGP, Alexandrov et al. 1995; the per-message and
//! per-byte overheads of LogGOPS, Hoefler et al. 2010, are the host's).
//!
//! ```text
//!  sender    ├─ size/rate ─┤
//!                          ├──── latency ────┤ arrives
//!            ├───── gap ──────┤ next message may start
//! ```

use crate::endpoint::schedule_pump;
use crate::hop::HopRecord;
use crate::interface::{Directory, Interface, InterfaceContext, Supply};
use crate::network::LinkEnd;
use crate::packet::{Credit, Packet, Wire, kind};
use crate::parameters::IdealParameters;
use serde::{Deserialize, Serialize};
use weft_engine::{Context, Event, Lookahead, Model, Order, SiteId};
use weft_topo::LinkClass;
use weft_units::{Bytes, EndpointId, Line, LineCode, LineRate, Span, Time};

/// The ideal network: what all its endpoints share.
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
    pump: Time,
    packets: u64,
    /// How many of them were acknowledgements.
    acknowledgements: u64,
    payload: u64,
}

/// The model, its sites, what begins it, and its lookahead.
pub type BuiltIdeal<N> = (
    Ideal<N>,
    Vec<IdealSite<N>>,
    Vec<Event<Wire<<N as Interface>::Timer, <N as Interface>::Announcement>>>,
    Lookahead,
);

impl<N: Interface> Ideal<N> {
    /// An ideal network of `endpoints`, with an interface behind each.
    pub fn build(
        parameters: IdealParameters,
        endpoints: u32,
        interface: N::Parameters,
        mut make_interface: impl FnMut(EndpointId, &N::Parameters) -> N,
    ) -> BuiltIdeal<N> {
        // Without latency no endpoint can look ahead of another, so that all are one site.
        let alone = parameters.latency > Span::ZERO;
        let place = |e: u32| if alone { (SiteId(e), 0) } else { (SiteId(0), e) };
        let mut events = Vec::new();
        let mut make = |id: EndpointId| {
            let interface = make_interface(id, &interface);
            if interface.is_active() {
                let (site, entity) = place(id.0);
                let order = Order::new(entity, kind::START);
                events.push(Event { time: Time::ZERO, site, order, payload: Wire::Start });
            }
            IdealEndpoint {
                id,
                interface,
                line: Line::default(),
                pump: Time::MAX,
                packets: 0,
                acknowledgements: 0,
                payload: 0,
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
        (Ideal { parameters, rate, directory, interface }, sites, events, lookahead)
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

    /// What the interfaces share.
    pub fn interface_parameters(&self) -> &N::Parameters {
        &self.interface
    }

    fn pump(&self, endpoint: &mut IdealEndpoint<N>, context: &mut InterfaceContext<'_, '_, N>) {
        loop {
            let now = context.now();
            let free = endpoint.line.busy_until();
            if free > now {
                return schedule_pump(&mut endpoint.pump, free, context.entity, context.events);
            }
            let mut packet = match endpoint.interface.supply(&self.interface, context) {
                Supply::Packet(packet) => packet,
                Supply::NotBefore(time) => {
                    return schedule_pump(&mut endpoint.pump, time, context.entity, context.events);
                }
                Supply::Nothing => return,
            };
            let end = endpoint.line.send(&self.rate, now, packet.payload());
            endpoint.line.hold(now + self.parameters.gap);
            endpoint.packets += 1;
            endpoint.acknowledgements += packet.acknowledges();
            endpoint.payload += u64::from(packet.bytes);
            packet.hops = 1;
            if packet.watch {
                let Packet { source, message, label, .. } = packet;
                let (from, latency) = (LinkEnd::Endpoint(source), self.parameters.latency);
                let hop = HopRecord {
                    source,
                    message,
                    label,
                    from,
                    to: None,
                    class: LinkClass(0),
                    came: now,
                    ready: now,
                    could: now,
                    began: now,
                    ended: end,
                    free: endpoint.line.busy_until(),
                    latency,
                };
                N::hop(context.output, &hop);
            }
            let (site, entity) = self.directory.place(packet.destination);
            let order = Order::new(entity, kind::PACKET);
            let time = end + self.parameters.latency;
            context.events.send(Event { time, site, order, payload: Wire::Packet(packet) });
        }
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
            (endpoint.packets, endpoint.payload, endpoint.acknowledgements) = (0, 0, 0);
        }
    }

    /// How many of the packets sent since the counters were last reset were acknowledgements.
    pub fn acknowledgements(&self) -> u64 {
        self.endpoints.iter().map(|endpoint| endpoint.acknowledgements).sum()
    }

    /// (endpoint, packets, payload) sent since the counters were last reset.
    pub fn sent(&self) -> impl Iterator<Item = (EndpointId, u64, Bytes)> {
        self.endpoints.iter().map(|e| (e.id, e.packets, Bytes::new(e.payload)))
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
        let entity = event.order.entity();
        let endpoint = &mut site.endpoints[entity as usize];
        let mut at_interface = InterfaceContext {
            endpoint: endpoint.id,
            entity,
            directory: &self.directory,
            events: context,
            output,
            pump: false,
        };
        let IdealEndpoint { interface, pump, .. } = endpoint;
        at_interface.hand(&event.payload, interface, pump, &self.interface);
        if at_interface.pump {
            self.pump(endpoint, &mut at_interface);
        }
    }

    fn note(&self, _: &mut IdealSite<N>, _: Time, _: Credit) {
        unreachable!("the ideal network has no credits")
    }

    #[inline]
    fn decision(_: &IdealSite<N>) -> Time {
        Time::MAX
    }

    fn decide(&self, _: &mut IdealSite<N>, _: &mut N::Output, _: &mut Context<'_, Self::Payload, Credit>) {}
}
