//! `weft validate`: published measurements against what the machine files say of the same hardware.
//!
//! ```text
//!   validation/NAME.toml ─► rows ─► each row's OSU runs ─► published, simulated, relative error, role
//!                                                      └─► --vary: the same with each constant 10 % off
//! ```
//! | module | what it is |
//! |---|---|
//! | `applications` | application kernels as figures |
//! | `publication` | the files under `validation/`, read and checked |
//! | `queues` | queues of a scenario as a figure |
//! | `vary` | how each row moves with each constant |

mod applications;
mod point;
mod publication;
mod queues;
mod vary;

use super::machine::{self as machines, SelfTestRow};
use super::osu::{ExpectedBcastRequest, Iterations, Layer, OsuRequest, Repetitions};
use super::replay::Mapping;
use super::scenario::{self, ScenarioRequest};
use super::{Control, Experiment, ExperimentError, ExperimentOptions, MachineInput, Silent};
pub use publication::Role;
use publication::{Figure, Limit, Measure, Publication, Row};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
pub use vary::{CalibratedRange, Sensitivity};

/// The benchmark that is no single run.
const EXPECTED_BCAST: &str = "expected-bcast";

/// The interface's own test, which is no benchmark: the time of its performance counter for one packet.
const SELF_TEST: &str = "selftest";

/// A scenario that ships, which is no benchmark either.
const SCENARIO: &str = "scenario";

/// The deepest queue in a scenario.
const QUEUES: &str = "queues";

/// An application kernel.
const APP: &str = "app";

/// A point of a load curve.
const TRAFFIC: &str = "traffic";

/// The scenarios of rows.
const SCENARIOS: [(&str, &str); 9] = [
    ("lammps-background.toml", include_str!("../../../../scenarios/lammps-background.toml")),
    ("lammps-queues.toml", include_str!("../../../../scenarios/lammps-queues.toml")),
    ("new-shares.toml", include_str!("../../../../scenarios/new-shares.toml")),
    ("latency-victim-low.toml", include_str!("../../../../scenarios/latency-victim-low.toml")),
    ("latency-victim-medium.toml", include_str!("../../../../scenarios/latency-victim-medium.toml")),
    ("latency-victim-high.toml", include_str!("../../../../scenarios/latency-victim-high.toml")),
    ("mezzanine-victim-low.toml", include_str!("../../../../scenarios/mezzanine-victim-low.toml")),
    ("mezzanine-victim-medium.toml", include_str!("../../../../scenarios/mezzanine-victim-medium.toml")),
    ("mezzanine-victim-high.toml", include_str!("../../../../scenarios/mezzanine-victim-high.toml")),
];

/// The folder that scenarios lie in, from the root of the tree: their traces lie relative to it.
const SCENARIO_FOLDER: &str = "scenarios";

/// The scenario of a row: its name and text.
fn scenario_of(measure: &Measure) -> Result<(&'static str, &'static str), ExperimentError> {
    let unknown = || ExperimentError::input(format!("no row has the scenario {}", measure.size));
    SCENARIOS.into_iter().find(|(name, _)| *name == measure.size).ok_or_else(unknown)
}

/// The reason for which a row cannot be measured here: a trace that nobody has recorded.
fn why_left_out(row: &Row) -> Result<Option<String>, ExperimentError> {
    if ![SCENARIO, QUEUES].contains(&row.measure.benchmark.as_str()) {
        return Ok(None);
    }
    let (name, text) = scenario_of(&row.measure)?;
    Ok(scenario::traces(name, text, Path::new(SCENARIO_FOLDER)).err().map(|missing| missing.to_string()))
}

/// The request of a row's scenario.
fn scenario_request(machine: MachineInput, measure: &Measure) -> Result<ScenarioRequest, ExperimentError> {
    let (name, text) = scenario_of(measure)?;
    let traces = scenario::traces(name, text, Path::new(SCENARIO_FOLDER))?;
    let (name, text, congestion) = (name.to_owned(), text.to_owned(), Vec::new());
    Ok(ScenarioRequest { machine, name, text, traces, congestion, seed: 1, telemetry: None })
}

/// The figure of a scenario: of a group of flows a latency in µs or a throughput in Gb/s, of an application
/// its run time in µs.
fn scenario(machine: MachineInput, measure: &Measure, control: Control<'_>) -> Result<f64, ExperimentError> {
    let request = scenario_request(machine, measure)?;
    let report = request.run(&ExperimentOptions::default(), control)?;
    let group = measure.group.as_deref().unwrap_or_default();
    let row = report.rows.iter().map(|row| &row.row).find(|row| row.group.as_deref() == Some(group));
    let transients = row.and_then(|row| row.of_run.as_ref()).map_or(&[][..], |run| &run.transients);
    let of_application = row.and_then(|row| row.of_application()?.completion_max_us);
    let figure =
        of_application.or(row.and_then(|row| row.of_flows()).and_then(|row| match measure.figure? {
            Figure::Mean => row.latency_mean_us,
            Figure::P99 => row.latency_p99_us,
            Figure::Throughput => Some(row.throughput_gbps),
            Figure::SettlesAfterStart => transients.first()?.settled_after_us,
            Figure::SettlesAfterStop => transients.last()?.settled_after_us,
            _ => None,
        }));
    figure.ok_or_else(|| {
        let why = report.detail.unwrap_or_else(|| format!("its group `{group}` has no such figure"));
        ExperimentError::input(format!("scenario {}: {why}", measure.size))
    })
}

/// The time in µs of the self-test's packet to endpoint `to`.
fn self_test(input: &MachineInput, measure: &Measure) -> Result<f64, ExperimentError> {
    let report = machines::self_test(input)?;
    let is_wanted = |row: &&SelfTestRow| {
        let size = row.size_bytes.to_string();
        row.packets == 1 && measure.size == size && measure.to.as_deref() == Some(row.to.to_string().as_str())
    };
    let row = report.rows.iter().find(is_wanted);
    row.map(|row| row.time_ns / 1000.0).ok_or_else(|| {
        ExperimentError::input(format!("the self-test has no packet of {} to {:?}", measure.size, measure.to))
    })
}

/// The request of `weft validate`.
#[derive(Clone, Debug, Default)]
pub struct ValidateRequest {
    /// Changes to the machine, as by `--set`.
    pub sets: Vec<String>,
    /// Only rows of this machine.
    pub machine: Option<String>,
    /// Only rows whose id contains this.
    pub only: Option<String>,
    /// Whether to vary constants.
    pub vary: bool,
    /// Threads that vary them; 0 is 1.
    pub threads: u32,
}

/// A published measurement and what the simulation gives.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ValidationRow {
    /// The name of the row.
    pub id: String,
    /// The machine that was measured.
    pub machine: String,
    /// Document and section.
    pub source: String,
    /// The quantity that was measured.
    pub quantity: String,
    /// Of both values.
    pub unit: String,
    /// As published; of a range, the end that is smaller. `None`: the copy of the document leaves it blank.
    pub published: Option<f64>,
    /// The other end of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_to: Option<f64>,
    /// As simulated.
    pub simulated: f64,
    /// (simulated − published) / published, a fraction; of a limit: 0 where it is met. `None`: nothing is
    /// published.
    pub relative_error: Option<f64>,
    /// How far constants of the machine rest on it.
    pub role: Role,
    /// The kind of limit that the document gives, where it gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// The largest error in per cent that a test of the project lets pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// A note on the cause of an error, or on the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The command that gives the simulated value, of a row without a published one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl ValidationRow {
    /// Whether it is a limit that is met; `None`: it is no limit.
    pub fn is_met(&self) -> Option<bool> {
        self.limit.map(|_| self.relative_error == Some(0.0))
    }

    /// The figure as the document has it, without its unit.
    pub fn published_text(&self) -> String {
        let Some(published) = self.published else { return String::new() };
        match (self.limit, self.published_to) {
            (_, Some(to)) => format!("{published} to {to}"),
            (Some(limit), None) => format!("{limit} {published}"),
            (None, None) => published.to_string(),
        }
    }

    /// The simulated value with three decimals, or more where these would leave less than two digits.
    pub fn simulated_text(&self) -> String {
        let small = self.simulated.abs();
        let decimals = if small > 0.0 && small < 0.01 { 1 - small.log10().floor() as i64 } else { 3 };
        format!("{:.*}", decimals as usize, self.simulated)
    }

    /// The error in per cent; of a limit, whether it is met or by how much it is missed.
    pub fn error_text(&self) -> String {
        let Some(error) = self.relative_error.map(|error| 100.0 * error) else { return String::new() };
        match self.is_met() {
            Some(true) => "met".to_owned(),
            Some(false) => format!("missed, {error:+.1} %"),
            None => format!("{error:+.1} %"),
        }
    }
}

/// A row that could not be measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LeftOut {
    /// The name of the row.
    pub id: String,
    /// The quantity that would be measured.
    pub quantity: String,
    /// The reason, with the mend.
    pub why: String,
}

/// The report of `weft validate`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ValidationReport {
    /// Mean of the absolute relative errors of predicted rows: the headline.
    pub mean_error_predicted: Option<f64>,
    /// Of rows that follow from calibrated ones.
    pub mean_error_derived: Option<f64>,
    /// Of rows that something was calibrated on.
    pub mean_error_calibrated: Option<f64>,
    /// Limits that are met.
    pub limits_met: usize,
    /// Limits that are missed.
    pub limits_missed: usize,
    /// All rows that could be measured, in the order of the files.
    pub rows: Vec<ValidationRow>,
    /// Rows that could not, for want of a trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// How each row moves with each constant, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensitivity: Vec<Sensitivity>,
    /// The ranges of calibrated constants, where constants are varied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<CalibratedRange>,
}

impl ValidationReport {
    /// Of rows that have been measured.
    fn of(rows: Vec<ValidationRow>) -> ValidationReport {
        let mean = |role| {
            // A limit that is met has no error: it would make a mean small.
            let of_role = rows.iter().filter(|row| row.role == role && row.limit.is_none());
            let errors = of_role.filter_map(|row| row.relative_error).map(f64::abs);
            let count = errors.clone().count();
            (count > 0).then(|| errors.sum::<f64>() / count as f64)
        };
        let is_limit = |row: &&ValidationRow| row.role == Role::Limit;
        let limits = |met| rows.iter().filter(is_limit).filter(|row| row.is_met() == Some(met)).count();
        ValidationReport {
            mean_error_predicted: mean(Role::Predicted),
            mean_error_derived: mean(Role::Derived),
            mean_error_calibrated: mean(Role::Calibrated),
            limits_met: limits(true),
            limits_missed: limits(false),
            rows,
            left_out: Vec::new(),
            sensitivity: Vec::new(),
            ranges: Vec::new(),
        }
    }

    /// The rows of a role.
    pub fn of_role(&self, role: Role) -> impl Iterator<Item = &ValidationRow> {
        self.rows.iter().filter(move |row| row.role == role)
    }

    /// How well the rows of a role are met, with their number; `None`: there are none.
    pub fn summary(&self, role: Role) -> Option<String> {
        let counts = |row: &&ValidationRow| role == Role::Limit || row.limit.is_none();
        let all = self.of_role(role).filter(counts).count();
        let count = self.of_role(role).filter(counts).filter(|row| row.published.is_some()).count();
        let rows = if count == 1 { "row" } else { "rows" };
        let blank = match all - count {
            0 => String::new(),
            blank => format!(", and {blank} without a published figure"),
        };
        let mean = match role {
            Role::Predicted => self.mean_error_predicted,
            Role::Derived => self.mean_error_derived,
            Role::Calibrated => self.mean_error_calibrated,
            Role::Limit => {
                let (met, missed) = (self.limits_met, self.limits_missed);
                return (count > 0).then(|| format!("limits: {met} met, {missed} missed"));
            }
        };
        mean.map(|mean| {
            format!("mean error of {} rows: {:.1} % ({count} {rows}{blank})", role.name(), 100.0 * mean)
        })
    }
}

/// Runs every row's experiment.
///
/// # Errors
/// A filter that no row passes, changes that the machine does not have or that rows of two machines would
/// share, and an interrupted run.
pub fn run(request: &ValidateRequest, control: Control<'_>) -> Result<ValidationReport, ExperimentError> {
    let publications = Publication::all()?;
    let is_wanted = |row: &Row| request.only.as_ref().is_none_or(|part| row.id.contains(part.as_str()));
    let of_machine = |publication: &Publication| {
        request.machine.as_ref().is_none_or(|machine| machine == publication.machine())
    };
    let mut chosen: Vec<(&str, Vec<&Row>)> = publications
        .iter()
        .filter(|publication| of_machine(publication))
        .map(|publication| {
            (publication.machine(), publication.rows().iter().filter(|row| is_wanted(row)).collect())
        })
        .filter(|(_, rows): &(_, Vec<&Row>)| !rows.is_empty())
        .collect();
    if chosen.is_empty() {
        return Err(no_rows(request, &publications));
    }
    if let ([(first, _), (second, _), ..], false) = (&chosen[..], request.sets.is_empty()) {
        return Err(ExperimentError::input(format!(
            "--set changes one machine, and the rows are of {first} and {second}; add --machine {first}"
        )));
    }
    let mut left_out = Vec::new();
    for (_, rows) in &mut chosen {
        let mut present = Vec::new();
        for row in rows.drain(..) {
            match why_left_out(row)? {
                Some(why) => {
                    left_out.push(LeftOut { id: row.id.clone(), quantity: row.quantity.clone(), why })
                }
                None => present.push(row),
            }
        }
        *rows = present;
    }
    let total: usize = chosen.iter().map(|(_, rows)| rows.len()).sum();
    let mut measured = Vec::new();
    for (machine, rows) in &chosen {
        let subject = Subject { machine, sets: &request.sets, control };
        let mut known = Vec::new();
        for row in rows {
            control.progress.advance(measured.len() as f64 / total as f64, &row.id);
            measured.push(subject.measure_row(row, &mut known)?);
        }
    }
    let mut report = ValidationReport { left_out, ..ValidationReport::of(measured) };
    if request.vary {
        for (machine, rows) in &chosen {
            let subject = Subject { machine, sets: &request.sets, control };
            let measured = report.rows.iter().filter(|row| row.machine == *machine);
            let simulated: Vec<f64> = measured.map(|row| row.simulated).collect();
            report.sensitivity.extend(vary::sensitivity(&subject, request.threads, rows, &simulated)?);
            report.ranges.extend(vary::ranges(&subject)?);
        }
    }
    Ok(report)
}

/// The error of a filter that no row passes.
fn no_rows(request: &ValidateRequest, publications: &[Publication]) -> ExperimentError {
    let machines: Vec<&str> = publications.iter().map(Publication::machine).collect();
    if let Some(machine) = request.machine.as_deref().filter(|machine| !machines.contains(machine)) {
        // A machine can have several publications.
        let names: BTreeSet<&str> = machines.into_iter().collect();
        let names: Vec<&str> = names.into_iter().collect();
        return ExperimentError::input(format!(
            "no row is of the machine `{machine}`; there are rows of {}",
            names.join(", ")
        ));
    }
    let rows = publications.iter().flat_map(Publication::rows);
    let ids: Vec<&str> = rows.map(|row| row.id.as_str()).collect();
    let part = request.only.as_deref().unwrap_or_default();
    ExperimentError::input(format!("no row has `{part}` in its id; there are {}", ids.join(", ")))
}

/// The machine that is validated, with changes to its values.
#[derive(Clone, Copy)]
struct Subject<'a> {
    machine: &'a str,
    sets: &'a [String],
    control: Control<'a>,
}

/// Experiments of a subject that have been run, with their figures: several rows need the same.
type Known = Vec<(Measure, f64)>;

impl Subject<'_> {
    /// Measures what a row is about.
    fn measure_row(&self, row: &Row, known: &mut Known) -> Result<ValidationRow, ExperimentError> {
        let mut figure = |measure: &Measure| {
            let find =
                |known: &Known| known.iter().find(|(other, _)| other == measure).map(|(_, figure)| *figure);
            if let Some(figure) = find(known) {
                return Ok(figure);
            }
            known.extend(self.measure(measure)?);
            find(known).ok_or_else(|| {
                ExperimentError::input(format!(
                    "{} of {}: it has no such figure",
                    measure.benchmark, measure.size
                ))
            })
        };
        let mut simulated = figure(&row.measure)?;
        if let Some(minus) = &row.minus {
            simulated -= figure(minus)?;
        }
        for times in &row.times {
            simulated *= figure(times)?;
        }
        for over in &row.over {
            simulated /= figure(over)?;
        }
        simulated /= f64::from(row.parts.unwrap_or(1));
        // The value that the simulated one is held against; a limit that is met is none.
        let (missed, limit) = match row.limit {
            None => (row.published, None),
            Some(Limit::AtMost) => (row.published.filter(|most| simulated > *most), Some("at most")),
            Some(Limit::AtLeast) => (row.published.filter(|least| simulated < *least), Some("at least")),
            Some(Limit::Within) => {
                let least = row.published.filter(|least| simulated < *least);
                (least.or(row.to.filter(|most| simulated > *most)), Some("within"))
            }
        };
        Ok(ValidationRow {
            id: row.id.clone(),
            machine: self.machine.to_owned(),
            source: row.source.clone(),
            quantity: row.quantity.clone(),
            unit: row.unit.clone(),
            published: row.published,
            published_to: row.to,
            simulated,
            relative_error: row
                .published
                .map(|_| missed.map_or(0.0, |published| (simulated - published) / published)),
            role: row.role,
            limit,
            bound: row.bound.map(|percent| percent.0),
            note: row.note.clone(),
            command: row.published.is_none().then(|| row.command(self.machine)),
        })
    }

    /// Runs one experiment, and gives its figures: that of `measure`, and others of the same run.
    fn measure(&self, measure: &Measure) -> Result<Known, ExperimentError> {
        // Changes are those of the machine that is validated.
        let machine = measure.machine.as_deref().unwrap_or(self.machine);
        let sets = if machine == self.machine { self.sets } else { &[] };
        let subject = Subject { machine, sets, ..*self };
        if measure.benchmark != APP {
            return Ok(vec![(measure.clone(), subject.figure(measure)?)]);
        }
        let control = Control { progress: &Silent, ..self.control };
        let input = machines::input(machine, &[sets, &measure.set].concat())?;
        let figures = applications::figures(input, measure, control)?.into_iter();
        Ok(figures
            .map(|(figure, value)| (Measure { figure: Some(figure), ..measure.clone() }, value))
            .collect())
    }

    /// Runs one experiment: its latency in µs, its bandwidth in Gb/s, or the latency that Eq. 1 expects of a
    /// broadcast over the one that is simulated.
    fn figure(&self, measure: &Measure) -> Result<f64, ExperimentError> {
        let Subject { machine, sets, control } = *self;
        let repetitions = Repetitions {
            warm_up: measure.warm_up,
            iterations: measure.iterations.map_or(Iterations::Usual, Iterations::Exactly),
            barrier: measure.barrier.unwrap_or(true),
        };
        let options = ExperimentOptions::default();
        // The single runs are too short to report on.
        let (sets, control) = ([sets, &measure.set].concat(), Control { progress: &Silent, ..control });
        let input = machines::input(machine, &sets)?;
        if measure.benchmark == SELF_TEST {
            return self_test(&input, measure);
        }
        if measure.benchmark == SCENARIO {
            return scenario(input, measure, control);
        }
        if measure.benchmark == TRAFFIC {
            return point::figure(input, measure, control);
        }
        if measure.benchmark == QUEUES {
            return queues::deepest(scenario_request(input, measure)?, measure, control);
        }
        let sizes = vec![measure.size.parse().map_err(ExperimentError::input)?];
        let fault =
            |why: String| ExperimentError::input(format!("{} of {}: {why}", measure.benchmark, measure.size));
        if measure.benchmark == EXPECTED_BCAST {
            let request = ExpectedBcastRequest {
                machine: input,
                sizes,
                ranks: measure.ranks.into_iter().collect(),
                ranks_per_host: measure.ranks_per_host,
                repetitions,
                seed: 1,
            };
            let report = request.run(&options, control)?;
            let row = report.rows.first().map(|measured| &measured.row);
            let why = || fault(report.detail.clone().unwrap_or_else(|| report.ended.to_string()));
            return row.map(|row| 1.0 + row.relative_deviation).ok_or_else(why);
        }
        let request = OsuRequest {
            machine: input,
            benchmark: measure.benchmark.parse().map_err(ExperimentError::input)?,
            sizes,
            between: measure.from.clone().zip(measure.to.clone()).map(<[String; 2]>::from),
            ranks: measure.ranks,
            map: Mapping::Linear,
            ranks_per_host: measure.ranks_per_host,
            repetitions,
            layer: measure.layer.unwrap_or(Layer::Mpi),
            algorithm: measure.algorithm.clone(),
            seed: 1,
            breakdown: false,
            data: false,
            telemetry: None,
        };
        let report = request.run(&options, control)?;
        let row = report.rows.first().map(|measured| &measured.row);
        let figure = row.and_then(|row| row.bandwidth_gbps.or(row.latency_us));
        figure.ok_or_else(|| fault(report.detail.unwrap_or_else(|| report.ended.to_string())))
    }
}
