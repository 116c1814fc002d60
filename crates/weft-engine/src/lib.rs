//! Event order, partitions, lookahead, save and resume: virtual time that knows no network.
//!
//! A model is a set of **sites** that share nothing and send each other events. Between two sites an
//! event takes at least the [`Lookahead`]; within a site it may take any time, also none.
//!
//! ```text
//!          window k                 window k+1
//!   ├───────────────────────┼───────────────────────┤   length ≤ lookahead
//!   site 0  e e   e  e
//!   site 1    e  e      e ──────────►e               events to other sites land in later windows
//!   site 2  e  ↻e e                                  events to itself may land in this one
//! ```
//!
//! In a window each site handles its own events in their total order ([`Event`]), undisturbed by any
//! other, so sites may be taken in any order and on any number of threads: the results are the same by
//! construction. Taking them one after the other also keeps the state of a site in the cache while
//! its share of the window is worked off.
//!
//! Decisions that look at the whole system are taken between calls of [`Simulation::run_until`], at
//! virtual times that the experiment fixes.

mod barrier;
mod batch;
mod by_site;
mod event;
mod event_queue;
pub mod exponential;
mod initial;
mod keys;
mod lookahead;
mod model;
mod own_events;
mod partition;
mod prefetch;
mod random;
mod simulation;
mod threads;

pub use event::{Event, Order, Payload, SiteId};
pub use initial::InitialState;
pub use lookahead::{Lookahead, ZeroLatencyCut};
pub use model::{Context, Model, Pulses};
pub use prefetch::prefetch;
pub use random::{Stream, below};
pub use simulation::{Progress, Simulation, SnapshotError};
