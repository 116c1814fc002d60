//! Payload that arrives over time, of all flows together: a line for each run.
//!
//! # Source
//! RED-SEA D1.4 §12.2, Fig. 50: "dynamic network throughput".

use super::intervals::{Intervals, PS_PER_US};
use super::panel::{Axis, Content, MAX_SERIES, Panel, Series};
use super::shown::{Shown, ShownRun};
use weft_results::{FlowRateRow, ResultsError};

/// One panel, with the runs of all results.
pub(super) fn panel(shown: Shown<'_>) -> Result<Panel, ResultsError> {
    let mut runs = shown.runs(MAX_SERIES)?;
    runs.truncate(MAX_SERIES);
    let ends = runs.iter().map(end).collect::<Result<Vec<u64>, _>>()?;
    let longest = ends.iter().copied().max().unwrap_or(0);
    let lines = runs.iter().zip(ends).enumerate();
    let lines = lines.map(|(colour, (run, end))| {
        let points = points(run, (end, longest))?;
        Ok(Series { label: run.label.clone(), points, colour, ..Series::default() })
    });
    let lines = lines.collect::<Result<_, ResultsError>>()?;
    let from_zero = shown.part.window.from.as_ps() == 0;
    Ok(Panel {
        title: String::new(),
        x: Axis { from_zero, ..Axis::new("time", "µs") },
        y: Axis::new("payload that came", "Gb/s"),
        content: Content::Lines(lines),
    })
}

/// The end of a run's telemetry, in ps.
fn end(shown: &ShownRun<'_>) -> Result<u64, ResultsError> {
    let mut end = 0;
    shown.result.visit(|row: FlowRateRow| {
        if row.run == shown.run && row.level == 0 {
            end = end.max(row.end_ps.as_ps());
        }
    })?;
    Ok(end)
}

/// The line of a run up to its end, in intervals that suit the longest run: all lines have the same.
fn points(shown: &ShownRun<'_>, (end, longest): (u64, u64)) -> Result<Vec<[f64; 2]>, ResultsError> {
    let intervals = Intervals::of(shown, longest)?;
    let mut bytes = vec![0; intervals.count];
    shown.result.visit(|row: FlowRateRow| {
        if let Some(number) = intervals.number(row.level, row.begin_ps).filter(|_| row.run == shown.run) {
            bytes[number] += row.payload_bytes.get();
        }
    })?;
    let gbps = |bytes: u64| bytes as f64 * 8.0 * 1e3 / intervals.length() as f64;
    let values: Vec<f64> = bytes.into_iter().map(gbps).collect();
    let mut points = intervals.points(&values);
    points.retain(|[at, _]| *at <= end as f64 / PS_PER_US);
    Ok(points)
}
