//! The accelerator in step with its model.
//!
//! Compared, with their edges: the requests for vector and table, vectors that are sent, the result that is
//! written, and the word that tells software. Questions for lost packets, and answers to them, come at once
//! in the model and some cycles later in the RTL.

use super::inputs::{AllreduceInputs, TABLE_AT, Takes, WORD_AT, begin, memory_words, vector_at};
use super::packets::{Outgoing, words_of};
use super::ports::{AllreduceOutputs, AllreducePorts};
use super::vectors::Vectors;
use super::{BOARD, check};
use crate::block::BlockInStep;
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::words::edge;
use std::collections::VecDeque;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::allreduce::{ModulePacketKind, OperationId};
use weft_nic::ports::{Crossing, ModuleCrossing, PacketOfModule, PortEvent, ResultWrite};
use weft_units::{EndpointId, Time};

/// Cycles from the edge of a footer to the request to write the result, of a client: look-up, and the state.
const CLIENT_BEHIND_TAIL: u64 = 2;
/// Cycles by which questions, answers and the word of a failure may be behind the model.
pub(super) const MOST_LATE: u64 = 64;
/// Words of the table that a lookup reads: the pairs of a board.
const TABLE_WORDS: u64 = 2;
/// Cycles from the request of a lookup that the model has none of to the answer to it.
const LATE_LOOKUP: u64 = 3;

/// A request to read: what the RTL is to ask for in a cycle.
struct ReadRequest {
    cycle: u64,
    is_table: bool,
    address: u64,
    words: u64,
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
    inputs: AllreduceInputs,
    requests: VecDeque<ReadRequest>,
    /// Lookups for questions, which come some time up to a cycle.
    late_lookups: VecDeque<u64>,
    outgoing: Outgoing,
    writes: VecDeque<Write>,
    vectors: Vectors,
    /// Operations that have begun, and of which software has not been told.
    running: u32,
    is_server: bool,
}

impl AllreduceInStep {
    fn edge(&self, time: Time) -> u64 {
        edge(&self.place.clock, time)
    }

    /// A packet will be due, and its receiver is looked up from some time on.
    fn made(&mut self, packet: &PacketOfModule, values: Option<&[u8]>, from: Time, due: Time) {
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
            let address = TABLE_AT + 32 * u64::from(board.number);
            let cycle = self.edge(from);
            self.requests.push_back(ReadRequest { cycle, is_table: true, address, words: TABLE_WORDS });
            self.inputs.look_up(&board.members, due_cycle);
        }
        let vector = self.vectors.sent(packet, values);
        let words = words_of(packet, (self.place.endpoint, packet.other), &vector);
        self.outgoing.made(due, due_cycle, is_late, words);
    }

    /// The tail of a packet has come.
    fn arrived(&mut self, packet: &PacketOfModule, values: Option<&[u8]>, damaged: bool, at: Time) {
        let vector = self.vectors.came(packet, values);
        let mut words = words_of(packet, (packet.other, self.place.endpoint), &vector);
        if damaged && let Some(footer) = words.last_mut() {
            *footer ^= 1;
        }
        self.inputs.packet(words, self.edge(at));
    }

    /// The result is to be written.
    fn written(&mut self, write: &ResultWrite, result: &[u8]) {
        let ResultWrite { id, ready, issued, written } = *write;
        let words = memory_words(result);
        let from = self.edge(ready) + if self.is_server { 0 } else { CLIENT_BEHIND_TAIL };
        let taken_from = self.edge(issued).saturating_sub(words.len() as u64).max(from);
        let strobes = result.chunks(16).map(|chunk| (u32::from(u16::MAX) >> (16 - chunk.len())) as u16);
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

    /// The word that tells software is to come: in a cycle, or some time up to it.
    fn tell(&mut self, from: u64, is_late: bool, word: u128) {
        self.writes.push_front(Write {
            from,
            is_late,
            taken_from: 0,
            written: 0,
            address: WORD_AT,
            has_address: false,
            words: VecDeque::from([(word, 0xFFFF)]),
            behind: None,
        });
    }

    fn compare_requests(&mut self, cycle: u64, outputs: &AllreduceOutputs) -> Result<(), Difference> {
        let AllreduceOutputs { ar_valid, ar_id, ar_address, ar_length, .. } = *outputs;
        let place = &self.place;
        if let Some(request) = self.requests.front().filter(|request| request.cycle <= cycle) {
            place.compare(cycle, "m_axi_arvalid", ar_valid, 1)?;
            place.compare(cycle, "m_axi_arid", ar_id, request.is_table.into())?;
            place.compare(cycle, "m_axi_araddr", ar_address, request.address.into())?;
            place.compare(cycle, "m_axi_arlen", ar_length, (request.words - 1).into())?;
            self.requests.pop_front();
            return Ok(());
        }
        if ar_valid != 0 {
            let is_in_time = |by: &u64| (*by - MOST_LATE..=*by).contains(&cycle);
            let may_ask = ar_id != 0 && self.late_lookups.front().is_some_and(is_in_time);
            place.compare(cycle, "m_axi_arvalid", 1, may_ask.into())?;
            self.late_lookups.pop_front();
            place.compare(cycle, "m_axi_arlen", ar_length, (TABLE_WORDS - 1).into())?;
            let members = self.vectors.own_board();
            self.inputs.look_up(&members, cycle + LATE_LOOKUP);
        }
        let is_missing = self.late_lookups.front().is_some_and(|by| *by < cycle);
        place.compare(cycle, "m_axi_arvalid", 0, is_missing.into())
    }

    fn compare_writes(&mut self, cycle: u64, outputs: &AllreduceOutputs) -> Result<(), Difference> {
        let AllreduceOutputs { aw_valid, aw_address, w_valid, .. } = *outputs;
        let place = &self.place;
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
            place.compare(cycle, "m_axi_awaddr", aw_address, write.address.into())?;
            place.compare(cycle, "m_axi_awlen", outputs.aw_length + 1, write.words.len() as u128)?;
            write.has_address = true;
        }
        if w_valid == 0 || cycle < write.taken_from {
            return Ok(());
        }
        if let Some((data, strobe)) = write.words.pop_front() {
            place.compare(cycle, "m_axi_wdata", outputs.w_data, data)?;
            place.compare(cycle, "m_axi_wstrb", outputs.w_strobe, strobe.into())?;
            place.compare(cycle, "m_axi_wlast", outputs.w_last, write.words.is_empty().into())?;
        }
        if !write.words.is_empty() {
            return Ok(());
        }
        let Some(write) = self.writes.pop_front() else { return Ok(()) };
        match write.behind {
            // The word is on the bus in the cycle behind the answer.
            Some(word) => {
                let answered = write.written.saturating_sub(1).max(cycle + 1);
                self.inputs.answer_write(answered, false);
                self.tell(answered + 1, false, word);
            }
            None => {
                self.inputs.answer_write(cycle + 1, true);
                self.running = self.running.saturating_sub(1);
            }
        }
        Ok(())
    }
}

/// The word that tells software that an operation is done, or because of whom it has failed.
fn told(id: OperationId, failed: Option<EndpointId>) -> u128 {
    let status = failed.map_or(1, |other| 2 | u128::from(other.0) << 8);
    u128::from(id.group) | u128::from(id.sequence) << 32 | u128::from(id.block) << 64 | status << 88
}

impl BlockInStep for AllreduceInStep {
    fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
        check(library, parameters)
    }

    fn begin(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<AllreduceInStep, RtlError> {
        let (rtl, ports) = begin(library, place.endpoint)?;
        Ok(AllreduceInStep {
            place,
            rtl,
            ports,
            inputs: AllreduceInputs::default(),
            requests: VecDeque::new(),
            late_lookups: VecDeque::new(),
            outgoing: Outgoing::default(),
            writes: VecDeque::new(),
            vectors: Vectors::new(place.endpoint),
            running: 0,
            is_server: place.endpoint.0.is_multiple_of(BOARD),
        })
    }

    fn take(&mut self, event: &PortEvent) {
        let Crossing::Module(crossing) = &event.what else { return };
        let now = self.edge(event.at);
        match crossing {
            ModuleCrossing::Programmed { module, fetched, values } => {
                self.inputs.program(module, now);
                let vector = self.vectors.program(module, values.as_deref());
                let (address, words) = (vector_at(module.id), memory_words(&vector).len() as u64);
                self.requests.push_back(ReadRequest { cycle: now, is_table: false, address, words });
                self.inputs.fetch(&vector, self.edge(*fetched));
            }
            ModuleCrossing::Made { packet, from, due, values } => {
                self.made(packet, values.as_deref(), *from, *due);
            }
            ModuleCrossing::Sent(_) => self.outgoing.sent(now),
            ModuleCrossing::Arrived { packet, damaged, values } => {
                self.arrived(packet, values.as_deref(), *damaged, event.at);
            }
            ModuleCrossing::Written { write, values } => {
                let result = self.vectors.result(write.id, values.as_deref());
                self.written(write, &result);
            }
            ModuleCrossing::Failed { id, other } => self.tell(now + MOST_LATE, true, told(*id, Some(*other))),
        }
    }

    fn next_cycle(&self) -> Option<u64> {
        if self.running > 0 {
            return Some(self.inputs.cycle);
        }
        let sends = self.outgoing.next_cycle().map(|cycle| cycle.max(self.inputs.cycle));
        self.inputs.next_cycle().into_iter().chain(sends).min()
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let takes = Takes {
            packet: self.outgoing.is_ready(cycle),
            write: self.writes.front().is_some_and(|write| write.taken_from <= cycle),
        };
        let outputs = self.inputs.step(&mut self.rtl, &self.ports, cycle, takes);
        self.running += u32::from(outputs.started);
        self.compare_requests(cycle, &outputs)?;
        self.outgoing.compare(&self.place, cycle, &outputs.offered)?;
        self.compare_writes(cycle, &outputs)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}
