//! Numbers with digits behind the point, which are integers of millionths inside.

use crate::problem::{Problem, shorten};
use crate::value::{KeyType, Magnitude, Writing};
use crate::written::Written;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number from 0 to 4096 with up to six digits behind the point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decimal(u64);

impl Decimal {
    /// Nothing.
    pub const ZERO: Decimal = Decimal(0);
    /// One.
    pub const ONE: Decimal = Decimal(1_000_000);
    /// The largest.
    pub const MAX: Decimal = Decimal(4096 * Decimal::ONE.0);

    /// A number of millionths. `None`: more than 4096 ones.
    pub const fn from_millionths(millionths: u64) -> Option<Decimal> {
        if millionths <= Decimal::MAX.0 { Some(Decimal(millionths)) } else { None }
    }

    /// The number of millionths.
    pub const fn millionths(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / Decimal::ONE.0, self.0 % Decimal::ONE.0);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        f.write_str(format!("{whole}.{rest:06}").trim_end_matches('0'))
    }
}

impl KeyType for Decimal {
    const NAME: &'static str = "Decimal";
    const WRITING: Writing =
        Writing::Described(&Writing::Decimal { least: 0, most: 4096 }, "As in 0.25 or 2.");

    fn read(value: &Written) -> Result<Decimal, Problem> {
        let text = match value {
            Written::Text(text) | Written::Float(text) => text.clone(),
            Written::Integer(integer) => integer.to_string(),
            other => {
                let label = format!("this is {}", other.describe());
                return Err(Problem::new("this is not a number", label, "write 0.25 or 2"));
            }
        };
        let problem = |why: &str| {
            let what = format!("`{}` is no number from 0 to 4096", shorten(&text));
            Problem::new(what, why, "write 0.25 or 2")
        };
        let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(rest) {
            return Err(problem("not a decimal number"));
        }
        if rest.len() > 6 {
            return Err(problem("more than six digits behind the point"));
        }
        let millionths = format!("{whole}{rest:0<6}").parse().ok().and_then(Decimal::from_millionths);
        millionths.ok_or_else(|| problem("too large"))
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a digit that counts for another place, and a text that is taken for a number.
    #[test]
    fn decimals_are_read_and_shown() {
        let read = |text: &str| Decimal::read(&Written::Float(text.to_owned()));
        for (text, millionths) in
            [("0", 0), ("0.25", 250_000), ("1.000001", 1_000_001), ("4096", 4_096_000_000)]
        {
            let read = read(text).unwrap();
            assert_eq!((read.millionths(), read.show()), (millionths, text.to_owned()));
        }
        for wrong in ["", ".5", "-1", "1e3", "0.0000001", "4096.000001", "99999999999999999999", "inf"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Decimal::read(&Written::Integer(3)).unwrap().millionths(), 3_000_000);
        assert!(Decimal::read(&Written::Boolean(true)).is_err());
    }
}
