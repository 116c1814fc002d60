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

use crate::library::{RtlError, RtlLibrary};
use crate::words::cycles;
use weft_nic::ExanetParameters;

/// The name of the block.
const NAME: &str = "allreduce";
/// Members of a board.
const BOARD: u32 = 4;
/// The most bytes of a vector.
const VECTOR: u64 = 256;
/// Cycles that a lookup takes at least: its request, and two words.
const LEAST_LOOKUP: u64 = 4;

/// Checks that the RTL was built for the accelerator of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let Some(allreduce) = &parameters.allreduce else { return Err(RtlError::NoAccelerator) };
    let (clock, reliability) = (&allreduce.clock, &allreduce.reliability);
    let same = |key, machine: u64, parameter, unit: &str| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = format!("{rtl}{unit}");
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    let unfit = |why: String, mend: &str| RtlError::Unfit { block: NAME, why, mend: mend.to_owned() };
    same("nic.allreduce.ranks", allreduce.limits.ranks.into(), "RANKS", "")?;
    same("nic.allreduce.latency", allreduce.latency_cycles.into(), "LATENCY", " cycles")?;
    if (allreduce.limits.board, allreduce.limits.vector.get()) != (BOARD, VECTOR) {
        let why = format!("the RTL has boards of {BOARD} and vectors of {VECTOR} bytes");
        return Err(unfit(why, "add --set nic.allreduce.board=4 --set nic.allreduce.vector=256"));
    }
    if allreduce.word.get() != 16 {
        let why = format!("a word has {} bytes, and 16 in the RTL", allreduce.word);
        return Err(unfit(why, "use a machine whose port is so, such as exanest"));
    }
    if allreduce.lookup < clock.cycles(LEAST_LOOKUP) {
        let why =
            format!("a lookup takes {}, and {LEAST_LOOKUP} cycles at least in the RTL", allreduce.lookup);
        return Err(unfit(why, "add --set nic.allreduce.lookup=125ns"));
    }
    for (key, span, parameter) in [
        ("nic.packetizer.timeout", reliability.timeout, "TIMEOUT"),
        ("nic.packetizer.longest_timeout", reliability.longest, "LONGEST_TIMEOUT"),
    ] {
        let why = format!("{key} of {span} is no whole number of cycles of nic.clock");
        let machine = cycles(clock, span).ok_or_else(|| unfit(why, "take a time such as 50us"))?;
        let rtl = library.parameter(NAME, parameter)?;
        if machine != rtl {
            let mend = clock.cycles(rtl).to_string();
            return Err(RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter });
        }
    }
    same("nic.packetizer.repetitions", reliability.repetitions.into(), "REPETITIONS", "")?;
    if reliability.backoff != 2 {
        let why = format!("time-outs grow by {}, and are doubled in the RTL", reliability.backoff);
        return Err(unfit(why, "add --set nic.packetizer.backoff=2"));
    }
    Ok(())
}
