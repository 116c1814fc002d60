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

/// Units, the next larger ones, and how many of them these are.
const LARGER: [(&str, &str, f64); 5] =
    [("ns", "µs", 1e3), ("µs", "ms", 1e3), ("ms", "s", 1e3), ("Gb/s", "Tb/s", 1e3), ("KiB", "MiB", 1024.0)];
/// The value in a larger unit from which on it takes the place of the smaller one.
const LARGER_FROM: f64 = 10.0;

/// The unit in which people say values up to `largest`, and the factor of values in it.
fn fitting(unit: &'static str, largest: f64) -> (&'static str, f64) {
    if unit == "KiB" && largest > 0.0 && largest < 1.0 { ("B", 1024.0) } else { enlarged(unit, largest) }
}

fn enlarged(unit: &'static str, largest: f64) -> (&'static str, f64) {
    match LARGER.into_iter().find(|(small, _, size)| *small == unit && largest >= LARGER_FROM * size) {
        Some((_, large, size)) => {
            let (unit, factor) = enlarged(large, largest / size);
            (unit, factor / size)
        }
        None => (unit, 1.0),
    }
}

impl Panel {
    /// Takes larger units where values are tens of thousands of the unit: 14 ms, and not 14 k µs; bytes where
    /// none is a KiB.
    pub(super) fn fit_units(&mut self) {
        let [mut x, mut y] = [0.0_f64; 2];
        self.content.visit(|coordinate| match coordinate {
            Coordinate::X(value) => x = x.max(value.abs()),
            Coordinate::Y(value) => y = y.max(value.abs()),
        });
        if let Content::Stacked(series) = &self.content {
            // Areas reach up to their sum.
            let highest = |line: &Series| line.points.iter().map(|point| point[1]).fold(0.0, f64::max);
            y = y.max(series.iter().map(highest).sum());
        }
        let ((x_unit, by_x), (y_unit, by_y)) = (fitting(self.x.unit, x), fitting(self.y.unit, y));
        (self.x.unit, self.y.unit) = (x_unit, y_unit);
        self.content.visit(|coordinate| match coordinate {
            Coordinate::X(value) => *value *= by_x,
            Coordinate::Y(value) => *value *= by_y,
        });
        if let Content::Cells(cells) = &mut self.content {
            let largest = cells.values.iter().flatten().copied().fold(0.0, f64::max);
            let (unit, factor) = fitting(cells.unit, largest);
            cells.unit = unit;
            cells.values.iter_mut().flatten().for_each(|value| *value *= factor);
        }
    }
}

/// A coordinate of a panel's contents.
enum Coordinate<'c> {
    X(&'c mut f64),
    Y(&'c mut f64),
}

impl Content {
    /// Visits every coordinate.
    fn visit(&mut self, mut visit: impl FnMut(Coordinate<'_>)) {
        match self {
            Content::Lines(series) | Content::Stacked(series) => {
                for line in series {
                    for [x, y] in &mut line.points {
                        visit(Coordinate::X(x));
                        visit(Coordinate::Y(y));
                    }
                    line.interval.iter_mut().flatten().for_each(|bound| visit(Coordinate::Y(bound)));
                }
            }
            Content::Segments(all) => {
                for [x0, y0, x1, y1] in all.iter_mut().flat_map(|one| &mut one.segments) {
                    [x0, x1].into_iter().for_each(|x| visit(Coordinate::X(x)));
                    [y0, y1].into_iter().for_each(|y| visit(Coordinate::Y(y)));
                }
            }
            Content::Cells(cells) => cells.edges.iter_mut().for_each(|edge| visit(Coordinate::X(edge))),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an axis in thousands of a unit, coordinates that stay behind their axis, and names that are
    /// multiplied.
    #[test]
    fn units_are_those_that_people_say() {
        let line = Series {
            points: vec![[0.0, 1.0], [14_000.0, 45_000.0]],
            interval: vec![[0.5, 2.0], [44_000.0, 46_000.0]],
            ..Series::default()
        };
        let mut panel = Panel {
            title: String::new(),
            x: Axis::new("time", "µs"),
            y: Axis::new("rate", "Gb/s"),
            content: Content::Lines(vec![line]),
        };
        panel.fit_units();
        assert_eq!((panel.x.unit, panel.y.unit), ("ms", "Tb/s"));
        let Content::Lines(lines) = &panel.content else { panic!("{panel:?}") };
        assert_eq!(lines[0].points[1], [14.0, 45.0]);
        assert_eq!(lines[0].interval[1], [44.0, 46.0]);
        let cells = Cells {
            edges: vec![0.0, 9_000.0],
            values: vec![vec![20_480.0]],
            label: String::new(),
            unit: "KiB",
        };
        let y = Axis::names("queue", vec!["a".to_owned()]);
        let mut panel = Panel { y, content: Content::Cells(cells), x: Axis::new("time", "µs"), ..panel };
        panel.fit_units();
        assert_eq!(panel.x.unit, "µs");
        let Content::Cells(cells) = &panel.content else { panic!("{panel:?}") };
        assert_eq!((cells.unit, cells.values[0][0], cells.edges[1]), ("MiB", 20.0, 9_000.0));
        for (unit, largest, fits) in
            [("KiB", 0.28125, ("B", 1024.0)), ("KiB", 1.0, ("KiB", 1.0)), ("KiB", 0.0, ("KiB", 1.0))]
        {
            assert_eq!(fitting(unit, largest), fits);
        }
    }
}
