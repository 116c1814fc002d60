//! The time that a host has before anything can come for it.

use weft_units::Time;

/// An interface that knows a time before which it has nothing for its host.
pub trait QuietTime {
    /// Until this time the host notices no message, and none that it has posted ahead of time fails. What the
    /// interface has [taken](crate::Host::sent), refusals of packets, requests of reads, which the interface
    /// answers by itself, and the accelerator are not considered.
    fn quiet_until(&self) -> Time;
}
