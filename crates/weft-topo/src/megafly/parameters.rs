//! The keys of a Megafly in machine files.

use super::{Megafly, MegaflyLayout, MegaflySize};
use crate::drawing::{Places, Point};
use crate::family::{Counts, Family};
use crate::size::SizeError;
use crate::{parameters, routings};
use weft_keys::Misfit;
use weft_units::Bytes;

routings! {
    /// Routings of a Megafly.
    pub enum MegaflyRouting {
        /// The shortest path. Of several spines or global links, the destination chooses one.
        Minimal = "minimal",
        /// By way of a random group (Valiant); the shortest path within a group.
        Valiant = "valiant",
        /// The minimal path, or one by way of a random group where the queues of the leaf say that it is
        /// faster.
        UgalL = "ugal-l" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
        /// As `ugal-l`; the spine of the source group may leave the minimal path once more, where its own
        /// queues say so.
        Par = "par" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
        /// As `ugal-l`, with the queues before the global links of the spines, as they publish them.
        UgalG = "ugal-g" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
    }
    looks_at_published_queues: UgalG;
}

parameters! {
    /// A Megafly.
    pub struct MegaflyParameters routed by MegaflyRouting {
        /// Endpoints per leaf: half the ports of a switch in the balanced Megafly.
        endpoints_per_leaf: u32;
        /// Leaves per group; `endpoints_per_leaf` where not given.
        leaves: u32 = endpoints_per_leaf, how("endpoints_per_leaf: balanced, Shpiner et al. 2017");
        /// Spines per group; `endpoints_per_leaf` where not given.
        spines: u32 = endpoints_per_leaf, how("endpoints_per_leaf: balanced, Shpiner et al. 2017");
        /// Global ports per spine; `leaves` where not given.
        global_per_spine: u32 = leaves, how("leaves: balanced, Shpiner et al. 2017");
        /// Groups; spines·global_per_spine + 1, the most, where not given. Fewer are joined by several links
        /// each: as many to every group as there can be, those left over to the opposite and nearest groups.
        groups: u32 = u32::try_from(most_groups(spines, global_per_spine)).unwrap_or(u32::MAX),
            how("spines·global_per_spine + 1: the most, Shpiner et al. 2017");
    }
}

/// Groups of which every two can be joined.
fn most_groups(spines: u32, global_per_spine: u32) -> u64 {
    u64::from(spines) * u64::from(global_per_spine) + 1
}

impl MegaflyParameters {
    fn size(&self) -> MegaflySize {
        MegaflySize {
            endpoints_per_leaf: self.endpoints_per_leaf.into(),
            leaves: self.leaves.into(),
            spines: self.spines.into(),
            global_per_spine: self.global_per_spine.into(),
            groups: self.groups.into(),
        }
    }
}

impl Family for MegaflyParameters {
    const NAME: &'static str = "megafly";
    const TITLE: &'static str = "Megafly (Dragonfly+)";
    type Layout = MegaflyLayout;

    fn check(&self) -> Result<(), Misfit> {
        let most = most_groups(self.spines, self.global_per_spine);
        if u64::from(self.groups) <= most {
            return Ok(());
        }
        Err(Misfit {
            key: "groups",
            title: format!("{} groups cannot all be joined", self.groups),
            label: format!("spines·global_per_spine + 1 = {most} is the most"),
            help: format!("write groups = {most} or less, or leave it out"),
        })
    }

    fn counts(&self) -> Counts {
        let size = self.size();
        Counts {
            endpoints: size.endpoints(),
            switches: size.switches(),
            ports: size.ports(),
            virtual_channels: self.routing.virtual_channels(),
        }
    }

    fn build(&self) -> Result<MegaflyLayout, SizeError> {
        Ok(MegaflyLayout::new(Megafly::new(self.size())?, self.routing.clone()))
    }

    fn places(&self, _: &Self::Layout) -> Places {
        // Leaves outside, spines towards the middle.
        let row = |count: u32, y: f64| {
            (0..count).map(move |place| Point { x: f64::from(place) - 0.5 * f64::from(count - 1), y })
        };
        let half = 0.2 * f64::from(self.leaves.max(self.spines)).max(4.0);
        let group: Vec<Point> = row(self.leaves, -half).chain(row(self.spines, half)).collect();
        let first_spine = self.groups * self.leaves;
        Places::groups(self.groups, &group, |group, place| match place.checked_sub(self.leaves) {
            None => group * self.leaves + place,
            Some(spine) => first_spine + group * self.spines + spine,
        })
    }

    fn examples() -> Vec<MegaflyParameters> {
        let sizes = [
            (1, 1, 1, 1, 1),
            (3, 2, 2, 2, 1),
            (2, 3, 2, 1, 2),
            (1, 2, 2, 3, 2),
            (2, 1, 1, 3, 4),
            (2, 2, 2, 2, 5),
            (2, 2, 2, 2, 3),
            // Ports are left over: for the group opposite, for the nearest groups, for both, and a spare one.
            (2, 3, 2, 2, 4),
            (1, 3, 2, 3, 5),
            (1, 2, 4, 2, 6),
            (1, 2, 3, 1, 3),
            // A spine with several links to one group, and to most groups.
            (2, 2, 2, 7, 4),
            (1, 2, 4, 4, 6),
            (3, 3, 3, 3, 10),
        ];
        let ugal_threshold = Bytes::ZERO;
        let routings = [
            MegaflyRouting::Minimal,
            MegaflyRouting::Valiant,
            MegaflyRouting::UgalL { ugal_threshold },
            MegaflyRouting::Par { ugal_threshold },
            MegaflyRouting::UgalG { ugal_threshold },
        ];
        let mut examples = Vec::new();
        for (endpoints_per_leaf, leaves, spines, global_per_spine, groups) in sizes {
            for routing in routings.clone() {
                examples.push(MegaflyParameters {
                    endpoints_per_leaf,
                    leaves,
                    spines,
                    global_per_spine,
                    groups,
                    routing,
                });
            }
        }
        examples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a machine file that is refused without a mend, or at the wrong key.
    #[test]
    fn too_many_groups_are_refused_with_the_mend() {
        let parameters = |groups| MegaflyParameters {
            endpoints_per_leaf: 6,
            leaves: 6,
            spines: 6,
            global_per_spine: 6,
            groups,
            routing: MegaflyRouting::Minimal,
        };
        assert_eq!(parameters(37).check(), Ok(()));
        let misfit = parameters(38).check().unwrap_err();
        assert_eq!(misfit.key, "groups");
        assert_eq!(misfit.title, "38 groups cannot all be joined");
        assert_eq!(misfit.help, "write groups = 37 or less, or leave it out");
    }
}
