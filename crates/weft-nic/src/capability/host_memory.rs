//! The host's memory, as its cores use it.

use weft_units::{Bytes, Span, Time};

/// The memory channel that cores and interface of a host share.
pub trait HostMemory {
    /// A core of the host reads and writes `moved` bytes in all from `from` on, now or later, for which it
    /// takes `alone` by itself; returns when it is done: later where the channel is busy.
    fn in_memory(&mut self, moved: Bytes, alone: Span, from: Time) -> Time;
}
