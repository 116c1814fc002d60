//! How each validation row moves when a constant of the machine is 10 % smaller or larger.
//!
//! Constants are those that no source fixes: calibrated and assumed values that are a number with a unit.

use super::publication::Row;
use super::{ValidationRow, machines, measure_row};
use crate::experiment::{Context, ExperimentError};
use crate::machine::{Constant, Kind};
use serde::Serialize;

/// How a row moves with a constant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sensitivity {
    /// The constant's key in the machine file.
    pub constant: String,
    /// Its value.
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

/// A change of less than this is none.
const NOTHING: f64 = 1e-6;

/// Runs every row with every constant 10 % off. Pairs that do not move are left out.
pub(super) fn sensitivity(
    machine: &str,
    sets: &[String],
    rows: &[&Row],
    measured: &[ValidationRow],
    context: Context<'_>,
) -> Result<Vec<Sensitivity>, ExperimentError> {
    let checked = machines::checked(&machines::input(machine, sets)?)?;
    let open = |constant: &&Constant| matches!(constant.kind, Kind::Calibrated | Kind::Assumed | Kind::Set);
    let constants: Vec<&Constant> = checked.constants.iter().filter(open).collect();
    let mut sensitivities = Vec::new();
    for (done, constant) in constants.iter().enumerate() {
        context.progress.advance(done as f64 / constants.len() as f64, &constant.path);
        let (Some(less), Some(more)) = (scaled(&constant.value, 90), scaled(&constant.value, 110)) else {
            continue;
        };
        for (row, base) in rows.iter().zip(measured) {
            let change = |value: &str| -> Result<f64, ExperimentError> {
                let mut sets = sets.to_vec();
                sets.push(format!("{}={value}", constant.path));
                let moved = measure_row(machine, &sets, row, context)?.simulated;
                Ok((moved - base.simulated) / base.simulated)
            };
            let (change_at_minus_10, change_at_plus_10) = match (change(&less), change(&more)) {
                (Ok(less), Ok(more)) => (less, more),
                // A value that the machine cannot have, such as a buffer below a packet.
                (Err(ExperimentError::Input(_)), _) | (_, Err(ExperimentError::Input(_))) => continue,
                (Err(error), _) | (_, Err(error)) => return Err(error),
            };
            if change_at_minus_10.abs().max(change_at_plus_10.abs()) > NOTHING {
                sensitivities.push(Sensitivity {
                    constant: constant.path.clone(),
                    value: constant.value.clone(),
                    kind: constant.kind,
                    id: row.id.clone(),
                    change_at_minus_10,
                    change_at_plus_10,
                });
            }
        }
    }
    Ok(sensitivities)
}

/// The value at so many per cent, as a machine file writes it; `None`: it is no number with a unit, or 0.
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
