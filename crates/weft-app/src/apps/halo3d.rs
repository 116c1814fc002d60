//! NeighbourExchange of halos on a grid of three dimensions.
//!
//! Each rank has a box of grid points. In each step it sends the points at its surface to the ranks whose
//! boxes touch its own, and computes a stencil on all its points.

use crate::app::{App, AppError, Verification};
use crate::grid::{RankGrid, least_surface};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{Computation, GridHalo, HaloTags, NeighbourExchange, SendStyle, Stencil};
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "halo3d",
    summary: "exchange of halos of a stencil on a grid of three dimensions",
    laws: "A rank sends each neighbour the points where their boxes touch, `variables` numbers of 8 bytes \
           each: a face has nx x ny points, an edge nx, a corner 1. A point takes 2 operations per point \
           of the stencil, and each variable of it is read and written once (a stencil whose planes fit \
           into a cache). This is geometry; no document is its source.",
    checked: Verification::Against(
        "tests/apps/halo3d.c, of ours: all operations, and virtual time within 1 percent",
    ),
    options: &[
        AppOption { name: "local", default: "64x64x64", about: "grid points of a rank" },
        AppOption { name: "variables", default: "1", about: "numbers per grid point" },
        AppOption { name: "stencil", default: "7", about: "points of the stencil, 7 or 27" },
        AppOption { name: "periodic", default: "no", about: "answer whether the grid is closed, yes or no" },
        AppOption { name: "steps", default: "10", about: "number of steps" },
    ],
    memory: Some(memory),
    build,
};

/// Each number of a point before and after a step.
fn memory(options: &Options<'_>) -> Result<Bytes, AppError> {
    let points: u64 = options.extents("local", 1..=1 << 20)?.iter().product();
    let variables = options.count("variables", 1..=1 << 20)?;
    Ok(Bytes::new(points.saturating_mul(2 * 8 * variables)))
}

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let local = options.extents("local", 1..=1 << 20)?;
    let variables = options.count("variables", 1..=1 << 20)?;
    let stencil = [Stencil::Faces, Stencil::Corners][options.word("stencil", &["7", "27"])?];
    let periodic = options.word("periodic", &["no", "yes"])? == 1;
    let steps = options.count("steps", 1..=1 << 40)?;
    let points: u64 = local.iter().product();
    let numbers = points.checked_mul(variables).filter(|numbers| *numbers <= 1 << 40);
    let numbers = numbers.ok_or_else(|| {
        // The largest cube of so many.
        let is_enough = |length: &u64| length.pow(3) * variables <= 1 << 40;
        let length = (1..=10_321).rev().find(is_enough).unwrap_or(1);
        options.refuse_value("local", format!("at most 2^40 numbers, as {length}x{length}x{length} has"))
    })?;
    let grid = RankGrid { extents: least_surface(options.ranks(), [1; 3]), periodic };
    let halo = GridHalo { grid, local, point: 8 * variables, stencil, tags: HaloTags::Direction };
    let exchange = NeighbourExchange { neighbours: halo, style: SendStyle::Nonblocking };
    let computation =
        Computation { flops: 2 * stencil.points() * numbers, bytes: Bytes::new(2 * 8 * numbers) };
    Ok(vec![KernelPart::repeat(steps, vec![exchange.into(), computation.into()])])
}
