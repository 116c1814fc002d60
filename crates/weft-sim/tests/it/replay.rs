//! Replays as experiments: the same results for any threads and after every resume, on several machines;
//! what is refused; what cannot end.

use crate::common::{InterruptAt, machine, options};
use std::path::Path;
use weft_formats::{TraceHeader, TraceWriter};
use weft_results::{Ending, digest};
use weft_sim::experiment::replay::{Mapping, ReplayReport, ReplayRequest, TraceInput, Wildcards};
use weft_sim::experiment::scenario::{Figures, ScenarioFile, ScenarioRequest};
use weft_sim::experiment::{
    Experiment, ExperimentOptions, MachineInput, Output, Request, Start, read_request,
};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

/// Writes the programs of some ranks as a trace.
pub fn write(path: &Path, ranks: u32, mut program: impl FnMut(u32) -> Vec<Op>) {
    let mut writer = TraceWriter::create(path, TraceHeader { ranks, ..TraceHeader::default() }).unwrap();
    for rank in 0..ranks {
        writer.begin_rank(RankId(rank)).unwrap();
        program(rank).iter().for_each(|op| writer.push(op).unwrap());
    }
    writer.finish().unwrap();
}

fn compute(us: u64) -> Op {
    Op::Compute { span: Span::from_us(us) }
}

fn send(to: u32, bytes: u64, request: u32) -> Op {
    let (to, bytes, request) = (RankId(to), Bytes::new(bytes), RequestId(request));
    Op::Isend { to, tag: 0, comm: CommId::WORLD, bytes, mode: SendMode::Standard, request, buffer: None }
}

fn receive(from: Option<u32>, bytes: u64, request: u32, matched: Option<u32>) -> Op {
    let (from, matched) = (from.map(RankId), matched.map(|from| (RankId(from), 0)));
    let (bytes, request) = (Bytes::new(bytes), RequestId(request));
    Op::Irecv { from, tag: Some(0), comm: CommId::WORLD, bytes, matched, request, buffer: None }
}

fn collective(kind: Collective, bytes: u64) -> Op {
    let bytes = Bytes::new(bytes);
    let sizes = CollectiveSizes { send: bytes, receive: bytes, element: 8, ..CollectiveSizes::default() };
    Op::Collective {
        kind,
        comm: CommId::WORLD,
        root: None,
        sizes,
        request: None,
        buffers: Default::default(),
    }
}

/// Neighbours on a ring exchange short and long messages; now and then all add something up, and write
/// and read each other's memory.
pub fn halo(ranks: u32, rank: u32) -> Vec<Op> {
    let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
    let window = WindowId(0);
    let step = |step: u64| {
        let bytes = [8, 3_000, 40_000][step as usize % 3];
        let mut ops = vec![
            compute(1 + u64::from(rank) * step % 5),
            receive(Some(left), bytes, 0, None),
            receive(None, bytes, 1, Some(right)),
            send(right, bytes, 2),
            send(left, bytes, 3),
            Op::Waitall { requests: (0..4).map(RequestId).collect() },
        ];
        if step % 3 == 2 {
            ops.push(collective(Collective::Allreduce, 2_000));
            let access = |kind, target, bytes| Op::OneSided {
                kind,
                window,
                target,
                bytes,
                request: None,
                buffer: None,
            };
            ops.push(access(OneSided::Put, RankId(right), Bytes::new(2_000)));
            ops.push(access(OneSided::FetchAndOp, RankId(left), Bytes::new(8)));
            ops.push(Op::Sync { kind: WindowSync::Fence, window, target: None });
        }
        ops
    };
    let create = Op::Window { window, comm: CommId::WORLD, bytes: Bytes::new(4_096), buffer: None };
    std::iter::once(create).chain((0..9).flat_map(step)).collect()
}

/// Everybody with everybody.
pub fn exchange(ranks: u32, rank: u32) -> Vec<Op> {
    vec![
        compute(u64::from(rank % 7)),
        collective(Collective::Alltoall, 700),
        compute(2),
        collective(Collective::Allgather, 64),
        collective(Collective::Barrier, 0),
        Op::Marker { text: format!("half of {ranks}") },
        collective(Collective::Allreduce, 30_000),
    ]
}

pub fn request(machine: MachineInput, traces: &[&Path]) -> ReplayRequest {
    ReplayRequest {
        machine,
        traces: traces.iter().map(|path| TraceInput::at(path).unwrap()).collect(),
        starts: Vec::new(),
        isolated: false,
        map: Mapping::Linear,
        ranks_per_host: None,
        wildcards: Wildcards::Recorded,
        seed: 7,
        data: false,
        breakdown: false,
        compute_scale: Default::default(),
        region: None,
        telemetry: None,
        scenario: None,
    }
}

pub fn replay(request: &ReplayRequest, options: &ExperimentOptions) -> ReplayReport {
    request.run(options, InterruptAt::new(u32::MAX).control()).unwrap()
}

/// Catches results that depend on threads, on partitions, or on having been saved, interrupted and
/// resumed: every byte of every table and of `run.json`.
fn the_same_however_it_is_run(name: &str, sets: &[&str], map: Mapping, (halo_ranks, all_ranks): (u32, u32)) {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("halo.weft"), folder.path().join("all.weft"));
    write(&one, halo_ranks, |rank| halo(halo_ranks, rank));
    write(&two, all_ranks, |rank| exchange(all_ranks, rank));
    let request = ReplayRequest { map, ..request(machine(name, sets), &[&one, &two]) };
    let into = |name: &str| folder.path().join(name);

    let mut digests = Vec::new();
    for threads in [1, 2, 3, 8] {
        let directory = into(&threads.to_string());
        let check = threads == 1 && !sets.contains(&"fabric.kind=ideal");
        let report =
            replay(&request, &ExperimentOptions { check, ..options(threads, Some(directory.clone())) });
        assert_eq!((report.ended, report.detail), (Ending::Finished, None), "{name}");
        let rows: Vec<_> = report.rows.iter().map(|measured| &measured.row.figures).collect();
        assert_eq!((rows[0].ranks, rows[1].first_rank), (halo_ranks, halo_ranks));
        assert!(rows[0].messages >= u64::from(halo_ranks) * 18 && rows[0].run_time_us > 0.0);
        assert!(!rows[0].busiest_links.is_empty());
        digests.push(digest(&directory).unwrap());
    }
    assert!(digests.iter().all(|other| *other == digests[0]), "{name}: {digests:?}");

    let directory = into("resumed");
    let save_every = Some(Span::from_us(13));
    let first = ExperimentOptions { save_every, ..options(2, Some(directory.clone())) };
    let report = request.run(&first, InterruptAt::new(1).control()).unwrap();
    assert_eq!(report.ended, Ending::Interrupted, "{name}: the runs take several epochs");
    let again = read_request(&directory).unwrap();
    assert_eq!(Request::Replay(request.clone()), again);
    let output = Output { directory: directory.clone(), tables: Vec::new(), start: Start::Resume };
    let report =
        replay(&request, &ExperimentOptions { output: Some(output), save_every, ..options(3, None) });
    assert_eq!(report.ended, Ending::Finished);
    assert_eq!(digest(&directory).unwrap(), digests[0], "{name}: after interrupt and resume");
}

/// Catches a scenario whose rows, tables or telemetry depend on threads, or on having been interrupted in its
/// first or second row and resumed, with a recorded program beside its flows and without.
#[test]
fn a_scenario_is_the_same_however_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("halo.weft");
    write(&trace, 6, |rank| halo(6, rank));
    let program =
        "[[applications]]\nname = \"halo\"\nrole = \"victim\"\ntrace = \"halo.weft\"\nranks_per_host = 1\n";
    for (name, program) in [("flows", ""), ("beside", program)] {
        let text = format!(
            "[scenario]\ntitle = \"many to one\"\ntime = \"400us\"\n{program}[[flows]]\nname = \"incast\"\n\
             role = \"aggressor\"\nfrom = \"8-12\"\nto = \"15\"\nsize = \"8K\"\nstart = \"50us\"\n"
        );
        let traces = if program.is_empty() { Vec::new() } else { vec![TraceInput::at(&trace).unwrap()] };
        let request = ScenarioRequest {
            machine: machine("carvnet-spineleaf", &[]),
            name: format!("{name}.toml"),
            text,
            traces,
            congestion: vec!["none".to_owned(), "acc".to_owned()],
            seed: 7,
            telemetry: Some(Span::from_us(20)),
        };
        let into = |end: &str| folder.path().join(format!("{name}-{end}"));
        let run = |options: &ExperimentOptions, epoch| {
            request.run(options, InterruptAt::new(epoch).control()).unwrap().ended
        };
        let digests = [1, 3].map(|threads| {
            let directory = into(&threads.to_string());
            assert_eq!(run(&options(threads, Some(directory.clone())), u32::MAX), Ending::Finished);
            digest(&directory).unwrap()
        });
        assert_eq!(digests[0], digests[1], "{name}");
        let save_every = Some(Span::from_us(10));
        for (threads, epoch) in [(1, 90), (3, 130)] {
            let directory = into(&epoch.to_string());
            let first = ExperimentOptions { save_every, ..options(threads, Some(directory.clone())) };
            assert_eq!(run(&first, epoch), Ending::Interrupted);
            assert_eq!(Request::Scenario(request.clone()), read_request(&directory).unwrap());
            let output = Output { directory: directory.clone(), tables: Vec::new(), start: Start::Resume };
            let again = ExperimentOptions { output: Some(output), save_every, ..options(2, None) };
            assert_eq!(run(&again, u32::MAX), Ending::Finished);
            assert_eq!(digest(&directory).unwrap(), digests[0], "{name}: interrupted at step {epoch}");
        }
    }
}

/// Catches a replay beside flows, a store and its clients that depends on threads, or on having been
/// interrupted in their warm-up, or after it, and resumed; and messages that stay in the
/// mailbox of an interface.
#[test]
fn a_replay_beside_a_scenario_is_the_same_however_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("halo.weft");
    write(&trace, 6, |rank| halo(6, rank));
    let text = "[scenario]\ntitle = \"beside\"\ntime = \"120us\"\nwarm_up = \"40us\"\n[[flows]]\n\
                name = \"incast\"\nrole = \"aggressor\"\nfrom = \"8-12\"\nto = \"1\"\nsize = \"8K\"\n\
                [[services]]\nname = \"store\"\non = \"2\"\nservice_time = \"200ns\"\n[[clients]]\n\
                name = \"clients\"\nrole = \"victim\"\nof = \"store\"\nfrom = \"0-5\"\nwindow = 2\n";
    let file = ScenarioFile { name: "beside.toml".to_owned(), text: text.to_owned() };
    for name in ["exanest", "carvnet-spineleaf"] {
        let request = ReplayRequest {
            scenario: Some(file.clone()),
            ranks_per_host: Some(1),
            ..request(machine(name, &[]), &[&trace])
        };
        let into = |end: &str| folder.path().join(format!("{name}-{end}"));
        let run = |options: &ExperimentOptions, epoch| {
            request.run(options, InterruptAt::new(epoch).control()).unwrap()
        };
        let reports =
            [1, 3].map(|threads| run(&options(threads, Some(into(&threads.to_string()))), u32::MAX));
        let digests = ["1", "3"].map(|threads| digest(&into(threads)).unwrap());
        assert_eq!(digests[0], digests[1], "{name}");
        assert_eq!(reports[0].beside, reports[1].beside);
        let of = |group: &str| &reports[0].beside.iter().find(|row| row.group == group).unwrap().figures;
        let Figures::Clients(clients) = of("clients") else { panic!("clients have figures of clients") };
        // The mailbox of the store takes 64 requests on `exanest`.
        assert!(clients.requests > 64 && clients.requests_under_way <= 12, "{name}: {clients:?}");
        assert!((clients.measured_us - 80.0).abs() < 1e-9, "{name}: {clients:?}");
        assert!(reports[0].rows[0].row.figures.run_time_us > 120.0, "{name}: it goes on after the scenario");
        let save_every = Some(Span::from_us(10));
        for (threads, epoch) in [(1, 90), (3, 300)] {
            let directory = into(&format!("at-{epoch}"));
            let first = ExperimentOptions { save_every, ..options(threads, Some(directory.clone())) };
            let ended = run(&first, epoch).ended;
            assert_eq!(ended, Ending::Interrupted, "{name}: step {epoch}");
            assert_eq!(Request::Replay(request.clone()), read_request(&directory).unwrap());
            let output = Output { directory: directory.clone(), tables: Vec::new(), start: Start::Resume };
            let again = ExperimentOptions { output: Some(output), save_every, ..options(2, None) };
            assert_eq!(run(&again, u32::MAX).ended, Ending::Finished);
            assert_eq!(digest(&directory).unwrap(), digests[0], "{name}: interrupted at step {epoch}");
        }
    }
}

/// Catches a replay that waits for a message of a flow which takes far longer than its ranks and the
/// scenario, and links that were busy for more than all of its time.
#[test]
fn a_replay_ends_with_its_ranks_amid_a_long_message() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("halo.weft");
    write(&trace, 6, |rank| halo(6, rank));
    let text = "[scenario]\ntitle = \"long\"\ntime = \"20us\"\n[[flows]]\nname = \"long\"\n\
                role = \"background\"\nfrom = \"8\"\nto = \"9\"\nsize = \"16M\"\n";
    let run = |time: &str, save_every| {
        let text = text.replace("20us", time);
        let request = ReplayRequest {
            scenario: Some(ScenarioFile { name: "long.toml".to_owned(), text }),
            ranks_per_host: Some(1),
            ..request(machine("exanest", &[]), &[&trace])
        };
        let directory = folder.path().join(format!("{time}-{}", Option::is_some(&save_every)));
        let own = ExperimentOptions { save_every, ..options(1, Some(directory.clone())) };
        let interrupt = InterruptAt::new(u32::MAX);
        (request.run(&own, interrupt.control()).unwrap(), digest(&directory).unwrap())
    };
    let (report, whole) = run("20us", None);
    // Where a run is saved does not matter, and a scenario of an instant is not looked at for ever.
    assert_eq!(run("20us", Some(Span::from_ps(100_003))).1, whole);
    assert_eq!(run("400ps", None).0.ended, Ending::Finished);
    assert_eq!(report.ended, Ending::Finished);
    let figures = &report.rows[0].row.figures;
    assert!(figures.run_time_us > 20.0, "{figures:?}");
    // At 16 Gb/s the message takes 8 ms.
    assert!(figures.run_time_us < 1_000.0, "{figures:?}");
    assert!(!figures.busiest_links.is_empty());
    assert!(figures.busiest_links.iter().all(|link| link.utilization <= 1.0), "{figures:?}");
    assert!(figures.packet_hops < 16 << 12, "each packet has at most 256 B, and far from all are sent");
}

#[test]
fn exanest_is_deterministic() {
    the_same_however_it_is_run("exanest", &[], Mapping::Linear, (100, 64));
}

#[test]
fn exanest_at_random_is_deterministic() {
    let sets = &["messaging.progress=thread", "messaging.clear_to_send=interface"];
    the_same_however_it_is_run("exanest", sets, Mapping::Random, (100, 64));
}

#[test]
fn a_torus_is_deterministic() {
    the_same_however_it_is_run("communication-ip", &["topology.dims=[6,6,4]"], Mapping::Random, (80, 32));
}

#[test]
fn a_fat_tree_is_deterministic() {
    let sets = &["topology.routing=up-down", "messaging.rendezvous=read", "messaging.profile=openmpi-4.1"];
    the_same_however_it_is_run("bxi3-fattree", sets, Mapping::Linear, (120, 64));
}

/// Adaptive routing brings packets out of order.
#[test]
fn a_dragonfly_is_deterministic() {
    the_same_however_it_is_run("bxi3-dragonfly", &[], Mapping::Random, (120, 64));
}

#[test]
fn a_dragonfly_with_calls_is_deterministic() {
    the_same_however_it_is_run("bxi3-dragonfly", &["messaging.progress=call"], Mapping::Linear, (200, 100));
}

#[test]
fn the_ideal_network_is_deterministic() {
    the_same_however_it_is_run("exanest", &["fabric.kind=ideal", "host.cores=1"], Mapping::Linear, (80, 40));
}

/// Catches sums that disagree between the ends of a message, and tables that disagree with the report.
#[test]
fn what_is_sent_is_received() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("halo.weft");
    write(&path, 40, |rank| halo(40, rank));
    let report = replay(&request(machine("bxi3-dragonfly", &[]), &[&path]), &options(1, None));
    let row = &report.rows[0].row.figures;
    let points = 40 * 9 * 2;
    assert!(row.messages > points, "allreduce sends messages too");
    assert!(row.bytes >= 40 * 2 * 3 * (8 + 3_000 + 40_000));
    assert!((row.computation_share + row.communication_share - 1.0).abs() < 1e-9);
    assert!(row.completion_time_p99_us >= row.completion_time_mean_us);
    assert_eq!(row.packet_hops, report.performance.packet_hops);
}

#[test]
fn a_timeline_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, timeline) = (folder.path().join("all.weft"), folder.path().join("all.json"));
    write(&trace, 8, |rank| exchange(8, rank));
    let request = request(machine("exanest", &[]), &[&trace]);
    replay(&request, &ExperimentOptions { timeline: Some(timeline.clone()), ..options(1, None) });
    let text = std::fs::read_to_string(&timeline).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let count = |key: &str, value: &str| events.iter().filter(|event| event[key] == value).count();
    assert!(text.contains("rank 3 (M1QAF1)"), "four ranks sit on the first MPSoC");
    assert_eq!(count("name", "half of 8"), 8);
    assert!(count("name", "alltoall") >= 8 && count("cat", "compute") >= 8);
    assert!(count("ph", "s") > 56 && count("ph", "s") == count("ph", "f"));
}

fn refused(request: &ReplayRequest) -> String {
    request.run(&options(1, None), InterruptAt::new(u32::MAX).control()).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_replayed_is_refused_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.weft");
    let window = WindowId(0);
    let post = Op::Sync { kind: WindowSync::Post, window, target: None };
    let bytes = Bytes::new(64);
    write(&path, 2, |_| vec![Op::Window { window, comm: CommId::WORLD, bytes, buffer: None }, post.clone()]);
    let said = refused(&request(machine("exanest", &[]), &[&path]));
    assert!(said.contains("some.weft") && said.contains("window post without its group"), "{said}");

    write(&path, 600, |_| vec![compute(1)]);
    let said = refused(&request(machine("exanest", &[]), &[&path]));
    assert!(said.contains("600 ranks") && said.contains("512 cores"), "{said}");
    let file = Mapping::File("M1QAF1\nM9QXF7 2\n".to_owned());
    let said = refused(&ReplayRequest { map: file, ..request(machine("exanest", &[]), &[&path]) });
    assert!(said.contains("line 2") && said.contains("M9QXF7"), "{said}");

    write(&path, 2, |_| vec![Op::Wait { request: RequestId(3) }]);
    let said = refused(&request(machine("exanest", &[]), &[&path]));
    assert!(said.contains("rank 0, operation 0") && said.contains("request 3"), "{said}");

    // Valid as far as each rank goes: found only when the message meets its receive.
    write(&path, 2, |rank| match rank {
        0 => vec![send(1, 64, 0), Op::Wait { request: RequestId(0) }],
        _ => vec![receive(Some(0), 8, 0, None), Op::Wait { request: RequestId(0) }],
    });
    let said = refused(&request(machine("exanest", &[]), &[&path]));
    assert!(said.contains("rank 1, operation"), "{said}");
}

/// Catches accesses between groups and exchanges of neighbours that do not end, lose bytes, or take no time,
/// on links that lose packets too: ranks in a ring, each of which lets the one before it put into its window,
/// and gives to the one behind it.
#[test]
fn groups_and_neighbours_are_replayed() {
    const RANKS: u32 = 9;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring.weft");
    let window = WindowId(0);
    write(&path, RANKS, |rank| {
        let (next, before) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        let sync = |kind, target: Option<u32>| Op::Sync { kind, window, target: target.map(RankId) };
        let only = |member| (0..RANKS).map(|other| if other == member { 5000 } else { 0 }).collect();
        let (bytes, request) = (Bytes::new(5000), None);
        let sizes = CollectiveSizes {
            send: bytes,
            receive: bytes,
            send_counts: only(next),
            receive_counts: only(before),
            element: 1,
            ..CollectiveSizes::default()
        };
        let (comm, kind, root) = (CommId::WORLD, Collective::NeighborAlltoallv, None);
        vec![
            Op::Window { window, comm, bytes, buffer: None },
            sync(WindowSync::Post, Some(before)),
            sync(WindowSync::Start, Some(next)),
            Op::OneSided { kind: OneSided::Put, window, target: RankId(next), bytes, request, buffer: None },
            sync(WindowSync::Complete, None),
            sync(WindowSync::Wait, None),
            Op::Collective { kind, comm, root, sizes, request, buffers: Default::default() },
        ]
    });
    for sets in [&[][..], &["faults=[{drop=3000,corrupt=3000}]"]] {
        let request = ReplayRequest {
            ranks_per_host: Some(1),
            data: true,
            ..request(machine("exanest", sets), &[&path])
        };
        let report = replay(&request, &options(2, None));
        let row = &report.rows[0].row;
        assert_eq!(report.ended, Ending::Finished, "{:?}", report.detail);
        assert_eq!(row.figures.bytes, 2 * 5000 * u64::from(RANKS));
        let figures = &row.figures;
        assert!(figures.compared_bytes >= Some(figures.bytes) && figures.run_time_us > 10.0, "{row:?}");
    }
}

/// Two ranks that both receive before they send.
#[test]
fn a_deadlocking_program_says_who_waits_for_what() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dead.weft");
    let wait = |request| Op::Wait { request: RequestId(request) };
    write(&path, 2, |rank| vec![receive(Some(1 - rank), 8, 0, None), wait(0), send(1 - rank, 8, 1), wait(1)]);
    for sets in [&[] as &[&str], &["fabric.kind=ideal"]] {
        let directory = folder.path().join(format!("out{}", sets.len()));
        let request = request(machine("exanest", sets), &[&path]);
        let report = replay(&request, &options(1, Some(directory.clone())));
        assert_eq!(report.ended, Ending::NoProgress);
        let detail = report.detail.unwrap();
        for (rank, other) in [(0, 1), (1, 0)] {
            let expected = format!("rank {rank} waits in wait for a receive of 8 from rank {other}");
            assert!(detail.contains(&expected), "{detail}");
        }
        assert_eq!(weft_sim::experiment::read_manifest(&directory).unwrap().ended, Ending::NoProgress);
    }
}

/// Catches a loss that goes unnoticed, that depends on the threads, or that ends a run without saying why.
#[test]
fn lost_packets_end_a_replay_with_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("halo.weft");
    write(&path, 16, |rank| halo(16, rank));
    let ended = |sets: &[&str], threads| {
        let request =
            ReplayRequest { ranks_per_host: Some(1), ..request(machine("exanest", sets), &[&path]) };
        let options = ExperimentOptions { check: true, ..options(threads, None) };
        replay(&request, &options)
    };
    let simple = "nic.model=overheads";
    let whole = ended(&[simple], 1);
    assert_eq!((whole.ended, whole.rows[0].row.figures.packets_dropped), (Ending::Finished, 0));
    for rule in
        ["faults=[{drop=2_000}]", "faults=[{corrupt=2_000}]", "faults=[{class=\"x\",off_at=\"30us\"}]"]
    {
        let report = ended(&[simple, rule], 1);
        let detail = report.detail.clone().unwrap();
        assert_eq!(report.ended, Ending::LostData, "{rule}: {detail}");
        assert!(detail.contains("packets were lost by chance") && detail.contains("rank"), "{detail}");
        assert_eq!(
            report.rows[0].row.figures.packets_dropped > 0,
            !rule.contains("corrupt"),
            "{rule}: {detail}"
        );
        let again = ended(&[simple, rule], 3);
        assert_eq!((again.detail, &again.rows[0].row), (report.detail, &report.rows[0].row), "{rule}");
    }
}
