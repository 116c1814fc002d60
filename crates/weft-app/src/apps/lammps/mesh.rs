//! The grid of PPPM: its size (`pppm.cpp`, `PPPM::set_grid_global`), the points that ranks have
//! (`grid3d.cpp`) and the layouts of its Fourier transform (`pppm.cpp`, `fft3d.cpp`).

use super::domain::{Direction, Domain};
use crate::grid::{least_edges, near_square};
use crate::phase::{
    GridLayout, GridSplit, Remap, SplitRule, Swap, SwapList, SwapMessage, SwapShape, SwapStyle,
};
use weft_units::Bytes;

/// Charges that a grid is for. Lengths are in Å.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Charges {
    /// Number of atoms.
    pub atoms: f64,
    /// Sum of the squares of their charges, times the energy of two unit charges at a distance of 1 Å.
    pub squares: f64,
    /// Largest error of a force, relative to that of two unit charges at a distance of 1 Å, times that force.
    pub accuracy: f64,
    /// Cutoff of the Coulomb force in real space.
    pub cutoff: f64,
}

impl Charges {
    /// Points along each extent of a box: as few as keep the error of the forces below the accuracy, and
    /// then the next number that has only the factors 2, 3 and 5.
    pub fn grid(&self, extents: [f64; 3]) -> [u64; 3] {
        let volume: f64 = extents.iter().product();
        // The reciprocal width of the screening charges under which the error in real space is the accuracy.
        let error = self.accuracy * (self.atoms * self.cutoff * volume).sqrt() / (2.0 * self.squares);
        let width = (-error.ln()).sqrt() / self.cutoff;
        extents.map(|extent| self.points(extent, width))
    }

    fn points(&self, extent: f64, width: f64) -> u64 {
        let mut points = (extent * width) as u64 + 1;
        let mut spacing = 1.0 / width;
        // LAMMPS looks at the error before it adds a point, so there is one more than the accuracy asks for.
        let mut is_enough = self.error(spacing, extent, width) <= self.accuracy;
        while !is_enough {
            is_enough = self.error(spacing, extent, width) <= self.accuracy;
            points += 1;
            spacing = extent / points as f64;
        }
        (points..).find(|points| has_small_factors(*points)).unwrap_or(points)
    }

    /// Error of the forces on a grid whose points are `spacing` apart, for charges that are spread over five
    /// points (M. Deserno, C. Holm, J. Chem. Phys. 109 (1998) 7678 and 7694, equation 38 and table I).
    fn error(&self, spacing: f64, extent: f64, width: f64) -> f64 {
        let square = (spacing * width) * (spacing * width);
        let factors = [
            1.0 / 23232.0,
            7601.0 / 13_628_160.0,
            143.0 / 69120.0,
            517_231.0 / 106_536_960.0,
            106_640_677.0 / 11_737_571_328.0,
        ];
        let sum = factors.iter().rev().fold(0.0, |sum, factor| sum * square + factor);
        let root = (width * extent * (2.0 * std::f64::consts::PI).sqrt() * sum / self.atoms).sqrt();
        self.squares * square * square * spacing * width * root / (extent * extent)
    }
}

fn has_small_factors(points: u64) -> bool {
    let without = |points: u64, factor: u64| {
        std::iter::successors(Some(points), |points| points.is_multiple_of(factor).then(|| points / factor))
            .last()
    };
    [2, 3, 5].into_iter().try_fold(points, without) == Some(1)
}

/// The layouts of a grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mesh {
    /// Bricks, in which the atoms are.
    pub brick: GridLayout,
    /// Whole lines along x, where the charges are transformed from.
    pub lines: GridLayout,
    /// Whole lines along y.
    pub second: GridLayout,
    /// Whole lines along z.
    pub third: GridLayout,
}

/// A dimension of a layout that has fewer points than parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooFewPoints {
    /// The points.
    pub points: u64,
    /// The parts.
    pub parts: u32,
}

impl Mesh {
    /// The layouts of a grid of `points` on the ranks of a box.
    ///
    /// # Errors
    /// Ranks without points.
    pub fn new(points: [u64; 3], domain: &Domain) -> Result<Mesh, TooFewPoints> {
        let layout = |parts: [u32; 3], rule, order| {
            let split = |dimension: usize| {
                let (points, parts) = (points[dimension], parts[dimension]);
                match u64::from(parts) <= points {
                    true => Ok(GridSplit { points, parts, rule }),
                    false => Err(TooFewPoints { points, parts }),
                }
            };
            Ok(GridLayout { splits: [split(0)?, split(1)?, split(2)?], order })
        };
        let ranks = domain.ranks();
        let [y, z] = least_edges(ranks, [points[1], points[2]]);
        let [fast, slow] = near_square(ranks);
        Ok(Mesh {
            brick: layout(domain.procs, SplitRule::Middle, [2, 1, 0])?,
            lines: layout([1, y, z], SplitRule::Floor, [0, 1, 2])?,
            second: layout([fast, 1, slow], SplitRule::Floor, [1, 0, 2])?,
            third: layout([fast, slow, 1], SplitRule::Floor, [2, 0, 1])?,
        })
    }

    /// The grid's charges go from the ranks with the atoms to those with whole lines, as real numbers.
    pub fn lines_remap(&self) -> Remap {
        Remap { from: self.brick, to: self.lines, point: 8 }
    }

    /// The redistributions of a transform, each before the next direction, and the last to where the result
    /// goes, as complex numbers.
    pub fn transform(&self, result: GridLayout) -> [Remap; 3] {
        let Mesh { lines, second, third, .. } = *self;
        [(lines, second), (second, third), (third, result)].map(|(from, to)| Remap { from, to, point: 16 })
    }
}

/// The swaps of a grid's ghost points, which are those that a charge of a rank's atoms may be spread to
/// (`Grid3d::setup_comm_brick`): x, y, z, of each dimension down and up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeshGhosts {
    domain: Domain,
    dimensions: [GhostPlanes; 3],
    /// Bytes of a point.
    point: u64,
    /// Whether ghost points go to their owners, as charges do; otherwise they come from there, as fields do.
    to_owners: bool,
}

/// A dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
struct GhostPlanes {
    /// Points of each place.
    own: Vec<u64>,
    /// The same with ghost points.
    all: Vec<u64>,
    /// The swaps down and up: the planes that each place sends.
    swaps: Vec<(Direction, Vec<u64>)>,
}

/// A swap of ghost planes of a rank.
struct PlaneSwap {
    dimension: usize,
    to: u32,
    /// Planes that it sends there.
    sent: u64,
    from: u32,
    /// Planes that it receives from there.
    received: u64,
}

/// Points around that of an atom to which its charge is spread, on each side.
const STENCIL: i128 = 2;

impl GhostPlanes {
    /// `distance` is how far an atom may be outside of its part.
    fn new(split: &GridSplit, extent: u64, distance: u64) -> GhostPlanes {
        let (points, parts) = (i128::from(split.points), i128::from(split.parts));
        let (extent, distance) = (i128::from(extent), i128::from(distance));
        // The point of an atom at `place` parts and `offset` more of length: the nearest one.
        let point = |place: i128, offset: i128| {
            (2 * (extent * place + offset * parts) * points + extent * parts).div_euclid(2 * extent * parts)
        };
        let planes = |place: u32| {
            let range = split.range(place);
            let place = i128::from(place);
            let first = (point(place, -distance) - STENCIL).min(range.start.into());
            let last = (point(place + 1, distance) + STENCIL).max(i128::from(range.end) - 1);
            // A few more points than the place has.
            let (below, above) = (i128::from(range.start) - first, last + 1 - i128::from(range.end));
            (range.end - range.start, below as u64, above as u64)
        };
        let planes: Vec<_> = (0..split.parts).map(planes).collect();
        let own: Vec<u64> = planes.iter().map(|(own, ..)| *own).collect();
        let all = planes.iter().map(|(own, below, above)| own + below + above).collect();
        let next = |place: usize, direction| match direction {
            Direction::Down => (place + planes.len() - 1) % planes.len(),
            Direction::Up => (place + 1) % planes.len(),
        };
        let mut swaps = Vec::new();
        for direction in [Direction::Down, Direction::Up] {
            // What the next place needs, and what has been given to it.
            let needed = |place: usize| match direction {
                Direction::Down => planes[next(place, direction)].2,
                Direction::Up => planes[next(place, direction)].1,
            };
            let mut given = vec![0; planes.len()];
            let mut held = own.clone();
            while (0..planes.len()).any(|place| given[place] < needed(place)) {
                let sent: Vec<u64> =
                    (0..planes.len()).map(|place| held[place].min(needed(place) - given[place])).collect();
                for (place, sent) in sent.iter().enumerate() {
                    given[place] += sent;
                    held[place] -= sent;
                }
                for (place, sent) in sent.iter().enumerate() {
                    held[next(place, direction)] += sent;
                }
                swaps.push((direction, sent));
            }
        }
        GhostPlanes { own, all, swaps }
    }
}

impl MeshGhosts {
    /// The ghost points of a mesh, charges or fields.
    pub fn new(domain: &Domain, mesh: &Mesh, distance: u64) -> MeshGhosts {
        let planes = |dimension: usize| {
            GhostPlanes::new(&mesh.brick.splits[dimension], domain.extents[dimension], distance)
        };
        let dimensions = [planes(0), planes(1), planes(2)];
        MeshGhosts { domain: *domain, dimensions, point: 8, to_owners: true }
    }

    /// The same points with the three numbers of the field, from their owners.
    pub fn fields(&self) -> MeshGhosts {
        MeshGhosts { point: 24, to_owners: false, ..self.clone() }
    }

    /// The swaps with other ranks.
    fn swaps(&self) -> impl DoubleEndedIterator<Item = (usize, &(Direction, Vec<u64>))> {
        let dimensions = self.dimensions.iter().enumerate().filter(|(_, planes)| planes.own.len() > 1);
        dimensions.flat_map(|(dimension, planes)| planes.swaps.iter().map(move |swap| (dimension, swap)))
    }

    /// The ranks and planes of a swap, as fields go: charges come back the same way.
    fn planes(&self, rank: u32, index: u32) -> PlaneSwap {
        let index = index as usize;
        let found = if self.to_owners { self.swaps().rev().nth(index) } else { self.swaps().nth(index) };
        let Some((dimension, (direction, sent))) = found else { unreachable!("{index} is below the count") };
        let to = self.domain.next(rank, dimension, *direction);
        let from = self.domain.next(rank, dimension, direction.back());
        let of = |rank| sent[self.domain.place(rank)[dimension] as usize];
        PlaneSwap { dimension, to, sent: of(rank), from, received: of(from) }
    }

    fn message(&self, other: u32, planes: u64, dimension: usize, rank: u32) -> Option<SwapMessage> {
        let place = self.domain.place(rank);
        let length = |along: usize| {
            let planes = &self.dimensions[along];
            let lengths = if along < dimension { &planes.all } else { &planes.own };
            lengths[place[along] as usize]
        };
        let others = (0..3).filter(|along| *along != dimension).map(length);
        let bytes = Bytes::new(self.point * planes * others.product::<u64>());
        (planes > 0).then_some(SwapMessage { rank: other, bytes })
    }
}

impl SwapList for MeshGhosts {
    fn count(&self, _: u32) -> u32 {
        self.swaps().count() as u32
    }

    fn shape(&self, rank: u32, index: u32) -> SwapShape {
        let PlaneSwap { sent, received, .. } = self.planes(rank, index);
        let (sends, receives, style) = (sent > 0, received > 0, SwapStyle::Blocking);
        match self.to_owners {
            true => SwapShape { sends: receives, receives: sends, style },
            false => SwapShape { sends, receives, style },
        }
    }

    fn swap(&self, rank: u32, _: u64, index: u32) -> Swap {
        let PlaneSwap { dimension, to, sent, from, received } = self.planes(rank, index);
        let send = self.message(to, sent, dimension, rank);
        let receive = self.message(from, received, dimension, rank);
        match self.to_owners {
            true => Swap { send: receive, receive: send, style: SwapStyle::Blocking },
            false => Swap { send, receive, style: SwapStyle::Blocking },
        }
    }
}
