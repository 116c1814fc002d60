//! Runs a job on a machine: virtual time goes on while no rank is outside it.
//!
//! ```text
//!   all outside ──► join ──► simulate ──► all fenced ──► released together, outside ──► join ──► …
//!                               └──► nothing pending: all have left, or those that wait wait for ever
//! ```
//! Where flows, services and clients are beside the ranks, nothing pending means nothing of the ranks
//! (`live::pending`). The network goes on when the ranks have a release or a turn, and ends with the last of
//! them.

use crate::cores::Cores;
use crate::job::{Gathered, Job, JobSetup, RankSetup};
use crate::live::{
    Accounts, InterfaceLimits, LiveHost, LiveParameters, MachineLimits, PendingWork, Recording, Resume,
};
use crate::live_end::{Death, FullMailboxes, LiveEnd};
use crate::setup::LiveSetup;
use crate::standstill::{Activity, Standstill, StandstillStep};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weft_client::device::{DeviceError, State};
use weft_client::one_core::OneCore;
use weft_engine::Progress;
use weft_machine::{Fabric, Machine, ProcessLimits};
use weft_network::{NetworkError, NetworkSetup, SimulatedNetwork};
use weft_results::Conclusion;
use weft_sim::experiment::ExperimentError;
use weft_sim::experiment::live::{LiveAccount, RanksAtEnd, RunReport};
use weft_topo::{Layout, Topology};
use weft_units::{Bytes, RankId, Span, Time};
use weft_workload::host::{Beside, SharedHost, SharedParameters, SharedTimer};
use weft_workload::replay::{Finish, RankReport};

/// Why a job cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// No memory for the ranks' devices.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The machine cannot be simulated.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The results that are asked for cannot be had of it.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The costs of messaging cannot be told to ranks.
    #[error("the machine's messaging cannot be told to the ranks: {0}")]
    Protocol(#[from] postcard::Error),
}

/// A job on a simulated machine.
pub struct LiveRun {
    network: Box<dyn SimulatedNetwork<SharedHost<LiveHost>>>,
    job: Arc<Job>,
    account: LiveAccount,
    recording: Arc<Recording>,
    /// Ranks outside virtual time.
    outside: Vec<bool>,
    standstill: Standstill,
    /// Of the ranks, where something is beside them.
    pending: Option<Arc<PendingWork>>,
}

impl LiveRun {
    /// The job on its machine, with an account of its ranks. No process has been started.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn new(
        machine: &Machine,
        layout: Layout,
        account: LiveAccount,
        setup: &LiveSetup<'_>,
    ) -> Result<LiveRun, LiveError> {
        let posts = machine.nic.model().post_costs(setup.protocol);
        let messaging = postcard::to_stdvec(&(setup.protocol, posts))?;
        let limits = limits(machine);
        let seating = account.seating();
        let numbers = (0..seating.ranks()).map(RankId);
        let ranks: Vec<RankSetup> =
            numbers.map(|rank| RankSetup { endpoint: seating.endpoint(rank).0 }).collect();
        let job = Job::new(
            &ranks,
            &JobSetup {
                messaging: &messaging,
                domain: setup.domains.own().0,
                host: setup.host,
                poll: setup.poll,
                clock_read: setup.clock_read,
                jumps: setup.jumps,
                watchdog: setup.watchdog,
                small: limits.small.get() as u32,
                rails: setup.rails,
            },
        )?;
        let job = Arc::new(job);
        let recording = Arc::new(Recording::default());
        if account.records() {
            recording.begin_anew();
        }
        let mut parameters = LiveParameters::new(
            Arc::clone(&job),
            setup,
            MachineLimits { interfaces: limits, endpoints: layout.endpoints() },
            Accounts {
                seating: seating.clone(),
                wanted: account.wanted(),
                ports: account.ports(),
                recording: Arc::clone(&recording),
            },
        );
        let mut hosts = parameters.hosts(layout.endpoints()).into_iter();
        let follows_packets = account.follows_packets(machine)?;
        let network = NetworkSetup { follows_packets, ..NetworkSetup::new(machine, layout, setup.seed) };
        let mut ranks_of = || hosts.next().unwrap_or_default();
        let (mut network, pending) = match account.beside() {
            None => {
                let parameters = SharedParameters::alone(parameters);
                (network.build(parameters, |_| SharedHost::alone(ranks_of()))?, None)
            }
            Some(others) => {
                let fullest = seating.fullest_endpoint().map_or(0, |(_, ranks)| ranks);
                let beside = others.parameters(machine, fullest * setup.rails)?;
                let pending = parameters.put_beside(u32::from(beside.interface + Beside::INTERFACES));
                let (parameters, mut others) =
                    (SharedParameters { ranks: parameters, beside }, others.hosts());
                let network = network.build(parameters, |endpoint| others.put(ranks_of(), endpoint))?;
                (network, Some(pending))
            }
        };
        // A rank that is woken although nothing has come goes on where it was.
        network.stand_when_dry();
        // Every host opens its interfaces before the first rank joins, which may be at the beginning of time.
        network.run_until(Time::ZERO + Span::from_ps(1), &AtomicBool::new(false));
        let outside = vec![true; ranks.len()];
        let standstill = Standstill::default();
        Ok(LiveRun { network, job, account, recording, outside, standstill, pending })
    }

    /// The job, for whoever starts and watches its processes.
    pub fn job(&self) -> Arc<Job> {
        Arc::clone(&self.job)
    }

    /// How the ranks have spent their time, in order, and their ends.
    fn ranks(&self) -> (Vec<RankReport>, Vec<Finish>) {
        let (mut ranks, mut finishes) = (Vec::new(), Vec::new());
        self.network.visit_hosts(&mut |_, host| {
            ranks.extend(host.ranks.reports());
            finishes.extend(host.ranks.finishes());
        });
        ranks.sort_by_key(|rank| rank.rank);
        finishes.sort_by_key(|finish| finish.rank);
        (ranks, finishes)
    }

    /// The virtual time that has been reached: the largest clock of a rank.
    pub fn now(&self) -> Time {
        self.ranks().0.iter().map(|rank| rank.end).max().unwrap_or(Time::ZERO)
    }

    /// Finishes the account of the run, which ended like this.
    ///
    /// # Errors
    /// Results that cannot be written.
    pub fn finish(
        mut self,
        machine: &Machine,
        layout: &Layout,
        conclusion: Conclusion,
    ) -> Result<RunReport, ExperimentError> {
        let (ranks, finishes) = self.ranks();
        let mut calls = Vec::new();
        self.network.visit_hosts(&mut |_, host| calls.extend(host.ranks.calls()));
        calls.sort_by_key(|call| (call.rank, call.operation));
        let mut kernels = Vec::new();
        self.network.visit_hosts(&mut |_, host| kernels.extend(host.ranks.kernels().cloned()));
        kernels.sort_by_key(|kernel| kernel.rank);
        let at_end = RanksAtEnd { ranks: &ranks, finishes, calls, kernels, conclusion };
        self.account.finish(machine, layout, &mut *self.network, at_end)
    }

    /// The end of the run, which is another where RTL in step with the model differs from it.
    ///
    /// # Errors
    /// Results that cannot be written.
    pub fn end_with_rtl(&mut self, end: LiveEnd) -> Result<LiveEnd, ExperimentError> {
        let difference = self.account.finish_rtl(&mut *self.network)?;
        Ok(difference.map_or(end, LiveEnd::RtlDiffers))
    }

    /// Messages that ranks have sent, and their bytes.
    pub fn sent(&self) -> (u64, Bytes) {
        let mut sum = (0, Bytes::ZERO);
        self.network.visit_hosts(&mut |_, host| {
            let (messages, bytes) = host.ranks.sent_by_ranks();
            sum = (sum.0 + messages, sum.1 + bytes);
        });
        sum
    }

    /// Simulates until the job ends or virtual time reaches `limit`. `release` lets the process manager's
    /// barrier go.
    ///
    /// # Errors
    /// Results that cannot be written, or data that is lost where that is checked.
    pub fn simulate(&mut self, limit: Time, release: &mut dyn FnMut()) -> Result<LiveEnd, ExperimentError> {
        loop {
            match self.job.gather() {
                Gathered::Stopping => return Ok(self.stopped()),
                Gathered::Fenced => {
                    if let Some(rank) = self.job.missing() {
                        return Ok(LiveEnd::RankEnded(rank, Death::Exited(0)));
                    }
                    let clock = self.job.largest_clock().max(self.network.now().as_ps());
                    self.outside.fill(true);
                    self.job.release(clock);
                    release();
                    continue;
                }
                Gathered::Joined => {}
            }
            self.wake_those_who_joined();
            // Ranks may have ended outside virtual time, for whom nobody would stop it.
            let progress = if self.ranks_are_dry() { Progress::Dry } else { self.run_on_cores(limit)? };
            if self.job.is_stopping() {
                return Ok(self.stopped());
            }
            let end = match progress {
                Progress::Interrupted if self.ranks_are_dry() => self.go_on_or_end(),
                Progress::Interrupted => None,
                Progress::Reached => Some(LiveEnd::TimeLimit),
                Progress::Dry => self.go_on_or_end(),
            };
            if let Some(end) = end {
                if end == LiveEnd::Finished && self.pending.is_some() && self.network.now() < self.now() {
                    // A rank that computes last is ahead of virtual time.
                    self.run_epochs(self.now())?;
                }
                return Ok(end);
            }
        }
    }

    /// Whether the simulation has stopped because nothing is pending of the ranks. It may go on.
    fn ranks_are_dry(&self) -> bool {
        let are_dry = self.pending.as_ref().is_some_and(|work| work.is_none());
        if are_dry {
            self.job.unpause_simulation();
        }
        are_dry
    }

    /// Simulates up to `limit` with ranks and simulation on their cores.
    fn run_on_cores(&mut self, limit: Time) -> Result<Progress, ExperimentError> {
        let core = OneCore::here();
        let other = core.as_ref().and_then(OneCore::another);
        self.job.set_cores(
            core.as_ref()
                .map(OneCore::number)
                .map(|simulation| Cores { simulation, ranks: other.unwrap_or(simulation) }),
        );
        let progress = self.run_epochs(limit);
        self.job.set_cores(None);
        progress
    }

    /// Nothing is pending, or only repetitions are: the job has ended, or the ranks that wait get turns in
    /// vain. Returns the end, if it is one.
    fn go_on_or_end(&mut self) -> Option<LiveEnd> {
        let states: Vec<State> = (0..self.job.ranks()).map(|rank| self.job.state(rank).0).collect();
        if states.iter().all(|state| *state == State::Exit) {
            return Some(LiveEnd::Finished);
        }
        let outside = states.iter().any(|state| matches!(state, State::Real | State::Ready));
        let waits = |(_, state): &(u32, State)| *state == State::Wait;
        let waiting: Vec<u32> = (0..).zip(states).filter(waits).map(|(rank, _)| rank).collect();
        if waiting.is_empty() || outside {
            return None;
        }
        let refused = self.network.only_repeats().unwrap_or_default();
        let activity = Activity { sent: self.sent().0, calls: self.job.calls_of_waiting(), refused };
        let clock = |rank: &u32| (*rank, Time::from_ps(self.job.state(*rank).1));
        match self.standstill.step(activity, waiting.iter().map(clock).collect(), self.network.now()) {
            StandstillStep::GiveTurns => waiting.into_iter().for_each(|rank| self.wake(rank)),
            StandstillStep::GoOn => {}
            StandstillStep::End => return Some(self.end_of_standstill(refused.messages)),
        }
        None
    }

    /// How a job ends that stands still, with so many messages that are only repeated.
    fn end_of_standstill(&mut self, refused: u64) -> LiveEnd {
        let since = self.standstill.take_since();
        if refused > 0 {
            let mut mailboxes = Vec::new();
            self.network.visit_hosts(&mut |_, host| mailboxes.extend(host.ranks.mailboxes()));
            mailboxes.sort_by_key(|mailbox| (Reverse(mailbox.messages), mailbox.rank, mailbox.interface));
            return LiveEnd::NoProgress(since, FullMailboxes { refused, mailboxes });
        }
        let lost = self.network.lost_packets().map(LiveEnd::Lost);
        lost.unwrap_or(LiveEnd::Deadlock(since))
    }

    /// Simulates up to `limit`, epoch after epoch, for as long as anything happens and nothing is to be
    /// looked after outside virtual time. A network that only repeats, while all ranks wait, is as good as
    /// dry.
    fn run_epochs(&mut self, limit: Time) -> Result<Progress, ExperimentError> {
        loop {
            let end = self.account.epoch_end();
            let until = end.min(limit).min(self.standstill.next_look(self.network.now()));
            let progress = self.account.run_until(&mut *self.network, until, self.job.pause())?;
            if progress != Progress::Reached || until == limit && end > limit {
                return Ok(progress);
            }
            if until == end && self.account.epoch(&mut *self.network)? {
                self.recording.begin_anew();
            }
            if let Some(difference) = self.account.rtl_difference() {
                self.job.end(LiveEnd::RtlDiffers(difference));
            }
            if self.nobody_moves() && self.network.only_repeats().is_some() {
                return Ok(Progress::Dry);
            }
            self.standstill.moves();
        }
    }

    /// Whether every rank waits for a notice, or has left.
    fn nobody_moves(&self) -> bool {
        let state = |rank| self.job.state(rank).0;
        (0..self.job.ranks()).all(|rank| matches!(state(rank), State::Wait | State::Exit | State::Fence))
    }

    fn stopped(&self) -> LiveEnd {
        self.job.ended().unwrap_or(LiveEnd::Stopped)
    }

    /// Ranks that have joined go on when virtual time has reached their clocks.
    fn wake_those_who_joined(&mut self) {
        for rank in 0..self.job.ranks() {
            let state = self.job.state(rank).0;
            if self.outside[rank as usize] && state == State::Ready {
                self.outside[rank as usize] = false;
                self.wake(rank);
            }
        }
    }

    /// A rank goes on when virtual time has reached its clock.
    fn wake(&mut self, rank: u32) {
        let Some((endpoint, seat)) = self.account.seating().seat(RankId(rank)) else { return };
        let at = Time::from_ps(self.job.state(rank).1).max(self.network.now());
        self.pending.iter().for_each(|work| work.timer_set());
        self.network.wake(endpoint, at, SharedTimer::Ranks(Resume::Seat(seat)));
    }
}

/// The limits of the machine's virtual interfaces: those of a node are of all of its endpoints.
fn limits(machine: &Machine) -> InterfaceLimits {
    let model = machine.nic.model();
    let ProcessLimits { interfaces, pages, small } = model.process_limits();
    let endpoints = match machine.fabric {
        // There is no switch that endpoints of a node could share.
        Fabric::Ideal(_) => 1,
        _ => model.endpoints_per_node(&machine.topology),
    };
    let [interfaces, pages] = [interfaces, pages].map(|of_endpoint| of_endpoint.saturating_mul(endpoints));
    InterfaceLimits { interfaces, endpoints, pages, small }
}
