//! What a replay records so that its critical path can be walked afterwards.
//!
//! ```text
//!  rank 0  ─[compute]─[send call]─┐ posted                ┌[receive message]─[wait call]─ …
//!                                 └──── message ──────────┘ noticed: the step's cause
//! ```
//! A rank's time is cut into [`Step`]s. Each says what allowed it to begin: the step before, or a message
//! that was noticed at that very moment. A message says after which step it was posted. So the steps and
//! messages of a run are a graph whose edges take no time and lead backwards.

use serde::{Deserialize, Serialize};
use weft_msg::{EnvelopeKind, Work};
use weft_trace::Kind;
use weft_units::{Bytes, EndpointId, RankId, Time};

/// A message, as its interface numbers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct MessageId {
    /// Where it comes from.
    pub source: EndpointId,
    /// Counted by the source.
    pub number: u32,
}

/// What allowed a step to begin when it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Cause {
    /// Nothing that is recorded: the program, or the recording, begins.
    Beginning,
    /// The end of that step of the same rank.
    After(u32),
    /// A message had come, and the rank waited for it.
    Arrived(MessageId),
    /// A message of its own had gone out, and the rank waited for that.
    Sent(MessageId),
}

/// What a processor does in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It computes.
    Compute,
    /// It works for messaging. The kind is that of the call, the one that waits included; `None`: the work
    /// is done in the background.
    Software(Work, Option<Kind>),
    /// Nothing, in no time: it notices a message or posts one.
    Pass,
}

/// A piece of a rank's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The rank, counted over all programs.
    pub rank: RankId,
    /// Counts the steps of the rank.
    pub number: u32,
    /// From.
    pub begin: Time,
    /// To.
    pub end: Time,
    /// What it does.
    pub doing: Doing,
    /// What it waited for.
    pub cause: Cause,
    /// Whether the program calls here, or a message is noticed: what follows without it belongs to the same
    /// call or notice.
    pub first: bool,
    /// The MPI call that it is part of, of a real rank whose calls are known.
    pub within: Option<&'static str>,
    /// Whether it is not the rank's own time: somebody else works on its messages, or its program is over.
    pub background: bool,
}

/// A message that a rank has posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Post {
    /// The message.
    pub message: MessageId,
    /// Who posted it, counted over all programs.
    pub rank: RankId,
    /// For whom, counted over all programs.
    pub to: RankId,
    /// What it is in the protocol.
    pub kind: EnvelopeKind,
    /// What it occupies on the wire beside packet headers.
    pub payload: Bytes,
    /// When.
    pub at: Time,
    /// After which step of the rank: it ends at that time.
    pub after: u32,
}

/// A rank that has done all its operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finish {
    /// The rank, counted over all programs.
    pub rank: RankId,
    /// When.
    pub at: Time,
    /// Its last step; [`Cause::Beginning`] where none is recorded.
    pub last: Cause,
}

/// What is recorded, in no particular order but that of each rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// What processors did.
    pub steps: Vec<Step>,
    /// The messages.
    pub posts: Vec<Post>,
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

/// How far a rank's record is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Recorder {
    /// Steps so far.
    steps: u32,
    /// What the rank's clock stands at the end of.
    pub own: Cause,
    /// What its queues were last worked on in.
    pub engaged: Cause,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder { steps: 0, own: Cause::Beginning, engaged: Cause::Beginning }
    }
}

impl Recorder {
    /// Records a step, and returns what follows it without a gap.
    fn push(&mut self, mut step: Step, record: &mut Record) -> Cause {
        step.number = self.steps;
        self.steps += 1;
        record.steps.push(step);
        Cause::After(step.number)
    }

    /// The rank computes.
    pub fn compute(&mut self, rank: RankId, begin: Time, end: Time, record: &mut Record) {
        if end > begin {
            let (doing, cause) = (Doing::Compute, self.own);
            let (within, background) = (None, false);
            let step = Step { rank, number: 0, begin, end, doing, cause, first: true, within, background };
            self.own = self.push(step, record);
        }
    }
}

/// The steps of one call, or of one notice.
pub(super) struct Trail {
    /// What the next step waits for.
    cause: Cause,
    /// Whether it is the first.
    first: bool,
    /// The call; `None`: it is done in the background.
    call: Option<Kind>,
}

impl Trail {
    pub fn new(cause: Cause, call: Option<Kind>) -> Trail {
        Trail { cause, first: true, call }
    }

    /// The processor has worked from `begin` to `end`.
    pub fn spend(
        &mut self,
        rank: RankId,
        work: Work,
        (begin, end): (Time, Time),
        recorder: &mut Recorder,
        record: &mut Record,
    ) {
        if end > begin {
            self.step(rank, Doing::Software(work, self.call), (begin, end), recorder, record);
        }
    }

    fn step(
        &mut self,
        rank: RankId,
        doing: Doing,
        (begin, end): (Time, Time),
        recorder: &mut Recorder,
        record: &mut Record,
    ) {
        let (cause, first) = (self.cause, self.first);
        let background = self.call.is_none();
        let step = Step { rank, number: 0, begin, end, doing, cause, first, within: None, background };
        self.cause = recorder.push(step, record);
        self.first = false;
    }

    /// The step that a message that is posted `at` now comes after.
    pub fn before_post(
        &mut self,
        rank: RankId,
        at: Time,
        recorder: &mut Recorder,
        record: &mut Record,
    ) -> u32 {
        if self.first {
            self.step(rank, Doing::Pass, (at, at), recorder, record);
        }
        match self.cause {
            Cause::After(step) => step,
            _ => unreachable!("a step was recorded in this trail"),
        }
    }

    /// The call is over `at` now; returns what follows it.
    pub fn end(mut self, rank: RankId, at: Time, recorder: &mut Recorder, record: &mut Record) -> Cause {
        if matches!(self.cause, Cause::Arrived(_) | Cause::Sent(_)) {
            self.step(rank, Doing::Pass, (at, at), recorder, record);
        }
        self.cause
    }
}
