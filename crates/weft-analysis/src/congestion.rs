//! Congestion trees: which port is the cause of a jam, who waits for it, and who suffers without wanting it.
//!
//! ```text
//!  source ══ waits ══► switch ══ waits ══► switch ══ busy all the time ══► destination
//!           branch               branch      │              root
//!                                            └─────────────────────────► elsewhere: a victim
//! ```
//! From the tables of telemetry, interval by interval:
//!
//! - A link *waits* where packets stood ready for it while the buffer behind it was full, or its sender was
//!   paused, for a part of the interval; or where the buffer behind it holds half of what the fullest has
//!   held.
//! - A *root* is a link of a switch that is busy nearly all the time and does not wait itself, while links
//!   into its switch wait, or its own queue is as long.
//! - *Branches* are the links that wait for it: into its switch, and from there on against the stream.
//! - *Victims* are flows that cross a branch and not the root.
//!
//! Which packet waits for which output is not in the tables. So of two roots at one switch both have the
//! links into it, as far as flows that are known go by both.
//!
//! # Source
//! G. Pfister, V. Norton, "'Hot spot' contention and combining in multistage interconnection networks", IEEE
//! Transactions on Computers C-34(10), 1985.

mod network;

use network::{End, Network};
pub use network::{LinkFrom, Ways};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use weft_results::{
    FlowRateRow, FlowRow, INTERVALS_PER_COARSER, QueueRow, RateRow, ResultsError, StoredResult,
    TELEMETRY_LEVELS, Table,
};

/// A root sends for so much of an interval.
const ROOT_BUSY: f64 = 0.9;
/// A link that stalls or is paused for so much of an interval waits.
const WAITS: f64 = 0.05;
/// A queue of so much of what the fullest of the run has held is full.
const FULL: f64 = 0.5;
/// Intervals that are looked at, at most: of many the level above.
const MAX_INTERVALS: u64 = 400;
/// Trees of a run that are told, those with most branches over time.
const MAX_TREES: usize = 10;
/// Flows that are looked at for victims: those that carry most.
const MAX_FLOWS: usize = 4096;
const PS_PER_US: f64 = 1e6;

/// A congestion tree.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CongestionTree {
    /// The run.
    pub run: u32,
    /// The link that all others wait for.
    pub root: String,
    /// The time at which it was first seen.
    pub from_us: f64,
    /// The time at which it was last seen.
    pub to_us: f64,
    /// Share of the run in which it stood.
    pub share: f64,
    /// The links that waited, those near the root first.
    pub branches: Vec<Branch>,
    /// The flows that cross the root; `None`: the result does not know its flows.
    pub contributors: Option<Vec<TreeFlow>>,
    /// The flows that cross a branch and not the root; `None`: the result does not know its flows.
    pub victims: Option<Vec<TreeFlow>>,
    /// Over the intervals of the run: where it stood, and how full each branch was. For pictures.
    #[serde(skip)]
    pub(crate) history: History,
}

/// A link that waits for a root.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Branch {
    /// The link.
    pub link: String,
    /// Links from it to the root: 1 into the root's switch.
    pub depth: u32,
    /// Share of the tree's time in which it waited.
    pub share: f64,
    /// The most that one virtual channel's buffer behind it held meanwhile.
    pub most_held_bytes: u64,
    /// Time meanwhile in which a packet stood ready for it and found no room, or its sender was paused.
    pub stall_us: f64,
}

/// A flow of a tree.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TreeFlow {
    /// The endpoint that sends.
    pub from: u32,
    /// The endpoint that receives.
    pub to: u32,
    /// The payload that came of it while the tree stood, over that time; `None`: rates of flows were not
    /// written.
    pub rate_gbps: Option<f64>,
}

/// A tree over the intervals of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct History {
    /// Edges of the intervals in µs.
    pub edges: Vec<f64>,
    /// 1 in intervals in which it stood.
    pub stood: Vec<f64>,
    /// Of each branch, in the order of branches: how much of an interval it waited, or how full the buffer
    /// behind it was, whichever is more.
    pub branches: Vec<Vec<f64>>,
}

/// A tree while intervals go by.
#[derive(Default)]
struct Growing {
    /// The intervals in which it stood.
    intervals: Vec<(u64, u64)>,
    branches: BTreeMap<usize, GrowingBranch>,
}

#[derive(Default)]
struct GrowingBranch {
    depth: u32,
    time_ps: u64,
    most_held: u64,
    stall_ps: u64,
    /// Interval, by its beginning, and how much it waited.
    waited: Vec<(u64, f64)>,
}

/// The fill of the queues at a port in an interval.
#[derive(Clone, Copy, Default)]
struct Held {
    mean: u64,
    most: u64,
}

/// A queue in an interval: run, end of the interval, switch, port, whether it is at the output.
type QueueAt = (u32, u64, u32, u32, bool);

/// The most that a queue of each run has held, at inputs and at outputs.
type Fullest = BTreeMap<u32, [u64; 2]>;

/// A flow, by its ends.
type Pair = (u32, u32);

/// The trees of the runs of a result, those of a run together, the largest first. `ways` knows the ways of
/// flows where there is one alone; where it does not, a flow may take any of the shortest.
///
/// # Errors
/// A result without telemetry or without the table of links, and tables that cannot be read.
pub fn congestion_trees(result: &StoredResult, ways: Ways<'_>) -> Result<Vec<CongestionTree>, ResultsError> {
    // Telemetry first: who lacks it is told how to get it.
    let (level, interval) = level(result)?;
    let mut network = Network::of(result)?;
    let (queues, fullest) = queues(result, level)?;
    let mut trees: BTreeMap<u32, BTreeMap<usize, Growing>> = BTreeMap::new();
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    let mut rows: Vec<RateRow> = Vec::new();
    let mut grow = |rows: &mut Vec<RateRow>| {
        if let Some(first) = rows.first() {
            let full = fullest.get(&first.run).copied().unwrap_or_default();
            let seen = Interval::of(rows, &network, &queues, full);
            ends.insert(first.run, seen.end);
            seen.grow(&network, trees.entry(first.run).or_default());
        }
        rows.clear();
    };
    result.visit(|row: RateRow| {
        if row.level != level {
            return;
        }
        if rows.first().is_some_and(|first| (first.run, first.end_ps) != (row.run, row.end_ps)) {
            grow(&mut rows);
        }
        rows.push(row);
    })?;
    grow(&mut rows);
    let mut told = Vec::new();
    for (run, trees) in trees {
        let mut largest: Vec<(usize, Growing)> = trees.into_iter().collect();
        let size = |tree: &Growing| {
            let time: u64 = tree.intervals.iter().map(|(begin, end)| end - begin).sum();
            time + tree.branches.values().map(|branch| branch.time_ps).sum::<u64>()
        };
        largest.sort_by_key(|(root, tree)| (Reverse(size(tree)), *root));
        largest.truncate(MAX_TREES);
        let end = ends.get(&run).copied().unwrap_or_default();
        let flows = Flows::of(result, run, level, &largest)?;
        network.learn(flows.pairs.as_deref().unwrap_or_default(), ways);
        for (number, (root, tree)) in largest.into_iter().enumerate() {
            told.push(ReportedTree { run, root, end, interval }.tree(tree, &network, &flows, number));
        }
    }
    Ok(told)
}

/// The finest level with few enough intervals, and the length of these.
fn level(result: &StoredResult) -> Result<(u32, u64), ResultsError> {
    let coarsest = TELEMETRY_LEVELS - 1;
    let mut end = 0;
    result.visit(|row: RateRow| {
        if row.level == coarsest {
            end = end.max(row.end_ps.as_ps());
        }
    })?;
    let asked = result.manifest.request["telemetry_ps"].as_u64().filter(|ps| *ps > 0);
    let finest = asked.unwrap_or(end.max(1));
    let length = |level: u32| finest.saturating_mul(u64::from(INTERVALS_PER_COARSER).pow(level));
    let level = (0..coarsest).find(|level| end.div_ceil(length(*level)) <= MAX_INTERVALS);
    let level = level.unwrap_or(coarsest);
    Ok((level, length(level)))
}

/// The fill of queues at a level, virtual channels of a port together, and the most that one of a run held at
/// the inputs and at the outputs.
fn queues(result: &StoredResult, level: u32) -> Result<(BTreeMap<QueueAt, Held>, Fullest), ResultsError> {
    let mut queues: BTreeMap<QueueAt, Held> = BTreeMap::new();
    let mut fullest = Fullest::new();
    result.visit(|row: QueueRow| {
        if row.level == level {
            let is_output = row.side == "output";
            let key = (row.run, row.end_ps.as_ps(), row.switch.0, row.port.0, is_output);
            let held = queues.entry(key).or_default();
            // A tree may stand in one virtual channel alone.
            held.mean = held.mean.max(row.mean_held_bytes.get());
            held.most = held.most.max(row.most_held_bytes.get());
            let full = &mut fullest.entry(row.run).or_default()[usize::from(is_output)];
            *full = (*full).max(held.most);
        }
    })?;
    Ok((queues, fullest))
}

/// The links in an interval.
struct Interval {
    begin: u64,
    end: u64,
    /// By number of the link.
    links: Vec<LinkNow>,
}

/// A link in an interval.
#[derive(Clone, Copy, Default)]
struct LinkNow {
    /// Share of the interval in which it was sending.
    busy: f64,
    /// The extent of its waiting: a share of the interval, or of a full buffer.
    waiting: f64,
    waits: bool,
    /// Whether its own queue, before it, is long.
    queues: bool,
    held: u64,
    stall_ps: u64,
}

impl Interval {
    fn of(
        rows: &[RateRow],
        network: &Network,
        queues: &BTreeMap<QueueAt, Held>,
        [full_input, full_output]: [u64; 2],
    ) -> Interval {
        let times = rows.first().map(|row| (row.run, row.begin_ps.as_ps(), row.end_ps.as_ps()));
        let (run, begin, end) = times.unwrap_or_default();
        let time = end.saturating_sub(begin).max(1) as f64;
        let mut links = vec![LinkNow::default(); network.links.len()];
        for row in rows {
            if let Some(link) = network.number(row.from_endpoint, row.from_switch, row.from_port) {
                let stall_ps = row.stall_ps.as_ps() + row.paused_ps.as_ps();
                let (busy, waiting) = (row.busy_ps.as_ps() as f64 / time, stall_ps as f64 / time);
                links[link] = LinkNow { busy, waiting, waits: waiting >= WAITS, stall_ps, ..links[link] };
            }
        }
        let share = |held: u64, full: u64| held as f64 / full.max(1) as f64;
        for (now, link) in links.iter_mut().zip(&network.links) {
            if let End::Port(switch, port) = link.to
                && let Some(held) = queues.get(&(run, end, switch, port, false))
            {
                let filled = share(held.mean, full_input);
                now.waits |= filled >= FULL;
                now.waiting = now.waiting.max(filled).min(1.0);
                now.held = held.most;
            }
            if let End::Port(switch, port) = link.from
                && let Some(held) = queues.get(&(run, end, switch, port, true))
            {
                now.queues = share(held.mean, full_output) >= FULL;
            }
        }
        Interval { begin, end, links }
    }

    /// Adds the trees of this interval to those that were seen before.
    fn grow(&self, network: &Network, trees: &mut BTreeMap<usize, Growing>) {
        for (root, now) in self.links.iter().enumerate() {
            let End::Port(switch, _) = network.links[root].from else { continue };
            if now.busy < ROOT_BUSY || now.waits {
                continue;
            }
            let branches = self.branches(root, switch, network);
            if branches.is_empty() && !now.queues {
                continue;
            }
            let tree = trees.entry(root).or_default();
            tree.intervals.push((self.begin, self.end));
            for (link, depth) in branches {
                let now = self.links[link];
                let branch =
                    tree.branches.entry(link).or_insert(GrowingBranch { depth, ..Default::default() });
                branch.depth = branch.depth.min(depth);
                branch.time_ps += self.end - self.begin;
                branch.most_held = branch.most_held.max(now.held);
                branch.stall_ps += now.stall_ps;
                branch.waited.push((self.begin, now.waiting));
            }
        }
    }

    /// The links that wait for a link of a switch, each with how many links it is away.
    fn branches(&self, root: usize, switch: u32, network: &Network) -> BTreeMap<usize, u32> {
        let mut found = BTreeMap::new();
        let mut next = vec![(switch, root)];
        let mut depth = 0;
        while !next.is_empty() {
            depth += 1;
            let mut further = Vec::new();
            for (switch, onward) in next {
                // Packets do not turn back.
                let comes = |link: &&usize| network.links[**link].from != network.links[onward].to;
                let waits = |link: &&usize| self.links[**link].waits;
                for link in network.into(switch).iter().filter(comes).filter(waits) {
                    if *link == root || found.contains_key(link) {
                        continue;
                    }
                    found.insert(*link, depth);
                    if let End::Port(before, _) = network.links[*link].from {
                        further.push((before, *link));
                    }
                }
            }
            next = further;
        }
        found
    }
}

/// The flows of a run, the largest first, with what came of each while each tree stood.
struct Flows {
    /// `None`: the result does not know them.
    pairs: Option<Vec<Pair>>,
    /// By tree and flow: bytes; `None`: rates of flows were not written.
    came: Option<Vec<BTreeMap<Pair, u64>>>,
}

impl Flows {
    fn of(
        result: &StoredResult,
        run: u32,
        level: u32,
        trees: &[(usize, Growing)],
    ) -> Result<Flows, ResultsError> {
        let mut bytes: BTreeMap<Pair, u64> = BTreeMap::new();
        let mut came = None;
        if result.has(Table::FlowRates) {
            let stood: Vec<BTreeSet<u64>> =
                trees.iter().map(|(_, tree)| tree.intervals.iter().map(|(_, end)| *end).collect()).collect();
            let mut by_tree = vec![BTreeMap::new(); trees.len()];
            result.visit(|row: FlowRateRow| {
                if row.run == run && row.level == level {
                    let pair = (row.source_endpoint.0, row.destination_endpoint.0);
                    let payload = row.payload_bytes.get();
                    *bytes.entry(pair).or_default() += payload;
                    let stands = stood.iter().zip(&mut by_tree);
                    let stands = stands.filter(|(stood, _)| stood.contains(&row.end_ps.as_ps()));
                    stands.for_each(|(_, came)| *came.entry(pair).or_insert(0) += payload);
                }
            })?;
            came = Some(by_tree);
        } else if result.has(Table::Flows) {
            result.visit(|row: FlowRow| {
                if let (true, Some(to)) = (row.run == run, row.destination_endpoint) {
                    *bytes.entry((row.source_endpoint.0, to.0)).or_default() += row.payload_bytes.get();
                }
            })?;
        }
        let mut largest: Vec<(Pair, u64)> = bytes.into_iter().collect();
        largest.sort_by_key(|(pair, bytes)| (Reverse(*bytes), *pair));
        largest.truncate(MAX_FLOWS);
        let pairs: Vec<Pair> = largest.into_iter().map(|(pair, _)| pair).collect();
        Ok(Flows { pairs: (!pairs.is_empty()).then_some(pairs), came })
    }
}

/// A tree that is put into words.
struct ReportedTree {
    run: u32,
    root: usize,
    /// The end of the run's telemetry.
    end: u64,
    /// The length of an interval.
    interval: u64,
}

impl ReportedTree {
    /// The tree, number `number` among those of its run.
    fn tree(&self, tree: Growing, network: &Network, flows: &Flows, number: usize) -> CongestionTree {
        let Growing { intervals, mut branches } = tree;
        let stood: u64 = intervals.iter().map(|(begin, end)| end - begin).sum();
        let pairs = flows.pairs.as_deref().unwrap_or_default();
        let (through, others): (Vec<Pair>, Vec<Pair>) =
            pairs.iter().partition(|pair| network.crosses(**pair, self.root));
        if !through.is_empty() {
            // What no flow through the root crosses waits for something else.
            branches.retain(|link, _| through.iter().any(|pair| network.crosses(*pair, *link)));
        }
        let suffers = |pair: &Pair| branches.keys().any(|link| network.crosses(*pair, *link));
        let victims: Vec<Pair> = others.into_iter().filter(suffers).collect();
        let came = flows.came.as_ref().and_then(|came| came.get(number));
        let told = |pairs: Vec<Pair>| {
            let rate = |pair: &Pair| {
                let bytes = came.map(|came| came.get(pair).copied().unwrap_or(0))?;
                Some(bytes as f64 * 8.0 * 1e3 / stood.max(1) as f64)
            };
            let flow = |pair: Pair| TreeFlow { from: pair.0, to: pair.1, rate_gbps: rate(&pair) };
            flows.pairs.is_some().then(|| pairs.into_iter().map(flow).collect())
        };
        let count = self.end.div_ceil(self.interval.max(1)) as usize;
        let place = |begin: u64| ((begin / self.interval.max(1)) as usize).min(count.saturating_sub(1));
        let mut history = History {
            edges: (0..=count).map(|edge| (edge as u64 * self.interval) as f64 / PS_PER_US).collect(),
            stood: vec![0.0; count],
            branches: Vec::new(),
        };
        intervals.iter().for_each(|(begin, _)| history.stood[place(*begin)] = 1.0);
        let mut branches: Vec<(usize, GrowingBranch)> = branches.into_iter().collect();
        branches.sort_by_key(|(link, branch)| (branch.depth, Reverse(branch.time_ps), *link));
        for (_, branch) in &branches {
            let mut waited = vec![0.0; count];
            branch.waited.iter().for_each(|(begin, value)| waited[place(*begin)] = *value);
            history.branches.push(waited);
        }
        let share = |time: u64, of: u64| time as f64 / of.max(1) as f64;
        let branch = |(link, branch): (usize, GrowingBranch)| Branch {
            link: network.links[link].to_string(),
            depth: branch.depth,
            share: share(branch.time_ps, stood),
            most_held_bytes: branch.most_held,
            stall_us: branch.stall_ps as f64 / PS_PER_US,
        };
        let us = |time: Option<u64>| time.unwrap_or_default() as f64 / PS_PER_US;
        CongestionTree {
            run: self.run,
            root: network.links[self.root].to_string(),
            from_us: us(intervals.first().map(|(begin, _)| *begin)),
            to_us: us(intervals.last().map(|(_, end)| *end)),
            share: share(stood, self.end),
            branches: branches.into_iter().map(branch).collect(),
            contributors: told(through),
            victims: told(victims),
            history,
        }
    }
}

impl CongestionTree {
    /// The tree in a sentence.
    pub fn sentence(&self) -> String {
        let CongestionTree { root, from_us, to_us, branches, .. } = self;
        // One way of a link each: its name has an arrow.
        let links =
            if branches.len() == 1 { "direction of a link waits" } else { "directions of links wait" };
        let mut text = format!(
            "{root} is the root of a congestion tree, {from_us:.0} to {to_us:.0} µs: {} {links} for it",
            branches.len()
        );
        if let Some(victims) = self.victims.as_deref().filter(|victims| !victims.is_empty()) {
            const NAMED: usize = 5;
            let names = victims.iter().take(NAMED).map(|flow| format!("{} to {}", flow.from, flow.to));
            let more = victims.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text += &format!("; victims: {}{more}", names.collect::<Vec<_>>().join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests;
