//! Nearest neighbour: each endpoint exchanges with those next to it.

use super::{Grid, PatternError};
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// Each endpoint sends to its neighbours in turn: one up, one down in the first dimension of the
/// grid, then in the next, around the ends. On a torus the grid is the machine's; elsewhere it is the
/// line of endpoints, and the neighbours are those before and after.
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
    /// Neighbours on `grid`. A dimension of two has one neighbour, a dimension of one has none.
    ///
    /// # Errors
    /// [`PatternError::TooFewEndpoints`] where the grid has one place.
    pub fn new(grid: &Grid) -> Result<NearestNeighbour, PatternError> {
        PatternError::require("nearest-neighbour", grid.endpoints(), 2)?;
        let mut moves = Vec::new();
        let mut stride = 1;
        for &size in grid.dims() {
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

    /// Where message number `message`, counted from 0, of `source` goes.
    #[inline]
    pub fn destination(&self, source: EndpointId, message: u64) -> EndpointId {
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
        let pattern = NearestNeighbour::new(&Grid::torus(&[4, 2, 3]).unwrap()).unwrap();
        let neighbours =
            |source| (0..5).map(|m| pattern.destination(EndpointId(source), m).0).collect::<Vec<_>>();
        assert_eq!(neighbours(0), [1, 3, 4, 8, 16]);
        assert_eq!(neighbours(23), [20, 22, 19, 7, 15]);
    }

    proptest! {
        /// Catches a step that leaves the grid or is not undone by a neighbour's.
        #[test]
        fn neighbourhood_is_mutual(dims in prop::collection::vec(1u32..6, 1..4), s: u32) {
            prop_assume!(dims.iter().product::<u32>() > 1);
            let grid = Grid::torus(&dims).unwrap();
            let pattern = NearestNeighbour::new(&grid).unwrap();
            let source = EndpointId(s % grid.endpoints());
            for message in 0..pattern.moves.len() as u64 {
                let to = pattern.destination(source, message);
                prop_assert!(to.0 < grid.endpoints() && to != source);
                prop_assert!((0..pattern.moves.len() as u64).any(|back| pattern.destination(to, back) == source));
            }
        }
    }
}
