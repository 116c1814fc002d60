//! Messages between ranks, or endpoints where there are no ranks: the tables `messages` and `flows`.

use super::panel::{Axis, Cells, Content, Panel, Segments};
use super::shown::ShownRun;
use std::collections::BTreeMap;
use weft_results::{FlowRow, MessageRow, ResultsError, Table};

/// Messages in a timeline: more are one dark surface.
const MAX_MESSAGES: usize = 1_000;
/// Rows and columns of a matrix: more ranks are put together.
const MAX_SIDE: u32 = 64;
const PS_PER_US: f64 = 1e6;
const BYTES_PER_KIB: f64 = 1024.0;

/// Each message as a line from its post at the sender to its delivery at the receiver.
pub(super) fn timeline(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let (mut classes, mut messages, mut last): (BTreeMap<String, Vec<[f64; 4]>>, usize, u32) =
        (BTreeMap::new(), 0, 0);
    let mut of_ranks = false;
    shown.result.visit(|row: MessageRow| {
        if row.run != shown.run {
            return;
        }
        messages += 1;
        if messages > MAX_MESSAGES {
            return;
        }
        let (from, to) = match (row.source_rank, row.destination_rank) {
            (Some(from), Some(to)) => (from.0, to.0),
            _ => (row.source_endpoint.0, row.destination_endpoint.0),
        };
        of_ranks |= row.source_rank.is_some();
        last = last.max(from).max(to);
        let us = |time: weft_units::Time| time.as_ps() as f64 / PS_PER_US;
        let segment = [us(row.posted_ps), f64::from(from), us(row.delivered_ps), f64::from(to)];
        classes.entry(row.class).or_default().push(segment);
    })?;
    let what = if of_ranks { "rank" } else { "endpoint" };
    let cut = if messages > MAX_MESSAGES {
        format!(", the first {MAX_MESSAGES} of {messages} messages")
    } else {
        String::new()
    };
    if messages == 0 {
        let why = format!("run {} delivered no message", shown.run);
        return Err(ResultsError::NothingToDraw { directory: shown.result.directory.clone(), why });
    }
    let content = classes.into_iter().map(|(label, segments)| Segments { label, segments }).collect();
    Ok(Panel {
        title: shown.label.clone(),
        x: Axis { from_zero: false, ..Axis::new(format!("time{cut}"), "µs") },
        y: Axis::names(what, (0..=last).map(|number| number.to_string()).collect()),
        content: Content::Segments(content),
    })
}

/// Bytes from each to each.
pub(super) fn matrix(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let mut bytes: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut of_ranks = false;
    if shown.result.has(Table::Messages) {
        shown.result.visit(|row: MessageRow| {
            if row.run == shown.run {
                let pair = match (row.source_rank, row.destination_rank) {
                    (Some(from), Some(to)) => (from.0, to.0),
                    _ => (row.source_endpoint.0, row.destination_endpoint.0),
                };
                of_ranks |= row.source_rank.is_some();
                *bytes.entry(pair).or_default() += row.payload_bytes.get();
            }
        })?;
    } else {
        shown.result.visit(|row: FlowRow| {
            if let (true, Some(to)) = (row.run == shown.run, row.destination_endpoint) {
                *bytes.entry((row.source_endpoint.0, to.0)).or_default() += row.payload_bytes.get();
            }
        })?;
    }
    let Some(last) = bytes.keys().map(|(from, to)| *from.max(to)).max() else {
        let why = "the table flows does not say who received; run it again with --tables messages".to_owned();
        return Err(ResultsError::NothingToDraw { directory: shown.result.directory.clone(), why });
    };
    let what = if of_ranks { "rank" } else { "endpoint" };
    let of = PairValues { what, count: last + 1, block: 1, label: "bytes", unit: "KiB" };
    let values = bytes.into_iter().map(|((from, to), bytes)| (from, to, bytes as f64 / BYTES_PER_KIB));
    Ok(Panel { title: shown.label.clone(), ..of.panel(values) })
}

/// A quantity from each rank, or endpoint, to each.
#[derive(Clone, Copy, Debug)]
pub struct PairValues {
    /// The word for one of them: `rank` or `endpoint`.
    pub what: &'static str,
    /// Number of them.
    pub count: u32,
    /// Successive ones that values are of; the first names them. 1: each is by itself.
    pub block: u32,
    /// The quantity.
    pub label: &'static str,
    /// The unit.
    pub unit: &'static str,
}

impl PairValues {
    /// The matrix of values `(from, to, value)`. Many are put together, so that it has 64 rows at most.
    pub fn panel(self, values: impl Iterator<Item = (u32, u32, f64)>) -> Panel {
        let PairValues { what, count, block, label, unit } = self;
        let group = count.div_ceil(block).div_ceil(MAX_SIDE).max(1) * block;
        let side = count.div_ceil(group);
        let mut rows = vec![vec![0.0; side as usize]; side as usize];
        for (from, to, value) in values {
            rows[(from / group) as usize][(to / group) as usize] += value;
        }
        let name = |number: u32| match group {
            1 => number.to_string(),
            group => format!("{}–{}", number * group, ((number + 1) * group).min(count) - 1),
        };
        let names: Vec<String> = (0..side).map(name).collect();
        let edges = (0..=side).map(f64::from).collect();
        Panel {
            title: String::new(),
            x: Axis::names(format!("to {what}"), names.clone()),
            y: Axis::names(format!("from {what}"), names),
            content: Content::Cells(Cells { edges, values: rows, label: label.to_owned(), unit }),
        }
    }
}
