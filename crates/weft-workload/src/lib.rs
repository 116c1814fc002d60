//! Workloads: what is put on a machine.
//!
//! ```text
//!  Arrival ── when ──┐
//!                    ├─> message (source, destination, time) ──> network interface
//!  Pattern ── to ────┘
//!                                       epoch means ──> steady: warm-up, intervals, saturation
//! ```
//!
//! - [`pattern`]: where the messages of an endpoint go, one file per pattern.
//! - [`arrival`]: when they are handed over, in integer arithmetic only.
//! - [`host`]: several programs behind one interface: ranks, flows, [`services`].
//! - [`path`]: the critical path of a replay, where every picosecond went.
//! - [`replay`]: programs, recorded or generated, rank by rank; [`mapping`] says where their ranks sit, and
//!   [`jobs`] which hosts each of several has.
//! - [`osu`]: the OSU micro-benchmarks as generated programs.
//! - [`steady`]: when the network has settled, and how far a measured mean can be trusted.
//!
//! Everything random here is drawn from a function that the caller passes, which returns 64 uniform
//! bits; the caller keys it by seed, endpoint and purpose.

pub mod arrival;
pub mod flow;
pub mod histogram;
pub mod host;
pub mod jobs;
pub mod mapping;
pub mod osu;
pub mod path;
pub mod pattern;
pub mod replay;
pub mod scenario;
pub mod services;
pub mod steady;
pub mod traffic;

#[cfg(test)]
mod rng;

pub use weft_engine::below;
