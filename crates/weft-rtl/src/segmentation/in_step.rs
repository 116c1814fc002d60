//! The send unit of the RDMA engine in step with its model.
//!
//! The last store of a descriptor is on the bus in the cycle that ends with the edge at which the agent
//! takes it in the model, and so is the footer of an answer: of two that come within one cycle, one is a
//! cycle later. Memory answers when the model's does: the last word of a cell is on the bus in the cycle
//! that ends with the edge at which the cell is whole, and over 512 bits in the one before. Its read has to
//! be asked for before that, to the byte, and no earlier than the model asks. The network takes a cell in the
//! cycle in which the model's does. Whose turn it is: see [`CellTurns`].
//!
//! # Not modelled
//! Destination addresses: the model's descriptors have none, and here a transfer goes to the address 0.

use super::ports::SegmentationPorts;
use super::requests::RequestsInStep;
use super::turns::{AskedBurst, CellTurns};
use super::{DESCRIPTOR, NAME, PAGE_CHANNELS, WORD, check, cut};
use crate::beats::{Beat, beats};
use crate::block::BlockInStep;
use crate::cells::{BlockAnswerWords, CellMessage};
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::ports::reset;
use crate::words::edge;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::ports::{BlockReply, Crossing, PortEvent, StoredDescriptor};
use weft_nic::rdma::{Answer, Cell, CellId, Refusal};
use weft_nic::segmentation::Cut;
use weft_units::{Address, Bytes, Time};

/// The bit of a channel's number that those for reads have.
const READ_CHANNEL: u16 = 1 << 5;
/// Registers of the system behind the pages of processes.
const SYSTEM: u32 = 1 << 16;
/// Cycles after which the block is at rest, where nothing comes and no answer is awaited.
const REST: u64 = 64;

/// A word that is stored in a cycle, or later.
#[derive(Clone, Copy)]
struct PageStore {
    cycle: u64,
    address: u32,
    data: u128,
}

/// A beat of an answer to a block.
#[derive(Clone, Copy)]
struct AnswerBeat {
    beat: Beat,
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
    /// Words of the buses.
    lanes: usize,
    cut: Cut,
    /// The next cycle.
    cycle: u64,
    rests_from: u64,
    stores: VecDeque<PageStore>,
    /// Stores that may come later than they are due.
    patient_stores: VecDeque<PageStore>,
    turns: CellTurns,
    answers: VecDeque<AnswerBeat>,
    transfers: BTreeMap<u16, RunningTransfer>,
    requests: RequestsInStep,
    /// Transfers of the RTL that are under way.
    running: u32,
}

impl SegmentationInStep {
    /// An address, rounded down to that of a word of memory's bus.
    fn whole_words(&self, address: Address) -> Address {
        Address::new(address.get() & !(WORD * self.lanes as u64 - 1))
    }

    /// A process stores a descriptor, or a request has brought it.
    fn described(&mut self, stored: &StoredDescriptor) {
        let StoredDescriptor { channel, descriptor, came, .. } = *stored;
        let behind = edge(&self.place.clock, came);
        let words = self
            .cell(stored, &first_cell(stored))
            .descriptor(self.whole_words(descriptor.source.address), descriptor.bytes);
        if channel.0 & READ_CHANNEL != 0 {
            self.requests.described(&self.place, words);
        } else {
            for (place, &data) in words.iter().enumerate() {
                // A cycle is left for the descriptor of a request, for which the words in front may wait.
                let early = if place + 1 < words.len() { DESCRIPTOR + 1 } else { DESCRIPTOR };
                let cycle = (behind + place as u64).saturating_sub(early);
                let address = u32::from(channel.0) << 6 | (place as u32) << 4;
                self.stores.push_back(PageStore { cycle, address, data });
            }
        }
        let blocks = self.cut.blocks(descriptor.bytes);
        let missing = (0..blocks).map(|block| stored.first.wrapping_add(block)).collect();
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
        let address =
            u64::from(source.space & 7) << 39 | self.whole_words(source.address).plus(cell.offset).get();
        let message = self.cell(&running.stored, cell);
        self.turns.read(&message, address, (edge(&clock, at), edge(&clock, ready)));
    }

    /// An answer to a block comes.
    fn answered(&mut self, reply: &BlockReply, at: Time) {
        let BlockReply { from, id, answer, taken } = *reply;
        let words = BlockAnswerWords { from, to: self.place.endpoint, id, answer };
        let (damaged, behind) = (taken.is_none(), edge(&self.place.clock, taken.unwrap_or(at)));
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
        let beats = beats(&[header, footer], self.lanes, behind.saturating_sub(2), behind);
        self.answers.extend(beats.into_iter().map(|beat| AnswerBeat { beat, ends: ends && beat.last }));
    }
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
    fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
        check(library, parameters)
    }

    fn begin(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<SegmentationInStep, RtlError> {
        let mut rtl = library.create(NAME)?;
        let bus = library.parameter(NAME, "DATA_WIDTH")? as u32;
        let (ports, lanes) = (SegmentationPorts::begin(&mut rtl, bus)?, (bus / u128::BITS) as usize);
        let channels = library.parameter(NAME, "PAGES")? * PAGE_CHANNELS;
        reset(&mut rtl, place.endpoint, channels + 2)?;
        Ok(SegmentationInStep {
            place,
            rtl,
            ports,
            lanes,
            cut: cut(library)?,
            cycle: 0,
            rests_from: 0,
            stores: VecDeque::new(),
            patient_stores: VecDeque::new(),
            turns: CellTurns::new(library.parameter(NAME, "OUTSTANDING")?, lanes),
            answers: VecDeque::new(),
            transfers: BTreeMap::new(),
            requests: RequestsInStep::new(lanes),
            running: 0,
        })
    }

    /// The send unit may do what its model does some turns later, and cells come to the receive unit so.
    fn behind() -> u64 {
        1024
    }

    fn take(&mut self, event: &PortEvent) {
        let at = event.at;
        match event.what {
            // Interfaces beyond the pages have none.
            Crossing::Opened { interface, domain } if u64::from(interface) * PAGE_CHANNELS < 1 << 10 => {
                let (cycle, address) = (edge(&self.place.clock, at), SYSTEM | u32::from(interface) << 12);
                self.patient_stores.push_back(PageStore { cycle, address, data: domain.0.into() });
            }
            Crossing::RequestArrived { tail, arrival } => self.requests.arrived(&self.place, tail, &arrival),
            Crossing::Described(stored) => self.described(&stored),
            Crossing::CellRead { cell, ready } => self.read(&cell, at, ready),
            Crossing::CellSent(_) => self.turns.sent(edge(&self.place.clock, at)),
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
        let answer = self.answers.front().map(|answer| answer.beat.cycle);
        let answer = answer.into_iter().chain(self.requests.next_cycle());
        let next = stores.chain(answer).chain(self.turns.next_cycle()).min();
        next.map(|next| next.max(self.cycle))
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let due = |stores: &VecDeque<PageStore>| stores.front().copied().filter(|store| store.cycle <= cycle);
        let (urgent, patient) = (due(&self.stores), due(&self.patient_stores));
        let store = urgent.or(patient);
        let answer = self.answers.front().copied().filter(|answer| answer.beat.cycle <= cycle);
        let (data, ready) = (self.turns.beat(cycle), self.turns.takes(cycle));
        let request = self.requests.beat(cycle);
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        ports.pages.store(rtl, store.map(|store| (store.address, store.data)));
        rtl.set(ports.data_valid, data.is_some().into());
        if let Some(data) = data {
            ports.data.set(rtl, &data.words);
            rtl.set(ports.data_last, data.last.into());
        }
        ports.answers.offer(rtl, answer.as_ref().map(|answer| &answer.beat));
        ports.requests.offer(rtl, request.as_ref().map(|request| &request.beat));
        ports.request_answers.set_ready(rtl, true);
        ports.cells.set_ready(rtl, ready);
        rtl.cycle();
        self.cycle = cycle + 1;
        if store.is_some() || answer.is_some() || ready || data.is_some() || request.is_some() {
            self.rests_from = cycle + REST;
        }
        if let Some(store) = store
            && ports.pages.is_ready(rtl)
        {
            // Its last word starts a transfer.
            let starts = store.address & SYSTEM == 0 && store.address >> 4 & 3 == 3;
            self.running += u32::from(starts);
            if urgent.is_some() {
                self.stores.pop_front()
            } else {
                self.patient_stores.pop_front()
            };
        }
        if data.is_some() {
            self.turns.take_beat();
        }
        if let Some(AnswerBeat { ends, .. }) = answer
            && ports.answers.is_ready(rtl)
        {
            self.answers.pop_front();
            // Its timers run until then.
            self.running = self.running.saturating_sub(ends.into());
        }
        if let Some(request) = request
            && ports.requests.is_ready(rtl)
        {
            self.requests.take_beat();
            self.running += u32::from(request.starts);
        }
        self.requests.compare(&self.place, cycle, &ports.request_answers.offered(rtl))?;
        if rtl.get(ports.store_answer_valid) != 0 {
            // A descriptor that goes into a channel that is not free.
            self.place.compare(cycle, "s_axi_bresp", rtl.get(ports.store_answer), 0)?;
        }
        let asked = AskedBurst {
            valid: rtl.get(ports.read_valid),
            address: rtl.get(ports.read_address),
            beats: rtl.get(ports.read_length) + 1,
        };
        let sent = ports.cells.offered(rtl);
        self.turns.compare_read(&self.place, cycle, &asked)?;
        self.turns.compare_cell(&self.place, cycle, &sent)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}
