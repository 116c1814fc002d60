//! Queues, links and flows over time: the tables `queues`, `rates` and `flow_rates` of telemetry.
//!
//! A picture takes the finest level with few enough intervals; the tables are read twice, first to find the
//! fullest, so that what is kept does not grow with the time.

use super::field_unit::four_digits;
use super::intervals::{Intervals, PS_PER_US};
use super::panel::{Axis, Cells, Content, MAX_SERIES, Panel, Series};
use super::shown::ShownRun;
use std::collections::{BTreeMap, BTreeSet};
use weft_results::{FlowRateRow, QueueRow, RateRow, ResultsError};

/// Ports that are told apart in a stack; the grey of the next colour is that of all others.
const STACKED: usize = 6;
/// The share of all bytes from which on all others would hide the fullest ports.
const MOST_OF_OTHERS: f64 = 0.75;
/// Queues in a heat map, at most.
const MAX_QUEUES: usize = 48;
const BYTES_PER_KIB: f64 = 1024.0;

/// A port's queues: switch, side and port, over all virtual channels.
type PortQueue = (u32, bool, u32);

fn queue_name(&(switch, is_output, port): &PortQueue) -> String {
    let side = if is_output { " out" } else { "" };
    format!("sw {switch} port {port}{side}")
}

/// The fill of queues in KiB by interval, fullest first.
struct Fill {
    intervals: Intervals,
    queues: Vec<(PortQueue, Vec<f64>)>,
    /// The number of all others.
    other_count: usize,
    /// All other queues together.
    others: Vec<f64>,
}

/// The fill of the `most` fullest queues: their mean, or the most at any look.
fn fill(shown: &ShownRun<'_>, most: usize, held: fn(&QueueRow) -> u64) -> Result<Fill, ResultsError> {
    let key = |row: &QueueRow| (row.switch.0, row.side == "output", row.port.0);
    let (mut peaks, mut end): (BTreeMap<PortQueue, u64>, u64) = (BTreeMap::new(), 0);
    shown.result.visit(|row: QueueRow| {
        if row.run == shown.run && row.level == 0 {
            let peak = peaks.entry(key(&row)).or_default();
            *peak = (*peak).max(row.most_held_bytes.get());
            end = end.max(row.end_ps.as_ps());
        }
    })?;
    let intervals = Intervals::of(shown, end)?;
    let mut fullest: Vec<(PortQueue, u64)> = peaks.into_iter().collect();
    fullest.sort_by_key(|(queue, peak)| (std::cmp::Reverse(*peak), *queue));
    let other_count = fullest.len().saturating_sub(most);
    fullest.truncate(most);
    let empty = || vec![0.0; intervals.count];
    let mut queues: Vec<(PortQueue, Vec<f64>)> =
        fullest.into_iter().map(|(queue, _)| (queue, empty())).collect();
    let place: BTreeMap<PortQueue, usize> =
        queues.iter().enumerate().map(|(place, (queue, _))| (*queue, place)).collect();
    let mut others = empty();
    shown.result.visit(|row: QueueRow| {
        if let Some(number) = intervals.number(row.level, row.begin_ps).filter(|_| row.run == shown.run) {
            let series = match place.get(&key(&row)) {
                Some(place) => &mut queues[*place].1,
                None => &mut others,
            };
            series[number] += held(&row) as f64 / BYTES_PER_KIB;
        }
    })?;
    Ok(Fill { intervals, queues, other_count, others })
}

/// The mean fill of the fullest ports on top of each other, and that of all others above them. Where these
/// hold so much that they would hide the fullest, the heading says it in place of an area.
pub(super) fn stacked(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let Fill { intervals, queues, other_count, others } =
        fill(shown, STACKED, |row| row.mean_held_bytes.get())?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (held, of_fullest) = (mean(&others), queues.iter().map(|(_, values)| mean(values)).sum::<f64>());
    let would_hide = held > MOST_OF_OTHERS * (held + of_fullest);
    let left_out = match would_hide {
        true => format!(", without {other_count} others that hold {} KiB in the mean", four_digits(held)),
        false => String::new(),
    };
    let of = |(colour, (label, values)): (usize, (String, Vec<f64>))| {
        let points = intervals.points(&values);
        Series { label, points, colour, ..Series::default() }
    };
    let mut named: Vec<(String, Vec<f64>)> =
        queues.into_iter().map(|(queue, values)| (queue_name(&queue), values)).collect();
    let fullest = named.len();
    if held > 0.0 && !would_hide {
        named.push(("all others".to_owned(), others));
    }
    let mut series: Vec<Series> = named.into_iter().enumerate().map(of).collect();
    series.iter_mut().skip(fullest).for_each(|others| others.colour = STACKED);
    Ok(Panel {
        title: format!("{}{left_out}", shown.label),
        x: intervals.axis(),
        y: Axis::new("bytes in queues", "KiB"),
        content: Content::Stacked(series),
    })
}

/// The most that each of the fullest ports held, over time; by switch and port. Of a port with several
/// virtual channels it is the sum of what each held at most.
pub(super) fn heat_map(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let Fill { intervals, mut queues, .. } = fill(shown, MAX_QUEUES, |row| row.most_held_bytes.get())?;
    queues.sort_by_key(|(queue, _)| *queue);
    let names = queues.iter().map(|(queue, _)| queue_name(queue)).collect();
    let values = queues.into_iter().map(|(_, values)| values).collect();
    let cells = Cells { edges: intervals.edges(), values, label: "most held".to_owned(), unit: "KiB" };
    Ok(Panel {
        title: shown.label.clone(),
        x: intervals.axis(),
        y: Axis::names("queue", names),
        content: Content::Cells(cells),
    })
}

/// An end of a link: an endpoint, or a switch and its port.
type From = (Option<u32>, Option<u32>, Option<u32>);

fn link_name(from: &From) -> String {
    match from {
        (Some(endpoint), ..) => format!("endpoint {endpoint}"),
        (_, switch, port) => format!("sw {} port {}", switch.unwrap_or(0), port.unwrap_or(0)),
    }
}

/// The rates of the links that carried most, and the mean of all that carried something.
pub(super) fn rates(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let key = |row: &RateRow| {
        (row.from_endpoint.map(|id| id.0), row.from_switch.map(|id| id.0), row.from_port.map(|id| id.0))
    };
    let (mut carried, mut end): (BTreeMap<From, u64>, u64) = (BTreeMap::new(), 0);
    shown.result.visit(|row: RateRow| {
        if row.run == shown.run && row.level == 0 {
            *carried.entry(key(&row)).or_default() += row.packet_bytes.get();
            end = end.max(row.end_ps.as_ps());
        }
    })?;
    let intervals = Intervals::of(shown, end)?;
    let links = carried.len().max(1);
    let mut busiest: Vec<(From, u64)> = carried.into_iter().collect();
    busiest.sort_by_key(|(link, bytes)| (std::cmp::Reverse(*bytes), *link));
    busiest.truncate(MAX_SERIES - 1);
    let mut series = vec![vec![0.0; intervals.count]; busiest.len() + 1];
    let mean = busiest.len();
    shown.result.visit(|row: RateRow| {
        if let Some(number) = intervals.number(row.level, row.begin_ps).filter(|_| row.run == shown.run) {
            let time = row.end_ps.as_ps().saturating_sub(row.begin_ps.as_ps()).max(1);
            let gbps = row.packet_bytes.get() as f64 * 8.0 * 1e3 / time as f64;
            if let Some(place) = busiest.iter().position(|(link, _)| *link == key(&row)) {
                series[place][number] += gbps;
            }
            series[mean][number] += gbps / links as f64;
        }
    })?;
    let label = |place: usize| match busiest.get(place) {
        Some((link, _)) => link_name(link),
        // A row is of one direction of a link.
        None => format!("mean of {links} directions"),
    };
    let of = |(colour, values): (usize, Vec<f64>)| Series {
        label: label(colour),
        points: intervals.points(&values),
        colour,
        dashed: colour == mean,
        ..Series::default()
    };
    Ok(Panel {
        title: shown.label.clone(),
        x: intervals.axis(),
        y: Axis::new("rate", "Gb/s"),
        content: Content::Lines(series.into_iter().enumerate().map(of).collect()),
    })
}

/// The payload that came of the flows of which most came, and the rates that congestion control allowed them.
pub(super) fn flow_rates(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    /// Flows that are drawn: each takes two lines.
    const FLOWS: usize = MAX_SERIES / 2;
    let key = |row: &FlowRateRow| (row.source_endpoint.0, row.destination_endpoint.0, row.traffic_class);
    let (mut came, mut end) = (BTreeMap::new(), 0);
    shown.result.visit(|row: FlowRateRow| {
        if row.run == shown.run && row.level == 0 {
            *came.entry(key(&row)).or_insert(0_u64) += row.payload_bytes.get();
            end = end.max(row.end_ps.as_ps());
        }
    })?;
    let intervals = Intervals::of(shown, end)?;
    let mut largest: Vec<_> = came.into_iter().collect();
    largest.sort_by_key(|(flow, bytes)| (std::cmp::Reverse(*bytes), *flow));
    largest.truncate(FLOWS);
    // In the order of their names, so that results side by side have the same colours.
    largest.sort_by_key(|(flow, _)| *flow);
    let mut rates = vec![vec![0.0; intervals.count]; largest.len()];
    let mut allowed: Vec<Vec<[f64; 2]>> = vec![Vec::new(); largest.len()];
    shown.result.visit(|row: FlowRateRow| {
        let place = largest.iter().position(|(flow, _)| *flow == key(&row));
        if let Some(place) = place
            && row.run == shown.run
            && let Some(number) = intervals.number(row.level, row.begin_ps)
        {
            let time = row.end_ps.as_ps().saturating_sub(row.begin_ps.as_ps()).max(1);
            let gbps = row.payload_bytes.get() as f64 * 8.0 * 1e3 / time as f64;
            rates[place][number] += gbps;
            if let Some(rate) = row.allowed_bits_per_second {
                let at = row.end_ps.as_ps() as f64 / PS_PER_US;
                allowed[place].push([at, rate.bits_per_second() as f64 / 1e9]);
            }
        }
    })?;
    let classes: BTreeSet<u32> = largest.iter().map(|((_, _, class), _)| *class).collect();
    let name = |place: usize| match largest[place].0 {
        (from, to, class) if classes.len() > 1 => format!("{from} to {to}, class {class}"),
        (from, to, _) => format!("{from} to {to}"),
    };
    let line =
        |label: String, points, colour, dashed| Series { label, points, colour, dashed, ..Series::default() };
    let came = rates
        .iter()
        .enumerate()
        .map(|(place, values)| line(name(place), intervals.points(values), place, false));
    let bounds = allowed.into_iter().enumerate().filter(|(_, points)| !points.is_empty());
    let bounds = bounds.map(|(place, points)| line(format!("{}, allowed", name(place)), points, place, true));
    Ok(Panel {
        title: shown.label.clone(),
        x: intervals.axis(),
        y: Axis::new("payload that came", "Gb/s"),
        content: Content::Lines(came.chain(bounds).collect()),
    })
}
