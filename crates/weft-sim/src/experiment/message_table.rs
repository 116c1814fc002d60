//! The tables `messages` and `flows`, as a run goes.
//!
//! ```text
//!   hosts ── rows of messages ──► those before now, in order ──► ResultsWriter
//!                            └──► the others wait: a host may notice a message after its epoch
//!         ── reports of flows ── at the end ────────────────────► ResultsWriter
//! ```

use serde::{Deserialize, Serialize};
use weft_results::{FlowRow, MessageRow, ResultsError, ResultsWriter};
use weft_units::{EndpointId, Time};
use weft_workload::flow::FlowReport;

/// Messages that are not written yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PendingMessages(Vec<MessageRow>);

impl PendingMessages {
    /// Takes messages, in any order.
    pub fn take(&mut self, rows: impl Iterator<Item = MessageRow>) {
        self.0.extend(rows);
    }

    /// Writes those that were delivered before `before`, after which no earlier ones come.
    pub fn write(&mut self, before: Time, results: &mut ResultsWriter) -> Result<(), ResultsError> {
        self.0.sort_unstable_by_key(|row| (row.delivered_ps, row.source_endpoint, row.sequence));
        let due = self.0.partition_point(|row| row.delivered_ps < before);
        self.0.drain(..due).try_for_each(|row| results.push(row))
    }
}

/// The ends of a flow.
pub(crate) struct FlowEnds<'a> {
    pub source: EndpointId,
    /// `None`: every message has another.
    pub destination: Option<EndpointId>,
    /// The group of a scenario's flows.
    pub group: Option<&'a str>,
}

/// The row of a flow.
pub(crate) fn flow_row(run: u32, ends: &FlowEnds<'_>, flow: &FlowReport) -> FlowRow {
    FlowRow {
        run,
        source_endpoint: ends.source,
        destination_endpoint: ends.destination,
        group: ends.group.map(str::to_owned),
        messages: flow.completion.count(),
        payload_bytes: flow.bytes,
        first_start_ps: flow.first_start,
        last_completion_ps: flow.last_completion,
        completion_mean_ps: flow.completion.mean().unwrap_or_default(),
        completion_p99_ps: flow.completion.percentile(99).unwrap_or_default(),
        completion_max_ps: flow.completion.max(),
    }
}
