//! Cells for a receive unit: of up to six hundred channels in turn, with short last cells; some are lost,
//! damaged or foreign, or come again, as their answers are lost. Blocks find no context, channels of one set
//! no place. Memory answers sooner and later, and the network now and then takes no answer for a while.

use crate::{Bench, Bins};
use std::collections::BTreeMap;
use weft_nic::gvas::Pdid;
use weft_nic::ports::{CellArrival, Crossing};
use weft_nic::rdma::{
    Answer, Arrival, CellId, CellOutcome, ChannelId, Descriptor, EngineContext, LateCell, Location, Rdma,
    RdmaCallbacks, RdmaPacket, Refusal, Reply, Task, TransferError, TransferHeader,
};
use weft_nic::segmentation::Cut;
use weft_nic::{ExanetParameters, MemoryBlocks};
use weft_units::{Address, Bytes, EndpointId, Span, Time};

/// Interfaces of processes.
const INTERFACES: u64 = 64;
/// Sources, each with a channel on so many pages.
const SOURCES: u64 = 160;
const PAGES: u64 = 4;
/// Blocks that may be coming in: the machine's.
const CONTEXTS: usize = 256;
/// Channels of one set, more than it holds.
const CROWD: u64 = 20;
/// A source of their set, and what the others of it differ by.
const OF_CROWD: u64 = 37;
const APART: u64 = 1 << 12;
/// Bytes of transfers: at the limits of words, cells and blocks.
const SIZES: [u64; 14] = [0, 1, 15, 16, 17, 255, 256, 257, 271, 512, 513, 700, 16384, 33000];
/// Answers that may wait for the network: the RTL has room for a few more.
const WAITING_ANSWERS: usize = 20;
/// Words of memory by which it may be behind the cells that come, in bytes.
const BEHIND: u64 = 640;
/// Sources send blocks again that are not answered for this long.
const TIMEOUT: Span = Span::from_us(30);

/// The engine asks for nothing here: it only receives.
struct Receiver;

impl RdmaCallbacks for Receiver {
    const HEARS_CHANGES: bool = false;
    fn wake(&mut self, _: Time, _: Task) {}
    fn announce(&mut self, _: EndpointId, _: TransferHeader) {}
    fn ended(&mut self, _: &Descriptor, _: Result<(), TransferError>) {}
}

/// A block under way.
struct Block {
    /// The number in the transfer, and the attempt.
    index: u32,
    attempt: u8,
    /// The next cell; none: all are sent, and an answer is awaited.
    next: Option<u8>,
    sent: Time,
}

/// The transfer of a channel under way.
struct Flow {
    header: TransferHeader,
    /// Whether the model knows it: until it is notified.
    is_known: bool,
    blocks: Vec<Block>,
    /// The next block to begin, of so many.
    next_block: u32,
    count: u32,
    /// It sends nothing before this time.
    from: Time,
}

/// A channel that sends.
type Name = (EndpointId, ChannelId);

#[derive(Default)]
struct Coverage {
    cells: Bins<8>,
    answers: Bins<4>,
    rest: Bins<6>,
}

struct Stimulus<'a> {
    bench: &'a mut Bench,
    parameters: ExanetParameters,
    rdma: Rdma,
    memory: MemoryBlocks,
    /// The next transaction of each channel, and the transfer that it sends.
    transactions: BTreeMap<Name, u32>,
    flows: BTreeMap<Name, Flow>,
    /// Channels that send at a time; whether those of one set do.
    most: usize,
    crowds: bool,
    phase_ends: Time,
    messages: u32,
    /// Answers that have not left, the time from which on the network takes one, and that from which on the
    /// link in is free.
    pending: usize,
    takes_from: Time,
    link_free: Time,
    seen: Coverage,
}

pub(crate) fn run(bench: &mut Bench, parameters: &ExanetParameters, end: Time) -> Result<String, String> {
    let begin = bench.clock.edge(1);
    let whole_run = end >= bench.clock.edge(crate::WHOLE_RUN);
    let mut stimulus = Stimulus {
        bench,
        parameters: *parameters,
        rdma: Rdma::default(),
        memory: MemoryBlocks::default(),
        transactions: BTreeMap::new(),
        flows: BTreeMap::new(),
        most: 8,
        crowds: false,
        phase_ends: begin,
        messages: 0,
        pending: 0,
        takes_from: begin,
        link_free: begin,
        seen: Coverage::default(),
    };
    stimulus.open();
    while stimulus.link_free < end {
        stimulus.next()?;
    }
    stimulus.take_answers(end + Span::from_us(20))?;
    let Stimulus { messages, seen: Coverage { cells, answers, rest }, .. } = stimulus;
    bench.finish(end + Span::from_us(30))?;
    let said = [cells.tell(whole_run)?, answers.tell(whole_run)?, rest.tell(whole_run)?];
    Ok(format!("{messages} transfers, {}", said.join(", ")))
}

fn domain_of(interface: u16) -> Pdid {
    Pdid(100 + interface)
}

/// Whether a channel is of the set of which there are more than it holds.
fn is_of_crowd((source, _): Name) -> bool {
    u64::from(source.0) > APART
}

impl Stimulus<'_> {
    /// The next cell comes, or nothing for a while; what has been answered before it leaves before.
    fn next(&mut self) -> Result<(), String> {
        if self.link_free >= self.phase_ends {
            self.begin_phase();
        }
        let name = self.draw_channel();
        let now = self.link_free;
        let flow = self.flows.get_mut(&name).ok_or("a channel that was drawn has a transfer")?;
        // Once its transfer is whole, another channel of the crowd may have its place: cells that come again
        // would be those of a new one.
        let may_send = flow.is_known || !is_of_crowd(name);
        let cut = &self.parameters.rdma.send.cut;
        let cell = if may_send { flow.next_cell(name.1, now, cut) } else { None };
        let Some(cell) = cell else {
            self.link_free = now + Span::from_ns(20);
            return self.take_answers(self.link_free);
        };
        let (id, bytes) = cell;
        // Words of 16 Gb/s on the way in, or as many bits as the bus has, which a cell fills by whole beats:
        // behind it the next comes sooner than the bus is free. Now and then less, or with a pause.
        let words = 2 + bytes.div_ceil(Bytes::new(16));
        let on_wire = match self.word().get() {
            16 => Span::from_ns(8 * words),
            word => Span::from_ps(self.bench.clock.cycles(32 + bytes.get()).as_ps() / word),
        };
        let slow = Span::from_ns(if self.bench.in_thousand(100) { self.bench.below(60) } else { 0 });
        let gap = Span::from_ps(match self.bench.below(4) {
            0 | 1 => 0,
            2 => self.bench.below(7000),
            _ => self.bench.below(40_000),
        });
        let head = now + gap;
        let tail = head + on_wire + slow;
        self.link_free = tail;
        if self.bench.in_thousand(4) {
            self.seen.cells.count("lost");
            return self.take_answers(tail);
        }
        self.take_answers(tail)?;
        self.cell(name, id, bytes, (head, tail));
        self.bench.advance(tail)
    }

    /// Bytes of a word of the buses.
    fn word(&self) -> Bytes {
        self.parameters.host_port.word
    }

    /// System software opens all interfaces, one in each cycle.
    fn open(&mut self) {
        for interface in 0..INTERFACES as u16 {
            let domain = domain_of(interface);
            self.bench.cross(self.link_free, Crossing::Opened { interface, domain });
        }
        self.link_free += self.bench.clock.cycles(400);
    }

    /// The unit forgets all in the middle of whatever it does.
    fn reset(&mut self) {
        self.bench.reset();
        self.rdma = Rdma::default();
        self.memory = MemoryBlocks::default();
        (self.pending, self.takes_from) = (0, self.link_free);
        self.flows.clear();
        self.open();
        self.seen.rest.count("resets");
    }

    /// Other channels send for a while, and memory has another round trip.
    fn begin_phase(&mut self) {
        if self.bench.in_thousand(30) {
            self.reset();
        }
        self.most = [1, 3, 12, 60, 300, 600][self.bench.below(6) as usize];
        let longest = if self.most > CONTEXTS { 1000 } else { 200 };
        self.phase_ends = self.link_free + Span::from_us(20 + self.bench.below(longest));
        self.crowds = self.bench.in_thousand(300);
        // Over 512 bits it is short enough for cells to be late.
        let least = if self.word() == Bytes::new(16) { 100 } else { 50 };
        self.parameters.host_port.round_trip = Span::from_ns(least + self.bench.below(260 - least));
        if self.most > CONTEXTS {
            self.seen.rest.count("phases of more channels than contexts");
        }
    }

    /// A channel that sends: one that has begun, or another.
    fn draw_channel(&mut self) -> Name {
        let often = if self.most > CONTEXTS { 990 } else { 300 };
        let is_new = self.flows.len() < self.most && self.bench.in_thousand(often) || self.flows.is_empty();
        if !is_new {
            let place = self.bench.below(self.flows.len() as u64) as usize;
            return *self.flows.keys().nth(place).expect("the place is below their number");
        }
        let name = if self.crowds && self.bench.in_thousand(500) {
            (EndpointId((OF_CROWD + APART * (1 + self.bench.below(CROWD))) as u32), ChannelId(0))
        } else {
            // None of them is of the crowd's set, whose channels forget each other.
            let source =
                (0..).map(|_| self.bench.below(SOURCES)).find(|source| source % 64 / 4 != OF_CROWD / 4);
            let source = source.expect("most are of other sets");
            (EndpointId(source as u32), ChannelId(64 * self.bench.below(PAGES) as u16))
        };
        if !self.flows.contains_key(&name) {
            let flow = self.draw_flow(name);
            self.flows.insert(name, flow);
        }
        name
    }

    fn draw_flow(&mut self, name: Name) -> Flow {
        let interface = self.bench.below(INTERFACES) as u16;
        // Few of many blocks; of several cells where contexts are to run out.
        let most = if self.bench.in_thousand(60) { SIZES.len() } else { SIZES.len() - 2 };
        let least = if self.most > CONTEXTS { 7 } else { 0 };
        let bytes = Bytes::new(SIZES[least + self.bench.below((most - least) as u64) as usize]);
        let foreign = self.bench.in_thousand(30);
        let domain = domain_of(interface);
        let domain = if foreign { Pdid(domain.0 ^ 1 << self.bench.below(16)) } else { domain };
        self.messages += 1;
        // Numbers wrap around.
        let first = *self.transactions.entry(name).or_insert(u32::MAX - 40);
        let count = self.parameters.rdma.send.cut.blocks(bytes);
        // Some begin within a page, and some cross one; few pages of each process are in use.
        let word = self.word().get();
        let address = Address::new(0x10_0000 + word * self.bench.below(8192 / word));
        let header = TransferHeader {
            destination: Location { space: interface.into(), address },
            bytes,
            domain,
            first,
            message: self.messages,
            watch: false,
        };
        self.transactions.insert(name, first.wrapping_add(count));
        let from = Time::ZERO;
        Flow { header, is_known: true, blocks: Vec::new(), next_block: 0, count, from }
    }

    /// A cell comes.
    fn cell(&mut self, name: Name, id: CellId, bytes: Bytes, (head, tail): (Time, Time)) {
        let damaged = self.bench.in_thousand(4);
        let Stimulus { parameters, rdma, memory, flows, .. } = &mut *self;
        let Some(flow) = flows.get_mut(&name) else { return };
        let mut path = memory.path(parameters);
        let mut callbacks = Receiver;
        let mut context =
            EngineContext { now: tail, parameters: &parameters.rdma, callbacks: &mut callbacks };
        let (header, message) = (flow.header, flow.header.message);
        let owner = Some(domain_of(header.destination.space as u16));
        let arrival = Arrival { source: name.0, id, transfer: &header, owner, tail };
        let came = CellArrival {
            head,
            from: name.0,
            message,
            id,
            bytes,
            transfer: flow.is_known.then_some(header),
            damaged,
            write: None,
            block: false,
            ends: false,
            answered: false,
            kept: 0,
            waiting: false,
        };
        let came = if !flow.is_known {
            let late = LateCell { source: name.0, message, id, bytes, tail, damaged };
            rdma.late_cell(late, &mut path);
            self.seen.cells.count("of blocks that had come");
            CellArrival { answered: id.last && !damaged, ..came }
        } else if damaged {
            rdma.damaged_cell(&arrival, &parameters.rdma, &mut path);
            self.seen.cells.count("damaged");
            came
        } else {
            let outcome = rdma.cell(&arrival, &mut path, &mut context);
            let ends = outcome.notified.is_some();
            flow.is_known = !ends;
            self.seen.cells.count(match (outcome.block, outcome.repeated, outcome.stored) {
                (true, ..) => "that end blocks",
                (_, true, _) => "that had come",
                (_, _, true) => "written",
                // Its channel has no place, or too many blocks wait; or its domain is another.
                _ if outcome.answered => "refused at once",
                _ => "without context",
            });
            let CellOutcome { block, answered, kept, .. } = outcome;
            CellArrival { block, ends, answered, kept, ..came }
        };
        self.pending += usize::from(came.answered) + came.kept;
        if came.kept > 0 {
            self.seen.rest.count("contexts that others wait for");
        }
        if bytes == Bytes::ZERO {
            self.seen.rest.count("cells without payload");
        }
        let (write, waiting) = (self.rdma.last_write(), self.rdma.blocks_wait());
        // The RTL has room for so many words of cells: it holds up what comes behind them.
        if let Some(write) = write
            && write.began > tail + self.bench.clock.cycles(BEHIND / self.word().get())
        {
            self.link_free = write.began;
            self.seen.rest.count("pauses behind slow memory");
        }
        self.bench.cross(tail, Crossing::CellArrived(CellArrival { write, waiting, ..came }));
    }

    /// The network takes answers, up to a time.
    fn take_answers(&mut self, until: Time) -> Result<(), String> {
        loop {
            let at = self.rdma.next_outgoing().max(self.takes_from);
            if at > until {
                return Ok(());
            }
            let mut callbacks = Receiver;
            let parameters = &self.parameters.rdma;
            let mut context = EngineContext { now: at, parameters, callbacks: &mut callbacks };
            let Some(RdmaPacket::Reply(reply)) = self.rdma.take_outgoing(&mut context) else {
                return Err("the engine sends cells".to_owned());
            };
            let Reply { to, id, answer, .. } = reply;
            self.bench.cross(at, Crossing::BlockReplied { to, id, answer });
            self.bench.advance(at)?;
            self.pending -= 1;
            // Two words of 16 Gb/s, now and then with a pause before the next.
            self.takes_from = at + Span::from_ns(16);
            if self.bench.in_thousand(50) && self.pending < WAITING_ANSWERS / 2 {
                self.takes_from = at + Span::from_ns(self.bench.below(300));
            }
            self.replied(at, (to, id.channel), id, answer);
        }
    }

    /// A source has the answer to a block, unless it is lost.
    fn replied(&mut self, at: Time, name: Name, id: CellId, answer: Answer) {
        self.seen.answers.count(match answer {
            Answer::Ack => "acknowledged",
            Answer::Nack(Refusal::NoContext) => "without context",
            Answer::Nack(Refusal::Protection) => "of another domain",
            Answer::Nack(Refusal::PageFault) => "faulted",
        });
        let is_of_crowd = is_of_crowd(name);
        if !is_of_crowd && self.bench.in_thousand(30) {
            return self.seen.answers.count("answers lost");
        }
        let Some(flow) = self.flows.get_mut(&name) else { return };
        let index = id.transaction.wrapping_sub(flow.header.first);
        let Some(place) = flow.blocks.iter().position(|block| block.index == index) else { return };
        let block = &mut flow.blocks[place];
        match answer {
            Answer::Ack => {
                flow.blocks.remove(place);
            }
            // All of the transfer is over.
            Answer::Nack(Refusal::Protection) => (flow.blocks, flow.next_block) = (Vec::new(), flow.count),
            Answer::Nack(_) if block.attempt == id.attempt && block.next.is_none() => {
                (block.next, block.attempt) = (Some(0), block.attempt.wrapping_add(1));
                // A channel without a place finds one later.
                flow.from = at + Span::from_ns(self.bench.below(if is_of_crowd { 4000 } else { 400 }));
                self.seen.rest.count("blocks again");
            }
            Answer::Nack(_) => {}
        }
        if flow.blocks.is_empty() && flow.next_block == flow.count {
            self.flows.remove(&name);
        }
    }
}

impl Flow {
    /// The next cell and its bytes, if there is one to send at `now`.
    fn next_cell(&mut self, channel: ChannelId, now: Time, cut: &Cut) -> Option<(CellId, Bytes)> {
        if now < self.from {
            return None;
        }
        for block in &mut self.blocks {
            if block.next.is_none() && now.saturating_since(block.sent) > TIMEOUT {
                (block.next, block.attempt) = (Some(0), block.attempt.wrapping_add(1));
            }
        }
        if self.blocks.iter().all(|block| block.next.is_none()) {
            if self.blocks.len() == 2 || self.next_block == self.count {
                return None;
            }
            let index = self.next_block;
            self.blocks.push(Block { index, attempt: 0, next: Some(0), sent: now });
            self.next_block += 1;
        }
        let TransferHeader { first, bytes, .. } = self.header;
        let block = self.blocks.iter_mut().find(|block| block.next.is_some())?;
        let index = block.next?;
        let of_block = cut.block_bytes(bytes, block.index);
        let last = cut.ends_block(of_block, index);
        (block.next, block.sent) = ((!last).then_some(index + 1), now);
        let transaction = first.wrapping_add(block.index);
        let id = CellId { channel, transaction, index, last, attempt: block.attempt };
        Some((id, cut.cell_bytes(of_block, index)))
    }
}
