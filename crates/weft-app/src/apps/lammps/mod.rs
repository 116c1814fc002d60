//! LAMMPS: its benchmarks of rhodopsin and of a Lennard-Jones melt (`bench/in.rhodo.scaled`, `bench/in.lj`).
//!
//! ```text
//!   step:  2 sums ─ check or not ─ ghost atoms, or a rebuild ─ forces ─ PPPM ─ forces back ─ SHAKE ─ 3 sums
//!   PPPM:  charges to owners ─ to lines ─ transform ─ 3 inverse transforms ─ fields from owners ─ sum
//! ```
//! Set-up before the first step, and output, are not part of the kernel. Positions of atoms are not known;
//! see [`atoms::Positions`] for how they are counted.

mod atoms;
mod domain;
mod mesh;
#[cfg(test)]
mod tests;
mod work;

use crate::app::{App, AppError, Verification};
use crate::grid::{factorings, nearest_ranks, ranks_in_words};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{AllRanks, Computation, Remap, RemapPhase, SwapSequence};
use atoms::{AtomSwaps, LAYERS, LeavingAtoms, Positions, SwapPayload};
use domain::Domain;
use mesh::{Charges, Mesh, MeshGhosts, TooFewPoints};
use weft_trace::ReductionOperation;
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "lammps",
    summary: "molecular dynamics: rhodopsin with PPPM and SHAKE, or a Lennard-Jones melt",
    laws: "The box of 32,000 atoms is replicated to the most cubic one, and cut into parts with the least \
           surface (procmap.cpp). Ghost atoms within cutoff and skin come in swaps along x, y and z, 24 \
           bytes an atom (comm_brick.cpp); their number is the density of the file's layers times the slab, \
           of the melt the planes of its lattice. A rebuild exchanges atoms that have left and sends borders \
           of 64 bytes an atom (melt: 48). PPPM's grid follows from the accuracy of 10^-4 (pppm.cpp); ghost \
           points, lines of the transform and its three redistributions are those of grid3d.cpp and \
           fft3d.cpp. Two things depend on where atoms go and are recorded means: the steps between \
           rebuilds, and the bytes of the exchange. Set-up and output are left out. Operations and bytes of \
           memory are counted in the loops of the sources: for a pair within the cutoff 36 operations (melt: \
           20), for a pair of the list 8 operations and 4 bytes, for an atom 1,491 operations at 5 x 5 x 5 \
           points of the grid, for a transform 5 N log2 N; apps/lammps/work.rs has each with its reason. \
           D1.4 section 7.1 has 3n^3(n-1) messages of the transform, and their sizes by the volume: here \
           both follow from the layouts.",
    checked: Verification::Against(
        "LAMMPS 22Jul2025: messages and collectives of a step on 8, 27 and 64 ranks, bytes within 3 percent",
    ),
    options: &[
        AppOption { name: "problem", default: "rhodopsin", about: "benchmark, rhodopsin or lj" },
        AppOption { name: "atoms", default: "32000", about: "number of atoms of a rank" },
        AppOption {
            name: "total",
            default: "0",
            about: "number of atoms of all ranks, in place of atoms; 0: none",
        },
        AppOption { name: "steps", default: "10", about: "number of steps" },
        AppOption {
            name: "rebuild",
            default: "0",
            about: "number of steps between rebuilds of neighbour lists; 0: 9 as recorded, of lj 20",
        },
        AppOption {
            name: "grid",
            default: "0",
            about: "points of PPPM's grid, such as 25x32x32; 0: by its accuracy",
        },
    ],
    memory: Some(memory),
    build,
};

/// Of an atom: its neighbour list, position, velocity and force, charge, tag, type, mask, image and molecule
/// (`atom_vec.cpp`). Ghost atoms and grids are left out.
fn memory(options: &Options<'_>) -> Result<Bytes, AppError> {
    let limit = 0..=1 << 40;
    options.is_replaced("atoms", "total")?;
    let atoms = match options.count("total", limit.clone())? {
        0 => options.count("atoms", limit)?,
        total => total.div_ceil(options.ranks().into()),
    };
    let work = [work::RHODOPSIN, work::MELT][options.word("problem", &["rhodopsin", "lj"])?];
    Ok(Bytes::new(atoms * work.atom_memory()))
}

/// Most points of PPPM's grid along an extent.
const MAX_POINTS: u64 = 16_383;

/// Atoms of both benchmarks before they are replicated.
pub const ATOMS: u64 = 32_000;

/// The box of rhodopsin (`data.rhodo`), in 10^-4 Å.
const RHODOPSIN_BOX: [u64; 3] = [550_000, 770_000, 727_261];
/// Atoms of a twelfth of it each along z, from the lowest on (`data.rhodo`): the membrane is denser than
/// water.
const RHODOPSIN_LAYERS: [u64; LAYERS] =
    [2_556, 2_662, 2_825, 2_688, 2_632, 2_566, 2_591, 2_597, 2_679, 2_876, 2_672, 2_656];
/// The sum of the squared charges of its atoms (`data.rhodo`).
const RHODOPSIN_CHARGES: f64 = 5_807.767;
/// The energy of two unit charges at a distance of 1 Å, in kcal/mol (`units real`, `update.cpp`).
const UNIT_CHARGES: f64 = 332.063_71;
/// Cutoff of 10 Å and skin of 2 Å.
const RHODOPSIN_GHOST: u64 = 120_000;
/// Half of the skin: how far an atom may be outside of its part.
const HALF_SKIN: u64 = 10_000;
/// Bytes that leave a part between rebuilds for 100 Å x 100 Å of a face: the mean of the two rebuilds of 20
/// steps on 8, 27 and 64 ranks is 3.29, 3.16 and 3.24 for 1 Å^2.
const RHODOPSIN_LEAVING: LeavingAtoms = LeavingAtoms(32_300);

/// Steps between rebuilds, which are made when an atom has gone half the skin: 100 steps have 11.
const RHODOPSIN_REBUILD: u64 = 9;

/// Steps between rebuilds (`in.lj`: `neigh_modify delay 0 every 20 check no`).
const MELT_REBUILD: u64 = 20;
/// 20 cells with an edge of (4 / 0.8442)^(1/3), in 10^-4.
const MELT_BOX: u64 = 335_919;
/// Planes of its lattice.
const MELT_PLANES: u64 = 40;
/// Cutoff of 2.5 and skin of 0.3.
const MELT_GHOST: u64 = 28_000;
/// Bytes that leave a part between rebuilds for 100 x 100 of a face, from the second rebuild on: 8 ranks in
/// 100 steps, 3,290 bytes through 16.8 x 16.8.
const MELT_LEAVING: LeavingAtoms = LeavingAtoms(116_700);

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let is_melt = options.word("problem", &["rhodopsin", "lj"])? == 1;
    options.is_replaced("atoms", "total")?;
    if is_melt && options.extents("grid", 0..=MAX_POINTS)? != [0; 3] {
        return Err(options.refuse_value("grid", "0 where problem is lj, which has no grid".to_owned()));
    }
    let replicas = replicas(options)?;
    let steps = options.count("steps", 1..=1 << 40)?;
    let rebuild = match options.count("rebuild", 0..=1 << 20)? {
        0 if is_melt => MELT_REBUILD,
        0 => RHODOPSIN_REBUILD,
        steps => steps,
    };
    let (edges, ghost) = match is_melt {
        true => ([MELT_BOX; 3], MELT_GHOST),
        false => (RHODOPSIN_BOX, RHODOPSIN_GHOST),
    };
    let copies = most_cubic(replicas, edges);
    let extents = [0, 1, 2].map(|dimension| edges[dimension] * copies[dimension]);
    let domain = Domain::new(options.ranks(), ATOMS * replicas, extents, ghost);
    let problem: Box<dyn LammpsProblem> = match is_melt {
        true => Box::new(Melt { domain, planes: copies.map(|copies| MELT_PLANES * copies) }),
        false => Box::new(Rhodopsin::new(options, domain)?),
    };
    let cycle = RebuildCycle { problem: &*problem, length: rebuild, first_list: 0 };
    let (cycles, rest) = (steps / rebuild, steps % rebuild);
    let last = RebuildCycle { first_list: cycles, ..cycle };
    let mut parts = Vec::new();
    if cycles > 0 {
        parts.push(KernelPart::repeat(cycles, cycle.whole()));
    }
    parts.extend(last.steps(rest));
    Ok(parts)
}

/// How often 32,000 atoms are there.
fn replicas(options: &Options<'_>) -> Result<u64, AppError> {
    let limit = 1 << 40;
    let ranks = u64::from(options.ranks());
    let refuse = |name: &str, atoms: u64, step: u64| {
        let (low, high) = (atoms / step * step, atoms.div_ceil(step) * step);
        let nearest = if low == 0 { format!("{high}") } else { format!("{low} or {high}") };
        let expected =
            format!("a multiple of {step}, such as {nearest}: the benchmark has copies of 32000 atoms");
        options.refuse_value(name, expected)
    };
    match options.count("total", 0..=limit)? {
        0 => {
            let atoms = options.count("atoms", 1..=limit)?;
            // All ranks together have copies where each has a multiple of this.
            let step = (1..=ATOMS).find(|step| (step * ranks).is_multiple_of(ATOMS)).unwrap_or(ATOMS);
            match atoms.checked_mul(ranks).filter(|total| total.is_multiple_of(ATOMS) && *total <= limit) {
                Some(total) => Ok(total / ATOMS),
                None if atoms.is_multiple_of(step) => {
                    Err(options.refuse_value("atoms", "at most 2^40 atoms of all ranks".to_owned()))
                }
                None => Err(refuse("atoms", atoms, step)),
            }
        }
        total if total.is_multiple_of(ATOMS) => Ok(total / ATOMS),
        total => Err(refuse("total", total, ATOMS)),
    }
}

/// The copies along x, y and z whose box has the least surface.
fn most_cubic(copies: u64, edges: [u64; 3]) -> [u64; 3] {
    let surface = |copies: &[u32; 3]| {
        let [x, y, z] =
            [0, 1, 2].map(|dimension| u128::from(edges[dimension]) * u128::from(copies[dimension]));
        x * y + y * z + z * x
    };
    // There are fewer than 2^40 atoms.
    factorings(copies as u32).min_by_key(surface).map_or([1, 1, copies], |copies| copies.map(u64::from))
}

/// A problem.
trait LammpsProblem {
    /// The box.
    fn domain(&self) -> Domain;
    /// The places of its atoms.
    fn positions(&self) -> Positions;
    /// Bytes of an atom in borders.
    fn border(&self) -> u64;
    /// Before the positions of other ranks are known.
    fn before(&self) -> Vec<KernelPart>;
    /// Steps after a rebuild without a look at how far atoms have gone; `None`: it is never looked at.
    fn unchecked(&self) -> Option<u64>;
    /// After a rebuild.
    fn rebuilt(&self) -> Vec<KernelPart>;
    /// Forces on own atoms and ghosts.
    fn forces(&self) -> Vec<KernelPart>;
    /// After forces have come back, with swaps of positions.
    fn after(&self, forward: AtomSwaps) -> Vec<KernelPart>;

    /// Ghost atoms of a rank: those of a slab around its part.
    fn ghosts(&self) -> u64 {
        let Domain { atoms, ghost, .. } = self.domain();
        let parts = [0, 1, 2].map(|dimension| u128::from(self.domain().part(dimension)));
        let all: u128 = parts.iter().map(|part| part + 2 * u128::from(ghost)).product();
        let own: u128 = parts.iter().product();
        ((all - own) * u128::from(atoms) / (own * u128::from(self.domain().ranks()))) as u64
    }

    /// Atoms of a rank.
    fn own(&self) -> u64 {
        self.domain().atoms.div_ceil(self.domain().ranks().into())
    }
}

/// Steps from one rebuild to the next: the last one rebuilds.
#[derive(Clone, Copy)]
struct RebuildCycle<'a> {
    problem: &'a dyn LammpsProblem,
    length: u64,
    /// Neighbour lists before.
    first_list: u64,
}

impl RebuildCycle<'_> {
    fn whole(&self) -> Vec<KernelPart> {
        let mut parts = self.steps(self.length - 1);
        parts.extend(self.step(Ghosts::Rebuild, 1));
        parts
    }

    /// The first steps, none of which rebuilds.
    fn steps(&self, count: u64) -> Vec<KernelPart> {
        let unchecked = self.problem.unchecked().unwrap_or(count).min(count);
        let several = |times: u64, ghosts| match times {
            0 => None,
            times => Some(KernelPart::repeat(times, self.step(ghosts, times))),
        };
        let checked = several(count - unchecked, Ghosts::Checked);
        several(unchecked, Ghosts::Unchecked).into_iter().chain(checked).collect()
    }

    /// A step, of which there are `passes` for each neighbour list.
    fn step(&self, ghosts: Ghosts, passes: u64) -> Vec<KernelPart> {
        let problem = self.problem;
        let is_rebuild = ghosts == Ghosts::Rebuild;
        let first_list = self.first_list + u64::from(is_rebuild);
        let (domain, positions) = (problem.domain(), problem.positions());
        let swaps = |payload| AtomSwaps { domain, positions, payload, first_list, passes };
        let mut parts = problem.before();
        if ghosts != Ghosts::Unchecked && problem.unchecked().is_some() {
            parts.push(AllRanks::integer(ReductionOperation::Max).into());
        }
        if is_rebuild {
            parts.push(SwapSequence(swaps(SwapPayload::Exchange)).into());
            parts.push(SwapSequence(swaps(SwapPayload::Borders(problem.border()))).into());
            parts.extend(problem.rebuilt());
        } else {
            parts.push(SwapSequence(swaps(SwapPayload::Forward(24))).into());
        }
        parts.extend(problem.forces());
        parts.push(SwapSequence(swaps(SwapPayload::Reverse(24))).into());
        parts.extend(problem.after(swaps(SwapPayload::Forward(24))));
        parts
    }
}

/// How a step gets its ghost atoms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ghosts {
    /// Their positions come from their owners.
    Unchecked,
    /// The same, after a look at whether a rebuild is needed.
    Checked,
    /// The neighbour lists are rebuilt, and other atoms are ghosts.
    Rebuild,
}

/// The Lennard-Jones melt.
struct Melt {
    domain: Domain,
    planes: [u64; 3],
}

impl LammpsProblem for Melt {
    fn domain(&self) -> Domain {
        self.domain
    }

    fn positions(&self) -> Positions {
        Positions::Lattice { planes: self.planes, atom: 88, leaving: MELT_LEAVING }
    }

    fn border(&self) -> u64 {
        48
    }

    fn before(&self) -> Vec<KernelPart> {
        vec![work::integrate(self.own()).into()]
    }

    fn unchecked(&self) -> Option<u64> {
        None
    }

    fn rebuilt(&self) -> Vec<KernelPart> {
        vec![work::MELT.neighbours(self.own(), self.ghosts()).into()]
    }

    fn forces(&self) -> Vec<KernelPart> {
        vec![work::MELT.forces(self.own(), self.ghosts()).into()]
    }

    fn after(&self, _: AtomSwaps) -> Vec<KernelPart> {
        Vec::new()
    }
}

/// The protein in its membrane.
struct Rhodopsin {
    domain: Domain,
    mesh: Mesh,
    charges: MeshGhosts,
    /// Points of the whole grid.
    points: u64,
}

impl Rhodopsin {
    fn new(options: &Options<'_>, domain: Domain) -> Result<Rhodopsin, AppError> {
        let given = options.extents("grid", 0..=MAX_POINTS)?;
        let is_given = given != [0; 3];
        let points = match given {
            [0, 0, 0] => {
                let copies = domain.atoms as f64 / ATOMS as f64;
                let charges = Charges {
                    atoms: domain.atoms as f64,
                    squares: RHODOPSIN_CHARGES * UNIT_CHARGES * copies,
                    accuracy: 1e-4 * UNIT_CHARGES,
                    cutoff: 10.0,
                };
                charges.grid(domain.extents.map(|extent| extent as f64 * 1e-4))
            }
            points if points.contains(&0) => {
                return Err(
                    options.refuse_value("grid", "three extents of at least 1, or 0 alone".to_owned())
                );
            }
            points => points,
        };
        let mesh = Mesh::new(points, &domain).map_err(|few| {
            let [x, y, z] = points;
            let TooFewPoints { points: along, parts } = few;
            let word = if along == 1 { "point" } else { "points" };
            let reason = format!("a grid of {x}x{y}x{z} has {along} {word} along a line for {parts} ranks");
            let works = |ranks: &u32| {
                let other = Domain::new(*ranks, domain.atoms, domain.extents, domain.ghost);
                Mesh::new(points, &other).is_ok()
            };
            let nearest = ranks_in_words(&nearest_ranks(options.ranks(), works));
            let larger = if is_given { "give a larger grid" } else { "take more atoms" };
            options.refuse_ranks(reason, format!("nearest that work: {nearest}; or {larger}"))
        })?;
        let charges = MeshGhosts::new(&domain, &mesh, HALF_SKIN);
        Ok(Rhodopsin { domain, mesh, charges, points: points.iter().product() })
    }

    /// A transform: each direction after its points have come.
    fn transform(&self, remaps: [Remap; 3]) -> impl Iterator<Item = KernelPart> {
        let direction = work::transform(self.points, self.domain.ranks());
        remaps.into_iter().flat_map(move |remap| [direction.into(), RemapPhase::new(remap).into()])
    }

    fn own_points(&self) -> u64 {
        self.points.div_ceil(self.domain.ranks().into())
    }
}

impl LammpsProblem for Rhodopsin {
    fn domain(&self) -> Domain {
        self.domain
    }

    fn positions(&self) -> Positions {
        Positions::Layers { edges: RHODOPSIN_BOX, layers: RHODOPSIN_LAYERS, leaving: RHODOPSIN_LEAVING }
    }

    fn border(&self) -> u64 {
        64
    }

    /// Temperature and pressure, each with six components.
    fn before(&self) -> Vec<KernelPart> {
        vec![AllRanks::sum(6).into(), AllRanks::sum(6).into(), work::integrate(self.own()).into()]
    }

    /// `neigh_modify delay 5 every 1`.
    fn unchecked(&self) -> Option<u64> {
        Some(4)
    }

    /// Whether any bond, angle, dihedral or improper has lost an atom.
    fn rebuilt(&self) -> Vec<KernelPart> {
        let lost = || AllRanks::integer(ReductionOperation::Sum);
        let mut parts = vec![work::RHODOPSIN.neighbours(self.own(), self.ghosts()).into()];
        parts.extend((0..4).map(|_| lost().into()));
        parts
    }

    fn forces(&self) -> Vec<KernelPart> {
        let own = self.own();
        let near = work::RHODOPSIN.forces(own, self.ghosts()) + work::bonded(own);
        let mut parts = vec![
            (near + work::spread(own, self.own_points())).into(),
            SwapSequence(self.charges.clone()).into(),
            RemapPhase::new(self.mesh.lines_remap()).into(),
        ];
        parts.extend(self.transform(self.mesh.transform(self.mesh.lines)));
        parts.push(work::poisson(self.points, self.domain.ranks()).into());
        for _ in 0..3 {
            parts.extend(self.transform(self.mesh.transform(self.mesh.brick)));
        }
        parts.push(SwapSequence(self.charges.fields()).into());
        parts.push(work::gather(own, self.own_points()).into());
        parts.push(AllRanks::sum(6).into());
        parts
    }

    /// SHAKE's positions, then temperature and pressure.
    fn after(&self, forward: AtomSwaps) -> Vec<KernelPart> {
        let constrain: Computation = work::constrain(self.own());
        let sums = [1, 6, 6].map(|elements| AllRanks::sum(elements).into());
        [SwapSequence(forward).into(), constrain.into()].into_iter().chain(sums).collect()
    }
}
