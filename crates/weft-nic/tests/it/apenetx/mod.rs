//! The APEnetX card as a whole: latencies in closed form, conservation, determinism.

mod machine;

use machine::{
    LATENCY, Planned, RATE, RING, Report, Run, begin, begin_with_faults, ideal, parameters, resume,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weft_engine::Progress;
use weft_fabric::{FaultParameters, OffTimes};
use weft_nic::apenetx::{CompletionPath, GpuParameters, KernelWait, MemoryKind};
use weft_nic::pcie::{PcieGeneration, PcieLanes};
use weft_nic::{ApenetxParameters, FailureReason, Nic as _};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

fn planned(to: u32, bytes: u64) -> Planned {
    Planned { at: Time::ZERO, to: EndpointId(to), bytes, interface: 0, completion: None, watch: false }
}

/// The reports of a plan of endpoint 0 over the ideal network.
fn run(plan: &[Planned], parameters: ApenetxParameters) -> Vec<Report> {
    let mut run = ideal(&[plan.to_vec()], parameters);
    assert_eq!(run.run_until(Time::NEVER, &AtomicBool::new(false)), Progress::Dry);
    let mut reports: Vec<Report> =
        run.outputs_mut().flat_map(|log| std::mem::take(&mut log.reports)).collect();
    reports.sort_unstable();
    reports
}

fn noticed(reports: &[Report], wanted: u32) -> Time {
    let of = |report: &Report| match *report {
        Report::Delivered { at, plan, .. } if plan == wanted => Some(at),
        _ => None,
    };
    reports.iter().find_map(of).unwrap()
}

/// From the post to the data's being in the card of the sender, at zero load.
fn into_card(parameters: &ApenetxParameters, bytes: u64) -> Span {
    let ApenetxParameters { pcie, memory, software, host_to_card, .. } = parameters;
    if host_to_card.fast {
        let line = software.library + pcie.wire(64 + 24) + pcie.one_way;
        if bytes <= host_to_card.line_data.get() {
            return line;
        }
        return line + read(parameters, bytes.min(4096)) + parameters.iommu.walk;
    }
    let into_kernel = Span::from_ps(software.system_call.as_ps() / 2);
    let call = software.library + into_kernel + software.copy + software.send;
    let doorbell = pcie.wire(4 + 24) + pcie.one_way;
    let fetch = pcie.wire(24) + pcie.one_way + memory.read + pcie.wire(64 + 20) + pcie.one_way;
    let walk = if bytes > 0 { parameters.iommu.walk } else { Span::ZERO };
    call + doorbell + fetch + read(parameters, bytes.min(4096)) + walk
}

/// A read of one packet's data.
fn read(parameters: &ApenetxParameters, bytes: u64) -> Span {
    let pcie = &parameters.pcie;
    if bytes == 0 {
        return Span::ZERO;
    }
    let requests = bytes.div_ceil(512);
    // Completions come at the line's rate, or, of short ones, as far apart as their requests.
    let (whole, rest) = (bytes / 256, bytes % 256);
    let data = bytes + (whole + u64::from(rest > 0)) * 20;
    assert!(requests == 1 || bytes.is_multiple_of(512), "no other sizes here");
    let memory = parameters.memory.read;
    pcie.wire(24) + pcie.one_way + memory + pcie.wire(data) + pcie.one_way
}

/// From the last bit of the only packet's coming to the other card to the process's notice.
fn out_of_card(parameters: &ApenetxParameters, path: CompletionPath, bytes: u64) -> Span {
    let ApenetxParameters { pcie, memory, software, card_to_host, .. } = parameters;
    let written = |line: u64| pcie.wire(line) + pcie.one_way + memory.write;
    let in_entry = bytes <= card_to_host.entry_data.get();
    let data = if in_entry { 0 } else { bytes + 24 * bytes.div_ceil(256) };
    let interrupt = if path.interrupts() { 4 + 24 } else { 0 };
    // The entry is seen no earlier than the data, whose page takes a walk.
    let entry = written(data + 64 + 24 + interrupt);
    let seen = if in_entry { entry } else { entry.max(written(data) + parameters.iommu.walk) };
    let software = match (path, card_to_host.wait) {
        (CompletionPath::Kernel, KernelWait::Interrupt) => {
            let called = software.system_call + software.copy + software.search;
            software.interrupt + software.receive + software.context_switch + called
        }
        (CompletionPath::Kernel, KernelWait::Polling) => {
            software.interrupt + software.receive + software.system_call + software.copy + software.search
        }
        (CompletionPath::Remapped, _) => {
            software.interrupt + software.receive + software.copy + software.poll
        }
        (CompletionPath::Direct, _) => software.poll,
        (CompletionPath::UserQueue, _) => software.poll + software.queue_entry,
    };
    seen + software
}

/// Latency of one packet at zero load, but for the edges of the clock: one at either card.
fn latency(parameters: &ApenetxParameters, path: CompletionPath, bytes: u64) -> Span {
    let inline = parameters.host_to_card.fast && bytes <= parameters.host_to_card.line_data.get();
    // Words are hidden behind their read; the ideal network hands over all of a packet at once.
    let out = 16 + u64::from(inline || bytes == 0);
    let modules = parameters.clock.cycles(out + 12 + bytes.div_ceil(64).max(1));
    let network = LATENCY + RATE.span(Bytes::new(bytes));
    into_card(parameters, bytes) + modules + network + out_of_card(parameters, path, bytes)
}

/// Each path of completions, mode of sending and size, in closed form: catches a step that is left out,
/// counted twice, or put on the wrong path.
#[test]
fn latencies_at_zero_load_are_closed_forms() {
    for path in CompletionPath::ALL {
        for wait in [KernelWait::Interrupt, KernelWait::Polling] {
            for fast in [false, true] {
                for bytes in [0, 8, 32, 33, 64, 256, 512, 4096] {
                    let mut parameters = parameters(path);
                    parameters.card_to_host.wait = wait;
                    parameters.host_to_card.fast = fast;
                    let found = noticed(&run(&[planned(1, bytes)], parameters), 0) - Time::ZERO;
                    let expected = latency(&parameters, path, bytes);
                    // Two edges of 4 ns; a word of 64 bytes that is not full lets a module begin earlier, and
                    // picoseconds are rounded up at each step.
                    let (least, most) =
                        (expected.saturating_sub(Span::from_ns(1)), expected + Span::from_ns(9));
                    assert!(
                        (least..=most).contains(&found),
                        "{path:?} {wait:?} fast {fast} {bytes} B: {found}, not {expected}"
                    );
                }
            }
        }
    }
}

/// The order that the documents state, for every size and mode.
#[test]
fn the_kernel_path_is_slower_than_the_remapped_and_that_than_the_direct_one() {
    for fast in [false, true] {
        for bytes in [0, 8, 64, 4096, 65536] {
            let [kernel, remapped, direct, queue] = CompletionPath::ALL.map(|path| {
                let mut parameters = parameters(path);
                parameters.host_to_card.fast = fast;
                noticed(&run(&[planned(1, bytes)], parameters), 0)
            });
            assert!(kernel > remapped && remapped > queue && queue > direct, "{bytes} B");
        }
    }
}

/// A program's choice for a buffer counts, and the machine's where it makes none.
#[test]
fn a_program_chooses_the_path_of_each_buffer() {
    for path in CompletionPath::ALL {
        let own = run(&[planned(1, 64)], parameters(path));
        for machine in CompletionPath::ALL {
            let chosen = Planned { completion: Some(path), ..planned(1, 64) };
            assert_eq!(run(&[chosen], parameters(machine)), own);
        }
    }
}

/// GPU memory: what it costs, in closed form, as source and as target. As a source it is slower.
#[test]
fn memory_of_a_gpu_costs_most_as_a_source() {
    let ns = Span::from_ns;
    let gpu = |source, target| {
        let mut parameters = parameters(CompletionPath::Direct);
        parameters.gpu = Some(GpuParameters {
            source,
            target,
            read: ns(900),
            read_rate: Some(BitRate::from_gigabits(12)),
            write: ns(300),
            write_rate: None,
            lock: ns(800),
            copy_start: ns(5000),
            copy_rate: BitRate::from_gigabits(80),
        });
        parameters
    };
    use MemoryKind::{GpuDirect, GpuStaged, Host};
    let time = |source, target, bytes| noticed(&run(&[planned(1, bytes)], gpu(source, target)), 0);
    let near = |found: Span, expected: Span| {
        assert!(found + ns(5) > expected && found < expected + ns(5), "{found}, not {expected}");
    };
    let plain = time(Host, Host, 4096);
    let walk = ns(120);
    let copy = ns(5000) + BitRate::from_gigabits(80).span(Bytes::new(4096));
    near(time(GpuStaged, Host, 4096) - plain, copy);
    near(time(Host, GpuStaged, 4096) - plain, copy);
    near(time(GpuStaged, GpuStaged, 4096) - plain, copy + copy);
    // Lock, the longer read, and its rate in place of the port's; its addresses need no walk.
    let pcie = parameters(CompletionPath::Direct).pcie;
    let slower = BitRate::from_gigabits(12).span(Bytes::new(4096)).saturating_sub(pcie.wire(16 * 276));
    let direct = ns(800) + ns(500) + slower;
    near(time(GpuDirect, Host, 4096) - plain + walk, direct);
    // The write is seen later, and so is the completion behind it; here the walk of the host hid behind it.
    let written = time(Host, GpuDirect, 4096) - plain;
    assert!(written > ns(50) && written < ns(201), "{written}");
    for bytes in [1, 64, 4096, 65536] {
        assert!(time(GpuDirect, Host, bytes) > time(Host, GpuDirect, bytes), "{bytes} B");
    }
    // A short message is faster direct than staged, a long one at this rate is not.
    assert!(time(GpuDirect, Host, 64) < time(GpuStaged, Host, 64));
    assert!(time(GpuDirect, Host, 4 << 20) > time(GpuStaged, Host, 4 << 20));
}

/// Data in the completion saves the write of the data, and a byte more does not.
#[test]
fn small_data_travels_in_the_completion() {
    let with = |entry_data, bytes| {
        let mut parameters = parameters(CompletionPath::Direct);
        parameters.card_to_host.entry_data = Bytes::new(entry_data);
        noticed(&run(&[planned(1, bytes)], parameters), 0)
    };
    assert!(with(32, 32) < with(0, 32));
    assert_eq!(with(32, 33), with(0, 33));
}

/// In blocking mode messages do not overlap: each waits for the status of the one before. Non-blocking ones
/// are a call apart.
#[test]
fn blocking_messages_follow_each_other() {
    let times = |blocking, plan: &[Planned]| {
        let mut parameters = parameters(CompletionPath::Direct);
        parameters.host_to_card.blocking = blocking;
        let reports = run(plan, parameters);
        (0..plan.len() as u32).map(|plan| noticed(&reports, plan)).collect::<Vec<_>>()
    };
    let of_one = [planned(1, 64); 4];
    let software = parameters(CompletionPath::Direct).software;
    let call = software.library + software.system_call + software.copy + software.send;
    let free = times(false, &of_one);
    for pair in free.windows(2) {
        let apart = pair[1] - pair[0];
        assert!(apart + Span::from_ns(300) > call && apart < call + Span::from_ns(300), "{apart} {call}");
    }
    let blocking = times(true, &of_one);
    let into = into_card(&parameters(CompletionPath::Direct), 64);
    for pair in blocking.windows(2) {
        assert!(pair[1] - pair[0] > into, "{blocking:?}");
    }
    assert_eq!(free[0], blocking[0]);
    // Another process does not wait.
    let other = Planned { interface: 1, ..planned(1, 64) };
    let two = times(true, &[planned(1, 64), other]);
    assert!(two[1] - two[0] < Span::from_ns(300), "{two:?}");
}

/// Long messages run at the rate of the slowest part: the network here, the port of one lane, a tag at a
/// time.
#[test]
fn long_messages_run_at_the_rate_of_the_slowest_part() {
    let rate = |parameters: ApenetxParameters| {
        let [short, long] =
            [1 << 20, 5 << 20].map(|bytes| noticed(&run(&[planned(1, bytes)], parameters), 0));
        (4 << 20) as f64 * 8e3 / (long - short).as_ps() as f64
    };
    let direct = parameters(CompletionPath::Direct);
    let found = rate(direct);
    assert!((found / 32.0 - 1.0).abs() < 0.01, "{found} Gb/s");
    let mut narrow = direct;
    narrow.pcie.lanes = PcieLanes::new(PcieGeneration::Gen3, 2);
    let found = rate(narrow);
    let expected = 16.0 * 128.0 / 130.0 * 256.0 / 276.0;
    assert!((found / expected - 1.0).abs() < 0.02, "{found} Gb/s, not {expected}");
    let mut one_tag = direct;
    one_tag.pcie.tags = 1;
    let found = rate(one_tag);
    let round_trip = read(&direct, 512).as_ps() as f64 / 1e3;
    assert!((found * round_trip / 4096.0 - 1.0).abs() < 0.05, "{found} Gb/s");
}

/// Messages that the driver refuses fail, and no others do.
#[test]
fn bad_descriptors_fail() {
    let foreign = Planned { interface: 8, ..planned(1, 8) };
    let reports = run(&[planned(7, 8), foreign, planned(1, 8)], parameters(CompletionPath::Kernel));
    let failed = |plan, reason| Report::Failed { from: EndpointId(0), plan, reason };
    assert!(reports.contains(&failed(0, FailureReason::NoNode)));
    assert!(reports.contains(&failed(1, FailureReason::NoInterface)));
    let delivered = reports.iter().filter(|report| matches!(report, Report::Delivered { .. })).count();
    assert_eq!((delivered, reports.len()), (1, 4));
}

/// Catches stages that overlap or leave gaps, at either end, on each path.
#[test]
fn stages_are_a_chain() {
    for path in CompletionPath::ALL {
        for (fast, bytes) in [(false, 64), (true, 64), (true, 8), (false, 0)] {
            let mut parameters = parameters(path);
            parameters.host_to_card.fast = fast;
            let mut run = ideal(&[vec![Planned { watch: true, ..planned(1, bytes) }]], parameters);
            run.run_until(Time::NEVER, &AtomicBool::new(false));
            let stages: Vec<_> = run.outputs_mut().flat_map(|log| std::mem::take(&mut log.stages)).collect();
            for endpoint in [0, 1] {
                let mut own: Vec<_> = stages.iter().filter(|stage| stage.endpoint.0 == endpoint).collect();
                own.sort_by_key(|stage| (stage.came, stage.ended));
                assert!(own.len() >= 3, "{stages:?}");
                for pair in own.windows(2) {
                    assert_eq!(pair[0].ended, pair[1].came, "{path:?} {pair:?}");
                }
            }
            let last = stages.iter().map(|stage| stage.ended).max().unwrap();
            let noticed =
                run.outputs_mut().flat_map(|log| std::mem::take(&mut log.reports)).find_map(|report| {
                    if let Report::Delivered { at, .. } = report { Some(at) } else { None }
                });
            assert_eq!(noticed, Some(last));
        }
    }
}

/// A fetched batch: many posts from several processes at one instant leave in the order of their doorbells.
#[test]
fn messages_of_several_processes_share_the_ring() {
    let plan: Vec<Planned> =
        (0..24).map(|index| Planned { interface: index % 6, ..planned(1, 64) }).collect();
    let reports = run(&plan, parameters(CompletionPath::UserQueue));
    let times: Vec<Time> = (0..24).map(|plan| noticed(&reports, plan)).collect();
    let delivered = reports.iter().filter(|report| matches!(report, Report::Delivered { .. })).count();
    assert_eq!(delivered, 24);
    // Of a process they keep their order.
    for index in 6..24 {
        assert!(times[index] > times[index - 6], "{times:?}");
    }
}

fn reports(run: &mut Run) -> Vec<Report> {
    let mut reports: Vec<Report> =
        run.outputs_mut().flat_map(|log| std::mem::take(&mut log.reports)).collect();
    reports.sort_unstable();
    reports
}

fn plans(messages: &[(u64, u32, u32, u64, u16)]) -> Vec<Vec<Planned>> {
    let mut plans = vec![Vec::new(); RING as usize];
    for &(at, from, to, bytes, interface) in messages {
        let plan = Planned {
            at: Time::from_ps(at),
            to: EndpointId(to % RING),
            bytes,
            interface: interface % 8,
            completion: None,
            watch: bytes % 3 == 0,
        };
        plans[(from % RING) as usize].push(plan);
    }
    plans
}

fn messages() -> impl Strategy<Value = Vec<(u64, u32, u32, u64, u16)>> {
    let bytes = prop_oneof![0u64..100, 4000u64..4200, 0u64..70_000];
    prop::collection::vec((0u64..20_000_000, 0..RING, 0..RING, bytes, 0u16..8), 1..40)
}

fn any_parameters() -> impl Strategy<Value = ApenetxParameters> {
    let choices = (prop::sample::select(CompletionPath::ALL.to_vec()), any::<bool>(), any::<bool>());
    (choices, any::<bool>(), 1u32..10, 1u32..12).prop_map(
        |((path, fast, blocking), polls, prefetch, packets)| {
            let mut parameters = parameters(path);
            parameters.host_to_card.fast = fast;
            parameters.host_to_card.blocking = blocking;
            parameters.host_to_card.prefetch = prefetch;
            parameters.host_to_card.packets = packets;
            if polls {
                parameters.card_to_host.wait = KernelWait::Polling;
            }
            parameters
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Catches messages that are lost, repeated, cut or told to the wrong process, and results that depend on
    /// threads or on a snapshot on the way.
    #[test]
    fn every_message_arrives_once_whatever_the_threads(
        messages in messages(),
        parameters in any_parameters(),
        cut in 0u64..40_000_000,
    ) {
        let plans = plans(&messages);
        let interrupt = AtomicBool::new(false);
        let mut one = begin(&plans, parameters, 1);
        prop_assert_eq!(one.run_until(Time::NEVER, &interrupt), Progress::Dry);
        for (_, site) in one.sites() {
            for (_, nic) in site.interfaces() {
                prop_assert_eq!(nic.unfinished(), (0, 0));
            }
        }
        let expected = reports(&mut one);
        let mut missing: BTreeMap<(EndpointId, u32), (EndpointId, Bytes)> = BTreeMap::new();
        for (from, plan) in (0..).map(EndpointId).zip(&plans) {
            for (index, planned) in (0..).zip(plan) {
                missing.insert((from, index), (planned.to, Bytes::new(planned.bytes)));
            }
        }
        let mut sent = 0;
        for report in &expected {
            match *report {
                Report::Delivered { from, to, plan, bytes, .. } => {
                    prop_assert_eq!(missing.remove(&(from, plan)), Some((to, bytes)));
                }
                Report::Sent { .. } => sent += 1,
                Report::Failed { .. } => prop_assert!(false, "{:?}", report),
            }
        }
        prop_assert!(missing.is_empty());
        prop_assert_eq!(sent, messages.len());
        for threads in [2, 3, 8] {
            let mut run = begin(&plans, parameters, threads);
            run.run_until(Time::NEVER, &interrupt);
            prop_assert_eq!(&reports(&mut run), &expected);
        }
        let mut first = begin(&plans, parameters, 2);
        first.run_until(Time::from_ps(cut), &interrupt);
        let mut all = reports(&mut first);
        let saved = first.save().unwrap();
        let mut second = resume(&plans, parameters, &saved, 3);
        second.run_until(Time::NEVER, &interrupt);
        all.extend(reports(&mut second));
        all.sort_unstable();
        prop_assert_eq!(&all, &expected);
    }

    /// Links that copy packets and swap them: each message is handed over once, when all of it has come. What
    /// loses a packet never is: there is no repair from end to end.
    #[test]
    fn faults_of_links_make_no_message_twice(
        messages in messages(),
        seed: u64,
        loses in any::<bool>(),
    ) {
        let plans = plans(&messages);
        let drop = if loses { 20_000 } else { 0 };
        let faults = FaultParameters {
            drop, corrupt: drop, duplicate: 100_000, reorder: 100_000, off: OffTimes::NEVER,
        };
        let mut run = begin_with_faults(&plans, parameters(CompletionPath::Direct), seed, &faults);
        run.run_until(Time::NEVER, &AtomicBool::new(false));
        let mut seen = BTreeMap::new();
        for report in reports(&mut run) {
            if let Report::Delivered { from, plan, bytes, .. } = report {
                prop_assert_eq!(bytes.get(), plans[from.index()][plan as usize].bytes);
                prop_assert_eq!(seen.insert((from, plan), bytes), None);
            }
        }
        prop_assert!(loses || seen.len() == messages.len());
    }
}
