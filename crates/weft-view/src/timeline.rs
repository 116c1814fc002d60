//! Ranks over time as Chrome trace events, which Perfetto opens: the file that `--timeline` of the run wrote,
//! or the messages of the result, each from its post to its delivery.
//!
//! # Source
//! "Trace Event Format" (Google): phases b and e (asynchronous), M (metadata).

use crate::shown::Shown;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use weft_results::{MessageRow, ResultsError};
use weft_units::Time;

/// Messages in a timeline of messages, at most: a viewer that gets more becomes slow.
const MAX_MESSAGES: usize = 200_000;
const PS_PER_US: f64 = 1e6;
/// The process of the trace.
const RANKS: u32 = 1;

/// The messages of a run as a timeline: a track for each sender.
///
/// # Errors
/// A result without the table `messages`.
pub fn of_messages(shown: &Shown, run: u32) -> Result<Value, ResultsError> {
    let us = |time: Time| time.as_ps() as f64 / PS_PER_US;
    let mut events =
        vec![json!({ "ph": "M", "name": "process_name", "pid": RANKS, "args": { "name": "messages" } })];
    let (mut tracks, mut count): (BTreeSet<(u32, bool)>, usize) = (BTreeSet::new(), 0);
    shown.result.visit(|row: MessageRow| {
        if row.run != run {
            return;
        }
        count += 1;
        if count > MAX_MESSAGES {
            return;
        }
        let (from, to) = match (row.source_rank, row.destination_rank) {
            (Some(from), Some(to)) => (from.0, to.0),
            _ => (row.source_endpoint.0, row.destination_endpoint.0),
        };
        tracks.insert((from, row.source_rank.is_some()));
        let name = format!("to {to}, {} B", row.payload_bytes.get());
        let id = format!("{}.{}", row.source_endpoint.0, row.sequence);
        for (phase, time) in [("b", row.posted_ps), ("e", row.delivered_ps)] {
            events.push(json!({
                "ph": phase, "cat": row.class, "name": name, "id": id, "pid": RANKS, "tid": from,
                "ts": us(time),
            }));
        }
    })?;
    for (track, is_rank) in tracks {
        let name = if is_rank { format!("rank {track}") } else { format!("endpoint {track}") };
        let args = json!({ "name": name });
        events.push(json!({ "ph": "M", "name": "thread_name", "pid": RANKS, "tid": track, "args": args }));
    }
    let left_out = count.saturating_sub(MAX_MESSAGES);
    Ok(json!({
        "displayTimeUnit": "ns", "traceEvents": events, "messages": count, "messages_left_out": left_out,
    }))
}
