//! One run of programs, from an empty network to the end of the last rank.

use super::account::{Account, Tally};
use super::breakdown::{Breakdown, SizeClass};
use super::cores::core_speed;
use super::drawing::Drawing;
use super::region::RegionAtEnd;
use crate::experiment::path::PathRecorder;
use crate::experiment::rtl::{NoRtlOfSaved, RtlOfRun, RtlOptions};
use crate::experiment::scenario::{BesideRanks, GroupRow};
use crate::experiment::{Control, ExperimentError, Interrupt};
use crate::job_sites::JobSites;
use crate::telemetry::{TelemetryLooks, WatchedJobs};
use std::collections::BTreeMap;
use weft_assembly as assembly;
use weft_engine::Progress;
use weft_fabric::Stuck;
use weft_machine::{Machine, Progress as MachineProgress};
use weft_msg::{Algorithm, Protocol};
use weft_network::{Crossed, LinkUse, NetworkSetup, SimulatedNetwork};
use weft_results::{Conclusion, Ending, ResultsWriter};
use weft_topo::{Layout, Topology};
use weft_trace::Region;
use weft_units::{Span, Time};
use weft_workload::host::{SharedHost, SharedParameters};
use weft_workload::osu::Stopwatch;
use weft_workload::replay::{
    CallReport, Compared, ComputeScale, Delivery, Operations, Program, ProgressRule, RankReport, ReplayHost,
    ReplayParameters, Seating,
};

/// Lines of a report of who waits for what.
const WAITING_SHOWN: usize = 20;

/// Memory that a record may take by which messages are broken down. Beyond it they are, and it begins anew.
const BREAKDOWN_BYTES: usize = 1 << 30;

/// The programs that are to be run, and how.
pub(crate) struct Setup<'a> {
    /// The column `run` of the tables.
    pub run: u32,
    pub machine: &'a Machine,
    pub layout: &'a Layout,
    pub programs: Vec<Program>,
    /// The times at which the programs begin, in their order.
    pub starts: Vec<Time>,
    /// The names of the programs, in their order.
    pub names: Vec<String>,
    pub protocol: Protocol,
    pub seed: u64,
    pub threads: u32,
    /// Whether messages carry real bytes.
    pub data: bool,
    /// Whether the time of each message is broken down.
    pub breakdown: bool,
    /// A factor on the time of each computation.
    pub compute_scale: ComputeScale,
    /// The region of interest that is reported.
    pub region: Option<Region>,
    /// Looks at links and queues.
    pub telemetry: Option<TelemetryLooks>,
    /// Whether each link is told of that a packet crosses.
    pub follows_packets: bool,
    /// Whether several programs are told apart as jobs, over time and on links.
    pub by_job: ByJob,
    /// Flows, services and clients beside the ranks.
    pub beside: Option<BesideRanks>,
    /// The RTL that runs in step with the model.
    pub rtl: Option<&'a RtlOptions>,
}

/// Counts by job: each program is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ByJob {
    /// Jobs on the machine whose rates telemetry tells apart; 0: it does not.
    pub rates: u32,
    /// Whether links are counted by job, for which packets are followed.
    pub links: bool,
}

/// Real bytes were asked for of an interface that has no memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "--data: the overheads interface moves sizes, no bytes; use a machine with the block-level one \
     (nic.model=exanet), such as exanest, or leave --data out"
)]
struct NoData;

/// Real bytes were asked for of a network that moves none.
#[derive(Debug, thiserror::Error)]
#[error(
    "--data: fluids are rates and sizes, no bytes; leave --data out, or take packets with --set \
     fabric.kind=packet"
)]
struct NoDataOfFluids;

/// The surroundings of a run at its epochs.
pub(crate) struct Surroundings<'a> {
    pub interrupt: &'a Interrupt,
    pub writer: Option<&'a mut ResultsWriter>,
    pub drawing: Option<&'a mut Drawing>,
    pub check: bool,
    /// Whether the writer is for telemetry alone.
    pub telemetry_alone: bool,
}

impl<'a> Surroundings<'a> {
    /// None, but for who may interrupt the run.
    pub fn alone(interrupt: &'a Interrupt) -> Surroundings<'a> {
        Surroundings { interrupt, writer: None, drawing: None, check: false, telemetry_alone: false }
    }

    /// The writer of tables other than those of telemetry.
    fn tables(&mut self) -> Option<&mut ResultsWriter> {
        self.writer.as_deref_mut().filter(|_| !self.telemetry_alone)
    }
}

/// The result of a step.
pub(crate) enum RunStep {
    /// An epoch has passed.
    Epoch,
    /// The run has reached the time at which it is to be saved.
    SaveDue,
    /// It cannot go on.
    Ended(Conclusion),
}

/// A run that is under way.
pub(crate) struct RankRun {
    account: Account,
    programs: Vec<Program>,
    operations: u64,
    network: Box<dyn SimulatedNetwork<SharedHost<ReplayHost>>>,
    data: bool,
}

/// The rule by which ranks of the machine notice events.
pub(crate) fn progress_rule(machine: &Machine) -> ProgressRule {
    match machine.messaging.progress {
        MachineProgress::Call => ProgressRule::Call,
        MachineProgress::Thread | MachineProgress::Nic => ProgressRule::Background,
    }
}

/// Refuses what is not told, or not kept, of messages that go by several rails.
fn check_rails(parameters: &ReplayParameters) -> Result<(), ExperimentError> {
    let rails = parameters.rails;
    let what = if parameters.record_from.is_some() {
        "breakdowns and critical paths follow messages by one interface"
    } else if parameters.data.is_some() {
        "--data compares messages that come by one interface"
    } else if parameters.protocol.algorithms.names(Algorithm::Multicast) {
        "the algorithm `multicast` sends by one interface"
    } else {
        return Ok(());
    };
    Err(ExperimentError::input(format!(
        "{what}, and messaging.rails uses {rails}; add --set messaging.rails=none"
    )))
}

impl RankRun {
    /// A run from its beginning, or from where it was saved. `adjust` says what is to be reported.
    pub fn new(
        setup: Setup<'_>,
        saved: Option<(Tally, Vec<u8>)>,
        adjust: impl FnOnce(&mut ReplayParameters),
    ) -> Result<RankRun, ExperimentError> {
        let Setup { run, machine, layout, programs, starts, names, protocol, seed, threads, .. } = setup;
        let Setup { data, breakdown, compute_scale, region, telemetry, follows_packets, .. } = setup;
        let ByJob { rates, links } = setup.by_job;
        let beside = setup.beside;
        let rtl = setup.rtl.map(|rtl| rtl.begin(machine, layout, run, data.then_some(seed)));
        let rtl = rtl.transpose()?;
        if rtl.is_some() && saved.is_some() {
            return Err(ExperimentError::input(NoRtlOfSaved));
        }
        if data && machine.flows {
            return Err(ExperimentError::input(NoDataOfFluids));
        }
        if data && !machine.nic.model().carries_data() {
            return Err(ExperimentError::input(NoData));
        }
        let rule = progress_rule(machine);
        let multicasts = protocol.algorithms.names(Algorithm::Multicast);
        let mut parameters = ReplayParameters::new(programs.clone(), protocol, rule);
        parameters.data = data.then_some(seed);
        parameters.compute_scales.fill(compute_scale);
        parameters.starts = starts;
        if breakdown {
            parameters.record_from = Some(Time::ZERO);
            parameters.wanted.messages = true;
        }
        if region.is_some() {
            (parameters.wanted.regions, parameters.wanted.messages) = (true, true);
        }
        parameters.rails = assembly::rails(machine, layout).map_err(ExperimentError::input)?;
        parameters.cores = core_speed(machine, layout, &programs)?;
        parameters.follow_topology(layout);
        parameters.ports = rtl.as_ref().map(RtlOfRun::ports).unwrap_or_default();
        adjust(&mut parameters);
        if parameters.rails > 1 {
            check_rails(&parameters)?;
        }
        let (seating, rails) = (parameters.seating().clone(), parameters.rails);
        let fullest = seating.fullest_endpoint().map_or(0, |(_, ranks)| ranks);
        let users = assembly::InterfaceUsers { ranks: fullest * parameters.rails, beside: 0 };
        assembly::check_interfaces(machine, users).map_err(ExperimentError::input)?;
        let records = parameters.record_from.is_some();
        let groups =
            if multicasts { parameters.make_groups(machine.multicast.len() as u32) } else { Vec::new() };
        let mut hosts = parameters.hosts(layout.endpoints()).into_iter();
        let (tally, state) = match saved {
            Some((tally, state)) => (tally, Some(state)),
            None => (Tally::default(), None),
        };
        let network = NetworkSetup {
            machine,
            layout: assembly::layout(machine).map_err(ExperimentError::input)?,
            seed,
            threads: threads as usize,
            saved: state.as_deref(),
            groups,
            follows_packets,
        };
        let mut ranks = || hosts.next().unwrap_or_default();
        let network = match &beside {
            None => {
                network.with_ranks(SharedParameters::alone(parameters), &mut |_| SharedHost::alone(ranks()))
            }
            Some(beside) => {
                let shared = beside.parameters(machine, fullest * rails)?;
                let parameters = SharedParameters { ranks: parameters, beside: shared };
                let mut others = beside.hosts();
                network.with_ranks(parameters, &mut |endpoint| others.put(ranks(), endpoint))
            }
        };
        let mut network = network.map_err(ExperimentError::input)?;
        let operations = programs.iter().map(|program| program.operations.count()).sum();
        let mut account = Account::new(run, names, seating, tally);
        account.put_rtl(rtl);
        if let Some(beside) = beside {
            // The figures of what is beside the ranks end with the run.
            network.stand_when_dry();
            account.put_beside(beside);
        }
        if let Some(region) = region {
            account.count_region(region);
        }
        let sites = || JobSites::of(account.seating(), rails);
        let (watched, by_job) =
            ((rates > 0).then(|| WatchedJobs { jobs: rates, sites: sites() }), links.then(sites));
        if let Some(looks) = telemetry {
            account.watch_links(looks, watched);
        }
        if let Some(sites) = by_job {
            account.count_links_by_job(sites);
        }
        if records {
            account.record_path();
        }
        if breakdown {
            account.break_down(Breakdown::new(run, machine.clone(), layout.clone()));
        }
        Ok(RankRun { account, programs, operations, network, data })
    }

    /// The names of the programs, in their order.
    pub fn names(&self) -> &[String] {
        self.account.names()
    }

    /// Calls of a program that its trace lacks, with their number.
    pub fn unrecorded(&self, program: u32) -> BTreeMap<String, u64> {
        match &self.programs[program as usize].operations {
            Operations::Recorded(trace) => trace.unrecorded(),
            Operations::Generated(_) | Operations::Stepped(_) => BTreeMap::new(),
        }
    }

    /// The record of the critical path, where one was asked for.
    pub fn take_path(&mut self) -> PathRecorder {
        self.account.take_path()
    }

    /// Which ranks there are, and where.
    pub fn seating(&self) -> &Seating {
        self.account.seating()
    }

    /// The virtual time that has been reached.
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// The packets that have crossed links.
    pub fn crossed(&self) -> Crossed {
        self.network.crossed()
    }

    /// Shows every link.
    pub fn visit_links(&self, visit: &mut dyn FnMut(LinkUse)) {
        self.network.visit_links(visit);
    }

    /// The messages of a program that were delivered.
    pub fn delivered(&self, program: usize) -> Delivery {
        self.account.delivered(program)
    }

    /// The readings of the ranks' clocks, by rank over all programs; empty before the first reading.
    pub fn stopwatches(&self) -> &[Stopwatch] {
        self.account.stopwatches()
    }

    /// Whether messages carry real bytes.
    pub fn moves_data(&self) -> bool {
        self.data
    }

    /// The bytes that were compared in the memory of sources and targets.
    pub fn compared(&self) -> Compared {
        self.account.compared()
    }

    /// All that a resumed run needs.
    pub fn state(&mut self) -> Result<(&Tally, Vec<u8>), ExperimentError> {
        Ok((self.account.tally(), self.network.save().map_err(ExperimentError::input)?))
    }

    /// Runs to the end of the epoch, or to `save_at` if that comes first. However the run ends, RTL in step
    /// with it ends too.
    pub fn step(
        &mut self,
        save_at: Option<Time>,
        around: &mut Surroundings<'_>,
    ) -> Result<RunStep, ExperimentError> {
        let step = self.step_network(save_at, around)?;
        let RunStep::Ended(conclusion) = step else { return Ok(step) };
        Ok(RunStep::Ended(self.account.end_rtl(self.network.now(), conclusion)))
    }

    fn step_network(
        &mut self,
        save_at: Option<Time>,
        around: &mut Surroundings<'_>,
    ) -> Result<RunStep, ExperimentError> {
        let look = self.account.beside().map(|beside| beside.next_look(self.network.now()));
        let times = [save_at, look].into_iter().flatten();
        let until = times.fold(self.account.epoch_end(), Time::min);
        let before = self.network.events_handled();
        let flag = around.interrupt.flag();
        let writer = around.writer.as_deref_mut();
        let progress = self.account.run_until(&mut *self.network, until, flag, writer)?;
        self.account.count_events(self.network.events_handled() - before);
        let writer = around.writer.as_deref_mut().filter(|_| !around.telemetry_alone);
        let drawing = around.drawing.as_deref_mut();
        if let Some(damage) = self.account.take_outputs(&mut *self.network, writer, drawing, flag)? {
            return Ok(RunStep::Ended(Conclusion::new(Ending::LostData, damage)));
        }
        if self.account.rtl_difference().is_some() {
            return Ok(RunStep::Ended(Ending::RtlDiffers.into()));
        }
        if self.account.path_bytes() > BREAKDOWN_BYTES && self.break_down(around.tables())? {
            self.account.record_path();
        }
        if around.check
            && let Err(lost) = self.network.check()
        {
            return Ok(RunStep::Ended(Conclusion::new(Ending::LostData, lost.to_string())));
        }
        if let Some(overrun) = self.network.overrun() {
            return Ok(RunStep::Ended(Conclusion::new(Ending::LostData, overrun)));
        }
        match progress {
            Progress::Dry => {
                self.account.finish_rtl(self.network.now());
                if self.account.rtl_difference().is_some() {
                    return Ok(RunStep::Ended(Ending::RtlDiffers.into()));
                }
                let conclusion = self.conclusion();
                // What is stuck stays so for as long as time passes.
                let amid_others = self.account.ends_amid_others(&self.ranks(), self.network.now());
                if conclusion.ended == Ending::Finished && !amid_others {
                    let end = self.end();
                    self.network.report_until(end);
                }
                return Ok(RunStep::Ended(conclusion));
            }
            Progress::Interrupted => return Ok(RunStep::Ended(Ending::Interrupted.into())),
            // What is beside the ranks does not hold the end up. At other stops, such as those of snapshots,
            // nobody looks: the end would depend on them.
            Progress::Reached if look == Some(until) => {
                let mut ranks = self.ranks().into_iter();
                if ranks.all(|rank| rank.finished && rank.end <= until) {
                    return Ok(RunStep::Ended(Ending::Finished.into()));
                }
            }
            Progress::Reached => {}
        }
        if until == self.account.epoch_end() {
            self.account.next_epoch(around.writer.as_deref_mut())?;
        }
        Ok(if save_at == Some(until) { RunStep::SaveDue } else { RunStep::Epoch })
    }

    /// Breaks down the messages that were delivered since it was last done, where they are to be; says
    /// whether they are.
    pub fn break_down(&mut self, writer: Option<&mut ResultsWriter>) -> Result<bool, ExperimentError> {
        Ok(self.account.end_path(writer)?.is_some())
    }

    /// Counts this region of interest too, whose readings the parameters want.
    pub fn count_region(&mut self, region: Region) {
        self.account.count_region(region);
    }

    /// A region that is counted, up to where the run has come.
    pub fn region(&self, region: Region) -> Option<RegionAtEnd> {
        self.account.region(region).map(|account| account.at_end(&self.ranks()))
    }

    /// Where the time of a program's messages went, by size, where that is to be told.
    pub fn classes(&self, program: u32) -> Option<Vec<SizeClass>> {
        self.account.classes(program)
    }

    /// Runs to the end, for what is recorded on the way.
    pub fn run_to_end(&mut self, control: Control<'_>, doing: &str) -> Result<Conclusion, ExperimentError> {
        loop {
            if let Some(conclusion) = self.run_up_to(None, control, doing)? {
                return Ok(conclusion);
            }
        }
    }

    /// Runs to the end, or up to a time, for what is recorded on the way; `None`: it has come to that time.
    pub fn run_up_to(
        &mut self,
        until: Option<Time>,
        control: Control<'_>,
        doing: &str,
    ) -> Result<Option<Conclusion>, ExperimentError> {
        let mut around = Surroundings::alone(control.interrupt);
        loop {
            match self.step(until, &mut around)? {
                RunStep::Ended(conclusion) => return Ok(Some(conclusion)),
                RunStep::SaveDue => return Ok(None),
                RunStep::Epoch => control.progress.advance(self.share(), doing),
            }
        }
    }

    /// The end of a run in which nothing is pending: all is done, or nothing can ever happen again.
    fn conclusion(&self) -> Conclusion {
        if self.ranks().iter().all(|rank| rank.finished) {
            return Ending::Finished.into();
        }
        let waiting = self.who_waits();
        if let Some(lost) = self.network.lost_packets() {
            return Conclusion::new(Ending::LostData, format!("{lost}\n{waiting}"));
        }
        match self.network.stuck() {
            Some(stuck @ Stuck::Deadlock { .. }) => Conclusion::new(Ending::Deadlock, stuck.to_string()),
            Some(stuck) => Conclusion::new(Ending::NoProgress, format!("{stuck}\n{waiting}")),
            None => Conclusion::new(Ending::NoProgress, waiting),
        }
    }

    /// A line for each rank that waits, with what it waits for.
    fn who_waits(&self) -> String {
        let mut blocked = Vec::new();
        self.network.visit_hosts(&mut |_, host| blocked.extend(host.ranks.blocked()));
        blocked.sort_by_key(|(program, blocked)| (*program, blocked.rank));
        let names = self.account.names();
        let several = names.len() > 1;
        let mut lines: Vec<String> = blocked
            .iter()
            .take(WAITING_SHOWN)
            .map(|(program, blocked)| match several {
                true => format!("{}: {blocked}", names[*program as usize]),
                false => blocked.to_string(),
            })
            .collect();
        if let Some(more) = blocked.len().checked_sub(WAITING_SHOWN).filter(|more| *more > 0) {
            lines.push(format!("and {more} more ranks"));
        }
        let interrupted = |program: &Program| match &program.operations {
            Operations::Recorded(trace) => trace.is_interrupted(),
            Operations::Generated(_) | Operations::Stepped(_) => false,
        };
        if self.programs.iter().any(interrupted) {
            lines.push("a recording was interrupted: its last messages may be missing".to_owned());
        }
        lines.join("\n")
    }

    /// The share of all operations that are begun, without those that ranks wait for: a window of 64 messages
    /// is begun at once, and takes nearly all of a bandwidth's time. 0 where nobody knows their number.
    pub fn share(&self) -> f64 {
        let stepped = |program: &Program| matches!(program.operations, Operations::Stepped(_));
        if self.programs.iter().any(stepped) {
            return 0.0;
        }
        let mut done = 0;
        self.network.visit_hosts(&mut |_, host| {
            let done_by = |rank: RankReport| rank.operations.saturating_sub(rank.awaited.into());
            done += host.ranks.ranks().map(done_by).sum::<u64>();
        });
        done as f64 / self.operations.max(1) as f64
    }

    /// All ranks, counted over all programs.
    pub fn ranks(&self) -> Vec<RankReport> {
        let mut ranks = Vec::new();
        self.network.visit_hosts(&mut |_, host| ranks.extend(host.ranks.ranks()));
        ranks.sort_by_key(|rank| (rank.program, rank.rank));
        ranks
    }

    /// The calls of all ranks, in order.
    pub fn calls(&self) -> Vec<CallReport> {
        let mut calls = Vec::new();
        self.network.visit_hosts(&mut |_, host| calls.extend(host.ranks.calls()));
        calls.sort_by_key(|call| (call.program, call.rank, call.operation));
        calls
    }

    /// The end of the run: of the last rank, or later where something is beside the ranks.
    pub fn end(&self) -> Time {
        self.account.end(&self.ranks(), &*self.network)
    }

    /// A row for each group beside the ranks of a run that ends here.
    pub fn group_rows(&mut self) -> Vec<GroupRow> {
        self.account.group_rows(&*self.network)
    }

    /// Number of the first rank of a program over all programs.
    pub fn first_rank(&self, program: u32) -> u32 {
        self.account.first_rank(program)
    }

    /// Ends telemetry, where the run writes nothing else.
    pub fn finish_telemetry(&mut self, writer: &mut ResultsWriter) -> Result<(), ExperimentError> {
        Ok(self.account.finish_telemetry(&*self.network, writer)?)
    }

    /// Writes the tables that are known at the end only.
    pub fn write_tables(&mut self, writer: &mut ResultsWriter) -> Result<(), ExperimentError> {
        let ranks = self.ranks();
        self.account.write_tables(&*self.network, &ranks, writer)?;
        self.account.write_calls(&self.calls(), writer)
    }
}

/// The first multiple of `every` after `now`.
pub(crate) fn next_multiple(now: Time, every: Span) -> Time {
    let every = every.as_ps().max(1);
    Time::from_ps((now.as_ps() / every + 1).saturating_mul(every))
}
