//! The speed of the ranks' processors, compared with those of the recording.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_units::Span;

/// Parts of one.
const ONE: u32 = 1_000_000;

/// A factor on the time of each computation, in millionths; 0 leaves computation out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ComputeScale(u32);

impl Default for ComputeScale {
    fn default() -> ComputeScale {
        ComputeScale(ONE)
    }
}

impl ComputeScale {
    /// Whether computations take the time that was recorded.
    pub fn is_one(&self) -> bool {
        self.0 == ONE
    }

    /// The time of a computation, rounded down to a picosecond.
    #[inline]
    pub fn apply(self, span: Span) -> Span {
        if self.0 == ONE {
            return span;
        }
        let scaled = u128::from(span.as_ps()) * u128::from(self.0) / u128::from(ONE);
        Span::from_ps(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for ComputeScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / f64::from(ONE))
    }
}

/// Text that is not a factor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a factor on computation; write a number from 0 to 4294, such as 0.25")]
pub struct NotAScale(String);

impl FromStr for ComputeScale {
    type Err = NotAScale;

    fn from_str(text: &str) -> Result<ComputeScale, NotAScale> {
        let millionths = text.parse().map(|factor: f64| (factor * f64::from(ONE)).round());
        match millionths {
            Ok(millionths @ 0.0..=4_294_000_000.0) => Ok(ComputeScale(millionths as u32)),
            _ => Err(NotAScale(text.chars().take(40).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a factor that is off by a power of ten, one that overflows, and text that is taken for one.
    #[test]
    fn factors_are_read_and_applied() {
        let scaled = |text: &str, span| text.parse::<ComputeScale>().unwrap().apply(span);
        assert_eq!(scaled("0.25", Span::from_ns(10)), Span::from_ps(2_500));
        assert_eq!(scaled("0", Span::from_ns(10)), Span::ZERO);
        assert_eq!(scaled("1", Span::from_ps(u64::MAX)), Span::from_ps(u64::MAX));
        assert_eq!(scaled("4294", Span::from_ps(u64::MAX)), Span::from_ps(u64::MAX));
        for wrong in ["-1", "NaN", "inf", "4295", "fast", ""] {
            assert!(
                wrong.parse::<ComputeScale>().unwrap_err().to_string().contains("such as 0.25"),
                "{wrong}"
            );
        }
    }
}
