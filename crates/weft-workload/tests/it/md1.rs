//! An output-queued switch under Poisson arrivals is an M/D/1 queue.

use crate::machine::{Machine, advance, link, reset, star, switch};
use weft_fabric::parameters::{ArbiterKind, SwitchKind};
use weft_topo::{
    Address, AtSwitch, Attachment, LinkClass, LocalView, NextHop, RouteState, Routing, Topology,
};
use weft_units::{BitRate, Clock, EndpointId, PortId, Span, SwitchId};
use weft_workload::arrival::{Arrival, Poisson};
use weft_workload::pattern::{Pattern, PatternKind, Settings};

/// Many fast inputs, one slow output: a star whose endpoint 0 has a link of its own class.
struct Concentrator {
    senders: u32,
}

impl Topology for Concentrator {
    fn endpoints(&self) -> u32 {
        self.senders + 1
    }

    fn switches(&self) -> u32 {
        1
    }

    fn ports(&self, _: SwitchId) -> u32 {
        self.endpoints()
    }

    fn peer(&self, _: SwitchId, port: PortId) -> Attachment {
        Attachment::Endpoint(EndpointId(port.0))
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        (SwitchId(0), PortId(endpoint.0))
    }

    fn link_class(&self, _: SwitchId, port: PortId) -> LinkClass {
        LinkClass(u8::from(port.0 == 0))
    }

    fn link_classes(&self) -> Vec<&str> {
        vec!["input", "output"]
    }

    fn switch_address(&self, _: SwitchId) -> Address {
        Address(0)
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        Address(endpoint.0.into())
    }
}

impl Routing for Concentrator {
    fn virtual_channels(&self) -> u32 {
        1
    }

    fn route(&self, at: AtSwitch, to: Address, _: &mut RouteState, _: &mut impl LocalView) -> NextHop {
        NextHop { port: PortId(to.0 as u32), vc: at.vc }
    }

    fn is_deterministic(&self) -> bool {
        true
    }
}

/// Mean wait over the service time, in `packets` on average.
fn mean_wait(load_percent: u64, packets: u64) -> f64 {
    const SENDERS: u32 = 64;
    // 250 B at 1 Gb/s: 2 µs. The inputs are 100 times faster.
    let service = Span::from_us(2);
    let (fast, mut slow) = (link(), link());
    slow.rate = BitRate::from_gigabits(1);
    let fast = weft_fabric::LinkParameters { rate: BitRate::from_gigabits(100), ..fast };
    let mut switch = switch(SwitchKind::OutputQueued, ArbiterKind::RoundRobin, 1_000);
    // A clock whose cycle is a picosecond: no wait for its edges.
    switch.clock = Clock::from_hertz(1_000_000_000_000).unwrap();
    switch.pipeline_cycles = 0;
    let gap = service.as_ps() * u64::from(SENDERS) * 100;
    let arrival = Arrival::Poisson(Poisson::new(gap, load_percent).unwrap());
    let settings = Settings { target: EndpointId(0), ..Settings::default() };
    let shape = star(u64::from(SENDERS) + 1);
    let pattern = Pattern::new(PatternKind::Incast, &shape, &settings, &mut || 0).unwrap();
    let machine = Machine { layout: Concentrator { senders: SENDERS }, links: vec![fast, slow], switch };
    let mut run = machine.begin(pattern, &arrival, 3);
    advance(&mut run, Span::from_ps(service.as_ps() * 10_000));
    reset(&mut run);
    advance(&mut run, Span::from_ps(service.as_ps() * packets * 100 / load_percent));
    let mut latency = weft_workload::histogram::Histogram::<10>::default();
    run.outputs_mut().for_each(|output| latency.merge(&output.latency));
    assert!(latency.count() > packets * 99 / 100, "{}", latency.count());
    let idle = (service + slow.latency + slow.latency).as_ps();
    (latency.mean().unwrap().as_ps() - idle) as f64 / service.as_ps() as f64
}

/// Pollaczek and Khinchine for constant service: ρ/(2(1−ρ)) service times. Catches an output that
/// loses time between packets, serves two at once, or waits for anything but its line. A packet's wait
/// before injection, which its latency includes, is below 10⁻⁵ of a service time here.
#[test]
fn mean_wait_of_an_output_queue() {
    for (percent, packets) in [(20, 400_000), (50, 400_000), (80, 1_600_000)] {
        let (rho, measured) = (percent as f64 / 100.0, mean_wait(percent, packets));
        let theory = rho / (2.0 * (1.0 - rho));
        assert!((measured / theory - 1.0).abs() < 0.02, "load {rho}: {measured} for {theory}");
    }
}
