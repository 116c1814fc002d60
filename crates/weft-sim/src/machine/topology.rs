//! `[topology]`: what is joined to what, and which way packets go.

use super::diagnostic::Problem;
use super::read::{Entry, Readable, Reader, names, section};
use super::source::Location;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use weft_units::Bytes;

/// Most endpoints of one machine: ids are 32 bits, and every endpoint has several of them.
pub const MAX_ENDPOINTS: u64 = 1 << 28;

/// The link classes of a torus: an axis each beside the links to endpoints.
const AXES: [&str; 9] = ["endpoint", "x", "y", "z", "dim3", "dim4", "dim5", "dim6", "dim7"];

section! {
    /// What is joined to what, and which way packets go.
    struct RawTopology {
        /// Which topology.
        kind: Entry<TopologyKind>,
        /// Torus, mesh: switches along each dimension.
        dims: Option<Entry<Vec<u32>>>,
        /// Torus, mesh: endpoints at every switch; 1 where not said.
        endpoints_per_switch: Option<Entry<u32>>,
        /// ExaNeSt: mezzanines of four QFDBs.
        mezzanines: Option<Entry<u32>>,
        /// k-ary n-tree: ports of a switch towards either side.
        k: Option<Entry<u32>>,
        /// k-ary n-tree: levels.
        n: Option<Entry<u32>>,
        /// Dragonfly: endpoints per switch.
        p: Option<Entry<u32>>,
        /// Dragonfly: switches per group; 2p where not said.
        a: Option<Entry<u32>>,
        /// Dragonfly: global links per switch; p where not said.
        h: Option<Entry<u32>>,
        /// Dragonfly: groups; a·h + 1, the most, where not said.
        groups: Option<Entry<u32>>,
        /// Dragonfly: which switches the global links join.
        global: Option<Entry<GlobalLinks>>,
        /// Star: endpoints.
        endpoints: Option<Entry<u32>>,
        /// Which way packets go; the topology's usual one where not said.
        routing: Option<Entry<RoutingKind>>,
        /// Dimension order: two virtual channels against deadlock in rings; true where not said.
        datelines: Option<Entry<bool>>,
        /// UGAL-L: what favours the minimal path, in bytes × hops; 0 where not said.
        ugal_threshold: Option<Entry<Bytes>>,
    }
}

impl RawTopology {
    /// Whether a `--set` gave its kind or its dimensions: then the file's link classes may be those of
    /// another.
    pub fn is_set(&self) -> bool {
        self.kind.location.is_set() || self.dims.as_ref().is_some_and(|dims| dims.location.is_set())
    }
}

/// The topologies by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TopologyKind {
    Torus,
    Mesh,
    Exanest,
    KaryTree,
    Dragonfly,
    Star,
}

names!(TopologyKind, "Topology", "a topology", {
    TopologyKind::Torus => TopologyKind::Torus, "torus";
    TopologyKind::Mesh => TopologyKind::Mesh, "mesh";
    TopologyKind::Exanest => TopologyKind::Exanest, "exanest";
    TopologyKind::KaryTree => TopologyKind::KaryTree, "kary-tree";
    TopologyKind::Dragonfly => TopologyKind::Dragonfly, "dragonfly";
    TopologyKind::Star => TopologyKind::Star, "star";
});

/// The routings by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RoutingKind {
    DimensionOrder,
    DModK,
    UpDown,
    Minimal,
    UgalL,
}

names!(RoutingKind, "Routing", "a routing", {
    RoutingKind::DimensionOrder => RoutingKind::DimensionOrder, "dimension-order";
    RoutingKind::DModK => RoutingKind::DModK, "d-mod-k";
    RoutingKind::UpDown => RoutingKind::UpDown, "up-down";
    RoutingKind::Minimal => RoutingKind::Minimal, "minimal";
    RoutingKind::UgalL => RoutingKind::UgalL, "ugal-l";
});

/// Which switches the global links of a Dragonfly join.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GlobalLinks {
    /// To the groups before one's own, nearest first.
    Palmtree,
    /// Port i to group i.
    Absolute,
}

names!(GlobalLinks, "GlobalLinks", "an arrangement of global links", {
    GlobalLinks::Palmtree => GlobalLinks::Palmtree, "palmtree";
    GlobalLinks::Absolute => GlobalLinks::Absolute, "absolute";
});

/// What is joined to what.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Topology {
    /// A torus.
    Torus {
        /// Switches along each dimension.
        dims: Vec<u32>,
        /// Endpoints at every switch.
        endpoints_per_switch: u32,
    },
    /// A torus without the links that close its rings.
    Mesh {
        /// Switches along each dimension.
        dims: Vec<u32>,
        /// Endpoints at every switch.
        endpoints_per_switch: u32,
    },
    /// The ExaNeSt rack.
    Exanest {
        /// Mezzanines of 4 QFDBs of 4 MPSoCs.
        mezzanines: u32,
    },
    /// A k-ary n-tree of k^n endpoints.
    KaryTree {
        /// Ports of a switch towards either side.
        k: u32,
        /// Levels.
        n: u32,
    },
    /// A Dragonfly.
    Dragonfly {
        /// Endpoints per switch.
        p: u32,
        /// Switches per group.
        a: u32,
        /// Global links per switch.
        h: u32,
        /// Groups.
        groups: u32,
        /// Which switches the global links join.
        global: GlobalLinks,
    },
    /// One switch.
    Star {
        /// Its endpoints.
        endpoints: u32,
    },
}

impl Topology {
    /// Number of endpoints.
    pub fn endpoints(&self) -> u64 {
        let product = |factors: &[u32]| factors.iter().fold(1u64, |p, f| p.saturating_mul(u64::from(*f)));
        match self {
            Topology::Torus { dims, endpoints_per_switch }
            | Topology::Mesh { dims, endpoints_per_switch } => {
                product(dims).saturating_mul(u64::from(*endpoints_per_switch))
            }
            Topology::Exanest { mezzanines } => u64::from(*mezzanines) * 16,
            Topology::KaryTree { k, n } => u64::from(*k).saturating_pow(*n),
            Topology::Dragonfly { p, a, groups, .. } => product(&[*p, *a, *groups]),
            Topology::Star { endpoints } => u64::from(*endpoints),
        }
    }

    /// Number of switches; as [`Topology::endpoints`], no more than 64 bits hold.
    pub fn switches(&self) -> u64 {
        let product = |factors: &[u32]| factors.iter().fold(1u64, |p, f| p.saturating_mul(u64::from(*f)));
        match self {
            Topology::Torus { dims, .. } | Topology::Mesh { dims, .. } => product(dims),
            // Of each QFDB those of its four MPSoCs, and its router.
            Topology::Exanest { .. } => self.endpoints() / 4 * 5,
            Topology::KaryTree { k, n } => {
                u64::from(*k).saturating_pow(n.saturating_sub(1)).saturating_mul(u64::from(*n))
            }
            Topology::Dragonfly { a, groups, .. } => product(&[*a, *groups]),
            Topology::Star { .. } => 1,
        }
    }

    /// The most ports that its switches have together.
    pub fn ports(&self) -> u64 {
        let per_switch = match self {
            Topology::Torus { dims, endpoints_per_switch }
            | Topology::Mesh { dims, endpoints_per_switch } => {
                2 * dims.len() as u64 + u64::from(*endpoints_per_switch)
            }
            Topology::Exanest { .. } => 7,
            Topology::KaryTree { k, .. } => 2 * u64::from(*k),
            Topology::Dragonfly { p, a, h, .. } => u64::from(*p) + u64::from(*a) + u64::from(*h),
            Topology::Star { endpoints } => u64::from(*endpoints),
        };
        self.switches().saturating_mul(per_switch)
    }

    /// The names of the kinds of link, as `[links.…]` gives them.
    pub fn link_classes(&self) -> &'static [&'static str] {
        match self {
            Topology::Torus { dims, .. } | Topology::Mesh { dims, .. } => {
                &AXES[..AXES.len().min(1 + dims.len())]
            }
            Topology::Exanest { .. } => &["endpoint", "qfdb", "router", "x", "y", "z"],
            Topology::KaryTree { .. } => &["endpoint", "tree"],
            Topology::Dragonfly { .. } => &["endpoint", "local", "global"],
            Topology::Star { .. } => &["endpoint"],
        }
    }
}

/// Which way packets go.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Routing {
    /// One dimension after the other.
    DimensionOrder {
        /// Two virtual channels, changed where a ring closes.
        datelines: bool,
    },
    /// Up by the destination's digits.
    DModK,
    /// Up by any of the ports, then down.
    UpDown,
    /// The shortest way.
    Minimal,
    /// The shortest way, or by another group where the local queues say that is faster.
    UgalL {
        /// What favours the minimal path, in bytes × hops.
        threshold: Bytes,
    },
}

/// The section being checked: which of its keys the kind of topology asks for.
struct Keys<'r, 'a> {
    reader: &'r mut Reader<'a>,
    kind: &'r str,
    section: Location,
    /// Keys of the file that another kind left behind are dropped when the kind is a `--set`.
    kind_is_set: bool,
}

impl Keys<'_, '_> {
    fn needed<T>(&mut self, key: &str, entry: Option<Entry<T>>) -> Option<Entry<T>> {
        if entry.is_none() {
            self.reader.missing(self.section, "topology", key);
        }
        entry
    }

    /// The value, or one that follows from others.
    fn or_derived<T: Display>(&mut self, key: &str, entry: Option<Entry<T>>, value: T, how: &str) -> T {
        match entry {
            Some(entry) => entry.value,
            None => {
                self.reader.derive(&format!("topology.{key}"), &value, how);
                value
            }
        }
    }

    /// Reports a key that the kind does not ask for.
    fn refuse(&mut self, key: &str, place: Option<Location>) {
        let Some(place) = place else { return };
        if self.kind_is_set && !place.is_set() {
            self.reader.forget(&format!("topology.{key}"));
            return;
        }
        let problem = Problem::new(
            format!("`topology.{key}` means nothing to a topology of kind `{}`", self.kind),
            "not used",
            format!("remove `{key}`, or choose another kind"),
        );
        self.reader.report(place, problem);
    }
}

/// Where a key was written.
fn place<T>(entry: &Option<Entry<T>>) -> Option<Location> {
    entry.as_ref().map(|entry| entry.location)
}

/// Checks `[topology]`.
pub(super) fn check(raw: RawTopology, reader: &mut Reader<'_>) -> Option<(Topology, Routing)> {
    let kind = raw.kind.value;
    let kind_location = raw.kind.location;
    let name = kind.show();
    let mut keys = Keys { reader, kind: &name, section: raw.location, kind_is_set: kind_location.is_set() };
    use TopologyKind as T;
    let grid: &[T] = &[T::Torus, T::Mesh];
    let places: [(&str, Option<Location>, &[T]); 11] = [
        ("dims", place(&raw.dims), grid),
        ("endpoints_per_switch", place(&raw.endpoints_per_switch), grid),
        ("mezzanines", place(&raw.mezzanines), &[T::Exanest]),
        ("k", place(&raw.k), &[T::KaryTree]),
        ("n", place(&raw.n), &[T::KaryTree]),
        ("p", place(&raw.p), &[T::Dragonfly]),
        ("a", place(&raw.a), &[T::Dragonfly]),
        ("h", place(&raw.h), &[T::Dragonfly]),
        ("groups", place(&raw.groups), &[T::Dragonfly]),
        ("global", place(&raw.global), &[T::Dragonfly]),
        ("endpoints", place(&raw.endpoints), &[T::Star]),
    ];
    for (key, place, _) in places.iter().filter(|(_, _, kinds)| !kinds.contains(&kind)) {
        keys.refuse(key, *place);
    }
    let per_switch = raw.endpoints_per_switch.map_or(1, |entry| entry.value);
    let topology = match kind {
        T::Torus => keys
            .needed("dims", raw.dims)
            .and_then(|dims| check_dims(dims, keys.reader))
            .map(|dims| Topology::Torus { dims, endpoints_per_switch: per_switch }),
        T::Mesh => keys
            .needed("dims", raw.dims)
            .and_then(|dims| check_dims(dims, keys.reader))
            .map(|dims| Topology::Mesh { dims, endpoints_per_switch: per_switch }),
        T::Exanest => keys
            .needed("mezzanines", raw.mezzanines)
            .and_then(|mezzanines| check_exanest(mezzanines, keys.reader)),
        T::KaryTree => {
            let (k, n) = (keys.needed("k", raw.k), keys.needed("n", raw.n));
            k.zip(n).and_then(|(k, n)| check_tree(k, n, keys.reader))
        }
        T::Dragonfly => keys
            .needed("p", raw.p)
            .and_then(|p| check_dragonfly(p.value, raw.a, raw.h, raw.groups, raw.global, &mut keys)),
        T::Star => {
            keys.needed("endpoints", raw.endpoints).map(|entry| Topology::Star { endpoints: entry.value })
        }
    };
    let routing = check_routing(kind, raw.routing, raw.datelines, raw.ugal_threshold, &mut keys);

    let topology = topology?;
    let count = topology.endpoints();
    if count > MAX_ENDPOINTS {
        // A `--set` is the likelier culprit.
        let mut own = places.iter().filter(|(_, _, kinds)| kinds.contains(&kind)).filter_map(|place| place.1);
        let set = own.clone().find(|location| location.is_set());
        let location = set.or_else(|| own.next()).unwrap_or(kind_location);
        let problem = Problem::new(
            format!("the machine would have {count} endpoints"),
            "too large",
            format!("make it smaller: at most {MAX_ENDPOINTS} endpoints"),
        );
        keys.reader.report(location, problem);
        return None;
    }
    Some((topology, routing?))
}

fn check_dims(dims: Entry<Vec<u32>>, reader: &mut Reader<'_>) -> Option<Vec<u32>> {
    let most = AXES.len() - 1;
    if (1..=most).contains(&dims.value.len()) {
        return Some(dims.value);
    }
    let problem = Problem::new(
        format!("a torus or mesh has 1 to {most} dimensions"),
        format!("these are {}", dims.value.len()),
        "write dims = [4, 4, 2]",
    );
    reader.report(dims.location, problem);
    None
}

/// Up to four mezzanines form one Y ring; more are whole rings.
fn check_exanest(mezzanines: Entry<u32>, reader: &mut Reader<'_>) -> Option<Topology> {
    let count = mezzanines.value;
    if count <= 4 || count.is_multiple_of(4) {
        return Some(Topology::Exanest { mezzanines: count });
    }
    let problem = Problem::new(
        format!("{count} mezzanines do not fill rings of four"),
        "",
        format!("write 1 to 4 or a multiple of 4, such as {}", count - count % 4),
    );
    reader.report(mezzanines.location, problem);
    None
}

fn check_tree(k: Entry<u32>, n: Entry<u32>, reader: &mut Reader<'_>) -> Option<Topology> {
    if k.value >= 2 {
        return Some(Topology::KaryTree { k: k.value, n: n.value });
    }
    let problem = Problem::new("a 1-ary tree has one endpoint", "too small", "write k = 2 or more");
    reader.report(k.location, problem);
    None
}

fn check_dragonfly(
    p: u32,
    a: Option<Entry<u32>>,
    h: Option<Entry<u32>>,
    groups: Option<Entry<u32>>,
    global: Option<Entry<GlobalLinks>>,
    keys: &mut Keys<'_, '_>,
) -> Option<Topology> {
    let a = keys.or_derived("a", a, p.saturating_mul(2), "2p: balanced, Kim et al. 2008");
    let h = keys.or_derived("h", h, p, "p: balanced, Kim et al. 2008");
    let most = u64::from(a) * u64::from(h) + 1;
    if let Some(groups) = &groups
        && u64::from(groups.value) > most
    {
        let problem = Problem::new(
            format!("{} groups cannot all be joined", groups.value),
            format!("a·h + 1 = {most} is the most"),
            format!("write groups = {most} or less, or leave it out"),
        );
        keys.reader.report(groups.location, problem);
        return None;
    }
    let largest = u32::try_from(most).unwrap_or(u32::MAX);
    let groups = keys.or_derived("groups", groups, largest, "a·h + 1: the most, Kim et al. 2008");
    let global = global.map_or(GlobalLinks::Palmtree, |entry| entry.value);
    Some(Topology::Dragonfly { p, a, h, groups, global })
}

fn check_routing(
    topology: TopologyKind,
    routing: Option<Entry<RoutingKind>>,
    datelines: Option<Entry<bool>>,
    threshold: Option<Entry<Bytes>>,
    keys: &mut Keys<'_, '_>,
) -> Option<Routing> {
    use {RoutingKind as R, TopologyKind as T};
    let (usual, others): (R, &[R]) = match topology {
        T::Torus | T::Mesh | T::Exanest => (R::DimensionOrder, &[]),
        T::KaryTree => (R::DModK, &[R::UpDown]),
        T::Dragonfly => (R::Minimal, &[R::UgalL]),
        T::Star => (R::Minimal, &[]),
    };
    let fits = |kind: R| kind == usual || others.contains(&kind);
    let routing_is_set = routing.as_ref().is_some_and(|entry| entry.location.is_set());
    let mut kind = usual;
    match routing {
        Some(entry) if fits(entry.value) => kind = entry.value,
        Some(entry) if keys.kind_is_set && !entry.location.is_set() => keys.reader.forget("topology.routing"),
        Some(entry) => {
            let able: Vec<String> = std::iter::once(&usual).chain(others).map(Readable::show).collect();
            let problem = Problem::new(
                format!("{} does not route a topology of kind `{}`", entry.value.show(), keys.kind),
                "does not fit",
                format!("write routing = \"{}\"", able.join("\" or \"")),
            );
            keys.reader.report(entry.location, problem);
            return None;
        }
        None => {}
    }
    // A threshold stays in the file while `--set topology.routing=minimal` tries the other routing.
    keys.kind_is_set |= routing_is_set;
    if kind != R::DimensionOrder {
        keys.refuse("datelines", place(&datelines));
    }
    if kind != R::UgalL {
        keys.refuse("ugal_threshold", place(&threshold));
    }
    Some(match kind {
        R::DimensionOrder => Routing::DimensionOrder { datelines: datelines.is_none_or(|entry| entry.value) },
        R::DModK => Routing::DModK,
        R::UpDown => Routing::UpDown,
        R::Minimal => Routing::Minimal,
        R::UgalL => Routing::UgalL { threshold: threshold.map_or(Bytes::ZERO, |entry| entry.value) },
    })
}
