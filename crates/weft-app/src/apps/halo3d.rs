//! NeighbourExchange of halos on a grid of three dimensions.
//!
//! Each rank has a box of grid points. In each step it sends the points at its surface to the ranks whose
//! boxes touch its own, and computes a stencil on all its points.

use crate::app::{App, AppError, Verification};
use crate::grid::{RankGrid, directions, least_surface};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{Computation, NeighbourExchange, NeighbourList, NeighbourMessages, SendStyle};
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "halo3d",
    summary: "exchange of halos of a stencil on a grid of three dimensions",
    laws: "A rank sends each neighbour the points where their boxes touch, `variables` numbers of 8 bytes \
           each: a face has nx x ny points, an edge nx, a corner 1. A point takes 2 operations per point of \
           the stencil, and each variable of it is read and written once (a stencil whose planes fit into a \
           cache). This is geometry; no document is its source.",
    checked: Verification::Unchecked("a pattern, not a program"),
    options: &[
        AppOption { name: "local", default: "64x64x64", about: "grid points of a rank" },
        AppOption { name: "variables", default: "1", about: "numbers per grid point" },
        AppOption { name: "stencil", default: "7", about: "points of the stencil, 7 or 27" },
        AppOption { name: "periodic", default: "no", about: "answer whether the grid is closed, yes or no" },
        AppOption { name: "steps", default: "10", about: "number of steps" },
    ],
    build,
};

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let local = options.extents("local", 1..=1 << 20)?;
    let variables = options.count("variables", 1..=1 << 20)?;
    let stencil = [7, 27][options.word("stencil", &["7", "27"])?];
    let periodic = options.word("periodic", &["no", "yes"])? == 1;
    let steps = options.count("steps", 1..=1 << 40)?;
    let points: u64 = local.iter().product();
    let numbers = points.checked_mul(variables).filter(|numbers| *numbers <= 1 << 40);
    let numbers = numbers.ok_or_else(|| options.refuse_value("local", "at most 2^40 numbers".to_owned()))?;
    let grid = RankGrid { extents: least_surface(options.ranks(), [1; 3]), periodic };
    let offsets = directions().filter(|offset| stencil == 27 || is_face(offset)).collect();
    let halo = Halo { grid, local, offsets, number: 8 * variables };
    let stencil = Computation { flops: 2 * stencil * numbers, bytes: Bytes::new(2 * 8 * numbers) };
    let exchange = NeighbourExchange { neighbours: halo, style: SendStyle::Nonblocking };
    Ok(vec![KernelPart::repeat(steps, vec![exchange.into(), stencil.into()])])
}

fn is_face(offset: &[i32; 3]) -> bool {
    offset.iter().filter(|step| **step != 0).count() == 1
}

/// The neighbours of a box on a grid.
struct Halo {
    grid: RankGrid,
    /// Grid points of a rank.
    local: [u64; 3],
    /// The directions of the neighbours.
    offsets: Vec<[i32; 3]>,
    /// Bytes of a grid point.
    number: u64,
}

impl Halo {
    /// The neighbours that there are, with their directions. A rank is not its own neighbour.
    fn all(&self, rank: u32) -> impl Iterator<Item = (usize, u32)> {
        let neighbours = self.offsets.iter().enumerate();
        neighbours.filter_map(move |(direction, offset)| {
            let neighbour = self.grid.shifted(rank, *offset)?;
            (neighbour != rank).then_some((direction, neighbour))
        })
    }
}

impl NeighbourList for Halo {
    fn count(&self, rank: u32) -> u32 {
        self.all(rank).count() as u32
    }

    fn neighbour(&self, rank: u32, index: u32) -> NeighbourMessages {
        let found = self.all(rank).nth(index as usize);
        let (direction, neighbour) = found.unwrap_or_else(|| unreachable!("{index} is below the count"));
        let along = |(step, points): (&i32, u64)| if *step == 0 { points } else { 1 };
        let points: u64 = self.offsets[direction].iter().zip(self.local).map(along).product();
        let bytes = Bytes::new(points * self.number);
        // A message has the number of its direction. What comes from a neighbour goes the other way.
        let back = self.offsets.len() - 1 - direction;
        let (send_tag, receive_tag) = (direction as i32, back as i32);
        NeighbourMessages { rank: neighbour, send: bytes, send_tag, receive: bytes, receive_tag }
    }
}
