//! The account of a run: the reports of the hosts of ranks, simulated or real, added up.
//!
//! An epoch is as long as it takes for a bounded number of events, so that what is collected in it fits
//! in memory however long the programs are. Its end depends on events alone, never on threads or
//! snapshots.

use super::breakdown::{Breakdown, SizeClass};
use super::drawing::Drawing;
use super::job_links::JobLinks;
use super::region::RegionAccount;
use super::tables;
use crate::experiment::ExperimentError;
use crate::experiment::link_table::write_links;
use crate::experiment::message_table::{FlowEnds, flow_row};
use crate::experiment::packet_table::PacketTable;
use crate::experiment::path::PathRecorder;
use crate::experiment::rtl::RtlOfRun;
use crate::experiment::scenario::{BesideRanks, GroupOutputs, GroupRow};
use crate::job_sites::JobSites;
use crate::telemetry::{Telemetry, TelemetryLooks, WatchedJobs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weft_engine::Progress;
use weft_network::SimulatedNetwork;
use weft_nic::Host;
use weft_nic::edge_form::PortUse;
use weft_nic::ports::PortEvent;
use weft_results::{Conclusion, Ending, ResultsError, ResultsWriter, Table};
use weft_trace::Region;
use weft_units::{EndpointId, RankId, Span, Time};
use weft_workload::flow::FlowReport;
use weft_workload::host::{RankHost, SharedHost, SharedOutput};
use weft_workload::osu::Stopwatch;
use weft_workload::path::PathTrace;
use weft_workload::replay::{
    CallReport, Compared, Damage, Delivery, RankReport, ReplayOutput, ReplayedMessage, Seating, TimelineEvent,
};

/// The first epoch.
const FIRST_EPOCH: Span = Span::from_us(100);
/// An epoch with fewer events is followed by one of twice its length, one with more by one of half.
const FEW_EVENTS: u64 = 1 << 18;
const MANY_EVENTS: u64 = 1 << 21;

/// The counts and decisions so far: with the network's state, all that a resumed run needs.
#[derive(Serialize, Deserialize)]
pub(crate) struct Tally {
    programs: Vec<Delivery>,
    flows: BTreeMap<(EndpointId, EndpointId), FlowReport>,
    /// By rank over all programs, where clocks are read.
    stopwatches: Vec<Stopwatch>,
    compared: Compared,
    /// The regions of interest; the breakdown of messages is that of the first.
    regions: Vec<RegionAccount>,
    epoch: Epoch,
    /// Links and queues over time, where that is wanted.
    telemetry: Option<Telemetry>,
    /// Of what is beside the ranks.
    beside: GroupOutputs,
}

/// The present epoch.
#[derive(Serialize, Deserialize)]
struct Epoch {
    end: Time,
    length: Span,
    /// Events in it so far.
    events: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        let epoch = Epoch { end: Time::ZERO + FIRST_EPOCH, length: FIRST_EPOCH, events: 0 };
        let (programs, flows, stopwatches) = (Vec::new(), BTreeMap::new(), Vec::new());
        let (compared, regions, beside) = (Compared::default(), Vec::new(), GroupOutputs::default());
        Tally { programs, flows, stopwatches, compared, regions, epoch, telemetry: None, beside }
    }
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

/// The account of a run.
pub(crate) struct Account {
    /// The column `run` of the tables.
    run: u32,
    /// The names of the programs, in their order.
    names: Vec<String>,
    seating: Seating,
    tally: Tally,
    /// The record of the critical path. It is not saved.
    path: Option<PathRecorder>,
    /// Hops that are not in the table of packets yet. A run that has some is not saved.
    packets: PacketTable,
    /// The breakdown of messages, which is made from the same record.
    breakdown: Option<Breakdown>,
    /// Links by job, where they are wanted. A run that has them is not saved.
    job_links: Option<JobLinks>,
    /// Flows, services and clients beside the ranks.
    beside: Option<BesideRanks>,
    /// The RTL that runs in step with the model. A run that has some is not saved.
    rtl: Option<RtlOfRun>,
}

impl Account {
    /// An account that begins, or goes on with what was counted.
    pub fn new(run: u32, names: Vec<String>, seating: Seating, tally: Tally) -> Account {
        Account {
            run,
            names,
            seating,
            tally,
            path: None,
            packets: PacketTable::default(),
            breakdown: None,
            job_links: None,
            beside: None,
            rtl: None,
        }
    }

    /// These go beside the ranks.
    pub fn put_beside(&mut self, beside: BesideRanks) {
        self.beside = Some(beside);
    }

    /// Flows, services and clients beside the ranks.
    pub fn beside(&self) -> Option<&BesideRanks> {
        self.beside.as_ref()
    }

    /// A row for each group beside the ranks of a run that ends here.
    pub fn group_rows<R: RankHost>(
        &mut self,
        network: &dyn SimulatedNetwork<SharedHost<R>>,
    ) -> Vec<GroupRow> {
        let beside = self.beside.as_ref();
        beside.map_or_else(Vec::new, |beside| beside.rows(self.run, &mut self.tally.beside, network))
    }

    /// Whether a run with these ranks, which has come to `now`, has gone on for what is beside them.
    pub fn ends_amid_others(&self, ranks: &[RankReport], now: Time) -> bool {
        self.beside.is_some() && end_of(ranks) <= now
    }

    /// The end of a run with these ranks: that of the last, or the time that the network has reached where
    /// something is beside them that goes on.
    pub fn end<H: Host>(&self, ranks: &[RankReport], network: &dyn SimulatedNetwork<H>) -> Time {
        let end = end_of(ranks);
        if self.ends_amid_others(ranks, network.now()) { network.now() } else { end }
    }

    /// Every message is to be broken down, by the record of the critical path.
    pub fn break_down(&mut self, breakdown: Breakdown) {
        self.breakdown = Some(breakdown);
        self.record_path();
    }

    /// Counts this region of interest too, unless it is counted already.
    pub fn count_region(&mut self, region: Region) {
        if self.region(region).is_none() {
            self.tally.regions.push(RegionAccount::new(region, self.seating.ranks()));
        }
    }

    /// The account of a region, if it is counted.
    pub fn region(&self, region: Region) -> Option<&RegionAccount> {
        self.tally.regions.iter().find(|account| account.region() == region)
    }

    /// Ends the record of the critical path, and breaks down the messages that were delivered meanwhile;
    /// `None`: they are not to be broken down, and the record goes on.
    pub fn end_path(
        &mut self,
        writer: Option<&mut ResultsWriter>,
    ) -> Result<Option<PathTrace>, ExperimentError> {
        let path = self.breakdown.is_some().then(|| self.take_path());
        let Some((breakdown, path)) = self.breakdown.as_mut().zip(path) else { return Ok(None) };
        Ok(Some(breakdown.break_down(path, &self.seating, &self.names, writer)?))
    }

    /// Where the time of a program's messages went, by size, where that is to be told.
    pub fn classes(&self, program: u32) -> Option<Vec<SizeClass>> {
        self.breakdown.as_ref().map(|breakdown| breakdown.classes(program))
    }

    /// The names of the programs, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Which ranks there are, and where.
    pub fn seating(&self) -> &Seating {
        &self.seating
    }

    /// The counts.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Looks at links and queues at every multiple of an interval from now on, unless it does; and at what
    /// comes of each job, where there are jobs to be told apart.
    pub fn watch_links(&mut self, looks: TelemetryLooks, jobs: Option<WatchedJobs>) {
        self.tally.telemetry.get_or_insert_with(|| {
            let telemetry = Telemetry::new(self.run, looks).open_ended();
            match jobs {
                Some(jobs) => telemetry.by_job(jobs),
                None => telemetry,
            }
        });
    }

    /// Counts what each job sends over each link, from hops that are followed.
    pub fn count_links_by_job(&mut self, sites: JobSites) {
        self.job_links = Some(JobLinks::new(sites));
    }

    /// Ends the looks at links and queues.
    pub fn finish_telemetry<H: Host>(
        &mut self,
        network: &dyn SimulatedNetwork<H>,
        writer: &mut ResultsWriter,
    ) -> Result<(), ResultsError> {
        match &mut self.tally.telemetry {
            Some(telemetry) => telemetry.finish(network, network.now(), writer),
            None => Ok(()),
        }
    }

    /// Runs the network up to a time, with looks at links and queues on the way where they are wanted and
    /// there is a writer of their rows, and with stops for what is beside the ranks.
    pub fn run_until<R: RankHost>(
        &mut self,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
        until: Time,
        interrupt: &AtomicBool,
        mut writer: Option<&mut ResultsWriter>,
    ) -> Result<Progress, ResultsError> {
        loop {
            let next_stop = self.beside.as_ref().and_then(|beside| beside.next_stop(&self.tally.beside));
            let stop = next_stop.filter(|stop| *stop <= until);
            let to = stop.unwrap_or(until);
            let progress = match (&mut self.tally.telemetry, writer.as_deref_mut()) {
                (Some(telemetry), Some(writer)) => telemetry.run_until(network, to, interrupt, writer)?,
                _ => network.run_until(to, interrupt),
            };
            match (stop, &self.beside) {
                (Some(stop), Some(beside)) if progress == Progress::Reached => {
                    beside.stop_at(stop, &mut self.tally.beside, network);
                }
                _ => return Ok(progress),
            }
        }
    }

    /// The messages of a program that were delivered.
    pub fn delivered(&self, program: usize) -> Delivery {
        self.tally.programs.get(program).cloned().unwrap_or_default()
    }

    /// The readings of the ranks' clocks, by rank over all programs; empty before the first reading.
    pub fn stopwatches(&self) -> &[Stopwatch] {
        &self.tally.stopwatches
    }

    /// Has RTL run in step with the model.
    pub fn put_rtl(&mut self, rtl: Option<RtlOfRun>) {
        self.rtl = rtl;
    }

    /// The use of the ports of packetizers and mailboxes.
    pub fn ports(&self) -> PortUse {
        self.rtl.as_ref().map(RtlOfRun::ports).unwrap_or_default()
    }

    /// The first difference between RTL and model.
    pub fn rtl_difference(&self) -> Option<String> {
        self.rtl.as_ref()?.difference().map(str::to_owned)
    }

    /// Steps the RTL to the end of a run that is over at `now`.
    pub fn finish_rtl(&mut self, now: Time) {
        if let Some(rtl) = &mut self.rtl {
            rtl.finish(now);
        }
    }

    /// Ends the RTL of a run that has come to this conclusion at `now`: with its waves, if they are to be
    /// written, and the first difference, if there is one.
    pub fn end_rtl(&mut self, now: Time, conclusion: Conclusion) -> Conclusion {
        let Some(rtl) = self.rtl.as_mut() else { return conclusion };
        rtl.close(now);
        match rtl.difference() {
            Some(difference) if conclusion.ended != Ending::LostData => {
                Conclusion::new(Ending::RtlDiffers, difference)
            }
            _ => conclusion,
        }
    }

    /// The bytes that were compared in the memory of sources and targets.
    pub fn compared(&self) -> Compared {
        self.tally.compared
    }

    /// The record of the critical path, where one was asked for.
    pub fn take_path(&mut self) -> PathRecorder {
        self.path.take().unwrap_or_default()
    }

    /// Memory of what was recorded of it.
    pub fn path_bytes(&self) -> usize {
        let path = self.path.as_ref().map_or(0, PathRecorder::bytes);
        path + self.breakdown.as_ref().map_or(0, Breakdown::bytes)
    }

    /// Records the critical path from now on.
    pub fn record_path(&mut self) {
        self.path = Some(PathRecorder::default());
        self.tally.regions.iter_mut().for_each(RegionAccount::forget_causes);
    }

    /// The end of the present epoch.
    pub fn epoch_end(&self) -> Time {
        self.tally.epoch.end
    }

    /// Counts events that have been handled.
    pub fn count_events(&mut self, events: u64) {
        self.tally.epoch.events += events;
    }

    /// Ends the present epoch.
    pub fn next_epoch(&mut self, writer: Option<&mut ResultsWriter>) -> Result<(), ExperimentError> {
        self.tally.epoch.next();
        match writer {
            Some(writer) => Ok(writer.epoch()?),
            None => Ok(()),
        }
    }

    /// Takes what has happened since it was last called, and writes and draws what is wanted of it. Returns
    /// what is wrong with the bytes of messages, or which message the network has lost for good.
    pub fn take_outputs<R: RankHost<Output = ReplayOutput>>(
        &mut self,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
        writer: Option<&mut ResultsWriter>,
        drawing: Option<&mut Drawing>,
        interrupt: &AtomicBool,
    ) -> Result<Option<String>, ExperimentError> {
        let (mut messages, mut events, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        let (mut damage, mut crossed): (Option<Damage>, Vec<PortEvent>) = (None, Vec::new());
        let mut payloads = Vec::new();
        let (tally, ranks) = (&mut self.tally, self.seating.ranks());
        let (path, now, mut taken) = (&mut self.path, network.now(), Ok(()));
        let keeps_packets = writer.as_ref().is_some_and(|writer| writer.wants(Table::Packets));
        let (packets, job_links) = (&mut self.packets, &mut self.job_links);
        let has_others = self.beside.is_some();
        network.visit_outputs(&mut |part: &mut SharedOutput<ReplayOutput>| {
            if has_others {
                tally.beside.take(part);
            }
            let output = &mut part.ranks;
            if keeps_packets {
                packets.take(&output.hops);
            }
            if let Some(job_links) = job_links {
                job_links.take(&output.hops);
            }
            if let (Some(path), Ok(())) = (path.as_mut(), &taken) {
                taken = path.take(output, now);
            }
            let ReplayOutput {
                programs,
                flows,
                messages: some,
                timeline,
                clocks,
                regions,
                faults: wrong,
                compared,
                damages,
                ports,
                payloads: carried,
                ..
            } = std::mem::take(output);
            tally.compared += compared;
            // Which is found first may depend on the threads; which is reported must not.
            damage = damage.take().into_iter().chain(damages).min();
            if tally.programs.len() < programs.len() {
                tally.programs.resize(programs.len(), Delivery::default());
            }
            for (sum, part) in tally.programs.iter_mut().zip(&programs) {
                sum.merge(part);
            }
            for (flow, report) in flows {
                tally.flows.entry(flow).or_default().merge(&report);
            }
            if !clocks.is_empty() {
                tally.stopwatches.resize(ranks as usize, Stopwatch::default());
            }
            // The readings of a rank are in order.
            for reading in clocks {
                tally.stopwatches[reading.rank.index()].read(reading.clock);
            }
            for reading in &regions {
                tally.regions.iter_mut().for_each(|region| region.read(reading));
            }
            messages.extend(some);
            events.extend(timeline);
            faults.extend(wrong);
            crossed.extend(ports);
            payloads.extend(carried);
        });
        taken?;
        if let Some(rtl) = &mut self.rtl {
            payloads.into_iter().for_each(|(message, payload)| rtl.take_payload(message, payload));
            rtl.take(crossed, now, interrupt)?;
        }
        // Which fault is found first may depend on the threads; which is reported must not.
        let lost = match faults.into_iter().min() {
            Some(fault) if !fault.lost => return Err(ExperimentError::input(fault)),
            lost => lost.map(|lost| lost.to_string()),
        };
        messages.sort_unstable_by_key(|m| (m.delivered, m.source, m.number));
        let (regions, seating) = (&mut self.tally.regions, &self.seating);
        regions.iter_mut().for_each(|region| region.deliver(&messages, seating));
        if let Some(breakdown) = &mut self.breakdown {
            let region = regions.first();
            let counts = |message: &&ReplayedMessage| region.is_none_or(|region| region.has(message));
            breakdown.deliver(messages.iter().filter(counts).copied());
        }
        if let Some(writer) = writer {
            messages.iter().try_for_each(|message| writer.push(tables::message_row(self.run, message)))?;
            self.packets.write(self.run, now, writer)?;
        }
        if let Some(drawing) = drawing {
            // The events of a rank are in order already.
            events.sort_by_key(TimelineEvent::rank);
            events.into_iter().try_for_each(|event| drawing.draw(event))?;
        }
        let damage = damage.map(|damage| format!("source and target memory do not agree: {damage}"));
        Ok(damage.or(lost))
    }

    /// Writes the tables that are known at the end only. `ranks` are in order.
    pub fn write_tables<H: Host>(
        &mut self,
        network: &dyn SimulatedNetwork<H>,
        ranks: &[RankReport],
        writer: &mut ResultsWriter,
    ) -> Result<(), ExperimentError> {
        self.finish_telemetry(network, writer)?;
        if let Some(job_links) = &self.job_links {
            job_links.write(self.run, ranks, writer)?;
        }
        if writer.wants(Table::Flows) {
            for (&(source, destination), flow) in &self.tally.flows {
                let ends = FlowEnds { source, destination: Some(destination), group: None };
                writer.push(flow_row(self.run, &ends, flow))?;
            }
        }
        self.packets.write(self.run, Time::NEVER, writer)?;
        write_links(self.run, network, self.end(ranks, network) - Time::ZERO, writer)?;
        ranks.iter().try_for_each(|rank| writer.push(tables::rank_row(self.run, rank, &self.seating)))?;
        Ok(())
    }

    /// Writes the calls of ranks, which are in order.
    pub fn write_calls(
        &self,
        calls: &[CallReport],
        writer: &mut ResultsWriter,
    ) -> Result<(), ExperimentError> {
        let row = |calls| tables::call_row(self.run, calls, &self.seating);
        Ok(calls.iter().try_for_each(|calls| writer.push(row(calls)))?)
    }

    /// Number of the first rank of a program over all programs.
    pub fn first_rank(&self, program: u32) -> u32 {
        self.seating.number(program, RankId(0)).0
    }
}

/// The time from the start of the ranks' program to the end of the last.
pub(crate) fn run_time_of(ranks: &[RankReport]) -> Span {
    ranks.iter().map(RankReport::run_time).max().unwrap_or(Span::ZERO)
}

/// The end of the last of the ranks.
pub(crate) fn end_of(ranks: &[RankReport]) -> Time {
    ranks.iter().map(|rank| rank.end).max().unwrap_or(Time::ZERO)
}
