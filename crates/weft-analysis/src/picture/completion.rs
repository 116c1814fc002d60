//! Completion times of messages, from posted to delivered: the table `messages`.
//!
//! A scenario has a panel for each of its groups of flows, with a line for each way to control congestion.
//! Elsewhere there is one panel.

use super::panel::{Axis, Content, MAX_SERIES, Panel, Series};
use super::shown::{Shown, ShownRun};
use std::collections::BTreeMap;
use weft_results::{MessageRow, ResultsError};

/// Points of a distribution.
const POINTS: usize = 400;
/// Sizes that are points of a curve; of more, as a distribution of sizes draws them, those between two powers
/// of two are one point.
const MAX_SIZES: usize = 40;
const PS_PER_US: f64 = 1e6;

/// A message: its size in bytes, and its time in ps.
type Timed = (u64, u64);

/// The messages of the shown runs by group: of each run in its place, none where it has no such group.
fn by_group(runs: &[ShownRun<'_>]) -> Result<BTreeMap<Option<String>, Vec<Vec<Timed>>>, ResultsError> {
    let mut groups: BTreeMap<Option<String>, Vec<Vec<Timed>>> = BTreeMap::new();
    for (place, run) in runs.iter().enumerate() {
        let mut any = false;
        run.result.visit(|row: MessageRow| {
            if row.run == run.run {
                any = true;
                let time = row.delivered_ps.as_ps().saturating_sub(row.posted_ps.as_ps());
                let of_runs = groups.entry(row.group).or_insert_with(|| vec![Vec::new(); runs.len()]);
                of_runs[place].push((row.payload_bytes.get(), time));
            }
        })?;
        if !any {
            let why = format!("run {} delivered no message", run.run);
            return Err(ResultsError::NothingToDraw { directory: run.result.directory.clone(), why });
        }
    }
    Ok(groups)
}

/// The share of messages that took at most so long. A line per run.
pub(super) fn distribution(shown: Shown<'_>) -> Result<Vec<Panel>, ResultsError> {
    let runs = few(shown)?;
    let panel = |(group, of_runs): (Option<String>, Vec<Vec<Timed>>)| {
        let line = |(colour, messages): (usize, Vec<Timed>)| {
            let mut times: Vec<u64> = messages.into_iter().map(|(_, time)| time).collect();
            times.sort_unstable();
            let label = runs[colour].label.clone();
            (!times.is_empty()).then(|| Series { points: shares(&times), label, colour, ..Series::default() })
        };
        Panel {
            title: group.unwrap_or_default(),
            x: Axis::new("completion time", "µs").log(),
            y: Axis::new("share of messages that took at most so long", ""),
            content: Content::Lines(of_runs.into_iter().enumerate().filter_map(line).collect()),
        }
    };
    Ok(by_group(&runs)?.into_iter().map(panel).collect())
}

/// Mean and 99th percentile of the slow-down by size: a message's time over that of the fastest message which
/// is at least as large, in all runs of its result.
pub(super) fn slow_down(shown: Shown<'_>) -> Result<Vec<Panel>, ResultsError> {
    let runs = few(shown)?;
    let groups = by_group(&runs)?;
    let names = shown.names();
    // A run of one size is a point of the curve of its result; each way to control congestion has a curve.
    let mut curves: Vec<(usize, String)> = Vec::new();
    let mut curve_of: Vec<usize> = Vec::new();
    let mut fastest: Vec<Fastest> = vec![Fastest::default(); shown.results.len()];
    for (place, run) in runs.iter().enumerate() {
        let number = shown.results.iter().position(|result| std::ptr::eq(result, run.result)).unwrap_or(0);
        let label = if run.way.is_some() { run.label.clone() } else { names[number].clone() };
        let known = curves.iter().position(|curve| *curve == (number, label.clone()));
        curve_of.push(known.unwrap_or(curves.len()));
        if known.is_none() {
            curves.push((number, label));
        }
        groups.values().flat_map(|of_runs| &of_runs[place]).for_each(|&message| fastest[number].add(message));
    }
    fastest.iter_mut().for_each(Fastest::settle);
    let panel = |(group, of_runs): (Option<String>, Vec<Vec<Timed>>)| {
        let mut of_curves: Vec<Vec<Timed>> = vec![Vec::new(); curves.len()];
        for (messages, curve) in of_runs.into_iter().zip(&curve_of) {
            of_curves[*curve].extend(messages);
        }
        let lines = of_curves.into_iter().enumerate().filter(|(_, messages)| !messages.is_empty());
        let lines = lines.flat_map(|(colour, messages)| {
            let (number, name) = &curves[colour];
            let points = slow_downs(messages, &fastest[*number]);
            let line = |label: &str, of: fn(&[f64]) -> f64| {
                let points = points.iter().map(|(size, slow_downs)| [*size, of(slow_downs)]).collect();
                let (label, marks) = (format!("{name}, {label}"), true);
                Series { label, points, colour, marks, ..Series::default() }
            };
            [
                line("mean", mean),
                Series { dashed: true, ..line("99 %", |values| quantile(values, 0.99).unwrap_or(1.0)) },
            ]
        });
        Panel {
            title: group.unwrap_or_default(),
            x: Axis::new("size of the message", "bytes").log(),
            y: Axis::new("time over that of the fastest at least as large", "").log(),
            content: Content::Lines(lines.collect()),
        }
    };
    Ok(groups.into_iter().map(panel).collect())
}

/// By size, the least time of the messages that are at least as large.
#[derive(Clone, Default)]
struct Fastest(BTreeMap<u64, u64>);

impl Fastest {
    fn add(&mut self, (size, time): Timed) {
        let least = self.0.entry(size).or_insert(time);
        *least = time.min(*least);
    }

    /// All messages have been added.
    fn settle(&mut self) {
        let mut least = u64::MAX;
        for time in self.0.values_mut().rev() {
            least = least.min(*time);
            *time = least;
        }
    }

    fn of(&self, size: u64) -> u64 {
        self.0.get(&size).copied().unwrap_or(1).max(1)
    }
}

/// The slow-downs of messages in ascending order, by size.
fn slow_downs(messages: Vec<Timed>, fastest: &Fastest) -> Vec<(f64, Vec<f64>)> {
    let mut by_size: BTreeMap<u64, Vec<Timed>> = BTreeMap::new();
    for message in messages {
        by_size.entry(message.0.max(1)).or_default().push(message);
    }
    if by_size.len() > MAX_SIZES {
        let mut coarse: BTreeMap<u64, Vec<Timed>> = BTreeMap::new();
        for (size, messages) in by_size {
            coarse.entry(size.next_power_of_two()).or_default().extend(messages);
        }
        by_size = coarse;
    }
    let point = |messages: Vec<Timed>| {
        let sizes = messages.iter().map(|(size, _)| *size as f64).sum::<f64>();
        let of = |&(size, time): &Timed| time as f64 / fastest.of(size) as f64;
        let mut slow_downs: Vec<f64> = messages.iter().map(of).collect();
        slow_downs.sort_by(f64::total_cmp);
        ((sizes / messages.len() as f64).max(1.0), slow_downs)
    };
    by_size.into_values().map(point).collect()
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
    let of = |share| quantile(sorted, share).unwrap_or(0) as f64 / PS_PER_US;
    shares.into_iter().map(|share| [of(share), share]).collect()
}

/// The smallest value that `share` of the sorted ones do not exceed; `None`: there are none.
fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).or(sorted.last()).copied()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
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
            [1, 1, 50, 99, 100].map(Some)
        );
        let shares = shares(&[3_000_000]);
        assert_eq!((shares.first(), shares.last()), (Some(&[3.0, 0.0]), Some(&[3.0, 1.0])));
    }

    /// Catches a distribution of sizes in which each message is the fastest of its size: one of 100 bytes
    /// that took 40 is twice as slow as it can be, since one of 120 took 20.
    #[test]
    fn the_fastest_is_at_least_as_large() {
        let mut fastest = Fastest::default();
        let messages = [(100, 40), (120, 20), (200, 30)];
        messages.into_iter().for_each(|message| fastest.add(message));
        fastest.settle();
        let found = slow_downs(messages.to_vec(), &fastest);
        assert_eq!(found, [(100.0, vec![2.0]), (120.0, vec![1.0]), (200.0, vec![1.0])]);
        // More sizes than are points: those up to 64, and those up to 128.
        let many: Vec<Timed> = (33..=128).map(|size| (size, size)).collect();
        many.iter().for_each(|&message| fastest.add(message));
        assert_eq!(slow_downs(many, &fastest).len(), 2);
    }
}
