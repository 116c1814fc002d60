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
//! total order of events. The host lets its rank run, natively, until the rank hands its turn back; what the
//! rank posts goes into the same interface and fabric. Turns begin in the order of virtual time, and
//! [end](live) before anything can depend on them.

mod cores;
mod domains;
mod execute;
pub mod job;
pub mod launch;
pub mod live;
mod live_end;
mod lock;
mod memory;
mod nonsense;
mod rank_memory;
mod reach;
pub mod record;
mod report_text;
pub mod run;
mod setup;
pub mod stand_in;
mod standstill;
mod tag;
mod turns;
mod virtual_interfaces;
mod wall;
mod watchers;

pub use domains::Domains;
pub use execute::{ExecuteError, Execution, Request, execute};
pub use launch::{Missing, Recorder, client_library};
pub use live_end::{Death, FullMailboxes, LiveEnd, Mailbox};
pub use nonsense::Nonsense;
pub use setup::LiveSetup;
// What ranks load is built with the command.
use weft_calls as _;
pub use weft_client::device::HostModel;
pub use weft_client::rank::INJECT_LIMIT;
