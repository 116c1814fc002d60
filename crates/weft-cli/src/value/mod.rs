//! Values of options that are more than one quantity.

mod iterations;
mod loads;
mod sizes;
mod suggested;

pub use iterations::parse_iterations;
pub use loads::{Loads, parse_loads};
pub use sizes::{Sizes, parse_sizes};
pub use suggested::{Suggested, suggested};
