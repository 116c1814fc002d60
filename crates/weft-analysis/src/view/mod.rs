//! Contents of the page of `weft view`: figures and history of every link, switch, endpoint and message.
//!
//! ```text
//!  tables ──► totals   a value per link                ──► colours of the machine
//!         ──► Frames   a value per link and interval   ──► the same over time, histories
//!         ──► details  rows of one link, switch, endpoint
//!         ──► messages the slowest, those between two endpoints, their pieces
//! ```
//! Links have numbers here ([`LinkNumbers`]), so that a value per link is an array.

mod details;
mod frames;
mod messages;
mod totals;

pub use details::{EndpointDetails, LinkDetails, SwitchDetails, endpoint, link, switch};
pub use frames::{Frames, MAX_ENTRIES, MAX_INTERVALS};
pub use messages::{MessageFilter, Messages, PairPieces, PieceSum, between, messages, pieces};
pub use totals::{held, totals};

use serde::{Deserialize, Serialize};
use weft_results::{StoredResult, Table};
use weft_units::{EndpointId, Energy, PortId, SwitchId};

/// Numbers of the directions of links: first those that leave endpoints, by endpoint; then those that leave
/// switches, by switch and port. Ports without a link have a number too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LinkNumbers {
    /// Endpoints of the machine.
    pub endpoints: u32,
    /// For every switch the number of the link that leaves by its port 0; then the end of all numbers.
    pub first: Vec<u32>,
    /// For every port of every switch the number of the other direction of its link; `None`: no link.
    pub reverse: Vec<Option<u32>>,
}

impl LinkNumbers {
    /// All numbers.
    pub fn count(&self) -> usize {
        self.first.last().map_or(self.endpoints, |end| *end) as usize
    }

    /// The link that leaves an endpoint, or a switch by a port; `None` where the machine has none.
    pub fn leaving(
        &self,
        endpoint: Option<EndpointId>,
        switch: Option<SwitchId>,
        port: Option<PortId>,
    ) -> Option<u32> {
        match (endpoint, switch, port) {
            (Some(endpoint), ..) => (endpoint.0 < self.endpoints).then_some(endpoint.0),
            (None, Some(switch), Some(port)) => self.ports(switch)?.nth(port.index()),
            _ => None,
        }
    }

    /// The link that arrives at a port of a switch.
    pub fn arriving(&self, switch: SwitchId, port: PortId) -> Option<u32> {
        let leaving = self.leaving(None, Some(switch), Some(port))?;
        *self.reverse.get((leaving - self.endpoints) as usize)?
    }

    /// The links that leave a switch, by port.
    pub fn ports(&self, switch: SwitchId) -> Option<std::ops::Range<u32>> {
        let begin = *self.first.get(switch.index())?;
        Some(begin..*self.first.get(switch.index() + 1)?)
    }
}

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

    /// Two endpoints at one switch, whose port 1 is empty.
    pub(super) fn star() -> LinkNumbers {
        LinkNumbers { endpoints: 2, first: vec![2, 5], reverse: vec![Some(0), None, Some(1)] }
    }

    /// Catches a number of another link, and a panic at ports that no machine has.
    #[test]
    fn links_are_numbered_by_what_they_leave() {
        let numbers = star();
        assert_eq!(numbers.count(), 5);
        assert_eq!(numbers.leaving(Some(EndpointId(1)), None, None), Some(1));
        assert_eq!(numbers.leaving(Some(EndpointId(2)), None, None), None);
        assert_eq!(numbers.leaving(None, Some(SwitchId(0)), Some(PortId(2))), Some(4));
        assert_eq!(numbers.leaving(None, Some(SwitchId(0)), Some(PortId(3))), None);
        assert_eq!(numbers.leaving(None, Some(SwitchId(1)), Some(PortId(0))), None);
        assert_eq!(numbers.arriving(SwitchId(0), PortId(2)), Some(1));
        assert_eq!(numbers.arriving(SwitchId(0), PortId(1)), None);
    }

    #[test]
    fn quantities_are_known_by_their_names() {
        assert!(Quantity::ALL.into_iter().all(|quantity| Quantity::of(quantity.name()) == Some(quantity)));
        assert_eq!(Quantity::of("colour"), None);
    }
}
