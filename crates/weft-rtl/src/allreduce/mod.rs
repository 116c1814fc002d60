//! The accelerator in step with its model.
//!
//! A packet's words are on the bus in a row, the footer in the cycle that ends with the edge of its tail. So
//! is the last word of the vector that a module fetches, and the last of a lookup in the cycle that ends with
//! the edge from which on the packet is due. The network takes a packet in the cycle in which the model's
//! does. Vectors are made up: an element by its packet and place.
//!
//! Compared, with their edges: the requests for vector and table, vectors that are sent, the result that is
//! written, and the word that tells software. Questions for lost packets, and answers to them, come at once
//! in the model and some cycles later in the RTL.

mod packets;
mod ports;
mod vectors;

use crate::difference::Difference;
use crate::endpoint::{BlockInStep, BlockPlace};
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::packetizer::cycles;
use crate::words::{BusWord, edge};
use packets::{Outgoing, words_of};
use ports::AllreducePorts;
use std::collections::VecDeque;
use std::sync::Arc;
use vectors::Vectors;
use weft_nic::ExanetParameters;
use weft_nic::allreduce::{DataType, ModulePacketKind, Operation, OperationId};
use weft_nic::ports::{Crossing, ModuleCrossing, PacketOfModule, PortEvent, ProgrammedModule};
use weft_units::{Bytes, EndpointId, Time};

/// The name of the block.
pub(crate) const NAME: &str = "allreduce";

/// Members of a board.
const BOARD: u64 = 4;
/// The most bytes of a vector.
const VECTOR: u64 = 256;
/// Where vector and table are in memory, and the word that tells software.
const VECTOR_AT: u64 = 0x20_0000_0000;
const TABLE_AT: u64 = 0x21_0000_0000;
const WORD_AT: u64 = 0x22_0000_0000;
/// Registers, and the bits of the last that software writes.
const REGISTERS: [u32; 5] = [0, 8, 16, 24, START];
const START: u32 = 32;
const NOTIFY: u32 = 4096;
/// Cycles from the edge of a footer to the request to write the result, of a client: look-up, and the state.
const CLIENT_BEHIND_TAIL: u64 = 2;
/// Cycles that a lookup takes at least: its request, and two words.
const LEAST_LOOKUP: u64 = 4;
/// Cycles by which questions, answers and the word of a failure may be behind the model.
const MOST_LATE: u64 = 64;
/// Cycles after which the block is at rest, where nothing comes and nothing is under way.
const REST: u64 = 64;

/// A request to read: what the RTL is to ask for in a cycle.
struct Request {
    cycle: u64,
    is_table: bool,
    address: u64,
}

/// A word that memory answers.
struct ReadWord {
    cycle: u64,
    is_table: bool,
    data: u128,
    last: bool,
}

/// A write to memory.
struct Write {
    /// The cycle in which it begins; a failure's word comes at some time up to then.
    from: u64,
    is_late: bool,
    /// The cycle from which on the port takes words, and that in which memory has them.
    taken_from: u64,
    written: u64,
    address: u64,
    has_address: bool,
    /// With the bytes of each that count.
    words: VecDeque<(u128, u16)>,
    /// The word behind the result.
    behind: Option<u128>,
}

/// The block.
pub(crate) struct AllreduceInStep {
    place: BlockPlace,
    rtl: Instance,
    ports: AllreducePorts,
    /// The next cycle.
    cycle: u64,
    rests_from: u64,
    registers: VecDeque<(u64, u32, u64)>,
    coming: VecDeque<BusWord>,
    requests: VecDeque<Request>,
    reads: VecDeque<ReadWord>,
    /// Lookups for questions, which come some time up to a cycle.
    late_lookups: VecDeque<u64>,
    outgoing: Outgoing,
    writes: VecDeque<Write>,
    /// Answers to writes: cycle and thread.
    answers: VecDeque<(u64, bool)>,
    vectors: Vectors,
    /// Operations that have begun, and of which software has not been told.
    running: u32,
    is_server: bool,
}

/// Checks that the RTL was built for the accelerator of a machine.
pub(crate) fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let Some(allreduce) = &parameters.allreduce else { return Err(RtlError::NoBlock(NAME)) };
    let (clock, reliability) = (&allreduce.clock, &allreduce.reliability);
    let same = |key, machine: u64, parameter, unit: &str| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = format!("{rtl}{unit}");
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    let unfit = |why: String, mend: &str| RtlError::Unfit { block: NAME, why, mend: mend.to_owned() };
    same("nic.allreduce.ranks", allreduce.limits.ranks.into(), "RANKS", "")?;
    same("nic.allreduce.latency", allreduce.latency_cycles.into(), "LATENCY", " cycles")?;
    if (u64::from(allreduce.limits.board), allreduce.limits.vector.get()) != (BOARD, VECTOR) {
        let why = format!("the RTL has boards of {BOARD} and vectors of {VECTOR} bytes");
        return Err(unfit(why, "add --set nic.allreduce.board=4 --set nic.allreduce.vector=256"));
    }
    if allreduce.word.get() != 16 {
        let why = format!("a word has {} bytes, and 16 in the RTL", allreduce.word);
        return Err(unfit(why, "use a machine whose port is so, such as exanest"));
    }
    if allreduce.lookup < clock.cycles(LEAST_LOOKUP) {
        let why =
            format!("a lookup takes {}, and {LEAST_LOOKUP} cycles at least in the RTL", allreduce.lookup);
        return Err(unfit(why, "add --set nic.allreduce.lookup=125ns"));
    }
    for (key, span, parameter) in [
        ("nic.packetizer.timeout", reliability.timeout, "TIMEOUT"),
        ("nic.packetizer.longest_timeout", reliability.longest, "LONGEST_TIMEOUT"),
    ] {
        let why = format!("{key} of {span} is no whole number of cycles of nic.clock");
        let machine = cycles(clock, span).ok_or_else(|| unfit(why, "take a time such as 50us"))?;
        let rtl = library.parameter(NAME, parameter)?;
        if machine != rtl {
            let mend = clock.cycles(rtl).to_string();
            return Err(RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter });
        }
    }
    same("nic.packetizer.repetitions", reliability.repetitions.into(), "REPETITIONS", "")?;
    if reliability.backoff != 2 {
        let why = format!("time-outs grow by {}, and are doubled in the RTL", reliability.backoff);
        return Err(unfit(why, "add --set nic.packetizer.backoff=2"));
    }
    Ok(())
}

impl AllreduceInStep {
    /// The accelerator of an endpoint, after its reset.
    pub fn new(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<AllreduceInStep, RtlError> {
        let rtl = library.create(NAME)?;
        let ports = AllreducePorts::of(&rtl)?;
        let mut block = AllreduceInStep {
            place,
            rtl,
            ports,
            cycle: 0,
            rests_from: 0,
            registers: VecDeque::new(),
            coming: VecDeque::new(),
            requests: VecDeque::new(),
            reads: VecDeque::new(),
            late_lookups: VecDeque::new(),
            outgoing: Outgoing::default(),
            writes: VecDeque::new(),
            answers: VecDeque::new(),
            vectors: Vectors::new(place.endpoint),
            running: 0,
            is_server: u64::from(place.endpoint.0).is_multiple_of(BOARD),
        };
        block.reset();
        Ok(block)
    }

    /// Resets the RTL, before the run's first cycle.
    fn reset(&mut self) {
        let AllreduceInStep { rtl, ports, place, .. } = self;
        rtl.set(ports.node, place.endpoint.0.into());
        rtl.set(ports.register_strobe, 0xFF);
        for always in [ports.register_answer_ready, ports.ar_ready, ports.aw_ready] {
            rtl.set(always, 1);
        }
        rtl.set(ports.reset, 1);
        rtl.cycle();
        rtl.cycle();
        rtl.set(ports.reset, 0);
        (0..66).for_each(|_| rtl.cycle());
        ports.write_register(rtl, Some((NOTIFY, WORD_AT)));
        rtl.cycle();
        ports.write_register(rtl, None);
    }

    fn edge(&self, time: Time) -> u64 {
        edge(&self.place.clock, time)
    }

    /// Software has programmed an operation, and its vector comes from memory.
    fn programmed(&mut self, module: &ProgrammedModule, at: Time) {
        let ProgrammedModule { id, ranks, own, bytes, operation, data_type, fetched, .. } = *module;
        let operation = match operation {
            Operation::Sum => 0u64,
            Operation::Min => 1,
            Operation::Max => 2,
        };
        let data_type = match data_type {
            DataType::Int => 0u64,
            DataType::Float => 1,
            DataType::Double => 2,
        };
        let start =
            u64::from(ranks) | u64::from(own) << 16 | bytes.get() << 32 | operation << 48 | data_type << 52;
        let name = u64::from(id.sequence) << 32 | u64::from(id.group);
        let values = [vector_at(id), TABLE_AT, name, id.block.into(), start];
        let (begins, behind) = (self.edge(at), self.edge(fetched));
        for (place, (address, value)) in (0..).zip(REGISTERS.into_iter().zip(values)) {
            self.registers.push_back((begins.saturating_sub(REGISTERS.len() as u64 - place), address, value));
        }
        self.requests.push_back(Request { cycle: begins, is_table: false, address: vector_at(id) });
        let words = memory_words(&self.vectors.program(module));
        let count = words.len() as u64;
        for (place, data) in (0..).zip(words) {
            let cycle = (behind + place).saturating_sub(count);
            self.reads.push_back(ReadWord { cycle, is_table: false, data, last: place + 1 == count });
        }
    }

    /// A packet will be due.
    fn made(&mut self, packet: &PacketOfModule, from: Time, due: Time) {
        let due_cycle = self.edge(due);
        let is_late = from == due;
        if is_late {
            // The members of a board are looked up, once for all that are asked at a time.
            let asks_board = packet.step == ModulePacketKind::Ask && self.vectors.is_gathering();
            if asks_board && self.late_lookups.back() != Some(&(due_cycle + MOST_LATE)) {
                self.late_lookups.push_back(due_cycle + MOST_LATE);
            }
        } else if self.vectors.is_looked_up_for(packet) {
            let board = self.vectors.board_of(packet.other);
            self.requests.push_back(Request {
                cycle: self.edge(from),
                is_table: true,
                address: TABLE_AT + 32 * u64::from(board.number),
            });
            self.answer_lookup(due_cycle, &board.members);
        }
        let vector = self.vectors.sent(packet);
        let words = words_of(packet, (self.place.endpoint, packet.other), &vector);
        self.outgoing.made(packet, due_cycle, is_late, words);
    }

    /// Memory answers a lookup: its last word is on the bus in the cycle before `behind`.
    fn answer_lookup(&mut self, behind: u64, members: &[EndpointId; 4]) {
        let pair = |member: usize| u128::from(members[member].0) | (member as u128) << 32;
        for (place, cycle) in [(0, 2), (1, 1)] {
            let data = pair(2 * place) | pair(2 * place + 1) << 64;
            let cycle = behind.saturating_sub(cycle);
            self.reads.push_back(ReadWord { cycle, is_table: true, data, last: place == 1 });
        }
    }

    /// The tail of a packet has come.
    fn arrived(&mut self, packet: &PacketOfModule, damaged: bool, at: Time) {
        let vector = self.vectors.came(packet);
        let mut words = words_of(packet, (packet.other, self.place.endpoint), &vector);
        if damaged && let Some(footer) = words.last_mut() {
            *footer ^= 1;
        }
        let (behind, count) = (self.edge(at), words.len() as u64);
        for (place, data) in (0..).zip(words) {
            let cycle = (behind + place).saturating_sub(count);
            self.coming.push_back(BusWord { cycle, data, last: place + 1 == count });
        }
    }

    /// The result goes to memory.
    fn written(&mut self, id: OperationId, ready: Time, (issued, written): (Time, Time)) {
        let result = self.vectors.result(id);
        let words = memory_words(&result);
        let from = self.edge(ready) + if self.is_server { 0 } else { CLIENT_BEHIND_TAIL };
        let taken_from = self.edge(issued).saturating_sub(words.len() as u64).max(from);
        let bytes = Bytes::new(result.len() as u64);
        let strobes = (0..words.len() as u64).map(|word| strobe(bytes.get() - 16 * word));
        self.writes.push_back(Write {
            from,
            is_late: false,
            taken_from,
            written: self.edge(written),
            address: vector_at(id),
            has_address: false,
            words: words.iter().copied().zip(strobes).collect(),
            behind: Some(told(id, None)),
        });
    }

    /// The operation has failed.
    fn failed(&mut self, id: OperationId, other: EndpointId, at: Time) {
        self.tell(self.edge(at) + MOST_LATE, true, told(id, Some(other)));
    }

    /// The word that tells software is to come.
    fn tell(&mut self, from: u64, is_late: bool, word: u128) {
        let write = Write {
            from,
            is_late,
            taken_from: 0,
            written: 0,
            address: WORD_AT,
            has_address: false,
            words: VecDeque::from([(word, 0xFFFF)]),
            behind: None,
        };
        self.writes.push_front(write);
    }

    /// Puts what is on the inputs in a cycle.
    fn drive(&mut self, cycle: u64) -> Driven {
        let is_due = |at: u64| at <= cycle;
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        let register = self.registers.front().filter(|(at, ..)| is_due(*at));
        ports.write_register(rtl, register.map(|(_, address, value)| (*address, *value)));
        let word = self.coming.front().copied().filter(|word| is_due(word.cycle));
        rtl.set(ports.net_valid, word.is_some().into());
        if let Some(word) = word {
            rtl.set(ports.net_data, word.data);
            rtl.set(ports.net_last, word.last.into());
        }
        let read = self.reads.iter().position(|read| is_due(read.cycle));
        rtl.set(ports.r_valid, read.is_some().into());
        if let Some(read) = read.and_then(|place| self.reads.get(place)) {
            rtl.set(ports.r_id, read.is_table.into());
            rtl.set(ports.r_data, read.data);
            rtl.set(ports.r_last, read.last.into());
        }
        let answer = self.answers.front().copied().filter(|(at, _)| is_due(*at));
        rtl.set(ports.b_valid, answer.is_some().into());
        rtl.set(ports.b_id, answer.is_some_and(|(_, is_word)| is_word).into());
        let sends = self.outgoing.is_ready(cycle);
        rtl.set(ports.out_ready, sends.into());
        let writes = self.writes.front().is_some_and(|write| is_due(write.taken_from));
        rtl.set(ports.w_ready, writes.into());
        let has_input = register.is_some() || word.is_some() || read.is_some() || answer.is_some() || sends;
        Driven {
            register: register.is_some(),
            word: word.is_some(),
            read,
            answer: answer.is_some(),
            has_input,
        }
    }

    /// Takes away what the RTL has taken.
    fn taken(&mut self, driven: &Driven) {
        let (rtl, ports) = (&self.rtl, &self.ports);
        if driven.register && rtl.get(ports.register_ready) != 0 {
            let register = self.registers.pop_front();
            self.running += u32::from(register.is_some_and(|(_, address, _)| address == START));
        }
        if driven.word && rtl.get(ports.net_ready) != 0 {
            self.coming.pop_front();
        }
        if let Some(read) = driven.read
            && rtl.get(ports.r_ready) != 0
        {
            self.reads.remove(read);
        }
        if driven.answer {
            self.answers.pop_front();
        }
    }

    fn compare_requests(&mut self, cycle: u64) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        let valid = rtl.get(ports.ar_valid) != 0;
        let is_table = rtl.get(ports.ar_id) != 0;
        if let Some(request) = self.requests.front().filter(|request| request.cycle <= cycle) {
            place.compare(cycle, "m_axi_arvalid", valid.into(), 1)?;
            place.compare(cycle, "m_axi_arid", is_table.into(), request.is_table.into())?;
            place.compare(cycle, "m_axi_araddr", rtl.get(ports.ar_address), request.address.into())?;
            self.requests.pop_front();
            return Ok(());
        }
        if valid {
            place.compare(cycle, "m_axi_arvalid", 1, (is_table && !self.late_lookups.is_empty()).into())?;
            self.late_lookups.pop_front();
            let members = self.vectors.own_board();
            self.answer_lookup(cycle + 3, &members);
        }
        let place = &self.place;
        let is_missing = self.late_lookups.front().is_some_and(|by| *by < cycle);
        place.compare(cycle, "m_axi_arvalid", 0, is_missing.into())
    }

    fn compare_writes(&mut self, cycle: u64) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        let [aw_valid, w_valid] = [ports.aw_valid, ports.w_valid].map(|port| rtl.get(port));
        let Some(write) = self.writes.front_mut() else {
            place.compare(cycle, "m_axi_awvalid", aw_valid, 0)?;
            return place.compare(cycle, "m_axi_wvalid", w_valid, 0);
        };
        let is_due = write.from <= cycle;
        if is_due || !write.is_late {
            place.compare(cycle, "m_axi_awvalid", aw_valid, (is_due && !write.has_address).into())?;
            place.compare(cycle, "m_axi_wvalid", w_valid, is_due.into())?;
        }
        if aw_valid != 0 {
            place.compare(cycle, "m_axi_awaddr", rtl.get(ports.aw_address), write.address.into())?;
            write.has_address = true;
        }
        if w_valid == 0 || cycle < write.taken_from {
            return Ok(());
        }
        if let Some((data, strobe)) = write.words.pop_front() {
            place.compare(cycle, "m_axi_wdata", rtl.get(ports.w_data), data)?;
            place.compare(cycle, "m_axi_wstrb", rtl.get(ports.w_strobe), strobe.into())?;
            place.compare(cycle, "m_axi_wlast", rtl.get(ports.w_last), write.words.is_empty().into())?;
        }
        if !write.words.is_empty() {
            return Ok(());
        }
        let Some(write) = self.writes.pop_front() else { return Ok(()) };
        match write.behind {
            // The word is on the bus in the cycle behind the answer.
            Some(word) => {
                let answered = write.written.saturating_sub(1).max(cycle + 1);
                self.answers.push_back((answered, false));
                self.tell(answered + 1, false, word);
            }
            None => {
                self.answers.push_back((cycle + 1, true));
                self.running = self.running.saturating_sub(1);
            }
        }
        Ok(())
    }
}

/// The inputs of a cycle.
struct Driven {
    register: bool,
    word: bool,
    read: Option<usize>,
    answer: bool,
    has_input: bool,
}

/// The address of the vector of an operation.
fn vector_at(id: OperationId) -> u64 {
    VECTOR_AT + (u64::from(id.sequence) % 256 * 16 + u64::from(id.block) % 16) * VECTOR
}

/// A vector as words of memory.
fn memory_words(vector: &[u8]) -> Vec<u128> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 16];
        word[..chunk.len()].copy_from_slice(chunk);
        u128::from_le_bytes(word)
    };
    vector.chunks(16).map(word).collect()
}

/// The bytes of a word that count, of so many that are left.
fn strobe(left: u64) -> u16 {
    if left >= 16 { 0xFFFF } else { (1 << left) - 1 }
}

/// The word that tells software that an operation is done, or because of whom it has failed.
fn told(id: OperationId, failed: Option<EndpointId>) -> u128 {
    let status = failed.map_or(1, |other| 2 | u128::from(other.0) << 8);
    u128::from(id.group) | u128::from(id.sequence) << 32 | u128::from(id.block) << 64 | status << 88
}

impl BlockInStep for AllreduceInStep {
    fn take(&mut self, event: &PortEvent) {
        let Crossing::Module(crossing) = event.what else { return };
        match crossing {
            ModuleCrossing::Programmed(module) => self.programmed(&module, event.at),
            ModuleCrossing::Made { packet, from, due } => self.made(&packet, from, due),
            ModuleCrossing::Sent(packet) => {
                let from = self.edge(event.at);
                self.outgoing.sent(&packet, from);
            }
            ModuleCrossing::Arrived { packet, damaged } => self.arrived(&packet, damaged, event.at),
            ModuleCrossing::Written { id, ready, issued, written } => {
                self.written(id, ready, (issued, written))
            }
            ModuleCrossing::Failed { id, other } => self.failed(id, other, event.at),
        }
    }

    fn next_cycle(&self) -> Option<u64> {
        if self.running > 0 || self.cycle < self.rests_from {
            return Some(self.cycle);
        }
        let next = [
            self.registers.front().map(|(cycle, ..)| *cycle),
            self.coming.front().map(|word| word.cycle),
            self.reads.front().map(|read| read.cycle),
            self.answers.front().map(|(cycle, _)| *cycle),
            self.outgoing.next_cycle(),
        ];
        Some(next.into_iter().flatten().min()?.max(self.cycle))
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let driven = self.drive(cycle);
        self.rtl.cycle();
        self.cycle = cycle + 1;
        if driven.has_input {
            self.rests_from = cycle + REST;
        }
        self.taken(&driven);
        self.compare_requests(cycle)?;
        self.outgoing.compare(&self.place, cycle, &self.ports.offered(&self.rtl))?;
        self.compare_writes(cycle)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}
