//! The account of a rank: its processor's clock, the sums of its time, and its messages.

use super::calls::CallCounts;
use super::record::{LastSteps, RankRecord, Record};
use super::reorder::Counters;
use super::report::{Activity, RankReport, TimelineEvent};
use super::transport::RankContext;
use super::{ReceivedMessage, ReplayHost};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::ops::Range;
use weft_nic::HostContext;
use weft_trace::Kind;
use weft_units::{Bytes, RankId, Span, Time};

/// The account of a rank.
#[derive(Serialize, Deserialize)]
pub(super) struct RankAccount {
    pub(super) program: u32,
    pub(super) rank: RankId,
    /// The rank counted over all programs.
    pub(super) number: RankId,
    /// The time at which its program begins.
    start: Time,
    /// The end of its processor's work so far.
    pub(super) clock: Time,
    /// The end of the work on its queues so far.
    pub(super) queues_free: Time,
    /// The end of its last operation.
    pub(super) end: Time,
    pub(super) computation: Span,
    /// The part of its computation in which it waits for memory that others use.
    pub(super) memory_wait: Span,
    pub(super) communication: Span,
    pub(super) messages_sent: u64,
    pub(super) messages_received: u64,
    pub(super) sent: Bytes,
    pub(super) received: Bytes,
    /// Numbers for the messages to be matched, by destination.
    pub(super) numbers: Counters,
    /// Messages in parts so far.
    pub(super) striped: NonZeroU32,
    /// The rails of the next message without data and of the next one with data, where messages take them in
    /// turn.
    pub(super) next_rail: [u32; 2],
    /// The times at which announced messages were posted, by exchange.
    pub(super) announced: Vec<Time>,
    /// The operation that is under way, for timelines.
    #[serde(skip)]
    pub(super) operation: &'static str,
    /// The core that is at work, for timelines and the record.
    #[serde(skip)]
    pub(super) core: u32,
    /// The call that is under way, for the record.
    #[serde(skip)]
    pub(super) call: Option<Kind>,
    pub(super) last_steps: LastSteps,
    /// Calls so far, by operation.
    pub(super) calls: CallCounts,
    /// Of a stepped program: the messages that its receives have taken since it was last asked.
    #[serde(skip)]
    #[expect(clippy::box_collection, reason = "few ranks have one, and there may be a million ranks")]
    pub(super) untold: Option<Box<Vec<ReceivedMessage>>>,
}

impl RankAccount {
    /// The application, as traffic classes number them. There are no more than they have numbers for.
    pub(super) fn job(&self) -> u16 {
        self.program.min(u16::MAX.into()) as u16
    }

    /// The account of a rank at the start of its program.
    pub(super) fn new(program: u32, rank: RankId, number: RankId) -> RankAccount {
        RankAccount {
            program,
            rank,
            number,
            start: Time::ZERO,
            clock: Time::ZERO,
            queues_free: Time::ZERO,
            end: Time::ZERO,
            computation: Span::ZERO,
            memory_wait: Span::ZERO,
            communication: Span::ZERO,
            messages_sent: 0,
            messages_received: 0,
            sent: Bytes::ZERO,
            received: Bytes::ZERO,
            numbers: Counters::default(),
            striped: NonZeroU32::MIN,
            next_rail: [0; 2],
            announced: Vec::new(),
            operation: "",
            core: 0,
            call: None,
            last_steps: LastSteps::default(),
            calls: CallCounts::default(),
            untold: None,
        }
    }

    /// The rank begins at this time.
    pub(super) fn begin_at(&mut self, start: Time) {
        (self.start, self.clock) = (start, start);
    }

    /// The summary of the rank after `operations` operations.
    pub(super) fn report(&self, operations: u64, finished: bool) -> RankReport {
        let RankAccount { program, rank, computation, communication, .. } = *self;
        let end = if finished { self.end } else { self.clock };
        RankReport {
            program,
            rank,
            start: self.start,
            end,
            finished,
            operations,
            awaited: 0,
            cores: 1,
            computation,
            memory_wait: self.memory_wait,
            communication,
            messages_sent: self.messages_sent,
            messages_received: self.messages_received,
            sent: self.sent,
            received: self.received,
        }
    }

    /// The record of the replay, open for this rank's steps.
    pub(super) fn record<'r>(&'r mut self, record: &'r mut Record) -> RankRecord<'r> {
        RankRecord { rank: self.number, core: self.core, last_steps: &mut self.last_steps, record }
    }

    /// The processor waits until `begun`, and works on messaging until `clock`.
    #[inline]
    pub(super) fn work(
        &mut self,
        begun: Time,
        clock: Time,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        self.draw(Activity::Wait, self.clock..begun, context);
        self.draw(Activity::Communicate, begun..clock, context);
        self.communication = self.communication.saturating_add(clock.saturating_since(begun));
        self.clock = clock;
    }

    /// Adds a slice to the timeline, if one is wanted.
    #[inline]
    pub(super) fn draw(
        &self,
        activity: Activity,
        time: Range<Time>,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let Range { start, end } = time;
        if context.parameters.wanted.timeline && end > start {
            let name = if activity == Activity::Compute { "compute" } else { self.operation };
            let (rank, core) = (self.number, self.core);
            let slice = TimelineEvent::Slice { rank, core, activity, name, start, end };
            context.host.output().timeline.push(slice);
        }
    }
}
