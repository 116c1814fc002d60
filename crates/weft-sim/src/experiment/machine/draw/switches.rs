//! A machine switch by switch: circles with their endpoints as dots, and lines between them.
//!
//! ```text
//!   o────o    o─╮ o ╭─o    ─o────o─     A line that would pass behind other switches is bent, or, where it
//!             ╰───────╯                 closes a ring, left open: its two ends tell enough.
//! ```

use super::canvas::{Canvas, circle, colour, label, rectangle, short, text_width, tooltip};
use super::links::{Bundles, Line};
use super::{counted, grouped};
use svg::node::element::Group;
use weft_topo::{Layout, Outline, Places, Point, SwitchId, Topology as _};

/// Distance of nearest switches in pixels, and the most switches of a drawing with it.
const SPACINGS: [(usize, f64); 4] = [(40, 74.0), (130, 46.0), (400, 30.0), (usize::MAX, 22.0)];
/// The widest drawing in pixels; of a row of a thousand switches.
const MAX_EXTENT: f64 = 9_000.0;
/// Most lines that have their number of links written on them.
const MAX_NUMBERED_LINES: usize = 200;
/// Distance of the dots of endpoints.
const DOT_SPACING: f64 = 4.2;

/// A drawing with its scale.
struct Sheet<'m> {
    layout: &'m Layout,
    bundles: &'m Bundles,
    /// Centres of switches in pixels.
    at: Vec<Point>,
    /// Distance of nearest switches.
    spacing: f64,
    radius: f64,
    has_rings: bool,
    /// The group of every switch, where groups lie on a circle around the origin.
    groups: Option<&'m [u32]>,
    names: Names,
    canvas: Canvas,
}

/// Names of switches.
struct Names {
    /// In full, by number.
    full: Vec<String>,
    /// The same size for all; `None`: there is no room.
    size: Option<(f64, Room)>,
}

/// The place of the names of switches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Inside,
    Below,
}

impl Names {
    fn of(layout: &Layout, radius: f64, spacing: f64) -> Names {
        let full: Vec<String> =
            (0..layout.switches()).map(|switch| layout.switch_name(SwitchId(switch))).collect();
        let longest = full.iter().map(|name| text_width(short_name(name), 1.0)).fold(0.1, f64::max);
        let inside = (1.6 * radius / longest).min(11.0);
        let below = (0.95 * spacing / longest).min(9.0);
        let size = if inside >= 5.0 {
            Some((inside, Room::Inside))
        } else {
            (below >= 5.5).then_some((below, Room::Below))
        };
        Names { full, size }
    }
}

/// A name as it is written by its switch: what all names have in common is left out.
fn short_name(name: &str) -> &str {
    if name.starts_with("router of ") {
        return "";
    }
    ["switch of ", "switch "].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(name)
}

/// Draws a machine switch by switch.
pub fn drawn(layout: &Layout, places: &Places, bundles: &Bundles) -> Canvas {
    let nearest = nearest_distance(&places.switches);
    let spacing = SPACINGS
        .iter()
        .find(|(most, _)| places.switches.len() <= *most)
        .map_or(22.0, |(_, spacing)| *spacing);
    let scale = (spacing / nearest).min(MAX_EXTENT / extent(&places.switches).max(1.0));
    let at = places.switches.iter().map(|at| Point { x: at.x * scale, y: at.y * scale }).collect();
    let spacing = nearest * scale;
    let radius = (0.24 * spacing).clamp(2.5, 15.0);
    let mut sheet = Sheet {
        layout,
        bundles,
        at,
        spacing,
        radius,
        has_rings: places.has_rings,
        groups: (places.outline == Outline::Circle && places.parts.len() > 2).then_some(&places.part_of),
        names: Names::of(layout, radius, spacing),
        canvas: Canvas::default(),
    };
    sheet.outlines(places);
    for line in &bundles.lines {
        sheet.line(line);
    }
    for switch in 0..layout.switches() {
        sheet.switch(SwitchId(switch));
    }
    sheet.canvas
}

/// The distance of the two switches that lie nearest each other; 1 where there is one alone.
fn nearest_distance(at: &[Point]) -> f64 {
    let distances =
        at.iter().enumerate().flat_map(|(number, one)| at[..number].iter().map(|other| one.distance(*other)));
    distances.min_by(f64::total_cmp).unwrap_or(1.0).max(1e-6)
}

/// The larger of width and height.
fn extent(at: &[Point]) -> f64 {
    let span = |coordinate: fn(&Point) -> f64| {
        let (low, high) =
            at.iter().map(coordinate).fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        high - low
    };
    span(|at| at.x).max(span(|at| at.y))
}

impl Sheet<'_> {
    /// The outlines of parts with their names.
    fn outlines(&mut self, places: &Places) {
        if places.outline == Outline::None || places.parts.len() < 2 {
            return;
        }
        let pad = self.radius + 0.45 * self.spacing;
        let mut corners: Vec<Option<(Point, Point)>> = vec![None; places.parts.len()];
        for (at, part) in self.at.iter().zip(&places.part_of) {
            let (low, high) = corners[*part as usize].unwrap_or((*at, *at));
            let low = Point { x: low.x.min(at.x), y: low.y.min(at.y) };
            corners[*part as usize] = Some((low, Point { x: high.x.max(at.x), y: high.y.max(at.y) }));
        }
        for (number, (name, corners)) in places.parts.iter().zip(corners).enumerate() {
            let Some((low, high)) = corners else { continue };
            let mut middle = Point { x: (low.x + high.x) / 2.0, y: (low.y + high.y) / 2.0 };
            let size = (0.32 * self.spacing).clamp(8.0, 14.0);
            let top = if places.outline == Outline::Rectangle {
                let corner = Point { x: low.x - pad, y: low.y - pad };
                let (width, height) = (high.x - low.x + 2.0 * pad, high.y - low.y + 2.0 * pad);
                let shape = rectangle(corner, width, height).set("rx", 5);
                let top = Point { x: middle.x, y: corner.y - 0.7 * size };
                let name = if text_width(name, size) > width + 0.5 * self.spacing { "" } else { name };
                self.canvas.reach(corner, 1.6 * size);
                self.canvas.outline(dressed(shape), label(name, top, size));
                continue;
            } else {
                // The switches of a group lie around its centre.
                let mine =
                    || self.at.iter().zip(&places.part_of).filter(|(_, part)| **part as usize == number);
                let count = mine().count() as f64;
                let sum = mine().fold(Point { x: 0.0, y: 0.0 }, |sum, (at, _)| at.from(sum));
                middle = Point { x: sum.x / count, y: sum.y / count };
                let reach = mine().map(|(at, _)| at.distance(middle)).fold(0.0, f64::max) + pad;
                self.canvas.reach(middle, reach + 1.6 * size);
                self.canvas.outline(dressed(circle(middle, reach)), label("", middle, size));
                // Away from the middle of the drawing.
                let away = middle.x.hypot(middle.y).max(1e-6);
                let out = reach + 0.9 * size;
                let turned = Point { x: middle.x / away * out, y: middle.y / away * out };
                Point { x: turned.x + turned.x.signum() * side(turned, name, size), ..turned }.from(middle)
            };
            self.canvas.reach(top, text_width(name, size) / 2.0);
            self.canvas.outline(Group::new(), label(name, top, size));
        }
    }

    /// A line, with its number of links if there are several.
    fn line(&mut self, line: &Line) {
        let (from, to) = (self.at[line.ends.0 as usize], self.at[line.ends.1 as usize]);
        let length = from.distance(to).max(1e-6);
        let along = Point { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
        // Lines of several classes lie side by side.
        let aside =
            2.5 * (f64::from(line.beside) + 1.0) / 2.0 * if line.beside % 2 == 1 { 1.0 } else { -1.0 };
        let aside = if line.beside == 0 { 0.0 } else { aside };
        let moved = |at: Point, on: f64, off: f64| Point {
            x: at.x + along.x * on - along.y * off,
            y: at.y + along.y * on + along.x * off,
        };
        let written = |at: Point| format!("{} {}", short(at.x), short(at.y));
        let leaves_group = self.groups.is_some_and(|of| of[line.ends.0 as usize] != of[line.ends.1 as usize]);
        let behind = if leaves_group { 0 } else { self.behind(line, length) };
        let (path, middle) = if leaves_group {
            // Bent towards the middle of the circle, past the groups between.
            let straight = moved(from, length / 2.0, 0.0);
            let control = Point { x: 0.35 * straight.x, y: 0.35 * straight.y };
            let middle = Point { x: (straight.x + control.x) / 2.0, y: (straight.y + control.y) / 2.0 };
            (format!("M{}Q{} {}", written(from), written(control), written(to)), middle)
        } else if behind == 0 {
            let (from, to) = (moved(from, 0.0, aside), moved(to, 0.0, aside));
            (format!("M{}L{}", written(from), written(to)), moved(from, length / 2.0, 0.0))
        } else if self.has_rings {
            let stub = self.radius + (0.42 * length / (behind + 1) as f64).min(0.45 * self.spacing.max(24.0));
            let (start, end) = (moved(from, -stub, aside), moved(to, stub, aside));
            for end in [start, end] {
                self.canvas.reach(end, 2.0);
            }
            (format!("M{}L{}M{}L{}", written(from), written(start), written(to), written(end)), start)
        } else {
            let high = (0.3 * self.spacing + 0.12 * length).min(0.85 * self.spacing) + aside;
            let control = moved(from, length / 2.0, -2.0 * high);
            self.canvas.reach(moved(from, length / 2.0, -high), 2.0);
            (
                format!("M{}Q{} {}", written(from), written(control), written(to)),
                moved(from, length / 2.0, -high),
            )
        };
        let name = |switch: u32| &self.names.full[switch as usize];
        let class = self.layout.link_classes().get(usize::from(line.class)).copied().unwrap_or("").to_owned();
        let told = format!(
            "{} – {}: {}, {class}",
            name(line.ends.0),
            name(line.ends.1),
            counted(line.links, "link")
        );
        self.canvas.line(line, path, &told, width(line.links, self.bundles.lines.len()));
        if line.links > 1 && self.bundles.lines.len() <= MAX_NUMBERED_LINES {
            self.canvas.line_label(label(&format!("×{}", grouped(line.links)), middle, 9.0));
        }
    }

    /// The number of other switches that the straight line would pass behind.
    fn behind(&self, line: &Line, length: f64) -> usize {
        let (from, to) = (self.at[line.ends.0 as usize], self.at[line.ends.1 as usize]);
        let hides = |at: &Point| {
            let along = ((at.x - from.x) * (to.x - from.x) + (at.y - from.y) * (to.y - from.y)) / length;
            let off = ((at.x - from.x) * (to.y - from.y) - (at.y - from.y) * (to.x - from.x)) / length;
            off.abs() < 0.6 * self.radius && along > self.radius && along < length - self.radius
        };
        self.at.iter().filter(|at| hides(at)).count()
    }

    /// A switch with its endpoints and, where there is room, its name.
    fn switch(&mut self, switch: SwitchId) {
        let (at, radius) = (self.at[switch.index()], self.radius);
        let endpoints = self.bundles.endpoints[switch.index()];
        let name = self.names.full[switch.index()].clone();
        let fill = if endpoints > 0 { "#1f2937" } else { "#9ca3af" };
        let mut group = Group::new()
            .set("class", "switch")
            .add(tooltip(&format!("{name}: {}", counted(endpoints, "endpoint"))))
            .add(circle(at, radius).set("fill", fill).set("stroke", "white"));
        let ring = radius + 4.0;
        let room = (ring * std::f64::consts::TAU / DOT_SPACING) as u64;
        let mut below = radius + 3.0;
        if (1..=room).contains(&endpoints) {
            // Below; beside the line that goes down there in a torus.
            let middle = if self.has_rings { 0.4 } else { 0.5 };
            for endpoint in 0..endpoints {
                let turn = middle + (endpoint as f64 - 0.5 * (endpoints - 1) as f64) / room as f64;
                let dot = circle(Point::on_circle(ring, turn).from(at), 1.5);
                group = group.add(dot.set("class", "endpoint").set("fill", colour(0)));
            }
            below += 4.0;
        } else if endpoints > room {
            let text = format!("×{}", grouped(endpoints));
            let size = (0.9 * radius).clamp(5.0, 11.0);
            let place = Point { y: at.y + radius + 0.7 * size, ..at };
            group = group.add(label(&text, place, size).set("class", "endpoints").set("fill", colour(0)));
            below += size;
        }
        let own = short_name(&name);
        if let Some((size, room)) = self.names.size
            && !own.is_empty()
        {
            let beneath = Point { y: at.y + below + 0.5 * size, ..at };
            group = group.add(match room {
                Room::Inside => label(own, at, size).set("fill", "white"),
                Room::Below => label(own, beneath, size).set("fill", "#111827"),
            });
        }
        self.canvas.reach(at, below + 10.0);
        self.canvas.shape(group);
    }
}

/// How far a name beside a circle is moved, so that it does not lie upon it.
fn side(out: Point, name: &str, size: f64) -> f64 {
    let share = out.x.abs() / out.x.hypot(out.y).max(1e-6);
    share * text_width(name, size) / 2.0
}

/// The look of an outline.
fn dressed(shape: impl Into<svg::node::element::Element>) -> svg::node::element::Element {
    use svg::Node as _;
    let mut shape = shape.into();
    shape.assign("fill", "#f3f4f6");
    shape.assign("stroke", "#d1d5db");
    shape
}

/// The width of a line of so many links, one of `lines`.
fn width(links: u64, lines: usize) -> f64 {
    let least = if lines > 3_000 { 0.6 } else { 1.1 };
    least * (1.0 + 0.6 * (links as f64).log2()).min(6.0)
}
