//! Rails of a machine: the interfaces of a host that its ranks use side by side.

use super::AssemblyError;
use weft_machine::{Fabric, Machine};
use weft_msg::Rails;
use weft_topo::{Layout, Topology as _};
use weft_units::EndpointId;

/// Interfaces of a host that a rank may use: they are few in each machine that has several.
const MOST: u32 = 64;

/// Interfaces of a host by which the messages of each of its ranks go out: 1, where a rank uses its own only.
///
/// # Errors
/// Interfaces of a host that are of different networks, or of a model that cannot be a rail.
pub fn rails(machine: &Machine, layout: &Layout) -> Result<u32, AssemblyError> {
    let count = machine.host.endpoints_per_host;
    if machine.messaging.protocol.rails == Rails::None || count == 1 {
        return Ok(1);
    }
    let refuse = |why: String| Err(AssemblyError::Rails(why));
    if count > MOST {
        return refuse(format!("{count} interfaces are more than a rank can use; write at most {MOST}"));
    }
    if matches!(machine.fabric, Fabric::Ideal(_)) {
        return refuse("endpoints of the ideal network share no switch; set fabric.kind=packet".to_owned());
    }
    if !machine.nic.model().is_rail() {
        return refuse("the interface of this machine cannot be a rail; set nic.model=overheads".to_owned());
    }
    check_hosts(layout, count, "rails are interfaces of one network, at one switch")
        .map_err(AssemblyError::Rails)?;
    Ok(count)
}

/// Checks that the endpoints of each host hang off one switch, by links of one kind. Errors with the first
/// host of which that is not so, and `reason`.
fn check_hosts(layout: &Layout, count: u32, reason: &str) -> Result<(), String> {
    for first in (0..layout.endpoints()).step_by(count as usize) {
        let mut host = (first..first + count).map(EndpointId);
        let of = |endpoint| {
            let (switch, port) = layout.attachment(endpoint);
            (switch, layout.link_class(switch, port))
        };
        let own = of(EndpointId(first));
        if let Some(other) = host.find(|endpoint| of(*endpoint) != own) {
            let classes = layout.link_classes();
            let place = |endpoint| {
                let (switch, class) = of(endpoint);
                let (endpoint, switch) = (layout.endpoint_name(endpoint), layout.switch_name(switch));
                format!("endpoint {endpoint} at {switch} by a link `{}`", classes[usize::from(class.0)])
            };
            let why = format!(
                "host {} has {}, and {}; {reason}: choose host.endpoints_per_host so that the endpoints of \
                 a host hang off one switch",
                first / count,
                place(EndpointId(first)),
                place(other),
            );
            return Err(why);
        }
    }
    Ok(())
}

/// Checks that the endpoints of a host can share its memory.
///
/// # Errors
/// Endpoints of a host that are at different switches, or at none.
pub fn check_shared_memory(machine: &Machine, layout: &Layout) -> Result<(), AssemblyError> {
    let count = machine.host.endpoints_per_host;
    if count == 1 || machine.flows {
        return Ok(());
    }
    if matches!(machine.fabric, Fabric::Ideal(_)) {
        let why = "endpoints of the ideal network share no switch; set fabric.kind=packet or flow, or \
                   host.endpoints_per_host=1";
        return Err(AssemblyError::SharedMemory(why.to_owned()));
    }
    check_hosts(layout, count, "its cores share the memory of [host.core]")
        .map_err(AssemblyError::SharedMemory)
}
