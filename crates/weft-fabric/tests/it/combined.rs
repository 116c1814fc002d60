//! Combined queues: the crossbar's speed-up and the output buffer.

use crate::machines::{ARBITERS, Load, combined, dragonfly, link, plain, random_script, star, torus, tree};
use crate::scripted::{Machine, Planned, Script, take_arrivals, until};
use weft_fabric::parameters::{Forwarding, SwitchKind};
use weft_fabric::{BuildError, LinkParameters, check_credits, check_packets};
use weft_topo::{Ascent, Layout};
use weft_units::{BitRate, Bytes, Clock, EndpointId, LineCode, Time};

/// A machine in which a byte takes a clock cycle of 1 ns on every line.
fn in_step(layout: Layout, kind: SwitchKind, packets: u64) -> Machine {
    let mut machine = plain(layout, kind, packets);
    machine.links.fill(link(8_000, LineCode::NONE, 15_000, 0));
    machine.switch.clock = Clock::from_hertz(1_000_000_000).unwrap();
    machine
}

/// Catches a grant, a credit or a line that output buffers move although they are never needed: without
/// speed-up no output receives more than its line sends.
#[test]
fn without_speedup_it_is_a_switch_with_virtual_output_queues() {
    for layout in [star(9), torus(&[4, 4], true, 2, true), tree(3, 3, Ascent::DModK), dragonfly(2, 4, 2, 9)] {
        for arbiter in ARBITERS {
            for forwarding in [Forwarding::VirtualCutThrough, Forwarding::StoreAndForward] {
                for packets in [1, 3] {
                    let arrivals = |kind| {
                        let mut machine = in_step(layout.clone(), kind, packets);
                        (machine.switch.arbiter, machine.switch.forwarding) = (arbiter, forwarding);
                        let load = Load { packets: 40, gap_ps: 100_000, seed: 9 };
                        machine.arrivals(&random_script(&machine.layout, 256, load))
                    };
                    let (bare, buffered) =
                        (arrivals(SwitchKind::VirtualOutputQueued), arrivals(combined(1_000)));
                    assert!(bare == buffered, "{arbiter:?} {forwarding:?}, buffers of {packets}");
                }
            }
        }
    }
}

/// Numbers worked out on paper: three endpoints send a packet to a fourth, and then one to an output of their
/// own, which tells when their inputs were free. A packet of 288 B takes 288 ns on a line and 144 ns through
/// the crossbar; latencies are 15 ns, the pipeline 2 ns.
///
/// ```text
///  all inputs   heads come at 15, tails at 303
///  input 0      crosses 15 to 303 as it comes in    on the line 17 to 305
///  input 1      crosses 303 to 447                  on the line 305 to 593
///  input 2      crosses 447 to 591                  on the line 593 to 881
///                 with space for one packet: 591 to 735, as the packet before leaves the buffer at 593
/// ```
/// The second packets come at 303, 315 and 600, and are granted when their inputs are free, at 303, 447 and
/// 600 or 735. They arrive 2 + 288 + 15 later.
#[test]
fn three_inputs_and_an_output_by_hand() {
    for (space, last) in [(None, 905), (Some(3), 905), (Some(2), 905), (Some(1), 1_040)] {
        let mut machine = in_step(star(7), combined(2_000), 4);
        machine.switch.output_buffer = space.map(|packets| Bytes::new(288 * packets));
        let packet = |at: u64, to| Planned { at: Time::from_ps(at * 1_000), to: EndpointId(to), bytes: 256 };
        let mut script: Script =
            [(0, 4), (300, 5), (585, 6)].map(|(at, to)| vec![packet(0, 3), packet(at, to)]).into();
        script.resize(7, Vec::new());
        let arrived = machine.arrivals(&script);
        let at = |from: u32, to: u32| {
            let is_it =
                |packet: &&crate::scripted::Arrived| (packet.source.0, packet.destination.0) == (from, to);
            arrived.iter().find(is_it).unwrap().at.as_ps() / 1_000
        };
        assert_eq!([at(0, 3), at(1, 3), at(2, 3)], [320, 608, 896], "space for {space:?}");
        assert_eq!([at(0, 4), at(1, 5), at(2, 6)], [608, 752, last], "space for {space:?}");
    }
}

/// Catches an output buffer in which packets hold space too long: with space for a single packet the line has
/// no gaps.
#[test]
fn a_line_behind_the_smallest_buffer_never_waits() {
    for thousandths in [1_000, 1_300, 3_000] {
        let mut machine = plain(star(4), combined(thousandths), 4);
        machine.switch.output_buffer = Some(Bytes::new(288));
        let packet = Planned { at: Time::ZERO, to: EndpointId(3), bytes: 256 };
        let script: Script = vec![vec![packet; 100], vec![packet; 100], vec![packet; 100], Vec::new()];
        let arrived = machine.arrivals(&script);
        let apart = arrived.windows(2).map(|pair| (pair[1].at - pair[0].at).as_ps());
        // 288 B at 16 Gb/s.
        assert!(apart.clone().all(|ps| ps == 144_000), "{thousandths}: {:?}", apart.collect::<Vec<_>>());
    }
}

/// Catches packets and credits that a buffered output loses or makes, seen at any time.
#[test]
fn nothing_is_lost_in_output_buffers() {
    for space in [None, Some(288), Some(1_000)] {
        let mut machine = plain(torus(&[4, 4], true, 2, true), combined(2_000), 2);
        machine.switch.output_buffer = space.map(Bytes::new);
        let load = Load { packets: 40, gap_ps: 0, seed: 3 };
        let mut run = machine.begin(&random_script(&machine.layout, 256, load), 1);
        for step in 1..200 {
            until(&mut run, Time::from_ps(step * 77_777));
            assert_eq!((check_packets(&run), check_credits(&run)), (Ok(()), Ok(())), "space of {space:?}");
        }
        until(&mut run, Time::NEVER);
        assert_eq!(take_arrivals(&mut run).len(), 32 * 40);
    }
}

/// Catches a buffer that could never take the largest packet, which would wait for ever, and a crossbar whose
/// pace is rounded.
#[test]
fn what_does_not_fit_is_refused() {
    let script = vec![Vec::new(); 2];
    let mut machine = plain(star(2), combined(2_000), 1);
    machine.switch.output_buffer = Some(Bytes::new(287));
    assert!(matches!(machine.build(&script), Err(BuildError::BufferTooSmall { .. })));
    machine.switch.output_buffer = Some(Bytes::new(288));
    assert!(machine.build(&script).is_ok());
    let code = LineCode { payload: 65_521, wire: 65_535 };
    let rate = BitRate::from_bits_per_second(15_999_999_999);
    machine.links.fill(LinkParameters { rate, ..link(16_000, code, 15_000, 0) });
    assert!(machine.build(&script).is_ok());
    machine.switch.kind = combined(1_999);
    assert!(matches!(machine.build(&script), Err(BuildError::CrossbarNotExact { .. })));
}
