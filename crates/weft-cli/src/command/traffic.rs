//! `weft traffic`: patterns × loads.

use super::simulation::run_and_show;
use crate::exit::{Failure, Status};
use crate::options::{MachineOptions, SayOptions, SimulationOptions, parse_positive_span};
use crate::output::{self, decimal};
use crate::value::{Loads, Sizes, parse_loads, parse_sizes};
use clap::{Args, ValueEnum};
use serde::Serialize;
use weft_sim::experiment::Request;
use weft_sim::experiment::load::Load;
use weft_sim::experiment::traffic::{Interval, LoadOf, TrafficReport, TrafficRequest};
use weft_units::{Bytes, Span};

/// Options of `weft traffic`.
#[derive(Args)]
pub struct TrafficOptions {
    #[command(flatten)]
    machine: MachineOptions,

    /// uniform, permutation, transpose, tornado, bit-complement, hotspot, incast, all-to-all or
    /// nearest-neighbour
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pattern: String,

    /// Load offered per endpoint: a share such as 0.6, or FIRST:LAST:STEP such as 0.1:1.0:0.1
    #[arg(long, value_name = "LOAD", value_parser = parse_loads)]
    load: Loads,

    /// What loads are shares of
    #[arg(long, value_name = "WHAT", default_value = "injection")]
    load_of: Share,

    /// Message size, or FIRST:LAST, the powers of two between them
    #[arg(long, value_name = "BYTES", default_value = "256", value_parser = parse_sizes)]
    size: Sizes,

    /// Measured virtual time, after warm-up
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = parse_positive_span)]
    time: Span,

    /// Warm-up; by default until its end is found
    #[arg(long, value_name = "TIME")]
    warm_up: Option<Span>,

    /// Seed of all random decisions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Seeds per point, counted up from --seed; several give intervals
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,

    #[command(flatten)]
    simulation: SimulationOptions,

    #[command(flatten)]
    say: SayOptions,
}

/// What loads are shares of.
#[derive(Clone, Copy, ValueEnum)]
enum Share {
    /// the endpoint link's payload rate
    Injection,
    /// the channel-load bound of the pattern
    Capacity,
}

impl TrafficOptions {
    /// Runs it.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        let options = self.simulation.run_options(words, false)?;
        let request = Request::Traffic(self.request()?);
        run_and_show(&request, &options, self.simulation.quiet, self.say.json)
    }

    fn request(&self) -> Result<TrafficRequest, Failure> {
        let last = self.seed.checked_add(u64::from(self.seeds) - 1);
        let last =
            last.ok_or_else(|| Failure::input("--seed and --seeds exceed 2^64; take a smaller --seed"))?;
        let load_of = match self.load_of {
            Share::Injection => LoadOf::Injection,
            Share::Capacity => LoadOf::Capacity,
        };
        if let (LoadOf::Injection, Some(load)) =
            (load_of, self.load.0.iter().find(|load| **load > Load::FULL))
        {
            return Err(Failure::input(format!(
                "--load {load} is more than an endpoint's link carries; write at most 1.0, or --load-of capacity \
                 for shares of what the pattern allows"
            )));
        }
        if self.size.0.contains(&Bytes::ZERO) {
            return Err(Failure::input(
                "--size 0 makes no load: messages without payload would have to come infinitely often; write 1 or more",
            ));
        }
        Ok(TrafficRequest {
            machine: self.machine.input()?,
            pattern: self.pattern.clone(),
            sizes: self.size.0.clone(),
            loads: self.load.0.clone(),
            load_of,
            time: self.time,
            warm_up: self.warm_up,
            seeds: (self.seed..=last).collect(),
        })
    }
}

/// What was asked for, at the top of the JSON document.
#[derive(Serialize)]
pub struct Header<'a> {
    command: &'static str,
    pattern: &'a str,
    load_of: LoadOf,
    time_us: f64,
    seed: Option<u64>,
    seeds: usize,
}

/// The header of a request.
pub fn header(request: &TrafficRequest) -> Header<'_> {
    Header {
        command: "traffic",
        pattern: &request.pattern,
        load_of: request.load_of,
        time_us: request.time.as_us_f64(),
        seed: request.seeds.first().copied(),
        seeds: request.seeds.len(),
    }
}

/// The report for people.
pub fn table(report: &TrafficReport) -> String {
    let rows = report.rows.iter().map(|measured| {
        let row = &measured.row;
        [
            row.size_bytes.to_string(),
            decimal(Some(row.offered_load)),
            with_interval(Some(row.accepted_load), row.accepted_load_interval),
            with_interval(row.latency_mean_ns, row.latency_mean_interval_ns),
            with_interval(row.latency_p99_ns, row.latency_p99_interval_ns),
            decimal(Some(row.warm_up_us)),
            if row.saturated { "saturated".to_owned() } else { String::new() },
        ]
    });
    output::table(
        ["size", "offered", "accepted", "latency mean (ns)", "p99 (ns)", "warm-up (us)", ""],
        [true, true, true, true, true, true, false],
        rows,
    )
}

/// `0.600 ± 0.002`, where the interval is known.
fn with_interval(value: Option<f64>, interval: Option<Interval>) -> String {
    match interval {
        None => decimal(value),
        Some(Interval { low, high }) => format!("{} ± {:.3}", decimal(value), (high - low) / 2.0),
    }
}
