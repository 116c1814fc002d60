//! Congestion control: one file per algorithm, with its congestion point (a link), its reaction point (a
//! source) and its notification point (a destination): the words of IEEE 802.1Qau.
//!
//! ```text
//!   source                        links                                destination
//!   reaction point ── packet ──► congestion point ── packet, stamped ──► notification point
//!   window, rate                  mark, measure,                              │
//!       ▲                         compute a rate                              │
//!       └──────────────────────────── notice ◄────────────────────────────────┘
//! ```
//! A flow is (source, destination, traffic class). All state is plain data and all arithmetic is in integers:
//! rates in bits per second, times in picoseconds. The crate knows no network: whoever moves packets calls
//! the points, as the fabric does, or a test does step by step.
//!
//! | algorithm | congestion point | reaction point |
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
pub mod hpcc;
pub mod ib;
mod in_flight;
mod keys;
mod marking;
pub mod nscc;
mod pacer;
mod points;
pub mod swift;

pub use algorithm::{Algorithm, Arrival, Crossing, Notice, Path, Repair, ShortCircuit, Stamp};
pub use answers::{Answer, Answering, Batch};
pub use keys::{Configured, CongestionKeys, FlowSetting};
pub use marking::RedParameters;
pub use points::{Congestion, CongestionKind, CongestionPoint, Need, NotificationPoint, ReactionPoint};
