//! Tornado: just under half-way around every ring.

use super::{Grid, PatternError};
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// In every dimension of k places each endpoint sends ⌈k/2⌉ − 1 places up, around the end: all
/// traffic of a ring travels the same way, the worst case of minimal routing on a torus.
///
/// # Source
/// W. Dally, B. Towles, Principles and Practices of Interconnection Networks, 2004, §3.2, table 3.1.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tornado {
    grid: Grid,
}

impl Tornado {
    /// The tornado on `grid`.
    ///
    /// # Errors
    /// [`PatternError::TooFewEndpoints`] where no dimension has three places: nobody would move.
    pub fn new(grid: &Grid) -> Result<Tornado, PatternError> {
        let longest = grid.dims().iter().copied().max().unwrap_or(0);
        PatternError::require("tornado", longest, 3)?;
        Ok(Tornado { grid: grid.clone() })
    }

    /// Where every message of `source` goes.
    #[inline]
    pub fn destination(&self, source: EndpointId) -> EndpointId {
        let (mut rest, mut stride, mut to) = (source.0, 1, 0);
        for &size in self.grid.dims() {
            let shifted = u64::from(rest % size) + u64::from(size.div_ceil(2) - 1);
            to += (shifted % u64::from(size)) as u32 * stride;
            rest /= size;
            stride *= size;
        }
        EndpointId(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a shift of k/2, which has two shortest ways and is no tornado.
    #[test]
    fn an_8x5_torus_by_hand() {
        let pattern = Tornado::new(&Grid::torus(&[8, 5]).unwrap()).unwrap();
        assert_eq!(pattern.destination(EndpointId(0)).0, 3 + 2 * 8);
        assert_eq!(pattern.destination(EndpointId(7 + 4 * 8)).0, 2 + 8);
    }
}
