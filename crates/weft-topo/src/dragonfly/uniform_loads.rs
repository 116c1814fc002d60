//! The load of uniform traffic on a Dragonfly: on minimal paths where there are several links per pair of
//! groups, and on detours.
//!
//! Sums run over switches and the destinations of other groups, never over pairs of endpoints. With the
//! palmtree arrangement all groups are alike, and the loads of one are those of all.

use super::{Dragonfly, GLOBAL, GlobalLinks, LOCAL};
use crate::figures::PortLoads;
use crate::traits::{Address, Topology};
use weft_units::{EndpointId, SwitchId};

/// Choices of a link that are added up in seconds. Machines with more are counted from a sample.
const MOST_CHOICES: u64 = 1 << 27;

/// The load of the busiest channel of each class on minimal paths, when every endpoint injects one unit.
/// `None`: this would take long.
pub(super) fn minimal_load(dragonfly: &Dragonfly) -> Option<Vec<f64>> {
    let groups = groups_to_add_up(dragonfly)?;
    let p = u64::from(dragonfly.endpoints_per_switch());
    let mut busiest = Busiest::default();
    for group in groups {
        let mut loads = GroupLoads::new(dragonfly, group, 1);
        for other in dragonfly.other_groups(group) {
            for (switch, index) in choices(dragonfly) {
                let link = dragonfly.choose(group, switch, other, dragonfly.address_in(other, index));
                loads.add_leaving(switch, other, link, p);
                let to = dragonfly.address_in(group, index);
                loads.add_entering(other, dragonfly.choose(other, switch, group, to), to, p);
            }
        }
        busiest.see(&loads);
    }
    Some(busiest.per_class(dragonfly, 1))
}

/// The same where every packet between groups goes by way of a third group, all equally likely. Needs three
/// groups.
pub(super) fn detour_load(dragonfly: &Dragonfly) -> Option<Vec<f64>> {
    let groups = groups_to_add_up(dragonfly)?;
    let unit = u64::from(dragonfly.groups() - 2);
    let all_alike = groups.len() == 1;
    let arrivals: Vec<Vec<u64>> = groups.clone().map(|group| all_arrivals(dragonfly, group)).collect();
    let arrivals_at = |group: u32| &arrivals[if all_alike { 0 } else { group as usize }];
    let mut busiest = Busiest::default();
    for group in groups {
        let mut loads = GroupLoads::new(dragonfly, group, unit);
        for other in dragonfly.other_groups(group) {
            // To the third group: for all groups but this one and the third, chosen alike.
            for (switch, index) in choices(dragonfly) {
                let link = dragonfly.choose(group, switch, other, dragonfly.address_in(group, index));
                loads.add_leaving(switch, other, link, u64::from(dragonfly.endpoints_per_switch()) * unit);
            }
            // On from this group as the third, and from a third group into this one.
            let own = choices(dragonfly).zip(arrivals_at(group)).zip(arrivals_from(dragonfly, other, group));
            for (((switch, index), all), from_target) in own {
                let link = dragonfly.choose(group, switch, other, dragonfly.address_in(other, index));
                loads.add_leaving(switch, other, link, all - from_target);
            }
            let others =
                choices(dragonfly).zip(arrivals_at(other)).zip(arrivals_from(dragonfly, group, other));
            for (((switch, index), all), from_target) in others {
                let to = dragonfly.address_in(group, index);
                loads.add_entering(other, dragonfly.choose(other, switch, group, to), to, all - from_target);
            }
        }
        busiest.see(&loads);
    }
    Some(busiest.per_class(dragonfly, unit))
}

/// The groups whose loads must be added up: one where all are alike.
fn groups_to_add_up(dragonfly: &Dragonfly) -> Option<std::ops::Range<u32>> {
    let groups = match dragonfly.arrangement() {
        GlobalLinks::Palmtree => 1,
        GlobalLinks::Absolute => dragonfly.groups(),
    };
    let per_pair = u64::from(dragonfly.switches_per_group()) * u64::from(dragonfly.endpoints_per_group());
    let choices = per_pair.saturating_mul(u64::from(groups)).saturating_mul(dragonfly.groups().into());
    (choices <= MOST_CHOICES).then_some(0..groups)
}

/// Every switch of a group with every endpoint of another, counted in their groups.
fn choices(dragonfly: &Dragonfly) -> impl Iterator<Item = (u32, u32)> {
    let endpoints = dragonfly.endpoints_per_group();
    (0..dragonfly.switches_per_group())
        .flat_map(move |switch| (0..endpoints).map(move |index| (switch, index)))
}

/// Packets that come from a group to one which is not their destination's, when each endpoint sends one to
/// each number of a destination: by switch and number, as [`choices`] are.
fn arrivals_from(dragonfly: &Dragonfly, from: u32, group: u32) -> Vec<u64> {
    let endpoints = dragonfly.endpoints_per_group();
    let mut arrivals = vec![0; dragonfly.switches_per_group() as usize * endpoints as usize];
    for (switch, index) in choices(dragonfly) {
        let link = dragonfly.choose(from, switch, group, dragonfly.address_in(from, index));
        let arrives = dragonfly.gateway(group, from, link).0;
        arrivals[arrives as usize * endpoints as usize + index as usize] +=
            u64::from(dragonfly.endpoints_per_switch());
    }
    arrivals
}

/// The sum of [`arrivals_from`] all other groups.
fn all_arrivals(dragonfly: &Dragonfly, group: u32) -> Vec<u64> {
    let mut sum = vec![0; dragonfly.switches_per_group() as usize * dragonfly.endpoints_per_group() as usize];
    for other in dragonfly.other_groups(group) {
        for (sum, arrived) in sum.iter_mut().zip(arrivals_from(dragonfly, other, group)) {
            *sum += arrived;
        }
    }
    sum
}

impl Dragonfly {
    fn endpoints_per_group(&self) -> u32 {
        self.switches_per_group() * self.endpoints_per_switch()
    }

    fn other_groups(&self, group: u32) -> impl Iterator<Item = u32> {
        (0..self.groups()).filter(move |&other| other != group)
    }

    /// The address of an endpoint by its number in its group.
    fn address_in(&self, group: u32, index: u32) -> Address {
        self.endpoint_address(EndpointId(group * self.endpoints_per_group() + index))
    }
}

/// The loads of the ports of one group.
struct GroupLoads<'d> {
    dragonfly: &'d Dragonfly,
    group: u32,
    loads: PortLoads,
}

impl GroupLoads<'_> {
    /// The load of packets that stay in the group, in units of 1/`unit`.
    fn new(dragonfly: &Dragonfly, group: u32, unit: u64) -> GroupLoads<'_> {
        let switches = dragonfly.switches_per_group();
        let mut loads = PortLoads::new((0..switches).map(|switch| dragonfly.ports(SwitchId(switch))));
        for (from, to) in (0..switches).flat_map(|from| (0..switches).map(move |to| (from, to))) {
            if from != to {
                let flows = u64::from(dragonfly.endpoints_per_switch()).pow(2);
                *loads.at(SwitchId(from), dragonfly.local_port(from, to)) += flows * unit;
            }
        }
        GroupLoads { dragonfly, group, loads }
    }

    /// Adds packets that leave a switch of the group over a link to another group.
    fn add_leaving(&mut self, switch: u32, other: u32, link: u32, load: u64) {
        let (gateway, port) = self.dragonfly.gateway(self.group, other, link);
        self.add_local(switch, gateway, load);
        *self.loads.at(SwitchId(gateway), port) += load;
    }

    /// Adds packets that enter the group over a link from another group.
    fn add_entering(&mut self, other: u32, link: u32, to: Address, load: u64) {
        let gateway = self.dragonfly.gateway(self.group, other, link).0;
        self.add_local(gateway, self.dragonfly.switch_in_group(to), load);
    }

    fn add_local(&mut self, from: u32, to: u32, load: u64) {
        if from != to {
            *self.loads.at(SwitchId(from), self.dragonfly.local_port(from, to)) += load;
        }
    }
}

/// The largest loads between switches so far.
#[derive(Default)]
struct Busiest {
    local: u64,
    global: u64,
}

impl Busiest {
    fn see(&mut self, group: &GroupLoads<'_>) {
        for (_, port, load) in group.loads.iter() {
            match group.dragonfly.class(port) {
                LOCAL => self.local = self.local.max(load),
                GLOBAL => self.global = self.global.max(load),
                _ => {}
            }
        }
    }

    /// Loads per endpoint that injects one unit, from those in units of 1/`unit` where every endpoint sends
    /// one to every other.
    fn per_class(&self, dragonfly: &Dragonfly, unit: u64) -> Vec<f64> {
        let others = u64::from(dragonfly.endpoints() - 1);
        let share = |load: u64| if others == 0 { 0.0 } else { load as f64 / (others * unit) as f64 };
        vec![if others > 0 { 1.0 } else { 0.0 }, share(self.local), share(self.global)]
    }
}
