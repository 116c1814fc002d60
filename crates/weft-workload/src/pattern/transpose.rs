//! Matrix transpose: rows become columns.

use super::PatternError;
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// The endpoints form a square matrix, row by row; row r, column c sends to row c, column r. The
/// endpoints of the diagonal are silent.
///
/// # Source
/// W. Dally, B. Towles, Principles and Practices of Interconnection Networks, 2004, §3.2, table 3.1.
/// There the number of endpoints is an even power of two; here it is any square.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transpose {
    /// Rows and columns of the matrix.
    side: u32,
}

impl Transpose {
    /// The transpose of `endpoints`.
    ///
    /// # Errors
    /// [`PatternError::NotSquare`], or below four endpoints, where nothing leaves the diagonal.
    pub fn new(endpoints: u32) -> Result<Transpose, PatternError> {
        PatternError::require("transpose", endpoints, 4)?;
        let side = endpoints.isqrt();
        if side * side != endpoints {
            return Err(PatternError::NotSquare { endpoints, below: side * side });
        }
        Ok(Transpose { side })
    }

    /// Where every message of `source` goes; itself on the diagonal.
    #[inline]
    pub fn destination(&self, source: EndpointId) -> EndpointId {
        EndpointId(source.0 % self.side * self.side + source.0 / self.side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches rows and columns that are mixed up with bit order.
    #[test]
    fn a_3x3_matrix_by_hand() {
        let pattern = Transpose::new(9).unwrap();
        let to: Vec<_> = (0..9).map(|e| pattern.destination(EndpointId(e)).0).collect();
        assert_eq!(to, [0, 3, 6, 1, 4, 7, 2, 5, 8]);
    }

    #[test]
    fn a_number_that_is_no_square_is_refused() {
        let error = Transpose::new(342).unwrap_err().to_string();
        assert!(error.contains("342") && error.contains("324"), "{error}");
    }
}
