//! Where the time of messages went, for people.

use crate::output::{self, percent};
use weft_sim::experiment::replay::{MeanPiece, SizeClass};

/// Pieces of a smaller share of a message's time have one row for all.
const LEAST_SHARE: f64 = 0.01;

/// A table of mean pieces for each class of sizes.
pub fn size_classes(classes: &[SizeClass]) -> String {
    classes.iter().fold(String::new(), |text, class| text + &size_class(class) + "\n")
}

fn size_class(class: &SizeClass) -> String {
    let sizes = match (class.smallest_bytes, class.largest_bytes) {
        (smallest, largest) if smallest == largest => smallest.to_string(),
        (smallest, largest) => format!("{smallest} to {largest}"),
    };
    let messages = if class.messages == 1 { "message" } else { "messages" };
    let row = |piece: &MeanPiece| {
        [ns(piece.time_mean_ns), percent(piece.share), piece.what.clone(), piece.place.clone()]
    };
    let (shown, small): (Vec<&MeanPiece>, Vec<&MeanPiece>) =
        class.pieces.iter().partition(|piece| piece.share >= LEAST_SHARE);
    let other = (!small.is_empty()).then(|| {
        let time = small.iter().map(|piece| piece.time_mean_ns).sum();
        let share = small.iter().map(|piece| piece.share).sum();
        let pieces = if small.len() == 1 { "piece" } else { "pieces" };
        let what = format!("other: {} {pieces} below 1 %, see --json", small.len());
        [ns(time), percent(share), what, String::new()]
    });
    let total = [ns(class.time_mean_ns), String::new(), "total".to_owned(), String::new()];
    let rows = shown.into_iter().map(row).chain(other).chain([total]);
    let table = output::table(["mean (ns)", "share", "what", "where"], [true, true, false, false], rows);
    format!("{} {messages} of size {sizes}, from post to delivery\n{table}", class.messages)
}

/// A time in ns, to the picosecond.
fn ns(time: f64) -> String {
    format!("{time:.3}")
}
