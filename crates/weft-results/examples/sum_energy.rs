//! Adds up the energy of switches and interfaces: `cargo run -p weft-results --example sum_energy -- DIR`.

use std::path::PathBuf;
use weft_results::{PartRow, ResultsError, StoredResult};
use weft_units::Energy;

// ANCHOR: read
/// The energy of all switches and interfaces of a run.
fn energy_of(result: &StoredResult, run: u32) -> Result<Energy, ResultsError> {
    let mut sum = Energy::ZERO;
    result.visit(|row: PartRow| {
        if row.run == run {
            sum += row.energy_pj;
        }
    })?;
    Ok(sum)
}
// ANCHOR_END: read

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory: PathBuf = std::env::args_os().nth(1).ok_or("name a result directory")?.into();
    let result = StoredResult::open(&directory)?;
    for run in result.runs() {
        println!("{} {}", run.run, energy_of(&result, run.run)?);
    }
    Ok(())
}
