//! The tables `messages` and `flows` of a scenario: a row for each transfer, and for each pair of endpoints
//! and group.

use super::file::Scenario;
use crate::experiment::message_table::{FlowEnds, PendingMessages, flow_row};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_results::{MessageRow, ResultsError, ResultsWriter, Table};
use weft_units::{EndpointId, Time};
use weft_workload::flow::FlowReport;
use weft_workload::scenario::TransferReport;

/// The transfers of a run on their way into tables.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Transfers {
    messages: PendingMessages,
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
        let transfers = std::mem::take(transfers);
        if results.wants(Table::Messages) {
            self.messages.take(transfers.iter().map(|transfer| message_row(run, transfer, scenario)));
        }
        self.messages.write(until, results)
    }

    /// The run has ended: writes its flows.
    pub(super) fn finish(
        &self,
        run: u32,
        scenario: &Scenario,
        results: &mut ResultsWriter,
    ) -> Result<(), ResultsError> {
        self.flows.iter().try_for_each(|(&(source, destination, group), flow)| {
            let group = Some(scenario.groups[group as usize].name.as_str());
            let ends = FlowEnds { source, destination: Some(destination), group };
            results.push(flow_row(run, &ends, flow))
        })
    }
}

fn message_row(run: u32, transfer: &TransferReport, scenario: &Scenario) -> MessageRow {
    let plan = &scenario.flows[transfer.flow as usize];
    MessageRow {
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
    }
}
