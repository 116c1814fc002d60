//! HyperX: switches at the points of a grid, each joined to all others of its row in every dimension.
//!
//! ```text
//!    ┌─────────────┐
//!   [0]───[1]───[2]        a row of three, and the same in every other dimension:
//!                          from any switch to any other in as many links as coordinates differ
//! ```
//! A hypercube is the HyperX of rows of two, the fully connected network that of a single row, the flattened
//! butterfly that of equal rows.
//!
//! Ports of a switch: its endpoints first, then for each dimension one to every other switch of the row, by
//! their coordinates.
//!
//! # Source
//! J. H. Ahn, N. Binkert, A. Davis, M. McLaren, R. S. Schreiber, "HyperX: topology, routing, and packaging of
//! efficient large-scale networks", SC 2009.
//!
//! # Not modelled
//! Several links between two switches (the paper's K). A class of links has a rate of its own instead.

mod figures;
mod parameters;
mod routing;

pub use parameters::{FullyConnectedParameters, HyperXParameters, HypercubeParameters};
pub use routing::{HyperXLayout, HyperXRouting};

use crate::pattern::Shape;
use crate::size::{MAX_ENDPOINTS, SizeError, bits_for, check_counts, in_range, product};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId};

/// Most dimensions of a HyperX: those of the largest hypercube.
pub const MAX_HYPERX_DIMENSIONS: usize = 24;

const CLASSES: [&str; 1 + MAX_HYPERX_DIMENSIONS] = [
    "endpoint", "x", "y", "z", "dim3", "dim4", "dim5", "dim6", "dim7", "dim8", "dim9", "dim10", "dim11",
    "dim12", "dim13", "dim14", "dim15", "dim16", "dim17", "dim18", "dim19", "dim20", "dim21", "dim22",
    "dim23",
];

/// One dimension, as a bit field of the address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Row {
    /// Switches of a row.
    size: u32,
    /// The lowest bit of its field in the address.
    shift: u32,
    /// The first port of this dimension.
    first_port: u32,
    /// Difference of the numbers of two neighbouring switches of a row.
    stride: u32,
}

impl Row {
    /// The coordinate of an address in this dimension.
    #[inline]
    fn coordinate(&self, address: Address) -> u32 {
        (address.0 >> self.shift) as u32 & ((1 << bits_for(self.size)) - 1)
    }

    /// The port of the switch with coordinate `here` to that with coordinate `there`, which is another.
    #[inline]
    fn port(&self, here: u32, there: u32) -> PortId {
        PortId(self.first_port + there - u32::from(there > here))
    }
}

/// A HyperX with one or more endpoints at every switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HyperX {
    rows: Vec<Row>,
    concentration: u32,
    switches: u32,
    ports: u32,
    /// Whether all rows are powers of two, so that the number of a switch has the fields of its address.
    is_binary: bool,
}

impl HyperX {
    /// A HyperX of rows of these sizes, with so many endpoints at every switch.
    ///
    /// # Errors
    /// Where there are no or more than [`MAX_HYPERX_DIMENSIONS`] dimensions, a size or the concentration is
    /// zero, or the machine exceeds the limits on endpoints, switches or ports.
    pub fn new(sizes: &[u32], concentration: u32) -> Result<HyperX, SizeError> {
        in_range("the number of dimensions", sizes.len() as u64, 1, MAX_HYPERX_DIMENSIONS as u64)?;
        let switches = product(sizes.iter().map(|&size| u64::from(size)));
        let ports = ports_per_switch(sizes, concentration);
        check_counts(
            switches.saturating_mul(u128::from(concentration)),
            switches,
            switches.saturating_mul(ports),
        )?;
        in_range("endpoints per switch (concentration)", u64::from(concentration), 1, MAX_ENDPOINTS)?;
        let (mut shift, mut first_port, mut stride) = (bits_for(concentration), concentration, 1);
        let mut rows = Vec::new();
        for &size in sizes {
            in_range("the size of a dimension", u64::from(size), 1, crate::MAX_SWITCHES)?;
            rows.push(Row { size, shift, first_port, stride });
            shift += bits_for(size);
            first_port += size - 1;
            stride *= size;
        }
        let is_binary = sizes.iter().all(|size| size.is_power_of_two());
        // Both counts are below their limits, checked above.
        Ok(HyperX { rows, concentration, switches: switches as u32, ports: ports as u32, is_binary })
    }

    /// Switches of a row in every dimension.
    pub fn sizes(&self) -> Vec<u32> {
        self.rows.iter().map(|row| row.size).collect()
    }

    /// Endpoints per switch.
    #[inline]
    pub fn concentration(&self) -> u32 {
        self.concentration
    }

    /// The bits of an address that tell the endpoints of one switch apart.
    #[inline]
    fn slot_mask(&self) -> u64 {
        (1 << self.rows[0].shift) - 1
    }

    /// The dimension of a port; none for those of endpoints.
    #[inline]
    fn dimension(&self, port: PortId) -> Option<usize> {
        let behind = self.rows.partition_point(|row| row.first_port <= port.0);
        // A row of one has no ports: the next dimension begins at the same.
        if port.0 < self.concentration { None } else { Some(behind - 1) }
    }

    /// The port of the shortest way from a switch towards another in the lowest dimension in which they
    /// differ; `None`: they are the same switch.
    #[inline]
    fn towards(&self, from: Address, to: Address) -> Option<PortId> {
        let differ = (from.0 ^ to.0) & !self.slot_mask();
        if differ == 0 {
            return None;
        }
        let lowest = differ.trailing_zeros();
        // Rows of one have no field: of rows that begin at the same bit the last is meant.
        let row = &self.rows[self.rows.partition_point(|row| row.shift <= lowest) - 1];
        Some(row.port(row.coordinate(from), row.coordinate(to)))
    }

    /// Links between two switches on the shortest way.
    #[inline]
    fn distance(&self, from: Address, to: Address) -> u32 {
        self.rows.iter().map(|row| u32::from(row.coordinate(from) != row.coordinate(to))).sum()
    }

    /// The switch at an address.
    fn switch_at(&self, address: Address) -> SwitchId {
        SwitchId(self.rows.iter().map(|row| row.stride * row.coordinate(address)).sum())
    }
}

/// Ports of every switch.
fn ports_per_switch(sizes: &[u32], concentration: u32) -> u128 {
    let others = sizes.iter().map(|&size| u128::from(size.saturating_sub(1)));
    others.sum::<u128>() + u128::from(concentration)
}

impl Topology for HyperX {
    fn endpoints(&self) -> u32 {
        self.switches * self.concentration
    }

    fn switches(&self) -> u32 {
        self.switches
    }

    #[inline]
    fn ports(&self, _: SwitchId) -> u32 {
        self.ports
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        let Some(dimension) = self.dimension(port) else {
            return Attachment::Endpoint(EndpointId(switch.0 * self.concentration + port.0));
        };
        let row = &self.rows[dimension];
        let (here, other) = (switch.0 / row.stride % row.size, port.0 - row.first_port);
        let there = other + u32::from(other >= here);
        Attachment::Switch(SwitchId(switch.0 - here * row.stride + there * row.stride), row.port(there, here))
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        (SwitchId(endpoint.0 / self.concentration), PortId(endpoint.0 % self.concentration))
    }

    #[inline]
    fn link_class(&self, _: SwitchId, port: PortId) -> LinkClass {
        LinkClass(self.dimension(port).map_or(0, |dimension| 1 + dimension as u8))
    }

    fn link_classes(&self) -> Vec<&str> {
        CLASSES[..1 + self.rows.len()].to_vec()
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        if self.is_binary {
            return Address(u64::from(switch.0) << self.rows[0].shift);
        }
        let mut rest = switch.0;
        let mut address = 0;
        for row in &self.rows {
            address |= u64::from(rest % row.size) << row.shift;
            rest /= row.size;
        }
        Address(address)
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        let (switch, port) = self.attachment(endpoint);
        Address(self.switch_address(switch).0 | u64::from(port.0))
    }

    fn shape(&self) -> Shape {
        Shape { concentration: self.concentration, sizes: self.sizes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a port that leads to the wrong switch of its row, in a row of one above all.
    #[test]
    fn ports_lead_to_the_others_of_the_row() {
        let hyperx = HyperX::new(&[3, 1, 2], 2).unwrap();
        assert_eq!((hyperx.endpoints(), hyperx.switches(), hyperx.ports(SwitchId(0))), (12, 6, 5));
        let peers = |switch| [2, 3, 4].map(|port| hyperx.peer(SwitchId(switch), PortId(port)));
        let at = |switch, port| Attachment::Switch(SwitchId(switch), PortId(port));
        assert_eq!(peers(0), [at(1, 2), at(2, 2), at(3, 4)]);
        assert_eq!(peers(4), [at(3, 2), at(5, 3), at(1, 4)]);
        assert_eq!([1, 2, 3, 4].map(|port| hyperx.link_class(SwitchId(0), PortId(port)).0), [0, 1, 1, 3]);
    }

    /// Catches ports that are counted for the switch itself.
    #[test]
    fn a_switch_has_a_port_for_each_other_of_its_rows() {
        let hyperx = HyperX::new(&[2, 4], 4).unwrap();
        assert_eq!((hyperx.endpoints(), hyperx.ports(SwitchId(0))), (32, 8));
    }

    #[test]
    fn impossible_sizes_are_refused_with_the_limit() {
        let text = |sizes: &[u32], concentration| HyperX::new(sizes, concentration).unwrap_err().to_string();
        assert!(text(&[10_000, 10_000], 1).contains("100000000 endpoints; the limit is 16777216"));
        assert!(text(&[16_777_216], 1).contains("ports; the limit is"));
        assert!(text(&[4, 0], 1).contains("size of a dimension is 0; it must be 1 to"));
        assert!(text(&[4], 0).contains("concentration"));
        assert!(text(&[], 1).contains("number of dimensions is 0; it must be 1 to 24"));
        assert!(text(&[u32::MAX; 24], u32::MAX).contains("the limit is"));
    }
}
