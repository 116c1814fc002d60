//! The calls of a rank by operation: how many, and how long they took.

use serde::{Deserialize, Serialize};
use weft_trace::Kind;
use weft_units::{RankId, Span, Time};

/// The calls of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallSum {
    /// Calls that have begun.
    pub calls: u64,
    /// Time in those that have ended, waiting included.
    pub time: Span,
}

/// The calls of one operation by one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallReport {
    /// The rank's program.
    pub program: u32,
    /// The rank within its program.
    pub rank: RankId,
    /// The name of the operation: as traces have it, or of a real rank its MPI call.
    pub operation: &'static str,
    /// The number of calls and their time.
    pub sum: CallSum,
}

/// The calls of a rank so far. A program has few operations: they are searched one after the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallCounts {
    sums: Vec<(Kind, CallSum)>,
    /// The call that has not ended: its place among the sums, and when it began.
    open: OpenCall,
}

/// The call that has not ended: its place among the sums, and when it began.
pub(super) type OpenCall = Option<(u32, Time)>;

impl CallCounts {
    /// A call begins.
    #[inline]
    pub fn begin(&mut self, kind: Kind, at: Time) {
        let place = self.sums.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.sums.push((kind, CallSum::default()));
            self.sums.len() - 1
        });
        self.sums[place].1.calls += 1;
        self.open = Some((place as u32, at));
    }

    /// The call has ended, if one was open.
    #[inline]
    pub fn end(&mut self, at: Time) {
        if let Some((place, began)) = self.open.take() {
            let time = &mut self.sums[place as usize].1.time;
            *time = time.saturating_add(at.saturating_since(began));
        }
    }

    /// Another stream of the rank has the turn: this is its call.
    pub fn set_open(&mut self, open: OpenCall) {
        self.open = open;
    }

    /// The call of the stream whose turn is over.
    pub fn take_open(&mut self) -> OpenCall {
        self.open.take()
    }

    /// Operations with their sums.
    pub fn sums(&self) -> impl Iterator<Item = (&'static str, CallSum)> + '_ {
        self.sums.iter().map(|(kind, sum)| (kind.name(), *sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches time of a call that goes to another operation, and a call without an end that is lost.
    #[test]
    fn each_call_counts_from_its_beginning_to_its_end() {
        let mut counts = CallCounts::default();
        let at = Time::from_ps;
        for (kind, from, to) in [(Kind::Irecv, 5, 6), (Kind::Wait, 6, 40), (Kind::Irecv, 50, 53)] {
            counts.begin(kind, at(from));
            counts.end(at(to));
            counts.end(at(to + 1));
        }
        counts.begin(Kind::Wait, at(60));
        let sum = |calls, ps| CallSum { calls, time: Span::from_ps(ps) };
        let all: Vec<_> = counts.sums().collect();
        assert_eq!(all, [("irecv", sum(2, 4)), ("wait", sum(2, 34))]);
    }
}
