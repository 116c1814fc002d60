//! The OSU micro-benchmarks on simulated ranks.
//!
//! ```text
//!  OsuRequest ─────────┐                    ┌─ outcome ─┐
//!                      ├─ plan ─► points ─► series ─────┼─► rows, run.json, report
//!  ExpectedBcast… ─────┘          one run each          │
//! ```
//! Every point (a size, and an algorithm where several are compared) is a run on a network of its own:
//! its row does not depend on the others.
//!
//! | module | what it is |
//! |---|---|
//! | `plan` | a request, checked, as points |
//! | `protocol` | what messaging costs and which algorithms it takes |
//! | `series` | runs points one after another |
//! | `report` | from a series to results and a report |
//! | `run` | `weft osu BENCHMARK` |
//! | `explain` | recorded runs; `weft explain` of a benchmark |
//! | `breakdown` | `--breakdown`: one iteration piece by piece |
//! | `expected` | `weft osu expected-bcast`: Eq. 1 of TR-488 |

mod breakdown;
mod expected;
mod explain;
mod plan;
mod protocol;
mod report;
mod run;
mod series;

pub use breakdown::Breakdown;
pub use expected::{ExpectedBcastReport, ExpectedBcastRequest, ExpectedBcastRow};
pub(crate) use explain::explain;

use super::replay::Mapping;
use super::{EnergyFigures, MachineInput, Report};
use serde::{Deserialize, Serialize};
use weft_units::ledger::{Repairs, View as _};
use weft_units::{Bytes, PacketCounts, Span};
pub use weft_workload::osu::{Benchmark, Iterations, UnknownBenchmark};

/// Which software stands between a benchmark and the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The machine's MPI library.
    Mpi,
    /// None: messages are the interface's primitives, and calls take no time.
    Nic,
}

/// How often a benchmark repeats what it measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Repetitions {
    /// Iterations before the measured ones; `None`: those that belong to `iterations`.
    pub warm_up: Option<u32>,
    /// Measured iterations.
    pub iterations: Iterations,
    /// Whether ranks meet after every iteration of a collective.
    pub barrier: bool,
    /// Messages under way at a time, of bandwidths; `None`: OSU's 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
}

impl Default for Repetitions {
    fn default() -> Repetitions {
        Repetitions { warm_up: None, iterations: Iterations::Usual, barrier: true, window: None }
    }
}

impl Repetitions {
    /// The repetitions of a benchmark with messages of `bytes`.
    fn of(self, benchmark: Benchmark, bytes: Bytes) -> weft_workload::osu::Repetitions {
        let Repetitions { warm_up, iterations, barrier, window } = self;
        let own = weft_workload::osu::Repetitions::of(iterations, warm_up, barrier, (benchmark, bytes));
        weft_workload::osu::Repetitions { window: window.unwrap_or(own.window), ..own }
    }
}

/// The request of `weft osu BENCHMARK`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OsuRequest {
    /// The machine.
    pub machine: MachineInput,
    /// The benchmark.
    pub benchmark: Benchmark,
    /// Sizes of messages, vectors or blocks.
    #[serde(rename = "sizes_bytes")]
    pub sizes: Vec<Bytes>,
    /// Names of the endpoints of two ranks; then `ranks`, `map` and `ranks_per_host` do not count.
    pub between: Option<[String; 2]>,
    /// Ranks; `None`: two where the benchmark is for two, else one per core.
    pub ranks: Option<u32>,
    /// Which rank sits where.
    pub map: Mapping,
    /// Ranks per host; `None`: one where the benchmark is for two, else the host's cores.
    pub ranks_per_host: Option<u32>,
    /// How often.
    pub repetitions: Repetitions,
    /// Which software.
    pub layer: Layer,
    /// The name of an algorithm of the collective, or `all`; `None`: by the machine's table.
    pub algorithm: Option<String>,
    /// Of the random mapping and of the machine's random decisions.
    pub seed: u64,
    /// Whether an iteration of each run is explained piece by piece.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub breakdown: bool,
    /// Whether messages carry real bytes, and source and target memory are compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data: bool,
    /// The interval of telemetry in picoseconds; `None`: none is written.
    #[serde(default, rename = "telemetry_ps", skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Span>,
}

/// The row of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OsuRow {
    /// The column `run` of the tables.
    pub run: u32,
    /// Size of a message, vector or block.
    pub size_bytes: Bytes,
    /// The algorithm, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// The kind of path between two ranks that were placed by name, where the machine's documents have kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Latency as the benchmark defines it; of collectives the mean over ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<f64>,
    /// Of collectives: that of the rank with the shortest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_min_us: Option<f64>,
    /// Of collectives: that of the rank with the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_max_us: Option<f64>,
    /// Payload in 10⁹ bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_gbps: Option<f64>,
    /// Messages per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_second: Option<f64>,
    /// Ranks.
    pub ranks: u32,
    /// Measured iterations.
    pub iterations: u32,
    /// Iterations before them.
    pub warm_up: u32,
    /// Messages delivered, warm-up and barriers included.
    pub messages: u64,
    /// Links crossed by packets, warm-up and barriers included.
    pub packet_hops: u64,
    /// Packets that links lost, warm-up and barriers included.
    pub packets_dropped: u64,
    /// Counts of what reliable connections did, warm-up and barriers included.
    #[serde(flatten, with = "Repairs")]
    pub repairs: PacketCounts,
    /// Virtual time of the run.
    pub run_time_us: f64,
    /// Energy of the machine, warm-up and barriers included; `None`: the machine says nothing of its power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyFigures>,
    /// Bytes that agree in the memory of sources and targets, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_bytes: Option<u64>,
    /// The last measured iteration, piece by piece, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
}

/// The report of `weft osu BENCHMARK`.
pub type OsuReport = Report<OsuRow>;
