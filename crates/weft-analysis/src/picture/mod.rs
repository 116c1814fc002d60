//! Pictures of results: what is drawn, computed once. The command, Python and pages only draw it.
//!
//! ```text
//!  run.json, tables ──► PictureKind::of ──► Picture { panels { axes, content } } ──► weft-plot: SVG, PNG
//! ```
//! | file | pictures |
//! |---|---|
//! | `panel`, `shown` | none: a picture as data; the runs that one shows |
//! | `field_unit` | none: a measured field in the unit that people say |
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
mod field_unit;
mod intervals;
mod jobs;
mod links;
mod load_curve;
mod panel;
mod ranks;
mod shown;
mod switch_queues;
mod telemetry;
mod throughput;

pub use field_unit::{FieldUnit, four_digits, time_unit};
pub use panel::{Axis, Cells, Content, MAX_SERIES, Panel, Picture, Segments, Series};
pub use ranks::PairValues;
pub use shown::{ShownPart, ShownWindow};

use serde::Serialize;
use shown::Shown;
use std::fmt;
use std::str::FromStr;
use weft_results::{ResultsError, StoredResult, Table};

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

    /// The tables that it is drawn from, one of which is enough; empty: it is drawn from the rows of results.
    pub const fn tables(self) -> &'static [Table] {
        match self {
            PictureKind::LoadCurve => &[],
            PictureKind::FctCdf | PictureKind::SlowDown | PictureKind::Timeline => &[Table::Messages],
            PictureKind::CommunicationMatrix => &[Table::Messages, Table::Flows],
            PictureKind::Queue
            | PictureKind::QueueHeatMap
            | PictureKind::SwitchQueues
            | PictureKind::SwitchQueueHeatMap => &[Table::Queues],
            PictureKind::CongestionTrees | PictureKind::Rates => &[Table::Rates],
            PictureKind::FlowRates | PictureKind::Throughput => &[Table::FlowRates],
            PictureKind::JobRates => &[Table::JobRates],
            PictureKind::LinkUtilization | PictureKind::LinkEnergy => &[Table::Links],
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

    /// Whether it is of one run of each result, and not of all.
    const fn is_of_one_run(self) -> bool {
        !matches!(
            self,
            PictureKind::LoadCurve | PictureKind::FctCdf | PictureKind::SlowDown | PictureKind::Throughput
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
        if let [only] = panels.as_mut_slice() {
            // The picture's heading names the run; what the panel leaves out stays.
            let label = shown.runs(1)?.first().map_or_else(String::new, |run| run.label.clone());
            let remark = only.title.strip_prefix(label.as_str()).unwrap_or_default();
            only.title = remark.trim_start_matches(", ").to_owned();
        }
        panels.iter_mut().for_each(Panel::fit_units);
        Ok(Picture {
            kind: self.name(),
            title: self.title().to_owned(),
            subtitle: shown.subtitle(self.is_of_one_run()),
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
