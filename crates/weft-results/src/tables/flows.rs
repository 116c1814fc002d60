//! The table `flows`.

use crate::row::row;
use weft_units::{Bytes, EndpointId, Span, Time};

row! {
    /// One flow: all messages of a run from one endpoint to another; of a scenario, those of one group.
    FlowRow version 2
        written by Default: "--tables flows"
        ordered by |row| {
            let destination = row.destination_endpoint.map_or(0, |to| u64::from(to.0) + 1);
            (row.run, Time::ZERO, row.source_endpoint.0.into(), destination)
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// The endpoint that sent its messages.
    source_endpoint: EndpointId,
    /// The endpoint that received them; null where the pattern draws a new destination for every message.
    destination_endpoint: Option<EndpointId>,
    /// The group of flows in the scenario's file; null elsewhere.
    group: Option<String>,
    /// Messages delivered.
    messages: u64,
    /// Bytes delivered, without headers.
    payload_bytes: Bytes,
    /// Time at which the first of them was posted.
    first_start_ps: Time,
    /// Time at which the last of them was delivered.
    last_completion_ps: Time,
    /// Mean of the completion times (from posted to delivered), rounded down.
    completion_mean_ps: Span,
    /// 99th percentile of the completion times.
    completion_p99_ps: Span,
    /// The longest completion time.
    completion_max_ps: Span,
}
