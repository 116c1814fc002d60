//! What can be run: typed requests go in, typed reports come out.
//!
//! ```text
//!  options ──► Request ──► run(request, RunOptions, Context) ──► Report
//!                │              where to write,   Ctrl-C,
//!                │              threads           progress
//!                └─► run.json: the whole of what decides the results
//! ```
//!
//! A [`Request`] holds everything that the results depend on, the text of the machine file included, so
//! that it can be run again from `run.json` alone. [`RunOptions`] hold what they do not depend on.

mod busiest;
pub mod explain;
mod link_table;
pub mod live;
pub mod load;
pub mod machine;
pub mod osu;
pub mod path;
mod ranks;
pub mod replay;
pub mod trace;
pub mod traffic;
pub mod validate;

pub use ranks::places;

use crate::network::Crossed;
use crate::results::{Ending, Existing, Performance, ResultsError, ResultsWriter, Table, Totals};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_units::Span;

/// A machine as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MachineInput {
    /// The shipped machine's name, or the machine file's name without its folder.
    pub name: String,
    /// The text of the machine file.
    pub text: String,
    /// The `--set`s in their order, each `key=value`.
    pub sets: Vec<String>,
}

/// Everything that the results of a run depend on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
pub enum Request {
    /// `weft traffic`.
    Traffic(traffic::TrafficRequest),
    /// `weft replay`.
    Replay(replay::ReplayRequest),
    /// `weft osu BENCHMARK`.
    Osu(osu::OsuRequest),
    /// `weft osu expected-bcast`.
    #[serde(rename = "osu expected-bcast")]
    ExpectedBcast(osu::ExpectedBcastRequest),
    /// `weft run`.
    Run(live::RunRequest),
}

impl Request {
    /// The traces that it reads.
    pub fn traces(&self) -> &[replay::TraceInput] {
        match self {
            Request::Replay(replay) => &replay.traces,
            _ => &[],
        }
    }

    /// The traces that it reads.
    pub fn traces_mut(&mut self) -> &mut [replay::TraceInput] {
        match self {
            Request::Replay(replay) => &mut replay.traces,
            _ => &mut [],
        }
    }
}

/// How a result directory begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Empty.
    Fresh(Existing),
    /// From its last snapshot.
    Resume,
}

/// Where results go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// The result directory.
    pub directory: PathBuf,
    /// The tables to write. A resumed run writes those that it began with.
    pub tables: Vec<Table>,
    /// How it begins.
    pub start: Start,
}

impl Output {
    /// Opens the directory. For [`Start::Resume`] the state of the last snapshot comes with it.
    pub fn open(&self, request: &Request) -> Result<(ResultsWriter, Option<Vec<u8>>), ResultsError> {
        match self.start {
            Start::Fresh(existing) => {
                let writer = ResultsWriter::create(&self.directory, &self.tables, request, existing)?;
                Ok((writer, None))
            }
            Start::Resume => {
                ResultsWriter::resume(&self.directory).map(|(writer, state)| (writer, Some(state)))
            }
        }
    }
}

/// What the results of a run do not depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunOptions {
    /// Threads that simulate.
    pub threads: u32,
    /// Where results go; `None`: only the report is wanted.
    pub output: Option<Output>,
    /// Store a snapshot whenever so much virtual time has passed.
    pub save_every: Option<Span>,
    /// Write a timeline for Perfetto there.
    pub timeline: Option<PathBuf>,
    /// Check conservation of packets, credits and bytes as the run goes.
    pub check: bool,
    /// The command as typed, for `performance.json`.
    pub command: Vec<String>,
}

/// One thread, and nothing but the report.
impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            threads: 1,
            output: None,
            save_every: None,
            timeline: None,
            check: false,
            command: Vec::new(),
        }
    }
}

/// Ctrl-C, seen by the run at its next virtual epoch.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks the run to end. Returns whether it had been asked before.
    pub fn request(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    /// The flag itself, for a run that looks at it oftener.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether the run is asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a run will take, known before it begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Wall time in seconds; `None` where it cannot be told.
    pub wall_seconds: Option<f64>,
    /// Memory.
    pub memory_bytes: u64,
}

/// Hears how far a run has come.
pub trait Progress: Sync {
    /// Before a run begins.
    fn estimate(&self, estimate: Estimate);
    /// At virtual epochs: the share of the work that is done, 0 to 1, and what is being done, such as
    /// `load 0.3`.
    fn advance(&self, share: f64, doing: &str);
}

/// What surrounds a run.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// To be looked at at virtual epochs.
    pub interrupt: &'a Interrupt,
    /// To be told at virtual epochs.
    pub progress: &'a dyn Progress,
}

/// What one row of a report measured, and how fast.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured<R> {
    /// What was measured; this part goes into `run.json`.
    #[serde(flatten)]
    pub row: R,
    /// Packet-hops per second of wall time; building the machine is not counted.
    pub packet_hops_per_second: f64,
    /// Wall time of building the machine, the first time where the row took several.
    pub build_time_s: f64,
    /// The most memory that the process had held when the row was done.
    pub peak_memory_bytes: u64,
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report<R> {
    /// How it ended.
    pub ended: Ending,
    /// For a bad end: what happened.
    pub detail: Option<String>,
    /// What was measured.
    pub rows: Vec<Measured<R>>,
    /// How fast.
    pub performance: Performance,
}

/// Why nothing came of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// Something about the request is wrong; the message shows the mend.
    #[error(transparent)]
    Input(Box<dyn std::error::Error + Send + Sync>),
    /// Results cannot be written or read.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// Adds to the totals of a command what has crossed links in one of its runs.
pub(crate) fn add_crossed(totals: &mut Totals, crossed: &Crossed) {
    totals.packets += crossed.packets;
    totals.packet_hops += crossed.packet_hops;
    totals.dropped += crossed.faults.dropped;
    totals.dropped_dead += crossed.faults.dead;
    totals.corrupted += crossed.faults.corrupted;
}

/// How a run of the engine ended, in the words of results, and what there is to say about it.
pub(crate) fn ended(ending: &weft_engine::Ending) -> (Ending, Option<String>) {
    use weft_engine::Ending as E;
    let lines = |title: &str, lines: &[String]| {
        Some(lines.iter().fold(title.to_owned(), |text, line| format!("{text}\n  {line}")))
    };
    match ending {
        E::Finished => (Ending::Finished, None),
        E::Horizon => (Ending::HorizonReached, None),
        E::Interrupted => (Ending::Interrupted, None),
        E::Limit { what } => (Ending::LimitReached, Some(what.clone())),
        E::Deadlock { cycle } => (Ending::Deadlock, lines("these buffers wait for one another", cycle)),
        E::NoProgress { waiting } => (Ending::NoProgress, lines("nothing moves any more", waiting)),
    }
}

impl ExperimentError {
    /// Wraps an error about the request.
    pub fn input(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ExperimentError {
        ExperimentError::Input(error.into())
    }
}
