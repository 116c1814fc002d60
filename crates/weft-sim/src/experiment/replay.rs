//! Recorded programs on a machine.
//!
//! | module | what it is |
//! |---|---|
//! | `as_recorded` | what traces of `weft run` ask of messaging |
//! | `isolated` | each job alone |
//! | `programs` | traces, checked, and their ranks on places |
//! | `run` | epochs, snapshots, the end |
//! | `stepped` | programs that are stepped while they run |

mod as_recorded;
mod explain;
mod isolated;
mod programs;
mod run;
mod stepped;

pub use as_recorded::as_recorded;
pub(crate) use as_recorded::settings as recorded_settings;
pub(crate) use explain::explain;
pub use programs::Unsupported;
pub(crate) use programs::{memory_lack, open_traces};

pub use stepped::{NotKept, SteppedProgram};
pub use weft_workload::replay::{ReceivedMessage, Stepped};

pub use super::ranks::{MeanPiece, RankRegionRow, RegionFigures, SizeClass};
pub use weft_trace::{NotARegion, Region};
pub use weft_workload::replay::ComputeScale;

use super::scenario::ScenarioFile;
use super::trace::kernel_called;
use super::{EnergyFigures, ExperimentError, MachineInput, Report};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_app::KernelName;
use weft_formats::FlopRate;
use weft_results::file_digest;
use weft_units::ledger::{Repairs, View as _};
use weft_units::{PacketCounts, Span};

/// A trace to replay, an application kernel, or a program to be stepped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceInput {
    /// The file's name without the folder, or the program's.
    pub name: String,
    /// SHA-256 digest of the file, so that a rerun can tell that it is the same; empty for a program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The speed of a core, for a trace that tells computation in floating-point operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<FlopRate>,
    /// The path on this computer; results do not depend on it.
    #[serde(skip)]
    pub path: PathBuf,
    /// The kernel, where it is no trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelName>,
    /// The program, where it is no trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stepped: Option<SteppedProgram>,
}

impl TraceInput {
    /// The trace at `path`; where there is none, the kernel that is called so.
    pub fn at(path: &Path) -> Result<TraceInput, ExperimentError> {
        if let Some(kernel) = kernel_called(path) {
            return Ok(TraceInput::kernel(kernel.map_err(ExperimentError::input)?));
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // A device may have no end.
        let is_file = path.metadata().map_or(true, |found| found.is_file());
        if !is_file {
            let path = path.display();
            return Err(ExperimentError::input(format!("{path} is not a regular file; name a trace")));
        }
        let digest = file_digest(path)?.to_string();
        let path = path.to_owned();
        Ok(TraceInput { name, digest, speed: None, path, kernel: None, stepped: None })
    }

    /// A kernel.
    pub fn kernel(kernel: KernelName) -> TraceInput {
        let (name, kernel) = (kernel.to_string(), Some(kernel));
        TraceInput { name, digest: String::new(), speed: None, path: PathBuf::new(), kernel, stepped: None }
    }

    /// A program that is stepped while it runs.
    pub fn stepped(program: Arc<dyn Stepped>) -> TraceInput {
        let name = program.name().to_owned();
        let stepped = SteppedProgram { ranks: program.ranks(), program: Some(program) };
        let (path, stepped) = (PathBuf::new(), Some(stepped));
        TraceInput { name, digest: String::new(), speed: None, path, kernel: None, stepped }
    }

    /// Whether it is read from a file.
    pub fn is_file(&self) -> bool {
        self.kernel.is_none() && self.stepped.is_none()
    }

    /// The program to be stepped; `None`: it is a trace.
    ///
    /// # Errors
    /// It was read from results, which do not keep it.
    pub fn program(&self) -> Result<Option<&Arc<dyn Stepped>>, NotKept> {
        let Some(stepped) = &self.stepped else { return Ok(None) };
        match &stepped.program {
            Some(program) => Ok(Some(program)),
            None => Err(NotKept { name: self.name.clone() }),
        }
    }
}

/// Which rank sits where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mapping {
    /// Hosts in order, each filled.
    Linear,
    /// Each rank on a core drawn from all that may be used, by the seed.
    Random,
    /// Job j of J on the hosts of switches j, j + J, and so on, each filled.
    Switch,
    /// Job j of J on hosts j, j + J, and so on, each filled.
    Node,
    /// The text of a mapping file: line n has the endpoint and, where it matters, the core of rank n.
    File(String),
}

impl Mapping {
    /// The name in options.
    pub fn name(&self) -> &'static str {
        match self {
            Mapping::Linear => "linear",
            Mapping::Random => "random",
            Mapping::Switch => "switch",
            Mapping::Node => "node",
            Mapping::File(_) => "file",
        }
    }
}

/// Which message a wildcard receive takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wildcards {
    /// The source and tag that matched when the trace was recorded.
    Recorded,
    /// The first to arrive on the simulated machine.
    Free,
}

/// The request of `weft replay`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReplayRequest {
    /// The machine.
    pub machine: MachineInput,
    /// The traces, each a job.
    pub traces: Vec<TraceInput>,
    /// The times at which the jobs start, in picoseconds, one for each; empty: all at once.
    #[serde(default, rename = "start_ps", skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Span>,
    /// Whether each job also runs alone, on the same places.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// Which rank sits where.
    pub map: Mapping,
    /// Ranks per host; `None`: the host's cores.
    pub ranks_per_host: Option<u32>,
    /// Which message a wildcard receive takes.
    pub wildcards: Wildcards,
    /// Of the random mapping and of the machine's random decisions.
    pub seed: u64,
    /// Whether messages carry real bytes, and source and target memory are compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data: bool,
    /// Whether the time of each message is broken down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub breakdown: bool,
    /// A factor on the time of each computation of the traces.
    #[serde(default, skip_serializing_if = "ComputeScale::is_one")]
    pub compute_scale: ComputeScale,
    /// The region of interest that the report is of; `None`: it is of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
    /// The interval of telemetry in picoseconds; `None`: none is written.
    #[serde(default, rename = "telemetry_ps", skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Span>,
    /// Flows, services and clients beside the ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioFile>,
}

/// A link that was busy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BusyLink {
    /// From where to where, in the topology's names.
    pub name: String,
    /// The kind of link.
    pub class: String,
    /// Time sending as a share of the run time.
    pub utilization: f64,
    /// Packets that crossed it.
    pub packets: u64,
    /// How long packets stood ready for it while the buffer behind it was full.
    pub stall_us: f64,
}

/// The calls of one operation by all ranks of a program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CallFigures {
    /// The operation: as traces name it, or the MPI call of a real program.
    pub operation: String,
    /// Calls of all ranks.
    pub calls: u64,
    /// Time in them, waiting included, of all ranks together.
    pub time_us: f64,
}

impl ReplayRequest {
    /// Whether rows say what is of jobs.
    pub(crate) fn has_jobs(&self) -> bool {
        self.traces.len() > 1 || !self.starts.is_empty() || self.isolated
    }
}

/// A job among several on one machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobFigures {
    /// Which of them: the column `job` of the tables.
    pub job: u32,
    /// The time at which its ranks start.
    pub start_us: f64,
    /// The end of its last rank: the figures of the job stop there, and others go on.
    pub end_us: f64,
    /// Bytes of its messages over its run time.
    pub throughput_gbps: f64,
    /// The run time alone, on the same places; `None`: that was not asked for, or has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated_run_time_us: Option<f64>,
    /// The run time beside the others over that alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<f64>,
}

/// The row of a trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayRow {
    /// The column `run` of the tables: traces that are replayed together share it.
    pub run: u32,
    /// The trace.
    pub trace: String,
    /// Calls of the program that the trace lacks, and that are not replayed, with their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unrecorded: BTreeMap<String, u64>,
    /// The trace as a job, where there are several, or one starts late or runs alone as well.
    #[serde(flatten)]
    pub job: Option<JobFigures>,
    /// The figures of its ranks.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The figures of a program, recorded or real.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// From its start to the end of its last rank.
    pub run_time_us: f64,
    /// The number of its first rank in the tables, which count the ranks of all traces.
    pub first_rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Computation as a share of the ranks' time.
    pub computation_share: f64,
    /// The part of it that waits for memory that other cores of the host use as well; `None`: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_wait_share: Option<f64>,
    /// Time in messaging software or waiting as a share of the ranks' time.
    pub communication_share: f64,
    /// Waiting alone as a share of the ranks' time.
    pub wait_share: f64,
    /// Messages delivered, those of collectives included.
    pub messages: u64,
    /// Their bytes, without headers.
    pub bytes: u64,
    /// Mean of the messages' completion times, from posted to delivered; `None`: there was no message.
    pub completion_time_mean_us: Option<f64>,
    /// 99th percentile of the completion times.
    pub completion_time_p99_us: Option<f64>,
    /// The longest of the completion times; `None`: there was no message, or an older weft did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time_max_us: Option<f64>,
    /// Links crossed by data packets, of all traces together.
    pub packet_hops: u64,
    /// Packets that links lost, of all traces together.
    pub packets_dropped: u64,
    /// Counts of what reliable connections did, of all traces together.
    #[serde(flatten, with = "Repairs")]
    pub repairs: PacketCounts,
    /// The seed.
    pub seed: u64,
    /// Bytes that agree in the memory of sources and targets, of all traces together, where that was
    /// asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_bytes: Option<u64>,
    /// The five busiest links under all traces together, the busiest first.
    pub busiest_links: Vec<BusyLink>,
    /// Energy of the machine under all traces together, to the end of the last; `None`: the machine says
    /// nothing of its power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyFigures>,
    /// The region that run time, shares and messages are of, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<RegionFigures>,
    /// Where the time of messages went, by size, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Vec<SizeClass>>,
    /// The calls by operation, those that took longest first; of the whole run, so that a region has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallFigures>,
}

/// The report of `weft replay`.
pub type ReplayReport = Report<ReplayRow>;
