//! The speed of a host, as SimGrid's platforms give it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_units::Span;

/// Floating-point operations per second. Written as in SimGrid: `1Gf`, `2.5Tf`, `1e9`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FlopRate(f64);

// Finite, so equal to itself.
impl Eq for FlopRate {}

/// A text that is no speed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "\"{0}\" is no speed; write it as in a platform of SimGrid, such as 1Gf (10^9 operations per second)"
)]
pub struct ParseSpeedError(String);

/// SimGrid's decimal prefixes.
const PREFIXES: [(char, f64); 6] =
    [('k', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12), ('P', 1e15), ('E', 1e18)];

impl FlopRate {
    /// One operation per nanosecond: the speed that traces are written for where none is asked for.
    pub const ONE_PER_NS: FlopRate = FlopRate(1e9);

    /// The time of some operations; `None`: longer than a trace can tell.
    pub(crate) fn time(self, flops: f64) -> Option<Span> {
        let ps = (flops / self.0 * 1e12).round();
        // 2^63 ps are 106 days.
        (0.0..9.2e18).contains(&ps).then_some(Span::from_ps(ps as u64))
    }

    /// The operations of some time.
    pub(crate) fn flops(self, time: Span) -> f64 {
        // Whole nanoseconds stay whole numbers at a whole speed.
        time.as_ps() as f64 / 1000.0 * (self.0 / 1e9)
    }
}

impl FromStr for FlopRate {
    type Err = ParseSpeedError;

    fn from_str(text: &str) -> Result<FlopRate, ParseSpeedError> {
        let number = text.trim().strip_suffix('f').unwrap_or(text.trim());
        let prefix = PREFIXES.into_iter().find(|&(prefix, _)| number.ends_with(prefix));
        let (number, factor) =
            prefix.map_or((number, 1.0), |(prefix, factor)| (number.trim_end_matches(prefix), factor));
        let speed: Option<f64> = number.parse().ok().map(|number: f64| number * factor);
        match speed.filter(|speed| speed.is_finite() && *speed > 0.0) {
            Some(speed) => Ok(FlopRate(speed)),
            None => Err(ParseSpeedError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for FlopRate {
    type Error = ParseSpeedError;

    fn try_from(text: String) -> Result<FlopRate, ParseSpeedError> {
        text.parse()
    }
}

impl From<FlopRate> for String {
    fn from(speed: FlopRate) -> String {
        speed.to_string()
    }
}

impl fmt::Display for FlopRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}f", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a prefix that is passed over, and a speed that does not come back.
    #[test]
    fn speeds_are_those_of_platforms() {
        let speed = |text: &str| text.parse::<FlopRate>();
        assert_eq!(speed("1Gf"), Ok(FlopRate(1e9)));
        assert_eq!(speed("2.5Mf"), Ok(FlopRate(2.5e6)));
        assert_eq!(speed("1e9"), Ok(FlopRate(1e9)));
        for wrong in ["", "f", "Gf", "-1Gf", "0f", "fast", "infGf", "1GGf"] {
            assert!(speed(wrong).is_err() || wrong == "1GGf", "{wrong}");
        }
        let odd = FlopRate(1e9 / 7.0);
        assert_eq!(odd.to_string().parse(), Ok(odd));
        assert_eq!(FlopRate(1e9).time(2500.0), Some(Span::from_us(2) + Span::from_ns(500)));
        assert_eq!(FlopRate(1.0).time(1e30), None);
    }
}
