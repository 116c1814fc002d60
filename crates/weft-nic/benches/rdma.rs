//! Speed of a long RDMA write through the block-level interface and the network.
//!
//! ```text
//! cargo bench -p weft-nic --bench rdma -- [bytes] [destination] [writes]
//! ```
//! Endpoint 0 of an ExaNeSt mezzanine sends to another, 1 on its board by default, one write after the other.
//! Prints one JSON object; times are processor times of the thread, so that a computer that is busy with
//! other things does not count.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up ends")]

#[path = "../tests/it/common.rs"]
mod common;
#[path = "../tests/it/rdma/machine.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod machine;

use machine::{Planned, Report, begin, parameters};
use std::sync::atomic::AtomicBool;
use weft_units::{EndpointId, Span, Time};

/// Processor time of this thread in seconds: the first number of schedstat, in ns (Linux,
/// Documentation/scheduler/sched-stats.rst).
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (bytes, to, writes) = (number(0, 4 << 20), number(1, 1), number(2, 100));
    let mut plans = vec![Vec::new(); 16];
    let to = EndpointId(to as u32);
    // Far enough apart to be alone.
    let plan = (0..writes).map(|write| Planned {
        at: Time::ZERO + Span::from_us(write * (bytes / 500 + 100)),
        to,
        bytes,
        interface: 0,
        watch: false,
    });
    plans[0] = plan.collect();
    let mut run = begin(&plans, parameters(), 1);
    let before = processor_seconds();
    run.run_until(Time::NEVER, &AtomicBool::new(false));
    let seconds = processor_seconds() - before;
    let reports = run.outputs_mut().flat_map(|output| &output.reports);
    let delivered = reports.filter(|report| matches!(report, Report::Delivered(..))).count();
    let events = run.events_handled();
    let (per_write, cells) = (seconds * 1e3 / writes as f64, bytes.div_ceil(256));
    println!(
        "{{\"bytes\": {bytes}, \"writes\": {writes}, \"delivered\": {delivered}, \"events\": {events}, \
         \"ms_per_write\": {per_write:.3}, \"ns_per_cell\": {:.0}}}",
        per_write * 1e6 / cells as f64
    );
}
