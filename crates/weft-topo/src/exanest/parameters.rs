//! The keys of an ExaNeSt machine in machine files.

use super::{Exanest, ExanestOrder, MPSOCS, QFDBS, SWITCHES, Y_RING};
use crate::drawing::{Outline, Places, Point};
use crate::family::{Counts, Family};
use crate::size::SizeError;
use crate::{parameters, routings};
use weft_keys::Misfit;

/// Most ports of a switch: those of a router.
const MOST_PORTS: u32 = 7;

routings! {
    /// Routings of an ExaNeSt machine.
    pub enum ExanestRouting {
        /// Through F1 and its router, then one dimension after the other.
        DimensionOrder = "dimension-order" {
            /// Two virtual channels against deadlock in rings; true where not given.
            datelines: bool = true;
        },
    }
}

parameters! {
    /// An ExaNeSt machine.
    pub struct ExanestParameters routed by ExanestRouting {
        /// Mezzanines of four QFDBs: 1 to 4, or a multiple of 4.
        mezzanines: u32;
    }
}

/// A point of a drawing.
const fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

impl Family for ExanestParameters {
    const NAME: &'static str = "exanest";
    const TITLE: &'static str = "ExaNeSt";
    type Layout = ExanestOrder;

    /// Up to four mezzanines form one Y ring; more are whole rings.
    fn check(&self) -> Result<(), Misfit> {
        let (count, ring) = (self.mezzanines, Y_RING as u32);
        if count <= ring || count.is_multiple_of(ring) {
            return Ok(());
        }
        Err(Misfit {
            key: "mezzanines",
            title: format!("{count} mezzanines do not fill rings of four"),
            label: String::new(),
            help: format!(
                "write 1 to 4 or a multiple of 4, such as {}; TR-488 §3 has room for 27 blades in the cabin, \
                 and does not say how those beyond whole rings are wired",
                count - count % ring
            ),
        })
    }

    fn counts(&self) -> Counts {
        let ExanestRouting::DimensionOrder { datelines } = self.routing;
        let qfdbs = u128::from(self.mezzanines) * u128::from(QFDBS);
        let switches = qfdbs * u128::from(SWITCHES);
        Counts {
            endpoints: qfdbs * u128::from(MPSOCS),
            switches,
            ports: switches * u128::from(MOST_PORTS),
            virtual_channels: 1 + u32::from(datelines),
        }
    }

    fn build(&self) -> Result<ExanestOrder, SizeError> {
        let ExanestRouting::DimensionOrder { datelines } = self.routing;
        Ok(ExanestOrder::new(Exanest::new(u64::from(self.mezzanines))?, datelines))
    }

    fn places(&self, _: &Self::Layout) -> Places {
        // The QFDBs of a mezzanine stand askew, so that the links of one do not pass behind another.
        const QFDB: [Point; 4] = [at(0.0, 0.0), at(3.3, 0.5), at(3.8, 3.8), at(0.5, 3.3)];
        // F1 to F4, so far apart that their names have room, and the router.
        const SWITCH: [Point; 5] = [at(0.0, 0.0), at(1.6, 0.0), at(0.0, 1.2), at(1.6, 1.2), at(-0.9, -0.7)];
        let place = |switch: u32| {
            let (qfdb, mezzanine) = (switch / SWITCHES % QFDBS, switch / (SWITCHES * QFDBS));
            let column = f64::from(mezzanine % Y_RING as u32);
            let row = f64::from(mezzanine / Y_RING as u32);
            let here = SWITCH[(switch % SWITCHES) as usize].from(QFDB[qfdb as usize]);
            here.from(at(8.6 * column, 8.2 * row))
        };
        let switches = self.mezzanines * QFDBS * SWITCHES;
        Places {
            switches: (0..switches).map(place).collect(),
            part_of: (0..switches).map(|switch| switch / (SWITCHES * QFDBS)).collect(),
            parts: (1..=self.mezzanines).map(|mezzanine| format!("mezzanine M{mezzanine}")).collect(),
            has_hub: false,
            outline: Outline::Rectangle,
            has_rings: true,
        }
    }

    fn examples() -> Vec<ExanestParameters> {
        let routings = [true, false].map(|datelines| ExanestRouting::DimensionOrder { datelines });
        let sizes = [1, 2, 3, 4, 8, 12, 16].into_iter();
        sizes
            .flat_map(|mezzanines| routings.clone().map(|routing| ExanestParameters { mezzanines, routing }))
            .collect()
    }
}
