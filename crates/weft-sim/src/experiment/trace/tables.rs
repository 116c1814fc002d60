//! The statistics of a trace as tables for people: the text of `weft trace stats`, and the page of
//! `weft report`. Each has at most so many rows, and says what it leaves off.

use std::borrow::Cow;
use std::cmp::Reverse;
use weft_analysis::sections::{ReportColumn, ReportTable};
use weft_formats::{CommunicatorStats, EvolutionInterval, MemberKind, TraceStats};

/// A column of numbers.
const fn number(name: &'static str) -> ReportColumn {
    ReportColumn { name: Cow::Borrowed(name), is_number: true }
}

/// A column of words.
const fn word(name: &'static str) -> ReportColumn {
    ReportColumn { name: Cow::Borrowed(name), is_number: false }
}

/// The first `most` of rows of `what`.
fn table(
    columns: &[ReportColumn],
    rows: impl ExactSizeIterator<Item = Vec<String>>,
    most: usize,
    what: &str,
) -> ReportTable {
    let left_off = match rows.len().saturating_sub(most) {
        0 => String::new(),
        more => format!("{more} more {what}"),
    };
    ReportTable { columns: columns.to_vec(), rows: rows.take(most).collect(), left_off }
}

/// The text of a class of sizes.
fn sizes(from_bytes: u64, to_bytes: u64) -> String {
    match from_bytes == to_bytes {
        true => from_bytes.to_string(),
        false => format!("{from_bytes} to {to_bytes}"),
    }
}

/// Operations by kind, the most frequent first.
pub fn operations(stats: &TraceStats, most: usize) -> ReportTable {
    let mut kinds: Vec<_> = stats.operations_by_kind.iter().collect();
    kinds.sort_by_key(|(name, count)| (Reverse(**count), **name));
    let rows = kinds.into_iter().map(|(name, count)| vec![(*name).to_owned(), count.to_string()]);
    table(&[word("operation"), number("count")], rows, most, "kinds")
}

/// Messages by size.
pub fn message_sizes(stats: &TraceStats, most: usize) -> ReportTable {
    let rows = stats.message_sizes.iter().map(|class| {
        let size = sizes(class.from_bytes, class.to_bytes);
        vec![size, class.messages.to_string(), class.message_bytes.to_string()]
    });
    let columns = [word("message size (B)"), number("messages"), number("bytes")];
    table(&columns, rows, most, "classes of larger messages")
}

/// Collectives by kind.
pub fn collectives(stats: &TraceStats, most: usize) -> ReportTable {
    let rows = stats.collectives.iter().map(|(name, of)| {
        let range = match (of.sizes.first(), of.sizes.last()) {
            (Some(least), Some(largest)) => sizes(least.from_bytes, largest.to_bytes),
            _ => String::new(),
        };
        let counts = [of.calls, of.non_blocking_calls, of.send_bytes, of.receive_bytes];
        [vec![(*name).to_owned(), range], counts.map(|count| count.to_string()).to_vec()].concat()
    });
    let columns = [
        word("collective"),
        word("size (B)"),
        number("calls"),
        number("non-blocking"),
        number("bytes given"),
        number("bytes taken"),
    ];
    table(&columns, rows, most, "collectives")
}

/// Calls of reductions by what they compute, as far as the trace says.
pub fn reductions(stats: &TraceStats, most: usize) -> ReportTable {
    let mut rows = Vec::new();
    for (name, of) in &stats.collectives {
        for (reduction, calls) in &of.reductions {
            rows.push(vec![(*name).to_owned(), reduction.clone(), calls.to_string()]);
        }
    }
    let columns = [word("collective"), word("reduction"), number("calls")];
    table(&columns, rows.into_iter(), most, "reductions")
}

/// The calls of each kind of collective by size.
pub fn collective_sizes(stats: &TraceStats, most: usize) -> ReportTable {
    let mut rows = Vec::new();
    for (name, of) in &stats.collectives {
        for class in &of.sizes {
            let counts = [class.calls, class.send_bytes, class.receive_bytes];
            let size = sizes(class.from_bytes, class.to_bytes);
            let counts = counts.map(|count| count.to_string()).to_vec();
            rows.push([vec![(*name).to_owned(), size], counts].concat());
        }
    }
    let columns =
        [word("collective"), word("size (B)"), number("calls"), number("bytes given"), number("bytes taken")];
    table(&columns, rows.into_iter(), most, "classes")
}

/// Communicators; those with most bytes first, if not all are shown.
pub fn communicators(stats: &TraceStats, most: usize) -> ReportTable {
    let mut shown: Vec<&CommunicatorStats> = stats.communicator_rows.iter().collect();
    if shown.len() > most {
        let bytes = |one: &CommunicatorStats| one.totals.message_bytes + one.totals.collective_send_bytes;
        shown.sort_by_key(|one| Reverse(bytes(one)));
    }
    let rows = shown.into_iter().map(|one| {
        let name = match one.members {
            MemberKind::World => "world".to_owned(),
            _ => format!("{}.{}", one.first_rank, one.number),
        };
        let of = one.totals;
        let counts =
            [one.ranks, of.messages, of.message_bytes, of.collective_calls, of.collective_send_bytes];
        let members = one.members.name().replace('-', " ");
        [vec![name, members], counts.map(|count| count.to_string()).to_vec()].concat()
    });
    let columns = [
        word("communicator"),
        word("members"),
        number("ranks"),
        number("messages"),
        number("bytes"),
        number("collective calls"),
        number("bytes given"),
    ];
    table(&columns, rows, most, "communicators")
}

/// The pairs of ranks that send most bytes.
pub fn pairs(stats: &TraceStats, most: usize) -> ReportTable {
    let rows = stats.top_pairs.iter().take(most).map(|pair| {
        let cells = [u64::from(pair.from_rank), u64::from(pair.to_rank), pair.messages, pair.message_bytes];
        cells.map(|cell| cell.to_string()).to_vec()
    });
    let columns = [number("from rank"), number("to rank"), number("messages"), number("bytes")];
    let more = stats.pairs - rows.len() as u64;
    let left_off = if more == 0 { String::new() } else { format!("{more} more pairs, which send less") };
    ReportTable { left_off, ..table(&columns, rows, most, "") }
}

/// Operations over time; intervals are put together until there are at most `most`.
pub fn evolution(stats: &TraceStats, most: usize) -> ReportTable {
    let intervals = &stats.evolution.rows;
    let group = intervals.len().div_ceil(most).max(1);
    let rows = intervals.chunks(group).map(|group| {
        let sum = |of: fn(&EvolutionInterval) -> u64| group.iter().map(of).fold(0, u64::saturating_add);
        let time = |edge: Option<f64>| format!("{:.3}", edge.unwrap_or(0.0));
        vec![
            time(group.first().map(|one| one.from_us)),
            time(group.last().map(|one| one.to_us)),
            sum(|one| one.operations).to_string(),
            sum(|one| one.messages).to_string(),
            sum(|one| one.message_bytes).to_string(),
            sum(|one| one.collective_calls).to_string(),
            sum(|one| one.collective_send_bytes).to_string(),
        ]
    });
    let columns = [
        number("computed (us)"),
        number("to"),
        number("operations"),
        number("messages"),
        number("bytes"),
        number("collective calls"),
        number("bytes given"),
    ];
    table(&columns, rows, most, "intervals")
}

/// The ranks.
pub fn ranks(stats: &TraceStats, most: usize) -> ReportTable {
    let rows = stats.rows.iter().map(|row| {
        let counts = [
            row.messages_sent,
            row.bytes_sent,
            row.messages_received,
            row.bytes_received,
            row.waits,
            row.collective_calls,
        ];
        let words =
            [row.rank.to_string(), row.operations.to_string(), format!("{:.3}", row.computation_us)].to_vec();
        [words, counts.map(|count| count.to_string()).to_vec()].concat()
    });
    let columns = [
        number("rank"),
        number("operations"),
        number("computation (us)"),
        number("sent"),
        number("bytes sent"),
        number("received"),
        number("bytes received"),
        number("waits"),
        number("collective calls"),
    ];
    table(&columns, rows, most, "ranks")
}
