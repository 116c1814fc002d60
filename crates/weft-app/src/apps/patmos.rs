//! Work like that of PATMOS: particles that are followed one by one, by Monte Carlo.
//!
//! The document names the application and describes nothing of it, so this is ours: batches of particles that
//! need nothing of other ranks, and a sum of the scores after each.

use crate::app::{App, AppError, Verification};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{AllRanks, Computation};
use weft_trace::op::Collective;
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "patmos",
    summary: "work like that of PATMOS: Monte Carlo transport, scores reduced after each batch (assumed)",
    laws: "D1.4 section 11.1 names PATMOS and describes nothing of it: all of this is assumed. In each \
           batch a rank follows its share of the particles, 20,000 operations and 4,000 bytes of cross \
           sections each; then the scores, 8 bytes each, are added up at rank 0, and all meet.",
    checked: Verification::Unchecked("the document describes nothing to check it against"),
    options: &[
        AppOption { name: "particles", default: "1000000", about: "particles of a batch (assumed)" },
        AppOption { name: "scores", default: "100000", about: "numbers that are added up (assumed)" },
        AppOption { name: "batches", default: "10", about: "number of batches" },
    ],
    memory: None,
    build,
};

/// Operations of a particle, and the bytes that it touches.
const PARTICLE_FLOPS: u64 = 20_000;
const PARTICLE_BYTES: u64 = 4_000;

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let particles = options.count("particles", 1..=1 << 40)?;
    let scores = options.count("scores", 1..=1 << 34)?;
    let batches = options.count("batches", 1..=1 << 30)?;
    let own = particles.div_ceil(options.ranks().into());
    let transport = Computation { flops: own * PARTICLE_FLOPS, bytes: Bytes::new(own * PARTICLE_BYTES) };
    let reduction = AllRanks { kind: Collective::Reduce, ..AllRanks::sum(scores) };
    let meeting = AllRanks::moving(Collective::Barrier, Bytes::ZERO);
    Ok(vec![KernelPart::repeat(batches, vec![transport.into(), reduction.into(), meeting.into()])])
}
