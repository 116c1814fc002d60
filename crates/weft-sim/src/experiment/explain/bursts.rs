//! Small messages that go one by one, although they could go together.
//!
//! A burst is a row of eager messages of less than a packet from one rank to another, between which the
//! sender has waited for no message. Its first message has to go; the others could have gone with it, and
//! what each of them costs, software, interface, way and turn, is paid for nothing. A ping-pong has no
//! bursts, nor has a collective: there every message answers another.

use super::diagnosis::{Fact, Found, Judged, TimePart, percent, ps};
use std::collections::{BTreeMap, BTreeSet};
use weft_msg::EnvelopeKind;
use weft_units::RankId;
use weft_workload::path::{Category, Location, PathTrace};
use weft_workload::replay::{Cause, MessageId, PostedMessage};

/// Messages of a rank, and those of them that go in bursts without being the first.
#[derive(Clone, Copy, Default)]
struct Count {
    messages: u64,
    more: u64,
}

/// The bursts of a run.
pub(super) struct Bursts {
    /// Messages that could have gone with the one before.
    more: BTreeSet<MessageId>,
    /// Of each rank: what it sends and receives.
    counts: BTreeMap<RankId, Count>,
    bytes: u64,
    longest: u64,
}

impl Bursts {
    /// Finds the bursts of what is judged.
    pub fn of(judged: &Judged<'_>) -> Bursts {
        let Judged { trace, path, .. } = *judged;
        let mut by_rank: BTreeMap<RankId, Vec<&PostedMessage>> = BTreeMap::new();
        for post in trace.posts().iter().filter(|post| post.at >= path.begin && post.at <= path.end) {
            by_rank.entry(post.rank).or_default().push(post);
        }
        let mut bursts = Bursts { more: BTreeSet::new(), counts: BTreeMap::new(), bytes: 0, longest: 0 };
        for (rank, mut posts) in by_rank {
            posts.sort_by_key(|post| (post.after, post.message));
            bursts.add(rank, &posts, trace);
        }
        bursts
    }

    /// The messages of a rank in the order in which it posted them.
    fn add(&mut self, rank: RankId, posts: &[&PostedMessage], trace: &PathTrace) {
        let steps = trace.steps(rank);
        let mut steps = steps.iter().peekable();
        // The length of the present burst to each rank.
        let mut lengths: BTreeMap<RankId, u64> = BTreeMap::new();
        for post in posts {
            while let Some(step) = steps.next_if(|step| step.number <= post.after) {
                if matches!(step.cause, Cause::Arrived(_)) {
                    lengths.clear();
                }
            }
            if post.kind != EnvelopeKind::Eager || post.payload.get() == 0 {
                continue;
            }
            let is_small = trace.packets(post) == 1;
            let length = lengths.entry(post.to).or_default();
            *length = if is_small { *length + 1 } else { 0 };
            let more = *length > 1;
            for end in [rank, post.to] {
                let count = self.counts.entry(end).or_default();
                count.messages += 1;
                count.more += u64::from(more);
            }
            if more {
                self.more.insert(post.message);
                self.bytes += post.payload.get();
                self.longest = self.longest.max(*length);
            }
        }
    }

    /// The time of the critical path that the messages cost that could have gone with others.
    pub fn found(&self, judged: &Judged<'_>) -> Found {
        let mut time = 0;
        for piece in &judged.path.pieces {
            let costs_each = matches!(
                piece.kind.category(),
                Category::Software | Category::Interface | Category::Network | Category::Contention
            );
            let span = ps(piece.span());
            time += match (piece.message, piece.place) {
                _ if !costs_each => 0,
                (Some(message), _) if self.more.contains(&message) => span,
                (None, Location::Rank(rank)) => {
                    let Count { messages, more } = self.counts.get(&rank).copied().unwrap_or_default();
                    span * u128::from(more) / u128::from(messages.max(1))
                }
                _ => 0,
            };
        }
        let part = TimePart { ps: time, of: ps(judged.path.time()) };
        let (count, longest) = (self.more.len(), self.longest);
        let mean = self.bytes as f64 / count.max(1) as f64;
        Found {
            part,
            words: format!(
                "{count} messages of {mean:.0} bytes, headers included, go to the rank that the one before \
                 went to, up to {longest} in a row; what each costs is {} of the critical path",
                percent(part.share())
            ),
            evidence: vec![
                ("messages", Fact::Number(count as f64)),
                ("mean_bytes", Fact::Number(mean)),
                ("longest_burst_messages", Fact::Number(longest as f64)),
            ],
        }
    }
}
