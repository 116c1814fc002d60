//! The proof of a machine's multicast groups: trees whose branches are turns of the routing.

use weft_assembly::{self as assembly, AssemblyError, MachineGroup};
use weft_machine::Machine;
use weft_topo::{Layout, MulticastTree, TreeError};
use weft_units::EndpointId;

/// Most roots of a group whose trees are looked at, where any member may send: their work is the square.
const MAX_ROOTS: usize = 2048;

/// A line on each multicast group of a machine, and whether all are covered by the deadlock proof.
///
/// # Errors
/// Groups that are none.
pub(super) fn prove_groups(machine: &Machine, layout: &Layout) -> Result<(Vec<String>, bool), AssemblyError> {
    let mut all = true;
    let mut line = |group: MachineGroup| {
        prove(&group, layout).unwrap_or_else(|error| {
            all = false;
            format!("multicast group {}: {error}", group.name)
        })
    };
    let lines = assembly::machine_groups(machine, layout)?.into_iter().map(&mut line).collect();
    Ok((lines, all))
}

fn prove(group: &MachineGroup, layout: &Layout) -> Result<String, TreeError> {
    let members = group.members.all();
    let roots: Vec<EndpointId> = match group.root {
        Some(root) => vec![root],
        None => members.iter().copied().take(MAX_ROOTS).collect(),
    };
    let (mut links, mut copies) = (0, 0);
    for &root in &roots {
        let tree = MulticastTree::new(layout, root, members);
        let proof = tree.expect("members are joined: it was asked before").prove(layout)?;
        (links, copies) = (links + proof.links, copies + proof.members);
    }
    Ok(format!(
        "multicast group {}: trees of {} roots with {links} copies to switches and {copies} to members; each \
         is a turn of the routing, and waits in the room of the packet for its own channel alone",
        group.name,
        roots.len()
    ))
}
