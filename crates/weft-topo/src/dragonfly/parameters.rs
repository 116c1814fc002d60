//! The keys of a Dragonfly in machine files.

use super::{Dragonfly, DragonflyLayout, DragonflyMinimal, DragonflySize, GlobalLinks, Ugal};
use crate::drawing::Places;
use crate::family::{Counts, Family, Misfit};
use crate::size::{SizeError, product};
use crate::{parameters, routings};
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
    }
}

parameters! {
    /// A Dragonfly.
    pub struct DragonflyParameters routed by DragonflyRouting {
        /// Endpoints per switch.
        p: u32;
        /// Switches per group; 2p where not given.
        a: u32 = p.saturating_mul(2), as "2p: balanced, Kim et al. 2008";
        /// Global links per switch; p where not given.
        h: u32 = p, as "p: balanced, Kim et al. 2008";
        /// Groups; a·h + 1, the most, where not given.
        groups: u32 = u32::try_from(most_groups(a, h)).unwrap_or(u32::MAX),
            as "a·h + 1: the most, Kim et al. 2008";
        /// Which groups the global links of a switch lead to; `palmtree` where not given.
        global: GlobalLinks = GlobalLinks::Palmtree;
    }
}

/// Groups of which every two can be joined.
fn most_groups(a: u32, h: u32) -> u64 {
    u64::from(a) * u64::from(h) + 1
}

impl Family for DragonflyParameters {
    const NAME: &'static str = "dragonfly";
    const TITLE: &'static str = "Dragonfly";
    type Layout = DragonflyLayout;

    fn check(&self) -> Result<(), Misfit> {
        let most = most_groups(self.a, self.h);
        if u64::from(self.groups) <= most {
            return Ok(());
        }
        Err(Misfit {
            key: "groups",
            title: format!("{} groups cannot all be joined", self.groups),
            label: format!("a·h + 1 = {most} is the most"),
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
                DragonflyRouting::UgalL { .. } => 3,
            },
        }
    }

    fn build(&self) -> Result<DragonflyLayout, SizeError> {
        let [p, a, h, groups] = [self.p, self.a, self.h, self.groups].map(u64::from);
        let dragonfly = Dragonfly::new(DragonflySize { p, a, h, g: groups }, self.global)?;
        Ok(match self.routing {
            DragonflyRouting::Minimal => DragonflyLayout::Minimal(DragonflyMinimal::new(dragonfly)),
            DragonflyRouting::UgalL { ugal_threshold } => {
                DragonflyLayout::Ugal(Ugal::new(dragonfly, ugal_threshold.get()))
            }
        })
    }

    fn places(&self, _: &Self::Layout) -> Places {
        Places::groups(self.groups, &Places::ring(self.a), |group, place| group * self.a + place)
    }

    fn examples() -> Vec<DragonflyParameters> {
        let sizes = [
            (1, 1, 1, 1),
            (1, 1, 1, 2),
            (2, 1, 3, 4),
            (1, 2, 1, 3),
            (2, 2, 1, 2),
            (3, 3, 1, 4),
            (1, 4, 2, 9),
            (2, 4, 2, 5),
            (3, 4, 2, 3),
            (1, 3, 3, 8),
            (1, 1, 8, 9),
        ];
        let arrangements = [GlobalLinks::Palmtree, GlobalLinks::Absolute];
        let routings = [DragonflyRouting::Minimal, DragonflyRouting::UgalL { ugal_threshold: Bytes::ZERO }];
        let mut examples = Vec::new();
        for (p, a, h, groups) in sizes {
            for global in arrangements {
                for routing in routings.clone() {
                    examples.push(DragonflyParameters { p, a, h, groups, global, routing });
                }
            }
        }
        examples
    }
}
