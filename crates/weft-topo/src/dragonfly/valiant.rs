//! The load of permutations on a Dragonfly whose packets may go by way of a third group.

use super::Dragonfly;
use crate::figures::PortLoads;
use crate::pattern::Permutation;
use crate::traits::Topology;
use std::collections::BTreeMap;
use weft_units::{EndpointId, SwitchId};

/// The load of each port, in units of 1/(g-2), if every packet between groups goes by way of a third
/// group, all equally likely. Packets inside a group go minimally.
pub(super) fn valiant_loads(dragonfly: &Dragonfly, permutation: &Permutation) -> PortLoads {
    let mut loads = PortLoads::new(dragonfly.switches(), dragonfly.ports(SwitchId(0)));
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
            groups_behind[dragonfly.gateway(group, other).0 as usize] += 1;
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
            let (out, back) = (dragonfly.gateway(from, to).0, dragonfly.gateway(to, from).0);
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
            let (out, out_port) = dragonfly.gateway(from, via);
            let (arrives, _) = dragonfly.gateway(via, from);
            let (leaves, leaves_port) = dragonfly.gateway(via, to);
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
    use crate::dragonfly::{DragonflyMinimal, DragonflySize, GlobalLinks};
    use crate::path::idle_path;
    use crate::pattern::Pattern;
    use crate::traits::Attachment;
    use proptest::prelude::*;

    /// A detour is two minimal walks: to the first switch of the intermediate group, and from there.
    fn walked_detours(
        layout: &DragonflyMinimal,
        dragonfly: &Dragonfly,
        permutation: &Permutation,
    ) -> Vec<u64> {
        let mut loads = PortLoads::new(dragonfly.switches(), dragonfly.ports(SwitchId(0)));
        let group = |endpoint| dragonfly.group(dragonfly.endpoint_address(endpoint));
        let endpoints_per_group = dragonfly.switches_per_group() * dragonfly.endpoints_per_switch();
        for from in (0..dragonfly.endpoints()).map(EndpointId) {
            let to = permutation.destination(from);
            let others = (0..dragonfly.groups()).filter(|&via| via != group(from) && via != group(to));
            if from == to {
                continue;
            }
            if group(from) == group(to) {
                let weight = u64::from(dragonfly.groups() - 2);
                idle_path(layout, from, to, |switch, port| *loads.at(switch, port) += weight);
                continue;
            }
            for via in others {
                let mut arrived = None;
                idle_path(layout, from, EndpointId(via * endpoints_per_group), |switch, port| {
                    if arrived.is_none() {
                        *loads.at(switch, port) += 1;
                        let Attachment::Switch(next, _) = dragonfly.peer(switch, port) else { return };
                        arrived = (next.0 / dragonfly.switches_per_group() == via).then_some(next);
                    }
                });
                let there = arrived.unwrap().0 * dragonfly.endpoints_per_switch();
                idle_path(layout, EndpointId(there), to, |switch, port| *loads.at(switch, port) += 1);
            }
        }
        loads.iter().map(|(_, _, load)| load).collect()
    }

    proptest! {
        /// Catches detours that the figures route otherwise than packets go.
        #[test]
        fn valiant_loads_agree_with_walks(
            (p, a, h) in (1u64..=2, 1u64..=4, 2u64..=3),
            groups in 3u64..=9,
            absolute: bool,
        ) {
            let arrangement = if absolute { GlobalLinks::Absolute } else { GlobalLinks::Palmtree };
            let size = DragonflySize { p, a, h, g: groups.min(a * h + 1) };
            let dragonfly = Dragonfly::new(size, arrangement).unwrap();
            let layout = DragonflyMinimal::new(dragonfly.clone());
            for pattern in [Pattern::Tornado, Pattern::BitComplement] {
                let permutation = Permutation::new(pattern, &layout).unwrap();
                let loads = valiant_loads(&dragonfly, &permutation);
                let loads: Vec<_> = loads.iter().map(|(_, _, load)| load).collect();
                prop_assert_eq!(loads, walked_detours(&layout, &dragonfly, &permutation));
            }
        }
    }
}
