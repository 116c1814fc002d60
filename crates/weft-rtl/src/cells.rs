//! Cells and answers to blocks as words on a bus.

use crate::words::packet_words;
use weft_nic::Header;
use weft_nic::gvas::Pdid;
use weft_nic::rdma::{Answer, CellId};
use weft_nic::wire::{ControlWords, PacketFields, PacketTarget};
use weft_units::{Address, Bytes, EndpointId};

/// A cell, as it goes over the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CellMessage {
    pub source: EndpointId,
    pub to: EndpointId,
    pub to_interface: u16,
    pub domain: Pdid,
    /// The place of its payload at the target.
    pub address: u64,
    /// The transfer, and the place of the payload in it.
    pub message: u32,
    pub offset: u64,
    pub bytes: Bytes,
    pub id: CellId,
    /// The first transaction of the transfer.
    pub first: u32,
    pub ends_transfer: bool,
}

impl CellMessage {
    /// The words of its packet, header to footer.
    pub fn words(&self) -> Vec<u128> {
        let CellMessage { source, to, to_interface, domain, address, message, offset, bytes, .. } = *self;
        let CellMessage { id, first: number, ends_transfer, .. } = *self;
        let payload = payload((source, message), offset, bytes);
        let target = PacketTarget::new(domain, to, to_interface, Address::new(address));
        let (header, size) = (Header::Cell(id), bytes.get() as u32);
        let control = target.and_then(|target| {
            PacketFields { target, header, size, source, number, ends_transfer }.encode(&payload)
        });
        // A machine whose nodes do not fit the header is refused before.
        packet_words(&control.expect("nodes, interfaces and addresses fit the header"), &payload)
    }

    /// The words of memory that have its payload: one at least, and something behind the last byte.
    pub fn memory_words(&self) -> Vec<u128> {
        let payload = payload((self.source, self.message), self.offset, self.bytes);
        let word = |place: u64| {
            let mut word = [0xA5; 16];
            let rest = payload.get(place as usize * 16..).unwrap_or_default();
            let count = rest.len().min(16);
            word[..count].copy_from_slice(&rest[..count]);
            u128::from_le_bytes(word)
        };
        (0..self.bytes.get().div_ceil(16).max(1)).map(word).collect()
    }

    /// The descriptor of a transfer of so many bytes at `source`, of which this is the first cell.
    pub fn descriptor(&self, source: Address, bytes: Bytes) -> [u128; 4] {
        const ADDED: u128 = 0xFFFF << 112 | 0xFF << 40 | ((1 << 32) - 1);
        [u128::from(bytes.get()) << 64 | u128::from(source.get()), self.words()[0] & !ADDED, 0, 0]
    }
}

/// The answer of `from` to a block that `to` has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockAnswerWords {
    pub from: EndpointId,
    pub to: EndpointId,
    pub id: CellId,
    pub answer: Answer,
}

impl BlockAnswerWords {
    /// Header and footer.
    pub fn words(&self) -> [u128; 2] {
        let BlockAnswerWords { from: source, to, id, answer } = *self;
        let (header, number) = (Header::BlockAnswer(id, answer), 0);
        let target = PacketTarget::new(Pdid(0), to, 0, Address::default());
        let control = target.and_then(|target| {
            PacketFields { target, header, size: 0, source, number, ends_transfer: false }.encode(&[])
        });
        let ControlWords { header, footer } = control.expect("nodes fit the header");
        [header, footer].map(u128::from_be_bytes)
    }
}

/// The bytes of a transfer from an offset on: by message and offset, so that a word in another's place is
/// found.
fn payload((source, number): (EndpointId, u32), offset: u64, bytes: Bytes) -> Vec<u8> {
    let of_message = (source.0.wrapping_mul(0x9E37_79B1) ^ number.wrapping_mul(0x85EB_CA6B)) >> 16;
    // Cells of one offset within their blocks differ as well.
    let byte = |place: u64| (of_message as u8).wrapping_add((place ^ place >> 8 ^ place >> 16) as u8);
    (offset..offset + bytes.get()).map(byte).collect()
}
