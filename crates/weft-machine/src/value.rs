//! Ranges of whole numbers as values of keys.

use serde::{Deserialize, Serialize};
use std::fmt;
use weft_keys::{KeyType, Problem, Writing, Written};
use weft_units::Bytes;

/// A range of whole numbers, its end included: `0..=2K`, `2..`, `..`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bounds {
    /// The least.
    pub first: u64,
    /// The greatest; `None`: no limit.
    pub last: Option<u64>,
}

impl Bounds {
    /// All numbers.
    pub const ANY: Bounds = Bounds { first: 0, last: None };

    /// Whether `number` lies in the range.
    pub fn contains(&self, number: u64) -> bool {
        self.first <= number && self.last.is_none_or(|last| number <= last)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", Bytes::new(self.first))?;
        self.last.map_or(Ok(()), |last| write!(f, "={}", Bytes::new(last)))
    }
}

impl KeyType for Bounds {
    const NAME: &'static str = "Bounds";
    const WRITING: Writing = Writing::Described(
        &Writing::Text(r"^[0-9KMGT]*\.\.(=?[0-9KMGT]+)?$"),
        "As in 2.., 0..2K (2048 excluded) or 0..=2K.",
    );

    fn read(value: &Written) -> Result<Bounds, Problem> {
        let problem = |why: String| {
            Problem::new("this is not a range", why, "write \"2..\", \"0..2K\" (2048 excluded) or \"0..=2K\"")
        };
        let Written::Text(text) = value else { return Err(problem(format!("this is {}", value.describe()))) };
        let (first, last) = text.split_once("..").ok_or_else(|| problem("no `..`".to_owned()))?;
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse().map(|bytes: Bytes| Some(bytes.get())).map_err(|error| problem(error.why)),
        };
        let first = number(first)?.unwrap_or(0);
        let last = match last.strip_prefix('=') {
            Some(last) => number(last)?,
            None => number(last)?
                .map(|end| end.checked_sub(1).ok_or_else(|| problem("it holds nothing".to_owned())))
                .transpose()?,
        };
        if last.is_some_and(|last| last < first) {
            return Err(problem("it holds nothing".to_owned()));
        }
        Ok(Bounds { first, last })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}
