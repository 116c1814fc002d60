//! `weft traffic`: patterns × loads.

use super::breakdown::ListOptions;
use super::scenario::{self, Ways, parse_congestion};
use super::simulation::{Shown, run_and_show};
use crate::exit::{Failure, Status};
use crate::options::{
    MachineOptions, RtlArguments, SimulationOptions, parse_positive_span, parse_seed, whole_number,
};
use crate::output::{self, decimal, percent};
use crate::value::{Loads, Sizes, parse_loads, parse_sizes, suggested};
use clap::builder::StringValueParser;
use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use weft_results::Table;
use weft_sim::experiment::load::Load;
use weft_sim::experiment::scenario::{ScenarioRequest, traces, ways};
use weft_sim::experiment::traffic::{
    Interval, Layer, LoadOf, MachinePart, PatternKind, TrafficReport, TrafficRequest, TrafficRow,
};
use weft_sim::experiment::{Request, machine};
use weft_units::ledger::{TrafficLosses, View as _};
use weft_units::{Bytes, Span};

/// The help of `--pattern`, with the names of all.
fn pattern_help() -> String {
    let [others @ .., last] = PatternKind::NAMES;
    format!("Traffic pattern: {} or {last}", others.join(", "))
}

/// Options of `weft traffic`.
#[derive(Args)]
pub struct TrafficOptions {
    #[command(flatten)]
    machine: MachineOptions,

    #[arg(long, value_name = "NAME", default_value = "uniform", help = pattern_help())]
    #[arg(value_parser = suggested(PatternKind::NAMES, StringValueParser::new()))]
    #[arg(hide_possible_values = true)]
    pattern: String,

    /// Load offered per endpoint: a share such as 0.6, a list such as 0.2,0.6, or FIRST:LAST:STEP such as
    /// 0.1:1.0:0.1
    #[arg(long, value_name = "LOAD", value_parser = parse_loads, allow_negative_numbers = true)]
    #[arg(required_unless_present_any = ["messages", "scenario", "congestion"])]
    load: Option<Loads>,

    /// Flows of this file instead of a pattern: victims and aggressors, incasts, hot spots
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["pattern", "load", "messages", "load_of", "time", "warm_up", "layer"])]
    #[arg(conflicts_with_all = ["size", "seeds"])]
    scenario: Option<PathBuf>,

    /// With --scenario: ways to control congestion, a row for each, such as none,acc,dcqcn; credits, pause
    /// and drop are no algorithm over that flow control. By default as the machine says
    #[arg(long, value_name = "LIST", requires = "scenario")]
    #[arg(value_parser = suggested(ways(), parse_congestion), hide_possible_values = true)]
    // clap asks for nothing that what is there excludes.
    #[arg(conflicts_with_all = ["load", "messages"])]
    congestion: Option<Ways>,

    /// Messages that each endpoint sends, all there from the beginning; the run ends when they have come
    #[arg(long, value_name = "COUNT", value_parser = whole_number(1..=u32::MAX))]
    #[arg(allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["load", "load_of", "time", "warm_up"])]
    messages: Option<u32>,

    /// The rate that loads are shares of
    #[arg(long, value_name = "RATE", default_value = "injection")]
    load_of: Share,

    /// The place at which messages enter the machine
    #[arg(long, value_name = "LAYER", default_value = "nic")]
    layer: LayerChoice,

    /// Size of a message, or FIRST:LAST: the first, then the powers of two above it up to the last
    #[arg(long, value_name = "BYTES", default_value = "256", value_parser = parse_sizes)]
    #[arg(allow_negative_numbers = true)]
    size: Sizes,

    /// Measured virtual time, after the warm-up
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = parse_positive_span)]
    time: Span,

    /// Length of the warm-up; by default it lasts until its end is found
    #[arg(long, value_name = "TIME")]
    warm_up: Option<Span>,

    /// Split the latency of messages by leg of their way: host, injection (at the interface, before the first
    /// link), fabric, ejection
    #[arg(long, conflicts_with_all = ["save_every", "scenario"])]
    breakdown: bool,

    /// Seed of all random decisions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_seed)]
    #[arg(allow_negative_numbers = true)]
    seed: u64,

    /// Number of seeds, counted up from --seed; several give confidence intervals
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    #[arg(value_parser = whole_number(1..=1000), allow_negative_numbers = true)]
    seeds: u32,

    #[command(flatten)]
    simulation: SimulationOptions,

    #[command(flatten)]
    rtl: RtlArguments,
}

/// The rate that loads are shares of.
#[derive(Clone, Copy, ValueEnum)]
enum Share {
    /// the endpoint link's payload rate
    Injection,
    /// the channel-load bound of the pattern
    Capacity,
}

/// The place at which messages enter the machine.
#[derive(Clone, Copy, ValueEnum)]
enum LayerChoice {
    /// at the network interface
    Nic,
    /// at the endpoint's link, past the interface, as if that cost nothing
    Fabric,
}

impl TrafficOptions {
    /// Runs it.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        let inputs: Vec<_> = self.machine.file().into_iter().collect();
        let options = self.simulation.experiment_options(words, false, &inputs)?;
        let mut options = self.rtl.put_into(options, &self.simulation.results, &inputs)?;
        if options.rtl.is_some() && self.scenario.is_some() {
            let why = "--rtl: the flows of a scenario run without RTL; leave --scenario or --rtl out";
            return Err(Failure::input(why));
        }
        if options.rtl.is_some() && matches!(self.layer, LayerChoice::Fabric) {
            let why = "--rtl: with --layer fabric messages go past the interface; take --layer nic";
            return Err(Failure::input(why));
        }
        let request = match &self.scenario {
            Some(path) => Request::Scenario(self.scenario_request(path)?),
            None => Request::Traffic(self.request()?),
        };
        // The flows of a scenario are few, and what each gets is what one wants to see, where it is counted.
        if let (Request::Scenario(request), Some(output)) = (&request, &mut options.output)
            && request.telemetry.is_some()
            && !output.tables.contains(&Table::FlowRates)
            && machine::checked(&request.machine)?.has_packets()
        {
            output.tables.push(Table::FlowRates);
        }
        run_and_show(&request, &options, self.simulation.report, ListOptions::default())
    }

    fn scenario_request(&self, path: &Path) -> Result<ScenarioRequest, Failure> {
        let (name, text) = scenario::read(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let traces = traces(&name, &text, folder)?;
        Ok(ScenarioRequest {
            machine: self.machine.input()?,
            name,
            text,
            traces,
            congestion: self.congestion.as_ref().map_or_else(Vec::new, |ways| ways.0.clone()),
            seed: self.seed,
            telemetry: self.simulation.results.telemetry,
        })
    }

    fn request(&self) -> Result<TrafficRequest, Failure> {
        let last = self.seed.checked_add(u64::from(self.seeds) - 1);
        let last =
            last.ok_or_else(|| Failure::input("--seed and --seeds exceed 2^64; take a smaller --seed"))?;
        let load_of = match self.load_of {
            Share::Injection => LoadOf::Injection,
            Share::Capacity => LoadOf::Capacity,
        };
        // Messages that are there at once are no load; there is one row.
        let loads = self.load.as_ref().map_or_else(|| vec![Load::FULL], |loads| loads.0.clone());
        if let (LoadOf::Injection, Some(load)) = (load_of, loads.iter().find(|load| **load > Load::FULL)) {
            return Err(Failure::input(format!(
                "--load {load} is more than an endpoint's link carries; write at most 1.0, or --load-of \
                 capacity for shares of what the pattern allows"
            )));
        }
        if self.size.0.contains(&Bytes::ZERO) {
            return Err(Failure::input(
                "--size 0 makes no load, since messages without payload add nothing to it; write 1 or more",
            ));
        }
        Ok(TrafficRequest {
            machine: self.machine.input()?,
            pattern: self.pattern.clone(),
            sizes: self.size.0.clone(),
            loads,
            load_of,
            messages: self.messages,
            layer: match self.layer {
                LayerChoice::Nic => Layer::Nic,
                LayerChoice::Fabric => Layer::Fabric,
            },
            time: self.time,
            warm_up: self.warm_up,
            seeds: (self.seed..=last).collect(),
            breakdown: self.breakdown,
            telemetry: self.simulation.results.telemetry,
        })
    }
}

/// The fields of the request, at the top of the JSON document.
#[derive(Serialize)]
pub struct Header<'a> {
    command: &'static str,
    pattern: &'a str,
    load_of: LoadOf,
    layer: Layer,
    time_us: Option<f64>,
    messages_per_endpoint: Option<u32>,
    seed: Option<u64>,
    seeds: usize,
}

impl Shown for TrafficRequest {
    type Header<'a> = Header<'a>;

    fn header(&self, _: &[String]) -> Header<'_> {
        Header {
            command: "traffic",
            pattern: &self.pattern,
            load_of: self.load_of,
            layer: self.layer,
            time_us: self.messages.is_none().then(|| self.time.as_us_f64()),
            messages_per_endpoint: self.messages,
            seed: self.seeds.first().copied(),
            seeds: self.seeds.len(),
        }
    }

    fn table(report: &TrafficReport, _: ListOptions) -> String {
        let at_once = report.rows.iter().any(|measured| measured.row.offered_load.is_none());
        let time = if at_once { "all came (us)" } else { "warm-up (us)" };
        let rows = report.rows.iter().map(|measured| {
            let row = &measured.row;
            [
                row.size_bytes.to_string(),
                decimal(row.offered_load),
                with_interval(Some(row.accepted_load), row.accepted_load_interval),
                with_interval(row.latency_mean_ns, row.latency_mean_interval_ns),
                with_interval(row.latency_p99_ns, row.latency_p99_interval_ns),
                decimal(Some(if at_once { row.run_time_us } else { row.warm_up_us })),
                limit(row),
                if row.saturated { "saturated".to_owned() } else { String::new() },
            ]
        });
        let table = output::table_of_some(
            ["size", "offered", "accepted", "latency mean (ns)", "p99 (ns)", time, "limit", ""],
            [true, true, true, true, true, true, false, false],
            rows,
        );
        report.rows.iter().fold(table, |text, measured| text + &remarks(&measured.row))
    }
}

/// The block that takes no more; below saturation the host, which offers no more.
fn limit(row: &TrafficRow) -> String {
    match row.limit.part {
        MachinePart::Host if !row.saturated => "host".to_owned(),
        part => format!("{}: {}", part.name(), row.limit.block),
    }
}

/// Lines about a row whose numbers are missing, or are those of a part of its packets.
fn remarks(row: &TrafficRow) -> String {
    let of = match row.offered_load {
        Some(load) => format!("{} at load {load:.3}", row.size_bytes),
        None => row.size_bytes.to_string(),
    };
    let (lost, delivered) = (row.packets_dropped, row.packets_delivered);
    let mut text = String::new();
    if row.messages == 0 && row.offered_load.is_some_and(|load| load > 0.0) {
        let time = Span::from_ps((row.run_time_us * 1e6).round() as u64);
        let longer = Span::from_ps(time.as_ps().saturating_mul(100));
        text += &match (row.packet_hops, lost) {
            (0, 0) => format!("{of}: no message was sent in {time}: a smaller --size, or a longer --time\n"),
            (_, 0) => format!("{of}: no message was delivered in {time}: --time {longer}\n"),
            _ => format!("{of}: no message was delivered in {time}\n"),
        };
    }
    if lost > 0 {
        let share = percent(lost as f64 / (lost + delivered) as f64);
        text += &match row.losses.full {
            0 => format!("{of}: links lost {lost} packets ({share})\n"),
            full => format!("{of}: links lost {lost} packets ({share}), {full} of them in full buffers\n"),
        };
    }
    let unmeasured = scenario::Unmeasured {
        off_us: row.links_off_us,
        in_warm_up_us: row.links_off_in_warm_up_us,
        after_end: row.outages_after_end,
    };
    unmeasured.lines().for_each(|line| text += &format!("{of}: {line}\n"));
    TrafficLosses::phrases(&row.losses).for_each(|line| text += &format!("{of}: {line}\n"));
    if row.messages_failed > 0 {
        text += &format!("{of}: sources gave up {} messages\n", row.messages_failed);
    }
    if row.pause_frames > 0 {
        text += &format!("{of}: links were paused for {:.1} us in all\n", row.paused_us);
    }
    if let Some(split) = &row.latency_split {
        text += &format!("{of}: mean latency: {}\n", super::breakdown::split(split));
    }
    if let Some(energy) = &row.energy {
        text += &format!("{of}: {}\n", super::energy::line(energy));
    }
    text
}

/// `0.600 ± 0.002`, where the interval is known.
fn with_interval(value: Option<f64>, interval: Option<Interval>) -> String {
    match interval {
        None => decimal(value),
        Some(Interval { low, high }) => format!("{} ± {:.3}", decimal(value), (high - low) / 2.0),
    }
}
