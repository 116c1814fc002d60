//! Where the time of messages went, for people.

use crate::output::{self, percent};
use weft_sim::experiment::replay::{MeanPiece, SizeClass};

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
    let total = [ns(class.time_mean_ns), String::new(), "total".to_owned(), String::new()];
    let rows = class.pieces.iter().map(row).chain([total]);
    let table = output::table(["mean (ns)", "share", "what", "where"], [true, true, false, false], rows);
    format!("{} {messages} of size {sizes}, from post to delivery\n{table}", class.messages)
}

/// A time in ns, to the picosecond.
fn ns(time: f64) -> String {
    format!("{time:.3}")
}
