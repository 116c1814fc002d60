//! The section of a machine file on the PCIe port.

use super::AddressRange;
use super::tlp::{Completions, Run, split};
use serde::{Deserialize, Serialize};
use weft_keys::{Misfit, Problem};
use weft_units::{BitRate, Bytes, Span};

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

weft_keys::keys! {
    /// The lanes of a port: how fast its lines are.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PcieLanes {
        /// The generation: `gen3`, `gen4`, `gen5`.
        generation: PcieGeneration;
        /// Lanes.
        lanes: u32;
        beside {
            /// Picoseconds of a byte are [`BYTE`] divided by this.
            divisor: u64 = divisor(generation, lanes);
            /// log2 of that, if it is a power of two: a TLP asks several times, and a division takes far
            /// longer.
            shift: Option<u8> = shift(generation, lanes);
        }
    }
}

/// 8 bits, 130 for 128, in thousandths of a nanosecond.
const BYTE: u64 = 8 * 130 * 1000;

const fn divisor(generation: PcieGeneration, lanes: u32) -> u64 {
    128 * lanes as u64 * generation.gigatransfers()
}

const fn shift(generation: PcieGeneration, lanes: u32) -> Option<u8> {
    let divisor = divisor(generation, lanes);
    // So it is for all widths but x12.
    if divisor.is_power_of_two() { Some(divisor.trailing_zeros() as u8) } else { None }
}

impl PcieLanes {
    /// The rate of a number of lanes of a generation.
    pub const fn new(generation: PcieGeneration, lanes: u32) -> PcieLanes {
        let (divisor, shift) = (divisor(generation, lanes), shift(generation, lanes));
        PcieLanes { generation, lanes, divisor, shift }
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

weft_keys::keys! {
    /// A memory behind the port.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Memory {
        /// From a read request at the root to the first data of its completion.
        read: Span, key("memory_read");
        /// From a write at the root to its being seen in memory.
        write: Span, key("memory_write");
        beside {
            /// Most bits per second, of reads or writes; `None`: as fast as the port.
            rate: Option<BitRate> = None;
        }
    }
}

/// Bytes of a transaction's framing, header and CRC.
const HEADERS: [Bytes; 2] = [Bytes::new(12), Bytes::new(64)];

/// Largest payloads and read requests of the specification.
const SIZES: [Bytes; 2] = [Bytes::new(128), Bytes::new(4096)];

weft_keys::keys! {
    /// The PCIe port.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PcieParameters {
        /// The lanes.
        lanes: PcieLanes, group();
        /// Bytes on the line of a write or a request beside its data, such as 24: framing, header, CRC.
        request_header: u64, read_as(Bytes), within(HEADERS[0], HEADERS[1]);
        /// The same of a completion, such as 20.
        completion_header: u64, read_as(Bytes), within(HEADERS[0], HEADERS[1]);
        /// Largest payload of a transaction packet, a power of two.
        max_payload: u64, read_as(Bytes), within(SIZES[0], SIZES[1]);
        /// Largest read request, a power of two.
        max_read_request: u64, read_as(Bytes), within(SIZES[0], SIZES[1]);
        /// The boundary at which the root cuts the data of completions, a power of two such as 64.
        completion_boundary: u64, read_as(Bytes), within(Bytes::new(64), Bytes::new(128));
        /// Reads that may be outstanding.
        tags: u32;
        /// Credits for headers of posted packets, at either end.
        posted_headers: u32;
        /// Credits for their data.
        posted_data: u64, read_as(Bytes);
        /// Credits of the root for headers of requests.
        request_headers: u32;
        /// Room in the card for headers of completions.
        completion_headers: u32;
        /// Room in the card for data of completions.
        completion_data: u64, read_as(Bytes);
        /// Bytes on the line of a packet of the data link layer.
        link_packet: u64, read_as(Bytes);
        /// Transaction packets for each acknowledgement, with which a packet with credits goes.
        acknowledged: u32;
        /// From a packet's last byte at one end to its being handled at the other: hard blocks, wire, root.
        one_way: Span;
    }
}

/// Bytes of a credit for data: PCI Express Base Specification 4.0, §2.6.1.
pub(super) const CREDIT: u64 = 16;

impl PcieParameters {
    /// Checks that sizes are those of the specification.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_sizes(&self) -> Result<(), Misfit> {
        let lanes = self.lanes.lanes;
        if !lanes.is_power_of_two() || lanes > 16 {
            let mend = "write 1, 2, 4, 8 or 16";
            return Err(Problem::new(format!("a port has no {lanes} lanes"), "", mend).of("lanes"));
        }
        let sizes = [
            ("max_payload", self.max_payload),
            ("max_read_request", self.max_read_request),
            ("completion_boundary", self.completion_boundary),
        ];
        let Some((key, size)) = sizes.into_iter().find(|(_, size)| !size.is_power_of_two()) else {
            return Ok(());
        };
        let why = format!("{size} is no such size of PCI Express");
        let mend = format!("write a power of two, such as {}", size.next_power_of_two() / 2);
        Err(Problem::new(why, "", mend).of(key))
    }

    /// Checks that there is room for at least one transaction.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_room(&self) -> Result<(), Misfit> {
        let PcieParameters { max_payload, max_read_request, .. } = *self;
        let rooms = [
            ("posted_data", self.posted_data, ("max_payload", max_payload)),
            ("completion_data", self.completion_data, ("max_read_request", max_read_request)),
        ];
        if let Some((key, _, (of, least))) = rooms.into_iter().find(|(_, room, (_, least))| room < least) {
            let why = format!("there is no room for one transaction of {least}");
            return Err(
                Problem::new(why, "", format!("write at least {least}, which is nic.pcie.{of}")).of(key)
            );
        }
        let completions = max_read_request.div_ceil(max_payload) as u32 + 1;
        if self.completion_headers < completions {
            let why = "there is no room for the completions of one request";
            let mend = format!("write at least {completions}");
            return Err(Problem::new(why, "", mend).of("completion_headers"));
        }
        Ok(())
    }

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
