//! Pieces and categories as rows of reports. Sums are exact in ps; us and ns are for readers.

use super::names::Names;
use crate::experiment::busiest::share;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_units::{RankId, Span, Time};
use weft_workload::path::{Category, Piece, Walk};

/// The time in a category.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CategoryRow {
    /// The category.
    pub category: String,
    /// The time.
    pub time_us: f64,
    /// As a share of all.
    pub share: f64,
}

/// A piece of a path. The times of the pieces of a path add up to it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PieceRow {
    /// From, counted from the beginning of what is explained.
    pub from_ns: f64,
    /// To.
    pub to_ns: f64,
    /// How long.
    pub time_ns: f64,
    /// The category.
    pub category: String,
    /// The activity that the time is spent on.
    pub what: String,
    /// The place.
    pub place: String,
}

/// All pieces of a path with which the same was done at the same place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlaceRow {
    /// The activity that the time is spent on.
    pub what: String,
    /// The place.
    pub place: String,
    /// How long in all.
    pub time_us: f64,
    /// As a share of the path.
    pub share: f64,
    /// In how many pieces.
    pub pieces: u64,
}

/// A rank's own time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RankTimeRow {
    /// The rank, counted over all programs.
    pub rank: u32,
    /// The name of the rank.
    pub name: String,
    /// All of it.
    pub time_us: f64,
    /// The parts of its time, by category.
    pub categories: Vec<CategoryRow>,
}

fn ns(span: Span) -> f64 {
    span.as_ps() as f64 / 1e3
}

/// Time by category.
fn sums(walks: &[Walk]) -> BTreeMap<Category, Span> {
    let mut sums = BTreeMap::new();
    for piece in walks.iter().flat_map(|walk| &walk.pieces) {
        *sums.entry(piece.kind.category()).or_insert(Span::ZERO) += piece.span();
    }
    sums
}

/// The categories of walks. All are listed but what was not recorded, which is where there is any.
pub(crate) fn category_rows(walks: &[Walk]) -> Vec<CategoryRow> {
    let (sums, all) = (sums(walks), time(walks));
    let row = |category: Category| {
        let time = sums.get(&category).copied().unwrap_or(Span::ZERO);
        let name = category.name().to_owned();
        CategoryRow { category: name, time_us: time.as_us_f64(), share: share(time, all) }
    };
    let listed = |category: &Category| *category != Category::NotRecorded || sums.contains_key(category);
    Category::ALL.into_iter().filter(listed).map(row).collect()
}

/// The mean of several ranks' rows.
pub(crate) fn mean_rows(ranks: &[RankTimeRow]) -> Vec<CategoryRow> {
    let count = ranks.len().max(1) as f64;
    let all = ranks.iter().map(|rank| rank.time_us).sum::<f64>() / count;
    let mut rows: Vec<CategoryRow> = Vec::new();
    for category in Category::ALL {
        let own = ranks.iter().flat_map(|rank| &rank.categories);
        let mut times = own.filter(|row| row.category == category.name()).map(|row| row.time_us).peekable();
        if times.peek().is_some() {
            let time_us = times.sum::<f64>() / count;
            let share = if all > 0.0 { time_us / all } else { 0.0 };
            rows.push(CategoryRow { category: category.name().to_owned(), time_us, share });
        }
    }
    rows
}

/// A rank's own time, of all its cores.
pub(crate) fn rank_time_row(rank: RankId, cores: &[Walk], names: &Names<'_>) -> RankTimeRow {
    let (name, time_us) = (names.rank(rank), time(cores).as_us_f64());
    RankTimeRow { rank: rank.0, name, time_us, categories: category_rows(cores) }
}

/// The time of all pieces of walks.
fn time(walks: &[Walk]) -> Span {
    walks.iter().fold(Span::ZERO, |sum, walk| sum.saturating_add(walk.time()))
}

fn piece_row(piece: &Piece, origin: Time, (what, place): (String, String)) -> PieceRow {
    PieceRow {
        from_ns: ns(piece.begin - origin),
        to_ns: ns(piece.end - origin),
        time_ns: ns(piece.span()),
        category: piece.kind.category().name().to_owned(),
        what,
        place,
    }
}

/// All pieces of a walk in the order of time.
pub(crate) fn piece_rows(walk: &Walk, names: &Names<'_>) -> Vec<PieceRow> {
    walk.pieces
        .iter()
        .map(|piece| piece_row(piece, walk.begin, (names.what(piece), names.place(piece))))
        .collect()
}

/// The `count` longest pieces of a walk, the longest first; of equals the earlier one. Counted from the
/// beginning of the run. `place`: the name of the place of a piece.
pub(crate) fn longest(
    walk: &Walk,
    count: usize,
    names: &Names<'_>,
    place: impl Fn(&Piece) -> String,
) -> Vec<PieceRow> {
    let mut pieces: Vec<&Piece> = walk.pieces.iter().collect();
    pieces.sort_by_key(|piece| (std::cmp::Reverse(piece.span()), piece.begin));
    pieces.truncate(count);
    pieces.into_iter().map(|piece| piece_row(piece, Time::ZERO, (names.what(piece), place(piece)))).collect()
}

/// The `count` activities at one place on which a walk spends most time. `place`: the name of the place of a
/// piece.
pub(crate) fn place_rows(
    walk: &Walk,
    count: usize,
    names: &Names<'_>,
    place: impl Fn(&Piece) -> String,
) -> Vec<PlaceRow> {
    let mut sums: BTreeMap<(String, String), (Span, u64)> = BTreeMap::new();
    for piece in &walk.pieces {
        let sum = sums.entry((names.what(piece), place(piece))).or_insert((Span::ZERO, 0));
        *sum = (sum.0 + piece.span(), sum.1 + 1);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, (span, _))| std::cmp::Reverse(*span));
    rows.truncate(count);
    let all = walk.time();
    let row = |((what, place), (span, pieces))| PlaceRow {
        what,
        place,
        time_us: Span::as_us_f64(span),
        share: share(span, all),
        pieces,
    };
    rows.into_iter().map(row).collect()
}
