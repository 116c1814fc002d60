//! RTL at the end of a run: the packets that were compared with the model, and waves that are not there.

use crate::exit::Status;
use crate::standard_error::say;
use weft_results::Ending;
use weft_sim::experiment::{BlockCompared, ExperimentOptions, WavesError};

/// The packets of each block that were compared, for the JSON document.
pub fn compared(options: &ExperimentOptions) -> Vec<BlockCompared> {
    options.rtl.as_ref().map(|rtl| rtl.tally.compared(&rtl.blocks)).unwrap_or_default()
}

/// Says on standard error how much a run has compared; with `quiet`, only where that is nothing. What a
/// difference has ended needs no such line.
pub fn tell_compared(options: &ExperimentOptions, ended: Ending, quiet: bool) {
    let Some(rtl) = options.rtl.as_ref().filter(|_| ended != Ending::RtlDiffers) else { return };
    for block in compared(options) {
        if block.endpoints == 0 || !quiet {
            say!("weft: rtl: {}", line(&block, rtl.drive));
        }
    }
    for endpoint in rtl.tally.idle() {
        say!("weft: rtl: nothing of these blocks happened at {endpoint}: nothing was compared there");
    }
}

/// Says why there are no waves, though they were asked for. Returns the status of a run whose results are all
/// that it was to have but for them.
pub fn tell_no_waves(options: &ExperimentOptions) -> Option<Status> {
    let why = options.rtl.as_ref()?.tally.no_waves()?;
    say!("weft: {why}");
    Some(if matches!(*why, WavesError::Empty { .. }) { Status::BadInput } else { Status::EndedBadly })
}

/// The packets of a block: as its model, with which it was compared, or where it decided in its place.
fn line(compared: &BlockCompared, drive: bool) -> String {
    let BlockCompared { block, endpoints, packets_taken: taken, packets_sent: sent, cycles } = compared;
    if *endpoints == 0 {
        return format!("nothing of {block} happened: nothing was compared");
    }
    let how = if drive { "in its model's place" } else { "as its model" };
    let at = if *endpoints == 1 { "1 endpoint".to_owned() } else { format!("{endpoints} endpoints") };
    format!("{block} took {taken} packets and sent {sent}, at {at} over {cycles} cycles, {how}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a block of which nothing was compared, or that decided, and that is told as one that agrees.
    #[test]
    fn what_was_compared_is_told() {
        let block = |endpoints, packets_taken| BlockCompared {
            block: "mailbox",
            endpoints,
            packets_taken,
            packets_sent: 34,
            cycles: 1204,
        };
        let told = "mailbox took 35 packets and sent 34, at 2 endpoints over 1204 cycles, as its model";
        assert_eq!(line(&block(2, 35), false), told);
        assert_eq!(line(&block(2, 35), true), told.replace("as its model", "in its model's place"));
        assert!(line(&block(1, 1), false).contains(" at 1 endpoint over "));
        assert_eq!(line(&block(0, 0), false), "nothing of mailbox happened: nothing was compared");
    }
}
