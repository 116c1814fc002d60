//! The multicast groups of a run: first those of the machine, then those of the workload.

use super::AssemblyError;
use weft_fabric::GroupMembers;
use weft_machine::{GroupRule, Machine};
use weft_topo::{Layout, Topology as _};
use weft_units::EndpointId;

/// A multicast group of a machine, resolved on its layout. Its number is its place among them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineGroup {
    /// The name.
    pub name: String,
    /// The members.
    pub members: GroupMembers,
    /// The member that sends; `None`: any may.
    pub root: Option<EndpointId>,
}

/// The groups of a machine, resolved on its layout.
///
/// # Errors
/// Members that are none, too few, named twice, or not joined; a root that is no member.
pub fn machine_groups(machine: &Machine, layout: &Layout) -> Result<Vec<MachineGroup>, AssemblyError> {
    let resolved = machine
        .multicast
        .iter()
        .enumerate()
        .map(|(number, rule)| resolve(rule, layout).map_err(|why| AssemblyError::Group { number, why }));
    resolved.collect()
}

/// The groups of a machine, and then those of the `workload`.
///
/// # Errors
/// Members that are none, too few, named twice, or not joined.
pub fn groups(
    machine: &Machine,
    layout: &Layout,
    workload: &[Vec<EndpointId>],
) -> Result<Vec<GroupMembers>, AssemblyError> {
    let mut groups: Vec<GroupMembers> =
        machine_groups(machine, layout)?.into_iter().map(|group| group.members).collect();
    for members in workload {
        groups.push(GroupMembers::new(members, layout).map_err(AssemblyError::ProgramGroup)?);
    }
    Ok(groups)
}

fn resolve(rule: &GroupRule, layout: &Layout) -> Result<MachineGroup, String> {
    let endpoint = |name: &str| layout.endpoint(name).map_err(|error| error.to_string());
    let mut members = Vec::new();
    for entry in &rule.members {
        // A name of an endpoint may have a colon in it.
        match (layout.endpoint(entry), entry.split_once(':')) {
            _ if entry == "all" => members.extend((0..layout.endpoints()).map(EndpointId)),
            (Ok(member), _) => members.push(member),
            (Err(_), Some((first, last))) => {
                let (EndpointId(first), EndpointId(last)) = (endpoint(first)?, endpoint(last)?);
                if first > last {
                    return Err(format!("`{entry}` goes down; write the lower endpoint first"));
                }
                members.extend((first..=last).map(EndpointId));
            }
            (Err(error), None) => return Err(error.to_string()),
        }
    }
    let members = GroupMembers::new(&members, layout).map_err(|error| error.to_string())?;
    let root = rule.root.as_deref().map(endpoint).transpose()?;
    if let Some(root) = root.filter(|root| members.all().binary_search(root).is_err()) {
        let name = layout.endpoint_name(root);
        return Err(format!("root {name} is no member of `{}`; name it among the members", rule.name));
    }
    Ok(MachineGroup { name: rule.name.clone(), members, root })
}
