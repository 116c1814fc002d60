//! The keys of trees in machine files.

use super::{LEVEL_SHIFT, MAX_LEVELS, Tier, Tree, TreeRouting, TreeUpDown, address_bits, size};
use crate::drawing::Places;
use crate::family::{Counts, Family};
use crate::parameters;
use crate::size::SizeError;
use weft_keys::Misfit;

parameters! {
    /// A tree.
    pub struct TreeParameters routed by TreeRouting {
        /// Ports down of a switch of each level, those with endpoints first.
        down: Vec<u32>;
        /// Ports up of a switch of each level but the top; as many as down where not given.
        up: Vec<u32> = down[..down.len().saturating_sub(1)].to_vec(), how("as many as down: no taper");
        /// Links of each level but the top that go to the same switch above; 1 each where not given.
        parallel: Vec<u32> = vec![1; up.len()];
    }
}

parameters! {
    /// A spine-leaf network: a tree of two levels.
    pub struct SpineLeafParameters routed by TreeRouting {
        /// Switches with endpoints.
        leaves: u32;
        /// Switches that every leaf is joined to.
        spines: u32;
        /// Endpoints at every leaf.
        endpoints_per_leaf: u32;
        /// Links between a leaf and a spine; 1 where not given.
        links_per_spine: u32 = 1;
    }
}

impl TreeParameters {
    /// The tiers, where the lists fit together.
    fn tiers(&self) -> Vec<Tier> {
        let each = self.down.iter().skip(1).zip(&self.up).zip(&self.parallel);
        let share = |ports: u32, parallel: u32| ports.checked_div(parallel).unwrap_or(0);
        let tier = |((&down, &up), &parallel)| Tier {
            children: share(down, parallel),
            parents: share(up, parallel),
            parallel,
        };
        each.map(tier).collect()
    }

    fn endpoints_per_leaf(&self) -> u32 {
        self.down.first().copied().unwrap_or(0)
    }

    /// Refuses a list that has not one number for each level but the top. `usual` is such a list.
    fn check_length(&self, key: &'static str, list: &[u32], usual: &[u32]) -> Result<(), Misfit> {
        if list.len() == usual.len() {
            return Ok(());
        }
        let help = match usual.len() {
            0 => format!("remove `{key}`"),
            needed => {
                let fitting: Vec<u32> = list.iter().chain(usual.iter().skip(list.len())).copied().collect();
                format!("write {needed} of them, such as {key} = {:?}, or remove `{key}`", &fitting[..needed])
            }
        };
        Err(Misfit {
            key,
            title: format!("`{key}` has a number for each level but the top"),
            label: format!("{} for {} levels", list.len(), self.down.len()),
            help,
        })
    }

    /// Refuses links in parallel that leave a remainder, above or below.
    fn check_parallel(&self) -> Result<(), Misfit> {
        let each = self.down.iter().skip(1).zip(&self.up).zip(&self.parallel);
        for (l, ((&down, &up), &parallel)) in each.enumerate() {
            if up.is_multiple_of(parallel) && down.is_multiple_of(parallel) {
                continue;
            }
            let common = greatest_common_divisor(up, down);
            return Err(Misfit {
                key: "parallel",
                title: format!("ports between levels {l} and {} do not come in groups of {parallel}", l + 1),
                label: format!("up[{l}] = {up} and down[{}] = {down}", l + 1),
                help: format!("write a divisor of {common} in place of {parallel}, or change these ports"),
            });
        }
        Ok(())
    }

    /// Refuses so many links in parallel that addresses cannot hold them.
    fn check_addresses(&self) -> Result<(), Misfit> {
        let bits = address_bits(self.endpoints_per_leaf(), &self.tiers());
        if bits <= LEVEL_SHIFT || self.counts().check().is_err() {
            return Ok(());
        }
        Err(Misfit {
            key: "parallel",
            title: "so many links in parallel do not fit the addresses of packets".to_owned(),
            label: format!("{bits} bits of {LEVEL_SHIFT}"),
            help: "write smaller numbers".to_owned(),
        })
    }
}

fn greatest_common_divisor(one: u32, other: u32) -> u32 {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Levels as rows.
fn places(tiers: &[Tier]) -> Places {
    let count = |level: usize| -> u32 {
        let (below, above) = tiers.split_at(level);
        above.iter().map(|tier| tier.children).chain(below.iter().map(|tier| tier.parents)).product()
    };
    let levels: Vec<u32> = (0..=tiers.len()).map(count).collect();
    Places::levels(&levels, tiers.last().map_or(0, |tier| tier.children))
}

fn counts(endpoints_per_leaf: u32, tiers: &[Tier]) -> Counts {
    let (endpoints, switches, ports) = size(endpoints_per_leaf, tiers);
    Counts { endpoints, switches, ports, virtual_channels: 1 }
}

impl Family for TreeParameters {
    const NAME: &'static str = "tree";
    const TITLE: &'static str = "Tree";
    type Layout = TreeUpDown;

    fn check(&self) -> Result<(), Misfit> {
        if !(1..=MAX_LEVELS).contains(&self.down.len()) {
            return Err(Misfit {
                key: "down",
                title: format!("a tree has 1 to {MAX_LEVELS} levels of switches"),
                label: format!("these are {}", self.down.len()),
                help: "write down = [4, 4, 8]".to_owned(),
            });
        }
        let tiers = self.down.len() - 1;
        self.check_length("up", &self.up, &self.down[..tiers])?;
        self.check_length("parallel", &self.parallel, &vec![1; tiers])?;
        self.check_parallel()?;
        self.check_addresses()
    }

    fn counts(&self) -> Counts {
        counts(self.endpoints_per_leaf(), &self.tiers())
    }

    fn build(&self) -> Result<TreeUpDown, SizeError> {
        Ok(TreeUpDown::new(Tree::new(self.endpoints_per_leaf(), &self.tiers())?, self.routing))
    }

    fn places(&self, _: &Self::Layout) -> Places {
        places(&self.tiers())
    }

    fn examples() -> Vec<TreeParameters> {
        // Full, tapered, pruned, wider above than below, with links in parallel, and of odd numbers.
        let shapes: [(&[u32], &[u32], &[u32]); 14] = [
            (&[1], &[], &[]),
            (&[5], &[], &[]),
            (&[1, 1], &[1], &[1]),
            (&[3, 4], &[2], &[1]),
            (&[2, 6], &[4], &[2]),
            (&[4, 4], &[2], &[2]),
            (&[5, 3], &[7], &[1]),
            (&[1, 6, 2], &[6, 3], &[3, 1]),
            (&[2, 2, 3], &[3, 2], &[1, 1]),
            (&[4, 4, 4], &[2, 4], &[1, 2]),
            (&[3, 2, 4], &[2, 3], &[1, 1]),
            (&[4, 4, 8], &[4, 4], &[1, 1]),
            (&[2, 2, 4, 2], &[1, 4, 2], &[1, 2, 1]),
            (&[2, 2, 1, 2, 1, 2], &[2, 1, 1, 2, 1], &[1, 1, 1, 1, 1]),
        ];
        let of_shape = |(down, up, parallel): (&[u32], &[u32], &[u32])| {
            routings().map(|routing| TreeParameters {
                down: down.to_vec(),
                up: up.to_vec(),
                parallel: parallel.to_vec(),
                routing,
            })
        };
        shapes.into_iter().flat_map(of_shape).collect()
    }
}

/// All routings.
fn routings() -> [TreeRouting; 6] {
    [
        TreeRouting::DModK,
        TreeRouting::UpDown,
        TreeRouting::Ecmp { hash_seed: 1 },
        TreeRouting::Adaptive,
        TreeRouting::RoundRobin,
        TreeRouting::Multipath { hash_seed: 1 },
    ]
}

impl SpineLeafParameters {
    fn tiers(&self) -> [Tier; 1] {
        [Tier { children: self.leaves, parents: self.spines, parallel: self.links_per_spine }]
    }
}

impl Family for SpineLeafParameters {
    const NAME: &'static str = "spine-leaf";
    const TITLE: &'static str = "Spine-leaf";
    type Layout = TreeUpDown;

    fn counts(&self) -> Counts {
        counts(self.endpoints_per_leaf, &self.tiers())
    }

    fn build(&self) -> Result<TreeUpDown, SizeError> {
        Ok(TreeUpDown::new(Tree::new(self.endpoints_per_leaf, &self.tiers())?, self.routing))
    }

    fn places(&self, _: &Self::Layout) -> Places {
        places(&self.tiers())
    }

    fn examples() -> Vec<SpineLeafParameters> {
        let sizes = [(1, 1, 3, 1), (4, 2, 4, 1), (6, 3, 4, 2), (5, 1, 2, 3)];
        let of_size = |(leaves, spines, endpoints_per_leaf, links_per_spine)| {
            routings().map(|routing| SpineLeafParameters {
                leaves,
                spines,
                endpoints_per_leaf,
                links_per_spine,
                routing,
            })
        };
        sizes.into_iter().flat_map(of_size).collect()
    }
}
