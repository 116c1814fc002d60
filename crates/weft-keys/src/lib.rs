//! Keys of machine files, declared beside what they configure.
//!
//! ```text
//!   keys! { struct SwitchParameters { clock: Clock; … } }          one entry for each key: type, default,
//!       │                                                          bounds, condition, meaning
//!       ├──▶ KEYS ──▶ schema, page of the book, suggestions, `machine new`      (weft-machine)
//!       └──▶ Keys::read(given) ──▶ SwitchParameters
//!                        ▲
//!                  GivenKeys: a table of a file with its `--set`s               (weft-machine)
//! ```
//! | module | has |
//! |---|---|
//! | [`written`] | a value as a file writes it |
//! | [`value`] | the types that values have, each with its way of writing |
//! | [`quantity`] | numbers and quantities of `weft-units` as such types |
//! | [`decimal`] | numbers with digits behind the point |
//! | [`word`] | enums whose variants are words, and words that carry keys of their own |
//! | [`key`], [`given`] | a key; a table of a file that gives values |
//! | [`mod@keys`] | the keys of a table: their declaration |
//! | [`problem`] | a mistake in a value, and its mend |
//!
//! No file is read here, and no place in a file is known: who reads files adds the place to a [`Problem`].

#[doc(hidden)]
pub mod bounds;
#[doc(hidden)]
pub mod cost;
pub mod decimal;
pub mod given;
#[doc(hidden)]
pub mod group;
pub mod key;
pub mod keys;
pub mod problem;
pub mod quantity;
pub mod text;
pub mod value;
pub mod word;
pub mod written;

pub use decimal::Decimal;
pub use given::{Given, GivenKeys, Reading};
pub use key::{Condition, Key};
pub use keys::Keys;
pub use problem::{Misfit, Problem};
pub use quantity::{Cost, CountFromZero, Millionths, RateLimit};
pub use value::{KeyType, Magnitude, Writing};
pub use word::{Word, fewest_edits, nearest};
pub use written::Written;
