//! Traffic patterns that have one definition in the literature: uniform, transpose, tornado and
//! bit-complement.
//!
//! All but uniform are permutations: endpoint s always sends to the same endpoint. Some map an endpoint
//! to itself (the diagonal of transpose); it then sends nothing.
//!
//! # Source
//! W. J. Dally, B. Towles, "Principles and Practices of Interconnection Networks", 2004, §3.2, Table 3.1.

use crate::traits::Topology;
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_units::EndpointId;

/// One of the patterns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Every other endpoint with the same probability.
    Uniform,
    /// The numbers of endpoints written as a square matrix, transposed.
    Transpose,
    /// Nearly half-way round every ring.
    Tornado,
    /// N - 1 - s: every bit of s inverted where N is a power of two.
    BitComplement,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 4] =
        [Pattern::Uniform, Pattern::Transpose, Pattern::Tornado, Pattern::BitComplement];
}

impl fmt::Display for Pattern {
    /// The name as machine files and command lines write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pattern::Uniform => "uniform",
            Pattern::Transpose => "transpose",
            Pattern::Tornado => "tornado",
            Pattern::BitComplement => "bit-complement",
        })
    }
}

/// Why a pattern does not exist on a machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum Undefined {
    /// Uniform traffic is not a permutation.
    #[error("uniform traffic has no fixed destination")]
    NoFixedDestination,
    /// Transpose needs a square.
    #[error("transpose needs a square number of endpoints, such as {near}; the machine has {endpoints}")]
    NotSquare {
        /// Endpoints of the machine.
        endpoints: u32,
        /// The nearest square.
        near: u32,
    },
    /// Some pair lies in sub-systems that no link joins.
    #[error("endpoint {from} would send to {to}, in a sub-system that no link joins to its own")]
    Unreachable {
        /// The source.
        from: EndpointId,
        /// The destination.
        to: EndpointId,
    },
}

/// How the rings of a machine lie in the numbers of its endpoints: s is
/// `slot + concentration·(x + X·(y + Y·…))`. Endpoints beyond the product of the sizes repeat the shape.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// Endpoints that share all coordinates.
    pub concentration: u32,
    /// Size of each dimension, lowest first.
    pub sizes: Vec<u32>,
}

/// A pattern in which every endpoint has one destination.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Permutation {
    /// [`transpose`].
    Transpose {
        /// Side of the square.
        side: u32,
    },
    /// [`tornado`].
    Tornado {
        /// The rings.
        shape: Shape,
    },
    /// [`bit_complement`].
    BitComplement {
        /// Endpoints of the machine.
        endpoints: u32,
    },
}

impl Permutation {
    /// The permutation of `pattern` on a machine.
    ///
    /// # Errors
    /// Where the pattern is uniform, the number of endpoints does not allow it, or it joins endpoints
    /// that cannot reach each other.
    pub fn new(pattern: Pattern, topology: &impl Topology) -> Result<Permutation, Undefined> {
        let endpoints = topology.endpoints();
        let permutation = match pattern {
            Pattern::Uniform => return Err(Undefined::NoFixedDestination),
            Pattern::Transpose => {
                let side = endpoints.isqrt();
                if side * side != endpoints {
                    let above = (side + 1) * (side + 1);
                    let near = if endpoints - side * side <= above - endpoints { side * side } else { above };
                    return Err(Undefined::NotSquare { endpoints, near });
                }
                Permutation::Transpose { side }
            }
            Pattern::Tornado => Permutation::Tornado { shape: topology.shape() },
            Pattern::BitComplement => Permutation::BitComplement { endpoints },
        };
        for from in (0..endpoints).map(EndpointId) {
            let to = permutation.destination(from);
            if !topology.reachable(from, to) {
                return Err(Undefined::Unreachable { from, to });
            }
        }
        Ok(permutation)
    }

    /// The endpoint that another sends to.
    pub fn destination(&self, source: EndpointId) -> EndpointId {
        match self {
            Permutation::Transpose { side } => transpose(*side, source),
            Permutation::Tornado { shape } => tornado(shape, source),
            Permutation::BitComplement { endpoints } => bit_complement(*endpoints, source),
        }
    }
}

/// One of the other endpoints, all equally likely if `random` is uniform over 64 bits. A machine of one
/// endpoint sends to itself.
#[inline]
pub fn uniform(endpoints: u32, source: EndpointId, random: u64) -> EndpointId {
    let other = ((u128::from(random) * u128::from(endpoints - 1)) >> 64) as u32;
    EndpointId(other + u32::from(other >= source.0 && endpoints > 1))
}

/// Row and column swapped in a square of `side` rows: i·side + j sends to j·side + i. With 4^b endpoints
/// this swaps the upper and the lower half of the bits.
#[inline]
pub fn transpose(side: u32, source: EndpointId) -> EndpointId {
    EndpointId(source.0 % side * side + source.0 / side)
}

/// In every ring of k, x sends to x + ceil(k/2) - 1 (mod k); endpoints of one switch keep their order.
/// A machine that is no torus is one ring of all its endpoints.
pub fn tornado(shape: &Shape, source: EndpointId) -> EndpointId {
    let mut weight = shape.concentration;
    let mut destination = source.0;
    for &size in &shape.sizes {
        let x = source.0 / weight % size;
        let to = (u64::from(x) + u64::from(size.div_ceil(2)) - 1) % u64::from(size);
        destination = destination - x * weight + to as u32 * weight;
        weight *= size;
    }
    EndpointId(destination)
}

/// N - 1 - s.
#[inline]
pub fn bit_complement(endpoints: u32, source: EndpointId) -> EndpointId {
    EndpointId(endpoints - 1 - source.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_textbook_examples() {
        assert_eq!(transpose(4, EndpointId(0b0111)), EndpointId(0b1101));
        assert_eq!(bit_complement(16, EndpointId(0b0101)), EndpointId(0b1010));
        let torus = Shape { concentration: 1, sizes: vec![8, 8] };
        assert_eq!(tornado(&torus, EndpointId(6 + 8)), EndpointId(1 + 8 * 4));
        let flat = Shape { concentration: 1, sizes: vec![16] };
        assert_eq!(tornado(&flat, EndpointId(3)), EndpointId(3 + 7));
        let concentrated = Shape { concentration: 3, sizes: vec![5, 2] };
        assert_eq!(tornado(&concentrated, EndpointId(2 + 3 * 4)), EndpointId(2 + 3));
    }

    #[test]
    fn uniform_reaches_every_other_endpoint_and_never_its_own() {
        let step = u64::MAX / 4;
        let reached: Vec<u32> = (0..4).map(|i| uniform(5, EndpointId(2), step * i + step / 2).0).collect();
        assert_eq!(reached, [0, 1, 3, 4]);
        assert_eq!(uniform(5, EndpointId(2), u64::MAX), EndpointId(4));
        assert_eq!(uniform(1, EndpointId(0), u64::MAX), EndpointId(0));
    }

    proptest! {
        /// Catches a pattern in which two endpoints share a destination.
        #[test]
        fn tornado_is_a_permutation(concentration in 1u32..4, sizes in prop::collection::vec(1u32..6, 1..4)) {
            let endpoints = concentration * sizes.iter().product::<u32>();
            let shape = Shape { concentration, sizes };
            let mut reached: Vec<_> = (0..endpoints).map(|s| tornado(&shape, EndpointId(s)).0).collect();
            reached.sort_unstable();
            prop_assert_eq!(reached, (0..endpoints).collect::<Vec<_>>());
        }
    }
}
