//! Traffic patterns × loads × seeds: throughput and latency curves.
//!
//! ```text
//!  request ──► points: size × load ──► runs: one per seed ──► rows
//!              offered                 run, limit, ways       row
//! ```

mod limit;
mod offered;
mod row;
mod run;
mod ways;

use super::load::Load;
use super::machine::{check_length, cuts_endpoints_off};
use super::path::LatencySplit;
use super::ranks::packet_hops_per_second;
use super::rtl::{NoRtlOfSaved, RtlOfRun};
use super::saved::SavedReport;
use super::{
    Control, EnergyFigures, Estimate, Experiment, ExperimentError, ExperimentOptions, ExperimentRun,
    Findings, MachineInput, Measured, Preparation, Report, Request, add_crossed,
};
use crate::timeline::TimelineWriter;
pub use limit::{Limit, MachinePart};
use offered::Offered;
use run::{Run, RunResult, Surroundings, Traffic, TrafficStep};
use serde::{Deserialize, Serialize};
use weft_assembly as assembly;
use weft_machine::{Machine, Nic};
use weft_network::{AnyNic, Crossed, NetworkSetup};
use weft_results::{Conclusion, Ending, ResultsWriter, Stopwatch, Table, Totals};
use weft_topo::{Layout, count_links};
use weft_units::ledger::{Outages, TrafficLosses, View as _};
use weft_units::memory::peak_memory;
use weft_units::{Bytes, PacketCounts, Span};
use weft_workload::pattern::Pattern;
pub use weft_workload::pattern::PatternKind;
use weft_workload::traffic::{TrafficParameters, TrafficSource};

/// The rate that a load is a share of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadOf {
    /// The endpoint link's payload rate.
    #[default]
    Injection,
    /// The channel-load bound of the pattern.
    Capacity,
}

/// The place at which sources put messages into the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The network interface.
    #[default]
    Nic,
    /// The endpoint's link: past the interface, as if that cost nothing.
    Fabric,
}

/// The request of `weft traffic`. There is a run for each size, load and seed, in that order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrafficRequest {
    /// The machine.
    pub machine: MachineInput,
    /// The pattern, as patterns are written.
    pub pattern: String,
    /// Message sizes; none is zero.
    #[serde(rename = "sizes_bytes")]
    pub sizes: Vec<Bytes>,
    /// Loads, ascending; zero alone is an idle machine.
    pub loads: Vec<Load>,
    /// The rate that they are shares of.
    pub load_of: LoadOf,
    /// Messages that each endpoint sends, all there from the beginning: a run ends when they have come.
    /// `loads`, `load_of`, `time` and `warm_up` then say nothing.
    #[serde(default)]
    pub messages: Option<u32>,
    /// The place at which messages enter the machine.
    #[serde(default)]
    pub layer: Layer,
    /// Measured virtual time, after warm-up.
    #[serde(with = "weft_units::as_text")]
    pub time: Span,
    /// Warm-up in picoseconds; `None`: until it is found to have ended.
    #[serde(rename = "warm_up_ps")]
    pub warm_up: Option<Span>,
    /// One run of each point per seed.
    pub seeds: Vec<u64>,
    /// Whether the latency of each message is split by leg of its way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub breakdown: bool,
    /// The interval of telemetry in picoseconds; `None`: none is written.
    #[serde(default, rename = "telemetry_ps", skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Span>,
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
    /// Load offered per endpoint, as asked for; `None`: so many messages at once.
    pub offered_load: Option<f64>,
    /// Load accepted: delivered payload per endpoint that sends as a share of the endpoint link's payload
    /// rate (or of capacity, as the offered load).
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
    /// The mean by leg of the way, over all messages of all seeds, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_split: Option<LatencySplit>,
    /// Correlation of neighbouring batches of a single run: above 0.37 they are too short, and the intervals
    /// too narrow.
    pub batch_correlation: Option<f64>,
    /// The longest warm-up among the seeds.
    pub warm_up_us: f64,
    /// Whether accepted fell behind offered load, or no end of the warm-up was found: latencies then
    /// grow with the measured time.
    pub saturated: bool,
    /// The block that takes no more: of the first seed that is saturated. Below saturation the host, which
    /// offers no more.
    pub limit: Limit,
    /// The block that worked for the largest share of the time, of all seeds.
    pub busiest: Limit,
    /// Measured virtual time of each run; with `--messages` the time at which the last one was delivered,
    /// the latest of the seeds.
    pub run_time_us: f64,
    /// The first seed.
    pub seed: u64,
    /// Number of seeds.
    pub seeds: u32,
    /// Messages delivered in the measured time, over all seeds.
    pub messages: u64,
    /// Links crossed by data packets, warm-up included, over all seeds.
    pub packet_hops: u64,
    /// Messages that their source has given up, warm-up included, over all seeds: of interfaces that send
    /// again. Others do not notice what they lose.
    #[serde(default)]
    pub messages_failed: u64,
    /// Packets that links lost, warm-up included, over all seeds. Their messages never arrive where the
    /// interface does not send again.
    #[serde(default)]
    pub packets_dropped: u64,
    /// Counts of what outages did, warm-up included, over all seeds.
    #[serde(flatten, with = "Outages")]
    pub outages: PacketCounts,
    /// Time in which links were off, each direction by itself, added up, warm-up included, over all seeds.
    #[serde(default)]
    pub links_off_us: f64,
    /// The part of it that lies in the warm-up.
    #[serde(default)]
    pub links_off_in_warm_up_us: f64,
    /// Outages that begin after the end of the run, of each seed.
    #[serde(default)]
    pub outages_after_end: usize,
    /// Counts of what full buffers and sources did, warm-up included, over all seeds.
    #[serde(flatten, with = "TrafficLosses")]
    pub losses: PacketCounts,
    /// Measured time in which senders of links were paused, the sum over all links and seeds; 0 unless
    /// `fabric.flow_control` is `pause`.
    #[serde(default)]
    pub paused_us: f64,
    /// Pause frames that senders have obeyed in the measured time, over all seeds.
    #[serde(default)]
    pub pause_frames: u64,
    /// Energy over all seeds, from the end of warm-up to the end of the run; `None`: the machine says nothing
    /// of its power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyFigures>,
    /// Packets that came to an endpoint, warm-up included, over all seeds; for the report only.
    #[serde(skip)]
    pub packets_delivered: u64,
}

/// The report of `weft traffic`.
pub type TrafficReport = Report<TrafficRow>;

/// The time that a packet of short messages is under way on the machines that ship, about.
const UNDER_WAY: Span = Span::from_us(2);

/// About how much memory packets take that are under way, with their messages and the events that move them,
/// at the point that has most of them. Those of a network that takes no more wait longer, and take more.
///
/// Interfaces by their blocks keep each packet until it is acknowledged. Peak of memory at 256 B, measured:
/// 160 B from loads of 0.05 to 1 on `ib-ndr-fattree` (`overheads`), 900 B from 0.3 to 0.6 on
/// `bxi3-dragonfly` (`portals`).
fn memory_under_way(machine: &Machine, points: &[Point], (pattern, layout): (&Pattern, &Layout)) -> u64 {
    if machine.flows {
        return 0;
    }
    let each = if matches!(machine.nic, Nic::Overheads(_)) { 160.0 } else { 900.0 };
    let packets = |point: &Point| {
        packets_of_message(machine, point) * point.offered.messages_sent_in(UNDER_WAY.as_ps() as f64)
    };
    let most = points.iter().map(packets).fold(0.0, f64::max);
    (most * f64::from(offered::senders(pattern, layout)) * each) as u64
}

/// Packets of a message; fluids have one each.
fn packets_of_message(machine: &Machine, point: &Point) -> f64 {
    match machine.flows {
        true => 1.0,
        false => point.offered.bytes.div_ceil(machine.packet.payload).max(1) as f64,
    }
}

/// One point of the curve.
struct Point {
    offered: Offered,
    /// Number of the first of its runs.
    first_run: u32,
}

/// The state of the command between two epochs, beside that of the network.
#[derive(Serialize, Deserialize)]
struct Saved {
    report: SavedReport,
    /// Packets that each of its rows delivered, which it leaves out.
    delivered: Vec<u64>,
    /// Runs of the point at hand that are done.
    runs: Vec<RunResult>,
    /// The run at hand, and the state of its network.
    run: Run,
    network: Vec<u8>,
}

impl Experiment for TrafficRequest {
    type Row = TrafficRow;

    fn machine(&self) -> &MachineInput {
        &self.machine
    }

    fn request(&self) -> Request {
        Request::Traffic(self.clone())
    }

    fn adapted(&self, machine: Machine) -> Machine {
        match self.layer {
            Layer::Nic => machine,
            Layer::Fabric => machine.without_interface(),
        }
    }

    /// Runs the points one after another.
    fn findings(&self, run: &mut ExperimentRun<'_>) -> Result<Findings<TrafficRow>, ExperimentError> {
        let machine = run.machine;
        // Before the layout, so that nothing is allocated for a machine that does not fit.
        let memory = assembly::memory_estimate(machine, size_of::<AnyNic<TrafficSource>>() as u64);
        assembly::check_memory(machine, memory).map_err(ExperimentError::input)?;
        let layout = assembly::layout(machine).map_err(ExperimentError::input)?;
        check_times(self)?;
        let mut points = points(self, machine, &layout)?;
        let first_seed = self.seeds.first().copied().unwrap_or_default();
        let pattern = offered::pattern(self, (machine, &layout), first_seed)?;
        check_breakdown(self, run.options, &pattern)?;
        points.iter_mut().for_each(|point| point.offered = point.offered.under(&pattern));
        let hops = estimated_hops(self, offered_packets(self, machine, &points), &pattern, &layout);
        let looking = self.telemetry.map_or(0.0, |every| {
            let time = self.time.saturating_add(self.warm_up.unwrap_or(Span::ZERO));
            let runs = (points.len() * self.seeds.len()) as f64;
            let directions = count_links(&layout).iter().map(|class| 2 * class.links).sum();
            run.options.looks(every).seconds(time, directions) * runs
        });
        let wall_seconds = Some(hops / packet_hops_per_second(machine) + looking);
        let memory_bytes =
            memory.get().saturating_add(memory_under_way(machine, &points, (&pattern, &layout)));
        let is_least = cuts_endpoints_off(machine, &layout, &self.seeds)?;
        let estimate = Estimate { wall_seconds, memory_bytes, is_least, has_rtl: false };
        let saved = run.open(&layout, Some(estimate), &self.seeds)?;
        let timeline = run.options.timeline.as_deref().map(TimelineWriter::create).transpose()?;
        let mut curve = Curve {
            request: self,
            options: run.options,
            control: run.control,
            machine,
            layout: &layout,
            rows: Vec::new(),
            runs: Vec::new(),
            totals: Totals::default(),
            hops: 0,
            timeline,
            since_saved: Span::ZERO,
            preparation: run.preparation.take(),
        };
        let conclusion = curve.all(&points, saved, run.writer.as_mut())?;
        let Curve { rows, totals, hops, timeline, .. } = curve;
        if let Some(timeline) = timeline {
            timeline.finish()?;
        }
        Ok(Findings {
            conclusion,
            rows,
            totals,
            beside: Vec::new(),
            explained: Vec::new(),
            performance: run.performance(hops),
        })
    }
}

/// Times must leave room below the end of virtual time.
fn check_times(request: &TrafficRequest) -> Result<(), ExperimentError> {
    let limit = Span::from_ps(offered::LONGEST_PS / 4);
    let times = [("--time", Some(request.time)), ("--warm-up", request.warm_up)];
    match times.into_iter().find(|(_, time)| time.is_some_and(|time| time > limit)) {
        Some((option, _)) => Err(ExperimentError::input(format!(
            "{option} is more than virtual time holds; write at most {limit}"
        ))),
        None => Ok(()),
    }
}

/// The ways of messages are recorded from the beginning, and not those of copies.
fn check_breakdown(
    request: &TrafficRequest,
    options: &ExperimentOptions,
    pattern: &Pattern,
) -> Result<(), ExperimentError> {
    if !request.breakdown {
        Ok(())
    } else if pattern.deliveries().is_some() {
        let error = "--breakdown: the ways of a multicast's copies are not recorded; take another --pattern";
        Err(ExperimentError::input(error))
    } else if options.save_every.is_some() {
        let error = "--breakdown: what is recorded of messages is not saved; leave out --save-every";
        Err(ExperimentError::input(error))
    } else {
        Ok(())
    }
}

fn points(
    request: &TrafficRequest,
    machine: &Machine,
    layout: &Layout,
) -> Result<Vec<Point>, ExperimentError> {
    let mut points = Vec::new();
    for &size in &request.sizes {
        check_length(machine, "--size", size)?;
        for &load in &request.loads {
            let offered = Offered::new(request, (machine, layout), size, load)?;
            let first_run = (points.len() * request.seeds.len()) as u32;
            points.push(Point { offered, first_run });
        }
    }
    Ok(points)
}

/// Packets that an endpoint offers at all points, over the measured time and the shortest warm-up.
fn offered_packets(request: &TrafficRequest, machine: &Machine, points: &[Point]) -> f64 {
    let time = request.time.as_ps() as f64 * 1.25;
    points.iter().map(|point| packets_of_message(machine, point) * point.offered.messages_in(time)).sum()
}

/// Packet-hops that all points will take, at which each endpoint that sends offers so many packets.
fn estimated_hops(request: &TrafficRequest, packets: f64, pattern: &Pattern, layout: &Layout) -> f64 {
    let senders = f64::from(offered::senders(pattern, layout));
    packets * senders * offered::mean_hops(pattern, layout) * request.seeds.len() as f64
}

/// All points, one after another.
struct Curve<'a> {
    request: &'a TrafficRequest,
    options: &'a ExperimentOptions,
    control: Control<'a>,
    machine: &'a Machine,
    layout: &'a Layout,
    rows: Vec<Measured<TrafficRow>>,
    /// Of the point at hand.
    runs: Vec<RunResult>,
    totals: Totals,
    /// Packet-hops that this process has simulated.
    hops: u64,
    timeline: Option<TimelineWriter>,
    /// Virtual time since the state was last saved.
    since_saved: Span,
    /// Until the first point is built.
    preparation: Option<Preparation>,
}

/// The events that sources report, besides sums.
#[derive(Clone, Copy)]
struct Reports {
    messages: bool,
    flows: bool,
}

/// A run that is under way.
struct Simulated {
    run: Run,
    network: Box<Traffic>,
    /// Endpoints that send.
    senders: u32,
    /// The RTL that runs in step with the model.
    rtl: Option<RtlOfRun>,
}

impl Simulated {
    /// The packets that have crossed links, warm-up included.
    fn crossed(&self) -> Crossed {
        self.run.crossed(&*self.network)
    }
}

impl Curve<'_> {
    fn all(
        &mut self,
        points: &[Point],
        saved: Option<Saved>,
        mut results: Option<&mut ResultsWriter>,
    ) -> Result<Conclusion, ExperimentError> {
        let mut resumed = None;
        if let Some(Saved { report, delivered, runs, run, network }) = saved {
            (self.rows, self.totals) = report.read()?;
            self.rows
                .iter_mut()
                .zip(delivered)
                .for_each(|(row, packets)| row.row.packets_delivered = packets);
            self.runs = runs;
            resumed = Some((run, network));
        }
        for point in points.iter().skip(self.rows.len()) {
            let (mut wall, mut hops_of_point, mut build_time) = (0.0, 0, None);
            for number in self.runs.len()..self.request.seeds.len() {
                let stopwatch = Stopwatch::start();
                let wants = |table| results.as_deref().is_some_and(|results| results.wants(table));
                let reports = Reports { messages: wants(Table::Messages), flows: wants(Table::Flows) };
                let mut simulated = self.build(point, number, reports, resumed.take())?;
                self.preparation = None;
                build_time.get_or_insert(stopwatch.seconds());
                let hops_before = simulated.crossed().packet_hops;
                let stopwatch = Stopwatch::start();
                let outcome = self.through(point, &mut simulated, results.as_deref_mut())?;
                wall += stopwatch.seconds();
                let crossed = simulated.crossed();
                let Simulated { run, network, .. } = simulated;
                hops_of_point += crossed.packet_hops - hops_before;
                self.hops += crossed.packet_hops - hops_before;
                self.totals.end = self.totals.end.max(network.now());
                self.totals.messages += run.delivered().messages;
                self.totals.payload += run.delivered().bytes;
                add_crossed(&mut self.totals, &crossed);
                match outcome {
                    Ok(result) => self.runs.push(result),
                    Err(ended) => return Ok(ended),
                }
            }
            let runs = std::mem::take(&mut self.runs);
            self.rows.push(Measured {
                row: row::row(self.request, point, &self.machine.faults, &runs),
                packet_hops_per_second: if wall > 0.0 { hops_of_point as f64 / wall } else { 0.0 },
                build_time_s: build_time.unwrap_or_default(),
                peak_memory_bytes: peak_memory().unwrap_or(0),
            });
        }
        Ok(Ending::Finished.into())
    }

    /// The run of a point with one of the seeds, from its beginning or as it was saved.
    fn build(
        &self,
        point: &Point,
        number: usize,
        reports: Reports,
        resumed: Option<(Run, Vec<u8>)>,
    ) -> Result<Simulated, ExperimentError> {
        let (index, seed) = (point.first_run + number as u32, self.request.seeds[number]);
        let pattern = offered::pattern(self.request, (self.machine, self.layout), seed)?;
        let rtl = self.options.rtl.as_ref().filter(|_| self.request.layer == Layer::Nic);
        let rtl = rtl.map(|rtl| rtl.begin(self.machine, self.layout, index, None)).transpose()?;
        if rtl.is_some() && resumed.is_some() {
            return Err(ExperimentError::input(NoRtlOfSaved));
        }
        let parameters = TrafficParameters {
            pattern: pattern.clone(),
            bytes: point.offered.bytes,
            messages: point.offered.messages,
            interfaces: assembly::processes_per_endpoint(self.machine),
            report_messages: reports.messages || self.request.breakdown,
            report_ways: self.request.breakdown,
            report_flows: reports.flows,
            flows_have_destinations: !pattern.draws_destinations(),
            ports: rtl.as_ref().map(RtlOfRun::ports).unwrap_or_default(),
        };
        let (run, state) = resumed.unzip();
        let arrival = point.offered.arrival();
        let network = NetworkSetup {
            machine: self.machine,
            layout: self.layout.clone(),
            seed,
            threads: self.options.threads as usize,
            saved: state.as_deref(),
            groups: Vec::new(),
            follows_packets: self.options.follows_packets(self.machine)?,
        };
        let network = network
            .with_traffic(parameters, &mut |endpoint| {
                TrafficSource::new(endpoint, arrival.clone(), &pattern, seed)
            })
            .map_err(ExperimentError::input)?;
        let senders = offered::senders(&pattern, self.layout);
        let fresh = || match (point.offered.burst(), point.offered.messages) {
            (Some(time), Some(messages)) => {
                Run::of_messages(index, time, messages * point.offered.deliveries(senders), network.window())
            }
            _ => Run::new(index, self.request.time, self.request.warm_up, network.window()),
        };
        let run = run.unwrap_or_else(|| {
            fresh().with_telemetry(self.request.telemetry.map(|every| self.options.looks(every)))
        });
        let run = if self.request.breakdown { run.with_ways() } else { run };
        run.refuse_too_much_telemetry(&*network)?;
        Ok(Simulated { run, network, senders, rtl })
    }

    /// Takes a run to its end: its result, or why there is none.
    fn through(
        &mut self,
        point: &Point,
        simulated: &mut Simulated,
        mut results: Option<&mut ResultsWriter>,
    ) -> Result<Result<RunResult, Conclusion>, ExperimentError> {
        let seeds = self.request.seeds.len();
        let all = (self.request.sizes.len() * self.request.loads.len() * seeds) as f64;
        let doing = match point.offered.messages {
            Some(messages) => format!("size {}, {messages} messages", point.offered.bytes),
            None => format!("size {}, load {}", point.offered.bytes, point.offered.load),
        };
        loop {
            let before = simulated.network.now();
            let Simulated { run, network, senders, rtl } = &mut *simulated;
            let mut around = Surroundings {
                interrupt: self.control.interrupt,
                results: results.as_deref_mut(),
                timeline: self.timeline.as_mut(),
                check: self.options.check,
                rtl: rtl.as_mut(),
                of: (self.machine, self.layout),
            };
            let step = run.step(&mut **network, &point.offered, *senders, &mut around)?;
            // However the run ends, its waves end too.
            if let (TrafficStep::Interrupted | TrafficStep::Ended(_), Some(rtl)) = (&step, rtl) {
                rtl.close(network.now());
            }
            match step {
                TrafficStep::Epoch => {}
                TrafficStep::Done(result) => return Ok(Ok(*result)),
                TrafficStep::Interrupted => return Ok(Err(Ending::Interrupted.into())),
                TrafficStep::Ended(Conclusion { ended, detail }) => {
                    let detail = format!("{doing}: {}", detail.unwrap_or_default());
                    return Ok(Err(Conclusion::new(ended, detail)));
                }
            }
            let done = (self.rows.len() * seeds + self.runs.len()) as f64 + run.share();
            self.control.progress.advance(done / all, &doing);
            self.since_saved += network.now() - before;
            if let (Some(every), Some(results)) = (self.options.save_every, results.as_deref_mut())
                && self.since_saved >= every
            {
                self.save(run, &mut **network, results)?;
                self.since_saved = Span::ZERO;
            }
        }
    }

    fn save(
        &self,
        run: &mut Run,
        network: &mut Traffic,
        results: &mut ResultsWriter,
    ) -> Result<(), ExperimentError> {
        run.take_flows(network);
        let saved = Saved {
            report: SavedReport::of(&self.rows, &self.totals)?,
            delivered: self.rows.iter().map(|measured| measured.row.packets_delivered).collect(),
            runs: self.runs.clone(),
            run: run.clone(),
            network: network.save().map_err(ExperimentError::input)?,
        };
        let bytes = postcard::to_stdvec(&saved).map_err(ExperimentError::input)?;
        Ok(results.save(&bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a row that is written otherwise than it is read, with counts and energy and without.
    #[test]
    fn rows_survive_a_snapshot() {
        let counts = PacketCounts { dead: 1, full: 2, trimmed: 3, resent: 4, ..PacketCounts::default() };
        let energy = EnergyFigures { wake_ups: 3, ..EnergyFigures::default() };
        for (counts, energy) in [(PacketCounts::default(), None), (counts, Some(energy))] {
            let row = serde_json::json!({
                "run": 0, "size_bytes": 64, "offered_load": 0.1, "accepted_load": 0.1,
                "accepted_load_interval": null, "latency_mean_ns": 1.0, "latency_mean_interval_ns": null,
                "latency_p99_ns": null, "latency_p99_interval_ns": null, "batch_correlation": null,
                "warm_up_us": 1.0, "saturated": false, "limit": Limit::default(), "busiest": Limit::default(),
                "run_time_us": 1.0, "seed": 1, "seeds": 1, "messages": 9, "packet_hops": 36,
            });
            let row: TrafficRow = serde_json::from_value(row).unwrap();
            assert_eq!((row.outages, row.losses), (PacketCounts::default(), PacketCounts::default()));
            let outages = PacketCounts { dead: counts.dead, ..PacketCounts::default() };
            let losses = PacketCounts { dead: 0, ..counts };
            let row = TrafficRow { outages, losses, energy, ..row };
            let measured =
                Measured { row, packet_hops_per_second: 1.0 / 3.0, build_time_s: 0.0, peak_memory_bytes: 0 };
            let totals = Totals { messages: 7, counts, ..Totals::default() };
            let saved = SavedReport::of(&[measured.clone(), measured.clone()], &totals).unwrap();
            let saved: SavedReport = postcard::from_bytes(&postcard::to_stdvec(&saved).unwrap()).unwrap();
            assert_eq!(saved.read().unwrap(), (vec![measured.clone(), measured], totals));
        }
    }
}
