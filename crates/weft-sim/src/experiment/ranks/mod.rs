//! Programs of ranks on a machine: what replays and benchmarks have in common.
//!
//! ```text
//!  Programs ──► RankRun ──► step ──► step ──► … ──► ended: all done, or who waits for what
//!               (network)     │ messages, timeline written; Ctrl-C; check
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `account` | what ranks report, collected and written |
//! | `seating` | ranks on places |
//! | `breakdown` | where the time of each message went |
//! | `cores` | how fast ranks compute on memory |
//! | `estimate` | what a run will take |
//! | `job_links` | links by job |
//! | `region` | what lies in a region of interest |
//! | `run` | one run: epochs, state to be saved, the end |
//! | `drawing` | its timeline |
//! | `tables` | its rows of results |

mod account;
mod breakdown;
mod cores;
mod drawing;
mod estimate;
mod job_links;
mod region;
mod run;
mod seating;
mod tables;

pub(crate) use account::{Account, Tally, end_of};
pub(crate) use breakdown::Breakdown;
pub use breakdown::{MeanPiece, SizeClass};
pub(crate) use cores::core_speed;
pub(crate) use drawing::Drawing;
pub(crate) use estimate::{memory, packet_hops_per_second, seconds};
pub use region::{RankRegionRow, RegionFigures};
pub(crate) use region::{RankWindows, RegionAtEnd};
pub(crate) use run::{ByJob, RankRun, RunStep, Setup, Surroundings, next_multiple, progress_rule};
pub use seating::Placement;
pub(crate) use seating::{check_joined, hosts};
pub(crate) use tables::{Shared, call_figures, figures};

pub(crate) use super::busiest::Busiest;
