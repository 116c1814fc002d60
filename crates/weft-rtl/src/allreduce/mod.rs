//! The accelerator as RTL: its ports, what it was built for, and how it is in step with its model.
//!
//! ```text
//!   inputs ── registers, packets, memory, at their edges ──► RTL ──► in_step: outputs compared
//!   vectors ── made up, or those that the run carries
//! ```

mod in_step;
mod inputs;
mod packets;
mod ports;
mod vectors;

pub(crate) use in_step::AllreduceInStep;

use crate::fit::{BACKOFF, Fit};
use crate::library::{RtlError, RtlLibrary};
use weft_nic::ExanetParameters;
use weft_units::Bytes;

/// The name of the block.
const NAME: &str = "allreduce";
/// Members of a board.
const BOARD: u32 = 4;
/// The most bytes of a vector.
const VECTOR: u64 = 256;
/// Cycles that a lookup takes at least: its request, and two words.
const LEAST_LOOKUP: u64 = 4;
/// Cycles that a lookup takes at most: while a longer one lasts the next vector may be there, for which the
/// model asks at once. Found by trying, on 16 and 64 ranks.
const MOST_LOOKUP: u64 = 45;
/// Cycles of the round trip of the read of a vector, at least: one for its request, and one in which memory
/// answers.
const LEAST_FETCH: u64 = 2;

/// Checks that the RTL was built for the accelerator of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let Some(allreduce) = &parameters.allreduce else { return Err(RtlError::NoAccelerator) };
    let (fit, reliability) = (Fit::new(library, NAME, parameters)?, &allreduce.reliability);
    fit.stores_words(parameters)?;
    fit.same("nic.allreduce.ranks", allreduce.limits.ranks.into(), "RANKS")?;
    fit.same_cycles("nic.allreduce.latency", allreduce.latency_cycles, "LATENCY")?;
    fit.fixed("nic.allreduce.board", allreduce.limits.board, BOARD)?;
    fit.fixed("nic.allreduce.vector", allreduce.limits.vector, Bytes::new(VECTOR))?;
    fit.same_time("nic.packetizer.timeout", reliability.timeout, "TIMEOUT")?;
    fit.same_time("nic.packetizer.longest_timeout", reliability.longest, "LONGEST_TIMEOUT")?;
    fit.same("nic.packetizer.repetitions", reliability.repetitions.into(), "REPETITIONS")?;
    fit.fixed("nic.packetizer.backoff", reliability.backoff, BACKOFF)?;
    fit.at_least("nic.allreduce.lookup", allreduce.lookup, fit.clock.cycles(LEAST_LOOKUP))?;
    fit.at_most("nic.allreduce.lookup", allreduce.lookup, fit.clock.cycles(MOST_LOOKUP))?;
    let round_trip = parameters.host_port.round_trip;
    fit.at_least("nic.host_port.round_trip", round_trip, fit.clock.cycles(LEAST_FETCH))
}
