//! Bit rates, line codes, and serialization onto a wire without accumulated rounding.

use crate::{Bytes, Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hint::select_unpredictable;

/// A bit rate in bits per second. Written with decimal multiples: `16Gb/s`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
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

    /// How long `data` takes at this rate, rounded up once. The rate must not be zero. Use a
    /// [`Serializer`] for back-to-back packets: rounding each of them up would accumulate.
    pub const fn span(self, data: Bytes) -> Span {
        let ps = (data.get() as u128 * 8 * 1_000_000_000_000).div_ceil(self.0 as u128);
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

/// How long bytes take on a line, exactly: shared by all links of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineRate {
    /// Picoseconds per byte are `numerator / denominator`, in lowest terms.
    numerator: u64,
    denominator: u64,
}

impl LineRate {
    /// A line of `rate` bits per second under `code`. `None` where the rate or the code is zero, or so
    /// uneven that one byte exceeds 64-bit arithmetic.
    pub fn new(rate: BitRate, code: LineCode) -> Option<LineRate> {
        let numerator = 8u128 * 1_000_000_000_000 * u128::from(code.wire);
        let denominator = u128::from(rate.0) * u128::from(code.payload);
        if numerator == 0 || denominator == 0 {
            return None;
        }
        let common = gcd(numerator, denominator);
        Some(LineRate {
            numerator: u64::try_from(numerator / common).ok()?,
            denominator: u64::try_from(denominator / common).ok()?,
        })
    }

    /// A line on which nothing takes time.
    pub const INSTANT: LineRate = LineRate { numerator: 0, denominator: 1 };

    /// How long `data` takes on an idle line.
    #[inline]
    pub fn span(&self, data: Bytes) -> Span {
        Span::from_ps(self.exact(data, 0).0)
    }

    /// Whether bytes take less time than on `other`.
    pub fn is_faster_than(&self, other: &LineRate) -> bool {
        u128::from(self.numerator) * u128::from(other.denominator)
            < u128::from(other.numerator) * u128::from(self.denominator)
    }

    /// (picoseconds rounded up, how much that is too late in 1/denominator ps), for data that begins
    /// `early` before a whole picosecond.
    #[inline]
    fn exact(&self, data: Bytes, early: u64) -> (u64, u64) {
        match data.get().checked_mul(self.numerator) {
            Some(units) if units >= early => {
                let units = units - early;
                if self.denominator == 1 {
                    return (units, 0);
                }
                let ps = units.div_ceil(self.denominator);
                (ps, ps * self.denominator - units)
            }
            // Nothing to send, or less than the picosecond that is already paid for.
            Some(units) => (0, early - units),
            None => {
                let units = u128::from(data.get()) * u128::from(self.numerator) - u128::from(early);
                let ps = units.div_ceil(u128::from(self.denominator));
                let late = (ps * u128::from(self.denominator) - units) as u64;
                (u64::try_from(ps).unwrap_or(u64::MAX), late)
            }
        }
    }
}

/// The transmitter of one link: turns bytes into the time their last bit leaves.
///
/// Within a busy period the end of every packet is computed from the number of bits since the
/// period began, so that a thousand packets end exactly where one of a thousand times the size does.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Line {
    /// End of the last byte sent, rounded up to a picosecond.
    busy_until: Time,
    /// How much earlier than `busy_until` the last byte really ended, in 1/denominator ps of its rate.
    early: u64,
}

impl Line {
    /// When the line is free.
    #[inline]
    pub const fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Sends `data` at `rate`, the first bit not before `start` nor before the line is free, and returns
    /// the time at which the last bit has left.
    #[inline]
    pub fn send(&mut self, rate: &LineRate, start: Time, data: Bytes) -> Time {
        // Whether the line is idle, no processor can guess.
        let early = select_unpredictable(start > self.busy_until, 0, self.early);
        let base = start.max(self.busy_until);
        let (ps, new_early) = rate.exact(data, early);
        self.busy_until = base + Span::from_ps(ps);
        self.early = new_early;
        self.busy_until
    }

    /// Keeps the line occupied until `until`, which may lie beyond the last bit (a bubble).
    #[inline]
    pub fn hold(&mut self, until: Time) {
        // Where a packet is as long on both lines, rounding decides: no processor can guess.
        let beyond = until > self.busy_until;
        self.early = select_unpredictable(beyond, 0, self.early);
        self.busy_until = self.busy_until.max(until);
    }
}

const fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_code_lengthens_the_packet() {
        let rate = LineRate::new(BitRate::from_gigabits(66), LineCode::B64_66).unwrap();
        assert_eq!(rate.span(Bytes::new(8_000)), Span::from_us(1));
    }

    proptest! {
        /// Catches rounding per packet: n packets must end where one of n times the size does.
        #[test]
        fn rounding_does_not_accumulate(
            rate in 1_000_000u64..2_000_000_000_000,
            sizes in prop::collection::vec(1u64..10_000, 1..200),
        ) {
            let rate = LineRate::new(BitRate::from_bits_per_second(rate), LineCode::B64_66).unwrap();
            let mut line = Line::default();
            let mut end = Time::ZERO;
            for size in &sizes {
                end = line.send(&rate, Time::ZERO, Bytes::new(*size));
            }
            prop_assert_eq!(end - Time::ZERO, rate.span(Bytes::new(sizes.iter().sum())));
        }
    }
}
