//! The section of a machine file on the PCIe port.

use super::AddressRange;
use super::tlp::{Completions, Run, split};
use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Span};

weft_keys::words! {
    /// A generation of PCI Express with 128b/130b coding.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    pub enum PcieGeneration: "PcieGeneration", "a generation of PCI Express" {
        /// 8 GT/s per lane.
        Gen3 = "gen3",
        /// 16 GT/s per lane.
        Gen4 = "gen4",
        /// 32 GT/s per lane.
        Gen5 = "gen5",
    }
}

impl PcieGeneration {
    /// Bits on a lane per nanosecond.
    const fn gigatransfers(self) -> u64 {
        match self {
            PcieGeneration::Gen3 => 8,
            PcieGeneration::Gen4 => 16,
            PcieGeneration::Gen5 => 32,
        }
    }
}

/// The lanes of a port: how fast its lines are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PcieLanes {
    /// Picoseconds of a byte are [`BYTE`] divided by this.
    divisor: u64,
    /// log2 of that, if it is a power of two: a TLP asks several times, and a division takes far longer.
    shift: Option<u8>,
}

/// 8 bits, 130 for 128, in thousandths of a nanosecond.
const BYTE: u64 = 8 * 130 * 1000;

impl PcieLanes {
    /// The rate of a number of lanes of a generation.
    pub const fn new(generation: PcieGeneration, lanes: u32) -> PcieLanes {
        let divisor = 128 * lanes as u64 * generation.gigatransfers();
        // So it is for all widths but x12.
        let shift = if divisor.is_power_of_two() { Some(divisor.trailing_zeros() as u8) } else { None };
        PcieLanes { divisor, shift }
    }

    /// The time of so many bytes on the line, rounded up once.
    #[inline]
    const fn span(&self, bytes: u64) -> Span {
        let product = bytes * BYTE;
        Span::from_ps(match self.shift {
            Some(shift) => (product + (self.divisor - 1)) >> shift,
            None => return self.uneven_span(product),
        })
    }

    #[cold]
    const fn uneven_span(&self, product: u64) -> Span {
        Span::from_ps(product.div_ceil(self.divisor))
    }
}

/// A memory behind the port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// From a read request at the root to the first data of its completion.
    pub read: Span,
    /// From a write at the root to its being seen.
    pub write: Span,
    /// Most bits per second, of reads or writes; `None`: as fast as the port.
    pub rate: Option<BitRate>,
}

/// The PCIe port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PcieParameters {
    /// The lanes.
    pub lanes: PcieLanes,
    /// Bytes on the line of a TLP with a request header, beside its data: framing, header, CRC.
    pub request_header: u64,
    /// The same of a completion.
    pub completion_header: u64,
    /// Largest payload of a TLP, a power of two.
    pub max_payload: u64,
    /// Largest read request, a power of two.
    pub max_read_request: u64,
    /// The boundary at which the root cuts the data of completions, a power of two.
    pub completion_boundary: u64,
    /// Reads that may be outstanding.
    pub tags: u32,
    /// Credits for headers of posted TLPs, at either end.
    pub posted_headers: u32,
    /// Credits for their data, in bytes.
    pub posted_data: u64,
    /// Credits of the root for headers of requests.
    pub request_headers: u32,
    /// Room in the card for headers of completions.
    pub completion_headers: u32,
    /// Room in the card for data of completions, in bytes.
    pub completion_data: u64,
    /// Bytes on the line of a packet of the data link layer.
    pub link_packet: u64,
    /// TLPs for each acknowledgement, which a packet with credits goes along with.
    pub acknowledged: u32,
    /// From a TLP's last byte at one end to its being handled at the other: hard blocks, wire, root.
    pub one_way: Span,
}

/// Bytes of a credit for data: PCI Express Base Specification 4.0, §2.6.1.
pub(super) const CREDIT: u64 = 16;

impl PcieParameters {
    /// The time of so many bytes on the line, rounded up once.
    #[inline]
    pub fn wire(&self, bytes: u64) -> Span {
        self.lanes.span(bytes)
    }

    /// Least time of a write of so many bytes until the other side has it.
    pub fn least_write(&self, bytes: u64) -> Span {
        let tlps = bytes.div_ceil(self.max_payload).max(1);
        self.wire(tlps * self.request_header + bytes) + self.one_way
    }

    /// Least time of a read of so many bytes of a memory.
    pub fn least_read(&self, bytes: u64, memory: &Memory) -> Span {
        let tlps = bytes.div_ceil(self.max_payload).max(1);
        let data = self.wire(tlps * self.completion_header + bytes);
        self.wire(self.request_header) + self.one_way + memory.read + data + self.one_way
    }

    /// Equal posted TLPs with `bytes` of data each.
    #[inline]
    pub(super) fn posted(&self, count: u32, bytes: u64) -> Run {
        let (wire, credits) = ((self.request_header + bytes) as u32, bytes.div_ceil(CREDIT) as u32);
        Run { count, bytes: wire, each: [1, credits, 0] }
    }

    pub(super) fn posted_limits(&self) -> [u64; 3] {
        [self.posted_headers.into(), self.posted_data / CREDIT, u64::MAX]
    }

    pub(super) fn request_limits(&self) -> [u64; 3] {
        [self.request_headers.into(), u64::MAX, u64::MAX]
    }

    pub(super) fn read_limits(&self) -> [u64; 3] {
        [self.tags.into(), self.completion_headers.into(), self.completion_data / CREDIT]
    }

    /// The completions of a request of `bytes` whose first address is as far behind a boundary as `address`.
    #[inline]
    pub(super) fn completions(&self, address: u64, bytes: u64) -> Completions {
        let behind = address & (self.completion_boundary - 1);
        Completions(split(AddressRange { address: behind, bytes }, self.max_payload).count())
    }

    /// The space that a request takes: a tag, headers and data of its completions.
    #[inline]
    pub(super) fn space(&self, completions: &Completions, bytes: u64) -> [u32; 3] {
        [1, completions.count(), bytes.div_ceil(CREDIT) as u32]
    }
}
