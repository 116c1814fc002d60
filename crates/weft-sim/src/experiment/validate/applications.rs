//! Application kernels as figures: a run time, a share of communication, completion times.

use super::publication::{Figure, Measure};
use crate::experiment::app::KernelName;
use crate::experiment::replay::{Mapping, ReplayRequest, TraceInput, Wildcards};
use crate::experiment::{Control, Experiment, ExperimentError, ExperimentOptions, MachineInput};

/// All figures of the kernel `measure.size`, such as `lammps@2,steps=9`: times in µs, and a share.
pub(super) fn figures(
    machine: MachineInput,
    measure: &Measure,
    control: Control<'_>,
) -> Result<Vec<(Figure, f64)>, ExperimentError> {
    let kernels = [Some(&measure.size), measure.beside.as_ref()].into_iter().flatten();
    let kernels: Vec<KernelName> =
        kernels.map(|kernel| kernel.parse()).collect::<Result<_, _>>().map_err(ExperimentError::input)?;
    let scale = measure.compute_scale.as_deref().map(str::parse).transpose();
    let request = ReplayRequest {
        machine,
        traces: kernels.into_iter().map(TraceInput::kernel).collect(),
        starts: Vec::new(),
        isolated: measure.beside.is_some(),
        map: measure.map.clone().unwrap_or(Mapping::Linear),
        ranks_per_host: measure.ranks_per_host,
        wildcards: Wildcards::Recorded,
        seed: 1,
        data: false,
        breakdown: false,
        compute_scale: scale.map_err(ExperimentError::input)?.unwrap_or_default(),
        region: None,
        telemetry: None,
        scenario: None,
    };
    let report = request.run(&ExperimentOptions::default(), control)?;
    let row = report.rows.first().map(|measured| &measured.row);
    let slowdown = row.and_then(|row| row.job.as_ref()?.slowdown);
    let figures = row.map(|row| &row.figures).ok_or_else(|| {
        let why = report.detail.as_deref().unwrap_or("it has no figures");
        ExperimentError::input(format!("app {}: {why}", measure.size))
    })?;
    let all = [
        (Figure::RunTime, Some(figures.run_time_us)),
        (Figure::Communication, Some(figures.communication_share)),
        (Figure::CompletionMean, figures.completion_time_mean_us),
        (Figure::CompletionMax, figures.completion_time_max_us),
        (Figure::Slowdown, slowdown),
    ];
    Ok(all.into_iter().filter_map(|(figure, value)| Some((figure, value?))).collect())
}
