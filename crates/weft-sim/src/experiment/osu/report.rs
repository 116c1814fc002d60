//! From points to what is found of them.

use super::plan::Point;
use super::series::{CutShort, Done, Outcome, Series};
use crate::experiment::ranks::Drawing;
use crate::experiment::{ExperimentError, ExperimentRun, Findings, Measured, add_crossed};
use weft_assembly as assembly;
use weft_results::{Conclusion, Totals};
use weft_topo::Layout;
use weft_units::{Bytes, Span};

/// A series of a command.
pub(super) struct Task<'a> {
    pub layout: &'a Layout,
    pub seed: u64,
    /// Whether an iteration of each run is to be explained.
    pub breakdown: bool,
    /// Whether messages carry real bytes.
    pub data: bool,
    /// The interval of telemetry.
    pub telemetry: Option<Span>,
    pub points: &'a [Point],
}

impl Task<'_> {
    /// Runs all points. `rows` makes rows of the outcomes of those that are done, which are the first
    /// ones, each with the run that its speed is of.
    pub fn findings<R>(
        self,
        run: &mut ExperimentRun<'_>,
        rows: impl FnOnce(&[Outcome]) -> Vec<(usize, R)>,
    ) -> Result<Findings<R>, ExperimentError> {
        let Task { layout, seed, breakdown, data, telemetry, points } = self;
        let &mut ExperimentRun { machine, options, control, .. } = run;
        let series = Series { machine, layout, seed, breakdown, data, telemetry, options, control };
        let estimate = series.estimate(points)?;
        assembly::check_memory(machine, Bytes::new(estimate.memory_bytes)).map_err(ExperimentError::input)?;
        let saved = run.open(layout, Some(estimate), &[seed])?;
        drop(run.preparation.take());
        let mut drawing = options.timeline.as_deref().map(Drawing::create).transpose()?;
        let done = series.run(points, saved, run.writer.as_mut(), drawing.as_mut())?;
        if let Some(drawing) = drawing {
            drawing.finish()?;
        }
        let Done { ended, detail, outcomes, cut_short } = done;
        let mut totals = totals(&outcomes);
        if let Some(CutShort { at, crossed }) = cut_short {
            totals.end = totals.end.max(at);
            add_crossed(&mut totals, &crossed);
        }
        let performance = run.performance(totals.packet_hops);
        let measured = |(run, row): (usize, R)| {
            let Outcome { packet_hops_per_second, build_time_s, peak_memory_bytes, .. } = outcomes[run];
            Measured { row, packet_hops_per_second, build_time_s, peak_memory_bytes }
        };
        let rows = rows(&outcomes).into_iter().map(measured).collect();
        let conclusion = Conclusion { ended, detail };
        Ok(Findings { conclusion, rows, totals, beside: Vec::new(), explained: Vec::new(), performance })
    }
}

fn totals(outcomes: &[Outcome]) -> Totals {
    let mut totals = Totals::default();
    for outcome in outcomes {
        totals.end = totals.end.max(outcome.end);
        totals.messages += outcome.messages;
        totals.payload += outcome.payload;
        add_crossed(&mut totals, &outcome.crossed);
    }
    totals
}
