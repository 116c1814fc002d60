//! A self-organizing map that is trained in batches, as DIAPASOM does.
//!
//! In each batch a rank finds the nearest node of the map for each of its records, and adds the record up
//! there. Two sums over all ranks later, every rank moves all nodes.

use crate::app::{App, AppError, Verification};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{AllRanks, Computation};
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "som",
    summary: "batch self-organizing map (DIAPASOM): two sums over all ranks in each batch",
    laws: "Source: D1.4 section 7.2 (data-partitioned batches with an update after each; 10^8 or 10^9 \
           records, 100 batches). The map and the records' features are in D1.2, which is not here: \
           assumed. In each batch a rank takes its share of the records: 3 operations a node and feature \
           to find the nearest node; records are read once. Sums of 8 bytes a node and feature, and of 8 \
           bytes a node. The update takes 2 operations a node, node and feature on every rank.",
    checked: Verification::Against(
        "examples/diapasom.c: all operations, and virtual time within 1 percent; tests/apps",
    ),
    options: &[
        AppOption { name: "records", default: "100000000", about: "records of all ranks" },
        AppOption { name: "batches", default: "100", about: "number of batches" },
        AppOption { name: "nodes", default: "256", about: "nodes of the map" },
        AppOption { name: "features", default: "16", about: "numbers in a record" },
    ],
    memory: Some(memory),
    build,
};

/// A rank's share of a batch, the map and its sums.
fn memory(options: &Options<'_>) -> Result<Bytes, AppError> {
    let [records, batches] = [options.count("records", 1..=1 << 40)?, options.count("batches", 1..=1 << 30)?];
    let features = options.count("features", 1..=1 << 12)?;
    let share = records.div_ceil(batches).div_ceil(u64::from(options.ranks()));
    let map = options.count("nodes", 1..=1 << 20)? * features;
    Ok(Bytes::new(8 * (features * share + 2 * map)))
}

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let records = options.count("records", 1..=1 << 40)?;
    let batches = options.count("batches", 1..=1 << 30)?;
    let nodes = options.count("nodes", 1..=1 << 20)?;
    let features = options.count("features", 1..=1 << 12)?;
    if batches > records {
        return Err(options.refuse_value("batches", format!("no more batches than records, {records}")));
    }
    // The largest share of the largest batch.
    let share = records.div_ceil(batches).div_ceil(u64::from(options.ranks()));
    let search = share.checked_mul(3 * nodes * features).filter(|flops| *flops <= 1 << 60);
    let search =
        search.ok_or_else(|| options.refuse_value("records", "at most 2^60 operations".to_owned()))?;
    let numbers = nodes * features;
    let search = Computation { flops: search, bytes: Bytes::new(8 * features * share) };
    let update = Computation { flops: 2 * nodes * numbers, bytes: Bytes::new(2 * 8 * numbers) };
    let sums = [AllRanks::sum(numbers), AllRanks::sum(nodes)];
    let [first, second] = sums.map(KernelPart::from);
    Ok(vec![KernelPart::repeat(batches, vec![search.into(), first, second, update.into()])])
}
