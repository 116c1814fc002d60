//! Real bytes: what the packets of messages carry, the memory that they are written to, and the comparison of
//! both when a message is whole.
//!
//! ```text
//!  source memory = stream(seed, source, message)         target memory: a buffer per message
//!        │ read at an address by the send unit                  ▲ written at an address by the receive unit
//!        └────────── packet, which says where it was read ──────┘      whole? compare, byte by byte
//! ```
//! Nobody stores what a source has in memory: any byte of it can be computed. A cell says where at its source
//! it was read, the receive unit decides by itself where it goes: what either gets wrong ends up in the
//! target's memory and is found. A buffer begins as the complement of what is to come, so that a byte that
//! nobody writes is wrong for certain. A packet that a link has damaged carries damaged bytes.
//!
//! It costs no virtual time and changes no decision: a run with data comes to the same results.
//!
//! # Not modelled
//! Programs that send what they have received: every message has bytes of its own.

use crate::allreduce::{AllreduceRequest, ModulePacketKind, OperationId, reference};
use crate::rdma::CellId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_units::{Bytes, EndpointId};

/// An error in the bytes of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum DataFault {
    /// Source and target memory do not agree.
    #[error("byte {byte} of {bytes} is {found:#04x} in the target's memory and should be {expected:#04x}")]
    Differs {
        /// The first that is wrong.
        byte: u64,
        /// Of so many.
        bytes: u64,
        /// The byte at the source.
        expected: u8,
        /// The byte at the target.
        found: u8,
    },
    /// Bytes were written beside the buffer.
    #[error("bytes {begin} to {end} were written to its buffer of {bytes}")]
    Outside {
        /// The first.
        begin: u64,
        /// Behind the last.
        end: u64,
        /// Of the buffer.
        bytes: u64,
    },
    /// Bytes were written to a buffer that had been handed over, or given up.
    #[error("byte {byte} was written after its end")]
    Late {
        /// The first.
        byte: u64,
    },
    /// A packet was written that does not say where it was read.
    #[error("byte {byte} was written from a packet that nobody sent")]
    Unread {
        /// The first.
        byte: u64,
    },
}

/// A message whose bytes are wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("message {message} of endpoint {source_endpoint} to endpoint {destination}: {fault}")]
pub struct DataError {
    /// The endpoint that sent the message.
    pub source_endpoint: EndpointId,
    /// The number of the message, counted by the source.
    pub message: u32,
    /// The endpoint that received the message.
    pub destination: EndpointId,
    /// The error.
    pub fault: DataFault,
}

/// A part of a vector that travels beside a packet of the accelerator: [`Words::SIZE`] bytes at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Words {
    /// The number of the operation among those of its group, which the message of its packets says.
    pub sequence: u32,
    /// The block of the operation.
    pub block: u32,
    /// The step of the operation.
    pub step: ModulePacketKind,
    /// Which part of the vector.
    pub part: u16,
    /// The number of bytes that count.
    pub bytes: u8,
    /// The bytes.
    pub words: [u8; Words::SIZE],
}

impl Words {
    /// Bytes of a part: it travels as a field of a header.
    pub const SIZE: usize = 8;

    /// A vector, part by part; one without bytes has none.
    pub fn of(id: OperationId, step: ModulePacketKind, vector: &[u8]) -> impl Iterator<Item = Words> {
        let OperationId { sequence, block, .. } = id;
        (0u16..).zip(vector.chunks(Words::SIZE)).map(move |(part, chunk)| {
            let mut words = [0; Words::SIZE];
            words[..chunk.len()].copy_from_slice(chunk);
            Words { sequence, block, step, part, bytes: chunk.len() as u8, words }
        })
    }
}

/// The memory of a host, as far as messages reach it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Memory {
    seed: u64,
    /// By source and message: the buffer of a message that has not come whole.
    buffers: BTreeMap<(EndpointId, u32), Buffer>,
    /// The addresses at which cells under way were read, by source and message.
    read: BTreeMap<(EndpointId, u32), BTreeMap<CellId, u64>>,
    /// Vectors beside packets of the accelerator.
    vectors: BTreeMap<(OperationId, ModulePacketKind, EndpointId), Vec<u8>>,
    /// Reductions that the host waits for, by token, with their numbers.
    reductions: BTreeMap<u32, (u32, AllreduceRequest)>,
}

/// The memory that a message goes to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Buffer {
    bytes: u64,
    /// The content; empty until the first write.
    content: Vec<u8>,
    /// The error of a write.
    fault: Option<DataFault>,
}

/// Where a stream begins: scattered, so that streams of neighbours have nothing in common.
fn stream(seed: u64, parts: [u64; 3]) -> u64 {
    parts.iter().fold(scatter(seed), |key, part| scatter(key ^ scatter(part.wrapping_add(key))))
}

/// The finalizer of SplitMix64.
fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The bytes of a message of `source`, by its number there, in a run with this seed.
pub fn message_bytes(seed: u64, source: EndpointId, message: u32, count: Bytes) -> impl Iterator<Item = u8> {
    bytes(stream_of(seed, source, message), 0, count.get())
}

fn stream_of(seed: u64, source: EndpointId, message: u32) -> u64 {
    stream(seed, [0, source.0.into(), message.into()])
}

/// `count` bytes of a stream, from byte `begin` on: any of them without those before.
fn bytes(stream: u64, begin: u64, count: u64) -> impl Iterator<Item = u8> {
    let mut word = (u64::MAX, [0; 8]);
    (begin..begin.saturating_add(count)).map(move |place| {
        if word.0 != place / 8 {
            word = (place / 8, scatter(stream.wrapping_add(place / 8)).to_le_bytes());
        }
        word.1[(place % 8) as usize]
    })
}

impl Memory {
    /// Of a host that takes part in a run with this seed.
    pub fn new(seed: u64) -> Memory {
        Memory {
            seed,
            buffers: BTreeMap::new(),
            read: BTreeMap::new(),
            vectors: BTreeMap::new(),
            reductions: BTreeMap::new(),
        }
    }

    fn of_message(&self, source: EndpointId, message: u32) -> u64 {
        stream_of(self.seed, source, message)
    }

    /// A message is going to come.
    pub fn expect(&mut self, source: EndpointId, message: u32, bytes: Bytes) {
        let buffer = Buffer { bytes: bytes.get(), content: Vec::new(), fault: None };
        self.buffers.insert((source, message), buffer);
    }

    /// A message is not going to come any more.
    pub fn forget(&mut self, source: EndpointId, message: u32) {
        self.buffers.remove(&(source, message));
        self.read.remove(&(source, message));
    }

    /// A cell is under way whose source has read it at `address` of what it sends.
    pub fn cell_read(&mut self, source: EndpointId, message: u32, cell: CellId, address: u64) {
        self.read.entry((source, message)).or_default().insert(cell, address);
    }

    /// A cell of `count` bytes is written at `address` of where the message goes.
    pub fn write_cell(
        &mut self,
        (source, message, cell): (EndpointId, u32, CellId),
        address: u64,
        count: u64,
        damaged: bool,
    ) {
        let read = self.read.get(&(source, message)).and_then(|cells| cells.get(&cell));
        match read.copied() {
            Some(from) => self.write((source, message), (from, address), count, damaged),
            None => self.note((source, message), DataFault::Unread { byte: address }),
        }
    }

    /// `count` bytes of a message that its source has read at `from` are written at `to`.
    pub fn write(
        &mut self,
        (source, message): (EndpointId, u32),
        (from, to): (u64, u64),
        count: u64,
        damaged: bool,
    ) {
        let stream = self.of_message(source, message);
        let Some(buffer) = self.buffers.get_mut(&(source, message)) else {
            return self.note((source, message), DataFault::Late { byte: to });
        };
        let end = to.saturating_add(count);
        if end > buffer.bytes {
            let fault = DataFault::Outside { begin: to, end, bytes: buffer.bytes };
            return self.note((source, message), fault);
        }
        if buffer.content.is_empty() {
            buffer.content = bytes(stream, 0, buffer.bytes).map(|byte| !byte).collect();
        }
        let carried = bytes(stream, from, count).enumerate();
        let place = to as usize..end as usize;
        for (target, (nth, byte)) in buffer.content[place].iter_mut().zip(carried) {
            *target = if damaged && nth == 0 { byte ^ 0x10 } else { byte };
        }
    }

    /// Something is wrong with a message; what is found first stays. One without a buffer gets one again, so
    /// that it is found.
    fn note(&mut self, message: (EndpointId, u32), fault: DataFault) {
        let gone = || Buffer { bytes: 0, content: Vec::new(), fault: None };
        let buffer = self.buffers.entry(message).or_insert_with(gone);
        buffer.fault.get_or_insert(fault);
    }

    /// The error in a message that is not whole, or should have ended.
    pub fn wrong(&self, source: EndpointId, message: u32) -> Option<DataFault> {
        self.buffers.get(&(source, message)).and_then(|buffer| buffer.fault)
    }

    /// A message is whole: compares it with what its source has, and hands its buffer over.
    ///
    /// # Errors
    /// The first byte that is wrong, or what went wrong before.
    pub fn compare(&mut self, source: EndpointId, message: u32) -> Result<(), DataFault> {
        let stream = self.of_message(source, message);
        self.read.remove(&(source, message));
        let Some(buffer) = self.buffers.remove(&(source, message)) else {
            return Err(DataFault::Late { byte: 0 });
        };
        if let Some(fault) = buffer.fault {
            return Err(fault);
        }
        if buffer.bytes > 0 && buffer.content.is_empty() {
            let expected = bytes(stream, 0, 1).next().unwrap_or_default();
            return Err(DataFault::Differs { byte: 0, bytes: buffer.bytes, expected, found: !expected });
        }
        differs(bytes(stream, 0, buffer.bytes), &buffer.content)
    }

    /// The host hands a vector to the accelerator, as request `number`: what is in it.
    pub fn reduce(&mut self, number: u32, request: &AllreduceRequest) -> Vec<u8> {
        self.reductions.insert(request.token, (number, request.clone()));
        self.vector(request, request.own)
    }

    /// The vector of a member.
    fn vector(&self, request: &AllreduceRequest, member: u32) -> Vec<u8> {
        let call = u64::from(request.group) << 32 | u64::from(request.sequence);
        let stream = stream(self.seed, [1, member.into(), call]);
        bytes(stream, 0, request.bytes.get()).collect()
    }

    /// A part of a vector comes beside its packet.
    pub fn words(&mut self, (from, group): (EndpointId, u32), part: &Words) {
        let id = OperationId { group, sequence: part.sequence, block: part.block };
        let vector = self.vectors.entry((id, part.step, from)).or_default();
        let begin = usize::from(part.part) * Words::SIZE;
        let end = begin + usize::from(part.bytes).min(Words::SIZE);
        if vector.len() < end {
            vector.resize(end, 0);
        }
        vector[begin..end].copy_from_slice(&part.words[..end - begin]);
    }

    /// The vector of a packet that has come.
    pub fn vector_of(&self, from: EndpointId, id: OperationId, step: ModulePacketKind) -> Vec<u8> {
        self.vectors.get(&(id, step, from)).cloned().unwrap_or_default()
    }

    /// The reduction that the host calls `token` has this result. Compares it with the order that is
    /// written down; returns the request's number.
    pub fn reduced(&mut self, token: u32, found: &[u8], board: u32) -> (u32, Result<Bytes, DataFault>) {
        let Some((number, request)) = self.reductions.remove(&token) else {
            return (0, Err(DataFault::Late { byte: 0 }));
        };
        let (group, sequence) = (request.group, request.sequence);
        self.vectors.retain(|(id, ..), _| id.group != group || id.sequence > sequence);
        let ranks = 0..request.members.len() as u32;
        let vectors: Vec<Vec<u8>> = ranks.map(|member| self.vector(&request, member)).collect();
        let expected = reference(&vectors, board as usize, request.operation, request.data_type);
        (number, differs(expected.into_iter(), found).map(|()| request.bytes))
    }

    /// The reduction that the host calls `token` has failed.
    pub fn forget_reduction(&mut self, token: u32) {
        self.reductions.remove(&token);
    }
}

/// The first byte at which memory is not as it should be.
fn differs(expected: impl Iterator<Item = u8>, found: &[u8]) -> Result<(), DataFault> {
    let mut count = 0;
    for (byte, expected) in (0u64..).zip(expected) {
        let found_byte = found.get(byte as usize).copied();
        if found_byte != Some(expected) {
            let (bytes, found) = (found.len() as u64, found_byte.unwrap_or(!expected));
            return Err(DataFault::Differs { byte, bytes, expected, found });
        }
        count = byte + 1;
    }
    if count < found.len() as u64 {
        return Err(DataFault::Outside { begin: count, end: found.len() as u64, bytes: count });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::ChannelId;
    use proptest::prelude::*;

    const FROM: EndpointId = EndpointId(3);

    fn cell(transaction: u64) -> CellId {
        let transaction = transaction as u32;
        CellId { channel: ChannelId(0), transaction, index: 0, last: true, attempt: 0 }
    }

    /// Blocks of 100 bytes of a message, each read where `read` says and written where `written` does.
    fn moved(
        blocks: u64,
        read: impl Fn(u64) -> u64,
        written: impl Fn(u64) -> Option<u64>,
    ) -> Result<(), DataFault> {
        let mut memory = Memory::new(7);
        memory.expect(FROM, 5, Bytes::new(blocks * 100));
        for block in 0..blocks {
            memory.cell_read(FROM, 5, cell(block), read(block));
            if let Some(to) = written(block) {
                memory.write_cell((FROM, 5, cell(block)), to, 100, false);
            }
        }
        memory.compare(FROM, 5)
    }

    /// Catches a comparison that cannot fail: blocks that are exchanged, shifted, missing, doubled over
    /// another, or beside the buffer, by the one who writes or by the one who reads.
    #[test]
    fn a_block_at_the_wrong_place_is_found() {
        let at = |block| block * 100;
        assert_eq!(moved(4, at, |block| Some(at(block))), Ok(()));
        assert_eq!(moved(4, at, |block| Some(at(3 - block))).map_err(first), Err(0), "exchanged");
        assert_eq!(moved(4, |block| at(3 - block), |block| Some(at(block))).map_err(first), Err(0));
        assert_eq!(moved(4, |block| at(3 - block), |block| Some(at(3 - block))), Ok(()), "another order");
        assert_eq!(moved(4, at, |block| (block != 2).then_some(at(block))).map_err(first), Err(200));
        assert_eq!(moved(4, at, |block| Some(at(block.min(2)))).map_err(first), Err(200), "doubled");
        let shifted = moved(4, at, |block| Some(at(block) + u64::from(block == 1)));
        assert!(matches!(shifted, Err(DataFault::Differs { byte: 100, .. })), "{shifted:?}");
        let outside = DataFault::Outside { begin: 400, end: 500, bytes: 400 };
        assert_eq!(moved(4, at, |block| Some(at(block + 1))), Err(outside));
        assert_eq!(moved(1, at, |_| None).map_err(first), Err(0), "nothing came");
    }

    fn first(fault: DataFault) -> u64 {
        match fault {
            DataFault::Differs { byte, expected, found, .. } => {
                assert_ne!(expected, found);
                byte
            }
            other => panic!("{other}"),
        }
    }

    /// Catches bytes of a damaged packet that reach memory unseen, writes after the end, and packets of
    /// which nobody knows where they were read.
    #[test]
    fn what_must_not_be_written_is_found() {
        let mut memory = Memory::new(7);
        memory.expect(FROM, 5, Bytes::new(64));
        memory.write((FROM, 5), (0, 0), 64, true);
        let fault = memory.compare(FROM, 5).unwrap_err();
        assert!(matches!(fault, DataFault::Differs { byte: 0, .. }), "{fault}");
        assert_eq!(memory.wrong(FROM, 5), None);
        memory.write((FROM, 5), (0, 8), 8, false);
        assert_eq!(memory.wrong(FROM, 5), Some(DataFault::Late { byte: 8 }));
        memory.expect(FROM, 6, Bytes::new(64));
        memory.write_cell((FROM, 6, cell(0)), 0, 64, false);
        assert_eq!(memory.compare(FROM, 6), Err(DataFault::Unread { byte: 0 }));
        let error = DataError { source_endpoint: FROM, message: 5, destination: EndpointId(4), fault };
        let said = error.to_string();
        assert!(said.starts_with("message 5 of endpoint 3 to endpoint 4: byte 0 of 64 is 0x"), "{said}");
    }

    proptest! {
        /// Catches pieces that are not those of the whole, and streams that are alike.
        #[test]
        fn a_stream_can_be_begun_anywhere(seed: u64, begin in 0u64..100, count in 0u64..100) {
            let key = stream(seed, [0, 1, 2]);
            let all: Vec<u8> = bytes(key, 0, 200).collect();
            let part: Vec<u8> = bytes(key, begin, count).collect();
            prop_assert_eq!(&all[begin as usize..][..count as usize], &part[..]);
            for other in [[0, 2, 1], [0, 1, 3], [1, 1, 2]] {
                let other: Vec<u8> = bytes(stream(seed, other), 0, 200).collect();
                prop_assert_ne!(&all, &other);
            }
        }
    }
}
