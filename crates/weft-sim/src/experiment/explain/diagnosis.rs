//! The diagnosis of a run: the one pattern that costs it most, in a sentence.
//!
//! ```text
//!  own time of the ranks ──► waits  ─┐
//!  critical path, links  ──► traffic ├─► a measure for each pattern ─► the largest above its threshold
//!  bursts of messages    ──► bursts ─┘
//! ```
//! The page of `weft explain` says what each measure is. In short:
//!
//! | pattern | measure | a share of |
//! |---|---|---|
//! | imbalance | late partners and the end, as far as a rank computes less than the longest | ranks' time |
//! | serial chain | late partners that wait themselves: the path goes through three ranks | ranks' time |
//! | wait at a collective | other late partners in collectives | ranks' time |
//! | late receiver | other late partners that have not come to their receive | ranks' time |
//! | late sender | all other late partners | ranks' time |
//! | bad mapping | network latency and contention that shorter ways would save | critical path |
//! | hot link | contention behind a busy link that several flows share | critical path |
//! | small eager messages | cost of messages that could have gone with the one before | critical path |
//! | no overlap | the smaller of computation and of waits in `MPI_Wait` | ranks' time |
//!
//! All sums are integers of picoseconds, and each late wait counts for one pattern alone. Where two patterns
//! cost the same, the earlier in the table is named: it is nearer to the cause.

use super::RankView;
use super::bursts::Bursts;
use super::traffic::Traffic;
use super::waits::{Waits, WaitsFor};
use crate::experiment::path::Names;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_trace::Kind;
use weft_units::Span;
use weft_workload::path::{Category, PathTrace, Walk};

/// The least share of a run, in thousandths, for which a pattern is named. Without it the run would be at
/// most 1.11 times as fast, and measured computation (`--host cpu`) differs by a few percent from run to run.
const THRESHOLD: u64 = 100;
/// The same for a lack of overlap. No program hides all that could be hidden in theory: half is good.
const OVERLAP_THRESHOLD: u64 = 200;

/// A known way in which a program is slow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One rank computes for longer than the others, which wait for it.
    Imbalance,
    /// Ranks wait for each other in turn, so that one works at a time.
    SerialChain,
    /// Ranks wait in a collective for those that come later, now these and now those.
    WaitAtCollective,
    /// Senders wait for ranks that have not come to their receive.
    LateReceiver,
    /// Receivers wait for messages that are not sent yet.
    LateSender,
    /// Ranks that talk to each other are far apart.
    BadMapping,
    /// Several flows share one link.
    HotLink,
    /// Many messages go one by one that could go together.
    SmallMessages,
    /// Ranks wait for messages under way, and compute, but never both at a time.
    NoOverlap,
}

/// A value that a diagnosis rests on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// A number, in the unit that its name ends with.
    Number(f64),
    /// The name of a rank, a link or a call.
    Name(String),
}

/// The verdict on a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The pattern that costs most; `None`: none passes its threshold.
    pub pattern: Option<Pattern>,
    /// The share of the run that it costs; of none, that of the largest.
    pub share: f64,
    /// The same in words.
    pub sentence: String,
    /// Computation as a share of all ranks' time: the parallel efficiency. `None`: no rank computes.
    pub efficiency: Option<f64>,
    /// The values that the sentence rests on.
    pub evidence: BTreeMap<String, Fact>,
    /// The measure of every pattern as a share of the run, whether or not it passes its threshold.
    pub shares: BTreeMap<Pattern, f64>,
}

/// A part of some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TimePart {
    /// In ps: sums over ranks are longer than virtual time.
    pub ps: u128,
    pub of: u128,
}

impl TimePart {
    fn thousandths(self) -> u64 {
        (self.ps * 1000).checked_div(self.of).unwrap_or(0) as u64
    }

    /// The share, for reports.
    pub fn share(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.ps as f64 / self.of as f64 }
    }
}

/// A pattern as it was found.
pub(super) struct Found {
    pub part: TimePart,
    /// Behind the pattern's name in the sentence.
    pub words: String,
    pub evidence: Vec<(&'static str, Fact)>,
}

/// The recorded run that is judged.
pub(super) struct Judged<'a> {
    pub trace: &'a PathTrace,
    pub names: &'a Names<'a>,
    /// The critical path.
    pub path: &'a Walk,
    pub ranks: &'a [RankView],
}

impl Judged<'_> {
    /// The time of all ranks' cores, up to the end of the last.
    pub fn ranks_time(&self) -> u128 {
        let cores: u64 = self.ranks.iter().map(|rank| u64::from(rank.cores)).sum();
        u128::from(self.path.time().as_ps()) * u128::from(cores)
    }

    /// The mean of a time over ranks.
    pub fn mean_us(&self, ps: u128) -> f64 {
        ps as f64 / self.ranks.len().max(1) as f64 / 1e6
    }
}

/// A share as people read it.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

impl Pattern {
    /// All, causes before what they cause.
    const ALL: [Pattern; 9] = [
        Pattern::Imbalance,
        Pattern::SerialChain,
        Pattern::WaitAtCollective,
        Pattern::LateReceiver,
        Pattern::LateSender,
        Pattern::BadMapping,
        Pattern::HotLink,
        Pattern::SmallMessages,
        Pattern::NoOverlap,
    ];

    /// The name in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Imbalance => "imbalance",
            Pattern::SerialChain => "serial chain",
            Pattern::WaitAtCollective => "wait at a collective",
            Pattern::LateReceiver => "late receiver",
            Pattern::LateSender => "late sender",
            Pattern::BadMapping => "bad mapping",
            Pattern::HotLink => "hot link",
            Pattern::SmallMessages => "small eager messages",
            Pattern::NoOverlap => "no overlap",
        }
    }

    /// The least measure for which it is named, in thousandths.
    const fn threshold(self) -> u64 {
        match self {
            Pattern::NoOverlap => OVERLAP_THRESHOLD,
            _ => THRESHOLD,
        }
    }
}

/// Judges a run.
pub(super) fn diagnose(judged: &Judged<'_>, traffic: &Traffic<'_>) -> Diagnosis {
    let waits = Waits::of(judged);
    let found = Pattern::ALL.map(|pattern| {
        let found = match pattern {
            Pattern::Imbalance => waits.imbalance(judged),
            Pattern::SerialChain => waits.found(WaitsFor::Chain, judged),
            Pattern::WaitAtCollective => waits.found(WaitsFor::Collective, judged),
            Pattern::LateReceiver => waits.found(WaitsFor::Receiver, judged),
            Pattern::LateSender => waits.found(WaitsFor::Sender, judged),
            Pattern::BadMapping => traffic.bad_mapping(judged),
            Pattern::HotLink => traffic.hot_link(judged),
            Pattern::SmallMessages => Bursts::of(judged).found(judged),
            Pattern::NoOverlap => no_overlap(judged),
        };
        (pattern, found)
    });
    let shares = found.iter().map(|(pattern, found)| (*pattern, found.part.share())).collect();
    let computes: u128 = judged.ranks.iter().map(|rank| u128::from(rank.time(Category::Computation))).sum();
    let efficiency = (computes > 0).then(|| TimePart { ps: computes, of: judged.ranks_time() }.share());
    let passes = |(pattern, found): &&(Pattern, Found)| found.part.thousandths() >= pattern.threshold();
    // The earlier of equals: the last of those that compare as most is the first here.
    let named = found.iter().rev().filter(passes).max_by_key(|(_, found)| found.part.thousandths());
    match named {
        Some((pattern, Found { part, words, evidence })) => Diagnosis {
            pattern: Some(*pattern),
            share: part.share(),
            sentence: format!("{}: {words}.", capital(pattern.name())),
            efficiency,
            evidence: evidence.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect(),
            shares,
        },
        None => Diagnosis {
            pattern: None,
            share: found.iter().map(|(_, found)| found.part.share()).fold(0.0, f64::max),
            sentence: "No known pattern costs enough of the run to be named.".to_owned(),
            efficiency,
            evidence: BTreeMap::new(),
            shares,
        },
    }
}

fn capital(name: &str) -> String {
    let first = name.chars().next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(name.chars().skip(1)).collect()
}

/// Computation and waits for messages under way that could have gone side by side.
fn no_overlap(judged: &Judged<'_>) -> Found {
    let alone = |rank: &RankView| rank.time(Category::Computation).saturating_sub(rank.overlapped);
    let pairs = judged.ranks.iter().map(|rank| (alone(rank), rank.waits_in_wait));
    let could = pairs.clone().map(|(computes, waits)| u128::from(computes.min(waits))).sum();
    let part = TimePart { ps: could, of: judged.ranks_time() };
    let (computes, waits) = pairs
        .fold((0, 0), |(computes, waits), pair| (computes + u128::from(pair.0), waits + u128::from(pair.1)));
    let (computes, waits) = (judged.mean_us(computes), judged.mean_us(waits));
    Found {
        part,
        words: format!(
            "a rank computes for {computes:.3} us while no message is under way that it waits for, and waits \
             in MPI_Wait for {waits:.3} us; side by side they would save up to {} of the run",
            percent(part.share())
        ),
        evidence: vec![("computation_us", Fact::Number(computes)), ("waits_us", Fact::Number(waits))],
    }
}

/// Time as ps of sums.
pub(super) fn ps(span: Span) -> u128 {
    u128::from(span.as_ps())
}

/// Whether all ranks of a communicator meet in a call: an MPI call of a real rank, or the kind of an
/// operation of a simulated one.
pub(super) fn is_collective(call: &str) -> bool {
    let Some(name) = call.strip_prefix("MPI_") else {
        return matches!(
            Kind::from_name(call.as_bytes()),
            Some(Kind::Collective(_) | Kind::Communicator | Kind::Window)
        ) || call == "win_fence";
    };
    let name = name.split('_').next().unwrap_or(name);
    matches!(
        name,
        "Allgather"
            | "Allgatherv"
            | "Allreduce"
            | "Alltoall"
            | "Alltoallv"
            | "Alltoallw"
            | "Barrier"
            | "Bcast"
            | "Cart"
            | "Comm"
            | "Dist"
            | "Exscan"
            | "Finalize"
            | "Gather"
            | "Gatherv"
            | "Graph"
            | "Init"
            | "Intercomm"
            | "Neighbor"
            | "Reduce"
            | "Scan"
            | "Scatter"
            | "Scatterv"
    ) || matches!(call, "MPI_Win_fence" | "MPI_Win_create" | "MPI_Win_allocate" | "MPI_Win_free")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a collective that is taken for a message between two ranks, and the reverse.
    #[test]
    fn collectives_are_told_from_messages() {
        for call in [
            "MPI_Barrier",
            "MPI_Reduce_scatter_block",
            "MPI_Neighbor_alltoallw",
            "MPI_Comm_split",
            "MPI_Finalize",
            "MPI_Win_fence",
            "barrier",
            "neighbor_allgatherv",
            "win_fence",
        ] {
            assert!(is_collective(call), "{call}");
        }
        for call in
            ["MPI_Recv", "MPI_Wait", "MPI_Ssend", "MPI_Win_lock", "wait", "isend", "win_wait", "probe"]
        {
            assert!(!is_collective(call), "{call}");
        }
    }
}
