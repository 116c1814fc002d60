//! A topology and two routings of one's own, with the proof that they cannot deadlock, under uniform
//! traffic. The book's pages on adding them are made of this file.

#![allow(clippy::unwrap_used, reason = "its parameters are constants, and its tests run it")]

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use weft_engine::Simulation;
use weft_fabric::parameters::*;
use weft_fabric::{LinkLayer, LinkParameters, Network, NetworkParameters};
use weft_nic::edge_form::PortUse;
use weft_nic::{NicParameters, OverheadsNic, OverheadsParameters};
use weft_topo::{
    Address, AtSwitch, Attachment, Channel, LinkClass, LocalView, NextHop, Ranked, RouteState, Routing,
    Topology, prove,
};
use weft_units::{BitRate, Bytes, Clock, EndpointId, LineCode, PortId, Span, SwitchId, Time, VcId};
use weft_workload::arrival::{Arrival, Poisson};
use weft_workload::pattern::{Pattern, Uniform};
use weft_workload::traffic::{TrafficOutput, TrafficParameters, TrafficSource};

// ANCHOR: topology
/// Switches that are all joined to each other. Ports of a switch: its endpoints, then the links to the
/// switch one ahead of it, two ahead, and so on around the circle.
struct FullMesh<R> {
    switches: u32,
    endpoints_per_switch: u32,
    routing: PhantomData<R>,
}

impl<R> Topology for FullMesh<R> {
    fn endpoints(&self) -> u32 {
        self.switches * self.endpoints_per_switch
    }
    fn switches(&self) -> u32 {
        self.switches
    }
    fn ports(&self, _: SwitchId) -> u32 {
        self.endpoints_per_switch + self.switches - 1
    }
    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        match port.0.checked_sub(self.endpoints_per_switch) {
            None => Attachment::Endpoint(EndpointId(switch.0 * self.endpoints_per_switch + port.0)),
            Some(link) => {
                let other = SwitchId((switch.0 + link + 1) % self.switches);
                Attachment::Switch(other, self.port_to(other, switch))
            }
        }
    }
    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        let per_switch = self.endpoints_per_switch;
        (SwitchId(endpoint.0 / per_switch), PortId(endpoint.0 % per_switch))
    }
    fn link_class(&self, _: SwitchId, port: PortId) -> LinkClass {
        LinkClass(u8::from(port.0 >= self.endpoints_per_switch))
    }
    fn link_classes(&self) -> Vec<&str> {
        vec!["endpoint", "mesh"]
    }
    fn switch_address(&self, switch: SwitchId) -> Address {
        Address(switch.0.into())
    }
    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        Address(endpoint.0.into())
    }
}
// ANCHOR_END: topology

// ANCHOR: direct
impl<R> FullMesh<R> {
    fn new(switches: u32, endpoints_per_switch: u32) -> FullMesh<R> {
        FullMesh { switches, endpoints_per_switch, routing: PhantomData }
    }
    fn port_to(&self, from: SwitchId, to: SwitchId) -> PortId {
        PortId(self.endpoints_per_switch + (to.0 + self.switches - from.0) % self.switches - 1)
    }
    fn towards(&self, switch: SwitchId, to: Address) -> PortId {
        let (target, port) = self.attachment(EndpointId(to.0 as u32));
        if target == switch { port } else { self.port_to(switch, target) }
    }
}

/// Straight to the destination's switch.
struct Direct;

impl Routing for FullMesh<Direct> {
    fn virtual_channels(&self) -> u32 {
        1
    }
    fn route(&self, at: AtSwitch, to: Address, _: &mut RouteState, _: &mut impl LocalView) -> NextHop {
        NextHop { port: self.towards(at.switch, to), vc: VcId(0) }
    }
    fn is_deterministic(&self) -> bool {
        true
    }
}

impl Ranked for FullMesh<Direct> {
    fn rank(&self, _: Channel) -> u64 {
        0
    }
    // Behind a link between switches there is only the way out.
    fn successors(&self, _: Channel, _: &mut impl FnMut(Channel)) {}
    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}
// ANCHOR_END: direct

// ANCHOR: valiant
/// By way of a random switch (Valiant 1982): on virtual channel 0 up to it, on channel 1 from there.
struct Valiant;

impl Routing for FullMesh<Valiant> {
    fn virtual_channels(&self) -> u32 {
        2
    }
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let is_first_switch = at.port.0 < self.endpoints_per_switch;
        if is_first_switch && *state == RouteState::default() {
            *state = RouteState(1 + (view.random() % u64::from(self.switches)) as u32);
        }
        let via = SwitchId(state.0 - 1);
        match is_first_switch && via != at.switch {
            true => NextHop { port: self.port_to(at.switch, via), vc: VcId(0) },
            false => NextHop { port: self.towards(at.switch, to), vc: VcId(1) },
        }
    }
    fn is_deterministic(&self) -> bool {
        false
    }
}

impl Ranked for FullMesh<Valiant> {
    fn rank(&self, channel: Channel) -> u64 {
        channel.vc.0.into()
    }
    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(switch, _) = self.peer(channel.switch, channel.port) else { return };
        if channel.vc == VcId(0) {
            let links = self.endpoints_per_switch..self.ports(switch);
            links.for_each(|port| visit(Channel { switch, port: PortId(port), vc: VcId(1) }));
        }
    }
    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}
// ANCHOR_END: valiant

// ANCHOR: run
/// The output of 20 us of uniform traffic at a load of 0.4, in packets of 250 bytes on links of 16 Gb/s.
fn run<R>(layout: FullMesh<R>) -> TrafficOutput
where
    FullMesh<R>: Routing + Ranked + Sync,
{
    println!("{}", prove(&layout).unwrap());
    let (packet, nothing, seed) = (Bytes::new(250), Bytes::ZERO, 7);
    let pattern = Pattern::Uniform(Uniform::new(layout.endpoints(), false).unwrap());
    // A packet takes 125 ns on the line: one every 125 / 0.4 ns on average.
    let arrival = Arrival::Poisson(Poisson::new(1_250_000, 4).unwrap());
    let link = LinkParameters {
        rate: BitRate::from_gigabits(16),
        code: LineCode::NONE,
        latency: Span::from_ns(20),
        framing: nothing,
        routing: Span::ZERO,
        layer: LinkLayer::PLAIN,
    };
    let switch = SwitchParameters {
        kind: SwitchKind::VirtualOutputQueued,
        arbiter: ArbiterKind::RoundRobin,
        clock: Clock::from_hertz(200_000_000).unwrap(),
        pipeline_cycles: 4,
        forwarding: Forwarding::VirtualCutThrough,
        faster_link: FasterLink::Bubble,
        buffer: Bytes::new(4096),
        credit: CreditUnit::Bytes,
        output_buffer: None,
        buffer_per: weft_fabric::parameters::BufferPer::Channel,
        flow_control: weft_fabric::parameters::FlowControl::Credits,
        channels: weft_fabric::parameters::ChannelParameters::default(),
    };
    let interface = OverheadsParameters {
        send_message: Span::from_ns(50),
        send_write: Span::from_ns(50),
        receive_message: Span::from_ns(50),
        ..OverheadsParameters::free(packet)
    };
    let traffic = TrafficParameters {
        pattern: pattern.clone(),
        bytes: packet,
        messages: None,
        interfaces: 1,
        report_messages: true,
        report_ways: false,
        report_flows: false,
        flows_have_destinations: false,
        ports: PortUse::default(),
    };
    let format = PacketFormat { header: nothing, footer: nothing, payload: packet };
    let parameters = NetworkParameters { layout, format, links: vec![link; 2], switch, seed };
    let source =
        |endpoint, _: &_| OverheadsNic::new(TrafficSource::new(endpoint, arrival.clone(), &pattern, seed));
    let initial = Network::build(parameters, NicParameters { interface, host: traffic }, source).unwrap();
    let mut simulation = Simulation::new(initial, 1);
    simulation.run_until(Time::ZERO + Span::from_us(20), &AtomicBool::new(false));
    std::mem::take(simulation.outputs_mut().next().unwrap())
}
// ANCHOR_END: run

fn main() {
    let direct = run(FullMesh::<Direct>::new(9, 4));
    let valiant = run(FullMesh::<Valiant>::new(9, 4));
    for (name, output) in [("direct", direct), ("valiant", valiant)] {
        let mean = output.latency.mean().unwrap();
        println!("{name}: {} messages, mean latency {mean}", output.messages.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most_hops(output: &TrafficOutput) -> u8 {
        output.messages.iter().map(|message| message.hops).max().unwrap()
    }

    /// Catches links whose two ends disagree, and an endpoint at a port that is not its own.
    #[test]
    fn both_ends_of_a_link_agree() {
        let mesh = FullMesh::<Direct>::new(5, 3);
        for switch in (0..5).map(SwitchId) {
            for port in (0..mesh.ports(switch)).map(PortId) {
                match mesh.peer(switch, port) {
                    Attachment::Switch(other, back) => {
                        assert_eq!(mesh.peer(other, back), Attachment::Switch(switch, port));
                    }
                    Attachment::Endpoint(endpoint) => assert_eq!(mesh.attachment(endpoint), (switch, port)),
                    Attachment::Nothing => panic!("every port is joined to something"),
                }
            }
        }
    }

    /// Catches a routing that loses its way: direct takes one link between switches, Valiant two.
    #[test]
    fn both_routings_deliver_by_their_ways() {
        let direct = run(FullMesh::<Direct>::new(9, 4));
        let valiant = run(FullMesh::<Valiant>::new(9, 4));
        assert_eq!((most_hops(&direct), most_hops(&valiant)), (3, 4));
        // 36 endpoints offer 64 messages each in that time.
        for output in [&direct, &valiant] {
            assert!((2000..2600).contains(&output.messages.len()), "{}", output.messages.len());
        }
        assert!(valiant.latency.mean() > direct.latency.mean());
    }
}
