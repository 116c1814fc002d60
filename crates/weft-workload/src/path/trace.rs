//! The record of a replay, sorted so that the walk finds steps, messages, hops and stages quickly.

use crate::replay::{Cause, Finish, MessageId, PostedMessage, RankStep, Record};
use weft_fabric::HopRecord;
use weft_nic::Stage;
use weft_units::{Bytes, RankId, Span, Time};

/// At what pace the packets of one message follow each other, so that what they wait for one another can
/// be told from what they wait for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Largest payload of a packet.
    pub packet_payload: Bytes,
    /// Least time from packet to packet at the receiving interface. That of links is in the hops of a
    /// message's first packet.
    pub receive_packet: Span,
    /// Least time from packet to packet at the sending interface, where that does not tell it as its work.
    pub send_packet: Span,
    /// A cycle of the switches' clock.
    pub switch_cycle: Span,
    /// A cycle of the interfaces' clock: what waits for less in a block waits for an edge of it.
    pub interface_cycle: Span,
}

/// The record of a replay.
#[derive(Debug)]
pub struct PathTrace {
    /// By rank and number.
    steps: Vec<RankStep>,
    /// Of each rank: where its steps begin.
    first_steps: Vec<usize>,
    /// By message.
    posts: Vec<PostedMessage>,
    /// By message and time.
    hops: Vec<HopRecord>,
    /// By message and the time at which they ended.
    stages: Vec<Stage>,
    /// By rank.
    finishes: Vec<Finish>,
    /// The pace of packets.
    pub(super) pace: Pace,
}

impl PathTrace {
    /// Sorts what all partitions of a replay have recorded. The order in which they come does not matter;
    /// stages of one endpoint at the same times stay in the order in which it has told of them.
    pub fn new(record: Record, mut hops: Vec<HopRecord>, mut stages: Vec<Stage>, pace: Pace) -> PathTrace {
        let Record { mut steps, mut posts, mut finishes } = record;
        steps.sort_unstable_by_key(|step| (step.rank, step.number));
        posts.sort_unstable_by_key(|post| post.message);
        finishes.sort_unstable_by_key(|finish| finish.rank);
        hops.sort_unstable_by_key(|hop| (hop.source, hop.message, hop.came, hop.began, hop.from));
        stages.sort_by_key(|s| (s.source, s.message, s.ended, s.came, s.began, s.endpoint));
        let ranks = finishes.last().map_or(0, |finish| finish.rank.index() + 1);
        let ranks = steps.last().map_or(ranks, |step| ranks.max(step.rank.index() + 1));
        let first_steps =
            (0..=ranks).map(|rank| steps.partition_point(|step| step.rank.index() < rank)).collect();
        PathTrace { steps, first_steps, posts, hops, stages, finishes, pace }
    }

    /// The ends of programs whose hosts do not record them.
    pub fn add_finishes(&mut self, finishes: Vec<Finish>) {
        self.finishes.extend(finishes);
        self.finishes.sort_unstable_by_key(|finish| finish.rank);
    }

    /// The steps of a rank, in the order in which they were recorded.
    pub fn steps(&self, rank: RankId) -> &[RankStep] {
        match (self.first_steps.get(rank.index()), self.first_steps.get(rank.index() + 1)) {
            (Some(&from), Some(&to)) => &self.steps[from..to],
            _ => &[],
        }
    }

    /// The number of cores of a rank, as far as they are recorded at work.
    pub fn cores(&self, rank: RankId) -> u32 {
        let own = self.steps(rank).iter().filter(|step| !step.background);
        own.map(|step| step.core + 1).max().unwrap_or(1)
    }

    /// One step of a rank, if it is recorded.
    pub fn step(&self, rank: RankId, number: u32) -> Option<&RankStep> {
        let steps = self.steps(rank);
        // What came before the first may have been let go.
        let index = number.checked_sub(steps.first()?.number)?;
        steps.get(index as usize)
    }

    /// A message, if its post is recorded.
    pub fn post(&self, message: MessageId) -> Option<&PostedMessage> {
        let place = self.posts.binary_search_by_key(&message, |post| post.message).ok()?;
        Some(&self.posts[place])
    }

    /// The moment `at` of a rank, where one of its own steps ends, or else one in the background that it
    /// waited for; `None`: none ends then.
    pub fn moment(&self, rank: RankId, at: Time) -> Option<Finish> {
        let ends = || self.steps(rank).iter().rev().filter(|step| step.end == at);
        let step = ends().find(|step| !step.background).or_else(|| ends().next())?;
        Some(Finish { rank, at, last: Cause::After(step.number) })
    }

    /// How far a rank has come by `until`: its end, or that of the last of its own steps that is recorded;
    /// `None`: nothing of it is.
    pub fn reached(&self, rank: RankId, until: Time) -> Option<Finish> {
        let own = |finish: &&Finish| finish.rank == rank && finish.at <= until;
        let done = |step: &&RankStep| !step.background && step.end <= until;
        let step = || self.steps(rank).iter().filter(done).max_by_key(|step| (step.end, step.number));
        let last = || step().map(|step| Finish { rank, at: step.end, last: Cause::After(step.number) });
        self.finishes.iter().find(own).copied().or_else(last)
    }

    /// The messages, by source and number.
    pub fn posts(&self) -> &[PostedMessage] {
        &self.posts
    }

    /// The number of packets of a message.
    pub fn packets(&self, post: &PostedMessage) -> u64 {
        post.payload.div_ceil(self.pace.packet_payload).max(1)
    }

    /// The ends of programs, by rank.
    pub fn finishes(&self) -> &[Finish] {
        &self.finishes
    }

    /// The hops of a message's watched packets: the first and the last at least.
    pub fn hops(&self, message: MessageId) -> &[HopRecord] {
        range(&self.hops, message, |hop| MessageId { source: hop.source, number: hop.message })
    }

    /// The stages of a message.
    pub(super) fn stages(&self, message: MessageId) -> &[Stage] {
        range(&self.stages, message, |stage| MessageId { source: stage.source, number: stage.message })
    }
}

/// The part of `all`, which is sorted by `key`, with that key.
fn range<T>(all: &[T], wanted: MessageId, key: impl Fn(&T) -> MessageId) -> &[T] {
    let from = all.partition_point(|one| key(one) < wanted);
    let count = all[from..].partition_point(|one| key(one) == wanted);
    &all[from..from + count]
}
