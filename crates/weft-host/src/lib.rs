//! Real processes in virtual time.
//!
//! ```text
//!   execute     the whole of it: places, processes, simulation, report
//!      │
//!   launch      starts the ranks, answers PMI, hears of deaths          real time
//!      │ fences, deaths
//!      ▼
//!   job         devices, whose turn, who lives                          shared by both
//!      ▲
//!      │ turns
//!   live        a host of the simulated machine whose ranks are         virtual time
//!               processes: gives them turns, carries what they post
//! ```
//! The simulated network calls a live host exactly as it calls one whose ranks are simulated: within the
//! total order of events. The host lets its rank run, natively, until the rank hands its turn back; what the rank posts
//! goes into the same interface and fabric. Turns begin in the order of virtual time, and [end](live) before
//! anything can depend on them.

pub mod check;
mod cores;
mod execute;
pub mod job;
pub mod launch;
pub mod live;
mod memory;
mod nonsense;
pub mod puppet;
mod reach;
pub mod run;
mod tag;
mod turns;
mod virtual_interfaces;
mod waiting;
mod wall;

pub use execute::{ExecuteError, Execution, Outcome, Recorder, Request, execute};
pub use nonsense::Nonsense;
// What ranks load is built with the command.
use weft_calls as _;
pub use weft_client::device::HostModel;
pub use weft_client::rank::INJECT_LIMIT;
