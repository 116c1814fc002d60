//! GOAL as weft writes it, and as it comes back.

#![allow(clippy::unwrap_used)] // All of this is tests.

use crate::error::TraceError;
use crate::format::{Format, FormatReader, FormatWriter, TraceOptions};
use crate::header::TraceHeader;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_trace::op::*;
use weft_trace::streams;
use weft_units::{Bytes, RankId, Span};

const FORMS: [&Format; 2] = [&super::FORMAT, &super::BINARY];

/// A file of one rank of three, with what was left out.
fn written(
    format: &Format,
    write: impl Fn(&mut dyn FormatWriter) -> Result<(), TraceError>,
) -> Result<(Vec<u8>, BTreeMap<String, u64>), TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some");
    let header = TraceHeader { ranks: 3, ..TraceHeader::default() };
    let create = format.writing.as_ref().unwrap().create;
    let mut writer = create(&path, header, &TraceOptions::default())?;
    writer.begin_rank(RankId(0))?;
    write(&mut *writer)?;
    writer.begin_rank(RankId(1))?;
    writer.begin_rank(RankId(2))?;
    let left_out = writer.left_out();
    writer.finish()?;
    Ok((std::fs::read(path).unwrap(), left_out))
}

fn read(bytes: &[u8]) -> Arc<dyn FormatReader> {
    (super::FORMAT.open_bytes)("some.goal", bytes.to_vec().into(), &TraceOptions::default()).unwrap()
}

/// The statements of rank 0.
fn statements(ops: &[Op]) -> (String, BTreeMap<String, u64>) {
    let (bytes, left_out) =
        written(&super::FORMAT, |writer| ops.iter().try_for_each(|op| writer.push(op))).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let block = text.split_once("rank 0 {\n").unwrap().1;
    (block.split_once("}\n").unwrap().0.to_owned(), left_out)
}

fn compute(ps: u64) -> Op {
    Op::Compute { span: Span::from_ps(ps) }
}

fn send(to: u32, request: u32) -> Op {
    let (to, comm, bytes) = (RankId(to), CommId::WORLD, Bytes::new(8));
    Op::Isend { to, tag: 5, comm, bytes, mode: SendMode::Standard, buffer: None, request: RequestId(request) }
}

fn receive(from: u32, request: u32) -> Op {
    let (from, comm, bytes) = (Some(RankId(from)), CommId::WORLD, Bytes::new(8));
    let (tag, request) = (Some(5), RequestId(request));
    Op::Irecv { from, tag, comm, bytes, matched: None, buffer: None, request }
}

fn wait(request: u32) -> Op {
    Op::Wait { request: RequestId(request) }
}

/// Catches statements that the grammar of LogGOPSim does not take, or that wait for something else.
#[test]
fn statements_follow_each_other_as_the_operations_do() {
    let all = Op::Waitall { requests: vec![RequestId(1), RequestId(2)] };
    let (text, left_out) =
        statements(&[compute(1500), send(1, 1), receive(2, 2), all, compute(700), send(1, 3)]);
    let expected = "l1: calc 1\nl2: send 8b to 1 tag 5\nl2 requires l1\nl3: recv 8b from 2 tag 5\n\
                    l3 irequires l2\nl4: calc 1\nl4 requires l2\nl4 requires l3\nl5: send 8b to 1 tag 5\n\
                    l5 requires l4\n";
    assert_eq!(text, expected);
    let left = "requests that are not waited for: weft waits for them at the end of their stream";
    assert_eq!(left_out, [(left.to_owned(), 1)].into());
}

/// Catches two waits that become one, which costs one call less.
#[test]
fn waits_stay_apart() {
    let (text, _) = statements(&[send(1, 1), receive(2, 2), wait(2), wait(1)]);
    let expected = "l1: send 8b to 1 tag 5\nl2: recv 8b from 2 tag 5\nl2 irequires l1\nl3: calc 0\n\
                    l3 requires l2\n";
    assert_eq!(text, expected);
}

/// Catches a loss that nobody is told of, and messages of two communicators that are taken for each other's.
#[test]
fn what_is_lost_is_listed() {
    let (comm, bytes, matched) = (CommId(9), Bytes::ZERO, Some((RankId(2), 7)));
    let (mode, request, buffer) = (SendMode::Synchronous, RequestId(1), None);
    let (text, left_out) = statements(&[
        Op::Communicator { comm, members: Vec::new() },
        Op::Isend { to: RankId(1), tag: 5, comm, bytes, mode, buffer, request },
        Op::Irecv { from: None, tag: None, comm, bytes, matched, buffer, request: RequestId(2) },
        Op::Irecv { from: None, tag: None, comm, bytes, matched: None, buffer, request: RequestId(3) },
        Op::Waitany { requests: vec![RequestId(1), RequestId(3)], completed: 1 },
        Op::Probe { from: RankId(1), tag: 1, comm, tested: false },
        Op::Marker { text: "here".to_owned() },
        wait(1),
        wait(2),
    ]);
    let expected = "l1: send 1b to 1 tag 2147483648\nl2: recv 1b from 2 tag 2147483649\nl2 irequires l1\n\
                    l3: recv 1b from -1 tag -1\nl3 irequires l2\nl4: calc 0\nl4 requires l3\nl5: calc 0\n\
                    l5 requires l1\nl5 requires l4\n";
    assert_eq!(text, expected);
    let mut expected = BTreeMap::from([
        ("issend: written as send".to_owned(), 1),
        ("receives from anybody: written as from whom they received".to_owned(), 1),
        ("receives of any tag: they may take a message of another communicator".to_owned(), 1),
        ("waitany: written as a wait for the one that completed".to_owned(), 1),
        ("messages and receives of no bytes: of one byte, as LogGOPSim needs it".to_owned(), 3),
        ("probe".to_owned(), 1),
        ("marker".to_owned(), 1),
    ]);
    assert_eq!(left_out, std::mem::take(&mut expected));
}

/// Catches computation that is lost bit by bit.
#[test]
fn less_than_a_nanosecond_goes_on_to_the_next_computation() {
    let computations: Vec<Op> = std::iter::repeat_n(compute(300), 10).collect();
    assert_eq!(
        statements(&computations).0,
        "l1: calc 1\nl2: calc 1\nl2 requires l1\nl3: calc 1\nl3 requires l2\n"
    );
}

/// Catches an event at the wrong moment, an end that two wait for, a core that is lost, and streams that are
/// not told apart.
#[test]
fn streams_are_joined_by_what_they_wait_for() {
    let switch = |writer: &mut dyn FormatWriter, stream: u32, ops: &[Op]| {
        writer.switch_to(StreamId(stream), 3 * stream)?;
        ops.iter().try_for_each(|op| writer.push(op))
    };
    let signal = |event: u32, at| Op::Signal { event: EventId(event), at };
    let awaits = |event: u32| Op::Await { events: vec![EventId(event)] };
    for format in FORMS {
        let (bytes, _) = written(format, |writer| {
            let first = [
                compute(5000),
                signal(1, SignalAt::Start),
                receive(1, 4),
                signal(2, SignalAt::End),
                wait(4),
                signal(3, SignalAt::End),
                send(2, 5),
            ];
            switch(writer, 0, &first)?;
            switch(
                writer,
                1,
                &[awaits(1), compute(1000), awaits(2), compute(2000), awaits(3), compute(3000)],
            )?;
            switch(writer, 0, &[wait(5)])
        })
        .unwrap();
        let trace = read(&bytes);
        assert_eq!(*trace.stream_cores(RankId(0)), [0, 1]);
        let names = streams(&*trace, RankId(0)).map(|stream| {
            let ops = trace.stream(RankId(0), stream).unwrap().map(Result::unwrap);
            ops.map(|op: Op| op.kind().name()).collect::<Vec<_>>().join(" ")
        });
        let expected = [
            "compute signal_start irecv signal_start wait compute signal_end isend wait",
            "await compute await compute await compute",
        ];
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
    let lost = written(&super::FORMAT, |writer| writer.push(&awaits(7))).unwrap_err().to_string();
    assert!(lost.contains("rank 0 awaits event 7, which nobody has signalled"), "{lost}");
}

/// The operations without what the format adds: computations of no time, and its own numbers of requests.
fn plain(ops: impl IntoIterator<Item = Op>) -> Vec<String> {
    let mut messages: BTreeMap<RequestId, usize> = BTreeMap::new();
    let mut count = 0;
    let mut said = Vec::new();
    for op in ops {
        let mut waits = |requests: &[RequestId]| {
            let mut of: Vec<usize> =
                requests.iter().map(|request| messages.remove(request).unwrap()).collect();
            of.sort_unstable();
            format!("wait {of:?}")
        };
        said.push(match &op {
            Op::Compute { span } if *span == Span::ZERO => continue,
            Op::Compute { span } => format!("compute {}", span.as_ps()),
            Op::Isend { to, tag, bytes, request, .. } => {
                messages.insert(*request, count);
                count += 1;
                format!("send {to} {tag} {}", bytes.get())
            }
            Op::Irecv { from, tag, bytes, request, .. } => {
                messages.insert(*request, count);
                count += 1;
                format!("receive {from:?} {tag:?} {}", bytes.get())
            }
            Op::Wait { request } => waits(&[*request]),
            Op::Waitall { requests } => waits(requests),
            other => format!("{other:?}"),
        });
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Catches a rank that comes back as another program: an operation, its place, or what a wait waits for.
    #[test]
    fn a_rank_comes_back_as_it_was(
        steps in prop::collection::vec((0..4u8, 1..1_000_000u64, any::<prop::sample::Index>()), 0..60),
        is_binary in any::<bool>(),
    ) {
        let mut ops = Vec::new();
        let mut open: Vec<RequestId> = Vec::new();
        for (place, (kind, number, which)) in (0..).zip(steps) {
            let (request, comm, bytes) = (RequestId(place), CommId::WORLD, Bytes::new(number));
            let (rank, tag) = (RankId((number % 3) as u32), (number % 7) as i32);
            match kind {
                0 => ops.push(Op::Compute { span: Span::from_ns(number) }),
                1 => {
                    let (mode, buffer) = (SendMode::Standard, None);
                    ops.push(Op::Isend { to: rank, tag, comm, bytes, mode, buffer, request });
                    open.push(request);
                }
                2 => {
                    let (from, tag, matched, buffer) = (Some(rank), Some(tag), None, None);
                    ops.push(Op::Irecv { from, tag, comm, bytes, matched, buffer, request });
                    open.push(request);
                }
                _ if open.is_empty() => {}
                _ => {
                    let requests = open.drain(..=which.index(open.len())).collect();
                    ops.push(Op::Waitall { requests });
                }
            }
        }
        if !open.is_empty() {
            ops.push(Op::Waitall { requests: open });
        }
        let form = FORMS[usize::from(is_binary)];
        let (bytes, _) = written(form, |writer| ops.iter().try_for_each(|op| writer.push(op))).unwrap();
        let trace = read(&bytes);
        prop_assert_eq!(trace.stream_cores(RankId(0)).len(), 1);
        let back = trace.stream(RankId(0), StreamId::FIRST).unwrap().map(Result::unwrap);
        prop_assert_eq!(plain(back), plain(ops));
    }
}
