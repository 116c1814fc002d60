//! The names of algorithms, and errors about them.

use super::names::collective_name;
pub use crate::collective::registry::Algorithm;
use std::fmt;
use std::str::FromStr;
use weft_trace::op::Collective;

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;
    fn from_str(name: &str) -> Result<Algorithm, AlgorithmError> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| AlgorithmError::unknown("algorithm", name, Algorithm::ALL.map(Algorithm::name)))
    }
}

/// An entry of a table of algorithms that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// A name that is not known.
    #[error("unknown {what} `{name}`: did you mean `{near}`? ({known})")]
    Unknown {
        /// The kind of the name: "algorithm", "collective" or "table of algorithms".
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest known name.
        near: &'static str,
        /// All known names.
        known: String,
    },
    /// An algorithm that does not carry out the collective.
    #[error("{algorithm} cannot carry out {}: expected one of {expected}", collective_name(*.collective))]
    CannotPerform {
        /// The algorithm.
        algorithm: Algorithm,
        /// The collective.
        collective: Collective,
        /// The names of those that can.
        expected: String,
    },
}

impl AlgorithmError {
    pub(super) fn unknown(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'static str, IntoIter: Clone>,
    ) -> AlgorithmError {
        let known = known.into_iter();
        let near = weft_keys::fewest_edits(name, known.clone());
        AlgorithmError::Unknown {
            what,
            name: name.to_owned(),
            near: near.expect("there is at least one known name"),
            known: known.collect::<Vec<_>>().join(", "),
        }
    }
}
