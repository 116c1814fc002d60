//! The places of endpoints: node coordinates and IntraNode ports.
//!
//! ```text
//!   endpoint ─┬─ node: x fastest, then y, then z
//!             └─ switch port; its IntraNode ports are those of the endpoint's interface
//! ```
//! # Source
//! D2.8 appendix B: a destination is `dest_x`, `dest_y`, `dest_z` and `intra_dest`.

use super::header::{Coordinates, Field, FieldError};
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// The grid of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lattice {
    /// Nodes along x, y and z.
    pub sizes: [u32; 3],
    /// Endpoints of a node.
    pub endpoints_per_node: u32,
    /// IntraNode ports of an endpoint.
    pub ports: u32,
}

impl Lattice {
    /// The grid of up to three dimensions; `None`: there are more.
    pub fn new(dims: &[u32], endpoints_per_node: u32, ports: u32) -> Option<Lattice> {
        let mut sizes = [1; 3];
        sizes.get_mut(..dims.len())?.copy_from_slice(dims);
        Some(Lattice { sizes, endpoints_per_node, ports })
    }

    /// Checks that headers can name every node and port.
    ///
    /// # Errors
    /// The first field of the header that is too narrow, with the largest value that it would hold.
    pub fn check(&self) -> Result<(), FieldError> {
        let [x, y, z] = self.sizes.map(u64::from);
        let ports = u64::from(self.endpoints_per_node) * u64::from(self.ports);
        let needed = [(Field::DestX, x), (Field::DestY, y), (Field::DestZ, z), (Field::IntraDest, ports)];
        match needed.into_iter().find(|(field, count)| *count > field.values()) {
            Some((field, count)) => Err(FieldError { field, value: count - 1 }),
            None => Ok(()),
        }
    }

    /// The node of an endpoint.
    pub fn coordinates(&self, endpoint: EndpointId) -> Coordinates {
        let node = endpoint.0 / self.endpoints_per_node;
        let [width, height, _] = self.sizes;
        Coordinates { x: node % width, y: node / width % height, z: node / width / height }
    }

    /// The IntraNode port of its node that `interface` of an endpoint is.
    pub fn port(&self, endpoint: EndpointId, interface: u16) -> u32 {
        endpoint.0 % self.endpoints_per_node * self.ports + u32::from(interface)
    }

    /// The first endpoint of the node with these coordinates; `None`: there is no such node.
    pub fn endpoint(&self, at: Coordinates) -> Option<EndpointId> {
        let [width, height, depth] = self.sizes;
        let inside = at.x < width && at.y < height && at.z < depth;
        let node =
            (u64::from(at.z) * u64::from(height) + u64::from(at.y)) * u64::from(width) + u64::from(at.x);
        let first = node * u64::from(self.endpoints_per_node);
        inside.then(|| u32::try_from(first).ok().map(EndpointId)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches axes that are exchanged, and ports that two endpoints share.
    #[test]
    fn every_endpoint_has_a_place_of_its_own() {
        let lattice = Lattice::new(&[4, 3, 2], 2, 3).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for endpoint in (0..48).map(EndpointId) {
            let at = lattice.coordinates(endpoint);
            assert_eq!(lattice.endpoint(at).unwrap().0, endpoint.0 / 2 * 2);
            for interface in 0..3 {
                assert!(seen.insert((at, lattice.port(endpoint, interface))));
            }
        }
        assert_eq!(lattice.coordinates(EndpointId(2)), Coordinates { x: 1, y: 0, z: 0 });
        assert_eq!(lattice.endpoint(Coordinates { x: 0, y: 3, z: 0 }), None);
    }

    /// Catches limits that are off by one.
    #[test]
    fn the_header_limits_the_grid() {
        let check = |dims: &[u32], endpoints, ports| Lattice::new(dims, endpoints, ports).unwrap().check();
        assert_eq!(check(&[64, 32, 32], 2, 8), Ok(()));
        for (dims, endpoints, ports, field, value) in [
            (&[65][..], 1, 1, Field::DestX, 64),
            (&[64, 33], 1, 1, Field::DestY, 32),
            (&[1, 1, 40], 1, 1, Field::DestZ, 39),
            (&[2], 3, 6, Field::IntraDest, 17),
        ] {
            assert_eq!(check(dims, endpoints, ports), Err(FieldError { field, value }));
        }
        assert_eq!(Lattice::new(&[2; 4], 1, 1), None);
    }
}
