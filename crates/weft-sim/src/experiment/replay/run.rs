//! Runs a replay: epochs of virtual time, between which rows are written and decisions are taken.
//!
//! ```text
//!  open, check, place ──► network ──► epoch ──► epoch ──► … ──► dry: finished, or who waits for what
//!                                       │ messages, timeline written; progress; Ctrl-C; check
//!                                       └ at the times of --save-every: snapshot
//! ```
//! An epoch is as long as it takes for a bounded number of events, so that what is collected in it fits
//! in memory however long the trace is. Its end depends on events alone, never on threads or snapshots.

use super::programs;
use super::tables::{self, Shared};
use super::{ReplayReport, ReplayRequest, ReplayRow, Wildcards};
use crate::assembly;
use crate::experiment::busiest::Busiest;
use crate::experiment::link_table::write_links;
use crate::experiment::machine::{assumed, described};
use crate::experiment::{Context, ExperimentError, Measured, Request, RunOptions};
use crate::machine::{self, Machine, Progress as MachineProgress};
use crate::network::{self, Crossed, LinkUse, NetworkError, SimulatedNetwork};
use crate::results::{
    Ending, Performance, ResultsWriter, RunManifest, Stopwatch, Table, Totals, date, peak_memory,
};
use crate::timeline::{self, Arrow, TimelineWriter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_engine::Progress;
use weft_topo::{Layout, Topology};
use weft_trace::Trace;
use weft_units::{Bytes, EndpointId, RankId, Span, Time};
use weft_workload::flow::FlowReport;
use weft_workload::replay::{
    Activity, Delivery, Program, ProgressRule, RankReport, ReplayHost, ReplayOutput, ReplayParameters,
    TimelineEvent,
};

/// The first epoch.
const FIRST_EPOCH: Span = Span::from_us(100);
/// An epoch with fewer events is followed by one of twice its length, one with more by one of half.
const FEW_EVENTS: u64 = 1 << 18;
const MANY_EVENTS: u64 = 1 << 21;
/// Lines of a report of who waits for what.
const WAITING_SHOWN: usize = 20;
/// Busiest links in a report.
const BUSIEST: usize = 5;

/// What has been counted and decided so far: with the network's state, all that a resumed run needs.
#[derive(Serialize, Deserialize)]
struct Tally {
    programs: Vec<Delivery>,
    flows: BTreeMap<(EndpointId, EndpointId), FlowReport>,
    epoch: Epoch,
}

/// The present epoch.
#[derive(Serialize, Deserialize)]
struct Epoch {
    end: Time,
    length: Span,
    /// Events in it so far.
    events: u64,
}

impl Epoch {
    /// The next epoch begins.
    fn next(&mut self) {
        let ps = self.length.as_ps();
        self.length = Span::from_ps(match self.events {
            ..FEW_EVENTS => ps.saturating_mul(2),
            MANY_EVENTS.. => (ps / 2).max(1),
            _ => ps,
        });
        self.end = self.end.saturating_add(self.length);
        self.events = 0;
    }
}

/// A replay that is under way.
struct Run<'a> {
    request: &'a ReplayRequest,
    options: &'a RunOptions,
    context: Context<'a>,
    machine: &'a Machine,
    layout: &'a Layout,
    /// A second copy of what the network shares with its hosts: who sits where.
    seating: &'a Seating,
    network: Box<dyn SimulatedNetwork<ReplayHost>>,
    writer: Option<ResultsWriter>,
    timeline: Option<TimelineWriter>,
    arrows: u64,
    tally: Tally,
}

/// Which ranks there are, and where.
struct Seating {
    parameters: ReplayParameters,
    operations: u64,
}

/// Replays the traces together.
pub fn run(
    request: &ReplayRequest,
    options: &RunOptions,
    context: Context<'_>,
) -> Result<ReplayReport, ExperimentError> {
    let (started, stopwatch) = (date(), Stopwatch::start());
    let input = &request.machine;
    let machine =
        machine::check_text(&input.name, &input.text, &input.sets).map_err(ExperimentError::input)?;
    let traces = programs::open(request)?;
    let estimate = programs::estimate(&machine, &traces)?;
    assembly::check_memory(&machine, Bytes::new(estimate.memory_bytes)).map_err(ExperimentError::input)?;
    context.progress.estimate(estimate);
    let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
    let operations = traces.iter().map(Trace::operations).sum();

    let (writer, saved) = match &options.output {
        Some(output) => {
            let (writer, saved) = output.open(&Request::Replay(request.clone()))?;
            (Some(writer), saved)
        }
        None => (None, None),
    };
    let saved = saved.map(|bytes| read_state(&bytes)).transpose()?;
    let (tally, state) = match saved {
        Some((tally, state)) => (tally, Some(state)),
        None => {
            let epoch = Epoch { end: Time::ZERO + FIRST_EPOCH, length: FIRST_EPOCH, events: 0 };
            (Tally { programs: Vec::new(), flows: BTreeMap::new(), epoch }, None)
        }
    };

    let building = Stopwatch::start();
    let wants = |table| writer.as_ref().is_some_and(|writer| writer.wants(table));
    let placed = programs::place(request, &machine, &layout, traces)?;
    let again = placed.iter().map(|p| Program { trace: p.trace.clone(), places: p.places.clone() }).collect();
    let protocol = protocol(&machine, request.wildcards)?;
    let mut parameters = ReplayParameters::new(placed, protocol.clone(), progress_rule(&machine));
    parameters.report_messages = wants(Table::Messages);
    parameters.report_flows = wants(Table::Flows);
    parameters.report_timeline = options.timeline.is_some();
    let mut hosts = parameters.hosts(layout.endpoints()).into_iter();
    let seating =
        Seating { parameters: ReplayParameters::new(again, protocol, progress_rule(&machine)), operations };
    let network_layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
    let network = network::build(
        &machine,
        network_layout,
        request.seed,
        options.threads as usize,
        parameters,
        |_| hosts.next().unwrap_or_default(),
        state.as_deref(),
    )
    .map_err(|error| match error {
        NetworkError::Assembly(error) => ExperimentError::input(error),
        error => ExperimentError::input(error),
    })?;
    drop(state);
    let timeline = options.timeline.as_deref().map(TimelineWriter::create).transpose()?;
    let build_time_s = building.seconds();

    let simulating = Stopwatch::start();
    let mut run = Run {
        request,
        options,
        context,
        machine: &machine,
        layout: &layout,
        seating: &seating,
        network,
        writer,
        timeline,
        arrows: 0,
        tally,
    };
    run.name_tracks()?;
    let (ended, detail) = run.epochs()?;
    let simulated = simulating.seconds();
    let crossed = run.network.crossed();
    let Crossed { packet_hops, .. } = crossed;
    let rows = run.rows(&crossed);
    let mut performance = Performance::measured(options, started, &stopwatch, packet_hops);
    let packet_hops_per_second = if simulated > 0.0 { packet_hops as f64 / simulated } else { 0.0 };
    performance.packet_hops_per_second = packet_hops_per_second;
    run.finish(ended, detail.clone(), &rows, crossed, performance.clone())?;
    let peak_memory_bytes = peak_memory().unwrap_or(0);
    let measured = |row| Measured { row, packet_hops_per_second, build_time_s, peak_memory_bytes };
    Ok(ReplayReport { ended, detail, rows: rows.into_iter().map(measured).collect(), performance })
}

fn protocol(machine: &Machine, wildcards: Wildcards) -> Result<weft_msg::Protocol, ExperimentError> {
    let wildcards = match wildcards {
        Wildcards::Recorded => weft_msg::Wildcards::Recorded,
        Wildcards::Free => weft_msg::Wildcards::Free,
    };
    assembly::protocol(machine, wildcards).map_err(ExperimentError::input)
}

fn progress_rule(machine: &Machine) -> ProgressRule {
    match machine.messaging.progress {
        MachineProgress::Call => ProgressRule::Call,
        MachineProgress::Thread | MachineProgress::Nic => ProgressRule::Background,
    }
}

/// A snapshot: what was counted, then the network's state.
fn read_state(bytes: &[u8]) -> Result<(Tally, Vec<u8>), ExperimentError> {
    postcard::from_bytes(bytes).map_err(|error| {
        ExperimentError::input(format!(
            "the saved state cannot be read: {error}; it was written by another version of weft or is damaged"
        ))
    })
}

impl Run<'_> {
    /// Names the tracks of the timeline: `rank 3 (M1QAF1)`.
    fn name_tracks(&mut self) -> Result<(), ExperimentError> {
        let Some(timeline) = &mut self.timeline else { return Ok(()) };
        let parameters = &self.seating.parameters;
        let several = parameters.programs().len() > 1;
        for (index, (program, input)) in (0..).zip(parameters.programs().iter().zip(&self.request.traces)) {
            for rank in 0..program.trace.ranks() {
                let number = parameters.number(index, RankId(rank));
                let endpoint = self.layout.endpoint_name(parameters.endpoint(number));
                let prefix = if several { format!("{} ", input.name) } else { String::new() };
                timeline.track(number, &format!("{prefix}rank {rank} ({endpoint})"))?;
            }
        }
        Ok(())
    }

    /// Runs epoch after epoch.
    fn epochs(&mut self) -> Result<(Ending, Option<String>), ExperimentError> {
        let every = self.options.save_every.filter(|_| self.writer.is_some());
        let mut next_save = every.map(|every| next_multiple(self.network.now(), every));
        loop {
            let until = self.tally.epoch.end.min(next_save.unwrap_or(Time::MAX));
            let before = self.network.events_handled();
            let progress = self.network.run_until(until, self.context.interrupt.flag());
            self.tally.epoch.events += self.network.events_handled() - before;
            self.take_outputs()?;
            if self.options.check
                && let Err(lost) = self.network.check()
            {
                return Ok((Ending::LostData, Some(lost.to_string())));
            }
            match progress {
                Progress::Dry => return Ok(self.dry()),
                Progress::Interrupted => return Ok((Ending::Interrupted, None)),
                Progress::Reached => {}
            }
            if until == self.tally.epoch.end {
                self.tally.epoch.next();
                if let Some(writer) = &mut self.writer {
                    writer.epoch()?;
                }
                self.report_progress();
            }
            if let (Some(at), Some(every)) = (next_save, every)
                && until == at
            {
                self.save()?;
                next_save = Some(at.saturating_add(every));
            }
        }
    }

    /// Nothing is pending: all is done, or nothing can ever happen again.
    fn dry(&self) -> (Ending, Option<String>) {
        if self.ranks().iter().all(|rank| rank.finished) {
            return (Ending::Finished, None);
        }
        let waiting = self.who_waits();
        let faults = self.network.crossed().faults;
        if faults.lost() + faults.corrupted > 0 && self.network.buffered() == 0 {
            let detail = format!(
                "{} packets were lost by chance, {} on dead links, and {} were corrupted; what the interface did not \
                 repair is missing, and ranks wait for it\n{waiting}",
                faults.dropped, faults.dead, faults.corrupted
            );
            return (Ending::LostData, Some(detail));
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
        let several = self.request.traces.len() > 1;
        let mut lines: Vec<String> = blocked
            .iter()
            .take(WAITING_SHOWN)
            .map(|(program, blocked)| match several {
                true => format!("{}: {blocked}", self.request.traces[*program as usize].name),
                false => blocked.to_string(),
            })
            .collect();
        if let Some(more) = blocked.len().checked_sub(WAITING_SHOWN).filter(|more| *more > 0) {
            lines.push(format!("and {more} more ranks"));
        }
        let interrupted = self.seating.parameters.programs().iter();
        if interrupted.into_iter().any(|program| program.trace.metadata().header.interrupted) {
            lines.push("a recording was interrupted: its last messages may be missing".to_owned());
        }
        lines.join("\n")
    }

    /// Writes what has happened since it was last called.
    fn take_outputs(&mut self) -> Result<(), ExperimentError> {
        let (mut messages, mut events, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        let tally = &mut self.tally;
        self.network.visit_outputs(&mut |output| {
            let ReplayOutput { programs, flows, messages: some, timeline, faults: wrong, .. } =
                std::mem::take(output);
            if tally.programs.len() < programs.len() {
                tally.programs.resize(programs.len(), Delivery::default());
            }
            for (sum, part) in tally.programs.iter_mut().zip(&programs) {
                sum.merge(part);
            }
            for (flow, report) in flows {
                tally.flows.entry(flow).or_default().merge(&report);
            }
            messages.extend(some);
            events.extend(timeline);
            faults.extend(wrong);
        });
        // Which fault is found first may depend on the threads; which is reported must not.
        if let Some(fault) = faults.into_iter().min() {
            return Err(ExperimentError::input(fault));
        }
        if let Some(writer) = &mut self.writer {
            messages.sort_unstable_by_key(|m| (m.delivered, m.source, m.number));
            messages.iter().try_for_each(|message| writer.message(tables::message_row(message)))?;
        }
        if let Some(timeline) = &mut self.timeline {
            // The events of a rank are in order already.
            events.sort_by_key(TimelineEvent::rank);
            for event in events {
                draw(timeline, event, &mut self.arrows)?;
            }
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), ExperimentError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let network = self.network.save().map_err(ExperimentError::input)?;
        let state = postcard::to_stdvec(&(&self.tally, network)).map_err(ExperimentError::input)?;
        writer.save(&state)?;
        Ok(())
    }

    fn report_progress(&self) {
        let mut done = 0;
        self.network.visit_hosts(&mut |_, host| {
            done += host.ranks().map(|rank| rank.operations).sum::<u64>();
        });
        let share = done as f64 / self.seating.operations.max(1) as f64;
        let now = (self.network.now() - Time::ZERO).as_us_f64();
        self.context.progress.advance(share, &format!("at {now:.1} us"));
    }

    /// All ranks, counted over all programs.
    fn ranks(&self) -> Vec<RankReport> {
        let mut ranks = Vec::new();
        self.network.visit_hosts(&mut |_, host| ranks.extend(host.ranks()));
        ranks.sort_by_key(|rank| (rank.program, rank.rank));
        ranks
    }

    /// A row for each trace.
    fn rows(&self, crossed: &Crossed) -> Vec<ReplayRow> {
        let ranks = self.ranks();
        let mut busiest = Busiest::new(BUSIEST);
        self.network.visit_links(&mut |link: LinkUse| busiest.see(link));
        let end = ranks.iter().map(|rank| rank.end).max().unwrap_or(Time::ZERO);
        let shared = Shared {
            layout: self.layout,
            end,
            busiest: &busiest,
            packet_hops: crossed.packet_hops,
            packets_dropped: crossed.faults.lost(),
            seed: self.request.seed,
        };
        let none = Delivery::default();
        let row = |(index, trace): (usize, &super::TraceInput)| {
            let program = index as u32;
            let own: Vec<RankReport> = ranks.iter().copied().filter(|rank| rank.program == program).collect();
            let first_rank = self.seating.parameters.number(program, RankId(0)).0;
            let delivered = self.tally.programs.get(index).unwrap_or(&none);
            tables::report_row(&trace.name, first_rank, &own, delivered, &shared)
        };
        self.request.traces.iter().enumerate().map(row).collect()
    }

    /// Writes the tables that are known at the end only, and makes the results whole.
    fn finish(
        mut self,
        ended: Ending,
        detail: Option<String>,
        rows: &[ReplayRow],
        crossed: Crossed,
        performance: Performance,
    ) -> Result<(), ExperimentError> {
        if let Some(timeline) = self.timeline.take() {
            timeline.finish()?;
        }
        let ranks = self.ranks();
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        tables::flow_rows(&self.tally.flows).try_for_each(|row| writer.flow(row))?;
        let end = ranks.iter().map(|rank| rank.end).max().unwrap_or(Time::ZERO);
        write_links(tables::RUN, &*self.network, end - Time::ZERO, &mut writer)?;
        ranks.iter().try_for_each(|rank| writer.rank(tables::rank_row(rank, &self.seating.parameters)))?;
        let totals = Totals {
            end,
            messages: rows.iter().map(|row| row.messages).sum(),
            payload: Bytes::new(rows.iter().map(|row| row.bytes).sum()),
            packets: crossed.packets,
            packet_hops: crossed.packet_hops,
            dropped: crossed.faults.dropped,
            dropped_dead: crossed.faults.dead,
            corrupted: crossed.faults.corrupted,
        };
        let request = Request::Replay(self.request.clone());
        let rows = rows.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        let manifest = RunManifest {
            detail,
            rows: rows.map_err(ExperimentError::input)?,
            assumed: assumed(self.machine),
            ..RunManifest::new(request, described(self.machine), ended, totals)
        };
        writer.finish(manifest, performance)?;
        Ok(())
    }
}

/// The first multiple of `every` after `now`.
fn next_multiple(now: Time, every: Span) -> Time {
    let every = every.as_ps().max(1);
    Time::from_ps((now.as_ps() / every + 1).saturating_mul(every))
}

fn draw(
    timeline: &mut TimelineWriter,
    event: TimelineEvent,
    arrows: &mut u64,
) -> Result<(), ExperimentError> {
    match event {
        TimelineEvent::Slice { rank, activity, name, start, end } => {
            let activity = match activity {
                Activity::Compute => timeline::Activity::Compute,
                Activity::Communicate => timeline::Activity::Communicate,
                Activity::Wait => timeline::Activity::Wait,
            };
            timeline.slice(rank, activity, name, start, end)?;
        }
        TimelineEvent::Arrow { rank, from, sent, received, bytes } => {
            *arrows += 1;
            timeline.message(Arrow { id: *arrows, from, sent, to: rank, received, bytes })?;
        }
        TimelineEvent::Marker { rank, time, text } => timeline.marker(rank, time, &text)?,
    }
    Ok(())
}
