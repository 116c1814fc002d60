//! One run: one size, load and seed, from an empty network through warm-up to the end of the measured time.
//!
//! ```text
//!  0                 settled                                   settled + time
//!  |  warm-up epochs    | batch | batch | …      about 20 batches     |
//!                       counters to zero
//! ```
//! An epoch is a two-hundredth of the measured time, but not shorter than [`SHORTEST_EPOCH`], rounded up to
//! whole windows of the engine, a constant of the machine; epochs begin and end with windows, so that none
//! is cut into pieces but at the end. Warm-up lasts until the series of the epochs' mean latencies has
//! settled ([`steady::warm_up`]), looked at every [`LOOK_EVERY`] epochs, at most twice the measured time or
//! [`LEAST_MOST_WARM_UP`] epochs. What `--warm-up` and `--time` leave over shortens the first and the last
//! epoch of the measured time.
//!
//! Where endpoints have so many messages at once, all of the run is measured, in epochs of a two-hundredth of
//! the time that they take on an endpoint's link. It ends with the epoch in which the last one is delivered,
//! or nothing moves any more, and the measured time is that until the last delivery.

use super::limit::{Before, Limit, Limits};
use super::offered::Offered;
use super::ways::Ways;
use crate::experiment::link_table::write_links;
use crate::experiment::message_table::{FlowEnds, PendingMessages, flow_row};
use crate::experiment::packet_table::PacketTable;
use crate::experiment::rtl::RtlOfRun;
use crate::experiment::{ExperimentError, Interrupt};
use crate::telemetry::{Telemetry, TelemetryLooks};
use crate::timeline::TimelineWriter;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_engine::Progress;
use weft_machine::Machine;
use weft_network::{Crossed, LostData, MachineEnergy, SimulatedNetwork};
use weft_results::{Conclusion, Ending, MessageRow, ResultsError, ResultsWriter, Table};
use weft_topo::Layout;
use weft_units::{Bytes, EndpointId, Span, Time};
use weft_workload::histogram::Histogram;
use weft_workload::path::LegTimes;
use weft_workload::steady;
use weft_workload::traffic::{FlowReport, MessageReport, TrafficSource};

/// Epochs of the measured time.
const EPOCHS: u64 = 200;
/// The shortest epoch: work at its end should cost little compared with the epoch.
pub(super) const SHORTEST_EPOCH: Span = Span::from_ns(100);
/// Virtual time after which RTL follows.
const RTL_STEP: Span = Span::from_us(100);
/// Batches of the measured time, where it has so many epochs.
const BATCHES: u64 = 20;
/// Epochs between two looks at whether the network has settled.
const LOOK_EVERY: usize = 10;
/// Warm-up may take so many epochs however short the measured time is.
pub(super) const LEAST_MOST_WARM_UP: u64 = 100;
/// Fewer means say nothing about whether the network has settled.
const ENOUGH_MEANS: usize = 50;
/// A run that accepts less than offered by this share is saturated.
const TOLERANCE: f64 = 0.05;
/// The same, where what the machine took and keeps counts as well: that also grows by some while it settles.
const HELD_TOLERANCE: f64 = 0.1;

/// A network under synthetic traffic.
pub(super) type Traffic = dyn SimulatedNetwork<TrafficSource>;

/// The measurements of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct RunResult {
    pub accepted: f64,
    pub latency: Histogram<10>,
    /// Latency by leg, of so many messages, where that was asked for.
    pub legs: Option<(LegTimes, u64)>,
    /// Mean latency of each batch that has one, in ps.
    pub batch_means: Vec<f64>,
    /// 99th percentile of the latency of each batch that has one, in ps.
    pub batch_p99s: Vec<f64>,
    pub warm_up: Span,
    /// The measured time.
    pub time: Span,
    pub saturated: bool,
    pub limit: Limit,
    pub busiest: Limit,
    /// Delivered in the measured time.
    pub measured_bytes: Bytes,
    /// Of the whole run, warm-up included.
    pub delivered: Delivered,
    /// Messages that failed.
    pub failed: u64,
    pub crossed: Crossed,
    /// Time in which links were off during the warm-up.
    pub off_in_warm_up: Span,
    pub pauses: Pauses,
    /// Of the measured time.
    pub energy: MachineEnergy,
    pub end: Time,
}

/// The pauses of all links in the measured time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Pauses {
    /// Sum of the times in which their senders were paused.
    pub time_us: f64,
    /// Pause frames that senders have obeyed.
    pub frames: u64,
}

impl Pauses {
    fn of(network: &Traffic) -> Pauses {
        let mut pauses = Pauses::default();
        network.visit_links(&mut |link| {
            pauses.time_us += link.paused.as_us_f64();
            pauses.frames += link.pause_frames;
        });
        pauses
    }
}

/// The messages that were delivered, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Delivered {
    pub messages: u64,
    pub bytes: Bytes,
}

/// The phase of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Phase {
    WarmUp,
    Measure,
}

/// The result of a step.
pub(super) enum TrafficStep {
    /// It goes on.
    Epoch,
    /// It is done.
    Done(Box<RunResult>),
    /// Ctrl-C: the epoch is not whole.
    Interrupted,
    /// It cannot go on.
    Ended(Conclusion),
}

/// The state of a run beside that of its network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    /// The number of the run.
    index: u32,
    /// The measured time; where it ends with the messages, how long they take on an endpoint's link.
    time: Span,
    /// Messages of all endpoints with which it ends, if not with the time.
    messages: Option<u64>,
    /// The time of the last delivery.
    last: Time,
    /// The engine's windows, whole numbers of which epochs are; zero: they do not matter.
    window: Span,
    fixed_warm_up: Option<Span>,
    phase: Phase,
    /// Epochs of this phase that have passed.
    epoch: u64,
    /// The beginning of this phase.
    began: Time,
    /// Mean latencies of warm-up epochs that had a delivery.
    warm_up_means: Vec<f64>,
    settled: bool,
    before: Before,
    crossed_before: Crossed,
    delivered: Delivered,
    failed: u64,
    measured_bytes: Bytes,
    latency: Histogram<10>,
    batch: Histogram<10>,
    batch_means: Vec<f64>,
    batch_p99s: Vec<f64>,
    flows: BTreeMap<(EndpointId, Option<EndpointId>), FlowReport>,
    /// Messages that their hosts notice after the epoch in which they came.
    unnoticed: PendingMessages,
    /// Links and queues over the whole run, warm-up included, where that is wanted.
    telemetry: Option<Telemetry>,
    /// Where messages spend their time, where that is wanted. Such a run is not saved.
    #[serde(skip)]
    ways: Option<Ways>,
    /// Hops that are not in the table of packets yet.
    #[serde(skip)]
    packets: PacketTable,
}

/// The surroundings of a run at its epochs.
pub(super) struct Surroundings<'a> {
    pub interrupt: &'a Interrupt,
    pub results: Option<&'a mut ResultsWriter>,
    pub timeline: Option<&'a mut TimelineWriter>,
    pub check: bool,
    /// The RTL that runs in step with the model.
    pub rtl: Option<&'a mut RtlOfRun>,
    /// The machine, and its layout for the names of links.
    pub of: (&'a Machine, &'a Layout),
}

impl Run {
    pub(super) fn new(index: u32, time: Span, warm_up: Option<Span>, window: Option<Span>) -> Run {
        Run {
            index,
            time,
            messages: None,
            last: Time::ZERO,
            window: window.unwrap_or_default(),
            fixed_warm_up: warm_up,
            phase: Phase::WarmUp,
            epoch: 0,
            began: Time::ZERO,
            warm_up_means: Vec::new(),
            settled: true,
            before: Before::default(),
            crossed_before: Crossed::default(),
            delivered: Delivered::default(),
            failed: 0,
            measured_bytes: Bytes::ZERO,
            latency: Histogram::default(),
            batch: Histogram::default(),
            batch_means: Vec::new(),
            batch_p99s: Vec::new(),
            flows: BTreeMap::new(),
            unnoticed: PendingMessages::default(),
            telemetry: None,
            ways: None,
            packets: PacketTable::default(),
        }
    }

    /// The same with a look at links and queues at every multiple of an interval, where there is one.
    pub(super) fn with_telemetry(self, looks: Option<TelemetryLooks>) -> Run {
        Run { telemetry: looks.map(|looks| Telemetry::new(self.index, looks)), ..self }
    }

    /// The same with the latency of messages split by leg of their way.
    pub(super) fn with_ways(self) -> Run {
        Run { ways: Some(Ways::default()), ..self }
    }

    /// Refuses telemetry that would fill a disk.
    pub(super) fn refuse_too_much_telemetry(&self, network: &Traffic) -> Result<(), ExperimentError> {
        let Some(telemetry) = &self.telemetry else { return Ok(()) };
        let warm_up = self.fixed_warm_up.unwrap_or(Span::ZERO);
        Ok(telemetry.refuse_too_much(network, self.time.saturating_add(warm_up))?)
    }

    /// A run that ends when `messages` messages have come. `time` is how long those of an endpoint take on
    /// its link.
    pub(super) fn of_messages(index: u32, time: Span, messages: u64, window: Option<Span>) -> Run {
        let run = Run::new(index, time, Some(Span::ZERO), window);
        Run { messages: Some(messages), phase: Phase::Measure, ..run }
    }

    /// The length of an epoch.
    fn epoch_length(&self) -> Span {
        let least = Span::from_ps(self.time.as_ps().div_ceil(EPOCHS)).max(SHORTEST_EPOCH);
        if self.window == Span::ZERO {
            return least;
        }
        self.window * least.as_ps().div_ceil(self.window.as_ps())
    }

    /// How far into a window this phase began.
    fn within_window(&self) -> Span {
        let began = self.began - Time::ZERO;
        began.as_ps().checked_rem(self.window.as_ps()).map_or(Span::ZERO, Span::from_ps)
    }

    /// Epochs of the measured time.
    fn epochs(&self) -> u64 {
        let time = self.time + self.within_window();
        time.as_ps().div_ceil(self.epoch_length().as_ps()).max(1)
    }

    /// Epochs of one batch.
    fn epochs_per_batch(&self) -> u64 {
        (self.epochs() / BATCHES).max(1)
    }

    /// Epochs of warm-up at most.
    fn most_warm_up(&self) -> u64 {
        (2 * self.epochs()).max(LEAST_MOST_WARM_UP)
    }

    /// The share of the run that is done, about.
    pub(super) fn share(&self) -> f64 {
        if let Some(messages) = self.messages {
            return self.delivered.messages as f64 / messages as f64;
        }
        match self.phase {
            Phase::WarmUp => 0.2 * self.epoch as f64 / self.most_warm_up() as f64,
            Phase::Measure => 0.2 + 0.8 * self.epoch as f64 / self.epochs() as f64,
        }
    }

    /// The end of the next epoch.
    fn next_epoch(&self) -> Time {
        let into = Span::from_ps(self.epoch_length().as_ps().saturating_mul(self.epoch + 1));
        let into = into.saturating_sub(self.within_window());
        let into = match self.phase {
            Phase::WarmUp => self.fixed_warm_up.map_or(into, |warm_up| into.min(warm_up)),
            Phase::Measure if self.messages.is_some() => into,
            Phase::Measure => into.min(self.time),
        };
        self.began + into
    }

    /// Runs to the end of an epoch. RTL follows in steps, as what crosses ports is kept until it is taken.
    fn run_until(
        &mut self,
        network: &mut Traffic,
        until: Time,
        around: &mut Surroundings<'_>,
    ) -> Result<Progress, ExperimentError> {
        let mut step = around.rtl.as_ref().map(|_| RTL_STEP);
        loop {
            let to = step.map_or(until, |step| until.min(network.now() + step));
            let flag = around.interrupt.flag();
            let progress = match (&mut self.telemetry, around.results.as_deref_mut()) {
                (Some(telemetry), Some(results)) => telemetry.run_until(network, to, flag, results)?,
                _ => network.run_until(to, flag),
            };
            if let Some(rtl) = &mut around.rtl {
                let mut crossed = Vec::new();
                network.visit_outputs(&mut |output| crossed.append(&mut output.ports));
                rtl.take(crossed, network.now(), flag)?;
            }
            let differs = around.rtl.as_ref().is_some_and(|rtl| rtl.difference().is_some());
            if progress == Progress::Interrupted || to == until || differs {
                return Ok(progress);
            }
            // Where nothing is pending, time passes to the end of the epoch.
            step = step.filter(|_| progress != Progress::Dry);
        }
    }

    /// Runs one epoch.
    pub(super) fn step(
        &mut self,
        network: &mut Traffic,
        offered: &Offered,
        senders: u32,
        around: &mut Surroundings<'_>,
    ) -> Result<TrafficStep, ExperimentError> {
        if self.phase == Phase::WarmUp && self.warmed_up(network.now(), offered) {
            self.begin_measuring(network);
        }
        let until = self.next_epoch();
        let progress = self.run_until(network, until, around)?;
        if progress == Progress::Interrupted {
            return Ok(TrafficStep::Interrupted);
        }
        let delivered = self.collect(network, until, around)?;
        if let Some(difference) = around.rtl.as_ref().and_then(|rtl| rtl.difference()) {
            return Ok(TrafficStep::Ended(Conclusion::new(Ending::RtlDiffers, difference.to_owned())));
        }
        self.epoch += 1;
        if let Some(timeline) = &mut around.timeline {
            let counter = |name: &str| format!("run {}: {name}", self.index);
            timeline.counter(&counter("delivered_bytes"), until, delivered.bytes.get())?;
            timeline.counter(&counter("buffered_packets"), until, network.buffered() as u64)?;
        }
        if around.check
            && let Err(LostData(what)) = network.check()
        {
            return Ok(TrafficStep::Ended(Conclusion::new(Ending::LostData, what)));
        }
        if let Some(overrun) = network.overrun() {
            return Ok(TrafficStep::Ended(Conclusion::new(Ending::LostData, overrun)));
        }
        // While something is delivered, something moves.
        if delivered.messages == 0
            && let Some(stuck) = network.stuck()
        {
            return Ok(TrafficStep::Ended(crate::experiment::conclusion(&stuck)));
        }
        let ended = match self.messages {
            Some(messages) => self.delivered.messages >= messages || progress == Progress::Dry,
            None => self.phase == Phase::Measure && self.epoch == self.epochs(),
        };
        if ended {
            if let Some(rtl) = &mut around.rtl {
                match progress {
                    Progress::Dry => rtl.finish(network.now()),
                    _ => rtl.close(network.now()),
                }
                if let Some(difference) = rtl.difference() {
                    let conclusion = Conclusion::new(Ending::RtlDiffers, difference.to_owned());
                    return Ok(TrafficStep::Ended(conclusion));
                }
            }
            return Ok(TrafficStep::Done(Box::new(self.finish(network, offered, senders, around)?)));
        }
        Ok(TrafficStep::Epoch)
    }

    /// Whether measuring begins now.
    fn warmed_up(&mut self, now: Time, offered: &Offered) -> bool {
        if let Some(warm_up) = self.fixed_warm_up {
            return now >= self.began + warm_up;
        }
        if offered.load.millionths() == 0 {
            return true;
        }
        let means = self.warm_up_means.len();
        if means > 0 && means.is_multiple_of(LOOK_EVERY) && steady::warm_up(&self.warm_up_means).is_some() {
            return true;
        }
        self.settled = self.epoch < self.most_warm_up();
        !self.settled
    }

    fn begin_measuring(&mut self, network: &mut Traffic) {
        self.crossed_before = network.crossed();
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.before_reset(network);
        }
        network.reset_counters();
        network.visit_outputs(&mut |output| output.flows.clear());
        self.flows.clear();
        self.before = Before::of(network);
        self.phase = Phase::Measure;
        self.began = network.now();
        self.epoch = 0;
    }

    /// Takes what was delivered in the epoch that ends. Flows stay with the network until they are needed.
    fn collect(
        &mut self,
        network: &mut Traffic,
        until: Time,
        around: &mut Surroundings<'_>,
    ) -> Result<Delivered, ExperimentError> {
        let mut latency = Histogram::<10>::default();
        let mut bytes = Bytes::ZERO;
        let mut messages: Vec<MessageReport> = Vec::new();
        let keeps_packets = around.results.as_ref().is_some_and(|results| results.wants(Table::Packets));
        network.visit_outputs(&mut |output| {
            if keeps_packets {
                self.packets.take(&output.hops);
            }
            latency.merge(&std::mem::take(&mut output.latency));
            bytes += std::mem::take(&mut output.bytes);
            self.failed += std::mem::take(&mut output.failed);
            self.last = self.last.max(output.last);
            messages.append(&mut output.messages);
            if let Some(ways) = &mut self.ways {
                ways.take(output);
            }
            output.hops.clear();
        });
        if let Some(ways) = &mut self.ways {
            ways.deliver(&messages, self.phase == Phase::Measure, around.of)?;
        }
        let delivered = Delivered { messages: latency.count(), bytes };
        self.delivered.messages += delivered.messages;
        self.delivered.bytes += delivered.bytes;
        match self.phase {
            Phase::WarmUp => self.warm_up_means.extend(latency.mean().map(|mean| mean.as_ps() as f64)),
            Phase::Measure => {
                self.measured_bytes += bytes;
                self.latency.merge(&latency);
                self.batch.merge(&latency);
                // Messages that come at once have no steady state, of which batches would be samples.
                if self.messages.is_none() && (self.epoch + 1).is_multiple_of(self.epochs_per_batch()) {
                    let batch = std::mem::take(&mut self.batch);
                    self.batch_means.extend(batch.mean().map(|mean| mean.as_ps() as f64));
                    self.batch_p99s.extend(batch.percentile(99).map(|p99| p99.as_ps() as f64));
                }
                if let Some(results) = around.results.as_deref_mut().filter(|r| r.wants(Table::Messages)) {
                    self.unnoticed.take(messages.iter().map(|message| message_row(self.index, message)));
                    self.unnoticed.write(until, results)?;
                }
            }
        }
        if let Some(results) = &mut around.results {
            self.packets.write(self.index, until, results)?;
            results.epoch()?;
        }
        Ok(delivered)
    }

    /// Takes over the flows that the network has counted, so that none is lost when it is saved.
    pub(super) fn take_flows(&mut self, network: &mut Traffic) {
        network.visit_outputs(&mut |output| {
            for (flow, report) in std::mem::take(&mut output.flows) {
                self.flows.entry(flow).or_default().merge(&report);
            }
        });
    }

    fn finish(
        &mut self,
        network: &mut Traffic,
        offered: &Offered,
        senders: u32,
        around: &mut Surroundings<'_>,
    ) -> Result<RunResult, ResultsError> {
        self.take_flows(network);
        if self.messages.is_some() {
            self.time = (self.last - self.began).max(Span::from_ps(1));
            network.report_until(self.last);
        }
        if let Some(results) = &mut around.results {
            self.unnoticed.write(Time::NEVER, results)?;
            self.packets.write(self.index, Time::NEVER, results)?;
            for (&(source, destination), flow) in &self.flows {
                results.push(flow_row(self.index, &FlowEnds { source, destination, group: None }, flow))?;
            }
            write_links(self.index, network, self.time, results)?;
            if let Some(telemetry) = &mut self.telemetry {
                telemetry.finish(network, network.now(), results)?;
            }
        }
        let limits = Limits::new(&self.before, network, self.time, TOLERANCE);
        let refused = limits.grown_ps as f64 / (f64::from(senders.max(1)) * self.time.as_ps() as f64);
        let held = self.held(&limits, network, offered) / f64::from(senders.max(1));
        // What sources wait longer by was offered and not accepted, and so was what the machine took and
        // keeps. Too few messages to judge are no sign of saturation.
        let saturated = self.messages.is_none()
            && (steady::is_saturated(1.0, 1.0 - refused, TOLERANCE)
                || steady::is_saturated(1.0, 1.0 - refused - held, HELD_TOLERANCE)
                || !self.settled && self.warm_up_means.len() >= ENOUGH_MEANS);
        let busiest = limits.busiest(around.of);
        // Messages that are all there from the beginning wait for the machine, and not for the host.
        let limit = if saturated || self.messages.is_some() {
            limits.limit(&busiest, around.of.0)
        } else {
            Limit::of_offer()
        };
        let measured = network.crossed();
        let energy = measured.energy;
        let mut crossed = self.crossed_before;
        crossed += measured;
        Ok(RunResult {
            accepted: offered.accepted(self.measured_bytes, self.time.as_ps(), senders),
            latency: std::mem::take(&mut self.latency),
            legs: self.ways.as_ref().map(Ways::sums),
            batch_means: std::mem::take(&mut self.batch_means),
            batch_p99s: std::mem::take(&mut self.batch_p99s),
            warm_up: self.began - Time::ZERO,
            time: self.time,
            saturated,
            limit,
            busiest,
            delivered: self.delivered,
            failed: self.failed,
            off_in_warm_up: self.crossed_before.counts.off,
            crossed,
            pauses: Pauses::of(network),
            energy,
            measured_bytes: self.measured_bytes,
            end: network.now(),
        })
    }

    /// The messages by which more are in the machine than when the measured time began, by those that an
    /// endpoint was to offer meanwhile; 0 where it may be chance, and where links lose messages.
    fn held(&self, limits: &Limits, network: &Traffic, offered: &Offered) -> f64 {
        let delivered = self.latency.count();
        let before = self.before.taken().saturating_sub(self.delivered.messages - delivered);
        let after = (before + limits.taken).saturating_sub(delivered);
        let (before, after) = (before as f64, after as f64);
        let by_chance = 3.0 * (before + after).sqrt();
        let counts = self.crossed(network).counts;
        if after - before <= by_chance || !counts.is_undisturbed() {
            return 0.0;
        }
        (after - before) / offered.messages_in(self.time.as_ps() as f64).max(1.0)
    }

    /// Links crossed so far, warm-up included.
    pub(super) fn crossed(&self, network: &Traffic) -> Crossed {
        let mut crossed = self.crossed_before;
        crossed += network.crossed();
        crossed
    }

    /// The messages that were delivered so far, warm-up included.
    pub(super) fn delivered(&self) -> Delivered {
        self.delivered
    }
}

fn message_row(run: u32, message: &MessageReport) -> MessageRow {
    MessageRow {
        run,
        delivered_ps: message.delivered,
        source_endpoint: message.source,
        destination_endpoint: message.destination,
        sequence: message.number.into(),
        source_rank: None,
        destination_rank: None,
        tag: None,
        class: "pattern".to_owned(),
        group: None,
        payload_bytes: message.bytes,
        posted_ps: message.created_at,
        hops: message.hops.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of all epochs of the measured time of a run that began measuring at `began`, in ps.
    fn ends(time: u64, window: Option<u64>, began: u64) -> Vec<u64> {
        let mut run = Run::new(0, Span::from_ps(time), None, window.map(Span::from_ps));
        (run.phase, run.began) = (Phase::Measure, Time::from_ps(began));
        let ends = (0..run.epochs()).map(|epoch| {
            run.epoch = epoch;
            run.next_epoch().as_ps()
        });
        ends.collect()
    }

    /// Catches epochs that cut windows, and a measured time that is not the one asked for.
    #[test]
    fn epochs_end_with_windows_and_the_last_with_the_time() {
        for window in [1, 333, 200_000, 1_234_567, 40_000_000] {
            for began in [0, window * 7, 1, 123_456_789] {
                for time in [1, 100_000, 10_000_000, 1_000_000_007] {
                    let ends = ends(time, Some(window), began);
                    let (last, others) = ends.split_last().unwrap();
                    assert_eq!(*last, began + time);
                    assert!(others.iter().all(|end| end % window == 0), "{window} {began} {time}");
                    assert!(ends.windows(2).all(|pair| pair[0] < pair[1]) && ends[0] > began);
                    assert!(others.windows(2).all(|pair| pair[1] - pair[0] >= 100_000));
                    assert!(ends.len() <= 202, "{} epochs", ends.len());
                }
            }
        }
        assert_eq!(ends(250_000, None, 5), [100_005, 200_005, 250_005]);
    }
}
