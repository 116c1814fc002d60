//! Rows of a scenario: under each way to control congestion one for each group of flows, each application,
//! each group of clients and each service.

use super::Way;
use super::applications::ApplicationFigures;
use super::file::Scenario;
use super::services::{ClientFigures, ServiceFigures};
use super::throughput::{Counts, Delivered};
use super::transient::Transient;
use crate::experiment::{EnergyFigures, ExperimentError};
use serde::{Deserialize, Serialize};
use weft_units::ledger::{ScenarioLosses, View as _};
use weft_units::{PacketCounts, Span};
use weft_workload::scenario::FlowPlan;

/// A group of flows or clients, an application or a service, under one way to control congestion.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScenarioRow {
    /// The run: the column `run` of the tables. The rows of a run follow each other.
    pub run: u32,
    /// The way to control congestion, as it was asked for.
    pub congestion: String,
    /// Why the machine cannot have the way, which then has this row alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The name of the group in the file; `None`: the way is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// `victim`, `aggressor` or `background`; of a service `service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Figures of the group.
    #[serde(flatten)]
    pub figures: Option<Figures>,
    /// Figures of the whole run: the same in all its rows.
    #[serde(flatten)]
    pub of_run: Option<RunFigures>,
}

/// Figures of a group of flows, of an application, of clients or of a service.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figures {
    /// Of flows.
    Flows(FlowFigures),
    /// Of an application.
    Application(ApplicationFigures),
    /// Of clients of a service.
    Clients(ClientFigures),
    /// Of a service.
    Service(ServiceFigures),
}

/// Figures of a group of flows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Flows.
    pub flows: u64,
    /// Transfers that began after warm-up and were delivered: those of the latencies.
    pub transfers: u64,
    /// Transfers that had begun at the end of the run, and had not been delivered.
    pub transfers_under_way: u64,
    /// Payload that came after warm-up, that of transfers under way included.
    pub payload_bytes: u64,
    /// The time in which it came: from the end of warm-up, or from the first transfer where that is later,
    /// to the end of the run, or to the last delivery where all flows have ended.
    pub measured_us: f64,
    /// `payload_bytes` over `measured_us`, all flows together.
    pub throughput_gbps: f64,
    /// From the beginning of a transfer until it is delivered.
    pub latency_mean_us: Option<f64>,
    /// The same, of 99 in 100 transfers at most.
    pub latency_p99_us: Option<f64>,
    /// The same, of 999 in 1,000.
    pub latency_p999_us: Option<f64>,
    /// From the beginning of a flow's first transfer until its last is delivered, the mean of flows with a
    /// number of transfers; `None`: there are none, or some have not ended.
    pub completion_mean_us: Option<f64>,
    /// The longest of these.
    pub completion_max_us: Option<f64>,
    /// Jain's index of the flows' throughputs, each over its own time: 1 where all are equal.
    pub fairness: Option<f64>,
}

/// Figures of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFigures {
    /// After each change of flows, the time until they have their new shares; empty where none changes.
    pub transients: Vec<Transient>,
    /// The most bytes that a queue of a switch has held at the end of an epoch, a four-hundredth of the time.
    pub queue_max_bytes: u64,
    /// The same of all queues together.
    pub queued_max_bytes: u64,
    /// Time in which senders of links were paused, all links together.
    pub paused_us: f64,
    /// Pause frames that senders have obeyed.
    pub pause_frames: u64,
    /// Counts of what full buffers and sources did.
    #[serde(flatten, with = "ScenarioLosses")]
    pub losses: PacketCounts,
    /// Transfers that the interface has given up.
    pub transfers_failed: u64,
    /// Time in which links were off, each direction by itself, added up.
    pub links_off_us: f64,
    /// The part of it that lies in the warm-up.
    pub links_off_in_warm_up_us: f64,
    /// Outages that begin after the end of the run.
    #[serde(default)]
    pub outages_after_end: usize,
    /// Virtual time at the end.
    pub run_time_us: f64,
    /// Links crossed by data packets.
    pub packet_hops: u64,
    /// Energy of the machine; `None`: the machine says nothing of its power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyFigures>,
}

impl ScenarioRow {
    /// The row of a way that a machine cannot have.
    pub(super) fn refused(way: &Way, run: u32, why: &ExperimentError) -> ScenarioRow {
        ScenarioRow {
            run,
            congestion: way.name.clone(),
            refused: Some(why.to_string()),
            group: None,
            role: None,
            figures: None,
            of_run: None,
        }
    }

    /// The figures, where it is a row of flows.
    pub fn of_flows(&self) -> Option<&FlowFigures> {
        match &self.figures {
            Some(Figures::Flows(figures)) => Some(figures),
            _ => None,
        }
    }

    /// The figures, where it is a row of an application.
    pub fn of_application(&self) -> Option<&ApplicationFigures> {
        match &self.figures {
            Some(Figures::Application(figures)) => Some(figures),
            _ => None,
        }
    }
}

/// The figures of each group of flows, in the order of the file.
pub(super) fn of_groups(counts: &Counts<'_>) -> Vec<FlowFigures> {
    let Scenario { groups, flows, .. } = counts.scenario;
    let mut members: Vec<Vec<(&FlowPlan, u32)>> = vec![Vec::new(); groups.len()];
    for (plan, flow) in flows.iter().zip(0u32..) {
        members[plan.group as usize].push((plan, flow));
    }
    let of_group = |(members, number): (Vec<(&FlowPlan, u32)>, u32)| {
        let each: Vec<Delivered> =
            members.iter().filter_map(|(plan, flow)| counts.delivered(*flow, plan)).collect();
        let delivered = each.iter().copied().reduce(Delivered::and);
        let ends = members.iter().map(|(plan, flow)| {
            let tally = counts.tally(*flow);
            let is_whole = plan.transfers.is_some_and(|transfers| tally.delivered >= transfers);
            tally.first.filter(|_| is_whole).map(|first| (tally.last - first).as_us_f64())
        });
        let ends: Option<Vec<f64>> = ends.collect();
        let under_way = |flow| {
            let tally = counts.tally(flow);
            tally.begun - tally.delivered
        };
        let latency = counts.output.latency.get(&number);
        let micros = |span: Option<Span>| span.map(|span| span.as_us_f64());
        FlowFigures {
            flows: members.len() as u64,
            transfers: latency.map_or(0, |latency| latency.count()),
            transfers_under_way: members.iter().map(|(_, flow)| under_way(*flow)).sum(),
            payload_bytes: delivered.map_or(0, |delivered| delivered.payload.get()),
            measured_us: delivered.map_or(0.0, |delivered| delivered.time_us()),
            throughput_gbps: delivered.map_or(0.0, |delivered| delivered.gbps()),
            latency_mean_us: micros(latency.and_then(|latency| latency.mean())),
            latency_p99_us: micros(latency.and_then(|latency| latency.percentile(99))),
            latency_p999_us: micros(latency.and_then(|latency| latency.per_mille(999))),
            completion_mean_us: ends.as_ref().map(|ends| ends.iter().sum::<f64>() / ends.len().max(1) as f64),
            completion_max_us: ends.as_ref().map(|ends| ends.iter().copied().fold(0.0, f64::max)),
            fairness: fairness(&each, members.len()),
        }
    };
    members.into_iter().zip(0..).map(of_group).collect()
}

/// Jain's index of the throughputs of so many flows, of which some may have begun nothing.
///
/// # Source
/// Jain, Chiu, Hawe: "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
/// Computer Systems", DEC-TR-301, 1984.
fn fairness(each: &[Delivered], flows: usize) -> Option<f64> {
    let rates = each.iter().map(Delivered::gbps);
    let (sum, squares) = rates.fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    (squares > 0.0).then(|| sum * sum / (flows as f64 * squares))
}
