//! Bit rates and line codes.

use crate::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A bit rate in bits per second. Written with decimal multiples: `16Gb/s`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitRate(u64);

impl BitRate {
    /// `bits` per second.
    pub const fn from_bits_per_second(bits: u64) -> BitRate {
        BitRate(bits)
    }

    /// `gigabits` × 10⁹ bits per second.
    pub const fn from_gigabits(gigabits: u64) -> BitRate {
        BitRate(gigabits * 1_000_000_000)
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Time that `data` takes at this rate, rounded up once. The rate must not be zero. Not for packets back
    /// to back, where rounding each of them up would accumulate: the fabric's line counts exactly.
    pub const fn span(self, data: Bytes) -> Span {
        const BYTE: u64 = 8 * 1_000_000_000_000;
        if let Some(product) = data.get().checked_mul(BYTE) {
            return Span::from_ps(product.div_ceil(self.0));
        }
        let ps = (data.get() as u128 * BYTE as u128).div_ceil(self.0 as u128);
        Span::from_ps(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0 => (1, "b/s"),
            b if b % 1_000_000_000 == 0 => (1_000_000_000, "Gb/s"),
            b if b % 1_000_000 == 0 => (1_000_000, "Mb/s"),
            b if b % 1_000 == 0 => (1_000, "kb/s"),
            _ => (1, "b/s"),
        };
        write!(f, "{}{unit}", self.0 / divisor)
    }
}

/// A line code: `wire` bits on the line for every `payload` bits, such as 66 for 64 or 10 for 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineCode {
    /// Bits that the link layer hands over.
    pub payload: u32,
    /// Bits that the line carries for them.
    pub wire: u32,
}

impl LineCode {
    /// No code: every bit on the line is payload.
    pub const NONE: LineCode = LineCode { payload: 1, wire: 1 };
    /// 64B/66B, as in Aurora 64B/66B and 10 to 100 Gb/s Ethernet.
    pub const B64_66: LineCode = LineCode { payload: 64, wire: 66 };
    /// 8B/10B, as in PCIe Gen1/2 and Aurora 8B/10B.
    pub const B8_10: LineCode = LineCode { payload: 8, wire: 10 };
}
