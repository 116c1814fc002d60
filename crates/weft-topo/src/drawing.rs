//! Places of a machine's switches in a drawing of it.
//!
//! ```text
//!   grid      o-o-o     levels     o   o      groups    (oo)  (oo)     circle    o  o
//!             | | |               / \ / \                  \  /               o      o
//!             o-o-o              o   o   o                 (oo)                 o  o
//! ```
//! A family says how its switches lie ([`Family::places`](crate::Family::places)), in units in which
//! neighbours are about 1 apart; x grows to the right and y downwards. It also says of which parts the
//! machine is made: what a drawing has as one box where there are too many switches. Whoever draws chooses
//! the scale.

use crate::traits::{Attachment, Topology};
use std::f64::consts::TAU;
use weft_units::{PortId, SwitchId};

/// A point of a drawing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

impl Point {
    /// The point on a circle around the origin at a share of a whole turn, clockwise from the top.
    pub fn on_circle(radius: f64, turn: f64) -> Point {
        let (sin, cos) = (turn * TAU).sin_cos();
        Point { x: radius * sin, y: -radius * cos }
    }

    /// This point, as seen from another.
    pub fn from(self, origin: Point) -> Point {
        Point { x: origin.x + self.x, y: origin.y + self.y }
    }

    /// This point, turned clockwise around the origin.
    pub fn turned(self, turn: f64) -> Point {
        let (sin, cos) = (turn * TAU).sin_cos();
        Point { x: self.x * cos - self.y * sin, y: self.x * sin + self.y * cos }
    }

    /// The distance of two points.
    pub fn distance(self, other: Point) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

/// The outline of a part that a drawing of all switches shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outline {
    /// None: parts do not lie together.
    None,
    /// A circle.
    Circle,
    /// A rectangle.
    Rectangle,
}

/// Where the switches of a machine lie, and of which parts it is made.
#[derive(Clone, PartialEq, Debug)]
pub struct Places {
    /// Centre of every switch, by its number.
    pub switches: Vec<Point>,
    /// The part of every switch, by its number: a place in `parts`.
    pub part_of: Vec<u32>,
    /// Names of the parts, such as `group 3`. Neighbours in this list are neighbours in the machine.
    pub parts: Vec<String>,
    /// Whether the last part is the middle of all others, as the roots of a tree are.
    pub has_hub: bool,
    /// The outline of parts.
    pub outline: Outline,
    /// Whether a link that passes behind other switches closes a ring, so that both its ends tell enough.
    pub has_rings: bool,
}

/// Switches of a part, where a machine has no parts of its own.
const SLICES: usize = 24;

impl Places {
    /// All switches on a circle, in the order of a breadth-first search from switch 0, so that neighbours lie
    /// near each other.
    pub fn on_circle(topology: &impl Topology) -> Places {
        Places::in_circular_order(&breadth_first(topology))
    }

    /// All switches on a circle, in the order of their numbers.
    pub(crate) fn numbered_on_circle(switches: u32) -> Places {
        let order: Vec<u32> = (0..switches).collect();
        Places::in_circular_order(&order)
    }

    fn in_circular_order(order: &[u32]) -> Places {
        let count = order.len();
        let radius = ring_radius(count, 1.0);
        let mut switches = vec![Point { x: 0.0, y: 0.0 }; count];
        let mut part_of = vec![0; count];
        let per_slice = count.div_ceil(SLICES).max(1);
        for (place, &switch) in order.iter().enumerate() {
            // Two lie side by side.
            let first = if count == 2 { 0.75 } else { 0.0 };
            switches[switch as usize] = Point::on_circle(radius, first + share(place, count));
            part_of[switch as usize] = (place / per_slice) as u32;
        }
        let slices = order.chunks(per_slice);
        let parts = slices.map(|slice| match slice {
            [first, .., last] => format!("switches {first} … {last}"),
            _ => format!("switch {}", slice[0]),
        });
        let parts = parts.collect();
        Places { switches, part_of, parts, has_hub: false, outline: Outline::None, has_rings: false }
    }

    /// Switches at the points of a grid, numbered with the first dimension fastest. The third dimension goes
    /// back into the drawing, the fourth and fifth repeat the first three to the right and down, and so on.
    /// Parts are the layers of the last dimension.
    pub(crate) fn grid(sizes: &[u32], has_rings: bool) -> Places {
        let count: usize = sizes.iter().map(|&size| size as usize).product();
        let long: Vec<(usize, u32)> =
            sizes.iter().copied().enumerate().filter(|(_, size)| *size > 1).collect();
        if long.len() < 2 {
            return Places::numbered_on_circle(count as u32);
        }
        let steps = steps(sizes);
        let (last, layers) = long[long.len() - 1];
        let per_layer: usize = sizes[..last].iter().map(|&size| size as usize).product();
        let at = |switch: usize| {
            let mut rest = switch;
            sizes.iter().zip(&steps).fold(Point { x: 0.0, y: 0.0 }, |at, (&size, step)| {
                let coordinate = (rest % size as usize) as f64;
                rest /= size as usize;
                Point { x: coordinate * step.x, y: coordinate * step.y }.from(at)
            })
        };
        let name = ["x", "y", "z"].get(last).map_or(format!("dim{last}"), |name| (*name).to_owned());
        Places {
            switches: (0..count).map(at).collect(),
            part_of: (0..count).map(|switch| (switch / per_layer) as u32).collect(),
            parts: (0..layers).map(|layer| format!("{name} = {layer}")).collect(),
            has_hub: false,
            outline: Outline::None,
            has_rings,
        }
    }

    /// Levels of a tree as rows, the first at the bottom. A level has so many switches, numbered from left to
    /// right, and each so many subtrees as it has tops; parts are the subtrees below the highest level, and
    /// that level itself.
    pub(crate) fn levels(levels: &[u32], pods: u32) -> Places {
        let widest = levels.iter().copied().max().map_or(1.0, f64::from);
        let apart = (widest * 0.2).clamp(2.0, 14.0);
        let (mut switches, mut part_of) = (Vec::new(), Vec::new());
        for (level, &count) in levels.iter().enumerate() {
            let is_top = level + 1 == levels.len();
            for switch in 0..count {
                let x = (f64::from(switch) + 0.5) * widest / f64::from(count);
                switches.push(Point { x, y: -apart * level as f64 });
                let pod = u64::from(switch) * u64::from(pods) / u64::from(count);
                part_of.push(if is_top { pods } else { pod as u32 });
            }
        }
        let mut parts: Vec<String> = (0..pods).map(|pod| format!("subtree {pod}")).collect();
        parts.push(format!("level {}", levels.len().saturating_sub(1)));
        Places { switches, part_of, parts, has_hub: true, outline: Outline::None, has_rings: false }
    }

    /// Groups on a circle. `group` are the places of a group's switches around its centre, where y points
    /// away from the middle of the drawing if it is negative; `number` is the switch of a group and a place
    /// in it.
    pub(crate) fn groups(groups: u32, group: &[Point], number: impl Fn(u32, u32) -> u32) -> Places {
        let slots: Vec<u32> = (0..groups).collect();
        Places::groups_with_gaps((&slots, groups), group, number)
    }

    /// The same, with gaps: each group is at its slot of so many.
    pub(crate) fn groups_with_gaps(
        (slots, all_slots): (&[u32], u32),
        group: &[Point],
        number: impl Fn(u32, u32) -> u32,
    ) -> Places {
        let origin = Point { x: 0.0, y: 0.0 };
        let reach = group.iter().map(|place| place.distance(origin)).fold(0.0, f64::max) + 0.9;
        let radius = ring_radius(all_slots as usize, 2.0 * reach + 0.4);
        let count = slots.len() * group.len();
        let (mut switches, mut part_of) = (vec![origin; count], vec![0; count]);
        for (one, &slot) in (0..).zip(slots) {
            let turn = share(slot as usize, all_slots as usize);
            let centre = Point::on_circle(radius, turn);
            for (place, at) in (0..).zip(group) {
                let switch = number(one, place) as usize;
                switches[switch] = at.turned(turn).from(centre);
                part_of[switch] = one;
            }
        }
        let parts = (0..slots.len()).map(|one| format!("group {one}")).collect();
        Places { switches, part_of, parts, has_hub: false, outline: Outline::Circle, has_rings: false }
    }

    /// The places of switches of one group around its centre.
    pub(crate) fn ring(switches: u32) -> Vec<Point> {
        let radius = ring_radius(switches as usize, 1.0);
        (0..switches)
            .map(|switch| Point::on_circle(radius, share(switch as usize, switches as usize)))
            .collect()
    }
}

/// The share of a whole turn at which the `place`th of `count` lies.
fn share(place: usize, count: usize) -> f64 {
    place as f64 / count.max(1) as f64
}

/// The radius of a circle on which neighbours of `count` are so far apart.
fn ring_radius(count: usize, apart: f64) -> f64 {
    match count {
        0 | 1 => 0.0,
        _ => apart / (2.0 * (TAU / (2.0 * count as f64)).sin()),
    }
}

/// The way from one switch to the next in each dimension of a grid.
fn steps(sizes: &[u32]) -> Vec<Point> {
    // Room that the dimensions so far take.
    let (mut wide, mut high) = (0.0, 0.0);
    let mut steps = Vec::new();
    let mut unit = 1.0;
    for (dimension, &size) in sizes.iter().enumerate() {
        let more = f64::from(size.max(1) - 1);
        let step = match dimension % 3 {
            0 => {
                unit = if dimension == 0 { 1.0 } else { wide + 1.6 };
                Point { x: unit, y: 0.0 }
            }
            1 => Point { x: 0.0, y: if dimension == 1 { 1.0 } else { high + 1.6 } },
            // Within a cell of the first two dimensions. Not quite a diagonal, so that lines stay apart.
            _ if dimension == 2 => {
                let back = 0.86 / f64::from(size.max(2));
                Point { x: back, y: -0.8 * back }
            }
            _ => Point { x: wide + 2.4, y: -0.25 * unit },
        };
        wide += more * step.x;
        high += more * step.y.abs();
        steps.push(step);
    }
    steps
}

/// All switches in the order of a breadth-first search, from each that no earlier search has met.
fn breadth_first(topology: &impl Topology) -> Vec<u32> {
    let count = topology.switches();
    let mut met = vec![false; count as usize];
    let mut order: Vec<u32> = Vec::with_capacity(count as usize);
    for start in 0..count {
        if std::mem::replace(&mut met[start as usize], true) {
            continue;
        }
        let mut next = order.len();
        order.push(start);
        while let Some(&switch) = order.get(next) {
            next += 1;
            for port in (0..topology.ports(SwitchId(switch))).map(PortId) {
                if let Attachment::Switch(other, _) = topology.peer(SwitchId(switch), port)
                    && !std::mem::replace(&mut met[other.index()], true)
                {
                    order.push(other.0);
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TopologyParameters;

    /// Catches switches that lie upon each other, or are in no part, in any family.
    #[test]
    fn every_switch_has_a_place_of_its_own() {
        for example in TopologyParameters::examples() {
            let layout = example.build().unwrap();
            let places = example.places(&layout);
            let count = layout.switches() as usize;
            assert_eq!((places.switches.len(), places.part_of.len()), (count, count), "{example:?}");
            let parts = places.parts.len() as u32;
            assert!(places.part_of.iter().all(|part| *part < parts), "{example:?}");
            for part in 0..parts {
                let is_used = places.part_of.contains(&part);
                // A tree of one level is its roots.
                assert!(is_used || places.has_hub, "{example:?}: part {part} is empty");
            }
            for (switch, at) in places.switches.iter().enumerate() {
                let near = places.switches[..switch].iter().find(|other| other.distance(*at) < 0.05);
                assert_eq!(near, None, "{example:?}: switch {switch}");
            }
        }
    }

    /// Catches a number that is taken for another switch's: neighbours in a row of a mesh, in a group of a
    /// Dragonfly or a Slim Fly, leaf and spine of a Megafly.
    #[test]
    fn local_links_are_short() {
        let longest = [
            ("mesh", "x", 1.1),
            ("dragonfly", "local", 4.0),
            ("slim-fly", "local", 4.0),
            ("megafly", "local", 4.0),
        ];
        for (family, class, longest) in longest {
            let examples = TopologyParameters::examples();
            for example in examples.iter().filter(|example| example.family().name == family) {
                let layout = example.build().unwrap();
                let places = example.places(&layout);
                for switch in (0..layout.switches()).map(SwitchId) {
                    for port in (0..layout.ports(switch)).map(PortId) {
                        let Attachment::Switch(other, _) = layout.peer(switch, port) else { continue };
                        let named = layout.link_classes()[usize::from(layout.link_class(switch, port).0)];
                        let length = places.switches[switch.index()].distance(places.switches[other.index()]);
                        assert!(
                            named != class || length < longest,
                            "{example:?}: {switch} to {other}: {length}"
                        );
                        let in_part = places.part_of[switch.index()] == places.part_of[other.index()];
                        assert!(named != "local" || in_part, "{example:?}: {switch} and {other}");
                        assert!(named != "global" || !in_part, "{example:?}: {switch} and {other}");
                    }
                }
            }
        }
    }
}
