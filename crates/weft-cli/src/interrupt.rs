//! Ctrl-C: the first asks the run to end at its next virtual epoch, the second ends the process.

use crate::exit::Failure;
use weft_sim::experiment::Interrupt;

/// From here on Ctrl-C asks for an end through what is returned.
pub fn on_ctrl_c() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let asked = interrupt.clone();
    ctrlc::set_handler(move || {
        if asked.request() {
            std::process::exit(130);
        }
        eprintln!("weft: ending the run; press Ctrl-C again to stop at once");
    })
    .map_err(|error| Failure::bug(format!("Ctrl-C cannot be caught: {error}")))?;
    Ok(interrupt)
}
