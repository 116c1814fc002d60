//! Figures of a graph. Its loads are counted.

use super::table::Table;
use super::{GraphLayout, GraphRouting};
use crate::figures::{ClosedForms, mean_over_pairs, ordered_pairs};
use crate::traits::{RoutedTopology, Topology};
use weft_units::SwitchId;

impl ClosedForms for GraphLayout {
    fn diameter(&self) -> Option<u32> {
        Some(self.distances()?.diameter())
    }

    fn mean_distance(&self) -> Option<f64> {
        let graph = self.topology();
        let switches = || (0..graph.with_endpoints).map(SwitchId);
        let endpoints = |switch| u128::from(graph.endpoints_at(switch));
        let distances = self.distances()?;
        let to = |to| {
            let links = distances.to(to);
            let sum: u128 = switches().map(|from| endpoints(from) * u128::from(links[from.index()])).sum();
            sum * endpoints(to)
        };
        Some(mean_over_pairs(switches().map(to).sum(), ordered_pairs(graph.endpoints())))
    }

    fn longest_route(&self) -> Option<u32> {
        if let Some(table) = self.table() {
            return Some(table.longest());
        }
        // To the drawn switch, and from there.
        let parts = if self.routing().takes_detours() { 2 } else { 1 };
        let diameter = self.distances().map(|distances| parts * distances.diameter());
        diameter.or_else(|| self.longest_by_modules())
    }

    fn idle_detour(&self) -> u32 {
        match self.routing() {
            GraphRouting::Valiant => self.distances().map_or(0, |distances| 2 * distances.diameter()),
            // A hash chooses among gateways, also those that lie farther.
            GraphRouting::Hierarchical { .. } => self.longest_by_modules().unwrap_or(0),
            // A table may lead any way round.
            GraphRouting::Table => self.table().map_or(0, Table::longest),
            _ => 0,
        }
    }
}
