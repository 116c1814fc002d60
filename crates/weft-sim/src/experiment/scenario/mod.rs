//! One scenario of flows under several ways to control congestion: a row for each.
//!
//! ```text
//!   file ──► flows ──┬─► machine with congestion.kind=none ──► row
//!                    ├─► machine with congestion.kind=acc ───► row
//!                    └─► …
//! ```
//! The machine is the same but for `congestion.kind`, and for `fabric.flow_control` where the list says
//! `credits`, `pause` or `drop`: kind none over that flow control. A way that the machine cannot have gives a
//! row that says why.

mod applications;
mod file;
mod saved;
mod transient;

use super::link_table::write_links;
use super::replay::TraceInput;
use super::{
    Control, EnergyFigures, Experiment, ExperimentError, ExperimentOptions, MachineInput, Manifest, Measured,
    Report, Request, add_crossed, machine,
};
use crate::telemetry::Telemetry;
pub use applications::{ApplicationRow, traces};
use applications::{Hosts, flows_by_source};
use file::{NamedClasses, Scenario};
use saved::Saved;
use serde::{Deserialize, Serialize};
pub use transient::Transient;
use transient::Watch;
use weft_assembly as assembly;
use weft_engine::Progress;
use weft_machine::CongestionRule;
use weft_network::{LostData, NetworkSetup, SimulatedNetwork};
use weft_results::{Beginning, Conclusion, Ending, ResultsWriter, Stopwatch, Totals, peak_memory};
use weft_topo::Layout;
use weft_units::{BitRate, Bytes, Span, Time};
use weft_workload::replay::RankFailure;
use weft_workload::scenario::{ScenarioHost, ScenarioOutput, ScenarioParameters};

/// Epochs of a run: between them queues are looked at.
const EPOCHS: u64 = 400;

/// The request of `weft traffic --scenario`. There is a run for each way to control congestion.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScenarioRequest {
    /// The machine.
    pub machine: MachineInput,
    /// The file's name without its folder.
    pub name: String,
    /// Text of the file.
    pub text: String,
    /// The traces of its applications, in their order: see [`traces`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceInput>,
    /// The ways to control congestion, as `--congestion` has them; empty: as the machine says.
    pub congestion: Vec<String>,
    /// Seed of all random decisions.
    pub seed: u64,
    /// The interval of telemetry in picoseconds; `None`: none is written.
    #[serde(default, rename = "telemetry_ps", skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Span>,
}

/// A group of flows in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GroupRow {
    /// The name in the file.
    pub name: String,
    /// `victim`, `aggressor` or `background`.
    pub role: String,
    /// Flows.
    pub flows: u64,
    /// Transfers that came after warm-up.
    pub transfers: u64,
    /// Payload that came after warm-up over the time until the end, all flows together.
    pub throughput_gbps: f64,
    /// From the beginning of a transfer until it is delivered.
    pub latency_mean_us: Option<f64>,
    /// The same, of 99 in 100 transfers at most.
    pub latency_p99_us: Option<f64>,
    /// The same, of 999 in 1,000.
    pub latency_p999_us: Option<f64>,
    /// From the beginning of a flow's first transfer until its last is delivered, the mean of flows with a
    /// number of transfers; `None`: there are none, or some have not ended.
    pub completion_mean_us: Option<f64>,
    /// The longest of these.
    pub completion_max_us: Option<f64>,
    /// Jain's index of the flows' throughputs: 1 where all are equal.
    pub fairness: Option<f64>,
}

/// A scenario under one way to control congestion.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScenarioRow {
    /// The run: the column `run` of the tables.
    pub run: u32,
    /// The way, as it was asked for.
    pub congestion: String,
    /// Why the machine cannot have it; the other fields then say nothing.
    pub refused: Option<String>,
    /// The groups of the file, in its order.
    pub groups: Vec<GroupRow>,
    /// The applications of the file, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationRow>,
    /// After each change of flows, the time until they have their new shares; empty where none changes.
    #[serde(default)]
    pub transients: Vec<Transient>,
    /// The most bytes that a queue of a switch has held at the end of an epoch, a four-hundredth of the time.
    pub queue_max_bytes: u64,
    /// The same of all queues together.
    pub queued_max_bytes: u64,
    /// Time in which senders of links were paused, all links together.
    pub paused_us: f64,
    /// Pause frames that senders have obeyed.
    pub pause_frames: u64,
    /// Packets that found a buffer full.
    pub packets_dropped: u64,
    /// Packets of which a full buffer kept the header alone.
    #[serde(default)]
    pub packets_trimmed: u64,
    /// Packets that their source sent again.
    #[serde(default)]
    pub packets_resent: u64,
    /// Transfers that the interface has given up.
    pub transfers_failed: u64,
    /// Virtual time at the end.
    pub run_time_us: f64,
    /// Links crossed by data packets.
    pub packet_hops: u64,
    /// Energy of the machine; `None`: the machine says nothing of its power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyFigures>,
}

/// The report of `weft traffic --scenario`.
pub type ScenarioReport = Report<ScenarioRow>;

impl Experiment for ScenarioRequest {
    type Row = ScenarioRow;

    fn machine(&self) -> &MachineInput {
        &self.machine
    }

    fn run(
        &self,
        options: &ExperimentOptions,
        control: Control<'_>,
    ) -> Result<ScenarioReport, ExperimentError> {
        let began = Beginning::now();
        options.follows_none("a scenario has no such table")?;
        let ways = self.ways()?;
        let machine = machine::checked(&self.machine)?;
        // The ways change neither endpoints nor links: a mistake of the file is one under all of them.
        let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
        let scenario =
            file::read((&self.name, &self.text), (&layout, &NamedClasses::of(&machine)), self.seed)?;
        check_rates(&self.name, &scenario, link_rate(&machine, &layout))?;
        let wrapped = Request::Scenario(self.clone());
        let (mut results, saved) = options.open::<Saved>(&wrapped)?;
        let (mut done, mut resumed) = (Done::default(), None);
        if let Some(saved) = saved {
            done = Done { rows: saved::read_rows(&saved.rows)?, totals: saved.totals };
            resumed = Some((saved.course, saved.network));
        }
        let mut hops = 0;
        let mut ended = Conclusion::from(Ending::Finished);
        let mut refused = None;
        for (way, run) in ways.iter().zip(0..).skip(done.rows.len()) {
            let stopwatch = Stopwatch::start();
            let of = ways.len() as u32;
            let simulated = Simulated { request: self, options, control, scenario: &scenario, run, of };
            let (course, state) = resumed.take().unzip();
            let course = course.unwrap_or_else(|| simulated.begin());
            let building = Building { threads: options.threads as usize, saved: state.as_deref() };
            let mut build_time_s = 0.0;
            let mut built = || build_time_s = stopwatch.seconds();
            let row = match scenario.applications.is_empty() {
                true => self.network(way, &scenario, building).map(|network| {
                    built();
                    simulated.row(&way.name, network, course, (results.as_mut(), &mut done))
                }),
                false => self.network_with_ranks(way, &scenario, building).map(|network| {
                    built();
                    simulated.row(&way.name, network, course, (results.as_mut(), &mut done))
                }),
            };
            let (row, hops_of_row, conclusion) = match row {
                Ok(row) => row?,
                Err(why) => {
                    let row = ScenarioRow::refused(way, run, &why);
                    refused.get_or_insert(why);
                    (row, 0, Ending::Finished.into())
                }
            };
            hops += hops_of_row;
            let seconds = stopwatch.seconds() - build_time_s;
            done.rows.push(Measured {
                packet_hops_per_second: hops_of_row as f64 / seconds.max(1e-9),
                build_time_s,
                peak_memory_bytes: peak_memory().unwrap_or(0),
                row,
            });
            if conclusion.ended != Ending::Finished {
                ended = conclusion;
                break;
            }
        }
        let Done { rows, totals } = done;
        // Where the machine can have none of the ways there is nothing to compare.
        if let Some(why) = refused
            && rows.iter().all(|measured| measured.row.refused.is_some())
        {
            return Err(why);
        }
        let performance = options.performance(&began, hops);
        let Conclusion { ended, detail } = ended;
        if let Some(results) = results {
            let mut manifest = Manifest::new(wrapped, machine::described(&machine), ended, totals);
            manifest.assumed = machine::assumed(&machine);
            manifest.detail = detail.clone();
            let value = |measured: &Measured<ScenarioRow>| serde_json::to_value(&measured.row);
            manifest.rows =
                rows.iter().map(value).collect::<Result<_, _>>().map_err(ExperimentError::input)?;
            results.finish(manifest, performance.clone())?;
        }
        Ok(Report { ended, detail, rows, performance })
    }
}

/// A way to control congestion: its name, and the machine with it.
struct Way {
    name: String,
    machine: MachineInput,
}

impl ScenarioRequest {
    fn ways(&self) -> Result<Vec<Way>, ExperimentError> {
        if self.congestion.is_empty() {
            let name = "as the machine".to_owned();
            return Ok(vec![Way { name, machine: self.machine.clone() }]);
        }
        let way = |name: &String| {
            let mut machine = self.machine.clone();
            let kinds = CongestionRule::NAMES.map(|(name, _)| name);
            if kinds.contains(&name.as_str()) {
                machine.sets.push(format!("congestion.kind={name}"));
            } else if ["credits", "pause", "drop"].contains(&name.as_str()) {
                machine.sets.push("congestion.kind=none".to_owned());
                machine.sets.push(format!("fabric.flow_control={name}"));
            } else {
                return Err(ExperimentError::input(format!(
                    "--congestion: there is no `{name}`; there are {}, and over other flow control, without \
                     an algorithm, credits, pause, drop",
                    kinds.join(", ")
                )));
            }
            Ok(Way { name: name.clone(), machine })
        };
        self.congestion.iter().map(way).collect()
    }

    /// The network under one way.
    ///
    /// # Errors
    /// A machine that cannot have it.
    fn network(
        &self,
        way: &Way,
        scenario: &Scenario,
        Building { threads, saved }: Building<'_>,
    ) -> Result<Box<dyn SimulatedNetwork<ScenarioHost>>, ExperimentError> {
        let machine = machine::checked(&way.machine)?;
        let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
        let parameters = ScenarioParameters { flows: scenario.flows.clone(), counted_from: scenario.warm_up };
        let by_source = flows_by_source(scenario);
        let mut host = |endpoint| {
            let flows = by_source.get(&endpoint).map_or(&[][..], Vec::as_slice);
            ScenarioHost::new(flows, self.seed)
        };
        let setup = NetworkSetup { threads, saved, ..NetworkSetup::new(&machine, layout, self.seed) };
        setup.with_scenario(parameters, &mut host).map_err(ExperimentError::input)
    }
}

impl ScenarioRow {
    fn refused(way: &Way, run: u32, error: &ExperimentError) -> ScenarioRow {
        ScenarioRow {
            run,
            congestion: way.name.clone(),
            refused: Some(error.to_string()),
            groups: Vec::new(),
            applications: Vec::new(),
            transients: Vec::new(),
            queue_max_bytes: 0,
            queued_max_bytes: 0,
            paused_us: 0.0,
            pause_frames: 0,
            packets_dropped: 0,
            packets_trimmed: 0,
            packets_resent: 0,
            transfers_failed: 0,
            run_time_us: 0.0,
            packet_hops: 0,
            energy: None,
        }
    }
}

/// How a network is built: on so many threads, from its beginning or as it was saved.
#[derive(Clone, Copy)]
struct Building<'a> {
    threads: usize,
    saved: Option<&'a [u8]>,
}

/// The runs that are done.
#[derive(Default)]
struct Done {
    rows: Vec<Measured<ScenarioRow>>,
    totals: Totals,
}

/// A run that is to be made.
struct Simulated<'a> {
    request: &'a ScenarioRequest,
    options: &'a ExperimentOptions,
    control: Control<'a>,
    scenario: &'a Scenario,
    run: u32,
    /// The number of runs.
    of: u32,
}

/// The highest that queues have stood.
#[derive(Default, Serialize, Deserialize)]
struct HighWater {
    one: u64,
    all: u64,
}

/// The state that a run has gathered beside its network.
#[derive(Serialize, Deserialize)]
struct Course {
    /// Epochs that are over.
    epochs: u64,
    output: ScenarioOutput,
    high: HighWater,
    watch: Option<Watch>,
    telemetry: Option<Telemetry>,
}

impl Simulated<'_> {
    /// The course of a run that begins.
    fn begin(&self) -> Course {
        let telemetry = self.request.telemetry.map(|interval| Telemetry::new(self.run, interval));
        Course {
            epochs: 0,
            output: ScenarioOutput::default(),
            high: HighWater::default(),
            watch: Watch::begin(self.scenario),
            telemetry,
        }
    }

    /// Takes a run to its end: its row, the packet-hops that this process has simulated, how it ends.
    fn row<H: Hosts>(
        &self,
        congestion: &str,
        mut network: Box<dyn SimulatedNetwork<H>>,
        mut course: Course,
        (mut results, done): (Option<&mut ResultsWriter>, &mut Done),
    ) -> Result<(ScenarioRow, u64, Conclusion), ExperimentError> {
        let scenario = self.scenario;
        if let Some(telemetry) = course.telemetry.as_ref().filter(|_| !self.options.is_forced()) {
            telemetry.refuse_too_much(&*network, scenario.time - Time::ZERO)?;
        }
        let hops_before = network.crossed().packet_hops;
        let mut saved_at = network.now();
        let mut conclusion = Conclusion::from(Ending::Finished);
        let doing = format!("congestion {congestion}");
        for epoch in course.epochs + 1..=EPOCHS {
            let share = (epoch - 1) as f64 / EPOCHS as f64;
            self.control.progress.advance((f64::from(self.run) + share) / f64::from(self.of), &doing);
            let Course { output, high, watch, telemetry, .. } = &mut course;
            let until = Time::from_ps(scenario.time.as_ps() / EPOCHS * epoch).min(scenario.time);
            let until = if epoch == EPOCHS { scenario.time } else { until };
            let flag = self.control.interrupt.flag();
            let progress = match (&mut *telemetry, results.as_deref_mut()) {
                (Some(telemetry), Some(results)) => {
                    telemetry.run_until(&mut *network, until, flag, results)?
                }
                _ => network.run_until(until, flag),
            };
            let mut fault = None;
            network.visit_outputs(&mut |part| {
                H::take(part, output);
                // The first of all, whatever partition has it.
                fault = [fault.take(), H::fault(part)].into_iter().flatten().min();
            });
            if let Some(RankFailure { trace, rank, position, reason, .. }) = fault {
                let what = format!("{trace}: rank {rank}, operation {position}: {reason}");
                conclusion = Conclusion::new(Ending::LostData, what);
                break;
            }
            if let Some(watch) = watch {
                watch.look(&*network, until);
            }
            if let Some(end) = self.looked(&mut *network, progress, high) {
                conclusion = end;
                break;
            }
            if progress == Progress::Dry {
                conclusion = applications::standstill(scenario, &*network).unwrap_or(conclusion);
                break;
            }
            let ranks = applications::ranks(&*network);
            if !ranks.is_empty() && ranks.iter().all(|rank| rank.finished) {
                break;
            }
            course.epochs = epoch;
            if let (Some(every), Some(results)) = (self.options.save_every, results.as_deref_mut())
                && until.saturating_since(saved_at) >= every
            {
                saved::save(done, &course, &mut *network, results)?;
                saved_at = until;
            }
        }
        let Course { output, high, watch, mut telemetry, .. } = course;
        let totals = &mut done.totals;
        let end = network.now().min(scenario.time);
        if let Some(results) = results {
            if let Some(telemetry) = &mut telemetry {
                telemetry.finish(&*network, end, results)?;
            }
            write_links(self.run, &*network, end - Time::ZERO, results)?;
            results.epoch()?;
        }
        let crossed = network.crossed();
        totals.end = totals.end.max(end);
        totals.messages += output.flows.values().map(|flow| flow.transfers).sum::<u64>();
        let delivered = Bytes::new(output.flows.values().map(|flow| flow.bytes).sum());
        totals.payload += delivered;
        // Energy is that of warm-up and of applications too, of which nobody counts what was delivered.
        let counts_all = scenario.warm_up == Time::ZERO && scenario.applications.is_empty();
        add_crossed(totals, &crossed);
        let mut row = ScenarioRow {
            run: self.run,
            congestion: congestion.to_owned(),
            refused: None,
            groups: groups(scenario, &output, end),
            applications: applications::rows(scenario, &applications::ranks(&*network)),
            transients: watch.map_or_else(Vec::new, |watch| watch.transients(end)),
            queue_max_bytes: high.one,
            queued_max_bytes: high.all,
            paused_us: 0.0,
            pause_frames: 0,
            packets_dropped: crossed.faults.full,
            packets_trimmed: crossed.faults.trimmed,
            packets_resent: crossed.faults.resent,
            transfers_failed: output.failed,
            run_time_us: (end - Time::ZERO).as_us_f64(),
            packet_hops: crossed.packet_hops,
            energy: EnergyFigures::of(&crossed.energy, if counts_all { delivered } else { Bytes::ZERO }),
        };
        network.visit_links(&mut |link| {
            row.paused_us += link.paused.as_us_f64();
            row.pause_frames += link.pause_frames;
        });
        Ok((row, crossed.packet_hops - hops_before, conclusion))
    }

    /// Looks at the network at the end of an epoch: how the run ends, if it does.
    fn looked<H: Hosts>(
        &self,
        network: &mut dyn SimulatedNetwork<H>,
        progress: Progress,
        high: &mut HighWater,
    ) -> Option<Conclusion> {
        if progress == Progress::Interrupted {
            return Some(Ending::Interrupted.into());
        }
        let mut all = 0;
        network.visit_queues(&mut |queue| {
            all += queue.held.get();
            high.one = high.one.max(queue.held.get());
        });
        high.all = high.all.max(all);
        if self.options.check
            && let Err(LostData(what)) = network.check()
        {
            return Some(Conclusion::new(Ending::LostData, what));
        }
        if let Some(overrun) = network.overrun() {
            return Some(Conclusion::new(Ending::LostData, overrun));
        }
        network.stuck().map(|stuck| super::conclusion(&stuck))
    }
}

/// The rate of the fastest link.
fn link_rate(machine: &weft_machine::Machine, layout: &Layout) -> Option<BitRate> {
    assembly::links(machine, layout)?.iter().map(|link| link.rate).max()
}

/// Rates that a host cannot offer are refused.
fn check_rates(name: &str, scenario: &Scenario, link: Option<BitRate>) -> Result<(), ExperimentError> {
    let Some(link) = link else { return Ok(()) };
    match file::oversubscribed(scenario, link) {
        Some((endpoint, sum)) => Err(ExperimentError::input(format!(
            "{name}: the flows of endpoint {} have rates of {sum} in all, and no link carries more than \
             {link}; lower `rate`, or spread them over more endpoints",
            endpoint.0
        ))),
        None => Ok(()),
    }
}

/// The rows of groups.
fn groups(scenario: &Scenario, output: &ScenarioOutput, end: Time) -> Vec<GroupRow> {
    let micros = |span: Option<Span>| span.map(|span| span.as_us_f64());
    let measured = end.saturating_since(scenario.warm_up);
    let gbps =
        |bytes: u64| if measured == Span::ZERO { 0.0 } else { bytes as f64 * 8e-3 / measured.as_us_f64() };
    let of_group = |number: usize| {
        let group = &scenario.groups[number];
        let plans = scenario.flows.iter().zip(0u32..).filter(move |(plan, _)| plan.group as usize == number);
        let tallies: Vec<_> =
            plans.map(|(plan, flow)| (plan, output.flows.get(&flow).copied().unwrap_or_default())).collect();
        let rates: Vec<f64> = tallies.iter().map(|(_, tally)| gbps(tally.bytes)).collect();
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
        let ends = tallies.iter().map(|(plan, tally)| {
            let is_whole = plan.transfers.is_some_and(|transfers| tally.transfers >= transfers);
            tally.first.filter(|_| is_whole).map(|first| (tally.last - first).as_us_f64())
        });
        let ends: Option<Vec<f64>> = ends.collect();
        let latency = output.latency.get(&(number as u32));
        GroupRow {
            name: group.name.clone(),
            role: group.role.clone(),
            flows: tallies.len() as u64,
            transfers: tallies.iter().map(|(_, tally)| tally.transfers).sum(),
            throughput_gbps: sum,
            latency_mean_us: micros(latency.and_then(|latency| latency.mean())),
            latency_p99_us: micros(latency.and_then(|latency| latency.percentile(99))),
            latency_p999_us: micros(latency.and_then(|latency| latency.per_mille(999))),
            completion_mean_us: ends.as_ref().map(|ends| ends.iter().sum::<f64>() / ends.len().max(1) as f64),
            completion_max_us: ends.as_ref().map(|ends| ends.iter().copied().fold(0.0, f64::max)),
            fairness: (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares)),
        }
    };
    (0..scenario.groups.len()).map(of_group).collect()
}
