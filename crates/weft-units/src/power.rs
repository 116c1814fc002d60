//! Power and energy.

use crate::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// Power in microwatts. Written with decimal multiples: `1.5W`, `300mW`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Power(u64);

/// Energy that a bit takes, in femtojoules. Written `5pJ/b`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EnergyPerBit(u64);

/// Energy in picojoules; saturates at 18 MJ. Written `20nJ`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Energy(u64);

/// Exact energy in attojoules: a microwatt for a picosecond. It is rounded once, at the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExactEnergy(u128);

impl Power {
    /// None.
    pub const ZERO: Power = Power(0);

    /// `uw` microwatts.
    pub const fn from_uw(uw: u64) -> Power {
        Power(uw)
    }

    /// Microwatts.
    pub const fn as_uw(self) -> u64 {
        self.0
    }

    /// The energy of this power for `span`.
    pub const fn over(self, span: Span) -> ExactEnergy {
        ExactEnergy(self.0 as u128 * span.as_ps() as u128)
    }
}

impl EnergyPerBit {
    /// None.
    pub const ZERO: EnergyPerBit = EnergyPerBit(0);

    /// `fj` femtojoules.
    pub const fn from_fj(fj: u64) -> EnergyPerBit {
        EnergyPerBit(fj)
    }

    /// Femtojoules.
    pub const fn as_fj(self) -> u64 {
        self.0
    }

    /// The energy of all bits of `data`.
    pub const fn of(self, data: Bytes) -> ExactEnergy {
        ExactEnergy(self.0 as u128 * data.get() as u128 * 8_000)
    }
}

impl ExactEnergy {
    /// In whole picojoules, rounded down.
    pub fn rounded(self) -> Energy {
        Energy(u64::try_from(self.0 / 1_000_000).unwrap_or(u64::MAX))
    }
}

impl Add for ExactEnergy {
    type Output = ExactEnergy;
    fn add(self, other: ExactEnergy) -> ExactEnergy {
        ExactEnergy(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for ExactEnergy {
    type Output = ExactEnergy;
    fn mul(self, count: u64) -> ExactEnergy {
        ExactEnergy(self.0.saturating_mul(count.into()))
    }
}

impl From<Energy> for ExactEnergy {
    fn from(energy: Energy) -> ExactEnergy {
        ExactEnergy(u128::from(energy.0) * 1_000_000)
    }
}

impl Energy {
    /// None.
    pub const ZERO: Energy = Energy(0);

    /// `pj` picojoules.
    pub const fn from_pj(pj: u64) -> Energy {
        Energy(pj)
    }

    /// Picojoules.
    pub const fn as_pj(self) -> u64 {
        self.0
    }

    /// Microjoules, for reports only: the model never computes with it.
    pub fn as_uj_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add for Energy {
    type Output = Energy;
    fn add(self, other: Energy) -> Energy {
        Energy(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Energy {
    fn add_assign(&mut self, other: Energy) {
        *self = *self + other;
    }
}

impl Sum for Energy {
    fn sum<I: Iterator<Item = Energy>>(iter: I) -> Energy {
        iter.fold(Energy::ZERO, Add::add)
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0 => (1, "W"),
            uw if uw % 1_000_000 == 0 => (1_000_000, "W"),
            uw if uw % 1_000 == 0 => (1_000, "mW"),
            _ => (1, "uW"),
        };
        write!(f, "{}{unit}", self.0 / divisor)
    }
}

impl fmt::Display for EnergyPerBit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            fj if fj % 1_000 == 0 => write!(f, "{}pJ/b", fj / 1_000),
            fj => write!(f, "{fj}fJ/b"),
        }
    }
}

impl fmt::Display for Energy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0 => (1, "pJ"),
            pj if pj % 1_000_000 == 0 => (1_000_000, "uJ"),
            pj if pj % 1_000 == 0 => (1_000, "nJ"),
            _ => (1, "pJ"),
        };
        write!(f, "{}{unit}", self.0 / divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a factor of a thousand: a watt for a second is a joule, and 5 pJ for each bit of a kilobyte
    /// 40 nJ. Catches a text that is not read as what it was written for.
    #[test]
    fn energy_by_hand() {
        let watt: Power = "1W".parse().unwrap();
        assert_eq!(watt.over(Span::from_us(1_000_000)).rounded(), Energy::from_pj(1_000_000_000_000));
        let per_bit: EnergyPerBit = "5pJ/b".parse().unwrap();
        assert_eq!(per_bit.of(Bytes::new(1_000)).rounded(), Energy::from_pj(40_000));
        for text in ["1W", "300mW", "7uW", "0W"] {
            assert_eq!(text.parse::<Power>().unwrap().to_string(), text);
        }
        assert_eq!("1.5pJ/b".parse::<EnergyPerBit>().unwrap().to_string(), "1500fJ/b");
        for text in ["20nJ", "7uJ", "1500pJ", "0pJ"] {
            assert_eq!(text.parse::<Energy>().unwrap().to_string(), text);
        }
        let packets = ExactEnergy::from("20nJ".parse::<Energy>().unwrap()) * 3;
        assert_eq!(packets.rounded(), Energy::from_pj(60_000));
    }

    /// Catches rounding that accumulates: a thousand times a part of a picojoule.
    #[test]
    fn energy_is_rounded_once() {
        let part = Power::from_uw(1).over(Span::from_ps(1_999));
        let whole = (0..1_000).fold(ExactEnergy::default(), |sum, _| sum + part);
        assert_eq!((part.rounded(), whole.rounded()), (Energy::ZERO, Energy::from_pj(1)));
    }
}
