//! A picture as data: panels with axes and contents.

use serde::Serialize;

/// Series in one panel: more cannot be told apart by colour.
pub const MAX_SERIES: usize = 8;

/// A picture: panels below each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Picture {
    /// The name of the kind: of results, that of a `PictureKind`.
    pub kind: &'static str,
    /// The heading.
    pub title: String,
    /// The machine and the run, below the heading.
    pub subtitle: String,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// A plot with two axes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Panel {
    /// The heading; empty where the picture's says it all.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The contents.
    pub content: Content,
}

/// An axis: a quantity with its unit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// The unit; empty for counts and shares of one.
    pub unit: &'static str,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Whether it begins at zero.
    pub from_zero: bool,
    /// Names of 0, 1, 2 …, where the axis lists things.
    pub names: Vec<String>,
}

/// The contents of a panel.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Lines over each other.
    Lines(Vec<Series>),
    /// Areas on top of each other, of series with the same x.
    Stacked(Vec<Series>),
    /// Straight segments: `[x, y, x, y]`, by series.
    Segments(Vec<Segments>),
    /// A heat map.
    Cells(Cells),
}

/// A line.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Series {
    /// The legend.
    pub label: String,
    /// The points, by ascending x.
    pub points: Vec<[f64; 2]>,
    /// The confidence interval of each point; empty where there is none.
    pub interval: Vec<[f64; 2]>,
    /// Whether it is dashed: the second of two lines of one colour.
    pub dashed: bool,
    /// The number of its colour.
    pub colour: usize,
    /// Whether each point has a mark.
    pub marks: bool,
}

/// Segments of one colour.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Segments {
    /// The legend.
    pub label: String,
    /// From x, y to x, y.
    pub segments: Vec<[f64; 4]>,
}

/// A heat map: rows are the names of the vertical axis.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cells {
    /// Edges of the columns, one more than there are columns.
    pub edges: Vec<f64>,
    /// Values by row, then column.
    pub values: Vec<Vec<f64>>,
    /// The quantity.
    pub label: String,
    /// The unit.
    pub unit: &'static str,
}

impl Axis {
    /// An axis of numbers that begins at zero.
    pub fn new(label: impl Into<String>, unit: &'static str) -> Axis {
        Axis { label: label.into(), unit, log: false, from_zero: true, names: Vec::new() }
    }

    /// The same, logarithmic.
    pub fn log(self) -> Axis {
        Axis { log: true, from_zero: false, ..self }
    }

    /// An axis that lists things.
    pub fn names(label: impl Into<String>, names: Vec<String>) -> Axis {
        Axis { names, ..Axis::new(label, "") }
    }

    /// The text beside the axis.
    pub fn text(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}
