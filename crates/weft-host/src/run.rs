//! Runs a job on a machine: virtual time goes on while no rank is outside it.
//!
//! ```text
//!   all outside ──► join ──► simulate ──► all fenced ──► released together, outside ──► join ──► …
//!                               └──► nothing pending: all have left, or those that wait wait for ever
//! ```

use crate::cores::Cores;
use crate::job::{Gathered, Job, JobSetup, RankSetup};
use crate::live::{InterfaceLimits, LiveHost, LiveParameters, Recording, Resume};
use crate::nonsense::Nonsense;
use crate::virtual_interfaces::JOB_DOMAIN;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weft_client::device::{DeviceError, HostModel, State};
use weft_client::one_core::OneCore;
use weft_engine::Progress;
use weft_msg::Protocol;
use weft_sim::experiment::ExperimentError;
use weft_sim::experiment::live::{LiveAccount, RunReport};
use weft_sim::machine::{Machine, Nic};
use weft_sim::network::{self, NetworkError, SimulatedNetwork};
use weft_sim::results::Ending;
use weft_topo::{Layout, Topology};
use weft_units::{Bytes, RankId, Span, Time};
use weft_workload::replay::{Finish, RankReport};

/// What a run needs beside the machine.
pub struct LiveSetup<'a> {
    /// Costs and limits of messaging.
    pub protocol: &'a Protocol,
    /// How computation moves clocks.
    pub host: HostModel,
    /// Virtual time of an empty poll.
    pub poll: Span,
    /// Of a clock read.
    pub clock_read: Span,
    /// Whether a rank that only polls is taken to wait from its first empty poll on.
    pub jumps: bool,
    /// How long a rank may keep its turn in real time; `None`: for ever.
    pub watchdog: Option<Duration>,
    /// Whether turns overlap where they may, which changes nothing but how long the run takes: tests run jobs both ways.
    pub overlapping: bool,
    /// Of the machine's random decisions.
    pub seed: u64,
}

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
    /// The costs of messaging cannot be told to ranks.
    #[error("the machine's messaging cannot be told to the ranks: {0}")]
    Protocol(#[from] postcard::Error),
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LiveEnd {
    /// Every rank has left.
    Finished,
    /// Nothing can ever happen again, and these ranks wait.
    Deadlock(Vec<(u32, Time)>),
    /// This rank has kept its turn for longer than it may.
    Silent(u32),
    /// This rank has ended with status 0, and the others wait for it in a barrier of the process manager.
    Missing(u32),
    /// The network has lost a message for good: why.
    Lost(String),
    /// This rank has written into its device what no library does.
    Broken(u32, Nonsense),
    /// Virtual time has reached its limit.
    TimeLimit,
    /// The job was [stopped](Job::stop).
    Stopped,
}

/// So often ranks that wait are given a turn although nothing has come, before that is a deadlock: as often as a program may test
/// and yield in vain and then go on by itself.
const CHANCES: u32 = 100;

/// The turns that ranks were given although nothing had come.
#[derive(Default)]
struct Chances {
    /// Messages that ranks had sent by then.
    sent: u64,
    /// How often.
    given: u32,
    /// Who waited at the first, and since when.
    since: Vec<(u32, Time)>,
}

/// A job on a simulated machine.
pub struct LiveRun {
    network: Box<dyn SimulatedNetwork<LiveHost>>,
    job: Arc<Job>,
    account: LiveAccount,
    recording: Arc<Recording>,
    /// Ranks outside virtual time.
    outside: Vec<bool>,
    chances: Chances,
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
        let protocol = postcard::to_stdvec(setup.protocol)?;
        let limits = limits(machine);
        let seating = account.seating();
        let numbers = (0..seating.ranks()).map(RankId);
        let ranks: Vec<RankSetup> =
            numbers.map(|rank| RankSetup { endpoint: seating.endpoint(rank).0 }).collect();
        let job = Job::new(
            &ranks,
            &JobSetup {
                protocol: &protocol,
                domain: JOB_DOMAIN,
                host: setup.host,
                poll: setup.poll,
                clock_read: setup.clock_read,
                jumps: setup.jumps,
                watchdog: setup.watchdog,
                small: limits.small.get() as u32,
            },
        )?;
        let job = Arc::new(job);
        let recording = Arc::new(Recording::default());
        if account.records() {
            recording.begin_anew();
        }
        let parameters = LiveParameters::new(
            Arc::clone(&job),
            seating.clone(),
            setup,
            (limits, layout.endpoints()),
            account.wanted(),
            Arc::clone(&recording),
        );
        let mut hosts = parameters.hosts(layout.endpoints()).into_iter();
        let mut network = network::build(
            machine,
            layout,
            setup.seed,
            1,
            parameters,
            |_| hosts.next().unwrap_or_default(),
            None,
        )?;
        // A rank that is woken although nothing has come goes on where it was.
        network.stand_when_dry();
        // Every host opens its interfaces before the first rank joins, which may be at the beginning of time.
        network.run_until(Time::ZERO + Span::from_ps(1), &AtomicBool::new(false));
        let outside = vec![true; ranks.len()];
        Ok(LiveRun { network, job, account, recording, outside, chances: Chances::default() })
    }

    /// The job, for whoever starts and watches its processes.
    pub fn job(&self) -> Arc<Job> {
        Arc::clone(&self.job)
    }

    /// How the ranks have spent their time, in order, and their ends.
    fn ranks(&self) -> (Vec<RankReport>, Vec<Finish>) {
        let (mut ranks, mut finishes) = (Vec::new(), Vec::new());
        self.network.visit_hosts(&mut |_, host| {
            ranks.extend(host.reports());
            finishes.extend(host.finishes());
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
        ended: Ending,
        detail: Option<String>,
    ) -> Result<RunReport, ExperimentError> {
        let (ranks, finishes) = self.ranks();
        self.account.finish(machine, layout, &mut *self.network, (&ranks, finishes), (ended, detail))
    }

    /// Messages that ranks have sent, and their bytes.
    pub fn sent(&self) -> (u64, Bytes) {
        let mut sum = (0, Bytes::ZERO);
        self.network.visit_hosts(&mut |_, host| {
            let (messages, bytes) = host.sent_by_ranks();
            sum = (sum.0 + messages, sum.1 + bytes);
        });
        sum
    }

    /// Simulates until the job ends or virtual time reaches `limit`. `release` lets the process manager's barrier go.
    ///
    /// # Errors
    /// Results that cannot be written, or data that is lost where that is checked.
    pub fn simulate(&mut self, limit: Time, release: &mut dyn FnMut()) -> Result<LiveEnd, ExperimentError> {
        loop {
            match self.job.gather() {
                Gathered::Stopping => return Ok(self.stopped()),
                Gathered::Fenced => {
                    if let Some(rank) = self.job.missing() {
                        return Ok(LiveEnd::Missing(rank));
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
            let core = OneCore::here();
            let other = core.as_ref().and_then(OneCore::another);
            self.job.set_cores(
                core.as_ref()
                    .map(OneCore::number)
                    .map(|simulation| Cores { simulation, ranks: other.unwrap_or(simulation) }),
            );
            let progress = self.run_epochs(limit);
            self.job.set_cores(None);
            drop(core);
            let progress = progress?;
            if self.job.is_stopping() {
                return Ok(self.stopped());
            }
            match progress {
                Progress::Interrupted => {}
                Progress::Reached => return Ok(LiveEnd::TimeLimit),
                Progress::Dry => {
                    let states: Vec<State> =
                        (0..self.job.ranks()).map(|rank| self.job.state(rank).0).collect();
                    if states.iter().all(|state| *state == State::Exit) {
                        return Ok(LiveEnd::Finished);
                    }
                    let outside = states.iter().any(|state| matches!(state, State::Real | State::Ready));
                    let waits = |(_, state): &(u32, State)| *state == State::Wait;
                    let waiting: Vec<u32> = (0..).zip(states).filter(waits).map(|(rank, _)| rank).collect();
                    if !waiting.is_empty() && !outside {
                        // Waiting is guessed from how a rank polls: one that only tests must have had its chances.
                        let sent = self.sent().0;
                        if self.chances.sent != sent || self.chances.given == 0 {
                            let clock = |rank: &u32| (*rank, Time::from_ps(self.job.state(*rank).1));
                            self.chances =
                                Chances { sent, given: 0, since: waiting.iter().map(clock).collect() };
                        }
                        self.chances.given += 1;
                        if self.chances.given > CHANCES {
                            if let Some(lost) = self.network.lost_packets() {
                                return Ok(LiveEnd::Lost(lost));
                            }
                            return Ok(LiveEnd::Deadlock(std::mem::take(&mut self.chances.since)));
                        }
                        waiting.into_iter().for_each(|rank| self.wake(rank));
                    }
                }
            }
        }
    }

    /// Simulates up to `limit`, epoch after epoch, for as long as anything happens and nothing is to be looked after outside virtual time.
    fn run_epochs(&mut self, limit: Time) -> Result<Progress, ExperimentError> {
        loop {
            let end = self.account.epoch_end();
            let progress = self.network.run_until(end.min(limit), &self.job.pause);
            if progress != Progress::Reached || end > limit {
                return Ok(progress);
            }
            if self.account.epoch(&mut *self.network)? {
                self.recording.begin_anew();
            }
        }
    }

    fn stopped(&self) -> LiveEnd {
        if let Some((rank, nonsense)) = self.job.accused() {
            return LiveEnd::Broken(rank, nonsense);
        }
        match (self.job.silent(), self.job.lost()) {
            (Some(rank), _) => LiveEnd::Silent(rank),
            (None, Some(reason)) => LiveEnd::Lost(reason),
            (None, None) => LiveEnd::Stopped,
        }
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
        self.network.wake(endpoint, at, Resume::Seat(seat));
    }
}

/// The largest small message, and the virtual interfaces, of nodes whose interface has no blocks: those of TR-488 §5.1 and §4.4.
const SIMPLE: InterfaceLimits = InterfaceLimits { interfaces: 64, small: Bytes::new(64) };

/// What the machine has for virtual interfaces.
fn limits(machine: &Machine) -> InterfaceLimits {
    match &machine.nic {
        Nic::Full(nic) => InterfaceLimits { interfaces: nic.interfaces(), small: nic.packetizer.payload },
        Nic::Simple(_) => SIMPLE,
    }
}
