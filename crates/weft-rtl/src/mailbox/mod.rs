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

use crate::library::{RtlError, RtlLibrary};
use weft_nic::ExanetParameters;

/// The name of the block.
const NAME: &str = "mailbox";
/// Bytes of an entry.
const ENTRY: u64 = 64;

/// Checks that the RTL was built for the mailbox of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let mailbox = &parameters.mailbox;
    let same = |key, machine: u64, parameter, unit: &str| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = format!("{rtl}{unit}");
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    same("nic.mailbox.interfaces", mailbox.interfaces.into(), "INTERFACES", "")?;
    same("nic.mailbox.entries", mailbox.entries.into(), "ENTRIES", "")?;
    same("nic.mailbox.check", mailbox.check.into(), "CHECK", " cycles")?;
    let unfit = |why: String, mend: &str| Err(RtlError::Unfit { block: NAME, why, mend: mend.to_owned() });
    if mailbox.entry.get() != ENTRY {
        let why = format!("an entry has {} and {ENTRY} bytes in the RTL", mailbox.entry);
        return unfit(why, "add --set nic.mailbox.entry=64");
    }
    let Some(slots) = mailbox.slots else {
        let rtl = library.parameter(NAME, "SLOTS")?;
        let why = format!("it takes as many packets as come, and holds {rtl} in the RTL");
        return unfit(why, &format!("add --set nic.mailbox.slots={rtl}"));
    };
    same("nic.mailbox.slots", slots.into(), "SLOTS", "")?;
    let Some(remembered) = mailbox.remembered else {
        let rtl = library.parameter(NAME, "REMEMBERED")?;
        let why = format!("it remembers all packets that it has accepted, and {rtl} in the RTL");
        return unfit(why, &format!("add --set nic.mailbox.remembered={rtl}"));
    };
    same("nic.mailbox.remembered", remembered.into(), "REMEMBERED", "")?;
    Ok(())
}

/// The address of the queue of an interface.
fn base(interface: u16, entries: u64) -> u64 {
    0x10_0000_0000 + u64::from(interface) * entries * ENTRY
}
