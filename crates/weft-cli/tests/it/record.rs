//! Real MPI programs under the recorder, compared operation by operation with what they do.
//!
//! They need an MPI and the recorder (`make -C recorder`), so a plain `cargo test` leaves them out; `make -C
//! recorder check` runs them for every MPI that is there. The programs are the cases of
//! recorder/tests/calls.c.

use crate::skipped::leave_out;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_formats::Trace;
use weft_host::record::{Mpi, RecordError, RecordRequest, RecordSummary, record};
use weft_trace::op::{Op, RankRange, RequestId, StreamId};
use weft_units::{Address, RankId};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Each MPI that the recorder was built for, with the words that start N ranks on it.
fn launchers(ranks: u32) -> Vec<(Mpi, Vec<OsString>)> {
    let ranks = OsString::from(ranks.to_string());
    let wheel = root().join("build/venv/bin/mpiexec").into_os_string();
    let all = [
        (Mpi::Mpich, vec![wheel.clone(), "-n".into(), ranks.clone()]),
        (Mpi::Abi, vec![wheel, "-n".into(), ranks.clone()]),
        (
            Mpi::OpenMpi,
            vec![
                "mpirun.openmpi".into(),
                "--allow-run-as-root".into(),
                "--oversubscribe".into(),
                "-n".into(),
                ranks,
            ],
        ),
    ];
    let built = |mpi: Mpi| {
        let is_built = root().join(format!("build/recorder/{}/calls", mpi.word())).exists();
        if !is_built {
            leave_out(mpi.word(), &format!("no recorder for {mpi}: `make -C recorder` builds it"));
        }
        is_built
    };
    let found: Vec<_> = all.into_iter().filter(|(mpi, _)| built(*mpi)).collect();
    assert!(!found.is_empty(), "no recorder is built: make -C recorder");
    found
}

struct Recorded {
    mpi: Mpi,
    summary: RecordSummary,
    trace: Trace,
    folder: tempfile::TempDir,
}

fn request(command: Vec<OsString>, output: PathBuf) -> RecordRequest {
    RecordRequest {
        output,
        force: false,
        mpi: None,
        recorder_folder: Some(root().join("build/recorder")),
        command,
        output_to_error: false,
        date: None,
    }
}

fn run(mpi: Mpi, mut command: Vec<OsString>, program: &[&str]) -> Recorded {
    command.extend(program.iter().map(OsString::from));
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run.weft");
    let summary = record(&request(command, output.clone()), || false).unwrap();
    assert!(!folder.path().join("run.weft.parts").exists(), "the parts are gone when the trace is whole");
    Recorded { mpi, summary, trace: Trace::open(output).unwrap(), folder }
}

/// Records a case of recorder/tests/calls.c on every MPI.
fn case(name: &str, ranks: u32) -> Vec<Recorded> {
    launchers(ranks)
        .into_iter()
        .map(|(mpi, command)| {
            let program = root().join(format!("build/recorder/{}/calls", mpi.word()));
            run(mpi, command, &[program.to_str().unwrap(), name])
        })
        .collect()
}

impl Recorded {
    fn ops(&self, rank: u32) -> Vec<Op> {
        self.trace.stream(RankId(rank), StreamId::FIRST).unwrap().map(Result::unwrap).collect()
    }

    /// The operations but the computation, in short.
    fn short(&self, rank: u32) -> Vec<String> {
        let computes = |op: &Op| matches!(op, Op::Compute { .. });
        self.ops(rank).iter().filter(|op| !computes(op)).map(short).collect()
    }

    /// Replays the trace to its end.
    fn replays(&self) {
        let trace = self.folder.path().join("run.weft");
        let weft = Command::new(env!("CARGO_BIN_EXE_weft"))
            .args(["replay", "-m", "exanest", "--quiet", "--data"])
            .arg(trace)
            .output()
            .unwrap();
        assert!(weft.status.success(), "{}: {}", self.mpi, String::from_utf8_lossy(&weft.stderr));
    }

    fn expect(&self, rank: u32, expected: &[&str]) {
        assert_eq!(self.short(rank), expected, "{} rank {rank}", self.mpi);
    }

    fn computed_ms(&self, rank: u32) -> f64 {
        let spans = self.ops(rank).into_iter().filter_map(|op| match op {
            Op::Compute { span } => Some(span.as_us_f64() / 1000.0),
            _ => None,
        });
        spans.sum()
    }
}

fn id(number: u64) -> String {
    if number == 0 { "world".into() } else { format!("{}.{}", number >> 32, number & 0xFFFF_FFFF) }
}

fn list(requests: &[RequestId]) -> String {
    requests.iter().map(|request| format!(" #{}", request.0)).collect()
}

fn number(request: &Option<RequestId>) -> String {
    list(request.as_slice())
}

fn short(op: &Op) -> String {
    match op {
        Op::Compute { span } => format!("compute {span:?}"),
        Op::Work { flops, bytes } => format!("work {flops} {}B", bytes.get()),
        Op::Isend { to, tag, comm, bytes, mode, request, .. } => {
            format!("isend {} tag {tag} {} {}B {mode:?} #{}", to.0, id(comm.0), bytes.get(), request.0)
        }
        Op::Irecv { from, tag, comm, bytes, matched, request, .. } => {
            let from = from.map_or("any".into(), |from| from.0.to_string());
            let tag = tag.map_or("any".into(), |tag| tag.to_string());
            let matched =
                matched.map_or(String::new(), |(source, tag)| format!(" matched {} tag {tag}", source.0));
            format!("irecv {from} tag {tag} {} {}B #{}{matched}", id(comm.0), bytes.get(), request.0)
        }
        Op::Probe { from, tag, comm, tested } => {
            format!("{} {} tag {tag} {}", if *tested { "iprobe" } else { "probe" }, from.0, id(comm.0))
        }
        Op::Wait { request } => format!("wait #{}", request.0),
        Op::Waitall { requests } => format!("waitall{}", list(requests)),
        Op::Waitany { requests, completed } => format!("waitany{} -> {completed}", list(requests)),
        Op::Collective { kind, comm, root, sizes, request, .. } => {
            let root = root.map_or(String::new(), |root| format!(" root {}", root.0));
            let counts = |side: &str, counts: &[u64]| match counts {
                [] => String::new(),
                _ => format!(" {side}{counts:?}"),
            };
            let element = if sizes.element == 0 { String::new() } else { format!(" of {}B", sizes.element) };
            let operation = sizes.reduction.operation.map_or(String::new(), |it| format!(" {it}"));
            let data_type = sizes.reduction.data_type.map_or(String::new(), |it| format!(" {it}"));
            let (send, receive) =
                (counts("send", &sizes.send_counts), counts("receive", &sizes.receive_counts));
            let bytes = format!("{}/{}", sizes.send.get(), sizes.receive.get());
            format!(
                "{kind:?} {}{root} {bytes}{element}{operation}{data_type}{send}{receive}{}",
                id(comm.0),
                number(request)
            )
        }
        Op::Communicator { comm, members } => format!("communicator {} {:?}", id(comm.0), ranks(members)),
        Op::Window { window, comm, bytes, .. } => {
            format!("window {} {} {}B", id(window.0), id(comm.0), bytes.get())
        }
        Op::OneSided { kind, window, target, bytes, request, .. } => {
            format!("{kind:?} {} {} {}B{}", id(window.0), target.0, bytes.get(), number(request))
        }
        Op::Sync { kind, window, target } => {
            let target = target.map_or(String::new(), |target| format!(" {}", target.0));
            format!("{kind:?} {}{target}", id(window.0))
        }
        Op::Signal { .. } | Op::Await { .. } => unreachable!("the recorder writes one stream"),
        Op::Marker { text } => format!("marker {text}"),
    }
}

fn ranks(members: &[RankRange]) -> Vec<i64> {
    let of = |range: &RankRange| {
        let (first, stride) = (i64::from(range.first), i64::from(range.stride));
        (0..i64::from(range.count)).map(move |i| first + i * stride).collect::<Vec<_>>()
    };
    members.iter().flat_map(of).collect()
}

/// Catches a wrong mode, size, tag or match, a wait too many or too few.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn sends_and_receives() {
    for run in case("sends", 2) {
        run.expect(
            0,
            &[
                "isend 1 tag 1 world 12B Standard #0",
                "wait #0",
                "isend 1 tag 2 world 16B Synchronous #0",
                "wait #0",
                "isend 1 tag 3 world 20B Buffered #0",
                "wait #0",
                "Barrier world 0/0",
                "isend 1 tag 4 world 24B Ready #0",
                "wait #0",
                "isend 1 tag 5 world 28B Standard #2",
                "wait #2",
                "isend 1 tag 6 world 32B Synchronous #2",
                "wait #2",
            ],
        );
        run.expect(
            1,
            &[
                "irecv 0 tag 1 world 400B #1",
                "wait #1",
                "irecv any tag 2 world 400B #1 matched 0 tag 2",
                "wait #1",
                "irecv any tag any world 400B #1 matched 0 tag 3",
                "wait #1",
                "irecv 0 tag 4 world 400B #2",
                "Barrier world 0/0",
                "wait #2",
                "irecv any tag any world 400B #2 matched 0 tag 5",
                "wait #2",
                "irecv 0 tag any world 400B #2 matched 0 tag 6",
                "wait #2",
            ],
        );
        assert!(!run.summary.metadata.header.interrupted);
        assert!(run.summary.metadata.header.unrecorded.is_empty());
        assert_eq!(run.summary.program_status, 0);
    }
}

/// Catches completions given to the wrong one of several requests.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn several_requests_at_once() {
    for run in case("several", 2) {
        let sent = run.short(0);
        assert_eq!(sent[..3].iter().filter(|op| op.starts_with("isend 1 tag")).count(), 3, "{sent:?}");
        assert_eq!(sent[3], "waitall #2 #3 #4");
        let received = run.short(1);
        assert_eq!(
            received[..5],
            [
                "irecv any tag 0 world 10B #2 matched 0 tag 0",
                "irecv any tag 1 world 10B #3 matched 0 tag 1",
                "irecv any tag 2 world 10B #4 matched 0 tag 2",
                "waitall #2 #3 #4",
                "Barrier world 0/0",
            ]
        );
        // Numbers are given again in any order.
        let (first, second) = (&received[5], &received[6]);
        assert!(first.starts_with("irecv 0 tag 7") && second.contains("matched 0 tag 8"), "{received:?}");
        let number = |op: &str| op.split(' ').find(|word| word.starts_with('#')).unwrap().to_owned();
        assert_eq!(received[8], format!("waitany {} {} -> 1", number(first), number(second)));
        assert_eq!(received[10], format!("wait {}", number(first)));
        assert_eq!(received.len(), 11);
    }
}

/// Catches an exchange that is recorded as one direction, or in the order that would deadlock.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn exchanges_in_one_call() {
    for run in case("pairs", 2) {
        run.expect(
            0,
            &[
                "irecv 1 tag 1 world 36B #1",
                "isend 1 tag 1 world 12B Standard #0",
                "waitall #1 #0",
                "irecv any tag 2 world 8B #1 matched 1 tag 2",
                "isend 1 tag 2 world 8B Standard #0",
                "waitall #1 #0",
                "isend 1 tag 3 world 4B Standard #0",
                "wait #0",
                "irecv 1 tag 3 world 36B #1",
                "wait #1",
            ],
        );
    }
}

/// Catches a probe that is lost, that takes the message away, or that is told by what it asked for, not by
/// what it found.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn probes_say_what_they_found() {
    for run in case("probes", 2) {
        run.expect(
            1,
            &[
                "probe 0 tag 1 world",
                "irecv 0 tag 1 world 4B #1",
                "wait #1",
                "iprobe 0 tag 2 world",
                "irecv 0 tag 2 world 8B #1",
                "wait #1",
                "probe 0 tag 3 world",
                "irecv any tag 3 world 12B #1 matched 0 tag 3",
                "wait #1",
                "iprobe 0 tag 4 world",
                "irecv 0 tag 4 world 16B #2",
                "wait #2",
                "irecv 0 tag 5 world 20B #1",
                "wait #1",
            ],
        );
    }
}

/// Catches a start that is not recorded, and a wait for an inactive request that is.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn persistent_requests_post_at_each_start() {
    for run in case("persistent", 2) {
        run.expect(
            0,
            &[
                "isend 1 tag 1 world 8B Standard #2",
                "wait #2",
                "isend 1 tag 1 world 8B Standard #2",
                "isend 1 tag 2 world 12B Synchronous #3",
                "waitall #2 #3",
            ],
        );
        run.expect(
            1,
            &[
                "irecv any tag 1 world 8B #2 matched 0 tag 1",
                "wait #2",
                "irecv any tag 1 world 8B #2 matched 0 tag 1",
                "irecv 0 tag 2 world 12B #3",
                "waitall #2 #3",
            ],
        );
    }
}

/// Catches extents taken for sizes.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn derived_types_count_by_their_size() {
    for run in case("types", 2) {
        run.expect(
            0,
            &[
                "isend 1 tag 0 world 48B Standard #0",
                "wait #0",
                "isend 1 tag 1 world 34B Standard #0",
                "wait #0",
                "isend 1 tag 2 world 34B Standard #0",
                "wait #0",
                "isend 1 tag 3 world 96B Standard #0",
                "wait #0",
                "Broadcast world root 0 48/48",
            ],
        );
    }
}

/// Catches a type or an operation that is lost, or is taken for another, under any MPI.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn reductions_with_their_types_and_operations() {
    for run in case("reductions", 2) {
        run.expect(
            1,
            &[
                "Allreduce world 24/24 of 8B bxor int64",
                "Allreduce world 12/12 of 4B sum float32",
                "Allreduce world 24/24 of 8B min float64",
                "Allreduce world 6/6 of 2B land uint16",
                "Allreduce world 24/24 of 8B minloc other",
                "Allreduce world 24/24 of 8B other other",
            ],
        );
    }
}

/// Catches large counts read as small ones, and persistent collectives recorded when they are made.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn what_came_with_mpi_4() {
    for run in case("newer", 2) {
        if run.summary.metadata.header.mpi_version.starts_with('3') {
            continue;
        }
        run.expect(
            1,
            &[
                "Allreduce world 12/12 of 4B sum int32 #2",
                "wait #2",
                "Allreduce world 12/12 of 4B sum int32 #2",
                "wait #2",
                "irecv any tag 1 world 24B #1 matched 0 tag 1",
                "wait #1",
                "Allgatherv world 8/12 receive[4, 8]",
                "communicator 0.1 [0, 1]",
                "NeighborAlltoallv 0.1 4/4 send[4, 0] receive[4, 0] #2",
                "wait #2",
            ],
        );
    }
}

/// Catches sizes from the side that is not significant, and buffers in place.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn collectives_with_their_sizes() {
    for run in case("collectives", 4) {
        run.expect(
            1,
            &[
                "Barrier world 0/0",
                "Broadcast world root 2 20/20",
                "Reduce world root 1 48/48 of 8B sum float64",
                "Allreduce world 28/28 of 4B max int32",
                "Gather world root 3 8/8",
                "Gatherv world root 0 8/0",
                "Scatter world root 0 12/12",
                "Scatterv world root 1 40/8 send[4, 8, 12, 16]",
                "Allgather world 8/8",
                "Allgatherv world 8/40 receive[4, 8, 12, 16]",
                "Alltoall world 8/8",
                "Alltoallv world 40/40 send[4, 8, 12, 16] receive[4, 8, 12, 16]",
                "Alltoallv world 40/40 send[4, 8, 12, 16] receive[4, 8, 12, 16]",
                "ReduceScatter world 40/8 of 4B sum int32 receive[4, 8, 12, 16]",
                "ReduceScatterBlock world 32/8 of 4B sum int32",
                "Scan world 8/8 of 4B sum int32",
                "Exscan world 8/8 of 4B sum int32",
                "Barrier world 0/0 #2",
                "Broadcast world root 2 20/20 #3",
                "Allgatherv world 8/40 receive[4, 8, 12, 16] #4",
                "waitall #2 #3 #4",
            ],
        );
        let first = run.short(0);
        assert_eq!(first[5], "Gatherv world root 0 4/40 receive[4, 8, 12, 16]");
        assert_eq!(first[6], "Scatter world root 0 12/12");
        assert_eq!(first[11], "Alltoallv world 24/24 send[0, 4, 8, 12] receive[0, 4, 8, 12]");
        assert_eq!(run.short(3)[4], "Gather world root 3 8/8");
    }
}

/// Catches ids on which members disagree, ranks that were not translated, neighbours in the wrong place.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn communicators_are_known_by_world_ranks() {
    for run in case("communicators", 4) {
        run.expect(
            0,
            &[
                "communicator 0.1 [0, 1, 2, 3]",
                "communicator 2.1 [2, 0]",
                "irecv any tag 4 2.1 4B #1 matched 2 tag 4",
                "wait #1",
                "communicator 0.2 [0, 1, 2, 3]",
                // Periodic in the first dimension, which is 2 long: rank 2 is the neighbour on both sides.
                "NeighborAllgather 0.2 4/4 send[0, 4, 8, 0] receive[0, 4, 8, 0]",
                "communicator 0.3 [0, 1]",
                "Barrier 0.3 0/0",
                "communicator 0.4 [0, 1, 2, 3]",
                "Broadcast 0.4 root 1 4/4",
                "communicator 0.5 [0]",
                "Barrier 0.5 0/0",
                "communicator 3.3 [3, 0]",
                "Barrier 3.3 0/0",
            ],
        );
        let ids = |rank| run.short(rank).iter().filter(|op| op.starts_with("communicator")).count();
        assert_eq!([ids(1), ids(2), ids(3)], [6, 6, 7]);
        run.replays();
        let unrecorded = &run.summary.metadata.header.unrecorded;
        let outside = " on a communicator that is not within the world";
        assert_eq!(unrecorded[&format!("MPI_Intercomm_create{outside}")], 4);
        assert_eq!(unrecorded[&format!("MPI_Barrier{outside}")], 4);
        assert_eq!(unrecorded.len(), 2);
    }
}

/// Catches a target that is not a world rank, and synchronizations that are lost.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn one_sided_operations() {
    for run in case("windows", 2) {
        let common = [
            "window 0.1 world 64B",
            "Fence 0.1",
            "Put 0.1 1 4B",
            "Fence 0.1",
            "Get 0.1 1 8B",
            "Accumulate 0.1 1 4B",
            "Fence 0.1",
            "Lock 0.1 1",
            "FetchAndOp 0.1 1 4B",
            "Flush 0.1 1",
            "CompareAndSwap 0.1 1 4B",
            "Unlock 0.1 1",
            "LockAll 0.1",
            "Put 0.1 1 4B #2",
            "wait #2",
            "GetAccumulate 0.1 1 4B",
            "UnlockAll 0.1",
        ];
        run.expect(0, &[&common[..], &["Start 0.1 1", "Put 0.1 1 4B", "Complete 0.1", "Free 0.1"]].concat());
        assert_eq!(run.short(1)[common.len()..], ["Post 0.1 0", "Wait 0.1", "Free 0.1"]);
        run.replays();
    }
}

/// The environments of [`buffers_do_not_depend_on_the_environment`]: commands that run their arguments.
const ENVIRONMENTS: [&str; 3] = [
    r#"exec "$0" "$@""#,
    r#"export PADDING=$(head -c 10000 /dev/zero | tr '\0' x); exec "$0" "$@""#,
    r#"exec env -i PATH="$PATH" LD_PRELOAD="$LD_PRELOAD" WEFT_RECORD_PARTS="$WEFT_RECORD_PARTS" "$0" "$@""#,
];

/// Where the buffers of an operation lie, in short; nothing for operations without buffers.
fn buffers(op: &Op) -> Option<String> {
    let (word, buffers) = match op {
        Op::Isend { buffer, .. } => ("isend".to_owned(), vec![buffer]),
        Op::Irecv { buffer, .. } => ("irecv".to_owned(), vec![buffer]),
        Op::Window { buffer, .. } => ("window".to_owned(), vec![buffer]),
        Op::OneSided { kind, buffer, .. } => (format!("{kind:?}"), vec![buffer]),
        Op::Collective { kind, buffers, .. } => (format!("{kind:?}"), vec![&buffers.send, &buffers.receive]),
        _ => return None,
    };
    let place = |buffer: &Option<Address>| buffer.map_or(" -".to_owned(), |buffer| format!(" {buffer}"));
    Some(word + &buffers.into_iter().map(place).collect::<String>())
}

/// Catches buffers that lie where the process happened to have them, pointers of the wrong argument, and
/// those that mean nothing on a rank. Address randomization is on in all of them, so each run also differs
/// from the others by that.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn buffers_do_not_depend_on_the_environment() {
    // Pieces in the order of their first use: 1000 bytes of the heap, the stack, 3 MB of the heap, and static
    // memory. Each has room for 16 MB and a page behind it. The blocks lie in the heap's piece, behind the
    // first 1000 bytes.
    let expected = |rank: u32| {
        let of = |root: &'static str, other: &'static str| if rank == 0 { root } else { other };
        [
            "Broadcast 0x1000 0x1000",
            "Allreduce - 0x1002000",
            "Broadcast 0x2003000 0x2003000",
            "irecv 0x2203000",
            "isend 0x2003100",
            of("isend 0x1002008", "irecv 0x1002008"),
            of("isend 0x1002008", "irecv 0x1002008"),
            of("Gather 0x3004000 0x11f4", "Gather 0x3004000 -"),
            of("Reduce 0x3004008 -", "Reduce 0x3004008 0x1258"),
            "Alltoall 0x2003200 0x13f0",
            "Broadcast 0x1454 0x1454",
            of("Scatterv 0x13f0 -", "Scatterv - 0x1000"),
            "irecv -",
            "isend -",
            "Broadcast - -",
            "window 0x2003000",
            "Put 0x1002010",
            "FetchAndOp 0x1002014",
        ]
    };
    for (mpi, launcher) in launchers(2) {
        let program = root().join(format!("build/recorder/{}/calls", mpi.word()));
        for environment in ENVIRONMENTS {
            let shell = ["sh", "-c", environment].map(OsString::from);
            let command = [&shell[..], &launcher].concat();
            let folder = tempfile::tempdir().unwrap();
            let output = folder.path().join("run.weft");
            let mut request = request(command, output.clone());
            request.command.extend([program.clone().into_os_string(), "buffers".into()]);
            request.mpi = Some(mpi);
            record(&request, || false).unwrap();
            let trace = Trace::open(output).unwrap();
            for rank in 0..2 {
                let ops = trace.stream(RankId(rank), StreamId::FIRST).unwrap().map(Result::unwrap);
                let found: Vec<_> = ops.filter_map(|op| buffers(&op)).collect();
                assert_eq!(found, expected(rank), "{mpi} rank {rank}: {environment}");
            }
        }
    }
}

/// Catches anything in a recording of virtual time that depends on where the process's memory lies: the whole
/// file is the same, byte for byte.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn a_recording_of_virtual_time_is_the_same_in_any_environment() {
    if !root().join("build/libfabric/libweft-fi.so").exists() {
        return crate::skipped::skip("no provider: `make provider` builds it");
    }
    let program = root().join("build/recorder/mpich/calls");
    let folder = tempfile::tempdir().unwrap();
    let files = ENVIRONMENTS.map(|environment| {
        let trace = folder.path().join("run.weft");
        let weft = Command::new("sh")
            .args(["-c", environment, env!("CARGO_BIN_EXE_weft")])
            .args(["run", "-m", "exanest", "-n", "2", "--host", "none", "--force", "--quiet", "--record"])
            .arg(&trace)
            .arg("--")
            .arg(&program)
            .arg("buffers")
            .output()
            .unwrap();
        assert!(weft.status.success(), "{environment}: {}", String::from_utf8_lossy(&weft.stderr));
        std::fs::read(trace).unwrap()
    });
    assert!(files.iter().all(|file| *file == files[0]));
}

/// Catches a cancelled receive for which a replay would wait for ever, and calls that are lost silently.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn cancelled_and_unrecorded_calls() {
    for run in case("odds", 2) {
        run.expect(1, &["marker pcontrol 1", "marker pcontrol 0"]);
        let unrecorded = &run.summary.metadata.header.unrecorded;
        let counts: Vec<_> = unrecorded.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(counts, [("MPI_File_close", 2), ("MPI_File_open", 2), ("MPI_File_write", 4)]);
    }
}

/// Catches records that were still in a buffer when the rank was killed.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn a_killed_rank_leaves_what_it_did() {
    for (name, barriers, status) in [("killed", 3, None), ("aborted", 1, Some(5))] {
        for run in case(name, 2) {
            for rank in 0..2 {
                let ops = run.short(rank);
                assert_eq!(ops, vec!["Barrier world 0/0"; barriers], "{} {name} rank {rank}", run.mpi);
            }
            assert!(run.summary.metadata.header.interrupted);
            assert_ne!(run.summary.program_status, 0);
            assert!(status.is_none_or(|status| status == run.summary.program_status), "{:?}", run.summary);
        }
    }
}

/// Catches waiting or sleeping that is taken for computation, on more ranks than cores too.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn only_computing_is_computation() {
    for ranks in [1, 8] {
        for run in case("computes", ranks) {
            for rank in 0..ranks {
                let computed = run.computed_ms(rank);
                // The program sleeps for 500 ms beside its 200, and on a busy machine a thread's CPU clock
                // runs on while it is switched out: the bound lies between.
                assert!(
                    (199.0..450.0).contains(&computed),
                    "{}: {computed} ms on rank {rank} of {ranks}",
                    run.mpi
                );
            }
        }
    }
}

/// Catches records that two threads wrote into each other, and requests mixed up between them.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn threads_record_whole_operations() {
    for run in case("threads", 2) {
        for rank in 0..2 {
            let ops = run.short(rank);
            for tag in [1, 2] {
                let posted = ops.iter().filter(|op| op.contains(&format!(" tag {tag} world 4B"))).count();
                assert_eq!(posted, 500, "{} rank {rank}", run.mpi);
            }
            assert_eq!(ops.iter().filter(|op| op.starts_with("wait #")).count(), 1000);
            assert_eq!(ops.iter().filter(|op| op.contains("matched 0")).count(), 1000 * rank as usize);
        }
    }
}

/// Catches an empty trace where an error is due, and parts left behind.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn a_command_without_mpi_is_an_error() {
    for (mpi, _) in launchers(1) {
        let program = root().join(format!("build/recorder/{}/calls", mpi.word()));
        let folder = tempfile::tempdir().unwrap();
        let mut request = request(vec![program.into(), "none".into()], folder.path().join("run.weft"));
        let error = record(&request, || false).unwrap_err();
        assert!(matches!(error, RecordError::NothingRecorded { status: 7 }), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        request.command = vec!["true".into()];
        assert!(matches!(record(&request, || false), Err(RecordError::UnknownMpi(_))));
    }
}

/// Catches an interruption that loses the recording. The ranks wait for ever until the command is stopped.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn an_interrupted_recording_is_a_trace() {
    for (mpi, mut command) in launchers(2) {
        let program = root().join(format!("build/recorder/{}/calls", mpi.word()));
        let folder = tempfile::tempdir().unwrap();
        command.extend([program.into_os_string(), "stuck".into(), folder.path().into()]);
        let output = folder.path().join("run.weft");
        let asked = AtomicBool::new(false);
        let summary = record(&request(command, output.clone()), || {
            let both = (0..2).all(|rank| folder.path().join(format!("stuck.{rank}")).exists());
            asked.fetch_or(both, Ordering::Relaxed) || both
        })
        .unwrap();
        assert!(summary.interrupted && summary.metadata.header.interrupted);
        assert_ne!(summary.program_status, 0);
        let trace = Trace::open(&output).unwrap();
        assert_eq!(trace.ranks(), 2);
        for rank in 0..2 {
            let ops = trace.stream(RankId(rank), StreamId::FIRST).unwrap().map(Result::unwrap);
            assert_eq!(ops.filter(|op| matches!(op, Op::Collective { .. })).count(), 1, "{mpi}");
        }
    }
}

/// The rhodopsin benchmark of LAMMPS on both MPIs: an application that nobody wrote for this test.
#[test]
#[ignore = "needs the recorder and LAMMPS: make -C recorder check"]
fn lammps_sends_what_it_receives() {
    let found =
        Command::new("find").arg(root().join("build/venv")).args(["-path", "*/bench/in.rhodo"]).output();
    let input = PathBuf::from(String::from_utf8(found.unwrap().stdout).unwrap().trim());
    let data = input.with_file_name("data.rhodo");
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(&input).unwrap().replace("data.rhodo", data.to_str().unwrap());
    let steps: Vec<_> =
        text.lines().map(|line| if line.starts_with("run") { "run 3" } else { line }).collect();
    let script = folder.path().join("in.rhodo");
    std::fs::write(&script, steps.join("\n") + "\n").unwrap();
    for (mpi, command) in launchers(4) {
        let program = match mpi {
            Mpi::Mpich => root().join("build/venv/bin/lmp").to_str().unwrap().to_owned(),
            Mpi::OpenMpi => "lmp".to_owned(),
            Mpi::Abi => continue,
        };
        let words = [&program, "-in", script.to_str().unwrap(), "-log", "none", "-screen", "none"];
        let run = run(mpi, command, &words);
        assert_eq!(run.summary.program_status, 0);
        let header = &run.summary.metadata.header;
        assert!(!header.interrupted && header.unrecorded.is_empty(), "{:?}", header.unrecorded);
        let (mut sent, mut received) = ([0u32; 4], [0u32; 4]);
        for rank in 0..4 {
            let mut collectives = 0;
            for op in run.ops(rank) {
                match op {
                    Op::Isend { to, .. } => sent[to.index()] += 1,
                    Op::Irecv { .. } => received[rank as usize] += 1,
                    Op::Collective { .. } => collectives += 1,
                    _ => {}
                }
            }
            println!(
                "{mpi} rank {rank}: {:.1} ms of computation, {collectives} collectives",
                run.computed_ms(rank)
            );
        }
        println!("{mpi}: {received:?} messages, {} operations", run.trace.operations());
        assert!(sent.iter().all(|&count| count > 100));
        assert_eq!(sent, received, "{mpi}");
    }
}

/// A file system of 64 KB, until it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`: this user may not mount.
    fn mount(at: PathBuf) -> Option<SmallDisk> {
        std::fs::create_dir(&at).unwrap();
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&at).status();
        status.is_ok_and(|status| status.success()).then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Catches a rank that is ended, or waits for the others, as there is no room for its part.
#[test]
#[ignore = "needs the recorder: make -C recorder check"]
fn programs_run_on_where_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path().join("disk")) else {
        return crate::skipped::skip("this user may not mount a small disk");
    };
    for (mpi, mut words) in launchers(4) {
        let program = root().join(format!("build/recorder/{}/calls", mpi.word()));
        words.extend([program.into(), "communicators".into()]);
        let ended = folder.path().join(mpi.word());
        let mut command: Vec<OsString> = vec!["sh".into(), "-c".into()];
        command.push(format!("\"$@\" && : > {}", ended.display()).into());
        command.push("sh".into());
        command.extend(words);
        let mut request = request(command, disk.0.join("run.weft"));
        request.mpi = Some(mpi);
        let error = record(&request, || false).unwrap_err();
        assert!(matches!(error, RecordError::NoRoom(_)), "{mpi}: {error}");
        assert!(ended.exists(), "{mpi}: the program failed");
        assert!(!disk.0.join("run.weft.parts").exists());
    }
}
