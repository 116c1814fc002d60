//! Entries of a block of sites, brought site by site: a counting sort.
//!
//! ```text
//!   as it came                    by site
//!   [c0][a0][b0][a1][c1]   ->   [a0][a1] [b0] [c0][c1]
//! ```

use crate::event_queue::BLOCK;

/// Entries of a block by site, those of a site as they came.
pub(crate) struct BySite<T> {
    entries: Vec<T>,
    counts: [u32; BLOCK],
    /// By site: the end of its entries.
    ends: [u32; BLOCK],
    /// A bit for each site that has one.
    pub(crate) occupied: u64,
}

impl<T: Copy> BySite<T> {
    /// Sorts an entry for each of `sites`, places in the block: `entry` makes it of its number. Takes the
    /// memory of `room`.
    #[inline]
    pub(crate) fn new(
        room: Vec<T>,
        sites: impl ExactSizeIterator<Item = usize> + Clone,
        nothing: T,
        mut entry: impl FnMut(u32) -> T,
    ) -> BySite<T> {
        let mut sorted = BySite { entries: room, counts: [0; BLOCK], ends: [0; BLOCK], occupied: 0 };
        sorted.entries.clear();
        sorted.entries.resize(sites.len(), nothing);
        for site in sites.clone() {
            sorted.counts[site] += 1;
            sorted.occupied |= 1 << site;
        }
        let mut before = 0;
        for site in bits(sorted.occupied) {
            sorted.ends[site] = before;
            before += sorted.counts[site];
        }
        for (site, number) in sites.zip(0..) {
            let end = &mut sorted.ends[site];
            sorted.entries[*end as usize] = entry(number);
            *end += 1;
        }
        sorted
    }

    /// The memory, to be used again.
    pub(crate) fn into_room(self) -> Vec<T> {
        self.entries
    }

    /// The entries of a site.
    #[inline]
    pub(crate) fn of(&self, site: usize) -> &[T] {
        let end = self.ends[site];
        &self.entries[(end - self.counts[site]) as usize..end as usize]
    }
}

/// The places of the bits that are set, in order.
#[inline]
pub(crate) fn bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (bits != 0).then(|| {
            let place = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            place
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches entries that get lost or to another site, a wrong order, and what is left from a block
        /// before.
        #[test]
        fn every_site_has_its_entries_as_they_came(
            blocks in prop::collection::vec(prop::collection::vec(0..BLOCK, 0..200), 1..4),
        ) {
            let mut room = Vec::new();
            for sites in blocks {
                let sorted = BySite::new(room, sites.iter().copied(), u32::MAX, |number| number);
                for site in 0..BLOCK {
                    let of_site = (0u32..).zip(&sites).filter(|(_, of)| **of == site);
                    let of_site: Vec<u32> = of_site.map(|(number, _)| number).collect();
                    prop_assert_eq!(sorted.occupied >> site & 1 == 1, !of_site.is_empty());
                    prop_assert_eq!(sorted.of(site), of_site);
                }
                prop_assert!(bits(sorted.occupied).all(|site| sites.contains(&site)));
                room = sorted.into_room();
            }
        }
    }
}
