//! A machine as the page of `weft view` draws it: places of switches and endpoints, parts, links by number,
//! and the way between two endpoints.

use super::assembled;
use crate::experiment::{ExperimentError, MachineInput};
use serde::Serialize;
use weft_analysis::congestion::LinkFrom;
use weft_analysis::view::LinkNumbers;
use weft_machine::{FaultRule, FaultyLinks, Outage};
use weft_topo::{Attachment, Layout, Outline, Places, Point, Topology as _, UnknownEndpoint, idle_path};
use weft_units::{EndpointId, PortId, Span, SwitchId, Time};

/// The reach of a switch's endpoints around it, as a share of the distance of nearest switches.
const REACH: f64 = 0.44;
/// The room in the middle of it that the switch takes, as a share of that reach.
const MIDDLE: f64 = 0.55;
/// The angle between an endpoint and the next on a disc, as a share of a whole turn: seeds of a sunflower.
const GOLDEN_TURN: f64 = 0.381_966;

/// A machine with its layout.
pub struct MachineMap {
    name: String,
    title: String,
    layout: Layout,
    places: Places,
    numbers: LinkNumbers,
    outages: Vec<PlannedOutage>,
}

/// Links that the machine file takes off at a time that it says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlannedOutage {
    /// The links, such as `switch 0`.
    pub of: String,
    /// The time from which on they are off.
    pub from_ps: Time,
    /// The time from which on they are not any more; `None`: they stay off.
    pub until_ps: Option<Time>,
}

/// The drawing of a machine, in columns: millions of objects would take the page seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachineDrawing<'m> {
    /// The name of the machine.
    pub name: &'m str,
    /// A description in one line.
    pub title: &'m str,
    /// Centres of switches; nearest neighbours are about 1 apart. x grows to the right, y downwards.
    pub switch_x: Vec<f32>,
    /// The same, downwards.
    pub switch_y: Vec<f32>,
    /// The part of every switch.
    pub switch_part: &'m [u32],
    /// Names of parts, such as `group 3`.
    pub parts: &'m [String],
    /// Whether the last part is the middle of all others, as the roots of a tree are.
    pub has_hub: bool,
    /// The outline of parts: `none`, `circle` or `rectangle`.
    pub outline: &'static str,
    /// Whether a link that passes behind other switches closes a ring.
    pub has_rings: bool,
    /// The distance of nearest switches.
    pub spacing: f32,
    /// Places of endpoints.
    pub endpoint_x: Vec<f32>,
    /// The same, downwards.
    pub endpoint_y: Vec<f32>,
    /// The switch of every endpoint.
    pub endpoint_switch: Vec<u32>,
    /// Numbers of links.
    pub links: &'m LinkNumbers,
    /// Kinds of links.
    pub classes: Vec<&'m str>,
    /// The kind of the link at every port, as an index into `classes`.
    pub port_class: Vec<u8>,
    /// Names of endpoints; empty where they are numbers.
    pub endpoint_names: Vec<String>,
    /// Names of switches; empty where they are numbers.
    pub switch_names: Vec<String>,
    /// Outages at times that the machine file says, in its order.
    pub outages: &'m [PlannedOutage],
}

/// The way of a packet through the idle machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachinePath {
    /// The endpoint that it leaves.
    pub from: u32,
    /// The endpoint that it reaches.
    pub to: u32,
    /// The links that it crosses, by number.
    pub links: Vec<u32>,
    /// Names of these links' kinds.
    pub classes: Vec<String>,
    /// Names of the switches on the way.
    pub switches: Vec<String>,
    /// The kind of path, in the words of the machine's documents.
    pub kind: Option<String>,
    /// Whether the routing always takes this way.
    pub is_only: bool,
}

/// A way that cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// There is no endpoint of a name.
    #[error(transparent)]
    Unknown(#[from] UnknownEndpoint),
    /// Both ends are one.
    #[error("both ends are endpoint {0}: choose two")]
    Same(String),
    /// No link joins their sub-systems.
    #[error("no packet can go from {from} to {to}: no link joins their parts of the machine")]
    Apart {
        /// One endpoint.
        from: String,
        /// The other.
        to: String,
    },
}

/// The outages of a rule whose times are written in the machine file: random ones depend on the seed.
fn planned(rule: &FaultRule) -> Vec<PlannedOutage> {
    let outage = |links: &FaultyLinks, off_at: Span, on_at: Option<Span>| PlannedOutage {
        of: match links {
            FaultyLinks::All => "all links".to_owned(),
            FaultyLinks::Class(class) => format!("links of class {class}"),
            FaultyLinks::Of(name) => name.clone(),
            FaultyLinks::Between(one, other) => format!("{one} to {other}"),
        },
        from_ps: Time::ZERO + off_at,
        until_ps: on_at.map(|on| Time::ZERO + on),
    };
    match &rule.outage {
        Outage::Never | Outage::Random { .. } => Vec::new(),
        Outage::Once { off_at, on_at } => vec![outage(&rule.links, *off_at, *on_at)],
        Outage::Schedule(all) => all.iter().map(|one| outage(&one.links, one.off_at, one.on_at)).collect(),
    }
}

impl MachineMap {
    /// The map of a machine.
    ///
    /// # Errors
    /// A machine that is not valid.
    pub fn of(input: &MachineInput) -> Result<MachineMap, ExperimentError> {
        let (machine, layout) = assembled(input)?;
        let places = machine.topology.places(&layout);
        let numbers = numbers(&layout);
        let outages = machine.faults.iter().flat_map(planned).collect();
        Ok(MachineMap { name: machine.name, title: machine.title, layout, places, numbers, outages })
    }

    /// Numbers of its links.
    pub fn numbers(&self) -> &LinkNumbers {
        &self.numbers
    }

    /// The drawing.
    pub fn drawing(&self) -> MachineDrawing<'_> {
        let layout = &self.layout;
        let switches = || (0..layout.switches()).map(SwitchId);
        let spacing = nearest_distance(&self.places.switches);
        let endpoints = self.endpoint_places(spacing);
        let name_of = |endpoint: u32| layout.endpoint_name(EndpointId(endpoint));
        let has_names = layout.endpoints() > 0 && name_of(0) != "0";
        let switch_name = |switch: SwitchId| layout.switch_name(switch);
        let has_switch_names = switches().next().is_some_and(|first| switch_name(first) != "switch 0");
        let x = |points: &[Point]| points.iter().map(|at| at.x as f32).collect();
        let y = |points: &[Point]| points.iter().map(|at| at.y as f32).collect();
        MachineDrawing {
            name: &self.name,
            title: &self.title,
            switch_x: x(&self.places.switches),
            switch_y: y(&self.places.switches),
            switch_part: &self.places.part_of,
            parts: &self.places.parts,
            has_hub: self.places.has_hub,
            outline: match self.places.outline {
                Outline::None => "none",
                Outline::Circle => "circle",
                Outline::Rectangle => "rectangle",
            },
            has_rings: self.places.has_rings,
            spacing: spacing as f32,
            endpoint_x: x(&endpoints),
            endpoint_y: y(&endpoints),
            endpoint_switch: self.endpoint_switches().map(|switch| switch.0).collect(),
            links: &self.numbers,
            classes: layout.link_classes(),
            port_class: switches()
                .flat_map(|switch| {
                    (0..layout.ports(switch)).map(move |port| layout.link_class(switch, PortId(port)).0)
                })
                .collect(),
            endpoint_names: if has_names { (0..layout.endpoints()).map(name_of).collect() } else { vec![] },
            switch_names: if has_switch_names { switches().map(switch_name).collect() } else { vec![] },
            outages: &self.outages,
        }
    }

    /// The way between two endpoints, each by its name or number, through the idle machine: what routings
    /// decide by queues or random numbers takes one of its ways.
    ///
    /// # Errors
    /// Endpoints that are not there, or between which there is no way.
    pub fn path(&self, from: &str, to: &str) -> Result<MachinePath, PathError> {
        let layout = &self.layout;
        let (from, to) = (self.endpoint(from)?, self.endpoint(to)?);
        let name = |endpoint| layout.endpoint_name(endpoint);
        if from == to {
            return Err(PathError::Same(name(from)));
        }
        if !layout.reachable(from, to) {
            return Err(PathError::Apart { from: name(from), to: name(to) });
        }
        let (mut links, mut switches) = (vec![from.0], Vec::new());
        let (first, port) = layout.attachment(from);
        let mut classes = vec![layout.link_class(first, port)];
        idle_path(layout, from, to, |switch, port| {
            links.extend(self.numbers.leaving(None, Some(switch), Some(port)));
            classes.push(layout.link_class(switch, port));
            switches.push(layout.switch_name(switch));
        });
        let named = layout.link_classes();
        Ok(MachinePath {
            from: from.0,
            to: to.0,
            links,
            classes: classes.iter().map(|class| named[usize::from(class.0)].to_owned()).collect(),
            switches,
            kind: layout.path_kind(from, to),
            is_only: weft_topo::Routing::is_deterministic(layout),
        })
    }

    /// The links from one endpoint to another, where the routing always takes this way.
    pub fn only_way(&self, from: u32, to: u32) -> Option<Vec<LinkFrom>> {
        let layout = &self.layout;
        let is_endpoint = |endpoint: u32| endpoint < layout.endpoints();
        let is_known = is_endpoint(from) && is_endpoint(to) && from != to;
        let (from, to) = (EndpointId(from), EndpointId(to));
        if !is_known || !weft_topo::Routing::is_deterministic(layout) || !layout.reachable(from, to) {
            return None;
        }
        let mut way = vec![LinkFrom::Endpoint(from)];
        idle_path(layout, from, to, |switch, port| way.push(LinkFrom::Port(switch, port)));
        Some(way)
    }

    /// The endpoint of a name, or of a number.
    ///
    /// # Errors
    /// The name of no endpoint.
    pub fn endpoint(&self, name: &str) -> Result<EndpointId, UnknownEndpoint> {
        let number = name.parse().ok().filter(|number| *number < self.layout.endpoints());
        number.map_or_else(|| self.layout.endpoint(name), |number| Ok(EndpointId(number)))
    }

    fn endpoint_switches(&self) -> impl Iterator<Item = SwitchId> {
        (0..self.layout.endpoints()).map(|endpoint| self.layout.attachment(EndpointId(endpoint)).0)
    }

    /// Places of endpoints: below the leaves of a tree, and around the switches of all other machines.
    fn endpoint_places(&self, spacing: f64) -> Vec<Point> {
        let mut at_switch = vec![0_u32; self.places.switches.len()];
        self.endpoint_switches().for_each(|switch| at_switch[switch.index()] += 1);
        let mut placed = vec![0_u32; self.places.switches.len()];
        let place = |switch: SwitchId| {
            let (number, count) = (placed[switch.index()], at_switch[switch.index()]);
            placed[switch.index()] += 1;
            let offset = match self.places.has_hub {
                true => below(number, count, spacing),
                false => around(number, count, spacing),
            };
            offset.from(self.places.switches[switch.index()])
        };
        self.endpoint_switches().map(place).collect()
    }
}

/// Numbers of the links of a layout.
fn numbers(layout: &Layout) -> LinkNumbers {
    let mut first = Vec::with_capacity(layout.switches() as usize + 1);
    let mut next = layout.endpoints();
    for switch in 0..layout.switches() {
        first.push(next);
        next += layout.ports(SwitchId(switch));
    }
    first.push(next);
    let ports = |switch: SwitchId| (0..layout.ports(switch)).map(move |port| (switch, port));
    let reverse = (0..layout.switches()).map(SwitchId).flat_map(ports);
    let reverse = reverse.map(|(switch, port)| match layout.peer(switch, PortId(port)) {
        Attachment::Nothing => None,
        Attachment::Endpoint(endpoint) => Some(endpoint.0),
        Attachment::Switch(other, port) => Some(first[other.index()] + port.0),
    });
    let reverse = reverse.collect();
    LinkNumbers { endpoints: layout.endpoints(), first, reverse }
}

/// The place of one of the endpoints of a switch in a square below it.
fn below(number: u32, count: u32, spacing: f64) -> Point {
    let columns = f64::from(count).sqrt().ceil().max(1.0);
    let step = 2.0 * REACH * spacing / columns;
    let (column, row) = (f64::from(number) % columns, (f64::from(number) / columns).floor());
    Point { x: (column + 0.5 - columns / 2.0) * step, y: 0.6 * spacing + row * step }
}

/// The place of one of the endpoints of a switch on a disc around it.
fn around(number: u32, count: u32, spacing: f64) -> Point {
    let share = (f64::from(number) + 0.5) / f64::from(count.max(1));
    // A few lie on a circle.
    let (reach, turn) = match count {
        0..=12 => (0.8, share),
        _ => ((MIDDLE * MIDDLE + share * (1.0 - MIDDLE * MIDDLE)).sqrt(), f64::from(number) * GOLDEN_TURN),
    };
    Point::on_circle(REACH * spacing * reach, turn)
}

/// The distance of the two points that lie nearest each other; 1 where there is one alone.
fn nearest_distance(at: &[Point]) -> f64 {
    let mut sorted = at.to_vec();
    sorted.sort_by(|one, other| one.x.total_cmp(&other.x).then(one.y.total_cmp(&other.y)));
    let mut nearest = f64::MAX;
    for (number, one) in sorted.iter().enumerate() {
        let near = sorted[number + 1..].iter().take_while(|other| other.x - one.x < nearest);
        nearest = near.map(|other| one.distance(*other)).fold(nearest, f64::min);
    }
    if nearest == f64::MAX { 1.0 } else { nearest.max(1e-6) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_machine::SHIPPED;

    fn map(name: &str, sets: &[&str]) -> MachineMap {
        let shipped = SHIPPED.iter().find(|shipped| shipped.name == name).unwrap();
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        let input = MachineInput {
            name: name.to_owned(),
            text: shipped.text.to_owned(),
            sets,
            files: Default::default(),
        };
        MachineMap::of(&input).unwrap()
    }

    /// Catches a number that is another link's in one direction.
    #[test]
    fn the_other_direction_of_the_other_direction_is_the_link() {
        for (name, sets) in [("bxi3-fattree", &["topology.k=4"][..]), ("exanest", &[]), ("bxi3-megafly", &[])]
        {
            let map = map(name, sets);
            let numbers = map.numbers();
            let ports = numbers.reverse.iter().enumerate();
            for (port, reverse) in ports.filter_map(|(port, reverse)| Some((port, (*reverse)?))) {
                match reverse.checked_sub(numbers.endpoints) {
                    Some(other) => {
                        let back = numbers.reverse[other as usize];
                        assert_eq!(back, Some(port as u32 + numbers.endpoints), "{name}");
                    }
                    None => {
                        let (switch, number) = map.layout.attachment(EndpointId(reverse));
                        let leaving = numbers.leaving(None, Some(switch), Some(number));
                        assert_eq!(leaving, Some(port as u32 + numbers.endpoints), "{name}");
                    }
                }
            }
        }
    }

    /// Catches a way that does not end where it should, or jumps.
    #[test]
    fn a_way_crosses_links_that_meet() {
        let map = map("bxi3-fattree", &["topology.k=4"]);
        let path = map.path("0", "15").unwrap();
        // Two levels: up to a root and down again.
        assert_eq!((path.links.len(), path.switches.len()), (4, 3));
        let numbers = map.numbers();
        let last = *path.links.last().unwrap();
        assert_eq!(numbers.reverse[(last - numbers.endpoints) as usize], Some(15));
        assert!(matches!(map.path("3", "3"), Err(PathError::Same(_))));
        assert!(matches!(map.path("3", "16"), Err(PathError::Unknown(_))));
    }

    /// Catches a way that is known although others are taken as well, one that is another than that of the
    /// page, and endpoints that are not there.
    #[test]
    fn a_way_is_known_where_it_is_the_only_one() {
        for (name, sets) in
            [("exanest", &[][..]), ("carvnet-spineleaf", &[]), ("bxi3-fattree", &["topology.k=4"])]
        {
            let map = map(name, sets);
            let numbers = map.numbers();
            let number = |from: &LinkFrom| match *from {
                LinkFrom::Endpoint(endpoint) => numbers.leaving(Some(endpoint), None, None),
                LinkFrom::Port(switch, port) => numbers.leaving(None, Some(switch), Some(port)),
            };
            let path = map.path("0", "15").unwrap();
            let way = map.only_way(0, 15).map(|way| way.iter().filter_map(number).collect::<Vec<_>>());
            assert_eq!(way, path.is_only.then_some(path.links), "{name}");
            assert!(map.only_way(3, 3).is_none() && map.only_way(3, 1 << 20).is_none());
            assert!(path.is_only || name != "exanest", "dimension order takes one way");
        }
    }

    /// Catches endpoints that lie upon each other, and columns of another length.
    #[test]
    fn every_endpoint_has_a_place_of_its_own() {
        for (name, sets) in [("bxi3-fattree", &["topology.k=4"][..]), ("exanest", &[])] {
            let map = map(name, sets);
            let drawing = map.drawing();
            let endpoints = map.layout.endpoints() as usize;
            let mut places: Vec<(u32, u32)> = drawing
                .endpoint_x
                .iter()
                .zip(&drawing.endpoint_y)
                .map(|(x, y)| (x.to_bits(), y.to_bits()))
                .collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!((places.len(), drawing.endpoint_switch.len()), (endpoints, endpoints), "{name}");
            assert_eq!(drawing.port_class.len(), map.numbers().reverse.len(), "{name}");
        }
    }
}
