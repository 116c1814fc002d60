//! The deepest queue of each switch over time, in packets.
//!
//! # Source
//! RED-SEA D1.4 §12.1, Fig. 46 to 48: the number of packets in the fullest queue of each switch, of the
//! switches on top of each other and as a heat map.

use super::intervals::Intervals;
use super::panel::{Axis, Cells, Content, Panel, Series};
use super::shown::ShownRun;
use std::collections::BTreeMap;
use weft_results::{QueueRow, ResultsError};

/// Switches that are told apart in a stack, and rows of a heat map, at most.
const STACKED: usize = 16;
const ROWS: usize = 48;

/// Packets in the deepest queue of a switch by interval, of the switches with the deepest queues, in order.
struct Depths {
    intervals: Intervals,
    switches: Vec<(u32, Vec<f64>)>,
    /// Switches with queues that are not among them.
    left_out: usize,
}

fn depths(shown: &ShownRun<'_>, most: usize) -> Result<Depths, ResultsError> {
    let (mut peaks, mut end): (BTreeMap<u32, u32>, u64) = (BTreeMap::new(), 0);
    shown.result.visit(|row: QueueRow| {
        if row.run == shown.run && row.level == 0 {
            let peak = peaks.entry(row.switch.0).or_default();
            *peak = (*peak).max(row.most_packets);
            end = end.max(row.end_ps.as_ps());
        }
    })?;
    let intervals = Intervals::of(shown, end)?;
    let mut deepest: Vec<(u32, u32)> = peaks.into_iter().collect();
    deepest.sort_by_key(|(switch, peak)| (std::cmp::Reverse(*peak), *switch));
    let left_out = deepest.len().saturating_sub(most);
    deepest.truncate(most);
    let empty = || vec![0.0; intervals.count];
    let mut depths: BTreeMap<u32, Vec<f64>> =
        deepest.into_iter().map(|(switch, _)| (switch, empty())).collect();
    shown.result.visit(|row: QueueRow| {
        if let Some(number) = intervals.number(row.level, row.begin_ps)
            && row.run == shown.run
            && let Some(depth) = depths.get_mut(&row.switch.0)
        {
            depth[number] = depth[number].max(f64::from(row.most_packets));
        }
    })?;
    Ok(Depths { intervals, switches: depths.into_iter().collect(), left_out })
}

/// The heading of a panel, which says what it leaves out.
fn title(shown: &ShownRun<'_>, left_out: usize) -> String {
    match left_out {
        0 => shown.label.clone(),
        more => format!("{}, without the {more} switches of the shortest queues", shown.label),
    }
}

/// On top of each other.
pub(super) fn stacked(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let Depths { intervals, switches, left_out } = depths(shown, STACKED)?;
    let of = |(colour, (switch, values)): (usize, (u32, Vec<f64>))| Series {
        label: format!("sw {switch}"),
        points: intervals.points(&values),
        colour,
        ..Series::default()
    };
    Ok(Panel {
        title: title(shown, left_out),
        x: intervals.axis(),
        y: Axis::new("deepest queue of each switch", "packets"),
        content: Content::Stacked(switches.into_iter().enumerate().map(of).collect()),
    })
}

/// As a heat map.
pub(super) fn heat_map(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let Depths { intervals, switches, left_out } = depths(shown, ROWS)?;
    let names = switches.iter().map(|(switch, _)| format!("sw {switch}")).collect();
    let values = switches.into_iter().map(|(_, values)| values).collect();
    let (edges, label) = (intervals.edges(), "deepest queue".to_owned());
    Ok(Panel {
        title: title(shown, left_out),
        x: intervals.axis(),
        y: Axis::names("switch", names),
        content: Content::Cells(Cells { edges, values, label, unit: "packets" }),
    })
}
