//! Flows: all messages of a run from one endpoint to another.

use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Time};

/// The completion times of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowReport {
    /// Payload delivered.
    pub bytes: Bytes,
    /// The time at which its first message was offered.
    pub first_start: Time,
    /// The time at which its last message was delivered.
    pub last_completion: Time,
    /// Completion times, to 3 %.
    pub completion: Histogram<5>,
}

impl Default for FlowReport {
    fn default() -> FlowReport {
        FlowReport {
            bytes: Bytes::ZERO,
            first_start: Time::NEVER,
            last_completion: Time::ZERO,
            completion: Histogram::default(),
        }
    }
}

impl FlowReport {
    /// Counts a message.
    pub fn record(&mut self, bytes: Bytes, start: Time, completion: Time) {
        self.bytes += bytes;
        self.first_start = self.first_start.min(start);
        self.last_completion = self.last_completion.max(completion);
        self.completion.record(completion - start);
    }

    /// Adds what another part of the run has counted of the same flow.
    pub fn merge(&mut self, other: &FlowReport) {
        self.bytes += other.bytes;
        self.first_start = self.first_start.min(other.first_start);
        self.last_completion = self.last_completion.max(other.last_completion);
        self.completion.merge(&other.completion);
    }
}
