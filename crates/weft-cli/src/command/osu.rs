//! `weft osu`: the OSU micro-benchmarks on simulated ranks.

use super::breakdown::ListOptions;
use super::simulation::{BestAlgorithm, Shown, run_and_show};
use crate::exit::{Failure, Status};
use crate::options::{
    MachineOptions, PlaceOptions, RtlArguments, SimulationOptions, mapping_name, parse_seed, whole_number,
};
use crate::output::{self, decimal, thousands};
use crate::value::{Sizes, parse_iterations, parse_sizes, suggested};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::collections::BTreeMap;
use weft_sim::experiment::Request;
use weft_sim::experiment::osu::{
    Benchmark, Breakdown, ExpectedBcastReport, ExpectedBcastRequest, Iterations, Layer, OsuReport,
    OsuRequest, OsuRow, Repetitions,
};
use weft_units::Bytes;

/// The benchmark that is not one of OSU's.
const EXPECTED_BCAST: &str = "expected-bcast";
/// Pieces of a breakdown that are all listed: those of a message have fewer, those of a collective among many
/// ranks hundreds.
const MOST_PIECES: usize = 60;

/// Options of `weft osu`.
#[derive(Args)]
pub struct OsuOptions {
    /// latency, bw, bibw, mbw_mr, one_way, bcast, allreduce, reduce, allgather, alltoall, barrier,
    /// put_latency, put_bw, get_latency, get_bw, fop_latency, acc_latency, get_acc_latency, cas_latency; or
    /// expected-bcast, which compares broadcasts with Eq. 1 of TR-488
    #[arg(value_name = "BENCHMARK", value_parser = suggested(benchmarks(), parse_what))]
    #[arg(hide_possible_values = true)]
    benchmark: What,

    #[command(flatten)]
    machine: MachineOptions,

    /// Endpoint of rank 0, such as M1QAF1, in benchmarks of two ranks
    #[arg(long, value_name = "ENDPOINT", requires = "to")]
    from: Option<String>,

    /// Endpoint of rank 1; the same as --from puts both ranks on one host
    #[arg(long, value_name = "ENDPOINT", requires = "from", conflicts_with_all = ["ranks", "ppn"])]
    to: Option<String>,

    /// Number of ranks; by default one per core, or 2 in benchmarks of two ranks. expected-bcast takes a list
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = whole_number(0..=u32::MAX))]
    ranks: Vec<u32>,

    #[command(flatten)]
    places: PlaceOptions,

    /// Sizes of messages, vectors or blocks: one, or FIRST:LAST, the first and the powers of two above it.
    /// Default 0:4M; of bandwidths 1:4M, of collectives 1:64K, of the accelerator 4:4K
    #[arg(long, value_name = "BYTES", value_parser = parse_sizes, allow_negative_numbers = true)]
    sizes: Option<Sizes>,

    /// Measured iterations: a number, or `osu` for OSU's own: 10000 of latencies, 100 of bandwidths, 1000 of
    /// collectives, above 8 KB 1000, 20 and 100. Default 5; of mbw_mr OSU's up to 64 KB
    #[arg(long, value_name = "I|osu", value_parser = parse_iterations, allow_negative_numbers = true)]
    iterations: Option<Iterations>,

    /// Iterations before the measured ones; default 2, and OSU's own where the measured ones are
    #[arg(long, value_name = "I")]
    warm_up: Option<u32>,

    /// Messages under way at a time in bandwidths, after which the receiver answers; default 64, as OSU
    #[arg(long, value_name = "N", value_parser = whole_number(1..=65536))]
    #[arg(allow_negative_numbers = true)]
    window: Option<u32>,

    /// Leave out the barrier after each iteration of a collective: the mean is over all iterations together
    #[arg(long)]
    no_barrier: bool,

    /// The software between the benchmark and the interface
    #[arg(long, value_name = "LAYER", default_value = "mpi")]
    layer: LayerChoice,

    /// Algorithm of the collective, or all of them, each in its own rows; by default the machine's table
    /// chooses
    #[arg(long, value_name = "NAME|all")]
    algorithm: Option<String>,

    /// Show where every nanosecond of the last iteration of each size went
    #[arg(long)]
    breakdown: bool,

    #[command(flatten)]
    list: ListOptions,

    /// Carry real bytes in messages, and compare the memory of source and target at the end of each: a
    /// difference ends the run as lost-data (exit status 1)
    #[arg(long)]
    data: bool,

    /// Memory that messages are read from and written to: host, gpu-direct or gpu-staged; the same as
    /// --set nic.gpu.source=… --set nic.gpu.target=…
    #[arg(long, value_name = "SOURCE,TARGET", value_parser = parse_memory)]
    memory: Option<[String; 2]>,

    /// Seed of the random mapping and of all other random decisions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_seed)]
    #[arg(allow_negative_numbers = true)]
    seed: u64,

    #[command(flatten)]
    rtl: RtlArguments,

    #[command(flatten)]
    simulation: SimulationOptions,
}

/// The software between the benchmark and the interface.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum LayerChoice {
    /// the machine's MPI library
    Mpi,
    /// no software: the interface's primitives, by calls that take no time
    Nic,
}

/// A benchmark, or the model of broadcasts.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Benchmark(Benchmark),
    ExpectedBcast,
}

fn benchmarks() -> impl Iterator<Item = &'static str> {
    Benchmark::ALL.into_iter().map(Benchmark::name).chain([EXPECTED_BCAST])
}

fn parse_what(text: &str) -> Result<What, String> {
    if text.replace('_', "-") == EXPECTED_BCAST {
        return Ok(What::ExpectedBcast);
    }
    let benchmark = text.parse().map(What::Benchmark);
    benchmark
        .map_err(|error: weft_sim::experiment::osu::UnknownBenchmark| format!("{error}, {EXPECTED_BCAST}"))
}

fn parse_memory(text: &str) -> Result<[String; 2], String> {
    let kinds = ["host", "gpu-direct", "gpu-staged"];
    match text.split_once(',') {
        Some((source, target)) if kinds.contains(&source) && kinds.contains(&target) => {
            Ok([source.to_owned(), target.to_owned()])
        }
        _ => Err(format!("write SOURCE,TARGET, each one of {}", kinds.join(", "))),
    }
}

impl OsuOptions {
    /// Runs it.
    pub fn run(mut self, words: &[String]) -> Result<Status, Failure> {
        if let Some([source, target]) = self.memory.take() {
            self.machine
                .sets
                .sets
                .extend([format!("nic.gpu.source={source}"), format!("nic.gpu.target={target}")]);
        }
        let inputs: Vec<_> = self.machine.file().into_iter().chain(self.places.file()).collect();
        let options = self.simulation.experiment_options(words, false, &inputs)?;
        let options = self.rtl.put_into(options, &self.simulation.results, &inputs)?;
        let request = match self.benchmark {
            What::Benchmark(benchmark) => Request::Osu(self.request(benchmark)?),
            What::ExpectedBcast => Request::ExpectedBcast(self.expected()?),
        };
        run_and_show(&request, &options, self.simulation.report, self.list)
    }

    fn repetitions(&self) -> Repetitions {
        let OsuOptions { warm_up, iterations, no_barrier, window, .. } = *self;
        Repetitions { warm_up, iterations: iterations.unwrap_or_default(), barrier: !no_barrier, window }
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
            telemetry: self.simulation.results.telemetry,
        })
    }

    fn expected(&self) -> Result<ExpectedBcastRequest, Failure> {
        let without = [
            ("--from", self.from.is_some()),
            ("--algorithm", self.algorithm.is_some()),
            ("--layer", self.layer != LayerChoice::Mpi),
            ("--map", self.places.map != "linear"),
            ("--breakdown", self.breakdown),
            ("--window", self.window.is_some()),
            ("--data", self.data),
            ("--telemetry", self.simulation.results.telemetry.is_some()),
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

/// The fields of the request, at the top of the JSON document.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_up: Option<u32>,
    iterations: Iterations,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u32>,
    barrier: bool,
    seed: u64,
}

impl Shown for OsuRequest {
    type Header<'a> = Header<'a>;

    fn header(&self, _: &[String]) -> Header<'_> {
        let [from, to] = match &self.between {
            Some([from, to]) => [Some(from.as_str()), Some(to.as_str())],
            None => [None; 2],
        };
        let Repetitions { warm_up, iterations, barrier, window } = self.repetitions;
        Header {
            command: "osu",
            benchmark: self.benchmark.name(),
            layer: self.layer,
            from,
            to,
            map: mapping_name(&self.map),
            warm_up,
            iterations,
            window,
            barrier,
            seed: self.seed,
        }
    }

    fn best_by_size(report: &OsuReport) -> Vec<BestAlgorithm> {
        let rows = || report.rows.iter().map(|measured| &measured.row);
        let one = rows().next().and_then(|row| row.algorithm.clone());
        if rows().all(|row| row.algorithm == one) {
            return Vec::new();
        }
        let mut best = BTreeMap::<u64, BestAlgorithm>::new();
        for row in rows() {
            let (Some(algorithm), Some(latency_us)) = (row.algorithm.clone(), row.latency_us) else {
                continue;
            };
            let size_bytes = row.size_bytes.get();
            if best.get(&size_bytes).is_none_or(|other| latency_us < other.latency_us) {
                best.insert(size_bytes, BestAlgorithm { size_bytes, algorithm, latency_us });
            }
        }
        best.into_values().collect()
    }

    fn table(report: &OsuReport, list: ListOptions) -> String {
        let rows = report.rows.iter().map(|measured| &measured.row);
        let breakdowns = rows.filter_map(|row| Some((row, row.breakdown.as_ref()?)));
        let path = report.rows.first().and_then(|measured| measured.row.path.as_ref());
        let head = path.map_or(String::new(), |path| format!("path: {path}\n"));
        let energies = report.rows.iter().filter_map(|measured| {
            let row = &measured.row;
            Some(format!("size {}: {}\n", row.size_bytes, super::energy::line(row.energy.as_ref()?)))
        });
        let repairs = report.rows.iter().map(|measured| {
            let row = &measured.row;
            let algorithm = row.algorithm.as_ref().map_or(String::new(), |name| format!(", {name}"));
            let of = format!("size {}{algorithm}", row.size_bytes);
            super::repairs::lines(&of, row.packets_dropped, &row.repairs)
        });
        let lines = energies.chain(repairs);
        let table = lines.fold(head + &columns(report) + &best(report), |text, line| text + &line);
        breakdowns.fold(table, |text, (row, breakdown)| text + "\n" + &breakdown_text(row, breakdown, list))
    }
}

/// The table of the fastest algorithms; nothing where one was asked for.
fn best(report: &OsuReport) -> String {
    let rows = OsuRequest::best_by_size(report);
    let rows = rows.into_iter().map(|best| {
        [Bytes::new(best.size_bytes).to_string(), decimal(Some(best.latency_us)), best.algorithm]
    });
    let table = output::table_of_some(["size", "avg latency (us)", "best"], [true, true, false], rows);
    if table.is_empty() { table } else { format!("\n{table}") }
}

/// The pieces of an iteration's time.
fn breakdown_text(row: &OsuRow, breakdown: &Breakdown, list: ListOptions) -> String {
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
    let listed =
        list.list_long(&breakdown.pieces, MOST_PIECES, |piece| piece.time_ns / breakdown.time_ns.max(1.0));
    let other = (!listed.others.is_empty()).then(|| {
        let time = listed.others.iter().map(|piece| piece.time_ns).sum();
        [String::new(), String::new(), ns(time), listed.row, String::new()]
    });
    let pieces = listed.pieces.into_iter().map(|piece| {
        let [from, to, time] = [piece.from_ns, piece.to_ns, piece.time_ns].map(ns);
        [from, to, time, piece.what.clone(), piece.place.clone()]
    });
    let pieces = output::table(
        ["from (ns)", "to (ns)", "ns", "what", "where"],
        [true, true, true, false, false],
        pieces.chain(other).chain([total]),
    );
    let (categories, legs) = (super::explain::categories(&breakdown.categories), &breakdown.latency_split);
    format!("{text}\n{pieces}\n{categories}latency: {}\n", super::breakdown::split(legs))
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
        return output::table_of_some(
            ["size", "bandwidth (Gb/s)", "messages/s"],
            [true; 3],
            rows().map(|row| {
                let rate = row.messages_per_second.map_or("-".to_owned(), thousands);
                [row.size_bytes.to_string(), decimal(row.bandwidth_gbps), rate]
            }),
        );
    }
    if rows().any(|row| row.latency_min_us.is_some()) {
        return output::table_of_some(
            ["size", "avg latency (us)", "min (us)", "max (us)", ""],
            [true, true, true, true, false],
            rows().map(|row| {
                let [avg, min, max] = [row.latency_us, row.latency_min_us, row.latency_max_us].map(decimal);
                [row.size_bytes.to_string(), avg, min, max, algorithm(row)]
            }),
        );
    }
    output::table_of_some(
        ["size", "latency (us)"],
        [true; 2],
        rows().map(|row| [row.size_bytes.to_string(), decimal(row.latency_us)]),
    )
}

impl Shown for ExpectedBcastRequest {
    type Header<'a> = Header<'a>;

    fn header(&self, _: &[String]) -> Header<'_> {
        let Repetitions { warm_up, iterations, barrier, window } = self.repetitions;
        Header {
            command: "osu",
            benchmark: EXPECTED_BCAST,
            layer: Layer::Mpi,
            from: None,
            to: None,
            map: "linear",
            warm_up,
            iterations,
            window,
            barrier,
            seed: self.seed,
        }
    }

    fn table(report: &ExpectedBcastReport, _: ListOptions) -> String {
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
}
