//! Pictures of results: what is drawn, computed once. The command, Python and pages only draw it.
//!
//! ```text
//!  run.json, tables ──► PictureKind::of ──► Picture { panels { axes, content } } ──► weft-plot: SVG, PNG
//! ```
//! | file | pictures |
//! |---|---|
//! | `load_curve` | latency and throughput over load |
//! | `congestion` | congestion trees |
//! | `completion` | distribution of completion times; slow-down by size |
//! | `intervals` | the time axis of the three below |
//! | `telemetry` | queues stacked and as a heat map, rates |
//! | `jobs` | rates of jobs over time |
//! | `switch_queues` | the deepest queue of each switch, in packets |
//! | `throughput` | payload that arrives over time |
//! | `links` | utilization of links |
//! | `ranks` | messages between ranks over time, communication matrix |

mod completion;
mod congestion;
mod intervals;
mod jobs;
mod links;
mod load_curve;
mod ranks;
mod switch_queues;
mod telemetry;
mod throughput;

pub use ranks::PairValues;

use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use weft_results::{ResultsError, RunOf, StoredResult};
use weft_units::Time;

/// Series in one panel: more cannot be told apart by colour.
pub const MAX_SERIES: usize = 8;

/// A picture: panels below each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Picture {
    /// The name of the kind: of results, that of a [`PictureKind`].
    pub kind: &'static str,
    /// The heading.
    pub title: String,
    /// The machine and the run, below the heading.
    pub subtitle: String,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// A plot with two axes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Panel {
    /// The heading; empty where the picture's says it all.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The contents.
    pub content: Content,
}

/// An axis: a quantity with its unit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// The unit; empty for counts and shares of one.
    pub unit: &'static str,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Whether it begins at zero.
    pub from_zero: bool,
    /// Names of 0, 1, 2 …, where the axis lists things.
    pub names: Vec<String>,
}

/// The contents of a panel.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Lines over each other.
    Lines(Vec<Series>),
    /// Areas on top of each other, of series with the same x.
    Stacked(Vec<Series>),
    /// Straight segments: `[x, y, x, y]`, by series.
    Segments(Vec<Segments>),
    /// A heat map.
    Cells(Cells),
}

/// A line.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Series {
    /// The legend.
    pub label: String,
    /// The points, by ascending x.
    pub points: Vec<[f64; 2]>,
    /// The confidence interval of each point; empty where there is none.
    pub interval: Vec<[f64; 2]>,
    /// Whether it is dashed: the second of two lines of one colour.
    pub dashed: bool,
    /// The number of its colour.
    pub colour: usize,
    /// Whether each point has a mark.
    pub marks: bool,
}

/// Segments of one colour.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Segments {
    /// The legend.
    pub label: String,
    /// From x, y to x, y.
    pub segments: Vec<[f64; 4]>,
}

/// A heat map: rows are the names of the vertical axis.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cells {
    /// Edges of the columns, one more than there are columns.
    pub edges: Vec<f64>,
    /// Values by row, then column.
    pub values: Vec<Vec<f64>>,
    /// The quantity.
    pub label: String,
    /// The unit.
    pub unit: &'static str,
}

impl Axis {
    /// An axis of numbers that begins at zero.
    pub fn new(label: impl Into<String>, unit: &'static str) -> Axis {
        Axis { label: label.into(), unit, log: false, from_zero: true, names: Vec::new() }
    }

    /// The same, logarithmic.
    pub fn log(self) -> Axis {
        Axis { log: true, from_zero: false, ..self }
    }

    /// An axis that lists things.
    pub fn names(label: impl Into<String>, names: Vec<String>) -> Axis {
        Axis { names, ..Axis::new(label, "") }
    }

    /// The text beside the axis.
    pub fn text(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// The kinds of pictures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureKind {
    /// Latency and throughput over the offered load.
    LoadCurve,
    /// Distribution of the completion times of messages.
    FctCdf,
    /// Slow-down of messages by their size.
    SlowDown,
    /// Bytes in queues over time, stacked.
    Queue,
    /// Bytes in each queue over time.
    QueueHeatMap,
    /// Packets in the deepest queue of each switch over time, stacked.
    SwitchQueues,
    /// Packets in the deepest queue of each switch over time.
    SwitchQueueHeatMap,
    /// Congestion trees over time.
    CongestionTrees,
    /// Rates of links over time.
    Rates,
    /// Rates of flows over time, and what congestion control allows them.
    FlowRates,
    /// Rates of jobs over time, and those of each alone.
    JobRates,
    /// Payload that arrives over time, of all flows together.
    Throughput,
    /// Utilization of links.
    LinkUtilization,
    /// Energy of links.
    LinkEnergy,
    /// Messages between ranks or endpoints over time.
    Timeline,
    /// Bytes from each rank or endpoint to each.
    CommunicationMatrix,
}

impl PictureKind {
    /// All of them, in the order in which they are listed.
    pub const ALL: [PictureKind; 16] = [
        PictureKind::LoadCurve,
        PictureKind::FctCdf,
        PictureKind::SlowDown,
        PictureKind::Queue,
        PictureKind::QueueHeatMap,
        PictureKind::SwitchQueues,
        PictureKind::SwitchQueueHeatMap,
        PictureKind::CongestionTrees,
        PictureKind::Rates,
        PictureKind::FlowRates,
        PictureKind::JobRates,
        PictureKind::Throughput,
        PictureKind::LinkUtilization,
        PictureKind::LinkEnergy,
        PictureKind::Timeline,
        PictureKind::CommunicationMatrix,
    ];

    /// The name, as in options.
    pub const fn name(self) -> &'static str {
        match self {
            PictureKind::LoadCurve => "load-curve",
            PictureKind::FctCdf => "fct-cdf",
            PictureKind::SlowDown => "slow-down",
            PictureKind::Queue => "queue",
            PictureKind::QueueHeatMap => "queue-heat-map",
            PictureKind::SwitchQueues => "switch-queues",
            PictureKind::SwitchQueueHeatMap => "switch-queue-heat-map",
            PictureKind::CongestionTrees => "congestion-trees",
            PictureKind::Rates => "rates",
            PictureKind::FlowRates => "flow-rates",
            PictureKind::JobRates => "job-rates",
            PictureKind::Throughput => "throughput",
            PictureKind::LinkUtilization => "link-utilization",
            PictureKind::LinkEnergy => "link-energy",
            PictureKind::Timeline => "timeline",
            PictureKind::CommunicationMatrix => "communication-matrix",
        }
    }

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            PictureKind::LoadCurve => "Latency and throughput over load",
            PictureKind::FctCdf => "Completion times of messages",
            PictureKind::SlowDown => "Slow-down of messages by size",
            PictureKind::Queue => "Bytes in queues",
            PictureKind::QueueHeatMap => "Fill of queues",
            PictureKind::SwitchQueues => "Deepest queues of switches",
            PictureKind::SwitchQueueHeatMap => "Deepest queue of each switch",
            PictureKind::CongestionTrees => "Congestion trees",
            PictureKind::Rates => "Rates of links",
            PictureKind::FlowRates => "Rates of flows",
            PictureKind::JobRates => "Rates of jobs",
            PictureKind::Throughput => "Payload that arrives over time",
            PictureKind::LinkUtilization => "Utilization of links",
            PictureKind::LinkEnergy => "Energy of links",
            PictureKind::Timeline => "Messages over time",
            PictureKind::CommunicationMatrix => "Bytes from each to each",
        }
    }

    /// Whether it can show a window of time.
    const fn shows_windows(self) -> bool {
        matches!(
            self,
            PictureKind::Queue
                | PictureKind::QueueHeatMap
                | PictureKind::SwitchQueues
                | PictureKind::SwitchQueueHeatMap
                | PictureKind::Rates
                | PictureKind::FlowRates
                | PictureKind::JobRates
                | PictureKind::Throughput
        )
    }

    /// The picture of this kind of one or several results.
    ///
    /// # Errors
    /// A result that lacks the table, the run or the rows, with what writes them; a window of a picture that
    /// shows none.
    pub fn of(self, results: &[StoredResult], part: ShownPart) -> Result<Picture, ResultsError> {
        let shown = Shown { results, part };
        if let (Some(result), false) =
            (results.first(), self.shows_windows() || part.window == ShownWindow::ALL)
        {
            let why = format!("{self} shows no window of time; leave --from and --to out");
            return Err(ResultsError::NothingToDraw { directory: result.directory.clone(), why });
        }
        let panels = match self {
            PictureKind::LoadCurve => load_curve::panels(shown)?,
            PictureKind::FctCdf => completion::distribution(shown)?,
            PictureKind::SlowDown => completion::slow_down(shown)?,
            PictureKind::Queue => shown.each(telemetry::stacked)?,
            PictureKind::QueueHeatMap => shown.each(telemetry::heat_map)?,
            PictureKind::SwitchQueues => shown.each(switch_queues::stacked)?,
            PictureKind::SwitchQueueHeatMap => shown.each(switch_queues::heat_map)?,
            PictureKind::CongestionTrees => shown.each(congestion::trees)?,
            PictureKind::Rates => shown.each(telemetry::rates)?,
            PictureKind::FlowRates => shown.each(telemetry::flow_rates)?,
            PictureKind::JobRates => shown.each(jobs::rates)?,
            PictureKind::Throughput => vec![throughput::panel(shown)?],
            PictureKind::LinkUtilization => vec![links::utilization(shown)?],
            PictureKind::LinkEnergy => vec![links::energy(shown)?],
            PictureKind::Timeline => shown.each(ranks::timeline)?,
            PictureKind::CommunicationMatrix => shown.each(ranks::matrix)?,
        };
        let mut panels = panels;
        if panels.len() == 1 {
            panels[0].title.clear();
        }
        Ok(Picture {
            kind: self.name(),
            title: self.title().to_owned(),
            subtitle: shown.subtitle(self),
            panels,
        })
    }
}

impl fmt::Display for PictureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PictureKind {
    type Err = String;
    fn from_str(text: &str) -> Result<PictureKind, String> {
        PictureKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let known: Vec<&str> = PictureKind::ALL.map(PictureKind::name).to_vec();
            format!("there is no picture `{text}`; choose from {}", known.join(", "))
        })
    }
}

/// The results of a picture, and the run that was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) results: &'a [StoredResult],
    part: ShownPart,
}

/// The part of results that a picture shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShownPart {
    /// The run of each, where a kind shows one; `None`: the first.
    pub run: Option<u32>,
    /// The window of time.
    pub window: ShownWindow,
}

/// A window of virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShownWindow {
    /// From when on.
    pub from: Time,
    /// Until when; `None`: the end.
    pub to: Option<Time>,
}

impl ShownWindow {
    /// All of it.
    pub const ALL: ShownWindow = ShownWindow { from: Time::ZERO, to: None };
}

/// A run that is drawn.
pub(crate) struct ShownRun<'a> {
    pub(crate) result: &'a StoredResult,
    pub(crate) run: u32,
    /// The name in legends.
    pub(crate) label: String,
    /// The way to control congestion, where the runs of the result differ by it.
    pub(crate) way: Option<&'a str>,
    /// The window of time.
    pub(crate) window: ShownWindow,
}

impl<'a> Shown<'a> {
    /// The names of the results: those of their directories, or their whole paths where these are equal.
    pub(crate) fn names(self) -> Vec<String> {
        let names: Vec<String> = self.results.iter().map(StoredResult::name).collect();
        let is_unique = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
        let path = |result: &StoredResult| result.directory.display().to_string();
        let both = names.iter().zip(self.results);
        both.map(|(name, result)| if is_unique(name) { name.clone() } else { path(result) }).collect()
    }

    /// The runs, at most `most` of each result where none was asked for.
    pub(crate) fn runs(self, most: usize) -> Result<Vec<ShownRun<'a>>, ResultsError> {
        let mut shown = Vec::new();
        for (result, name) in self.results.iter().zip(self.names()) {
            let runs = result.runs();
            let label = |run: &RunOf<'_>| match (self.results.len(), run.label()) {
                (1, label) if !label.is_empty() => label,
                (_, label) if label.is_empty() || runs.len() == 1 => name.clone(),
                (_, label) => format!("{name}: {label}"),
            };
            let window = self.part.window;
            let of = |run: &RunOf<'a>| {
                let way = run.row["congestion"].as_str();
                ShownRun { result, run: run.run, label: label(run), way, window }
            };
            match self.part.run {
                Some(wanted) => {
                    let run = runs.iter().find(|run| run.run == wanted);
                    let run = run.ok_or_else(|| ResultsError::NothingToDraw {
                        directory: result.directory.clone(),
                        why: format!("it has no run {wanted}, but {}; see --run", runs.len()),
                    })?;
                    shown.push(of(run));
                }
                None if runs.is_empty() => {
                    shown.push(ShownRun { result, run: 0, label: name, way: None, window })
                }
                None => shown.extend(runs.iter().take(most).map(of)),
            }
        }
        Ok(shown)
    }

    /// A panel per result, of one run each.
    fn each(self, of: fn(&ShownRun<'_>) -> Result<Panel, ResultsError>) -> Result<Vec<Panel>, ResultsError> {
        self.runs(1)?.iter().map(of).collect()
    }

    /// The machines and, where a picture shows one run of several, which.
    fn subtitle(self, kind: PictureKind) -> String {
        let of = |result: &StoredResult| {
            let request = &result.manifest.request;
            let work = ["pattern", "benchmark"].iter().find_map(|key| request[*key].as_str());
            let work = work.map_or(String::new(), |work| format!(" {work}"));
            let command = match (result.command(), request["name"].as_str()) {
                ("scenario", Some(name)) => format!("traffic --scenario {name}"),
                (command, _) => command.to_owned(),
            };
            format!("weft {command}{work} on {}", result.machine())
        };
        let mut parts: Vec<String> = self.results.iter().map(of).collect();
        parts.dedup();
        let [result] = self.results else { return parts.join("; ") };
        let whole =
            [PictureKind::LoadCurve, PictureKind::FctCdf, PictureKind::SlowDown, PictureKind::Throughput];
        let runs = result.runs();
        if runs.len() > 1 && !whole.contains(&kind) {
            let run = runs.iter().find(|run| run.run == self.part.run.unwrap_or(0));
            parts.extend(run.map(|run| format!("run {} of {}: {}", run.run, runs.len(), run.label())));
        }
        parts.join(", ")
    }
}
