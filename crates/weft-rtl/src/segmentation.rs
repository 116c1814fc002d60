//! The send unit of the RDMA engine in step with its model.
//!
//! The last store of a descriptor is on the bus in the cycle that ends with the edge at which the model has
//! it in the block. Memory answers when the model's does: the last word of a cell is on the bus in the cycle
//! that ends with the edge at which the cell is whole. Its read has to be asked for before that, in the
//! model's order and to the byte, and no earlier than the model asks. The network takes a cell in the cycle
//! in which the model's does.
//!
//! # Not modelled
//! Destination addresses: the model's descriptors have none, and here a transfer goes to the address 0.

use crate::difference::Difference;
use crate::endpoint::{BlockInStep, BlockPlace};
use crate::library::{Instance, RtlError, RtlLibrary, RtlPort};
use crate::words::{BlockAnswerWords, BusWord, CellMessage, cycles, edge};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::iommu::FaultModel;
use weft_nic::ports::{BlockReply, Crossing, PortEvent, StoredDescriptor};
use weft_nic::rdma::{Answer, Cell, CellId, Refusal};
use weft_nic::segmentation::{Cut, SegmentationParameters};
use weft_units::{Address, Bytes, Span, Time};

/// The name of the block.
pub(crate) const NAME: &str = "segmentation";

/// Registers of the system behind the pages of processes.
const SYSTEM: u32 = 1 << 16;
/// Channels of a page.
const PAGE_CHANNELS: u64 = 64;
/// Words of a descriptor.
const DESCRIPTOR: u64 = 4;
/// Cycles after which the block is at rest, where nothing comes and no answer is awaited.
const REST: u64 = 64;
/// Cycles of the RTL from the model's read to its address on the bus, at most: those of the agent, and of the
/// reads of seven other cells.
const READ_LATE: u64 = 40;
/// Cycles from the end of a transfer to the first store of a descriptor that has waited for its channel.
const FREED_AFTER: u64 = 4;
/// Bytes that a burst does not cross.
const BORDER: u64 = 4096;
/// Bytes of a word.
const WORD: u64 = 16;

struct SegmentationPorts {
    reset: RtlPort,
    node: RtlPort,
    store_valid: [RtlPort; 2],
    store_ready: RtlPort,
    store_address: RtlPort,
    store_data: RtlPort,
    store_strobe: RtlPort,
    store_last: RtlPort,
    store_answer_ready: RtlPort,
    store_answer_valid: RtlPort,
    store_answer: RtlPort,
    read_valid: RtlPort,
    read_ready: RtlPort,
    read_address: RtlPort,
    read_length: RtlPort,
    data_valid: RtlPort,
    data: RtlPort,
    data_last: RtlPort,
    net_valid: RtlPort,
    net_ready: RtlPort,
    net_data: RtlPort,
    net_last: RtlPort,
    answer_valid: RtlPort,
    answer_ready: RtlPort,
    answer_data: RtlPort,
    answer_last: RtlPort,
}

/// A word that is stored in a cycle, or later.
#[derive(Clone, Copy)]
struct PageStore {
    cycle: u64,
    address: u32,
    data: u128,
}

/// A burst of reads that is to be asked for.
struct BurstRead {
    /// The cycle in which the model asks for it.
    from: u64,
    address: u64,
    words: u64,
}

/// A cell whose payload is read, up to its turn.
struct ReadCell {
    id: CellId,
    /// The cycle from which on it may be on the bus.
    ready: u64,
    words: VecDeque<u128>,
}

/// A cell that the network takes from a cycle on.
struct SentCell {
    from: u64,
    words: VecDeque<u128>,
}

/// A word of an answer to a block.
#[derive(Clone, Copy)]
struct AnswerWord {
    word: BusWord,
    /// Whether the transfer of its block is over with it.
    ends: bool,
}

/// The transfer of a channel.
struct RunningTransfer {
    stored: StoredDescriptor,
    /// The transactions that are not acknowledged.
    missing: BTreeSet<u32>,
}

/// The block.
pub(crate) struct SegmentationInStep {
    place: BlockPlace,
    rtl: Instance,
    ports: SegmentationPorts,
    cut: Cut,
    /// The next cycle.
    cycle: u64,
    rests_from: u64,
    stores: VecDeque<PageStore>,
    /// Stores that may come later than they are due.
    patient_stores: VecDeque<PageStore>,
    reads: VecDeque<BurstRead>,
    /// Words of memory that are to come, and those whose reads the RTL has asked for.
    data: VecDeque<BusWord>,
    asked: u64,
    read: VecDeque<ReadCell>,
    sending: VecDeque<SentCell>,
    answers: VecDeque<AnswerWord>,
    transfers: BTreeMap<u16, RunningTransfer>,
    /// Transfers of the RTL that are under way.
    running: u32,
}

/// Checks that the RTL was built for the send unit of a machine.
pub(crate) fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let (rdma, port) = (&parameters.rdma, &parameters.host_port);
    let send = &rdma.send;
    let unfit = |why: String, mend: &str| RtlError::Unfit { block: NAME, why, mend: mend.to_owned() };
    let invocation = match rdma.segmentation {
        SegmentationParameters::Hardware { cycles, .. } => cycles,
        SegmentationParameters::Firmware { .. } => {
            let why = "nic.segmentation.agent is firmware, and in the RTL it is logic".to_owned();
            return Err(unfit(why, "add --set nic.segmentation.agent=hardware"));
        }
    };
    if send.contexts.is_some() {
        let why = "the send unit of this machine has contexts, and the RTL channels of pages".to_owned();
        return Err(unfit(why, "use a machine with nic.model=exanet, such as exanest"));
    }
    let same = |key, machine: u64, parameter, unit: &str| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = format!("{rtl}{unit}");
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    same("nic.rdma.pages", send.pages.into(), "PAGES", "")?;
    same("nic.rdma.cell_buffers", send.cell_buffers.into(), "CELL_BUFFERS", "")?;
    same("nic.host_port.outstanding_bursts", port.outstanding.into(), "OUTSTANDING", "")?;
    same("nic.rdma.cell_overhead", send.cell_overhead_cycles.into(), "OVERHEAD", " cycles")?;
    same("nic.rdma.repetitions", rdma.reliability.repetitions.into(), "REPETITIONS", "")?;
    let (block, cell) =
        (send.cut.block_bytes(Bytes::new(u64::MAX), 0), send.cut.cell_bytes(Bytes::new(u64::MAX), 0));
    same("nic.rdma.block", block.get(), "BLOCK", "")?;
    same("packet.payload", cell.get(), "CELL_BYTES", "")?;
    let same_time = |key, span: Span, parameter| {
        let why = format!("{key} of {span} is no whole number of cycles of nic.clock");
        let machine = cycles(&send.clock, span).ok_or_else(|| unfit(why, "take a time such as 4ms"))?;
        let rtl = library.parameter(NAME, parameter)?;
        let mend = send.clock.cycles(rtl).to_string();
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    same_time("nic.rdma.timeout", rdma.reliability.timeout, "TIMEOUT")?;
    same_time("nic.rdma.longest_timeout", rdma.reliability.longest, "LONGEST_TIMEOUT")?;
    for (key, machine, rtl) in [
        ("nic.rdma.write_channels", u64::from(send.write_channels), 32),
        ("nic.rdma.read_channels", send.read_channels.into(), 32),
        ("nic.rdma.descriptor", send.descriptor.get(), DESCRIPTOR * WORD),
        ("nic.rdma.outstanding_blocks", send.outstanding_blocks.into(), 2),
        ("nic.rdma.backoff", rdma.reliability.backoff.into(), 2),
        ("nic.segmentation.hardware_invocation", invocation.into(), 1),
        ("nic.host_port.word", port.word.get(), WORD),
        ("nic.host_port.burst_words", port.burst_words.into(), 16),
    ] {
        if machine != rtl {
            let cycles = if key.ends_with("invocation") { " cycles" } else { "" };
            let why = format!("{key} is {machine}, and {rtl} in the RTL");
            return Err(unfit(why, &format!("add --set '{key}={rtl}{cycles}'")));
        }
    }
    if parameters.iommu.faults != FaultModel::Off {
        let why = "the RTL has the addresses of pages that are not mapped from nobody".to_owned();
        return Err(unfit(why, "add --set nic.iommu.faults=off"));
    }
    if port.stores.is_some() {
        let why = "its pages are stored to by words of 16 bytes".to_owned();
        return Err(unfit(why, "use a machine whose port is so, such as exanest"));
    }
    Ok(())
}

impl SegmentationInStep {
    /// The send unit of an endpoint, after its reset.
    pub fn new(
        library: &Arc<RtlLibrary>,
        place: BlockPlace,
        cut: Cut,
    ) -> Result<SegmentationInStep, RtlError> {
        let rtl = library.create(NAME)?;
        let channels = library.parameter(NAME, "PAGES")? * PAGE_CHANNELS;
        let port = |name: &str, bits| rtl.port(name, bits);
        let ports = SegmentationPorts {
            reset: port("reset", 1)?,
            node: port("node", 22)?,
            store_valid: [port("s_axi_awvalid", 1)?, port("s_axi_wvalid", 1)?],
            store_ready: port("s_axi_awready", 1)?,
            store_address: port("s_axi_awaddr", 17)?,
            store_data: port("s_axi_wdata", 128)?,
            store_strobe: port("s_axi_wstrb", 16)?,
            store_last: port("s_axi_wlast", 1)?,
            store_answer_ready: port("s_axi_bready", 1)?,
            store_answer_valid: port("s_axi_bvalid", 1)?,
            store_answer: port("s_axi_bresp", 2)?,
            read_valid: port("m_axi_arvalid", 1)?,
            read_ready: port("m_axi_arready", 1)?,
            read_address: port("m_axi_araddr", 42)?,
            read_length: port("m_axi_arlen", 8)?,
            data_valid: port("m_axi_rvalid", 1)?,
            data: port("m_axi_rdata", 128)?,
            data_last: port("m_axi_rlast", 1)?,
            net_valid: port("m_axis_net_tvalid", 1)?,
            net_ready: port("m_axis_net_tready", 1)?,
            net_data: port("m_axis_net_tdata", 128)?,
            net_last: port("m_axis_net_tlast", 1)?,
            answer_valid: port("s_axis_net_tvalid", 1)?,
            answer_ready: port("s_axis_net_tready", 1)?,
            answer_data: port("s_axis_net_tdata", 128)?,
            answer_last: port("s_axis_net_tlast", 1)?,
        };
        let mut block = SegmentationInStep {
            place,
            rtl,
            ports,
            cut,
            cycle: 0,
            rests_from: 0,
            stores: VecDeque::new(),
            patient_stores: VecDeque::new(),
            reads: VecDeque::new(),
            data: VecDeque::new(),
            asked: 0,
            read: VecDeque::new(),
            sending: VecDeque::new(),
            answers: VecDeque::new(),
            transfers: BTreeMap::new(),
            running: 0,
        };
        block.reset(channels + 2);
        Ok(block)
    }

    /// Resets the RTL, before the run's first cycle.
    fn reset(&mut self, clearing: u64) {
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        rtl.set(ports.node, self.place.endpoint.0.into());
        rtl.set(ports.store_strobe, 0xFFFF);
        rtl.set(ports.store_last, 1);
        rtl.set(ports.store_answer_ready, 1);
        rtl.set(ports.read_ready, 1);
        rtl.set(ports.reset, 1);
        rtl.cycle();
        rtl.cycle();
        rtl.set(ports.reset, 0);
        (0..clearing).for_each(|_| rtl.cycle());
    }

    /// A process stores a descriptor.
    fn described(&mut self, stored: &StoredDescriptor) {
        let StoredDescriptor { channel, descriptor, came, .. } = *stored;
        // One that has waited for its channel is stored when that is free in the RTL as well.
        let waited = came > descriptor.posted;
        let behind = edge(&self.place.clock, came) + if waited { FREED_AFTER + DESCRIPTOR } else { 0 };
        let words = self
            .cell(stored, &first_cell(stored))
            .descriptor(whole_words(descriptor.source.address), descriptor.bytes);
        for (place, data) in words.into_iter().enumerate() {
            let cycle = (behind + place as u64).saturating_sub(DESCRIPTOR);
            let address = u32::from(channel.0) << 6 | (place as u32) << 4;
            self.stores.push_back(PageStore { cycle, address, data });
        }
        let blocks = self.cut.blocks(descriptor.bytes);
        let missing = (0..blocks).map(|block| stored.first.wrapping_add(block)).collect();
        self.running += 1;
        self.transfers.insert(channel.0, RunningTransfer { stored: *stored, missing });
    }

    /// A cell of a transfer.
    fn cell(&self, stored: &StoredDescriptor, cell: &Cell) -> CellMessage {
        let StoredDescriptor { descriptor, first, .. } = *stored;
        let block = cell.id.transaction.wrapping_sub(first);
        CellMessage {
            source: self.place.endpoint,
            to: descriptor.to,
            to_interface: descriptor.destination.space as u16,
            domain: descriptor.domain,
            address: cell.offset,
            message: descriptor.message,
            offset: cell.offset,
            bytes: cell.bytes,
            id: cell.id,
            first,
            ends_transfer: self.cut.ends_transfer(descriptor.bytes, block),
        }
    }

    /// The payload of a cell is read.
    fn read(&mut self, cell: &Cell, at: Time, ready: Time) {
        let clock = self.place.clock;
        let Some(running) = self.transfers.get(&cell.id.channel.0) else { return };
        let source = running.stored.descriptor.source;
        let of_rank = u64::from(source.space & 7) << 39 | whole_words(source.address).plus(cell.offset).get();
        let message = self.cell(&running.stored, cell);
        // A cell without payload reads a word all the same.
        let words = cell.bytes.get().div_ceil(WORD).max(1);
        let (from, behind) = (edge(&clock, at), edge(&clock, ready));
        let first = words.min((BORDER - of_rank % BORDER) / WORD);
        self.reads.push_back(BurstRead { from, address: of_rank, words: first });
        if first < words {
            let address = of_rank + first * WORD;
            self.reads.push_back(BurstRead { from, address, words: words - first });
        }
        for (place, data) in message.memory_words().into_iter().enumerate() {
            let place = place as u64;
            let cycle = (behind + place).saturating_sub(words);
            self.data.push_back(BusWord { cycle, data, last: place + 1 == first || place + 1 == words });
        }
        self.read.push_back(ReadCell { id: cell.id, ready: behind, words: message.words().into() });
    }

    /// The network takes a cell.
    fn sent(&mut self, id: CellId, at: Time) {
        let Some(place) = self.read.iter().position(|cell| cell.id == id) else { return };
        if let Some(cell) = self.read.remove(place) {
            self.sending.push_back(SentCell { from: edge(&self.place.clock, at), words: cell.words });
        }
    }

    /// An answer to a block comes.
    fn answered(&mut self, reply: &BlockReply, at: Time) {
        let BlockReply { from, id, answer, damaged } = *reply;
        let words = BlockAnswerWords { from, to: self.place.endpoint, id, answer };
        let behind = edge(&self.place.clock, at);
        let [header, footer] = words.words();
        let footer = footer ^ u128::from(damaged);
        let mut ends = false;
        if !damaged && let Some(RunningTransfer { missing, .. }) = self.transfers.get_mut(&id.channel.0) {
            let was_running = !missing.is_empty();
            match answer {
                Answer::Ack => {
                    missing.remove(&id.transaction);
                }
                Answer::Nack(Refusal::Protection) => missing.clear(),
                Answer::Nack(Refusal::NoContext | Refusal::PageFault) => {}
            }
            ends = was_running && missing.is_empty();
        }
        let header = BusWord { cycle: behind.saturating_sub(2), data: header, last: false };
        let footer = BusWord { cycle: behind.saturating_sub(1), data: footer, last: true };
        self.answers.push_back(AnswerWord { word: header, ends: false });
        self.answers.push_back(AnswerWord { word: footer, ends });
    }

    /// Compares what memory is asked for with what the model reads.
    fn compare_read(&mut self, cycle: u64) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        let due = self.reads.front().filter(|burst| burst.from <= cycle);
        if rtl.get(ports.read_valid) == 0 {
            let late = due.is_some_and(|burst| burst.from + READ_LATE <= cycle);
            return place.compare(cycle, "m_axi_arvalid", 0, late.into());
        }
        let Some(burst) = due else { return place.compare(cycle, "m_axi_arvalid", 1, 0) };
        place.compare(cycle, "m_axi_araddr", rtl.get(ports.read_address), burst.address.into())?;
        place.compare(cycle, "m_axi_arlen", rtl.get(ports.read_length) + 1, burst.words.into())?;
        self.asked += burst.words;
        self.reads.pop_front();
        Ok(())
    }

    /// Compares what the network is offered with what the model sends.
    fn compare_cell(&mut self, cycle: u64, ready: bool) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        let (valid, data, last) =
            (rtl.get(ports.net_valid), rtl.get(ports.net_data), rtl.get(ports.net_last));
        if !ready {
            let may_be_offered =
                !self.sending.is_empty() || self.read.front().is_some_and(|cell| cell.ready <= cycle);
            return place.compare(cycle, "m_axis_net_tvalid", (valid != 0 && !may_be_offered).into(), 0);
        }
        let Some(sending) = self.sending.front_mut() else { return Ok(()) };
        place.compare(cycle, "m_axis_net_tvalid", valid, 1)?;
        let expected = sending.words.pop_front().unwrap_or_default();
        place.compare(cycle, "m_axis_net_tdata", data, expected)?;
        place.compare(cycle, "m_axis_net_tlast", last, sending.words.is_empty().into())?;
        if sending.words.is_empty() {
            self.sending.pop_front();
        }
        Ok(())
    }
}

/// An address, rounded down to that of a word.
fn whole_words(address: Address) -> Address {
    Address::new(address.get() & !(WORD - 1))
}

/// A cell that stands for its transfer.
fn first_cell(stored: &StoredDescriptor) -> Cell {
    let StoredDescriptor { channel, descriptor, first, .. } = *stored;
    let id = CellId { channel, transaction: first, index: 0, last: false, attempt: 0 };
    Cell {
        to: descriptor.to,
        message: descriptor.message,
        bytes: Bytes::ZERO,
        id,
        offset: 0,
        watch: false,
        class: descriptor.class,
        repeated: false,
    }
}

impl BlockInStep for SegmentationInStep {
    fn take(&mut self, event: &PortEvent) {
        let at = event.at;
        match event.what {
            Crossing::Opened { interface, domain } => {
                // Interfaces beyond the pages have none.
                if u64::from(interface) * PAGE_CHANNELS < 1 << 10 {
                    let (cycle, address) = (edge(&self.place.clock, at), SYSTEM | u32::from(interface) << 12);
                    self.patient_stores.push_back(PageStore { cycle, address, data: domain.0.into() });
                }
            }
            Crossing::Described(stored) => self.described(&stored),
            Crossing::CellRead { cell, ready } => self.read(&cell, at, ready),
            Crossing::CellSent(id) => self.sent(id, at),
            Crossing::BlockAnswered(reply) => self.answered(&reply, at),
            _ => {}
        }
    }

    fn next_cycle(&self) -> Option<u64> {
        if self.running > 0 || self.cycle < self.rests_from {
            return Some(self.cycle);
        }
        let stores = [&self.stores, &self.patient_stores];
        let stores = stores.into_iter().filter_map(|stores| stores.front().map(|store| store.cycle));
        let answer = self.answers.front().map(|answer| answer.word.cycle);
        let read = self.reads.front().map(|burst| burst.from);
        let data = self.data.front().map(|word| word.cycle);
        let sending = self.sending.front().map(|sending| sending.from);
        let next = stores.chain(answer).chain(read).chain(data).chain(sending).min();
        next.map(|next| next.max(self.cycle))
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let due = |stores: &VecDeque<PageStore>| stores.front().copied().filter(|store| store.cycle <= cycle);
        let (urgent, patient) = (due(&self.stores), due(&self.patient_stores));
        let store = urgent.or(patient);
        let answer = self.answers.front().copied().filter(|answer| answer.word.cycle <= cycle);
        let word = self.data.front().copied().filter(|word| word.cycle <= cycle);
        // Memory cannot answer what it was not asked for.
        if word.is_some() && self.asked == 0 {
            return self.place.compare(cycle, "m_axi_arvalid", 0, 1);
        }
        let ready = self.sending.front().is_some_and(|sending| sending.from <= cycle);
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        if let Some(store) = store {
            rtl.set(ports.store_address, store.address.into());
            rtl.set(ports.store_data, store.data);
        }
        for port in ports.store_valid {
            rtl.set(port, store.is_some().into());
        }
        rtl.set(ports.data_valid, word.is_some().into());
        if let Some(word) = word {
            rtl.set(ports.data, word.data);
            rtl.set(ports.data_last, word.last.into());
        }
        rtl.set(ports.answer_valid, answer.is_some().into());
        if let Some(AnswerWord { word, .. }) = answer {
            rtl.set(ports.answer_data, word.data);
            rtl.set(ports.answer_last, word.last.into());
        }
        rtl.set(ports.net_ready, ready.into());
        rtl.cycle();
        self.cycle = cycle + 1;
        if store.is_some() || answer.is_some() || ready || word.is_some() {
            self.rests_from = cycle + REST;
        }
        if store.is_some() && rtl.get(ports.store_ready) != 0 {
            if urgent.is_some() {
                self.stores.pop_front()
            } else {
                self.patient_stores.pop_front()
            };
        }
        if word.is_some() {
            self.data.pop_front();
            self.asked -= 1;
        }
        if let Some(AnswerWord { ends, .. }) = answer
            && rtl.get(ports.answer_ready) != 0
        {
            self.answers.pop_front();
            // Its timers run until then.
            self.running = self.running.saturating_sub(ends.into());
        }
        if rtl.get(ports.store_answer_valid) != 0 {
            // A descriptor that goes into a channel that is not free.
            self.place.compare(cycle, "s_axi_bresp", rtl.get(ports.store_answer), 0)?;
        }
        self.compare_read(cycle)?;
        self.compare_cell(cycle, ready)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}
