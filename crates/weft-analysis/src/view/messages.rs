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
    /// The number of messages by their time, ascending. Bars without a message lie only between others.
    pub histogram: Vec<HistogramBar>,
}

/// Messages whose times are about the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct HistogramBar {
    /// The shortest time, in ps.
    pub from_ps: u64,
    /// The first time that is too long, in ps.
    pub to_ps: u64,
    /// The number of messages.
    pub count: u64,
}

/// Bars of a histogram between a time and its double.
const BARS_PER_DOUBLING: u32 = 16;

/// The number of the bar of a time: doublings, each in equal parts, so that integers decide.
fn bar_of(ps: u64) -> u32 {
    let ps = ps.max(u64::from(BARS_PER_DOUBLING));
    let doubling = ps.ilog2();
    let part = ((ps - (1 << doubling)) as u128 * u128::from(BARS_PER_DOUBLING)) >> doubling;
    doubling * BARS_PER_DOUBLING + part as u32
}

/// The shortest time of a bar, in ps.
fn bar_begin(bar: u32) -> u64 {
    let (doubling, part) = (bar / BARS_PER_DOUBLING, bar % BARS_PER_DOUBLING);
    let parts = u128::from(BARS_PER_DOUBLING + part);
    // The first time that bar_of puts here.
    ((parts << doubling).div_ceil(u128::from(BARS_PER_DOUBLING))).min(u128::from(u64::MAX)) as u64
}

/// Bars from the first to the last with a message.
fn histogram(counts: &BTreeMap<u32, u64>) -> Vec<HistogramBar> {
    let (Some((first, _)), Some((last, _))) = (counts.first_key_value(), counts.last_key_value()) else {
        return Vec::new();
    };
    let bar = |number: u32| HistogramBar {
        from_ps: bar_begin(number),
        to_ps: bar_begin(number + 1),
        count: counts.get(&number).copied().unwrap_or(0),
    };
    (*first..=*last).map(bar).collect()
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
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    result.visit(|row: MessageRow| {
        if !filter.takes(&row) {
            return;
        }
        let time = time(&row);
        count += 1;
        bytes += row.payload_bytes.get();
        sum += time as f64;
        *counts.entry(bar_of(time)).or_default() += 1;
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
    let mean_ps = sum / count.max(1) as f64;
    Ok(Messages { count, payload_bytes: bytes, mean_ps, slowest, histogram: histogram(&counts) })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a time that falls between two bars, or into one that does not hold it.
    #[test]
    fn every_time_is_in_its_bar() {
        let mut times: Vec<u64> = (1..2000).collect();
        times.extend((0..63).flat_map(|doubling| [(1 << doubling) - 1, 1 << doubling, (1 << doubling) + 1]));
        for ps in times.into_iter().filter(|ps| *ps >= u64::from(BARS_PER_DOUBLING)) {
            let bar = bar_of(ps);
            assert!((bar_begin(bar)..bar_begin(bar + 1)).contains(&ps), "{ps} in {bar}");
        }
        let bars = histogram(&[(64, 3), (66, 1)].into());
        assert_eq!(bars.iter().map(|bar| bar.count).collect::<Vec<_>>(), [3, 0, 1]);
        assert_eq!(bars.iter().map(|bar| bar.from_ps).collect::<Vec<_>>(), [16, 17, 18]);
    }
}
