//! Where the time went, for people: how much of it a table lists, and the table of mean pieces of messages.

use crate::options::whole_number;
use crate::output::{self, percent};
use clap::Args;
use weft_sim::experiment::path::LatencySplit;
use weft_sim::experiment::replay::{MeanPiece, SizeClass};

/// Pieces of a smaller share of a message's time have one row for all.
const LEAST_SHARE: f64 = 0.01;

/// The pieces that a breakdown lists.
#[derive(Args, Clone, Copy, Default)]
pub struct ListOptions {
    /// Pieces that a breakdown lists of each size: the longest. The others are one row; --json has all
    #[arg(long, value_name = "N", requires = "breakdown", value_parser = whole_number(1..=1_000_000))]
    #[arg(allow_negative_numbers = true)]
    top: Option<u32>,
}

/// Pieces, and those that a table does not list.
pub struct Listed<'a, P> {
    /// The listed ones, in their order.
    pub pieces: Vec<&'a P>,
    /// The others.
    pub others: Vec<&'a P>,
    /// The name of their row.
    pub row: String,
}

impl ListOptions {
    /// The pieces that a table lists by their `share` of the time: the longest, if so many are asked for,
    /// otherwise those that are not small.
    pub fn list<P>(self, pieces: &[P], share: impl Fn(&P) -> f64) -> Listed<'_, P> {
        let mut by_share: Vec<usize> = (0..pieces.len()).collect();
        // Of pieces of one length the first ones are listed.
        by_share.sort_by(|a, b| share(&pieces[*b]).total_cmp(&share(&pieces[*a])));
        let count = match self.top {
            Some(top) => (top as usize).min(pieces.len()),
            None => pieces.iter().filter(|piece| share(piece) >= LEAST_SHARE).count(),
        };
        let mut is_listed = vec![false; pieces.len()];
        by_share[..count].iter().for_each(|index| is_listed[*index] = true);
        let of_kind = |listed| {
            let pieces = pieces.iter().zip(&is_listed).filter(move |(_, is_listed)| **is_listed == listed);
            pieces.map(|(piece, _)| piece).collect::<Vec<_>>()
        };
        let (pieces, others) = (of_kind(true), of_kind(false));
        let noun = if others.len() == 1 { "piece" } else { "pieces" };
        let small = if self.top.is_none() { " below 1 %" } else { "" };
        let row = format!("other: {} {noun}{small}, see --json", others.len());
        Listed { pieces, others, row }
    }

    /// As [`ListOptions::list`]; where no number is asked for, a table of at most `most` pieces has all.
    pub fn list_long<P>(self, pieces: &[P], most: usize, share: impl Fn(&P) -> f64) -> Listed<'_, P> {
        let all = self.top.is_none() && pieces.len() <= most;
        let options = if all { ListOptions { top: Some(most as u32) } } else { self };
        options.list(pieces, share)
    }
}

/// A table of mean pieces for each class of sizes.
pub fn size_classes(classes: &[SizeClass], options: ListOptions) -> String {
    classes.iter().fold(String::new(), |text, class| text + &size_class(class, options) + "\n")
}

fn size_class(class: &SizeClass, options: ListOptions) -> String {
    let sizes = match (class.smallest_bytes, class.largest_bytes) {
        (smallest, largest) if smallest == largest => smallest.to_string(),
        (smallest, largest) => format!("{smallest} to {largest}"),
    };
    let messages = if class.messages == 1 { "message" } else { "messages" };
    let row = |piece: &MeanPiece| {
        [ns(piece.time_mean_ns), percent(piece.share), piece.what.clone(), piece.place.clone()]
    };
    let listed = options.list(&class.pieces, |piece| piece.share);
    let other = (!listed.others.is_empty()).then(|| {
        let time = listed.others.iter().map(|piece| piece.time_mean_ns).sum();
        let share = listed.others.iter().map(|piece| piece.share).sum();
        [ns(time), percent(share), listed.row, String::new()]
    });
    let total = [ns(class.time_mean_ns), String::new(), "total".to_owned(), String::new()];
    let rows = listed.pieces.into_iter().map(row).chain(other).chain([total]);
    let table = output::table(["mean (ns)", "share", "what", "where"], [true, true, false, false], rows);
    let legs = split(&class.latency_split);
    format!("{} {messages} of size {sizes}, from post to delivery\n{table}latency: {legs}\n", class.messages)
}

/// The legs of a latency: `host 12.000 ns (3.0 %), injection …`.
pub fn split(split: &LatencySplit) -> String {
    let all: f64 = split.legs().map(|(_, time)| time).sum();
    let share = |time: f64| if all > 0.0 { time / all } else { 0.0 };
    let legs = split.legs().map(|(leg, time)| format!("{leg} {} ns ({})", ns(time), percent(share(time))));
    legs.collect::<Vec<_>>().join(", ")
}

/// A time in ns, to the picosecond.
fn ns(time: f64) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(options: ListOptions, shares: &[f64]) -> (Vec<f64>, Vec<f64>, String) {
        let Listed { pieces, others, row } = options.list(shares, |share| *share);
        (pieces.into_iter().copied().collect(), others.into_iter().copied().collect(), row)
    }

    /// Catches the first pieces instead of the longest, another order than that of time, and a piece lost.
    #[test]
    fn the_longest_are_listed_in_their_order() {
        let shares = [0.2, 0.005, 0.5, 0.2, 0.009, 0.086];
        let top = |top| ListOptions { top: Some(top) };
        let row = "other: 4 pieces, see --json".to_owned();
        assert_eq!(listed(top(2), &shares), (vec![0.2, 0.5], vec![0.005, 0.2, 0.009, 0.086], row));
        assert_eq!(listed(top(9), &shares).0, shares);
        let row = "other: 2 pieces below 1 %, see --json".to_owned();
        let all = ListOptions::default();
        assert_eq!(listed(all, &shares), (vec![0.2, 0.5, 0.2, 0.086], vec![0.005, 0.009], row));
        assert_eq!(all.list_long(&shares, 6, |share| *share).pieces.len(), 6);
        assert_eq!(all.list_long(&shares, 5, |share| *share).pieces.len(), 4);
        assert_eq!(top(1).list_long(&shares, 6, |share| *share).pieces, [&0.5]);
    }
}
