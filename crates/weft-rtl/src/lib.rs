//! Blocks of the network interface as RTL, in step with the model.
//!
//! ```text
//!   run ── ports of the model's blocks ──► LockStep ─┬─ inputs, at their edges ──► libweft_rtl.so
//!                                                    └─ outputs compared ◄──────── outputs, edge by edge
//! ```
//! `make rtl` builds the library from `rtl/`; it is loaded as the run begins. The RTL of a block gets what
//! the model's block gets, at the edges of the interface's clock, and is stepped only while it has something
//! to do.
//! The first output that is another, or comes at another edge, is a [`Difference`].
//!
//! An edge is where [`Clock`](weft_units::Clock) puts it. What is on a bus in cycle n is there from edge n to
//! edge n + 1. What comes between two edges is on the bus of the cycle that begins with the second.
//!
//! # Not modelled
//! Back-pressure of the RTL against the network: the model takes whatever comes. Words that the RTL does not
//! take wait, and come later than in the model.
//!
//! # In place of the model
//! [`RtlInPlace`] makes blocks that decide instead of the model's, at the ports of the interface. A second
//! instance of the RTL stays in step: it finds what a decision does not say, and has the waves.

mod allreduce;
mod beats;
mod block;
mod bus;
mod cells;
mod counts;
mod difference;
mod endpoint;
mod fit;
mod in_place;
mod library;
mod lock_step;
mod mailbox;
mod packetizer;
mod ports;
mod rdma_receive;
mod segmentation;
mod sources;
mod waves;
mod words;

pub use block::BlockName;
pub use counts::Counts;
pub use difference::Difference;
pub use fit::check_packet_words;
pub use in_place::RtlInPlace;
pub use library::{RtlError, RtlLibrary};
pub use lock_step::LockStep;
pub use waves::{WaveWindow, WavesError, WrittenWaves};
