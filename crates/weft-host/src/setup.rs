//! Settings of a live run.

use crate::domains::Domains;
use std::time::Duration;
use weft_client::device::HostModel;
use weft_machine::MessageBuffers;
use weft_msg::Protocol;
use weft_units::Span;

/// Settings of a live run, besides the machine.
pub struct LiveSetup<'a> {
    /// Costs and limits of messaging.
    pub protocol: &'a Protocol,
    /// The model by which computation moves clocks.
    pub host: HostModel,
    /// Interfaces of a host by which the messages of each of its ranks go; 1: each its own only.
    pub rails: u32,
    /// Virtual time of an empty poll.
    pub poll: Span,
    /// Virtual time of a clock read.
    pub clock_read: Span,
    /// Whether a rank that only polls is taken to wait from its first empty poll on.
    pub jumps: bool,
    /// Real time for which a rank may keep its turn; `None`: for ever.
    pub watchdog: Option<Duration>,
    /// Whether turns overlap where they may. Only the real time of the run depends on it: tests run jobs both
    /// ways.
    pub overlapping: bool,
    /// Places of the messages of ranks, as their interfaces see them.
    pub message_buffers: MessageBuffers,
    /// The protection domains that the job has been given.
    pub domains: Domains,
    /// Seed of the machine's random decisions.
    pub seed: u64,
}
