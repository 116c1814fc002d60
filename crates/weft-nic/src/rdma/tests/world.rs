//! Engines of several nodes, joined by a network that loses, doubles, delays and reorders, with real memory.

use crate::gvas::{Gvas, Pdid};
use crate::host_port::{HostPort, HostPortParameters};
use crate::iommu::{FaultModel, Iommu, IommuParameters};
use crate::memory::{MemoryChannel, MemoryParameters};
use crate::rdma::*;
use crate::segmentation::Cut;
use std::collections::BTreeMap;
use weft_units::{Address, BitRate, Bytes, Clock, Span};

pub(super) fn parameters() -> RdmaParameters {
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
            contexts: None,
        },
        receive: ReceiveParameters {
            contexts: 64,
            context_timeout: Span::from_us(200),
            cycles: 2,
            notification: Bytes::new(16),
            poll: Span::from_ns(20),
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

pub(super) fn port() -> HostPortParameters {
    HostPortParameters {
        clock: Clock::from_hertz(150_000_000).unwrap(),
        word: Bytes::new(16),
        round_trip: Span::from_ns(125),
        burst_words: 16,
        outstanding: 8,
        stores: None,
    }
}

pub(super) fn iommu(faults: FaultModel) -> IommuParameters {
    let (walk, fault) = (Span::from_ns(200), Span::from_us(7));
    IommuParameters { page: Bytes::new(4096), entries: 16, ways: 4, walk, faults, fault }
}

/// The descriptor of a write that is watched.
pub(super) fn descriptor(write: Write) -> Descriptor {
    let Write { at, page, to, bytes, place, .. } = write;
    Descriptor {
        source: Location { space: page, address: Address::new(place.0) },
        to: EndpointId(to),
        destination: Location { space: 0, address: Address::new(place.1) },
        bytes: Bytes::new(bytes),
        domain: DOMAIN,
        message: 0,
        posted: at,
        token: None,
        watch: true,
        class: weft_fabric::ClassTag::default(),
    }
}

pub(super) const LATENCY: Span = Span::from_ns(300);
pub(super) const MEMORY: usize = 1 << 18;
pub(super) const DOMAIN: Pdid = Pdid(7);

/// How bad the network is: parts in 256.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    pub(super) lost: u8,
    pub(super) doubled: u8,
    pub(super) jitter_ns: u64,
    /// Nobody hears this node.
    pub(super) dead: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) enum Happening {
    Wake(Task),
    Post(u32, ChannelKind, Descriptor),
    Link,
    Cell(EndpointId, Cell, Vec<u8>),
    Reply(Reply),
}

#[derive(Default)]
pub(super) struct Node {
    pub(super) rdma: Rdma,
    pub(super) port: HostPort,
    pub(super) memory: MemoryChannel,
    pub(super) iommu: Iommu,
    pub(super) bytes: Vec<u8>,
    pub(super) line_free: Time,
    pub(super) link_planned: Option<Time>,
    pub(super) headers: BTreeMap<(EndpointId, u32), TransferHeader>,
}

/// The engine's demands during a call.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) wakes: Vec<(Time, Task)>,
    headers: Vec<(EndpointId, TransferHeader)>,
    ended: Vec<(u32, Result<(), TransferError>)>,
    stages: Vec<TransferStage>,
}

impl RdmaCallbacks for Asked {
    const HEARS_CHANGES: bool = true;

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

/// A transfer between two nodes.
pub(super) struct Write {
    pub(super) at: Time,
    pub(super) page: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u64,
    /// The addresses of the data, at the source and at the destination.
    pub(super) place: (u64, u64),
}

pub(super) struct World {
    pub(super) parameters: RdmaParameters,
    pub(super) faults: IommuParameters,
    pub(super) trouble: Trouble,
    pub(super) nodes: Vec<Node>,
    pub(super) agenda: BTreeMap<(Time, u64), (u32, Happening)>,
    pub(super) sequence: u64,
    pub(super) rng: u64,
    pub(super) now: Time,
    /// (source, message): when the notification was written, how its sender was told.
    pub(super) notified: BTreeMap<(u32, u32), Vec<Time>>,
    pub(super) ended: BTreeMap<(u32, u32), Vec<Ended>>,
    pub(super) stages: Vec<TransferStage>,
    pub(super) cells: u64,
    pub(super) posted: BTreeMap<(u32, u32), Descriptor>,
}

impl World {
    pub(super) fn new(nodes: u32, parameters: RdmaParameters, trouble: Trouble, seed: u64) -> World {
        let mut rng = seed;
        let nodes = (0..nodes).map(|_| {
            let bytes = (0..MEMORY).map(|_| roll(&mut rng) as u8).collect();
            Node { bytes, ..Node::default() }
        });
        World {
            nodes: nodes.collect(),
            parameters,
            faults: iommu(FaultModel::Off),
            trouble,
            agenda: BTreeMap::new(),
            sequence: 0,
            rng,
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

    /// Posts a transfer. Returns its number.
    pub(super) fn post(&mut self, write: Write) -> u32 {
        let Write { at, page, from, .. } = write;
        let message = self.posted.len() as u32;
        let descriptor = Descriptor { message, ..descriptor(write) };
        self.posted.insert((from, message), descriptor);
        self.plan(at, from, Happening::Post(page, ChannelKind::Write, descriptor));
        message
    }

    /// Has the link of a node looked at, unless it will be earlier than `at`.
    fn plan_link(&mut self, at: Time, node: u32) {
        let planned = &mut self.nodes[node as usize].link_planned;
        if planned.is_none_or(|planned| at < planned) && at < Time::NEVER {
            *planned = Some(at);
            self.plan(at, node, Happening::Link);
        }
    }

    fn call<R>(
        &mut self,
        node: u32,
        call: impl FnOnce(&mut Rdma, &mut MemoryPath<'_>, &mut EngineContext<'_, Asked>) -> R,
    ) -> R {
        let (mut asked, port, now) = (Asked::default(), port(), self.now);
        let memory_parameters = MemoryParameters::new(BitRate::from_gigabits(130)).unwrap();
        let Node { rdma, port: host_port, memory, iommu, .. } = &mut self.nodes[node as usize];
        let mut path = MemoryPath {
            port: host_port,
            port_parameters: &port,
            memory,
            memory_parameters: &memory_parameters,
            iommu,
            iommu_parameters: &self.faults,
        };
        let mut context = EngineContext { now, parameters: &self.parameters, callbacks: &mut asked };
        let result = call(rdma, &mut path, &mut context);
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
            // What has come up since the last packet began.
            self.plan_link(free, node);
            return;
        }
        let out = self.call(node, |rdma, path, context| {
            let is_due = rdma.next_outgoing() <= context.now;
            let out = if is_due { rdma.take_outgoing(context) } else { None };
            rdma.fetch(path, context);
            out
        });
        let (to, bytes) = match &out {
            None => {
                let next = self.nodes[node as usize].rdma.next_outgoing();
                self.plan_link(next.max(self.now), node);
                return;
            }
            Some(RdmaPacket::Cell(cell)) => (cell.to, cell.bytes),
            Some(RdmaPacket::Reply(reply)) => (reply.to, Bytes::ZERO),
        };
        let wire = BitRate::from_bits_per_second(19_200_000_000).span(bytes + Bytes::new(32));
        self.nodes[node as usize].line_free = self.now + wire;
        let next = self.nodes[node as usize].rdma.next_outgoing();
        self.plan_link(next.max(self.now + wire), node);
        let what = match out {
            Some(RdmaPacket::Cell(cell)) => {
                self.cells += 1;
                let data = self.data(node, &cell);
                Happening::Cell(EndpointId(node), cell, data)
            }
            Some(RdmaPacket::Reply(reply)) => Happening::Reply(reply),
            None => return,
        };
        let deaf = [Some(node), Some(to.0)].contains(&self.trouble.dead);
        let copies = 1 + u32::from((roll(&mut self.rng) as u8) < self.trouble.doubled);
        for _ in 0..copies {
            let lost = (roll(&mut self.rng) as u8) < self.trouble.lost;
            let jitter = roll(&mut self.rng) % (self.trouble.jitter_ns + 1);
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
        let begin = descriptor.source.address.plus(offset).get() as usize;
        self.nodes[node as usize].bytes[begin..begin + cell.bytes.get() as usize].to_vec()
    }

    pub(super) fn run(&mut self) {
        let mut happenings = 0u64;
        while let Some(((at, _), (node, what))) = self.agenda.pop_first() {
            happenings += 1;
            assert!(happenings < 5_000_000, "no end");
            self.now = at;
            match what {
                Happening::Wake(task) => {
                    self.call(node, |rdma, path, context| rdma.wake(task, path, context))
                }
                Happening::Post(page, kind, descriptor) => {
                    self.call(node, |rdma, _, context| rdma.post(page, kind, descriptor, context))
                }
                Happening::Link => {
                    let planned = &mut self.nodes[node as usize].link_planned;
                    planned.take_if(|planned| *planned <= at);
                }
                Happening::Reply(reply) => {
                    self.call(node, |rdma, _, context| rdma.answer(reply.id, reply.answer, context));
                }
                Happening::Cell(source, cell, data) => self.receive(node, source, &cell, &data),
            }
            self.pump(node);
        }
    }

    fn receive(&mut self, node: u32, source: EndpointId, cell: &Cell, data: &[u8]) {
        let transfer = self.nodes[node as usize].headers[&(source, cell.message)];
        let (id, tail) = (cell.id, self.now);
        let owner = Gvas::reaches(transfer.destination.address, transfer.bytes).then_some(DOMAIN);
        let arrival = Arrival { source, id, transfer: &transfer, owner, tail };
        let outcome = self.call(node, |rdma, path, context| rdma.cell(&arrival, path, context));
        if outcome.stored {
            let block = id.transaction.wrapping_sub(transfer.first);
            let offset = self.parameters.send.cut.offset(block, id.index).get();
            let begin = transfer.destination.address.plus(offset).get() as usize;
            self.nodes[node as usize].bytes[begin..begin + data.len()].copy_from_slice(data);
        }
        if let Some(notified) = outcome.notified {
            assert!(notified > tail, "a notification before its data");
            let descriptor = self.posted[&(source.0, cell.message)];
            assert_eq!(self.at_source(source.0, &descriptor), self.at_destination(&descriptor));
            self.notified.entry((source.0, cell.message)).or_default().push(notified);
        }
    }

    fn at_source(&self, node: u32, descriptor: &Descriptor) -> &[u8] {
        let begin = descriptor.source.address.get() as usize;
        &self.nodes[node as usize].bytes[begin..begin + descriptor.bytes.get() as usize]
    }

    fn at_destination(&self, descriptor: &Descriptor) -> &[u8] {
        let begin = descriptor.destination.address.get() as usize;
        &self.nodes[descriptor.to.index()].bytes[begin..begin + descriptor.bytes.get() as usize]
    }

    /// Every transfer arrived once, whole, and its sender knows.
    pub(super) fn check_all_arrived(&self) {
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

pub(super) fn roll(rng: &mut u64) -> u64 {
    *rng = rng.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*rng ^ *rng >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}
