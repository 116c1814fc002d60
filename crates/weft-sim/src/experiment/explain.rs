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
//!
//! | module | what it is |
//! |---|---|
//! | `diagnosis` | the pattern that costs most, in a sentence |
//! | `waits` | waits for late partners, by their cause |
//! | `traffic` | load of links, flows that share them, mappings |
//! | `bursts` | small messages that could go together |

mod bursts;
mod diagnosis;
mod traffic;
mod waits;

pub use diagnosis::{Diagnosis, Fact, Pattern};

use super::kernels::KernelLimit;
use super::path::{
    CategoryRow, Names, PieceRow, PlaceRow, RankTimeRow, category_rows, longest, mean_rows, place_rows,
    rank_time_row,
};
use super::ranks::{RankWindows, RegionAtEnd};
use super::{Control, ExperimentError, Manifest, Request, osu, replay};
use diagnosis::{Judged, diagnose};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::slice;
use traffic::Traffic;
use weft_results::Ending;
use weft_trace::Region;
use weft_units::{Bytes, RankId, Span, Time};
use weft_workload::path::{Category, PathTrace, Piece, PieceKind, Walk, rank_time};
use weft_workload::replay::{Cause, Finish, MessageId, PostedMessage};

/// Places, and longest pieces, that are listed where the user does not say; of a run of real processes no
/// more are kept.
pub const DEFAULT_TOP: usize = 10;

/// The part of a run that is to be explained, and the threads for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExplainOptions {
    /// Length of the last part of a replay that is explained; `None`: all of it.
    pub last: Option<Span>,
    /// Threads that simulate.
    pub threads: u32,
    /// The region of interest that is explained; `None`: all of the run.
    pub region: Option<Region>,
    /// The size of a benchmark that is explained; `None`: all sizes.
    pub size: Option<Bytes>,
    /// Places, and longest pieces, that are listed.
    pub top: usize,
}

/// A run, explained.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explained {
    /// The column `run` of the tables.
    pub run: u32,
    /// The program or benchmark.
    pub of: String,
    /// The region of interest, if only what lies in one is explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
    /// The virtual time from which on it is explained.
    pub from_us: f64,
    /// The virtual time up to which it is explained.
    pub to_us: f64,
    /// The rank whose end the critical path explains.
    pub rank: String,
    /// The pattern that costs most. `None`: explained by a weft that knew of none.
    #[serde(default)]
    pub diagnosis: Option<Diagnosis>,
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
    /// The kernels of a dataflow design, and which is the limit; `None`: the program has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<KernelLimit>,
}

/// Runs a run again and explains it, as far as it came; `None`: interrupted.
///
/// # Errors
/// A run without programs, one of which nothing is recorded, one that comes out differently now, an unknown
/// region, and a record that takes too much memory.
pub fn run(
    request: &Request,
    manifest: &Manifest,
    options: ExplainOptions,
    control: Control<'_>,
) -> Result<Option<Vec<Explained>>, ExperimentError> {
    if let (Some(size), false) = (options.size, matches!(request, Request::Osu(_) | Request::Traffic(_))) {
        return Err(ExperimentError::input(format!(
            "--size {size}: only benchmarks have sizes, and these are results of programs; leave --size out"
        )));
    }
    match request {
        Request::Replay(request) => replay::explain(request, manifest, options, control),
        Request::Osu(request) => osu::explain(request, manifest, options, control),
        Request::Traffic(_) | Request::Scenario(_) => Err(ExperimentError::input(
            "these are results of traffic, where nothing waits for anything else: explain is for programs; \
             see links.parquet for its busiest links, or explain a run of weft replay or weft osu",
        )),
        Request::Run(_) if options.last.is_some() => Err(ExperimentError::input(
            "--last: a run of real processes was explained when it ended; leave --last out",
        )),
        Request::Run(_) if options.top > DEFAULT_TOP => Err(ExperimentError::input(format!(
            "--top {}: a run of real processes was explained when it ended, with {DEFAULT_TOP} places and \
             pieces; write at most --top {DEFAULT_TOP}",
            options.top
        ))),
        // It cannot be run again by its request alone.
        Request::Run(_) => {
            let mut explained = explained_as_it_ran(manifest, options.region)?;
            for explained in &mut explained {
                explained.places.truncate(options.top);
                explained.longest.truncate(options.top);
            }
            Ok(Some(explained))
        }
        Request::ExpectedBcast(_) => Err(ExperimentError::input(
            "these are results of many benchmarks; run one of them, such as weft osu bcast -o DIR, and \
             explain that",
        )),
    }
}

/// The explanations of a run of real processes, which were made when it ended.
fn explained_as_it_ran(
    manifest: &Manifest,
    region: Option<Region>,
) -> Result<Vec<Explained>, ExperimentError> {
    let explained = manifest.explained.iter().filter(|explained| explained.region == region);
    let explained: Vec<Explained> = explained.cloned().collect();
    match (explained.is_empty(), region) {
        (true, Some(region)) => Err(ExperimentError::input(format!(
            "--region {region}: a run of real processes is explained when it ends, and this one was not \
             asked for it, or no rank was in it; run it with weft run --region {region} -o DIR"
        ))),
        (true, None) if manifest.ended != Ending::Finished => Err(ExperimentError::input(format!(
            "the run ended with {}, and nothing is recorded of what its ranks had done by then",
            manifest.ended
        ))),
        (true, None) => Err(ExperimentError::input(
            "nothing is recorded of why its ranks waited: over several rails no message has one way; run it \
             with --set messaging.rails=none, or replay a recording of the program",
        )),
        _ => Ok(explained),
    }
}

/// Makes sure that some rows of `run.json`, which are those of `manifest`, have come out again.
pub(crate) fn check_same_rows<R: Serialize>(
    rows: &[R],
    then: &[serde_json::Value],
    manifest: &Manifest,
) -> Result<(), ExperimentError> {
    // As text and back: so were those of the manifest.
    let text = serde_json::to_string(rows).map_err(ExperimentError::input)?;
    let again: Vec<serde_json::Value> = serde_json::from_str(&text).map_err(ExperimentError::input)?;
    if again == then {
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

/// An interval of a rank's time: from `begin` to the moment `end`.
pub(crate) type RankInterval = (Time, Finish);

/// A run that was recorded.
pub(crate) struct RecordedRun<'a> {
    /// The column `run` of the tables.
    pub run: u32,
    /// The program or benchmark.
    pub of: String,
    pub trace: &'a PathTrace,
    pub names: &'a Names<'a>,
    /// Places, and longest pieces, that are listed.
    pub top: usize,
}

/// Explains a run: the critical path to the end of an interval, and the own time of the ranks.
pub(crate) fn explained(
    recorded: RecordedRun<'_>,
    (begin, end): RankInterval,
    ranks: &[RankInterval],
) -> Explained {
    let RecordedRun { trace, names, .. } = recorded;
    let path = Walk::to(trace, &end, begin);
    let begin = path.begin;
    let own = rank_time(trace, &end, begin);
    let time = |(from, finish): &RankInterval| {
        let from = (*from).max(begin);
        (finish.at > from).then(|| RankView::of(finish, &rank_time(trace, finish, from), (trace, names)))
    };
    let ranks = ranks.iter().filter_map(time).collect();
    views(recorded, end.rank, None, Views { path, own, ranks })
}

/// Explains what lies in a region: the critical path to its last closing, while a rank is in it, and the own
/// time of the ranks in it. `ends` are those of the ranks that never close it. `None`: nothing is recorded of
/// it.
pub(crate) fn explained_region(
    recorded: RecordedRun<'_>,
    region: &RegionAtEnd,
    ends: &[Finish],
) -> Option<Explained> {
    let RecordedRun { trace, names, .. } = recorded;
    let intervals: Vec<(Finish, &[Range<Time>])> = region
        .ranks()
        .filter_map(|RankWindows { rank, windows, last }| {
            let closing = |last| Some(Finish { rank, at: windows.last()?.end, last });
            let end = || ends.iter().find(|end| end.rank == rank).copied();
            let finish = last.map_or_else(end, closing)?;
            (finish.at > windows.first()?.start).then_some((finish, windows))
        })
        .collect();
    let end = last_of(intervals.iter().map(|(finish, _)| finish))?;
    let all = region.windows();
    let path = Walk::to(trace, &end, all.first()?.start);
    let begin = path.begin;
    if begin >= end.at {
        return None;
    }
    let own = |(finish, windows): &(Finish, &[Range<Time>])| {
        let from = windows.first().map_or(begin, |window| window.start.max(begin));
        let within = |walk: Walk| walk.within(windows);
        (finish.at > from).then(|| rank_time(trace, finish, from).into_iter().map(within).collect::<Vec<_>>())
    };
    let view = |interval: &(Finish, _)| Some(RankView::of(&interval.0, &own(interval)?, (trace, names)));
    let ranks = intervals.iter().filter_map(view).collect();
    let own = intervals.iter().find(|(finish, _)| *finish == end).and_then(own)?;
    let path = path.within(&all);
    Some(views(recorded, end.rank, Some(region.region()), Views { path, own, ranks }))
}

/// The own time of a rank.
struct RankView {
    rank: RankId,
    /// The end of the rank, or of what is explained of it.
    end: Time,
    /// Cores that it is on.
    cores: u32,
    row: RankTimeRow,
    /// Time in ps, by [`Category::ALL`].
    times: [u64; Category::ALL.len()],
    /// Waits for late partners.
    late: Vec<Piece>,
    /// Time in ps of waits for messages under way, in calls that wait for what was begun before.
    waits_in_wait: u64,
    /// Time in ps of computation while a message that it waited for later was under way.
    overlapped: u64,
}

impl RankView {
    /// Of the walks of its cores.
    fn of(finish: &Finish, walks: &[Walk], (trace, names): (&PathTrace, &Names<'_>)) -> RankView {
        let Finish { rank, at: end, .. } = *finish;
        let mut view = RankView {
            rank,
            end,
            cores: walks.len() as u32,
            row: rank_time_row(rank, walks, names),
            times: [0; Category::ALL.len()],
            late: Vec::new(),
            waits_in_wait: 0,
            overlapped: 0,
        };
        walks.iter().for_each(|walk| view.add(walk, trace));
        view
    }

    /// Adds the time of a core.
    fn add(&mut self, walk: &Walk, trace: &PathTrace) {
        // Computation since the last wait.
        let mut computed: Vec<&Piece> = Vec::new();
        for piece in &walk.pieces {
            let (category, ps) = (piece.kind.category(), piece.span().as_ps());
            self.times[category as usize] += ps;
            let is_under_way = matches!(
                category,
                Category::Interface | Category::Network | Category::Serialization | Category::Contention
            );
            if is_under_way && piece.within.is_some_and(waits_for_requests) {
                self.waits_in_wait += ps;
                let since = |begun: Time| {
                    let after = |own: &&Piece| own.end.saturating_since(own.begin.max(begun)).as_ps();
                    computed.iter().map(after).sum::<u64>()
                };
                self.overlapped += piece.message.and_then(|message| begun(trace, message)).map_or(0, since);
                computed.clear();
            }
            if category == Category::Computation {
                computed.push(piece);
            }
        }
        self.late.extend(walk.pieces.iter().filter(|piece| piece.kind == PieceKind::LatePartner));
    }

    /// Time in ps of a category.
    fn time(&self, category: Category) -> u64 {
        self.times[category as usize]
    }
}

/// The time from which on a message, or what it answers, has been under way without a rank's processor. Data
/// that an interface sends for an announcement is under way with it; what a rank answers in a call of its own
/// begins there. `None`: its post is not recorded.
fn begun(trace: &PathTrace, message: MessageId) -> Option<Time> {
    let mut post = trace.post(message)?;
    while let Some(earlier) = answered(trace, post).and_then(|message| trace.post(message)) {
        post = earlier;
    }
    Some(post.at)
}

/// The message that was answered with `post` in the background, at once.
fn answered(trace: &PathTrace, post: &PostedMessage) -> Option<MessageId> {
    let mut step = trace.step(post.rank, post.after)?;
    loop {
        match step.cause {
            _ if !step.background => return None,
            Cause::Arrived(message) => return Some(message),
            // The first step of a notice that comes after another had to wait for the work on that.
            Cause::After(before) if !step.first => step = trace.step(post.rank, before)?,
            _ => return None,
        }
    }
}

/// Whether a call waits for operations that other calls have begun.
fn waits_for_requests(call: &str) -> bool {
    call.starts_with("MPI_Wait") || call.starts_with("wait")
}

/// The walks of an explanation.
struct Views {
    path: Walk,
    /// Of the rank that the path ends at.
    own: Vec<Walk>,
    ranks: Vec<RankView>,
}

fn views(recorded: RecordedRun<'_>, rank: RankId, region: Option<Region>, views: Views) -> Explained {
    let RecordedRun { run, of, trace, names, top } = recorded;
    let Views { path, own, ranks } = views;
    let us = |time: Time| (time - Time::ZERO).as_us_f64();
    let traffic = Traffic::between(trace, names, (path.begin, path.end));
    let diagnosis = diagnose(&Judged { trace, names, path: &path, ranks: &ranks }, &traffic);
    let ranks: Vec<RankTimeRow> = ranks.into_iter().map(|rank| rank.row).collect();
    Explained {
        run,
        of,
        region,
        from_us: us(path.begin),
        to_us: us(path.end),
        rank: names.rank(rank),
        diagnosis: Some(diagnosis),
        critical_path: category_rows(slice::from_ref(&path)),
        own_time: category_rows(&own),
        mean_time: mean_rows(&ranks),
        places: place_rows(&path, top, names, |piece| traffic.charged_to(piece)),
        longest: longest(&path, top, names, |piece| traffic.place(piece)),
        ranks,
        kernels: None,
    }
}

/// The rank that ended last; the first of equals.
pub(crate) fn last_to_finish(trace: &PathTrace) -> Option<Finish> {
    last_of(trace.finishes())
}

/// The last of these ends; that of the first rank of equals.
pub(crate) fn last_of<'a>(ends: impl IntoIterator<Item = &'a Finish>) -> Option<Finish> {
    ends.into_iter().copied().max_by_key(|end| (end.at, std::cmp::Reverse(end.rank)))
}
