//! The speed of a machine's cores, for ranks that compute on memory.

use crate::experiment::ExperimentError;
use weft_assembly as assembly;
use weft_machine::{HostCore, Machine};
use weft_topo::Layout;
use weft_workload::replay::CoreSpeed;

/// The speed in `[host.core]`; `None`: the machine has none.
///
/// # Errors
/// Endpoints of a host that cannot share its memory.
pub(crate) fn core_speed(machine: &Machine, layout: &Layout) -> Result<Option<CoreSpeed>, ExperimentError> {
    let Some(core) = machine.host_core else { return Ok(None) };
    assembly::check_shared_memory(machine, layout).map_err(ExperimentError::input)?;
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
