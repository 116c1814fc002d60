//! Links that sleep: the time that waking costs, against arithmetic, and times in states that add up.

use crate::machines::{KINDS, Load, plain, random_script, torus};
use crate::scripted::{Machine, Planned, Run, Script, take_arrivals, until};
use weft_engine::Progress;
use weft_fabric::parameters::ArbiterKind;
use weft_fabric::{
    LinkEnd, LinkPower, LinkReport, OffParameters, SleepParameters, check_credits, check_packets,
};
use weft_topo::{Attachment, Topology as _};
use weft_units::{Bytes, Clock, EndpointId, Energy, EnergyPerBit, Power, Span, SwitchId, Time};

const IDLE: Span = Span::from_ns(200);
const WAKE: Span = Span::from_ns(70);
const OFF: OffParameters =
    OffParameters { power: Power::ZERO, off_after: Span::from_us(5), wake: Span::from_ns(900) };

fn power(sleeps: bool, off: Option<OffParameters>) -> LinkPower {
    let low = Power::from_uw(100_000);
    let sleep = SleepParameters { low, idle_after: IDLE, wake: WAKE, off, signal: None };
    LinkPower {
        active: Power::from_uw(1_000_000),
        per_bit: EnergyPerBit::from_fj(2_500),
        sleep: sleeps.then_some(sleep),
    }
}

/// The power of links that sleep and wake ahead of packets, by a signal that takes `delay` in a switch.
fn ahead(delay: Span, off: Option<OffParameters>) -> LinkPower {
    let power = power(true, off);
    let sleep = power.sleep.map(|sleep| SleepParameters { signal: Some(delay), ..sleep });
    LinkPower { sleep, ..power }
}

fn with_power(mut machine: Machine, power: LinkPower) -> Machine {
    machine.links.iter_mut().for_each(|link| link.layer.power = Some(power));
    machine
}

fn links(run: &Run) -> Vec<LinkReport> {
    run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now())).collect()
}

/// A ring of eight whose switches take no time, so that no clock edge hides a part of a wake-up.
fn ring() -> Machine {
    let mut machine = plain(torus(&[8], true, 1, true), KINDS[0], 4);
    machine.switch.clock = Clock::from_hertz(1_000_000_000_000).unwrap();
    machine.switch.pipeline_cycles = 0;
    machine
}

/// Catches a wake-up that is not waited for, one too many, and an idle time that is counted from elsewhere
/// than the end of the last packet: three packets over four links, by hand.
///
/// The first finds links that have slept since the beginning, the second comes while they are awake, the
/// third when they are off.
#[test]
fn a_packet_waits_for_every_link_to_wake() {
    let at = [1_000_000, 1_200_000, 9_000_000];
    let mut script: Script = vec![Vec::new(); 8];
    script[0] = at.map(|at| Planned { at: Time::from_ps(at), to: EndpointId(2), bytes: 256 }).to_vec();
    let took = |machine: &Machine| {
        let arrived = machine.arrivals(&script);
        at.into_iter().zip(arrived).map(|(at, one)| (one.at - Time::from_ps(at)).as_ps()).collect::<Vec<_>>()
    };
    let idle = 144_000 + 4 * 15_000;
    assert_eq!(took(&ring()), [idle; 3]);
    assert_eq!(took(&with_power(ring(), power(false, None))), [idle; 3], "always on");
    let first = idle + 4 * WAKE.as_ps();
    // The second comes 200 ns later and finds all links awake, but the first before it: that waited at each
    // link, and its tail leaves the last one four wake-ups and 144 ns after its head would have.
    let busy = 4 * WAKE.as_ps() + 144_000 - 200_000;
    assert_eq!(took(&with_power(ring(), power(true, None))), [first, idle + busy, first]);
    let from_off = idle + 4 * OFF.wake.as_ps();
    assert_eq!(took(&with_power(ring(), power(true, Some(OFF)))), [first, idle + busy, from_off]);
}

/// Catches a signal that starts late, loses its lead at a link or a switch or waits where the packet does,
/// one that is ahead of its packet where it is slower, and a link that sleeps again before the packet has
/// come: by hand, over four links.
///
/// The first link wakes when the packet has come to it. The signal has crossed the wire of each link when the
/// packet begins on it, and takes its own delay in each of three switches, where the packet takes none.
#[test]
fn links_wake_ahead_of_a_packet() {
    let mut script: Script = vec![Vec::new(); 8];
    script[0] = vec![Planned { at: Time::from_ps(9_000_000), to: EndpointId(2), bytes: 256 }];
    let took = |power| {
        let arrived = with_power(ring(), power).arrivals(&script);
        (arrived[0].at - Time::from_ps(9_000_000)).as_ps()
    };
    let (idle, wake) = (144_000 + 4 * 15_000, WAKE.as_ps());
    let signal = |ns| ahead(Span::from_ns(ns), None);
    assert_eq!(took(signal(0)), idle + wake);
    assert_eq!(took(signal(20)), idle + wake + 3 * 20_000);
    // No sooner than the packet would wake them.
    assert_eq!(took(signal(70)), idle + 4 * wake);
    assert_eq!(took(signal(300)), idle + 4 * wake);
    // The packet waits for the first link for 900 ns, and idle links sleep after 200. Leads are in units of
    // 128 ps then, and rounded down three times.
    let from_off = took(ahead(Span::from_ns(20), Some(OFF))) - (idle + OFF.wake.as_ps() + 3 * 20_000);
    assert!(from_off < 3 * 128, "{from_off} ps");
}

/// Catches a wake-up that is counted from elsewhere than the signal, and a link that sleeps again, or counts
/// as asleep, between signal and packet: times of the second link, by hand. Switches take a microsecond, so
/// that the signal is ahead by more than the idle time after which links sleep.
#[test]
fn a_link_that_was_told_stays_awake() {
    let mut machine = with_power(ring(), ahead(Span::from_ns(20), None));
    machine.switch.pipeline_cycles = 1_000_000;
    let mut script: Script = vec![Vec::new(); 8];
    script[0] = vec![Planned { at: Time::from_ps(9_000_000), to: EndpointId(2), bytes: 256 }];
    let mut run = machine.begin(&script, 1);
    until(&mut run, Time::from_ps(20_000_000));
    let second = |link: &LinkReport| match (link.from, link.to) {
        (LinkEnd::Port(from, _), Attachment::Switch(..)) => from == SwitchId(0) && link.packets == 1,
        _ => false,
    };
    let second = links(&run).into_iter().find(second).unwrap().power.unwrap();
    let (told, head) = (9_000_000 + 15_000 + 20_000, 9_000_000 + 70_000 + 15_000 + 1_000_000);
    let (sent, idle_after) = (head + 144_000, IDLE.as_ps());
    let active = idle_after + (head - told - WAKE.as_ps()) + 144_000 + idle_after;
    let low = (told - idle_after) + (20_000_000 - sent - idle_after);
    assert_eq!((second.waking, second.wake_ups), (WAKE, 1));
    assert_eq!((second.active.as_ps(), second.low.as_ps()), (active, low));
}

/// Catches signals where nothing can carry them, or where nobody knows the way.
#[test]
fn signals_are_refused_where_nothing_carries_them() {
    let refused = |machine: Machine| {
        let script: Script = vec![Vec::new(); machine.layout.endpoints() as usize];
        let machine = with_power(machine, ahead(Span::ZERO, None));
        machine.build(&script).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(ring()), "");
    let mut by_age = ring();
    by_age.switch.arbiter = ArbiterKind::Age;
    assert!(refused(by_age).contains("choose another arbiter"));
}

/// Catches times that do not add up to the run's on some link, energy that is not power by time and bits by
/// energy, packets that get lost, and a state that depends on threads or does not survive a snapshot: random
/// load on every kind of switch, with a reset on the way.
#[test]
fn times_add_up_for_any_number_of_threads() {
    let policies = [power(true, Some(OFF)), ahead(Span::from_ns(3), Some(OFF))];
    for (kind, power) in KINDS.into_iter().flat_map(|kind| policies.map(|power| (kind, power))) {
        let machine = with_power(plain(torus(&[4, 4], true, 1, true), kind, 4), power);
        let load = Load { packets: 30, gap_ps: 3_000_000, seed: 4 };
        let script = random_script(&machine.layout, 256, load);
        let outcome = |threads| {
            let mut run = machine.begin(&script, threads);
            until(&mut run, Time::from_ps(11_111_111));
            let reset = run.now();
            run.sites_mut().for_each(|(_, site)| site.reset_counters(reset));
            let mut wake_ups = 0;
            for end in [11_111_112, 20_000_000, 47_000_000, 90_000_000] {
                until(&mut run, Time::from_ps(end));
                let elapsed = run.now() - reset;
                wake_ups = 0;
                for link in links(&run) {
                    let report = link.power.unwrap();
                    assert_eq!(report.time(), elapsed, "{kind:?} {end}: {link:?}");
                    // Packets have 32 B besides their payload, and lines no framing.
                    let bits = (link.payload + Bytes::new(32) * link.packets).bits();
                    let attojoules = u128::from((report.active + report.waking).as_ps()) * 1_000_000
                        + u128::from(report.low.as_ps()) * 100_000
                        + u128::from(bits) * 2_500_000;
                    assert_eq!(report.energy, Energy::from_pj((attojoules / 1_000_000) as u64));
                    wake_ups += report.wake_ups;
                }
                assert_eq!((check_packets(&run), check_credits(&run)), (Ok(()), Ok(())));
            }
            assert!(wake_ups > 50, "{kind:?}: {wake_ups}");
            let saved = run.save().unwrap();
            assert_eq!(until(&mut run, Time::from_ps(200_000_000)), Progress::Dry);
            (take_arrivals(&mut run), saved, format!("{:?}", links(&run)))
        };
        let alone = outcome(1);
        assert_eq!(alone.0.len(), 16 * 30);
        assert!([2, 3, 8].into_iter().all(|threads| outcome(threads) == alone), "{kind:?}");
    }
}

/// Catches virtual time that power alone changes: random load with links that are always on.
#[test]
fn links_that_are_always_on_change_no_time() {
    for kind in KINDS {
        let machine = plain(torus(&[4, 4], true, 1, true), kind, 4);
        let script = random_script(&machine.layout, 256, Load { packets: 40, gap_ps: 200_000, seed: 9 });
        let plain = machine.arrivals(&script);
        assert_eq!(with_power(machine, power(false, None)).arrivals(&script), plain, "{kind:?}");
    }
}
