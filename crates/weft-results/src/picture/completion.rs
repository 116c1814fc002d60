//! Completion times of messages, from posted to delivered: the table `messages`.

use super::{Axis, Content, MAX_SERIES, Panel, Series, Shown, ShownRun};
use crate::error::ResultsError;
use crate::tables::MessageRow;
use std::collections::BTreeMap;

/// Points of a distribution.
const POINTS: usize = 400;
const PS_PER_US: f64 = 1e6;

/// Completion times in ps, and by size.
fn times(shown: &ShownRun<'_>) -> Result<BTreeMap<u64, Vec<u64>>, ResultsError> {
    let mut times: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    shown.result.visit(|row: MessageRow| {
        if row.run == shown.run {
            let time = row.delivered_ps.as_ps().saturating_sub(row.posted_ps.as_ps());
            times.entry(row.payload_bytes.get()).or_default().push(time);
        }
    })?;
    if times.is_empty() {
        let why = format!("run {} delivered no message", shown.run);
        return Err(ResultsError::NothingToDraw { directory: shown.result.directory.clone(), why });
    }
    times.values_mut().for_each(|times| times.sort_unstable());
    Ok(times)
}

/// The share of messages that took at most so long. A line per run.
pub(super) fn distribution(shown: Shown<'_>) -> Result<Panel, ResultsError> {
    let mut lines = Vec::new();
    for run in few(shown)? {
        let mut all: Vec<u64> = times(&run)?.into_values().flatten().collect();
        all.sort_unstable();
        lines.push(Series {
            points: shares(&all),
            label: run.label,
            colour: lines.len(),
            ..Series::default()
        });
    }
    Ok(Panel {
        title: String::new(),
        x: Axis::new("completion time", "µs").log(),
        y: Axis::new("share of messages that took at most so long", ""),
        content: Content::Lines(lines),
    })
}

/// Mean and 99th percentile of the slow-down by size: a message's time over that of the fastest message of
/// its size in the run.
pub(super) fn slow_down(shown: Shown<'_>) -> Result<Panel, ResultsError> {
    let mut lines = Vec::new();
    let runs = few(shown)?;
    // A run of one size is a point of the curve of its result.
    let mut results: Vec<(String, BTreeMap<u64, Vec<u64>>)> = Vec::new();
    for (result, name) in shown.results.iter().zip(shown.names()) {
        let mut all: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for run in runs.iter().filter(|run| std::ptr::eq(run.result, result)) {
            times(run)?.into_iter().for_each(|(size, times)| all.entry(size).or_default().extend(times));
        }
        all.values_mut().for_each(|times| times.sort_unstable());
        results.push((name, all));
    }
    for (colour, (name, by_size)) in results.into_iter().enumerate() {
        let line = |of: fn(&[u64]) -> f64| -> Vec<[f64; 2]> {
            let of = |(size, times): (&u64, &Vec<u64>)| {
                let fastest = times.first().copied().unwrap_or(1).max(1) as f64;
                [(*size).max(1) as f64, of(times) / fastest]
            };
            by_size.iter().map(of).collect()
        };
        let series = |label: &str, points| {
            let (label, marks) = (format!("{name}, {label}"), true);
            Series { label, points, colour, marks, ..Series::default() }
        };
        lines.push(series("mean", line(mean)));
        lines.push(Series { dashed: true, ..series("99 %", line(|times| quantile(times, 0.99))) });
    }
    Ok(Panel {
        title: String::new(),
        x: Axis::new("size of the message", "bytes").log(),
        y: Axis::new("time over that of the fastest of its size", "").log(),
        content: Content::Lines(lines),
    })
}

/// The runs, no more than can be told apart.
fn few(shown: Shown<'_>) -> Result<Vec<ShownRun<'_>>, ResultsError> {
    let runs = shown.runs(usize::MAX)?;
    if runs.len() <= MAX_SERIES {
        return Ok(runs);
    }
    let why = format!("{} runs cannot be told apart; choose one of each result with --run", runs.len());
    Err(ResultsError::NothingToDraw { directory: shown.results[0].directory.clone(), why })
}

/// The distribution of sorted times: in steps of equal share, and finer in its last percent.
fn shares(sorted: &[u64]) -> Vec<[f64; 2]> {
    let points = POINTS.min(sorted.len()).max(1);
    let tail = (1..=20).map(|step| 0.99 + 0.0005 * f64::from(step));
    let mut shares: Vec<f64> = (0..=points).map(|point| point as f64 / points as f64).chain(tail).collect();
    shares.retain(|share| *share <= 1.0);
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    shares.into_iter().map(|share| [quantile(sorted, share) / PS_PER_US, share]).collect()
}

/// The smallest time that `share` of the sorted ones do not exceed.
fn quantile(sorted: &[u64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).or(sorted.last()).copied().unwrap_or(0) as f64
}

fn mean(times: &[u64]) -> f64 {
    times.iter().map(|time| *time as f64).sum::<f64>() / times.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a distribution that does not reach one, and a percentile between two times.
    #[test]
    fn quantiles_are_times_that_were_measured() {
        let times: Vec<u64> = (1..=100).collect();
        assert_eq!(
            [0.0, 0.005, 0.5, 0.99, 1.0].map(|share| quantile(&times, share)),
            [1., 1., 50., 99., 100.]
        );
        let shares = shares(&[3_000_000]);
        assert_eq!((shares.first(), shares.last()), (Some(&[3.0, 0.0]), Some(&[3.0, 1.0])));
    }
}
