//! The box of a simulation, and how LAMMPS cuts it into one part for each rank (`procmap.cpp`).

use crate::grid::{RankGrid, least_surface};

/// A periodic box of atoms on a grid of ranks. Lengths are in 10^-4 of the unit of length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Domain {
    /// Atoms of all ranks.
    pub atoms: u64,
    /// Ranks along x, y and z.
    pub procs: [u32; 3],
    /// Extents of the box.
    pub extents: [u64; 3],
    /// Distance within which a rank has the atoms of others: cutoff and skin.
    pub ghost: u64,
}

/// A direction along a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To lower coordinates.
    Down,
    /// To higher ones.
    Up,
}

impl Direction {
    /// The direction back.
    pub fn back(self) -> Direction {
        match self {
            Direction::Down => Direction::Up,
            Direction::Up => Direction::Down,
        }
    }
}

impl Domain {
    /// The parts of a box have the least surface.
    pub fn new(ranks: u32, atoms: u64, extents: [u64; 3], ghost: u64) -> Domain {
        Domain { atoms, procs: least_surface(ranks, extents), extents, ghost }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.procs.iter().product()
    }

    /// The ranks along z, y and x: the last dimension is the fastest, as in `MPI_Cart_create`.
    fn grid(&self) -> RankGrid {
        let [x, y, z] = self.procs;
        RankGrid { extents: [z, y, x], periodic: true }
    }

    /// The place of a rank along x, y and z.
    pub fn place(&self, rank: u32) -> [u32; 3] {
        let [z, y, x] = self.grid().place(rank);
        [x, y, z]
    }

    /// The rank next to another, which is itself where it is alone along the dimension.
    pub fn next(&self, rank: u32, dimension: usize, direction: Direction) -> u32 {
        let mut offset = [0; 3];
        offset[2 - dimension] = match direction {
            Direction::Down => -1,
            Direction::Up => 1,
        };
        self.grid().shifted(rank, offset).unwrap_or(rank)
    }

    /// Extent of a rank's part along a dimension.
    pub fn part(&self, dimension: usize) -> u64 {
        self.extents[dimension] / u64::from(self.procs[dimension])
    }

    /// Swaps in each direction of a dimension: 1 and, where ghost atoms lie further away than the next rank,
    /// 1 more for each further rank (`CommBrick::setup`).
    pub fn layers(&self, dimension: usize) -> u32 {
        let layers = self.ghost * u64::from(self.procs[dimension]) / self.extents[dimension] + 1;
        // No more than the ranks of the dimension and 1, where the ghost atoms are no further than the box.
        layers as u32
    }
}
