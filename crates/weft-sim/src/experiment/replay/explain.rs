//! A replay, run again and explained.

use super::run::{RUN, rows, setup};
use super::{ReplayRequest, programs};
use crate::assembly;
use crate::experiment::explain::{
    ExplainOptions, Explained, RecordedRun, check_same, explained, last_to_finish,
};
use crate::experiment::path::{Names, pace};
use crate::experiment::ranks::{RankRun, Setup};
use crate::experiment::{Control, ExperimentError, Manifest, machine};
use weft_results::{Conclusion, Ending};
use weft_units::{Bytes, Span, Time};

/// Replays again what `manifest` tells of.
pub(crate) fn explain(
    request: &ReplayRequest,
    manifest: &Manifest,
    options: ExplainOptions,
    control: Control<'_>,
) -> Result<Option<Vec<Explained>>, ExperimentError> {
    let machine = machine::checked(&request.machine)?;
    let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
    let traces = programs::open(request)?;
    let memory = crate::experiment::ranks::memory(&machine, &super::run::operations(&traces));
    assembly::check_memory(&machine, Bytes::new(memory)).map_err(ExperimentError::input)?;
    let end = manifest.totals.end;
    let from = options.last.map_or(Time::ZERO, |last| {
        Time::from_ps(end.as_ps().saturating_sub(last.max(Span::from_ps(1)).as_ps()))
    });
    // The record is walked for the program here: its messages have been broken down already.
    let setup =
        Setup { breakdown: false, threads: options.threads, ..setup(request, &machine, &layout, traces)? };
    let mut run = RankRun::new(setup, None, |parameters| parameters.record_from = Some(from))?;
    let Conclusion { ended, detail } = run.run_to_end(control, "replays again")?;
    if ended == Ending::Interrupted {
        return Ok(None);
    }
    let again = rows(&run, request, &layout, &run.crossed());
    check_same(&again, &without_breakdowns(manifest))?;
    let trace = run.take_path().finish(pace(&machine));
    let last = last_to_finish(&trace).ok_or_else(|| {
        ExperimentError::input(format!("no rank came to its end: {}", detail.unwrap_or_default()))
    })?;
    let names = Names::new(&machine, &layout, run.seating(), run.names());
    let of = run.names().join(", ");
    let ranks: Vec<_> = trace.finishes().iter().map(|finish| (from, *finish)).collect();
    let recorded = RecordedRun { run: RUN, of, trace: &trace, names: &names };
    Ok(Some(vec![explained(recorded, (from, last), &ranks)]))
}

/// The manifest, without the breakdowns of messages in its rows.
fn without_breakdowns(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    for row in manifest.rows.iter_mut().filter_map(serde_json::Value::as_object_mut) {
        row.remove("breakdown");
    }
    manifest
}
