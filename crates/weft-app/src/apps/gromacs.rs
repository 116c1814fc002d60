//! Work like that of GROMACS: molecules in boxes, with a mesh for far forces.
//!
//! The document names the application and describes nothing of it, so this is ours: halos of positions and
//! forces, and a mesh whose Fourier transform is an all-to-all.

use crate::app::{App, AppError, Verification};
use crate::grid::{RankGrid, least_surface};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{AllRanks, Computation, GridHalo, HaloTags, NeighbourExchange, SendStyle, Stencil};
use weft_trace::op::Collective;
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "gromacs",
    summary: "work like that of GROMACS: halos of atoms, a mesh with all-to-alls (assumed)",
    laws: "D1.4 sections 11.1 and 12.3 name GROMACS and describe nothing of it: all of this is assumed. \
           Atoms stand in a cubic lattice of 100 per cubic nanometre, a cube of them on each rank. In each \
           step a rank sends its six neighbours the positions of six layers (the cutoff of 1.2 nm), 12 \
           bytes an atom, and later forces. A mesh of a point per 0.12 nm is transposed by two all-to-alls \
           of 8 bytes a point. Every tenth step 64 bytes are summed over all ranks. An atom takes 360 \
           pairs of 40 operations, the mesh 5 log2(points) operations a point, forth and back.",
    checked: Verification::Unchecked("the document describes nothing to check it against"),
    options: &[
        AppOption { name: "atoms", default: "1000000", about: "atoms of all ranks (assumed)" },
        AppOption { name: "steps", default: "10", about: "number of steps, rounded up to tens" },
    ],
    memory: None,
    build,
};

/// Layers of atoms within the cutoff: 1.2 nm over 100^(-1/3) nm, rounded up.
const LAYERS: u64 = 6;
/// Bytes of a position or a force, in single precision.
const VECTOR_BYTES: u64 = 12;
/// Mesh points for a hundred atoms, which fill a cubic nanometre: (1 / 0.12)³.
const POINTS_PER_HUNDRED: u64 = 579;
/// Pairs within the cutoff, half of 4/3 π 1.2³ x 100, and the operations of each.
const PAIRS: u64 = 360;
const PAIR_FLOPS: u64 = 40;
/// Steps from one sum to the next.
const SUM_STEPS: u64 = 10;

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let atoms = options.count("atoms", 1..=1 << 36)?;
    let steps = options.count("steps", 1..=1 << 40)?;
    let ranks = u64::from(options.ranks());
    let grid = RankGrid { extents: least_surface(options.ranks(), [1; 3]), periodic: true };
    let own = atoms.div_ceil(ranks);
    // Its edge has at most 4,096 atoms.
    let edge = (1..=1 << 12).find(|edge| edge * edge * edge >= own).unwrap_or(1 << 12);
    let exchange = || -> KernelPart {
        let (local, point) = ([edge; 3], LAYERS * VECTOR_BYTES);
        let halo = GridHalo { grid, local, point, stencil: Stencil::Faces, tags: HaloTags::Direction };
        NeighbourExchange { neighbours: halo, style: SendStyle::Nonblocking }.into()
    };
    let points = (atoms * POINTS_PER_HUNDRED / 100).max(1);
    let transposed = Bytes::new(8 * points.div_ceil(ranks * ranks));
    let transpose = || -> KernelPart { AllRanks::moving(Collective::Alltoall, transposed).into() };
    let mesh_flops = points.div_ceil(ranks) * 5 * u64::from(points.ilog2());
    let computation =
        |flops: u64, bytes: u64| -> KernelPart { Computation { flops, bytes: Bytes::new(bytes) }.into() };
    let forces = || computation(own * PAIRS * PAIR_FLOPS, own * 64);
    let mesh = || computation(mesh_flops, 2 * 8 * points.div_ceil(ranks));
    let step = || vec![exchange(), forces(), mesh(), transpose(), mesh(), transpose(), exchange()];
    let sum: KernelPart = AllRanks::sum(8).into();
    let tens = KernelPart::repeat(SUM_STEPS, step());
    Ok(vec![KernelPart::repeat(steps.div_ceil(SUM_STEPS), vec![tens, sum])])
}
