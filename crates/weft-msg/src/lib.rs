//! Messaging: MPI-like operations mapped onto a network interface.
//!
//! ```text
//!   trace or program          weft-msg                              below
//!   Op ─────────────▶ Process ─┬─ requests      what waits wait for
//!                              ├─ matching      posted and unexpected queue
//!                              ├─ eager         small messages            ─▶ Nic
//!                              ├─ rendezvous    long ones: RTS, CTS, data
//!                              ├─ collective    schedules over sends and receives
//!                              └─ one_sided     put, get, atomics, fences
//! ```
//! Written once: a simulated rank runs it over the model of an interface, a real process over rings
//! in shared memory. It sees neither a simulator nor a clock; what its work costs it says to
//! [`Nic::spend`], by the machine's [`Protocol`].
//!
//! A rank that sends a message to itself and receives it:
//!
//! ```
//! use weft_msg::{Envelope, Nic, Process, Progress, Protocol, SendToken, Work};
//! use weft_trace::op::{CommId, Op, RequestId, SendMode};
//! use weft_units::{Bytes, RankId, Span};
//!
//! struct NoNetwork;
//! impl Nic for NoNetwork {
//!     fn spend(&mut self, _: Work, _: Span) {}
//!     fn post(&mut self, _: RankId, _: Envelope, _: Bytes, _: SendToken) {}
//! }
//!
//! let (comm, tag, bytes) = (CommId::WORLD, 7, Bytes::new(8));
//! let (send, receive) = (RequestId(0), RequestId(1));
//! let to = RankId(0);
//! let program = [
//!     Op::Isend { to, tag, comm, bytes, mode: SendMode::Standard, request: send },
//!     Op::Irecv { from: None, tag: None, comm, bytes, matched: None, request: receive },
//!     Op::Waitall { requests: vec![send, receive] },
//! ];
//! let (mut process, protocol) = (Process::new(RankId(0), 1), Protocol::zero());
//! for op in &program {
//!     assert_eq!(process.start(op, &protocol, &mut NoNetwork), Ok(Progress::Ready));
//! }
//! ```

mod accelerator;
mod active;
mod algorithms;
mod collective;
mod communicator;
mod eager;
mod error;
mod false_envelope;
mod groups;
mod interface;
mod matching;
mod nic;
mod one_sided;
mod probe;
mod process;
mod protocol;
mod receipt;
mod rendezvous;
mod report;
mod requests;
mod stand_in;
mod support;
mod tagged;
#[cfg(test)]
mod tests;
mod work;

pub use accelerator::{AcceleratorLimit, Allreduce};
pub use algorithms::{
    Algorithm, AlgorithmError, AlgorithmTable, COLLECTIVE_NAMES, CollectiveSize, Elements, Rule,
    collective_name, collective_of,
};
pub use communicator::Group;
pub use error::MsgError;
pub use false_envelope::FalseEnvelope;
pub use interface::InterfaceAnswer;
pub use nic::{Access, Envelope, EnvelopeKind, Nic, SendToken};
pub use process::{Process, Progress};
pub use protocol::{
    ActiveMessages, ClearToSend, OneSidedPath, Protocol, Rendezvous, SynchronousSends, WaitCosts, Wildcards,
};
pub use report::{Blocked, BlockedCollective, Leftovers, Pending, PendingState};
pub use stand_in::AnnouncedSend;
pub use support::{supports, unsupported};
pub use tagged::{TaggedReceive, TaggedSend};
pub use work::{InMemory, Work};
