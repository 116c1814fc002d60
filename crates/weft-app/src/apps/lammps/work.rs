//! Computation of a rank of LAMMPS: operations and bytes of memory, counted in the loops of its sources.
//!
//! Operations are additions, multiplications and divisions of floating-point numbers, each one operation.
//! Bytes are those that move between caches and memory when a loop reads and writes each of its arrays once:
//! the atoms near another one stay in the caches, neighbour lists and grids do not.

use crate::phase::Computation;
use weft_units::Bytes;

/// Bytes of a position, of a velocity or of a force.
const VECTOR: u64 = 24;
/// Bytes of an entry of a neighbour list, of a type, of an index.
const INDEX: u64 = 4;
/// Bytes of a real number.
const REAL: u64 = 8;

/// The computation of a pair style.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PairWork {
    /// Atoms in the neighbour list of an atom, of each pair one: half of those within cutoff and skin, from
    /// the density, per thousand atoms.
    pub listed: u64,
    /// Those of them within the cutoff of forces, per thousand atoms.
    pub near: u64,
    /// Atoms whose distance is computed for the list of an atom, per thousand atoms: those in half of the
    /// bins within cutoff and skin (`nstencil`), whose edges are half of it.
    pub candidates: u64,
    /// Operations of a pair within the cutoff.
    pub operations: u64,
    /// Bytes of an atom that the loop reads besides its position.
    pub properties: u64,
}

/// Differences, squares and their sum: a distance.
const DISTANCE: u64 = 8;

/// `lj/charmm/coul/long`: half a list of 4/3 pi 12^3 x 0.1039 atoms (LAMMPS prints 375.99), (10/12)^3 of them
/// near. A near pair takes 27 operations: the reciprocal 1, its third power 2, the Coulomb table 6,
/// Lennard-Jones 3, their sum 3, two forces 12; and 19 for the switching function on the (10^3 - 8^3)/10^3
/// beyond 8 Å. The half of 5^3 bins of 6^3 Å^3 has 1402 candidates. Read are type and charge.
pub const RHODOPSIN: PairWork = PairWork {
    listed: 376_000,
    near: 217_600,
    candidates: 1_402_000,
    operations: 36,
    properties: INDEX + REAL,
};

/// `lj/cut`: half a list of 4/3 pi 2.8^3 x 0.8442 atoms, (2.5/2.8)^3 of them near. A near pair takes 20
/// operations: the reciprocal 1, its third power 2, Lennard-Jones 3, its product 2, two forces 12. The half
/// of 5^3 bins of 1.4^3 has 145 candidates. Read is the type.
pub const MELT: PairWork =
    PairWork { listed: 38_800, near: 27_600, candidates: 145_000, operations: 20, properties: INDEX };

impl PairWork {
    /// Bytes that are kept for an atom, of its pairs half a list.
    pub fn atom_memory(&self) -> u64 {
        self.listed / 1000 * INDEX + 3 * VECTOR + REAL + 5 * INDEX
    }

    /// The forces of `own` atoms that have `ghosts` around them: lists, positions and properties are read,
    /// forces read and written.
    pub fn forces(&self, own: u64, ghosts: u64) -> Computation {
        let flops = own * (DISTANCE * self.listed + self.operations * self.near) / 1000;
        let atoms = (own + ghosts) * (3 * VECTOR + self.properties);
        Computation { flops, bytes: Bytes::new(atoms + own * self.listed / 1000 * INDEX) }
    }

    /// A new neighbour list: atoms are put into bins, of which a list gives the next of the same bin.
    pub fn neighbours(&self, own: u64, ghosts: u64) -> Computation {
        let atoms = (own + ghosts) * (VECTOR + self.properties + 2 * INDEX);
        let bytes = Bytes::new(atoms + own * self.listed / 1000 * INDEX);
        Computation { flops: own * DISTANCE * self.candidates / 1000, bytes }
    }
}

/// Bonds, angles, dihedrals and impropers of rhodopsin: 27,723, 40,467, 56,829 and 1,034 on 32,000 atoms
/// (`data.rhodo`), with about 30, 90, 200 and 200 operations in the loops of `bond_harmonic.cpp`,
/// `angle_charmm.cpp`, `dihedral_charmm.cpp` and `improper_harmonic.cpp`. Their lists have an index for each
/// atom and one for the type; atoms stay in the caches.
pub fn bonded(own: u64) -> Computation {
    let [bonds, angles, dihedrals, impropers] = [27_723, 40_467, 56_829, 1_034].map(|all| own * all / 32_000);
    let flops = 30 * bonds + 90 * angles + 200 * (dihedrals + impropers);
    let indices = 3 * bonds + 4 * angles + 5 * (dihedrals + impropers);
    Computation { flops, bytes: Bytes::new(INDEX * indices) }
}

/// Charges are spread over 5 x 5 x 5 points: 150 operations for the weights (15 polynomials of five terms),
/// 30 for their products, 250 for the points (`pppm.cpp`, `make_rho`). Positions, charges and the point of
/// each atom are read, the grid of `points` is written once.
pub fn spread(own: u64, points: u64) -> Computation {
    let atoms = own * (VECTOR + REAL + 3 * INDEX);
    Computation { flops: own * (150 + 30 + 250), bytes: Bytes::new(atoms + 2 * REAL * points) }
}

/// Fields are gathered from 5 x 5 x 5 points: weights and products again, one operation for the weight of a
/// point and two for each of three fields, and 6 for the force (`fieldforce_ik`).
pub fn gather(own: u64, points: u64) -> Computation {
    let atoms = own * (VECTOR + REAL + 3 * INDEX + 2 * VECTOR);
    Computation { flops: own * (150 + 30 + 7 * 125 + 6), bytes: Bytes::new(atoms + 3 * REAL * points) }
}

/// One of the three directions of a transform of `all` points on `ranks` ranks, a third of 5 N log2 N
/// operations. A complex number is read and written by the transform, and by packing and unpacking.
pub fn transform(all: u64, ranks: u32) -> Computation {
    let own = all.div_ceil(ranks.into());
    // The logarithm in thousandths, so that all machines have the same number.
    let logarithm = u64::from(all.max(1).ilog2());
    let rest = (all.max(1) - (1 << logarithm)) * 1000 / (1 << logarithm);
    let thousandths = 1000 * logarithm + rest;
    Computation { flops: 5 * own * thousandths / 3000, bytes: Bytes::new(own * 3 * 2 * 2 * REAL) }
}

/// The transformed charges become potentials: two products; energy and the six parts of the virial take 15
/// operations, the field along a direction two products. Numbers, Green's function and the virial's factors
/// are read, three fields written (`poisson_ik`).
pub fn poisson(all: u64, ranks: u32) -> Computation {
    let own = all.div_ceil(ranks.into());
    Computation {
        flops: own * (2 + 15 + 3 * 2),
        bytes: Bytes::new(own * (2 * REAL + 7 * REAL + 3 * 2 * REAL)),
    }
}

/// Velocities and positions are moved: rhodopsin takes 24 operations for the thermostat's and barostat's
/// factors, the half steps, the positions and their scaling (`fix_nh.cpp`); of each atom position and
/// velocity are read and written, forces read.
pub fn integrate(own: u64) -> Computation {
    Computation { flops: 24 * own, bytes: Bytes::new(5 * VECTOR * own) }
}

/// The constraints of rhodopsin: 1,617 pairs, 3,633 triples, 747 quadruples and 4,233 triples with an angle
/// in 32,000 atoms, with about 60, 120, 250 and 250 operations (`fix_shake.cpp`); positions are moved once
/// unconstrained, which reads positions, velocities and forces, and forces are read and written again.
pub fn constrain(own: u64) -> Computation {
    let flops = own * (1_617 * 60 + 3_633 * 120 + (747 + 4_233) * 250) / 32_000 + 9 * own;
    Computation { flops, bytes: Bytes::new(6 * VECTOR * own) }
}

impl std::ops::Add for Computation {
    type Output = Computation;

    fn add(self, other: Computation) -> Computation {
        Computation { flops: self.flops + other.flops, bytes: self.bytes + other.bytes }
    }
}
