//! Telemetry: the traffic of links, the fill of queues and what came of flows over virtual time.
//!
//! ```text
//!  virtual time  ├── interval ──┼── interval ──┼── …          look: counters of links and flows since
//!                               ▲              ▲                    the last one, and how full queues were
//!  level 0            a row per link and queue at each look
//!  level 1            ten of them in one row …
//! ```
//! A look is between two events, at a multiple of the interval, and changes nothing. So a run with telemetry
//! has the results of one without, and the rows do not depend on threads. What is kept between looks grows
//! with the links of the machine and with its flows, and not with the time.

use crate::job_sites::JobSites;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weft_engine::Progress;
use weft_fabric::{FlowCount, FlowId, LinkEnd, QueueSide};
use weft_network::{LinkUse, SimulatedNetwork};
use weft_nic::Host;
use weft_results::{
    FlowRateRow, INTERVALS_PER_COARSER, JobRateRow, QueueRow, RateRow, ResultsError, ResultsWriter,
    TELEMETRY_LEVELS, Table,
};
use weft_units::{Bytes, Energy, PortId, Span, SwitchId, Time};

/// A compressed row of `rates` on the disk, in tenths of a byte: 2.3 bytes with
/// `weft traffic -m bxi3-fattree --load 0.5 --time 1ms --telemetry 1us`.
const ROW_TENTHS_OF_BYTES: u128 = 23;
/// Telemetry that is refused by default: bytes on the disk, and looks.
const MOST_BYTES: u128 = 100_000_000_000;
const MOST_LOOKS: u64 = 1_000_000;
/// The same of a run of which nobody knows how long it will be: real time of looks for a microsecond of
/// virtual time.
const MOST_SECONDS_PER_US: f64 = 10.0;
/// Time of a look at a link, its row included, measured with `weft traffic -m bxi3-fattree --load 0.1 --time
/// 100us` with and without `--telemetry 100ns`.
const SECONDS_PER_LINK: f64 = 1000e-9;

const LEVELS: usize = TELEMETRY_LEVELS as usize;

/// Counters of a link.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
struct Counters {
    packets: u64,
    packet_bytes: u64,
    busy_ps: u64,
    stall_ps: u64,
    paused_ps: u64,
    energy_pj: u64,
    asleep_ps: u64,
}

impl Counters {
    fn of(link: &LinkUse) -> Counters {
        let power = link.power.unwrap_or_default();
        Counters {
            packets: link.packets,
            packet_bytes: link.packet_bytes.get(),
            busy_ps: link.busy.as_ps(),
            stall_ps: link.stalled.as_ps(),
            paused_ps: link.paused.as_ps(),
            energy_pj: power.energy.as_pj(),
            asleep_ps: (power.low + power.off).as_ps(),
        }
    }

    /// Field by field, modulo 2^64: counters that were set to zero meanwhile leave their old values behind as
    /// a negative difference.
    fn each(self, other: Counters, with: impl Fn(u64, u64) -> u64) -> Counters {
        Counters {
            packets: with(self.packets, other.packets),
            packet_bytes: with(self.packet_bytes, other.packet_bytes),
            busy_ps: with(self.busy_ps, other.busy_ps),
            stall_ps: with(self.stall_ps, other.stall_ps),
            paused_ps: with(self.paused_ps, other.paused_ps),
            energy_pj: with(self.energy_pj, other.energy_pj),
            asleep_ps: with(self.asleep_ps, other.asleep_ps),
        }
    }

    fn plus(self, other: Counters) -> Counters {
        self.each(other, u64::wrapping_add)
    }

    fn minus(self, other: Counters) -> Counters {
        self.each(other, u64::wrapping_sub)
    }

    fn row(self, (run, level): (u32, usize), (begin, end): (Time, Time), link: &LinkUse) -> RateRow {
        // Power is reported up to the end of the run, beyond which the last look may have been.
        let passed = |counter: u64| if counter > u64::MAX / 2 { 0 } else { counter };
        let has_power = link.power.is_some();
        let (from_endpoint, from_switch, from_port) = match link.from {
            LinkEnd::Endpoint(endpoint) => (Some(endpoint), None, None),
            LinkEnd::Port(switch, port) => (None, Some(switch), Some(port)),
        };
        RateRow {
            run,
            level: level as u32,
            begin_ps: begin,
            end_ps: end,
            from_endpoint,
            from_switch,
            from_port,
            packets: self.packets,
            packet_bytes: Bytes::new(self.packet_bytes),
            busy_ps: Span::from_ps(self.busy_ps),
            stall_ps: Span::from_ps(self.stall_ps),
            paused_ps: Span::from_ps(self.paused_ps),
            energy_pj: has_power.then(|| Energy::from_pj(passed(self.energy_pj))),
            asleep_ps: has_power.then(|| Span::from_ps(passed(self.asleep_ps))),
            fair_bits_per_second: link.fair_rate,
        }
    }
}

/// A queue: its switch, its side (output or not), its port and its virtual channel.
type QueueKey = (u32, bool, u32, u32);

/// The fill of a queue over several intervals.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
struct Fill {
    most_packets: u32,
    most_held: u64,
    /// Sum over the looks at the ends of the intervals.
    held: u64,
}

impl Fill {
    fn merge(&mut self, other: Fill) {
        self.most_packets = self.most_packets.max(other.most_packets);
        self.most_held = self.most_held.max(other.most_held);
        self.held += other.held;
    }
}

/// A level: what has happened since its interval began.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
struct Level {
    began: Time,
    /// Finished intervals of the level below.
    intervals: u32,
    /// Looks at queues.
    looks: u64,
    links: Vec<Counters>,
    queues: BTreeMap<QueueKey, Fill>,
    flows: BTreeMap<FlowId, FlowCount>,
    /// By job, that of packets of which nobody knows it first.
    jobs: BTreeMap<Option<u32>, FlowCount>,
}

/// Jobs that are looked at. One alone is looked at for its rates, and for nothing else.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WatchedJobs {
    /// Jobs on the machine.
    pub jobs: u32,
    /// Which job a packet is of.
    pub sites: JobSites,
}

/// The looks that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TelemetryLooks {
    /// The interval between two.
    pub every: Span,
    /// Whether there may be any number of them.
    pub unlimited: bool,
}

impl TelemetryLooks {
    /// About how long they take during `time`, on a machine with so many links.
    pub fn seconds(self, time: Span, links: u64) -> f64 {
        self.during(time) as f64 * links as f64 * SECONDS_PER_LINK
    }

    fn during(self, time: Span) -> u64 {
        time.as_ps() / self.every.as_ps().max(1)
    }
}

/// The telemetry of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Telemetry {
    run: u32,
    looks: TelemetryLooks,
    /// Whether nobody knows how long the run will be.
    is_open_ended: bool,
    next: Time,
    /// Counters at the last look.
    before: Vec<Counters>,
    /// The same of flows, where they are counted.
    flows_before: BTreeMap<FlowId, FlowCount>,
    levels: Vec<Level>,
    /// Whether endpoints count by flow, where the network can.
    counts_flows: bool,
    /// Whether the network counts how full queues become.
    meters_queues: bool,
    /// The jobs, where packets are counted by job.
    watched_jobs: Option<WatchedJobs>,
}

impl Telemetry {
    /// Telemetry of run number `run` with a look at every multiple of an interval, from the beginning on.
    pub fn new(run: u32, looks: TelemetryLooks) -> Telemetry {
        let (next, levels) = (Time::ZERO + looks.every, vec![Level::default(); LEVELS]);
        Telemetry {
            run,
            looks,
            is_open_ended: false,
            next,
            before: Vec::new(),
            flows_before: BTreeMap::new(),
            levels,
            counts_flows: false,
            meters_queues: false,
            watched_jobs: None,
        }
    }

    /// The same of a run that is as long as its program.
    pub fn open_ended(self) -> Telemetry {
        Telemetry { is_open_ended: true, ..self }
    }

    /// The same, of jobs as well.
    pub fn by_job(self, jobs: WatchedJobs) -> Telemetry {
        Telemetry { watched_jobs: Some(jobs), ..self }
    }

    /// Refuses to look so often during `time` that it does not end, or that the table of links would grow
    /// beyond what a disk holds; unless that was asked for.
    pub fn refuse_too_much<H: Host>(
        &self,
        network: &dyn SimulatedNetwork<H>,
        time: Span,
    ) -> Result<(), ResultsError> {
        let mut links = 0_u128;
        network.visit_links(&mut |_| links += 1);
        let looks_of = |every| TelemetryLooks { every, ..self.looks }.during(time);
        let bytes_of = |every| u128::from(looks_of(every)) * links * 10 / 9 * ROW_TENTHS_OF_BYTES / 10;
        let is_enough = |every| bytes_of(every) <= MOST_BYTES && looks_of(every) <= MOST_LOOKS;
        let every = self.looks.every;
        if self.looks.unlimited || is_enough(every) {
            return Ok(());
        }
        let powers = std::iter::successors(Some(every), |interval| interval.checked_mul(10));
        let enough = powers.into_iter().find(|&interval| is_enough(interval));
        let enough = enough.map(|interval| interval.to_string());
        Err(match bytes_of(every) {
            bytes if bytes > MOST_BYTES => ResultsError::TooMuchTelemetry { bytes, enough },
            _ => ResultsError::TooManyLooks { every: every.to_string(), looks: looks_of(every), enough },
        })
    }

    /// Refuses looks that take for ever, and one after too many, where nobody knew how long the run would be;
    /// unless that was asked for.
    fn refuse_endless<H: Host>(
        &self,
        network: &dyn SimulatedNetwork<H>,
        now: Time,
    ) -> Result<(), ResultsError> {
        let TelemetryLooks { every, unlimited } = self.looks;
        if unlimited {
            return Ok(());
        }
        if self.is_open_ended && self.before.is_empty() {
            let mut links = 0;
            network.visit_links(&mut |_| links += 1);
            let seconds = |every| TelemetryLooks { every, unlimited }.seconds(Span::from_us(1), links);
            if seconds(every) > MOST_SECONDS_PER_US {
                let powers = std::iter::successors(Some(every), |interval| interval.checked_mul(10));
                let enough = powers.into_iter().find(|interval| seconds(*interval) <= MOST_SECONDS_PER_US);
                let (every, enough) = (every.to_string(), enough.map(|interval| interval.to_string()));
                return Err(ResultsError::SlowLooks { every, enough });
            }
        }
        let passed = now - Time::ZERO;
        if self.looks.during(passed) <= MOST_LOOKS {
            return Ok(());
        }
        let enough = every.checked_mul(1000).map(|interval| interval.to_string());
        Err(ResultsError::TooManyLooks { every: every.to_string(), looks: MOST_LOOKS, enough })
    }

    /// Runs the network as [`SimulatedNetwork::run_until`] does, and looks at it on the way.
    pub fn run_until<H: Host>(
        &mut self,
        network: &mut dyn SimulatedNetwork<H>,
        until: Time,
        interrupt: &AtomicBool,
        results: &mut ResultsWriter,
    ) -> Result<Progress, ResultsError> {
        let by_job = self.watched_jobs.is_some() && results.wants(Table::JobRates);
        if (results.wants(Table::FlowRates) || by_job) && !self.counts_flows {
            if !network.meter_flows() && results.wants(Table::FlowRates) {
                return Err(ResultsError::NoFlowRates);
            }
            self.counts_flows = true;
        }
        let is_alone = self.watched_jobs.as_ref().is_some_and(|watched| watched.jobs == 1);
        if results.wants(Table::Queues) && !self.meters_queues && !is_alone {
            network.meter_queues();
            self.meters_queues = true;
        }
        loop {
            let stop = self.next.min(until);
            let progress = network.run_until(stop, interrupt);
            if progress != Progress::Reached {
                return Ok(progress);
            }
            if stop == self.next {
                self.refuse_endless(network, stop)?;
                self.look(network, stop, results)?;
                network.restart_queue_meters();
                self.next = stop.saturating_add(self.looks.every);
            }
            if stop == until {
                return Ok(progress);
            }
        }
    }

    /// The counters of the network are about to be set to zero.
    pub fn before_reset<H: Host>(&mut self, network: &dyn SimulatedNetwork<H>) {
        let mut number = 0;
        network.visit_links(&mut |link| {
            let before = at(&mut self.before, number);
            *before = before.minus(Counters::of(&link));
            number += 1;
        });
    }

    /// The run has ended at `end`, within an interval of every level: writes what they have.
    pub fn finish<H: Host>(
        &mut self,
        network: &dyn SimulatedNetwork<H>,
        end: Time,
        results: &mut ResultsWriter,
    ) -> Result<(), ResultsError> {
        if end > self.levels[0].began {
            self.add(network);
            self.levels[0].intervals = 1;
        }
        for level in 0..LEVELS {
            if self.levels[level].intervals > 0 {
                self.close(network, level, end, results)?;
            }
        }
        Ok(())
    }

    /// Looks at links and queues at the end of an interval.
    fn look<H: Host>(
        &mut self,
        network: &dyn SimulatedNetwork<H>,
        end: Time,
        results: &mut ResultsWriter,
    ) -> Result<(), ResultsError> {
        self.add(network);
        self.levels[0].intervals = INTERVALS_PER_COARSER;
        for level in 0..LEVELS {
            if self.levels[level].intervals < INTERVALS_PER_COARSER {
                break;
            }
            self.close(network, level, end, results)?;
        }
        Ok(())
    }

    /// Adds what has happened since the last look to the finest level.
    fn add<H: Host>(&mut self, network: &dyn SimulatedNetwork<H>) {
        let Telemetry { before, flows_before, levels, watched_jobs, .. } = self;
        let finest = &mut levels[0];
        let is_alone = watched_jobs.as_ref().is_some_and(|watched| watched.jobs == 1);
        let mut number = 0;
        network.visit_links(&mut |link| {
            if is_alone {
                return;
            }
            let now = Counters::of(&link);
            let since = now.minus(std::mem::replace(at(before, number), now));
            let sum = at(&mut finest.links, number);
            *sum = sum.plus(since);
            number += 1;
        });
        network.visit_queues(&mut |queue| {
            if is_alone {
                return;
            }
            let key = (queue.switch.0, queue.side == QueueSide::Output, queue.port.0, queue.vc.0);
            let (most_packets, most_held) = (queue.most_packets, queue.most_held.get());
            let fill = Fill { most_packets, most_held, held: queue.held.get() };
            finest.queues.entry(key).or_default().merge(fill);
        });
        network.visit_flows(&mut |flow, now| {
            let before = flows_before.insert(flow, now).unwrap_or_default();
            let (packets, payload) = (now.packets - before.packets, now.payload - before.payload);
            if packets == 0 {
                return;
            }
            if !is_alone {
                add_count(&mut finest.flows, flow, FlowCount { packets, payload });
            }
            if let Some(WatchedJobs { sites, .. }) = watched_jobs {
                let job = sites.job_of(flow.source, flow.destination);
                add_count(&mut finest.jobs, job, FlowCount { packets, payload });
            }
        });
        finest.looks += 1;
    }

    /// Ends an interval of a level: writes its rows and hands it on to the next.
    fn close<H: Host>(
        &mut self,
        network: &dyn SimulatedNetwork<H>,
        level: usize,
        end: Time,
        results: &mut ResultsWriter,
    ) -> Result<(), ResultsError> {
        let empty = Level { began: end, ..Level::default() };
        let closed = std::mem::replace(&mut self.levels[level], empty);
        let (of, times) = ((self.run, level), (closed.began, end));
        if results.wants(Table::Rates) {
            let (mut number, mut outcome) = (0, Ok(()));
            network.visit_links(&mut |link| {
                let counters = closed.links.get(number).copied().unwrap_or_default();
                number += 1;
                if outcome.is_ok() && counters != Counters::default() {
                    outcome = results.push(counters.row(of, times, &link));
                }
            });
            outcome?;
        }
        for (&(switch, is_output, port, vc), fill) in &closed.queues {
            results.push(QueueRow {
                run: self.run,
                level: level as u32,
                begin_ps: closed.began,
                end_ps: end,
                switch: SwitchId(switch),
                port: PortId(port),
                virtual_channel: vc,
                side: if is_output { "output" } else { "input" }.to_owned(),
                most_packets: fill.most_packets,
                most_held_bytes: Bytes::new(fill.most_held),
                mean_held_bytes: Bytes::new(fill.held / closed.looks.max(1)),
            })?;
        }
        for (&job, count) in &closed.jobs {
            results.push(JobRateRow {
                run: self.run,
                jobs: self.watched_jobs.as_ref().map_or(1, |watched| watched.jobs),
                job,
                level: level as u32,
                begin_ps: closed.began,
                end_ps: end,
                packets: count.packets,
                payload_bytes: count.payload,
            })?;
        }
        if !closed.flows.is_empty() && results.wants(Table::FlowRates) {
            let mut allowed = BTreeMap::new();
            network.visit_allowed_rates(&mut |flow, rate| {
                allowed.insert(flow, rate);
            });
            for (flow, count) in &closed.flows {
                results.push(FlowRateRow {
                    run: self.run,
                    level: level as u32,
                    begin_ps: closed.began,
                    end_ps: end,
                    source_endpoint: flow.source,
                    destination_endpoint: flow.destination,
                    traffic_class: flow.class.into(),
                    packets: count.packets,
                    payload_bytes: count.payload,
                    allowed_bits_per_second: allowed.get(flow).copied(),
                })?;
            }
        }
        let Some(coarser) = self.levels.get_mut(level + 1) else { return Ok(()) };
        coarser.intervals += 1;
        coarser.looks += closed.looks;
        for (number, counters) in closed.links.into_iter().enumerate() {
            let sum = at(&mut coarser.links, number);
            *sum = sum.plus(counters);
        }
        for (key, fill) in closed.queues {
            coarser.queues.entry(key).or_default().merge(fill);
        }
        for (flow, count) in closed.flows {
            add_count(&mut coarser.flows, flow, count);
        }
        for (job, count) in closed.jobs {
            add_count(&mut coarser.jobs, job, count);
        }
        Ok(())
    }
}

fn add_count<K: Ord>(counts: &mut BTreeMap<K, FlowCount>, of: K, count: FlowCount) {
    let sum = counts.entry(of).or_default();
    sum.packets += count.packets;
    sum.payload += count.payload;
}

/// The counters of a link, by its number.
fn at(links: &mut Vec<Counters>, number: usize) -> &mut Counters {
    if links.len() <= number {
        links.resize(number + 1, Counters::default());
    }
    &mut links[number]
}
