//! One scenario of flows under several ways to control congestion: a run for each way, a row for each group.
//!
//! ```text
//!   file ──► flows ──┬─► machine with congestion.kind=none ──► a row for each group and application
//!                    ├─► machine with congestion.kind=acc ───► likewise
//!                    └─► …
//! ```
//! The machine is the same but for `congestion.kind`, and for `fabric.flow_control` where the list says
//! `credits`, `pause` or `drop`: kind none over that flow control. A way that the machine cannot have gives a
//! row that says why.

mod applications;
mod beside;
mod file;
mod row;
mod saved;
mod services;
mod throughput;
mod transfers;
mod transient;

use super::link_table::write_links;
use super::packet_table::PacketTable;
use super::replay::TraceInput;
use super::{
    Control, EnergyFigures, Experiment, ExperimentError, ExperimentOptions, ExperimentRun, Findings,
    MachineInput, Measured, Report, Request, add_crossed, machine,
};
use crate::telemetry::Telemetry;
use applications::Ranks;
pub use applications::{ApplicationFigures, traces};
pub(crate) use beside::GroupOutputs;
use beside::HostsBeside;
pub use beside::{BesideRanks, GroupRow, ScenarioFile};
use file::{OnMachine, Scenario};
pub use row::{Figures, FlowFigures, RunFigures, ScenarioRow};
use saved::Saved;
use serde::{Deserialize, Serialize};
pub use services::{ClientFigures, ServiceFigures};
use transfers::Transfers;
pub use transient::Transient;
use transient::Watch;
use weft_assembly as assembly;
use weft_engine::Progress;
use weft_machine::{CongestionKind, FaultRule};
use weft_network::{LostData, NetworkSetup, SimulatedNetwork};
use weft_results::{Conclusion, Ending, ResultsWriter, Stopwatch, Totals};
use weft_units::memory::peak_memory;
use weft_units::{Bytes, Span, Time};
use weft_workload::host::{NoRanks, SharedHost, SharedParameters};
use weft_workload::replay::RankFailure;

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

/// Flow control that stands for kind none over it.
const FLOW_CONTROLS: [&str; 3] = ["credits", "pause", "drop"];

/// The names of all ways to control congestion.
pub fn ways() -> impl Iterator<Item = &'static str> {
    CongestionKind::ALL.map(CongestionKind::name).into_iter().chain(FLOW_CONTROLS)
}

/// The report of `weft traffic --scenario`.
pub type ScenarioReport = Report<ScenarioRow>;

impl Experiment for ScenarioRequest {
    type Row = ScenarioRow;

    fn machine(&self) -> &MachineInput {
        &self.machine
    }

    fn request(&self) -> Request {
        Request::Scenario(self.clone())
    }

    fn findings(&self, experiment: &mut ExperimentRun<'_>) -> Result<Findings<ScenarioRow>, ExperimentError> {
        let &mut ExperimentRun { machine, options, control, .. } = experiment;
        let ways = self.ways()?;
        // The ways change neither endpoints nor links: a mistake of the file is one under all of them.
        let layout = assembly::layout(machine).map_err(ExperimentError::input)?;
        let scenario = file::read((&self.name, &self.text), &OnMachine::of(machine, &layout), self.seed)?;
        if scenario.flows.is_empty() && scenario.applications.is_empty() && scenario.clients.is_empty() {
            let mend = "add [[flows]], [[applications]], or [[services]] and [[clients]]";
            return Err(ExperimentError::input(format!("{}: there are no flows; {mend}", self.name)));
        }
        let follows_packets = options.follows_packets(machine)?;
        let saved = experiment.open::<Saved<Course>>(&layout, None, &[])?;
        drop(experiment.preparation.take());
        let results = &mut experiment.writer;
        let (mut done, mut resumed) = (Done::default(), None);
        if let Some(saved) = saved {
            let (rows, totals) = saved.report.read()?;
            done = Done { runs: saved.runs, rows, totals };
            resumed = Some((saved.course, saved.network));
        }
        let mut hops = 0;
        let mut ended = Conclusion::from(Ending::Finished);
        let mut refused = None;
        for (way, run) in ways.iter().zip(0..).skip(done.runs) {
            let stopwatch = Stopwatch::start();
            let of = ways.len() as u32;
            let (scenario, faults) = (&scenario, &machine.faults[..]);
            let simulated = Simulated { request: self, options, control, scenario, faults, run, of };
            let (course, state) = resumed.take().unzip();
            let course = course.unwrap_or_else(|| simulated.begin());
            let building = Building {
                threads: options.threads as usize,
                saved: state.as_deref(),
                report_transfers: Transfers::are_wanted(results.as_ref()),
                follows_packets,
            };
            let mut build_time_s = 0.0;
            let mut built = || build_time_s = stopwatch.seconds();
            let rows = match scenario.applications.is_empty() {
                true => self.network(way, scenario, building).map(|network| {
                    built();
                    simulated.rows(&way.name, network, course, (results.as_mut(), &mut done))
                }),
                false => self.network_with_ranks(way, scenario, building).map(|network| {
                    built();
                    simulated.rows(&way.name, network, course, (results.as_mut(), &mut done))
                }),
            };
            let (rows, hops_of_run, conclusion) = match rows {
                Ok(rows) => rows?,
                Err(why) => {
                    let row = ScenarioRow::refused(way, run, &why);
                    refused.get_or_insert(why);
                    (vec![row], 0, Ending::Finished.into())
                }
            };
            hops += hops_of_run;
            let seconds = stopwatch.seconds() - build_time_s;
            done.runs += 1;
            done.rows.extend(rows.into_iter().map(|row| Measured {
                packet_hops_per_second: hops_of_run as f64 / seconds.max(1e-9),
                build_time_s,
                peak_memory_bytes: peak_memory().unwrap_or(0),
                row,
            }));
            if conclusion.ended != Ending::Finished {
                ended = conclusion;
                break;
            }
        }
        let Done { rows, totals, .. } = done;
        // Where the machine can have none of the ways there is nothing to compare.
        if let Some(why) = refused
            && rows.iter().all(|measured| measured.row.refused.is_some())
        {
            return Err(why);
        }
        let performance = experiment.performance(hops);
        Ok(Findings {
            conclusion: ended,
            rows,
            totals,
            beside: Vec::new(),
            explained: Vec::new(),
            performance,
        })
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
            let kinds = CongestionKind::ALL.map(CongestionKind::name);
            if kinds.contains(&name.as_str()) {
                machine.sets.push(format!("congestion.kind={name}"));
            } else if FLOW_CONTROLS.contains(&name.as_str()) {
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
        building: Building<'_>,
    ) -> Result<Box<dyn SimulatedNetwork<SharedHost<NoRanks>>>, ExperimentError> {
        let machine = machine::checked(&way.machine)?;
        let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
        let users = assembly::InterfaceUsers { ranks: 0, beside: scenario.interfaces() };
        assembly::check_interfaces(&machine, users).map_err(ExperimentError::input)?;
        let beside = scenario.parameters(0, building.report_transfers);
        let parameters = SharedParameters { ranks: (), beside };
        let mut beside = HostsBeside::new(scenario, self.seed);
        let mut host = |endpoint| beside.put(NoRanks, endpoint);
        let Building { threads, saved, follows_packets, .. } = building;
        let setup = NetworkSetup {
            threads,
            saved,
            follows_packets,
            ..NetworkSetup::new(&machine, layout, self.seed)
        };
        setup.without_ranks(parameters, &mut host).map_err(ExperimentError::input)
    }
}

/// How a network is built: on so many threads, from its beginning or as it was saved.
#[derive(Clone, Copy)]
struct Building<'a> {
    threads: usize,
    saved: Option<&'a [u8]>,
    /// Whether tables want every transfer.
    report_transfers: bool,
    /// Whether tables want every packet.
    follows_packets: bool,
}

/// The runs that are done.
#[derive(Default)]
struct Done {
    runs: usize,
    rows: Vec<Measured<ScenarioRow>>,
    totals: Totals,
}

/// A run that is to be made.
struct Simulated<'a> {
    request: &'a ScenarioRequest,
    options: &'a ExperimentOptions,
    control: Control<'a>,
    scenario: &'a Scenario,
    /// The machine's, the same under every way.
    faults: &'a [FaultRule],
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
    gathered: GroupOutputs,
    /// Time in which links had been off at the end of warm-up; `None`: it goes on.
    off_in_warm_up: Option<Span>,
    transfers: Transfers,
    high: HighWater,
    watch: Option<Watch>,
    telemetry: Option<Telemetry>,
    /// Hops that are not in the table of packets yet. Such a run is not saved.
    #[serde(skip)]
    packets: PacketTable,
}

impl Simulated<'_> {
    /// The course of a run that begins.
    fn begin(&self) -> Course {
        let telemetry =
            self.request.telemetry.map(|every| Telemetry::new(self.run, self.options.looks(every)));
        Course {
            epochs: 0,
            gathered: GroupOutputs::default(),
            off_in_warm_up: None,
            transfers: Transfers::default(),
            high: HighWater::default(),
            watch: Watch::begin(self.scenario),
            telemetry,
            packets: PacketTable::default(),
        }
    }

    /// Takes a run to its end: its rows, the packet-hops that this process has simulated, how it ends.
    fn rows<R: Ranks>(
        &self,
        congestion: &str,
        mut network: Box<dyn SimulatedNetwork<SharedHost<R>>>,
        mut course: Course,
        (mut results, done): (Option<&mut ResultsWriter>, &mut Done),
    ) -> Result<(Vec<ScenarioRow>, u64, Conclusion), ExperimentError> {
        let scenario = self.scenario;
        if let Some(telemetry) = &course.telemetry {
            telemetry.refuse_too_much(&*network, scenario.time - Time::ZERO)?;
        }
        // When all that there is to do has been done, that is the end, and not that of the epoch.
        network.stand_when_dry();
        let hops_before = network.crossed().packet_hops;
        let mut saved_at = network.now();
        let mut conclusion = Conclusion::from(Ending::Finished);
        let doing = format!("congestion {congestion}");
        for epoch in course.epochs + 1..=EPOCHS {
            let share = (epoch - 1) as f64 / EPOCHS as f64;
            self.control.progress.advance((f64::from(self.run) + share) / f64::from(self.of), &doing);
            let until = Time::from_ps(scenario.time.as_ps() / EPOCHS * epoch).min(scenario.time);
            let until = if epoch == EPOCHS { scenario.time } else { until };
            if course.off_in_warm_up.is_none() && scenario.warm_up <= until {
                self.advance(&mut *network, scenario.warm_up, &mut course, results.as_deref_mut())?;
                course.gathered.end_warm_up(&*network);
                course.off_in_warm_up = Some(network.crossed().counts.off);
            }
            let (progress, fault) =
                self.advance(&mut *network, until, &mut course, results.as_deref_mut())?;
            if let Some(RankFailure { trace, rank, position, reason, .. }) = fault {
                let what = format!("{trace}: rank {rank}, operation {position}: {reason}");
                conclusion = Conclusion::new(Ending::LostData, what);
                break;
            }
            if let Some(watch) = &mut course.watch {
                watch.look(&*network, until);
            }
            if let Some(end) = self.looked(&mut *network, progress, &mut course.high) {
                conclusion = end;
                break;
            }
            if progress == Progress::Dry {
                conclusion = applications::standstill(scenario, &*network).unwrap_or(conclusion);
                break;
            }
            let ranks = applications::ranks(&*network);
            // A rank that computes last has told its end ahead of it.
            if !ranks.is_empty() && ranks.iter().all(|rank| rank.finished && rank.end <= until) {
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
        let Course { mut gathered, off_in_warm_up, mut transfers, high, watch, .. } = course;
        let Course { mut telemetry, mut packets, .. } = course;
        let totals = &mut done.totals;
        gathered.end(&*network);
        let end = gathered.end_time(scenario, network.now());
        if let Some(results) = results {
            transfers.write((self.run, Time::NEVER), &mut Vec::new(), scenario, results)?;
            transfers.finish(self.run, scenario, results)?;
            packets.write(self.run, Time::NEVER, results)?;
            if let Some(telemetry) = &mut telemetry {
                telemetry.finish(&*network, end, results)?;
            }
            write_links(self.run, &*network, end - Time::ZERO, results)?;
            results.epoch()?;
        }
        let crossed = network.crossed();
        let off_in_warm_up = off_in_warm_up.unwrap_or(crossed.counts.off);
        totals.end = totals.end.max(end);
        totals.messages += gathered.messages();
        let payload = gathered.payload();
        totals.payload += payload;
        // Energy is that of applications too, of which nobody counts what was delivered.
        let delivered = if scenario.applications.is_empty() { payload } else { Bytes::ZERO };
        add_crossed(totals, &crossed);
        let mut of_run = RunFigures {
            transients: watch.map_or_else(Vec::new, |watch| watch.transients(end)),
            queue_max_bytes: high.one,
            queued_max_bytes: high.all,
            paused_us: 0.0,
            pause_frames: 0,
            losses: crossed.counts,
            transfers_failed: gathered.flows.failed,
            links_off_us: crossed.counts.off.as_us_f64(),
            links_off_in_warm_up_us: off_in_warm_up.as_us_f64(),
            outages_after_end: machine::outages_after(self.faults, end),
            run_time_us: (end - Time::ZERO).as_us_f64(),
            packet_hops: crossed.packet_hops,
            energy: EnergyFigures::of(&crossed.energy, delivered),
        };
        network.visit_links(&mut |link| {
            of_run.paused_us += link.paused.as_us_f64();
            of_run.pause_frames += link.pause_frames;
        });
        let (of_flows, of_services) = gathered.figures(scenario, end);
        let of_applications = applications::figures(scenario, &applications::ranks(&*network)).into_iter();
        let of_applications = of_applications.map(Figures::Application);
        let all = of_flows.into_iter().chain(of_applications).chain(of_services);
        let rows = scenario.all_groups().zip(all).map(|(group, figures)| ScenarioRow {
            run: self.run,
            congestion: congestion.to_owned(),
            refused: None,
            group: Some(group.name.clone()),
            role: Some(group.role.clone()),
            figures: Some(figures),
            of_run: Some(of_run.clone()),
        });
        Ok((rows.collect(), crossed.packet_hops - hops_before, conclusion))
    }

    /// Runs the network until a time, and takes what its hosts have to report: how far it came, and the first
    /// fault of a rank.
    fn advance<R: Ranks>(
        &self,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
        until: Time,
        course: &mut Course,
        mut results: Option<&mut ResultsWriter>,
    ) -> Result<(Progress, Option<RankFailure>), ExperimentError> {
        let Course { gathered, transfers, telemetry, packets, .. } = course;
        let flag = self.control.interrupt.flag();
        let progress = match (telemetry, results.as_deref_mut()) {
            (Some(telemetry), Some(results)) => telemetry.run_until(network, until, flag, results)?,
            _ => network.run_until(until, flag),
        };
        let mut fault = None;
        network.visit_outputs(&mut |part| {
            gathered.take(part);
            packets.take(R::hops(&mut part.ranks));
            R::hops(&mut part.ranks).clear();
            // The first of all, whatever partition has it.
            fault = [fault.take(), R::fault(&part.ranks)].into_iter().flatten().min();
        });
        if let Some(results) = results {
            transfers.write((self.run, until), &mut gathered.flows.transfers, self.scenario, results)?;
            packets.write(self.run, until, results)?;
            results.epoch()?;
        }
        Ok((progress, fault))
    }

    /// Looks at the network at the end of an epoch: how the run ends, if it does.
    fn looked<R: Ranks>(
        &self,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
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
