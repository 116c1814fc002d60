//! The load of permutations on a Megafly whose packets go by way of a third group.

use super::Megafly;
use super::figures::DestinationKind;
use crate::figures::PortLoads;
use crate::pattern::Permutation;
use crate::traits::Topology;
use std::collections::BTreeMap;
use weft_units::EndpointId;

/// The load of each port, in units of 1/(g-2), if every packet between groups goes by way of a third group,
/// all equally likely. Packets inside a group go minimally. Needs three groups.
pub(super) fn detour_loads(megafly: &Megafly, permutation: &Permutation) -> PortLoads {
    let mut loads = PortLoads::of(megafly);
    let all_ways = u64::from(megafly.groups - 2);
    // Flows between groups whose ways are the same: from the leaf up, and from the spine on.
    let mut ascents = BTreeMap::<(u32, u32, u32), u64>::new();
    let mut ways = BTreeMap::<(u32, u32, u32, u32), u64>::new();
    for source in (0..megafly.endpoints()).map(EndpointId) {
        let destination = permutation.destination(source);
        if source == destination {
            continue;
        }
        let (ejection_switch, ejection_port) = megafly.attachment(destination);
        *loads.at(ejection_switch, ejection_port) += all_ways;
        let leaf = megafly.attachment(source).0;
        let (from, to) = (leaf.0 / megafly.leaves, ejection_switch.0 / megafly.leaves);
        let index = destination.0 % megafly.endpoints_per_group();
        let kind = megafly.kind(index);
        if from != to {
            *ascents.entry((leaf.0, to, kind.index)).or_default() += 1;
            *ways.entry((from, to, kind.leaf, kind.index)).or_default() += 1;
        } else if leaf != ejection_switch {
            let spine = megafly.spine_within_group(index);
            *loads.at(leaf, megafly.up_port(spine)) += all_ways;
            let spine = megafly.switch_at(from, megafly.leaves + spine);
            *loads.at(spine, megafly.down_port(kind.leaf)) += all_ways;
        }
    }
    let third_groups = |from, to| (0..megafly.groups).filter(move |&via| via != from && via != to);
    for ((leaf, to, index), flows) in ascents {
        let (from, place) = (leaf / megafly.leaves, leaf % megafly.leaves);
        let leaf = megafly.switch_at(from, place);
        for via in third_groups(from, to) {
            let out = megafly.links.choose(megafly.offset(from, via), index);
            *loads.at(leaf, megafly.up_port(megafly.links.at(out).spine)) += flows;
        }
    }
    for ((from, to, leaf, index), flows) in ways {
        for via in third_groups(from, to) {
            megafly.path(&[from, via, to], DestinationKind { index, leaf }, &mut |group, place, port| {
                *loads.at(megafly.switch_at(group, place), port) += flows;
            });
        }
    }
    loads
}
