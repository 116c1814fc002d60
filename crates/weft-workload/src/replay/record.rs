//! The record of a replay, from which its critical path is walked afterwards.
//!
//! ```text
//!  rank 0  ─[compute]─[send call]─┐ posted                ┌[receive message]─[wait call]─ …
//!                                 └──── message ──────────┘ noticed: the step's cause
//! ```
//! A rank's time is cut into [`RankStep`]s. Each says what allowed it to begin: the step before, or a message
//! that was noticed at that very moment. A message says after which step it was posted. So the steps and
//! messages of a run are a graph whose edges take no time and lead backwards.

use super::transport::CallStart;
use serde::{Deserialize, Serialize};
use weft_msg::{EnvelopeKind, Work};
use weft_trace::Kind;
use weft_units::{Bytes, EndpointId, RankId, Time};

/// A message, as its interface numbers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct MessageId {
    /// The endpoint that sent it.
    pub source: EndpointId,
    /// Counted by the source.
    pub number: u32,
}

/// The event that allowed a step to begin at its time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Cause {
    /// Nothing that is recorded: the program, or the recording, begins.
    #[default]
    Beginning,
    /// The end of that step of the same rank.
    After(u32),
    /// A message had come, and the rank waited for it.
    Arrived(MessageId),
    /// A message of its own had gone out, and the rank waited for that.
    Sent(MessageId),
}

/// A moment of a rank, and what led to it.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub at: Time,
    pub cause: Cause,
}

/// The work of a processor in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// It computes.
    Compute,
    /// It works for messaging. The kind is that of the call, the one that waits included; `None`: the work
    /// is done in the background.
    Software(Work, Option<Kind>),
    /// Nothing, in no time: it takes a message or posts one.
    Pass,
}

/// A piece of a rank's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankStep {
    /// The rank, counted over all programs.
    pub rank: RankId,
    /// Counts the steps of the rank.
    pub number: u32,
    /// The core of the rank that is at work; of background steps it says nothing.
    pub core: u32,
    /// The time at which it begins.
    pub begin: Time,
    /// The time at which it ends.
    pub end: Time,
    /// The processor's work.
    pub kind: StepKind,
    /// The event that let it begin.
    pub cause: Cause,
    /// Whether the program calls here, or a message is noticed: what follows without it belongs to the same
    /// call or notice.
    pub first: bool,
    /// The MPI call that it is part of, of a real rank whose calls are known; of a simulated one the kind of
    /// call, where the step is no work that says it.
    pub within: Option<&'static str>,
    /// Whether it is not the rank's own time: somebody else works on its messages, or its program is over.
    pub background: bool,
}

impl RankStep {
    /// The name of the call that it is part of: the MPI call, or the kind of a simulated rank's operation.
    pub fn call(&self) -> Option<&'static str> {
        match self.kind {
            StepKind::Software(_, Some(kind)) => self.within.or(Some(kind.name())),
            _ => self.within,
        }
    }
}

/// A message that a rank has posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PostedMessage {
    /// The message.
    pub message: MessageId,
    /// The rank that posted it, counted over all programs.
    pub rank: RankId,
    /// The rank that it is for, counted over all programs.
    pub to: RankId,
    /// The message's kind in the protocol.
    pub kind: EnvelopeKind,
    /// Bytes on the wire beside packet headers.
    pub payload: Bytes,
    /// The time at which it was posted.
    pub at: Time,
    /// The step of the rank that ends at that time.
    pub after: u32,
}

/// A moment of a rank from which paths are walked back: the end of its operations, or one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finish {
    /// The rank, counted over all programs.
    pub rank: RankId,
    /// The time.
    pub at: Time,
    /// The step or message that led to it; [`Cause::Beginning`] where none is recorded.
    pub last: Cause,
}

/// Steps and messages of a replay, in no particular order but that of each rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// Steps of processors.
    pub steps: Vec<RankStep>,
    /// The messages.
    pub posts: Vec<PostedMessage>,
    /// The ends of programs.
    pub finishes: Vec<Finish>,
}

impl Record {
    /// Adds what another partition has recorded, or the same one later.
    pub fn append(&mut self, other: Record) {
        self.steps.extend(other.steps);
        self.posts.extend(other.posts);
        self.finishes.extend(other.finishes);
    }
}

/// The last steps of a rank, from which the next ones follow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LastSteps {
    /// Steps so far.
    count: u32,
    /// The step at whose end the rank's clock stands.
    pub own: Cause,
    /// The step in which its queues were last worked on.
    pub queues: Cause,
}

impl Default for LastSteps {
    fn default() -> LastSteps {
        LastSteps { count: 0, own: Cause::Beginning, queues: Cause::Beginning }
    }
}

/// The record of a replay, open for the steps of one rank.
pub(super) struct RankRecord<'r> {
    pub rank: RankId,
    pub core: u32,
    pub last_steps: &'r mut LastSteps,
    pub record: &'r mut Record,
}

impl RankRecord<'_> {
    /// Records a step of the core at work under the rank's next number. Returns the cause of what follows it
    /// without a gap.
    fn push(&mut self, step: RankStep) -> Cause {
        let number = self.last_steps.count;
        self.last_steps.count += 1;
        self.record.steps.push(RankStep { number, core: self.core, ..step });
        Cause::After(number)
    }

    /// Records a computation of the rank.
    pub fn compute(&mut self, begin: Time, end: Time) {
        if end > begin {
            let (rank, kind, cause) = (self.rank, StepKind::Compute, self.last_steps.own);
            let (within, background) = (None, false);
            let step = RankStep {
                rank,
                number: 0,
                core: 0,
                begin,
                end,
                kind,
                cause,
                first: true,
                within,
                background,
            };
            self.last_steps.own = self.push(step);
        }
    }

    /// Records that the rank goes on `at` now, after it waited in `call` for what `cause` ended. The work of
    /// whoever ended it is in the background, so that without this step the wait would seem to be one of
    /// what the rank does next.
    pub fn go_on(&mut self, at: Time, cause: Cause, call: Option<Kind>) {
        let (rank, kind, within) = (self.rank, StepKind::Pass, call.map(Kind::name));
        let (begin, end, first, background) = (at, at, false, false);
        let step = RankStep { rank, number: 0, core: 0, begin, end, kind, cause, first, within, background };
        self.last_steps.own = self.push(step);
    }
}

/// The steps of one call, or of the handling of one event.
pub(super) struct CallRecord {
    /// The cause of the next step.
    cause: Cause,
    /// Whether the next step is the first.
    first: bool,
    /// The call; `None`: the work is done in the background.
    call: Option<Kind>,
}

impl CallRecord {
    /// The record of the work that begins with `start`.
    pub fn new(start: CallStart) -> CallRecord {
        let CallStart { cause, call, continues, .. } = start;
        CallRecord { cause, first: !continues, call }
    }

    /// Records work of the processor from `begin` to `end`.
    pub fn spend(&mut self, work: Work, begin: Time, end: Time, record: &mut RankRecord<'_>) {
        if end > begin {
            self.step(StepKind::Software(work, self.call), begin, end, record);
        }
    }

    fn step(&mut self, kind: StepKind, begin: Time, end: Time, record: &mut RankRecord<'_>) {
        let (rank, cause, first) = (record.rank, self.cause, self.first);
        let background = self.call.is_none();
        // A step of no work does not say in its kind which call it is part of.
        let within = self.call.filter(|_| kind == StepKind::Pass).map(Kind::name);
        let step = RankStep { rank, number: 0, core: 0, begin, end, kind, cause, first, within, background };
        self.cause = record.push(step);
        self.first = false;
    }

    /// The step that a message posted `at` now comes after.
    pub fn before_post(&mut self, at: Time, record: &mut RankRecord<'_>) -> u32 {
        if self.first {
            self.step(StepKind::Pass, at, at, record);
        }
        match self.cause {
            Cause::After(step) => step,
            _ => unreachable!("a step of this call was recorded"),
        }
    }

    /// Ends the call `at` now. Returns the cause of what follows it.
    pub fn end(mut self, at: Time, record: &mut RankRecord<'_>) -> Cause {
        if matches!(self.cause, Cause::Arrived(_) | Cause::Sent(_)) {
            self.step(StepKind::Pass, at, at, record);
        }
        self.cause
    }
}
