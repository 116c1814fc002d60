//! The paths of fluids: lines from the engine of the sender to the port of the receiver.
//!
//! ```text
//!   engine of the sender ─ injection ─ port ─ port ─ … ─ port of the receiver's switch
//! ```
//! A routing that keeps the packets of a pair on one path keeps the fluid on it. One that spreads them gets
//! several fluids for a message, each on the path that a packet would take: random numbers are drawn from a
//! hash of the run's seed, the sender, the message and the fluid, and a queue is as long as there are fluids
//! on its line, a packet for each, and longer where they are held back further on: in packets a crowded link
//! fills the buffers before it. So what an adaptive routing would see building up sends it elsewhere.
//! Several fluids of a message that are given the same path are one, of their weight.

use crate::shares::{LineId, Shares};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ops::Range;
use weft_engine::Stream;
use weft_fabric::LinkEnd;
use weft_topo::{Address, AtSwitch, Attachment, LinkClass, LocalView, RouteState, Routing, Topology};
use weft_units::{Bytes, EndpointId, PortId, SwitchId, VcId};

/// The purpose of the random numbers of paths, among those of a run.
const PURPOSE_PATH: u32 = 0x666c_6f77;
/// Fluids of a message whose packets would spread over several paths.
pub(crate) const SPREAD: u64 = 8;

/// A message whose paths are asked for.
#[derive(Clone, Copy)]
pub(crate) struct MessageEnds {
    pub from: EndpointId,
    pub to: EndpointId,
    /// The message, counted by its sender.
    pub number: u32,
}

/// The numbers of lines: engines of endpoints, injection links, then the ports of switches.
pub(crate) struct LineNumbers {
    endpoints: u32,
    /// By switch: its first line; and the end of all.
    first: Vec<u32>,
}

/// The lines of the paths of a message, one path after the other. Parts of it that go the same way share one.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct FluidPaths {
    lines: Vec<LineId>,
    /// By path: where it ends among them, and how many parts of the message take it.
    ends: Vec<u32>,
    parts: Vec<u32>,
}

impl FluidPaths {
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// There are none, and room for as many as there have been.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.ends.clear();
        self.parts.clear();
    }

    /// The paths: the parts of the message that take each, and its lines.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[LineId])> {
        (0..).zip(&self.parts).map(|(path, parts)| (*parts, self.of(path)))
    }

    /// The lines of one.
    fn of(&self, path: usize) -> &[LineId] {
        let from = path.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.lines[from as usize..self.ends[path] as usize]
    }

    /// The lines from the last end on are the path of another part.
    fn close(&mut self) {
        let from = self.ends.last().map_or(0, |end| *end as usize);
        match (0..self.count()).find(|path| self.of(*path) == &self.lines[from..]) {
            Some(same) => {
                self.parts[same] += 1;
                self.lines.truncate(from);
            }
            None => {
                self.ends.push(self.lines.len() as u32);
                self.parts.push(1);
            }
        }
    }
}

/// The paths that a message was given. It is used again for the next.
#[derive(Default)]
pub(crate) struct FoundPaths {
    pub paths: FluidPaths,
    /// The kinds of the links of the longest, and of the shortest.
    pub longest: Vec<LinkClass>,
    pub shortest: Vec<LinkClass>,
    /// Room for those of another.
    classes: Vec<LinkClass>,
    /// Whether the routing looked at queues.
    pub looked: bool,
}

/// The network in which paths are looked for.
pub(crate) struct PathFinder<'a, L> {
    pub layout: &'a L,
    pub numbers: &'a LineNumbers,
    pub shares: &'a Shares,
    /// By line: fluids that will cross it and have not begun, those of paths that are found included.
    pub planned: &'a [Cell<u32>],
    /// Payload of a packet: what a fluid counts for in a queue.
    pub packet: Bytes,
    pub seed: u64,
}

impl LineNumbers {
    pub fn new(layout: &impl Topology) -> LineNumbers {
        let endpoints = layout.endpoints();
        let mut next = 2 * endpoints;
        let mut first = Vec::with_capacity(layout.switches() as usize + 1);
        first.push(next);
        first.extend((0..layout.switches()).map(|switch| {
            next += layout.ports(SwitchId(switch));
            next
        }));
        LineNumbers { endpoints, first }
    }

    /// The engine of an endpoint.
    pub fn engine(&self, endpoint: EndpointId) -> LineId {
        LineId(endpoint.0)
    }

    /// The link from an endpoint to its switch.
    pub fn injection(&self, endpoint: EndpointId) -> LineId {
        LineId(self.endpoints + endpoint.0)
    }

    /// The link at a port of a switch.
    pub fn port(&self, switch: SwitchId, port: PortId) -> LineId {
        LineId(self.first[switch.index()] + port.0)
    }

    /// The links at all ports of a switch, as indices.
    fn ports(&self, switch: SwitchId) -> Range<usize> {
        self.first[switch.index()] as usize..self.first[switch.index() + 1] as usize
    }

    /// The beginning of a line; of an engine that of its injection link.
    pub fn beginning(&self, line: LineId) -> LinkEnd {
        match line.0 < 2 * self.endpoints {
            true => LinkEnd::Endpoint(EndpointId(line.0 % self.endpoints)),
            false => {
                let switch = self.first.partition_point(|first| *first <= line.0) - 1;
                LinkEnd::Port(SwitchId(switch as u32), PortId(line.0 - self.first[switch]))
            }
        }
    }
}

/// The fluids on the lines of a switch, by port: those that wait there, and those that have not begun.
#[derive(Clone, Copy)]
struct PortFluids<'a> {
    waiting: &'a [u64],
    planned: &'a [Cell<u32>],
}

impl PortFluids<'_> {
    /// Bytes that wait for a port, if each fluid on its line has a packet there.
    #[inline]
    fn queued(&self, port: PortId, packet: Bytes) -> u64 {
        let port = port.0 as usize;
        (self.waiting[port] + u64::from(self.planned[port].get())) * packet.get()
    }
}

/// The view of a routing: the fluids at a switch.
struct FluidView<'a, L> {
    paths: &'a PathFinder<'a, L>,
    fluids: PortFluids<'a>,
    random: Stream,
    looked: Cell<bool>,
}

impl<L> LocalView for FluidView<'_, L> {
    #[inline]
    fn queued(&self, port: PortId) -> u64 {
        self.looked.set(true);
        self.fluids.queued(port, self.paths.packet)
    }

    fn published(&self, switch: SwitchId, port: PortId) -> u64 {
        self.looked.set(true);
        self.paths.fluids_at(switch).queued(port, self.paths.packet)
    }

    fn turn(&mut self) -> u32 {
        self.random.next_u64() as u32
    }

    fn random(&mut self) -> u64 {
        self.random.next_u64()
    }
}

/// The first hop of all paths of a message.
#[derive(Clone, Copy)]
struct FirstHop {
    switch: SwitchId,
    port: PortId,
    class: LinkClass,
    /// The address of the receiver.
    target: Address,
}

impl<L> PathFinder<'_, L> {
    fn fluids_at(&self, switch: SwitchId) -> PortFluids<'_> {
        let lines = self.numbers.ports(switch);
        PortFluids { waiting: self.shares.waiting_on(lines.clone()), planned: &self.planned[lines] }
    }
}

impl<L: Topology + Routing> PathFinder<'_, L> {
    /// Finds the paths of a message of so many packets: one, or several where the routing spreads packets.
    /// From now on their fluids are planned.
    pub fn find(&self, pair: MessageEnds, packets: u64, found: &mut FoundPaths) {
        let count = if self.layout.is_deterministic() { 1 } else { SPREAD.min(packets).max(1) };
        let (switch, port) = self.layout.attachment(pair.from);
        let class = self.layout.link_class(switch, port);
        let first = FirstHop { switch, port, class, target: self.layout.endpoint_address(pair.to) };
        let FoundPaths { paths, longest, shortest, classes, looked } = found;
        paths.clear();
        longest.clear();
        *looked = false;
        for part in 0..count {
            classes.clear();
            let from = paths.lines.len();
            paths.lines.extend([self.numbers.engine(pair.from), self.numbers.injection(pair.from)]);
            let entity = u64::from(pair.from.0) << 32 | u64::from(pair.number);
            let random = Stream::new(self.seed ^ part, entity, PURPOSE_PATH);
            *looked |= self.follow(first, random, (&mut paths.lines, classes));
            paths.lines[from..].iter().for_each(|line| {
                let planned = &self.planned[line.index()];
                planned.set(planned.get() + 1);
            });
            if part == 0 || classes.len() < shortest.len() {
                shortest.clone_from(classes);
            }
            // Of several that are longest the last one.
            if classes.len() >= longest.len() {
                std::mem::swap(longest, classes);
            }
            paths.close();
            if part == 0 {
                let lines = &mut paths.lines;
                lines.reserve_exact(lines.len() * (count as usize - 1));
            }
        }
    }

    /// Adds the path of a part of a message from its first switch on: its lines, and the kinds of its links.
    /// Returns whether the routing looked at queues.
    fn follow(
        &self,
        first: FirstHop,
        random: Stream,
        (lines, classes): (&mut Vec<LineId>, &mut Vec<LinkClass>),
    ) -> bool {
        let FirstHop { mut switch, mut port, class, target } = first;
        classes.push(class);
        let fluids = self.fluids_at(switch);
        let mut view = FluidView { paths: self, fluids, random, looked: Cell::new(false) };
        let block = if self.layout.spreads_blocks() { view.random() as u32 } else { 0 };
        let (mut state, mut vc) = (RouteState(block), VcId(0));
        loop {
            let at = AtSwitch { switch, address: self.layout.switch_address(switch), port, vc };
            let next = self.layout.route(at, target, &mut state, &mut view);
            lines.push(self.numbers.port(switch, next.port));
            classes.push(self.layout.link_class(switch, next.port));
            match self.layout.peer(switch, next.port) {
                Attachment::Switch(peer, came_by) => (switch, port, vc) = (peer, came_by, next.vc),
                Attachment::Endpoint(_) | Attachment::Nothing => return view.looked.get(),
            }
            view.fluids = self.fluids_at(switch);
        }
    }
}
