//! A rank program written in Rust: a ring exchange with an allreduce in each step, replayed on a machine
//! that ships. The book's page on rank programs is made of this file.

#![allow(clippy::unwrap_used, reason = "its parameters are constants, and its tests run it")]

use std::path::Path;
use weft_formats::{TraceError, TraceHeader, TraceWriter};
use weft_sim::experiment::replay::{Mapping, ReplayReport, ReplayRequest, TraceInput, Wildcards};
use weft_sim::experiment::{Control, Experiment, ExperimentOptions, Interrupt, Silent, machine};
use weft_trace::op::{Collective, CollectiveBuffers, CollectiveSizes, CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId, Span};

// ANCHOR: program
/// Each rank computes 50 us, passes 64 KiB around the ring and adds 8 bytes up, `steps` times.
fn ring(path: &Path, ranks: u32, steps: u32) -> Result<(), TraceError> {
    let (comm, bytes, sum) = (CommId::WORLD, Bytes::new(64 << 10), Bytes::new(8));
    let (receive, send) = (RequestId(0), RequestId(1));
    let mut trace = TraceWriter::create(path, TraceHeader { ranks, ..TraceHeader::default() })?;
    for rank in 0..ranks {
        trace.begin_rank(RankId(rank))?;
        let from = Some(RankId((rank + ranks - 1) % ranks));
        let to = RankId((rank + 1) % ranks);
        for _ in 0..steps {
            trace.push(&Op::Compute { span: Span::from_us(50) })?;
            trace.push(&Op::Irecv {
                from,
                tag: Some(0),
                comm,
                bytes,
                matched: None,
                request: receive,
                buffer: None,
            })?;
            let mode = SendMode::Standard;
            trace.push(&Op::Isend { to, tag: 0, comm, bytes, mode, request: send, buffer: None })?;
            trace.push(&Op::Waitall { requests: vec![receive, send] })?;
            let sizes = CollectiveSizes { send: sum, receive: sum, element: 8, ..Default::default() };
            let kind = Collective::Allreduce;
            trace.push(&Op::Collective {
                kind,
                comm,
                root: None,
                sizes,
                request: None,
                buffers: CollectiveBuffers::default(),
            })?;
        }
    }
    trace.finish().map(drop)
}
// ANCHOR_END: program

// ANCHOR: replay
/// Replays a trace on a machine that ships, its ranks placed in order.
fn replay(path: &Path, name: &str) -> ReplayReport {
    let request = ReplayRequest {
        machine: machine::input(name, &[]).unwrap(),
        traces: vec![TraceInput::at(path).unwrap()],
        starts: Vec::new(),
        isolated: false,
        map: Mapping::Linear,
        ranks_per_host: None,
        wildcards: Wildcards::Recorded,
        seed: 1,
        data: false,
        breakdown: false,
        compute_scale: Default::default(),
        region: None,
        telemetry: None,
        scenario: None,
    };
    let options = ExperimentOptions::default();
    request.run(&options, Control { interrupt: &Interrupt::default(), progress: &Silent }).unwrap()
}
// ANCHOR_END: replay

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring.weft");
    ring(&path, 16, 10).unwrap();
    for name in ["exanest", "bxi3-fattree"] {
        let report = replay(&path, name);
        let row = &report.rows[0].row.figures;
        let (time, share) = (row.run_time_us, 100.0 * row.communication_share);
        println!("{name}: {time:.1} us, {share:.1} % of it communication, {} messages", row.messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_results::Ending;

    /// Catches a program that does not end, and messages that are lost or sent twice.
    #[test]
    fn the_ring_turns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring.weft");
        ring(&path, 16, 10).unwrap();
        let report = replay(&path, "exanest");
        let row = &report.rows[0].row.figures;
        assert_eq!(report.ended, Ending::Finished);
        assert!(row.run_time_us > 500.0, "ten times 50 us of computation alone: {}", row.run_time_us);
        assert!(row.messages > 160 && row.bytes > 160 * (64 << 10), "{row:?}");
        assert!(row.bytes < 161 * (64 << 10), "the sums are short: {row:?}");
    }
}
