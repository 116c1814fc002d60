//! `run.json` and `performance.json`: what was run and what came of it, and how fast.

use super::tables::Table;
use super::wall::{Stopwatch, peak_memory};
use crate::experiment::explain::Explained;
use crate::experiment::{Request, RunOptions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weft_units::{Bytes, Time};

/// Version of the directory's layout and of `run.json`; raised when a reader must change.
pub const FORMAT_VERSION: u32 = 1;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All work was done.
    Finished,
    /// The virtual time that was asked for has passed.
    HorizonReached,
    /// Ctrl-C.
    Interrupted,
    /// A limit of the run was reached before its end.
    LimitReached,
    /// Packets or ranks wait for each other in a circle.
    Deadlock,
    /// There is activity, but nothing is delivered any more.
    NoProgress,
    /// The check of conservation found a packet, a credit or a byte that is nowhere.
    LostData,
    /// A rank of a real program ended badly.
    RankFailed,
}

impl Ending {
    /// As it is written in `run.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Finished => "finished",
            Ending::HorizonReached => "horizon-reached",
            Ending::Interrupted => "interrupted",
            Ending::LimitReached => "limit-reached",
            Ending::Deadlock => "deadlock",
            Ending::NoProgress => "no-progress",
            Ending::LostData => "lost-data",
            Ending::RankFailed => "rank-failed",
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A constant of the machine file that no source gives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AssumedConstant {
    /// Its key in the machine file, such as `links.mezzanine.latency`.
    pub key: String,
    /// Its value as written.
    pub value: String,
    /// Why it was assumed so.
    pub source: String,
}

/// Virtual totals over all runs of the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// The latest virtual time that a run reached.
    #[serde(rename = "end_ps")]
    pub end: Time,
    /// Messages delivered.
    pub messages: u64,
    /// Bytes delivered, without headers.
    #[serde(rename = "payload_bytes")]
    pub payload: Bytes,
    /// Packets delivered.
    pub packets: u64,
    /// Links crossed by data packets, injection and ejection included.
    pub packet_hops: u64,
    /// Packets that links lost by chance.
    #[serde(default)]
    pub dropped: u64,
    /// Packets that were lost on links that were off.
    #[serde(default)]
    pub dropped_dead: u64,
    /// Packets that links corrupted.
    #[serde(default)]
    pub corrupted: u64,
}

/// What a table's file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TableSummary {
    /// Version of its schema.
    pub version: u32,
    /// Its rows.
    pub rows: u64,
}

/// `run.json`. Nothing in it depends on threads, partitions, output folder, date or computer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunManifest {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The version of weft.
    pub weft_version: String,
    /// What was asked for: machine text and `--set`s, workload, seed. `weft rerun` runs it again.
    pub request: Request,
    /// The machine in full: every value that was used, after all `--set`s.
    pub machine: serde_json::Value,
    /// The assumed constants among them that were used.
    pub assumed: Vec<AssumedConstant>,
    /// How it ended.
    pub ended: Ending,
    /// For a bad end: what happened, such as the cycle of waiting buffers.
    pub detail: Option<String>,
    /// Virtual totals.
    pub totals: Totals,
    /// What was measured. An entry's `run` is what the tables' column `run` says of it; where an entry stands
    /// for several runs, such as one per seed, it is that of the first.
    pub rows: Vec<serde_json::Value>,
    /// Of real processes, which cannot be run again: the critical path, for `weft explain`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<Explained>,
    /// The tables beside this file; filled in by the writer.
    pub tables: BTreeMap<Table, TableSummary>,
}

impl RunManifest {
    /// A manifest of this version of weft, without tables.
    pub fn new(request: Request, machine: serde_json::Value, ended: Ending, totals: Totals) -> RunManifest {
        RunManifest {
            format_version: FORMAT_VERSION,
            weft_version: env!("CARGO_PKG_VERSION").to_owned(),
            request,
            machine,
            assumed: Vec::new(),
            ended,
            detail: None,
            totals,
            rows: Vec::new(),
            explained: Vec::new(),
            tables: BTreeMap::new(),
        }
    }
}

/// `performance.json`: outside any digest.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Performance {
    /// The command as typed, one entry per word.
    pub command: Vec<String>,
    /// Where the traces that it read lie on this computer; filled in by the writer.
    pub trace_paths: Vec<std::path::PathBuf>,
    /// When it started, as RFC 3339 in UTC.
    pub started: String,
    /// Wall time of all runs.
    pub wall_seconds: f64,
    /// Packet-hops of all runs.
    pub packet_hops: u64,
    /// Packet-hops per second of wall time.
    pub packet_hops_per_second: f64,
    /// The most memory that the process ever held; 0 where the system does not say.
    pub peak_memory_bytes: u64,
    /// Threads asked for.
    pub threads: u32,
}

impl Performance {
    /// What was measured since `started` and `stopwatch` began together.
    pub fn measured(
        options: &RunOptions,
        started: String,
        stopwatch: &Stopwatch,
        packet_hops: u64,
    ) -> Performance {
        let wall_seconds = stopwatch.seconds();
        Performance {
            command: options.command.clone(),
            trace_paths: Vec::new(),
            started,
            wall_seconds,
            packet_hops,
            packet_hops_per_second: if wall_seconds > 0.0 { packet_hops as f64 / wall_seconds } else { 0.0 },
            peak_memory_bytes: peak_memory().unwrap_or(0),
            threads: options.threads,
        }
    }
}
