//! Numbers and quantities as values of keys.

use crate::problem::{Problem, shorten};
use crate::value::{KeyType, Magnitude, Writing};
use crate::written::Written;
use weft_units::{
    BitRate, Bytes, Clock, Energy, EnergyPerBit, LineCode, ParseQuantityError, Power, Span, Time,
};

/// Longest latency or cost: far above any machine, far below what virtual time holds.
const MAX_SPAN: Span = Span::from_us(1_000_000_000);

/// Reads a quantity from text; an integer counts as one without unit.
fn quantity<T: std::str::FromStr<Err = ParseQuantityError>>(
    value: &Written,
    expected: &str,
    mend: &str,
) -> Result<T, Problem> {
    let text = match value {
        Written::Text(text) | Written::Float(text) => text.clone(),
        Written::Integer(integer) => integer.to_string(),
        other => {
            let label = format!("this is {}", other.describe());
            return Err(Problem::new(format!("this is not {expected}"), label, format!("write {mend}")));
        }
    };
    text.parse().map_err(|error: ParseQuantityError| {
        Problem::new(
            format!("`{}` is not {}", shorten(&error.text), error.expected),
            error.why,
            format!("write {}", error.mend),
        )
    })
}

macro_rules! quantity {
    ($type:ty, $name:literal, $expected:literal, $mend:literal, $pattern:literal, $magnitude:expr) => {
        impl KeyType for $type {
            const NAME: &'static str = $name;
            const WRITING: Writing =
                Writing::Described(&Writing::Text($pattern), concat!("As in ", $mend, "."));

            fn read(value: &Written) -> Result<$type, Problem> {
                quantity(value, $expected, $mend)
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn magnitude(&self) -> Option<Magnitude> {
                let magnitude: fn(&$type) -> Option<u64> = $magnitude;
                magnitude(self).map(Magnitude::of)
            }
        }
    };
}

impl KeyType for Span {
    const NAME: &'static str = "Span";
    const WRITING: Writing =
        Writing::Described(&Writing::Text(r"^[0-9._]+ ?(ps|ns|us|ms|s)$"), "As in 20us or 1.5ms.");

    fn read(value: &Written) -> Result<Span, Problem> {
        let span: Span = quantity(value, "a time", "20us or 1.5ms")?;
        if span > MAX_SPAN {
            let why = format!("longer than {MAX_SPAN}");
            return Err(Problem::new(format!("{span} is no time of a machine"), why, "write 20us or 1.5ms"));
        }
        Ok(span)
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(self.as_ps()))
    }
}

quantity!(BitRate, "Rate", "a bit rate", "16Gb/s or 100Gb/s", r"^[0-9._]+ ?[kMGT]?b/s$", |rate| Some(
    rate.bits_per_second()
));
quantity!(Power, "Power", "a power", "1.5W or 300mW", r"^[0-9._]+ ?[umk]?W$", |power| Some(power.as_uw()));
quantity!(
    EnergyPerBit,
    "EnergyPerBit",
    "an energy per bit",
    "5pJ/b or 300fJ/b",
    r"^[0-9._]+ ?[fpn]J/b$",
    |energy| Some(energy.as_fj())
);
quantity!(Energy, "Energy", "an energy", "20nJ or 500pJ", r"^[0-9._]+ ?[pnu]J$", |energy| Some(
    energy.as_pj()
));
quantity!(Clock, "Clock", "a frequency", "150MHz or 1.2GHz", r"^[0-9._]+ ?[kMG]?Hz$", Clock::hertz);

impl KeyType for Bytes {
    const NAME: &'static str = "Bytes";
    const WRITING: Writing = Writing::Described(
        &Writing::AnyOf(&[
            Writing::Whole { least: 0, most: None },
            Writing::Text(r"^[0-9._]+ ?([KMGT]|[KMG]iB|B)?$"),
        ]),
        "As in 256, 4K or 1M.",
    );

    fn read(value: &Written) -> Result<Bytes, Problem> {
        quantity(value, "a size", "256, 4K or 1M")
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(self.get()))
    }
}

/// Reads a whole number that is at least `least`.
fn whole(value: &Written, least: u32) -> Result<u32, Problem> {
    let mend = format!("write a whole number from {least} to {}", u32::MAX);
    match value {
        Written::Integer(integer) => match u32::try_from(*integer) {
            Ok(number) if number >= least => Ok(number),
            Ok(_) | Err(_) if *integer < i128::from(least) => {
                Err(Problem::new(format!("{integer} is too small"), format!("less than {least}"), mend))
            }
            _ => Err(Problem::new(format!("{integer} is too large"), "more than 32 bits", mend)),
        },
        Written::Float(text) => {
            Err(Problem::new(format!("`{}` is not a whole number", shorten(text)), "", mend))
        }
        other => {
            Err(Problem::new("this is not a whole number", format!("this is {}", other.describe()), mend))
        }
    }
}

impl KeyType for u32 {
    const NAME: &'static str = "Count";
    const WRITING: Writing = Writing::Whole { least: 1, most: Some(u32::MAX as u64) };

    fn read(value: &Written) -> Result<u32, Problem> {
        whole(value, 1)
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(u64::from(*self)))
    }
}

/// A count that may be zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct CountFromZero(pub u32);

impl KeyType for CountFromZero {
    const NAME: &'static str = "CountFromZero";
    const WRITING: Writing = Writing::Whole { least: 0, most: Some(u32::MAX as u64) };

    fn read(value: &Written) -> Result<CountFromZero, Problem> {
        whole(value, 0).map(CountFromZero)
    }

    fn show(&self) -> String {
        self.0.to_string()
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(u64::from(self.0)))
    }
}

/// Packets in a million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Millionths(pub u32);

impl Millionths {
    /// All packets.
    pub const ALL: Millionths = Millionths(1_000_000);
}

impl From<Millionths> for u32 {
    fn from(Millionths(count): Millionths) -> u32 {
        count
    }
}

impl KeyType for Millionths {
    const NAME: &'static str = "Millionths";
    const WRITING: Writing = Writing::Described(
        &Writing::Whole { least: 0, most: Some(Millionths::ALL.0 as u64) },
        "Packets in a million.",
    );

    fn read(value: &Written) -> Result<Millionths, Problem> {
        let most = Millionths::ALL.0;
        let problem = |label: String| {
            let help = format!("write how many packets in a million, from 0 to {most}");
            Problem::new("this is not a share of the packets", label, help)
        };
        match value {
            Written::Integer(integer) => match u32::try_from(*integer) {
                Ok(count) if count <= most => Ok(Millionths(count)),
                _ => Err(problem(format!("{integer} in a million"))),
            },
            other => Err(problem(format!("this is {}", other.describe()))),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl KeyType for Vec<u32> {
    const NAME: &'static str = "Counts";
    const WRITING: Writing = Writing::Counts;

    fn read(value: &Written) -> Result<Vec<u32>, Problem> {
        let Written::List(items) = value else {
            let label = format!("this is {}", value.describe());
            return Err(Problem::new("this is not a list of whole numbers", label, "write [4, 4, 2]"));
        };
        items.iter().map(|item| whole(item, 1)).collect()
    }

    fn show(&self) -> String {
        format!("{self:?}")
    }
}

impl KeyType for bool {
    const NAME: &'static str = "Switch";
    const WRITING: Writing = Writing::Flag;

    fn read(value: &Written) -> Result<bool, Problem> {
        match value {
            Written::Boolean(truth) => Ok(*truth),
            other => Err(Problem::new(
                "this is neither true nor false",
                format!("this is {}", other.describe()),
                "write true or false, without quotes",
            )),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl KeyType for LineCode {
    const NAME: &'static str = "LineCode";
    const WRITING: Writing = Writing::Described(
        &Writing::Text("^(none|[0-9]+b[0-9]+b)$"),
        "As in 64b66b: bits in, bits on the line. Or none.",
    );

    fn read(value: &Written) -> Result<LineCode, Problem> {
        let problem = |why: &str| {
            let shown =
                if let Written::Text(text) = value { format!("`{}`", shorten(text)) } else { "this".into() };
            Problem::new(
                format!("{shown} is not a line code"),
                why,
                "write \"64b66b\", \"8b10b\" or \"none\": bits in, bits on the line",
            )
        };
        let Written::Text(text) = value else {
            return Err(problem(&format!("this is {}", value.describe())));
        };
        if text == "none" {
            return Ok(LineCode::NONE);
        }
        let bits = text.strip_suffix('b').and_then(|text| text.split_once('b'));
        let (payload, wire) = bits.ok_or_else(|| problem("no `b` between and after the numbers"))?;
        match (payload.parse(), wire.parse()) {
            (Ok(payload), Ok(wire)) if 0 < payload && payload <= wire && wire <= 1 << 16 => {
                Ok(LineCode { payload, wire })
            }
            (Ok(_), Ok(_)) => Err(problem("a code never shortens what it carries")),
            _ => Err(problem("no whole number of bits")),
        }
    }

    fn show(&self) -> String {
        match *self {
            LineCode::NONE => "none".to_owned(),
            LineCode { payload, wire } => format!("{payload}b{wire}b"),
        }
    }
}

/// A rate, or none at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimit(pub Option<BitRate>);

impl From<RateLimit> for Option<BitRate> {
    fn from(RateLimit(rate): RateLimit) -> Option<BitRate> {
        rate
    }
}

impl KeyType for RateLimit {
    const NAME: &'static str = "RateLimit";
    const WRITING: Writing = Writing::AnyOf(&[Writing::Words(&["unlimited"]), BitRate::WRITING]);

    fn read(value: &Written) -> Result<RateLimit, Problem> {
        match value {
            Written::Text(text) if text == "unlimited" => Ok(RateLimit(None)),
            other => quantity(other, "a bit rate", "16Gb/s or unlimited").map(|rate| RateLimit(Some(rate))),
        }
    }

    fn show(&self) -> String {
        self.0.map_or("unlimited".to_owned(), |rate| rate.to_string())
    }

    fn magnitude(&self) -> Option<Magnitude> {
        self.0.map(|rate| Magnitude::of(rate.bits_per_second()))
    }
}

/// The cost of a step: a time, or cycles of the block's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// A time.
    Time(Span),
    /// Cycles of the clock.
    Cycles(u32),
}

impl Cost {
    /// In whole cycles: a time is rounded up to the next edge.
    pub fn cycles(self, clock: &Clock) -> u32 {
        match self {
            Cost::Cycles(cycles) => cycles,
            Cost::Time(span) => u32::try_from(clock.edges_before(Time::ZERO + span)).unwrap_or(u32::MAX),
        }
    }

    /// As a time.
    pub fn time(self, clock: &Clock) -> Span {
        match self {
            Cost::Cycles(cycles) => clock.cycles(cycles.into()),
            Cost::Time(span) => span,
        }
    }
}

impl KeyType for Cost {
    const NAME: &'static str = "Cost";
    const WRITING: Writing = Writing::Described(
        &Writing::Text(r"^[0-9._]+ ?(ps|ns|us|ms|s|cycles?)$"),
        "As in 20ns or 3 cycles: a time, or cycles of the section's clock.",
    );

    fn read(value: &Written) -> Result<Cost, Problem> {
        let cycles = match value {
            Written::Text(text) => text
                .strip_suffix("cycles")
                .or_else(|| text.strip_suffix("cycle"))
                .map(|number| (text, number)),
            _ => None,
        };
        if let Some((text, number)) = cycles {
            return number.trim().parse().map(Cost::Cycles).map_err(|_| {
                Problem::new(
                    format!("`{}` is not a number of cycles", shorten(text)),
                    "not a whole number of 32 bits",
                    "write 28 cycles",
                )
            });
        }
        Span::read(value).map(Cost::Time).map_err(|problem| problem.mended_by("write 20us or 28 cycles"))
    }

    fn show(&self) -> String {
        match self {
            Cost::Time(span) => span.to_string(),
            Cost::Cycles(count) => format!("{count} cycles"),
        }
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(match self {
            Cost::Time(span) => Magnitude::of(span.as_ps()),
            Cost::Cycles(count) => Magnitude { unit: 1, amount: u64::from(*count) },
        })
    }
}
