//! Machines that several tests share.

use crate::scripted::{Machine, Planned, Script};
use weft_engine::Stream;
use weft_fabric::parameters::{
    ArbiterKind, BufferPer, CreditUnit, FasterLink, Forwarding, PacketFormat, Speedup, SwitchKind,
    SwitchParameters,
};
use weft_fabric::{
    LinkLayer, LinkParameters, LinkProtocol, Minimum, ReplayParameters, TrafficClass, TrafficClasses,
    TrafficKind,
};
use weft_topo::{
    Ascent, Dimension, DimensionOrder, Dragonfly, DragonflyLayout, DragonflyMinimal, DragonflyParameters,
    DragonflyRouting, DragonflySize, Exanest, ExanestOrder, Family, GlobalLinks, GraphRouting,
    HyperXParameters, HyperXRouting, KaryTree, Layout, MegaflyParameters, MegaflyRouting, SlimFlyParameters,
    Star, StarRouting, Topology, Torus, TreeParameters, TreeRouting, Ugal, UpDown,
};
use weft_units::{BitRate, Bytes, Clock, EndpointId, LineCode, Span, Time};

/// Combined queues with a speed-up in thousandths.
pub const fn combined(thousandths: u32) -> SwitchKind {
    SwitchKind::CombinedInputOutput(Speedup::from_thousandths(thousandths).unwrap())
}

pub const KINDS: [SwitchKind; 4] =
    [SwitchKind::InputQueued, SwitchKind::VirtualOutputQueued, SwitchKind::OutputQueued, combined(1_500)];
pub const ARBITERS: [ArbiterKind; 7] = ArbiterKind::ALL;

pub fn torus(sizes: &[u64], wrap: bool, concentration: u64, datelines: bool) -> Layout {
    let dimensions: Vec<_> = sizes.iter().map(|&size| Dimension { size, wrap }).collect();
    Layout::Torus(DimensionOrder::new(Torus::new(&dimensions, concentration).unwrap(), datelines))
}

pub fn exanest(mezzanines: u64) -> Layout {
    Layout::Exanest(ExanestOrder::new(Exanest::new(mezzanines).unwrap(), true))
}

pub fn tree(k: u64, n: u64, ascent: Ascent) -> Layout {
    Layout::KaryTree(UpDown::new(KaryTree::new(k, n).unwrap(), ascent))
}

pub fn dragonfly(p: u64, a: u64, h: u64, g: u64) -> Layout {
    let dragonfly = Dragonfly::new(DragonflySize { p, a, h, g }, GlobalLinks::Palmtree).unwrap();
    Layout::Dragonfly(DragonflyLayout::Minimal(DragonflyMinimal::new(dragonfly)))
}

pub fn ugal(p: u64, a: u64, h: u64, g: u64) -> Layout {
    let dragonfly = Dragonfly::new(DragonflySize { p, a, h, g }, GlobalLinks::Absolute).unwrap();
    Layout::Dragonfly(DragonflyLayout::Ugal(Ugal::new(dragonfly, 0)))
}

pub fn star(endpoints: u64) -> Layout {
    Layout::Star(StarRouting::new(Star::new(endpoints).unwrap()))
}

pub fn link(megabits: u64, code: LineCode, latency_ps: u64, framing: u64) -> LinkParameters {
    LinkParameters {
        rate: BitRate::from_bits_per_second(megabits * 1_000_000),
        code,
        latency: Span::from_ps(latency_ps),
        framing: Bytes::new(framing),
        routing: Span::ZERO,
        layer: LinkLayer::PLAIN,
    }
}

/// Links of a protocol at 16 Gb/s per lane and 100 ns, whose packets have footers that hold a check sequence.
pub fn layered(protocol: LinkProtocol, lanes: u32) -> LinkParameters {
    let rules = protocol.rules();
    let layer = LinkLayer {
        word: rules.word.max(rules.lane_word * u64::from(lanes)),
        framed: rules.framing,
        smallest: rules.smallest,
        gap: rules.gap,
        replay: rules.replays.then_some(ReplayParameters { buffer: None }),
        ..LinkLayer::PLAIN
    };
    LinkParameters { layer, ..link(16_000 * u64::from(lanes), rules.code, 100_000, rules.framing.get()) }
}

/// A machine of equal 16 Gb/s links and switches at 150 MHz with buffers for `packets` whole packets.
pub fn plain(layout: Layout, kind: SwitchKind, packets: u64) -> Machine {
    let format = PacketFormat { header: Bytes::new(16), footer: Bytes::new(16), payload: Bytes::new(256) };
    Machine {
        links: vec![link(16_000, LineCode::NONE, 15_000, 0); layout.link_classes().len()],
        layout,
        format,
        switch: SwitchParameters {
            kind,
            arbiter: ArbiterKind::RoundRobin,
            clock: Clock::from_hertz(150_000_000).unwrap(),
            pipeline_cycles: 2,
            forwarding: Forwarding::VirtualCutThrough,
            faster_link: FasterLink::Bubble,
            buffer_per: BufferPer::Channel,
            flow_control: weft_fabric::parameters::FlowControl::Credits,
            channels: weft_fabric::parameters::ChannelParameters::default(),
            buffer: Bytes::new(packets * 288),
            credit: CreditUnit::Bytes,
            output_buffer: None,
        },
        seed: 1,
    }
}

/// Classes of packets by size: (most payload, priority, weight), the last of all others.
pub fn classes(by_size: &[(Option<u64>, u8, u32)]) -> TrafficClasses {
    let class = |&(up_to, priority, weight): &(Option<u64>, u8, u32)| TrafficClass {
        kind: TrafficKind::All,
        up_to: up_to.map(Bytes::new),
        priority,
        weight,
        // Of all classes together no more than a link has.
        minimum: Minimum::Share(2_000 + u32::from(priority) * 500),
        ..TrafficClass::default()
    };
    TrafficClasses::new(&by_size.iter().map(class).collect::<Vec<_>>()).unwrap()
}

/// Packets of random size from every endpoint to random reachable others.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Packets per endpoint.
    pub packets: u32,
    /// The largest gap between the times before which two packets must not go, in picoseconds.
    pub gap_ps: u32,
    pub seed: u64,
}

/// A script under `load` with packets of at most `largest` bytes.
pub fn random_script(layout: &Layout, largest: u32, load: Load) -> Script {
    let Load { packets, gap_ps, seed } = load;
    let endpoints = layout.endpoints();
    let plan = |from: u32| {
        let mut rng = Stream::new(seed, u64::from(from), 77);
        let mut at = Time::ZERO;
        let mut packet = || {
            at += Span::from_ps(u64::from(rng.below(gap_ps + 1)));
            let mut to = EndpointId(rng.below(endpoints));
            while !layout.reachable(EndpointId(from), to) {
                to = EndpointId(rng.below(endpoints));
            }
            Planned { at, to, bytes: rng.below(largest + 1) }
        };
        (0..packets).map(|_| packet()).collect()
    };
    (0..endpoints).map(plan).collect()
}

/// No threshold of UGAL.
pub const NO_BIAS: Bytes = Bytes::ZERO;

/// 528 endpoints in 33 groups.
pub fn dragonfly_routed(routing: DragonflyRouting) -> Layout {
    let (links_per_pair, global) = (1, GlobalLinks::Palmtree);
    let parameters = DragonflyParameters { p: 2, a: 8, h: 4, links_per_pair, groups: 33, global, routing };
    Layout::Dragonfly(parameters.build().unwrap())
}

/// 272 endpoints in 17 groups.
pub fn megafly_routed(routing: MegaflyRouting) -> Layout {
    let parameters = MegaflyParameters {
        endpoints_per_leaf: 4,
        leaves: 4,
        spines: 4,
        global_per_spine: 4,
        groups: 17,
        routing,
    };
    Layout::Megafly(parameters.build().unwrap())
}

/// 256 endpoints on three levels, with taper.
pub fn tree_routed(routing: TreeRouting) -> Layout {
    let (down, up, parallel) = (vec![4, 8, 8], vec![4, 4], vec![1, 1]);
    Layout::Tree(TreeParameters { down, up, parallel, routing }.build().unwrap())
}

/// 100 endpoints on 50 switches.
pub fn slim_fly(routing: GraphRouting) -> Layout {
    Layout::Graph(SlimFlyParameters { q: 5, p: 2, routing }.build().unwrap())
}

/// 36 endpoints on 3 × 4 switches.
pub fn hyperx(routing: HyperXRouting) -> Layout {
    let parameters = HyperXParameters { dims: vec![3, 4], endpoints_per_switch: 3, routing };
    Layout::HyperX(parameters.build().unwrap())
}
