//! The sheet that drawings are made on: shapes in the order in which they lie upon each other, in pixels.

use super::Head;
use super::links::Line;
use svg::node::element::{Circle, Element, Group, Path, Rectangle, Text, Title};
use svg::{Document, Node};
use weft_topo::Point;

/// Lines from which on each is drawn faintly.
const MANY_LINES: usize = 1_000;
/// Colours of classes of links: the first is that of endpoints. Okabe and Ito 2008, for all eyes, and some
/// more.
const COLOURS: [&str; 10] = [
    "#6b7280", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7b3fa0", "#a04000",
    "#2f4f4f",
];

/// The room around a drawing.
const MARGIN: f64 = 28.0;
/// The least width of a sheet: that of the lines above the drawing.
const LEAST_WIDTH: f64 = 760.0;

/// A drawing in the making.
#[derive(Default)]
pub struct Canvas {
    outlines: Vec<Group>,
    lines: Vec<Group>,
    labels: Vec<Group>,
    shapes: Vec<Group>,
    /// Whether each line goes from any place to any other, so that many are one filled shape.
    lines_cross: bool,
    /// Everything that was drawn lies between these.
    corners: Option<(Point, Point)>,
}

/// The colour of a class of links.
pub fn colour(class: usize) -> &'static str {
    COLOURS[class % COLOURS.len()]
}

/// The dashes of a class of links: where colours repeat.
fn dashes(class: usize) -> Option<&'static str> {
    [None, Some("6 2"), Some("2 2")][(class / COLOURS.len()).min(2)]
}

/// A length, with the decimals that a picture needs.
pub fn short(length: f64) -> f64 {
    (length * 100.0).round() / 100.0
}

/// A text without characters that XML does not have.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' { '\u{fffd}' } else { c })
        .collect()
}

/// A text that is shown when the pointer rests on a shape.
pub fn tooltip(text: &str) -> Title {
    Title::new(plain(text))
}

/// About the width of a text.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.61
}

/// A text around a point: its middle is there.
pub fn label(text: &str, at: Point, size: f64) -> Text {
    Text::new(plain(text))
        .set("x", short(at.x))
        .set("y", short(at.y))
        .set("font-size", short(size))
        .set("text-anchor", "middle")
        .set("dominant-baseline", "central")
}

/// A circle.
pub fn circle(at: Point, radius: f64) -> Circle {
    Circle::new().set("cx", short(at.x)).set("cy", short(at.y)).set("r", short(radius))
}

/// A rectangle by its upper left corner.
pub fn rectangle(at: Point, width: f64, height: f64) -> Rectangle {
    let rectangle = Rectangle::new().set("x", short(at.x)).set("y", short(at.y));
    rectangle.set("width", short(width)).set("height", short(height))
}

impl Canvas {
    /// A drawing whose lines go from any place to any other.
    pub fn of_crossing_lines() -> Canvas {
        Canvas { lines_cross: true, ..Canvas::default() }
    }

    /// Makes room for what lies within this distance of a point.
    pub fn reach(&mut self, at: Point, distance: f64) {
        let (low, high) = self.corners.unwrap_or((at, at));
        let low = Point { x: low.x.min(at.x - distance), y: low.y.min(at.y - distance) };
        let high = Point { x: high.x.max(at.x + distance), y: high.y.max(at.y + distance) };
        self.corners = Some((low, high));
    }

    /// Adds the outline of a part, behind all else.
    pub fn outline(&mut self, shape: impl Node, name: Text) {
        let group = Group::new().set("class", "part").add(shape).add(name.set("fill", "#6b7280"));
        self.outlines.push(group);
    }

    /// Adds a line, behind all shapes. `path` is SVG's; a thick one holds several links.
    pub fn line(&mut self, line: &Line, path: String, told: &str, width: f64) {
        let mut shape = Path::new().set("d", path).set("stroke-width", short(width));
        if let Some(dashes) = dashes(line.class.into()) {
            shape = shape.set("stroke-dasharray", dashes);
        }
        let group = Group::new()
            .set("class", format!("link c{}", line.class))
            .set("stroke", colour(line.class.into()))
            .set("fill", "none");
        self.lines.push(group.add(tooltip(told)).add(shape));
    }

    /// Adds a number upon a line.
    pub fn line_label(&mut self, text: Text) {
        // A copy in white and fatter below it: not all viewers know paint-order.
        let halo = text.clone().set("stroke", "white").set("stroke-width", 3).set("fill", "white");
        self.labels.push(Group::new().set("class", "count").add(halo).add(text.set("fill", "#111827")));
    }

    /// Adds shapes of one thing.
    pub fn shape(&mut self, group: Group) {
        self.shapes.push(group);
    }

    /// The whole sheet with its head.
    pub fn document(self, head: &Head, legend: &[(usize, String)]) -> String {
        let origin = Point { x: 0.0, y: 0.0 };
        let (low, high) = self.corners.unwrap_or((origin, origin));
        let inner = high.x - low.x;
        let width = (inner + 2.0 * MARGIN).max(LEAST_WIDTH);
        let (mut top, height) = sheet_head(head, legend, width);
        top = top.set("class", "head");
        let down = height + MARGIN - low.y;
        let right = (width - inner) / 2.0 - low.x;
        let mut drawing = Group::new()
            .set("class", "drawing")
            .set("transform", format!("translate({} {})", short(right), short(down)));
        let lines = self.lines.len();
        let opacity = match lines {
            // Each shines through.
            MANY_LINES.. if self.lines_cross => ("stroke-opacity", (300.0 / lines as f64).clamp(0.05, 0.3)),
            2_001.. => ("opacity", 0.5),
            _ => ("opacity", 0.85),
        };
        for layer in [self.outlines, self.lines, self.labels, self.shapes].into_iter().enumerate() {
            let mut group = Group::new();
            if layer.0 == 1 {
                group = group.set(opacity.0, short(opacity.1));
            }
            for shape in layer.1 {
                group = group.add(shape);
            }
            drawing = drawing.add(group);
        }
        let height = height + 2.0 * MARGIN + high.y - low.y;
        let (width, height) = (width.ceil(), height.ceil());
        let sheet = Document::new()
            .set("viewBox", format!("0 0 {width} {height}"))
            .set("width", width)
            .set("height", height)
            .set("font-family", "Helvetica, Arial, sans-serif")
            .add(tooltip(&head.name))
            .add(Rectangle::new().set("width", width).set("height", height).set("fill", "white"))
            .add(top)
            .add(drawing);
        format!("{sheet}\n")
    }
}

/// The lines above the drawing, and the height that they take.
fn sheet_head(head: &Head, legend: &[(usize, String)], width: f64) -> (Group, f64) {
    let mut group = Group::new();
    let mut y = MARGIN;
    let title =
        if head.name == head.title { head.name.clone() } else { format!("{}: {}", head.name, head.title) };
    let remark = head.remark.as_deref().unwrap_or("");
    let texts =
        [(title.as_str(), 15.5, "#111827"), (&head.figures, 13.0, "#374151"), (remark, 12.0, "#374151")];
    for (text, size, fill) in texts {
        for line in wrapped(text, width - 2.0 * MARGIN, size) {
            let text = Text::new(plain(&line)).set("x", MARGIN).set("y", short(y + size * 0.8));
            group = group.add(text.set("font-size", size).set("fill", fill));
            y += size * 1.45;
        }
    }
    let (mut x, size) = (MARGIN, 12.0);
    y += 4.0;
    for (class, name) in legend {
        let wide = 34.0 + text_width(name, size) + 14.0;
        if x > MARGIN && x + wide > width - MARGIN {
            (x, y) = (MARGIN, y + 18.0);
        }
        group = group.add(legend_entry(*class, name, Point { x, y: y + 8.0 }, size));
        x += wide;
    }
    (group, y + 22.0)
}

/// The sample and the name of a class of links.
fn legend_entry(class: usize, name: &str, at: Point, size: f64) -> Group {
    let sample = if class == 0 {
        Element::from(circle(Point { x: at.x + 13.0, ..at }, 3.0).set("fill", colour(0)))
    } else {
        let path =
            Path::new().set("d", format!("M{} {}h26", short(at.x), short(at.y))).set("stroke-width", 3);
        let path = path.set("stroke", colour(class)).set("fill", "none");
        Element::from(match dashes(class) {
            Some(dashes) => path.set("stroke-dasharray", dashes),
            None => path,
        })
    };
    let text = Text::new(plain(name)).set("x", short(at.x + 32.0)).set("y", short(at.y));
    let text = text.set("dominant-baseline", "central").set("font-size", size).set("fill", "#111827");
    Group::new().set("class", "legend").add(sample).add(text)
}

/// A text in lines of this width.
fn wrapped(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
