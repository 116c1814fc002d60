//! The OSU micro-benchmarks as generated programs.
//!
//! ```text
//!  Benchmark ── program(ranks, bytes, repetitions) ──▶ Loop: (rank, position) ──▶ Op
//!                                                        │ readings of the clock
//!                                                        ▼
//!                                    Stopwatches, one per rank ──▶ Figures: latency, bandwidth
//! ```
//! One file per benchmark says what a rank does between two readings of its clock, and what follows
//! from them; [`Loop`] repeats it as OSU does.
//!
//! # Source
//! The loops of the OSU micro-benchmarks 5.x (mvapich.cse.ohio-state.edu/benchmarks), read and written
//! anew; TR-488 §6.1 for what was run on ExaNeSt, §6.1.4 for `one_way`.
//!
//! # Not modelled
//! Touching and checking of buffers, and the reduction of the ranks' times at the end. Iterations are fewer
//! than OSU's where those are not asked for: one of the model is exact and a few are enough (`counts`).
//!
//! Adding a benchmark: a file here and a line in `Benchmark::iteration` and [`Benchmark::ALL`].

mod benchmark;
mod bibw;
mod binomial;
mod bw;
mod collectives;
mod counts;
mod fop_latency;
mod latency;
mod mbw_mr;
mod one_sided;
mod one_way;
mod ops;
mod repeat;
mod stopwatch;

pub use benchmark::{Benchmark, UnknownBenchmark};
pub use binomial::broadcast_step;
pub use counts::{Counts, Iterations};
pub use repeat::{Loop, Repetitions};
pub use stopwatch::{Figures, Stopwatch, Window};

/// Messages under way at a time in the bandwidth benchmarks: OSU's default.
pub const WINDOW: u32 = 64;
