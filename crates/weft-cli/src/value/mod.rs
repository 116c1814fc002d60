//! Values of options that are more than one quantity.

mod loads;
mod sizes;

pub use loads::{Loads, parse_loads};
pub use sizes::{Sizes, parse_sizes};
