//! The speed of a machine's cores, for ranks that compute on memory.

use crate::experiment::ExperimentError;
use weft_assembly as assembly;
use weft_machine::{HostCore, Machine};
use weft_topo::Layout;
use weft_trace::Kind;
use weft_workload::replay::{CoreSpeed, Operations, Program};

/// The speed in `[host.core]`; `None`: the machine has none, or no rank needs it.
///
/// # Errors
/// Endpoints of a host that cannot share its memory, which ranks compute on.
pub(crate) fn core_speed(
    machine: &Machine,
    layout: &Layout,
    programs: &[Program],
) -> Result<Option<CoreSpeed>, ExperimentError> {
    let Some(core) = machine.host_core else { return Ok(None) };
    if let Err(error) = assembly::check_shared_memory(machine, layout) {
        let works = |program: &Program| match &program.operations {
            Operations::Recorded(trace) => trace.operations_of(Kind::Work) > 0,
            Operations::Generated(_) | Operations::Stepped(_) => false,
        };
        let is_needed = core.recorded_share.millionths() > 0 || programs.iter().any(works);
        return if is_needed { Err(ExperimentError::input(error)) } else { Ok(None) };
    }
    let HostCore { clock, flops_per_cycle, bandwidth, memory_bandwidth, recorded_share } = core;
    Ok(Some(CoreSpeed {
        clock,
        flops_per_cycle: flops_per_cycle.millionths(),
        bandwidth,
        memory_bandwidth,
        recorded_share: recorded_share.millionths(),
        endpoints_per_host: machine.host.endpoints_per_host,
    }))
}
