//! The header of a packet: 128 bits, one word of a FIFO.
//!
//! ```text
//!  bit  0    5         21       27     32     37       41   42   43     48       62        110    120   128
//!       ├────┼─────────┼────────┼──────┼──────┼────────┼────┼────┼──────┼────────┼─────────┼──────┼─────┤
//!       │virt│ proc_id │ dest_x │dest_y│dest_z│ intra_ │ re-│ out│packet│packet_ │  dest_  │num_of│edac │
//!       │chan│         │        │      │      │  dest  │ serv    │_type │ size   │  addr   │_hops │     │
//!       └────┴─────────┴────────┴──────┴──────┴────────┴────┴────┴──────┴────────┴─────────┴──────┴─────┘
//! ```
//! `edac` makes the exclusive or of the sixteen bytes of the header zero: any one byte in error is found.
//! Switches write `virt_chan`, `num_of_hops` and `out_of_lattice`, and `edac` anew; the footer's check is of
//! the header without them.
//!
//! # Source
//! D2.8 appendix B: names, order and widths of the fields, packed from the lowest bit. The meaning of `edac`,
//! of `packet_type` and of `dest_addr` between kernels is not in the text: ours.

use weft_fabric::HeaderBits;

/// A field of the header, from the lowest bit on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Field {
    /// The virtual channel that the packet leaves by.
    VirtChan,
    /// The task that the packet is for.
    ProcId,
    /// The x coordinate of its destination.
    DestX,
    /// The y coordinate.
    DestY,
    /// The z coordinate.
    DestZ,
    /// The IntraNode port there.
    IntraDest,
    /// Of no use.
    Reserved,
    /// Set where the destination lies outside of the lattice.
    OutOfLattice,
    /// The kind of packet.
    PacketType,
    /// Bytes of payload.
    PacketSize,
    /// The place of the payload in its message.
    DestAddr,
    /// Links crossed.
    NumOfHops,
    /// Error detection and correction.
    Edac,
}

impl Field {
    /// All of them, from the lowest bit on.
    pub const ALL: [Field; 13] = [
        Field::VirtChan,
        Field::ProcId,
        Field::DestX,
        Field::DestY,
        Field::DestZ,
        Field::IntraDest,
        Field::Reserved,
        Field::OutOfLattice,
        Field::PacketType,
        Field::PacketSize,
        Field::DestAddr,
        Field::NumOfHops,
        Field::Edac,
    ];

    /// The name in appendix B.
    pub const fn name(self) -> &'static str {
        match self {
            Field::VirtChan => "virt_chan",
            Field::ProcId => "proc_id",
            Field::DestX => "dest_x",
            Field::DestY => "dest_y",
            Field::DestZ => "dest_z",
            Field::IntraDest => "intra_dest",
            Field::Reserved => "reserved",
            Field::OutOfLattice => "out_of_lattice",
            Field::PacketType => "packet_type",
            Field::PacketSize => "packet_size",
            Field::DestAddr => "dest_addr",
            Field::NumOfHops => "num_of_hops",
            Field::Edac => "edac",
        }
    }

    /// Bits.
    pub const fn bits(self) -> u32 {
        match self {
            Field::VirtChan => 5,
            Field::ProcId => 16,
            Field::DestX => 6,
            Field::DestY => 5,
            Field::DestZ => 5,
            Field::IntraDest => 4,
            Field::Reserved => 1,
            Field::OutOfLattice => 1,
            Field::PacketType => 5,
            Field::PacketSize => 14,
            Field::DestAddr => 48,
            Field::NumOfHops => 10,
            Field::Edac => 8,
        }
    }

    /// The lowest bit.
    pub fn shift(self) -> u32 {
        Field::ALL.iter().take_while(|field| **field < self).map(|field| field.bits()).sum()
    }

    /// Values that it has.
    pub const fn values(self) -> u64 {
        1 << self.bits()
    }

    fn get(self, word: u128) -> u64 {
        (word >> self.shift()) as u64 & (self.values() - 1)
    }

    fn put(self, value: u64) -> Result<u128, FieldError> {
        match value < self.values() {
            true => Ok(u128::from(value) << self.shift()),
            false => Err(FieldError { field: self, value }),
        }
    }
}

/// A value that a field of the header cannot hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{value} does not fit the {} bits of `{}` (D2.8 appendix B)", field.bits(), field.name())]
pub struct FieldError {
    /// The field.
    pub field: Field,
    /// The value.
    pub value: u64,
}

/// A word that is no header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the edac of the header {word:#034x} is wrong: a byte of it has been damaged")]
pub struct DamagedHeader {
    /// The word.
    pub word: u128,
}

/// A place among the nodes: the coordinates of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Coordinates {
    /// Along the first dimension.
    pub x: u32,
    /// Along the second.
    pub y: u32,
    /// Along the third.
    pub z: u32,
}

/// The header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// The virtual channel.
    pub virtual_channel: u8,
    /// The task that it is for.
    pub process: u16,
    /// The node that it is for.
    pub destination: Coordinates,
    /// The IntraNode port that it is for.
    pub port: u8,
    /// The kind of packet.
    pub packet_type: u8,
    /// Bytes of payload.
    pub size: u32,
    /// The place of the payload in its message, in bytes; of a test packet its number.
    pub address: u64,
    /// Links between nodes that it has crossed.
    pub hops: u16,
    /// Whether its destination lies outside of the lattice.
    pub out_of_lattice: bool,
}

/// The kind of packets between kernels.
pub const MESSAGE: u8 = 0;
/// The kind of packets from packet generator to consumer.
pub const TEST: u8 = 1;

impl Header {
    /// The word of a FIFO.
    ///
    /// # Errors
    /// The first field, from the lowest bit on, whose value it cannot hold.
    pub fn pack(&self) -> Result<u128, FieldError> {
        let Coordinates { x, y, z } = self.destination;
        let word = Field::VirtChan.put(self.virtual_channel.into())?
            | Field::ProcId.put(self.process.into())?
            | Field::DestX.put(x.into())?
            | Field::DestY.put(y.into())?
            | Field::DestZ.put(z.into())?
            | Field::IntraDest.put(self.port.into())?
            | Field::OutOfLattice.put(self.out_of_lattice.into())?
            | Field::PacketType.put(self.packet_type.into())?
            | Field::PacketSize.put(self.size.into())?
            | Field::DestAddr.put(self.address)?
            | Field::NumOfHops.put(self.hops.into())?;
        Ok(word | Field::Edac.put(parity(word).into())?)
    }

    /// The header in a word.
    ///
    /// # Errors
    /// A word whose `edac` does not agree with the other bytes.
    pub fn unpack(word: u128) -> Result<Header, DamagedHeader> {
        if parity(word) != 0 {
            return Err(DamagedHeader { word });
        }
        let coordinate = |field: Field| field.get(word) as u32;
        Ok(Header {
            virtual_channel: Field::VirtChan.get(word) as u8,
            process: Field::ProcId.get(word) as u16,
            destination: Coordinates {
                x: coordinate(Field::DestX),
                y: coordinate(Field::DestY),
                z: coordinate(Field::DestZ),
            },
            port: Field::IntraDest.get(word) as u8,
            packet_type: Field::PacketType.get(word) as u8,
            size: Field::PacketSize.get(word) as u32,
            address: Field::DestAddr.get(word),
            hops: Field::NumOfHops.get(word) as u16,
            out_of_lattice: Field::OutOfLattice.get(word) == 1,
        })
    }

    /// The header as its aggregator forged it: without what switches write into it.
    pub fn forged(&self) -> Header {
        Header { virtual_channel: 0, hops: 0, out_of_lattice: false, ..*self }
    }
}

/// The exclusive or of the bytes of a word.
fn parity(word: u128) -> u8 {
    word.to_le_bytes().iter().fold(0, |sum, byte| sum ^ byte)
}

/// The eight bytes of a header that the simulated network carries: `packet_size` and `dest_addr`. The node
/// and the port that the packet is for are the packet's destination.
pub(super) fn carried(size: u32, address: u64) -> HeaderBits {
    HeaderBits::from_bits(u64::from(size) | address << Field::PacketSize.bits())
}

/// `packet_size` and `dest_addr` of a packet.
pub(super) fn size_and_address(bits: HeaderBits) -> (u64, u64) {
    let bits = bits.bits();
    (bits & (Field::PacketSize.values() - 1), bits >> Field::PacketSize.bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Catches a field that has moved: bit by bit as the packed structure of appendix B has them.
    #[test]
    fn fields_lie_where_appendix_b_has_them() {
        let shifts = [0, 5, 21, 27, 32, 37, 41, 42, 43, 48, 62, 110, 120];
        for (field, shift) in Field::ALL.into_iter().zip(shifts) {
            assert_eq!(field.shift(), shift, "{}", field.name());
        }
        assert_eq!(Field::Edac.shift() + Field::Edac.bits(), 128);
        let header = Header { destination: Coordinates { x: 1, y: 0, z: 0 }, size: 16, ..Header::default() };
        let word = header.pack().unwrap();
        assert_eq!(word & ((1 << 120) - 1), 1 << 21 | 16 << 48);
    }

    /// Catches a limit that is off by one, and an error that names another field.
    #[test]
    fn a_value_beyond_a_field_is_refused() {
        let at = |x, y, z| Coordinates { x, y, z };
        let fits = Header { destination: at(63, 31, 31), port: 15, size: 16383, ..Header::default() };
        fits.pack().unwrap();
        for (header, field) in [
            (Header { destination: at(64, 0, 0), ..fits }, Field::DestX),
            (Header { destination: at(0, 32, 0), ..fits }, Field::DestY),
            (Header { destination: at(0, 0, 32), ..fits }, Field::DestZ),
            (Header { port: 16, ..fits }, Field::IntraDest),
            (Header { virtual_channel: 32, ..fits }, Field::VirtChan),
            (Header { packet_type: 32, ..fits }, Field::PacketType),
            (Header { size: 16384, ..fits }, Field::PacketSize),
            (Header { address: 1 << 48, ..fits }, Field::DestAddr),
            (Header { hops: 1024, ..fits }, Field::NumOfHops),
        ] {
            assert_eq!(header.pack().unwrap_err().field, field);
        }
        let said = Header { port: 16, ..fits }.pack().unwrap_err().to_string();
        assert_eq!(said, "16 does not fit the 4 bits of `intra_dest` (D2.8 appendix B)");
    }

    proptest! {
        /// Catches fields that overlap, and a byte in error that is taken for whole.
        #[test]
        fn a_header_is_read_as_it_was_written(
            (virtual_channel, process, port, packet_type) in (0u8..32, any::<u16>(), 0u8..16, 0u8..32),
            (x, y, z) in (0u32..64, 0u32..32, 0u32..32),
            (size, address, hops) in (0u32..16384, 0u64..1 << 48, 0u16..1024),
            (byte, error, out_of_lattice) in (0usize..16, 1u8.., any::<bool>()),
        ) {
            let destination = Coordinates { x, y, z };
            let none = Header::default();
            let forged = Header { process, destination, port, packet_type, size, address, ..none };
            let header = Header { virtual_channel, hops, out_of_lattice, ..forged };
            prop_assert_eq!(header.forged(), forged);
            let word = header.pack().unwrap();
            prop_assert_eq!(Header::unpack(word), Ok(header));
            let damaged = word ^ u128::from(error) << (8 * byte);
            prop_assert_eq!(Header::unpack(damaged), Err(DamagedHeader { word: damaged }));
            prop_assert_eq!(size_and_address(carried(size, address)), (u64::from(size), address));
        }
    }
}
