//! `weft machine selftest`: an interface's own test.

use super::OneMachine;
use crate::exit::{Failure, Status};
use crate::output;
use weft_sim::experiment::machine::{self, SelfTestReport, SelfTestRow};

/// Runs it. A test that fails ends badly.
pub fn run(one: &OneMachine) -> Result<Status, Failure> {
    let report = machine::self_test(&one.input()?)?;
    if one.format.json {
        output::document(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    Ok(if report.passed { Status::Done } else { Status::EndedBadly })
}

fn text(report: &SelfTestReport) -> String {
    let row = |row: &SelfTestRow| {
        [
            row.test.to_owned(),
            row.packets.to_string(),
            row.size_bytes.to_string(),
            row.cycles.to_string(),
            format!("{:.0}", row.time_ns),
            row.bandwidth_gbps.map_or("-".to_owned(), |bandwidth| format!("{bandwidth:.3}")),
            row.received.to_string(),
            row.wrong.to_string(),
            format!("{:#04x}", row.status),
            if row.passed { "passed" } else { "FAILED" }.to_owned(),
        ]
    };
    let heads =
        ["test", "packets", "size (B)", "cycles", "time (ns)", "Gb/s", "received", "wrong", "status", ""];
    let right = [false, true, true, true, true, true, true, true, true, false];
    output::table(heads, right, report.rows.iter().map(row))
}
