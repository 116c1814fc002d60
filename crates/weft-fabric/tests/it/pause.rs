//! Pause: exact times on a line of two switches, no loss with the head-room and loss without it, long links,
//! deadlock.

use crate::machines::{KINDS, combined, link, plain, star, torus};
use crate::scripted::{Machine, Planned, Run, Script, take_arrivals, until};
use weft_engine::Progress;
use weft_fabric::parameters::{FasterLink, FlowControl, PauseParameters, SwitchKind};
use weft_fabric::{
    LinkEnd, LinkPower, LinkReport, Network, Overrun, SleepParameters, Stuck, check_credits, check_packets,
    stuck,
};
use weft_topo::{Attachment, Layout, prove};
use weft_units::{BitRate, Bytes, Clock, EndpointId, EnergyPerBit, LineCode, Power, Span, SwitchId, Time};

/// The largest packet of [`plain`].
const PACKET: u64 = 288;

fn pause(headroom: Option<u64>, response_ps: u64) -> FlowControl {
    let (headroom, response) = (headroom.map(Bytes::new), Span::from_ps(response_ps));
    FlowControl::Pause(PauseParameters { headroom, hysteresis: None, response })
}

/// `packets` of 256 B from each of some endpoints to another, all at once.
fn burst(endpoints: usize, senders: &[usize], to: u32, packets: usize) -> Script {
    let planned = Planned { at: Time::ZERO, to: EndpointId(to), bytes: 256 };
    (0..endpoints).map(|e| vec![planned; if senders.contains(&e) { packets } else { 0 }]).collect()
}

/// The link from one switch to another.
fn between(run: &Run, from: u32, to: u32) -> LinkReport {
    let joins = |link: &LinkReport| {
        matches!(link.from, LinkEnd::Port(switch, _) if switch.0 == from)
            && matches!(link.to, Attachment::Switch(switch, _) if switch.0 == to)
    };
    Network::links(run).find(joins).unwrap()
}

/// Two switches of one cycle of 1 ns each, two endpoints at each, every byte 0.5 ns on the line: all times
/// are whole. Links between switches have 20 ns of latency, those of endpoints 1 ns.
fn line_of_two(kind: SwitchKind, flow_control: FlowControl) -> Machine {
    let mut machine = plain(torus(&[2], false, 2, true), kind, 1);
    machine.links = vec![link(16_000, LineCode::NONE, 20_000, 0); machine.links.len()];
    machine.links[0] = link(16_000, LineCode::NONE, 1_000, 0);
    machine.switch.clock = Clock::from_hertz(1_000_000_000).unwrap();
    machine.switch.pipeline_cycles = 0;
    machine.switch.flow_control = flow_control;
    machine
}

/// The same with links between switches that sleep once they have been idle for 100 ns.
fn with_sleep(mut machine: Machine, wake_ps: u64) -> Machine {
    let (low, wake) = (Power::from_uw(1), Span::from_ps(wake_ps));
    let sleep = SleepParameters { low, idle_after: Span::from_ns(100), wake, off: None, signal: None };
    let power = LinkPower { active: low, per_bit: EnergyPerBit::ZERO, sleep: Some(sleep) };
    machine.links[1..].iter_mut().for_each(|link| link.layer.power = Some(power));
    machine
}

/// Catches thresholds that are off by a packet or a byte, a frame that does not wait or does not take its
/// time, a response that is forgotten or counted twice, and a frame that passes a line that sleeps, each by a
/// picosecond.
///
/// Endpoint 0 of switch 0 and endpoint 2 of switch 1 both send to endpoint 3 of switch 1. A packet takes
/// 144 ns on a line. Switch 1 takes turns, so that of switch 0's packets, which come every 144 ns, every
/// other one leaves.
#[test]
fn pauses_begin_and_end_at_exact_times() {
    let machine = line_of_two(SwitchKind::InputQueued, FlowControl::Credits);
    check_times(machine.clone(), 0);
    check_times(with_sleep(machine, 470_000), 470_000);
}

/// The same where the line that a frame goes over takes `wake` to wake.
fn check_times(mut machine: Machine, wake: u64) {
    // XOFF above 2 packets, XON at 1.
    let (latency, response) = (20_000, 50_000);
    machine.switch.flow_control = pause(Some(PACKET * 8), response);
    machine.switch.buffer = Bytes::new(PACKET * 10);
    let script = burst(4, &[0, 2], 3, 40);
    let mut run = machine.begin(&script, 1);
    // Head of packet n of switch 0 at switch 1: 1 ns to switch 0, 20 ns, 144 ns for each before it.
    let head = |n: u64| 1_000 + latency + 144_000 * n;
    // Endpoint 2's first packet is at switch 1 at 1 ns and has the output until 145 ns. Then they take turns:
    // switch 0's packet k is granted at (2k + 1) * 144 + 1 ns, and its tail leaves 144 ns later.
    let left = |k: u64| 1_000 + 144_000 * (2 * k + 2);
    // Held after head n: those that came less those that left by then.
    let held = |n: u64| n + 1 - (0..).take_while(|&k| left(k) <= head(n)).count() as u64;
    let first = (0..).find(|&n| held(n) > 2).unwrap();
    // The reverse line is free, or sleeps: 64 B take 32 ns.
    let paused_from = head(first) + wake + 32_000 + latency + response;
    let before = between(
        &{
            until(&mut run, Time::from_ps(paused_from));
            run
        },
        0,
        1,
    );
    assert_eq!((before.pause_frames, before.paused), (0, Span::ZERO));
    let mut run = machine.begin(&script, 1);
    until(&mut run, Time::from_ps(paused_from + 1));
    let after = between(&run, 0, 1);
    assert_eq!((after.pause_frames, after.paused), (1, Span::from_ps(1)));
    // Packets that began before still come; the buffer empties to one packet at an edge of the clock.
    let begun = |n: u64| 1_000 + 144_000 * n;
    let sent = (0..).take_while(|&n| begun(n) < paused_from).count() as u64;
    let resumed_at = left(sent - 2) + wake + 32_000 + latency + response;
    let mut run = machine.begin(&script, 1);
    until(&mut run, Time::from_ps(resumed_at));
    assert_eq!(between(&run, 0, 1).pause_frames, 1);
    assert_eq!(between(&run, 0, 1).packets, sent);
    until(&mut run, Time::from_ps(resumed_at + 1));
    let link = between(&run, 0, 1);
    assert_eq!((link.pause_frames, link.paused), (2, Span::from_ps(resumed_at - paused_from)));
    assert_eq!(link.packets, sent + 1, "the line is free and a packet waits: it goes at once");
    assert_eq!(Network::overrun(&run), None);
}

/// Catches a head-room that is too small by more than rounding, or so large that one a few packets smaller
/// suffices: the worst case of the arithmetic happens, or where links sleep nearly. Three switches in a line
/// all send to the last, so that the middle one is itself paused while its buffer fills, and nothing leaves
/// it.
#[test]
fn a_headroom_one_packet_too_small_loses() {
    let small = KINDS.into_iter().map(|kind| (kind, Some(Bytes::new(PACKET))));
    // What a pause does not reach is bounded where the output buffer is not.
    let large = [1_000, 2_000].map(|speedup| (combined(speedup), None));
    for (kind, output_buffer) in small.chain(large) {
        for (response, wake) in [(0, 0), (123_456, 0), (400_000, 0), (0, 2_000_000)] {
            let mut machine = line_of_two(kind, pause(None, response));
            machine.layout = torus(&[3], false, 2, true);
            machine.links[1..].iter_mut().for_each(|link| link.latency = Span::from_ns(900));
            machine.switch.output_buffer = output_buffer;
            if wake > 0 {
                machine = with_sleep(machine, wake);
            }
            let needed = machine.largest_headroom().get();
            let mut script = burst(6, &[0, 1, 2, 4], 5, 400);
            // Endpoint 3 keeps the reverse line busy, or it sleeps, and no packet is on it.
            let back = if wake > 0 { 0 } else { 400 };
            script[3] = burst(6, &[3], 0, back).remove(3);
            let lost = |headroom: u64| {
                let mut machine = machine.clone();
                machine.switch.flow_control = pause(Some(headroom), response);
                machine.switch.buffer = Bytes::new(headroom + 2 * PACKET);
                let mut run = machine.begin(&script, 1);
                assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
                assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
                let arrived = take_arrivals(&mut run).len() as u64;
                let full: u64 = run.sites().map(|(_, site)| site.faults().full).sum();
                assert_eq!(arrived + full, 1600 + back as u64, "{kind:?}");
                assert_eq!(stuck(&run), None, "{kind:?}");
                let overrun: Option<Overrun> = Network::overrun(&run);
                assert_eq!(overrun.is_some(), full > 0);
                if let Some(Overrun { switch, packets, .. }) = overrun {
                    assert!(switch == SwitchId(1) || switch == SwitchId(2), "{switch}");
                    assert!(packets > 0 && packets <= full);
                }
                let of_links: u64 = Network::links(&run).map(|link| link.counts.full).sum();
                assert_eq!(of_links, full);
                full
            };
            assert_eq!(lost(needed), 0, "{kind:?}, {response} ps");
            let least = (1..).map(|packets| needed - packets * PACKET).find(|&headroom| lost(headroom) > 0);
            let spare = (needed - least.unwrap()) / PACKET;
            assert!(
                spare <= if wake > 0 { 6 } else { 3 },
                "{kind:?}, {response} ps: {spare} packets of {needed} B are never needed"
            );
        }
    }
}

/// Catches a buffer that stands empty while its sender learns that it may go on: a long link is as fast as a
/// short one if the mark at which it goes on is a round trip of bytes above empty, and slower if it is not.
#[test]
fn a_long_link_needs_a_round_trip_below_its_mark() {
    let through = |spare: u64| {
        let mut machine = line_of_two(SwitchKind::VirtualOutputQueued, pause(None, 0));
        machine.links[0].rate = BitRate::from_gigabits(10);
        machine.switch.faster_link = FasterLink::Store;
        machine.links[1..].iter_mut().for_each(|link| link.latency = Span::from_us(20));
        let headroom = machine.largest_headroom();
        machine.switch.buffer = headroom + Bytes::new(spare + PACKET);
        // Two endpoints fill the link, and the line of the third takes 10 of its 16 Gb/s.
        let script = burst(4, &[0, 1], 3, 2000);
        let mut run = machine.begin(&script, 1);
        assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        assert_eq!(Network::overrun(&run), None);
        assert!(between(&run, 0, 1).pause_frames > 1);
        take_arrivals(&mut run).iter().map(|packet| packet.at).max().unwrap().as_ps()
    };
    // 4000 packets of 230.4 ns, one after the other, and the way of the first.
    let gapless = 4000 * 230_400 + 20_000_000 + 2 * 230_400 + 2_000;
    // 40 us there and back at the 1.25 B per ns that leave, and frames and packets that are waited for.
    let (wide, narrow) = (through(50_000 + 4 * PACKET), through(0));
    assert!(wide <= gapless + 230_400, "{wide} ps, {gapless} without a gap");
    assert!(narrow > gapless + 100_000_000, "{narrow} ps, {gapless} without a gap");
}

/// Catches a pause of one virtual channel or port that holds another, and pauses of endpoints that hold a
/// packet for ever: three senders wait while another sends to one of them at full rate, but for the time that
/// the pause frames for that one take on its line.
#[test]
fn endpoints_pause_and_others_do_not_wait() {
    for kind in KINDS {
        let mut machine = plain(star(5), kind, 1);
        machine.switch.flow_control = pause(None, 10_000);
        machine.switch.output_buffer = Some(Bytes::new(2 * PACKET));
        machine.switch.buffer = machine.largest_headroom() + Bytes::new(3 * PACKET);
        let mut script = burst(5, &[0, 1, 2], 4, 200);
        script[3] = burst(5, &[3], 2, 200).remove(3);
        let mut run = machine.begin(&script, 1);
        assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        assert_eq!((Network::overrun(&run), stuck(&run)), (None, None));
        let arrived = take_arrivals(&mut run);
        assert_eq!(arrived.len(), 800, "{kind:?}");
        let of = |source| arrived.iter().filter(move |packet| packet.source.0 == source);
        let paused = |endpoint| {
            let of = |link: &LinkReport| link.from == LinkEnd::Endpoint(EndpointId(endpoint));
            Network::links(&run).find(of).unwrap().paused
        };
        assert!([0, 1, 2].iter().all(|&endpoint| paused(endpoint) > Span::from_us(10)), "{kind:?}");
        let frames = Network::links(&run).find(|link| link.from == LinkEnd::Endpoint(EndpointId(2)));
        let last = of(3).map(|packet| packet.at).max().unwrap();
        // 200 packets of 144 ns, frames of 32 ns, and the way of the first.
        let no_later = 200 * 144_000 + frames.unwrap().pause_frames * 32_000 + 100_000;
        assert!(last <= Time::from_ps(no_later), "{kind:?}: {last}, {no_later} ps");
    }
}

/// Catches pauses that close a circle and are not found, or that are found where datelines exclude them.
#[test]
fn a_ring_without_datelines_deadlocks_under_pause() {
    for kind in KINDS {
        for datelines in [false, true] {
            let layout: Layout = torus(&[6], true, 2, datelines);
            assert_eq!(prove(&layout).is_ok(), datelines);
            let mut machine = plain(layout, kind, 1);
            machine.switch.flow_control = pause(None, 0);
            machine.switch.output_buffer = Some(Bytes::new(PACKET));
            machine.switch.buffer = machine.largest_headroom() + Bytes::new(PACKET);
            // Each endpoint to the one half-way round.
            let plan = |e: u32| burst(12, &[e as usize], (e + 6) % 12, 600).swap_remove(e as usize);
            let script: Script = (0..12).map(plan).collect();
            let mut run = machine.begin(&script, 1);
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
            assert_eq!(Network::overrun(&run), None);
            match stuck(&run) {
                None => assert!(datelines, "{kind:?}: no deadlock"),
                Some(Stuck::Deadlock { cycle }) => assert!(!datelines && cycle.len() > 1, "{cycle:#?}"),
                Some(other) => panic!("{kind:?}: {other}"),
            }
        }
    }
}

/// Catches a machine that is built although its buffer does not hold the head-room and a packet.
#[test]
fn a_headroom_that_leaves_no_room_is_refused() {
    let mut machine = plain(star(2), SwitchKind::InputQueued, 4);
    for (headroom, fits) in [(3 * PACKET, true), (3 * PACKET + 1, false), (9 * PACKET, false)] {
        machine.switch.flow_control = pause(Some(headroom), 0);
        let built = machine.build(&vec![Vec::new(); 2]).map(drop);
        assert_eq!(built.is_ok(), fits, "{headroom}");
        if let Err(error) = built {
            assert!(error.to_string().contains("does not hold the head-room"), "{error}");
        }
    }
}
