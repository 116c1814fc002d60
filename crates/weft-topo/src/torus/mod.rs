//! n-dimensional torus and mesh.
//!
//! ```text
//!   0 --- 1 --- 2 --- 3      a dimension of size 4; the link 3-0 only where it wraps.
//!   '-----------------'      Each switch joins its two neighbours in every dimension.
//! ```
//! Ports of a switch: its endpoints first, then for each dimension the port towards the higher
//! coordinate and the one towards the lower. A ring of two has one link, not two, and a dimension of
//! one has none; their spare ports are joined to nothing.

mod figures;
mod parameters;
mod routing;

pub use parameters::{MeshParameters, TorusParameters, TorusRouting};
pub use routing::DimensionOrder;

use crate::pattern::Shape;
use crate::size::{SizeError, bits_for, check_counts, in_range, product};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId};

/// Most dimensions of a torus.
pub const MAX_DIMENSIONS: usize = 8;

const CLASSES: [&str; 1 + MAX_DIMENSIONS] =
    ["endpoint", "x", "y", "z", "dim3", "dim4", "dim5", "dim6", "dim7"];

/// One dimension: how many switches it has and whether its ends are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Dimension {
    /// Switches along it.
    pub size: u64,
    /// Whether the last is joined to the first. Without effect below three switches.
    pub wrap: bool,
}

/// One dimension as the router sees it: a bit field of the address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Axis {
    /// Switches along it.
    pub size: u32,
    /// Whether it is a ring of three or more.
    pub wraps: bool,
    /// The lowest bit of its field in the address.
    pub shift: u32,
    /// The field, unshifted.
    pub mask: u32,
}

impl Axis {
    /// One that is not there: its field lies beyond every address.
    const NONE: Axis = Axis { size: 1, wraps: false, shift: u64::BITS, mask: 0 };

    /// The coordinate of an address along this axis.
    #[inline]
    pub fn coordinate(&self, address: Address) -> u32 {
        (address.0 >> self.shift) as u32 & self.mask
    }

    /// The neighbour's coordinate, or none at the edge.
    fn neighbour(&self, coordinate: u32, down: bool) -> Option<u32> {
        let last = self.size - 1;
        match (down, coordinate) {
            (false, c) if c < last => Some(c + 1),
            (true, c) if c > 0 => Some(c - 1),
            (false, _) if self.wraps => Some(0),
            (true, _) if self.wraps => Some(last),
            _ => None,
        }
    }
}

/// An n-dimensional torus or mesh with one or more endpoints at every switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Torus {
    axes: [Axis; MAX_DIMENSIONS],
    dimensions: u32,
    concentration: u32,
    switches: u32,
}

impl Torus {
    /// A torus with so many endpoints at every switch.
    ///
    /// # Errors
    /// Where there are no or more than [`MAX_DIMENSIONS`] dimensions, a size or the concentration is
    /// zero, or the machine exceeds the limits on endpoints, switches or ports.
    pub fn new(dimensions: &[Dimension], concentration: u64) -> Result<Torus, SizeError> {
        in_range("the number of dimensions", dimensions.len() as u64, 1, MAX_DIMENSIONS as u64)?;
        let switches = product(dimensions.iter().map(|d| d.size));
        let per_switch = concentration.saturating_add(2 * dimensions.len() as u64);
        check_counts(
            switches.saturating_mul(u128::from(concentration)),
            switches,
            switches.saturating_mul(u128::from(per_switch)),
        )?;
        let concentration =
            in_range("endpoints per switch (concentration)", concentration, 1, crate::MAX_ENDPOINTS)?;
        let mut axes = [Axis::NONE; MAX_DIMENSIONS];
        let mut shift = bits_for(concentration);
        for (axis, dimension) in axes.iter_mut().zip(dimensions) {
            let size = in_range("the size of a dimension", dimension.size, 1, crate::MAX_SWITCHES)?;
            let bits = bits_for(size);
            *axis = Axis { size, wraps: dimension.wrap && size > 2, shift, mask: (1 << bits) - 1 };
            shift += bits;
        }
        Ok(Torus {
            axes,
            dimensions: dimensions.len() as u32,
            concentration,
            switches: switches as u32, // below the limit, checked above
        })
    }

    /// The axis of dimension `d`.
    #[inline]
    pub(crate) fn axis(&self, d: usize) -> &Axis {
        &self.axes[d]
    }

    /// The axes, lowest dimension first.
    #[inline]
    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes[..self.dimensions as usize]
    }

    /// The lowest dimension in which two addresses of which these bits differ, one of them a switch's, are
    /// apart.
    #[inline]
    pub(crate) fn first_dimension(&self, differ: u64) -> usize {
        let lowest = differ.trailing_zeros();
        self.axes[1..].iter().map(|axis| usize::from(axis.shift <= lowest)).sum()
    }

    /// Switches along each dimension.
    pub fn sizes(&self) -> Vec<u32> {
        self.axes().iter().map(|axis| axis.size).collect()
    }

    /// Whether dimension `d` is a ring of at least three switches.
    pub fn wraps(&self, d: usize) -> bool {
        self.axes()[d].wraps
    }

    /// Endpoints per switch.
    #[inline]
    pub fn concentration(&self) -> u32 {
        self.concentration
    }

    /// The bits of an address that tell the endpoints of one switch apart.
    #[inline]
    pub(crate) fn slot_mask(&self) -> u64 {
        (1 << self.axes[0].shift) - 1
    }

    /// The switch at an address.
    pub(crate) fn switch_at(&self, address: Address) -> SwitchId {
        SwitchId(self.axes().iter().rev().fold(0, |id, axis| id * axis.size + axis.coordinate(address)))
    }

    /// The dimension of a port and whether it points to lower coordinates; none for endpoint ports.
    #[inline]
    pub(crate) fn direction(&self, port: PortId) -> Option<(usize, bool)> {
        let link = port.0.checked_sub(self.concentration)?;
        Some(((link / 2) as usize, link % 2 == 1))
    }

    /// The port along dimension `d`, up or down.
    #[inline]
    pub(crate) fn port(&self, d: usize, down: bool) -> PortId {
        PortId(self.concentration + 2 * d as u32 + u32::from(down))
    }

    /// The address of the neighbour along dimension `d`, if there is one.
    pub(crate) fn neighbour(&self, address: Address, d: usize, down: bool) -> Option<Address> {
        let axis = &self.axes[d];
        let to = axis.neighbour(axis.coordinate(address), down)?;
        Some(Address(address.0 & !(u64::from(axis.mask) << axis.shift) | u64::from(to) << axis.shift))
    }
}

impl Topology for Torus {
    fn endpoints(&self) -> u32 {
        self.switches * self.concentration
    }

    fn switches(&self) -> u32 {
        self.switches
    }

    #[inline]
    fn ports(&self, _switch: SwitchId) -> u32 {
        self.concentration + 2 * self.dimensions
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        let Some((d, down)) = self.direction(port) else {
            return Attachment::Endpoint(EndpointId(switch.0 * self.concentration + port.0));
        };
        match self.neighbour(self.switch_address(switch), d, down) {
            Some(address) => Attachment::Switch(self.switch_at(address), self.port(d, !down)),
            None => Attachment::Nothing,
        }
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        (SwitchId(endpoint.0 / self.concentration), PortId(endpoint.0 % self.concentration))
    }

    #[inline]
    fn link_class(&self, _switch: SwitchId, port: PortId) -> LinkClass {
        LinkClass(self.direction(port).map_or(0, |(d, _)| 1 + d as u8))
    }

    fn link_classes(&self) -> Vec<&str> {
        CLASSES[..1 + self.dimensions as usize].to_vec()
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        let mut rest = switch.0;
        let mut address = 0;
        for axis in self.axes() {
            address |= u64::from(rest % axis.size) << axis.shift;
            rest /= axis.size;
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

    fn ring(size: u64) -> Dimension {
        Dimension { size, wrap: true }
    }

    #[test]
    fn a_ring_of_two_has_one_link_and_one_of_one_has_none() {
        let torus = Torus::new(&[ring(2), ring(1), ring(3)], 1).unwrap();
        let joined = |port| torus.peer(SwitchId(0), PortId(port)) != Attachment::Nothing;
        assert_eq!([1, 2, 3, 4, 5, 6].map(joined), [true, false, false, false, true, true]);
        assert_eq!(torus.peer(SwitchId(0), PortId(1)), Attachment::Switch(SwitchId(1), PortId(2)));
        assert_eq!(torus.peer(SwitchId(0), PortId(6)), Attachment::Switch(SwitchId(4), PortId(5)));
    }

    #[test]
    fn impossible_sizes_are_refused_with_the_limit() {
        let text = |sizes: &[u64], concentration| {
            let dimensions: Vec<_> = sizes.iter().map(|&size| ring(size)).collect();
            Torus::new(&dimensions, concentration).unwrap_err().to_string()
        };
        assert_eq!(
            text(&[10_000, 10_000, 10_000], 1),
            "the machine would have 1000000000000 endpoints; the limit is 16777216"
        );
        assert!(text(&[u64::MAX, u64::MAX, u64::MAX], u64::MAX).contains("the limit is"));
        assert!(text(&[4, 0], 1).contains("size of a dimension is 0; it must be 1 to"));
        assert!(text(&[4], 0).contains("concentration"));
        assert!(text(&[0], u64::MAX).contains("must be 1 to"));
        assert!(text(&[], 1).contains("number of dimensions is 0; it must be 1 to 8"));
        assert!(text(&[2; 9], 1).contains("number of dimensions is 9"));
    }
}
