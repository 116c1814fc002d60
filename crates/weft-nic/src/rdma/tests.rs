//! Engines of several nodes, joined by a network that loses, doubles, delays and reorders, with real memory.

use super::*;
use crate::gvas::Pdid;
use crate::host_port::{HostPort, HostPortParameters};
use crate::iommu::{FaultModel, Iommu, IommuParameters};
use crate::memory::{MemoryChannel, MemoryParameters};
use crate::segmentation::Cut;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weft_units::{BitRate, Bytes, Clock, Span};

fn parameters() -> RdmaParameters {
    let clock = Clock::from_hertz(150_000_000).unwrap();
    RdmaParameters {
        send: SendParameters {
            pages: 16,
            write_channels: 32,
            read_channels: 32,
            descriptor: Bytes::new(64),
            cut: Cut::new(Bytes::new(16384), Bytes::new(256)).unwrap(),
            outstanding_blocks: 2,
            cell_buffers: 8,
            clock,
            word: Bytes::new(16),
            control_words: 2,
            cell_overhead_cycles: 5,
        },
        receive: ReceiveParameters {
            contexts: 64,
            context_timeout: Span::from_us(200),
            cycles: 2,
            notification: Bytes::new(16),
        },
        segmentation: SegmentationParameters::Firmware { invocation: Span::from_us(2) },
        reliability: ReliabilityParameters {
            timeout: Span::from_us(50),
            backoff: 2,
            longest: Span::from_us(400),
            repetitions: 60,
        },
    }
}

fn port() -> HostPortParameters {
    HostPortParameters {
        clock: Clock::from_hertz(150_000_000).unwrap(),
        word: Bytes::new(16),
        round_trip: Span::from_ns(125),
        burst_words: 16,
        outstanding: 8,
    }
}

fn iommu(faults: FaultModel) -> IommuParameters {
    let (walk, fault) = (Span::from_ns(200), Span::from_us(7));
    IommuParameters { page: Bytes::new(4096), entries: 16, ways: 4, walk, faults, fault }
}

const LATENCY: Span = Span::from_ns(300);
const MEMORY: usize = 1 << 18;
const DOMAIN: Pdid = Pdid(7);

/// How bad the network is: parts in 256.
#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    lost: u8,
    doubled: u8,
    jitter_ns: u64,
    /// Nobody hears this node.
    dead: Option<u32>,
}

#[derive(Clone, Debug)]
enum Happening {
    Wake(Task),
    Post(u32, ChannelKind, Descriptor),
    Link,
    Cell(EndpointId, Cell, Vec<u8>),
    Reply(Reply),
}

#[derive(Default)]
struct Node {
    rdma: Rdma,
    port: HostPort,
    memory: MemoryChannel,
    iommu: Iommu,
    bytes: Vec<u8>,
    line_free: Time,
    headers: BTreeMap<(EndpointId, u32), TransferHeader>,
}

/// What the engine asked for during a call.
#[derive(Default)]
struct Asked {
    wakes: Vec<(Time, Task)>,
    headers: Vec<(EndpointId, TransferHeader)>,
    ended: Vec<(u32, Result<(), TransferError>)>,
    stages: Vec<TransferStage>,
}

impl Surface for Asked {
    fn wake(&mut self, at: Time, task: Task) {
        self.wakes.push((at, task));
    }
    fn announce(&mut self, to: EndpointId, header: TransferHeader) {
        self.headers.push((to, header));
    }
    fn ended(&mut self, descriptor: &Descriptor, outcome: Result<(), TransferError>) {
        self.ended.push((descriptor.message, outcome));
    }
    fn stage(&mut self, stage: TransferStage) {
        self.stages.push(stage);
    }
}

/// When a transfer ended, and how.
type Ended = (Time, Result<(), TransferError>);

struct World {
    parameters: RdmaParameters,
    faults: IommuParameters,
    trouble: Trouble,
    nodes: Vec<Node>,
    agenda: BTreeMap<(Time, u64), (u32, Happening)>,
    sequence: u64,
    dice: u64,
    now: Time,
    /// (source, message): when the notification was written, how its sender was told.
    notified: BTreeMap<(u32, u32), Vec<Time>>,
    ended: BTreeMap<(u32, u32), Vec<Ended>>,
    stages: Vec<TransferStage>,
    cells: u64,
    posted: BTreeMap<(u32, u32), Descriptor>,
}

impl World {
    fn new(nodes: u32, parameters: RdmaParameters, faults: FaultModel, trouble: Trouble, seed: u64) -> World {
        let mut dice = seed;
        let nodes = (0..nodes).map(|_| {
            let bytes = (0..MEMORY).map(|_| roll(&mut dice) as u8).collect();
            Node { bytes, ..Node::default() }
        });
        World {
            nodes: nodes.collect(),
            parameters,
            faults: iommu(faults),
            trouble,
            agenda: BTreeMap::new(),
            sequence: 0,
            dice,
            now: Time::ZERO,
            notified: BTreeMap::new(),
            ended: BTreeMap::new(),
            stages: Vec::new(),
            cells: 0,
            posted: BTreeMap::new(),
        }
    }

    fn plan(&mut self, at: Time, node: u32, what: Happening) {
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), (node, what));
    }

    /// Posts a transfer; its data lies at `from` in the source's memory and goes to `to`.
    fn post(&mut self, at: Time, page: u32, from: u32, to: u32, bytes: u64, place: (u64, u64)) -> u32 {
        let message = self.posted.len() as u32;
        let descriptor = Descriptor {
            source: Location { space: page, address: place.0 },
            to: EndpointId(to),
            destination: Location { space: 0, address: place.1 },
            bytes: Bytes::new(bytes),
            domain: DOMAIN,
            message,
            posted: at,
            token: None,
            watch: true,
        };
        self.posted.insert((from, message), descriptor);
        self.plan(at, from, Happening::Post(page, ChannelKind::Write, descriptor));
        message
    }

    fn call<R>(
        &mut self,
        node: u32,
        call: impl FnOnce(&mut Rdma, Time, &RdmaParameters, &mut MemoryPath<'_>, &mut Asked) -> R,
    ) -> R {
        let (mut asked, port, now) = (Asked::default(), port(), self.now);
        let memory_parameters = MemoryParameters::new(BitRate::from_gigabits(130)).unwrap();
        let Node { rdma, port: host_port, memory, iommu, .. } = &mut self.nodes[node as usize];
        let mut around = MemoryPath {
            port: host_port,
            port_parameters: &port,
            memory,
            memory_parameters: &memory_parameters,
            iommu,
            iommu_parameters: &self.faults,
        };
        let result = call(rdma, now, &self.parameters, &mut around, &mut asked);
        for (at, task) in asked.wakes {
            assert!(at >= now);
            self.plan(at, node, Happening::Wake(task));
        }
        for (to, header) in asked.headers {
            self.nodes[to.index()].headers.insert((EndpointId(node), header.message), header);
        }
        for (message, outcome) in asked.ended {
            self.ended.entry((node, message)).or_default().push((now, outcome));
        }
        self.stages.extend(asked.stages);
        result
    }

    /// Puts on the link what the node has.
    fn pump(&mut self, node: u32) {
        let free = self.nodes[node as usize].line_free;
        if free > self.now {
            return;
        }
        let out = self.call(node, |rdma, now, parameters, around, asked| {
            rdma.take_outgoing(now, parameters, around, asked)
        });
        let (to, bytes) = match &out {
            None => {
                let next = self.nodes[node as usize].rdma.next_outgoing();
                if next < Time::MAX {
                    self.plan(next.max(self.now), node, Happening::Link);
                }
                return;
            }
            Some(Outgoing::Cell(cell)) => (cell.to, cell.bytes),
            Some(Outgoing::Reply(reply)) => (reply.to, Bytes::ZERO),
        };
        let wire = BitRate::from_bits_per_second(19_200_000_000).span(bytes + Bytes::new(32));
        self.nodes[node as usize].line_free = self.now + wire;
        let next = self.nodes[node as usize].rdma.next_outgoing();
        self.plan(next.max(self.now + wire).min(Time::from_ps(u64::MAX / 2)), node, Happening::Link);
        let what = match out {
            Some(Outgoing::Cell(cell)) => {
                self.cells += 1;
                let data = self.data(node, &cell);
                Happening::Cell(EndpointId(node), cell, data)
            }
            Some(Outgoing::Reply(reply)) => Happening::Reply(reply),
            None => return,
        };
        let deaf = [Some(node), Some(to.0)].contains(&self.trouble.dead);
        let copies = 1 + u32::from((roll(&mut self.dice) as u8) < self.trouble.doubled);
        for _ in 0..copies {
            let lost = (roll(&mut self.dice) as u8) < self.trouble.lost;
            let jitter = roll(&mut self.dice) % (self.trouble.jitter_ns + 1);
            if !lost && !deaf {
                self.plan(self.now + wire + LATENCY + Span::from_ns(jitter), to.0, what.clone());
            }
        }
    }

    /// The data of a cell, from the source's memory.
    fn data(&self, node: u32, cell: &Cell) -> Vec<u8> {
        let descriptor = self.posted[&(node, cell.message)];
        let header = self.nodes[cell.to.index()].headers[&(EndpointId(node), cell.message)];
        let block = cell.id.transaction.wrapping_sub(header.first);
        let offset = self.parameters.send.cut.offset(block, cell.id.index).get();
        let begin = (descriptor.source.address + offset) as usize;
        self.nodes[node as usize].bytes[begin..begin + cell.bytes.get() as usize].to_vec()
    }

    fn run(&mut self) {
        let mut happenings = 0u64;
        while let Some(((at, _), (node, what))) = self.agenda.pop_first() {
            if at >= Time::from_ps(u64::MAX / 2) {
                continue;
            }
            happenings += 1;
            assert!(happenings < 5_000_000, "no end");
            self.now = at;
            match what {
                Happening::Wake(task) => self.call(node, |rdma, now, parameters, around, asked| {
                    rdma.wake(task, now, parameters, around, asked)
                }),
                Happening::Post(page, kind, descriptor) => {
                    self.call(node, |rdma, now, parameters, _, asked| {
                        rdma.post(page, kind, descriptor, now, parameters, asked)
                    })
                }
                Happening::Link => {}
                Happening::Reply(reply) => self.call(node, |rdma, now, parameters, _, asked| {
                    rdma.answer(reply.id, reply.answer, now, parameters, asked)
                }),
                Happening::Cell(source, cell, data) => self.receive(node, source, &cell, &data),
            }
            self.pump(node);
        }
    }

    fn receive(&mut self, node: u32, source: EndpointId, cell: &Cell, data: &[u8]) {
        let transfer = self.nodes[node as usize].headers[&(source, cell.message)];
        let (id, tail) = (cell.id, self.now);
        let arrival = Arrival { source, id, transfer: &transfer, owner: DOMAIN, tail };
        let landing = self
            .call(node, |rdma, _, parameters, around, asked| rdma.cell(&arrival, parameters, around, asked));
        if landing.stored {
            let block = id.transaction.wrapping_sub(transfer.first);
            let offset = self.parameters.send.cut.offset(block, id.index).get();
            let begin = (transfer.destination.address + offset) as usize;
            self.nodes[node as usize].bytes[begin..begin + data.len()].copy_from_slice(data);
        }
        if let Some(notified) = landing.notified {
            assert!(notified > tail, "a notification before its data");
            let descriptor = self.posted[&(source.0, cell.message)];
            assert_eq!(self.at_source(source.0, &descriptor), self.at_destination(&descriptor));
            self.notified.entry((source.0, cell.message)).or_default().push(notified);
        }
    }

    fn at_source(&self, node: u32, descriptor: &Descriptor) -> &[u8] {
        let begin = descriptor.source.address as usize;
        &self.nodes[node as usize].bytes[begin..begin + descriptor.bytes.get() as usize]
    }

    fn at_destination(&self, descriptor: &Descriptor) -> &[u8] {
        let begin = descriptor.destination.address as usize;
        &self.nodes[descriptor.to.index()].bytes[begin..begin + descriptor.bytes.get() as usize]
    }

    /// Every transfer arrived once, whole, and its sender knows.
    fn check_all_arrived(&self) {
        for key in self.posted.keys() {
            assert_eq!(self.notified.get(key).map(Vec::len), Some(1), "{key:?} is notified once");
            let ended = &self.ended[key];
            assert_eq!(ended.len(), 1, "{key:?} ends once");
            assert_eq!(ended[0].1, Ok(()), "{key:?}");
            assert!(ended[0].0 >= self.notified[key][0], "{key:?} ends when it is there");
        }
        for node in &self.nodes {
            assert_eq!(node.rdma.under_way(), 0);
        }
    }
}

fn roll(dice: &mut u64) -> u64 {
    *dice = dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*dice ^ *dice >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The engine's cadence: 16 words, header, footer and 5 cycles for each 256 bytes, whatever the firmware
/// does meanwhile, with two blocks outstanding; with one the firmware is seen.
#[test]
fn a_long_transfer_runs_at_the_cells_cadence() {
    let gigabits = |outstanding_blocks| {
        let mut parameters = parameters();
        parameters.send.outstanding_blocks = outstanding_blocks;
        let mut world = World::new(2, parameters, FaultModel::Off, Trouble::default(), 1);
        let bytes = 200 << 10;
        world.post(Time::ZERO, 0, 0, 1, bytes, (0, 0));
        world.run();
        world.check_all_arrived();
        bytes as f64 * 8e3 / (world.notified[&(0, 0)][0].as_ps() - 2_000_000) as f64
    };
    let cadence = 2048.0 / (23.0 / 0.150);
    assert!((gigabits(2) / cadence - 1.0).abs() < 0.01, "{} Gb/s", gigabits(2));
    assert!(gigabits(1) < 11.0, "{} Gb/s", gigabits(1));
}

/// What a small write costs, stage by stage: they are a chain without gaps up to the link and from it on.
#[test]
fn the_stages_of_a_write_are_a_chain() {
    let mut world = World::new(2, parameters(), FaultModel::Off, Trouble::default(), 1);
    world.post(Time::ZERO + Span::from_ns(5), 0, 0, 1, 64, (0, 0));
    world.run();
    let sent = world.stages.iter().filter(|stage| stage.source.is_none());
    let mut at = Time::ZERO + Span::from_ns(5);
    for stage in sent {
        assert_eq!(stage.came, at, "{stage:?}");
        assert!(stage.began >= stage.came && stage.ended >= stage.began);
        at = stage.ended;
    }
    let wire = BitRate::from_bits_per_second(19_200_000_000).span(Bytes::new(96));
    let received = world.stages.iter().find(|stage| stage.source.is_some()).unwrap();
    assert_eq!(received.came, at + wire + LATENCY);
    assert_eq!(received.ended, world.notified[&(0, 0)][0]);
}

/// Catches a channel that starves: two transfers that share the engine end at about the same time.
#[test]
fn channels_take_turns_cell_by_cell() {
    let mut parameters = parameters();
    parameters.segmentation = SegmentationParameters::Hardware { clock: parameters.send.clock, cycles: 1 };
    let mut world = World::new(3, parameters, FaultModel::Off, Trouble::default(), 1);
    world.post(Time::ZERO, 0, 0, 1, 65536, (0, 0));
    world.post(Time::ZERO, 1, 0, 2, 65536, (0, 0));
    world.run();
    let ends = [0, 1].map(|message| world.notified[&(0, message)][0].as_ps());
    // The first has filled the cell buffers before the second comes.
    assert!(ends[0].abs_diff(ends[1]) < 2_000_000, "{ends:?}");
}

/// Catches transfers that are lost instead of waiting where all channels of a page are in use.
#[test]
fn posts_wait_for_a_channel_of_their_page() {
    let mut parameters = parameters();
    parameters.send.write_channels = 2;
    let mut world = World::new(2, parameters, FaultModel::Off, Trouble::default(), 1);
    for post in 0..7 {
        world.post(Time::ZERO, 3, 0, 1, 1000, (0, post * 1000));
    }
    world.run();
    world.check_all_arrived();
    let order: Vec<Time> = (0..7).map(|message| world.notified[&(0, message)][0]).collect();
    assert!(order.is_sorted(), "{order:?}");
}

/// Catches a sender that is never told, and one that goes on for ever.
#[test]
fn the_sender_is_told_of_a_dead_peer() {
    let mut parameters = parameters();
    parameters.reliability.repetitions = 3;
    let trouble = Trouble { dead: Some(1), ..Trouble::default() };
    let mut world = World::new(2, parameters, FaultModel::Off, trouble, 1);
    world.post(Time::ZERO, 0, 0, 1, 40_000, (0, 0));
    world.run();
    assert_eq!(world.ended[&(0, 0)].len(), 1);
    assert_eq!(world.ended[&(0, 0)][0].1, Err(TransferError::TimedOut));
    assert!(world.notified.is_empty());
    // Two blocks of 64 cells, four times each.
    assert_eq!(world.cells, 4 * 128);
    assert_eq!(world.nodes[0].rdma.under_way(), 0, "the channel is free again");
}

/// Catches memory that is changed for a foreign domain, and a sender that is not told so.
#[test]
fn a_foreign_domain_changes_nothing() {
    let mut world = World::new(2, parameters(), FaultModel::Off, Trouble::default(), 1);
    world.post(Time::ZERO, 0, 0, 1, 40_000, (0, 0));
    let Some((_, Happening::Post(_, _, descriptor))) = world.agenda.values_mut().next() else { panic!() };
    descriptor.domain = Pdid(8);
    let before = world.nodes[1].bytes.clone();
    world.run();
    assert_eq!(world.ended[&(0, 0)][0].1, Err(TransferError::Protection));
    assert!(world.notified.is_empty() && world.nodes[1].bytes == before);
}

/// Catches page faults that are not repaired by the replay of blocks, at either side.
#[test]
fn faulting_pages_are_replayed() {
    let mut world = World::new(2, parameters(), FaultModel::FirstTouch, Trouble::default(), 1);
    world.post(Time::ZERO, 0, 0, 1, 40_000, (100, 4000));
    world.run();
    world.check_all_arrived();
    let faults = world.nodes.iter().map(|node| node.iommu.misses_and_faults().1);
    assert_eq!(faults.collect::<Vec<_>>(), [10, 11], "each page once, on both sides");
    let first = world.now;
    world.post(first, 0, 0, 1, 40_000, (100, 4000));
    world.run();
    assert!(world.now - first < first - Time::ZERO, "what was touched does not fault again");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever is lost, doubled, reordered, faults, or finds no context or channel: every transfer
    /// arrives once and whole, its notification not before its data, and its sender is told.
    #[test]
    fn everything_arrives_once_and_whole(
        posts in prop::collection::vec((0u64..300, 0u32..2, 0u32..3, 0u32..3, 0u64..40_000), 1..12),
        (lost, doubled, jitter_ns) in (0u8..60, 0u8..60, 0u64..3_000),
        (contexts, channels, outstanding_blocks) in (1u32..5, 1u32..3, 1u32..4),
        (faulting, firmware, seed) in (any::<bool>(), any::<bool>(), any::<u64>()),
    ) {
        let mut parameters = parameters();
        parameters.receive.contexts = contexts;
        parameters.send.write_channels = channels;
        parameters.send.outstanding_blocks = outstanding_blocks;
        // Small blocks, so that they come through: of 64 cells nearly every one would lose some.
        parameters.send.cut = Cut::new(Bytes::new(2048), Bytes::new(256)).unwrap();
        if !firmware {
            parameters.segmentation =
                SegmentationParameters::Hardware { clock: parameters.send.clock, cycles: 1 };
        }
        let faults = if faulting { FaultModel::FirstTouch } else { FaultModel::Off };
        let trouble = Trouble { lost, doubled, jitter_ns, dead: None };
        let mut world = World::new(3, parameters, faults, trouble, seed);
        for (index, (us, page, from, to, bytes)) in posts.into_iter().enumerate() {
            // Sources in the lower half of memory, destinations apart from each other in the upper.
            let place = (page as u64 * 50_000, (MEMORY / 2) as u64 + index as u64 * 10_000);
            let bytes = bytes.min(10_000);
            world.post(Time::ZERO + Span::from_us(us), page, from, to, bytes, place);
        }
        world.run();
        world.check_all_arrived();
    }
}
