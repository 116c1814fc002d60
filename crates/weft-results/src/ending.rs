//! How a run ended.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a run ended: of simulated ranks, of traffic and of real programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All work was done.
    Finished,
    /// The virtual time that was asked for has passed.
    HorizonReached,
    /// The user interrupted the run.
    Interrupted,
    /// A limit on virtual time, wall time or silence was reached before the work was done.
    LimitReached,
    /// Packets or ranks wait for one another in a cycle.
    Deadlock,
    /// Nothing is delivered any more, and work remains.
    NoProgress,
    /// A packet, a credit or a byte is nowhere.
    LostData,
    /// A rank of a real program ended badly.
    RankFailed,
    /// RTL in step with the model has another output than the model.
    RtlDiffers,
}

impl Ending {
    /// The word for it in `run.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Finished => "finished",
            Ending::HorizonReached => "horizon-reached",
            Ending::Interrupted => "interrupted",
            Ending::LimitReached => "limit-reached",
            Ending::Deadlock => "deadlock",
            Ending::NoProgress => "no-progress",
            Ending::LostData => "lost-data",
            Ending::RankFailed => "rank-failed",
            Ending::RtlDiffers => "rtl-differs",
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a run ended, and what there is to say about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conclusion {
    /// How it ended.
    pub ended: Ending,
    /// For a bad end: what happened, such as the cycle of waiting buffers.
    pub detail: Option<String>,
}

impl Conclusion {
    /// An end with something to say about it.
    pub fn new(ended: Ending, detail: impl Into<String>) -> Conclusion {
        Conclusion { ended, detail: Some(detail.into()) }
    }
}

/// An end without more to say.
impl From<Ending> for Conclusion {
    fn from(ended: Ending) -> Conclusion {
        Conclusion { ended, detail: None }
    }
}
