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
    let kernel: KernelName = measure.size.parse().map_err(ExperimentError::input)?;
    let scale = measure.compute_scale.as_deref().map(str::parse).transpose();
    let request = ReplayRequest {
        machine,
        traces: vec![TraceInput::kernel(kernel)],
        starts: Vec::new(),
        isolated: false,
        map: Mapping::Linear,
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
    let figures = report.rows.first().map(|measured| &measured.row.figures);
    let figures = figures.ok_or_else(|| {
        let why = report.detail.as_deref().unwrap_or("it has no figures");
        ExperimentError::input(format!("app {}: {why}", measure.size))
    })?;
    let all = [
        (Figure::RunTime, Some(figures.run_time_us)),
        (Figure::Communication, Some(figures.communication_share)),
        (Figure::CompletionMean, figures.completion_time_mean_us),
        (Figure::CompletionMax, figures.completion_time_max_us),
    ];
    Ok(all.into_iter().filter_map(|(figure, value)| Some((figure, value?))).collect())
}
