//! Which algorithm carries out which collective: the machine's table, and those that ship.
//!
//! ```text
//!   machine file ── profile ──▶ exanest | mpich-3.2.1 | mpich-5 | openmpi-4.1
//!               └── rules ────▶ before those of the profile
//!   command line ── --algorithm ──▶ before all rules
//! ```

pub(crate) mod algorithm;
mod exanest;
mod mpich;
pub(crate) mod names;
mod openmpi;
pub(crate) mod rule;
mod table;

pub use algorithm::{Algorithm, AlgorithmError};
pub use names::{COLLECTIVE_NAMES, collective_name, collective_of};
pub use rule::{CollectiveSize, Elements, Rule};
pub use table::AlgorithmTable;
