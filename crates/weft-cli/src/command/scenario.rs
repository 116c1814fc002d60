//! `weft traffic --scenario FILE`: flows of a file under several ways to control congestion; and those beside
//! the ranks of other commands.

use super::breakdown::ListOptions;
use super::simulation::Shown;
use crate::exit::Failure;
use crate::options::read_text;
use crate::output::{self, decimal};
use clap::{Args, ValueHint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use weft_sim::experiment::scenario::{
    ClientFigures, Figures, GroupRow, RunFigures, ScenarioFile, ScenarioReport, ScenarioRequest, ScenarioRow,
    ServiceFigures,
};
use weft_units::ledger::{ScenarioLosses, View as _};

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

/// The file of what goes beside the ranks of a command.
#[derive(Args)]
pub struct BesideOptions {
    /// Put the flows, services and clients of a scenario file beside the ranks. They begin nothing after its
    /// `time`, and the run ends with the ranks
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    scenario: Option<PathBuf>,
}

impl BesideOptions {
    /// The file.
    pub fn file(&self) -> Option<&Path> {
        self.scenario.as_deref()
    }

    /// The file with its text.
    pub fn read(&self) -> Result<Option<ScenarioFile>, Failure> {
        let Some(path) = &self.scenario else { return Ok(None) };
        let (name, text) = read(path)?;
        Ok(Some(ScenarioFile { name, text }))
    }
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

    fn header(&self, _: &[String]) -> Header<'_> {
        Header { command: "traffic", scenario: &self.name, congestion: &self.congestion, seed: self.seed }
    }

    fn table(report: &ScenarioReport, _: ListOptions) -> String {
        let rows: Vec<&ScenarioRow> = report.rows.iter().map(|measured| &measured.row).collect();
        let runs: Vec<&[&ScenarioRow]> = rows.chunk_by(|one, next| one.run == next.run).collect();
        let lines = runs.iter().flat_map(|run| {
            let measured = run.iter().filter(|row| row.refused.is_none());
            measured.zip(0..).map(|(row, number)| line(row, number == 0))
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
        runs.iter().fold(table, |text, run| text + &remarks(run))
    }
}

/// The groups beside the ranks of a run: a table, and lines about them; nothing, where there are none.
pub fn groups_beside(rows: &[GroupRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |row: &GroupRow| {
        let [_, flows, rate, fairness, mean, p99, p999, completion, ..] =
            group_line(&row.group, &row.role, &row.figures);
        [flows, rate, fairness, mean, p99, p999, completion]
    };
    let table = output::table_of_some(
        ["beside the ranks", "Gb/s", "fairness", "mean (us)", "p99", "p99.9", "completion"],
        [false, true, true, true, true, true, true],
        rows.iter().map(line),
    );
    let remarks = rows.iter().filter_map(|row| Some(group_remark(&row.group, &row.figures)? + "\n"));
    table + &remarks.collect::<String>()
}

/// A row of a run; what concerns the whole run stands in its first line.
fn line(row: &ScenarioRow, is_first: bool) -> [String; 10] {
    let group = row.group.as_deref().zip(row.role.as_deref()).zip(row.figures.as_ref());
    let mut line =
        group.map_or_else(Default::default, |((group, role), figures)| group_line(group, role, figures));
    if let (true, Some(run)) = (is_first, &row.of_run) {
        line[0].clone_from(&row.congestion);
        line[8] = run.queue_max_bytes.to_string();
        line[9] = decimal(Some(run.paused_us));
    }
    line
}

/// A group of flows or clients, an application or a service.
fn group_line(group: &str, role: &str, figures: &Figures) -> [String; 10] {
    let mut line: [String; 10] = Default::default();
    match figures {
        Figures::Flows(figures) => {
            line[1] = format!("{group} ({role})");
            line[2] = decimal(Some(figures.throughput_gbps));
            line[3] = decimal(figures.fairness);
            line[4] = decimal(figures.latency_mean_us);
            line[5] = decimal(figures.latency_p99_us);
            line[6] = decimal(figures.latency_p999_us);
            line[7] = decimal(figures.completion_max_us);
        }
        Figures::Application(figures) => {
            line[1] = format!("{group} ({role}, {} ranks)", figures.ranks);
            line[7] = decimal(figures.completion_max_us);
        }
        Figures::Clients(figures) => {
            line[1] = format!("{group} ({role}, {} clients)", figures.clients);
            line[4] = decimal(figures.latency_mean_us);
            line[5] = decimal(figures.latency_p99_us);
            line[6] = decimal(figures.latency_p999_us);
        }
        Figures::Service(figures) => {
            line[1] = format!("{group} ({} stores, {} threads each)", figures.stores, figures.threads);
        }
    }
    line
}

/// Lines about the rows of a run: without numbers, with transfers or programs that have not ended, with
/// clients and services, with flows that come and go, or with losses.
fn remarks(rows: &[&ScenarioRow]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let way = &first.congestion;
    if let Some(why) = &first.refused {
        return format!("{way}: not on this machine: {why}\n");
    }
    let groups = rows.iter().filter_map(|row| group_remark(row.group.as_deref()?, row.figures.as_ref()?));
    let groups = groups.map(|remark| format!("{way}: {remark}\n"));
    groups.chain(first.of_run.iter().map(|run| run_remarks(way, run))).collect()
}

/// A line about what a group or an application has not ended, or about requests.
fn group_remark(group: &str, figures: &Figures) -> Option<String> {
    match figures {
        Figures::Flows(figures) => match figures.transfers_under_way {
            0 => None,
            1 => Some(format!("{group}: 1 transfer was under way at the end")),
            many => Some(format!("{group}: {many} transfers were under way at the end")),
        },
        Figures::Application(figures) if figures.completion_max_us.is_none() => {
            Some(format!("{group} has not ended; raise `time` in [scenario]"))
        }
        Figures::Application(_) => None,
        Figures::Clients(figures) => Some(client_remark(group, figures)),
        Figures::Service(figures) => Some(service_remark(group, figures)),
    }
}

/// A line about requests: their number, and how long half of them took.
fn client_remark(group: &str, figures: &ClientFigures) -> String {
    let ClientFigures { requests, requests_per_second, latency_p50_us, requests_failed, .. } = figures;
    let median = decimal(*latency_p50_us);
    let failed = match requests_failed {
        0 => String::new(),
        failed => format!(", {failed} were given up by the interface"),
    };
    let rate = format!("{requests_per_second:.0} a second");
    format!("{group}: {requests} requests, {rate}, half within {median} us{failed}")
}

/// A line about a service: how busy its threads were, and how long requests waited for one.
fn service_remark(group: &str, figures: &ServiceFigures) -> String {
    let ServiceFigures { busy_share, wait_mean_us, wait_p99_us, most_waiting, misses, .. } = figures;
    let (mean, p99) = (decimal(*wait_mean_us), decimal(*wait_p99_us));
    let misses = match misses {
        0 => String::new(),
        misses => format!(", {misses} gets found no value"),
    };
    format!(
        "{group}: threads {:.1} % busy; requests wait {mean} us, 99 % of them at most {p99} us, up to \
         {most_waiting} at a store{misses}",
        busy_share * 100.0
    )
}

/// Lines about a run.
fn run_remarks(way: &str, run: &RunFigures) -> String {
    let transients = run.transients.iter().map(|transient| {
        let at = decimal(Some(transient.at_us));
        match transient.settled_after_us {
            Some(after) => {
                format!("{way}: flows change at {at} us, new shares after {} us\n", decimal(Some(after)))
            }
            None => format!("{way}: flows change at {at} us, shares do not settle\n"),
        }
    });
    let failed = (run.transfers_failed > 0)
        .then(|| format!("{} transfers were given up by the interface", run.transfers_failed));
    let losses = ScenarioLosses::phrases(&run.losses).chain(failed).map(|line| format!("{way}: {line}\n"));
    let unmeasured = Unmeasured {
        off_us: run.links_off_us,
        in_warm_up_us: run.links_off_in_warm_up_us,
        after_end: run.outages_after_end,
    };
    let off = unmeasured.lines().map(|line| format!("{way}: {line}\n"));
    let energy = run.energy.as_ref().map(|energy| format!("{way}: {}\n", super::energy::line(energy)));
    transients.chain(losses).chain(off).chain(energy).collect()
}

/// Outages of which the measured time knows nothing, or not all: they count from the beginning of the run,
/// and not from the end of the warm-up.
pub(super) struct Unmeasured {
    /// How long links were off in all.
    pub off_us: f64,
    /// How long of it in the warm-up.
    pub in_warm_up_us: f64,
    /// Outages that begin after the end of the run.
    pub after_end: usize,
}

impl Unmeasured {
    /// A line for each kind that there is.
    pub fn lines(&self) -> impl Iterator<Item = String> + use<> {
        let Unmeasured { off_us, in_warm_up_us, after_end } = *self;
        let in_warm_up = (in_warm_up_us > 0.0).then(|| {
            format!(
                "links were off for {off_us:.3} us in all, {in_warm_up_us:.3} us of it in the warm-up, which \
                 is not measured: `off_at` and `on_at` count from the beginning of the warm-up"
            )
        });
        let after_end = (after_end > 0).then(|| {
            let what = if after_end == 1 { "outage begins" } else { "outages begin" };
            format!("{after_end} {what} after the end of the run, and did not happen")
        });
        in_warm_up.into_iter().chain(after_end)
    }
}
