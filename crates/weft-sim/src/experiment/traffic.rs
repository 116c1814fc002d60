//! Traffic patterns × loads × seeds: throughput and latency curves.

use super::load::Load;
use super::{Context, ExperimentError, MachineInput, Report, RunOptions};
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

/// What a load is a share of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadOf {
    /// The endpoint link's payload rate.
    #[default]
    Injection,
    /// The channel-load bound of the pattern.
    Capacity,
}

/// What `weft traffic` was asked for. There is a run for each size, load and seed, in that order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrafficRequest {
    /// The machine.
    pub machine: MachineInput,
    /// The pattern, as patterns are written.
    pub pattern: String,
    /// Message sizes; none is zero.
    #[serde(rename = "sizes_bytes")]
    pub sizes: Vec<Bytes>,
    /// Loads, ascending; none is zero.
    pub loads: Vec<Load>,
    /// What they are shares of.
    pub load_of: LoadOf,
    /// Measured virtual time, after warm-up.
    #[serde(with = "weft_units::as_text")]
    pub time: Span,
    /// Warm-up in picoseconds; `None`: until it is found to have ended.
    #[serde(rename = "warm_up_ps")]
    pub warm_up: Option<Span>,
    /// One run of each point per seed.
    pub seeds: Vec<u64>,
}

/// A 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One point of a curve, over all seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrafficRow {
    /// The run of its first seed: the column `run` of the tables. The other seeds' follow.
    pub run: u32,
    /// Message size.
    pub size_bytes: Bytes,
    /// Load offered per endpoint, as asked for.
    pub offered_load: f64,
    /// Load accepted: delivered payload per endpoint as a share of the endpoint link's payload rate
    /// (or of capacity, as the offered load).
    pub accepted_load: f64,
    /// Over seeds; `None` for a single one.
    pub accepted_load_interval: Option<Interval>,
    /// Mean of the message latencies, from generated to delivered; `None`: no message was delivered.
    pub latency_mean_ns: Option<f64>,
    /// Over seeds, or over batches of a single run.
    pub latency_mean_interval_ns: Option<Interval>,
    /// 99th percentile of the message latencies.
    pub latency_p99_ns: Option<f64>,
    /// As for the mean.
    pub latency_p99_interval_ns: Option<Interval>,
    /// The longest warm-up among the seeds.
    pub warm_up_us: f64,
    /// Whether accepted fell behind offered load, or no end of the warm-up was found: latencies then
    /// grow with the measured time.
    pub saturated: bool,
    /// Measured virtual time of each run.
    pub run_time_us: f64,
    /// The first seed.
    pub seed: u64,
    /// How many seeds.
    pub seeds: u32,
    /// Messages delivered in the measured time, over all seeds.
    pub messages: u64,
    /// Links crossed by data packets, warm-up included, over all seeds.
    pub packet_hops: u64,
}

/// What came of `weft traffic`.
pub type TrafficReport = Report<TrafficRow>;

/// Runs the points one after another. An interrupted run reports those that were done.
pub fn run(
    _request: &TrafficRequest,
    _options: &RunOptions,
    _context: Context<'_>,
) -> Result<TrafficReport, ExperimentError> {
    Err(ExperimentError::NotBuilt("traffic"))
}
