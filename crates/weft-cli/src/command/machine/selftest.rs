//! `weft machine selftest`: an interface's own test.

use super::OneMachine;
use crate::exit::{Failure, Status};
use crate::options::whole_number;
use crate::output;
use clap::Args;
use weft_sim::experiment::machine::{self, SelfTestReport, SelfTestRow, SelfTestWanted, TestPattern};
use weft_units::{Bytes, EndpointId};

/// The size of a packet where only its number or destination is asked for: that of D2.8 §2.1.
const SIZE: Bytes = Bytes::new(16);

/// Options of `weft machine selftest`.
#[derive(Args)]
pub struct SelftestOptions {
    #[command(flatten)]
    one: OneMachine,

    /// Packets of one test of your own, in place of the usual ones
    #[arg(long, value_name = "N", value_parser = whole_number(1..=u32::MAX), allow_negative_numbers = true)]
    packets: Option<u32>,

    /// Payload of each packet of that test; 16 by default
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    size: Option<Bytes>,

    /// The endpoint that they go to, from endpoint 0 along X; by default it sends to itself
    #[arg(long, value_name = "E", value_parser = whole_number(0..=u32::MAX), allow_negative_numbers = true)]
    to: Option<u32>,

    /// Payload of its packets: counter, the places of words; alternating, ones and zeros in turns; prbs, a
    /// random sequence; counter by default
    #[arg(long, value_name = "NAME", value_parser = TestPattern::ALL.map(TestPattern::name))]
    pattern: Option<String>,
}

impl SelftestOptions {
    /// Runs it. A test that fails ends badly.
    pub fn run(&self) -> Result<Status, Failure> {
        let input = self.one.input()?;
        let report = match self.wanted() {
            Some(wanted) => machine::self_test_of(&input, wanted)?,
            None => machine::self_test(&input)?,
        };
        if self.one.format.json {
            output::document(&report)?;
        } else {
            output::text(&text(&report))?;
        }
        Ok(if report.passed { Status::Done } else { Status::EndedBadly })
    }

    /// The test that is asked for, if one is.
    fn wanted(&self) -> Option<SelfTestWanted> {
        let SelftestOptions { packets, size, to, .. } = *self;
        let named = |pattern: &TestPattern| self.pattern.as_deref() == Some(pattern.name());
        let pattern = TestPattern::ALL.into_iter().find(named);
        (packets.is_some() || size.is_some() || to.is_some() || pattern.is_some()).then(|| SelfTestWanted {
            packets: packets.unwrap_or(1),
            size: size.unwrap_or(SIZE),
            to: EndpointId(to.unwrap_or(0)),
            pattern: pattern.unwrap_or_default(),
        })
    }
}

fn text(report: &SelfTestReport) -> String {
    let row = |row: &SelfTestRow| {
        [
            row.test.to_owned(),
            row.packets.to_string(),
            row.size_bytes.to_string(),
            row.pattern.to_owned(),
            row.cycles.to_string(),
            format!("{:.0}", row.time_ns),
            row.bandwidth_gbps.map_or("-".to_owned(), |bandwidth| format!("{bandwidth:.3}")),
            row.received.to_string(),
            row.wrong.to_string(),
            row.num_of_hops.to_string(),
            row.virt_chan.to_string(),
            format!("{:#04x}", row.status),
            if row.passed { "passed" } else { "FAILED" }.to_owned(),
        ]
    };
    let heads = [
        "test",
        "packets",
        "size (B)",
        "pattern",
        "cycles",
        "time (ns)",
        "Gb/s",
        "received",
        "wrong",
        "hops",
        "virt_chan",
        "status",
        "",
    ];
    let right = [false, true, true, false, true, true, true, true, true, true, true, true, false];
    output::table(heads, right, report.rows.iter().map(row))
}
