//! miniFE: conjugate gradients on a finite-element matrix.
//!
//! The elements of a box are bisected among the ranks: along z, then y, then x, and so on. A rank owns the
//! nodes at the low corners of its elements, and those on the high faces of the whole box. An iteration is
//! ```text
//!   r·r   allreduce        A·p   halo        p·Ap   allreduce
//! ```

use crate::app::{App, AppError, Verification};
use crate::grid::ranks_in_words;
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{AllRanks, Computation, NeighbourExchange, NeighbourList, NeighbourMessages, SendStyle};
use std::ops::Range;
use std::sync::Arc;
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "minife",
    summary: "miniFE: conjugate gradients on a finite-element matrix of a box",
    laws: "Source: miniFE 2.0 (reference version, CSR). The box is bisected along z, y and x in turn. \
           Before a product a rank sends each neighbour 8 bytes for each of its nodes that a node of the \
           neighbour touches; two sums of 8 bytes an iteration. A row has 27 nonzeros, of 8 bytes and an \
           index of 4, and a pointer of 4. A product takes 2 operations a nonzero, a dot product 2 a row, \
           an update 3. Only the solution of the system is modelled; the document reports its time.",
    checked: Verification::Against("miniFE 2.0: messages and sums of an iteration, tests/apps"),
    options: &[
        AppOption { name: "local", default: "64x64x64", about: "elements of a rank" },
        AppOption { name: "global", default: "-", about: "elements of all ranks, in the place of `local`" },
        AppOption { name: "iterations", default: "200", about: "number of iterations" },
    ],
    memory: Some(memory),
    build,
};

/// Nonzeros of a row.
const NONZEROS: u64 = 27;
/// The tag of a halo.
const TAG: i32 = 99;

/// Bytes of a row: a value and an index for each nonzero, its number and its place, and five vectors of the
/// solution (`CSRMatrix.hpp`, `cg_solve.hpp`).
const ROW_MEMORY: u64 = NONZEROS * (8 + 4) + 4 + 4 + 5 * 8;

/// Of the rank with the largest share of the elements.
fn memory(options: &Options<'_>) -> Result<Bytes, AppError> {
    let (elements, shape) = (elements(options)?, shape(options.ranks()));
    let nodes = |dimension: usize| elements[dimension].div_ceil(shape[dimension].into()) + 1;
    Ok(Bytes::new((0..3).map(nodes).product::<u64>().saturating_mul(ROW_MEMORY)))
}

/// Elements of the whole box.
fn elements(options: &Options<'_>) -> Result<[u64; 3], AppError> {
    if options.is_replaced("local", "global")? {
        return options.extents("global", 1..=1 << 24);
    }
    let (local, [x, y, z]) = (options.extents("local", 1..=1 << 12)?, shape(options.ranks()).map(u64::from));
    Ok([local[0] * x, local[1] * y, local[2] * z])
}

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let ranks = options.ranks();
    let is_global = options.is_replaced("local", "global")?;
    let bisection = MeshBisection { ranks, elements: elements(options)? };
    if let Some(rank) = bisection.empty_rank() {
        return Err(refuse_elements(options, is_global, rank));
    }
    let iterations = options.count("iterations", 1..=1 << 20)?;
    // The ranks with the most nodes set the pace; all are taken to have as many.
    let nodes = |rank| bisection.nodes(rank).iter().map(|range| range.end - range.start).product::<u64>();
    let rows = (0..ranks).map(nodes).max().unwrap_or(1);
    let computation = |flops: u64, bytes: u64| -> KernelPart {
        Computation { flops: flops * rows, bytes: Bytes::new(bytes * rows) }.into()
    };
    let product = || computation(2 * NONZEROS, NONZEROS * (8 + 4) + 4 + 2 * 8);
    let dot = || computation(2, 2 * 8);
    let updates = |times: u64| computation(3 * times, 3 * 8 * times);
    let neighbours: Arc<[Box<[NeighbourMessages]>]> = (0..ranks).map(|rank| bisection.halo(rank)).collect();
    let halo = || -> KernelPart {
        let neighbours = MeshHalo(Arc::clone(&neighbours));
        NeighbourExchange { neighbours, style: SendStyle::Blocking }.into()
    };
    let sum = || -> KernelPart { AllRanks::sum(1).into() };
    let start = vec![updates(1), halo(), product(), updates(1), dot(), sum()];
    // The first iteration has the sum of the start.
    let first = vec![updates(1), halo(), product(), dot(), sum(), updates(2)];
    let later = vec![dot(), sum(), updates(1), halo(), product(), dot(), sum(), updates(2)];
    Ok(vec![
        KernelPart::repeat(1, start),
        KernelPart::repeat(1, first),
        KernelPart::repeat(iterations - 1, later),
    ])
}

/// Most elements that are added to the least extent in search of a box of which each rank gets some.
const MAX_MORE_ELEMENTS: u64 = 4096;

/// The error of a box of which a rank gets no element, with the nearest that works.
fn refuse_elements(options: &Options<'_>, is_global: bool, rank: u32) -> AppError {
    let ranks = options.ranks();
    let name = if is_global { "global" } else { "local" };
    let all = |ranks: u32, given: [u64; 3]| match is_global {
        true => given,
        false => [0, 1, 2].map(|axis| given[axis] * u64::from(shape(ranks)[axis])),
    };
    let works = |ranks: u32, given: [u64; 3]| {
        MeshBisection { ranks, elements: all(ranks, given) }.empty_rank().is_none()
    };
    let given = options.extents(name, 1..=1 << 24).unwrap_or([1; 3]);
    let larger = nearest_larger(given, |larger| works(ranks, larger));
    // There are no more ranks than nodes.
    let most = all(1, given).iter().map(|extent| extent + 1).product::<u64>().min(u64::from(ranks) - 1);
    let most = if is_global { most } else { u64::from(ranks) - 1 };
    let fewer = (1..=most as u32).rev().find(|fewer| works(*fewer, given));
    let larger = larger.map(|[x, y, z]| format!("{name}={x}x{y}x{z}"));
    let fewer = fewer.map(|fewer| ranks_in_words(&[fewer]));
    let nearest: Vec<String> = larger.into_iter().chain(fewer).collect();
    let expected = format!(
        "more elements: rank {rank} of {ranks} has none; nearest that work: {}",
        nearest.join(" or ")
    );
    options.refuse_value(name, expected)
}

/// A box that works, with extents of at least `given`, none of which can be less; `None`: none is near.
fn nearest_larger(given: [u64; 3], works: impl Fn([u64; 3]) -> bool) -> Option<[u64; 3]> {
    let least = given.into_iter().min().unwrap_or(1);
    let cubes = (least..=least + MAX_MORE_ELEMENTS).map(|edge| given.map(|extent| extent.max(edge)));
    let mut larger = cubes.into_iter().find(|larger| works(*larger))?;
    for axis in 0..3 {
        let with = |extent: u64| {
            let mut other = larger;
            other[axis] = extent;
            other
        };
        let less = (given[axis]..larger[axis]).map(with).find(|other| works(*other));
        larger = less.unwrap_or(larger);
    }
    Some(larger)
}

/// The grid that ranks make when they are bisected: the prime factors, large ones first, to z, y, x in turn.
fn shape(ranks: u32) -> [u32; 3] {
    let (mut shape, mut axis, mut rest) = ([1; 3], 2, ranks);
    let mut factor = ranks;
    while rest > 1 {
        factor = (2..=factor.min(rest)).rev().find(|prime| is_prime_factor(*prime, rest)).unwrap_or(rest);
        shape[axis] *= factor;
        rest /= factor;
        axis = (axis + 2) % 3;
    }
    shape
}

fn is_prime_factor(number: u32, of: u32) -> bool {
    of.is_multiple_of(number) && (2..number).all(|divisor| !number.is_multiple_of(divisor))
}

/// A box of elements, bisected among ranks.
#[derive(Clone, Copy)]
struct MeshBisection {
    ranks: u32,
    elements: [u64; 3],
}

/// A box of nodes, or of elements.
type Box3 = [Range<u64>; 3];

/// Ranks that share a box, and the axis along which it is split next.
struct RankShare {
    ranks: Range<u32>,
    elements: Box3,
    axis: usize,
}

impl RankShare {
    /// The lower and the upper half; `None`: one rank has it all.
    fn halves(&self) -> Option<[RankShare; 2]> {
        let ranks = self.ranks.end - self.ranks.start;
        if ranks == 1 {
            return None;
        }
        let (lower, upper) = (ranks / 2, ranks - ranks / 2);
        let along = &self.elements[self.axis];
        let upper_elements = (along.end - along.start) * u64::from(upper) / u64::from(ranks);
        let (rank, element) = (self.ranks.start + lower, along.end - upper_elements);
        let half = |ranks: Range<u32>, along: Range<u64>| {
            let mut elements = self.elements.clone();
            elements[self.axis] = along;
            RankShare { ranks, elements, axis: (self.axis + 2) % 3 }
        };
        Some([
            half(self.ranks.start..rank, along.start..element),
            half(rank..self.ranks.end, element..along.end),
        ])
    }
}

impl MeshBisection {
    /// The first rank without nodes; `None`: all have some.
    fn empty_rank(&self) -> Option<u32> {
        (0..self.ranks).find(|rank| self.nodes(*rank).iter().any(Range::is_empty))
    }

    fn root(&self) -> RankShare {
        RankShare { ranks: 0..self.ranks, elements: self.elements.map(|end| 0..end), axis: 2 }
    }

    /// The nodes that belong to these elements.
    fn nodes_of(&self, elements: &Box3) -> Box3 {
        let along = |axis: usize| {
            let Range { start, end } = elements[axis].clone();
            start..end + u64::from(end == self.elements[axis] && start < end)
        };
        [along(0), along(1), along(2)]
    }

    /// The nodes of a rank.
    fn nodes(&self, rank: u32) -> Box3 {
        let mut shared = self.root();
        while let Some([lower, upper]) = shared.halves() {
            shared = if lower.ranks.contains(&rank) { lower } else { upper };
        }
        self.nodes_of(&shared.elements)
    }

    /// The ranks of which nodes touch those of `rank`, with their nodes, in the order in which the rows of
    /// `rank` meet them.
    fn touching(&self, rank: u32) -> Vec<(u32, Box3)> {
        let own = self.nodes(rank);
        let around = grown(&own);
        let (mut open, mut touching) = (vec![self.root()], Vec::new());
        while let Some(shared) = open.pop() {
            let nodes = self.nodes_of(&shared.elements);
            if overlap(&around, &nodes) == 0 {
                continue;
            }
            match shared.halves() {
                Some(halves) => open.extend(halves),
                None if shared.ranks.start == rank => {}
                None => touching.push((shared.ranks.start, nodes)),
            }
        }
        touching.sort_by_key(|(neighbour, nodes)| {
            let first = |axis: usize| own[axis].start.max(nodes[axis].start.saturating_sub(1));
            ([first(2), first(1), first(0)], *neighbour)
        });
        touching
    }

    /// The messages of a rank before a product.
    fn halo(&self, rank: u32) -> Box<[NeighbourMessages]> {
        let own = self.nodes(rank);
        let messages = |(neighbour, nodes): (u32, Box3)| NeighbourMessages {
            rank: neighbour,
            send: Bytes::new(8 * overlap(&own, &grown(&nodes))),
            send_tag: TAG,
            receive: Bytes::new(8 * overlap(&grown(&own), &nodes)),
            receive_tag: TAG,
        };
        self.touching(rank).into_iter().map(messages).collect()
    }
}

/// The box with the nodes that touch it.
fn grown(nodes: &Box3) -> Box3 {
    nodes.clone().map(|range| range.start.saturating_sub(1)..range.end + 1)
}

/// Nodes that are in both.
fn overlap(one: &Box3, other: &Box3) -> u64 {
    let both = one.iter().zip(other);
    both.map(|(one, other)| one.end.min(other.end).saturating_sub(one.start.max(other.start))).product()
}

/// The neighbours of every rank, which are found once.
struct MeshHalo(Arc<[Box<[NeighbourMessages]>]>);

impl NeighbourList for MeshHalo {
    fn count(&self, rank: u32) -> u32 {
        self.0[rank as usize].len() as u32
    }

    fn neighbour(&self, rank: u32, index: u32) -> NeighbourMessages {
        self.0[rank as usize][index as usize]
    }
}
