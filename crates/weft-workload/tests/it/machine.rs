//! A machine with a traffic source at every endpoint, whose slots align: every packet takes a whole
//! number of clock cycles on every line, so that a synchronous start keeps switches in step.

use std::sync::atomic::AtomicBool;
use weft_engine::Simulation;
use weft_fabric::parameters::{
    ArbiterKind, BufferPer, CreditUnit, FasterLink, Forwarding, PacketFormat, SwitchKind, SwitchParameters,
};
use weft_fabric::{LinkEnd, LinkLayer, LinkParameters, LinkReport, Network, NetworkParameters};
use weft_nic::edge_form::PortUse;
use weft_nic::{NicParameters, OverheadsNic, OverheadsParameters};
use weft_topo::{Attachment, Dimension, DimensionOrder, Layout, Routing, Star, StarRouting, Topology, Torus};
use weft_units::{BitRate, Bytes, Clock, EndpointId, LineCode, Span};
use weft_workload::arrival::Arrival;
use weft_workload::pattern::Pattern;
use weft_workload::traffic::{TrafficParameters, TrafficSource};

/// Bytes of every packet: 250 at 16 Gb/s take 125 ns, which are 25 cycles of 200 MHz.
pub const PACKET: u64 = 250;
/// One packet on a line of 16 Gb/s.
pub const SLOT: Span = Span::from_ns(125);

pub type Run<T = Layout> = Simulation<Network<T, OverheadsNic<TrafficSource>>>;

pub fn star(endpoints: u64) -> Layout {
    Layout::Star(StarRouting::new(Star::new(endpoints).unwrap()))
}

pub fn torus(sizes: &[u64]) -> Layout {
    let dimensions: Vec<_> = sizes.iter().map(|&size| Dimension { size, wrap: true }).collect();
    Layout::Torus(DimensionOrder::new(Torus::new(&dimensions, 1).unwrap(), true))
}

pub fn link() -> LinkParameters {
    LinkParameters {
        rate: BitRate::from_gigabits(16),
        code: LineCode::NONE,
        latency: Span::from_ns(20),
        framing: Bytes::ZERO,
        routing: Span::ZERO,
        layer: LinkLayer::PLAIN,
    }
}

/// A switch at 200 MHz whose buffers hold so many packets.
pub fn switch(kind: SwitchKind, arbiter: ArbiterKind, packets: u64) -> SwitchParameters {
    SwitchParameters {
        kind,
        arbiter,
        clock: Clock::from_hertz(200_000_000).unwrap(),
        pipeline_cycles: 2,
        forwarding: Forwarding::VirtualCutThrough,
        faster_link: FasterLink::Bubble,
        buffer_per: BufferPer::Channel,
        flow_control: weft_fabric::parameters::FlowControl::Credits,
        channels: weft_fabric::parameters::ChannelParameters::default(),
        buffer: Bytes::new(packets * PACKET),
        credit: CreditUnit::Bytes,
        output_buffer: None,
    }
}

/// A network of one kind of switch.
pub struct Machine<T> {
    pub layout: T,
    /// By class of link.
    pub links: Vec<LinkParameters>,
    pub switch: SwitchParameters,
}

impl<T: Topology + Routing + Sync> Machine<T> {
    /// All links of the layout are alike.
    pub fn new(layout: T, switch: SwitchParameters) -> Machine<T> {
        Machine { links: vec![link(); layout.link_classes().len()], layout, switch }
    }

    /// Sources at every endpoint whose messages of one packet follow `pattern` and `arrival`; the interface
    /// costs nothing.
    pub fn begin(self, pattern: Pattern, arrival: &Arrival, seed: u64) -> Run<T> {
        let Machine { layout, links, switch } = self;
        let (header, footer, payload) = (Bytes::ZERO, Bytes::ZERO, Bytes::new(PACKET));
        let simple = OverheadsParameters::free(payload);
        let traffic = TrafficParameters {
            pattern: pattern.clone(),
            bytes: payload,
            messages: None,
            interfaces: 1,
            report_messages: false,
            report_ways: false,
            report_flows: false,
            flows_have_destinations: false,
            ports: PortUse::default(),
        };
        let format = PacketFormat { header, footer, payload };
        let parameters = NetworkParameters { layout, format, links, switch, seed };
        let source =
            |e: EndpointId, _: &_| OverheadsNic::new(TrafficSource::new(e, arrival.clone(), &pattern, seed));
        let initial =
            Network::build(parameters, NicParameters { interface: simple, host: traffic }, source).unwrap();
        Simulation::new(initial, 1)
    }
}

/// Runs for `span` more.
pub fn advance<T: Topology + Routing + Sync>(run: &mut Run<T>, span: Span) {
    let end = run.now() + span;
    run.run_until(end, &AtomicBool::new(false));
}

/// Sets all counters and reports to zero, at the end of warm-up.
pub fn reset<T: Topology + Routing + Sync>(run: &mut Run<T>) {
    let now = run.now();
    run.sites_mut().for_each(|(_, site)| site.reset_counters(now));
    run.outputs_mut().for_each(|output| *output = Default::default());
}

/// The load of every direction of every link since the last reset.
pub fn links<T: Topology + Routing + Sync>(run: &Run<T>) -> Vec<LinkReport> {
    run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now())).collect()
}

/// Packets injected, and packets delivered, by endpoint.
pub fn injected_and_delivered<T: Topology + Routing + Sync>(run: &Run<T>) -> (Vec<u64>, Vec<u64>) {
    let endpoints = run.model().layout().endpoints() as usize;
    let (mut injected, mut delivered) = (vec![0; endpoints], vec![0; endpoints]);
    for link in links(run) {
        if let LinkEnd::Endpoint(from) = link.from {
            injected[from.index()] += link.packets;
        }
        if let Attachment::Endpoint(to) = link.to {
            delivered[to.index()] += link.packets;
        }
    }
    (injected, delivered)
}

/// Packets of every endpoint per slot, over `slots` after a warm-up of `warm_up` slots.
pub fn throughput<T: Topology + Routing + Sync>(run: &mut Run<T>, warm_up: u64, slots: u64) -> f64 {
    advance(run, Span::from_ps(SLOT.as_ps() * warm_up));
    reset(run);
    advance(run, Span::from_ps(SLOT.as_ps() * slots));
    let delivered = injected_and_delivered(run).1;
    delivered.iter().sum::<u64>() as f64 / delivered.len() as f64 / slots as f64
}

/// Arrivals at twice the rate of a link: sources that always have something to send.
pub fn saturated() -> Arrival {
    Arrival::Periodic(weft_workload::arrival::Periodic::new(SLOT.as_ps() / 2, 1).unwrap())
}

/// A source of 64-bit numbers for patterns that draw something when they are made.
pub fn rng() -> impl FnMut() -> u64 {
    let mut stream = weft_engine::Stream::new(1, 0, 0);
    move || stream.next_u64()
}
