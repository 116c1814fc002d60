//! Application kernels: what the ranks of an application compute, send and reduce, at any scale.
//!
//! ```text
//!   lammps@512,atoms=32000 ── App::build ──▶ [KernelPart, …] ──▶ Kernel ──▶ operations of any rank
//!   name, ranks, options      apps/*.rs      phases, repeats               from any position, as of a trace
//! ```
//! A kernel is a function of rank and position: a million operations take no memory, and a run that was saved
//! goes on where it was. Each application is one file in `apps`, which states its laws and their source, and
//! whether it was compared with recordings of the program.
//!
//! | module | what it is |
//! |---|---|
//! | [`apps`] | the applications, one file each |
//! | [`part`] | phases one after the other, and repeated |
//! | [`phase`] | the kinds of phases: computation, messages between neighbours, a collective |
//! | [`grid`] | ranks in a grid, and how a number of them is factored into one |
//! | [`kernel`] | a kernel as a trace |
//! | [`scale`] | recordings at another number of ranks |
//! | [`memory`] | the memory that the ranks of a kernel need |
//! | [`options`] | options in the application's words |

mod app;
pub mod apps;
pub mod grid;
pub mod kernel;
pub mod memory;
mod name;
pub mod options;
pub mod part;
pub mod phase;
pub mod scale;

pub use app::{App, AppError, MemoryLaw, Verification};
pub use kernel::{Kernel, check};
pub use name::KernelName;
