//! The halo of boxes on a grid: each rank sends a neighbour the points where their boxes touch.

use super::{NeighbourList, NeighbourMessages};
use crate::grid::{RankGrid, directions};
use weft_units::Bytes;

/// The neighbours of equal boxes on a grid of ranks.
pub struct GridHalo {
    /// The ranks.
    pub grid: RankGrid,
    /// Grid points of a rank.
    pub local: [u64; 3],
    /// Bytes of a grid point.
    pub point: u64,
    /// The neighbours.
    pub stencil: Stencil,
    /// The tags of the messages.
    pub tags: HaloTags,
}

/// The points that a point's new value depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stencil {
    /// Itself and six others: neighbours share a face.
    Faces,
    /// Itself and 26 others: neighbours share a face, an edge or a corner.
    Corners,
}

impl Stencil {
    /// Number of points.
    pub const fn points(self) -> u64 {
        match self {
            Stencil::Faces => 7,
            Stencil::Corners => 27,
        }
    }

    fn has(self, direction: [i32; 3]) -> bool {
        self == Stencil::Corners || direction.iter().filter(|step| **step != 0).count() == 1
    }
}

/// How messages between the same ranks are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HaloTags {
    /// All have this tag: no two ranks touch twice.
    One(i32),
    /// By their direction: in a closed grid of two ranks, both sides are of the same neighbour.
    Direction,
}

impl GridHalo {
    /// The directions of the neighbours that there are, with their ranks. A rank is not its own neighbour.
    fn all(&self, rank: u32) -> impl Iterator<Item = ([i32; 3], u32)> {
        let directions = directions().filter(|direction| self.stencil.has(*direction));
        directions.filter_map(move |direction| {
            let neighbour = self.grid.shifted(rank, direction)?;
            (neighbour != rank).then_some((direction, neighbour))
        })
    }

    fn tag(&self, direction: [i32; 3]) -> i32 {
        match self.tags {
            HaloTags::One(tag) => tag,
            HaloTags::Direction => direction.iter().rev().fold(0, |tag, step| tag * 3 + step + 1),
        }
    }
}

impl NeighbourList for GridHalo {
    fn count(&self, rank: u32) -> u32 {
        self.all(rank).count() as u32
    }

    fn neighbour(&self, rank: u32, index: u32) -> NeighbourMessages {
        let found = self.all(rank).nth(index as usize);
        let (direction, neighbour) = found.unwrap_or_else(|| unreachable!("{index} is below the count"));
        let along = |(step, points): (&i32, u64)| if *step == 0 { points } else { 1 };
        let points: u64 = direction.iter().zip(self.local).map(along).product();
        let bytes = Bytes::new(points * self.point);
        // A message has the tag of the way that it goes.
        let (send_tag, receive_tag) = (self.tag(direction), self.tag(direction.map(|step| -step)));
        NeighbourMessages { rank: neighbour, send: bytes, send_tag, receive: bytes, receive_tag }
    }
}
