//! Real programs on a machine: what is asked for, and the results of it.
//!
//! ```text
//!   RunRequest ──► LiveAccount::open ──► epoch ──► epoch ──► … ──► finish ──► tables, run.json, RunReport
//!                                          │ written, drawn, recorded
//! ```
//! Who runs the processes hands over the network at every epoch; the account is kept as that of simulated
//! ranks. Such a run cannot be run again by its request alone: so its critical path is recorded as it goes
//! and explained at its end.

use super::explain::{DEFAULT_TOP, Explained, RecordedRun, explained, explained_region, last_to_finish};
use super::findings::Findings;
use super::kernels::{KernelLimit, KernelTime};
use super::path::{Names, pace};
use super::ranks::{Account, Breakdown, Busiest, Drawing, Shared, Tally, call_figures, figures};
use super::replay::{Figures, Mapping};
use super::scenario::{BesideRanks, ScenarioFile};
use super::{
    EnergyFigures, ExperimentError, ExperimentOptions, MachineInput, Measured, Report, Request, add_crossed,
};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_engine::Progress;
use weft_machine::Machine;
use weft_network::{LinkUse, SimulatedNetwork};
use weft_nic::edge_form::PortUse;
use weft_results::{Beginning, Conclusion, Ending, ResultsWriter, Table, Totals};
use weft_topo::Layout;
use weft_trace::Region;
use weft_units::{Span, Time};
use weft_workload::host::{RankHost, SharedHost};
use weft_workload::replay::{CallReport, Finish, RankReport, ReplayOutput, Seating, Wanted};

/// The column `run` of the tables.
const RUN: u32 = 0;
/// Memory that the record of the critical path may take. Beyond it, the record begins anew.
const RECORD_BYTES: usize = 1 << 30;

/// The request of `weft run`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunRequest {
    /// The machine.
    pub machine: MachineInput,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Ranks.
    pub ranks: u32,
    /// The mapping of ranks to places.
    pub map: Mapping,
    /// Ranks per host; `None`: the host's cores.
    pub ranks_per_host: Option<u32>,
    /// How computation moves clocks.
    pub host: String,
    /// Whether a rank that polls in vain waits until something comes.
    pub fast_polling: bool,
    /// Of the random mapping and of the machine's random decisions.
    pub seed: u64,
    /// The protection domains that the job is given, of which the first is its own; none: the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<u16>,
    /// Whether the time of each message is broken down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub breakdown: bool,
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

/// The row of a real program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunRow {
    /// The column `run` of the tables.
    pub run: u32,
    /// The program's file name.
    pub program: String,
    /// The figures of its ranks.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The report of `weft run`.
pub type RunReport = Report<RunRow>;

/// The ranks of a run that has ended.
pub struct RanksAtEnd<'a> {
    /// The ranks, in order.
    pub ranks: &'a [RankReport],
    /// The ends of those that came to their end, and how far the others have come, in order.
    pub finishes: Vec<Finish>,
    /// The calls of the ranks, in order.
    pub calls: Vec<CallReport>,
    /// Times of the kernels of dataflow designs, by rank.
    pub kernels: Vec<KernelTime>,
    /// How the run ended.
    pub conclusion: Conclusion,
}

/// The account of a real program.
pub struct LiveAccount {
    request: RunRequest,
    options: ExperimentOptions,
    account: Account,
    writer: Option<ResultsWriter>,
    drawing: Option<Drawing>,
    /// Since when the critical path is recorded; `None`: it is not.
    recorded_from: Option<Time>,
    began: Beginning,
    /// Events that had been handled when the account was last written.
    events: u64,
}

impl LiveAccount {
    /// Opens the results that `options` ask for, for ranks that sit there.
    ///
    /// # Errors
    /// A directory or a timeline that cannot be written.
    pub fn open(
        request: RunRequest,
        options: ExperimentOptions,
        seating: Seating,
        (machine, layout): (&Machine, &Layout),
    ) -> Result<LiveAccount, ExperimentError> {
        let mut writer = match &options.output {
            Some(output) => Some(output.open(&Request::Run(request.clone()))?.0),
            None => None,
        };
        if let Some(writer) = writer.as_mut().filter(|_| options.live) {
            writer.go_live()?;
        }
        let mut drawing = options.timeline.as_deref().map(Drawing::create).transpose()?;
        let names = vec![name(&request)];
        if let Some(drawing) = &mut drawing {
            drawing.name_tracks(&seating, &names, layout)?;
        }
        let recorded_from = (writer.is_some() || request.breakdown).then_some(Time::ZERO);
        let mut account = Account::new(RUN, names, seating, Tally::default());
        let rtl = options.rtl.as_ref().map(|rtl| rtl.begin(machine, layout, RUN, None));
        account.put_rtl(rtl.transpose()?);
        if writer.is_some() {
            account.record_path();
        }
        if let Some(region) = request.region {
            account.count_region(region);
        }
        if request.breakdown {
            account.break_down(Breakdown::new(RUN, machine.clone(), layout.clone()));
        }
        if let Some(every) = request.telemetry {
            account.watch_links(options.looks(every), None);
        }
        if let Some(file) = &request.scenario {
            account.put_beside(file.beside(machine, layout, request.seed)?);
        }
        let began = Beginning::now();
        Ok(LiveAccount { request, options, account, writer, drawing, recorded_from, began, events: 0 })
    }

    /// Which ranks there are, and where.
    pub fn seating(&self) -> &Seating {
        self.account.seating()
    }

    /// Flows, services and clients beside the ranks.
    pub fn beside(&self) -> Option<&BesideRanks> {
        self.account.beside()
    }

    /// The events that ranks are to report, besides sums.
    pub fn wanted(&self) -> Wanted {
        let wants = |table| self.writer.as_ref().is_some_and(|writer| writer.wants(table));
        Wanted {
            messages: wants(Table::Messages) || self.request.breakdown || self.request.region.is_some(),
            flows: wants(Table::Flows),
            timeline: self.drawing.is_some(),
            regions: self.request.region.is_some(),
        }
    }

    /// The use of the ports of packetizers and mailboxes.
    pub fn ports(&self) -> PortUse {
        self.account.ports()
    }

    /// Whether the critical path is to be recorded.
    pub fn records(&self) -> bool {
        self.recorded_from.is_some()
    }

    /// Whether each link is told of that a packet crosses.
    ///
    /// # Errors
    /// The machine has none.
    pub fn follows_packets(&self, machine: &Machine) -> Result<bool, ExperimentError> {
        self.options.follows_packets(machine)
    }

    /// Leaves out the critical path, which cannot be recorded in this run.
    pub fn leave_out_path(&mut self) {
        self.recorded_from = None;
        drop(self.account.take_path());
    }

    /// The end of the present epoch.
    pub fn epoch_end(&self) -> Time {
        self.account.epoch_end()
    }

    /// Runs the network up to a time, with telemetry on the way where it is wanted.
    ///
    /// # Errors
    /// Results that cannot be written.
    pub fn run_until<R: RankHost>(
        &mut self,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
        until: Time,
        interrupt: &AtomicBool,
    ) -> Result<Progress, ExperimentError> {
        Ok(self.account.run_until(network, until, interrupt, self.writer.as_mut())?)
    }

    /// Virtual time has come to the end of the epoch. Says whether the record of the critical path is to
    /// begin anew.
    ///
    /// # Errors
    /// Results that cannot be written, and with [`ExperimentOptions::check`] whatever is lost.
    pub fn epoch<R: RankHost<Output = ReplayOutput>>(
        &mut self,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
    ) -> Result<bool, ExperimentError> {
        self.take(network)?;
        self.account.next_epoch(self.writer.as_mut())?;
        let anew = self.account.path_bytes() > RECORD_BYTES;
        if anew {
            if self.account.end_path(self.writer.as_mut())?.is_none() {
                drop(self.account.take_path());
            }
            self.account.record_path();
            self.recorded_from = Some(network.now());
        }
        Ok(anew)
    }

    fn take<R: RankHost<Output = ReplayOutput>>(
        &mut self,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
    ) -> Result<(), ExperimentError> {
        let events = network.events_handled();
        self.account.count_events(events - std::mem::replace(&mut self.events, events));
        if self.options.check {
            network.check().map_err(ExperimentError::input)?;
        }
        // Processes have real memory of their own: there is nothing that was compared.
        // RTL follows to where processes have come, however their run ends.
        let never = AtomicBool::new(false);
        self.account.take_outputs(network, self.writer.as_mut(), self.drawing.as_mut(), &never).map(|_| ())
    }

    /// The first difference between RTL and model, so far.
    pub fn rtl_difference(&self) -> Option<String> {
        self.account.rtl_difference()
    }

    /// Steps the RTL to the end of a run. Returns the first difference.
    ///
    /// # Errors
    /// Results that cannot be written.
    pub fn finish_rtl<R: RankHost<Output = ReplayOutput>>(
        &mut self,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
    ) -> Result<Option<String>, ExperimentError> {
        if self.options.rtl.is_some() {
            self.take(network)?;
            self.account.finish_rtl(network.now());
        }
        Ok(self.account.rtl_difference())
    }

    /// Writes the results of a run that has ended, and reports it.
    ///
    /// # Errors
    /// Results that cannot be written.
    pub fn finish<R: RankHost<Output = ReplayOutput>>(
        mut self,
        machine: &Machine,
        layout: &Layout,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
        at_end: RanksAtEnd<'_>,
    ) -> Result<RunReport, ExperimentError> {
        let RanksAtEnd { ranks, finishes, calls, kernels, conclusion } = at_end;
        self.take(network)?;
        if let Some(mut drawing) = self.drawing.take() {
            drawing.close_regions(&ranks.iter().map(|rank| rank.end).collect::<Vec<_>>())?;
            drawing.finish()?;
        }
        let end = self.account.end(ranks, network);
        if conclusion.ended == Ending::Finished && !self.account.ends_amid_others(ranks, network.now()) {
            network.report_until(end);
        }
        let beside = self.account.group_rows(network);
        let crossed = network.crossed();
        let mut busiest = Busiest::new(Shared::BUSIEST);
        network.visit_links(&mut |link: LinkUse| busiest.see(link));
        let shared = Shared {
            layout,
            end,
            busiest: &busiest,
            packet_hops: crossed.packet_hops,
            counts: crossed.counts,
            energy: EnergyFigures::of(&crossed.energy, self.account.delivered(0).bytes),
            seed: self.request.seed,
            compared_bytes: None,
        };
        let delivered = self.account.delivered(0);
        let trace = self.account.end_path(self.writer.as_mut())?;
        let region = self.request.region.and_then(|region| self.account.region(region));
        let region = region.map(|region| region.at_end(ranks));
        let figures = match &region {
            Some(region) => region.figures(0, 0, &shared),
            None => Figures { calls: call_figures(0, &calls), ..figures(0, ranks, &delivered, &shared) },
        };
        let figures = Figures { breakdown: self.account.classes(0), ..figures };
        let row = RunRow { run: RUN, program: name(&self.request), figures };
        let LiveAccount { request, options, mut account, mut writer, began, .. } = self;
        let performance = options.performance(&began, crossed.packet_hops);
        let mut totals = Totals {
            end,
            messages: delivered.completion.count(),
            payload: delivered.bytes,
            ..Totals::default()
        };
        add_crossed(&mut totals, &crossed);
        let mut explained = Vec::new();
        if let Some(writer) = &mut writer {
            account.write_tables(network, ranks, writer)?;
            account.write_calls(&calls, writer)?;
            kernels.iter().try_for_each(|kernel| writer.push(kernel.row(RUN, account.seating())))?;
            if let Some(from) = self.recorded_from {
                let mut trace = trace.unwrap_or_else(|| account.take_path().finish(pace(machine)));
                trace.add_finishes(finishes);
                let names = Names::new(machine, layout, account.seating(), account.names());
                let recorded = || RecordedRun {
                    run: RUN,
                    of: account.names().join(", "),
                    trace: &trace,
                    names: &names,
                    top: DEFAULT_TOP,
                };
                let inside =
                    region.and_then(|region| explained_region(recorded(), &region, trace.finishes()));
                let whole = explain(recorded(), from);
                let whole = whole.map(|whole| Explained { kernels: KernelLimit::of(&kernels), ..whole });
                explained.extend(whole.into_iter().chain(inside));
            }
        }
        let measured = Measured {
            row,
            packet_hops_per_second: performance.packet_hops_per_second,
            build_time_s: 0.0,
            peak_memory_bytes: performance.peak_memory_bytes,
        };
        let rows = vec![measured];
        let findings = Findings { conclusion, rows, beside, totals, explained, performance };
        findings.report(Request::Run(request), machine, writer)
    }
}

/// The critical path of the record since `from`; `None`: nothing is recorded.
fn explain(recorded: RecordedRun<'_>, from: Time) -> Option<Explained> {
    let last = last_to_finish(recorded.trace).filter(|last| last.at > Time::ZERO)?;
    let ranks: Vec<_> = recorded.trace.finishes().iter().map(|finish| (from, *finish)).collect();
    Some(explained(recorded, (from, last), &ranks))
}

/// The program's file name.
fn name(request: &RunRequest) -> String {
    let word = request.program.first().map_or("", String::as_str);
    std::path::Path::new(word)
        .file_name()
        .map_or_else(|| word.to_owned(), |name| name.to_string_lossy().into_owned())
}
