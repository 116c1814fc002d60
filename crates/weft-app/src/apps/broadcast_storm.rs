//! Broadcasts one after the other, by rank 0 to all others.

use crate::app::{App, AppError, Verification};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::AllRanks;
use weft_trace::op::Collective;
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "broadcast-storm",
    summary: "broadcasts of rank 0, one after the other",
    laws: "Source: D1.4 section 12.3, a benchmark of 500 broadcasts beside another application. Their size \
           there is not given; 1 MB is that of the broadcasts of section 12.2. Nothing is computed between \
           them.",
    checked: Verification::Unchecked("the document's benchmark, of which nothing but the number is known"),
    options: &[
        AppOption { name: "broadcasts", default: "500", about: "number of broadcasts" },
        AppOption { name: "size", default: "1M", about: "size of each" },
    ],
    memory: None,
    build,
};

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let broadcasts = options.count("broadcasts", 1..=1 << 40)?;
    let bytes = options.bytes("size", Bytes::new(1 << 40))?;
    let broadcast = AllRanks::moving(Collective::Broadcast, bytes);
    Ok(vec![KernelPart::repeat(broadcasts, vec![broadcast.into()])])
}
