//! Messages: the slowest, those between two endpoints, and the pieces of their time.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use weft_results::{MessagePieceRow, MessageRow, ResultsError, StoredResult};
use weft_units::EndpointId;

/// The messages that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageFilter {
    /// The run.
    pub run: u32,
    /// The sender; `None`: any.
    pub from: Option<EndpointId>,
    /// The receiver; `None`: any.
    pub to: Option<EndpointId>,
    /// Messages that are listed, at most.
    pub limit: usize,
}

impl MessageFilter {
    fn takes(&self, row: &MessageRow) -> bool {
        row.run == self.run
            && self.from.is_none_or(|from| row.source_endpoint == from)
            && self.to.is_none_or(|to| row.destination_endpoint == to)
    }
}

/// Messages that were found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Messages {
    /// All that were asked for.
    pub count: u64,
    /// Their bytes.
    pub payload_bytes: u64,
    /// The mean of their times, in ps.
    pub mean_ps: f64,
    /// The slowest of them, the slowest first.
    pub slowest: Vec<MessageRow>,
}

/// Pieces of the time of messages between two endpoints.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PairPieces {
    /// The messages.
    pub messages: u64,
    /// The mean of their times, in ps.
    pub mean_ps: f64,
    /// The pieces, in the order in which they first come: their means add up to the mean of all.
    pub pieces: Vec<PieceSum>,
}

/// Pieces of one kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PieceSum {
    /// The category, as in `weft explain`.
    pub category: String,
    /// The activity.
    pub what: String,
    /// The place.
    pub place: String,
    /// The mean over the messages, in ps.
    pub mean_ps: f64,
}

/// The time of a message, in ps.
fn time(row: &MessageRow) -> u64 {
    row.delivered_ps.as_ps().saturating_sub(row.posted_ps.as_ps())
}

/// The slowest messages that a filter takes, and how many it takes.
///
/// # Errors
/// A result without the table.
pub fn messages(result: &StoredResult, filter: MessageFilter) -> Result<Messages, ResultsError> {
    let (mut count, mut bytes, mut sum) = (0_u64, 0_u64, 0.0);
    let mut heap: BinaryHeap<Reverse<(u64, u32, u64)>> = BinaryHeap::new();
    let mut kept: BTreeMap<(u32, u64), MessageRow> = BTreeMap::new();
    result.visit(|row: MessageRow| {
        if !filter.takes(&row) {
            return;
        }
        let time = time(&row);
        count += 1;
        bytes += row.payload_bytes.get();
        sum += time as f64;
        if heap.len() >= filter.limit && heap.peek().is_none_or(|Reverse((least, ..))| time <= *least) {
            return;
        }
        let name = (row.source_endpoint.0, row.sequence);
        heap.push(Reverse((time, name.0, name.1)));
        kept.insert(name, row);
        if heap.len() > filter.limit
            && let Some(Reverse((_, source, sequence))) = heap.pop()
        {
            kept.remove(&(source, sequence));
        }
    })?;
    let mut slowest: Vec<MessageRow> = kept.into_values().collect();
    slowest.sort_by_key(|row| Reverse(time(row)));
    Ok(Messages { count, payload_bytes: bytes, mean_ps: sum / count.max(1) as f64, slowest })
}

/// The pieces of a message, in the order of time.
///
/// # Errors
/// A result without the table.
pub fn pieces(
    result: &StoredResult,
    run: u32,
    (source, sequence): (EndpointId, u64),
) -> Result<Vec<MessagePieceRow>, ResultsError> {
    let mut pieces = Vec::new();
    result.visit(|row: MessagePieceRow| {
        if row.run == run && row.source_endpoint == source && row.sequence == sequence {
            pieces.push(row);
        }
    })?;
    Ok(pieces)
}

/// Pieces of the time of the messages from one endpoint to another.
///
/// # Errors
/// A result without the tables `messages` and `pieces`.
pub fn between(
    result: &StoredResult,
    run: u32,
    (from, to): (EndpointId, EndpointId),
) -> Result<PairPieces, ResultsError> {
    let mut theirs: BTreeSet<u64> = BTreeSet::new();
    let mut sum = 0.0;
    result.visit(|row: MessageRow| {
        if row.run == run && row.source_endpoint == from && row.destination_endpoint == to {
            theirs.insert(row.sequence);
            sum += time(&row) as f64;
        }
    })?;
    let messages = theirs.len() as u64;
    let share = 1.0 / messages.max(1) as f64;
    let mut pieces: Vec<PieceSum> = Vec::new();
    result.visit(|row: MessagePieceRow| {
        if row.run != run || row.source_endpoint != from || !theirs.contains(&row.sequence) {
            return;
        }
        let mean = row.time_ps.as_ps() as f64 * share;
        let known = pieces.iter_mut().find(|piece| piece.what == row.what && piece.place == row.place);
        match known {
            Some(piece) => piece.mean_ps += mean,
            None => pieces.push(PieceSum {
                category: row.category,
                what: row.what,
                place: row.place,
                mean_ps: mean,
            }),
        }
    })?;
    Ok(PairPieces { messages, mean_ps: sum * share, pieces })
}
