//! Properties of every machine under any load: nothing is lost, doubled or overtaken, credits are
//! conserved at all times and home at the end, and nothing stands still where the proof holds.

use crate::machines::{
    ARBITERS, KINDS, Load, classes, combined, dragonfly, exanest, layered, link, random_script, star, torus,
    tree, ugal,
};
use crate::scripted::{Machine, Script, block_of, take_arrivals, until};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weft_engine::{Progress, Stream};
use weft_fabric::parameters::{
    ArbiterKind, BufferPer, ChannelParameters, CreditUnit, FasterLink, FlowControl, Forwarding, PacketFormat,
    PauseParameters, SwitchKind, SwitchParameters,
};
use weft_fabric::{
    ErrorRate, LinkLayer, LinkParameters, LinkProtocol, Network, ReplayParameters, TrafficClass,
    TrafficClasses, check_credits, stuck,
};
use weft_topo::{Ascent, LaneChoice, Layout, Routing, Topology, TopologyParameters, prove};
use weft_units::{Bytes, Clock, EndpointId, LineCode, Span, Time};

/// A small machine of any shape.
fn layouts() -> impl Strategy<Value = Layout> {
    let sizes = prop::collection::vec(1u64..6, 1..4);
    prop_oneof![
        3 => (sizes, any::<bool>(), 1u64..3).prop_map(|(sizes, wrap, c)| torus(&sizes, wrap, c, true)),
        1 => Just(exanest(1)),
        1 => Just(exanest(4)),
        1 => (2u64..4, 1u64..4).prop_map(|(k, n)| tree(k, n, Ascent::DModK)),
        1 => (2u64..4, 2u64..4).prop_map(|(k, n)| tree(k, n, Ascent::Random)),
        1 => (1u64..3, 1u64..4, 1u64..3).prop_map(|(p, a, h)| dragonfly(p, a, h, a * h + 1)),
        2 => (1u64..3, 1u64..4, 1u64..3).prop_map(|(p, a, h)| ugal(p, a, h, a * h + 1)),
        1 => (1u64..10).prop_map(star),
        4 => any_family(),
    ]
}

/// A small machine of any family, with any of its routings that is free of deadlock.
fn any_family() -> impl Strategy<Value = Layout> {
    let examples = TopologyParameters::examples().into_iter().map(|parameters| parameters.build().unwrap());
    let is_small = |layout: &Layout| layout.endpoints() <= 64;
    // Rings without datelines can deadlock.
    let is_proved = |layout: &Layout| prove(layout).is_ok();
    prop::sample::select(examples.filter(is_small).filter(is_proved).collect::<Vec<_>>())
}

/// Any kind of switch, with any speed-up.
fn kinds() -> impl Strategy<Value = SwitchKind> {
    prop_oneof![
        3 => prop::sample::select(&KINDS[..3]),
        2 => prop_oneof![Just(1_000), Just(2_000), 1_000u32..5_000, Just(4_096_000)].prop_map(combined),
    ]
}

/// Switches of any kind whose buffers hold one packet or a little more.
fn switches(largest: u64) -> impl Strategy<Value = SwitchParameters> {
    let unit = prop_oneof![
        Just(CreditUnit::Bytes),
        (1u64..100).prop_map(|cell| CreditUnit::Cells(Bytes::new(cell)))
    ];
    let shape = (kinds(), 0usize..ARBITERS.len(), 1_000_000u64..2_000_000_000, 0u32..5);
    let flow = (any::<bool>(), 0usize..3, unit, 0u64..3 * largest, prop::option::of(0u64..2 * largest));
    (shape, flow, channels()).prop_map(move |((kind, arbiter, hertz, cycles), flow, channels)| {
        let (store, faster, unit, spare, output) = flow;
        let whole = match unit {
            CreditUnit::Bytes => largest,
            CreditUnit::Cells(cell) => Bytes::new(largest).div_ceil(cell) * cell.get(),
        };
        SwitchParameters {
            kind,
            arbiter: ARBITERS[arbiter],
            clock: Clock::from_hertz(hertz).unwrap(),
            pipeline_cycles: cycles,
            forwarding: if store { Forwarding::StoreAndForward } else { Forwarding::VirtualCutThrough },
            faster_link: [FasterLink::Bubble, FasterLink::Delay, FasterLink::Store][faster],
            buffer_per: BufferPer::Channel,
            flow_control: FlowControl::Credits,
            channels,
            buffer: Bytes::new(whole + spare.saturating_sub(largest)),
            credit: unit,
            output_buffer: output.map(|spare| Bytes::new(largest + spare)),
        }
    })
}

/// Virtual channels beyond those of the routing, as a factor in place of their number, and traffic classes by
/// size.
fn channels() -> impl Strategy<Value = ChannelParameters> {
    let classes = prop_oneof![
        2 => Just(TrafficClasses::default()),
        1 => (0u8..2, 1u32..2_000).prop_map(|(priority, weight)| {
            classes(&[(Some(16), priority, weight), (None, 1 - priority, 300)])
        }),
        1 => (1u32..2_000).prop_map(|weight| {
            classes(&[(Some(8), 2, weight), (Some(64), 1, 500), (None, 0, 70)])
        }),
    ];
    (1u32..4, any::<bool>(), classes).prop_map(|(lanes, space, classes)| ChannelParameters {
        failover: false,
        total: Some(lanes),
        lane: if space { LaneChoice::Room } else { LaneChoice::Flow },
        classes,
    })
}

/// The traffic classes of a switch, the first with buffers so many times as large as the others'.
fn with_buffers(switch: &SwitchParameters, times: u64) -> TrafficClasses {
    let classes = switch.channels.classes.all().iter().enumerate();
    let class = |(number, class): (usize, &TrafficClass)| TrafficClass {
        buffer: (number == 0).then_some(switch.buffer * times),
        ..*class
    };
    TrafficClasses::new(&classes.map(class).collect::<Vec<_>>()).unwrap()
}

/// The same link with the layer of some protocol, which may meet bit errors, and repeat with little space.
fn with_a_layer(plain: LinkParameters, packet: Bytes, rng: &mut Stream) -> LinkParameters {
    let protocol = LinkProtocol::ALL[rng.below(5) as usize];
    let mut link = layered(protocol, 1 + rng.below(4));
    link.layer.bit_errors = ErrorRate::new([0, 20_000_000_000][rng.below(2) as usize]).unwrap();
    if link.layer.replay.is_some() && rng.below(2) == 0 {
        let largest = link.layer.most_on_line(packet, link.framing);
        let buffer = Some(largest * u64::from(1 + rng.below(3)));
        link.layer.replay = Some(ReplayParameters { buffer });
    }
    LinkParameters { layer: link.layer, framing: link.framing, ..plain }
}

/// Any machine of [`layouts`] with links of any rate; overhead may be nothing, so that packets may be
/// of no length at all.
pub fn machines() -> impl Strategy<Value = Machine> {
    let format = (0u64..20, 0u64..20, 1u64..400);
    let format = format.prop_map(|(header, footer, payload)| PacketFormat {
        header: Bytes::new(header),
        footer: Bytes::new(footer),
        payload: Bytes::new(payload),
    });
    format
        .prop_flat_map(|format| {
            let largest = format.header + format.footer + format.payload;
            (layouts(), Just(format), switches(largest.get()), any::<u64>())
        })
        .prop_map(|(layout, format, switch, seed)| {
            let whole = format.header + format.footer + format.payload;
            let mut rng = Stream::new(seed, 0, 55);
            let mut class = |_| {
                let code = [LineCode::NONE, LineCode::B64_66, LineCode::B8_10][rng.below(3) as usize];
                let rate = [1_000, 10_000, 16_000, u64::from(100 + rng.below(50_000))][rng.below(4) as usize];
                let plain = link(rate, code, 1 + u64::from(rng.below(300_000)), u64::from(rng.below(20)));
                let mut link = if rng.below(2) == 0 { plain } else { with_a_layer(plain, whole, &mut rng) };
                // Words for credits, also long ones and more of them than the line carries beside packets.
                link.layer.credit = Bytes::new([0, 0, 8, u64::from(rng.below(100))][rng.below(4) as usize]);
                link
            };
            let links = (0..layout.link_classes().len()).map(&mut class).collect();
            // Lanes as drawn, as far as a link may have so many.
            let needed = switch.channels.of_lane(layout.virtual_channels()) * switch.channels.classes.count();
            let total = switch.channels.total.map(|lanes| needed * lanes.min(64 / needed));
            let switch =
                SwitchParameters { channels: ChannelParameters { total, ..switch.channels }, ..switch };
            let mut machine = Machine { layout, format, links, switch, seed };
            if rng.below(2) == 0 {
                let response = Span::from_ps(u64::from(rng.below(500_000)));
                let hysteresis = (rng.below(2) == 0).then(|| Bytes::new(u64::from(rng.below(3_000))));
                let pause = PauseParameters { headroom: None, hysteresis, response };
                // Pause is not modelled there.
                let never = ErrorRate::new(0).unwrap();
                let repeats = |link: &LinkParameters| {
                    let LinkLayer { replay, bit_errors, .. } = link.layer;
                    replay.is_some_and(|replay| replay.buffer.is_some() || bit_errors != never)
                };
                if machine.links.iter().any(repeats) {
                    return machine;
                }
                machine.switch.flow_control = FlowControl::Pause(pause);
                machine.switch.buffer += machine.largest_headroom();
            }
            if rng.below(2) == 0 {
                let times = u64::from(1 + rng.below(3));
                machine.switch.channels.classes = with_buffers(&machine.switch, times);
            }
            machine
        })
}

/// Every packet of the script once, at its destination, with its bytes; in order where it must be.
fn check_deliveries(
    machine: &Machine,
    script: &Script,
    run: &mut crate::scripted::Run,
) -> Result<(), TestCaseError> {
    let arrived = take_arrivals(run);
    let mut missing: BTreeMap<(EndpointId, u32), (EndpointId, u32)> = BTreeMap::new();
    for (from, plan) in script.iter().enumerate() {
        let planned = plan.iter().zip(0..).map(|(p, n)| ((EndpointId::from(from), n), (p.to, p.bytes)));
        missing.extend(planned);
    }
    let mut hops = 0;
    let mut last_of_flow = BTreeMap::new();
    for packet in arrived {
        let key = (packet.source, packet.message);
        prop_assert_eq!(
            missing.remove(&key),
            Some((packet.destination, packet.bytes)),
            "{:?} came twice",
            packet
        );
        hops += u64::from(packet.hops);
        let block = if machine.layout.spreads_blocks() { Some(block_of(packet.message)) } else { None };
        let keeps_order = machine.layout.is_deterministic() || block.is_some();
        if keeps_order && !machine.plan().mixes_lanes() {
            // Classes overtake each other: those of these tables are told by size.
            let class = machine.class_of(packet.bytes);
            let flow = (packet.source, packet.destination, class, block);
            let last = last_of_flow.insert(flow, packet.message);
            prop_assert!(last.is_none_or(|last| last < packet.message), "{:?} overtook {:?}", packet, last);
        }
    }
    prop_assert!(missing.is_empty(), "lost: {:?}", missing);
    let crossed: u64 =
        run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now())).map(|l| l.packets).sum();
    prop_assert_eq!(crossed, hops, "links have carried other packets than those that arrived");
    Ok(())
}

pub fn loads() -> impl Strategy<Value = Load> {
    (1u32..40, 0u32..400_000, any::<u64>()).prop_map(|(packets, gap_ps, seed)| Load { packets, gap_ps, seed })
}

fn twenty_packets(seed: u64) -> Load {
    Load { packets: 20, gap_ps: 100_000, seed }
}

/// The largest payload of a packet, in bytes.
pub fn largest_payload(machine: &Machine) -> u32 {
    machine.format.payload.get() as u32
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Catches a packet lost, doubled or overtaken, credits that leak or double, a wake-up that is
    /// forgotten (the run is dry with packets in buffers), and a deadlock that the proof excludes.
    #[test]
    fn everything_arrives_and_all_credits_come_home(
        machine in machines(), load in loads(), looks in prop::collection::vec(0u64..4_000_000, 0..6),
    ) {
        prop_assert!(prove(&machine.layout).is_ok());
        let script = random_script(&machine.layout, largest_payload(&machine), load);
        let mut run = machine.begin(&script, 1);
        let mut at = Time::ZERO;
        for look in looks {
            at += Span::from_ps(look);
            until(&mut run, at);
            prop_assert_eq!(check_credits(&run), Ok(()));
        }
        prop_assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        prop_assert_eq!(stuck(&run), None);
        prop_assert_eq!(run.sites().map(|(_, site)| site.buffered()).sum::<usize>(), 0);
        // Nothing is pending or buffered, so that conserved credits are all at their senders.
        prop_assert_eq!(run.pending().count(), 0);
        prop_assert_eq!(check_credits(&run), Ok(()));
        prop_assert_eq!(Network::overrun(&run), None);
        // Packets, words for credits and pauses of a link have had its line one after the other.
        let idle = run.sites().map(|(_, site)| run.model().lines_idle(site)).max().unwrap();
        for link in run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now())) {
            prop_assert!(Time::ZERO + link.busy <= idle, "{:?} until {:?}", link, idle);
        }
        check_deliveries(&machine, &script, &mut run)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    /// Catches a packet that passes a switch although another could have come before its output was granted,
    /// or although it lacked credits, or past others: whoever queues instead arrives at the same time.
    #[test]
    fn packets_that_pass_arrive_when_they_would_have_by_queueing(
        mut machine in machines(), load in loads(),
    ) {
        machine.switch.arbiter = ArbiterKind::RoundRobin;
        machine.switch.forwarding = Forwarding::VirtualCutThrough;
        machine.switch.faster_link = FasterLink::Bubble;
        if machine.switch.flow_control != FlowControl::Credits {
            machine.switch.buffer += machine.largest_headroom();
            machine.switch.channels.classes = with_buffers(&machine.switch, 2);
        }
        let script = random_script(&machine.layout, largest_payload(&machine), load);
        let mut passing = machine.begin(&script, 1);
        let mut queueing = machine.begin_queueing(&script);
        until(&mut passing, Time::NEVER);
        until(&mut queueing, Time::NEVER);
        prop_assert_eq!(take_arrivals(&mut passing), take_arrivals(&mut queueing));
        for ((id, one), (_, other)) in passing.sites().zip(queueing.sites()) {
            let links = passing.model().links_of(id, one, Time::NEVER);
            for (one, other) in links.zip(queueing.model().links_of(id, other, Time::NEVER)) {
                let [one, other] = [one, other].map(|link| {
                    (link.packets, link.busy, link.stalled, link.paused, link.pause_frames)
                });
                prop_assert_eq!(one, other);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Catches state that a snapshot leaves out: saved at any time, the rest of the run is the same.
    #[test]
    fn a_resumed_run_ends_as_it_would_have(
        machine in machines(), seed in any::<u64>(), at in 0u64..20_000_000,
    ) {
        let script = random_script(&machine.layout, largest_payload(&machine), twenty_packets(seed));
        let mut whole = machine.begin(&script, 1);
        until(&mut whole, Time::from_ps(at));
        let before = take_arrivals(&mut whole);
        let bytes = whole.save().unwrap();
        let mut resumed = machine.resume(&script, &bytes, 1);
        prop_assert_eq!(check_credits(&resumed), Ok(()));
        until(&mut whole, Time::NEVER);
        until(&mut resumed, Time::NEVER);
        let after = take_arrivals(&mut whole);
        prop_assert_eq!(before.len() + after.len(), script.iter().map(Vec::len).sum::<usize>());
        prop_assert_eq!(take_arrivals(&mut resumed), after);
        prop_assert!(resumed.save().unwrap() == whole.save().unwrap(), "the states differ at the end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Catches a damaged snapshot that is read with a panic, or with all memory.
    #[test]
    fn a_damaged_snapshot_does_no_harm(
        machine in machines(), seed in any::<u64>(), at in 0u64..5_000_000,
        (place, byte) in any::<(prop::sample::Index, u8)>(),
    ) {
        let script = random_script(&machine.layout, largest_payload(&machine), twenty_packets(seed));
        let mut run = machine.begin(&script, 1);
        until(&mut run, Time::from_ps(at));
        let mut bytes = run.save().unwrap();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let _ = machine.try_resume(&script, &bytes, 1);
        let _ = machine.try_resume(&script, &bytes[..place], 1);
    }
}

/// Catches a machine that is built although its largest packet, in whole cells, exceeds the buffer: it
/// would wait for ever.
#[test]
fn a_buffer_too_small_in_cells_is_refused() {
    let mut machine = crate::machines::plain(star(2), SwitchKind::InputQueued, 1);
    let script = vec![Vec::new(); 2];
    // A packet of 288 B takes five cells of 64 B.
    machine.switch.credit = CreditUnit::Cells(Bytes::new(64));
    for (buffer, fits) in [(288, false), (319, false), (320, true)] {
        machine.switch.buffer = Bytes::new(buffer);
        assert_eq!(machine.build(&script).is_ok(), fits, "{buffer} B");
    }
    machine.switch.credit = CreditUnit::Bytes;
    for (buffer, fits) in [(287, false), (288, true)] {
        machine.switch.buffer = Bytes::new(buffer);
        assert_eq!(machine.build(&script).is_ok(), fits, "{buffer} B");
    }
}
