//! Packets, links, switches, arbiters and flow control; the ideal network.
//!
//! ```text
//!  interface ─ endpoint ══link══ switch ══link══ switch ══link══ endpoint ─ interface
//!      │          │                 │
//!   supplies   credits for       input buffers (a queue per virtual channel, or per virtual
//!   packets    the next buffer   channel and output) → arbiter → crossbar → line
//! ```
//!
//! A site of the engine is a switch with its endpoints. What sits behind an endpoint is an
//! [`Interface`]; the same interface runs on the packet network ([`Network`]) and on the ideal one
//! ([`Ideal`]).

mod arbiter;
mod build;
mod conservation;
mod endpoint;
mod fault;
mod hop;
mod ideal;
mod interface;
mod network;
mod packet;
pub mod parameters;
mod switch;
mod waiting;

pub use build::{BuildError, Built, NetworkParameters};
pub use conservation::{Census, NotConserved, census, check_credits, check_packets};
pub use fault::{FaultCounts, FaultParameters, MILLION};
pub use hop::HopRecord;
pub use ideal::{BuiltIdeal, Ideal, IdealSite};
pub use interface::{Directory, Interface, InterfaceContext, Supply};
pub use network::{LinkEnd, LinkReport, Network, Site};
pub use packet::{Credit, Packet, Part, Wire};
pub use waiting::stuck;
