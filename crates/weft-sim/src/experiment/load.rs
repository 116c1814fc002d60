//! Loads as exact decimals.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A share of the endpoint link's payload rate (or of the pattern's capacity), in millionths: decimals
/// are added and compared without drift.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Load(u32);

impl Load {
    const ONE: u32 = 1_000_000;
    /// 1: all that the link carries.
    pub const FULL: Load = Load(Load::ONE);

    /// `count` millionths.
    pub const fn from_millionths(count: u32) -> Load {
        Load(count)
    }

    /// Millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// The nearest floating-point number, for reports.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Load::ONE)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / Load::ONE, self.0 % Load::ONE);
        let short = text.trim_end_matches('0');
        // 1 is written 1.0, so that it is seen to be a share.
        f.write_str(if short.ends_with('.') { &text[..short.len() + 1] } else { short })
    }
}

impl FromStr for Load {
    type Err = String;

    /// A decimal of at most six places, such as `0.6`; zero is read.
    fn from_str(text: &str) -> Result<Load, String> {
        let error = |why: &str| Err(format!("`{text}` is not a load: {why}; write a share such as 0.6"));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) {
            let percent = text.ends_with('%');
            return error(if percent { "it is a percentage" } else { "it is not a decimal number" });
        }
        if fraction.len() > 6 {
            return error("it has more than six decimals");
        }
        let millionths = format!("0{whole}{fraction:0<6}");
        millionths.parse().map(Load).or_else(|_| error("it is out of range"))
    }
}

impl TryFrom<String> for Load {
    type Error = String;
    fn try_from(text: String) -> Result<Load, String> {
        text.parse()
    }
}

impl From<Load> for String {
    fn from(load: Load) -> String {
        load.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loads_are_exact_decimals() {
        for (text, millionths) in [("0.6", 600_000), (".125", 125_000), ("1", 1_000_000), ("1.0", 1_000_000)]
        {
            assert_eq!(text.parse(), Ok(Load(millionths)));
        }
        assert_eq!(Load(300_000).as_f64(), 0.3);
        for wrong in ["", ".", "60%", "1e-1", "-0.5", "NaN", "inf", "0.1234567", "99999999999"] {
            assert!(wrong.parse::<Load>().unwrap_err().contains("such as 0.6"), "{wrong}");
        }
    }

    proptest! {
        /// Catches a form that loses digits or is not read back.
        #[test]
        fn what_is_written_is_read(millionths: u32) {
            prop_assert_eq!(Load(millionths).to_string().parse(), Ok(Load(millionths)));
        }
    }
}
