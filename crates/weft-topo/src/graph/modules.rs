//! Modules of a graph and the gateways between them, for hierarchical routing.
//!
//! ```text
//!   module A            gateways          module B
//!   [s]──[s]──[s] ───── [gateway] ─────── [s]──[s]
//!          └─────────── [gateway] ──────────┘
//! ```
//! A switch belongs to one module, or is a gateway, without endpoints, that joins two modules or more.
//! A packet stays inside the module of its source where its destination lies there too. Else it goes to a
//! gateway towards the destination's module, on the shortest ways of the module that it is in, and from there
//! on likewise. A hash of source and destination chooses among all gateways that lead to a module that is one
//! nearer, near or far, so that they share the pairs.
//!
//! # Source
//! L. Kleinrock, F. Kamoun, "Hierarchical routing for large networks: performance evaluation and
//! optimization", Computer Networks 1, 1977: routing by clusters first and inside the own cluster then. The
//! choice of a gateway by hash is ours, after ECMP.

use super::Graph;
use crate::choice::way_of_flow;
use crate::traits::Topology;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::SwitchId;

/// Most switches of a graph with modules: the distances from each to all take a byte per pair.
const MAX_SWITCHES: u32 = 1 << 15;

/// Most modules: their exits take a list per pair.
const MAX_MODULES: u32 = 1 << 10;

/// Modules that do not let packets go from each switch to each.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum ModuleFault {
    #[error("hierarchical routing goes by modules, and no switch of the graph names one")]
    None,
    #[error("{0} switches in {1} modules are more than {MAX_SWITCHES} in {MAX_MODULES}")]
    TooMany(u32, u32),
    #[error("{0} belongs to no module and has endpoints")]
    EndpointsAtGateway(String),
    #[error("{0} belongs to no module and does not join two of them")]
    NotBetween(String),
    #[error("the gateways {0} and {1} are joined to each other")]
    BetweenGateways(String, String),
    #[error("{0} and {1} are joined without a gateway, and belong to modules {2} and {3}")]
    WithoutGateway(String, String, String, String),
    #[error("no gateways lead from module {0} to module {1}")]
    Apart(String, String),
}

impl ModuleFault {
    /// The mend.
    pub(super) fn mend(&self) -> &'static str {
        match self {
            ModuleFault::None => {
                "write module=NAME at the switches of each module; those without are gateways"
            }
            ModuleFault::TooMany(..) => "take fewer and larger modules, or another routing, such as ecmp",
            ModuleFault::EndpointsAtGateway(_) => "write module=NAME at it, or take its endpoints away",
            ModuleFault::NotBetween(_) => "write module=NAME at it, or join it to switches of two modules",
            ModuleFault::BetweenGateways(..) => {
                "put a switch with a module of its own between them, or make one gateway of the two"
            }
            ModuleFault::WithoutGateway(..) => {
                "put a switch without a module between them, or write the same module at both"
            }
            ModuleFault::Apart(..) => "join the modules by gateways",
        }
    }
}

/// Modules, and the gateways from each towards each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Modules {
    count: u32,
    /// By switch: its module. `None`: a gateway.
    of: Vec<Option<u32>>,
    /// By gateway, as by switch: the modules that it joins, each once. Empty: no gateway.
    joined: Vec<Vec<u32>>,
    /// By module and destination's module: gateways that lead to a module that is one nearer.
    exits: Vec<Vec<u32>>,
    /// By module and destination's module: gateways on the way.
    gateways: Vec<u32>,
}

impl Modules {
    /// The modules of a graph.
    ///
    /// # Errors
    /// Switches or modules that do not fit together.
    pub(super) fn of(graph: &Graph) -> Result<Modules, ModuleFault> {
        let count = graph.modules.len() as u32;
        if count == 0 {
            return Err(ModuleFault::None);
        }
        if graph.switches() > MAX_SWITCHES || count > MAX_MODULES {
            return Err(ModuleFault::TooMany(graph.switches(), count));
        }
        let mut joined = vec![Vec::new(); graph.switches() as usize];
        for switch in (0..graph.switches()).map(SwitchId) {
            let name = |switch| graph.switch_name(switch);
            let own = graph.module_of[switch.index()];
            for next in graph.neighbours(switch) {
                let other = SwitchId(next.switch);
                match (own, graph.module_of[other.index()]) {
                    (Some(own), Some(module)) if own != module => {
                        let [own, module] = [own, module].map(|one| graph.modules[one as usize].clone());
                        return Err(ModuleFault::WithoutGateway(name(switch), name(other), own, module));
                    }
                    (None, None) => return Err(ModuleFault::BetweenGateways(name(switch), name(other))),
                    (None, Some(module)) if !joined[switch.index()].contains(&module) => {
                        joined[switch.index()].push(module);
                    }
                    _ => {}
                }
            }
            if own.is_none() && graph.endpoints_at(switch) > 0 {
                return Err(ModuleFault::EndpointsAtGateway(name(switch)));
            }
            if own.is_none() && joined[switch.index()].len() < 2 {
                return Err(ModuleFault::NotBetween(name(switch)));
            }
        }
        let places = (count * count) as usize;
        let (exits, gateways) = (vec![Vec::new(); places], vec![u32::MAX; places]);
        let mut modules = Modules { count, of: graph.module_of.clone(), joined, exits, gateways };
        for to in 0..count {
            modules.measure(to);
        }
        let apart = modules.gateways.iter().position(|&gateways| gateways == u32::MAX);
        if let Some(place) = apart {
            let [from, to] = [place as u32 / count, place as u32 % count];
            let [from, to] = [from, to].map(|one| graph.modules[one as usize].clone());
            return Err(ModuleFault::Apart(from, to));
        }
        modules.find_exits();
        Ok(modules)
    }

    /// The place of a pair of modules in the tables.
    fn place(&self, from: u32, to: u32) -> usize {
        (from * self.count + to) as usize
    }

    /// Counts the gateways from every module to one.
    fn measure(&mut self, to: u32) {
        let own = self.place(to, to);
        self.gateways[own] = 0;
        let mut waiting = VecDeque::from([to]);
        while let Some(module) = waiting.pop_front() {
            let behind = self.gateways[self.place(module, to)] + 1;
            for next in self.joined.iter().filter(|sides| sides.contains(&module)).flatten() {
                let place = (next * self.count + to) as usize;
                if self.gateways[place] == u32::MAX {
                    self.gateways[place] = behind;
                    waiting.push_back(*next);
                }
            }
        }
    }

    /// Lists the gateways that lead to a module that is one nearer.
    fn find_exits(&mut self) {
        for (gateway, sides) in (0..).zip(&self.joined) {
            for (&from, to) in sides.iter().flat_map(|from| (0..self.count).map(move |to| (from, to))) {
                let left = |module: u32| self.gateways[(module * self.count + to) as usize];
                if sides.iter().any(|&side| left(side) < left(from)) {
                    self.exits[(from * self.count + to) as usize].push(gateway);
                }
            }
        }
    }

    /// Whether a switch is a gateway.
    pub(super) fn is_gateway(&self, switch: SwitchId) -> bool {
        self.of[switch.index()].is_none()
    }

    /// The module of a switch; `None`: it is a gateway.
    pub(super) fn of_switch(&self, switch: SwitchId) -> Option<u32> {
        self.of[switch.index()]
    }

    /// Most modules that a packet passes.
    pub(super) fn most_passed(&self) -> u32 {
        1 + self.gateways.iter().copied().max().unwrap_or(0)
    }

    /// The next switch that a packet of a flow goes to by the shortest ways of a module: its destination's,
    /// or the gateway that its hash chooses.
    #[inline]
    pub(super) fn towards(&self, at: SwitchId, to: SwitchId, flow: u32) -> SwitchId {
        // Gateways have no endpoints: `to` has a module.
        let Some(target) = self.of[to.index()] else { return to };
        let left = |module: &u32| self.gateways[self.place(*module, target)];
        let nearest = || self.joined[at.index()].iter().copied().min_by_key(|module| (left(module), *module));
        match self.of[at.index()].or_else(nearest) {
            Some(module) if module != target => {
                let exits = &self.exits[self.place(module, target)];
                // Modules have numbers of their own in the hash, from the last one down: switches count up.
                let chosen = way_of_flow(flow, u32::MAX - module, exits.len() as u32);
                exits.get(chosen as usize).map_or(to, |&gateway| SwitchId(gateway))
            }
            _ => to,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GraphLayout, GraphParameters, GraphRouting};
    use super::*;
    use crate::family::Family;
    use crate::path::idle_path;
    use crate::proof::prove;
    use crate::traits::RoutedTopology;
    use weft_units::EndpointId;

    fn hierarchical() -> Vec<GraphParameters> {
        let all = GraphParameters::examples().into_iter();
        all.filter(|one| matches!(one.routing, GraphRouting::Hierarchical { .. })).collect()
    }

    /// The switches on the way of a packet.
    fn way(layout: &GraphLayout, from: u32, to: u32) -> Vec<SwitchId> {
        let mut way = Vec::new();
        idle_path(layout, EndpointId(from), EndpointId(to), |switch, _| way.push(switch));
        way
    }

    /// Catches a packet that leaves its module and comes back, one that passes more gateways than it must,
    /// and a gateway that carries nothing because another is nearer.
    #[test]
    fn packets_stay_in_modules_and_share_all_gateways() {
        for parameters in hierarchical() {
            let layout = parameters.build().unwrap();
            let modules = Modules::of(layout.topology()).unwrap();
            let mut carried = vec![0; layout.switches() as usize];
            for (from, to) in
                (0..layout.endpoints()).flat_map(|from| (0..layout.endpoints()).map(move |to| (from, to)))
            {
                let way = way(&layout, from, to);
                let passed: Vec<SwitchId> =
                    way.iter().copied().filter(|switch| modules.is_gateway(*switch)).collect();
                let module = |endpoint| modules.of_switch(layout.attachment(EndpointId(endpoint)).0).unwrap();
                let needed = modules.gateways[modules.place(module(from), module(to))];
                assert_eq!(passed.len() as u32, needed, "{from} to {to}: {way:?}");
                passed.into_iter().for_each(|gateway| carried[gateway.index()] += 1);
            }
            let gateways = (0..layout.switches()).map(SwitchId).filter(|one| modules.is_gateway(*one));
            let shares: Vec<u32> = gateways.map(|gateway| carried[gateway.index()]).collect();
            let mean = shares.iter().sum::<u32>() / shares.len() as u32;
            assert!(shares.iter().all(|&share| share > mean / 2), "{shares:?}");
            prove(&layout).unwrap();
        }
    }

    /// Catches the shortcut of another routing: on the ring of five the way between its ends leads round, and
    /// not through the other module.
    #[test]
    fn a_shorter_way_through_another_module_is_not_taken() {
        let mut parameters = hierarchical().swap_remove(0);
        // The far side of the ring is joined to both gateways, which makes a way of two links across.
        parameters.file.links.retain(|link| link.ends != [4, 0]);
        parameters.file.links.push(crate::GraphLink { ends: [8, 4], count: 1, class: 0 });
        let layout = parameters.build().unwrap();
        let inside = way(&layout, 0, 9);
        assert_eq!(inside, [0, 1, 2, 3, 4].map(SwitchId), "by rows only");
        parameters.routing = GraphRouting::Ecmp { hash_seed: 1 };
        let across = way(&parameters.build().unwrap(), 0, 9);
        assert_eq!(across, [0, 8, 4].map(SwitchId));
    }

    /// Catches modules that do not fit together and are taken, and a message that does not name the switch.
    #[test]
    fn modules_that_do_not_fit_are_refused() {
        let refused = |change: &dyn Fn(&mut GraphParameters)| {
            let mut parameters = hierarchical().swap_remove(0);
            change(&mut parameters);
            let misfit = parameters.check().unwrap_err();
            (misfit.title, misfit.help)
        };
        let module = |parameters: &mut GraphParameters, switch: usize, name: &str| {
            parameters.file.switches[switch].module = name.to_owned();
        };
        let said = |change: &dyn Fn(&mut GraphParameters), title: &str| {
            let (found, help) = refused(change);
            assert!(found.contains(title), "{found}");
            assert!(!help.is_empty());
        };
        said(&|one| one.file.switches.iter_mut().for_each(|switch| switch.module.clear()), "names one");
        said(&|one| module(one, 3, ""), "switch s3 belongs to no module and has endpoints");
        said(&|one| module(one, 8, "row"), "are joined without a gateway");
        said(
            &|one| one.file.links.retain(|link| link.ends != [8, 5]),
            "switch s8 belongs to no module and does not join two",
        );
        said(&|one| one.file.links.push(crate::GraphLink { ends: [8, 9], count: 1, class: 0 }), "gateways");
        let apart = |one: &mut GraphParameters| {
            one.file.links.retain(|link| link.ends != [5, 6]);
        };
        said(&apart, "inside their module");
    }
}
