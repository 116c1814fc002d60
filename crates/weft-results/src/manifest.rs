//! `run.json`: what was run and what came of it; and `performance.json`: how fast.

use crate::ending::Ending;
use crate::tables::Table;
use crate::wall_clock::Beginning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_units::ledger::{RunTotals, View as _};
use weft_units::memory::peak_memory;
use weft_units::{Bytes, Energy, PacketCounts, Span, Time};

/// Version of the directory's layout and of `run.json`; raised when a reader must change.
pub const FORMAT_VERSION: u32 = 2;

/// The version of this weft.
pub(crate) const WEFT_VERSION: &str = env!("CARGO_PKG_VERSION");

/// A constant of the machine file that no source gives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AssumedConstant {
    /// The key in the machine file, such as `links.mezzanine.latency`.
    pub key: String,
    /// The value as written.
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
    /// The packets to which links and switches did something.
    #[serde(flatten, with = "RunTotals")]
    pub counts: PacketCounts,
    /// Energy of all parts of the machine of which it says the power, warm-up included.
    #[serde(default, rename = "energy_pj")]
    pub energy: Energy,
    /// Of that, energy of links.
    #[serde(default, rename = "links_energy_pj")]
    pub links_energy: Energy,
    /// Energy of switches.
    #[serde(default, rename = "switches_energy_pj")]
    pub switches_energy: Energy,
    /// Energy of interfaces.
    #[serde(default, rename = "interfaces_energy_pj")]
    pub interfaces_energy: Energy,
    /// Time in which links slept, in low power, each direction by itself, added up.
    #[serde(default, rename = "low_power_ps")]
    pub low_power: Span,
    /// The same of links that slept deeper, off.
    #[serde(default, rename = "power_off_ps")]
    pub power_off: Span,
    /// The same of links that woke.
    #[serde(default, rename = "waking_ps")]
    pub waking: Span,
    /// Wake-ups of links.
    #[serde(default)]
    pub wake_ups: u64,
}

/// The contents of a table's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TableSummary {
    /// Version of the schema.
    pub version: u32,
    /// Number of rows.
    pub rows: u64,
}

/// `run.json`. Nothing in it depends on threads, partitions, output folder, date or computer.
///
/// `Q` is the request, `X` an explained run: both belong to who runs experiments.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunManifest<Q, X> {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The version of weft.
    pub weft_version: String,
    /// The request: machine text and `--set`s, workload, seed. `weft rerun` runs it again.
    pub request: Q,
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
    /// The rows that were measured. An entry's `run` is that of the tables' column `run`; where an entry
    /// stands for several runs, such as one per seed, it is that of the first.
    pub rows: Vec<serde_json::Value>,
    /// Of real processes, which cannot be run again: the critical path, for `weft explain`.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<X>,
    /// The tables beside this file; filled in by the writer.
    pub tables: BTreeMap<Table, TableSummary>,
}

impl<Q, X> RunManifest<Q, X> {
    /// A manifest of this version of weft, without rows and tables.
    pub fn new(request: Q, machine: serde_json::Value, ended: Ending, totals: Totals) -> RunManifest<Q, X> {
        RunManifest {
            format_version: FORMAT_VERSION,
            weft_version: WEFT_VERSION.to_owned(),
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
    /// Paths of the traces that it read, on this computer; filled in by the writer.
    pub trace_paths: Vec<std::path::PathBuf>,
    /// SHA-256 of `run.json` and of each table, by file name; filled in by the writer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sha256: BTreeMap<String, String>,
    /// The date at which it started, as RFC 3339 in UTC.
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
    /// The speed since `began`; the caller adds the command and its threads.
    pub fn measured(began: &Beginning, packet_hops: u64) -> Performance {
        let wall_seconds = began.stopwatch.seconds();
        Performance {
            started: began.date.clone(),
            wall_seconds,
            packet_hops,
            packet_hops_per_second: if wall_seconds > 0.0 { packet_hops as f64 / wall_seconds } else { 0.0 },
            peak_memory_bytes: peak_memory().unwrap_or(0),
            ..Performance::default()
        }
    }
}
