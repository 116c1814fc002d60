//! Where a real rank's time goes: from its log to what is counted, drawn and recorded.
//!
//! ```text
//!   log     ─┬ computes ┬ works ┬──────── polls ────────┬ takes ┬ works ┬─►
//!   ledger  ─┼─ compute ┼ work ─┼─ waits ──┬── a poll ──┼───────┼─ work ┼─►
//!                                           └ the notice came
//! ```
//! Empty polls are waiting until the notice came that the rank takes next; from then to the poll that saw it,
//! they are work. Polls that nothing follows but the rank's own next step are work: the program looked in
//! vain. What a rank says of its time is believed as far as it is in order: all that it does not account for
//! is computation.

use super::recording::Recording;
use std::collections::{BTreeMap, VecDeque};
use weft_client::device::{Call, LogEntry, Reason};
use weft_msg::Work;
use weft_trace::op::{OneSided, SendMode};
use weft_trace::{Kind, RegionMark};
use weft_units::{RankId, Span, Time};
use weft_workload::replay::{
    Activity, CallReport, CallSum, Cause, Finish, MessageId, RankStep, RegionReading, ReplayOutput, StepKind,
    TimelineEvent,
};

/// The outputs to which a ledger reports.
pub(super) struct LedgerOutputs<'o> {
    pub output: &'o mut ReplayOutput,
    /// Whether a timeline is drawn.
    pub timeline: bool,
    /// Whether readings are wanted where the program marks regions.
    pub regions: bool,
    /// The recording of the critical path, if one is under way.
    pub recording: &'o Recording,
}

/// A stretch of a timeline that may go on.
struct Slice {
    activity: Activity,
    name: &'static str,
    start: Time,
}

/// The account of a rank's time.
pub(super) struct Ledger {
    rank: RankId,
    /// Up to where it goes.
    clock: Time,
    /// Since when the rank polls in vain.
    polling: Option<Time>,
    computation: Span,
    work: Span,
    /// The call in which the rank has just taken what it waited for: what it does next belongs to that, not
    /// to the program.
    noticed: Option<Call>,
    /// The MPI call that its time is spent in.
    within: Option<&'static str>,
    /// That call as a slice of the timeline: since when, and until when as far as is known.
    mpi_slice: Option<(&'static str, Time, Time)>,
    /// MPI calls so far, by name.
    calls: BTreeMap<&'static str, CallSum>,
    /// The MPI call of the last entry, if it was of one.
    last_call: Option<&'static str>,
    /// Notices that the rank was given and has not taken: when they came, and what they are of.
    given: VecDeque<(Time, Cause)>,
    slice: Option<Slice>,
    /// Steps recorded so far, of which recording.
    steps: u32,
    recording: u32,
    /// The cause at the end of the rank's own time.
    own: Cause,
}

/// The call as it is named in reports.
fn kind(call: Call) -> Option<Kind> {
    match call {
        Call::None => None,
        Call::Send => Some(Kind::Isend(SendMode::Standard)),
        Call::Receive => Some(Kind::Irecv),
        Call::Poll => Some(Kind::Wait),
        Call::Write => Some(Kind::OneSided(OneSided::Put)),
        Call::Read => Some(Kind::OneSided(OneSided::Get)),
    }
}

impl Ledger {
    pub fn new(rank: RankId) -> Ledger {
        Ledger {
            rank,
            clock: Time::ZERO,
            polling: None,
            noticed: None,
            within: None,
            mpi_slice: None,
            calls: BTreeMap::new(),
            last_call: None,
            computation: Span::ZERO,
            work: Span::ZERO,
            given: VecDeque::new(),
            slice: None,
            steps: 0,
            recording: 0,
            own: Cause::Beginning,
        }
    }

    /// Time in computation.
    pub fn computation(&self) -> Span {
        self.computation
    }

    /// Time in the library.
    pub fn work(&self) -> Span {
        self.work
    }

    /// The MPI calls so far. Those in which the library had nothing to do are not known here.
    pub fn calls(&self) -> impl Iterator<Item = CallReport> {
        let (program, rank) = (0, self.rank);
        self.calls.iter().map(move |(operation, sum)| CallReport { program, rank, operation, sum: *sum })
    }

    /// Up to where it goes.
    pub fn clock(&self) -> Time {
        self.clock
    }

    /// The end of the rank's program, or how far it has come.
    pub fn finish(&self) -> Finish {
        // A rank that polls in vain has done nothing since it began to.
        Finish { rank: self.rank, at: self.polling.unwrap_or(self.clock), last: self.own }
    }

    /// The end of what it did last.
    pub fn last(&self) -> Cause {
        self.own
    }

    /// The rank was given a notice that came `at`, of this cause.
    pub fn gives(&mut self, at: Time, cause: Cause) {
        self.given.push_back((at, cause));
    }

    /// An entry of the rank's log.
    pub fn enter(&mut self, entry: &LogEntry, outputs: &mut LedgerOutputs<'_>) {
        let until = Time::from_ps(entry.until).max(self.clock);
        if let Reason::Marks(level) = entry.reason {
            return self.mark(level, until, outputs);
        }
        let noticed = self.noticed.take() == Some(entry.call);
        let within = weft_client::within::name(entry.within);
        let began = self.clock;
        match entry.reason {
            Reason::Marks(_) => {}
            Reason::Works(Work::Poll) => {
                if self.polling.is_none() {
                    self.within = within;
                }
                self.polling.get_or_insert(self.clock);
                self.clock = until;
            }
            Reason::Takes => {
                self.within = within;
                self.takes(entry.call, outputs);
            }
            Reason::Computes => {
                self.polled_in_vain(outputs);
                self.within = None;
                self.step(until, StepKind::Compute, entry.first, outputs);
            }
            Reason::Works(work) => {
                self.polled_in_vain(outputs);
                self.within = within;
                self.step(
                    until,
                    StepKind::Software(work, kind(entry.call)),
                    entry.first && !noticed,
                    outputs,
                );
            }
        }
        if let Some(name) = within {
            let sum = self.calls.entry(name).or_default();
            sum.calls += u64::from(entry.anew || self.last_call != Some(name));
            sum.time = sum.time.saturating_add(self.clock.saturating_since(began));
            self.draw_call(name, entry.anew, (began, self.clock), outputs);
        }
        self.last_call = within;
    }

    /// The program has called `MPI_Pcontrol` at `at`.
    fn mark(&mut self, level: i32, at: Time, outputs: &mut LedgerOutputs<'_>) {
        if outputs.regions
            && let Some(mark) = RegionMark::of_level(level)
        {
            self.reach(at, outputs);
            // What a recording before had as the last cause is not in this one.
            self.records(outputs);
            outputs.output.regions.push(RegionReading {
                rank: self.rank,
                mark,
                at,
                computation: self.computation,
                communication: self.work,
                last: self.own,
            });
        }
        if outputs.timeline {
            // A slice of a region has whole ones in it.
            self.end_slice(at, outputs);
            self.end_call(outputs);
            let text = RegionMark::text(level);
            outputs.output.timeline.push(TimelineEvent::Marker { rank: self.rank, time: at, text });
        }
    }

    /// The time is part of this MPI call, the same as that before it or one that begins `anew`.
    fn draw_call(
        &mut self,
        name: &'static str,
        anew: bool,
        (from, to): (Time, Time),
        outputs: &mut LedgerOutputs<'_>,
    ) {
        match &mut self.mpi_slice {
            Some((open, _, until)) if *open == name && !anew => *until = to,
            _ => {
                self.end_call(outputs);
                self.mpi_slice = outputs.timeline.then_some((name, from, to));
            }
        }
    }

    fn end_call(&mut self, outputs: &mut LedgerOutputs<'_>) {
        if let Some((name, start, end)) = self.mpi_slice.take()
            && end > start
        {
            outputs.output.timeline.push(TimelineEvent::Call { rank: self.rank, name, start, end });
        }
    }

    /// The rank takes the oldest of its notices.
    fn takes(&mut self, call: Call, outputs: &mut LedgerOutputs<'_>) {
        let Some((at, cause)) = self.given.pop_front() else { return };
        let over = self.clock;
        let from = self.polling.unwrap_or(over);
        if at <= from || at > over {
            // It was there before.
            return self.polled_in_vain(outputs);
        }
        (self.polling, self.noticed) = (None, Some(call));
        self.draw(Slice { activity: Activity::Wait, name: "wait", start: from }, at, outputs);
        self.clock = at;
        self.own = cause;
        self.step(over, StepKind::Software(Work::Poll, None), true, outputs);
        if at == over && self.records(outputs) {
            self.push((at, at), StepKind::Pass, true, outputs);
        }
    }

    /// The rank polled in vain: it did something else before anything came. The time belongs to polls.
    pub fn polled_in_vain(&mut self, outputs: &mut LedgerOutputs<'_>) {
        if let Some(from) = self.polling.take() {
            let until = std::mem::replace(&mut self.clock, from);
            self.step(until, StepKind::Software(Work::Poll, None), true, outputs);
        }
    }

    /// All of the rank's time up to `at` is told of: what is missing is computation.
    pub fn reach(&mut self, at: Time, outputs: &mut LedgerOutputs<'_>) {
        self.polled_in_vain(outputs);
        self.step(at, StepKind::Compute, true, outputs);
    }

    /// The rank has posted a message `at` the end of its time: after which step; `None`: nothing is recorded.
    pub fn posts(&mut self, at: Time, outputs: &mut LedgerOutputs<'_>) -> Option<u32> {
        self.reach(at, outputs);
        if !self.records(outputs) {
            return None;
        }
        if !matches!(self.own, Cause::After(_)) {
            self.push((at, at), StepKind::Pass, true, outputs);
        }
        match self.own {
            Cause::After(step) => Some(step),
            _ => None,
        }
    }

    /// The interface answers the message `cause` at `at` on the rank's behalf, without it: the step that it
    /// answers in.
    pub fn answers(&mut self, at: Time, cause: MessageId, outputs: &mut LedgerOutputs<'_>) -> Option<u32> {
        if !self.records(outputs) {
            return None;
        }
        let number = self.steps;
        self.steps += 1;
        outputs.output.record.steps.push(RankStep {
            rank: self.rank,
            number,
            core: 0,
            begin: at,
            end: at,
            kind: StepKind::Pass,
            cause: Cause::Arrived(cause),
            first: true,
            within: None,
            background: true,
        });
        Some(number)
    }

    /// The rank has left: what is drawn of it is whole.
    pub fn leaves(&mut self, outputs: &mut LedgerOutputs<'_>) {
        self.polled_in_vain(outputs);
        self.end_slice(self.clock, outputs);
        self.end_call(outputs);
    }

    /// Whether this is recorded; a recording that begins anew knows nothing of before.
    fn records(&mut self, outputs: &LedgerOutputs<'_>) -> bool {
        let recording = outputs.recording.number();
        if recording != self.recording {
            (self.recording, self.steps, self.own) = (recording, 0, Cause::Beginning);
        }
        recording != 0
    }

    /// The rank does something until `end`.
    fn step(&mut self, end: Time, kind: StepKind, first: bool, outputs: &mut LedgerOutputs<'_>) {
        let begin = self.clock;
        if end <= begin {
            return;
        }
        let span = end - begin;
        let (activity, name, sum) = match kind {
            StepKind::Compute => (Activity::Compute, "compute", &mut self.computation),
            StepKind::Software(work, call) => {
                let name = call.map_or(work.name(), Kind::name);
                (Activity::Communicate, name, &mut self.work)
            }
            StepKind::Pass => return,
        };
        *sum = sum.saturating_add(span);
        self.draw(Slice { activity, name, start: begin }, end, outputs);
        if self.records(outputs) {
            self.push((begin, end), kind, first, outputs);
        }
        self.clock = end;
    }

    fn push(
        &mut self,
        (begin, end): (Time, Time),
        kind: StepKind,
        first: bool,
        outputs: &mut LedgerOutputs<'_>,
    ) {
        let (rank, number, cause) = (self.rank, self.steps, self.own);
        let (within, background) = (self.within, false);
        let step = RankStep { rank, number, core: 0, begin, end, kind, cause, first, within, background };
        outputs.output.record.steps.push(step);
        self.steps += 1;
        self.own = Cause::After(number);
    }

    /// Draws `slice`, which lasts until `end` at least. Neighbours of one name are one slice.
    fn draw(&mut self, slice: Slice, end: Time, outputs: &mut LedgerOutputs<'_>) {
        if !outputs.timeline || end <= slice.start {
            return;
        }
        let goes_on = |open: &Slice| open.activity == slice.activity && open.name == slice.name;
        if !self.slice.as_ref().is_some_and(goes_on) {
            self.end_slice(slice.start, outputs);
            self.slice = Some(slice);
        }
    }

    fn end_slice(&mut self, end: Time, outputs: &mut LedgerOutputs<'_>) {
        if let Some(Slice { activity, name, start }) = self.slice.take()
            && end > start
        {
            let slice = TimelineEvent::Slice { rank: self.rank, core: 0, activity, name, start, end };
            outputs.output.timeline.push(slice);
        }
    }
}
