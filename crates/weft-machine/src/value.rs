//! The kinds of value that a machine file holds, and how each is written.

use super::diagnostic::Problem;
use super::document::Value;
use super::read::{Magnitude, Readable};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt;
use weft_fabric::parameters::Speedup;
use weft_units::{BitRate, Bytes, Clock, Energy, EnergyPerBit, LineCode, ParseQuantityError, Power, Span};

/// Longest latency or cost: far above any machine, far below what virtual time holds.
const MAX_SPAN: Span = Span::from_us(1_000_000_000);

/// Reads a quantity from text; an integer counts as one without unit.
fn quantity<T: std::str::FromStr<Err = ParseQuantityError>>(
    value: &Value,
    expected: &str,
    mend: &str,
) -> Result<T, Problem> {
    let text = match value {
        Value::Text(text) | Value::Float(text) => text.clone(),
        Value::Integer(integer) => integer.to_string(),
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

/// A text of the user's for an error, cut where it is absurdly long.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

macro_rules! quantity {
    ($type:ty, $name:literal, $expected:literal, $mend:literal, $pattern:literal, $magnitude:expr) => {
        impl Readable for $type {
            const NAME: &'static str = $name;

            fn read(value: &Value) -> Result<$type, Problem> {
                quantity(value, $expected, $mend)
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn schema() -> serde_json::Value {
                json!({ "type": "string", "pattern": $pattern, "description": concat!("As in ", $mend, ".") })
            }

            fn magnitude(&self) -> Option<Magnitude> {
                let magnitude: fn(&$type) -> Option<u64> = $magnitude;
                magnitude(self).map(Magnitude::of)
            }
        }
    };
}

impl Readable for Span {
    const NAME: &'static str = "Span";

    fn read(value: &Value) -> Result<Span, Problem> {
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

    fn schema() -> serde_json::Value {
        json!({
            "type": "string",
            "pattern": r"^[0-9._]+ ?(ps|ns|us|ms|s)$",
            "description": "As in 20us or 1.5ms.",
        })
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

impl Readable for Bytes {
    const NAME: &'static str = "Bytes";

    fn read(value: &Value) -> Result<Bytes, Problem> {
        quantity(value, "a size", "256, 4K or 1M")
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema() -> serde_json::Value {
        json!({
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": r"^[0-9._]+ ?([KMGT]|[KMG]iB|B)?$" },
            ],
            "description": "As in 256, 4K or 1M.",
        })
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(self.get()))
    }
}

/// Reads a whole number that is at least `least`.
fn whole(value: &Value, least: u32) -> Result<u32, Problem> {
    let mend = format!("write a whole number from {least} to {}", u32::MAX);
    match value {
        Value::Integer(integer) => match u32::try_from(*integer) {
            Ok(number) if number >= least => Ok(number),
            Ok(_) | Err(_) if *integer < i128::from(least) => {
                Err(Problem::new(format!("{integer} is too small"), format!("less than {least}"), mend))
            }
            _ => Err(Problem::new(format!("{integer} is too large"), "more than 32 bits", mend)),
        },
        Value::Float(text) => {
            Err(Problem::new(format!("`{}` is not a whole number", shorten(text)), "", mend))
        }
        other => {
            Err(Problem::new("this is not a whole number", format!("this is {}", other.describe()), mend))
        }
    }
}

impl Readable for u32 {
    const NAME: &'static str = "Count";

    fn read(value: &Value) -> Result<u32, Problem> {
        whole(value, 1)
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX })
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(u64::from(*self)))
    }
}

/// A count that may be zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct CountFromZero(pub u32);

impl Readable for CountFromZero {
    const NAME: &'static str = "CountFromZero";

    fn read(value: &Value) -> Result<CountFromZero, Problem> {
        whole(value, 0).map(CountFromZero)
    }

    fn show(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(u64::from(self.0)))
    }
}

impl Readable for Vec<u32> {
    const NAME: &'static str = "Counts";

    fn read(value: &Value) -> Result<Vec<u32>, Problem> {
        let Value::Array(items) = value else {
            let label = format!("this is {}", value.describe());
            return Err(Problem::new("this is not a list of whole numbers", label, "write [4, 4, 2]"));
        };
        items.iter().map(|item| whole(&item.value, 1)).collect()
    }

    fn show(&self) -> String {
        format!("{self:?}")
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "array", "items": { "type": "integer", "minimum": 1 } })
    }
}

impl Readable for bool {
    const NAME: &'static str = "Switch";

    fn read(value: &Value) -> Result<bool, Problem> {
        match value {
            Value::Boolean(truth) => Ok(*truth),
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

    fn schema() -> serde_json::Value {
        json!({ "type": "boolean" })
    }
}

impl Readable for LineCode {
    const NAME: &'static str = "LineCode";

    fn read(value: &Value) -> Result<LineCode, Problem> {
        let problem = |why: &str| {
            let shown =
                if let Value::Text(text) = value { format!("`{}`", shorten(text)) } else { "this".into() };
            Problem::new(
                format!("{shown} is not a line code"),
                why,
                "write \"64b66b\", \"8b10b\" or \"none\": bits in, bits on the line",
            )
        };
        let Value::Text(text) = value else {
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

    fn schema() -> serde_json::Value {
        json!({
            "type": "string",
            "pattern": "^(none|[0-9]+b[0-9]+b)$",
            "description": "Bits in, bits on the line.",
        })
    }
}

impl Readable for Speedup {
    const NAME: &'static str = "Speedup";

    fn read(value: &Value) -> Result<Speedup, Problem> {
        let text = match value {
            Value::Text(text) | Value::Float(text) => text.clone(),
            Value::Integer(integer) => integer.to_string(),
            other => {
                let label = format!("this is {}", other.describe());
                return Err(Problem::new("this is not a speed-up", label, "write 1.5 or 2"));
            }
        };
        let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let problem = |why: &str| {
            Problem::new(format!("`{}` is not a speed-up", shorten(&text)), why, "write 1.5 or 2")
        };
        if whole.is_empty() || !is_number(whole) || !is_number(rest) {
            return Err(problem("not a decimal number"));
        }
        if rest.len() > 3 {
            return Err(problem("more than three digits behind the point"));
        }
        let thousandths = format!("{whole}{rest:0<3}").parse().ok().and_then(Speedup::from_thousandths);
        thousandths.ok_or_else(|| problem("a crossbar is as fast as its lines or faster, up to 4096 times"))
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema() -> serde_json::Value {
        json!({
            "type": ["integer", "number"],
            "minimum": 1,
            "maximum": 4096,
            "description": "As in 1.5 or 2.",
        })
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(self.thousandths().into()))
    }
}

/// A rate, or none at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RateLimit(pub Option<BitRate>);

impl Readable for RateLimit {
    const NAME: &'static str = "RateLimit";

    fn read(value: &Value) -> Result<RateLimit, Problem> {
        match value {
            Value::Text(text) if text == "unlimited" => Ok(RateLimit(None)),
            other => quantity(other, "a bit rate", "16Gb/s or unlimited").map(|rate| RateLimit(Some(rate))),
        }
    }

    fn show(&self) -> String {
        self.0.map_or("unlimited".to_owned(), |rate| rate.to_string())
    }

    fn schema() -> serde_json::Value {
        json!({ "anyOf": [{ "const": "unlimited" }, BitRate::schema()] })
    }

    fn magnitude(&self) -> Option<Magnitude> {
        self.0.map(|rate| Magnitude::of(rate.bits_per_second()))
    }
}

/// The cost of a step: a time, or cycles of the block's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cost {
    Time(Span),
    Cycles(u32),
}

impl Readable for Cost {
    const NAME: &'static str = "Cost";

    fn read(value: &Value) -> Result<Cost, Problem> {
        if let Value::Text(text) = value
            && let Some(number) = text.strip_suffix("cycles").or_else(|| text.strip_suffix("cycle"))
        {
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

    fn schema() -> serde_json::Value {
        json!({
            "type": "string",
            "pattern": r"^[0-9._]+ ?(ps|ns|us|ms|s|cycles?)$",
            "description": "A time, or cycles of the section's clock.",
        })
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(match self {
            Cost::Time(span) => Magnitude::of(span.as_ps()),
            Cost::Cycles(count) => Magnitude { unit: 1, amount: u64::from(*count) },
        })
    }
}

/// A range of whole numbers, its end included: `0..=2K`, `2..`, `..`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bounds {
    /// The least.
    pub first: u64,
    /// The greatest; `None`: no limit.
    pub last: Option<u64>,
}

impl Bounds {
    /// Whether `number` lies in the range.
    pub fn contains(&self, number: u64) -> bool {
        self.first <= number && self.last.is_none_or(|last| number <= last)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", Bytes::new(self.first))?;
        self.last.map_or(Ok(()), |last| write!(f, "={}", Bytes::new(last)))
    }
}

impl Readable for Bounds {
    const NAME: &'static str = "Bounds";

    fn read(value: &Value) -> Result<Bounds, Problem> {
        let problem = |why: String| {
            Problem::new("this is not a range", why, "write \"2..\", \"0..2K\" (2048 excluded) or \"0..=2K\"")
        };
        let Value::Text(text) = value else { return Err(problem(format!("this is {}", value.describe()))) };
        let (first, last) = text.split_once("..").ok_or_else(|| problem("no `..`".to_owned()))?;
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse().map(|bytes: Bytes| Some(bytes.get())).map_err(|error| problem(error.why)),
        };
        let first = number(first)?.unwrap_or(0);
        let last = match last.strip_prefix('=') {
            Some(last) => number(last)?,
            None => number(last)?
                .map(|end| end.checked_sub(1).ok_or_else(|| problem("it holds nothing".to_owned())))
                .transpose()?,
        };
        if last.is_some_and(|last| last < first) {
            return Err(problem("it holds nothing".to_owned()));
        }
        Ok(Bounds { first, last })
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema() -> serde_json::Value {
        json!({
            "type": "string",
            "pattern": r"^[0-9KMGT]*\.\.(=?[0-9KMGT]+)?$",
            "description": "As in 2.., 0..2K (2048 excluded) or 0..=2K.",
        })
    }
}
