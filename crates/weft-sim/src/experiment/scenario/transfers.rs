//! The tables `messages` and `flows` of a scenario: a row for each transfer, and for each pair of endpoints
//! and group.

use super::file::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_results::{FlowRow, MessageRow, ResultsError, ResultsWriter, Table};
use weft_units::{EndpointId, Time};
use weft_workload::flow::FlowReport;
use weft_workload::scenario::TransferReport;

/// The transfers of a run on their way into tables.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Transfers {
    /// Those that are delivered after the epoch in which their last packet came.
    unwritten: Vec<TransferReport>,
    /// By source, destination and group.
    flows: BTreeMap<(EndpointId, EndpointId, u32), FlowReport>,
}

impl Transfers {
    /// Whether tables want them.
    pub(super) fn are_wanted(results: Option<&ResultsWriter>) -> bool {
        results.is_some_and(|results| results.wants(Table::Messages) || results.wants(Table::Flows))
    }

    /// Takes transfers, and writes those that were delivered before `until`.
    pub(super) fn write(
        &mut self,
        (run, until): (u32, Time),
        transfers: &mut Vec<TransferReport>,
        scenario: &Scenario,
        results: &mut ResultsWriter,
    ) -> Result<(), ResultsError> {
        for transfer in &*transfers {
            let plan = &scenario.flows[transfer.flow as usize];
            let flow = self.flows.entry((plan.source, transfer.destination, plan.group)).or_default();
            flow.record(transfer.bytes, transfer.created_at, transfer.delivered);
        }
        if !results.wants(Table::Messages) {
            transfers.clear();
            return Ok(());
        }
        self.unwritten.append(transfers);
        let source = |transfer: &TransferReport| scenario.flows[transfer.flow as usize].source;
        self.unwritten
            .sort_unstable_by_key(|transfer| (transfer.delivered, source(transfer), transfer.number));
        let due = self.unwritten.partition_point(|transfer| transfer.delivered < until);
        self.unwritten.drain(..due).try_for_each(|transfer| {
            let plan = &scenario.flows[transfer.flow as usize];
            results.message(MessageRow {
                run,
                delivered_ps: transfer.delivered,
                source_endpoint: plan.source,
                destination_endpoint: transfer.destination,
                sequence: transfer.number.into(),
                source_rank: None,
                destination_rank: None,
                tag: None,
                class: "flow".to_owned(),
                group: Some(scenario.groups[plan.group as usize].name.clone()),
                payload_bytes: transfer.bytes,
                posted_ps: transfer.created_at,
                hops: transfer.hops.into(),
            })
        })
    }

    /// The run has ended: writes its flows.
    pub(super) fn finish(
        &self,
        run: u32,
        scenario: &Scenario,
        results: &mut ResultsWriter,
    ) -> Result<(), ResultsError> {
        self.flows.iter().try_for_each(|(&(source, destination, group), flow)| {
            results.flow(FlowRow {
                run,
                source_endpoint: source,
                destination_endpoint: Some(destination),
                group: Some(scenario.groups[group as usize].name.clone()),
                messages: flow.completion.count(),
                payload_bytes: flow.bytes,
                first_start_ps: flow.first_start,
                last_completion_ps: flow.last_completion,
                completion_mean_ps: flow.completion.mean().unwrap_or_default(),
                completion_p99_ps: flow.completion.percentile(99).unwrap_or_default(),
                completion_max_ps: flow.completion.max(),
            })
        })
    }
}
