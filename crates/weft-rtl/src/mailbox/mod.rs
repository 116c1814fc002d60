//! The mailbox as RTL: its ports, what it was built for, and the two uses of it.
//!
//! ```text
//!   inputs ── packets and heads, at their edges ──► RTL ─┬─► in_step: outputs compared with the model's
//!                                                        └─► in_place: the answer, asked for ahead of time
//! ```

mod in_place;
mod in_step;
mod inputs;

pub(crate) use in_place::MailboxInPlace;
pub(crate) use in_step::MailboxInStep;

use crate::fit::Fit;
use crate::library::{RtlError, RtlLibrary};
use weft_nic::ExanetParameters;
use weft_units::Bytes;

/// The name of the block.
const NAME: &str = "mailbox";
/// Bytes of an entry.
const ENTRY: u64 = 64;

/// Checks that the RTL was built for the mailbox of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let (fit, mailbox) = (Fit::new(library, NAME, parameters)?, &parameters.mailbox);
    fit.same("nic.mailbox.interfaces", mailbox.interfaces.into(), "INTERFACES")?;
    fit.same("nic.mailbox.entries", mailbox.entries.into(), "ENTRIES")?;
    fit.same_or_none("nic.mailbox.slots", mailbox.slots, "SLOTS")?;
    fit.same_or_none("nic.mailbox.remembered", mailbox.remembered, "REMEMBERED")?;
    fit.same_cycles("nic.mailbox.check", mailbox.check, "CHECK")?;
    fit.fixed("nic.mailbox.entry", mailbox.entry, Bytes::new(ENTRY))
}

/// The address of the queue of an interface.
fn base(interface: u16, entries: u64) -> u64 {
    0x10_0000_0000 + u64::from(interface) * entries * ENTRY
}
