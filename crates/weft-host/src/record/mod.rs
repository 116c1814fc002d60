//! Recording a real MPI program.
//!
//! ```text
//!  command ──► which MPI? ──► its recorder, preloaded into the command ──► OUT.parts/rank-*.part ──► OUT
//!            launcher's version,    LD_PRELOAD, WEFT_RECORD_PARTS            one per rank,      when the
//!            program's libraries                                             while it runs      command ends
//! ```
//! The parts are removed only when the trace is whole. The recorder is inert in processes that never
//! initialize MPI, so launchers, shells and Python wrappers between weft and the program do no harm.

mod command;
mod error;
mod mpi;
mod recording;

pub use command::{RecordRequest, RecordSummary, record};
pub use error::RecordError;
pub use mpi::{Mpi, mpi_of_ranks};
pub use recording::{PARTS_VARIABLE, Recording, recorder};
