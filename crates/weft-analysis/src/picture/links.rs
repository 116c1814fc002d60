//! Utilization and energy of links: the table `links`.

use super::panel::{Axis, Content, MAX_SERIES, Panel, Series};
use super::shown::Shown;
use std::collections::BTreeMap;
use weft_results::{LinkRow, ResultsError};
use weft_units::Energy;

/// Points of a line.
const POINTS: usize = 400;

/// The links of each class from the most to the least used. A line per class and result.
pub(super) fn utilization(shown: Shown<'_>) -> Result<Panel, ResultsError> {
    Ok(Panel {
        title: String::new(),
        x: Axis::new("share of the links of a class, the most used first", "%"),
        y: Axis::new("time in which the link was sending", "%"),
        content: Content::Lines(by_class(shown, |row| Some(row.utilization * 100.0))?),
    })
}

/// The same by the energy that they took.
pub(super) fn energy(shown: Shown<'_>) -> Result<Panel, ResultsError> {
    let lines = by_class(shown, |row| row.energy_pj.map(Energy::as_uj_f64))?;
    if lines.iter().all(|line| line.points.is_empty()) {
        let why = "the machine says nothing of the power of its links; see links.CLASS.power".to_owned();
        return Err(ResultsError::NothingToDraw { directory: shown.results[0].directory.clone(), why });
    }
    Ok(Panel {
        title: String::new(),
        x: Axis::new("share of the links of a class, those that took most first", "%"),
        y: Axis::new("energy of the link", "µJ"),
        content: Content::Lines(lines),
    })
}

/// A value of the links of each class in descending order.
fn by_class(shown: Shown<'_>, value: fn(&LinkRow) -> Option<f64>) -> Result<Vec<Series>, ResultsError> {
    let mut lines: Vec<Series> = Vec::new();
    let several = shown.results.len() > 1;
    for run in shown.runs(1)? {
        let mut classes: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        run.result.visit(|row: LinkRow| {
            if row.run == run.run {
                let value = value(&row);
                classes.entry(row.class).or_default().extend(value);
            }
        })?;
        for (class, mut shares) in classes {
            shares.sort_by(|a, b| b.total_cmp(a));
            let label = format!("{class} ({} directions)", shares.len());
            let label = if several { format!("{}, {label}", run.label) } else { label };
            lines.push(Series { label, points: ranked(&shares), colour: lines.len(), ..Series::default() });
        }
    }
    if lines.is_empty() || lines.len() > MAX_SERIES {
        let why = format!("{} classes of links; plot fewer results at once", lines.len());
        return Err(ResultsError::NothingToDraw { directory: shown.results[0].directory.clone(), why });
    }
    Ok(lines)
}

/// Values in descending order over their share of all; long lists by every n-th, and the last.
fn ranked(values: &[f64]) -> Vec<[f64; 2]> {
    let step = values.len().div_ceil(POINTS).max(1);
    let share = |number: usize| 100.0 * number as f64 / values.len() as f64;
    let mut points = Vec::new();
    for number in (0..values.len()).step_by(step) {
        let end = (number + step).min(values.len());
        // Each link is a step.
        points.push([share(number), values[number]]);
        points.push([share(end), values[number]]);
    }
    points
}
