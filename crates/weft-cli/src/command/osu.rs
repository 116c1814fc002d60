//! `weft osu`: the OSU micro-benchmarks on simulated ranks.

use super::simulation::run_and_show;
use crate::exit::{Failure, Status};
use crate::options::{MachineOptions, PlaceOptions, SayOptions, SimulationOptions, mapping_name};
use crate::output::{self, decimal, thousands};
use crate::value::{Sizes, parse_sizes};
use clap::{Args, ValueEnum};
use serde::Serialize;
use weft_sim::experiment::Request;
use weft_sim::experiment::osu::{
    Benchmark, Breakdown, ExpectedBcastReport, ExpectedBcastRequest, Layer, OsuReport, OsuRequest, OsuRow,
    Repetitions,
};

/// The benchmark that is none of OSU's.
const EXPECTED_BCAST: &str = "expected-bcast";

/// Options of `weft osu`.
#[derive(Args)]
pub struct OsuOptions {
    /// latency, bw, bibw, mbw_mr, one_way, bcast, allreduce, reduce, allgather, alltoall, barrier,
    /// put_latency, put_bw, get_latency, get_bw, fop_latency; or expected-bcast, which holds
    /// broadcasts against Eq. 1 of TR-488
    #[arg(value_name = "BENCHMARK", value_parser = parse_what)]
    benchmark: What,

    #[command(flatten)]
    machine: MachineOptions,

    /// The endpoint of rank 0, such as M1QAF1, where the benchmark is for two ranks
    #[arg(long, value_name = "ENDPOINT", requires = "to")]
    from: Option<String>,

    /// The endpoint of rank 1; that of rank 0 puts both on one host
    #[arg(long, value_name = "ENDPOINT", requires = "from", conflicts_with_all = ["ranks", "ppn"])]
    to: Option<String>,

    /// Ranks; by default one per core, or 2 where the benchmark is for two. expected-bcast takes several
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32))]
    ranks: Vec<u32>,

    #[command(flatten)]
    places: PlaceOptions,

    /// Sizes of messages, vectors or blocks: one, or FIRST:LAST, the powers of two between them; by
    /// default 0:4M, of bandwidths 1:4M, of collectives 1:64K, by the accelerator 4:4K
    #[arg(long, value_name = "BYTES", value_parser = parse_sizes)]
    sizes: Option<Sizes>,

    /// Measured iterations
    #[arg(long, value_name = "I", default_value_t = Repetitions::default().iterations)]
    iterations: u32,

    /// Iterations before them
    #[arg(long, value_name = "I", default_value_t = Repetitions::default().warm_up)]
    warm_up: u32,

    /// No barrier after each iteration of a collective: the mean is over all iterations as one
    #[arg(long)]
    no_barrier: bool,

    /// What stands between the benchmark and the interface
    #[arg(long, value_name = "LAYER", default_value = "mpi")]
    layer: LayerChoice,

    /// The collective's algorithm, or all, each in rows of its own; by default that of the machine's table
    #[arg(long, value_name = "NAME|all")]
    algorithm: Option<String>,

    /// Shows where every nanosecond of the last iteration of each size went
    #[arg(long)]
    breakdown: bool,

    /// Messages carry real bytes, and the memory of source and target is compared at the end of each: a
    /// difference ends the run as lost-data (exit status 1)
    #[arg(long)]
    data: bool,

    /// Seed of the random mapping and of all random decisions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    simulation: SimulationOptions,

    #[command(flatten)]
    say: SayOptions,
}

/// What stands between the benchmark and the interface.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum LayerChoice {
    /// the machine's MPI library
    Mpi,
    /// nothing: the interface's primitives, by calls that take no time
    Nic,
}

/// A benchmark, or the model of broadcasts.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Benchmark(Benchmark),
    ExpectedBcast,
}

fn parse_what(text: &str) -> Result<What, String> {
    if text.replace('_', "-") == EXPECTED_BCAST {
        return Ok(What::ExpectedBcast);
    }
    let benchmark = text.parse().map(What::Benchmark);
    benchmark
        .map_err(|error: weft_sim::experiment::osu::UnknownBenchmark| format!("{error}, {EXPECTED_BCAST}"))
}

impl OsuOptions {
    /// Runs it.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        let options = self.simulation.run_options(words, false)?;
        let request = match self.benchmark {
            What::Benchmark(benchmark) => Request::Osu(self.request(benchmark)?),
            What::ExpectedBcast => Request::ExpectedBcast(self.expected()?),
        };
        run_and_show(&request, &options, self.simulation.quiet, self.say.json)
    }

    fn repetitions(&self) -> Repetitions {
        let OsuOptions { warm_up, iterations, no_barrier, .. } = *self;
        Repetitions { warm_up, iterations, barrier: !no_barrier }
    }

    fn sizes(&self, default: &str) -> Result<Sizes, Failure> {
        self.sizes.clone().map_or_else(|| parse_sizes(default).map_err(Failure::bug), Ok)
    }

    fn request(&self, benchmark: Benchmark) -> Result<OsuRequest, Failure> {
        let ranks = match self.ranks[..] {
            [] => None,
            [ranks] => Some(ranks),
            _ => return Err(Failure::input(format!("--ranks: {benchmark} takes one number of ranks"))),
        };
        if self.sizes.is_some() && benchmark.only_size().is_some() {
            return Err(Failure::input(format!("--sizes: {benchmark} has no sizes; leave --sizes out")));
        }
        if self.from.is_some() && self.places.map != "linear" {
            let both = "--map: --from and --to say where both ranks are; leave --map out";
            return Err(Failure::input(both.to_owned()));
        }
        let default = match benchmark.collective() {
            Some(_) if self.algorithm.as_deref() == Some("accelerator") => "4:4K",
            Some(_) => "1:64K",
            None if benchmark.is_of_bandwidth() => "1:4M",
            None => "0:4M",
        };
        Ok(OsuRequest {
            machine: self.machine.input()?,
            benchmark,
            sizes: self.sizes(default)?.0,
            between: self.from.clone().zip(self.to.clone()).map(<[String; 2]>::from),
            ranks,
            map: self.places.mapping()?,
            ranks_per_host: self.places.ppn,
            repetitions: self.repetitions(),
            layer: match self.layer {
                LayerChoice::Mpi => Layer::Mpi,
                LayerChoice::Nic => Layer::Nic,
            },
            algorithm: self.algorithm.clone(),
            seed: self.seed,
            breakdown: self.breakdown,
            data: self.data,
        })
    }

    fn expected(&self) -> Result<ExpectedBcastRequest, Failure> {
        let without = [
            ("--from", self.from.is_some()),
            ("--algorithm", self.algorithm.is_some()),
            ("--layer", self.layer != LayerChoice::Mpi),
            ("--map", self.places.map != "linear"),
            ("--breakdown", self.breakdown),
            ("--data", self.data),
        ];
        if let Some((option, _)) = without.into_iter().find(|(_, given)| *given) {
            return Err(Failure::input(format!(
                "{option}: Eq. 1 is about MPI's binomial broadcast on hosts in order; leave {option} out"
            )));
        }
        Ok(ExpectedBcastRequest {
            machine: self.machine.input()?,
            sizes: self.sizes("1:64K")?.0,
            ranks: self.ranks.clone(),
            ranks_per_host: self.places.ppn,
            repetitions: self.repetitions(),
            seed: self.seed,
        })
    }
}

/// What was asked for, at the top of the JSON document.
#[derive(Serialize)]
pub struct Header<'a> {
    command: &'static str,
    benchmark: &'a str,
    layer: Layer,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    map: &'static str,
    warm_up: u32,
    iterations: u32,
    barrier: bool,
    seed: u64,
}

/// The header of a benchmark.
pub fn header(request: &OsuRequest) -> Header<'_> {
    let [from, to] = match &request.between {
        Some([from, to]) => [Some(from.as_str()), Some(to.as_str())],
        None => [None; 2],
    };
    let Repetitions { warm_up, iterations, barrier } = request.repetitions;
    Header {
        command: "osu",
        benchmark: request.benchmark.name(),
        layer: request.layer,
        from,
        to,
        map: mapping_name(&request.map),
        warm_up,
        iterations,
        barrier,
        seed: request.seed,
    }
}

/// The header of `expected-bcast`.
pub fn expected_header(request: &ExpectedBcastRequest) -> Header<'_> {
    let Repetitions { warm_up, iterations, barrier } = request.repetitions;
    Header {
        command: "osu",
        benchmark: EXPECTED_BCAST,
        layer: Layer::Mpi,
        from: None,
        to: None,
        map: "linear",
        warm_up,
        iterations,
        barrier,
        seed: request.seed,
    }
}

/// The report for people: OSU's columns, then the breakdowns.
pub fn table(report: &OsuReport) -> String {
    let rows = report.rows.iter().map(|measured| &measured.row);
    let breakdowns = rows.filter_map(|row| Some((row, row.breakdown.as_ref()?)));
    breakdowns.fold(columns(report), |text, (row, breakdown)| text + "\n" + &breakdown_text(row, breakdown))
}

/// Where the time of an iteration went.
fn breakdown_text(row: &OsuRow, breakdown: &Breakdown) -> String {
    let mut text = format!(
        "size {}, the last iteration on {}: {} ns",
        row.size_bytes,
        breakdown.rank,
        ns(breakdown.time_ns)
    );
    if let (Some(there), Some(back)) = (breakdown.there_ns, breakdown.back_ns) {
        text += &format!(", there {}, back {}", ns(there), ns(back));
    }
    let total = ["".to_owned(), "".to_owned(), ns(breakdown.time_ns), "total".to_owned(), "".to_owned()];
    let pieces = breakdown.pieces.iter().map(|piece| {
        let [from, to, time] = [piece.from_ns, piece.to_ns, piece.time_ns].map(ns);
        [from, to, time, piece.what.clone(), piece.place.clone()]
    });
    let pieces = output::table(
        ["from (ns)", "to (ns)", "ns", "what", "where"],
        [true, true, true, false, false],
        pieces.chain([total]),
    );
    format!("{text}\n{pieces}\n{}", super::explain::categories(&breakdown.categories))
}

/// A time in ns, to the picosecond.
fn ns(time: f64) -> String {
    format!("{time:.3}")
}

/// OSU's columns.
fn columns(report: &OsuReport) -> String {
    let rows = || report.rows.iter().map(|measured| &measured.row);
    let algorithm = |row: &OsuRow| row.algorithm.clone().unwrap_or_default();
    if rows().any(|row| row.bandwidth_gbps.is_some()) {
        return output::table(
            ["size", "bandwidth (Gb/s)", "messages/s"],
            [true; 3],
            rows().map(|row| {
                let rate = row.messages_per_second.map_or("-".to_owned(), thousands);
                [row.size_bytes.to_string(), decimal(row.bandwidth_gbps), rate]
            }),
        );
    }
    if rows().any(|row| row.latency_min_us.is_some()) {
        return output::table(
            ["size", "avg latency (us)", "min (us)", "max (us)", ""],
            [true, true, true, true, false],
            rows().map(|row| {
                let [avg, min, max] = [row.latency_us, row.latency_min_us, row.latency_max_us].map(decimal);
                [row.size_bytes.to_string(), avg, min, max, algorithm(row)]
            }),
        );
    }
    output::table(
        ["size", "latency (us)"],
        [true; 2],
        rows().map(|row| [row.size_bytes.to_string(), decimal(row.latency_us)]),
    )
}

/// The report of `expected-bcast` for people.
pub fn expected_table(report: &ExpectedBcastReport) -> String {
    let rows = report.rows.iter().map(|measured| {
        let row = &measured.row;
        [
            row.size_bytes.to_string(),
            row.ranks.to_string(),
            format!("{} + {} + {}", row.steps_mpsoc, row.steps_qfdb, row.steps_mezzanine),
            decimal(Some(row.expected_us)),
            decimal(Some(row.observed_us)),
            format!("{:+.1} %", row.relative_deviation * 100.0),
        ]
    });
    let header = ["size", "ranks", "steps", "expected (us)", "observed (us)", "deviation"];
    output::table(header, [true; 6], rows)
}
