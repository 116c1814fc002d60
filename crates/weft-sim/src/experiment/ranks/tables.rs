//! The activity of ranks as rows of results and of the report.

use super::account::run_time_of;
use crate::experiment::EnergyFigures;
use crate::experiment::busiest::{Busiest, link_name, share};
use crate::experiment::replay::{BusyLink, CallFigures, Figures};
use std::collections::BTreeMap;
use weft_results::{CallRow, MessageRow, RankRow};
use weft_topo::Layout;
use weft_units::{PacketCounts, Span, Time};
use weft_workload::replay::{CallReport, Delivery, RankReport, ReplayedMessage, Seating};

/// The row of a message.
pub fn message_row(run: u32, message: &ReplayedMessage) -> MessageRow {
    MessageRow {
        run,
        delivered_ps: message.delivered,
        source_endpoint: message.source,
        destination_endpoint: message.destination,
        sequence: u64::from(message.number),
        source_rank: Some(message.source_rank),
        destination_rank: Some(message.destination_rank),
        tag: message.tag,
        class: message.class.name().to_owned(),
        group: None,
        payload_bytes: message.bytes,
        posted_ps: message.posted,
        hops: u32::from(message.hops),
    }
}

/// The row of a rank.
pub fn rank_row(run: u32, rank: &RankReport, seating: &Seating) -> RankRow {
    let number = seating.number(rank.program, rank.rank);
    let time = rank.core_time();
    RankRow {
        run,
        rank: number,
        endpoint: seating.endpoint(number),
        end_ps: rank.end,
        computation_ps: rank.computation,
        communication_ps: rank.communication,
        wait_ps: rank.wait(),
        computation_share: share(rank.computation, time),
        communication_share: share(rank.communication, time),
        wait_share: share(rank.wait(), time),
        messages_sent: rank.messages_sent,
        messages_received: rank.messages_received,
        sent_bytes: rank.sent,
        received_bytes: rank.received,
    }
}

/// The row of the calls of an operation by a rank.
pub fn call_row(run: u32, calls: &CallReport, seating: &Seating) -> CallRow {
    CallRow {
        run,
        rank: seating.number(calls.program, calls.rank),
        operation: calls.operation.to_owned(),
        calls: calls.sum.calls,
        time_ps: calls.sum.time,
    }
}

/// The calls of all ranks of a program by operation, those that took longest first.
pub fn call_figures(program: u32, calls: &[CallReport]) -> Vec<CallFigures> {
    let mut sums: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.program == program) {
        let (number, time_us) = sums.entry(call.operation).or_default();
        *number += call.sum.calls;
        *time_us += call.sum.time.as_us_f64();
    }
    let figures = |(operation, (calls, time_us)): (&str, _)| CallFigures {
        operation: operation.to_owned(),
        calls,
        time_us,
    };
    let mut figures: Vec<_> = sums.into_iter().map(figures).collect();
    figures.sort_by(|a, b| b.time_us.total_cmp(&a.time_us));
    figures
}

/// The facts that all traces have in common.
pub struct Shared<'a> {
    /// Names of links.
    pub layout: &'a Layout,
    /// The end of the last rank of all traces.
    pub end: Time,
    /// The busiest links.
    pub busiest: &'a Busiest,
    /// Links crossed by packets.
    pub packet_hops: u64,
    /// Counts of packets by what became of them.
    pub counts: PacketCounts,
    /// Energy of the machine; `None`: it says nothing of its power.
    pub energy: Option<EnergyFigures>,
    /// The request's.
    pub seed: u64,
    /// Bytes that agree in the memory of sources and targets, where that was asked for.
    pub compared_bytes: Option<u64>,
}

impl Shared<'_> {
    /// Busiest links in a report.
    pub const BUSIEST: usize = 5;
}

/// The figures of a program: its ranks in order, the first with this number over all programs, and their
/// messages.
pub fn figures(first_rank: u32, ranks: &[RankReport], delivered: &Delivery, shared: &Shared<'_>) -> Figures {
    // Sums of many ranks' times do not fit 64 bits: in us they do.
    let sum = |time: fn(&RankReport) -> Span| ranks.iter().map(|rank| time(rank).as_us_f64()).sum::<f64>();
    let all = sum(RankReport::core_time);
    let part = |time: f64| if all > 0.0 { time / all } else { 0.0 };
    let (computation, wait) = (sum(|rank| rank.computation), sum(RankReport::wait));
    let memory_wait = sum(|rank| rank.memory_wait);
    let run_time = shared.end - Time::ZERO;
    let busiest_links = shared.busiest.links().iter().map(|link| BusyLink {
        name: link_name(shared.layout, link),
        class: link.class.to_owned(),
        utilization: share(link.busy, run_time),
        packets: link.packets,
        stall_us: link.stalled.as_us_f64(),
    });
    Figures {
        run_time_us: run_time_of(ranks).as_us_f64(),
        first_rank,
        ranks: ranks.len() as u32,
        computation_share: part(computation),
        memory_wait_share: (memory_wait > 0.0 && all > 0.0).then(|| part(memory_wait)),
        communication_share: part(sum(|rank| rank.communication) + wait),
        wait_share: part(wait),
        messages: delivered.completion.count(),
        bytes: delivered.bytes.get(),
        completion_time_mean_us: delivered.completion.mean().map(Span::as_us_f64),
        completion_time_p99_us: delivered.completion.percentile(99).map(Span::as_us_f64),
        completion_time_max_us: (delivered.completion.count() > 0)
            .then(|| delivered.completion.max().as_us_f64()),
        packet_hops: shared.packet_hops,
        packets_dropped: shared.counts.lost(),
        repairs: shared.counts,
        seed: shared.seed,
        compared_bytes: shared.compared_bytes,
        busiest_links: busiest_links.collect(),
        energy: shared.energy.clone(),
        region: None,
        breakdown: None,
        calls: Vec::new(),
    }
}
