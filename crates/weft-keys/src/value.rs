//! The types that values of keys have, and how each is written.

use crate::problem::Problem;
use crate::written::Written;

/// A type that the value of a key may have.
pub trait KeyType: Sized {
    /// The type's name in the schema.
    const NAME: &'static str;

    /// How it is written.
    const WRITING: Writing;

    /// Reads a value.
    ///
    /// # Errors
    /// What was expected, and the mend.
    fn read(written: &Written) -> Result<Self, Problem>;

    /// The shortest text that reads as this.
    fn show(&self) -> String;

    /// The size in the base unit, where values of the type can be compared.
    fn magnitude(&self) -> Option<Magnitude> {
        None
    }
}

/// The size of a value in its base unit; of different units neither is the larger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Magnitude {
    /// The unit, one of the type's.
    pub unit: u8,
    /// The number of these units.
    pub amount: u64,
}

impl Magnitude {
    /// Of the type's only unit, or its first.
    pub fn of(amount: u64) -> Magnitude {
        Magnitude { unit: 0, amount }
    }

    /// Whether this lies between two others, both included.
    pub fn is_between(self, low: Magnitude, high: Magnitude) -> bool {
        low.unit == self.unit && self.unit == high.unit && (low.amount..=high.amount).contains(&self.amount)
    }
}

/// A way of writing values, for schemas and pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writing {
    /// A whole number.
    Whole {
        /// The least.
        least: u64,
        /// The greatest.
        most: Option<u64>,
    },
    /// A number, which may have digits behind a point.
    Decimal {
        /// The least.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// True or false.
    Flag,
    /// A text of this pattern, a regular expression.
    Text(&'static str),
    /// A text.
    AnyText,
    /// A list of texts.
    Texts {
        /// Fewest.
        least: u32,
        /// Most.
        most: Option<u32>,
    },
    /// The path of a file.
    Path,
    /// One of some words.
    Words(&'static [&'static str]),
    /// A list of whole numbers, each at least 1.
    Counts,
    /// In any of these ways.
    AnyOf(&'static [Writing]),
    /// In this way, with a sentence that says so.
    Described(&'static Writing, &'static str),
}
