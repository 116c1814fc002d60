//! Trees in general: fat trees with taper, full-radix roots and links in parallel, and spine-leaf networks.
//!
//! ```text
//!   level 2          [0]         [1]          Between two levels lies a tier: every upper switch has so
//!                     |  \     /  |           many children, every lower one so many parents, and every
//!                     |  /     \  |           such pair so many links in parallel.
//!   level 1          [0]         [1]
//!                   /   \       /   \         Here: 2 children, 2 parents and 1 link above,
//!   level 0       [0]   [1]   [2]   [3]       2 children, 1 parent and 1 link below.
//!                 / \   / \   / \   / \
//!                0   1 2   3 4   5 6   7
//! ```
//! The switches of a level that have the same endpoints below are the top of a subtree; their number is its
//! width. A switch is its level, its subtree and its index in the subtree's top, and in this order switches
//! are numbered. Ports of a switch: link k to child c is c + k·children; behind all of these, link k to
//! parent p is p + k·parents. Parent p of the switch of index i has index i + p·width.
//!
//! # Source
//! S. R. Öhring, M. Ibel, S. K. Das, M. J. Kumar, "On generalized fat trees", IPPS 1995: XGFT, whose m are
//! the children here and whose w the parents. E. Zahavi, "Fat-tree routing and node ordering providing
//! contention free traffic for MPI global collectives", J. Parallel Distrib. Comput. 72, 2012: PGFT, with
//! links in parallel, whose numbering of ports is taken. Endpoints have one link (w_1 = p_1 = 1).

mod figures;
mod parameters;
mod routing;

pub use parameters::{SpineLeafParameters, TreeParameters};
pub use routing::{TreeRouting, TreeUpDown};

use crate::size::{MAX_ENDPOINTS, MAX_PORTS, SizeError, bits_for, check_counts, in_range, product};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId};

/// Most levels of switches of a [`Tree`].
pub const MAX_LEVELS: usize = 6;

const CLASSES: [&str; MAX_LEVELS] = ["endpoint", "level1", "level2", "level3", "level4", "level5"];

/// The lowest bit of the level in a switch's address; fields lie below.
const LEVEL_SHIFT: u32 = 61;

/// The links between two neighbouring levels of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tier {
    /// Switches below each switch of the upper level.
    pub children: u32,
    /// Switches above each switch of the lower level.
    pub parents: u32,
    /// Links between two such switches.
    pub parallel: u32,
}

/// Endpoints, switches and ports of a tree. Saturates.
fn size(endpoints_per_leaf: u32, tiers: &[Tier]) -> (u128, u128, u128) {
    let leaf = u128::from(endpoints_per_leaf);
    let children = |tiers: &[Tier]| product(tiers.iter().map(|tier| u64::from(tier.children)));
    let parents = |tiers: &[Tier]| product(tiers.iter().map(|tier| u64::from(tier.parents)));
    let (mut switches, mut ports) = (0u128, 0u128);
    for level in 0..=tiers.len() {
        let (below, above) = tiers.split_at(level);
        let count = children(above).saturating_mul(parents(below));
        let links = |to: u32, tier: &Tier| u128::from(to) * u128::from(tier.parallel);
        let down = below.last().map_or(leaf, |tier| links(tier.children, tier));
        let up = above.first().map_or(0, |tier| links(tier.parents, tier));
        switches = switches.saturating_add(count);
        ports = ports.saturating_add(count.saturating_mul(down + up));
    }
    (children(tiers).saturating_mul(leaf), switches, ports)
}

/// Bits of an endpoint's address. Only large numbers of links in parallel can exceed [`LEVEL_SHIFT`]: within
/// the limits on endpoints and switches the rest needs 57 at most.
fn address_bits(endpoints_per_leaf: u32, tiers: &[Tier]) -> u32 {
    let of_tier = |tier: &Tier| [tier.children, tier.parents, tier.parallel].map(bits_for);
    bits_for(endpoints_per_leaf) + tiers.iter().flat_map(of_tier).sum::<u32>()
}

/// Bits of an address that hold a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Field {
    shift: u32,
    mask: u32,
}

impl Field {
    /// The field of the values `0..count` from bit `shift` on, which moves behind it.
    fn next(shift: &mut u32, count: u32) -> Field {
        let bits = bits_for(count);
        let field = Field { shift: *shift, mask: (1 << bits) - 1 };
        *shift += bits;
        field
    }

    #[inline]
    fn of(self, address: Address) -> u32 {
        (address.0 >> self.shift) as u32 & self.mask
    }

    fn with(self, value: u32) -> u64 {
        u64::from(value) << self.shift
    }
}

/// A level of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Level {
    /// The number of its first switch.
    first: u32,
    /// Endpoints below a switch: those of its subtree.
    endpoints: u32,
    /// Switches at the top of a subtree.
    width: u32,
    /// Switches of the level below that a switch is joined to; endpoints at level 0.
    children: u32,
    /// Links to each of them.
    links_down: u32,
    /// Switches of the level above; none at the top.
    parents: u32,
    /// Links to each of them.
    links_up: u32,
    /// The child that has an endpoint.
    child: Field,
    /// D-mod-k's link to that child.
    link_down: Field,
    /// D-mod-k's parent; in the address of a switch of a higher level, its index's digit.
    parent: Field,
    /// D-mod-k's link to that parent.
    link_up: Field,
    /// The bits of an address that say of which subtree of this level something is.
    subtree: u64,
}

impl Level {
    /// Ports towards endpoints.
    #[inline]
    fn down(&self) -> u32 {
        self.children * self.links_down
    }

    /// Ports towards the roots.
    #[inline]
    fn up(&self) -> u32 {
        self.parents * self.links_up
    }

    /// Links that leave a subtree upwards.
    fn links_out(&self) -> u32 {
        self.width * self.up()
    }
}

/// The ports that bring a packet nearer, of which the routing takes one: `first`, `first + step`, and so on.
#[derive(Clone, Copy, Debug)]
struct Ways {
    first: u32,
    step: u32,
    count: u32,
    /// The one that D-mod-k takes.
    by_destination: u32,
}

impl Ways {
    /// The port of one of them.
    #[inline]
    fn port(&self, way: u32) -> PortId {
        PortId(self.first + way * self.step)
    }
}

/// A tree.
///
/// Addresses: the digits of an endpoint's number to the bases of the levels' children, and the parents and
/// links by which [D-mod-k](TreeRouting::DModK) goes to it. A switch has the digits of its subtree, those of
/// its index where endpoints have parents, and its level.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tree {
    levels: [Level; MAX_LEVELS],
    height: u32,
    switches: u32,
}

impl Tree {
    /// A tree with so many endpoints at every switch of the lowest level, and these tiers from there upwards.
    ///
    /// # Errors
    /// Where a number is zero, there are more than [`MAX_LEVELS`] levels, the machine exceeds the limits, or
    /// its addresses exceed 61 bits, which takes large numbers of links in parallel.
    pub fn new(endpoints_per_leaf: u32, tiers: &[Tier]) -> Result<Tree, SizeError> {
        let height = in_range("the number of levels", 1 + tiers.len() as u64, 1, MAX_LEVELS as u64)?;
        let (endpoints, switches, ports) = size(endpoints_per_leaf, tiers);
        check_counts(endpoints, switches, ports)?;
        in_range("endpoints per switch of the lowest level", endpoints_per_leaf.into(), 1, MAX_ENDPOINTS)?;
        for tier in tiers {
            in_range("the number of switches below a switch", tier.children.into(), 1, MAX_ENDPOINTS)?;
            in_range("the number of switches above a switch", tier.parents.into(), 1, MAX_PORTS)?;
            in_range("the number of links in parallel", tier.parallel.into(), 1, MAX_PORTS)?;
        }
        let bits = address_bits(endpoints_per_leaf, tiers);
        in_range("the number of bits of an address", bits.into(), 0, LEVEL_SHIFT.into())?;
        Ok(Tree {
            levels: levels(endpoints_per_leaf, tiers),
            height,
            switches: switches as u32, // below the limit, checked above
        })
    }

    /// Levels of switches.
    #[inline]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The levels of switches, those with endpoints first.
    fn levels(&self) -> &[Level] {
        &self.levels[..self.height as usize]
    }

    /// The level of a switch, from its address.
    #[inline]
    fn level(&self, address: Address) -> usize {
        (address.0 >> LEVEL_SHIFT) as usize
    }

    /// The level of a switch, its subtree and its index in the subtree's top.
    fn place(&self, switch: SwitchId) -> (usize, u32, u32) {
        let above = self.levels()[1..].iter().filter(|level| level.first <= switch.0);
        let l = above.count();
        let level = &self.levels[l];
        let in_level = switch.0 - level.first;
        (l, in_level / level.width, in_level % level.width)
    }

    /// The switch at a [`Tree::place`].
    fn switch_at(&self, l: usize, subtree: u32, index: u32) -> SwitchId {
        let level = &self.levels[l];
        SwitchId(level.first + subtree * level.width + index)
    }

    /// The ports of the switch at `at` that bring a packet nearer to the endpoint at `to`.
    #[inline]
    fn ways(&self, at: Address, to: Address) -> Ways {
        let level = &self.levels[self.level(at)];
        if (at.0 ^ to.0) & level.subtree == 0 {
            Ways {
                first: level.child.of(to),
                step: level.children,
                count: level.links_down,
                by_destination: level.link_down.of(to),
            }
        } else {
            Ways {
                first: level.down(),
                step: 1,
                count: level.up(),
                by_destination: level.parent.of(to) + level.link_up.of(to) * level.parents,
            }
        }
    }

    /// The fields of an endpoint's number.
    fn digits(&self, mut number: u32) -> u64 {
        let mut fields = 0;
        for level in self.levels() {
            fields |= level.child.with(number % level.children);
            number /= level.children;
        }
        fields
    }
}

/// The levels of a tree within the limits.
fn levels(endpoints_per_leaf: u32, tiers: &[Tier]) -> [Level; MAX_LEVELS] {
    let mut levels = [Level::default(); MAX_LEVELS];
    levels[0] = Level {
        endpoints: endpoints_per_leaf,
        width: 1,
        children: endpoints_per_leaf,
        links_down: 1,
        ..Level::default()
    };
    for (l, &Tier { children, parents, parallel }) in tiers.iter().enumerate() {
        (levels[l].parents, levels[l].links_up) = (parents, parallel);
        levels[l + 1] = Level {
            endpoints: levels[l].endpoints * children,
            width: levels[l].width * parents,
            children,
            links_down: parallel,
            ..Level::default()
        };
    }
    let endpoints = levels[tiers.len()].endpoints;
    let (mut first, mut shift) = (0, 0);
    for level in &mut levels[..=tiers.len()] {
        level.first = first;
        first += endpoints / level.endpoints * level.width;
        level.child = Field::next(&mut shift, level.children);
        level.subtree = u64::MAX << shift;
    }
    let digits = (1 << shift) - 1;
    for l in 0..levels.len() {
        levels[l].subtree &= digits;
        levels[l].parent = Field::next(&mut shift, levels[l].parents);
        levels[l].link_up = Field::next(&mut shift, levels[l].links_up);
        if l < tiers.len() {
            levels[l + 1].link_down = levels[l].link_up;
        }
    }
    levels
}

impl Topology for Tree {
    /// The subtree below the top, and the leaf.
    fn parts_of(&self, endpoint: EndpointId) -> [u32; 2] {
        let below_top = self.levels().iter().rev().nth(1);
        [below_top.map_or(0, |level| endpoint.0 / level.endpoints), self.attachment(endpoint).0.0]
    }

    fn endpoints(&self) -> u32 {
        self.levels()[self.height as usize - 1].endpoints
    }

    fn switches(&self) -> u32 {
        self.switches
    }

    fn ports(&self, switch: SwitchId) -> u32 {
        let level = &self.levels[self.place(switch).0];
        level.down() + level.up()
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        let (l, subtree, index) = self.place(switch);
        let level = &self.levels[l];
        if let Some(up) = port.0.checked_sub(level.down()) {
            let above = &self.levels[l + 1];
            let (parent, link) = (up % level.parents, up / level.parents);
            let switch = self.switch_at(l + 1, subtree / above.children, index + parent * level.width);
            return Attachment::Switch(switch, PortId(subtree % above.children + link * above.children));
        }
        let (child, link) = (port.0 % level.children, port.0 / level.children);
        let subtree = subtree * level.children + child;
        if l == 0 {
            return Attachment::Endpoint(EndpointId(subtree));
        }
        let below = &self.levels[l - 1];
        let switch = self.switch_at(l - 1, subtree, index % below.width);
        let parent = index / below.width;
        Attachment::Switch(switch, PortId(below.down() + parent + link * below.parents))
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        let per_leaf = self.levels[0].children;
        (SwitchId(endpoint.0 / per_leaf), PortId(endpoint.0 % per_leaf))
    }

    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass {
        let l = self.place(switch).0;
        LinkClass(l as u8 + u8::from(port.0 >= self.levels[l].down()))
    }

    fn link_classes(&self) -> Vec<&str> {
        CLASSES[..self.height as usize].to_vec()
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        let (l, subtree, mut index) = self.place(switch);
        let mut address = (l as u64) << LEVEL_SHIFT | self.digits(subtree * self.levels[l].endpoints);
        for level in &self.levels[..l] {
            address |= level.parent.with(index % level.parents);
            index /= level.parents;
        }
        Address(address)
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        let (mut address, mut rest) = (self.digits(endpoint.0), endpoint.0);
        for level in &self.levels()[..self.height as usize - 1] {
            address |= level.parent.with(rest % level.parents);
            rest /= level.parents;
            address |= level.link_up.with(rest % level.links_up);
        }
        Address(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Family;
    use crate::proof::prove;
    use crate::traits::RoutedTopology;

    fn tree(down: &[u32], up: &[u32], parallel: &[u32]) -> Tree {
        let [down, up, parallel] = [down, up, parallel].map(<[u32]>::to_vec);
        let parameters = TreeParameters { down, up, parallel, routing: TreeRouting::DModK };
        parameters.check().unwrap();
        parameters.build().unwrap().topology().clone()
    }

    fn per_level(tree: &Tree) -> Vec<u32> {
        let mut counts = vec![0; tree.height() as usize];
        (0..tree.switches()).for_each(|switch| counts[tree.place(SwitchId(switch)).0] += 1);
        counts
    }

    /// Catches levels of the wrong size: the full tree of switches of k ports in three levels has k^3/4
    /// endpoints and 5k^2/4 switches (Al-Fares et al. 2008).
    #[test]
    fn the_full_tree_of_36_port_switches_has_11664_endpoints() {
        let full = tree(&[18, 18, 36], &[18, 18], &[1, 1]);
        assert_eq!((full.endpoints(), full.switches()), (11_664, 1_620));
        assert_eq!(per_level(&full), [648, 648, 324]);
        assert!((0..full.switches()).all(|switch| full.ports(SwitchId(switch)) == 36));
    }

    #[test]
    fn a_tree_of_128_hosts_full_tapered_and_with_links_in_parallel() {
        assert_eq!(per_level(&tree(&[4, 4, 8], &[4, 4], &[1, 1])), [32, 32, 16]);
        assert_eq!(per_level(&tree(&[4, 4, 8], &[2, 4], &[1, 1])), [32, 16, 8]);
        // Of 8 leaves a root has two links to each, so that there are half as many roots of the same ports.
        let doubled = tree(&[4, 8], &[4], &[2]);
        assert_eq!((doubled.endpoints(), per_level(&doubled)), (16, vec![4, 2]));
        // Link 1 of leaf 3 to root 1.
        let (leaf, root) = (SwitchId(3), SwitchId(4 + 1));
        assert_eq!(doubled.peer(leaf, PortId(4 + 1 + 2)), Attachment::Switch(root, PortId(3 + 4)));
    }

    /// Catches a numbering of switches or ports other than the one that is written above.
    #[test]
    fn parents_lie_a_width_apart() {
        let tapered = tree(&[4, 4, 8], &[2, 4], &[1, 1]);
        // Leaf 5 is child 1 of subtree 1, whose top are the switches 32 + 2 and 32 + 3.
        assert_eq!(tapered.peer(SwitchId(5), PortId(4 + 1)), Attachment::Switch(SwitchId(35), PortId(1)));
        // Index 1 of subtree 1; parent 2 has index 1 + 2·2.
        assert_eq!(
            tapered.peer(SwitchId(35), PortId(4 + 2)),
            Attachment::Switch(SwitchId(48 + 5), PortId(1))
        );
        assert_eq!(tapered.link_class(SwitchId(35), PortId(0)), LinkClass(1));
        assert_eq!(tapered.link_class(SwitchId(35), PortId(4)), LinkClass(2));
        assert_eq!(tapered.link_classes(), ["endpoint", "level1", "level2"]);
    }

    /// Catches fields of addresses that overlap or run over at the largest sizes.
    #[test]
    fn the_largest_trees_have_addresses() {
        let tier = |children, parents, parallel| Tier { children, parents, parallel };
        for (leaf, tiers) in [
            (17, vec![tier(17, 17, 1); 4]),
            (9, vec![tier(9, 9, 1), tier(9, 9, 1), tier(9, 9, 1), tier(9, 9, 1), tier(17, 9, 1)]),
            (1024, vec![tier(1024, 512, 1)]),
            (1, vec![tier(1, 1 << 20, 1)]),
            (1, vec![tier(1, 1, 1 << 20)]),
        ] {
            let tree = Tree::new(leaf, &tiers).unwrap();
            let last = EndpointId(tree.endpoints() - 1);
            let (switch, port) = tree.attachment(last);
            let ways = tree.ways(tree.switch_address(switch), tree.endpoint_address(last));
            assert_eq!((ways.port(0), ways.count), (port, 1));
            assert!(ways.by_destination == 0);
            for (at, to) in [(switch, EndpointId(0)), (SwitchId(0), last)] {
                let ways = tree.ways(tree.switch_address(at), tree.endpoint_address(to));
                assert!(ways.port(ways.by_destination).0 < tree.ports(at));
            }
        }
    }

    #[test]
    fn impossible_sizes_are_refused_with_the_limit() {
        let text = |leaf, tiers: &[[u32; 3]]| {
            let tier = |&[children, parents, parallel]: &[u32; 3]| Tier { children, parents, parallel };
            Tree::new(leaf, &tiers.iter().map(tier).collect::<Vec<_>>()).unwrap_err().to_string()
        };
        assert!(text(1000, &[[1000, 1, 1], [1000, 1, 1]]).contains("1000000000 endpoints; the limit is"));
        assert!(text(u32::MAX, &[[u32::MAX; 3]; 5]).contains("the limit is"));
        assert!(text(1, &[[1, 1, 1 << 28]]).contains("ports; the limit is"));
        assert!(text(1, &[[1, 1 << 25, 1]]).contains("switches; the limit is"));
        assert!(text(0, &[]).contains("endpoints per switch of the lowest level is 0; it must be 1 to"));
        for zero in 0..3 {
            let mut tier = [2; 3];
            tier[zero] = 0;
            assert!(text(2, &[tier]).contains("is 0; it must be 1 to"));
        }
        assert!(text(2, &[[2, 1, 1]; 6]).contains("the number of levels is 7; it must be 1 to 6"));
        assert!(text(2, &[[2, 2, 1 << 11]; 5]).contains("bits of an address is 66; it must be 0 to 61"));
    }

    /// Catches a proof of a large tree that looks at every channel.
    #[test]
    fn large_trees_are_proved_by_symmetry() {
        let parameters = TreeParameters {
            down: vec![64, 64, 128],
            up: vec![64, 64],
            parallel: vec![1, 1],
            routing: TreeRouting::Adaptive,
        };
        let proof = prove(&parameters.build().unwrap()).unwrap();
        assert_eq!(proof.method, crate::Method::RanksBySymmetry);
        assert!(proof.channels < 1000, "{proof}");
    }
}
