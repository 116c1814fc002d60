//! Transfers for a send unit: descriptors and requests of reads, many together, of all sizes, from memory
//! with one round trip or another; a network that takes cells late; answers that are late, refuse, are
//! damaged, come twice, or while the block is sent again, or never. No two time-outs end within a cycle of
//! each other, and no page's last free read channel is one that has just become free: RTL and model are not
//! one there.

use crate::{Bench, Bins};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use weft_fabric::ClassTag;
use weft_nic::gvas::Pdid;
use weft_nic::mailbox::{Envelope, Refusal as RequestRefusal};
use weft_nic::memory_path::MemoryPath;
use weft_nic::packetizer;
use weft_nic::ports::{Arrival, BlockReply, Crossing, SmallPacket, Verdict};
use weft_nic::rdma::{
    Answer, Cell, CellId, ChannelKind, Descriptor, EngineContext, Location, Rdma, RdmaCallbacks, RdmaChange,
    RdmaPacket, Refusal, RequestMailbox, Task, TransferError, TransferHeader,
};
use weft_nic::{ExanetParameters, MemoryBlocks};
use weft_units::{Address, Bytes, EndpointId, Span, Time};

/// Pages, each of an interface.
const PAGES: u64 = 16;
/// Read channels of a page.
const READ_CHANNELS: u32 = 32;
/// The page that all its read channels are taken of, and the time in which that is so, or not.
const FULL_PAGE: u32 = 15;
const FULL_FOR: u64 = 30_000_000;
/// Payload of a request.
const REQUEST: u64 = 32;
/// Sizes at the limits of words, cells and blocks.
const SIZES: [u64; 14] =
    [0, 1, 15, 16, 17, 255, 256, 257, 4095, 4096, 16_383, 16_384, 16_385, 2 * 16_384 + 256];

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Later {
    Answer(Reply),
    RequestTail(Request),
    Post,
    Ask,
    Wake(u64),
    Decide(Request),
    Send,
}

/// An answer to a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Reply {
    from: EndpointId,
    id: CellId,
    answer: Answer,
    damaged: bool,
}

/// A request of a read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    from: EndpointId,
    number: u32,
    page: u16,
    domain: Pdid,
    damaged: bool,
    again: bool,
    head: Time,
    tail: Time,
}

/// A unit's wishes in one call.
#[derive(Default)]
struct Asked {
    wakes: Vec<(Time, Task)>,
    crossed: Vec<Crossing>,
    changes: Vec<RdmaChange>,
    ended: Vec<(Descriptor, Result<(), TransferError>)>,
    timeouts: u64,
}

impl RdmaCallbacks for Asked {
    const HEARS_CHANGES: bool = true;

    fn wake(&mut self, at: Time, task: Task) {
        self.wakes.push((at, task));
    }
    fn announce(&mut self, _: EndpointId, _: TransferHeader) {}
    fn ended(&mut self, descriptor: &Descriptor, outcome: Result<(), TransferError>) {
        self.ended.push((*descriptor, outcome));
    }
    fn hears_ports(&self) -> bool {
        true
    }
    fn port(&mut self, what: Crossing) {
        self.crossed.push(what);
    }
    fn changed(&mut self, change: RdmaChange) {
        self.changes.push(change);
    }
    fn timed_out(&mut self, blocks: u64) {
        self.timeouts += blocks;
    }
}

struct Stimulus<'a> {
    bench: &'a mut Bench,
    parameters: ExanetParameters,
    rdma: Rdma,
    memory: MemoryBlocks,
    /// By time; of one time in the order in which the network has them; then as they were planned.
    later: BinaryHeap<Reverse<(Time, u128, u64, Later)>>,
    order: u64,
    tasks: BTreeMap<u64, Task>,
    /// The times from which on the network takes a cell, and another answer or request may come.
    link_free: Time,
    answers_free: Time,
    requests_free: Time,
    requests: RequestMailbox,
    messages: u32,
    /// Reads of each page that have not ended.
    reads: [u32; PAGES as usize],
    accepted: Option<Request>,
    /// Whether nothing is posted until most transfers have ended.
    drains: bool,
    /// Cycles in which a time-out may end.
    ends: BTreeSet<u64>,
    began: u64,
    seen: Bins<20>,
}

pub(crate) fn run(bench: &mut Bench, parameters: &ExanetParameters, end: Time) -> Result<String, String> {
    for interface in 0..PAGES as u16 {
        bench.cross(Time::ZERO, Crossing::Opened { interface, domain: Pdid(100 + interface) });
    }
    let begin = bench.clock.edge(1200);
    let mut stimulus = Stimulus {
        bench,
        parameters: *parameters,
        rdma: Rdma::default(),
        memory: MemoryBlocks::default(),
        later: BinaryHeap::new(),
        order: 0,
        tasks: BTreeMap::new(),
        link_free: begin,
        answers_free: begin,
        requests_free: begin,
        requests: RequestMailbox::default(),
        messages: 0,
        reads: [0; PAGES as usize],
        accepted: None,
        drains: false,
        ends: BTreeSet::new(),
        began: 0,
        seen: Bins::default(),
    };
    stimulus.at(begin, Later::Post);
    stimulus.at(begin, Later::Ask);
    while let Some(Reverse((now, _, _, later))) = stimulus.later.pop() {
        if now >= end {
            break;
        }
        stimulus.happen(now, later);
        stimulus.bench.advance(now)?;
    }
    let told = stimulus.seen.tell(end >= stimulus.bench.clock.edge(crate::WHOLE_RUN))?;
    Ok(format!("{} transfers and requests, {told}", stimulus.messages))
}

impl Stimulus<'_> {
    fn at(&mut self, at: Time, later: Later) {
        self.order += 1;
        // Packets, timers by their kind, and last what goes out.
        let rank = match &later {
            Later::Answer(_) | Later::RequestTail(_) => 0,
            Later::Post | Later::Ask => 1 << 64,
            Later::Wake(order) => {
                let task = &self.tasks[order];
                let kind = if task.comes_last() { 4 } else { 2 };
                kind << 64 | u128::from(task.tie())
            }
            Later::Decide(_) => 3 << 64,
            Later::Send => 5 << 64,
        };
        self.later.push(Reverse((at, rank, self.order, later)));
    }

    /// Calls the unit in its surroundings.
    fn call<R>(
        &mut self,
        now: Time,
        call: impl FnOnce(&mut Rdma, &mut MemoryPath<'_>, &mut EngineContext<'_, Asked>) -> R,
    ) -> R {
        let mut asked = Asked::default();
        let mut path = self.memory.path(&self.parameters);
        let mut context = EngineContext { now, parameters: &self.parameters.rdma, callbacks: &mut asked };
        let result = call(&mut self.rdma, &mut path, &mut context);
        let Asked { wakes, crossed, changes, ended, timeouts } = asked;
        for (at, task) in wakes {
            self.tasks.insert(self.order + 1, task);
            let order = self.order + 1;
            self.at(at, Later::Wake(order));
        }
        for what in crossed {
            self.look_at(now, &what);
            self.bench.cross(now, what);
        }
        for change in changes {
            if let RdmaChange::Block { from: Some(from), .. } = change {
                use weft_nic::segmentation::BlockState::{Acknowledged, Sending};
                let RdmaChange::Block { to, .. } = change else { continue };
                if (from, to) == (Sending, Acknowledged) {
                    self.seen.count("blocks answered while they are sent again");
                }
            }
        }
        for (descriptor, outcome) in ended {
            self.seen.count(if outcome.is_ok() { "transfers ended" } else { "given up" });
            if descriptor.token.is_some() {
                self.reads[descriptor.source.space as usize] -= 1;
            }
        }
        (0..timeouts).for_each(|_| self.seen.count("blocks out of time"));
        let next = self.rdma.next_outgoing();
        if next < Time::NEVER {
            self.at(next.max(self.link_free).max(now), Later::Send);
        }
        result
    }

    /// Counts what has come about.
    fn look_at(&mut self, now: Time, what: &Crossing) {
        match what {
            Crossing::Described(stored) => {
                let cycle = self.bench.clock.edges_before(stored.came);
                if cycle - self.began <= 8 {
                    self.seen.count("begun within eight cycles of another");
                }
                self.began = cycle;
                if stored.descriptor.bytes == Bytes::ZERO {
                    self.seen.count("empty");
                }
            }
            Crossing::CellRead { cell, ready } => {
                if self.rdma.under_way() > 100 {
                    self.seen.count("cells among a hundred transfers");
                }
                if *ready - now > Span::from_ns(1500) {
                    self.seen.count("cells behind slow memory");
                }
                if cell.repeated {
                    self.seen.count("cells again");
                }
            }
            _ => {}
        }
    }

    fn happen(&mut self, now: Time, later: Later) {
        match later {
            Later::Post => self.post(now),
            Later::Ask => self.ask(now),
            Later::Send => self.send(now),
            Later::Decide(request) => self.decide(now, &request),
            Later::Wake(order) => {
                let task = self.tasks.remove(&order).expect("a task for each number");
                self.call(now, |rdma, path, context| rdma.wake(task, path, context));
            }
            Later::RequestTail(request) => {
                let look = self.requests.look(now, Bytes::new(REQUEST), &self.parameters.rdma.send);
                if look.began > self.bench.clock.edge_at_or_after(now) {
                    self.seen.count("requests that wait for an answer before them");
                }
                self.at(look.ended, Later::Decide(request));
            }
            Later::Answer(_) if now < self.answers_free => self.at(self.answers_free, later),
            Later::Answer(reply) => self.answer(now, &reply),
        }
    }

    /// Cycles in which a packet of so many bytes of payload is on a bus.
    fn beats(&self, payload: u64) -> u64 {
        (2 + payload.div_ceil(16)).div_ceil(self.parameters.host_port.word.get() / 16)
    }

    fn size(&mut self) -> u64 {
        match self.bench.below(20) {
            0..4 => SIZES[self.bench.below(SIZES.len() as u64) as usize],
            4 => self.bench.below(60_000),
            5..8 => self.bench.below(3_000),
            _ => self.bench.below(300),
        }
    }

    fn descriptor(&mut self, page: u32, to: EndpointId) -> Descriptor {
        self.messages += 1;
        let address = Address::new(self.bench.below(1 << 30) & !15);
        let to_address = Address::default();
        Descriptor {
            source: Location { space: page, address },
            to,
            destination: Location { space: self.bench.below(64) as u32, address: to_address },
            bytes: Bytes::new(self.size()),
            domain: Pdid(100 + page as u16),
            message: self.messages,
            posted: Time::ZERO,
            token: None,
            watch: false,
            class: ClassTag::default(),
        }
    }

    /// A process stores a descriptor, if few wait.
    fn post(&mut self, now: Time) {
        // Bursts, with pauses between them, and memory that is now and then slower.
        let most = if self.bench.in_thousand(10) { 60_000 } else { 400 };
        let gap = Span::from_ns(1 + self.bench.below(most));
        self.at(now + gap, Later::Post);
        if self.bench.in_thousand(2) {
            let round_trip = [125, 125, 225, 400, 800, 1600][self.bench.below(6) as usize];
            self.parameters.host_port.round_trip = Span::from_ns(round_trip);
        }
        self.drains = self.rdma.under_way() > if self.drains { 20 } else { 250 };
        if self.drains {
            return;
        }
        let page = if self.bench.in_thousand(300) { 0 } else { self.bench.below(PAGES) as u32 };
        let to = EndpointId(1000 + self.bench.below(9) as u32);
        let mut descriptor = self.descriptor(page, to);
        let bytes = self.parameters.rdma.send.descriptor;
        descriptor.posted =
            self.memory.path(&self.parameters).port.store(now, bytes, &self.parameters.host_port).ended;
        self.call(now, |rdma, _, context| rdma.post(page, ChannelKind::Write, descriptor, context));
    }

    /// Whether the read channels of a page are being taken, in which its requests come and its answers do
    /// not.
    fn fills(at: Time) -> bool {
        (at.as_ps() / FULL_FOR).is_multiple_of(2)
    }

    /// A request is on its way.
    fn ask(&mut self, now: Time) {
        let most = if self.bench.in_thousand(50) { 20_000 } else { 1_500 };
        // One after the other, as the network has them.
        let comes_at_once = self.bench.in_thousand(200);
        let gap = if comes_at_once { Span::from_ns(1) } else { Span::from_ns(100 + self.bench.below(most)) };
        self.at(now + gap, Later::Ask);
        let page = if self.bench.in_thousand(400) { FULL_PAGE } else { self.bench.below(PAGES) as u32 };
        let is_late = !Stimulus::fills(now) || !Stimulus::fills(now + Span::from_us(2));
        if page == FULL_PAGE && is_late || page != FULL_PAGE && self.reads[page as usize] + 8 > READ_CHANNELS
        {
            return;
        }
        self.messages += 1;
        let clock = self.bench.clock;
        let head = self.requests_free.max(clock.edge_at_or_after(now));
        let tail = head + clock.cycles(self.beats(REQUEST)) + Span::from_ps(self.bench.below(40_000));
        self.requests_free = clock.edge_at_or_after(tail);
        let from = EndpointId(1000 + self.bench.below(9) as u32);
        let mut request = Request {
            from,
            number: self.messages,
            page: page as u16,
            domain: Pdid(100 + page as u16),
            damaged: false,
            again: false,
            head,
            tail,
        };
        match self.bench.below(20) {
            0 => request.damaged = true,
            1 => request.domain = Pdid(7),
            2 => request.page = (PAGES + self.bench.below(64 - PAGES)) as u16,
            3..5 => {
                if let Some(accepted) = self.accepted {
                    request = Request { head, tail, again: true, ..accepted };
                }
            }
            _ => {}
        }
        self.at(tail, Later::RequestTail(request));
    }

    /// The mailbox has its verdict on a request.
    fn decide(&mut self, now: Time, request: &Request) {
        let Request { from, number, page, domain, damaged, again, head, tail } = *request;
        let envelope = Envelope { interface: page, domain, damaged };
        let parameters = &self.parameters.rdma.send;
        let verdict = match again {
            true => Ok(()),
            false => self.rdma.judge(&envelope, Pdid(100 + page), parameters),
        };
        self.seen.count(match verdict {
            Ok(()) if again => "requests again",
            Ok(()) => "requests accepted",
            Err(RequestRefusal::Full) => "requests without a channel",
            Err(RequestRefusal::Damaged) => "requests damaged",
            Err(RequestRefusal::Domain) => "requests foreign",
            Err(_) => "requests for nobody",
        });
        let packet = SmallPacket {
            head,
            from,
            message: number,
            channel: packetizer::ChannelId { interface: 3, channel: 2 },
            bytes: Bytes::new(REQUEST),
            target: (!again).then_some((page, domain)),
            damaged,
            payload: None,
        };
        let put = verdict.is_ok() && !again;
        let verdict = Verdict { checked: now, refusal: verdict.err(), put };
        self.bench.cross(now, Crossing::RequestArrived { tail, arrival: Arrival { packet, verdict } });
        if put {
            self.accepted = Some(*request);
            self.reads[usize::from(page)] += 1;
            let descriptor = self.descriptor(page.into(), from);
            let descriptor = Descriptor { posted: now, token: Some(0), ..descriptor };
            self.call(now, |rdma, _, context| rdma.post(page.into(), ChannelKind::Read, descriptor, context));
        }
    }

    /// The network takes the next cell, if it is there.
    fn send(&mut self, now: Time) {
        let next = self.rdma.next_outgoing();
        if next > now || self.link_free > now {
            return;
        }
        let clock = self.bench.clock;
        let cycle = clock.edges_before(now);
        let cycles = |span: Span| clock.edges_before(Time::ZERO + span);
        let ends: Vec<u64> = (0..5)
            .map(|waited| cycle + cycles(self.parameters.rdma.reliability.timeout_after(waited)))
            .collect();
        if ends.iter().any(|end| self.ends.range(end - 2..=end + 2).next().is_some()) {
            return self.at(clock.edge_after(now), Later::Send);
        }
        let taken = self.call(now, |rdma, path, context| {
            let taken = rdma.take_outgoing(context);
            if rdma.may_fetch(&context.parameters.send) {
                rdma.refill(path, context);
            }
            taken
        });
        let Some(RdmaPacket::Cell(cell)) = taken else { return };
        self.bench.cross(now, Crossing::CellSent(cell.id));
        if cell.id.last {
            self.ends.extend(ends);
            while self.ends.first().is_some_and(|end| *end < cycle) {
                self.ends.pop_first();
            }
        }
        let beats = self.beats(cell.bytes.get());
        let wait = match self.bench.below(10) {
            0..5 => Span::ZERO,
            5..9 => Span::from_ps(self.bench.below(60_000)),
            _ => Span::from_ps(self.bench.below(2_000_000)),
        };
        self.link_free = now + clock.cycles(beats) + wait;
        let next = self.rdma.next_outgoing();
        if next < Time::NEVER {
            self.at(next.max(self.link_free), Later::Send);
        }
        self.plan_answers(&cell);
    }

    /// The answers of a receiver to a cell: mostly an acknowledgement of the last one, soon.
    fn plan_answers(&mut self, cell: &Cell) {
        let Cell { to: from, id, .. } = *cell;
        let reply = Reply { from, id, answer: Answer::Ack, damaged: false };
        let refused = |refusal| Reply { answer: Answer::Nack(refusal), ..reply };
        if !id.last {
            if self.bench.in_thousand(2) {
                self.plan_answer(2_000, refused(Refusal::NoContext));
            }
            return;
        }
        match self.bench.below(1000) {
            // Never, as far as this attempt goes.
            0..8 => {}
            8..30 => self.plan_answer(3_000, Reply { damaged: true, ..reply }),
            30..60 => self.plan_answer(3_000, refused(Refusal::NoContext)),
            60..80 => self.plan_answer(3_000, refused(Refusal::PageFault)),
            80..90 => self.plan_answer(3_000, refused(Refusal::Protection)),
            90..130 => (0..2).for_each(|_| self.plan_answer(3_000, reply)),
            // An acknowledgement overtakes nothing, and the block is sent again by then.
            130..170 => {
                self.plan_answer(500, refused(Refusal::NoContext));
                self.plan_answer(6_000, reply);
            }
            170..180 => self.plan_answer(60_000, reply),
            _ => self.plan_answer(2_000, reply),
        }
    }

    /// An answer comes within so many nanoseconds.
    fn plan_answer(&mut self, most: u64, reply: Reply) {
        let mut at = self.link_free + Span::from_ps(200_000 + self.bench.below(most * 1000));
        let (page, kind) = self.parameters.rdma.send.place(reply.id.channel);
        if (page, kind) == (FULL_PAGE, ChannelKind::Read) && Stimulus::fills(at) {
            let later = (at.as_ps() / FULL_FOR + 1) * FULL_FOR;
            at = Time::from_ps(later + self.bench.below(FULL_FOR / 2));
        }
        self.at(at, Later::Answer(reply));
    }

    /// An answer comes.
    fn answer(&mut self, now: Time, reply: &Reply) {
        let Reply { from, id, answer, damaged } = *reply;
        self.answers_free = now + self.bench.clock.cycles(self.beats(0));
        self.seen.count(match answer {
            _ if damaged => "answers damaged",
            Answer::Ack => "acknowledgements",
            Answer::Nack(Refusal::NoContext) => "without a context",
            Answer::Nack(Refusal::PageFault) => "page faults",
            Answer::Nack(Refusal::Protection) => "blocks foreign",
        });
        let taken = match damaged {
            true => None,
            false => self.call(now, |rdma, _, context| rdma.answer(id, answer, context)),
        };
        self.bench.cross(now, Crossing::BlockAnswered(BlockReply { from, id, answer, taken }));
    }
}
