//! Rates of jobs over time: together, and each alone where that was asked for.

use super::intervals::Intervals;
use super::panel::{Axis, Content, MAX_SERIES, Panel, Series};
use super::shown::ShownRun;
use weft_results::{JobRateRow, ResultsError};

/// Jobs that are drawn, each with two lines: together, and alone.
const JOBS: usize = MAX_SERIES / 2;

/// The payload that came of each job. A job that ran alone as well has a dashed line in the same colour.
pub(super) fn rates(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let rows = &shown.result.manifest.rows;
    let jobs = rows.len().min(JOBS);
    // None: it is not drawn, or nobody knows the job.
    let place = |row: &JobRateRow| row.job.map(|job| job as usize).filter(|job| *job < jobs);
    let mut end = 0;
    shown.result.visit(|row: JobRateRow| {
        if row.level == 0 && place(&row).is_some() {
            end = end.max(row.end_ps.as_ps());
        }
    })?;
    let intervals = Intervals::of(shown, end)?;
    // By job: the rates together, and alone.
    let mut rates = vec![[vec![0.0; intervals.count], vec![0.0; intervals.count]]; jobs];
    let mut others = false;
    shown.result.visit(|row: JobRateRow| {
        let Some(interval) = intervals.number(row.level, row.begin_ps) else { return };
        let Some(job) = place(&row) else {
            others |= row.job.is_none();
            return;
        };
        let time = row.end_ps.as_ps().saturating_sub(row.begin_ps.as_ps()).max(1);
        let gbps = row.payload_bytes.get() as f64 * 8.0 * 1e3 / time as f64;
        rates[job][usize::from(row.jobs == 1)][interval] += gbps;
    })?;
    let mut series = Vec::new();
    for (job, [together, alone]) in rates.into_iter().enumerate() {
        let name = rows[job]["trace"].as_str().unwrap_or("job");
        let name = format!("{job}: {name}");
        if alone.iter().any(|rate| *rate > 0.0) {
            let points = intervals.points(until_last(&alone));
            let label = format!("{name}, alone");
            series.push(Series { label, points, colour: job, dashed: true, ..Series::default() });
        }
        let points = intervals.points(until_last(&together));
        series.push(Series { label: name, points, colour: job, ..Series::default() });
    }
    let note = if others { ", without packets that may be of several jobs" } else { "" };
    Ok(Panel {
        title: shown.label.clone(),
        x: intervals.axis(),
        y: Axis::new(format!("payload that came{note}"), "Gb/s"),
        content: Content::Lines(series),
    })
}

/// The rates up to the last interval in which something came: after it the job has ended.
fn until_last(rates: &[f64]) -> &[f64] {
    let last = rates.iter().rposition(|rate| *rate > 0.0).map_or(0, |last| last + 1);
    // The next is zero, so that the end is seen.
    &rates[..(last + 1).min(rates.len())]
}
