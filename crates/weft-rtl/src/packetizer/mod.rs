//! The packetizer as RTL: its ports, what it was built for, and the two uses of it.
//!
//! ```text
//!   inputs ── stores, answers, the network's turns ──► RTL ─┬─► in_step: outputs compared with the model's
//!                                                           └─► in_place: what it decides, ahead of time
//! ```

mod in_place;
mod in_step;
mod inputs;

pub(crate) use in_place::PacketizerInPlace;
pub(crate) use in_step::PacketizerInStep;

use crate::fit::{BACKOFF, Fit, WORD};
use crate::library::{RtlError, RtlLibrary};
use weft_nic::ExanetParameters;
use weft_nic::packetizer::ChannelState;
use weft_units::Bytes;

/// The name of the block.
const NAME: &str = "packetizer";
/// The longest payload.
const PAYLOAD: Bytes = Bytes::new(64);

/// Checks that the RTL was built for the packetizer of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let (fit, packetizer) = (Fit::new(library, NAME, parameters)?, &parameters.packetizer);
    let reliability = &packetizer.reliability;
    // First that for which nothing but another machine helps.
    fit.stores_words(parameters)?;
    fit.fixed("nic.host_port.word", parameters.host_port.word, Bytes::new(WORD))?;
    fit.fixed("nic.packetizer.descriptor", packetizer.descriptor, Bytes::new(WORD))?;
    fit.same("nic.packetizer.interfaces", packetizer.interfaces.into(), "INTERFACES")?;
    fit.same("nic.packetizer.channels", packetizer.channels.into(), "CHANNELS")?;
    fit.same_cycles("nic.packetizer.engine", packetizer.engine, "ENGINE")?;
    fit.same_time("nic.packetizer.timeout", reliability.timeout, "TIMEOUT")?;
    fit.same_time("nic.packetizer.longest_timeout", reliability.longest, "LONGEST_TIMEOUT")?;
    fit.same("nic.packetizer.repetitions", reliability.repetitions.into(), "REPETITIONS")?;
    fit.fixed("nic.packetizer.backoff", reliability.backoff, BACKOFF)?;
    if packetizer.payload <= PAYLOAD {
        return Ok(());
    }
    fit.fixed("nic.packetizer.payload", packetizer.payload, PAYLOAD)
}

/// The number of a state, as a process reads it.
fn number_of(state: ChannelState) -> u128 {
    match state {
        ChannelState::Idle => 0,
        ChannelState::Ongoing => 1,
        ChannelState::Acknowledged => 2,
        ChannelState::NegativelyAcknowledged => 3,
        ChannelState::TimedOut => 4,
    }
}
