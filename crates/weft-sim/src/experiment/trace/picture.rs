//! Pictures of the statistics of a trace.

use super::{ExperimentError, TraceOptions, TraceStats, read};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use weft_analysis::picture::{Axis, Content, MAX_SERIES, PairValues, Panel, Picture, Series};
use weft_formats::{EvolutionInterval, Pair, RankStats};

/// Ranks of a picture that are drawn one by one; above, means of successive ones are.
const MAX_RANKS: usize = 400;
/// Ranks that have a name on their axis.
const NAMED_RANKS: usize = 64;
/// Kinds of operations in a picture: the most frequent.
const MAX_KINDS: usize = 24;

/// The kinds of pictures of a trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TracePicture {
    /// Operations by kind, and the bytes that they move.
    Operations,
    /// Messages and their bytes by size.
    MessageSizes,
    /// Calls of collectives and their bytes by size.
    CollectiveSizes,
    /// Bytes and messages from each rank to each.
    CommunicationMatrix,
    /// Messages, calls and bytes over time.
    Evolution,
    /// Computation, bytes and operations of each rank.
    Ranks,
}

impl TracePicture {
    /// All of them, in the order in which they are listed.
    pub const ALL: [TracePicture; 6] = [
        TracePicture::Operations,
        TracePicture::MessageSizes,
        TracePicture::CollectiveSizes,
        TracePicture::CommunicationMatrix,
        TracePicture::Evolution,
        TracePicture::Ranks,
    ];

    /// The name, as in options.
    pub const fn name(self) -> &'static str {
        match self {
            TracePicture::Operations => "operations",
            TracePicture::MessageSizes => "message-sizes",
            TracePicture::CollectiveSizes => "collective-sizes",
            TracePicture::CommunicationMatrix => "communication-matrix",
            TracePicture::Evolution => "evolution",
            TracePicture::Ranks => "ranks",
        }
    }

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            TracePicture::Operations => "Operations by kind",
            TracePicture::MessageSizes => "Messages by size",
            TracePicture::CollectiveSizes => "Collectives by size",
            TracePicture::CommunicationMatrix => "Messages from each rank to each",
            TracePicture::Evolution => "Messages and collectives over time",
            TracePicture::Ranks => "Ranks",
        }
    }

    /// The picture; `subtitle` names the trace. `None`: the trace has nothing to draw.
    pub(super) fn of(self, stats: &TraceStats, subtitle: &str) -> Option<Picture> {
        let panels = match self {
            TracePicture::Operations => operations(stats),
            TracePicture::MessageSizes => message_sizes(stats),
            TracePicture::CollectiveSizes => collective_sizes(stats),
            TracePicture::CommunicationMatrix => matrix(stats),
            TracePicture::Evolution => evolution(stats),
            TracePicture::Ranks => ranks(stats),
        };
        let (kind, title) = (self.name(), self.title().to_owned());
        (!panels.is_empty()).then(|| Picture { kind, title, subtitle: subtitle.to_owned(), panels })
    }
}

impl fmt::Display for TracePicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TracePicture {
    type Err = String;
    fn from_str(text: &str) -> Result<TracePicture, String> {
        TracePicture::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let known = TracePicture::ALL.map(TracePicture::name).join(", ");
            format!("there is no picture `{text}` of a trace; choose from {known}")
        })
    }
}

/// Reads a trace and makes a picture of it.
///
/// # Errors
/// A trace that cannot be read, or has nothing of this kind.
pub fn picture(path: &Path, options: &TraceOptions, kind: TracePicture) -> Result<Picture, ExperimentError> {
    let ((format, stats), _) = read(path, options, |trace| {
        Ok((trace.format(), TraceStats::of(trace).map_err(ExperimentError::input)?))
    })?;
    kind.of(&stats, &subtitle(path, format, &stats)).ok_or_else(|| {
        let why = format!(
            "{} has nothing to draw as {kind}: see weft trace stats, and choose another picture with --what",
            path.display()
        );
        ExperimentError::input(why)
    })
}

/// The line below the heading: the trace, and its size.
pub(super) fn subtitle(path: &Path, format: &str, stats: &TraceStats) -> String {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into());
    format!("{name} ({format}), {} ranks, {} operations", stats.ranks, stats.operations)
}

/// Bars beside each other, of one or several series: each is as wide as its name on the axis.
fn bars(series: Vec<(String, Vec<f64>)>) -> Content {
    let bar = |(place, value): (usize, f64)| [[place as f64, value], [place as f64 + 1.0, value]];
    let line = |(colour, (label, values)): (usize, (String, Vec<f64>))| {
        let points = values.into_iter().enumerate().flat_map(bar).collect();
        Series { label, points, colour, ..Series::default() }
    };
    Content::Stacked(series.into_iter().enumerate().map(line).collect())
}

/// Whether a series has anything but zeros.
fn is_seen(series: &Series) -> bool {
    series.points.iter().any(|point| point[1] > 0.0)
}

/// The sum of counts by name, the largest first; what is 0 is left out.
fn largest(counts: impl Iterator<Item = (String, u64)>) -> (Vec<String>, Vec<f64>) {
    let mut counts: Vec<(String, u64)> = counts.filter(|(_, count)| *count > 0).collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts.into_iter().take(MAX_KINDS).map(|(name, count)| (name, count as f64)).unzip()
}

fn operations(stats: &TraceStats) -> Vec<Panel> {
    let kinds = stats.operations_by_kind.iter().map(|(name, count)| ((*name).to_owned(), *count));
    let collectives = stats.collectives.iter().map(|(name, of)| ((*name).to_owned(), of.send_bytes));
    let moved = [("messages", stats.message_bytes), ("one-sided", stats.one_sided_bytes)];
    let moved = moved.map(|(name, bytes)| (name.to_owned(), bytes)).into_iter().chain(collectives);
    let panel = |title: &str, (names, values): (Vec<String>, Vec<f64>), y| Panel {
        title: title.to_owned(),
        x: Axis::names("", names),
        y,
        content: bars(vec![("all ranks".to_owned(), values)]),
    };
    let panels = [
        panel("operations", largest(kinds), Axis::new("operations", "")),
        panel("bytes that they give", largest(moved), Axis::new("payload", "B")),
    ];
    panels.into_iter().filter(|panel| !panel.x.names.is_empty()).collect()
}

/// The lower ends of successive classes of sizes, from the least to the largest that is there.
fn classes(there: impl Iterator<Item = u64> + Clone) -> Vec<u64> {
    let (Some(least), Some(largest)) = (there.clone().min(), there.max()) else { return Vec::new() };
    let next = |from: &u64| if *from == 0 { Some(1) } else { from.checked_mul(2) };
    std::iter::successors(Some(least), next).take_while(|from| *from <= largest).collect()
}

/// The axis of classes of sizes.
fn size_axis(classes: &[u64]) -> Axis {
    let name = |from: &u64| {
        let units = [(30, "Gi"), (20, "Mi"), (10, "Ki")];
        match units.into_iter().find(|(bits, _)| *from >> bits > 0) {
            Some((bits, unit)) => format!("{}{unit}", from >> bits),
            None => from.to_string(),
        }
    };
    let names = classes.iter().map(name).collect();
    Axis { unit: "B", ..Axis::names("size: from this to below the next", names) }
}

/// A value for each class of sizes.
fn by_class(classes: &[u64], values: impl Iterator<Item = (u64, u64)>) -> Vec<f64> {
    let values: BTreeMap<u64, u64> = values.collect();
    classes.iter().map(|from| values.get(from).copied().unwrap_or(0) as f64).collect()
}

fn message_sizes(stats: &TraceStats) -> Vec<Panel> {
    let classes = classes(stats.message_sizes.iter().map(|class| class.from_bytes));
    if classes.is_empty() {
        return Vec::new();
    }
    let messages = stats.message_sizes.iter().map(|class| (class.from_bytes, class.messages));
    let bytes = stats.message_sizes.iter().map(|class| (class.from_bytes, class.message_bytes));
    let panel = |title: &str, values: Vec<f64>, y| Panel {
        title: title.to_owned(),
        x: size_axis(&classes),
        y,
        content: bars(vec![("all ranks".to_owned(), values)]),
    };
    vec![
        panel("messages", by_class(&classes, messages), Axis::new("messages", "")),
        panel("their bytes", by_class(&classes, bytes), Axis::new("payload", "B")),
    ]
}

fn collective_sizes(stats: &TraceStats) -> Vec<Panel> {
    let all = stats.collectives.values().flat_map(|of| &of.sizes);
    let classes = classes(all.map(|class| class.from_bytes));
    if classes.is_empty() {
        return Vec::new();
    }
    let mut kinds: Vec<_> = stats.collectives.iter().collect();
    kinds.sort_by_key(|(name, of)| (Reverse(of.calls), **name));
    let rest = kinds.split_off(kinds.len().min(MAX_SERIES - 1));
    let panel = |title: &str, value: fn(&weft_formats::CallSizeClass) -> u64, y| {
        let values = |of: &super::CollectiveStats| {
            by_class(&classes, of.sizes.iter().map(|class| (class.from_bytes, value(class))))
        };
        let mut series: Vec<_> = kinds.iter().map(|(name, of)| ((**name).to_owned(), values(of))).collect();
        if !rest.is_empty() {
            let mut sum = vec![0.0; classes.len()];
            for (_, of) in &rest {
                sum.iter_mut().zip(values(of)).for_each(|(sum, value)| *sum += value);
            }
            series.push((format!("{} others", rest.len()), sum));
        }
        Panel { title: title.to_owned(), x: size_axis(&classes), y, content: bars(series) }
    };
    vec![
        panel("calls", |class| class.calls, Axis::new("calls of all ranks", "")),
        panel("bytes that they give", |class| class.send_bytes, Axis::new("payload", "B")),
    ]
}

fn matrix(stats: &TraceStats) -> Vec<Panel> {
    if stats.matrix.rows.is_empty() {
        return Vec::new();
    }
    let panel = |label, unit, value: fn(&Pair) -> f64| {
        let of =
            PairValues { what: "rank", count: stats.ranks, block: stats.matrix.block_ranks, label, unit };
        let rows = stats.matrix.rows.iter();
        Panel {
            title: label.to_owned(),
            ..of.panel(rows.map(|pair| (pair.from_rank, pair.to_rank, value(pair))))
        }
    };
    vec![
        panel("bytes", "KiB", |pair| pair.message_bytes as f64 / 1024.0),
        panel("messages", "", |pair| pair.messages as f64),
    ]
}

/// The unit in which so many microseconds are drawn, and how many it has.
fn time_unit(us: f64) -> (&'static str, f64) {
    match us {
        1e7.. => ("s", 1e6),
        1e4.. => ("ms", 1e3),
        _ => ("µs", 1.0),
    }
}

fn evolution(stats: &TraceStats) -> Vec<Panel> {
    let rows = &stats.evolution.rows;
    let (unit, us) = time_unit(rows.last().map_or(0.0, |row| row.to_us));
    type Value = fn(&EvolutionInterval) -> u64;
    let panel = |title: &str, of: [(&str, Value); 2], y: Axis| {
        let line = |(colour, (label, value)): (usize, (&str, Value))| {
            let points = rows.iter().flat_map(|row| {
                let value = value(row) as f64;
                [[row.from_us / us, value], [row.to_us / us, value]]
            });
            Series { label: label.to_owned(), points: points.collect(), colour, ..Series::default() }
        };
        let x = Axis::new("time that a rank has computed", unit);
        let seen: Vec<Series> = of.into_iter().enumerate().map(line).filter(is_seen).collect();
        (!seen.is_empty()).then(|| Panel { title: title.to_owned(), x, y, content: Content::Stacked(seen) })
    };
    let count = [
        ("messages", (|row| row.messages) as Value),
        ("calls of collectives", |row: &EvolutionInterval| row.collective_calls),
    ];
    let bytes = [
        ("of messages", (|row| row.message_bytes) as Value),
        ("given to collectives", |row: &EvolutionInterval| row.collective_send_bytes),
    ];
    let count = panel("messages and calls, all ranks", count, Axis::new("in an interval", ""));
    let bytes = panel("bytes, all ranks", bytes, Axis::new("in an interval", "B"));
    count.into_iter().chain(bytes).collect()
}

fn ranks(stats: &TraceStats) -> Vec<Panel> {
    if stats.rows.is_empty() {
        return Vec::new();
    }
    let group = stats.rows.len().div_ceil(MAX_RANKS);
    let x = match (stats.rows.len(), group) {
        (few, _) if few <= NAMED_RANKS => Axis::names("rank", (0..few).map(|n| n.to_string()).collect()),
        (_, 1) => Axis::new("rank", ""),
        (_, group) => Axis::new(format!("rank, means of {group}"), ""),
    };
    let steps = |label: &str, colour, value: &dyn Fn(&RankStats) -> f64| {
        let points = stats.rows.chunks(group).enumerate().flat_map(|(place, rows)| {
            let mean = rows.iter().map(value).sum::<f64>() / rows.len() as f64;
            let from = place * group;
            [[from as f64, mean], [(from + rows.len()) as f64, mean]]
        });
        Series { label: label.to_owned(), points: points.collect(), colour, ..Series::default() }
    };
    let (unit, us) = time_unit(stats.computation_max_us);
    let panel = |title: &str, y, content| Panel { title: title.to_owned(), x: x.clone(), y, content };
    let seen = |series: Vec<Series>| -> Vec<Series> { series.into_iter().filter(is_seen).collect() };
    let computation = steps("computation", 0, &|row| row.computation_us / us);
    let bytes = seen(vec![
        steps("sent", 0, &|row| row.bytes_sent as f64),
        steps("received", 1, &|row| row.bytes_received as f64),
        steps("given to collectives", 2, &|row| row.collective_send_bytes as f64),
    ]);
    let named =
        |row: &RankStats| row.messages_sent + row.receives + row.waits + row.probes + row.collective_calls;
    let operations = seen(vec![
        steps("sends", 0, &|row| row.messages_sent as f64),
        steps("receives", 1, &|row| row.receives as f64),
        steps("waits and probes", 2, &|row| (row.waits + row.probes) as f64),
        steps("collectives", 3, &|row| row.collective_calls as f64),
        steps("computation and others", 4, &|row| row.operations.saturating_sub(named(row)) as f64),
    ]);
    let mut panels = vec![panel("computation", Axis::new("time", unit), Content::Stacked(vec![computation]))];
    if !bytes.is_empty() {
        panels.push(panel("bytes", Axis::new("payload", "B"), Content::Lines(bytes)));
    }
    if !operations.is_empty() {
        panels.push(panel("operations", Axis::new("operations", ""), Content::Stacked(operations)));
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a class that is left out, which would move the others, and an overflow behind the last.
    #[test]
    fn classes_follow_each_other() {
        assert_eq!(classes([0, 8].into_iter()), [0, 1, 2, 4, 8]);
        assert_eq!(classes([1 << 62, 1 << 63].into_iter()), [1 << 62, 1 << 63]);
        assert_eq!(size_axis(&[512, 2048, 1 << 20]).names, ["512", "2Ki", "1Mi"]);
    }
}
