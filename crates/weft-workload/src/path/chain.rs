//! One message, from its post to its notice.
//!
//! ```text
//!  post ─[block]─┬ first packet                                                             notice
//!                └─ own packets ─┬ last packet ─[link]─[switch]─ waits ─[link]─ bits ─[block]─┘
//! ```
//! The chain is that of the last packet that came before the notice. Of the time that it waits behind others, at the source for its
//! turn and in switches, so much is the message's own as its packets before take on the slowest link:
//! that is serialization, and the rest is contention. Which of both comes first cannot be told and does
//! not matter to their sums; here it is serialization.

use super::piece::{Piece, Place, What};
use super::trace::PathTrace;
use crate::replay::Post;
use weft_fabric::{HopRecord, LinkEnd};
use weft_nic::{Block, Stage};
use weft_units::{Span, Time};

/// Lays pieces one behind the other.
struct Chain<'t> {
    trace: &'t PathTrace,
    post: Post,
    /// Up to here all is explained.
    cursor: Time,
    /// Nothing later is of interest.
    until: Time,
    /// From here on packets of the message itself may be ahead.
    own_from: Time,
    /// So much of what it waits is for them.
    own: Span,
    pieces: Vec<Piece>,
}

/// The pieces of a message from its post to `until`, in order and without gaps.
pub(super) fn chain(trace: &PathTrace, post: &Post, until: Time) -> Vec<Piece> {
    let (hops, stages) = (trace.hops(post.message), trace.stages(post.message));
    let injected: Vec<&HopRecord> =
        hops.iter().filter(|hop| matches!(hop.from, LinkEnd::Endpoint(_))).collect();
    let way = |hop: &&HopRecord| packet(hops, hop);
    let first = injected.first().map(way).unwrap_or_default();
    // Others may have been lost, or be repeated because an answer was.
    let arrives = |way: &Vec<HopRecord>| {
        way.last().is_some_and(|hop| hop.to.is_none() && hop.ended + hop.latency <= until)
    };
    let last = injected.iter().rev().map(way).find(arrives);
    let last = last.or_else(|| injected.last().map(way)).unwrap_or_default();
    let alone = injected.len() < 2 || post.payload <= trace.pace.packet_payload;
    let own_from = first.first().map_or(Time::MAX, |hop| hop.came);
    let sent = last.first().map_or(Time::MAX, |hop| hop.came);
    let mut chain = Chain {
        trace,
        post: *post,
        cursor: post.at,
        until,
        own_from,
        own: match alone {
            true => Span::ZERO,
            false => own_packets(trace, post, &first, stages, own_from) + delays(trace, &first, &last),
        },
        pieces: Vec::new(),
    };
    // A timer that ran out although the only packet was on its way cost the message nothing.
    let counts = |stage: &&Stage| !alone || stage.block != Block::Timeout || stage.ended <= sent;
    let mut stages = stages.iter().filter(counts).peekable();
    // A stage that ends when a packet is supplied comes before its hop.
    let mut stages_before = |chain: &mut Chain<'_>, came: Time| {
        while let Some(stage) = stages.next_if(|stage| stage.ended <= came) {
            chain.stage(stage);
        }
    };
    for (index, hop) in last.iter().enumerate() {
        stages_before(&mut chain, hop.came);
        chain.hop(hop, index + 1 == last.len());
    }
    let mut arrived = !last.is_empty();
    for stage in stages {
        if std::mem::take(&mut arrived) {
            // Packets of the message that went before have come later.
            chain.wait(stage.came, Place::Block(stage.endpoint, stage.block));
        }
        chain.stage(stage);
    }
    // No block has told what happens until then.
    chain.spend(until, What::Block(Block::Interface), Place::Block(post.message.source, Block::Interface));
    chain.pieces
}

/// The hops of the packet that was injected by `hop`.
fn packet(hops: &[HopRecord], hop: &HopRecord) -> Vec<HopRecord> {
    let mut way = vec![*hop];
    while let Some(&HopRecord { to: Some(switch), began, latency, .. }) = way.last() {
        let came = began + latency;
        let from = hops.partition_point(|hop| hop.came < came);
        let mut then = hops[from..].iter().take_while(|hop| hop.came == came);
        let Some(next) = then.find(|hop| matches!(hop.from, LinkEnd::Port(at, _) if at == switch)) else {
            break;
        };
        way.push(*next);
    }
    way
}

/// How long the packets of the message before its last one take on the slowest link or at one of the interfaces, as
/// far as the interface that sends them takes less.
fn own_packets(
    trace: &PathTrace,
    post: &Post,
    first: &[HopRecord],
    stages: &[Stage],
    own_from: Time,
) -> Span {
    let packets = post.payload.div_ceil(trace.pace.packet_payload).max(1);
    let slowest = first.iter().map(|hop| hop.free - hop.began).max().unwrap_or(Span::ZERO);
    let all = slowest.max(trace.pace.receive_packet).max(trace.pace.send_packet) * (packets - 1);
    // What the interface's own pace costs is told as its work, and not a second time.
    let paces = |stage: &&Stage| {
        matches!(stage.block, Block::Interface | Block::RdmaSend)
            && stage.came >= own_from
            && stage.endpoint == post.message.source
    };
    let paced = stages.iter().filter(paces);
    paced.fold(all, |left, stage| left.saturating_sub(stage.ended - stage.began))
}

/// How much more than the slowest link the packets before the last one may cost it in switches: the first
/// may have taken longer to be stored, and each leaves at an edge of the clock.
fn delays(trace: &PathTrace, first: &[HopRecord], last: &[HopRecord]) -> Span {
    let stored = |hop: &HopRecord| hop.ready - hop.came;
    let mut sum = Span::ZERO;
    for (first, last) in first.iter().zip(last) {
        if matches!(last.from, LinkEnd::Port(..)) {
            sum += stored(first).saturating_sub(stored(last)) + trace.pace.switch_cycle;
        }
    }
    sum
}

impl Chain<'_> {
    /// Up to `end`, the time is spent on `what`.
    fn spend(&mut self, end: Time, what: What, place: Place) {
        let end = end.min(self.until);
        if end > self.cursor {
            let (begin, message) = (self.cursor, Some(self.post.message));
            self.pieces.push(Piece { begin, end, what, place, message, within: None });
            self.cursor = end;
        }
    }

    /// Up to `end`, the message waits: behind its own packets, then for others.
    fn wait(&mut self, end: Time, place: Place) {
        if self.cursor >= self.own_from {
            let begin = self.cursor;
            self.spend(end.min(begin.saturating_add(self.own)), What::Serialization, place);
            self.own = self.own.saturating_sub(self.cursor - begin);
        }
        self.spend(end, What::Waiting, place);
    }

    fn stage(&mut self, stage: &Stage) {
        let place = Place::Block(stage.endpoint, stage.block);
        if self.cursor >= self.own_from {
            // Other packets of the message are on their way.
            self.wait(stage.came, place);
        }
        // Before a stage, no block has told what happens.
        self.spend(stage.came, What::Block(Block::Interface), Place::Block(stage.endpoint, Block::Interface));
        if stage.began.saturating_since(stage.came.max(self.cursor)) >= self.trace.pace.interface_cycle {
            match stage.block.waits_for() {
                Some(_) => self.spend(stage.began, What::WaitsFor(stage.block), place),
                None => self.wait(stage.began, place),
            }
        }
        self.spend(stage.ended, What::Block(stage.block), place);
    }

    fn hop(&mut self, hop: &HopRecord, last: bool) {
        let place = Place::Link(hop.from, hop.class);
        let source = self.post.message.source;
        self.spend(hop.came, What::Block(Block::Interface), Place::Block(source, Block::Interface));
        self.spend(hop.ready, What::Serialization, place);
        self.spend(hop.could, What::Switch, place);
        self.wait(hop.began, place);
        self.spend(hop.began + hop.latency, What::Link, place);
        if last {
            self.spend(hop.ended + hop.latency, What::Serialization, place);
        }
    }
}
