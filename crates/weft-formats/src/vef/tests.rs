//! VEF there and back, each kind of dependency and of collective, and damage.

#![allow(clippy::unwrap_used)] // All of this is tests.

use crate::error::TraceError;
use crate::format::{Format, FormatReader, TraceOptions};
use crate::header::TraceHeader;
use crate::{ConvertedTrace, Expand, ExpandedOps, Trace, TraceConversion, TraceWriter, convert, validate};
use proptest::prelude::*;
use proptest::sample::Index;
use std::path::Path;
use std::sync::Arc;
use weft_trace::op::*;
use weft_trace::streams;
use weft_units::{Bytes, RankId, Span};

fn open(text: &str) -> Result<Arc<dyn FormatReader>, TraceError> {
    (super::FORMAT.open_bytes)("some.vef", text.as_bytes().to_vec().into(), &TraceOptions::default())
}

fn refusal(text: &str) -> String {
    open(text).err().map(|error| error.to_string()).unwrap_or_default()
}

fn operations(trace: &dyn FormatReader, rank: u32, stream: u32) -> Vec<Op> {
    trace.stream(RankId(rank), StreamId(stream)).unwrap().map(Result::unwrap).collect()
}

/// The operations of the streams of a rank, by name; computations with their nanoseconds.
fn names(trace: &dyn FormatReader, rank: u32) -> Vec<String> {
    let name = |op: Op| match op {
        Op::Compute { span } => format!("{}", span.as_ps() as f64 / 1000.0),
        op => op.kind().name().to_owned(),
    };
    let stream = |stream: StreamId| {
        let names: Vec<String> = operations(trace, rank, stream.0).into_iter().map(name).collect();
        names.join(" ")
    };
    streams(trace, RankId(rank)).map(stream).collect()
}

const KINDS: &str = "VEF3 2 3 2 2 3 FALSE
C0 0 1
C1 1
0 0 1 64 0 500 -1
1 0 1 8 1 20 0
2 1 0 8 2 10 1
G0 0 2 0 8 8 2 5 2
G0 0 2 1 8 8 1 0 2
G1 1 6 1 0 0 3 7.5 G0
";

/// Catches a dependency that is taken for another, and a time that is lost.
#[test]
fn each_kind_of_dependency_has_its_place() {
    let trace = open(KINDS).unwrap();
    assert_eq!((trace.format(), trace.ranks()), ("vef", 2));
    assert_eq!(names(&*trace, 0), ["irecv 500 isend 20 isend wait 5 allreduce waitall"]);
    assert_eq!(
        names(&*trace, 1),
        ["communicator irecv irecv wait 10 isend allreduce 7.5 barrier waitall waitall"]
    );
    let receive = &operations(&*trace, 1, 0)[2];
    assert!(
        matches!(receive, Op::Irecv { from: Some(RankId(0)), tag: Some(1), bytes, .. } if bytes.get() == 8),
        "{receive:?}"
    );
    validate(&Trace::from_bytes("some.vef", KINDS.as_bytes().to_vec()).unwrap()).unwrap();
}

/// Catches chains in one stream whose records are mixed in the file, so that one waits for the other, and a
/// collective that others of its chain wait for.
#[test]
fn chains_that_are_mixed_lie_in_streams() {
    let text = "VEF 2 5 1 1 2 FALSE
C0 0 1
0 1 0 1 0 0 -1
1 1 0 1 0 5 -1
G0 0 6 0 0 0 2 10 0
2 0 1 1 2 12 0
3 0 1 1 2 3 1
G0 0 6 1 0 0 1 0 1
4 0 1 1 3 4 G0
";
    let trace = open(text).unwrap();
    assert_eq!(
        names(&*trace, 0),
        [
            // 10 ns after message 0 the barrier begins in the other stream, 2 ns later comes message 2.
            "irecv irecv signal_end await barrier 4 isend waitall",
            "await wait 10 signal_end 2 isend wait 3 isend waitall",
        ]
        .map(str::to_owned)
        .to_vec(),
    );
    validate(&Trace::from_bytes("some.vef", text.as_bytes().to_vec()).unwrap()).unwrap();
}

/// Catches a task that waits in a collective for others which wait for what the task does after it has begun.
#[test]
fn a_collective_does_not_keep_what_others_need() {
    let text = "VEF 2 2 1 1 2 FALSE
C0 0 1
G0 0 6 0 0 0 0 5 -1
0 1 0 8 0 0 -1
1 0 1 8 2 1 0
G0 0 6 1 0 0 2 1 1
";
    let trace = open(text).unwrap();
    assert_eq!(names(&*trace, 0), ["irecv signal_end 5 barrier", "await wait 1 isend waitall"]);
}

/// Catches records with times of their own that keep a task from what else it does, and one at the start
/// that gets a core of its own.
#[test]
fn a_timetable_has_a_core() {
    let text = "VEF 2 4 0 0 0 FALSE\n0 1 0 1 0 7 -1\n1 0 1 1 2 1 0\n2 0 1 1 0 100 -1\n3 0 1 1 0 250 -1\n";
    let trace = open(text).unwrap();
    assert_eq!(names(&*trace, 0), ["irecv wait 1 isend waitall", "100 isend 150 isend waitall"]);
    assert_eq!(*trace.stream_cores(RankId(0)), [0, 1]);
    assert_eq!(*trace.stream_cores(RankId(1)), [0]);
}

/// Catches sizes that go to the wrong side, a root that is not found, and counts of the wrong member.
#[test]
fn each_collective_has_its_sizes() {
    let lines = |operation: u32, sizes: [(u64, u64); 3]| {
        let line = |(task, (sent, received)): (usize, (u64, u64))| {
            format!("G0 0 {operation} {task} {sent} {received} 0 0 -1\n")
        };
        let lines: String = sizes.into_iter().enumerate().map(line).collect();
        format!("VEF 3 0 1 1 3 TRUE\nC0 0 1 2\n{lines}")
    };
    let of =
        |operation, sizes, rank| match operations(&*open(&lines(operation, sizes)).unwrap(), rank, 0).pop() {
            Some(Op::Collective { kind, root, sizes, .. }) => {
                let CollectiveSizes { send, receive, send_counts, receive_counts, element, .. } = sizes;
                let root = root.map(|root| root.0);
                (kind, root, [send.get(), receive.get(), element.into()], send_counts, receive_counts)
            }
            other => panic!("{other:?}"),
        };
    let none = Vec::new;
    assert_eq!(
        of(0, [(0, 12), (12, 0), (0, 12)], 2),
        (Collective::Broadcast, Some(1), [12, 12, 1], none(), none())
    );
    assert_eq!(
        of(1, [(12, 0), (12, 0), (0, 12)], 2),
        (Collective::Reduce, Some(2), [12, 12, 4], none(), none())
    );
    assert_eq!(of(2, [(16, 16); 3], 0), (Collective::Allreduce, None, [16, 16, 8], none(), none()));
    assert_eq!(of(3, [(5, 0), (5, 15), (5, 0)], 0), (Collective::Gather, Some(1), [5, 5, 1], none(), none()));
    let unequal = [(5, 0), (6, 18), (7, 0)];
    assert_eq!(of(3, unequal, 0), (Collective::Gatherv, Some(1), [5, 0, 1], none(), none()));
    assert_eq!(of(3, unequal, 1), (Collective::Gatherv, Some(1), [6, 18, 1], none(), vec![5, 6, 7]));
    assert_eq!(
        of(4, [(0, 5), (0, 5), (15, 5)], 0),
        (Collective::Scatter, Some(2), [5, 5, 1], none(), none())
    );
    let unequal = [(0, 5), (0, 6), (18, 7)];
    assert_eq!(of(4, unequal, 2), (Collective::Scatterv, Some(2), [18, 7, 1], vec![5, 6, 7], none()));
    assert_eq!(of(5, [(5, 15); 3], 0), (Collective::Allgather, None, [5, 5, 1], none(), none()));
    assert_eq!(
        of(5, [(5, 18), (6, 18), (7, 18)], 1),
        (Collective::Allgatherv, None, [6, 18, 1], none(), vec![5, 6, 7])
    );
    assert_eq!(of(6, [(0, 0); 3], 0), (Collective::Barrier, None, [0, 0, 1], none(), none()));
    assert_eq!(of(7, [(9, 0); 3], 0), (Collective::Alltoall, None, [9, 9, 1], none(), none()));
    assert_eq!(of(7, [(9, 1); 3], 0), (Collective::Alltoall, None, [3, 3, 1], none(), none()));
    assert_eq!(
        of(7, [(9, 1), (8, 1), (7, 1)], 1),
        (Collective::Alltoallv, None, [8, 8, 1], vec![3, 3, 2], vec![3, 3, 2])
    );
    assert_eq!(
        of(7, [(9, 0), (8, 0), (7, 0)], 1),
        (Collective::Alltoallv, None, [24, 24, 1], vec![8, 8, 8], vec![9, 8, 7])
    );
}

/// Catches mistakes that are taken, and errors without the place, the field or the mend.
#[test]
fn mistakes_are_told_with_their_line() {
    let head = "VEF 2 2 1 0 0 FALSE\nC0 0 1\n";
    let two = |second: &str| format!("{head}0 0 1 64 0 5 -1\n{second}\n");
    let part = |lines: &str| format!("VEF 2 0 1 1 2 FALSE\nC0 0 1\n{lines}\n");
    for (text, said) in [
        (two("1 0 2 8 0 5 -1"), "line 4: dst: `2`; expected a task, 0 to 1"),
        (two("1 7 1 8 0 5 -1"), "line 4: src: `7`; expected a task, 0 to 1"),
        (two("1 0 1 x 0 5 -1"), "line 4: bytes: `x`; expected bytes"),
        (two("1 0 1 8 4 5 0"), "line 4: Dep: `4`; expected 0, 1, 2 or 3"),
        (two("1 0 1 8 1 soon 0"), "line 4: time: `soon`; expected nanoseconds"),
        (two("1 0 1 8 0 5 0"), "line 4: IDdep: `0`; expected -1, since Dep is 0"),
        (two("1 0 1 8 3 5 0"), "line 4: IDdep: `0`; expected G and a number"),
        (two("1 0 1 8 1 5 9"), "line 4: IDdep: message 9 is not sent by task 0"),
        (two("1 0 1 8 2 5 0"), "line 4: IDdep: message 0 is not sent to task 0"),
        (two("1 0 1 8 3 5 G0"), "line 4: IDdep: task 0 takes no part in G0"),
        (two("1 0 1 8 1 5 1"), "line 4: IDdep: the record waits for itself"),
        (two("0 0 1 8 0 5 -1"), "line 4: ID: message 0 stands on an earlier line too"),
        (two("9999 0 1 8 0 5 -1"), "line 4: ID: 9999; expected less than"),
        (two("1 0 1 8 0 5 -1 9"), "line 4: `1 0 1 8 0 5 -1 9` is no record as VEF documents them, nor are 0"),
        (two("X 1\nS 2\n1 0 1 8 0 5 -1\nX 3"), "line 4: `X 1` is no record as VEF documents them, nor are 2"),
        (two(""), "line 1: NumMsg: 2, and the file has 1 messages"),
        (format!("{head}0 0 1 8 1 5 1\n1 0 1 8 1 5 0\n"), "line 3: IDdep: the record waits for itself"),
        (format!("{head}0 0 1 8 2 1 1\n1 1 0 8 2 5 0\n"), "line 3: IDdep: the record waits for itself"),
        (
            "VEF 2 1 1 1 2 FALSE\nC0 0 1\n0 0 1 8 3 1 G0\nG0 0 6 0 0 0 0 0 -1\nG0 0 6 1 0 0 2 0 0\n"
                .to_owned(),
            "line 3: IDdep: the record waits for itself",
        ),
        (part("G0 0 6 0 0 0 0 0 -1\nG0 0 6 0 0 0 0 0 -1"), "line 4: task: G0 has two records of task 0"),
        (part("G0 0 6 0 0 0 0 0 -1"), "NumLocalGroupComm: 2, and the file has 1 records"),
        (part("G0 1 6 0 0 0 0 0 -1"), "line 3: ID_COMM: there is no C1; add its line"),
        (part("G0 0 8 0 0 0 0 0 -1"), "line 3: ID_OP: `8`; expected 0 to 7"),
        (part("G0 0 0 0 5 5 0 0 -1"), "line 3: send_size, recv_size: 5 and 5; expected X and 0 of the root"),
        (part("G0 0 2 0 5 6 0 0 -1"), "line 3: send_size, recv_size: 5 and 6; expected the same"),
        (part("G0 0 7 0 5 2 0 0 -1"), "expected a recv_size of 0 or 1"),
        (
            part("G0 0 0 0 5 0 0 0 -1\nG0 0 0 1 0 6 0 0 -1"),
            "line 4: send_size, recv_size: 6, and 5 on an earlier",
        ),
        (part("G0 0 0 0 5 0 0 0 -1\nG0 0 0 1 5 0 0 0 -1"), "line 4: send_size, recv_size: G0 has two roots"),
        (part("G0 0 0 0 5 0 0 0 -1\nG0 0 6 1 0 0 0 0 -1"), "line 4: G0 is another collective"),
        (
            "VEF 2 0 1 2 2 FALSE\nC0 0 1\nG0 0 6 0 0 0 0 0 -1\nG1 0 6 1 0 0 0 0 -1\n".to_owned(),
            "G0 has records of 1 tasks of the 2 of C0",
        ),
        (
            "VEF 3 0 2 1 1 FALSE\nC0 0 1 2\nC1 0\nG0 1 6 1 0 0 0 0 -1\n".to_owned(),
            "line 4: task: 1 is not one of C1",
        ),
        ("VEF 2 0 2 0 0 FALSE\nC0 0 1\n".to_owned(), "is no communicator; expected as many as NumCOMM"),
        ("VEF 2 0 1 0 0 FALSE\nC0 0 2\n".to_owned(), "line 2: task: `2`; expected a task, 0 to 1"),
        ("VEF 4000000000 1000000000 0 0 0 FALSE\n".to_owned(), "line 1: NumTask: 4000000000 tasks in"),
        (
            "VEF 2 1000000000 0 1000000000 9 FALSE\n".to_owned(),
            "line 1: NumMsg: 1000000000, and the file has 0",
        ),
        ("VEF 2 0 0 FALSE\n".to_owned(), "line 1: `VEF 2 0 0 FALSE` is no header; expected VEF NumTask"),
        ("VEF 2 0 0 0 0 MAYBE\n".to_owned(), "line 1: onlySendFlag: `MAYBE`; expected TRUE or FALSE"),
        ("VEFT\u{1}\u{2}".to_owned(), "VEFT: a part of a trace, for one task"),
    ] {
        let error = refusal(&text);
        assert!(error.starts_with("some.vef: ") && error.contains(said), "{text}: {error}");
    }
}

/// Catches a file that is refused since a record stands before what it waits for, and one whose chains wait
/// for each other then.
#[test]
fn records_may_stand_before_what_they_wait_for() {
    let text = "VEF 2 5 0 0 0 FALSE
4 0 1 1 1 3 3
3 0 1 1 2 2 2
2 1 0 1 2 9 1
1 0 1 1 1 1 0
0 0 1 1 0 7 -1
";
    let trace = open(text).unwrap();
    assert_eq!(names(&*trace, 0), ["irecv wait 2 isend 3 isend waitall", "7 isend 1 isend waitall"]);
    validate(&Trace::from_bytes("some.vef", text.as_bytes().to_vec()).unwrap()).unwrap();
}

/// Catches a folder of the parts of tasks that is taken for no trace at all.
#[test]
fn parts_of_tasks_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("VEFT.main"), b"\x01\x02").unwrap();
    for path in [folder.path().to_owned(), folder.path().join("VEFT.main")] {
        let said = Trace::open(&path).err().unwrap().to_string();
        assert!(said.contains("vef_mixer"), "{said}");
    }
}

/// Catches times below 0 that are not counted, and receptions that the header denies.
#[test]
fn a_file_that_contradicts_itself_is_noted() {
    let text = "VEF 2 2 0 0 0 TRUE\n0 0 1 8 0 -5 -1\n1 1 0 8 2 5 0\n";
    let notes = open(text).unwrap().metadata().header.notes.clone();
    assert_eq!(notes.into_values().collect::<Vec<u64>>(), [1, 1]);
}

/// A step of a program of some ranks: all of them in turn, so that the program can run.
#[derive(Clone, Copy, Debug)]
enum ProgramStep {
    Compute { rank: Index, ps: u64 },
    Message { from: Index, to: Index, bytes: u64, is_anybody: bool },
    Collective { which: u8, root: Index, bytes: u64, is_pair: bool },
}

fn program_step() -> impl Strategy<Value = ProgramStep> {
    let index = any::<Index>;
    prop_oneof![
        (index(), 1..5_000_000u64).prop_map(|(rank, ps)| ProgramStep::Compute { rank, ps }),
        (index(), index(), 0..100u64, any::<bool>()).prop_map(|(from, to, bytes, is_anybody)| {
            ProgramStep::Message { from, to, bytes, is_anybody }
        }),
        (0..8u8, index(), 0..100u64, any::<bool>()).prop_map(|(which, root, bytes, is_pair)| {
            ProgramStep::Collective { which, root, bytes, is_pair }
        }),
    ]
}

const RANKS: u32 = 4;

/// The communicator of ranks 1 and 3.
const PAIR: CommId = CommId(1 << 32 | 1);

/// The operations of each rank.
fn program(steps: &[ProgramStep]) -> Vec<Vec<Op>> {
    let members = vec![RankRange { first: 1, stride: 2, count: 2 }];
    let mut ops = vec![Vec::new(); RANKS as usize];
    for rank in [1, 3] {
        ops[rank].push(Op::Communicator { comm: PAIR, members: members.clone() });
    }
    let (mode, buffer, world) = (SendMode::Standard, None, CommId::WORLD);
    for step in steps {
        match *step {
            ProgramStep::Compute { rank, ps } => {
                ops[rank.index(RANKS as usize)].push(Op::Compute { span: Span::from_ps(ps) });
            }
            ProgramStep::Message { from, to, bytes, is_anybody } => {
                let (from, to) = (from.index(RANKS as usize), to.index(RANKS as usize));
                let (request, bytes, tag) = (RequestId(1), Bytes::new(bytes), 7);
                let ranks = [from, to].map(|rank| RankId(rank as u32));
                ops[from].push(Op::Isend { to: ranks[1], tag, comm: world, bytes, mode, buffer, request });
                if from != to {
                    ops[from].push(Op::Wait { request });
                }
                let (source, matched) =
                    if is_anybody { (None, Some((ranks[0], tag))) } else { (Some(ranks[0]), None) };
                let request = RequestId(2);
                let tag = Some(tag);
                ops[to].push(Op::Irecv { from: source, tag, comm: world, bytes, matched, buffer, request });
                ops[to].push(Op::Wait { request });
                if from == to {
                    ops[from].push(Op::Wait { request: RequestId(1) });
                }
            }
            ProgramStep::Collective { which, root, bytes, is_pair } => {
                let kind = [
                    Collective::Barrier,
                    Collective::Broadcast,
                    Collective::Reduce,
                    Collective::Allreduce,
                    Collective::Gather,
                    Collective::Scatter,
                    Collective::Allgather,
                    Collective::Alltoall,
                ][usize::from(which)];
                let ranks: Vec<u32> = if is_pair { vec![1, 3] } else { (0..RANKS).collect() };
                let comm = if is_pair { PAIR } else { world };
                // Nobody is known as the root of nothing.
                let bytes = Bytes::new(if kind == Collective::Barrier { 0 } else { bytes + 1 });
                let root = RankId(ranks[root.index(ranks.len())]);
                let root = (1..=5).contains(&which).then_some(root).filter(|_| which != 3);
                for rank in ranks {
                    let element =
                        [8, 4, 2, 1].into_iter().find(|size| bytes.get().is_multiple_of(*size)).unwrap();
                    let element = if [2, 3].contains(&which) { element as u32 } else { 1 };
                    let sizes =
                        CollectiveSizes { send: bytes, receive: bytes, element, ..Default::default() };
                    let (buffers, request) = (CollectiveBuffers::default(), None);
                    ops[rank as usize].push(Op::Collective { kind, comm, root, sizes, buffers, request });
                }
            }
        }
    }
    ops
}

/// Operations go on as they are.
struct AsTheyAre;

impl Expand for AsTheyAre {
    fn begin_rank(&mut self, _: RankId) {}

    fn expand(&mut self, op: Op, into: &mut ExpandedOps<'_>) -> Result<(), TraceError> {
        into.push(&op)
    }
}

/// Writes a trace as VEF.
fn converted(trace: &Trace, output: &Path) -> ConvertedTrace {
    let options = TraceOptions::default();
    convert(TraceConversion { trace, output, format: Some("vef"), options: &options }, &mut AsTheyAre)
        .unwrap()
}

fn write(path: &Path, ops: &[Vec<Op>]) {
    let header = TraceHeader { ranks: ops.len() as u32, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path, header).unwrap();
    for (rank, ops) in (0..).map(RankId).zip(ops) {
        writer.begin_rank(rank).unwrap();
        ops.iter().for_each(|op| writer.push(op).unwrap());
    }
    writer.finish().unwrap();
}

/// The messages and collectives of a rank, in the order in which it begins them, without tags.
fn doings(trace: &dyn FormatReader, rank: u32) -> Vec<String> {
    let said = |op: Op| match op {
        Op::Isend { to, bytes, .. } => Some(format!("send {} to {to}", bytes.get())),
        Op::Collective { kind, comm, root, sizes, .. } => {
            Some(format!("{kind:?} {comm:?} {root:?} {sizes:?}"))
        }
        _ => None,
    };
    streams(trace, RankId(rank))
        .flat_map(|stream| operations(trace, rank, stream.0))
        .filter_map(said)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Catches records that are lost, changed or done in another order by the way there and back, records
    /// that stand before what they wait for, and computation that grows.
    #[test]
    fn a_program_comes_back(steps in prop::collection::vec(program_step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let ops = program(&steps);
        write(&path("there.weft"), &ops);
        let there = Trace::open(path("there.weft")).unwrap();
        converted(&there, &path("through.vef"));
        let through = Trace::open(path("through.vef")).unwrap();
        validate(&through).unwrap();
        prop_assert!(through.metadata().header.notes.is_empty());
        for rank in 0..RANKS {
            prop_assert_eq!(doings(&*through, rank), doings(&*there, rank));
            // All records are in the order of the program: one stream has them.
            prop_assert_eq!(through.stream_cores(RankId(rank)).len(), 1);
            let computes = |ops: Vec<Op>| -> u64 {
                let span = |op: &Op| if let Op::Compute { span } = op { span.as_ps() } else { 0 };
                ops.iter().map(span).sum()
            };
            let spans = [&*through, &*there].map(|trace| computes(operations(trace, rank, 0)));
            prop_assert!(spans[0] <= spans[1], "{spans:?}");
        }
        let text = std::fs::read_to_string(path("through.vef")).unwrap();
        let is_message = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
        let messages: Vec<&str> = text.lines().filter(is_message).collect();
        for (id, line) in messages.iter().enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            prop_assert_eq!(words[0], id.to_string());
            if ["1", "2"].contains(&words[4]) {
                prop_assert!(words[6].parse::<usize>().unwrap() < id, "{}", line);
            }
        }
        // A second time nothing changes.
        converted(&through, &path("again.vef"));
        prop_assert_eq!(text, std::fs::read_to_string(path("again.vef")).unwrap());
    }

    /// Catches damage that is taken for anything but an error or a trace: a panic, a hang, memory without
    /// end.
    #[test]
    fn damaged_files_give_a_trace_or_an_error(
        changes in prop::collection::vec(
            (any::<Index>(), prop_oneof![Just(b' '), b'0'..=b'9', any::<u8>()]),
            1..8,
        ),
        cut in any::<Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = KINDS.as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(trace) = (super::FORMAT.open_bytes)("some.vef", bytes.into(), &TraceOptions::default()) {
            for rank in (0..trace.ranks()).map(RankId) {
                for stream in streams(&*trace, rank) {
                    trace.stream(rank, stream).unwrap().for_each(|op| drop(op.unwrap()));
                }
            }
        }
    }
}

/// Catches what the format cannot carry and nobody is told of.
#[test]
fn losses_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (comm, bytes, buffer) = (CommId::WORLD, Bytes::new(8), None);
    let compute = || Op::Compute { span: Span::from_ns(5) };
    let send = |to, request, mode| {
        let request = RequestId(request);
        Op::Isend { to: RankId(to), tag: 3, comm, bytes, mode, buffer, request }
    };
    let receive = |from: Option<u32>, request| {
        let (from, tag, request) = (from.map(RankId), from.map(|_| 3), RequestId(request));
        Op::Irecv { from, tag, comm, bytes, matched: None, buffer, request }
    };
    let scan = |kind| {
        let (sizes, buffers) = (CollectiveSizes::default(), CollectiveBuffers::default());
        Op::Collective { kind, comm, root: None, sizes, buffers, request: None }
    };
    let first = vec![
        send(1, 1, SendMode::Standard),
        send(1, 2, SendMode::Synchronous),
        scan(Collective::Scan),
        scan(Collective::Barrier),
        compute(),
    ];
    let second = vec![
        receive(Some(0), 1),
        receive(Some(0), 2),
        receive(None, 3),
        compute(),
        Op::Waitall { requests: vec![RequestId(1), RequestId(2)] },
        compute(),
        send(0, 4, SendMode::Standard),
        Op::Probe { from: RankId(0), tag: 3, comm, tested: true },
    ];
    write(&path("there.weft"), &[first, second]);
    let there = Trace::open(path("there.weft")).unwrap();
    let converted = converted(&there, &path("out"));
    let said: Vec<(&str, u64)> = converted.left_out.iter().map(|(what, count)| (&what[..], *count)).collect();
    assert_eq!(
        said,
        [
            ("collectives in which not all members take part", 1),
            ("computation behind the last record of a rank", 1),
            ("iprobe", 1),
            ("issend: written as any send", 1),
            ("receives from anybody, it is not known from whom: nothing waits for them", 1),
            ("scan", 1),
            ("tags of messages", 3),
        ]
    );
    let notes: Vec<_> = converted.metadata.header.notes.values().copied().collect();
    assert_eq!(notes, [1], "the computation before the wait");
    let text = std::fs::read_to_string(path("out")).unwrap();
    assert_eq!(text, "VEF 2 3 1 0 0 FALSE\nC0 0 1\n0 0 1 8 0 0 -1\n1 0 1 8 1 0 0\n2 1 0 8 2 5 1\n");
    assert_eq!(Format::of(&path("out")).unwrap().name, "vef");
}

/// Catches a record that comes after the message where its rank computed for longer, the other way round,
/// and a time that is not counted from there.
#[test]
fn a_record_comes_after_what_held_its_rank_up() {
    let (comm, tag, buffer) = (CommId::WORLD, 0, None);
    let compute = |ns| Op::Compute { span: Span::from_ns(ns) };
    let send = |to, bytes| {
        let (mode, request, bytes) = (SendMode::Standard, RequestId(1), Bytes::new(bytes));
        Op::Isend { to: RankId(to), tag, comm, bytes, mode, buffer, request }
    };
    let receive = || {
        let (from, bytes, request) = (Some(RankId(0)), Bytes::new(500), RequestId(2));
        Op::Irecv { from, tag: Some(tag), comm, bytes, matched: None, buffer, request }
    };
    let wait = || Op::Wait { request: RequestId(2) };
    // The message is there at 100 + 1000 + 500 ns.
    for (before, expected) in
        [(1_599, "1 1 0 8 2 7 0"), (1_600, "1 1 0 8 2 7 0"), (1_601, "1 1 0 8 0 1608 -1")]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let second = vec![receive(), compute(before), wait(), compute(7), send(0, 8)];
        write(&path("there.weft"), &[vec![compute(100), send(1, 500)], second]);
        converted(&Trace::open(path("there.weft")).unwrap(), &path("through.vef"));
        let text = std::fs::read_to_string(path("through.vef")).unwrap();
        let only_sends = if before > 1_600 { "TRUE " } else { "FALSE" };
        let expected = format!("VEF 2 2 1 0 0 {only_sends}\nC0 0 1\n0 0 1 500 0 100 -1\n{expected}\n");
        assert_eq!(text, expected);
    }
}

/// Catches a collective that the program does not wait for, and that keeps it from what others need.
#[test]
fn a_collective_that_is_not_waited_for_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (comm, bytes, buffer, tag) = (CommId::WORLD, Bytes::new(8), None, 0);
    let send = |to| {
        let (mode, request) = (SendMode::Standard, RequestId(1));
        Op::Isend { to: RankId(to), tag, comm, bytes, mode, buffer, request }
    };
    let receive = |from| {
        let (from, tag, request) = (Some(RankId(from)), Some(tag), RequestId(2));
        Op::Irecv { from, tag, comm, bytes, matched: None, buffer, request }
    };
    let barrier = || {
        let (kind, sizes, buffers) =
            (Collective::Barrier, CollectiveSizes::default(), CollectiveBuffers::default());
        Op::Collective { kind, comm, root: None, sizes, buffers, request: Some(RequestId(3)) }
    };
    let wait = |request| Op::Wait { request: RequestId(request) };
    let first = vec![barrier(), receive(1), wait(2), send(1), wait(1), wait(3)];
    let second = vec![send(0), wait(1), receive(0), wait(2), barrier(), wait(3)];
    write(&path("there.weft"), &[first, second]);
    let there = Trace::open(path("there.weft")).unwrap();
    converted(&there, &path("through.vef"));
    let text = std::fs::read_to_string(path("through.vef")).unwrap();
    let expected = "VEF 2 2 1 1 2 FALSE
C0 0 1
G0 0 6 0 0 0 0 0 -1
0 1 0 8 0 0 -1
1 0 1 8 2 0 0
G0 0 6 1 0 0 2 0 1
";
    assert_eq!(text, expected);
    let through = Trace::open(path("through.vef")).unwrap();
    assert_eq!(names(&*through, 0), ["irecv signal_end barrier", "await wait isend waitall"]);
    assert_eq!(names(&*through, 1), ["irecv isend wait barrier waitall"]);
}
