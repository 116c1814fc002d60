//! Latency and throughput over the offered load: rows of `run.json`.

use super::field_unit::time_unit;
use super::panel::{Axis, Content, MAX_SERIES, Panel, Series};
use super::shown::Shown;
use crate::compare::interval_of;
use serde_json::Value;
use weft_results::{ResultsError, StoredResult};

/// Latency, and below it the accepted load. A line per size of message and result.
pub(super) fn panels(shown: Shown<'_>) -> Result<Vec<Panel>, ResultsError> {
    let (mut mean, mut tail, mut accepted) = (Vec::new(), Vec::new(), Vec::new());
    let several = shown.results.len() > 1;
    for (result, name) in shown.results.iter().zip(shown.names()) {
        for size in sizes(result)? {
            let label = if several { format!("{name}, {size} B") } else { format!("{size} B") };
            let rows = rows(result, size);
            let colour = mean.len();
            let line = |value: &str, label: String| {
                let marks = true;
                Series { label, colour, marks, ..line(&rows, value) }
            };
            mean.push(line("latency_mean_ns", format!("{label}, mean")));
            tail.push(Series {
                dashed: true,
                interval: Vec::new(),
                ..line("latency_p99_ns", format!("{label}, 99 %"))
            });
            accepted.push(line("accepted_load", label));
        }
    }
    let (count, directory) = (mean.len(), shown.results[0].directory.clone());
    if count > MAX_SERIES {
        let why = format!("{count} curves cannot be told apart; plot at most {MAX_SERIES}");
        return Err(ResultsError::NothingToDraw { directory, why });
    }
    let load = || Axis::new("offered load", "share of the endpoint's rate");
    let load = || match shown.results[0].manifest.request["load_of"].as_str() {
        Some("capacity") => Axis::new("offered load", "share of the capacity"),
        _ => load(),
    };
    let mut latency: Vec<Series> = mean.into_iter().zip(tail).flat_map(|(mean, tail)| [mean, tail]).collect();
    let largest = latency.iter().flat_map(|line| &line.points).map(|point| point[1]).fold(0.0, f64::max);
    let (unit, factor) = time_unit(largest);
    for line in &mut latency {
        line.points.iter_mut().for_each(|point| point[1] *= factor);
        line.interval.iter_mut().flatten().for_each(|bound| *bound *= factor);
    }
    Ok(vec![
        Panel {
            title: "latency".to_owned(),
            x: load(),
            y: Axis::new("latency", unit).log(),
            content: Content::Lines(latency),
        },
        Panel {
            title: "throughput".to_owned(),
            x: load(),
            y: Axis::new("accepted load", "share of the endpoint's rate"),
            content: Content::Lines(accepted),
        },
    ])
}

/// The sizes of a result's rows with a load.
fn sizes(result: &StoredResult) -> Result<Vec<u64>, ResultsError> {
    let with_load = result.manifest.rows.iter().filter(|row| row["offered_load"].is_number());
    let mut sizes: Vec<u64> = with_load.filter_map(|row| row["size_bytes"].as_u64()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        let why = "its rows have no offered load; `weft traffic --load 0.1:0.9:0.1` measures them".to_owned();
        return Err(ResultsError::NothingToDraw { directory: result.directory.clone(), why });
    }
    Ok(sizes)
}

fn rows(result: &StoredResult, size: u64) -> Vec<&Value> {
    let mut rows: Vec<&Value> = result.manifest.rows.iter().collect();
    rows.retain(|row| row["size_bytes"].as_u64() == Some(size) && row["offered_load"].is_number());
    rows.sort_by(|a, b| load(a).total_cmp(&load(b)));
    rows
}

fn load(row: &Value) -> f64 {
    row["offered_load"].as_f64().unwrap_or(0.0)
}

/// A value over the load, with its interval where every row has one.
fn line(rows: &[&Value], value: &str) -> Series {
    let interval = interval_of(value);
    let known = rows.iter().filter(|row| row[value].is_number());
    let bounds = |row: &&&Value| Some([row[&interval]["low"].as_f64()?, row[&interval]["high"].as_f64()?]);
    let points: Vec<[f64; 2]> =
        known.clone().filter_map(|row| Some([load(row), row[value].as_f64()?])).collect();
    let mut interval: Vec<[f64; 2]> = known.clone().filter_map(|row| bounds(&row)).collect();
    if interval.len() != points.len() {
        interval.clear();
    }
    Series { points, interval, ..Series::default() }
}
