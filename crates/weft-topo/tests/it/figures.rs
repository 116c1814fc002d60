//! The figures against enumeration.

use crate::machines::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weft_topo::*;
use weft_units::{EndpointId, PortId, SwitchId};

/// Loads of all ports when `flows` carry so much each, per class the largest.
fn enumerated_loads(
    layout: &Layout,
    flows: impl Iterator<Item = (EndpointId, EndpointId, f64)>,
    throws: u64,
) -> Vec<f64> {
    let mut loads: BTreeMap<(SwitchId, PortId), f64> = BTreeMap::new();
    let mut rng = RandomView::new(7);
    for (from, to, load) in flows.filter(|(from, to, _)| from != to) {
        *loads.entry(layout.attachment(to)).or_default() += load;
        for _ in 0..throws {
            let way = match throws {
                1 => walk(layout, (from, to), &mut Idle, 64),
                _ => walk(layout, (from, to), &mut rng, 64),
            };
            for channel in way {
                *loads.entry((channel.switch, channel.port)).or_default() += load / throws as f64;
            }
        }
    }
    let mut busiest = vec![0.0f64; layout.link_classes().len()];
    for ((switch, port), load) in loads {
        let class = usize::from(layout.link_class(switch, port).0);
        busiest[class] = busiest[class].max(load);
    }
    busiest
}

fn close(left: &[f64], right: &[f64], error: f64) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(l, r)| (l - r).abs() <= error * (1.0 + r))
}

fn uniform_flows(layout: &Layout) -> impl Iterator<Item = (EndpointId, EndpointId, f64)> {
    (0..layout.endpoints()).map(EndpointId).flat_map(move |from| {
        let reached: Vec<_> = (0..layout.endpoints())
            .map(EndpointId)
            .filter(|&to| to != from && layout.reachable(from, to))
            .collect();
        let share = 1.0 / reached.len() as f64;
        reached.into_iter().map(move |to| (from, to, share))
    })
}

/// Whether packets take detours even in an idle network, as with Valiant: a walk is then longer than the
/// minimal path that figures are about. One link more is not a detour: the Dragonfly has at most one global
/// link on a minimal path.
fn detours_when_idle(layout: &Layout) -> bool {
    layout.idle_detour() > 1
}

proptest! {
    /// Catches wrong closed forms of distances.
    #[test]
    fn distances_agree_with_enumeration(layout in any_machine()) {
        prop_assume!(!detours_when_idle(&layout));
        let figures = figures(&layout);
        let hops: Vec<_> = pairs(&layout)
            .filter(|(from, to)| from != to)
            .map(|(from, to)| walk(&layout, (from, to), &mut Idle, 64).len() as u32)
            .collect();
        prop_assert_eq!(figures.diameter, hops.iter().copied().max().unwrap_or(0));
        let mean = f64::from(hops.iter().sum::<u32>()) / (hops.len().max(1) as f64);
        prop_assert!((figures.mean_distance - mean).abs() < 1e-9, "{} is not {mean}", figures.mean_distance);
    }

    /// Catches wrong closed forms of the load under uniform traffic.
    #[test]
    fn uniform_load_agrees_with_enumeration(layout in any_machine()) {
        let load = channel_load(&layout, Pattern::Uniform).unwrap();
        match load.paths {
            // Random numbers are compared with their expectation below, on one machine.
            Paths::Random | Paths::Sampled => {}
            _ => {
                let expected = enumerated_loads(&layout, uniform_flows(&layout), 1);
                let found = &load.per_class;
                prop_assert!(close(found, &expected, 1e-9), "{found:?} is not {expected:?}");
            }
        }
    }

    /// Catches wrong walks of permutations, and patterns that are refused or accepted wrongly.
    #[test]
    fn permutation_loads_agree_with_enumeration(layout in any_machine()) {
        for pattern in [Pattern::Transpose, Pattern::Tornado, Pattern::BitComplement] {
            let Ok(permutation) = Permutation::new(pattern, &layout) else {
                prop_assert!(channel_load(&layout, pattern).is_err());
                let rack = matches!(&layout, Layout::Exanest(_)) && layout.endpoints() == 192;
                let square = layout.endpoints().isqrt().pow(2) == layout.endpoints();
                prop_assert!(rack || pattern == Pattern::Transpose && !square);
                continue;
            };
            let load = channel_load(&layout, pattern).unwrap();
            if load.paths == Paths::Deterministic {
                let sources = (0..layout.endpoints()).map(EndpointId);
                let flows = sources.map(|source| (source, permutation.destination(source), 1.0));
                let expected = enumerated_loads(&layout, flows, 1);
                let agree = close(&load.per_class, &expected, 1e-9);
                prop_assert!(agree, "{pattern}: {load:?} is not {expected:?}");
            }
        }
    }

    /// Catches links that are counted twice or in the wrong class.
    #[test]
    fn links_agree_with_enumeration(layout in any_machine()) {
        let total: u64 = figures(&layout).links.iter().map(|class| class.links).sum();
        let ends = |switch| (0..layout.ports(switch)).map(move |port| (switch, PortId(port)));
        let switch_ends = (0..layout.switches())
            .flat_map(|switch| ends(SwitchId(switch)))
            .filter(|&(switch, port)| matches!(layout.peer(switch, port), Attachment::Switch(..)))
            .count() as u64;
        prop_assert_eq!(total, u64::from(layout.endpoints()) + switch_ends / 2);
        prop_assert_eq!(figures(&layout).links[0].links, u64::from(layout.endpoints()));
    }
}

/// The fewest links between two halves of the endpoints, over all ways to halve the switches that have
/// endpoints; switches without endpoints go where they cost least.
fn smallest_bisection(layout: &Layout) -> u64 {
    let switches = layout.switches();
    let mut smallest = u64::MAX;
    let endpoints_at = |switch: u32| {
        (0..layout.ports(SwitchId(switch)))
            .filter(|&port| matches!(layout.peer(SwitchId(switch), PortId(port)), Attachment::Endpoint(_)))
            .count() as u32
    };
    let endpoints: Vec<_> = (0..switches).map(endpoints_at).collect();
    for half in 0u32..1 << (switches - 1) {
        let inside = |switch: u32| half >> switch & 1;
        if 2 * (0..switches).map(|s| inside(s) * endpoints[s as usize]).sum::<u32>() != layout.endpoints() {
            continue;
        }
        let mut cut = 0;
        for switch in 0..switches {
            for port in 0..layout.ports(SwitchId(switch)) {
                if let Attachment::Switch(other, _) = layout.peer(SwitchId(switch), PortId(port)) {
                    cut += u64::from(inside(switch) != inside(other.0));
                }
            }
        }
        smallest = smallest.min(cut / 2);
    }
    smallest
}

#[test]
fn the_bisection_is_the_smallest_where_it_can_be_enumerated() {
    for layout in [
        torus(&[(4, true), (4, true)], 1, true),
        torus(&[(4, false), (3, true)], 2, true),
        torus(&[(2, true), (2, true), (4, true)], 1, true),
        torus(&[(8, true)], 1, true),
        tree(2, 3, Ascent::DModK),
        tree(4, 2, Ascent::DModK),
        general_tree(&[2, 4], &[3], &[1], TreeRouting::DModK),
        general_tree(&[1, 6, 2], &[6, 3], &[3, 1], TreeRouting::DModK),
        // Cheaper inside the subtrees than between them.
        general_tree(&[2, 2, 4], &[1, 4], &[1, 2], TreeRouting::DModK),
        // Three subtrees, the third of which is halved.
        general_tree(&[1, 2, 3], &[2, 2], &[1, 1], TreeRouting::DModK),
        general_tree(&[1, 2, 3], &[1, 3], &[1, 1], TreeRouting::DModK),
        exanest(1, true),
        minimal([1, 4, 1, 1], GlobalLinks::Palmtree),
        minimal([1, 4, 1, 4], GlobalLinks::Palmtree),
    ] {
        let figures = figures(&layout);
        assert_eq!(
            figures.bisection.links,
            smallest_bisection(&layout),
            "{layout:?} {:?}",
            figures.bisection
        );
    }
}

proptest! {
    /// Catches a cut of a tree that does not halve it, and one that is not the smallest: taper and links in
    /// parallel decide at which level it lies.
    #[test]
    fn the_bisection_of_a_tree_is_the_smallest(layout in any_tree()) {
        let leaf = |endpoint| layout.attachment(EndpointId(endpoint)).0.0;
        let per_leaf = (0..layout.endpoints()).filter(|&endpoint| leaf(endpoint) == 0).count() as u32;
        let leaves = layout.endpoints() / per_leaf;
        if !leaves.is_multiple_of(2) || layout.switches() > 14 {
            return Ok(());
        }
        let (found, smallest) = (figures(&layout).bisection, smallest_bisection(&layout));
        prop_assert!(found.links >= smallest, "{layout:?} {found:?} {smallest}");
        // An odd number of subtrees leaves one to be halved, for which there are more ways than are tried.
        prop_assert!(found.links == smallest || !leaves.is_power_of_two(), "{layout:?} {found:?} {smallest}");
    }
}

#[test]
fn random_up_and_its_load_agree_within_the_noise() {
    let layout = tree(4, 3, Ascent::Random);
    for pattern in [Pattern::Transpose, Pattern::Tornado, Pattern::BitComplement] {
        let permutation = Permutation::new(pattern, &layout).unwrap();
        let load = channel_load(&layout, pattern).unwrap();
        let flows = (0..64).map(EndpointId).map(|s| (s, permutation.destination(s), 1.0));
        let thrown = enumerated_loads(&layout, flows, 4000);
        assert!(close(&load.per_class, &thrown, 0.06), "{pattern}: {load:?} is not {thrown:?}");
    }
    let load = channel_load(&layout, Pattern::Uniform).unwrap();
    let thrown = enumerated_loads(&layout, uniform_flows(&layout), 100);
    assert!(close(&load.per_class, &thrown, 0.06), "{load:?} is not {thrown:?}");
}

/// Catches loads of a tapered tree that forget the taper or the links in parallel, and a load of adaptive
/// routing that is not the same expectation.
#[test]
fn loads_of_a_tapered_tree_agree_within_the_noise() {
    let machine = |routing| general_tree(&[4, 4, 4], &[2, 4], &[1, 2], routing);
    let (layout, adaptive) = (machine(TreeRouting::UpDown), machine(TreeRouting::Adaptive));
    for pattern in [Pattern::Tornado, Pattern::BitComplement] {
        let permutation = Permutation::new(pattern, &layout).unwrap();
        let load = channel_load(&layout, pattern).unwrap();
        let flows = (0..32).map(EndpointId).map(|s| (s, permutation.destination(s), 1.0));
        let thrown = enumerated_loads(&layout, flows, 4000);
        assert!(close(&load.per_class, &thrown, 0.06), "{pattern}: {load:?} is not {thrown:?}");
        assert_eq!(channel_load(&adaptive, pattern), Ok(load));
    }
    let load = channel_load(&layout, Pattern::Uniform).unwrap();
    let thrown = enumerated_loads(&layout, uniform_flows(&layout), 300);
    assert!(close(&load.per_class, &thrown, 0.06), "{load:?} is not {thrown:?}");
    assert_eq!(channel_load(&adaptive, Pattern::Uniform), Ok(load));
}

#[test]
fn ugal_balances_what_minimal_routing_cannot() {
    let dims = (2, 4, 2, 9);
    let layout = ugal([dims.0, dims.1, dims.2, dims.3], GlobalLinks::Palmtree);
    let direct = minimal([dims.0, dims.1, dims.2, dims.3], GlobalLinks::Palmtree);
    let alone = channel_load(&direct, Pattern::Tornado).unwrap().busiest();
    let load = channel_load(&layout, Pattern::Tornado).unwrap();
    let Paths::Split { minimal: share } = load.paths else { panic!("{:?}", load.paths) };
    // Tornado shifts by 35 of 72: half of the 8 endpoints of a group share one link, and more.
    assert!(alone >= 4.0 && load.busiest() < alone / 2.0 && share > 0.0 && share < 1.0, "{alone} {load:?}");
}

#[test]
fn the_best_share_of_detours_is_found() {
    // One switch and one endpoint per group: a full mesh, whose load is countable by hand.
    let layout = ugal([1, 1, 8, 9], GlobalLinks::Absolute);
    let load = channel_load(&layout, Pattern::Tornado).unwrap();
    let Paths::Split { minimal: share } = load.paths else { panic!("{:?}", load.paths) };
    // The direct link carries m, each other link 2(1 - m)/7 (first or second leg): equal at m = 2/9.
    assert!((share - 2.0 / 9.0).abs() < 1e-6, "{load:?}");
    assert!((load.busiest() - 2.0 / 9.0).abs() < 1e-6, "{load:?}");
}

#[test]
fn the_channel_load_bound_of_a_torus() {
    // 8-ary 3-cube: k/8 per unit of injection, over distinct destinations N/(N-1) of that.
    let layout = torus(&[(8, true), (8, true), (8, true)], 1, true);
    let load = channel_load(&layout, Pattern::Uniform).unwrap();
    assert!((load.busiest() - 512.0 / 511.0).abs() < 1e-12);
    assert!((load.bound(&[1.0; 4]) - 511.0 / 512.0).abs() < 1e-12);
    assert!((load.bound(&[1.0, 0.5, 1.0, 1.0]) - 511.0 / 1024.0).abs() < 1e-12);
    // Tornado goes k/2 - 1 = 3 hops one way only.
    assert_eq!(channel_load(&layout, Pattern::Tornado).unwrap().busiest(), 3.0);
}

#[test]
fn a_pattern_that_does_not_exist_says_why() {
    let reason = |layout: &Layout, pattern| channel_load(layout, pattern).unwrap_err().to_string();
    assert_eq!(
        reason(&star(10), Pattern::Transpose),
        "transpose needs a square number of endpoints, such as 9; the machine has 10"
    );
    assert!(reason(&exanest(12, true), Pattern::BitComplement).contains("no link joins"));
    assert!(channel_load(&exanest(12, true), Pattern::Tornado).is_ok());
}

#[test]
fn figures_are_written_with_units_and_reasons() {
    let json = serde_json::to_value(figures(&exanest(12, true))).unwrap();
    assert_eq!(json["diameter_hops"], 9);
    assert_eq!(json["links"][2], serde_json::json!({ "class": "router", "links": 48 }));
    assert_eq!(json["links"][5], serde_json::json!({ "class": "z", "links": 16 }));
    assert_eq!(json["channel_loads"][2]["pattern"], "tornado");
    assert_eq!(json["channel_loads"][2]["load"]["paths"], "deterministic");
    assert!(
        json["channel_loads"][1]["load"]["undefined"]
            .as_str()
            .unwrap()
            .starts_with("transpose needs a square")
    );
    let json = serde_json::to_value(figures(&ugal([1, 1, 8, 9], GlobalLinks::Absolute))).unwrap();
    assert!(json["channel_loads"][2]["load"]["paths"]["split"]["minimal"].is_f64());
}

/// A layout without closed forms.
struct Counted(Layout);

impl RoutedTopology for Counted {
    type Topology = Layout;
    fn topology(&self) -> &Layout {
        &self.0
    }
}

impl Routing for Counted {
    fn virtual_channels(&self) -> u32 {
        self.0.virtual_channels()
    }
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        self.0.route(at, to, state, view)
    }
    fn is_deterministic(&self) -> bool {
        self.0.is_deterministic()
    }
}

impl ClosedForms for Counted {}

proptest! {
    /// Catches a closed form that differs from counting, and counting that differs from closed forms.
    #[test]
    fn closed_forms_agree_with_counting(layout in any_machine()) {
        let (closed, counted) = (figures(&layout), figures(&Counted(layout.clone())));
        prop_assert_eq!(counted.sources, SourcesCounted::All);
        if !detours_when_idle(&layout) {
            prop_assert_eq!(closed.diameter, counted.diameter);
            let means = (closed.mean_distance, counted.mean_distance);
            prop_assert!((means.0 - means.1).abs() < 1e-9, "{means:?}");
        }
        for (closed, counted) in closed.channel_loads.iter().zip(&counted.channel_loads) {
            match (&closed.load, &counted.load) {
                (Ok(closed), Ok(counted)) if counted.paths == Paths::Deterministic => {
                    let agree = close(&closed.per_class, &counted.per_class, 1e-9);
                    prop_assert!(agree, "{closed:?} {counted:?}");
                }
                (Ok(closed), Ok(counted)) => prop_assert_eq!(closed.per_class.len(), counted.per_class.len()),
                (closed, counted) => prop_assert_eq!(closed, counted),
            }
        }
    }
}

/// Catches a cut of the default that does not halve: no cut into halves has fewer links than the smallest.
#[test]
fn the_default_cut_halves_the_endpoints() {
    for (layout, links) in [
        (torus(&[(4, true), (4, true)], 1, true), 8),
        (torus(&[(8, true)], 1, true), 2),
        (tree(4, 2, Ascent::DModK), 8),
        (minimal([1, 4, 1, 4], GlobalLinks::Palmtree), 4),
        (star(10), 0),
    ] {
        assert_eq!(figures(&Counted(layout.clone())).bisection.links, links, "{layout:?}");
        assert!(figures(&layout).bisection.links <= links);
    }
}

/// Catches figures of a large machine that are said to be counted from everywhere.
#[test]
fn large_machines_are_counted_from_a_sample_and_say_so() {
    let layout = torus(&[(32, true), (32, true), (8, true)], 1, true);
    let (closed, counted) = (figures(&layout), figures(&Counted(layout)));
    assert_eq!((closed.sources, counted.sources), (SourcesCounted::All, SourcesCounted::Sample));
    assert_eq!(serde_json::to_value(&counted).unwrap()["sources"], "sample");
    assert_eq!(serde_json::to_value(&closed).unwrap().get("sources"), None);
    // From every endpoint of a torus it looks the same.
    assert_eq!(closed.diameter, counted.diameter);
    assert!((closed.mean_distance - counted.mean_distance).abs() < 1e-9);
    // All links of a dimension are alike: the mean is the load of the busiest.
    let uniform = |figures: &Figures| figures.channel_loads[0].load.clone().unwrap().per_class;
    let (closed, counted) = (uniform(&closed), uniform(&counted));
    assert!(close(&counted, &closed, 0.01), "{counted:?} is not {closed:?}");
}

/// Catches loads of a sample that fall with the size of the machine, as the share of the sources does: from
/// all sources and from a sample a graph has nearly the same mean.
#[test]
fn a_sample_of_a_graph_has_the_mean_load_of_its_links() {
    let graph = |p| SlimFlyParameters { q: 7, p, routing: GraphRouting::Spray }.build().unwrap();
    let uniform = |p| channel_load(&graph(p), Pattern::Uniform).unwrap().per_class;
    // 98 switches; with 60 endpoints at each there are 5,880, which are counted from a sample.
    let (few, many) = (uniform(10), uniform(60));
    assert!((many[0] - 1.0).abs() < 1e-6, "{many:?}");
    for class in [1, 2] {
        let ratio = many[class] / few[class] / 6.0;
        assert!((0.75..=1.0).contains(&ratio), "{ratio}: {few:?} {many:?}");
    }
}
