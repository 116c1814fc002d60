//! The latency of a packet that is alone, to the picosecond, against the documented timing written
//! anew: rational clock edges and bit times, no code of the fabric.

use crate::machines::{
    ARBITERS, KINDS, NO_BIAS, dragonfly, dragonfly_routed, exanest, hyperx, link, megafly_routed, plain,
    slim_fly, star, torus, tree, tree_routed, ugal,
};
use crate::scripted::{Arrived, Machine, Planned, Script};
use proptest::prelude::*;
use weft_engine::Stream;
use weft_fabric::parameters::{FasterLink, Forwarding};
use weft_fabric::{GapRule, LinkParameters};
use weft_topo::{
    Ascent, DragonflyRouting, GraphRouting, HyperXRouting, Layout, MegaflyRouting, Topology, TreeRouting,
    idle_path,
};
use weft_units::{Bytes, Clock, EndpointId, LineCode, Span, Time};

/// The textbook's view of a machine, in picoseconds.
pub struct Timing {
    hertz: u64,
    pipeline_cycles: u64,
    overhead: u64,
    forwarding: Forwarding,
    faster_link: FasterLink,
}

impl Timing {
    fn edge(&self, n: u128) -> u64 {
        (n * 1_000_000_000_000).div_ceil(u128::from(self.hertz)) as u64
    }

    /// Number of the first edge at or after `t`, by trying the neighbours of the quotient.
    fn edge_number(&self, t: u64) -> u128 {
        let near = u128::from(t) * u128::from(self.hertz) / 1_000_000_000_000;
        (near.saturating_sub(1)..).find(|&n| self.edge(n) >= t).unwrap()
    }

    fn span(&self, link: &LinkParameters, payload: u32) -> u64 {
        // Padded to the smallest frame, then to words: up, or down where the gap makes up for it.
        let layer = &link.layer;
        let packet = (u64::from(payload) + self.overhead).max(layer.smallest.get());
        let (framing, framed, word) = (link.framing.get(), layer.framed.get(), layer.word.get());
        let bytes = u128::from(match layer.gap {
            GapRule::RoundUp => (packet + framed).next_multiple_of(word) + framing - framed,
            GapRule::DeficitIdle => (packet + framing) / word * word,
        });
        let bits = bytes * 8 * u128::from(link.code.wire);
        let per_second = u128::from(link.rate.bits_per_second()) * u128::from(link.code.payload);
        (bits * 1_000_000_000_000).div_ceil(per_second) as u64
    }

    /// Time at which the tail arrives of a packet that starts at `start` over `links`.
    ///
    /// Injection starts at once. At every switch the decision falls on the first edge at which the
    /// packet may go; after the pipeline its head is on the line, and its tail follows at the line's
    /// rate, but not before it has come and crossed in turn.
    pub fn delivery(&self, links: &[LinkParameters], start: u64, payload: u32) -> u64 {
        let to_arbiter = |link: &LinkParameters| (link.latency + link.routing).as_ps();
        let mut head = start + to_arbiter(&links[0]);
        let mut tail = head + self.span(&links[0], payload);
        for link in &links[1..] {
            let span = self.span(link, payload);
            let may_go = match (self.forwarding, self.faster_link) {
                (Forwarding::StoreAndForward, _) => tail,
                (_, FasterLink::Store) if span < tail - head => tail,
                (_, FasterLink::Delay) if span < tail - head => tail - span,
                _ => head,
            };
            let edge = self.edge_number(head.max(may_go));
            let decision = self.edge(edge);
            let begin = self.edge(edge + u128::from(self.pipeline_cycles));
            let end = (begin + span).max(tail + begin - decision);
            (head, tail) = (begin + to_arbiter(link), end + to_arbiter(link));
        }
        tail
    }
}

pub fn timing(machine: &Machine, hertz: u64) -> Timing {
    Timing {
        hertz,
        pipeline_cycles: machine.switch.pipeline_cycles.into(),
        overhead: machine.format.header.get() + machine.format.footer.get(),
        forwarding: machine.switch.forwarding,
        faster_link: machine.switch.faster_link,
    }
}

/// Links on the way, injection first.
fn links_of(machine: &Machine, from: EndpointId, to: EndpointId) -> Vec<LinkParameters> {
    let layout = &machine.layout;
    let (switch, port) = layout.attachment(from);
    let class = |switch, port| machine.links[usize::from(layout.link_class(switch, port).0)];
    let mut links = vec![class(switch, port)];
    idle_path(layout, from, to, |switch, port| links.push(class(switch, port)));
    links
}

/// Sends `count` packets far apart between random endpoints and compares every one.
pub fn check_lone_packets(machine: &Machine, hertz: u64, count: u64, seed: u64) -> Result<(), TestCaseError> {
    let endpoints = machine.layout.endpoints();
    let mut rng = Stream::new(seed, 0, 99);
    let mut script: Script = vec![Vec::new(); endpoints as usize];
    let mut expected = Vec::new();
    let timing = timing(machine, hertz);
    for n in 1..=count {
        let from = EndpointId(rng.below(endpoints));
        let to = EndpointId(rng.below(endpoints));
        if !machine.layout.reachable(from, to) {
            continue;
        }
        // A hundred microseconds apart, at any phase of the clock.
        let at = n * 100_000_000 + u64::from(rng.below(20_000));
        let bytes = [0, 1, 256, rng.below(257)][rng.below(4) as usize];
        let links = links_of(machine, from, to);
        let message = script[from.index()].len() as u32;
        let offered = Time::from_ps(at);
        script[from.index()].push(Planned { at: offered, to, bytes });
        let arrives = Time::from_ps(timing.delivery(&links, at, bytes));
        let hops = links.len() as u8;
        expected.push(Arrived { at: arrives, source: from, message, destination: to, bytes, offered, hops });
    }
    prop_assert_eq!(machine.arrivals(&script), expected);
    Ok(())
}

fn layouts() -> Vec<Layout> {
    vec![
        torus(&[4, 3, 5], true, 2, true),
        torus(&[5, 4], false, 1, true),
        exanest(8),
        exanest(12),
        tree(3, 3, Ascent::DModK),
        dragonfly(2, 4, 2, 9),
        ugal(2, 3, 1, 4),
        star(9),
        // Every other family, with a routing that draws nothing where queues are empty.
        dragonfly_routed(DragonflyRouting::Par { ugal_threshold: NO_BIAS }),
        dragonfly_routed(DragonflyRouting::UgalG { ugal_threshold: NO_BIAS }),
        megafly_routed(MegaflyRouting::Minimal),
        megafly_routed(MegaflyRouting::UgalG { ugal_threshold: NO_BIAS }),
        tree_routed(TreeRouting::DModK),
        tree_routed(TreeRouting::Ecmp { hash_seed: 3 }),
        slim_fly(GraphRouting::ShortestPath),
        slim_fly(GraphRouting::Ecmp { hash_seed: 1 }),
        hyperx(HyperXRouting::DimensionOrder),
        hyperx(HyperXRouting::UgalL { ugal_threshold: NO_BIAS }),
        hyperx(HyperXRouting::UgalG { ugal_threshold: NO_BIAS }),
    ]
}

/// Catches a cycle, an edge, a picosecond or a line too many or too few anywhere on any path: all
/// topologies × switches × forwarding × 150 MHz (6666⅔ ps) and 200 MHz, links of one rate.
#[test]
fn a_lone_packet_takes_what_the_timing_says() {
    for layout in layouts() {
        for kind in KINDS {
            for forwarding in [Forwarding::VirtualCutThrough, Forwarding::StoreAndForward] {
                for (hertz, arbiter) in [(150_000_000, ARBITERS[0]), (200_000_000, ARBITERS[2])] {
                    let mut machine = plain(layout.clone(), kind, 4);
                    machine.switch.clock = Clock::from_hertz(hertz).unwrap();
                    (machine.switch.forwarding, machine.switch.arbiter) = (forwarding, arbiter);
                    check_lone_packets(&machine, hertz, 20, hertz).unwrap();
                }
            }
        }
    }
}

/// Catches a mistake where links of different rate meet: the ExaNeSt rack's 16 Gb/s inside a QFDB and
/// 10 Gb/s between them, 64B/66B, with each way of entering the faster link; and routing logic behind links.
#[test]
fn rates_meet_on_the_exanest_rack() {
    for kind in KINDS {
        for mode in [FasterLink::Bubble, FasterLink::Delay, FasterLink::Store] {
            for hertz in [150_000_000, 200_000_000] {
                let mut machine = plain(exanest(8), kind, 4);
                let fast = link(16_000, LineCode::B64_66, 120_000, 8);
                let slow = link(10_000, LineCode::B64_66, 120_001, 8);
                let slow = LinkParameters { routing: Span::from_ps(121_000), ..slow };
                machine.links = vec![fast, fast, fast, slow, slow, slow];
                (machine.switch.faster_link, machine.switch.clock) =
                    (mode, Clock::from_hertz(hertz).unwrap());
                check_lone_packets(&machine, hertz, 100, 5).unwrap();
            }
        }
    }
}

/// Numbers worked out on paper, so that the closed form above is itself checked once: M1QAF2 to M1QBF1 (16
/// Gb/s inside the QFDB to F1 and to its router, 10 Gb/s on the X ring), 200 MHz, pipeline of two cycles, 256
/// B of payload in 288 B, latencies of 100 ns, no code and no framing.
///
/// ```text
///  injection     0                 144 ns on 16 Gb/s: head at 100, tail at 244
///  F2            edge 100, out 110 head at 210, tail at 354
///  F1 of QA      edge 210, out 220 head at 320, tail at 464
///  router of QA  edge 320, out 330 230.4 ns on 10 Gb/s: head at 430, tail at 330 + 230.4 + 100 = 660.4
///  router of QB  edge 430, out 440 onto 16 Gb/s, but the tail (in at 660.4) leaves at 670.4, is in at 770.4
///  F1 of QB      edge 540, out 550 the tail leaves at 780.4
///  endpoint      tail at 880.4
/// ```
/// With `delay` the last router starts at the first edge from 660.4 - 144 = 516.4: 520, out 530, head at
/// 630, and F1 passes it on: out 640, ends 784, arrives 884. With `store` at the edge 665: out 675, head at
/// 775, and F1: out 785, ends 929, arrives 1029.
#[test]
fn a_path_by_hand() {
    for (mode, expected_ps) in
        [(FasterLink::Bubble, 880_400), (FasterLink::Delay, 884_000), (FasterLink::Store, 1_029_000)]
    {
        let mut machine = plain(exanest(8), KINDS[0], 4);
        let (fast, slow) =
            (link(16_000, LineCode::NONE, 100_000, 0), link(10_000, LineCode::NONE, 100_000, 0));
        machine.links = vec![fast, fast, fast, slow, slow, slow];
        (machine.switch.faster_link, machine.switch.clock) = (mode, Clock::from_hertz(200_000_000).unwrap());
        let mut script: Script = vec![Vec::new(); 128];
        script[1].push(Planned { at: Time::ZERO, to: EndpointId(4), bytes: 256 });
        let arrived = machine.arrivals(&script);
        assert_eq!((arrived[0].at.as_ps(), arrived[0].hops), (expected_ps, 6), "{mode:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Catches what round numbers hide: any clock, rates, latencies, code, framing and format, links of
    /// each class different.
    #[test]
    fn a_lone_packet_on_any_machine(
        (which, kind) in (0..layouts().len(), 0usize..4),
        (hertz, cycles) in (1_000_000u64..3_000_000_000, 0u32..6),
        (store, mode) in (any::<bool>(), 0usize..3), (overhead, seed) in (0u64..40, any::<u64>()),
    ) {
        let mut machine = plain(layouts().swap_remove(which), KINDS[kind], 4);
        let mut rng = Stream::new(seed, 1, 2);
        for class in &mut machine.links {
            let code = [LineCode::NONE, LineCode::B64_66, LineCode::B8_10][rng.below(3) as usize];
            let (megabits, latency) = (200 + rng.below(40_000), 1 + rng.below(200_000));
            *class = link(megabits.into(), code, latency.into(), rng.below(20).into());
        }
        machine.format.header = Bytes::new(overhead);
        machine.switch.buffer = Bytes::new(1024);
        machine.switch.clock = Clock::from_hertz(hertz).unwrap();
        machine.switch.pipeline_cycles = cycles;
        machine.switch.forwarding = match store {
            true => Forwarding::StoreAndForward,
            false => Forwarding::VirtualCutThrough,
        };
        machine.switch.faster_link = [FasterLink::Bubble, FasterLink::Delay, FasterLink::Store][mode];
        check_lone_packets(&machine, hertz, 12, seed)?;
    }
}

/// Without any cost of switches the closed form is one line: serialization once, latency per link.
#[test]
fn cut_through_pays_serialization_once_and_store_and_forward_at_every_link() {
    for (forwarding, serializations) in [(Forwarding::VirtualCutThrough, 1), (Forwarding::StoreAndForward, 4)]
    {
        let mut machine = plain(torus(&[8], true, 1, true), KINDS[0], 4);
        machine.switch.clock = Clock::from_hertz(1_000_000_000_000).unwrap();
        (machine.switch.pipeline_cycles, machine.switch.forwarding) = (0, forwarding);
        let mut script: Script = vec![Vec::new(); 8];
        script[0].push(Planned { at: Time::from_ps(3), to: EndpointId(2), bytes: 256 });
        // 288 B at 16 Gb/s are 144 ns; four links of 15 ns.
        let expected = Time::from_ps(3) + Span::from_ps(serializations * 144_000 + 4 * 15_000);
        assert_eq!(machine.arrivals(&script)[0].at, expected);
    }
}
