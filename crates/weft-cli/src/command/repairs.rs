//! Losses of links, and repairs of interfaces, in lines for people.

use weft_units::PacketCounts;
use weft_units::ledger::{Repairs, View as _};

/// A line for each count that is not zero, behind what it is of.
pub fn lines(of: &str, packets_dropped: u64, repairs: &PacketCounts) -> String {
    let lost = (packets_dropped > 0).then(|| format!("links lost {packets_dropped} packets"));
    lost.into_iter().chain(Repairs::phrases(repairs)).map(|line| format!("{of}: {line}\n")).collect()
}
