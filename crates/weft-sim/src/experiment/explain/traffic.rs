//! Load of links by the messages of a run, flows that share them, and ways that could be shorter.
//!
//! The load of a link is the time for which messages keep it busy. It follows from the hops that are
//! recorded, those of each message's first and last packet, and the number of packets.

use super::diagnosis::{Fact, Found, Judged, TimePart, percent, ps};
use crate::experiment::path::Names;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use weft_fabric::LinkEnd;
use weft_msg::EnvelopeKind;
use weft_topo::{LinkClass, Topology, idle_path};
use weft_units::{EndpointId, RankId, Span, Time};
use weft_workload::path::{Category, Location, PathTrace, Piece, PieceKind, Walk};
use weft_workload::replay::{MessageId, PostedMessage};

/// A link is hot from this many halves of the mean load of links in use on: below, all links are about as
/// busy, and no other way would be faster.
const HOT_HALVES: u128 = 3;
/// A flow of less than this part of a link's largest one does not count as sharing it.
const SMALL_FLOW: u128 = 100;
/// Flows that are named where a link is told.
const NAMED_FLOWS: usize = 2;
/// Pairs of ranks up to which mappings are compared: so many ways are walked in a second or two.
const MAX_PAIRS: usize = 1 << 20;

/// The use of a link.
struct Load {
    class: LinkClass,
    busy: u128,
    /// Bytes of data by sender and receiver.
    flows: BTreeMap<(RankId, RankId), u128>,
}

impl Load {
    /// The number of flows that count.
    fn flows(&self) -> usize {
        self.counted_flows().count()
    }

    /// The flows that count: a barrier crosses a link too, and does not share it.
    fn counted_flows(&self) -> impl Iterator<Item = ((RankId, RankId), u128)> {
        let largest = self.flows.values().max().copied().unwrap_or(0);
        let flows = self.flows.iter().map(|(flow, bytes)| (*flow, *bytes));
        flows.filter(move |(_, bytes)| SMALL_FLOW * bytes >= largest)
    }

    /// The flows that count, the largest first.
    fn largest_flows(&self) -> Vec<(RankId, RankId)> {
        let mut flows: Vec<_> = self.counted_flows().collect();
        flows.sort_by_key(|(flow, bytes)| (Reverse(*bytes), *flow));
        flows.into_iter().map(|(flow, _)| flow).collect()
    }
}

/// The messages of a run on the links of the machine.
pub(super) struct Traffic<'a> {
    trace: &'a PathTrace,
    names: &'a Names<'a>,
    loads: BTreeMap<LinkEnd, Load>,
    /// The sum of all loads.
    load: u128,
    /// Bytes between ranks.
    bytes: BTreeMap<(RankId, RankId), u128>,
    /// The cost of the mapping, and of the best that it is compared with.
    costs: (Cost, Cost),
}

/// Bytes times links, of a placement of the ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost(u128);

/// Whether a message carries data of the program, and not only word of it.
fn carries_data(post: &PostedMessage) -> bool {
    let is_data = matches!(
        post.kind,
        EnvelopeKind::Eager
            | EnvelopeKind::Multicast
            | EnvelopeKind::Data
            | EnvelopeKind::Access(_)
            | EnvelopeKind::Answer(_)
    );
    is_data && post.payload.get() > 0
}

impl<'a> Traffic<'a> {
    /// The messages that were posted between two times.
    pub fn between(trace: &'a PathTrace, names: &'a Names<'a>, (begin, end): (Time, Time)) -> Traffic<'a> {
        let (loads, bytes) = (BTreeMap::new(), BTreeMap::new());
        let mut traffic = Traffic { trace, names, loads, load: 0, bytes, costs: (Cost(1), Cost(1)) };
        for post in trace.posts().iter().filter(|post| post.at >= begin && post.at <= end) {
            let has_data = carries_data(post);
            if has_data {
                *traffic.bytes.entry((post.rank, post.to)).or_default() += u128::from(post.payload.get());
            }
            let mut links: BTreeMap<LinkEnd, (LinkClass, Span)> = BTreeMap::new();
            for hop in trace.hops(post.message) {
                let link = links.entry(hop.from).or_insert((hop.class, Span::ZERO));
                link.1 = link.1.max(hop.free.saturating_since(hop.began));
            }
            for (from, (class, packet)) in links {
                let none = Load { class, busy: 0, flows: BTreeMap::new() };
                let load = traffic.loads.entry(from).or_insert(none);
                load.busy += ps(packet) * u128::from(trace.packets(post));
                if has_data {
                    *load.flows.entry((post.rank, post.to)).or_default() += u128::from(post.payload.get());
                }
            }
        }
        traffic.load = traffic.loads.values().map(|load| load.busy).sum();
        traffic.costs = traffic.costs().unwrap_or(traffic.costs);
        traffic
    }

    fn busy(&self, link: LinkEnd) -> u128 {
        self.loads.get(&link).map_or(0, |load| load.busy)
    }

    /// Whether a link is much busier than the others, by several flows.
    fn is_hot(&self, link: LinkEnd) -> bool {
        let links = self.loads.len() as u128;
        let is_hot = |load: &Load| load.flows() > 1 && 2 * load.busy * links >= HOT_HALVES * self.load;
        self.loads.get(&link).is_some_and(is_hot)
    }

    /// The link on a message's way that is busiest over all of the run; the first of equals.
    fn bottleneck(&self, message: MessageId) -> Option<LinkEnd> {
        let mut busiest: Option<LinkEnd> = None;
        for hop in self.trace.hops(message) {
            if busiest.is_none_or(|link| self.busy(hop.from) > self.busy(link)) {
                busiest = Some(hop.from);
            }
        }
        busiest
    }

    /// The link that a wait for others is before, in a switch or in the interface that sends. `None`: the
    /// piece is no such wait.
    fn waits_before(&self, piece: &Piece) -> Option<LinkEnd> {
        let message = piece.message.filter(|_| waits_for_others(piece))?;
        match piece.place {
            Location::Link(from, _) => Some(from),
            Location::Block(endpoint, _) if endpoint == message.source => Some(LinkEnd::Endpoint(endpoint)),
            Location::Block(..) | Location::Rank(_) => None,
        }
    }

    /// The link that holds up a wait for others: a queue that stands before one link may be full because of a
    /// busier one further on. `None`: the piece is no such wait.
    fn holds_up(&self, piece: &Piece) -> Option<LinkEnd> {
        let own = self.waits_before(piece)?;
        let bottleneck = piece.message.and_then(|message| self.bottleneck(message));
        let is_worse = |link: &LinkEnd| 2 * self.busy(*link) >= HOT_HALVES * self.busy(own);
        bottleneck.filter(is_worse).or(Some(own))
    }

    /// The place of a piece, with the link that holds it up.
    pub fn place(&self, piece: &Piece) -> String {
        let place = self.names.place(piece);
        match self.holds_up(piece) {
            Some(link) if self.waits_before(piece) != Some(link) => {
                format!("{place}, held up by {}", self.name(link))
            }
            _ => place,
        }
    }

    /// The place that a piece is charged to: of a wait for others the link that holds it up, with its flows.
    pub fn charged_to(&self, piece: &Piece) -> String {
        let Some(link) = self.holds_up(piece) else { return self.names.place(piece) };
        let flows = self.loads.get(&link).map_or_else(Vec::new, Load::largest_flows);
        let named = flows.iter().take(NAMED_FLOWS).map(|(from, to)| self.names.flow(*from, *to));
        let named = named.collect::<Vec<_>>().join(", ");
        let name = self.name(link);
        match flows.len() {
            0 | 1 => name,
            count if count <= NAMED_FLOWS => format!("{name}: {count} flows, {named}"),
            count => format!("{name}: {count} flows, {named}, …"),
        }
    }

    fn name(&self, link: LinkEnd) -> String {
        self.names.link(link, self.loads.get(&link).map(|load| load.class))
    }

    /// The contention of the critical path that waits for hot links.
    pub fn hot_link(&self, judged: &Judged<'_>) -> Found {
        let mut waits: BTreeMap<LinkEnd, u128> = BTreeMap::new();
        for piece in judged.path.pieces.iter().filter(|piece| waits_for_others(piece)) {
            let link = piece.message.and_then(|message| self.bottleneck(message));
            if let Some(link) = link.filter(|link| self.is_hot(*link)) {
                *waits.entry(link).or_default() += ps(piece.span());
            }
        }
        let all: u128 = waits.values().sum();
        // The rest is the mapping's.
        let (actual, best) = self.costs;
        let part = TimePart { ps: all * best.0 / actual.0.max(1), of: ps(judged.path.time()) };
        let hottest = waits.iter().rev().max_by_key(|(_, time)| **time).map(|(link, _)| *link);
        let load = hottest.and_then(|link| self.loads.get(&link));
        let flows = load.map_or(0, Load::flows);
        let busy =
            load.map_or(0.0, |load| TimePart { ps: load.busy, of: ps(judged.path.time()) }.share()).min(1.0);
        let name = hottest.map_or(String::new(), |link| self.name(link));
        let more = match waits.len() {
            0 | 1 => String::new(),
            links => format!(" and {} more links", links - 1),
        };
        Found {
            part,
            words: format!(
                "{flows} flows share {name}, which is busy for {} of the time; waits for it{more} are {} of \
                 the critical path",
                percent(busy),
                percent(part.share())
            ),
            evidence: vec![
                ("link", Fact::Name(name)),
                ("flows", Fact::Number(flows as f64)),
                ("utilization", Fact::Number(busy)),
                ("hot_links", Fact::Number(waits.len() as f64)),
            ],
        }
    }

    /// The time in links and queues that ways as short as those of a better mapping would save.
    pub fn bad_mapping(&self, judged: &Judged<'_>) -> Found {
        let on_links: u128 = time_in(judged.path, &[Category::Network, Category::Contention]);
        let (actual, best) = self.costs;
        let saved = on_links * actual.0.saturating_sub(best.0) / actual.0.max(1);
        let part = TimePart { ps: saved, of: ps(judged.path.time()) };
        let bytes = self.bytes.values().sum::<u128>().max(1) as f64;
        let (links, fewest) = (actual.0 as f64 / bytes, best.0 as f64 / bytes);
        Found {
            part,
            words: format!(
                "a byte crosses {links:.2} links on average, and {fewest:.2} if ranks that talk to each \
                 other sit next to each other; that would save up to {} of the critical path",
                percent(part.share())
            ),
            evidence: vec![
                ("links_per_byte", Fact::Number(links)),
                ("fewest_links_per_byte", Fact::Number(fewest)),
            ],
        }
    }

    /// The cost of the mapping, and of the best of those that are compared: ranks in order, and ranks in the
    /// order in which they talk to each other, both on the same seats and on the first hosts of the machine.
    /// Two ranks have a distance, and no mapping. `None`: there are too many pairs, or all links are one.
    fn costs(&self) -> Option<(Cost, Cost)> {
        let ranks = self.names.ranks();
        if ranks < 3 || self.bytes.len() > MAX_PAIRS || self.names.is_ideal() {
            return None;
        }
        let actual: Vec<EndpointId> = (0..ranks).map(|rank| self.names.endpoint(RankId(rank))).collect();
        let mut same_seats = actual.clone();
        same_seats.sort_unstable();
        let talk = self.order_of_talk(ranks);
        let mut links = BTreeMap::new();
        let actual = self.cost(&actual, &mut links)?;
        let mut best = actual;
        for in_order in [Some(same_seats), self.names.in_order()].into_iter().flatten() {
            let mut by_talk = in_order.clone();
            for (rank, seat) in talk.iter().zip(&in_order) {
                by_talk[rank.index()] = *seat;
            }
            for seats in [in_order, by_talk] {
                best = best.min(self.cost(&seats, &mut links).unwrap_or(best));
            }
        }
        Some((actual, best))
    }

    /// The cost of seats of the ranks. `links`: between pairs that were looked at before.
    fn cost(
        &self,
        seats: &[EndpointId],
        links: &mut BTreeMap<(EndpointId, EndpointId), u128>,
    ) -> Option<Cost> {
        let layout = self.names.layout();
        let mut sum = 0;
        for ((from, to), bytes) in &self.bytes {
            let pair = (*seats.get(from.index())?, *seats.get(to.index())?);
            if pair.0 == pair.1 {
                continue;
            }
            if !layout.reachable(pair.0, pair.1) {
                return None;
            }
            let count = || {
                // The link to the first switch.
                let mut count = 1;
                idle_path(layout, pair.0, pair.1, |_, _| count += 1);
                count
            };
            sum += bytes * *links.entry(pair).or_insert_with(count);
        }
        Some(Cost(sum))
    }

    /// The ranks so that each follows one to which it has sent most, or from which it has received most.
    fn order_of_talk(&self, ranks: u32) -> Vec<RankId> {
        let mut talks: BTreeMap<RankId, BTreeMap<RankId, u128>> = BTreeMap::new();
        for ((from, to), bytes) in &self.bytes {
            *talks.entry(*from).or_default().entry(*to).or_default() += bytes;
            *talks.entry(*to).or_default().entry(*from).or_default() += bytes;
        }
        let mut left: BTreeSet<RankId> = (0..ranks).map(RankId).collect();
        let mut order: Vec<RankId> = Vec::new();
        while let Some(first) = left.first().copied() {
            let partners = order.last().and_then(|last| talks.get(last));
            let partners = partners.into_iter().flatten().filter(|(rank, _)| left.contains(rank));
            let next = partners.rev().max_by_key(|(_, bytes)| **bytes).map_or(first, |(rank, _)| *rank);
            left.remove(&next);
            order.push(next);
        }
        order
    }
}

/// Whether a piece is a wait behind others.
fn waits_for_others(piece: &Piece) -> bool {
    matches!(piece.kind, PieceKind::Waiting | PieceKind::OutputBuffer)
}

/// The time of a walk in some categories.
fn time_in(walk: &Walk, categories: &[Category]) -> u128 {
    let pieces = walk.pieces.iter().filter(|piece| categories.contains(&piece.kind.category()));
    pieces.map(|piece| ps(piece.span())).sum()
}
