//! Programs that are stepped while they run, by whoever has asked for the run.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use weft_workload::replay::Stepped;

/// A program whose ranks decide as they go. Results keep its name and its size, and not the program.
#[derive(Clone, Serialize, Deserialize)]
pub struct SteppedProgram {
    /// Number of ranks.
    pub ranks: u32,
    /// The program; `None`: this was read from results.
    #[serde(skip)]
    pub(super) program: Option<Arc<dyn Stepped>>,
}

/// A stepped program was asked for that results do not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{name} is a program that was stepped while it ran, and results do not keep such: run it again where it \
     is written"
)]
pub struct NotKept {
    pub(super) name: String,
}

impl PartialEq for SteppedProgram {
    /// As far as results tell them apart.
    fn eq(&self, other: &SteppedProgram) -> bool {
        self.ranks == other.ranks
    }
}

impl Eq for SteppedProgram {}

impl fmt::Debug for SteppedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteppedProgram").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}
