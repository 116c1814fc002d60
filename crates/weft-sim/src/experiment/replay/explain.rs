//! A replay, run again and explained.

use super::run::{RUN, rows, setup};
use super::{ReplayRequest, programs};
use crate::experiment::explain::{
    ExplainOptions, Explained, RecordedRun, check_same_rows, explained, explained_region, last_of,
};
use crate::experiment::path::{Names, pace};
use crate::experiment::ranks::{RankRun, Setup};
use crate::experiment::{Control, ExperimentError, Manifest, machine};
use weft_assembly as assembly;
use weft_results::Ending;
use weft_units::{Bytes, RankId, Span, Time};
use weft_workload::replay::Finish;

/// Replays again what `manifest` tells of.
pub(crate) fn explain(
    request: &ReplayRequest,
    manifest: &Manifest,
    options: ExplainOptions,
    control: Control<'_>,
) -> Result<Option<Vec<Explained>>, ExperimentError> {
    let machine = machine::checked(&request.machine)?;
    let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
    let programs = programs::open(request, &machine)?;
    let memory = crate::experiment::ranks::memory(&machine, &programs);
    assembly::check_memory(&machine, Bytes::new(memory)).map_err(ExperimentError::input)?;
    let (end, top) = (manifest.totals.end, options.top);
    let from = options.last.map_or(Time::ZERO, |last| {
        Time::from_ps(end.as_ps().saturating_sub(last.max(Span::from_ps(1)).as_ps()))
    });
    // The record is walked for the program here: its messages have been broken down already.
    if let Some(region) = options.region {
        programs::check_region(region, &programs)?;
    }
    let setup =
        Setup { breakdown: false, threads: options.threads, ..setup(request, &machine, &layout, programs)? };
    let mut run = RankRun::new(setup, None, |parameters| {
        parameters.record_from = Some(from);
        parameters.wanted.regions |= options.region.is_some();
    })?;
    if let Some(region) = options.region {
        run.count_region(region);
    }
    // What was interrupted stood at no point of its own: so far it is run again.
    let until = (manifest.ended == Ending::Interrupted).then_some(end);
    let ended = run.run_up_to(until, control, "replays again")?.map(|conclusion| conclusion.ended);
    if ended == Some(Ending::Interrupted) {
        return Ok(None);
    }
    if until.is_none() {
        let again = rows(&run, request, &layout, &run.crossed());
        let of_groups = run.group_rows();
        let (traces, groups) = manifest.rows.split_at(again.len().min(manifest.rows.len()));
        check_same_rows(&again, &without_others(traces), manifest)?;
        check_same_rows(&of_groups, groups, manifest)?;
    }
    let trace = run.take_path().finish(pace(&machine));
    let numbers = (0..run.seating().ranks()).map(RankId);
    let ends: Vec<Finish> = numbers.filter_map(|rank| trace.reached(rank, end)).collect();
    let names = Names::new(&machine, &layout, run.seating(), run.names());
    let recorded = RecordedRun { run: RUN, of: run.names().join(", "), trace: &trace, names: &names, top };
    let explained = match options.region.and_then(|region| run.region(region)) {
        Some(region) => explained_region(recorded, &region, &ends),
        None => last_of(&ends).map(|last| {
            let ranks: Vec<_> = ends.iter().map(|end| (from, *end)).collect();
            explained(recorded, (from, last), &ranks)
        }),
    };
    let nothing = || format!("the run ended with {} before a rank had done any of it", manifest.ended);
    Ok(Some(vec![explained.ok_or_else(|| ExperimentError::input(nothing()))?]))
}

/// The rows of traces, without the breakdowns of messages and the jobs alone.
fn without_others(rows: &[serde_json::Value]) -> Vec<serde_json::Value> {
    let mut rows = rows.to_vec();
    for row in rows.iter_mut().filter_map(serde_json::Value::as_object_mut) {
        for other in ["breakdown", "isolated_run_time_us", "slowdown"] {
            row.remove(other);
        }
    }
    rows
}
