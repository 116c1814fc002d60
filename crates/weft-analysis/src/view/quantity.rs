//! The quantities that colour links.

use serde::{Deserialize, Serialize};
use weft_results::{StoredResult, Table};
use weft_units::Energy;

/// A quantity of links that colours them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Share of the time in which it was sending.
    Utilization,
    /// Bytes that wait at it: behind it in the input queue of its switch, and before it in the output queue.
    /// Of a whole run the most at any look of telemetry.
    Occupancy,
    /// Share of the time in which a packet stood ready while the buffer behind it was full.
    Stall,
    /// Share of the time in which one of its virtual channels was paused.
    Pause,
    /// Packets lost, corrupted or sent again.
    Errors,
    /// Share of the time in which it was off, by a failure.
    Off,
    /// Energy that it took.
    Energy,
    /// Share of the time in which it slept, in low power or off.
    Sleep,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; 8] = [
        Quantity::Utilization,
        Quantity::Occupancy,
        Quantity::Stall,
        Quantity::Pause,
        Quantity::Errors,
        Quantity::Off,
        Quantity::Energy,
        Quantity::Sleep,
    ];

    /// The name in addresses.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Utilization => "utilization",
            Quantity::Occupancy => "occupancy",
            Quantity::Stall => "stall",
            Quantity::Pause => "pause",
            Quantity::Errors => "errors",
            Quantity::Off => "off",
            Quantity::Energy => "energy",
            Quantity::Sleep => "sleep",
        }
    }

    /// The unit of its values; empty for shares of one.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Occupancy => "bytes",
            Quantity::Errors => "packets",
            Quantity::Energy => "uJ",
            _ => "",
        }
    }

    /// The quantity of a name.
    pub fn of(name: &str) -> Option<Quantity> {
        Quantity::ALL.into_iter().find(|quantity| quantity.name() == name)
    }

    /// The table of its values for a whole run.
    pub const fn table(self) -> Table {
        match self {
            Quantity::Occupancy => Table::Queues,
            _ => Table::Links,
        }
    }

    /// The table of its values over time; `None`: telemetry has none.
    pub const fn table_over_time(self) -> Option<Table> {
        match self {
            Quantity::Occupancy => Some(Table::Queues),
            Quantity::Utilization | Quantity::Stall | Quantity::Pause => Some(Table::Rates),
            Quantity::Energy | Quantity::Sleep => Some(Table::Rates),
            Quantity::Errors | Quantity::Off => None,
        }
    }

    /// Whether a result has it for whole runs, and over time.
    pub fn is_in(self, result: &StoredResult) -> (bool, bool) {
        let of_power = matches!(self, Quantity::Energy | Quantity::Sleep);
        let is_known = !of_power || result.manifest.totals.links_energy > Energy::ZERO;
        let over_time = self.table_over_time().is_some_and(|table| result.has(table));
        (is_known && result.has(self.table()), is_known && over_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_known_by_their_names() {
        assert!(Quantity::ALL.into_iter().all(|quantity| Quantity::of(quantity.name()) == Some(quantity)));
        assert_eq!(Quantity::of("colour"), None);
    }
}
