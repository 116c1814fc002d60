//! Scratch.
#![allow(clippy::all, clippy::disallowed_types, clippy::disallowed_methods, missing_docs)]
use std::sync::atomic::AtomicBool;
use weft_engine::Simulation;
use weft_fabric::parameters::*;
use weft_fabric::*;
use weft_nic::*;
use weft_topo::*;
use weft_units::*;
use weft_workload::arrival::*;
use weft_workload::pattern::{Pattern, PatternKind, Settings};
use weft_workload::traffic::*;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let k: u64 = args[1].parse().unwrap();
    let load: u64 = args[2].parse::<f64>().map(|x| (x * 1e6) as u64).unwrap();
    let us: u64 = args[3].parse().unwrap();
    let threads: usize = args.get(4).map_or(1, |t| t.parse().unwrap());
    let dragonfly = args.get(5).is_some();
    let layout = if dragonfly {
        let d = Dragonfly::new(k, 2 * k, k, 2 * k * k + 1, GlobalLinks::Palmtree).unwrap();
        Layout::DragonflyUgal(Ugal::new(d, 0))
    } else {
        let t = Torus::new(&[k, k, k].map(|size| Dimension { size, wrap: true }), 1).unwrap();
        Layout::Torus(DimensionOrder::new(t, true))
    };
    let n = layout.endpoints();
    let payload = Bytes::new(if dragonfly { 4096 } else { 256 });
    let link = LinkParameters {
        rate: BitRate::from_gigabits(100),
        code: LineCode::B64_66,
        latency: Span::from_ns(100),
        framing: Bytes::ZERO,
    };
    let ip = std::env::var("IP").is_ok() && !dragonfly;
    let mut links = vec![link; layout.link_classes().len()];
    let mut link = link;
    if ip {
        let other = LinkParameters {
            rate: BitRate::from_bits_per_second(20_625_000_000),
            code: LineCode::B64_66,
            latency: Span::from_ns(200),
            framing: Bytes::new(8),
        };
        links = vec![other; links.len()];
        link = LinkParameters {
            rate: BitRate::from_bits_per_second(12_800_000_000),
            code: LineCode::NONE,
            latency: Span::from_ns(30),
            framing: Bytes::ZERO,
        };
        links[0] = link;
    }
    let parameters = NetworkParameters {
        links,
        layout,
        format: PacketFormat { header: Bytes::new(16), footer: Bytes::new(16), payload },
        switch: SwitchParameters {
            kind: SwitchKind::InputQueued,
            arbiter: ArbiterKind::RoundRobin,
            clock: Clock::from_hertz(if ip { 100_000_000 } else { 200_000_000 }).unwrap(),
            pipeline_cycles: if ip { 22 } else { 3 },
            forwarding: Forwarding::VirtualCutThrough,
            faster_link: FasterLink::Bubble,
            buffer: Bytes::new(if dragonfly { 32768 } else { 8192 }),
            credit: CreditUnit::Bytes,
            output_buffer: None,
        },
        seed: 1,
    };
    let pattern =
        Pattern::new(PatternKind::Uniform, &parameters.layout, &Settings::default(), &mut || 1).unwrap();
    let traffic = TrafficParameters {
        pattern: pattern.clone(),
        bytes: payload,
        report_messages: false,
        report_flows: false,
        flows_have_destinations: false,
    };
    let simple = SimpleParameters {
        send_message: if ip { Span::from_ns(60) } else { Span::ZERO },
        send_packet: Span::ZERO,
        receive_packet: Span::ZERO,
        receive_message: if ip { Span::from_ns(160) } else { Span::ZERO },
        payload,
        channels: 8,
    };
    let t0 = std::time::Instant::now();
    let span = LineRate::new(link.rate, link.code).unwrap().span(payload + Bytes::new(32)).as_ps();
    let built = Network::build(parameters, (simple, traffic), |e| {
        let arrival = Arrival::Poisson(Poisson::new(span * 1_000_000, load).unwrap());
        SimpleNic::new(Source::new(e, arrival, &pattern, 1))
    })
    .unwrap();
    let mut sim = Simulation::new(built.network, built.sites, built.events, built.lookahead, threads);
    eprintln!("built {:?} partitions {}", t0.elapsed(), sim.partitions());
    let rss = || {
        std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .find(|l| l.starts_with("VmHWM"))
            .unwrap()
            .to_string()
    };
    eprintln!("{} endpoints {n}", rss());
    let never = AtomicBool::new(false);
    sim.run_until(Time::from_ps(us * 1_000_000 / 5), &never);
    let hops = |sim: &Simulation<Network<Layout, SimpleNic<Source>>>| -> u64 {
        sim.sites().map(|(id, s)| sim.model().links_of(id, s, sim.now()).map(|l| l.packets).sum::<u64>()).sum()
    };
    let before = hops(&sim);
    let e0 = sim.events_handled();
    for o in sim.outputs_mut() {
        *o = Default::default();
    }
    let t0 = std::time::Instant::now();
    sim.run_until(Time::from_ps(us * 1_000_000), &never);
    let dt = t0.elapsed().as_secs_f64();
    let h = hops(&sim) - before;
    let mut out = TrafficOutput::default();
    for o in sim.outputs_mut() {
        out.latency.merge(&o.latency);
        out.bytes += o.bytes;
    }
    let accepted =
        out.bytes.get() as f64 / payload.get() as f64 * span as f64 / (us as f64 * 0.8e6) / n as f64;
    eprintln!(
        "{:.3}s {h} hops {:.2} M/s; events/hop {:.2} accepted {accepted:.4} mean {:?} p99 {:?} {}",
        dt,
        h as f64 / dt / 1e6,
        (sim.events_handled() - e0) as f64 / h as f64,
        out.latency.mean().unwrap(),
        out.latency.percentile(99).unwrap(),
        rss()
    );
    if threads == 1 {
        check_credits(&sim).unwrap();
    }
}
