//! The fullest that the queues of a switch have been since the last look, counted only where telemetry asks
//! for it.
//!
//! ```text
//!   arrive ──► enters ── queued, or passes ──► settle: the most          granted, dropped ──► leaves
//! ```
//! A packet that passes without queueing enters and leaves at one instant, and makes no queue fuller.

use serde::{Deserialize, Serialize};

/// A queue and the fullest that it has been.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct MeteredQueue {
    pub(crate) now: QueueFill,
    pub(crate) most: QueueFill,
}

/// The packets of a queue, and what they hold: units of credit in an input buffer, bytes at an output.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct QueueFill {
    pub(crate) packets: u32,
    pub(crate) held: u64,
}

impl MeteredQueue {
    fn enter(&mut self, held: u64) {
        self.now.packets += 1;
        self.now.held += held;
    }

    fn leave(&mut self, held: u64) {
        self.now.packets -= 1;
        self.now.held -= held;
    }

    fn settle(&mut self) {
        self.most.packets = self.most.packets.max(self.now.packets);
        self.most.held = self.most.held.max(self.now.held);
    }
}

/// The queues of a switch, by number of their channels.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct QueueMeter {
    pub(crate) inputs: Box<[MeteredQueue]>,
    /// Those of an output-queued switch.
    pub(crate) outputs: Box<[MeteredQueue]>,
}

impl QueueMeter {
    /// A meter of a switch with so many channels, whose queues are empty.
    pub(crate) fn new(channels: usize) -> QueueMeter {
        let empty = || vec![MeteredQueue::default(); channels].into();
        QueueMeter { inputs: empty(), outputs: empty() }
    }

    /// A packet has come to an input buffer, where it takes so many units of credit.
    pub(crate) fn enter_input(&mut self, channel: usize, space: u32) {
        self.inputs[channel].enter(space.into());
    }

    /// The packet that has come has been queued, or has passed.
    pub(crate) fn settle_input(&mut self, channel: usize) {
        self.inputs[channel].settle();
    }

    /// A packet of an input buffer has been granted its output, or dropped.
    pub(crate) fn leave_input(&mut self, channel: usize, space: u32) {
        self.inputs[channel].leave(space.into());
    }

    /// A packet of so many bytes has moved to the queue of an output.
    pub(crate) fn enter_output(&mut self, channel: usize, bytes: u64) {
        self.outputs[channel].enter(bytes);
        self.outputs[channel].settle();
    }

    /// A packet has been put on the line.
    pub(crate) fn leave_output(&mut self, channel: usize, bytes: u64) {
        self.outputs[channel].leave(bytes);
    }

    /// The queue of an output holds so much, as the meter begins.
    pub(crate) fn begin_output(&mut self, channel: usize, packets: u32, held: u64) {
        self.outputs[channel].now = QueueFill { packets, held };
    }

    /// From now on the most counts anew.
    pub(crate) fn restart(&mut self) {
        for queue in self.inputs.iter_mut().chain(&mut self.outputs) {
            queue.most = queue.now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a packet that passes and counts as queued, and a most that outlives its interval.
    #[test]
    fn the_most_is_that_since_the_last_look() {
        let mut meter = QueueMeter::new(2);
        let fill = |packets, held| QueueFill { packets, held };
        meter.enter_input(1, 4);
        meter.leave_input(1, 4);
        meter.settle_input(1);
        assert_eq!(meter.inputs[1], MeteredQueue::default());
        for space in [4, 6] {
            meter.enter_input(1, space);
            meter.settle_input(1);
        }
        meter.leave_input(1, 4);
        assert_eq!(meter.inputs[1], MeteredQueue { now: fill(1, 6), most: fill(2, 10) });
        meter.restart();
        assert_eq!(meter.inputs[1], MeteredQueue { now: fill(1, 6), most: fill(1, 6) });
        meter.leave_input(1, 6);
        meter.restart();
        assert_eq!(meter.inputs, QueueMeter::new(2).inputs);
    }
}
