//! Congestion control: one file per algorithm, with the half of links and the half of flows.
//!
//! ```text
//!   source                     links                          destination
//!   flow half ── packet ──► link half ── packet, stamped ──► receiver half
//!   window, rate              mark, measure,                     │
//!       ▲                     compute a rate                     │
//!       └───────────────────────── notice ◄──────────────────────┘
//! ```
//! A flow is (source, destination, traffic class). All state is plain data and all arithmetic is in integers:
//! rates in bits per second, times in picoseconds. The crate knows no network: whoever moves packets calls
//! the halves, as the fabric does, or a test does step by step.
//!
//! | algorithm | link half | flow half |
//! |---|---|---|
//! | [`acc`] | computes max-min fair rates at pulses | obeys the least of its way |
//! | [`dcqcn`] | marks (ECN) by length of the queue (RED) | cuts its rate, recovers by timers |
//! | [`hpcc`] | measures how much it is used | sets its window by the most used link |
//! | [`ib`] | marks (FECN) beyond a threshold | delays packets by a table |
//! | [`nscc`] | marks (ECN) by length of the queue (RED) | sets its window by marks and delay |
//! | [`swift`] | none | sets its window by delay |

pub mod acc;
mod algorithm;
mod answers;
pub mod dcqcn;
mod halves;
pub mod hpcc;
pub mod ib;
mod in_flight;
mod marking;
pub mod nscc;
mod pacer;
pub mod swift;

pub use algorithm::{Algorithm, Arrival, Crossing, Notice, Path, Repair, ShortCircuit, Stamp};
pub use answers::{Answer, Answering, Batch};
pub use halves::{Congestion, FlowHalf, LinkHalf, Need, ReceiverHalf};
pub use marking::RedParameters;
