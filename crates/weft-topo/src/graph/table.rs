//! Next hops by table, for the routing `table`: whoever made the file of the graph has chosen all ways.
//!
//! ```text
//!   [s0]──[s1]──[s2]      s0 next=s1:s1,s2:s1     a packet for an endpoint of s2 goes to s1 first
//!                         s1 next=s0:s0,s2:s2
//! ```
//! A table has the next switch for each switch and each destination, which is a switch with endpoints. All
//! ways are walked once, when the machine is built: no entry may be missing on one, and none may lead in a
//! circle. Ways need not be shortest. Of links in parallel the number of the destination chooses.

use super::Graph;
use super::distances::order;
use crate::traits::Topology;
use serde::{Deserialize, Serialize};
use weft_units::SwitchId;

/// Most switches of a graph with a table: it takes four bytes per pair.
const MAX_SWITCHES: u32 = 1 << 13;

/// The entry of a pair of which the file says nothing.
const NOWHERE: u32 = u32::MAX;

/// A table that does not bring packets from each switch to each.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum TableFault {
    #[error("packets go by a table of next hops, and no switch of the graph names one")]
    None,
    #[error("{0} switches are more than the {MAX_SWITCHES} of a graph with a table")]
    TooMany(u32),
    #[error("{at} names two next hops to {to}")]
    Twice { at: String, to: String },
    #[error("{at} names {via} as the next hop to {to}, and no link joins it to that")]
    NotJoined { at: String, to: String, via: String },
    #[error("{at} names no next hop to {to}, and packets from {from} pass it")]
    Missing { at: String, to: String, from: String },
    #[error("next hops lead packets from {from} to {to} in a circle, by way of {at}")]
    Circle { from: String, to: String, at: String },
}

impl TableFault {
    /// The mend.
    pub(super) fn mend(&self) -> &'static str {
        match self {
            TableFault::None => "write next=TO:VIA,TO:VIA at each switch, or take another routing",
            TableFault::TooMany(_) => "take a routing that needs no table, such as ecmp",
            TableFault::Twice { .. } => "name one next hop for each destination",
            TableFault::NotJoined { .. } => "name a switch that a link joins, or add the link",
            TableFault::Missing { .. } => "add TO:VIA to the next hops of that switch",
            TableFault::Circle { .. } => "name next hops that come nearer to the destination",
        }
    }
}

/// The next switch from each switch to each destination.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Table {
    switches: usize,
    /// By destination, which is a switch with endpoints, and switch.
    next: Vec<u32>,
    /// Most turns from down to up on a way.
    turns: u32,
    /// Most links of a way.
    longest: u32,
}

impl Table {
    /// The table of a graph.
    ///
    /// # Errors
    /// A pair of switches with endpoints between which it brings no packet; entries that are wrong.
    pub(super) fn of(graph: &Graph) -> Result<Table, TableFault> {
        let mut table = Table::read(graph)?;
        let order = order(graph);
        for to in (0..graph.with_endpoints).map(SwitchId) {
            for from in (0..graph.with_endpoints).map(SwitchId) {
                table.walk(graph, &order, (from, to))?;
            }
        }
        Ok(table)
    }

    /// The entries, each of which must follow a link.
    fn read(graph: &Graph) -> Result<Table, TableFault> {
        if graph.next_hops.is_empty() {
            return Err(TableFault::None);
        }
        if graph.switches() > MAX_SWITCHES {
            return Err(TableFault::TooMany(graph.switches()));
        }
        let switches = graph.switches() as usize;
        let next = vec![NOWHERE; switches * graph.with_endpoints as usize];
        let mut table = Table { switches, next, turns: 0, longest: 0 };
        for hop in &graph.next_hops {
            let [at, to, via] = [hop.at, hop.to, hop.via].map(SwitchId);
            let name = |switch| graph.switch_name(switch);
            // Nothing is sent to a switch without endpoints, nor from its destination on.
            if to.0 >= graph.with_endpoints || at == to {
                continue;
            }
            if graph.neighbours(at).iter().all(|next| next.switch != via.0) {
                return Err(TableFault::NotJoined { at: name(at), to: name(to), via: name(via) });
            }
            let entry = &mut table.next[to.index() * switches + at.index()];
            if *entry != NOWHERE {
                return Err(TableFault::Twice { at: name(at), to: name(to) });
            }
            *entry = via.0;
        }
        Ok(table)
    }

    /// Follows the way from one switch to another, and counts its links and turns.
    fn walk(
        &mut self,
        graph: &Graph,
        order: &[u32],
        (from, to): (SwitchId, SwitchId),
    ) -> Result<(), TableFault> {
        let (mut at, mut came_down) = (from, false);
        let (mut links, mut turns) = (0, 0);
        while at != to {
            let name = |switch| graph.switch_name(switch);
            let Some(next) = self.next(at, to) else {
                return Err(TableFault::Missing { at: name(at), to: name(to), from: name(from) });
            };
            links += 1;
            if links as usize >= self.switches {
                return Err(TableFault::Circle { from: name(from), to: name(to), at: name(at) });
            }
            let goes_up = order[next.index()] < order[at.index()];
            turns += u32::from(came_down && goes_up);
            (at, came_down) = (next, !goes_up);
        }
        self.turns = self.turns.max(turns);
        self.longest = self.longest.max(links);
        Ok(())
    }

    /// The next switch from one switch to a destination; `None`: no packet comes by.
    #[inline]
    pub(super) fn next(&self, at: SwitchId, to: SwitchId) -> Option<SwitchId> {
        let next = self.next[to.index() * self.switches + at.index()];
        (next != NOWHERE).then_some(SwitchId(next))
    }

    /// Most turns from down to up on a way.
    #[inline]
    pub(super) fn turns(&self) -> u32 {
        self.turns
    }

    /// Most links of a way.
    pub(super) fn longest(&self) -> u32 {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GraphHop, GraphParameters, GraphRouting};
    use crate::family::Family;
    use crate::path::idle_path;
    use crate::proof::prove;
    use weft_units::EndpointId;

    /// The ring of seven switches, all of whose packets go up in number.
    fn one_way_ring() -> GraphParameters {
        let all = GraphParameters::examples().into_iter();
        let mut tables = all.filter(|one| one.routing == GraphRouting::Table);
        tables.find(|one| one.file.switches.len() == 7).unwrap()
    }

    /// Catches a packet that takes a shorter way than the table's, and virtual channels that are counted of
    /// shortest ways: round the ring a packet may go down and then up.
    #[test]
    fn packets_go_where_the_table_says() {
        let layout = one_way_ring().build().unwrap();
        for (from, to) in (0..7).flat_map(|from| (0..7).map(move |to| (from, to))) {
            let mut way = Vec::new();
            idle_path(&layout, EndpointId(from), EndpointId(to), |switch, _| way.push(switch.0));
            let around: Vec<u32> = (0..=(to + 7 - from) % 7).map(|step| (from + step) % 7).collect();
            assert_eq!(way, around);
        }
        prove(&layout).unwrap();
    }

    /// Catches a table that is taken though packets would be lost or go on for ever, and a message that does
    /// not name the switch.
    #[test]
    fn tables_that_lead_nowhere_are_refused() {
        let said = |change: &dyn Fn(&mut GraphParameters), title: &str| {
            let mut parameters = one_way_ring();
            change(&mut parameters);
            let misfit = parameters.check().unwrap_err();
            assert!(misfit.title.contains(title), "{}", misfit.title);
            assert!(!misfit.help.is_empty());
        };
        let hops = |one: &mut GraphParameters, change: &dyn Fn(&mut Vec<GraphHop>)| {
            change(&mut one.file.switches[3].next);
        };
        said(&|one| one.file.switches.iter_mut().for_each(|one| one.next.clear()), "no switch of the graph");
        said(&|one| hops(one, &|hops| hops.retain(|hop| hop.to != 5)), "s3 names no next hop to switch s5");
        said(&|one| hops(one, &|hops| hops.push(GraphHop { to: 5, via: 2 })), "two next hops to switch s5");
        said(&|one| hops(one, &|hops| hops[0].via = 6), "no link joins it");
        said(&|one| hops(one, &|hops| hops.iter_mut().for_each(|hop| hop.via = 2)), "in a circle");
    }
}
