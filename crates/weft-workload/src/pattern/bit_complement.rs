//! Bit complement: every endpoint sends to its mirror image.

use super::PatternError;
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// Endpoint s of n sends to n − 1 − s: the complement of all address bits where n is a power of two,
/// and of every coordinate, k − 1 − x, on any grid. Of an odd number the middle one is silent.
///
/// # Source
/// W. Dally, B. Towles, Principles and Practices of Interconnection Networks, 2004, §3.2, table 3.1,
/// there for powers of two.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BitComplement {
    last: EndpointId,
}

impl BitComplement {
    /// The complement among `endpoints`.
    ///
    /// # Errors
    /// [`PatternError::TooFewEndpoints`] below two.
    pub fn new(endpoints: u32) -> Result<BitComplement, PatternError> {
        PatternError::require("bit-complement", endpoints, 2)?;
        Ok(BitComplement { last: EndpointId(endpoints - 1) })
    }

    /// Where every message of `source` goes; itself for the middle one.
    #[inline]
    pub fn destination(&self, source: EndpointId) -> EndpointId {
        EndpointId(self.last.0 - source.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bits_are_inverted() {
        let pattern = BitComplement::new(1 << 10).unwrap();
        for source in [0, 1, 0b10_1100_1010, 1023] {
            assert_eq!(pattern.destination(EndpointId(source)).0, !source & 1023);
        }
    }
}
