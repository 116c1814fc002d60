//! Waits for late partners, each charged to one cause.
//!
//! ```text
//!  rank 2 ─[send]─ waits ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄╮
//!  path   ── rank 0 ──╮ rank 5 ──╮ rank 1 ───────────┘   through three ranks: a serial chain
//!         ──────────────────────── rank 1 ───────────┘   one rank: late, by the call and its message
//! ```
//! The cause of a wait is what the critical path does meanwhile: that is what the run waits for. While the
//! path is at the rank that waits, or in the software of a partner that answers, nobody is late.

use super::diagnosis::{Fact, Found, Judged, TimePart, is_collective, percent, ps};
use std::collections::{BTreeMap, BTreeSet};
use weft_msg::EnvelopeKind;
use weft_units::{RankId, Time};
use weft_workload::path::{Category, Location, PathTrace, Piece, PieceKind, Walk};

/// The reason for which a partner is late.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum WaitsFor {
    /// It waits itself.
    Chain,
    /// It has not come to a collective.
    Collective,
    /// It has not come to its receive.
    Receiver,
    /// It has not come to its send.
    Sender,
}

/// Time of waits, and whom and where they are for.
#[derive(Default)]
struct Sum {
    ps: u128,
    partners: BTreeMap<RankId, u128>,
    calls: BTreeMap<&'static str, u128>,
}

impl Sum {
    fn add(&mut self, time: u128, partner: RankId, call: Option<&'static str>) {
        if time > 0 {
            self.ps += time;
            *self.partners.entry(partner).or_default() += time;
            if let Some(call) = call {
                *self.calls.entry(call).or_default() += time;
            }
        }
    }

    /// The rank that most of it is for; the first of equals.
    fn partner(&self) -> Option<RankId> {
        most(&self.partners)
    }

    /// The call that most of it is in.
    fn call(&self) -> Option<&'static str> {
        most(&self.calls)
    }
}

fn most<K: Copy + Ord>(sums: &BTreeMap<K, u128>) -> Option<K> {
    sums.iter().rev().max_by_key(|(_, sum)| **sum).map(|(key, _)| *key)
}

/// The waits of all ranks for late partners.
pub(super) struct Waits {
    sums: BTreeMap<WaitsFor, Sum>,
    /// The part that balanced computation would save.
    imbalance: Sum,
    /// Different ranks on the critical path.
    ranks_on_path: usize,
}

impl Waits {
    /// Charges the waits of a run.
    pub fn of(judged: &Judged<'_>) -> Waits {
        let Judged { trace, path, ranks, .. } = *judged;
        let stays = Stays::of(path, trace);
        let sends = sends(trace);
        let most = ranks.iter().map(|rank| rank.time(Category::Computation)).max().unwrap_or(0);
        let longest = ranks.iter().rev().max_by_key(|rank| rank.time(Category::Computation));
        let mut waits = Waits {
            sums: BTreeMap::new(),
            imbalance: Sum::default(),
            ranks_on_path: stays.0.iter().map(|stay| stay.rank).collect::<BTreeSet<_>>().len(),
        };
        for view in ranks {
            // So much more the rank that computes most does.
            let mut spare = u128::from(most - view.time(Category::Computation));
            for piece in &view.late {
                let Location::Rank(partner) = piece.place else { continue };
                let meanwhile = stays.meanwhile(view.rank, (piece.begin, piece.end));
                let cause = cause(piece, &meanwhile, trace);
                let mut time = match cause {
                    WaitsFor::Chain => ps(piece.span()),
                    _ => meanwhile.elsewhere,
                };
                // One that only receives from another, or only sends to it, waits for the order of things,
                // whoever computes more.
                let is_mutual =
                    sends.contains(&(view.rank, partner)) && sends.contains(&(partner, view.rank));
                if cause == WaitsFor::Collective || is_mutual && cause != WaitsFor::Chain {
                    let balanced = time.min(spare);
                    waits.imbalance.add(balanced, partner, piece.within);
                    spare -= balanced;
                    time -= balanced;
                }
                waits.sums.entry(cause).or_default().add(time, partner, piece.within);
            }
            // A rank that has ended waits for the end of the run.
            let idle = ps(path.end.saturating_since(view.end)) * u128::from(view.cores);
            if let Some(longest) = longest {
                let balanced = idle.min(spare);
                waits.imbalance.add(balanced, longest.rank, None);
                if stays.meanwhile(view.rank, (view.end, path.end)).is_chain {
                    waits.sums.entry(WaitsFor::Chain).or_default().add(idle - balanced, longest.rank, None);
                }
            }
        }
        waits
    }

    /// The waits that balanced computation would save.
    pub fn imbalance(&self, judged: &Judged<'_>) -> Found {
        let part = TimePart { ps: self.imbalance.ps, of: judged.ranks_time() };
        let by_time = |rank: &&super::RankView| rank.time(Category::Computation);
        let longest = judged.ranks.iter().rev().max_by_key(by_time);
        let sum = judged.ranks.iter().map(|rank| u128::from(rank.time(Category::Computation))).sum();
        let mean = judged.mean_us(sum);
        let (name, most) = longest.map_or((String::new(), 0.0), |rank| {
            (judged.names.rank(rank.rank), rank.time(Category::Computation) as f64 / 1e6)
        });
        let call = self.imbalance.call();
        let place = call.map_or(String::new(), |call| format!(", mostly in {call}"));
        let mut evidence = vec![
            ("rank", Fact::Name(name.clone())),
            ("computation_us", Fact::Number(most)),
            ("mean_computation_us", Fact::Number(mean)),
        ];
        evidence.extend(call.map(|call| ("call", Fact::Name(call.to_owned()))));
        let words = format!(
            "{name} computes for {most:.3} us and a rank on average for {mean:.3} us; the others wait for it \
             for {} of the ranks' time{place}",
            percent(part.share())
        );
        Found { part, words, evidence }
    }

    /// The waits of one cause.
    pub fn found(&self, cause: WaitsFor, judged: &Judged<'_>) -> Found {
        let none = Sum::default();
        let sum = self.sums.get(&cause).unwrap_or(&none);
        let part = TimePart { ps: sum.ps, of: judged.ranks_time() };
        let share = percent(part.share());
        let partner = sum.partner().map_or(String::new(), |rank| judged.names.rank(rank));
        let place = sum.call().map_or(String::new(), |call| format!(" in {call}"));
        let (on_path, all) = (self.ranks_on_path, judged.ranks.len());
        let words = match cause {
            WaitsFor::Chain => format!(
                "ranks wait{place} for ranks that wait themselves for {share} of their time; the critical \
                 path goes through {on_path} of {all} ranks in turn"
            ),
            WaitsFor::Collective => format!(
                "ranks wait{place} for ranks that come later for {share} of their time, mostly for {partner}"
            ),
            WaitsFor::Receiver => format!(
                "senders wait{place} for ranks that have not come to their receive for {share} of the ranks' \
                 time, mostly for {partner}"
            ),
            WaitsFor::Sender => format!(
                "receivers wait{place} for messages that are not sent yet for {share} of the ranks' time, \
                 mostly for those of {partner}"
            ),
        };
        let mut evidence = vec![("rank", Fact::Name(partner))];
        evidence.extend(sum.call().map(|call| ("call", Fact::Name(call.to_owned()))));
        if cause == WaitsFor::Chain {
            evidence.push(("ranks_on_path", Fact::Number(on_path as f64)));
        }
        Found { part, words, evidence }
    }
}

/// The cause of a wait.
fn cause(wait: &Piece, meanwhile: &Meanwhile, trace: &PathTrace) -> WaitsFor {
    if meanwhile.is_chain {
        return WaitsFor::Chain;
    }
    if wait.within.is_some_and(is_collective) {
        return WaitsFor::Collective;
    }
    let post = wait.message.and_then(|message| trace.post(message));
    match post.map(|post| post.kind) {
        // The answers of whoever takes data.
        Some(
            EnvelopeKind::ClearToSend
            | EnvelopeKind::Ack
            | EnvelopeKind::Receipt
            | EnvelopeKind::Read
            | EnvelopeKind::Admit
            | EnvelopeKind::Posted,
        ) => WaitsFor::Receiver,
        _ => WaitsFor::Sender,
    }
}

/// Who sends to whom outside of collectives.
fn sends(trace: &PathTrace) -> BTreeSet<(RankId, RankId)> {
    let is_own = |kind| matches!(kind, EnvelopeKind::Eager | EnvelopeKind::RequestToSend);
    let in_collective = |rank, after| {
        let call = trace.step(rank, after).and_then(weft_workload::replay::RankStep::call);
        call.is_some_and(is_collective)
    };
    let posts = trace.posts().iter().filter(|post| is_own(post.kind));
    posts.filter(|post| !in_collective(post.rank, post.after)).map(|post| (post.rank, post.to)).collect()
}

/// The critical path as the ranks that it stays at, one after the other. A message on its way counts for the
/// rank that sent it.
struct Stays(Vec<Stay>);

struct Stay {
    rank: RankId,
    is_software: bool,
    begin: Time,
    end: Time,
}

/// The critical path while a rank waits.
struct Meanwhile {
    /// Whether it goes through three ranks or more, and none holds it for half of the time: two ranks are one
    /// late partner and whoever waits for it.
    is_chain: bool,
    /// Time in ps at other ranks, in computation or with messages of theirs. A partner that takes a message
    /// and answers it is not late, nor is one that the rank's own message is on its way to.
    elsewhere: u128,
}

impl Stays {
    fn of(path: &Walk, trace: &PathTrace) -> Stays {
        let mut stays: Vec<Stay> = Vec::new();
        for piece in &path.pieces {
            let sender = piece.message.and_then(|message| trace.post(message)).map(|post| post.rank);
            let at = match (sender, piece.place) {
                (Some(sender), _) => Some(sender),
                (None, Location::Rank(rank)) => Some(rank),
                (None, _) => None,
            };
            let Some(rank) = at.filter(|_| piece.kind != PieceKind::NotRecorded) else { continue };
            let is_software = piece.kind.category() == Category::Software;
            match stays.last_mut().filter(|last| (last.rank, last.is_software) == (rank, is_software)) {
                Some(last) => last.end = piece.end,
                None => stays.push(Stay { rank, is_software, begin: piece.begin, end: piece.end }),
            }
        }
        Stays(stays)
    }

    /// The path between two times, while `waits` does.
    fn meanwhile(&self, waits: RankId, (begin, end): (Time, Time)) -> Meanwhile {
        let Stays(stays) = self;
        let first = stays.partition_point(|stay| stay.end <= begin);
        let within = stays[first..].iter().take_while(|stay| stay.begin < end);
        let mut seen: Vec<RankId> = Vec::new();
        // Of the rank that the path is at, and of the one that held it for longest.
        let (mut held, mut longest, mut last) = (0, 0, None);
        let mut elsewhere = 0;
        for stay in within {
            let time = ps(stay.end.min(end) - stay.begin.max(begin));
            held = if last == Some(stay.rank) { held + time } else { time };
            (last, longest) = (Some(stay.rank), longest.max(held));
            if seen.len() < 3 && !seen.contains(&stay.rank) {
                seen.push(stay.rank);
            }
            if stay.rank != waits && !stay.is_software {
                elsewhere += time;
            }
        }
        let is_chain = seen.len() == 3 && 2 * longest < ps(end.saturating_since(begin));
        Meanwhile { is_chain, elsewhere }
    }
}
