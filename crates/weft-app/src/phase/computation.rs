//! A computation: floating-point operations, and bytes of memory that they move.

use crate::part::KernelPhase;
use weft_trace::op::Op;
use weft_units::Bytes;

/// The same computation on every rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Computation {
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes between the core and its host's memory.
    pub bytes: Bytes,
}

impl KernelPhase for Computation {
    fn length(&self, _: u32) -> u64 {
        u64::from(self.flops > 0 || self.bytes > Bytes::ZERO)
    }

    fn operation(&self, _: u32, _: u64, _: u64) -> Op {
        Op::Work { flops: self.flops, bytes: self.bytes }
    }
}
