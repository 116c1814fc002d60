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

use crate::library::{RtlError, RtlLibrary};
use crate::words::cycles;
use weft_nic::ExanetParameters;
use weft_nic::packetizer::ChannelState;
use weft_units::{Bytes, Span};

/// The name of the block.
const NAME: &str = "packetizer";

/// Checks that the RTL was built for the packetizer of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let packetizer = &parameters.packetizer;
    let clock = &packetizer.clock;
    let same = |key, machine: u64, parameter, unit: &str| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = format!("{rtl}{unit}");
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    let unfit = |why: String, mend: &str| RtlError::Unfit { block: NAME, why, mend: mend.to_owned() };
    let reliability = &packetizer.reliability;
    let whole = |key, span: Span| {
        let why = format!("{key} of {span} is no whole number of cycles of nic.clock");
        cycles(clock, span).ok_or_else(|| unfit(why, "take a time such as 50us"))
    };
    same("nic.packetizer.interfaces", packetizer.interfaces.into(), "INTERFACES", "")?;
    same("nic.packetizer.channels", packetizer.channels.into(), "CHANNELS", "")?;
    same("nic.packetizer.engine", packetizer.engine.into(), "ENGINE", " cycles")?;
    let timeout = whole("nic.packetizer.timeout", reliability.timeout)?;
    let longest = whole("nic.packetizer.longest_timeout", reliability.longest)?;
    let same_time = |key, machine: u64, parameter| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = clock.cycles(rtl).to_string();
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    same_time("nic.packetizer.timeout", timeout, "TIMEOUT")?;
    same_time("nic.packetizer.longest_timeout", longest, "LONGEST_TIMEOUT")?;
    same("nic.packetizer.repetitions", reliability.repetitions.into(), "REPETITIONS", "")?;
    if reliability.backoff != 2 {
        let why = format!("time-outs grow by {}, and are doubled in the RTL", reliability.backoff);
        return Err(unfit(why, "add --set nic.packetizer.backoff=2"));
    }
    if packetizer.payload > Bytes::new(64) {
        let why = format!("a small message has up to {}, and 64 B in the RTL", packetizer.payload);
        return Err(unfit(why, "add --set nic.packetizer.payload=64"));
    }
    if parameters.host_port.stores.is_some()
        || packetizer.descriptor.get() != 16
        || parameters.host_port.word.get() != 16
    {
        let why =
            "its pages are stored to by words of 16 bytes, the last of which is the descriptor".to_owned();
        return Err(unfit(why, "use a machine whose port is so, such as exanest"));
    }
    Ok(())
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
