//! A value of a machine with where it comes from.

use serde::{Deserialize, Serialize};

/// How well a value is known.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Measured on the hardware.
    Measured,
    /// Stated by who built it.
    Datasheet,
    /// Our estimate; `how` or `source` says what from.
    Assumed,
    /// Fitted on the validation row `row`, within `range`, whose source is `range_source`.
    Calibrated,
    /// Follows from other values.
    Derived,
    /// Given as a bare value in the file.
    Unsourced,
    /// Given as a bare value in a `--set`.
    Set,
}

impl Kind {
    /// The name in machine files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Measured => "measured",
            Kind::Datasheet => "datasheet",
            Kind::Assumed => "assumed",
            Kind::Calibrated => "calibrated",
            Kind::Derived => "derived",
            Kind::Unsourced => "unsourced",
            Kind::Set => "set",
        }
    }

    /// Whether a report must name the value: it is not something known of the hardware.
    pub const fn is_doubtful(self) -> bool {
        !matches!(self, Kind::Measured | Kind::Datasheet | Kind::Derived)
    }

    /// The kinds that a file may write.
    pub(super) const WRITTEN: [Kind; 4] = [Kind::Measured, Kind::Datasheet, Kind::Assumed, Kind::Calibrated];
}

/// One value of a machine: a row of `weft machine show`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Constant {
    /// The key, such as `links.x.rate`, as `--set` takes it.
    pub path: String,
    /// The value with its unit, in the shortest form.
    pub value: String,
    /// How well it is known.
    pub kind: Kind,
    /// Document and section, or where else it is from.
    pub source: Option<String>,
    /// How it was estimated or fitted.
    pub how: Option<String>,
    /// The validation rows that it is calibrated on, with `, ` between, or the one that it was taken from.
    pub row: Option<String>,
    /// The range that a calibrated value may have.
    pub range: Option<String>,
    /// Document and section of the range, or `ours: …` with the reason.
    pub range_source: Option<String>,
}
