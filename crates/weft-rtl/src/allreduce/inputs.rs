//! The inputs of the RTL of the accelerator, cycle by cycle.
//!
//! A packet's words are on the bus in a row, the footer in the cycle that ends with the edge of its tail. So
//! is the last word of the vector that a module fetches, and the last of a lookup in the cycle that ends with
//! the edge from which on the packet is due. The network takes a packet in the cycle in which the model's
//! does.

use super::NAME;
use super::ports::{AllreduceOutputs, AllreducePorts};
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::ports::reset;
use crate::words::BusWord;
use std::collections::VecDeque;
use std::sync::Arc;
use weft_nic::allreduce::{DataType, Operation, OperationId};
use weft_nic::ports::ProgrammedModule;
use weft_units::EndpointId;

/// Where vector and table are in memory, and the word that tells software.
const VECTOR_AT: u64 = 0x20_0000_0000;
pub(super) const TABLE_AT: u64 = 0x21_0000_0000;
pub(super) const WORD_AT: u64 = 0x22_0000_0000;
/// Registers, and those that software writes last and that the system writes.
const REGISTERS: [u32; 5] = [0, 8, 16, 24, START];
const START: u32 = 32;
const NOTIFY: u32 = 4096;
/// Cycles in which the RTL forgets past operations, behind its reset.
const CLEARING: u64 = 66;
/// Cycles after which the block is at rest, where nothing comes and nothing is under way.
const REST: u64 = 64;

/// A register that is written in a cycle, or later.
#[derive(Clone, Copy)]
struct RegisterWrite {
    cycle: u64,
    address: u32,
    value: u64,
}

/// A word that memory answers.
#[derive(Clone, Copy)]
struct ReadWord {
    cycle: u64,
    is_table: bool,
    data: u128,
    last: bool,
}

/// The answer to a write.
#[derive(Clone, Copy)]
struct WriteAnswer {
    cycle: u64,
    /// Whether it is of the word that tells software.
    is_word: bool,
}

/// The words that network and memory take in a cycle.
#[derive(Clone, Copy)]
pub(super) struct Takes {
    pub packet: bool,
    pub write: bool,
}

/// The inputs that are to come.
#[derive(Default)]
pub(super) struct AllreduceInputs {
    /// The next cycle.
    pub cycle: u64,
    rests_from: u64,
    registers: VecDeque<RegisterWrite>,
    coming: VecDeque<BusWord>,
    reads: VecDeque<ReadWord>,
    answers: VecDeque<WriteAnswer>,
}

/// The RTL of the accelerator of an endpoint, after its reset.
pub(super) fn begin(
    library: &Arc<RtlLibrary>,
    endpoint: EndpointId,
) -> Result<(Instance, AllreducePorts), RtlError> {
    let mut rtl = library.create(NAME)?;
    let ports = AllreducePorts::begin(&mut rtl)?;
    reset(&mut rtl, endpoint, CLEARING)?;
    ports.registers.store(&mut rtl, Some((NOTIFY, WORD_AT)));
    rtl.cycle();
    ports.registers.store(&mut rtl, None);
    Ok((rtl, ports))
}

impl AllreduceInputs {
    /// Software programs an operation: its last store is on the bus in the cycle before `behind`.
    pub fn program(&mut self, module: &ProgrammedModule, behind: u64) {
        let ProgrammedModule { id, ranks, own, bytes, operation, data_type, .. } = *module;
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
        let first = behind.saturating_sub(REGISTERS.len() as u64);
        for (place, (address, value)) in (0..).zip(REGISTERS.into_iter().zip(values)) {
            self.registers.push_back(RegisterWrite { cycle: first + place, address, value });
        }
    }

    /// Memory answers the request for the vector: its last word is on the bus in the cycle before `behind`.
    pub fn fetch(&mut self, vector: &[u8], behind: u64) {
        let words = memory_words(vector);
        let count = words.len() as u64;
        for (place, data) in (0..).zip(words) {
            let cycle = (behind + place).saturating_sub(count);
            self.reads.push_back(ReadWord { cycle, is_table: false, data, last: place + 1 == count });
        }
    }

    /// Memory answers a lookup: its last word is on the bus in the cycle before `behind`.
    pub fn look_up(&mut self, members: &[EndpointId; 4], behind: u64) {
        let pair = |member: usize| u128::from(members[member].0) | (member as u128) << 32;
        for (place, cycle) in [(0, 2), (1, 1)] {
            let data = pair(2 * place) | pair(2 * place + 1) << 64;
            let cycle = behind.saturating_sub(cycle);
            self.reads.push_back(ReadWord { cycle, is_table: true, data, last: place == 1 });
        }
    }

    /// A packet comes: its footer is on the bus in the cycle before `behind`.
    pub fn packet(&mut self, words: Vec<u128>, behind: u64) {
        let count = words.len() as u64;
        for (place, data) in (0..).zip(words) {
            let cycle = (behind + place).saturating_sub(count);
            self.coming.push_back(BusWord { cycle, data, last: place + 1 == count });
        }
    }

    /// Memory answers a write in a cycle: of the word that tells software, or of the result.
    pub fn answer_write(&mut self, cycle: u64, is_word: bool) {
        self.answers.push_back(WriteAnswer { cycle, is_word });
    }

    /// The next cycle in which something comes, or has come so lately that it may have consequences.
    pub fn next_cycle(&self) -> Option<u64> {
        if self.cycle < self.rests_from {
            return Some(self.cycle);
        }
        let next = [
            self.registers.front().map(|write| write.cycle),
            self.coming.front().map(|word| word.cycle),
            self.reads.front().map(|read| read.cycle),
            self.answers.front().map(|answer| answer.cycle),
        ];
        Some(next.into_iter().flatten().min()?.max(self.cycle))
    }

    /// A cycle of the RTL.
    pub fn step(
        &mut self,
        rtl: &mut Instance,
        ports: &AllreducePorts,
        cycle: u64,
        takes: Takes,
    ) -> AllreduceOutputs {
        let register = self.registers.front().copied().filter(|write| write.cycle <= cycle);
        ports.registers.store(rtl, register.map(|write| (write.address, write.value)));
        let word = self.coming.front().copied().filter(|word| word.cycle <= cycle);
        ports.coming.offer(rtl, word);
        let place = self.reads.iter().position(|read| read.cycle <= cycle);
        let read = place.map(|place| (place, self.reads[place]));
        rtl.set(ports.r_valid, read.is_some().into());
        if let Some((_, read)) = read {
            rtl.set(ports.r_id, read.is_table.into());
            rtl.set(ports.r_data, read.data);
            rtl.set(ports.r_last, read.last.into());
        }
        let answer = self.answers.front().copied().filter(|answer| answer.cycle <= cycle);
        rtl.set(ports.b_valid, answer.is_some().into());
        rtl.set(ports.b_id, answer.is_some_and(|answer| answer.is_word).into());
        ports.going.set_ready(rtl, takes.packet);
        rtl.set(ports.w_ready, takes.write.into());
        rtl.cycle();
        self.cycle = cycle + 1;
        if register.is_some() || word.is_some() || read.is_some() || answer.is_some() || takes.packet {
            self.rests_from = cycle + REST;
        }
        let is_written = register.is_some() && ports.registers.is_ready(rtl);
        if is_written {
            self.registers.pop_front();
        }
        if word.is_some() && ports.coming.is_ready(rtl) {
            self.coming.pop_front();
        }
        if let Some((place, _)) = read
            && rtl.get(ports.r_ready) != 0
        {
            self.reads.remove(place);
        }
        if answer.is_some() {
            self.answers.pop_front();
        }
        let started = is_written && register.is_some_and(|write| write.address == START);
        ports.outputs(rtl, started)
    }
}

/// The address of the vector of an operation.
pub(super) fn vector_at(id: OperationId) -> u64 {
    VECTOR_AT + (u64::from(id.sequence) % 256 * 16 + u64::from(id.block) % 16) * super::VECTOR
}

/// A vector as words of memory.
pub(super) fn memory_words(vector: &[u8]) -> Vec<u128> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 16];
        word[..chunk.len()].copy_from_slice(chunk);
        u128::from_le_bytes(word)
    };
    vector.chunks(16).map(word).collect()
}
