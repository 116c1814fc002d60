//! HPCG 3.1: conjugate gradients, preconditioned by a multigrid of four levels.
//!
//! Each rank has a box of grid points of a 27-point operator. An iteration is
//! ```text
//!   multigrid:  smooth, residual, restrict │ … on grids of half the extents … │ prolong, smooth
//!   r·z   allreduce        A·p   halo        p·Ap   allreduce        r·r   allreduce
//! ```
//! with a halo before each smoothing and each product: 11 in all.

use crate::app::{App, AppError, Verification};
use crate::grid::{RankGrid, nearest_ranks, ranks_in_words};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{AllRanks, Computation, GridHalo, HaloTags, NeighbourExchange, SendStyle, Stencil};
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "hpcg",
    summary: "HPCG: conjugate gradients with multigrid on a 27-point operator",
    laws: "Source: HPCG 3.1. Ranks form HPCG's own grid. Before each smoothing and each product a rank \
           sends its 26 neighbours 8 bytes for each point where the boxes touch, on four levels of half \
           the extents each; three sums of 8 bytes an iteration. A row has 27 nonzeros (fewer on the \
           outside of the whole grid, which is left out). A product takes 2 operations a nonzero, a \
           smoothing 4, a dot product 2 a row, an update 3. A nonzero is a value of 8 bytes and an index \
           of 4; a row has two pointers and a count, 17 bytes. A vector passes through memory each time \
           that it is read or written. Set-up, validation and the reference runs are left out.",
    checked: Verification::Against("HPCG 3.1: messages and sums of an iteration, tests/apps"),
    options: &[
        AppOption { name: "local", default: "104x104x104", about: "grid points of a rank, multiples of 8" },
        AppOption {
            name: "global",
            default: "-",
            about: "grid points of all ranks, in the place of `local`",
        },
        AppOption { name: "iterations", default: "50", about: "number of iterations of a set" },
        AppOption { name: "sets", default: "1", about: "number of sets" },
    ],
    memory: Some(memory),
    build,
};

/// Levels of the multigrid.
const LEVELS: u32 = 4;
/// Extents are multiples of it, so that each level has half the points.
const MULTIPLE: u64 = 1 << (LEVELS - 1);
/// Nonzeros of a row.
const NONZEROS: u64 = 27;
/// The tag of a halo.
const TAG: i32 = 99;

/// Bytes of a row of the finest grid, and of one of each coarser grid (HPCG 3.1, `ReportResults.cpp`): a
/// nonzero has a value and two indices; four pointers and a count; seven vectors, of coarser grids three and
/// a place in the finer one.
const FINE_ROW_MEMORY: u64 = NONZEROS * (8 + 4 + 8) + 4 * 8 + 1 + 7 * 8;
const COARSE_ROW_MEMORY: u64 = NONZEROS * (8 + 4 + 8) + 4 * 8 + 1 + 3 * 8 + 4;

fn memory(options: &Options<'_>) -> Result<Bytes, AppError> {
    let rows: u64 = local(options, shape(options.ranks()))?.iter().product();
    let coarse: u64 = (1..LEVELS).map(|level| rows >> (3 * level)).sum();
    Ok(Bytes::new(rows * FINE_ROW_MEMORY + coarse * COARSE_ROW_MEMORY))
}

/// The points of a rank.
fn local(options: &Options<'_>, shape: [u32; 3]) -> Result<[u64; 3], AppError> {
    match options.is_replaced("local", "global")? {
        true => parts_of(options, options.extents("global", 8..=1 << 24)?, shape),
        false => options.extents("local", 8..=1 << 12),
    }
}

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let grid = RankGrid { extents: shape(options.ranks()), periodic: false };
    let is_global = options.is_replaced("local", "global")?;
    let local = local(options, grid.extents)?;
    if let Some(odd) = local.iter().find(|points| !points.is_multiple_of(MULTIPLE)) {
        if is_global {
            return Err(refuse_global(options, options.extents("global", 8..=1 << 24)?));
        }
        let (below, above) = (odd / MULTIPLE * MULTIPLE, odd.next_multiple_of(MULTIPLE));
        let near = if below == 0 { above.to_string() } else { format!("{below} and {above}") };
        let expected = format!("multiples of 8, which four levels need; nearest to {odd}: {near}");
        return Err(options.refuse_value("local", expected));
    }
    let iterations = options.count("iterations", 1..=1 << 20)?;
    let sets = options.count("sets", 1..=1 << 20)?;
    let level = |level: u32| GridLevel { grid, local: local.map(|points| points >> level) };
    let finest = level(0);
    let mut iteration = Vec::new();
    for above in (0..LEVELS - 1).map(level) {
        iteration.extend([above.halo(), above.smoothing(), above.halo(), above.product(), above.update(1)]);
    }
    let coarsest = level(LEVELS - 1);
    iteration.extend([coarsest.halo(), coarsest.smoothing()]);
    for above in (0..LEVELS - 1).rev().map(level) {
        // The prolongation touches one point of eight.
        iteration.extend([above.update(1), above.halo(), above.smoothing()]);
    }
    iteration.extend([finest.dot(), AllRanks::sum(1).into(), finest.update(1)]);
    iteration.extend([finest.halo(), finest.product()]);
    iteration.extend([finest.dot(), AllRanks::sum(1).into(), finest.update(2)]);
    iteration.extend([finest.dot(), AllRanks::sum(1).into()]);
    let start = [finest.halo(), finest.product(), finest.update(1), finest.dot(), AllRanks::sum(1).into()];
    let mut set = Vec::from(start);
    set.push(KernelPart::repeat(iterations, iteration));
    Ok(vec![KernelPart::repeat(sets, set)])
}

/// The points of a rank, where all have the same.
fn parts_of(options: &Options<'_>, global: [u64; 3], shape: [u32; 3]) -> Result<[u64; 3], AppError> {
    let divides = |dimension: usize| global[dimension].is_multiple_of(u64::from(shape[dimension]));
    if (0..3).all(divides) {
        return Ok([0, 1, 2].map(|dimension| global[dimension] / u64::from(shape[dimension])));
    }
    Err(refuse_global(options, global))
}

/// The error of a whole grid of which ranks do not all get multiples of 8 points, with the nearest that work.
fn refuse_global(options: &Options<'_>, global: [u64; 3]) -> AppError {
    let steps = |ranks: u32| shape(ranks).map(|parts| MULTIPLE * u64::from(parts));
    let fits =
        |ranks: &u32| global.iter().zip(steps(*ranks)).all(|(points, step)| points.is_multiple_of(step));
    let near = [0, 1, 2].map(|dimension: usize| {
        let (points, step) = (global[dimension], steps(options.ranks())[dimension]);
        ((points + step / 2) / step * step).max(step).to_string()
    });
    let [x, y, z] = shape(options.ranks());
    let mut nearest = format!("global={}", near.join("x"));
    let others = nearest_ranks(options.ranks(), fits);
    if !others.is_empty() {
        nearest += &format!(", or {}", ranks_in_words(&others));
    }
    let expected =
        format!("multiples of the grid of ranks, {x}x{y}x{z}, by 8 for four levels; nearest: {nearest}");
    options.refuse_value("global", expected)
}

/// A grid of the multigrid.
struct GridLevel {
    grid: RankGrid,
    local: [u64; 3],
}

impl GridLevel {
    fn rows(&self) -> u64 {
        self.local.iter().product()
    }

    fn halo(&self) -> KernelPart {
        let GridLevel { grid, local } = *self;
        let tags = HaloTags::One(TAG);
        let halo = GridHalo { grid, local, point: 8, stencil: Stencil::Corners, tags };
        NeighbourExchange { neighbours: halo, style: SendStyle::Blocking }.into()
    }

    /// A forward and a backward sweep of Gauss and Seidel: the matrix twice, the right side, the solution.
    fn smoothing(&self) -> KernelPart {
        let bytes = 2 * (ROW_BYTES + 3 * 8);
        self.computation(4 * NONZEROS, bytes)
    }

    /// A product of matrix and vector: the matrix, one vector read and one written.
    fn product(&self) -> KernelPart {
        self.computation(2 * NONZEROS, ROW_BYTES + 2 * 8)
    }

    /// A dot product, of which both vectors are read.
    fn dot(&self) -> KernelPart {
        self.computation(2, 2 * 8)
    }

    /// Updates `w = a x + b y`, each of two vectors that are read and one that is written.
    fn update(&self, times: u64) -> KernelPart {
        self.computation(3 * times, 3 * 8 * times)
    }

    /// A computation of so many operations and bytes a row.
    fn computation(&self, flops: u64, bytes: u64) -> KernelPart {
        Computation { flops: flops * self.rows(), bytes: Bytes::new(bytes * self.rows()) }.into()
    }
}

/// Bytes of a row of the matrix: values, indices, two pointers, the number of nonzeros.
const ROW_BYTES: u64 = NONZEROS * (8 + 4) + 2 * 8 + 1;

/// The extents of HPCG's grid of ranks. Of the ways to share out the prime factors, the first with the least
/// surface; where there are few factors, HPCG has rules of its own.
fn shape(ranks: u32) -> [u32; 3] {
    let factors = prime_factors(ranks);
    let all: u32 = factors.iter().map(|(_, power)| power).sum();
    match *factors.as_slice() {
        [] => [1, 1, 1],
        [(prime, power)] => {
            let third = power / 3;
            let extent = |least| prime.pow(third + u32::from(power % 3 >= least));
            [extent(1), extent(2), extent(3)]
        }
        [(first, _), (second, _)] if all == 2 => [first, second, 1],
        [(first, power), (second, _)] if all == 3 => [first, second, if power == 2 { first } else { second }],
        [(first, 1), (second, 1), (third, 1)] => [first, second, third],
        _ => searched_shape(ranks, &factors),
    }
}

/// The primes of a number with their powers, in order.
fn prime_factors(mut number: u32) -> Vec<(u32, u32)> {
    let mut factors: Vec<(u32, u32)> = Vec::new();
    let mut prime = 2;
    while number > 1 {
        if u64::from(prime) * u64::from(prime) > u64::from(number) {
            prime = number;
        }
        let mut power = 0;
        while number.is_multiple_of(prime) {
            (number, power) = (number / prime, power + 1);
        }
        if power > 0 {
            factors.push((prime, power));
        }
        prime += 1;
    }
    factors
}

/// The first of the extents with the least surface, the power of the smallest prime counting fastest. The
/// first two extents are never 1.
fn searched_shape(ranks: u32, factors: &[(u32, u32)]) -> [u32; 3] {
    let divisors: Vec<u32> = divisors(factors);
    let mut best = [ranks, 1, 1];
    let surface = |[x, y, z]: [u32; 3]| {
        let [x, y, z] = [x, y, z].map(u64::from);
        x * y + y * z + x * z
    };
    let mut least = 2 * u64::from(ranks) + 1;
    for &x in &divisors[1..] {
        for &y in divisors[1..].iter().filter(|y| (ranks / x).is_multiple_of(**y)) {
            let extents = [x, y, ranks / x / y];
            if surface(extents) < least {
                (least, best) = (surface(extents), extents);
            }
        }
    }
    best
}

/// The divisors of a number by the powers of its primes, that of the smallest counting fastest.
fn divisors(factors: &[(u32, u32)]) -> Vec<u32> {
    factors.iter().rev().fold(vec![1], |slower, &(prime, power)| {
        slower.iter().flat_map(|rest| (0..=power).map(move |p| rest * prime.pow(p))).collect()
    })
}
