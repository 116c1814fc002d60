//! The log of a rank's clock: the reasons for which the clock has moved, handed to the simulator turn by
//! turn.
//!
//! ```text
//!   clock  ──┬─ send call ─┬─ copy in ─┬──── polls ────┬─ receive message ─┬──►
//!            until         until       until  takes    until
//! ```
//! An entry says until when its reason holds; it begins where the one before ends. So all of a rank's time is
//! in the log, whatever it contains. Neighbours of one reason are one entry, unless a post stands between
//! them: a post is made at the end of an entry. The log never makes a rank give its turn away, which could
//! change what a poll sees: where it is full, entries are added to the last one.

use super::{LOG_AT, Shared};
use crate::within;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_msg::Work;

/// Entries of a turn, beside those that posts and notices need.
const ENTRIES: usize = 3072;
/// Entries that there is room for: each post seals one, and each notice is one and may be followed by one.
pub(super) const ROOM: usize = ENTRIES + super::POSTS + 2 * super::NOTICES;

/// Why a rank's clock has moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The program computes, or sleeps.
    Computes,
    /// The library works.
    Works(Work),
    /// It takes the next notice; the clock has not moved.
    Takes,
    /// The program has called `MPI_Pcontrol` with this level; the clock has not moved.
    Marks(i32),
}

/// The call of the library that a rank is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum Call {
    /// None: the program itself.
    #[default]
    None = 0,
    /// A send.
    Send = 1,
    /// A receive.
    Receive = 2,
    /// Making progress.
    Poll = 3,
    /// An RDMA write.
    Write = 4,
    /// An RDMA read.
    Read = 5,
}

/// An entry of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// The rank's clock then, in ps.
    pub until: u64,
    /// Why it has moved there.
    pub reason: Reason,
    /// In which call.
    pub call: Call,
    /// Whether the program has just called: what follows without it belongs to the same call.
    pub first: bool,
    /// In which [MPI call](crate::within), by its number; 0: none that is known.
    pub within: u32,
    /// Whether that has begun since the entry before of one.
    pub anew: bool,
}

/// An entry as it lies in the device.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RawEntry {
    until: u64,
    reason: u32,
    /// The call in the lowest bits, [`FIRST`], the MPI call, [`ANEW`]. Of a mark it is the level.
    call: u32,
}

const CALL: u32 = 0xff;
const FIRST: u32 = 1 << 16;
const WITHIN_AT: u32 = 17;
const WITHIN: u32 = (1 << 14) - 1;
const ANEW: u32 = 1 << 31;
const COMPUTES: u32 = u32::MAX;
const TAKES: u32 = u32::MAX - 1;
const MARKS: u32 = u32::MAX - 2;

impl From<LogEntry> for RawEntry {
    fn from(entry: LogEntry) -> RawEntry {
        let reason = match entry.reason {
            Reason::Computes => COMPUTES,
            Reason::Works(work) => work.number(),
            Reason::Takes => TAKES,
            Reason::Marks(level) => {
                return RawEntry { until: entry.until, reason: MARKS, call: level as u32 };
            }
        };
        let first = if entry.first { FIRST } else { 0 };
        let anew = if entry.anew { ANEW } else { 0 };
        let within = (entry.within & WITHIN) << WITHIN_AT;
        RawEntry { until: entry.until, reason, call: entry.call as u32 | first | within | anew }
    }
}

impl From<RawEntry> for LogEntry {
    /// Of no kind is what a rank that writes nonsense there gets for computation.
    fn from(raw: RawEntry) -> LogEntry {
        let reason = match raw.reason {
            MARKS => return LogEntry::mark(raw.until, raw.call as i32),
            TAKES => Reason::Takes,
            number => Work::of(number).map_or(Reason::Computes, Reason::Works),
        };
        let calls = [Call::Send, Call::Receive, Call::Poll, Call::Write, Call::Read];
        let call = calls.into_iter().find(|call| *call as u32 == raw.call & CALL);
        let first = raw.call & FIRST != 0;
        let (within, anew) = (raw.call >> WITHIN_AT & WITHIN, raw.call & ANEW != 0);
        LogEntry { until: raw.until, reason, call: call.unwrap_or_default(), first, within, anew }
    }
}

impl LogEntry {
    /// A mark of the program, between its calls.
    fn mark(until: u64, level: i32) -> LogEntry {
        let (reason, call) = (Reason::Marks(level), Call::None);
        LogEntry { until, reason, call, first: false, within: 0, anew: false }
    }
}

/// The time by which a rank's clock has moved outside the library, in ps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outside {
    /// The program slept.
    pub slept: u64,
    /// It looked at the clock.
    pub looked: u64,
}

/// [`Outside`], in the page: counted where the clock is shown.
#[repr(C)]
pub(super) struct OutsideCounts {
    pub slept: AtomicU64,
    pub looked: AtomicU64,
}

/// The rank's hand on its log.
#[derive(Debug, Default)]
pub struct Log {
    /// The clock up to which all is told.
    told: u64,
    /// The last entry of this turn.
    last: Option<LogEntry>,
    /// Whether a post stands behind it.
    sealed: bool,
    /// The call that the rank is in.
    call: Call,
    /// Whether it has just begun.
    begins: bool,
    /// MPI calls that there had been at the last entry of one.
    calls: u32,
}

impl Log {
    /// The program has called, or goes on with [`Call::None`].
    pub fn enter(&mut self, call: Call) {
        (self.call, self.begins) = (call, true);
    }

    /// The entries told so far belong to the simulator: the next one begins a new log.
    pub fn handed_over(&mut self) {
        (self.last, self.sealed) = (None, false);
    }

    /// Seals the log for a post that is made now, and returns the number of entries that stand before it.
    pub fn seal(&mut self, device: &Shared) -> u32 {
        self.sealed = true;
        device.logged() as u32
    }

    /// Logs the time by which the clock has moved outside the library. The program was in no call: each
    /// reason has an entry of its own.
    pub fn tell_outside(&mut self, device: &mut Shared) {
        let Outside { slept, looked } = device.take_outside();
        let clock = device.clock();
        // What nobody accounts for is where the process manager has let all go at one time.
        let released = clock.saturating_sub(self.told.saturating_add(slept).saturating_add(looked));
        for (span, reason) in [
            (released, Reason::Works(Work::ProcessManager)),
            (slept, Reason::Computes),
            (looked, Reason::Works(Work::ClockRead)),
        ] {
            self.enter(Call::None);
            let until = self.told.saturating_add(span).min(clock);
            self.add(until, reason, device);
        }
    }

    /// The clock has moved to where it is now, for this reason.
    pub fn tell(&mut self, reason: Reason, device: &mut Shared) {
        self.add(device.clock(), reason, device);
    }

    /// The program marks where the clock stands. A mark for which there is no room is lost.
    pub fn mark(&mut self, level: i32, device: &mut Shared) {
        let count = device.logged();
        if count < ROOM {
            device.put_entry(count, LogEntry::mark(self.told, level));
            device.set_logged(count + 1);
            // Nothing is added to what stands before it.
            self.last = None;
        }
    }

    fn add(&mut self, until: u64, reason: Reason, device: &mut Shared) {
        if until <= self.told && reason != Reason::Takes {
            return;
        }
        self.told = self.told.max(until);
        // Polls belong to no call: those of one wait are one.
        let polls = reason == Reason::Works(Work::Poll);
        let first = std::mem::take(&mut self.begins) && !polls;
        self.begins |= reason == Reason::Takes;
        // The program itself is in none, whatever it is in when that is told.
        let own = self.call == Call::None || reason == Reason::Computes;
        let (within, calls) = if own { (0, self.calls) } else { within::current() };
        let anew = within != 0 && std::mem::replace(&mut self.calls, calls) != calls;
        let entry = LogEntry { until: self.told, reason, call: self.call, first, within, anew };
        let count = device.logged();
        let joins = |last: &LogEntry| {
            let same = last.within == within && (!anew || polls);
            let alike = last.reason == reason
                && last.call == self.call
                && same
                && (!first || self.call == Call::None);
            let full = count >= ENTRIES && last.reason != Reason::Takes;
            reason != Reason::Takes && !self.sealed && (alike || full)
        };
        match self.last.filter(joins) {
            Some(last) => {
                let joined = LogEntry { until: entry.until, ..last };
                self.last = Some(joined);
                device.put_entry(count - 1, joined);
            }
            None if count < ROOM => {
                device.put_entry(count, entry);
                device.set_logged(count + 1);
                (self.last, self.sealed) = (Some(entry), false);
            }
            // More notices and posts than there can be in a turn: the simulator makes up the rest.
            None => {}
        }
    }
}

impl Shared {
    /// The simulator's side: takes the log. Not to be believed.
    pub fn take_log(&mut self) -> Vec<LogEntry> {
        let entry = |index| LogEntry::from(self.read_at::<RawEntry>(LOG_AT + index * size_of::<RawEntry>()));
        let taken = (0..self.logged().min(ROOM)).map(entry).collect();
        self.set_logged(0);
        taken
    }

    /// Takes the time by which the clock has moved outside the library since the last call.
    pub fn take_outside(&self) -> Outside {
        let OutsideCounts { slept, looked } = &self.page().outside;
        Outside { slept: slept.swap(0, Ordering::AcqRel), looked: looked.swap(0, Ordering::AcqRel) }
    }

    /// The program has slept: its clock moves.
    pub fn sleep(&self, ps: u64) {
        self.page().outside.slept.fetch_add(ps, Ordering::AcqRel);
        self.set_clock(self.clock().saturating_add(ps));
    }

    /// The program has looked at its clock, which moves.
    pub fn look(&self, ps: u64) {
        self.page().outside.looked.fetch_add(ps, Ordering::AcqRel);
        self.set_clock(self.clock().saturating_add(ps));
    }

    fn put_entry(&mut self, index: usize, entry: LogEntry) {
        self.write_at(LOG_AT + index * size_of::<RawEntry>(), RawEntry::from(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::identity;
    use super::*;

    fn works(work: Work) -> Reason {
        Reason::Works(work)
    }

    /// Catches time that is told twice or not at all, entries that are joined across a post, and a full log
    /// that loses time.
    #[test]
    fn all_of_the_clock_is_in_the_log() {
        let (mut simulator, file) = Shared::create(&identity(), &[]).unwrap();
        let mut rank = Shared::open(&file).unwrap();
        let mut log = Log::default();
        let step = |ps: u64, reason, log: &mut Log, rank: &mut Shared| {
            rank.set_clock(rank.clock() + ps);
            log.tell(reason, rank);
        };
        rank.set_clock(7);
        rank.sleep(5);
        rank.look(2);
        log.tell_outside(&mut rank);
        log.enter(Call::Send);
        step(10, works(Work::SendCall), &mut log, &mut rank);
        step(10, works(Work::SendCall), &mut log, &mut rank);
        log.mark(-7, &mut rank);
        assert_eq!(log.seal(&rank), 5);
        step(10, works(Work::SendCall), &mut log, &mut rank);
        step(0, works(Work::Matching), &mut log, &mut rank);
        log.enter(Call::Poll);
        step(50, works(Work::Poll), &mut log, &mut rank);
        step(50, works(Work::Poll), &mut log, &mut rank);
        log.tell(Reason::Takes, &mut rank);
        step(1, works(Work::ReceiveMessage), &mut log, &mut rank);
        let told: Vec<_> =
            simulator.take_log().into_iter().map(|e| (e.until, e.reason, e.call, e.first)).collect();
        let expected = [
            (7, works(Work::ProcessManager), Call::None, true),
            (12, Reason::Computes, Call::None, true),
            (14, works(Work::ClockRead), Call::None, true),
            (34, works(Work::SendCall), Call::Send, true),
            (34, Reason::Marks(-7), Call::None, false),
            (44, works(Work::SendCall), Call::Send, false),
            (144, works(Work::Poll), Call::Poll, false),
            (144, Reason::Takes, Call::Poll, false),
            (145, works(Work::ReceiveMessage), Call::Poll, true),
        ];
        assert_eq!(told, expected);
        log.handed_over();
        for turn in 0..2 * ROOM as u64 {
            log.enter(Call::Receive);
            step(
                1,
                if turn % 2 == 0 { works(Work::Matching) } else { Reason::Computes },
                &mut log,
                &mut rank,
            );
        }
        let told = simulator.take_log();
        assert_eq!((told.len(), told.last().unwrap().until), (ENTRIES, rank.clock()));
    }

    #[test]
    fn nonsense_is_computation() {
        let entry = LogEntry::from(RawEntry { until: 3, reason: 1000, call: 99 });
        let nothing = LogEntry {
            until: 3,
            reason: Reason::Computes,
            call: Call::None,
            first: false,
            within: 0,
            anew: false,
        };
        assert_eq!(entry, nothing);
        let entry = LogEntry { call: Call::Write, first: true, within: WITHIN, anew: true, ..nothing };
        assert_eq!(LogEntry::from(RawEntry::from(entry)), entry);
    }
}
