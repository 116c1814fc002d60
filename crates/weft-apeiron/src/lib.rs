//! APEIRON designs: dataflow kernels on the Communication IP, as `config.yaml` describes them.
//!
//! ```text
//!  config.yaml ── Design::read ──► Design ─┬─ linker::config ───► vpp_linker.cfg
//!                                          ├─ picture::svg ─────► a picture
//!                                          ├─ machine::sets ────► the machine that it runs on
//!                                          └─ build::plan ──────► commands of the C++ compiler, description
//! ```
//! What is built runs under `weft run`: the headers in `apeiron/include` are the other half of this crate.
//!
//! # Source
//! TEXTAROSSA D2.8 §3, appendices B and C.

pub mod build;
mod config;
pub mod connections;
mod error;
mod headers;
pub mod linker;
pub mod machine;
pub mod picture;
mod prototype;
mod source;
mod streams;
mod yaml;

pub use config::{Design, DesignKernel};
pub use error::{DesignError, Mistake};
pub use streams::{DesignStream, StreamEnd};
