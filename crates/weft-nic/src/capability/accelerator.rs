//! The allreduce accelerator, as a host uses it.

use crate::allreduce::{AcceleratorError, AcceleratorLimits, AllreduceRequest};
use weft_units::Time;

/// A unit that reduces the vectors of a group without the processors of its members.
pub trait AllreduceAccelerator {
    /// The limits on groups; `None`: this machine has the unit left out.
    fn limits(&self) -> Option<AcceleratorLimits>;

    /// Hands a vector to the accelerator at `at`, now or later. Every member of the group must do so with the
    /// same group and sequence. Comes back in [`Host::accelerated`](crate::Host::accelerated). Returns its
    /// number, counted among the messages.
    ///
    /// # Errors
    /// A group beyond the [limits](AllreduceAccelerator::limits), which it names.
    fn allreduce(&mut self, request: AllreduceRequest, at: Time) -> Result<u32, AcceleratorError>;
}
