//! Messages with atoms: LAMMPS's swaps of ghost atoms and its exchange of atoms that have left
//! (`comm_brick.cpp`).

use super::domain::{Direction, Domain};
use crate::phase::{Swap, SwapList, SwapMessage, SwapShape, SwapStyle};
use std::cmp::Ordering;
use weft_units::Bytes;

/// The places of the atoms of a box, by which those in a slab are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Positions {
    /// Anywhere in layers along z: their number goes by the volume and by the layer.
    Layers {
        /// Extents of the box that the whole box has copies of.
        edges: [u64; 3],
        /// Atoms of each layer of that box, from the lowest on.
        layers: [u64; LAYERS],
        /// Atoms that leave a part along a dimension.
        leaving: LeavingAtoms,
    },
    /// On a face-centred cubic lattice of so many planes along each dimension, exactly until the first
    /// rebuild of the neighbour lists. Then half of the atoms of a plane between two parts are on each side.
    Lattice {
        /// Planes along each dimension, two in a cell.
        planes: [u64; 3],
        /// Bytes of an atom that leaves.
        atom: u64,
        /// Atoms that leave a part along a dimension from the second rebuild on.
        leaving: LeavingAtoms,
    },
}

/// Layers of a box, all of the same height.
pub const LAYERS: usize = 12;

/// Bytes of the atoms that leave a part along a dimension between two neighbour lists, for 10^4 square units
/// of its face.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeavingAtoms(pub u64);

impl LeavingAtoms {
    /// Bytes of those that leave through a face, whose area is in squares of the unit of lengths here.
    fn bytes(self, face: u128) -> u64 {
        // The face of a part is less than 2^80, and what leaves is less than all atoms.
        (face * u128::from(self.0) / 10u128.pow(12)) as u64
    }
}

/// The payload of swaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapPayload {
    /// Bytes of each ghost atom, from its owner.
    Forward(u64),
    /// Bytes of each ghost atom, to its owner.
    Reverse(u64),
    /// Bytes of each ghost atom of a new neighbour list, which come after their number.
    Borders(u64),
    /// The atoms that have left, after their number.
    Exchange,
}

/// The swaps of one communication. LAMMPS leaves out a message without atoms, which there is where few ghost
/// atoms lie beyond the next rank; here it is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomSwaps {
    /// The box.
    pub domain: Domain,
    /// The places of its atoms.
    pub positions: Positions,
    /// The payload of swaps.
    pub payload: SwapPayload,
    /// Neighbour lists before those of the first pass.
    pub first_list: u64,
    /// Passes with the same neighbour list.
    pub passes: u64,
}

/// A swap of ghost atoms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slab {
    dimension: usize,
    direction: Direction,
    /// Ranks between the owner and the one that it is sent to.
    layer: u32,
}

/// A message of the exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ExchangeStep {
    dimension: usize,
    direction: Direction,
    /// Whether it is the number of the atoms that follow.
    is_size: bool,
}

impl AtomSwaps {
    /// Dimensions along which there are other ranks.
    fn dimensions(&self) -> impl Iterator<Item = usize> + '_ {
        (0..3).filter(|dimension| self.domain.procs[*dimension] > 1)
    }

    /// The swaps with other ranks: x, y, z, of each dimension down and up, then the layers behind.
    fn slab(&self, mut index: u32) -> Slab {
        for dimension in self.dimensions() {
            let layers = self.domain.layers(dimension);
            match index.checked_sub(2 * layers) {
                Some(rest) => index = rest,
                None => {
                    let direction = if index.is_multiple_of(2) { Direction::Down } else { Direction::Up };
                    return Slab { dimension, direction, layer: index / 2 };
                }
            }
        }
        unreachable!("an index is below the count")
    }

    fn slabs(&self) -> u32 {
        self.dimensions().map(|dimension| 2 * self.domain.layers(dimension)).sum()
    }

    /// The swap in which `rank` sends the atoms of a slab, and receives those that the rank behind it sends.
    fn ghosts(&self, rank: u32, list: u64, slab: Slab, atom: u64) -> Swap {
        let to = self.domain.next(rank, slab.dimension, slab.direction);
        let from = self.domain.next(rank, slab.dimension, slab.direction.back());
        let message = |other, sender| {
            let bytes = Bytes::new(atom * self.atoms(sender, list, slab));
            Some(SwapMessage { rank: other, bytes })
        };
        Swap { send: message(to, rank), receive: message(from, from), style: SwapStyle::Blocking }
    }

    /// Number of atoms that `rank` sends in a swap.
    fn atoms(&self, rank: u32, list: u64, slab: Slab) -> u64 {
        match self.positions {
            Positions::Layers { edges, layers, .. } => {
                let layers = AtomLayers { domain: &self.domain, edges, layers };
                layers.atoms(self.domain.place(rank), slab)
            }
            Positions::Lattice { planes, .. } => {
                let lattice = AtomLattice { domain: &self.domain, planes, is_exact: list == 0 };
                lattice.atoms(self.domain.place(rank), slab)
            }
        }
    }

    /// A message of the exchange along a dimension, down and up: first the sizes, then the atoms.
    fn exchange_step(&self, mut index: u32) -> ExchangeStep {
        for dimension in self.dimensions() {
            let sides = self.domain.procs[dimension].min(3) - 1;
            if index < 2 * sides {
                let direction = if index.is_multiple_of(sides) { Direction::Down } else { Direction::Up };
                return ExchangeStep { dimension, direction, is_size: index < sides };
            }
            index -= 2 * sides;
        }
        unreachable!("an index is below the count")
    }

    /// The messages of the exchange. The same atoms go to both sides; where the rank is the same on both,
    /// once.
    fn exchange(&self, rank: u32, list: u64, index: u32) -> Swap {
        let ExchangeStep { dimension, direction, is_size } = self.exchange_step(index);
        let to = self.domain.next(rank, dimension, direction);
        let from = self.domain.next(rank, dimension, direction.back());
        if is_size {
            return announcement(to, from);
        }
        let message = |other, sender| {
            let bytes = Bytes::new(self.leaving(sender, list, dimension));
            Some(SwapMessage { rank: other, bytes })
        };
        Swap { send: message(to, rank), receive: message(from, from), style: SwapStyle::Blocking }
    }

    /// Whether a swap is one of numbers.
    fn is_announcement(&self, index: u32) -> bool {
        match self.payload {
            SwapPayload::Forward(_) | SwapPayload::Reverse(_) => false,
            SwapPayload::Borders(_) => index.is_multiple_of(2),
            SwapPayload::Exchange => self.exchange_step(index).is_size,
        }
    }

    /// Bytes of the atoms that leave a rank along a dimension.
    fn leaving(&self, rank: u32, list: u64, dimension: usize) -> u64 {
        let others = (0..3).filter(|other| *other != dimension);
        let face = others.map(|other| u128::from(self.domain.part(other))).product();
        match self.positions {
            Positions::Lattice { planes, atom, .. } if list == 1 => {
                let lattice = AtomLattice { domain: &self.domain, planes, is_exact: false };
                atom * lattice.leaving(self.domain.place(rank), dimension)
            }
            Positions::Layers { leaving, .. } | Positions::Lattice { leaving, .. } => leaving.bytes(face),
        }
    }
}

/// An `MPI_Sendrecv` of a number.
fn announcement(to: u32, from: u32) -> Swap {
    let message = |rank| Some(SwapMessage { rank, bytes: Bytes::new(4) });
    Swap { send: message(to), receive: message(from), style: SwapStyle::Sendrecv }
}

impl SwapList for AtomSwaps {
    fn count(&self, _: u32) -> u32 {
        match self.payload {
            SwapPayload::Forward(_) | SwapPayload::Reverse(_) => self.slabs(),
            SwapPayload::Borders(_) => 2 * self.slabs(),
            SwapPayload::Exchange => {
                self.dimensions().map(|dimension| 2 * (self.domain.procs[dimension].min(3) - 1)).sum()
            }
        }
    }

    fn shape(&self, _: u32, index: u32) -> SwapShape {
        SwapShape::both(match self.is_announcement(index) {
            true => SwapStyle::Sendrecv,
            false => SwapStyle::Blocking,
        })
    }

    fn swap(&self, rank: u32, pass: u64, index: u32) -> Swap {
        let list = self.first_list + pass / self.passes;
        match self.payload {
            SwapPayload::Forward(atom) => self.ghosts(rank, list, self.slab(index), atom),
            SwapPayload::Reverse(atom) => {
                let swap = self.ghosts(rank, list, self.slab(self.slabs() - 1 - index), atom);
                Swap { send: swap.receive, receive: swap.send, ..swap }
            }
            SwapPayload::Borders(atom) => {
                let slab = self.slab(index / 2);
                let swap = self.ghosts(rank, list, slab, atom);
                match (self.is_announcement(index), swap.send, swap.receive) {
                    (true, Some(send), Some(receive)) => announcement(send.rank, receive.rank),
                    _ => swap,
                }
            }
            SwapPayload::Exchange => self.exchange(rank, list, index),
        }
    }
}

/// Atoms that have another density in each layer along z.
struct AtomLayers<'a> {
    domain: &'a Domain,
    edges: [u64; 3],
    layers: [u64; LAYERS],
}

impl AtomLayers<'_> {
    /// Atoms that a rank sends in a swap: the slab covers the ghost atoms of the dimensions before.
    fn atoms(&self, place: [u32; 3], slab: Slab) -> u64 {
        let ghost = i128::from(self.domain.ghost);
        let range = |dimension: usize| {
            let (extent, procs) = (self.domain.extents[dimension], self.domain.procs[dimension]);
            let border = |part: u32| i128::from(u64::from(part) * extent / u64::from(procs));
            let (low, high) = (border(place[dimension]), border(place[dimension] + 1));
            let (near, far) =
                (i128::from(slab.layer) * (high - low), (high - low) * i128::from(slab.layer + 1));
            match (dimension.cmp(&slab.dimension), slab.direction) {
                (Ordering::Less, _) => (low - ghost, high + ghost),
                (Ordering::Greater, _) => (low, high),
                (Ordering::Equal, Direction::Down) => (low + near, low + far.min(ghost)),
                (Ordering::Equal, Direction::Up) => (high - far.min(ghost), high - near),
            }
        };
        let ((left, right), (front, back), (bottom, top)) = (range(0), range(1), range(2));
        let area = (right - left) * (back - front);
        let [edge_x, edge_y, edge_z] = self.edges.map(i128::from);
        let numerator = area * (self.below(top) - self.below(bottom));
        let whole = edge_x * edge_y * edge_z;
        // Below the number of all atoms times the boxes that the ghost atoms reach.
        ((numerator + whole / 2) / whole) as u64
    }

    /// Atoms of a column of boxes below a height, times the height of a box.
    fn below(&self, height: i128) -> i128 {
        let edge = i128::from(self.edges[2]);
        let all: i128 = self.layers.iter().copied().map(i128::from).sum();
        // A layer is as high as a box in units of a twelfth.
        let rest = LAYERS as i128 * height.rem_euclid(edge);
        let layers = self.layers.iter().zip(0..);
        let within = layers.map(|(atoms, layer)| i128::from(*atoms) * (rest - layer * edge).clamp(0, edge));
        height.div_euclid(edge) * all * edge + within.sum::<i128>()
    }
}

/// Atoms of a face-centred cubic lattice in boxes: plane `p` of `n` of a dimension lies at `p / n` of the
/// box, and there is an atom where the sum of the numbers of its three planes is even.
struct AtomLattice<'a> {
    domain: &'a Domain,
    planes: [u64; 3],
    /// Whether atoms are at their places. Otherwise each has moved a little.
    is_exact: bool,
}

/// A cell's edge (`lattice.cpp`): the third root of 4 atoms by their density.
const CELL: f64 = 1.679_596_191_382_507_3;

/// Numbers of planes in thousandths: the even ones and the odd ones.
type Planes = [u64; 2];

impl AtomLattice<'_> {
    /// The planes of a dimension from a place to another.
    fn planes(&self, dimension: usize, from: SlabEdge, to: SlabEdge) -> Planes {
        let whole = self.spacing(dimension);
        let place = |edge| self.edge(dimension, edge);
        let (first, last) = ((place(from) + whole - 1).div_euclid(whole), place(to).div_euclid(whole));
        let mut planes = [0, 0];
        let mut add = |plane: i128, share: i128| planes[plane.rem_euclid(2) as usize] += share;
        add(first, 1000 * ((last - first).div_euclid(2) + 1));
        add(first + 1, 1000 * ((last - first + 1).div_euclid(2)));
        if self.is_exact {
            // A plane at a border of parts belongs to one of them. Ghosts are those at their border, too.
            let at_border = |edge: SlabEdge, plane: i128| edge.length == 0 && place(edge) == plane * whole;
            if at_border(from, first) && self.is_below(dimension, first, from.parts) {
                add(first, -1000);
            }
            if at_border(to, last) && !self.is_below(dimension, last, to.parts) {
                add(last, -1000);
            }
        } else {
            let ((below, beyond), (above, ahead)) =
                (self.beyond(dimension, from), self.beyond(dimension, to));
            add(below, if below >= first { -beyond } else { beyond });
            add(above, if above <= last { -ahead } else { ahead });
        }
        planes.map(|share| share as u64)
    }

    /// The place of an edge, in units in which a plane is as far from the next as [`AtomLattice::spacing`].
    fn edge(&self, dimension: usize, edge: SlabEdge) -> i128 {
        let extent = i128::from(self.domain.extents[dimension]);
        let procs = i128::from(self.domain.procs[dimension]);
        let count = i128::from(self.planes[dimension]);
        count * (i128::from(edge.parts) * extent + i128::from(edge.length) * procs)
    }

    fn spacing(&self, dimension: usize) -> i128 {
        i128::from(self.domain.extents[dimension]) * i128::from(self.domain.procs[dimension])
    }

    /// The plane that is nearest to an edge, and the thousandths of its atoms that have got beyond it. Atoms
    /// are taken to be anywhere within a fifth of the spacing from their place after 20 steps. That is what
    /// crosses borders of parts in a recording of 7 ranks, whose borders are at several distances from
    /// planes.
    fn beyond(&self, dimension: usize, edge: SlabEdge) -> (i128, i128) {
        let (place, spacing) = (self.edge(dimension, edge), self.spacing(dimension));
        let nearest = (2 * place + spacing).div_euclid(2 * spacing);
        let distance = (nearest * spacing - place).abs();
        (nearest, (500 * (spacing - 5 * distance) / spacing).max(0))
    }

    /// Whether a plane at the border below a part belongs to the part before. It lies there exactly, and
    /// LAMMPS decides by what its products round to: a cell's edge times the cells (`lattice.cpp`), and the
    /// box times a share of the ranks (`comm.cpp`).
    fn is_below(&self, dimension: usize, plane: i128, parts: i64) -> bool {
        let procs = self.domain.procs[dimension];
        let share = parts.rem_euclid(procs.into()) as f64 / f64::from(procs);
        let box_edge = CELL * (self.planes[dimension] / 2) as f64;
        let cells = plane.rem_euclid(self.planes[dimension].into()) as f64 / 2.0;
        cells * CELL < box_edge * share
    }

    fn atoms(&self, place: [u32; 3], slab: Slab) -> u64 {
        let ghost = self.domain.ghost as i64;
        let planes = |dimension: usize| {
            let part = i64::from(place[dimension]);
            let (low, high) = (SlabEdge { parts: part, length: 0 }, SlabEdge { parts: part + 1, length: 0 });
            let layer = i64::from(slab.layer);
            let is_last = slab.layer + 1 == self.domain.layers(dimension);
            match dimension.cmp(&slab.dimension) {
                Ordering::Greater => self.planes(dimension, low, high),
                Ordering::Less => {
                    let (low, high) =
                        (SlabEdge { length: -ghost, ..low }, SlabEdge { length: ghost, ..high });
                    self.planes(dimension, low, high)
                }
                Ordering::Equal if slab.direction == Direction::Down => {
                    let from = SlabEdge { parts: part + layer, length: 0 };
                    let to = SlabEdge { parts: part + layer + 1, length: 0 };
                    self.planes(dimension, from, if is_last { SlabEdge { length: ghost, ..low } } else { to })
                }
                Ordering::Equal => {
                    let from = SlabEdge { parts: part - layer, length: 0 };
                    let to = SlabEdge { parts: part - layer + 1, length: 0 };
                    self.planes(
                        dimension,
                        if is_last { SlabEdge { length: -ghost, ..high } } else { from },
                        to,
                    )
                }
            }
        };
        count([planes(0), planes(1), planes(2)])
    }

    /// Atoms that leave a part through its faces of a dimension before the first rebuild: half of a plane
    /// that lies at its lower face.
    fn leaving(&self, place: [u32; 3], dimension: usize) -> u64 {
        let planes = |other: usize| {
            let low = SlabEdge { parts: i64::from(place[other]), length: 0 };
            let high = SlabEdge { parts: low.parts + 1, length: 0 };
            if other != dimension {
                return self.planes(other, low, high);
            }
            let ((below, beyond), (above, ahead)) = (self.beyond(other, low), self.beyond(other, high));
            let is_own = |plane: i128| {
                let at = plane * self.spacing(other);
                self.edge(other, low) <= at && at < self.edge(other, high)
            };
            let left = |plane, share| if is_own(plane) { share } else { 0 };
            // Planes of the two kinds have the same number of atoms, but for one row: half of each.
            [((left(below, beyond) + left(above, ahead)) / 2) as u64; 2]
        };
        count([planes(0), planes(1), planes(2)])
    }
}

/// A place along a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SlabEdge {
    /// Parts of ranks between the lower end of the box and the place.
    parts: i64,
    /// The length behind them.
    length: i64,
}

/// Number of atoms where these planes cross.
fn count(planes: [Planes; 3]) -> u64 {
    let share = |dimension: usize, kinds: usize| u128::from(planes[dimension][kinds >> dimension & 1]);
    let atoms = |kinds: usize| share(0, kinds) * share(1, kinds) * share(2, kinds);
    let even = (0..8usize).filter(|kinds| kinds.count_ones().is_multiple_of(2));
    // Thousandths of three dimensions.
    (even.map(atoms).sum::<u128>() / 1_000_000_000) as u64
}
