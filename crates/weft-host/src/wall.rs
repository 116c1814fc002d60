//! Real time: that of watchdogs, limits and reports, never of the model.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "processes are watched in real time; no decision of the model depends on it"
)]

use std::time::{Duration, Instant};

/// Real time since it was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts one.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// The time that has passed since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
