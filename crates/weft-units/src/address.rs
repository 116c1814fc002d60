//! Addresses in the memory of a process.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A virtual address of a process.
///
/// What an interface can name is its own matter: ExaNet's global addresses have 39 bits for it (TR-488 §4.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(u64);

impl Address {
    /// The address of this number.
    pub const fn new(address: u64) -> Address {
        Address(address)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The address so many bytes on; saturates.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Address {
        Address(self.0.saturating_add(bytes))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
