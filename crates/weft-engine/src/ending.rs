//! The ways a run can end.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ended")]
pub enum Ending {
    /// All the work was done.
    Finished,
    /// The virtual time that the experiment asked for was reached.
    Horizon,
    /// The user interrupted it.
    Interrupted,
    /// A limit on virtual time, wall time or memory was reached before the work was done.
    Limit {
        /// Which limit.
        what: String,
    },
    /// Buffers wait for one another in a circle.
    Deadlock {
        /// The buffers of the circle, in order.
        cycle: Vec<String>,
    },
    /// Things happen, but nothing is delivered any more; or nothing happens and work remains.
    NoProgress {
        /// Who waits for what, a line each.
        waiting: Vec<String>,
    },
}

impl Ending {
    /// Whether the simulation ended badly (exit status 1).
    pub fn is_failure(&self) -> bool {
        matches!(self, Ending::Deadlock { .. } | Ending::NoProgress { .. } | Ending::Limit { .. })
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Finished => f.write_str("finished"),
            Ending::Horizon => f.write_str("horizon reached"),
            Ending::Interrupted => f.write_str("interrupted"),
            Ending::Limit { what } => write!(f, "limit reached: {what}"),
            Ending::Deadlock { cycle } => {
                write!(f, "deadlock: these buffers wait for one another")?;
                cycle.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
            Ending::NoProgress { waiting } => {
                write!(f, "no progress")?;
                waiting.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}
