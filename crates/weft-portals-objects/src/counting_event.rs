//! Counting events: two numbers, on which operations may wait.

use serde::{Deserialize, Serialize};

/// A counting event (`ptl_ct_event_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CountingEvent {
    /// Operations, or bytes, that have succeeded.
    pub success: u64,
    /// Operations that have failed.
    pub failure: u64,
}

impl CountingEvent {
    /// Adds to both numbers; they wrap around.
    pub fn increase(&mut self, by: CountingEvent) {
        self.success = self.success.wrapping_add(by.success);
        self.failure = self.failure.wrapping_add(by.failure);
    }

    /// Whether a wait for `threshold` ends: so many have succeeded, or one has failed.
    pub fn ends_wait(&self, threshold: u64) -> bool {
        self.success >= threshold || self.failure > 0
    }

    /// Whether an operation that waits for `threshold` starts: so many have succeeded or failed.
    pub fn triggers(&self, threshold: u64) -> bool {
        self.success.saturating_add(self.failure) >= threshold
    }
}
