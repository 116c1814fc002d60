//! `weft traffic --scenario FILE`: flows of a file under several ways to control congestion.

use super::breakdown::ListOptions;
use super::simulation::Shown;
use crate::exit::Failure;
use crate::options::read_text;
use crate::output::{self, decimal};
use serde::Serialize;
use std::path::Path;
use weft_sim::experiment::scenario::{
    ApplicationRow, GroupRow, ScenarioReport, ScenarioRequest, ScenarioRow,
};

/// Longest scenario file that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// The text of a scenario file, and its name without the folder.
pub fn read(path: &Path) -> Result<(String, String), Failure> {
    let refuse = |why: String| {
        Failure::input(format!(
            "--scenario: cannot read {}: {why}; name a file such as scenarios/incast-victim.toml",
            path.display()
        ))
    };
    let text = read_text(path, MAX_FILE).map_err(refuse)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, text))
}

/// The ways of `--congestion`.
pub fn parse_congestion(text: &str) -> Result<Ways, String> {
    let ways: Vec<String> = text.split(',').map(|way| way.trim().to_owned()).collect();
    if ways.iter().any(String::is_empty) {
        return Err("a name is missing; write for example none,acc,dcqcn".to_owned());
    }
    Ok(Ways(ways))
}

/// Ways to control congestion, by name.
#[derive(Clone, Debug)]
pub struct Ways(pub Vec<String>);

/// The fields of the request, at the top of the JSON document.
#[derive(Serialize)]
pub struct Header<'a> {
    command: &'static str,
    scenario: &'a str,
    congestion: &'a [String],
    seed: u64,
}

impl Shown for ScenarioRequest {
    type Header<'a> = Header<'a>;

    fn header(&self) -> Header<'_> {
        Header { command: "traffic", scenario: &self.name, congestion: &self.congestion, seed: self.seed }
    }

    fn table(report: &ScenarioReport, _: ListOptions) -> String {
        let lines = report.rows.iter().flat_map(|measured| {
            let row = &measured.row;
            let groups = row.groups.iter().zip(0..).map(move |(group, number)| line(row, group, number == 0));
            groups.chain(
                row.applications
                    .iter()
                    .map(move |application| of_application(row, application, row.groups.is_empty())),
            )
        });
        let table = output::table_of_some(
            [
                "congestion",
                "flows",
                "Gb/s",
                "fairness",
                "mean (us)",
                "p99",
                "p99.9",
                "completion",
                "queue",
                "paused (us)",
            ],
            [false, false, true, true, true, true, true, true, true, true],
            lines,
        );
        report.rows.iter().fold(table, |text, measured| text + &remark(&measured.row))
    }
}

/// A group of flows; what concerns the whole run stands in the first.
fn line(row: &ScenarioRow, group: &GroupRow, is_first: bool) -> [String; 10] {
    let whole = |text: String| if is_first { text } else { String::new() };
    [
        whole(row.congestion.clone()),
        format!("{} ({})", group.name, group.role),
        decimal(Some(group.throughput_gbps)),
        decimal(group.fairness),
        decimal(group.latency_mean_us),
        decimal(group.latency_p99_us),
        decimal(group.latency_p999_us),
        decimal(group.completion_max_us),
        whole(row.queue_max_bytes.to_string()),
        whole(decimal(Some(row.paused_us))),
    ]
}

/// An application: its run time is its completion.
fn of_application(row: &ScenarioRow, application: &ApplicationRow, is_first: bool) -> [String; 10] {
    let mut line: [String; 10] = Default::default();
    if is_first {
        line[0].clone_from(&row.congestion);
    }
    let ApplicationRow { name, role, ranks, .. } = application;
    line[1] = format!("{name} ({role}, {ranks} ranks)");
    line[7] = decimal(application.run_time_us);
    line
}

/// Lines about a row without numbers, with flows that come and go, or with losses.
fn remark(row: &ScenarioRow) -> String {
    let way = &row.congestion;
    if let Some(why) = &row.refused {
        return format!("{way}: not on this machine: {why}\n");
    }
    let transients = row.transients.iter().map(|transient| {
        let at = decimal(Some(transient.at_us));
        match transient.settled_after_us {
            Some(after) => {
                format!("{way}: flows change at {at} us, new shares after {} us\n", decimal(Some(after)))
            }
            None => format!("{way}: flows change at {at} us, shares do not settle\n"),
        }
    });
    let unended = row.applications.iter().filter(|application| application.run_time_us.is_none());
    let unended =
        unended.map(|own| format!("{way}: {} has not ended; raise `time` in [scenario]\n", own.name));
    let losses = [
        (row.packets_dropped, "packets found a buffer full"),
        (row.packets_trimmed, "packets were trimmed by full buffers"),
        (row.packets_resent, "packets were sent again"),
        (row.transfers_failed, "transfers were given up by the interface"),
    ];
    let lines = losses.iter().filter(|(lost, _)| *lost > 0);
    let energy = row.energy.as_ref().map(|energy| format!("{way}: {}\n", super::energy::line(energy)));
    let lines = unended.chain(transients).chain(lines.map(|(lost, what)| format!("{way}: {lost} {what}\n")));
    lines.chain(energy).collect()
}
