//! The grid of endpoints that some patterns are defined on.

use super::PatternError;
use serde::{Deserialize, Serialize};

/// How endpoints lie, in endpoint order: the first dimension varies fastest, and every dimension
/// closes to a ring. A machine that is no torus is one ring of all its endpoints.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grid {
    dims: Vec<u32>,
}

impl Grid {
    /// All endpoints on one ring.
    pub fn ring(endpoints: u32) -> Grid {
        Grid { dims: vec![endpoints] }
    }

    /// An n-dimensional torus of `dims[0] × dims[1] × …` endpoints.
    ///
    /// # Errors
    /// [`PatternError::GridTooLarge`] where the endpoints exceed 32 bits.
    pub fn torus(dims: &[u32]) -> Result<Grid, PatternError> {
        let endpoints = dims.iter().try_fold(1u32, |product, &size| product.checked_mul(size));
        endpoints.ok_or_else(|| PatternError::GridTooLarge { dims: dims.to_vec() })?;
        Ok(Grid { dims: dims.to_vec() })
    }

    /// The sizes of the dimensions.
    pub fn dims(&self) -> &[u32] {
        &self.dims
    }

    /// The number of endpoints.
    pub fn endpoints(&self) -> u32 {
        self.dims.iter().product()
    }
}
