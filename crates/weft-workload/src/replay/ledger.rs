//! What a rank counts: how far its processor has come, and what it has done with its time.

use super::ReplayHost;
use super::order::Counters;
use super::port::Surroundings;
use super::record::Recorder;
use super::report::{Activity, RankReport, TimelineEvent};
use serde::{Deserialize, Serialize};
use weft_nic::HostContext;
use weft_trace::Kind;
use weft_units::{Bytes, RankId, Span, Time};

/// All that a rank counts.
#[derive(Serialize, Deserialize)]
pub(super) struct Ledger {
    pub(super) program: u32,
    pub(super) rank: RankId,
    /// Counted over all programs.
    pub(super) number: RankId,
    /// How far its processor has come.
    pub(super) clock: Time,
    /// Until when its queues are worked on.
    pub(super) engaged: Time,
    /// When its last operation ended.
    pub(super) end: Time,
    pub(super) computation: Span,
    pub(super) communication: Span,
    pub(super) messages_sent: u64,
    pub(super) messages_received: u64,
    pub(super) sent: Bytes,
    pub(super) received: Bytes,
    /// Numbers for the messages to be matched, by destination.
    pub(super) numbers: Counters,
    /// When the messages that are announced were posted, by exchange.
    pub(super) announced: Vec<Time>,
    /// The operation that is under way, for timelines.
    #[serde(skip)]
    pub(super) operation: &'static str,
    /// The call that is under way, for the record.
    #[serde(skip)]
    pub(super) call: Option<Kind>,
    pub(super) recorder: Recorder,
}

impl Ledger {
    /// Of a rank at the start of its program.
    pub(super) fn new(program: u32, rank: RankId, number: RankId) -> Ledger {
        Ledger {
            program,
            rank,
            number,
            clock: Time::ZERO,
            engaged: Time::ZERO,
            end: Time::ZERO,
            computation: Span::ZERO,
            communication: Span::ZERO,
            messages_sent: 0,
            messages_received: 0,
            sent: Bytes::ZERO,
            received: Bytes::ZERO,
            numbers: Counters::default(),
            announced: Vec::new(),
            operation: "",
            call: None,
            recorder: Recorder::default(),
        }
    }

    /// How the rank has spent its time, after so many operations.
    pub(super) fn report(&self, operations: u64, finished: bool) -> RankReport {
        let Ledger { program, rank, computation, communication, .. } = *self;
        let end = if finished { self.end } else { self.clock };
        RankReport {
            program,
            rank,
            end,
            finished,
            operations,
            computation,
            communication,
            wait: (end - Time::ZERO).saturating_sub(computation).saturating_sub(communication),
            messages_sent: self.messages_sent,
            messages_received: self.messages_received,
            sent: self.sent,
            received: self.received,
        }
    }

    /// The processor waits until `begun`, and works on messaging until `clock`.
    #[inline]
    pub(super) fn work(
        &mut self,
        begun: Time,
        clock: Time,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) {
        self.draw(Activity::Wait, self.operation, self.clock, begun, around);
        self.draw(Activity::Communicate, self.operation, begun, clock, around);
        self.communication = self.communication.saturating_add(clock.saturating_since(begun));
        self.clock = clock;
    }

    /// A slice of the timeline.
    #[inline]
    pub(super) fn draw(
        &self,
        activity: Activity,
        name: &'static str,
        start: Time,
        end: Time,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) {
        if around.parameters.wanted.timeline && end > start {
            let rank = self.number;
            around.context.output().timeline.push(TimelineEvent::Slice { rank, activity, name, start, end });
        }
    }
}
