//! The keys of a k-ary n-tree in machine files.

use super::{Ascent, KaryTree, UpDown};
use crate::drawing::Places;
use crate::family::{Counts, Family};
use crate::parameters;
use crate::size::SizeError;
use weft_keys::Misfit;

parameters! {
    /// A k-ary n-tree.
    pub struct KaryTreeParameters routed by Ascent {
        /// Ports of a switch towards either side, 2 or more.
        k: u32;
        /// Levels.
        n: u32;
    }
}

impl Family for KaryTreeParameters {
    const NAME: &'static str = "kary-tree";
    const TITLE: &'static str = "k-ary n-tree";
    type Layout = UpDown;

    fn check(&self) -> Result<(), Misfit> {
        if self.k >= 2 {
            return Ok(());
        }
        Err(Misfit {
            key: "k",
            title: "a 1-ary tree has one endpoint".to_owned(),
            label: "too small".to_owned(),
            help: "write k = 2 or more".to_owned(),
        })
    }

    fn counts(&self) -> Counts {
        let k = u128::from(self.k);
        let switches = k.saturating_pow(self.n.saturating_sub(1)).saturating_mul(u128::from(self.n));
        Counts {
            endpoints: k.saturating_pow(self.n),
            switches,
            ports: switches.saturating_mul(2 * k),
            virtual_channels: 1,
        }
    }

    fn build(&self) -> Result<UpDown, SizeError> {
        Ok(UpDown::new(KaryTree::new(u64::from(self.k), u64::from(self.n))?, self.routing))
    }

    fn places(&self, _: &Self::Layout) -> Places {
        let per_level = self.k.pow(self.n - 1);
        Places::levels(&vec![per_level; self.n as usize], if self.n > 1 { self.k } else { 0 })
    }

    fn examples() -> Vec<KaryTreeParameters> {
        let sizes = [(2, 1), (5, 1), (2, 2), (4, 2), (5, 2), (6, 2), (2, 3), (3, 3), (2, 4), (3, 4), (2, 5)];
        let routings = [Ascent::DModK, Ascent::Random];
        sizes
            .into_iter()
            .flat_map(|(k, n)| routings.map(|routing| KaryTreeParameters { k, n, routing }))
            .collect()
    }
}
