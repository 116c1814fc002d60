//! A region of interest: what lies in it of the ranks' time and of their messages.
//!
//! ```text
//!   rank 0   ───┤ region ├──────────────────┤ region ├───
//!   rank 1   ──────┤ region ├──────────┤ region ├────────
//!   overall     ├───────────┤          ├───────────────┤     while a rank is in it
//! ```
//! A rank's time in a region is the sum of its openings. The region's run time is the time in which one rank
//! at least is in it. A message belongs to the region if the rank that sends it was in the region when it was
//! posted. A rank that opens a region and never closes it is in it until its end.

use super::tables::{Shared, figures};
use crate::experiment::replay::Figures;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use weft_trace::{Region, RegionMark};
use weft_units::{RankId, Span, Time};
use weft_workload::replay::{Cause, Delivery, RankReport, RegionReading, ReplayedMessage, Seating};

/// The figures of a region, beside those of a program that are counted in it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RegionFigures {
    /// The level that opens it.
    pub region: Region,
    /// How often ranks opened it, in all.
    pub openings: u64,
    /// The first opening, in time of the whole run.
    pub from_us: f64,
    /// The last closing.
    pub to_us: f64,
    /// The end of the program's last rank.
    pub program_run_time_us: f64,
    /// The ranks that opened it.
    pub by_rank: Vec<RankRegionRow>,
}

/// The time of a rank in a region.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RankRegionRow {
    /// The rank in its program.
    pub rank: u32,
    /// How often it opened the region.
    pub openings: u64,
    /// The rank's time in the region, of all its cores: the sum of the next three.
    pub time_us: f64,
    /// Time in computation.
    pub computation_us: f64,
    /// Time in the software of the messaging layer.
    pub communication_us: f64,
    /// Time waiting.
    pub wait_us: f64,
    /// Whether it closed the region: else it was in it until its end.
    pub closed: bool,
}

/// The account of a region while a run goes on.
#[derive(Serialize, Deserialize)]
pub(crate) struct RegionAccount {
    region: Region,
    /// By rank over all programs.
    ranks: Vec<RankAccount>,
    /// The messages that belong to it, by program.
    delivered: Vec<Delivery>,
}

#[derive(Clone, Serialize, Deserialize)]
struct RankAccount {
    /// The opening under way.
    open: Option<Opening>,
    openings: u64,
    computation: Span,
    communication: Span,
    /// The openings that are closed, in order.
    windows: Vec<Range<Time>>,
    /// The step or message that led to the last closing.
    last: Cause,
}

/// A rank's readings where it opened the region.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Opening {
    at: Time,
    computation: Span,
    communication: Span,
}

impl RankAccount {
    const NEVER_IN_IT: RankAccount = RankAccount {
        open: None,
        openings: 0,
        computation: Span::ZERO,
        communication: Span::ZERO,
        windows: Vec::new(),
        last: Cause::Beginning,
    };

    fn open(&mut self, now: Opening) {
        if self.open.is_none() {
            self.openings += 1;
            self.open = Some(now);
        }
    }

    fn close(&mut self, now: Opening, last: Cause) {
        let Some(Opening { at, computation, communication }) = self.open.take() else { return };
        self.computation += now.computation - computation;
        self.communication += now.communication - communication;
        self.windows.push(at..now.at);
        self.last = last;
    }

    fn is_in_it(&self, at: Time) -> bool {
        let open = self.open.is_some_and(|opening| opening.at <= at);
        let begun = self.windows.partition_point(|window| window.start <= at);
        open || begun.checked_sub(1).is_some_and(|last| at < self.windows[last].end)
    }
}

impl RegionAccount {
    /// Of a region that none of so many ranks has opened.
    pub fn new(region: Region, ranks: u32) -> RegionAccount {
        let ranks = vec![RankAccount::NEVER_IN_IT; ranks as usize];
        RegionAccount { region, ranks, delivered: Vec::new() }
    }

    /// The region.
    pub fn region(&self) -> Region {
        self.region
    }

    /// A rank has come to a mark. Those of a rank come in order, and before the messages that it posts then.
    pub fn read(&mut self, reading: &RegionReading) {
        let RegionReading { rank, mark, at, computation, communication, last } = *reading;
        let now = Opening { at, computation, communication };
        let rank = &mut self.ranks[rank.index()];
        match mark {
            RegionMark::Opens(region) if region == self.region => rank.open(now),
            RegionMark::Opens(_) | RegionMark::Closes => rank.close(now, last),
        }
    }

    /// The record of the run begins anew: what led to a closing before is not in it.
    pub fn forget_causes(&mut self) {
        self.ranks.iter_mut().for_each(|rank| rank.last = Cause::Beginning);
    }

    /// Whether a message belongs to the region.
    pub fn has(&self, message: &ReplayedMessage) -> bool {
        self.ranks[message.source_rank.index()].is_in_it(message.posted)
    }

    /// Counts those of these messages that belong to the region.
    pub fn deliver(&mut self, messages: &[ReplayedMessage], seating: &Seating) {
        let own: Vec<&ReplayedMessage> = messages.iter().filter(|message| self.has(message)).collect();
        for message in own {
            let program = seating.program(message.source_rank).0 as usize;
            if self.delivered.len() <= program {
                self.delivered.resize(program + 1, Delivery::default());
            }
            let sums = &mut self.delivered[program];
            sums.completion.record(message.delivered - message.posted);
            sums.bytes += message.bytes;
        }
    }

    /// The region's account after the run. Ranks that are still inside are closed at their end; `ends` has
    /// the ends of all ranks in order.
    pub fn at_end(&self, ends: &[RankReport]) -> RegionAtEnd {
        let ranks = self.ranks.iter().zip(ends).map(|(rank, end)| {
            let closed = rank.open.is_none();
            let mut account = rank.clone();
            let RankReport { end: at, computation, communication, .. } = *end;
            account.close(Opening { at, computation, communication }, Cause::Beginning);
            RankAtEnd { account, closed, report: *end }
        });
        RegionAtEnd { region: self.region, ranks: ranks.collect(), delivered: self.delivered.clone() }
    }
}

/// A region of a run that has ended: all openings are closed.
pub(crate) struct RegionAtEnd {
    region: Region,
    /// By rank over all programs.
    ranks: Vec<RankAtEnd>,
    delivered: Vec<Delivery>,
}

struct RankAtEnd {
    account: RankAccount,
    /// Whether the rank closed the region itself.
    closed: bool,
    report: RankReport,
}

/// A rank's time in a region.
pub(crate) struct RankWindows<'a> {
    /// The rank, counted over all programs.
    pub rank: RankId,
    /// The rank's openings, in order.
    pub windows: &'a [Range<Time>],
    /// The step or message that led to the last closing; `None`: the rank did not close it.
    pub last: Option<Cause>,
}

/// How long windows are that do not overlap.
fn length(windows: &[Range<Time>]) -> Span {
    windows.iter().fold(Span::ZERO, |sum, window| sum + (window.end - window.start))
}

/// The windows of several ranks as one: disjoint, in order.
fn union(mut windows: Vec<Range<Time>>) -> Vec<Range<Time>> {
    windows.sort_unstable_by_key(|window| (window.start, window.end));
    let mut merged: Vec<Range<Time>> = Vec::new();
    for window in windows {
        match merged.last_mut() {
            Some(last) if window.start <= last.end => last.end = last.end.max(window.end),
            _ => merged.push(window),
        }
    }
    merged
}

impl RankAtEnd {
    /// The rank's time in the region as that of a rank that does nothing else.
    fn in_it(&self) -> RankReport {
        let RankAccount { computation, communication, windows, .. } = &self.account;
        let end = Time::ZERO + length(windows);
        RankReport {
            start: Time::ZERO,
            end,
            computation: *computation,
            communication: *communication,
            ..self.report
        }
    }

    fn row(&self) -> RankRegionRow {
        let report = self.in_it();
        RankRegionRow {
            rank: report.rank.0,
            openings: self.account.openings,
            time_us: report.core_time().as_us_f64(),
            computation_us: report.computation.as_us_f64(),
            communication_us: report.communication.as_us_f64(),
            wait_us: report.wait().as_us_f64(),
            closed: self.closed,
        }
    }
}

impl RegionAtEnd {
    /// The region.
    pub fn region(&self) -> Region {
        self.region
    }

    /// The ranks that opened it, in order.
    pub fn ranks(&self) -> impl Iterator<Item = RankWindows<'_>> {
        (0..).map(RankId).zip(&self.ranks).filter(|(_, rank)| rank.account.openings > 0).map(
            |(number, rank)| {
                let RankAccount { windows, last, .. } = &rank.account;
                RankWindows { rank: number, windows, last: rank.closed.then_some(*last) }
            },
        )
    }

    /// The times in which a rank, of all programs, is in it: disjoint, in order.
    pub fn windows(&self) -> Vec<Range<Time>> {
        union(self.ranks.iter().flat_map(|rank| rank.account.windows.clone()).collect())
    }

    /// The figures of a program, of what lies in the region alone. Links are those of the whole run.
    pub fn figures(&self, program: u32, first_rank: u32, shared: &Shared<'_>) -> Figures {
        let own = || self.ranks.iter().filter(|rank| rank.report.program == program);
        let windows = union(own().flat_map(|rank| rank.account.windows.clone()).collect());
        let us = |time: Option<Time>| (time.unwrap_or(Time::ZERO) - Time::ZERO).as_us_f64();
        let ends: Vec<RankReport> = own().map(RankAtEnd::in_it).collect();
        let delivered = self.delivered.get(program as usize).cloned().unwrap_or_default();
        let program_time = own().map(|rank| rank.report.run_time()).max();
        let region = RegionFigures {
            region: self.region,
            openings: own().map(|rank| rank.account.openings).sum(),
            from_us: us(windows.first().map(|window| window.start)),
            to_us: us(windows.last().map(|window| window.end)),
            program_run_time_us: program_time.map_or(0.0, Span::as_us_f64),
            by_rank: own().filter(|rank| rank.account.openings > 0).map(RankAtEnd::row).collect(),
        };
        let run_time_us = length(&windows).as_us_f64();
        // Waits for memory are those of the whole run.
        let memory_wait_share = None;
        let all = figures(first_rank, &ends, &delivered, shared);
        Figures { run_time_us, region: Some(region), memory_wait_share, ..all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Span {
        Span::from_us(us)
    }

    fn at(time: u64) -> Time {
        Time::ZERO + us(time)
    }

    fn region(level: i32) -> Region {
        Region::of_level(level).unwrap()
    }

    /// A rank's reading at a level: half of its time it computes.
    fn reading(rank: u32, level: i32, time: u64) -> RegionReading {
        let mark = RegionMark::of_level(level).unwrap();
        let (computation, communication, last) = (us(time / 2), Span::ZERO, Cause::After(time as u32));
        RegionReading { rank: RankId(rank), mark, at: at(time), computation, communication, last }
    }

    fn end(rank: u32, time: u64) -> RankReport {
        RankReport {
            program: 0,
            rank: RankId(rank),
            start: Time::ZERO,
            end: at(time),
            finished: true,
            operations: 0,
            awaited: 0,
            cores: 1,
            computation: us(time / 2),
            memory_wait: Span::ZERO,
            communication: Span::ZERO,
            messages_sent: 0,
            messages_received: 0,
            sent: Default::default(),
            received: Default::default(),
        }
    }

    /// Catches an opening that is lost or counted twice, one that another region does not close, one that is
    /// never closed, and overlapping time of two ranks that is counted twice.
    #[test]
    fn openings_add_up() {
        let mut account = RegionAccount::new(region(1), 3);
        for (rank, level, time) in
            [(0, 1, 10), (0, 1, 12), (0, 0, 20), (0, 0, 22), (0, 1, 40), (0, 2, 50), (1, 1, 14), (2, 2, 4)]
        {
            account.read(&reading(rank, level, time));
        }
        let ended = account.at_end(&[end(0, 60), end(1, 30), end(2, 60)]);
        assert_eq!(ended.windows(), [at(10)..at(30), at(40)..at(50)]);
        let rows: Vec<_> = ended.ranks.iter().map(RankAtEnd::row).collect();
        let of =
            |row: &RankRegionRow| (row.openings, row.time_us, row.computation_us, row.wait_us, row.closed);
        assert_eq!(of(&rows[0]), (2, 20.0, 10.0, 10.0, true));
        assert_eq!(of(&rows[1]), (1, 16.0, 8.0, 8.0, false));
        assert_eq!(of(&rows[2]), (0, 0.0, 0.0, 0.0, true));
        let lasts: Vec<_> = ended.ranks().map(|rank| (rank.rank.0, rank.last)).collect();
        assert_eq!(lasts, [(0, Some(Cause::After(50))), (1, None)]);
    }

    /// Catches a boundary that belongs to the wrong side, and an opening under way that has no messages.
    #[test]
    fn a_window_has_its_beginning_and_not_its_end() {
        let mut account = RegionAccount::new(region(1), 1);
        for (level, time) in [(1, 10), (0, 20), (1, 30)] {
            account.read(&reading(0, level, time));
        }
        let inside = |time| account.ranks[0].is_in_it(at(time));
        assert_eq!([5, 10, 19, 20, 29, 30, 99].map(inside), [false, true, true, false, false, true, true]);
    }
}
