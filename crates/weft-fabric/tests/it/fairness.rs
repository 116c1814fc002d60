//! Inputs that contend for one output get equal shares, and outputs equal service, whatever their numbers.

use crate::machines::{ARBITERS, KINDS, plain, star};
use crate::scripted::{Planned, Script, take_arrivals, until};
use weft_engine::Stream;
use weft_fabric::parameters::{ArbiterKind, SwitchKind};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Catches an order of service that favours an input because of the idle ones before it, or one that
/// falls in step with the packets and starves an input.
#[test]
fn neighbours_and_others_share_an_output_equally() {
    for senders in [&[1, 2][..], &[1, 2, 5], &[3, 4, 6, 7], &[0, 7]] {
        for kind in KINDS {
            for (arbiter, tolerance) in
                [(ArbiterKind::RoundRobin, 1), (ArbiterKind::Islip(1), 1), (ArbiterKind::Random, 130)]
            {
                for buffered in [1, 2, 3] {
                    let mut machine = plain(star(8), kind, buffered);
                    machine.switch.arbiter = arbiter;
                    if matches!(kind, SwitchKind::OutputQueued | SwitchKind::CombinedInputOutput(_)) {
                        machine.switch.output_buffer = Some(Bytes::new(buffered * 288));
                    }
                    let mut script: Script = vec![Vec::new(); 8];
                    for &sender in senders {
                        script[sender as usize] =
                            vec![Planned { at: Time::ZERO, to: EndpointId(5), bytes: 256 }; 3_000];
                    }
                    let mut run = machine.begin(&script, 1);
                    // A thousand packets for each sender.
                    let slots = 1_000 * senders.len() as u64;
                    until(&mut run, Time::from_ps(slots * 144_000));
                    let arrived = take_arrivals(&mut run);
                    let shares: Vec<usize> =
                        senders.iter().map(|&s| arrived.iter().filter(|a| a.source.0 == s).count()).collect();
                    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
                    assert!(
                        most - least <= tolerance,
                        "{kind:?} {arbiter:?}, buffers of {buffered}, {senders:?}: {shares:?}"
                    );
                }
            }
        }
    }
}

/// Catches an order of outputs in which one goes before its neighbour: two inputs with packets for two
/// outputs, in whatever way the outputs are numbered, serve both alike.
#[test]
fn what_outputs_are_called_changes_no_latency() {
    for arbiter in ARBITERS {
        let waits = [[1, 2], [2, 1], [7, 0], [0, 7], [3, 6], [6, 3]].map(|outputs| {
            let mut machine = plain(star(8), SwitchKind::VirtualOutputQueued, 16);
            machine.switch.arbiter = arbiter;
            let mut script: Script = vec![Vec::new(); 8];
            let mut rng = Stream::new(3, 0, 0);
            for sender in [4, 5] {
                let mut at = Time::ZERO;
                for _ in 0..20_000 {
                    // Nine tenths of the line on average.
                    at += Span::from_ps(u64::from(rng.below(2 * 160_000)));
                    let to = EndpointId(outputs[rng.below(2) as usize]);
                    script[sender].push(Planned { at, to, bytes: 256 });
                }
            }
            let arrived = machine.arrivals(&script);
            // The mean beyond what a packet takes alone, to the output that is called first.
            let of_first = || arrived.iter().filter(|a| a.destination.0 == outputs[0]);
            let sum: u64 = of_first().map(|a| (a.at - a.offered).as_ps()).sum();
            sum as f64 / of_first().count() as f64 - 190_000.0
        });
        let (least, most) = waits.iter().fold((f64::MAX, 0f64), |(l, m), &w| (l.min(w), m.max(w)));
        assert!(most / least < 1.1, "{arbiter:?}: mean waits of {waits:?} ps");
    }
}

/// Catches a packet that waits for as long as others have packets: its output is always busy with those of
/// another input when its own input is free, and its input with packets for another output when the output
/// is.
#[test]
fn nobody_waits_for_ever() {
    for arbiter in [ArbiterKind::RoundRobin, ArbiterKind::Random] {
        let mut machine = plain(star(8), SwitchKind::VirtualOutputQueued, 16);
        machine.switch.arbiter = arbiter;
        let mut script: Script = vec![Vec::new(); 8];
        script[4] = vec![Planned { at: Time::ZERO, to: EndpointId(1), bytes: 256 }; 2_000];
        // Among the first, so that their input has others for as long as they could wait.
        (8..16).for_each(|place| script[4][place].to = EndpointId(3));
        // Half a packet later.
        script[6] = vec![Planned { at: Time::from_ps(72_000), to: EndpointId(3), bytes: 256 }; 2_000];
        let mut run = machine.begin(&script, 1);
        until(&mut run, Time::from_ps(1_000 * 144_000));
        let arrived = take_arrivals(&mut run);
        let passed = arrived.iter().filter(|a| a.source.0 == 4 && a.destination.0 == 3).count();
        assert_eq!(passed, 8, "{arbiter:?}: so many of eight after a thousand packets of others");
        // What is kept for them costs the others little: a packet's time each.
        for (source, to) in [(4, 1), (6, 3)] {
            let others = arrived.iter().filter(|a| a.source.0 == source && a.destination.0 == to).count();
            assert!(others >= 1_000 - 3 * 8, "{arbiter:?}: {others} from {source} to {to}");
        }
    }
}
