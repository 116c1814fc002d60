//! One run of programs, from an empty network to the end of the last rank.

use super::account::{Account, Tally, end_of};
use super::breakdown::{Breakdown, SizeClass};
use super::drawing::Drawing;
use crate::assembly;
use crate::experiment::path::PathRecorder;
use crate::experiment::{Context, ExperimentError, Interrupt};
use crate::machine::{Machine, Nic, Progress as MachineProgress};
use crate::network::{self, Crossed, LinkUse, NetworkError, SimulatedNetwork};
use crate::results::{Ending, ResultsWriter};
use weft_engine::Progress;
use weft_msg::Protocol;
use weft_topo::{Layout, Topology};
use weft_units::{Span, Time};
use weft_workload::osu::Stopwatch;
use weft_workload::replay::{
    Compared, Delivery, Operations, Program, ProgressRule, RankReport, ReplayHost, ReplayParameters, Seating,
};

/// Lines of a report of who waits for what.
const WAITING_SHOWN: usize = 20;

/// Memory that a record may take by which messages are broken down. Beyond it they are, and it begins anew.
const BREAKDOWN_BYTES: usize = 1 << 30;

/// What is to be run.
pub(crate) struct Setup<'a> {
    /// The column `run` of the tables.
    pub run: u32,
    pub machine: &'a Machine,
    pub layout: &'a Layout,
    pub programs: Vec<Program>,
    /// What the programs are called, in their order.
    pub names: Vec<String>,
    pub protocol: Protocol,
    pub seed: u64,
    pub threads: u32,
    /// Whether messages carry real bytes.
    pub data: bool,
    /// Whether the time of each message is broken down.
    pub breakdown: bool,
}

/// Real bytes were asked for of an interface that has no memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "--data: the simple interface moves sizes, no bytes; use a machine with the block-level one (nic.model=full), such \
     as exanest, or leave --data out"
)]
struct NoData;

/// What a run needs at its epochs.
pub(crate) struct Surroundings<'a> {
    pub interrupt: &'a Interrupt,
    pub writer: Option<&'a mut ResultsWriter>,
    pub drawing: Option<&'a mut Drawing>,
    pub check: bool,
}

/// How a run went on.
pub(crate) enum Step {
    /// An epoch has passed.
    Epoch,
    /// The time at which it was to be saved has come.
    SaveDue,
    /// It cannot go on.
    Ended(Ending, Option<String>),
}

/// A run that is under way.
pub(crate) struct RankRun {
    account: Account,
    programs: Vec<Program>,
    operations: u64,
    network: Box<dyn SimulatedNetwork<ReplayHost>>,
    data: bool,
}

/// When ranks of the machine notice what has happened.
fn progress_rule(machine: &Machine) -> ProgressRule {
    match machine.messaging.progress {
        MachineProgress::Call => ProgressRule::Call,
        MachineProgress::Thread | MachineProgress::Nic => ProgressRule::Background,
    }
}

impl RankRun {
    /// A run from its beginning, or from where it was saved. `adjust` says what is to be reported.
    pub fn new(
        setup: Setup<'_>,
        saved: Option<(Tally, Vec<u8>)>,
        adjust: impl FnOnce(&mut ReplayParameters),
    ) -> Result<RankRun, ExperimentError> {
        let Setup { run, machine, layout, programs, names, protocol, seed, threads, data, breakdown } = setup;
        if data && matches!(machine.nic, Nic::Simple(_)) {
            return Err(ExperimentError::input(NoData));
        }
        let rule = progress_rule(machine);
        let mut parameters = ReplayParameters::new(programs.clone(), protocol, rule);
        parameters.data = data.then_some(seed);
        if breakdown {
            parameters.record_from = Some(Time::ZERO);
            parameters.wanted.messages = true;
        }
        adjust(&mut parameters);
        let seating = parameters.seating().clone();
        let fullest = seating.fullest_endpoint().map_or(0, |(_, ranks)| ranks);
        assembly::check_interfaces(machine, fullest).map_err(ExperimentError::input)?;
        let path = parameters.record_from.map(|_| PathRecorder::default());
        let mut hosts = parameters.hosts(layout.endpoints()).into_iter();
        let (tally, state) = match saved {
            Some((tally, state)) => (tally, Some(state)),
            None => (Tally::default(), None),
        };
        let network = network::build(
            machine,
            assembly::layout(machine).map_err(ExperimentError::input)?,
            seed,
            threads as usize,
            parameters,
            |_| hosts.next().unwrap_or_default(),
            state.as_deref(),
        )
        .map_err(|error| match error {
            NetworkError::Assembly(error) => ExperimentError::input(error),
            error => ExperimentError::input(error),
        })?;
        let operations = programs.iter().map(|program| program.operations.count()).sum();
        let mut account = Account::new(run, names, seating, tally, path);
        if breakdown {
            account.break_down(Breakdown::new(run, machine.clone(), layout.clone()));
        }
        Ok(RankRun { account, programs, operations, network, data })
    }

    /// What the programs are called, in their order.
    pub fn names(&self) -> &[String] {
        self.account.names()
    }

    /// What was recorded of the critical path, where that was asked for.
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

    /// What has crossed links.
    pub fn crossed(&self) -> Crossed {
        self.network.crossed()
    }

    /// Shows every link.
    pub fn visit_links(&self, visit: &mut dyn FnMut(LinkUse)) {
        self.network.visit_links(visit);
    }

    /// What was delivered of a program.
    pub fn delivered(&self, program: usize) -> Delivery {
        self.account.delivered(program)
    }

    /// What ranks have read from their clocks, by rank over all programs; empty before the first reading.
    pub fn stopwatches(&self) -> &[Stopwatch] {
        self.account.stopwatches()
    }

    /// Whether messages carry real bytes.
    pub fn moves_data(&self) -> bool {
        self.data
    }

    /// What was compared in the memory of sources and targets.
    pub fn compared(&self) -> Compared {
        self.account.compared()
    }

    /// All that a resumed run needs.
    pub fn state(&mut self) -> Result<(&Tally, Vec<u8>), ExperimentError> {
        Ok((self.account.tally(), self.network.save().map_err(ExperimentError::input)?))
    }

    /// Runs to the end of the epoch, or to `save_at` if that comes first.
    pub fn step(
        &mut self,
        save_at: Option<Time>,
        around: &mut Surroundings<'_>,
    ) -> Result<Step, ExperimentError> {
        let until = self.account.epoch_end().min(save_at.unwrap_or(Time::MAX));
        let before = self.network.events_handled();
        let progress = self.network.run_until(until, around.interrupt.flag());
        self.account.count_events(self.network.events_handled() - before);
        let (writer, drawing) = (around.writer.as_deref_mut(), around.drawing.as_deref_mut());
        if let Some(damage) = self.account.take_outputs(&mut *self.network, writer, drawing)? {
            return Ok(Step::Ended(Ending::LostData, Some(damage)));
        }
        if self.account.path_bytes() > BREAKDOWN_BYTES && self.break_down(around.writer.as_deref_mut())? {
            self.account.record_path();
        }
        if around.check
            && let Err(lost) = self.network.check()
        {
            return Ok(Step::Ended(Ending::LostData, Some(lost.to_string())));
        }
        match progress {
            Progress::Dry => {
                let (ending, detail) = self.dry();
                return Ok(Step::Ended(ending, detail));
            }
            Progress::Interrupted => return Ok(Step::Ended(Ending::Interrupted, None)),
            Progress::Reached => {}
        }
        if until == self.account.epoch_end() {
            self.account.next_epoch(around.writer.as_deref_mut())?;
        }
        Ok(if save_at == Some(until) { Step::SaveDue } else { Step::Epoch })
    }

    /// Breaks down the messages that were delivered since it was last done, where they are to be; says whether they are.
    pub fn break_down(&mut self, writer: Option<&mut ResultsWriter>) -> Result<bool, ExperimentError> {
        Ok(self.account.end_path(writer)?.is_some())
    }

    /// Where the time of a program's messages went, by size, where that is to be told.
    pub fn classes(&self, program: u32) -> Option<Vec<SizeClass>> {
        self.account.classes(program)
    }

    /// Runs to the end, for what is recorded on the way.
    pub fn run_to_end(
        &mut self,
        context: Context<'_>,
        doing: &str,
    ) -> Result<(Ending, Option<String>), ExperimentError> {
        let mut around =
            Surroundings { interrupt: context.interrupt, writer: None, drawing: None, check: false };
        loop {
            if let Step::Ended(ending, detail) = self.step(None, &mut around)? {
                return Ok((ending, detail));
            }
            context.progress.advance(self.share(), doing);
        }
    }

    /// Nothing is pending: all is done, or nothing can ever happen again.
    fn dry(&self) -> (Ending, Option<String>) {
        if self.ranks().iter().all(|rank| rank.finished) {
            return (Ending::Finished, None);
        }
        let waiting = self.who_waits();
        if let Some(lost) = self.network.lost_packets() {
            return (Ending::LostData, Some(format!("{lost}\n{waiting}")));
        }
        match self.network.stuck() {
            Some(ending @ weft_engine::Ending::Deadlock { .. }) => {
                (Ending::Deadlock, Some(ending.to_string()))
            }
            Some(ending) => (Ending::NoProgress, Some(format!("{ending}\n{waiting}"))),
            None => (Ending::NoProgress, Some(waiting)),
        }
    }

    /// Who waits for what, a line for each rank.
    fn who_waits(&self) -> String {
        let mut blocked = Vec::new();
        self.network.visit_hosts(&mut |_, host| blocked.extend(host.blocked()));
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
            Operations::Recorded(trace) => trace.metadata().header.interrupted,
            Operations::Generated(_) => false,
        };
        if self.programs.iter().any(interrupted) {
            lines.push("a recording was interrupted: its last messages may be missing".to_owned());
        }
        lines.join("\n")
    }

    /// The share of all operations that are begun.
    pub fn share(&self) -> f64 {
        let mut done = 0;
        self.network.visit_hosts(&mut |_, host| {
            done += host.ranks().map(|rank| rank.operations).sum::<u64>();
        });
        done as f64 / self.operations.max(1) as f64
    }

    /// All ranks, counted over all programs.
    pub fn ranks(&self) -> Vec<RankReport> {
        let mut ranks = Vec::new();
        self.network.visit_hosts(&mut |_, host| ranks.extend(host.ranks()));
        ranks.sort_by_key(|rank| (rank.program, rank.rank));
        ranks
    }

    /// When the last rank ended.
    pub fn end(&self) -> Time {
        end_of(&self.ranks())
    }

    /// Number of the first rank of a program over all programs.
    pub fn first_rank(&self, program: u32) -> u32 {
        self.account.first_rank(program)
    }

    /// Writes the tables that are known at the end only.
    pub fn write_tables(&self, writer: &mut ResultsWriter) -> Result<(), ExperimentError> {
        self.account.write_tables(&*self.network, &self.ranks(), writer)
    }
}

/// The first multiple of `every` after `now`.
pub(crate) fn next_multiple(now: Time, every: Span) -> Time {
    let every = every.as_ps().max(1);
    Time::from_ps((now.as_ps() / every + 1).saturating_mul(every))
}
