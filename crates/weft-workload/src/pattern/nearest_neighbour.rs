//! Nearest neighbour: each endpoint exchanges with those next to it.

use super::{PatternError, PatternInput, TrafficPattern};
use serde::{Deserialize, Serialize};
use weft_topo::{Shape, Topology};
use weft_units::EndpointId;

/// Each endpoint sends to its neighbours in turn: one up, one down in the first dimension of the
/// machine's shape, then in the next, around the ends. Endpoints of one switch keep their place. On a
/// machine that is no torus the neighbours are those before and after in endpoint order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NearestNeighbour {
    /// Per neighbour: how the endpoint number changes.
    moves: Vec<Move>,
}

/// One step along one dimension of a grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Move {
    /// How far apart in endpoint order two neighbours in this dimension lie.
    stride: u32,
    /// Size of the dimension, at least 2.
    size: u32,
    up: bool,
}

impl NearestNeighbour {
    /// Neighbours in `shape`. A dimension of two has one neighbour, a dimension of one has none.
    ///
    /// # Errors
    /// [`PatternError::TooFewEndpoints`] where no dimension has two places.
    pub fn new(shape: &Shape) -> Result<NearestNeighbour, PatternError> {
        let longest = shape.sizes.iter().copied().max().unwrap_or(0);
        PatternError::require("nearest-neighbour", longest, 2)?;
        let mut moves = Vec::new();
        let mut stride = shape.concentration;
        for &size in &shape.sizes {
            if size > 1 {
                moves.push(Move { stride, size, up: true });
            }
            if size > 2 {
                moves.push(Move { stride, size, up: false });
            }
            stride *= size;
        }
        Ok(NearestNeighbour { moves })
    }
}

impl TrafficPattern for NearestNeighbour {
    fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<NearestNeighbour, PatternError> {
        NearestNeighbour::new(&input.machine.shape())
    }

    #[inline]
    fn destination(&self, source: EndpointId, message: u64, _: &mut impl FnMut() -> u64) -> EndpointId {
        let Move { stride, size, up } = self.moves[(message % self.moves.len() as u64) as usize];
        let coordinate = source.0 / stride % size;
        EndpointId(match up {
            true if coordinate + 1 == size => source.0 - (size - 1) * stride,
            true => source.0 + stride,
            false if coordinate == 0 => source.0 + (size - 1) * stride,
            false => source.0 - stride,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_neighbours_on_a_4x2x3_torus_by_hand() {
        let pattern = NearestNeighbour::new(&Shape { concentration: 1, sizes: vec![4, 2, 3] }).unwrap();
        let to = |source, message| pattern.destination(EndpointId(source), message, &mut || 0).0;
        let neighbours = |source| (0..5).map(|message| to(source, message)).collect::<Vec<_>>();
        assert_eq!(neighbours(0), [1, 3, 4, 8, 16]);
        assert_eq!(neighbours(23), [20, 22, 19, 7, 15]);
    }

    proptest! {
        /// Catches a step that leaves the machine, ends at another place of a switch, or is not undone by a
        /// neighbour's.
        #[test]
        fn neighbourhood_is_mutual(
            concentration in 1u32..4, sizes in prop::collection::vec(1u32..6, 1..4), s: u32,
        ) {
            prop_assume!(sizes.iter().any(|&size| size > 1));
            let endpoints = concentration * sizes.iter().product::<u32>();
            let pattern = NearestNeighbour::new(&Shape { concentration, sizes }).unwrap();
            let source = EndpointId(s % endpoints);
            for message in 0..pattern.moves.len() as u64 {
                let to = pattern.destination(source, message, &mut || 0);
                prop_assert!(to.0 < endpoints && to != source);
                prop_assert_eq!(to.0 % concentration, source.0 % concentration);
                let back = |step| pattern.destination(to, step, &mut || 0);
                prop_assert!((0..pattern.moves.len() as u64).map(back).any(|to| to == source));
            }
        }
    }
}
