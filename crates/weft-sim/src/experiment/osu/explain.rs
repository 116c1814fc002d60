//! Iterations of a benchmark, run again and explained.

use super::plan::{self, Point};
use super::run::row;
use super::series::{Series, Typical};
use super::{OsuRequest, OsuRow};
use crate::experiment::explain::{
    ExplainOptions, Explained, RankInterval, RecordedRun, check_same_rows, explained,
};
use crate::experiment::path::{Names, pace};
use crate::experiment::ranks::RankRun;
use crate::experiment::{Control, ExperimentError, ExperimentOptions, Manifest, machine};
use weft_machine::Machine;
use weft_results::{Conclusion, Ending};
use weft_units::{RankId, Span, Time};
use weft_workload::path::{PathTrace, Walk};
use weft_workload::replay::Finish;

/// A run of a point that was recorded.
pub(super) struct Recorded {
    pub run: RankRun,
    pub trace: PathTrace,
    /// The end of the iteration that is explained.
    pub end: Finish,
}

impl Recorded {
    /// The names of its ranks and links.
    pub fn names<'a>(&'a self, machine: &'a Machine, layout: &'a weft_topo::Layout) -> Names<'a> {
        Names::new(machine, layout, self.run.seating(), self.run.names())
    }
}

impl Series<'_> {
    /// Runs a point again, recorded so far back that its typical iteration can be explained; `None`:
    /// interrupted.
    pub fn recorded(
        &self,
        point: &Point,
        number: u32,
        typical: Typical,
    ) -> Result<Option<Recorded>, ExperimentError> {
        let Typical { rank, window } = typical;
        // What the iteration waits for was mostly posted in the one before or in the barrier between them.
        let before = window.span().max(Span::from_us(1)) * 2;
        let mut from = Time::from_ps(window.from.as_ps().saturating_sub(before.as_ps()));
        loop {
            let mut run =
                self.start(point, number, None, |parameters| parameters.record_from = Some(from))?;
            let Conclusion { ended, detail } = run.run_to_end(self.control, &point.doing())?;
            match ended {
                Ending::Finished => {}
                Ending::Interrupted => return Ok(None),
                _ => {
                    let detail = detail.unwrap_or_default();
                    return Err(ExperimentError::input(format!("{}: {ended}: {detail}", point.doing())));
                }
            }
            let trace = run.take_path().finish(pace(self.machine));
            let end = trace.moment(rank, window.to).unwrap_or(Finish {
                rank,
                at: window.to,
                last: weft_workload::replay::Cause::Beginning,
            });
            if Walk::to(&trace, &end, window.from).begin == window.from {
                return Ok(Some(Recorded { run, trace, end }));
            }
            assert!(from > Time::ZERO, "a whole record explains the iteration of {}", point.doing());
            from = Time::ZERO;
        }
    }
}

/// Explains one iteration of each run that `manifest` tells of.
pub(crate) fn explain(
    request: &OsuRequest,
    manifest: &Manifest,
    options: ExplainOptions,
    control: Control<'_>,
) -> Result<Option<Vec<Explained>>, ExperimentError> {
    if options.last.is_some() {
        return Err(ExperimentError::input(
            "--last: of a benchmark one iteration of each size is explained; leave --last out",
        ));
    }
    if let Some(region) = options.region {
        return Err(ExperimentError::input(format!(
            "--region {region}: a benchmark has no regions, and one iteration of each size is explained; \
             leave --region out"
        )));
    }
    let machine = machine::checked(&request.machine)?;
    let layout = plan::layout(&machine)?;
    let mut points = plan::points(request, &machine, &layout)?;
    // Of a run that did not come to its end, the sizes that did.
    points.truncate(manifest.rows.len());
    if points.is_empty() {
        return Err(ExperimentError::input(format!(
            "the run ended with {} before one size had come to its end",
            manifest.ended
        )));
    }
    // The number of a point is that of its row, whichever are explained.
    let mut numbers: Vec<u32> = (0..points.len() as u32).collect();
    if let Some(size) = options.size {
        let sizes: Vec<String> = points.iter().map(|point| point.bytes.to_string()).collect();
        numbers.retain(|number| points[*number as usize].bytes == size);
        points.retain(|point| point.bytes == size);
        if points.is_empty() {
            return Err(ExperimentError::input(format!(
                "--size {size}: the results have no such size; they have {}",
                sizes.join(", ")
            )));
        }
    }
    let top = options.top;
    let options = ExperimentOptions { threads: options.threads, ..ExperimentOptions::default() };
    let (seed, breakdown, data) = (request.seed, request.breakdown, request.data);
    let (machine, layout) = (&machine, &layout);
    let series =
        Series { machine, layout, seed, breakdown, data, telemetry: None, options: &options, control };
    let done = series.run(&points, None, None, None)?;
    if done.ended == Ending::Interrupted {
        return Ok(None);
    }
    let numbered = || numbers.iter().copied().zip(&points).zip(&done.outcomes);
    let rows: Vec<OsuRow> = numbered().map(|((run, point), outcome)| row(run, point, outcome)).collect();
    let then: Vec<_> = numbers.iter().map(|number| manifest.rows[*number as usize].clone()).collect();
    check_same_rows(&rows, &then, manifest)?;
    let mut all = Vec::new();
    for ((number, point), outcome) in numbered() {
        let Some(typical) = outcome.typical else { continue };
        let Some(recorded) = series.recorded(point, number, typical)? else { return Ok(None) };
        let names = recorded.names(machine, layout);
        let iteration = |(rank, times): (usize, &weft_workload::osu::Stopwatch)| -> Option<RankInterval> {
            let window = times.last()?;
            Some((window.from, recorded.trace.moment(RankId::from(rank), window.to)?))
        };
        let ranks: Vec<RankInterval> =
            recorded.run.stopwatches().iter().enumerate().filter_map(iteration).collect();
        let interval = (typical.window.from, recorded.end);
        let recorded_run =
            RecordedRun { run: number, of: point.doing(), trace: &recorded.trace, names: &names, top };
        all.push(explained(recorded_run, interval, &ranks));
    }
    Ok(Some(all))
}
