//! Machines that several tests share.

use crate::scripted::{Machine, Planned, Script};
use weft_engine::Stream;
use weft_fabric::parameters::{
    ArbiterKind, BufferPer, CreditUnit, FasterLink, Forwarding, PacketFormat, SwitchKind, SwitchParameters,
};
use weft_fabric::{LinkParameters, TrafficClass, TrafficClasses, TrafficKind};
use weft_topo::{
    Ascent, Dimension, DimensionOrder, Dragonfly, DragonflyLayout, DragonflyMinimal, DragonflySize, Exanest,
    ExanestOrder, GlobalLinks, KaryTree, Layout, Star, StarRouting, Topology, Torus, Ugal, UpDown,
};
use weft_units::{BitRate, Bytes, Clock, EndpointId, LineCode, Span, Time};

pub const KINDS: [SwitchKind; 3] =
    [SwitchKind::InputQueued, SwitchKind::VirtualOutputQueued, SwitchKind::OutputQueued];
pub const ARBITERS: [ArbiterKind; 6] = [
    ArbiterKind::RoundRobin,
    ArbiterKind::Random,
    ArbiterKind::Islip(2),
    ArbiterKind::Age,
    ArbiterKind::StrictPriority,
    ArbiterKind::WeightedRoundRobin,
];

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
    }
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
        let mut dice = Stream::new(seed, u64::from(from), 77);
        let mut at = Time::ZERO;
        let mut packet = || {
            at += Span::from_ps(u64::from(dice.below(gap_ps + 1)));
            let mut to = EndpointId(dice.below(endpoints));
            while !layout.reachable(EndpointId(from), to) {
                to = EndpointId(dice.below(endpoints));
            }
            Planned { at, to, bytes: dice.below(largest + 1) }
        };
        (0..packets).map(|_| packet()).collect()
    };
    (0..endpoints).map(plan).collect()
}
