//! Amounts of data.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// An amount of data in bytes. Written with binary multiples: `256`, `4K` = 4096, `1M`, `2G`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No data.
    pub const ZERO: Bytes = Bytes(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Bytes {
        Bytes(count)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits; saturates far above any message.
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// Pieces of at most `piece` bytes that hold this much. `piece` must not be zero.
    pub const fn div_ceil(self, piece: Bytes) -> u64 {
        // Most are powers of two; a division takes ten times as long.
        if piece.0.is_power_of_two() {
            return (self.0 >> piece.0.trailing_zeros()) + (self.0 & (piece.0 - 1) != 0) as u64;
        }
        self.0.div_ceil(piece.0)
    }

    /// The amount for people, with a decimal unit: `21.5 GB`.
    pub fn in_words(self) -> String {
        let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
        match units.into_iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) => format!("{:.1} {name}", self.0 as f64 / unit as f64),
            None => format!("{} B", self.0),
        }
    }

    /// `self - other`, or zero where that is negative.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl From<Bytes> for u64 {
    fn from(bytes: Bytes) -> u64 {
        bytes.get()
    }
}

impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    #[inline]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn mul(self, count: u64) -> Bytes {
        Bytes(self.0 * count)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit in which the amount is whole: `4K`, `1M`, `100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shift, unit) = match self.0 {
            0 => (0, ""),
            n if n % (1 << 40) == 0 => (40, "T"),
            n if n % (1 << 30) == 0 => (30, "G"),
            n if n % (1 << 20) == 0 => (20, "M"),
            n if n % (1 << 10) == 0 => (10, "K"),
            _ => (0, ""),
        };
        write!(f, "{}{unit}", self.0 >> shift)
    }
}
