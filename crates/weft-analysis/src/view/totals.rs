//! A value per link for a whole run.

use super::link_numbers::LinkNumbers;
use super::quantity::Quantity;
use std::collections::BTreeMap;
use weft_results::{LinkRow, QueueRow, ResultsError, StoredResult};
use weft_units::{Energy, Span};

/// The values of a quantity by the number of the link; 0 where nothing is known of one.
///
/// # Errors
/// A result without the table.
pub fn totals(
    result: &StoredResult,
    (run, quantity): (u32, Quantity),
    numbers: &LinkNumbers,
) -> Result<Vec<f32>, ResultsError> {
    let mut values = vec![0.0; numbers.count()];
    if quantity == Quantity::Occupancy {
        most_held(result, run, numbers, &mut values)?;
        return Ok(values);
    }
    // The measured time, as the busiest link tells it.
    let (mut measured, mut busiest) = (0.0, 0);
    result.visit(|row: LinkRow| {
        if row.run != run {
            return;
        }
        if row.busy_ps.as_ps() > busiest && row.utilization > 0.0 {
            (busiest, measured) = (row.busy_ps.as_ps(), row.busy_ps.as_ps() as f64 / row.utilization);
        }
        let value = match quantity {
            Quantity::Utilization => row.utilization,
            Quantity::Stall => row.stall_ps.as_ps() as f64,
            Quantity::Pause => row.paused_ps.as_ps() as f64,
            Quantity::Off => row.counts.off.as_ps() as f64,
            Quantity::Errors => errors(&row) as f64,
            Quantity::Energy => row.energy_pj.map_or(0.0, Energy::as_uj_f64),
            Quantity::Sleep => slept(&row).map_or(0.0, |slept| slept.as_ps() as f64),
            Quantity::Occupancy => 0.0,
        };
        if let Some(link) = numbers.leaving(row.from_endpoint, row.from_switch, row.from_port) {
            values[link as usize] = value as f32;
        }
    })?;
    if matches!(quantity, Quantity::Stall | Quantity::Pause | Quantity::Off | Quantity::Sleep) {
        let share = if measured > 0.0 { 1.0 / measured as f32 } else { 0.0 };
        values.iter_mut().for_each(|value| *value *= share);
    }
    Ok(values)
}

/// Time in which a link slept, in low power or off.
fn slept(row: &LinkRow) -> Option<Span> {
    Some(row.low_power_ps? + row.power_off_ps?)
}

/// Packets of a link that were lost, corrupted or sent again.
pub(super) fn errors(row: &LinkRow) -> u64 {
    row.counts.lost() + row.counts.corrupted + row.counts.replayed
}

/// The link at which the packets of a queue wait.
pub(super) fn link_of(row: &QueueRow, numbers: &LinkNumbers) -> Option<u32> {
    match row.side.as_str() {
        "output" => numbers.leaving(None, Some(row.switch), Some(row.port)),
        _ => numbers.arriving(row.switch, row.port),
    }
}

/// Bytes of a queue that colour its link.
pub fn held(row: &QueueRow) -> u64 {
    row.most_held_bytes.get()
}

fn most_held(
    result: &StoredResult,
    run: u32,
    numbers: &LinkNumbers,
    values: &mut [f32],
) -> Result<(), ResultsError> {
    // Queues of a link at one look, which are added.
    let (mut look, mut now): (u64, BTreeMap<u32, u64>) = (0, BTreeMap::new());
    let settle = |now: &mut BTreeMap<u32, u64>, values: &mut [f32]| {
        for (link, bytes) in std::mem::take(now) {
            let value = &mut values[link as usize];
            *value = value.max(bytes as f32);
        }
    };
    result.visit(|row: QueueRow| {
        if row.run != run || row.level != 0 {
            return;
        }
        if row.end_ps.as_ps() != look {
            settle(&mut now, values);
            look = row.end_ps.as_ps();
        }
        if let Some(link) = link_of(&row, numbers) {
            *now.entry(link).or_default() += held(&row);
        }
    })?;
    settle(&mut now, values);
    Ok(())
}
