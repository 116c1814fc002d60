//! One message, from its post to its notice.
//!
//! ```text
//!  post ─[block]─┬ first packet                                                             notice
//!                └─ own packets ─┬ last packet ─[link]─[switch]─ waits ─[link]─ bits ─[block]─┘
//! ```
//! The chain is that of the last packet that came before the notice. Of the time that it waits behind others,
//! at the source for its turn and in switches, so much is the message's own as its packets before take on the
//! slowest link: that is serialization, and the rest is contention. Which of both comes first cannot be told
//! and does not matter to their sums; here it is serialization.

use super::piece::{Location, Piece, PieceKind};
use super::trace::PathTrace;
use crate::replay::PostedMessage;
use weft_fabric::{HopRecord, LinkEnd};
use weft_nic::{Block, BlockKind, Stage};
use weft_units::{Span, Time};

/// Lays pieces one behind the other.
struct Chain<'t> {
    trace: &'t PathTrace,
    post: PostedMessage,
    /// Up to here all is explained.
    cursor: Time,
    /// Nothing later is of interest.
    until: Time,
    /// From here on packets of the message itself may be ahead.
    own_from: Time,
    /// The part of its waiting that its own packets cause. The rest is contention.
    own: Span,
    pieces: Vec<Piece>,
}

/// The record of one message.
struct Message<'t> {
    trace: &'t PathTrace,
    post: &'t PostedMessage,
    hops: &'t [HopRecord],
    stages: &'t [Stage],
}

/// The pieces of a message from its post to `until`, in order and without gaps.
pub(super) fn chain(trace: &PathTrace, post: &PostedMessage, until: Time) -> Vec<Piece> {
    let (hops, stages) = (trace.hops(post.message), trace.stages(post.message));
    let recorded = Message { trace, post, hops, stages };
    let injected: Vec<&HopRecord> =
        hops.iter().filter(|hop| matches!(hop.from, LinkEnd::Endpoint(_))).collect();
    let way = |hop: &&HopRecord| recorded.way(hop);
    let first = injected.first().map(way).unwrap_or_default();
    // Others may have been lost, or be repeated because an answer was.
    let arrives = |way: &Vec<HopRecord>| {
        way.last().is_some_and(|hop| hop.to.is_none() && hop.ended + hop.latency <= until)
    };
    let last = injected.iter().rev().map(way).find(arrives);
    let last = last.or_else(|| injected.last().map(way)).unwrap_or_default();
    let alone = injected.len() < 2 || post.payload <= trace.pace.packet_payload;
    let own_from = first.first().map_or(Time::NEVER, |hop| hop.came);
    let sent = last.first().map_or(Time::NEVER, |hop| hop.came);
    let mut chain = Chain {
        trace,
        post: *post,
        cursor: post.at,
        until,
        own_from,
        own: match alone {
            true => Span::ZERO,
            false => recorded.own_packets(&first, own_from) + recorded.delays(&first, &last),
        },
        pieces: Vec::new(),
    };
    // A timer that ran out although the only packet was on its way cost the message nothing.
    let counts = |stage: &&Stage| !alone || stage.block != Block::TIMEOUT || stage.ended <= sent;
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
            chain.wait(stage.came, Location::Block(stage.endpoint, stage.block));
        }
        chain.stage(stage);
    }
    // No block has told what happens until then.
    chain.spend(
        until,
        PieceKind::Block(Block::INTERFACE),
        Location::Block(post.message.source, Block::INTERFACE),
    );
    chain.pieces
}

impl Message<'_> {
    /// The hops of the packet that was injected by `hop`.
    fn way(&self, hop: &HopRecord) -> Vec<HopRecord> {
        let mut way = vec![*hop];
        while let Some(&HopRecord { to: Some(switch), began, latency, routing, .. }) = way.last() {
            let came = began + latency + routing;
            let from = self.hops.partition_point(|hop| hop.came < came);
            let mut then = self.hops[from..].iter().take_while(|hop| hop.came == came);
            let Some(next) = then.find(|hop| matches!(hop.from, LinkEnd::Port(at, _) if at == switch)) else {
                break;
            };
            way.push(*next);
        }
        way
    }

    /// The time that the packets before the last one take on the slowest link or at one of the interfaces, as
    /// far as the interface that sends them takes less.
    fn own_packets(&self, first: &[HopRecord], own_from: Time) -> Span {
        let pace = &self.trace.pace;
        let packets = self.post.payload.div_ceil(pace.packet_payload).max(1);
        let slowest = first.iter().map(|hop| hop.free - hop.began).max().unwrap_or(Span::ZERO);
        let all = slowest.max(pace.receive_packet).max(pace.send_packet) * (packets - 1);
        // The cost of the interface's own pace is told as its work, and not a second time.
        let paces = |stage: &&Stage| {
            stage.block.kind() == BlockKind::Pace
                && stage.came >= own_from
                && stage.endpoint == self.post.message.source
        };
        let paced = self.stages.iter().filter(paces);
        paced.fold(all, |left, stage| left.saturating_sub(stage.ended - stage.began))
    }

    /// The time beyond the slowest link that the packets before the last one may cost it in switches. The
    /// first may have taken longer to be stored, and each leaves at an edge of the clock.
    fn delays(&self, first: &[HopRecord], last: &[HopRecord]) -> Span {
        let stored = |hop: &HopRecord| hop.ready - hop.came;
        let mut sum = Span::ZERO;
        for (first, last) in first.iter().zip(last) {
            if matches!(last.from, LinkEnd::Port(..)) {
                sum += stored(first).saturating_sub(stored(last)) + self.trace.pace.switch_cycle;
            }
        }
        sum
    }
}

impl Chain<'_> {
    /// Up to `end`, the time is spent on `what`.
    fn spend(&mut self, end: Time, kind: PieceKind, place: Location) {
        let end = end.min(self.until);
        if end > self.cursor {
            let (begin, message) = (self.cursor, Some(self.post.message));
            self.pieces.push(Piece { begin, end, kind, place, message, within: None });
            self.cursor = end;
        }
    }

    /// Up to `end`, the message waits: behind its own packets, then for others.
    fn wait(&mut self, end: Time, place: Location) {
        self.wait_in(end, PieceKind::Waiting, place);
    }

    /// The same, where waiting for others is `kind`.
    fn wait_in(&mut self, end: Time, kind: PieceKind, place: Location) {
        if self.cursor >= self.own_from {
            let begin = self.cursor;
            self.spend(end.min(begin.saturating_add(self.own)), PieceKind::Serialization, place);
            self.own = self.own.saturating_sub(self.cursor - begin);
        }
        self.spend(end, kind, place);
    }

    fn stage(&mut self, stage: &Stage) {
        let place = Location::Block(stage.endpoint, stage.block);
        if self.cursor >= self.own_from {
            // Other packets of the message are on their way.
            self.wait(stage.came, place);
        }
        // Before a stage, no block has told what happens.
        self.spend(
            stage.came,
            PieceKind::Block(Block::INTERFACE),
            Location::Block(stage.endpoint, Block::INTERFACE),
        );
        if stage.began.saturating_since(stage.came.max(self.cursor)) >= self.trace.pace.interface_cycle {
            match stage.block.waits_for() {
                Some(_) => self.spend(stage.began, PieceKind::WaitsFor(stage.block), place),
                None => self.wait(stage.began, place),
            }
        }
        self.spend(stage.ended, PieceKind::Block(stage.block), place);
    }

    fn hop(&mut self, hop: &HopRecord, last: bool) {
        let place = Location::Link(hop.from, hop.class);
        let source = self.post.message.source;
        match hop.from {
            LinkEnd::Endpoint(_) => {
                let interface = Location::Block(source, Block::INTERFACE);
                self.spend(hop.came, PieceKind::Block(Block::INTERFACE), interface);
            }
            // The routing logic of the switch, behind the link before.
            LinkEnd::Port(..) => self.spend(hop.came, PieceKind::Switch, place),
        }
        self.spend(hop.ready, PieceKind::Serialization, place);
        self.spend(hop.could, PieceKind::Switch, place);
        let asleep = hop.began - hop.waking;
        self.wait(hop.crossed.min(asleep), place);
        self.wait_in(asleep, PieceKind::OutputBuffer, place);
        self.spend(hop.began, PieceKind::Waking, place);
        self.spend(hop.began + hop.latency, PieceKind::Link, place);
        if last {
            self.spend(hop.began + hop.latency + hop.routing, PieceKind::Switch, place);
            self.spend(hop.ended + hop.latency + hop.routing, PieceKind::Serialization, place);
        }
    }
}
