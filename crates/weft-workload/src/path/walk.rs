//! The walk from an end back through steps and messages.

use super::chain::chain;
use super::piece::{Location, Piece, PieceKind};
use super::trace::PathTrace;
use crate::replay::{Cause, Finish, MessageId, RankStep, StepKind};
use std::ops::Range;
use weft_units::{RankId, Span, Time};

/// A walk: its pieces, in order and without gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// Where it came to: where it was to go, or where the recording ends.
    pub begin: Time,
    /// The time at which it began.
    pub end: Time,
    /// The pieces between both.
    pub pieces: Vec<Piece>,
}

/// Whether the walk is to explain why, or whose fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// To the partner, and what it did.
    Everything,
    /// To a partner that answers at once, on behalf of this rank or one core of it; what else the partner did
    /// before makes it late.
    AnswersTo { rank: RankId, core: Option<u32> },
}

impl Follow {
    /// Whether a step is another's work, which makes that one late where the program began it.
    fn is_others(self, step: &RankStep) -> bool {
        match self {
            Follow::Everything => false,
            Follow::AnswersTo { rank, .. } if rank != step.rank => true,
            Follow::AnswersTo { core, .. } => !step.background && core.is_some_and(|core| core != step.core),
        }
    }
}

impl Walk {
    /// The critical path to the end of a rank's program, or to a [moment](PathTrace::moment) in it: what
    /// explains everything from `begin` on.
    pub fn to(trace: &PathTrace, finish: &Finish, begin: Time) -> Walk {
        walk(trace, *finish, begin, Follow::Everything)
    }

    /// The time of its pieces.
    pub fn time(&self) -> Span {
        self.pieces.iter().fold(Span::ZERO, |sum, piece| sum + piece.span())
    }

    /// The parts of it in `windows`, which are disjoint and in order: between them it has gaps.
    #[must_use]
    pub fn within(mut self, windows: &[Range<Time>]) -> Walk {
        let mut pieces = Vec::new();
        let mut windows = windows.iter().peekable();
        for piece in self.pieces {
            // A window that ends before this piece has none of those behind it either.
            while windows.next_if(|window| window.end <= piece.begin).is_some() {}
            for window in windows.clone().take_while(|window| window.start < piece.end) {
                let (begin, end) = (piece.begin.max(window.start), piece.end.min(window.end));
                if end > begin {
                    pieces.push(Piece { begin, end, ..piece });
                }
            }
        }
        self.pieces = pieces;
        self
    }
}

/// A rank's own time from `begin` to the end of its program, or to a [moment](PathTrace::moment) in it, a
/// walk for each of its cores: what the core did, and what it waited for while it waited. The pieces of a
/// wait say in which call the rank waits; that for a late partner says which message of the partner's ends
/// it. A core that waits for another of its rank waits for a late partner, too.
pub fn rank_time(trace: &PathTrace, finish: &Finish, begin: Time) -> Vec<Walk> {
    (0..trace.cores(finish.rank)).map(|core| core_time(trace, finish, core, begin)).collect()
}

/// The own time of one core of a rank.
fn core_time(trace: &PathTrace, finish: &Finish, core: u32, begin: Time) -> Walk {
    let Finish { rank, at: end, last } = *finish;
    let mut pieces: Vec<Piece> = Vec::new();
    let mut cursor = begin;
    let wait = |pieces: &mut Vec<Piece>, cursor: Time, waited: Finish, call: Option<&'static str>| {
        let mut walk = walk(trace, waited, cursor, Follow::AnswersTo { rank, core: Some(core) });
        if walk.begin > cursor {
            let (kind, place) = (PieceKind::NotRecorded, Location::Rank(rank));
            pieces.push(Piece { begin: cursor, end: walk.begin, kind, place, message: None, within: None });
        }
        for piece in walk.pieces.iter_mut().filter(|piece| piece.message.is_some()) {
            piece.within = call;
        }
        pieces.extend(walk.pieces);
    };
    let is_own = |step: &&RankStep| !step.background && step.core == core;
    for step in trace.steps(rank).iter().filter(is_own).filter(|step| step.end > begin && step.end <= end) {
        if step.begin > cursor {
            let waited = Finish { rank, at: step.begin, last: step.cause };
            wait(&mut pieces, cursor, waited, step.call());
            cursor = step.begin;
        }
        pieces.extend(piece(step, cursor));
        cursor = step.end;
    }
    if end > cursor {
        wait(&mut pieces, cursor, Finish { rank, at: end, last }, None);
    }
    exact(Walk { begin, end, pieces })
}

/// A message's own time, from when `sender` began to post it until it was delivered: what the sender did
/// until it was on its way, and that way. Announced data is explained by the answer that it waited for; a
/// receiver that had not come so far in its program is late.
pub fn message_time(
    trace: &PathTrace,
    message: MessageId,
    sender: RankId,
    (posted, delivered): (Time, Time),
) -> Walk {
    let arrival = Finish { rank: sender, at: delivered, last: Cause::Arrived(message) };
    let mut walk = walk(trace, arrival, posted, Follow::AnswersTo { rank: sender, core: None });
    if walk.begin > posted {
        let (kind, place, message) = (PieceKind::NotRecorded, Location::Rank(sender), Some(message));
        walk.pieces.insert(0, Piece { begin: posted, end: walk.begin, kind, place, message, within: None });
        walk.begin = posted;
    }
    exact(walk)
}

/// The time of a message from its post until it was delivered, where nothing but its own way is of interest;
/// `None`: its post is not recorded.
pub fn way_time(trace: &PathTrace, message: MessageId, delivered: Time) -> Option<Walk> {
    let post = trace.post(message)?;
    Some(exact(Walk { begin: post.at, end: delivered, pieces: chain(trace, post, delivered) }))
}

/// The piece that a step is, from `from` on.
fn piece(step: &RankStep, from: Time) -> Option<Piece> {
    let kind = match step.kind {
        StepKind::Compute => PieceKind::Compute,
        StepKind::Software(work, call) => PieceKind::Software(work, call),
        StepKind::Pass => return None,
    };
    let (begin, end) = (step.begin.max(from), step.end);
    (end > begin).then_some(Piece {
        begin,
        end,
        kind,
        place: Location::Rank(step.rank),
        message: None,
        within: step.within,
    })
}

/// Walks back to `begin` from the moment `end` of a rank, which its last cause explains.
fn walk(trace: &PathTrace, end: Finish, begin: Time, follow: Follow) -> Walk {
    let Finish { mut rank, at: end, last: mut cause } = end;
    // Backwards, and turned round at the end.
    let mut pieces = Vec::new();
    let mut cursor = end;
    let mut awaited = None;
    while cursor > begin {
        match cause {
            Cause::Beginning => break,
            Cause::After(number) => {
                let Some(step) = trace.step(rank, number) else { break };
                debug_assert_eq!(step.end, cursor, "a step ends where the next one begins");
                let is_others = follow.is_others(step);
                let is_late = is_others && step.kind == StepKind::Compute;
                if !is_late {
                    pieces.extend(piece(step, begin));
                    cursor = step.begin.max(begin);
                }
                cause = step.cause;
                let by_program = step.first && matches!(cause, Cause::After(_) | Cause::Beginning);
                if (is_late || by_program && is_others) && cursor > begin {
                    let (kind, place) = (PieceKind::LatePartner, Location::Rank(rank));
                    pieces.push(Piece { begin, end: cursor, kind, place, message: awaited, within: None });
                    cursor = begin;
                }
            }
            Cause::Arrived(message) | Cause::Sent(message) => {
                let Some(post) = trace.post(message) else { break };
                let on_its_way = chain(trace, post, cursor).into_iter().rev();
                let after_begin = on_its_way.take_while(|piece| piece.end > begin);
                pieces.extend(after_begin.map(|piece| Piece { begin: piece.begin.max(begin), ..piece }));
                cursor = post.at.max(begin);
                awaited = Some(message);
                rank = post.rank;
                cause = Cause::After(post.after);
            }
        }
    }
    pieces.reverse();
    exact(Walk { begin: cursor, end, pieces })
}

/// Makes sure that every picosecond is in one piece.
fn exact(walk: Walk) -> Walk {
    let mut cursor = walk.begin;
    for piece in &walk.pieces {
        assert!(
            piece.begin == cursor && piece.end > cursor,
            "a gap or an overlap at {cursor} before {piece:?}"
        );
        cursor = piece.end;
    }
    assert_eq!(cursor, walk.end, "the pieces end where the walk began");
    walk
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a piece that is cut at the wrong end, one that a gap swallows, and one in two windows that is
    /// counted once.
    #[test]
    fn what_lies_in_windows_is_cut_at_their_bounds() {
        let at = Time::from_ps;
        let piece = |(begin, end): (u64, u64)| Piece {
            begin: at(begin),
            end: at(end),
            kind: PieceKind::Compute,
            place: Location::Rank(RankId(0)),
            message: None,
            within: None,
        };
        let pieces = [(0, 10), (10, 12), (12, 40), (40, 50)].map(piece).to_vec();
        let walk = Walk { begin: at(0), end: at(50), pieces };
        let windows = [(5, 10), (10, 10), (11, 13), (20, 30), (35, 45), (60, 70)];
        let inside = walk.clone().within(&windows.map(|(begin, end)| at(begin)..at(end)));
        let expected = [(5, 10), (11, 12), (12, 13), (20, 30), (35, 40), (40, 45)].map(piece);
        assert_eq!((inside.pieces.as_slice(), inside.time()), (&expected[..], Span::from_ps(27)));
        assert_eq!((walk.time(), walk.within(&[]).time()), (Span::from_ps(50), Span::ZERO));
    }
}
