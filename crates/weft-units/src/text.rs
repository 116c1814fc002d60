//! How quantities are written, and errors that show the mend.

use crate::{BitRate, Bytes, Clock, Energy, EnergyPerBit, Power, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer as SerdeSerializer};
use std::str::FromStr;

/// A quantity that could not be read: the text as written, and the mend.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not {expected}: {why}; write {mend}")]
pub struct ParseQuantityError {
    /// The text.
    pub text: String,
    /// The quantity that was expected, with its article: "a size".
    pub expected: &'static str,
    /// The fault of the text.
    pub why: String,
    /// A text that would be accepted, or examples of such.
    pub mend: String,
}

/// One unit of a quantity: its spelling and its value in the base unit.
struct Unit {
    name: &'static str,
    factor: u64,
}

/// The notation of a quantity: a decimal number and a unit.
struct Notation {
    /// The quantity with its article, for errors.
    expected: &'static str,
    /// The unit in which values are stored.
    base: &'static str,
    /// Texts that are accepted, for errors.
    examples: &'static str,
    units: &'static [Unit],
}

const SPAN: Notation = Notation {
    expected: "a time",
    base: "ps",
    examples: "20us or 1.5ms",
    units: &[
        Unit { name: "ps", factor: 1 },
        Unit { name: "ns", factor: 1_000 },
        Unit { name: "us", factor: 1_000_000 },
        Unit { name: "ms", factor: 1_000_000_000 },
        Unit { name: "s", factor: 1_000_000_000_000 },
    ],
};

const SIZE: Notation = Notation {
    expected: "a size",
    base: "bytes",
    examples: "256, 4K or 1M",
    units: &[
        Unit { name: "", factor: 1 },
        Unit { name: "B", factor: 1 },
        Unit { name: "K", factor: 1 << 10 },
        Unit { name: "M", factor: 1 << 20 },
        Unit { name: "G", factor: 1 << 30 },
        Unit { name: "T", factor: 1 << 40 },
        Unit { name: "KiB", factor: 1 << 10 },
        Unit { name: "MiB", factor: 1 << 20 },
        Unit { name: "GiB", factor: 1 << 30 },
    ],
};

const RATE: Notation = Notation {
    expected: "a bit rate",
    base: "b/s",
    examples: "16Gb/s or 100Gb/s",
    units: &[
        Unit { name: "b/s", factor: 1 },
        Unit { name: "kb/s", factor: 1_000 },
        Unit { name: "Mb/s", factor: 1_000_000 },
        Unit { name: "Gb/s", factor: 1_000_000_000 },
        Unit { name: "Tb/s", factor: 1_000_000_000_000 },
    ],
};

const FREQUENCY: Notation = Notation {
    expected: "a frequency",
    base: "Hz",
    examples: "150MHz or 1.2GHz",
    units: &[
        Unit { name: "Hz", factor: 1 },
        Unit { name: "kHz", factor: 1_000 },
        Unit { name: "MHz", factor: 1_000_000 },
        Unit { name: "GHz", factor: 1_000_000_000 },
    ],
};

const POWER: Notation = Notation {
    expected: "a power",
    base: "uW",
    examples: "1.5W or 300mW",
    units: &[
        Unit { name: "uW", factor: 1 },
        Unit { name: "mW", factor: 1_000 },
        Unit { name: "W", factor: 1_000_000 },
        Unit { name: "kW", factor: 1_000_000_000 },
    ],
};

const ENERGY_PER_BIT: Notation = Notation {
    expected: "an energy per bit",
    base: "fJ/b",
    examples: "5pJ/b or 300fJ/b",
    units: &[
        Unit { name: "fJ/b", factor: 1 },
        Unit { name: "pJ/b", factor: 1_000 },
        Unit { name: "nJ/b", factor: 1_000_000 },
    ],
};

const ENERGY: Notation = Notation {
    expected: "an energy",
    base: "pJ",
    examples: "20nJ or 500pJ",
    units: &[
        Unit { name: "pJ", factor: 1 },
        Unit { name: "nJ", factor: 1_000 },
        Unit { name: "uJ", factor: 1_000_000 },
    ],
};

impl Notation {
    /// The error that `text` is refused with.
    fn error(&self, text: &str, why: String, mend: String) -> ParseQuantityError {
        ParseQuantityError { text: text.to_owned(), expected: self.expected, why, mend }
    }

    /// Reads `text` as a decimal number followed by one of the units, exactly: a value that is not a whole
    /// number of the base unit is refused rather than rounded.
    fn parse(&self, text: &str) -> Result<u64, ParseQuantityError> {
        let Notation { base, examples, units, .. } = *self;
        let error = |why: String, mend: String| self.error(text, why, mend);
        let trimmed = text.trim();
        let digits =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
        let (number, unit_text) = (trimmed[..digits].replace('_', ""), trimmed[digits..].trim());
        if number.is_empty() {
            let why =
                if trimmed.starts_with('-') { "it is negative" } else { "it does not start with a number" };
            return Err(error(why.to_owned(), examples.to_owned()));
        }
        let Some(unit) = units.iter().find(|u| u.name == unit_text) else {
            let near = units.iter().find(|u| !u.name.is_empty() && u.name.eq_ignore_ascii_case(unit_text));
            let known: Vec<_> = units.iter().map(|u| u.name).filter(|n| !n.is_empty()).collect();
            return Err(match (near, unit_text.is_empty()) {
                (Some(near), _) => {
                    error(format!("unknown unit `{unit_text}`"), format!("{number}{}", near.name))
                }
                (None, true) => error("the unit is missing".to_owned(), examples.to_owned()),
                (None, false) => error(
                    format!("unknown unit `{unit_text}`"),
                    format!("{examples} (units: {})", known.join(", ")),
                ),
            });
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(error("the number is malformed".to_owned(), examples.to_owned()));
        }
        let out_of_range = || error("it is out of range".to_owned(), format!("less than 2^64 {base}"));
        let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| out_of_range())?;
        let scale = u32::try_from(fraction.len()).ok().and_then(|places| 10u128.checked_pow(places));
        let scale = scale.ok_or_else(|| error("it has too many decimals".to_owned(), examples.to_owned()))?;
        let value = digits.checked_mul(u128::from(unit.factor)).ok_or_else(out_of_range)?;
        if value % scale != 0 {
            return Err(error(
                format!("it is not a whole number of {base} and would lose precision"),
                format!("{} {base} or {}", value / scale, value / scale + 1),
            ));
        }
        u64::try_from(value / scale).map_err(|_| out_of_range())
    }
}

impl FromStr for Span {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Span, ParseQuantityError> {
        SPAN.parse(text).map(Span::from_ps)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Bytes, ParseQuantityError> {
        SIZE.parse(text).map(Bytes::new)
    }
}

impl FromStr for Power {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Power, ParseQuantityError> {
        POWER.parse(text).map(Power::from_uw)
    }
}

impl FromStr for EnergyPerBit {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<EnergyPerBit, ParseQuantityError> {
        ENERGY_PER_BIT.parse(text).map(EnergyPerBit::from_fj)
    }
}

impl FromStr for Energy {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Energy, ParseQuantityError> {
        ENERGY.parse(text).map(Energy::from_pj)
    }
}

impl FromStr for BitRate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<BitRate, ParseQuantityError> {
        let rate = RATE.parse(text)?;
        if rate == 0 {
            let why = "a rate of zero never delivers anything";
            return Err(RATE.error(text, why.to_owned(), RATE.examples.to_owned()));
        }
        Ok(BitRate::from_bits_per_second(rate))
    }
}

impl FromStr for Clock {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Clock, ParseQuantityError> {
        let hertz = FREQUENCY.parse(text)?;
        Clock::from_hertz(hertz).ok_or_else(|| {
            let why = "picoseconds tell edges apart only between 1 Hz and 1 THz";
            FREQUENCY.error(text, why.to_owned(), FREQUENCY.examples.to_owned())
        })
    }
}

/// Serde of a quantity's text form, for configuration and manifests: `#[serde(with =
/// "weft_units::as_text")]`.
pub mod as_text {
    use super::*;
    use std::fmt::Display;

    /// Writes the quantity as text.
    pub fn serialize<T: Display, S: SerdeSerializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.to_string().serialize(serializer)
    }

    /// Reads the quantity from text.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err = ParseQuantityError>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_forms_are_read() {
        assert_eq!("16Gb/s".parse::<BitRate>().unwrap(), BitRate::from_gigabits(16));
        assert_eq!("4K".parse::<Bytes>().unwrap(), Bytes::new(4096));
        assert_eq!("20us".parse::<Span>().unwrap(), Span::from_us(20));
        assert_eq!("1.5 ms".parse::<Span>().unwrap(), Span::from_us(1500));
        assert_eq!("150MHz".parse::<Clock>().unwrap(), Clock::from_hertz(150_000_000).unwrap());
    }

    #[test]
    fn errors_show_the_mend() {
        let text = |e: ParseQuantityError| e.to_string();
        assert!(text("16GB/s".parse::<BitRate>().unwrap_err()).ends_with("write 16Gb/s"));
        assert!(text("20".parse::<Span>().unwrap_err()).contains("the unit is missing; write 20us"));
        assert!(text("1.0001ps".parse::<Span>().unwrap_err()).contains("1 ps or 2"));
        assert!(text("-5ns".parse::<Span>().unwrap_err()).contains("negative"));
        assert!(text("1e9".parse::<Bytes>().unwrap_err()).contains("unknown unit"));
        assert!("99999999999999999999999999T".parse::<Bytes>().is_err());
        assert!("..".parse::<Bytes>().is_err());
    }
}
