//! Arbiters that tell packets and classes apart, and virtual channels beyond those of a routing.

use crate::machines::{KINDS, classes, plain, star, torus};
use crate::scripted::{Machine, NoTimer, Planned, Script, take_arrivals, until};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_engine::{Progress, Simulation, Stream};
use weft_fabric::parameters::{ArbiterKind, ChannelParameters, FlowControl, PauseParameters, SwitchKind};
use weft_fabric::{
    Addressing, Announced, BuildError, HeaderBits, Injection, Interface, InterfaceContext, MessagePart,
    Minimum, Network, Packet, PacketLabel, TrafficClass, TrafficClasses, check_credits,
};
use weft_topo::LaneChoice;
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// The time of a packet of `bytes` on a link of [`plain`].
fn on_line(bytes: u64) -> Span {
    Span::from_ps((bytes + 32) * 500)
}

fn at(ps: u64, to: u32, bytes: u32) -> Planned {
    Planned { at: Time::from_ps(ps), to: EndpointId(to), bytes }
}

/// Catches a packet of high priority that waits behind more than the one of low priority that is on the line
/// when it comes: in its switch, at an endpoint whose low class has no credits, or for space in a buffer that
/// the low class has filled.
#[test]
fn high_priority_does_not_feel_a_saturated_low_one() {
    for kind in KINDS {
        let mut machine = plain(star(4), kind, 4);
        machine.switch.arbiter = ArbiterKind::StrictPriority;
        machine.switch.channels.classes = classes(&[(Some(8), 1, 1), (None, 0, 1)]);
        // Behind the crossbar packets go as they came.
        if matches!(kind, SwitchKind::CombinedInputOutput(_)) {
            machine.switch.output_buffer = Some(Bytes::new(288));
        }
        let mut script: Script = vec![Vec::new(); 4];
        // Two endpoints want all of endpoint 0's link; small packets come from a third.
        script[1] = vec![at(0, 0, 256); 1_000];
        script[2] = vec![at(0, 0, 256); 1_000];
        script[3] = (0..200).map(|number| at(1_000_000 + number * 1_234_567, 0, 8)).collect();
        let mut alone: Script = vec![Vec::new(); 4];
        alone[3] = script[3].clone();
        let latency = |script: &Script| {
            let arrived = machine.arrivals(script);
            let small = arrived.iter().filter(|packet| packet.bytes == 8);
            small.map(|packet| (packet.at - packet.offered).as_ps()).collect::<Vec<_>>()
        };
        let (alone, beside) = (latency(&alone), latency(&script));
        assert_eq!((alone.len(), beside.len()), (200, 200));
        let longest = beside.iter().zip(&alone).map(|(beside, alone)| beside - alone).max().unwrap();
        // A packet that has been granted the output, and the clock edge after it.
        let most = on_line(256).as_ps() + 2 * 6_667;
        assert!(longest <= most, "{kind:?}: {longest} ps longer than alone");
    }
}

/// An interface that has packets of two classes and asks for each of them: large ones to endpoint 0, without
/// end, and small ones to another at given times.
#[derive(Serialize, Deserialize)]
struct TwoClasses {
    large: u32,
    small: Vec<Planned>,
    sent: u32,
}

impl TwoClasses {
    fn packet(&self, context: &InterfaceContext<'_, '_, Self>, to: EndpointId, bytes: u32) -> Injection {
        let addressing = Addressing { source: context.endpoint(), destination: to, message: self.sent };
        Injection::Packet(Packet::new(
            addressing,
            bytes,
            HeaderBits::offered(context.now()),
            MessagePart::Whole,
        ))
    }
}

impl Interface for TwoClasses {
    type Parameters = ();
    type Timer = NoTimer;
    type Announcement = ();
    /// From when each small packet was due to its arrival.
    type Output = Vec<Span>;

    fn is_active(&self) -> bool {
        self.large > 0 || !self.small.is_empty()
    }

    fn start(&mut self, _: &(), context: &mut InterfaceContext<'_, '_, Self>) {
        context.request_injection();
    }

    fn timer(&mut self, timer: NoTimer, _: &(), _: &mut InterfaceContext<'_, '_, Self>) {
        match timer {}
    }

    fn announced(&mut self, _: Announced<()>, _: &(), _: &mut InterfaceContext<'_, '_, Self>) {}

    fn received(&mut self, packet: &Packet, _: &(), context: &mut InterfaceContext<'_, '_, Self>) {
        if packet.bytes == 8 {
            let waited = context.now() - packet.carried.time_offered();
            context.output().push(waited);
        }
    }

    fn next_injection(&mut self, now: Time, (): &()) -> Time {
        let next = self.small.get(self.sent as usize).map_or(Time::NEVER, |planned| planned.at);
        if self.large > 0 { now } else { next }
    }

    fn inject(&mut self, _: &(), context: &mut InterfaceContext<'_, '_, Self>) -> Injection {
        let next = self.small.get(self.sent as usize).copied();
        if let Some(Planned { at, to, bytes }) = next
            && at <= context.now()
            && context.admits(PacketLabel::default(), MessagePart::Whole, bytes)
        {
            self.sent += 1;
            let addressing = Addressing { source: context.endpoint(), destination: to, message: self.sent };
            // Its time is that at which it was due, whenever the network was ready to take it.
            return Injection::Packet(Packet::new(
                addressing,
                bytes,
                HeaderBits::offered(at),
                MessagePart::Whole,
            ));
        }
        if self.large > 0 && context.admits(PacketLabel::default(), MessagePart::Whole, 256) {
            self.large -= 1;
            return self.packet(context, EndpointId(0), 256);
        }
        match next {
            Some(Planned { at, .. }) if at > context.now() => Injection::NotBefore(at),
            _ => Injection::Nothing,
        }
    }
}

/// Catches a low class without credits that keeps the high class of the same endpoint from going: in the
/// endpoint's places, on its line, or in the switch's input. Nine endpoints want all of one link, so that
/// each can send a large packet only every nine; small packets of one of them go to an endpoint that is idle.
#[test]
fn a_blocked_low_class_never_holds_up_the_high_one_of_its_endpoint() {
    for kind in KINDS {
        let mut machine = plain(star(11), kind, 2);
        machine.switch.arbiter = ArbiterKind::StrictPriority;
        machine.switch.channels.classes = classes(&[(Some(8), 1, 1), (None, 0, 1)]);
        if kind == SwitchKind::OutputQueued || matches!(kind, SwitchKind::CombinedInputOutput(_)) {
            machine.switch.output_buffer = Some(Bytes::new(288));
        }
        let waits = |large: u32| {
            let interface = |endpoint: EndpointId, (): &()| {
                let small = |number: u64| at(3_000_000 + number * 1_234_567, 10, 8);
                let small = if endpoint.0 == 1 { (0..200).map(small).collect() } else { Vec::new() };
                TwoClasses { large: if (1..10).contains(&endpoint.0) { large } else { 0 }, small, sent: 0 }
            };
            let built = Network::build(machine.parameters(), (), interface).unwrap();
            let mut run = Simulation::new(built, 1);
            assert_eq!(run.run_until(Time::NEVER, &AtomicBool::new(false)), Progress::Dry);
            let stalled = run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now()));
            let stalled: Vec<Span> = stalled.map(|link| link.stalled).collect();
            let waits: Vec<Span> = run.outputs_mut().flat_map(std::mem::take).collect();
            (waits, stalled[1])
        };
        let ((alone, _), (beside, stalled)) = (waits(0), waits(300));
        assert_eq!((alone.len(), beside.len()), (200, 200));
        // Endpoint 1 has large packets without credits nearly all the time.
        let longest_run = on_line(256).as_ps() * 9 * 300;
        assert!(stalled.as_ps() > longest_run / 2, "{kind:?}: stalled for {stalled}");
        let longest = beside.iter().zip(&alone).map(|(beside, alone)| beside.as_ps() - alone.as_ps()).max();
        // The packet on the endpoint's line, the one that leaves the input, and a clock edge after each.
        let most = 2 * (on_line(256).as_ps() + 2 * 6_667);
        assert!(longest.unwrap() <= most, "{kind:?}: {longest:?} ps longer than alone, at most {most}");
    }
}

/// Catches classes that share a saturated output in another ratio than that of their weights in bytes, where
/// their packets have different sizes.
#[test]
fn weights_share_an_output_by_bytes() {
    for kind in KINDS {
        for (weights, sizes) in [([300, 900], [32, 256]), ([1_000, 1_000], [24, 256]), ([64, 200], [64, 255])]
        {
            let mut machine = plain(star(4), kind, 16);
            machine.switch.arbiter = ArbiterKind::WeightedRoundRobin;
            if matches!(kind, SwitchKind::CombinedInputOutput(_)) {
                machine.switch.output_buffer = Some(Bytes::new(288));
            }
            let most = Some(u64::from(sizes[0]));
            machine.switch.channels.classes = classes(&[(most, 0, weights[0]), (None, 0, weights[1])]);
            let mut script: Script = vec![Vec::new(); 4];
            script[1] = vec![at(0, 0, sizes[0]); 20_000];
            script[2] = vec![at(0, 0, sizes[1]); 20_000];
            let mut run = machine.begin(&script, 1);
            until(&mut run, Time::from_ps(400_000_000));
            let arrived = take_arrivals(&mut run);
            let bytes = |size: u32| {
                let packets = arrived.iter().filter(|packet| packet.bytes == size).count() as u64;
                packets * u64::from(size + 32)
            };
            let sent = [bytes(sizes[0]), bytes(sizes[1])];
            // In bytes of one class for those of the other: a round and a packet of each.
            let expected = sent[1] * u64::from(weights[0]) / u64::from(weights[1]);
            let bound = 2 * u64::from(weights[0]) + 2 * u64::from(sizes[0] + 32);
            assert!(sent[0].abs_diff(expected) <= bound, "{kind:?} {weights:?}: {sent:?}");
            let all = sent[0] + sent[1];
            assert!(all >= 790_000, "{kind:?}: a line that is idle although both classes wait: {all} B");
        }
    }
}

/// Bytes on the line of packets of each of two payloads that arrive until a time.
fn bytes_of(machine: &Machine, script: &Script, sizes: [u32; 2], until_ps: u64) -> [u64; 2] {
    let mut run = machine.begin(script, 1);
    until(&mut run, Time::from_ps(until_ps));
    assert_eq!(check_credits(&run), Ok(()));
    let arrived = take_arrivals(&mut run);
    sizes.map(|size| {
        let packets = arrived.iter().filter(|packet| packet.bytes == size).count() as u64;
        packets * u64::from(size + 32)
    })
}

/// Two classes by size: a high priority without a minimum, and a low one with this.
fn high_and_low(most: u32, minimum: Minimum) -> TrafficClasses {
    let low = TrafficClass { minimum, weight: 1, ..TrafficClass::default() };
    let up_to = Some(Bytes::new(most.into()));
    let high = TrafficClass { up_to, priority: 1, minimum: Minimum::Share(0), ..low };
    TrafficClasses::new(&[high, low]).unwrap()
}

/// Catches a low priority that gets less than its minimum of a saturated output, by share or by rate, or more
/// than that while the high one wants the rest; and a line that is idle when the high one leaves some.
#[test]
fn a_minimum_is_kept_and_the_rest_goes_by_priority() {
    for kind in KINDS {
        for (sizes, minimum, hundredths) in [
            ([32, 256], Minimum::Share(3_000), 3_000),
            ([256, 255], Minimum::Share(0), 0),
            // Of the 16 Gb/s of the links.
            ([32, 256], Minimum::Rate(BitRate::from_bits_per_second(4_000_000_000)), 2_500),
        ] {
            let mut machine = plain(star(4), kind, 16);
            machine.switch.arbiter = ArbiterKind::MinimumBandwidth;
            if matches!(kind, SwitchKind::CombinedInputOutput(_)) {
                machine.switch.output_buffer = Some(Bytes::new(288));
            }
            let (high, low) = if sizes[0] < sizes[1] { (0, 1) } else { (1, 0) };
            machine.switch.channels.classes = high_and_low(sizes[high], minimum);
            let mut script: Script = vec![Vec::new(); 4];
            script[1] = vec![at(0, 0, sizes[high]); 20_000];
            script[2] = vec![at(0, 0, sizes[low]); 20_000];
            let sent = bytes_of(&machine, &script, [sizes[high], sizes[low]], 400_000_000);
            let all = sent[0] + sent[1];
            assert!(all >= 790_000, "{kind:?}: a line that is idle although both classes wait: {all} B");
            let expected = all * hundredths / 10_000;
            // Packets before both wait, and of each class one.
            let bound = 8 * 288;
            assert!(sent[1].abs_diff(expected) <= bound, "{kind:?} {minimum:?}: {sent:?}");
            // The high class wants a fifth.
            let gap = 5 * u64::from(sizes[high] + 32) * 500;
            script[1] = (0..400_000_000 / gap).map(|number| at(number * gap, 0, sizes[high])).collect();
            let sent = bytes_of(&machine, &script, [sizes[high], sizes[low]], 400_000_000);
            assert!(sent[0].abs_diff(160_000) <= bound, "{kind:?} {minimum:?}: {sent:?}");
            assert!(sent[0] + sent[1] >= 790_000, "{kind:?} {minimum:?}: {sent:?}");
        }
    }
}

/// Catches minima that no link has together.
#[test]
fn minima_beyond_a_link_are_refused() {
    let mut machine = plain(star(4), SwitchKind::InputQueued, 4);
    machine.switch.arbiter = ArbiterKind::MinimumBandwidth;
    let class = |minimum| TrafficClass { minimum, weight: 1, ..TrafficClass::default() };
    let small = TrafficClass { up_to: Some(Bytes::new(8)), ..class(Minimum::Share(5_001)) };
    let half = class(Minimum::Rate(BitRate::from_bits_per_second(8_000_000_000)));
    machine.switch.channels.classes = TrafficClasses::new(&[small, half]).unwrap();
    let error = machine.build(&vec![Vec::new(); 4]).map(|_| ()).unwrap_err();
    assert!(matches!(error, BuildError::MinimaTooLarge { hundredths: 10_001, .. }), "{error}");
    assert!(error.to_string().contains("100.01 % of a link"), "{error}");
}

/// Catches a class that has another's buffer: on a link whose credits return slowly each class sends as much
/// as its own buffer lets it.
#[test]
fn each_class_has_its_own_buffer() {
    for kind in KINDS {
        let of_class = |buffers: [Option<u64>; 2], large: bool| {
            let mut machine = plain(star(2), kind, 1);
            if kind == SwitchKind::OutputQueued || matches!(kind, SwitchKind::CombinedInputOutput(_)) {
                machine.switch.output_buffer = Some(Bytes::new(288));
            }
            for link in &mut machine.links {
                link.latency = Span::from_us(1);
            }
            let class = |buffer: Option<u64>| TrafficClass {
                buffer: buffer.map(Bytes::new),
                weight: 1,
                ..TrafficClass::default()
            };
            let small = TrafficClass { up_to: Some(Bytes::new(200)), ..class(buffers[0]) };
            machine.switch.channels.classes = TrafficClasses::new(&[small, class(buffers[1])]).unwrap();
            let script = vec![Vec::new(), vec![at(0, 0, if large { 256 } else { 200 }); 2_000]];
            let mut run = machine.begin(&script, 1);
            until(&mut run, Time::from_ps(200_000_000));
            assert_eq!(check_credits(&run), Ok(()));
            take_arrivals(&mut run).len()
        };
        let few = of_class([Some(4 * 288), None], true);
        let many = of_class([None, Some(4 * 288)], true);
        assert!(many > 3 * few && many < 5 * few, "{kind:?}: {many} and {few}");
        let of_small = of_class([Some(4 * 232), None], false);
        assert!(of_small > 3 * few, "{kind:?}: {of_small} and {few}");
    }
}

/// Catches a class's buffer that holds no packet, or not the head-room of its pauses.
#[test]
fn a_small_buffer_of_a_class_is_refused() {
    let mut machine = plain(star(4), SwitchKind::OutputQueued, 4);
    machine.switch.output_buffer = Some(Bytes::new(288));
    let with = |machine: &Machine, buffer| {
        let mut machine = machine.clone();
        let all = TrafficClass { weight: 1, ..TrafficClass::default() };
        let small = TrafficClass { up_to: Some(Bytes::new(8)), buffer: Some(buffer), ..all };
        machine.switch.channels.classes = TrafficClasses::new(&[small, all]).unwrap();
        machine.build(&vec![Vec::new(); 4]).map(|_| ())
    };
    assert!(with(&machine, Bytes::new(288)).is_ok());
    let error = with(&machine, Bytes::new(287)).unwrap_err();
    assert!(matches!(error, BuildError::BufferTooSmall { .. }), "{error}");
    let pause = PauseParameters { headroom: None, hysteresis: None, response: Span::ZERO };
    machine.switch.flow_control = FlowControl::Pause(pause);
    // Two classes have more frames under way than one.
    machine.switch.channels.classes = high_and_low(8, Minimum::default());
    let least = machine.largest_headroom() + Bytes::new(288);
    machine.switch.buffer = least * 2;
    assert_eq!(with(&machine, least), Ok(()));
    let error = with(&machine, least - Bytes::new(1)).unwrap_err();
    assert!(matches!(error, BuildError::HeadroomTooLarge { .. }), "{error}");
}

/// Catches age that does not bound what round robin does not: on a line of switches whose endpoints all send
/// to the last one, round robin halves the share at each hop. Age is counted from when the interface hands
/// over a packet, so that those from far away, which have been longer on their way, get more, up to a few
/// times.
#[test]
fn age_mends_the_parking_lot() {
    for kind in [SwitchKind::InputQueued, SwitchKind::VirtualOutputQueued, SwitchKind::OutputQueued] {
        let spread = |arbiter| {
            let mut machine = plain(torus(&[8], false, 1, true), kind, 4);
            machine.switch.arbiter = arbiter;
            if kind == SwitchKind::OutputQueued {
                machine.switch.output_buffer = Some(Bytes::new(4 * 288));
            }
            let mut script: Script = vec![Vec::new(); 8];
            (1..8).for_each(|from| script[from] = vec![at(0, 0, 256); 8_000]);
            let mut run = machine.begin(&script, 1);
            until(&mut run, Time::from_ps(7 * 500 * 144_000));
            let arrived = take_arrivals(&mut run);
            let of = |from| arrived.iter().filter(|packet| packet.source.0 == from).count();
            let shares: Vec<usize> = (1..8).map(of).collect();
            let (least, most) = (*shares.iter().min().unwrap(), *shares.iter().max().unwrap());
            (least, most, shares)
        };
        let (least, most, shares) = spread(ArbiterKind::RoundRobin);
        assert!(most > 20 * least.max(1), "{kind:?}, round robin: {shares:?}");
        let (least, most, shares) = spread(ArbiterKind::Age);
        // Behind its arbiter an output queue sends packets as they came: age decides who gets into it alone.
        let times = if kind == SwitchKind::OutputQueued { 8 } else { 4 };
        assert!(most <= times * least, "{kind:?}, age: {shares:?}");
    }
}

/// Every endpoint of a torus sends to random others as fast as it can: packets that have arrived after a
/// while.
fn saturated(total: Option<u32>, lane: LaneChoice, kind: SwitchKind) -> usize {
    let mut machine: Machine = plain(torus(&[6, 6], true, 1, true), kind, 4);
    machine.switch.channels = ChannelParameters { total, lane, ..ChannelParameters::default() };
    let plan = |from: u32| {
        let mut rng = Stream::new(5, u64::from(from), 3);
        (0..2_000).map(|_| at(0, (from + 1 + rng.below(35)) % 36, 256)).collect()
    };
    let script: Script = (0..36).map(plan).collect();
    let mut run = machine.begin(&script, 1);
    until(&mut run, Time::from_ps(100_000_000));
    assert_eq!(check_credits(&run), Ok(()));
    take_arrivals(&mut run).len()
}

/// Catches lanes that nobody uses: with input queues a torus of two channels carries more with eight.
#[test]
fn more_channels_carry_more() {
    let few = saturated(None, LaneChoice::Flow, SwitchKind::InputQueued);
    for lane in [LaneChoice::Flow, LaneChoice::Room] {
        let many = saturated(Some(8), lane, SwitchKind::InputQueued);
        assert!(many * 100 > few * 110, "{lane:?}: {many} packets with eight channels, {few} with two");
    }
}
