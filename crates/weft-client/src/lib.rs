//! The library that a real rank loads: messaging over a device in shared memory, and the C interface
//! `weft.h`.
//!
//! ```text
//!   program ─ MPI ─ provider (C) ─ weft.h ─┐                        the simulator's process
//!                                          ▼
//!   clock_gettime ─ clock ─ hook ─────► Rank ── msg ── Port ──► device ═══════ live host ─ nic ─ fabric
//!                                          ▲                      ║ shared memory
//!                                          └── notices ◄──────────╝
//! ```
//! | module | contents |
//! |---|---|
//! | [`device`] | the layout of the shared memory: whose turn, clock, posts, notices |
//! | [`rank`] | a rank: matching, completions, its turns, its progress |
//! | [`interface`] | virtual interfaces: small messages and RDMA between global addresses |
//! | `port` | the machine as messaging sees it: clock, device, data |
//! | `poll_pattern` | the pattern of polls by which a rank shows that it waits |
//! | `operation` | operations under way |
//! | `abi` | `weft.h` |
//! | `blocking` | the MPI calls that do not return before the message that they wait for |
//! | [`one_core`] | all ranks of a job on one core |
//! | `lifeline` | ends a rank whose simulator has ended |
//! | `clock` | the virtual clock |
//! | `rank_thread` | which thread is the rank |
//! | `libc_shims` | the C library's functions of time, in front of which the clock stands |
//! | `hook` | the one way up from those functions to the rank |
//! | [`within`] | the MPI call that the rank is in |
//! | `mpi_shim` | the entry by which `weft-calls` says so |
//! | `process_manager` | the way to MPI's process manager when a wrapper has closed it |
//! | `private_memory` | MPICH's shared memory, kept to its process |
//!
//! It never links the simulator. Between its turns a rank does not run; during one it runs natively,
//! and its virtual clock moves by what the machine file says that messaging costs.

mod abi;
mod blocking;
mod clock;
pub mod device;
mod hook;
pub mod interface;
mod libc_shims;
mod lifeline;
mod mpi_shim;
pub mod one_core;
mod operation;
mod poll_pattern;
mod port;
mod private_memory;
mod process_manager;
pub mod rank;
mod rank_thread;
pub mod within;
