//! Topologies, routing functions, the deadlock proof and a machine's figures.
//!
//! Everything here is pure: no time, no queues, no randomness of its own. A topology says what is
//! joined to what; a routing says which port and virtual channel a packet takes next.

mod traits;

pub use traits::{Address, Attachment, LinkClass, Position, RouteState, Routing, Step, Topology, View};
