//! Topologies, routing functions, the deadlock proof and a machine's figures.
//!
//! Everything here is pure: no time, no queues, no randomness of its own. A topology says what is
//! joined to what; a routing says which port and virtual channel a packet takes next.

mod dimension_order;
mod dragonfly;
mod dragonfly_minimal;
mod layout;
mod proof;
mod size;
mod star;
mod torus;
mod traits;
mod ugal;

pub use dimension_order::DimensionOrder;
pub use dragonfly::{Dragonfly, GlobalLinks};
pub use dragonfly_minimal::DragonflyMinimal;
pub use layout::Layout;
pub use proof::{Channel, Cycle, Method, Proof, Ranked, prove};
pub use size::{MAX_ENDPOINTS, MAX_PORTS, MAX_SWITCHES, SizeError};
pub use star::{Star, StarRouting};
pub use torus::{Dimension, MAX_DIMENSIONS, Torus};
pub use traits::{Address, Attachment, LinkClass, Position, RouteState, Routing, Step, Topology, View};
pub use ugal::Ugal;
