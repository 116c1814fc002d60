//! What a real rank loads: messaging over a device in shared memory, and the C interface `weft.h`.
//!
//! ```text
//!   program ─ MPI ─ provider (C) ─ weft.h ─┐                        the simulator's process
//!                                          ▼
//!   clock_gettime ─ clock ────────────► Rank ── msg ── Port ──► device ═══════ live host ─ nic ─ fabric
//!                                          ▲                      ║ shared memory
//!                                          └── notices ◄──────────╝
//! ```
//! | module | what it is |
//! |---|---|
//! | [`device`] | the layout of the shared memory: whose turn, clock, posts, notices |
//! | [`rank`] | a rank: matching, completions, its turns |
//! | [`interface`] | virtual interfaces: small messages and RDMA between global addresses |
//! | `port` | what messaging sees of the machine: clock, device, data |
//! | `notices` | what has come for the rank, out of its inbox |
//! | `operation` | what the rank has under way |
//! | `abi` | `weft.h` |
//! | [`stand_in`] | who answers in place of a rank that waits |
//! | `blocking` | MPI's calls that do not return before what they wait for has come |
//! | [`one_core`] | all of a job on one core |
//! | `lifeline` | no rank outlives its simulator |
//! | `clock` | the virtual clock in place of the system's |
//! | [`within`] | in which MPI call the rank is |
//! | `process_manager` | its way to MPI's process manager where a wrapper has closed it |
//! | `private_memory` | MPICH's shared memory, kept to its process |
//!
//! It never links the simulator. Between its turns a rank does not run; during one it runs natively,
//! and its virtual clock moves by what the machine file says that messaging costs.

mod abi;
mod blocking;
mod clock;
pub mod device;
pub mod interface;
mod lifeline;
mod notices;
pub mod one_core;
mod operation;
mod port;
mod private_memory;
mod process_manager;
pub mod rank;
pub mod stand_in;
pub mod within;
