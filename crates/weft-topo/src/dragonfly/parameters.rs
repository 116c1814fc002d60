//! The keys of a Dragonfly in machine files.

use super::{
    Dragonfly, DragonflyLayout, DragonflyMinimal, DragonflyPar, DragonflySize, DragonflyValiant, GlobalLinks,
    Ugal,
};
use crate::drawing::Places;
use crate::family::{Counts, Family};
use crate::size::{SizeError, product};
use crate::{parameters, routings};
use weft_keys::Misfit;
use weft_units::Bytes;

routings! {
    /// Routings of a Dragonfly.
    pub enum DragonflyRouting {
        /// The shortest path that has at most one global link.
        Minimal = "minimal",
        /// The minimal path, or one by way of a random group where the local queues say that it is faster.
        UgalL = "ugal-l" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
        /// By way of a random group (Valiant); the shortest path within a group.
        Valiant = "valiant",
        /// As `ugal-l`; another switch of the source group may leave the minimal path once more, where its
        /// own queues say so.
        Par = "par" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
        /// As `ugal-l`, with the queues before the global links of the whole group, as its switches publish
        /// them.
        UgalG = "ugal-g" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
    }
    looks_at_published_queues: UgalG;
}

parameters! {
    /// A Dragonfly.
    pub struct DragonflyParameters routed by DragonflyRouting {
        /// Endpoints per switch.
        p: u32;
        /// Switches per group; 2p where not given.
        a: u32 = p.saturating_mul(2), how("2p: balanced, Kim et al. 2008");
        /// Global links per switch; p where not given.
        h: u32 = p, how("p: balanced, Kim et al. 2008");
        /// Global links between every two groups, on as many switches as can be; 1 where not given.
        links_per_pair: u32 = 1;
        /// Groups; a·h / links_per_pair + 1, rounded down, the most, where not given.
        groups: u32 = u32::try_from(most_groups(a, h, links_per_pair)).unwrap_or(u32::MAX),
            how("a·h / links_per_pair + 1: the most, Kim et al. 2008");
        /// Which groups the global links of a switch lead to; `palmtree` where not given.
        global: GlobalLinks = GlobalLinks::Palmtree;
    }
}

/// Groups of which every two can be joined by so many links.
fn most_groups(a: u32, h: u32, links_per_pair: u32) -> u64 {
    u64::from(a) * u64::from(h) / u64::from(links_per_pair.max(1)) + 1
}

impl Family for DragonflyParameters {
    const NAME: &'static str = "dragonfly";
    const TITLE: &'static str = "Dragonfly";
    type Layout = DragonflyLayout;

    fn check(&self) -> Result<(), Misfit> {
        if self.links_per_pair == 0 {
            return Err(Misfit {
                key: "links_per_pair",
                title: "groups are not joined by 0 links".to_owned(),
                label: "at least 1".to_owned(),
                help: "write links_per_pair = 1, or leave it out".to_owned(),
            });
        }
        let most = most_groups(self.a, self.h, self.links_per_pair);
        if u64::from(self.groups) <= most {
            return Ok(());
        }
        let (by, formula) = match self.links_per_pair {
            1 => (String::new(), "a·h + 1"),
            links => (format!(" by {links} links"), "a·h / links_per_pair + 1"),
        };
        Err(Misfit {
            key: "groups",
            title: format!("{} groups cannot all be joined{by}", self.groups),
            label: format!("{formula} = {most} is the most"),
            help: format!("write groups = {most} or less, or leave it out"),
        })
    }

    fn counts(&self) -> Counts {
        let [p, a, h, groups] = [self.p, self.a, self.h, self.groups].map(u64::from);
        let switches = product([a, groups]);
        Counts {
            endpoints: product([p, a, groups]),
            switches,
            ports: switches.saturating_mul(u128::from(p + a + h)),
            virtual_channels: match self.routing {
                DragonflyRouting::Minimal => 2,
                DragonflyRouting::UgalL { .. }
                | DragonflyRouting::UgalG { .. }
                | DragonflyRouting::Valiant => 3,
                DragonflyRouting::Par { .. } => 4,
            },
        }
    }

    fn build(&self) -> Result<DragonflyLayout, SizeError> {
        let [p, a, h, groups] = [self.p, self.a, self.h, self.groups].map(u64::from);
        let size = DragonflySize { p, a, h, g: groups };
        let dragonfly = Dragonfly::with_links_per_pair(size, self.links_per_pair.into(), self.global)?;
        Ok(match self.routing {
            DragonflyRouting::Minimal => DragonflyLayout::Minimal(DragonflyMinimal::new(dragonfly)),
            DragonflyRouting::UgalL { ugal_threshold } => {
                DragonflyLayout::Ugal(Ugal::new(dragonfly, ugal_threshold.get()))
            }
            DragonflyRouting::UgalG { ugal_threshold } => {
                DragonflyLayout::Ugal(Ugal::with_published_queues(dragonfly, ugal_threshold.get()))
            }
            DragonflyRouting::Valiant => DragonflyLayout::Valiant(DragonflyValiant::new(dragonfly)),
            DragonflyRouting::Par { ugal_threshold } => {
                DragonflyLayout::Par(DragonflyPar::new(dragonfly, ugal_threshold.get()))
            }
        })
    }

    fn places(&self, _: &Self::Layout) -> Places {
        Places::groups(self.groups, &Places::ring(self.a), |group, place| group * self.a + place)
    }

    fn examples() -> Vec<DragonflyParameters> {
        let sizes = [
            (1, 1, 1, 1, 1),
            (1, 1, 1, 1, 2),
            (2, 1, 3, 1, 4),
            (1, 2, 1, 1, 3),
            (2, 2, 1, 1, 2),
            (3, 3, 1, 1, 4),
            (1, 4, 2, 1, 9),
            (2, 4, 2, 1, 5),
            (3, 4, 2, 1, 3),
            (1, 3, 3, 1, 8),
            (1, 1, 8, 1, 9),
            // Several links per pair: all ports taken, and some left over.
            (2, 4, 2, 2, 5),
            (1, 4, 3, 3, 4),
            (3, 3, 2, 2, 3),
            (2, 5, 2, 3, 4),
            // One for every switch, and more than there are switches.
            (2, 3, 2, 3, 3),
            (1, 2, 5, 3, 4),
            (2, 1, 6, 2, 4),
        ];
        let arrangements = [GlobalLinks::Palmtree, GlobalLinks::Absolute];
        let ugal_threshold = Bytes::ZERO;
        let routings = [
            DragonflyRouting::Minimal,
            DragonflyRouting::UgalL { ugal_threshold },
            DragonflyRouting::Valiant,
            DragonflyRouting::Par { ugal_threshold },
            DragonflyRouting::UgalG { ugal_threshold },
        ];
        let mut examples = Vec::new();
        for (p, a, h, links_per_pair, groups) in sizes {
            for global in arrangements {
                for routing in routings.clone() {
                    examples.push(DragonflyParameters { p, a, h, links_per_pair, groups, global, routing });
                }
            }
        }
        examples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(links_per_pair: u32, groups: u32) -> DragonflyParameters {
        let (global, routing) = (GlobalLinks::Palmtree, DragonflyRouting::Minimal);
        DragonflyParameters { p: 16, a: 32, h: 10, links_per_pair, groups, global, routing }
    }

    /// Catches a machine file that is refused without a mend, or at the wrong key.
    #[test]
    fn too_many_groups_are_refused_with_the_mend() {
        assert_eq!(parameters(1, 321).check(), Ok(()));
        let misfit = parameters(1, 322).check().unwrap_err();
        assert_eq!(misfit.title, "322 groups cannot all be joined");
        assert_eq!(misfit.label, "a·h + 1 = 321 is the most");
        assert_eq!(parameters(4, 81).check(), Ok(()));
        let misfit = parameters(4, 82).check().unwrap_err();
        assert_eq!(misfit.key, "groups");
        assert_eq!(misfit.title, "82 groups cannot all be joined by 4 links");
        assert_eq!(misfit.label, "a·h / links_per_pair + 1 = 81 is the most");
        assert_eq!(misfit.help, "write groups = 81 or less, or leave it out");
    }

    /// Catches a machine without links that is built.
    #[test]
    fn no_links_per_pair_are_refused() {
        assert_eq!(parameters(0, 2).check().unwrap_err().key, "links_per_pair");
        let error = parameters(0, 2).build().unwrap_err().to_string();
        assert!(error.starts_with("links per pair of groups is 0; it must be 1 to"), "{error}");
    }
}
