//! The receive unit of the RDMA engine in step with its model.
//!
//! A cell's words are on the bus from the cycle of its header on, the footer in the cycle that ends with the
//! edge of its tail; where a beat has several words, from as many cycles before that on as it has beats, if
//! that is earlier. Memory takes the words of a cell in the cycles in which the model's port carries them,
//! and answers so that the unit, which takes two cycles for that, has its answer to the block at the edge at
//! which the model has the block in memory. It answers once a cycle: where the model has two writes done in
//! one, or a notification in between, it answers those before them earlier. Over a bus of several words cells
//! may come so closely that it cannot: then the answer to a block is a cycle later than the model's, and one
//! more for each notification before it.
//!
//! A cell of 256 bytes takes five cycles of a bus of four words, and a link of the same rate carries it in
//! four and a half. Cells that come without a gap are on the bus one behind the other, later than they come,
//! and so are their words and answers: by as many cycles, and no more.
//!
//! # Not modelled
//! Addresses that are not those of whole words of the bus: they are rounded down, in what the RTL gets.

use super::ports::ReceivePorts;
use super::{CUT, NAME, NOTIFICATION, RECEIVE, check};
use crate::beats::{Beat, beats};
use crate::block::BlockInStep;
use crate::bus::{BusWords, side_by_side};
use crate::cells::{BlockAnswerWords, CellMessage};
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::fit::WORD;
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::ports::reset;
use crate::words::edge;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::ports::{CellArrival, Crossing, PortEvent};
use weft_nic::rdma::{ChannelId, TransferHeader};
use weft_units::EndpointId;

/// Cycles of the RTL from the answer of memory to that of the unit.
const ANSWERED: u64 = 2;
/// Cycles from that answer to the one to a block that has a context by it.
const KEPT: u64 = 2;
/// Cycles after which the block is at rest, where nothing comes.
const REST: u64 = 64;
/// Cycles from a block's last write to its notification, at most: it waits for those before it, of which
/// there are up to eight, and each for the end of a cell.
const NOTIFIED: u64 = 256;
/// Cells behind a notification that it holds up by its cycle, where they come without a gap over a wide bus:
/// so many that memory has not answered.
const HELD_UP: usize = 8;
/// Bytes that a burst does not cross.
const BORDER: u64 = 4096;
/// The register of the place of an interface's queue, in its page.
const BASE: u32 = 8;
/// The queues of notifications: their place in the memory of each rank.
const QUEUES: u64 = 1 << 38;

/// An answer of memory that the RTL waits for, in the order in which it does.
struct MemoryAnswer {
    /// The cycle in which memory gives it.
    cycle: u64,
    of: AwaitedBy,
    /// Cycles to the next.
    takes: u64,
    /// Whether the cell's block is answered then, and blocks that have waited for a context, behind it.
    answered: bool,
    kept: usize,
    /// Cycles by which its cell is later than in the model: on the bus, and behind notifications.
    late: u64,
}

/// Whoever waits for an answer of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AwaitedBy {
    /// A cell, or a notification.
    Burst,
    /// A cell that has come by a cycle and writes nothing: it takes its turn.
    Nobody { from: u64 },
}

/// A word that memory takes in a cycle, or later.
#[derive(Clone, Copy)]
struct MemoryWord {
    cycle: u64,
    data: BusWords,
    strobe: u128,
    last: bool,
}

/// A burst of a cell.
struct Burst {
    address: u64,
    words: Vec<MemoryWord>,
}

/// A notification that is to be written.
struct Notification {
    /// The cycle by which it is.
    by: u64,
    address: u64,
    data: u128,
}

/// An answer to a block, which the network takes from a cycle on.
struct SentAnswer {
    from: u64,
    beats: VecDeque<BusWords>,
}

/// The block.
pub(crate) struct RdmaReceiveInStep {
    place: BlockPlace,
    rtl: Instance,
    ports: ReceivePorts,
    /// Bytes of a word of the bus.
    word: u64,
    interfaces: u64,
    notifications_of_queue: u64,
    /// The next cycle.
    cycle: u64,
    rests_from: u64,
    beats: VecDeque<Beat>,
    /// The first cycle of the bus behind all of them.
    bus_free: u64,
    registers: VecDeque<(u64, u32, u64)>,
    bursts: VecDeque<Burst>,
    memory_words: VecDeque<MemoryWord>,
    /// Answers of memory, each later than the one before, and the cycle of the last that was said.
    memory_answers: VecDeque<MemoryAnswer>,
    settled: u64,
    /// The first cycle in which another cell may have its turn.
    turn: u64,
    /// Whether blocks wait for a context behind the last cell that has come.
    blocks_wait: bool,
    /// Bursts that the RTL has written, and memory has not answered.
    written: u64,
    notifications: VecDeque<Notification>,
    /// Notifications so far, by interface.
    tails: BTreeMap<u16, u64>,
    /// The cycles from which on an answer may be offered, and by how many its cell may be late.
    due: VecDeque<(u64, u64)>,
    sending: VecDeque<SentAnswer>,
    /// The last transfer of each channel, for cells that come again.
    transfers: BTreeMap<(EndpointId, ChannelId), TransferHeader>,
}

impl RdmaReceiveInStep {
    /// The header of the transfer of a cell: of the last of its channel that the model has known.
    fn transfer(&mut self, arrival: &CellArrival) -> Option<TransferHeader> {
        let channel = (arrival.from, arrival.id.channel);
        if let Some(transfer) = arrival.transfer {
            self.transfers.insert(channel, transfer);
        }
        self.transfers.get(&channel).copied().filter(|transfer| transfer.message == arrival.message)
    }

    /// A cell comes.
    fn arrived(&mut self, arrival: &CellArrival, event: &PortEvent) {
        let BlockPlace { clock, endpoint, .. } = self.place;
        let CellArrival { head, from, message, id, bytes, damaged, write, block, ends, .. } = *arrival;
        let CellArrival { answered, kept, waiting, .. } = *arrival;
        let Some(transfer) = self.transfer(arrival) else { return };
        let index = id.transaction.wrapping_sub(transfer.first);
        let offset = CUT.offset(index, id.index).get();
        let interface = transfer.destination.space as u16;
        let address = (transfer.destination.address.get() & !(self.word - 1)) + offset;
        let cell = CellMessage {
            source: from,
            to: endpoint,
            to_interface: interface,
            domain: transfer.domain,
            address,
            message,
            offset,
            bytes,
            id,
            first: transfer.first,
            ends_transfer: CUT.ends_transfer(transfer.bytes, index),
        };
        let mut words = cell.words();
        if damaged && let Some(footer) = words.last_mut() {
            *footer ^= 1;
        }
        let (first, behind) = (edge(&clock, head), edge(&clock, event.at));
        let lanes = (self.word / WORD) as usize;
        let in_time = behind.saturating_sub(words.len().div_ceil(lanes) as u64);
        let came = behind;
        let behind = self.put_on_bus(beats(&words, lanes, first.min(in_time), came));
        let late = behind - came;
        // While blocks wait, a context that is free is theirs before another cell is looked at.
        let takes = if self.blocks_wait { 2 + kept as u64 } else { 1 };
        self.blocks_wait = waiting;
        match write {
            // Memory answers in order.
            Some(write) => {
                self.settled = self.settled.max(edge(&clock, write.written).saturating_sub(ANSWERED));
                let (cycle, of) = (self.settled, AwaitedBy::Burst);
                let awaited = MemoryAnswer { cycle, of, takes, answered, kept, late };
                self.written_at(&cell, (edge(&clock, write.began), behind), awaited);
            }
            None => {
                let (cycle, of) = (self.settled.max(behind), AwaitedBy::Nobody { from: behind });
                self.memory_answers.push_back(MemoryAnswer { cycle, of, takes, answered, kept, late });
            }
        }
        self.answer_once_a_cycle();
        if block {
            let tail = self.tails.entry(interface).or_default();
            let place = *tail % self.notifications_of_queue;
            let phase = u128::from((*tail / self.notifications_of_queue).is_multiple_of(2));
            *tail += 1;
            let address = queue(interface) + place * NOTIFICATION;
            let data = notification(&cell, ends, phase);
            self.notifications.push_back(Notification { by: self.settled + late + NOTIFIED, address, data });
        }
    }

    /// Puts the beats of a cell on the bus, behind all before them. Returns the first cycle behind the last.
    fn put_on_bus(&mut self, beats: Vec<Beat>) -> u64 {
        for beat in beats {
            let cycle = self.bus_free.max(beat.cycle);
            self.beats.push_back(Beat { cycle, ..beat });
            self.bus_free = cycle + 1;
        }
        self.bus_free
    }

    /// The payload of a cell is written from the cycle `began` on, the bus being free from `behind` on; then
    /// memory gives the answer that the cell waits for.
    fn written_at(&mut self, cell: &CellMessage, (began, behind): (u64, u64), awaited: MemoryAnswer) {
        let at = of_rank(cell.to_interface, cell.address);
        let bytes_of_word = self.word;
        let count = cell.bytes.get().div_ceil(bytes_of_word).max(1);
        let first = count.min((BORDER - at % BORDER) / bytes_of_word);
        // Of a cell that is late the words are there later than the model's port is free for them.
        let began = if awaited.late > 0 { began.max(behind + RECEIVE - count) } else { began };
        let word = |(place, data): (usize, BusWords)| {
            let place = place as u64;
            let left = (cell.bytes.get() - place * bytes_of_word).min(bytes_of_word);
            let last = place + 1 == first || place + 1 == count;
            MemoryWord { cycle: began + place, data, strobe: (1 << left) - 1, last }
        };
        let of_bus = self.ports.w_data.side_by_side(&cell.memory_words());
        let mut words: Vec<MemoryWord> = of_bus.into_iter().enumerate().map(word).collect();
        let second = words.split_off(first as usize);
        self.bursts.push_back(Burst { address: at, words });
        if !second.is_empty() {
            self.bursts.push_back(Burst { address: at + first * bytes_of_word, words: second });
            let first = MemoryAnswer { takes: 1, answered: false, kept: 0, ..awaited };
            self.memory_answers.push_back(first);
        }
        self.memory_answers.push_back(awaited);
    }

    /// Has memory answer bursts one after the other, the last of them in time.
    fn answer_once_a_cycle(&mut self) {
        let mut next = u64::MAX;
        for MemoryAnswer { cycle, takes, .. } in self.memory_answers.iter_mut().rev() {
            *cycle = next.saturating_sub(*takes).min(*cycle);
            next = *cycle;
        }
    }

    /// Compares an address with those of the model's writes.
    fn compare_address(&mut self, cycle: u64) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        let late = self.notifications.front().is_some_and(|notification| notification.by < cycle);
        if rtl.get(ports.aw_valid) == 0 {
            return place.compare(cycle, "m_axi_awvalid", 0, late.into());
        }
        let address = rtl.get(ports.aw_address);
        place.compare(cycle, "m_axi_awsize", rtl.get(ports.aw_size), self.word.trailing_zeros().into())?;
        let next = self.notifications.front();
        let tells = next.is_some_and(|next| u128::from(next.address) == address || self.bursts.is_empty());
        if tells && let Some(notification) = self.notifications.pop_front() {
            place.compare(cycle, "m_axi_awaddr", address, notification.address.into())?;
            place.compare(cycle, "m_axi_awlen", rtl.get(ports.aw_length), 0)?;
            // It has its place in a word of the bus.
            let begin = notification.address % self.word;
            let (mut data, strobe) = (BusWords::default(), 0xFFFF << begin);
            data[(begin / NOTIFICATION) as usize] = notification.data;
            self.memory_words.push_back(MemoryWord { cycle, data, strobe, last: true });
            // It is answered with the bursts around it.
            let before = self.written as usize + self.bursts_to_write() - 1;
            let place = self.place_behind(before, cycle);
            let (cycle, of) = (cycle + 1, AwaitedBy::Burst);
            let awaited = MemoryAnswer { cycle, of, takes: 1, answered: false, kept: 0, late: 0 };
            self.memory_answers.insert(place, awaited);
            self.answer_once_a_cycle();
            // Over a bus of one word cells leave it a cycle.
            if self.word > WORD {
                let behind = self.memory_answers.iter_mut().skip(place + 1);
                behind.take(HELD_UP).for_each(|awaited| awaited.late += 1);
            }
            return Ok(());
        }
        let Some(burst) = self.bursts.pop_front() else {
            return place.compare(cycle, "m_axi_awvalid", 1, 0);
        };
        place.compare(cycle, "m_axi_awaddr", address, burst.address.into())?;
        place.compare(cycle, "m_axi_awlen", rtl.get(ports.aw_length) + 1, burst.words.len() as u128)?;
        self.memory_words.extend(burst.words);
        Ok(())
    }

    /// Bursts that the RTL has asked for and not written.
    fn bursts_to_write(&self) -> usize {
        self.memory_words.iter().filter(|word| word.last).count()
    }

    /// Whether memory takes a word in a cycle because the model's port carries one: the first of a burst may
    /// come with its address.
    fn carries_word(&self, cycle: u64) -> bool {
        let of_burst = || self.bursts.front().and_then(|burst| burst.words.first());
        self.memory_words.front().or_else(of_burst).is_some_and(|word| word.cycle <= cycle)
    }

    /// Compares a word that memory takes with that which the model's port carries.
    fn compare_word(&mut self, cycle: u64) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        let expected = self.memory_words.pop_front();
        place.compare(cycle, "m_axi_wvalid", rtl.get(ports.w_valid), expected.is_some().into())?;
        let Some(word) = expected else { return Ok(()) };
        place.compare(cycle, "m_axi_wstrb", rtl.get(ports.w_strobe), word.strobe)?;
        for (lane, (found, data)) in ports.w_data.get(rtl).into_iter().zip(word.data).enumerate() {
            // Bytes that are not written do not count.
            let mask = (0..16)
                .filter(|byte| word.strobe >> (16 * lane + byte) & 1 == 1)
                .fold(0, |mask, byte| mask | 0xFF << (8 * byte));
            place.compare(cycle, "m_axi_wdata", found & mask, data & mask)?;
        }
        place.compare(cycle, "m_axi_wlast", rtl.get(ports.w_last), word.last.into())?;
        self.written += u64::from(word.last);
        Ok(())
    }

    /// The place, among the answers of memory, behind so many bursts and behind cells without that have come.
    fn place_behind(&self, bursts: usize, cycle: u64) -> usize {
        let mut left = bursts;
        let is_before = |awaited: &&MemoryAnswer| match awaited.of {
            AwaitedBy::Burst if left == 0 => false,
            AwaitedBy::Burst => {
                left -= 1;
                true
            }
            AwaitedBy::Nobody { from } => left > 0 || from < cycle,
        };
        self.memory_answers.iter().take_while(is_before).count()
    }

    /// Cells that wait for no answer of memory take their turns.
    fn take_turns(&mut self, cycle: u64) {
        while let Some(AwaitedBy::Nobody { from }) = self.memory_answers.front().map(|awaited| awaited.of)
            && from.max(self.turn) <= cycle
        {
            self.answered(cycle);
        }
    }

    /// Memory has given the next answer, or a cell has had its turn.
    fn answered(&mut self, cycle: u64) {
        let Some(awaited) = self.memory_answers.pop_front() else { return };
        let MemoryAnswer { takes, answered, kept, late, .. } = awaited;
        self.turn = self.turn.max(cycle + takes);
        self.due.extend(answered.then_some((cycle + ANSWERED, late)));
        self.due.extend((0..kept).map(|_| (cycle + ANSWERED + KEPT, late)));
    }

    /// Whether the network takes a beat of an answer in a cycle: from when the model sends it on, or later,
    /// if the answer of memory that it is behind could not come in time: by a cycle, and what its cell may be
    /// late.
    fn takes_answer(&self, cycle: u64) -> bool {
        let Some(sending) = self.sending.front() else { return false };
        let closely = u64::from(self.word > WORD);
        let mut awaited = self.memory_answers.iter().filter(|cell| cell.answered || cell.kept > 0);
        let late = match self.due.front() {
            Some((due, _)) if *due <= cycle => 0,
            Some((_, late)) => closely + late,
            None => closely + awaited.next().map_or(0, |cell| cell.late),
        };
        sending.from + late <= cycle
    }

    /// Compares what the network is offered with what the model sends.
    fn compare_answer(&mut self, cycle: u64, ready: bool) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        let offered = ports.answers.offered(rtl);
        if !ready {
            // The RTL answers no earlier than it could know.
            let may_be_offered = self.due.front().is_some_and(|(due, _)| *due <= cycle);
            return place.compare(
                cycle,
                "m_axis_net_tvalid",
                (offered.valid != 0 && !may_be_offered).into(),
                0,
            );
        }
        let Some(sending) = self.sending.front_mut() else { return Ok(()) };
        place.compare(cycle, "m_axis_net_tvalid", offered.valid, 1)?;
        let words = sending.beats.pop_front().unwrap_or_default();
        let signals = ["m_axis_net_tdata", "m_axis_net_tlast"];
        offered.compare(place, signals, &Beat { cycle, words, last: sending.beats.is_empty() })?;
        if sending.beats.is_empty() {
            self.sending.pop_front();
            self.due.pop_front();
        }
        Ok(())
    }
}

/// The place of the notifications of an interface.
fn queue(interface: u16) -> u64 {
    of_rank(interface, QUEUES | u64::from(interface) << 12)
}

/// An address in the memory of the rank of an interface.
fn of_rank(interface: u16, address: u64) -> u64 {
    u64::from(interface & 7) << 39 | address
}

/// The word that tells a process of a block.
fn notification(cell: &CellMessage, ends: bool, phase: u128) -> u128 {
    let (first, transaction) = (u128::from(cell.first), u128::from(cell.id.transaction));
    let marks = u128::from(cell.ends_transfer) << 47 | u128::from(ends) << 46 | phase << 31;
    let channel = u128::from(cell.id.channel.0) << 48;
    first << 96 | transaction << 64 | channel | marks | u128::from(cell.source.0)
}

impl BlockInStep for RdmaReceiveInStep {
    fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
        check(library, parameters)
    }

    fn begin(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<RdmaReceiveInStep, RtlError> {
        let mut rtl = library.create(NAME)?;
        let bus = library.parameter(NAME, "DATA_WIDTH")?;
        let ports = ReceivePorts::begin(&mut rtl, bus as u32)?;
        let channels = library.parameter(NAME, "CHANNELS")?;
        reset(&mut rtl, place.endpoint, channels + 2)?;
        let interfaces = library.parameter(NAME, "INTERFACES")?;
        for interface in 0..interfaces as u16 {
            ports.registers.store(&mut rtl, Some((u32::from(interface) << 12 | BASE, queue(interface))));
            rtl.cycle();
        }
        ports.registers.store(&mut rtl, None);
        Ok(RdmaReceiveInStep {
            place,
            rtl,
            ports,
            word: bus / u64::from(u8::BITS),
            interfaces,
            notifications_of_queue: library.parameter(NAME, "NOTIFICATIONS")?,
            cycle: 0,
            rests_from: 0,
            beats: VecDeque::new(),
            bus_free: 0,
            registers: VecDeque::new(),
            bursts: VecDeque::new(),
            memory_words: VecDeque::new(),
            memory_answers: VecDeque::new(),
            written: 0,
            settled: 0,
            turn: 0,
            blocks_wait: false,
            notifications: VecDeque::new(),
            tails: BTreeMap::new(),
            due: VecDeque::new(),
            sending: VecDeque::new(),
            transfers: BTreeMap::new(),
        })
    }

    /// The send unit may do what its model does some turns later, and cells come to the receive unit so.
    fn behind() -> u64 {
        1024
    }

    fn take(&mut self, event: &PortEvent) {
        match event.what {
            Crossing::Opened { interface, domain } if u64::from(interface) < self.interfaces => {
                let (cycle, page) = (edge(&self.place.clock, event.at), u32::from(interface) << 12);
                self.registers.push_back((cycle, page, domain.0.into()));
                // Its queue is emptied.
                self.registers.push_back((cycle, page | BASE, queue(interface)));
                self.tails.remove(&interface);
            }
            Crossing::CellArrived(arrival) => self.arrived(&arrival, event),
            Crossing::BlockReplied { to, id, answer } => {
                let words = BlockAnswerWords { from: self.place.endpoint, to, id, answer }.words();
                let from = edge(&self.place.clock, event.at);
                let beats = side_by_side(&words, (self.word / WORD) as usize).into();
                self.sending.push_back(SentAnswer { from, beats });
            }
            _ => {}
        }
    }

    fn next_cycle(&self) -> Option<u64> {
        let moves = !self.memory_answers.is_empty() || !self.notifications.is_empty();
        if moves || self.cycle < self.rests_from {
            return Some(self.cycle);
        }
        let beat = self.beats.front().map(|beat| beat.cycle);
        let register = self.registers.front().map(|register| register.0);
        let sending = self.sending.front().map(|sending| sending.from);
        let next = beat.into_iter().chain(register).chain(sending).min();
        next.map(|next| next.max(self.cycle))
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let beat = self.beats.front().copied().filter(|beat| beat.cycle <= cycle);
        let register = self.registers.front().copied().filter(|register| register.0 <= cycle);
        let carries_word = self.carries_word(cycle);
        // A notification comes when it can, and what is behind it waits for its answer.
        let takes_word = carries_word || self.memory_words.is_empty() && !self.notifications.is_empty();
        self.take_turns(cycle);
        let answers = self.written > 0
            && self
                .memory_answers
                .front()
                .is_some_and(|awaited| awaited.of == AwaitedBy::Burst && awaited.cycle <= cycle);
        let ready = self.takes_answer(cycle);
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        ports.cells.offer(rtl, beat.as_ref());
        ports.registers.store(rtl, register.map(|(_, address, value)| (address, value)));
        rtl.set(ports.w_ready, takes_word.into());
        rtl.set(ports.b_valid, answers.into());
        ports.answers.set_ready(rtl, ready);
        rtl.cycle();
        self.cycle = cycle + 1;
        if beat.is_some() || register.is_some() || answers || takes_word || ready {
            self.rests_from = cycle + REST;
        }
        if beat.is_some() && ports.cells.is_ready(rtl) {
            self.beats.pop_front();
        }
        if register.is_some() && ports.registers.is_ready(rtl) {
            self.registers.pop_front();
        }
        if answers && rtl.get(ports.b_ready) != 0 {
            self.answered(cycle);
            self.written -= 1;
        }
        self.compare_address(cycle)?;
        if carries_word || takes_word && self.rtl.get(self.ports.w_valid) != 0 {
            self.compare_word(cycle)?;
        }
        self.compare_answer(cycle, ready)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}
