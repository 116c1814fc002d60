//! How each validation row moves when a constant of the machine is 10 % smaller or larger.
//!
//! Constants are those that no source fixes: calibrated and assumed values that are a number with a unit.

use super::publication::{Measure, Row};
use super::{APP, QUEUES, SCENARIO, Subject, TRAFFIC, machines};
use crate::experiment::ExperimentError;
use serde::Serialize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use weft_machine::{Constant, Kind};
use weft_units::Bytes;

/// How a row moves with a constant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sensitivity {
    /// The machine.
    pub machine: String,
    /// The constant's key in the machine file.
    pub constant: String,
    /// The constant's value.
    pub value: String,
    /// How well it is known.
    pub kind: Kind,
    /// The row.
    pub id: String,
    /// Relative change of the simulated value with the constant 10 % smaller.
    pub change_at_minus_10: f64,
    /// With it 10 % larger.
    pub change_at_plus_10: f64,
}

/// The range of a calibrated constant, with where it is from.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CalibratedRange {
    /// The machine.
    pub machine: String,
    /// The constant's key in the machine file.
    pub constant: String,
    /// The constant's value.
    pub value: String,
    /// The values that it may have.
    pub range: String,
    /// Document and section, or `ours: …` with the reason.
    pub source: String,
}

/// The ranges of the machine's calibrated constants.
pub(super) fn ranges(subject: &Subject<'_>) -> Result<Vec<CalibratedRange>, ExperimentError> {
    let checked = machines::checked(&machines::input(subject.machine, subject.sets)?)?;
    let range = |constant: &Constant| {
        Some(CalibratedRange {
            machine: subject.machine.to_owned(),
            constant: constant.path.clone(),
            value: constant.value.clone(),
            range: constant.range.clone()?,
            source: constant.range_source.clone()?,
        })
    };
    Ok(checked.constants.iter().filter_map(range).collect())
}

/// A change of less than this is none.
const NOTHING: f64 = 1e-6;

/// A row of longer messages is first tried with messages of this size, which take a fraction of the time: a
/// constant that moves nothing there is taken to move nothing.
const TRIAL: Bytes = Bytes::new(256 << 10);

/// The constants that rows of applications are varied by.
const CORE: &str = "host.core.";

/// A row with what it comes to, and its trial, where it has one.
struct Base<'a> {
    row: &'a Row,
    simulated: f64,
    trial: Option<(Row, f64)>,
}

/// Runs every row with every constant 10 % off, on `threads` threads. Pairs that do not move are left out.
pub(super) fn sensitivity(
    subject: &Subject<'_>,
    threads: u32,
    rows: &[&Row],
    simulated: &[f64],
) -> Result<Vec<Sensitivity>, ExperimentError> {
    let Subject { machine, sets, control } = *subject;
    let checked = machines::checked(&machines::input(machine, sets)?)?;
    // What was measured and says how the value was made of it is a choice as well.
    let open = |constant: &&Constant| match constant.kind {
        Kind::Calibrated | Kind::Assumed | Kind::Set => true,
        Kind::Measured => constant.how.is_some(),
        Kind::Datasheet | Kind::Derived | Kind::Unsourced => false,
    };
    let constants: Vec<&Constant> = checked.constants.iter().filter(open).collect();
    let mut bases = Vec::new();
    for (&row, &simulated) in rows.iter().zip(simulated) {
        let trial = trial(row)?.map(|trial| {
            let simulated = subject.measure_row(&trial, &mut Vec::new())?.simulated;
            Ok::<_, ExperimentError>((trial, simulated))
        });
        bases.push(Base { row, simulated, trial: trial.transpose()? });
    }

    // Who takes which constant does not matter: what comes of it is put in the order of the constants.
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((number, constant)) = take(&constants, &next) {
            control.progress.advance(number as f64 / constants.len() as f64, &constant.path);
            let moved = of_constant(subject, constant, &bases);
            let failed = moved.is_err();
            if let Ok(mut found) = found.lock() {
                found.push((number, moved));
            }
            if failed {
                next.store(constants.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_by_key(|(number, _)| *number);
    let moved: Vec<Vec<Sensitivity>> = found.into_iter().map(|(_, moved)| moved).collect::<Result<_, _>>()?;
    Ok(moved.into_iter().flatten().collect())
}

fn take<'a, T>(all: &[&'a T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, *all.get(number)?))
}

/// The row with shorter messages; `None`: its own are short, or a scenario says how long they are.
fn trial(row: &Row) -> Result<Option<Row>, ExperimentError> {
    if [SCENARIO, QUEUES, APP, TRAFFIC].contains(&row.measure.benchmark.as_str()) {
        return Ok(None);
    }
    let size: Bytes = row.measure.size.parse().map_err(ExperimentError::input)?;
    if size <= TRIAL || row.minus.is_some() || !row.over.is_empty() {
        return Ok(None);
    }
    let measure = Measure { size: TRIAL.to_string(), ..row.measure.clone() };
    Ok(Some(Row { measure, ..row.clone() }))
}

/// How the rows move with one constant.
fn of_constant(
    subject: &Subject<'_>,
    constant: &Constant,
    bases: &[Base<'_>],
) -> Result<Vec<Sensitivity>, ExperimentError> {
    let (Some(less), Some(more)) = (scaled(&constant.value, 90), scaled(&constant.value, 110)) else {
        return Ok(Vec::new());
    };
    let changes = |row: &Row, simulated: f64| -> Result<Option<[f64; 2]>, ExperimentError> {
        let mut changes = [0.0; 2];
        for (change, value) in changes.iter_mut().zip([&less, &more]) {
            let mut sets = subject.sets.to_vec();
            sets.push(format!("{}={value}", constant.path));
            match (Subject { sets: &sets, ..*subject }).measure_row(row, &mut Vec::new()) {
                Ok(moved) => *change = (moved.simulated - simulated) / simulated,
                // A value that the machine cannot have, such as a buffer below a packet.
                Err(ExperimentError::Input(_)) if !subject.control.interrupt.is_requested() => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(changes).filter(|[less, more]| less.abs().max(more.abs()) > NOTHING))
    };
    let mut sensitivities = Vec::new();
    for Base { row, simulated, trial } in bases {
        // Applications compute for nearly all of their time: what else moves them would take an hour to try.
        if row.measure.benchmark == APP && !constant.path.starts_with(CORE) {
            continue;
        }
        if let Some((trial, simulated)) = trial
            && changes(trial, *simulated)?.is_none()
        {
            continue;
        }
        let Some([change_at_minus_10, change_at_plus_10]) = changes(row, *simulated)? else { continue };
        sensitivities.push(Sensitivity {
            machine: subject.machine.to_owned(),
            constant: constant.path.clone(),
            value: constant.value.clone(),
            kind: constant.kind,
            id: row.id.clone(),
            change_at_minus_10,
            change_at_plus_10,
        });
    }
    Ok(sensitivities)
}

/// The digits behind the point of a number without a unit.
fn fraction_of(value: &str) -> &str {
    value.split_once('.').map_or("", |(_, fraction)| fraction)
}

/// The value at `percent` per cent, as a machine file writes it; `None`: it is 0, or has no number.
fn scaled(value: &str, percent: u64) -> Option<String> {
    let digits = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let known = ["", "ps", "ns", "us", "cycles", "Gb/s", "Mb/s", "MHz", "GHz", "K", "M"];
    if !known.contains(&unit.trim()) || number.is_empty() {
        return None;
    }
    // Thousandths, so that a percentage of them needs no floating point.
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = format!("{fraction:0<3}");
    let thousandths =
        whole.parse::<u64>().ok()?.checked_mul(1000)? + fraction.get(..3)?.parse::<u64>().ok()?;
    let scaled = thousandths.checked_mul(percent)?.div_ceil(100);
    match unit.trim() {
        _ if thousandths == 0 => None,
        "" if !fraction_of(value).is_empty() => Some(format!("{}.{:03}", scaled / 1000, scaled % 1000)),
        // Counts: at least one more or less.
        "" | "cycles" | "K" | "M" => {
            let whole = if percent < 100 {
                (scaled / 1000).min(thousandths / 1000 - 1)
            } else {
                scaled.div_ceil(1000)
            };
            let text =
                if unit.trim() == "cycles" { format!("\"{whole}{unit}\"") } else { format!("{whole}{unit}") };
            Some(if matches!(unit, "K" | "M") { format!("\"{text}\"") } else { text })
        }
        _ => Some(format!("\"{}.{:03}{unit}\"", scaled / 1000, scaled % 1000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_scaled_with_their_units() {
        for (value, less, more) in [
            ("100ns", "\"90.000ns\"", "\"110.000ns\""),
            ("2.1us", "\"1.890us\"", "\"2.310us\""),
            ("19.2Gb/s", "\"17.280Gb/s\"", "\"21.120Gb/s\""),
            ("99", "89", "109"),
            ("0.5", "0.450", "0.550"),
            ("5", "4", "6"),
        ] {
            assert_eq!(scaled(value, 90).as_deref(), Some(less), "{value}");
            assert_eq!(scaled(value, 110).as_deref(), Some(more), "{value}");
        }
        for none in ["0ns", "round-robin", "true", "64b66b", ""] {
            assert_eq!(scaled(none, 90), None, "{none}");
        }
    }
}
