//! A real deadlock, found and reported as a circle of buffers that is one.

use crate::machines::{ARBITERS, combined, plain, torus};
use crate::scripted::{Machine, Planned, Script, take_arrivals, until};
use weft_engine::{Progress, Stream};
use weft_fabric::parameters::{ArbiterKind, SwitchKind};
use weft_fabric::{Stuck, check_credits, stuck};
use weft_topo::{Attachment, Channel, Cycle, Exanest, ExanestOrder, Layout, Topology, prove};
use weft_units::{Bytes, EndpointId, PortId, SwitchId, Time};

/// A buffer and the buffer that its packet waits for, read from a line of the report: "switch 1, port
/// 2, virtual channel 0: packet of message … waits for port 3, virtual channel 0".
fn read(line: &str, layout: &impl Topology) -> ((u32, u32, u32), (u32, u32, u32)) {
    let number = |text: &str, word: &str| -> u32 {
        let rest = text.split(word).nth(1).unwrap().trim_start();
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let (here, wanted) = (line.split(": packet").next().unwrap(), line.split("waits for").nth(1).unwrap());
    let at = (number(here, "switch"), number(here, "port"), number(here, "virtual channel"));
    let output = PortId(number(wanted, "port"));
    match layout.peer(SwitchId(at.0), output) {
        Attachment::Switch(next, port) => (at, (next.0, port.0, number(wanted, "virtual channel"))),
        other => panic!("{line}: waits for {other:?}, which always takes"),
    }
}

/// Every endpoint sends many packets about half-way round its rings at once.
fn pressure(machine: &Machine, packets: usize, seed: u64) -> Script {
    let endpoints = machine.layout.endpoints();
    let plan = |from| {
        let mut rng = Stream::new(seed, from, 3);
        let mut packet = || Planned { at: Time::ZERO, to: EndpointId(rng.below(endpoints)), bytes: 256 };
        (0..packets).map(|_| packet()).collect()
    };
    (0..u64::from(endpoints)).map(plan).collect()
}

/// Catches a deadlock that the model cannot have (it would hide real ones), one that is not found, and a
/// report whose buffers do not wait for one another.
#[test]
fn a_ring_without_datelines_deadlocks_and_the_circle_is_one() {
    let kinds = [
        (SwitchKind::InputQueued, None),
        (SwitchKind::VirtualOutputQueued, None),
        (SwitchKind::OutputQueued, Some(Bytes::new(288))),
        (combined(2_000), Some(Bytes::new(288))),
        (combined(2_000), None),
    ];
    for sizes in [&[5][..], &[8], &[6, 4]] {
        for (kind, output_buffer) in kinds {
            for arbiter in ARBITERS {
                let mut machine = plain(torus(sizes, true, 2, false), kind, 1);
                (machine.switch.arbiter, machine.switch.output_buffer) = (arbiter, output_buffer);
                assert!(prove(&machine.layout).is_err());
                let script = pressure(&machine, 300, 4);
                let mut run = machine.begin(&script, 1);
                assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
                assert_eq!(check_credits(&run), Ok(()));
                let delivered = take_arrivals(&mut run).len();
                let all: usize = script.iter().map(Vec::len).sum();
                // Packets on their way are older than those that come in: a small ring may get by.
                if arbiter == ArbiterKind::Age && delivered == all {
                    continue;
                }
                assert!(delivered > 0 && delivered < all);
                let Some(Stuck::Deadlock { cycle }) = stuck(&run) else {
                    panic!("{sizes:?} {kind:?} {arbiter:?}: no circle found: {:?}", stuck(&run))
                };
                let waits: Vec<_> = cycle.iter().map(|line| read(line, &machine.layout)).collect();
                assert!(waits.len() > 1);
                for (i, &(_, wanted)) in waits.iter().enumerate() {
                    assert_eq!(wanted, waits[(i + 1) % waits.len()].0, "{kind:?}: not a circle: {cycle:#?}");
                }
                let mut buffers: Vec<_> = waits.iter().map(|&(at, _)| at).collect();
                buffers.sort_unstable();
                buffers.dedup();
                assert_eq!(buffers.len(), waits.len(), "a buffer twice in the circle: {cycle:#?}");
            }
        }
    }
}

/// Packets that fill the circle which the proof printed: from every endpoint many to those that it reaches by
/// a turn from one of its channels to the next.
fn around(layout: &Layout, cycle: &Cycle, packets: usize) -> Script {
    let next = cycle.channels.iter().cycle().skip(1);
    let place = |channel: &Channel| (channel.switch, channel.port);
    let turns: Vec<_> =
        cycle.channels.iter().zip(next).map(|(here, next)| [place(here), place(next)]).collect();
    let takes_a_turn = |from, to| {
        let mut way = Vec::new();
        weft_topo::idle_path(layout, from, to, |switch, port| way.push((switch, port)));
        way.windows(2).any(|pair| turns.iter().any(|turn| pair == turn))
    };
    let all = || (0..layout.endpoints()).map(EndpointId);
    let plan = |from| {
        let reached = all().filter(|&to| layout.reachable(from, to) && takes_a_turn(from, to));
        let there: Vec<_> = reached.collect();
        let packets = if there.is_empty() { 0 } else { packets };
        let planned = there.into_iter().cycle().map(|to| Planned { at: Time::ZERO, to, bytes: 256 });
        planned.take(packets).collect()
    };
    all().map(plan).collect()
}

/// Catches a proof that prints a circle which no packets can form: on three machines whose check prints one,
/// the packets that it names do wait for each other for ever, and with datelines they all arrive.
#[test]
fn the_circle_that_the_proof_prints_is_real() {
    let ring = |datelines| torus(&[8], true, 1, datelines);
    let torus = |datelines| torus(&[5, 5], true, 1, datelines);
    let exanest = |datelines| Layout::Exanest(ExanestOrder::new(Exanest::new(16).unwrap(), datelines));
    for (name, machine) in
        [("ring", &ring as &dyn Fn(bool) -> Layout), ("torus", &torus), ("exanest", &exanest)]
    {
        let cycle = prove(&machine(false)).unwrap_err();
        let script = around(&machine(false), &cycle, 300);
        let begin = |datelines| plain(machine(datelines), SwitchKind::InputQueued, 1).begin(&script, 1);
        let mut run = begin(false);
        assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        let Some(Stuck::Deadlock { cycle: found }) = stuck(&run) else {
            panic!("{name}: no deadlock: {:?}", stuck(&run))
        };
        assert!(found.len() > 1, "{name}: {found:#?}");
        assert!(prove(&machine(true)).is_ok());
        let mut run = begin(true);
        assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        assert_eq!(stuck(&run), None, "{name}");
        assert_eq!(take_arrivals(&mut run).len(), script.iter().map(Vec::len).sum::<usize>());
    }
}

/// Catches virtual channels that disturb each other: the same pressure with datelines always ends. An
/// output buffer that all channels shared would let one channel's packets block the other's.
#[test]
fn with_datelines_the_same_pressure_ends() {
    let kinds = [
        (SwitchKind::InputQueued, None),
        (SwitchKind::VirtualOutputQueued, None),
        (SwitchKind::OutputQueued, None),
        (SwitchKind::OutputQueued, Some(Bytes::new(288))),
        (combined(2_000), None),
        (combined(2_000), Some(Bytes::new(288))),
    ];
    for sizes in [&[4][..], &[5], &[6, 4]] {
        for (kind, output_buffer) in kinds {
            for seed in 0..4 {
                let mut machine = plain(torus(sizes, true, 2, true), kind, 1);
                machine.switch.output_buffer = output_buffer;
                let script = pressure(&machine, 300, seed);
                let mut run = machine.begin(&script, 1);
                assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
                assert_eq!(stuck(&run), None, "{sizes:?} {kind:?} {output_buffer:?}");
                let sent: usize = script.iter().map(Vec::len).sum();
                assert_eq!(take_arrivals(&mut run).len(), sent);
            }
        }
    }
}
