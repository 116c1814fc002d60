//! `weft explain`: where the time of a program went.
//!
//! ```text
//!  run.json ──► the same run again, recorded ──► the same rows? ──► critical path ──► Explanation
//! ```
//! A run is deterministic, so that nothing needs to be kept of it but its request: it is run again with
//! recording switched on, which changes nothing, and its rows are held against those of `run.json`. Real
//! processes are not run again: such a run is recorded as it goes and explained when it ends.
//!
//! Of each run there are two views, whose categories add up exactly:
//!
//! - the critical path: what explains the end of the run. Where a rank waits for a message, the path goes
//!   on along the message and then at the rank that sent it, so that waiting for a late partner turns into
//!   what the partner did;
//! - the ranks' own time: what a rank's processor did, and what it waited for while it waited. Here a
//!   partner that has not come so far in its program is a late partner.

use super::path::{
    CategoryRow, Names, PieceRow, PlaceRow, RankTimeRow, category_rows, longest, mean_rows, place_rows,
    rank_time_row,
};
use super::{Control, ExperimentError, Manifest, Request, osu, replay};
use serde::{Deserialize, Serialize};
use weft_results::Ending;
use weft_units::{RankId, Span, Time};
use weft_workload::path::{PathTrace, Walk, rank_time};
use weft_workload::replay::Finish;

/// Places and pieces that are listed, at most.
const NAMED: usize = 10;

/// The part of a run that is to be explained, and the threads for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExplainOptions {
    /// Length of the last part of a replay that is explained; `None`: all of it.
    pub last: Option<Span>,
    /// Threads that simulate.
    pub threads: u32,
}

/// A run, explained.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explained {
    /// The column `run` of the tables.
    pub run: u32,
    /// The program or benchmark.
    pub of: String,
    /// The virtual time from which on it is explained.
    pub from_us: f64,
    /// The virtual time up to which it is explained.
    pub to_us: f64,
    /// The rank whose end the critical path explains.
    pub rank: String,
    /// The critical path by category.
    pub critical_path: Vec<CategoryRow>,
    /// The own time of the rank that the critical path ends at.
    pub own_time: Vec<CategoryRow>,
    /// The mean of all ranks' own time.
    pub mean_time: Vec<CategoryRow>,
    /// The places at which most of the critical path is spent.
    pub places: Vec<PlaceRow>,
    /// The longest pieces of the critical path.
    pub longest: Vec<PieceRow>,
    /// The own time of every rank.
    pub ranks: Vec<RankTimeRow>,
}

/// Runs a finished run again and explains it; `None`: interrupted.
///
/// # Errors
/// A run without programs, one that did not finish, one that comes out differently now, and a record that
/// takes too much memory.
pub fn run(
    request: &Request,
    manifest: &Manifest,
    options: ExplainOptions,
    control: Control<'_>,
) -> Result<Option<Vec<Explained>>, ExperimentError> {
    if manifest.ended != Ending::Finished {
        return Err(ExperimentError::input(format!(
            "the run ended with {}: only what has come to its end can be explained from there",
            manifest.ended
        )));
    }
    match request {
        Request::Replay(request) => replay::explain(request, manifest, options, control),
        Request::Osu(request) => osu::explain(request, manifest, options, control),
        Request::Traffic(_) => Err(ExperimentError::input(
            "these are results of traffic, where nothing waits for anything else: explain is for programs; \
             see links.parquet for its busiest links, or explain a run of weft replay or weft osu",
        )),
        Request::Run(_) if options.last.is_some() => Err(ExperimentError::input(
            "--last: a run of real processes was explained when it ended; leave --last out",
        )),
        // It cannot be run again by its request alone.
        Request::Run(_) => Ok(Some(manifest.explained.clone())),
        Request::ExpectedBcast(_) => Err(ExperimentError::input(
            "these are results of many benchmarks; run one of them, such as weft osu bcast -o DIR, and \
             explain that",
        )),
    }
}

/// Makes sure that the rows of `run.json` have come out again.
pub(crate) fn check_same<R: Serialize>(rows: &[R], manifest: &Manifest) -> Result<(), ExperimentError> {
    // As text and back: so were those of the manifest.
    let text = serde_json::to_string(rows).map_err(ExperimentError::input)?;
    let again: Vec<serde_json::Value> = serde_json::from_str(&text).map_err(ExperimentError::input)?;
    if again == manifest.rows {
        return Ok(());
    }
    let (then, now) = (&manifest.weft_version, env!("CARGO_PKG_VERSION"));
    let why = match then == now {
        true => "the same weft must give the same: please report this".to_owned(),
        false => {
            format!("they were made by weft {then}, and this is {now}; run the command again with this one")
        }
    };
    Err(ExperimentError::input(format!("the run came out differently from its results: {why}")))
}

/// A stretch of a rank's time: from `begin` to the moment `end`.
pub(crate) type Stretch = (Time, Finish);

/// A run that was recorded.
pub(crate) struct RecordedRun<'a> {
    /// The column `run` of the tables.
    pub run: u32,
    /// The program or benchmark.
    pub of: String,
    pub trace: &'a PathTrace,
    pub names: &'a Names<'a>,
}

/// Explains a run: the critical path to the end of a stretch, and the own time of the ranks.
pub(crate) fn explained(recorded: RecordedRun<'_>, (begin, end): Stretch, ranks: &[Stretch]) -> Explained {
    let RecordedRun { run, of, trace, names } = recorded;
    let path = Walk::to(trace, &end, begin);
    let begin = path.begin;
    let own = rank_time(trace, &end, begin);
    let time = |(from, finish): &Stretch| {
        let from = (*from).max(begin);
        (finish.at > from).then(|| rank_time_row(finish.rank, &rank_time(trace, finish, from), names))
    };
    let ranks: Vec<RankTimeRow> = ranks.iter().filter_map(time).collect();
    let us = |time: Time| (time - Time::ZERO).as_us_f64();
    Explained {
        run,
        of,
        from_us: us(begin),
        to_us: us(end.at),
        rank: names.rank(end.rank),
        critical_path: category_rows(&path),
        own_time: category_rows(&own),
        mean_time: mean_rows(&ranks),
        places: place_rows(&path, NAMED, names),
        longest: longest(&path, NAMED, names),
        ranks,
    }
}

/// The rank that ended last; the first of equals.
pub(crate) fn last_to_finish(trace: &PathTrace) -> Option<Finish> {
    let finishes = trace.finishes().iter();
    finishes.copied().max_by_key(|finish: &Finish| (finish.at, std::cmp::Reverse::<RankId>(finish.rank)))
}
