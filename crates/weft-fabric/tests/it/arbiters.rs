//! Arbiters that tell packets and classes apart, and virtual channels beyond those of a routing.

use crate::machines::{KINDS, classes, plain, star, torus};
use crate::scripted::{Machine, Planned, Script, take_arrivals, until};
use weft_engine::Stream;
use weft_fabric::check_credits;
use weft_fabric::parameters::{ArbiterKind, ChannelParameters, SwitchKind};
use weft_topo::LaneChoice;
use weft_units::{Bytes, EndpointId, Span, Time};

/// The time of a packet of `bytes` on a link of [`plain`].
fn on_line(bytes: u64) -> Span {
    Span::from_ps((bytes + 32) * 500)
}

fn at(ps: u64, to: u32, bytes: u32) -> Planned {
    Planned { at: Time::from_ps(ps), to: EndpointId(to), bytes }
}

/// Catches a packet of high priority that waits behind more than the one of low priority that is on the line
/// when it comes: in its switch, at an endpoint whose low class has no credits, or for room in a buffer that
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
        let mut dice = Stream::new(5, u64::from(from), 3);
        (0..2_000).map(|_| at(0, (from + 1 + dice.below(35)) % 36, 256)).collect()
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
