//! From points to results and a report.

use super::plan::Point;
use super::series::{Done, Outcome, Series};
use crate::experiment::machine::{assumed, described, warn_of_cuts};
use crate::experiment::ranks::Drawing;
use crate::experiment::{
    Control, ExperimentError, ExperimentOptions, Manifest, Measured, Report, Request, add_crossed,
};
use serde::Serialize;
use weft_assembly as assembly;
use weft_machine::Machine;
use weft_results::{Beginning, Totals};
use weft_topo::Layout;
use weft_units::{Bytes, Span};

/// A series of a command.
pub(super) struct Task<'a> {
    pub request: Request,
    pub machine: &'a Machine,
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
    pub fn report<R: Serialize>(
        self,
        options: &ExperimentOptions,
        control: Control<'_>,
        rows: impl FnOnce(&[Outcome]) -> Vec<(usize, R)>,
    ) -> Result<Report<R>, ExperimentError> {
        let began = Beginning::now();
        let Task { request, machine, layout, seed, breakdown, data, telemetry, points } = self;
        let series = Series { machine, layout, seed, breakdown, data, telemetry, options, control };
        let estimate = series.estimate(points)?;
        assembly::check_memory(machine, Bytes::new(estimate.memory_bytes)).map_err(ExperimentError::input)?;
        let (mut writer, saved) = options.open(&request)?;
        let mut drawing = options.timeline.as_deref().map(Drawing::create).transpose()?;
        // After what may be refused: of that nothing is estimated.
        control.progress.estimate(estimate);
        warn_of_cuts(machine, layout, &[seed], control.progress)?;
        let done = series.run(points, saved, writer.as_mut(), drawing.as_mut())?;
        if let Some(drawing) = drawing {
            drawing.finish()?;
        }
        let Done { ended, detail, outcomes } = done;
        let totals = totals(&outcomes);
        let performance = options.performance(&began, totals.packet_hops);
        let rows = rows(&outcomes);
        if let Some(writer) = writer {
            let values = rows.iter().map(|(_, row)| serde_json::to_value(row)).collect::<Result<_, _>>();
            let manifest = Manifest {
                detail: detail.clone(),
                rows: values.map_err(ExperimentError::input)?,
                assumed: assumed(machine),
                ..Manifest::new(request, described(machine), ended, totals)
            };
            writer.finish(manifest, performance.clone())?;
        }
        let measured = |(run, row): (usize, R)| {
            let Outcome { packet_hops_per_second, build_time_s, peak_memory_bytes, .. } = outcomes[run];
            Measured { row, packet_hops_per_second, build_time_s, peak_memory_bytes }
        };
        Ok(Report { ended, detail, rows: rows.into_iter().map(measured).collect(), performance })
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
