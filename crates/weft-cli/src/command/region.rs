//! A region of interest, for people.

use crate::output::{self, percent, thousands};
use weft_sim::experiment::replay::{Figures, RankRegionRow, RegionFigures};

/// Ranks in the text.
const RANKS_SHOWN: usize = 32;

/// The region in a line: how often it was opened, from when to when.
pub fn region_in_words(figures: &RegionFigures) -> String {
    let RegionFigures { region, openings, from_us, to_us, by_rank, .. } = figures;
    let several = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let (openings, ranks) = (several(*openings, "opening"), several(by_rank.len() as u64, "rank"));
    format!("{region}, {openings} by {ranks}, from {from_us:.3} to {to_us:.3} us")
}

/// The figures of a region with the time of its ranks; empty: they are those of the whole run.
pub fn region_summary(figures: &Figures) -> String {
    let Some(region) = &figures.region else { return String::new() };
    if region.openings == 0 {
        let region = region.region;
        return format!("weft: --region {region}: no rank was in it; MPI_Pcontrol({region}) opens it\n");
    }
    format!(
        "region {}: {:.3} us, computation {}, wait {}, {} messages, {}B\n{}\n",
        region_in_words(region),
        figures.run_time_us,
        percent(figures.computation_share),
        percent(figures.wait_share),
        figures.messages,
        thousands(figures.bytes as f64),
        region_ranks(region)
    )
}

/// The time of the ranks in a region.
pub fn region_ranks(figures: &RegionFigures) -> String {
    let us = |time: f64| format!("{time:.3}");
    let row = |row: &RankRegionRow| {
        let end = if row.closed { "" } else { "not closed: until its end" };
        [
            row.rank.to_string(),
            row.openings.to_string(),
            us(row.time_us),
            us(row.computation_us),
            us(row.communication_us),
            us(row.wait_us),
            end.to_owned(),
        ]
    };
    let table = output::table(
        ["rank", "openings", "in region (us)", "computation", "software", "wait", ""],
        [true, true, true, true, true, true, false],
        figures.by_rank.iter().take(RANKS_SHOWN).map(row),
    );
    match figures.by_rank.len().checked_sub(RANKS_SHOWN) {
        Some(more @ 1..) => format!("{table}and {more} more ranks: see --json\n"),
        _ => table,
    }
}
