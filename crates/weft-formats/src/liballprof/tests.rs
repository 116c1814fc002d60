//! Small runs, line by line.

use super::from_inputs;
use crate::calls::CallTrace;
use crate::error::TraceError;
use crate::input::Input;
use proptest::prelude::*;
use weft_trace::TraceSource as _;
use weft_trace::op::{CommId, Op, RequestId, StreamId};
use weft_units::{RankId, Span};

fn trace(ranks: &[String]) -> Result<CallTrace, TraceError> {
    let input = |(rank, text): (usize, &String)| Input::memory(&format!("r-{rank}.txt"), text.clone().into());
    from_inputs("r-0.txt", ranks.iter().enumerate().map(input).collect())
}

fn ops(trace: &CallTrace, rank: u32) -> Result<Vec<Op>, TraceError> {
    trace.stream(RankId(rank), StreamId::FIRST)?.map(|op| op.map_err(TraceError::from)).collect()
}

/// Lines of a rank of two, each with its begin and its end in microseconds.
fn rank_of_two(rank: u32, lines: &[&str]) -> String {
    let mut text =
        format!("# htor's PMPI Tracer\n\nMPI_Init:-:1:2:100.5\nMPI_Comm_rank:101:0,{rank},2:77:102\n");
    for line in lines {
        text += &line.replace("WORLD", &format!("0,{rank},2"));
        text.push('\n');
    }
    text + "MPI_Finalize:900:-\n"
}

/// Catches times in wrong units, and a list of requests that is not found by its address.
#[test]
fn lines_become_operations() {
    let rank = |rank: u32| {
        let other = 1 - rank;
        rank_of_two(
            rank,
            &[
                &format!("MPI_Irecv:110:5:4:11,8,8:{other}:3:WORLD:1000:110.25"),
                &format!("MPI_Isend:111:5:4:11,8,8:{other}:3:WORLD:1008:111"),
                "MPI_Test:112:1000:7:7:113",
                "MPI_Waitall:114:3:1000:7:115",
                "MPI_Allreduce:115:5:6:1:11,8,8:3:WORLD:116",
            ],
        )
    };
    let trace = trace(&[rank(0), rank(1)]).unwrap();
    let ops = ops(&trace, 1).unwrap();
    let kinds: Vec<_> = ops.iter().map(|op| op.kind().name()).collect();
    assert_eq!(kinds, ["compute", "irecv", "compute", "isend", "compute", "waitall", "allreduce", "compute"]);
    // From MPI_Init at 100.5 to the call at 101, and from 102 to 110.
    assert_eq!(ops[0], Op::Compute { span: Span::from_ps(8_500_000) });
    assert_eq!(ops[2], Op::Compute { span: Span::from_ps(750_000) });
    assert_eq!(ops[5], Op::Waitall { requests: vec![RequestId(2), RequestId(3)] });
    assert!(matches!(&ops[3], Op::Isend { to: RankId(0), bytes, .. } if bytes.get() == 32));
}

/// Catches a communicator that is taken for another of the same size, though its handle came with no
/// creation, and requests of Fortran that are waited for never.
#[test]
fn handles_are_told_by_their_size() {
    let rank = |rank: u32| {
        rank_of_two(
            rank,
            &[
                "MPI_Comm_split:110:WORLD:7:0:88:111",
                &format!("MPI_Barrier:112:99,{rank},2:113"),
                &format!("MPI_Isend:114:5:4:11,8,8:{}:3:WORLD:41:115", 1 - rank),
                &format!("MPI_Irecv:114:5:4:11,8,8:{}:3:WORLD:42:115", 1 - rank),
                "MPI_Waitall:116:2:7777:7:117",
                "MPI_Barrier:118:98,0,1:119",
            ],
        )
    };
    let trace = trace(&[rank(0), rank(1)]).unwrap();
    let ops = ops(&trace, 0).unwrap();
    let barriers: Vec<_> = ops
        .iter()
        .filter_map(|op| if let Op::Collective { comm, .. } = op { Some(comm.0) } else { None })
        .collect();
    assert_eq!(barriers, [CommId(2).0, CommId(1).0]);
    assert!(ops.contains(&Op::Waitall { requests: vec![RequestId(2), RequestId(3)] }));
    let notes = &crate::FormatReader::metadata(&trace).header.notes;
    assert_eq!(notes.get("waits for a list whose requests are not told: the oldest were taken"), Some(&2));
}

/// Catches clocks that run backwards and are not told of, and a request whose test is never said to succeed.
#[test]
fn what_the_lines_do_not_say_is_counted() {
    let receive = |at| format!("MPI_Irecv:{at}:5:4:11,8,8:0:3:0,0,1:1000:{at}");
    let text = format!(
        "MPI_Comm_size:100:0,0,1:7:101\nMPI_Send:100:5:4:11,8,8:0:3:0,0,1:102\n{}\n{}\n",
        receive(103),
        receive(104)
    );
    let trace = trace(&[text]).unwrap();
    let notes = &crate::FormatReader::metadata(&trace).header.notes;
    assert_eq!(notes.values().sum::<u64>(), 3, "{notes:?}");
    assert!(notes.contains_key("calls that begin before the one before them ended: no computation"));
    let waits =
        ops(&trace, 0).unwrap().into_iter().filter(|op| matches!(op, Op::Wait { .. } | Op::Waitall { .. }));
    assert_eq!(waits.count(), 3);
}

/// Catches bad input that is believed, and an error without its line or its mend.
#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    for (line, expected) in [
        (
            "MPI_Send:110:5:4:11,8,8:2:3:WORLD:111",
            "line 5: MPI_Send: rank 2 of a communicator of 2 ranks; copy",
        ),
        (
            "MPI_Send:110:5:4:11,8:0:3:WORLD:111",
            "argument 3: expected a datatype, such as 11,8,8, found \"11,8\"",
        ),
        ("MPI_Send:110:5", "MPI_Send: has 0 arguments"),
        ("MPI_Send", "the line is cut off"),
        ("hello", "does not begin with the name of a call"),
        ("MPI_Waitall:110:1000000000:7:7:111", "expected up to 1048576 requests"),
        ("MPI_Bcast:110:5:99999999999:11,9999999,8:0:WORLD:111", "99999999999 elements of 9999999 bytes"),
        ("MPI_Barrier:yesterday:WORLD:111", "expected a time in microseconds, found \"yesterday\""),
        ("MPI_Barrier:110:5,2,3:111", "communicator 5 of 3 ranks, which no call"),
        ("MPI_Alltoallv:110:1:2:3:11,8,8:4:5:6:11,8,8:WORLD:111", "argument"),
    ] {
        let texts = [rank_of_two(0, &[line]), rank_of_two(1, &[])];
        let error = trace(&texts).and_then(|trace| ops(&trace, 0)).unwrap_err().to_string();
        assert!(error.starts_with("r-0.txt: line 5: ") && error.contains(expected), "{error}");
    }
    let alone = trace(&[rank_of_two(0, &[])]).err().unwrap().to_string();
    assert!(alone.contains("one rank of 2"), "{alone}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Catches a panic, and memory of the size that a file merely says.
    #[test]
    fn changed_bytes_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let text = "MPI_Init:-:1:2:100.5\nMPI_Comm_rank:101:0,0,1:77:102\nMPI_Comm_split:103:0,0,1:3:4:7:\
                    104\n\
                    MPI_Irecv:110:5:4:11,8,8:0:3:0,0,1:1000:110\nMPI_Isend:111:5:4:11,8,8:0:3:0,0,1:1008:\
                    111\n\
                    MPI_Waitall:114:2:1000:7:115\nMPI_Gatherv:116:1:2:11,8,8:3:4:5:6:7:11,8,8:0:0,0,1:117\n";
        let mut bytes = text.as_bytes().to_vec();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let read = from_inputs("r-0.txt", vec![Input::memory("r-0.txt", bytes.into())]);
        match read.and_then(|trace| ops(&trace, 0)) {
            Ok(ops) => prop_assert!(ops.len() < 40),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
