//! The load of permutations on a Dragonfly whose packets may go by way of a third group.

use super::Dragonfly;
use crate::figures::PortLoads;
use crate::pattern::Permutation;
use crate::traits::{Address, Topology};
use std::collections::BTreeMap;
use weft_units::EndpointId;

/// Detours that are walked in seconds.
const MOST_DETOURS: u64 = 1 << 30;

/// The load of each port, in units of 1/(g-2), if every packet between groups goes by way of a third
/// group, all equally likely. Packets inside a group go minimally. Needs three groups. `None`: this would
/// take long.
pub(super) fn detour_loads(dragonfly: &Dragonfly, permutation: &Permutation) -> Option<PortLoads> {
    if dragonfly.links_per_pair() == 1 {
        return Some(loads_over_single_links(dragonfly, permutation));
    }
    let detours = u64::from(dragonfly.endpoints()) * u64::from(dragonfly.groups());
    (detours <= MOST_DETOURS).then(|| walked_loads(dragonfly, permutation))
}

/// [`detour_loads`] by walking every detour: which link a packet takes depends on its own switch and its
/// destination.
fn walked_loads(dragonfly: &Dragonfly, permutation: &Permutation) -> PortLoads {
    let mut loads = PortLoads::of(dragonfly);
    let all_ways = u64::from(dragonfly.groups() - 2);
    for source in (0..dragonfly.endpoints()).map(EndpointId) {
        let destination = permutation.destination(source);
        if source == destination {
            continue;
        }
        let (switch, port) = dragonfly.attachment(destination);
        *loads.at(switch, port) += all_ways;
        let [at, to] = [source, destination].map(|endpoint| dragonfly.endpoint_address(endpoint));
        let (from, target) = (dragonfly.group(at), dragonfly.group(to));
        if from == target {
            if dragonfly.switch_in_group(at) != dragonfly.switch_in_group(to) {
                *loads.at(dragonfly.attachment(source).0, dragonfly.port_within_group(at, to)) += all_ways;
            }
            continue;
        }
        for via in third_groups(dragonfly, from, target) {
            let mut at = (from, dragonfly.switch_in_group(at));
            for group in [via, target] {
                at = add_walk_to_group(&mut loads, dragonfly, (at, group), to);
            }
            let last = dragonfly.switch_in_group(to);
            if at.1 != last {
                *loads.at(dragonfly.switch_id(target, at.1), dragonfly.local_port(at.1, last)) += 1;
            }
        }
    }
    loads
}

/// Adds the links from a switch of a group to another group. The answer is the group and the switch where the
/// packet arrives.
fn add_walk_to_group(
    loads: &mut PortLoads,
    dragonfly: &Dragonfly,
    ((group, switch), other): ((u32, u32), u32),
    to: Address,
) -> (u32, u32) {
    let link = dragonfly.choose(group, switch, other, to);
    let (gateway, port) = dragonfly.gateway(group, other, link);
    if gateway != switch {
        *loads.at(dragonfly.switch_id(group, switch), dragonfly.local_port(switch, gateway)) += 1;
    }
    *loads.at(dragonfly.switch_id(group, gateway), port) += 1;
    (other, dragonfly.gateway(other, group, link).0)
}

/// [`detour_loads`] where there is one link per pair of groups: counted per switch and per pair of groups.
fn loads_over_single_links(dragonfly: &Dragonfly, permutation: &Permutation) -> PortLoads {
    let mut loads = PortLoads::of(dragonfly);
    let all_ways = u64::from(dragonfly.groups() - 2);
    let place = |endpoint| {
        let address = dragonfly.endpoint_address(endpoint);
        (dragonfly.group(address), dragonfly.switch_in_group(address))
    };
    let add_local = |loads: &mut PortLoads, group, from, to, load: u64| {
        if from != to {
            *loads.at(dragonfly.switch_id(group, from), dragonfly.local_port(from, to)) += load;
        }
    };
    let flows = || {
        let sources = (0..dragonfly.endpoints()).map(EndpointId);
        let flow = |source| (source, permutation.destination(source));
        sources.map(flow).filter(|(source, destination)| source != destination)
    };
    let mut between_groups: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    // By switch: flows to and from other groups.
    let mut leaving = vec![0; dragonfly.switches() as usize];
    let mut entering = vec![0; dragonfly.switches() as usize];
    for (source, destination) in flows() {
        let ((from, from_switch), (to, to_switch)) = (place(source), place(destination));
        let (ejection_switch, ejection_port) = dragonfly.attachment(destination);
        *loads.at(ejection_switch, ejection_port) += all_ways;
        if from == to {
            add_local(&mut loads, from, from_switch, to_switch, all_ways);
            continue;
        }
        *between_groups.entry((from, to)).or_default() += 1;
        leaving[dragonfly.switch_id(from, from_switch).index()] += 1;
        entering[dragonfly.switch_id(to, to_switch).index()] += 1;
    }
    // First and last local links: counted per switch as if a flow went by way of all other groups.
    for group in 0..dragonfly.groups() {
        let mut groups_behind = vec![0; dragonfly.switches_per_group() as usize];
        for other in (0..dragonfly.groups()).filter(|&other| other != group) {
            groups_behind[dragonfly.gateway(group, other, 0).0 as usize] += 1;
        }
        for switch in 0..dragonfly.switches_per_group() {
            let here = dragonfly.switch_id(group, switch).index();
            for (gateway, &behind) in (0..).zip(&groups_behind) {
                add_local(&mut loads, group, switch, gateway, leaving[here] * behind);
                add_local(&mut loads, group, gateway, switch, entering[here] * behind);
            }
        }
    }
    // Its own destination is no way around.
    for (source, destination) in flows() {
        let ((from, from_switch), (to, to_switch)) = (place(source), place(destination));
        if from != to {
            let (out, back) = (dragonfly.gateway(from, to, 0).0, dragonfly.gateway(to, from, 0).0);
            for (group, first, second) in [(from, from_switch, out), (to, back, to_switch)] {
                if first != second {
                    let port = dragonfly.local_port(first, second);
                    *loads.at(dragonfly.switch_id(group, first), port) -= 1;
                }
            }
        }
    }
    // Global links, and the local ones of intermediate groups, per pair of groups.
    for (&(from, to), &flows) in &between_groups {
        for via in third_groups(dragonfly, from, to) {
            let (out, out_port) = dragonfly.gateway(from, via, 0);
            let (arrives, _) = dragonfly.gateway(via, from, 0);
            let (leaves, leaves_port) = dragonfly.gateway(via, to, 0);
            *loads.at(dragonfly.switch_id(from, out), out_port) += flows;
            add_local(&mut loads, via, arrives, leaves, flows);
            *loads.at(dragonfly.switch_id(via, leaves), leaves_port) += flows;
        }
    }
    loads
}

/// All groups but two.
fn third_groups(dragonfly: &Dragonfly, from: u32, to: u32) -> impl Iterator<Item = u32> {
    (0..dragonfly.groups()).filter(move |&via| via != from && via != to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dragonfly::{DragonflySize, GlobalLinks};
    use crate::pattern::Pattern;
    use proptest::prelude::*;

    proptest! {
        /// Catches loads counted per pair of groups that differ from those of walks.
        #[test]
        fn counts_over_single_links_agree_with_walks(
            (p, a, h) in (1u64..=2, 1u64..=4, 2u64..=3),
            groups in 3u64..=9,
            absolute: bool,
        ) {
            let arrangement = if absolute { GlobalLinks::Absolute } else { GlobalLinks::Palmtree };
            let size = DragonflySize { p, a, h, g: groups.min(a * h + 1) };
            let dragonfly = Dragonfly::new(size, arrangement).unwrap();
            for pattern in [Pattern::Tornado, Pattern::BitComplement] {
                let permutation = Permutation::new(pattern, &dragonfly).unwrap();
                let loads = loads_over_single_links(&dragonfly, &permutation);
                let walked = walked_loads(&dragonfly, &permutation);
                prop_assert!(loads.iter().eq(walked.iter()));
            }
        }
    }
}
