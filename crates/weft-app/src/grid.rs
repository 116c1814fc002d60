//! Ranks in a grid, and the grid that a number of ranks makes.

/// Ranks in a box, the first dimension fastest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankGrid {
    /// Ranks along x, y and z.
    pub extents: [u32; 3],
    /// Whether the box closes upon itself.
    pub periodic: bool,
}

impl RankGrid {
    /// The place of a rank.
    pub fn place(&self, rank: u32) -> [u32; 3] {
        let [x, y, _] = self.extents;
        [rank % x, rank / x % y, rank / x / y]
    }

    /// The rank at a place.
    pub fn rank(&self, place: [u32; 3]) -> u32 {
        let [x, y, _] = self.extents;
        (place[2] * y + place[1]) * x + place[0]
    }

    /// The rank that lies `offset` away; `None`: it is outside.
    pub fn shifted(&self, rank: u32, offset: [i32; 3]) -> Option<u32> {
        let mut place = self.place(rank);
        for (dimension, extent) in self.extents.into_iter().enumerate() {
            let moved = i64::from(place[dimension]) + i64::from(offset[dimension]);
            let extent = i64::from(extent);
            place[dimension] = match self.periodic {
                true => moved.rem_euclid(extent) as u32,
                false if (0..extent).contains(&moved) => moved as u32,
                false => return None,
            };
        }
        Some(self.rank(place))
    }
}

/// All ways to write `ranks` as a product of three extents, in order.
pub fn factorings(ranks: u32) -> impl Iterator<Item = [u32; 3]> {
    let divisors = move |number: u32| (1..=number).filter(move |divisor| number.is_multiple_of(*divisor));
    divisors(ranks).flat_map(move |x| divisors(ranks / x).map(move |y| [x, y, ranks / x / y]))
}

/// The extents of `ranks` ranks under which the part of each in a box of `points` has the least surface; the
/// first of several.
pub fn least_surface(ranks: u32, points: [u64; 3]) -> [u32; 3] {
    let surface = |extents: &[u32; 3]| {
        let [x, y, z] = extents.map(u128::from);
        let [nx, ny, nz] = points.map(u128::from);
        // The sum of three faces of a part, with all its three extents taken out of the fractions.
        nx * ny * z + ny * nz * x + nz * nx * y
    };
    // There is 1 x 1 x `ranks` in any case.
    factorings(ranks).min_by_key(surface).unwrap_or([1, 1, ranks])
}

/// Parts of two dimensions under which the largest part has the shortest edges (LAMMPS,
/// `PPPM::procs2grid2d`).
pub fn least_edges(ranks: u32, points: [u64; 2]) -> [u32; 2] {
    let all = (1..=ranks).filter(|first| ranks.is_multiple_of(*first)).map(|first| [first, ranks / first]);
    let edges = |[first, second]: &[u32; 2]| {
        let (first, second) = (points[0].div_ceil((*first).into()), points[1].div_ceil((*second).into()));
        (first + second, std::cmp::Reverse(first * second))
    };
    all.min_by_key(edges).unwrap_or([1, ranks])
}

/// The two factors that are nearest to each other, the smaller first (LAMMPS, `bifactor` in `fft3d.cpp`).
pub fn near_square(ranks: u32) -> [u32; 2] {
    let first = (1..=ranks.isqrt()).rev().find(|first| ranks.is_multiple_of(*first)).unwrap_or(1);
    [first, ranks / first]
}

/// Most ranks above one number that are tried.
const MAX_MORE_RANKS: u32 = 1024;

/// The nearest numbers of ranks below and above one that do not work, of those that do.
pub fn nearest_ranks(ranks: u32, works: impl Fn(&u32) -> bool) -> Vec<u32> {
    let below = (1..ranks).rev().find(&works);
    let above = (ranks + 1..=ranks.saturating_add(ranks.min(MAX_MORE_RANKS))).find(&works);
    below.into_iter().chain(above).collect()
}

/// Numbers of ranks in words: `126 or 128 ranks`.
pub fn ranks_in_words(ranks: &[u32]) -> String {
    let word = if ranks == [1] { "rank" } else { "ranks" };
    let numbers: Vec<String> = ranks.iter().map(u32::to_string).collect();
    format!("{} {word}", numbers.join(" or "))
}

/// The 26 directions in which boxes touch, x fastest from the lowest corner on.
pub fn directions() -> impl Iterator<Item = [i32; 3]> {
    let all = (-1..=1).flat_map(|z| (-1..=1).flat_map(move |y| (-1..=1).map(move |x| [x, y, z])));
    all.filter(|direction| *direction != [0; 3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cubes_are_the_best_boxes() {
        assert_eq!(least_surface(512, [100; 3]), [8, 8, 8]);
        assert_eq!(least_surface(4, [100, 100, 400]), [1, 1, 4]);
        assert_eq!(least_surface(7, [100; 3]), [1, 1, 7]);
        assert_eq!(directions().count(), 26);
    }

    proptest! {
        /// Catches a factoring that loses ranks, and a neighbour whose way back leads elsewhere.
        #[test]
        fn neighbours_are_mutual(ranks in 1u32..200, periodic: bool, pick in 0usize..26) {
            for extents in factorings(ranks) {
                prop_assert_eq!(extents.iter().product::<u32>(), ranks);
            }
            let grid = RankGrid { extents: least_surface(ranks, [64; 3]), periodic };
            let offset = directions().nth(pick).unwrap();
            for rank in 0..ranks {
                prop_assert_eq!(grid.rank(grid.place(rank)), rank);
                let there = grid.shifted(rank, offset);
                prop_assert!(there.is_some() || !periodic);
                if let Some(there) = there {
                    prop_assert_eq!(grid.shifted(there, offset.map(|step| -step)), Some(rank));
                }
            }
        }
    }
}
