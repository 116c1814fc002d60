//! The memory of a host, whose bandwidth its cores share while they compute.
//!
//! ```text
//!   core 0 ══════════╗ leaves                 alone: the core's own bandwidth
//!   core 1      ╔════╩═════════╗              n at once: the least of that and an nth of the channel
//!               joins          leaves
//! ```
//! A computation begins with an event, and ends with one: between two events nobody's share changes, so that
//! the channel looks at its streams there alone. All cores of a host are alike, so that equal shares are
//! max-min fair. A share is a whole number of bits per second, and an end is a whole number of picoseconds:
//! the first is rounded down, the second up. What a stream still wants is exact.
//!
//! # Source
//! The time of a computation is that of the roofline (Williams, Waterman and Patterson 2009): that of its
//! arithmetic or of its traffic with memory, whichever is longer. TR-488 §6.2: with all four cores at work
//! the channel is the bottleneck.
//!
//! # Not modelled
//! Caches that cores share, and the traffic of interfaces: [`weft_nic::memory`] has that of messages.

use super::rank::{ReplayRank, State};
use super::transport::RankContext;
use super::{Operations, ReplayHost, ReplayParameters, ReplayTimer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_nic::HostContext;
use weft_units::{BitRate, Bytes, Clock, EndpointId, Span, Time};

/// Parts of one, in which numbers of the machine are given.
const MILLION: u128 = 1_000_000;

/// Longest work of a core alone, 20 hours: with 64 cores at one channel its end is still in virtual time.
const MAX_WORK: Span = Span::from_ps(1 << 56);

/// The speed of the cores of a host, which are alike, and of the memory channel that they share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreSpeed {
    /// The clock of a core.
    pub clock: Clock,
    /// Millionths of a floating-point operation that a core does in a cycle; not zero.
    pub flops_per_cycle: u64,
    /// Memory bandwidth that a core alone can draw; not zero.
    pub bandwidth: BitRate,
    /// Memory bandwidth of the host; not zero.
    pub memory_bandwidth: BitRate,
    /// Millionths of each recorded computation that are traffic with memory.
    pub recorded_share: u64,
    /// Endpoints of a host: the first of them has its memory.
    pub endpoints_per_host: u32,
}

/// The times that a core alone takes for the two parts of a computation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct WorkTimes {
    /// Arithmetic.
    pub arithmetic: Span,
    /// Traffic with memory.
    pub memory: Span,
}

impl CoreSpeed {
    /// The times of a computation: whole cycles of arithmetic, and traffic rounded up to a picosecond.
    /// `None`: more than [`MAX_WORK`].
    pub(super) fn times(&self, flops: u64, bytes: Bytes) -> Option<WorkTimes> {
        let cycles = (u128::from(flops) * MILLION).div_ceil(u128::from(self.flops_per_cycle));
        let most = self.clock.edges_before(Time::ZERO.saturating_add(MAX_WORK));
        let cycles = u64::try_from(cycles).ok().filter(|cycles| *cycles < most)?;
        let memory = self.bandwidth.span(bytes);
        (memory <= MAX_WORK).then(|| WorkTimes { arithmetic: self.clock.cycles(cycles), memory })
    }

    /// The parts of a recorded computation, one after the other: arithmetic first.
    pub(super) fn recorded(&self, span: Span) -> WorkTimes {
        let memory = u128::from(span.as_ps()) * u128::from(self.recorded_share) / MILLION;
        let memory = Span::from_ps(u64::try_from(memory).unwrap_or(u64::MAX)).min(span);
        WorkTimes { arithmetic: span.saturating_sub(memory), memory }
    }

    /// The share of each of so many streams, in bits per second.
    fn share(&self, streams: usize) -> u64 {
        let part = self.memory_bandwidth.bits_per_second() / (streams.max(1) as u64);
        part.min(self.bandwidth.bits_per_second()).max(1)
    }

    /// The endpoint that has the memory of this one's host.
    fn memory_of(&self, endpoint: EndpointId) -> EndpointId {
        EndpointId(endpoint.0 - endpoint.0 % self.endpoints_per_host)
    }
}

/// A core of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CoreId {
    /// The endpoint of its rank.
    endpoint: EndpointId,
    /// The rank, among those of the endpoint.
    seat: u32,
    /// The core of the rank.
    core: u32,
}

/// A computation under way that has traffic with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct OpenWork {
    /// The begin.
    pub begun: Time,
    /// The end of its arithmetic.
    pub arithmetic: Time,
    /// The end, if it had the memory to itself.
    pub alone: Time,
}

/// An event of a host's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MemoryEvent {
    /// A core begins a stream that would take so long alone.
    Begin(CoreId, Span),
    /// A stream may have ended.
    Look,
    /// The stream of a core at another endpoint has ended.
    End(CoreId),
}

impl MemoryEvent {
    /// A number that no other event of an endpoint has at one time.
    pub(super) fn tie(&self) -> u128 {
        let of = |kind: u128, CoreId { endpoint, seat, core }: CoreId| {
            kind << 96 | u128::from(endpoint.0) << 64 | u128::from(seat) << 32 | u128::from(core)
        };
        match self {
            MemoryEvent::Begin(core, _) => of(1, *core),
            MemoryEvent::Look => 2 << 96,
            MemoryEvent::End(core) => of(3, *core),
        }
    }
}

/// The memory channel of a host, with the streams of its cores.
#[derive(Default, Debug, Serialize, Deserialize)]
pub(super) struct SharedMemory {
    /// The bits that each stream still wants, in units of 10⁻¹² bits, at `settled`.
    streams: BTreeMap<CoreId, u128>,
    settled: Time,
    /// The time of the next look.
    looks_at: Option<Time>,
}

impl SharedMemory {
    /// Serves all streams until now.
    fn settle(&mut self, now: Time, speed: &CoreSpeed) {
        let passed = u128::from((now - self.settled).as_ps());
        let served = passed * u128::from(speed.share(self.streams.len()));
        self.streams.values_mut().for_each(|left| *left = left.saturating_sub(served));
        self.settled = now;
    }

    /// A core begins a stream.
    fn begin(&mut self, core: CoreId, alone: Span, (now, speed): (Time, &CoreSpeed)) {
        self.settle(now, speed);
        let wanted = u128::from(alone.as_ps()) * u128::from(speed.bandwidth.bits_per_second());
        self.streams.insert(core, wanted);
    }

    /// The streams that have ended by now, which leave.
    fn ended(&mut self, now: Time, speed: &CoreSpeed) -> Vec<CoreId> {
        self.settle(now, speed);
        let ended = self.streams.iter().filter(|(_, left)| **left == 0).map(|(core, _)| *core).collect();
        self.streams.retain(|_, left| *left > 0);
        ended
    }

    /// The end of the next stream to end, if no other begins before.
    fn next_end(&self, speed: &CoreSpeed) -> Option<Time> {
        let least = self.streams.values().min()?;
        let ps = least.div_ceil(speed.share(self.streams.len()).into());
        Some(self.settled.saturating_add(Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))))
    }

    /// The time of a look that is to be asked for.
    fn next_look(&mut self, speed: &CoreSpeed) -> Option<Time> {
        let next = self.next_end(speed)?;
        if self.looks_at.is_some_and(|at| at <= next) {
            return None;
        }
        self.looks_at = Some(next);
        Some(next)
    }

    /// Whether the look that comes now is the one that is awaited.
    fn is_awaited(&mut self, now: Time) -> bool {
        let awaited = self.looks_at == Some(now);
        if awaited {
            self.looks_at = None;
        }
        awaited
    }
}

impl ReplayHost {
    /// Something has happened to the memory of the host, or to a stream of a rank of this endpoint.
    pub(super) fn memory_event(
        &mut self,
        event: MemoryEvent,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        let Some(speed) = &parameters.cores else { return };
        let now = context.now();
        match event {
            MemoryEvent::Begin(core, alone) => self.memory.begin(core, alone, (now, speed)),
            MemoryEvent::Look if !self.memory.is_awaited(now) => return,
            MemoryEvent::Look => {
                for core in self.memory.ended(now, speed) {
                    if core.endpoint == context.endpoint() {
                        self.end_stream(core, parameters, context);
                    } else {
                        context.set_timer_of(core.endpoint, now, MemoryEvent::End(core).into());
                    }
                }
            }
            MemoryEvent::End(core) => return self.end_stream(core, parameters, context),
        }
        if let Some(at) = self.memory.next_look(speed) {
            context.set_timer(at, MemoryEvent::Look.into());
        }
    }

    /// A core of a rank of this endpoint has all that it wanted of the memory.
    fn end_stream(
        &mut self,
        core: CoreId,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        let (rank, mut context) = self.rank(core.seat, parameters, context);
        rank.end_work(core.core, &mut context);
    }
}

impl ReplayRank {
    /// Does arithmetic on data in memory: the rank stops until both are done.
    pub(super) fn work(
        &mut self,
        flops: u64,
        bytes: Bytes,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let Some(speed) = &context.parameters.cores else {
            return self.fail(NO_CORES.to_owned(), context);
        };
        let Some(WorkTimes { arithmetic, memory }) = speed.times(flops, bytes) else {
            let reason = format!(
                "{flops} operations and {bytes} take a core more than 20 hours; write less at once, or \
                 faster cores in [host.core]"
            );
            return self.fail(reason, context);
        };
        let scale = context.parameters.compute_scales[self.account.program as usize];
        let (arithmetic, memory) = (scale.apply(arithmetic), scale.apply(memory));
        self.do_work(WorkTimes { arithmetic, memory }, context);
    }

    /// Computes for a time, of which recordings spend a part on memory where the machine says so.
    #[inline]
    pub(super) fn compute_recorded(
        &mut self,
        span: Span,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let parameters = context.parameters;
        let speed = parameters.cores.as_ref().filter(|speed| speed.recorded_share > 0);
        match (speed, &parameters.programs[self.account.program as usize].operations) {
            (Some(speed), Operations::Recorded(_)) => {
                let WorkTimes { arithmetic, memory } = speed.recorded(span);
                self.compute(arithmetic, context);
                self.do_work(WorkTimes { arithmetic: Span::ZERO, memory }, context);
            }
            _ => self.compute(span, context),
        }
    }

    /// Does arithmetic and moves data at once, as the times of a core alone say.
    fn do_work(&mut self, times: WorkTimes, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let WorkTimes { arithmetic, memory } = times;
        let Some(speed) = context.parameters.cores.as_ref().filter(|_| memory > Span::ZERO) else {
            return self.compute(arithmetic, context);
        };
        let begun = self.account.clock;
        let after = |span| begun.saturating_add(span);
        let work = OpenWork { begun, arithmetic: after(arithmetic), alone: after(arithmetic.max(memory)) };
        self.state = State::Working(work);
        let (endpoint, core) = (context.host.endpoint(), self.account.core);
        let event = MemoryEvent::Begin(CoreId { endpoint, seat: context.seat, core }, memory);
        let at = begun.max(context.host.now());
        match speed.memory_of(endpoint) {
            own if own == endpoint => context.host.set_timer(at, event.into()),
            other => context.host.set_timer_of(other, at, event.into()),
        }
    }

    /// The traffic with memory of a core is done: its computation ends now, or with its arithmetic.
    fn end_work(&mut self, core: u32, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        if self.streams.is_some() {
            return self.end_work_of_streams(core, context);
        }
        if let State::Working(work) = self.state {
            self.work_done(work, context);
            self.go_on(context);
        }
    }

    /// A computation ends: its time is counted.
    pub(super) fn work_done(
        &mut self,
        work: OpenWork,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let end = context.host.now().max(work.arithmetic);
        self.state = State::Running;
        self.account.clock = work.begun;
        self.account.memory_wait = self.account.memory_wait.saturating_add(end.saturating_since(work.alone));
        self.compute(end.saturating_since(work.begun), context);
    }
}

/// The mend of a machine that does not say how fast its cores are.
const NO_CORES: &str = "how long a computation of flops and bytes takes is not known of this machine: add \
                        [host.core] with `clock`, `flops_per_cycle`, `bandwidth` and \
                        `memory_bandwidth` to its file, such as --set host.core.clock=2GHz \
                        --set host.core.flops_per_cycle=2 --set host.core.bandwidth=80Gb/s \
                        --set host.core.memory_bandwidth=160Gb/s";

impl From<MemoryEvent> for ReplayTimer {
    fn from(event: MemoryEvent) -> ReplayTimer {
        ReplayTimer::Memory(event)
    }
}
