//! A machine by its parts: a box for each, on a circle, and lines between them.
//!
//! ```text
//!        [group 0]            Few parts are boxes that stand upright. Many are bars that point away from the
//!   [group 3]  [group 1]      middle, one line of text each. The roots of a tree are in the middle.
//!        [group 2]
//! ```

use super::canvas::{Canvas, label, rectangle, short, text_width, tooltip};
use super::links::{Bundles, Line};
use super::{counted, grouped};
use std::f64::consts::TAU;
use svg::node::element::{Group, Text};
use weft_topo::{Layout, Places, Point, SwitchId, Topology as _};

/// Most boxes: neighbours are drawn as one where there are more parts.
const MAX_BOXES: usize = 360;
/// Most boxes that stand upright.
const MAX_UPRIGHT: usize = 26;
/// Most lines; of more, those of the first box are drawn.
const MAX_LINES: usize = 3_000;
/// Size of an upright box.
const BOX: (f64, f64) = (150.0, 58.0);

/// Several parts of a machine that are drawn as one box.
struct DrawnPart {
    name: String,
    switches: u64,
    endpoints: u64,
    inside: u64,
    /// The middle of its box.
    at: Point,
    /// The share of a turn at which it lies; `None`: it stands upright.
    turn: Option<f64>,
}

/// Draws a machine by its parts; the remark says what is left out.
pub fn drawn(layout: &Layout, places: &Places) -> (Canvas, Option<String>) {
    let hub = usize::from(places.has_hub);
    let around = places.parts.len() - hub;
    let per_box = around.div_ceil(MAX_BOXES).max(1);
    let boxes = around.div_ceil(per_box);
    let count = boxes + hub;
    let box_of = |switch: SwitchId| {
        let part = places.part_of[switch.index()] as usize;
        if part < around { (part / per_box) as u32 } else { boxes as u32 }
    };
    let bundles = Bundles::between(layout, count, box_of);
    let mut switches = vec![0; count];
    for switch in (0..layout.switches()).map(SwitchId) {
        switches[box_of(switch) as usize] += 1;
    }
    let is_upright = boxes <= MAX_UPRIGHT;
    let radius = radius(boxes, hub, is_upright);
    let parts: Vec<DrawnPart> = (0..count)
        .map(|number| {
            let turn = number as f64 / boxes.max(1) as f64;
            let is_hub = number == boxes;
            DrawnPart {
                name: name(places, number, per_box, around),
                switches: switches[number],
                endpoints: bundles.endpoints[number],
                inside: bundles.inside[number],
                at: if is_hub { Point { x: 0.0, y: 0.0 } } else { Point::on_circle(radius, turn) },
                turn: (!is_upright && !is_hub).then_some(turn),
            }
        })
        .collect();
    let mut canvas = Canvas::of_crossing_lines();
    let is_full = bundles.lines.len() > MAX_LINES;
    let lines = bundles.lines.iter().filter(|line| !is_full || line.ends.0 == 0);
    let shown: Vec<&Line> = lines.collect();
    let classes = layout.link_classes();
    for line in &shown {
        let class = classes.get(usize::from(line.class)).copied().unwrap_or("");
        let ends = (&parts[line.ends.0 as usize], &parts[line.ends.1 as usize]);
        draw_line(&mut canvas, line, ends, (class, shown.len()));
    }
    for part in &parts {
        draw_part(&mut canvas, part, radius);
    }
    let what = format!(
        "Drawn by its parts: {} boxes for {}.",
        grouped(count as u64),
        counted(layout.switches().into(), "switch")
    );
    let left_out = format!(
        " Of {} lines between boxes, the {} of {} are drawn.",
        grouped(bundles.lines.len() as u64),
        grouped(shown.len() as u64),
        parts[0].name
    );
    (canvas, Some(what + if is_full { &left_out } else { "" }))
}

/// The radius of the circle on which boxes lie: of their middles, or of the inner ends of bars.
fn radius(boxes: usize, hub: usize, is_upright: bool) -> f64 {
    let neighbours = if is_upright { BOX.0 + 22.0 } else { 12.0 };
    let least = match (boxes, hub) {
        (1, 0) => 0.0,
        (_, 0) => 150.0,
        _ => 230.0,
    };
    (boxes as f64 * neighbours / TAU).max(least)
}

/// The name of a box: its part, or the first and last of its parts.
fn name(places: &Places, number: usize, per_box: usize, around: usize) -> String {
    let first = number * per_box;
    if first >= around {
        return places.parts.last().cloned().unwrap_or_default();
    }
    let last = (first + per_box).min(around) - 1;
    if first == last {
        places.parts[first].clone()
    } else {
        format!("{} … {}", places.parts[first], places.parts[last])
    }
}

/// A line of a class, one of so many lines.
fn draw_line(
    canvas: &mut Canvas,
    line: &Line,
    ends: (&DrawnPart, &DrawnPart),
    (class, lines): (&str, usize),
) {
    let (from, to) = ends;
    let aside = 4.0 * f64::from(line.beside);
    let written = |at: Point| format!("{} {}", short(at.x + aside), short(at.y + aside));
    let told = format!("{} – {}: {}, {class}", from.name, to.name, counted(line.links, "link"));
    let thin = if lines > 400 { 0.7 * (400.0 / lines as f64).sqrt() } else { 1.2 };
    let width = thin * (1.0 + 0.45 * (line.links as f64).log2()).min(7.0);
    canvas.line(line, format!("M{}L{}", written(from.at), written(to.at)), &told, width);
    if line.links > 1 && lines <= 120 {
        // Not in the middle, where lines meet.
        let share = 0.36;
        let at = Point {
            x: from.at.x + share * (to.at.x - from.at.x) + aside,
            y: from.at.y + share * (to.at.y - from.at.y) + aside,
        };
        canvas.line_label(label(&format!("×{}", grouped(line.links)), at, 10.0));
    }
}

fn draw_part(canvas: &mut Canvas, part: &DrawnPart, radius: f64) {
    let holds = [counted(part.switches, "switch"), counted(part.endpoints, "endpoint")].join(", ");
    let inside =
        if part.inside > 0 { format!("{} inside", counted(part.inside, "link")) } else { String::new() };
    let told = [part.name.as_str(), &holds, &inside]
        .iter()
        .filter(|text| !text.is_empty())
        .copied()
        .collect::<Vec<_>>();
    let group = Group::new().set("class", "part").add(tooltip(&told.join(": ")));
    let Some(turn) = part.turn else {
        let corner = Point { x: part.at.x - BOX.0 / 2.0, y: part.at.y - BOX.1 / 2.0 };
        let mut group = group.add(dressed(rectangle(corner, BOX.0, BOX.1)).set("rx", 6));
        let rows = [(part.name.as_str(), 13.0), (&holds, 10.0), (&inside, 10.0)];
        for ((text, size), row) in rows.into_iter().zip([-17.0, 3.0, 17.0]) {
            let size = f64::min(size, (BOX.0 - 8.0) / text_width(text, 1.0).max(0.1));
            group =
                group.add(label(text, Point { y: part.at.y + row, ..part.at }, size).set("fill", "#111827"));
        }
        canvas.reach(part.at, BOX.0 / 2.0 + 6.0);
        canvas.shape(group);
        return;
    };
    let text = format!("{}: {holds}", part.name);
    let (size, thick) = (8.5, 11.0);
    let long = text_width(&text, size) + 12.0;
    // A bar lies along the x axis and is turned; texts on the left are turned once more, to be read.
    let is_left = turn > 0.5;
    let degrees = turn * 360.0 - 90.0;
    let bar = rectangle(Point { x: radius, y: -thick / 2.0 }, long, thick);
    let middle = radius + long / 2.0;
    let upright = if is_left { format!("rotate(180 {} 0)", short(middle)) } else { String::new() };
    let text: Text =
        label(&text, Point { x: middle, y: 0.0 }, size).set("fill", "#111827").set("transform", upright);
    canvas.reach(Point::on_circle(radius + long, turn), 6.0);
    canvas.shape(
        group
            .set("transform", format!("rotate({})", short(degrees)))
            .add(dressed(bar).set("rx", 2))
            .add(text),
    );
}

/// The look of a box.
fn dressed(shape: svg::node::element::Rectangle) -> svg::node::element::Rectangle {
    shape.set("fill", "#eef2ff").set("stroke", "#4b5563")
}
