//! Messaging: MPI-like operations mapped onto a network interface.
//!
//! ```text
//!   trace or program          weft-msg                              below
//!   Op ─────────────▶ Rank ─┬─ requests      completions that waits wait for
//!                           ├─ matching      posted and unexpected queue
//!                           ├─ eager         small messages            ─▶ Transport
//!                           ├─ rendezvous    long ones: RTS, CTS, data
//!                           ├─ collective    schedules over sends and receives
//!                           └─ one_sided     put, get, atomics, fences
//! ```
//! Written once: a simulated rank runs it over the model of an interface, a real process over rings
//! in shared memory. It sees neither a simulator nor a clock; it reports the cost of its work to
//! [`Transport::spend`], by the machine's [`Protocol`].
//!
//! A rank that sends a message to itself and receives it:
//!
//! ```
//! use weft_msg::{CallStatus, Posting, Process, Protocol, Transport, Work};
//! use weft_trace::op::{CommId, Op, RequestId, SendMode};
//! use weft_units::{Bytes, RankId, Span};
//!
//! struct NoNetwork;
//! impl Transport for NoNetwork {
//!     fn spend(&mut self, _: Work, _: Span) {}
//!     fn post(&mut self, _: Posting) {}
//! }
//!
//! let (comm, tag, bytes) = (CommId::WORLD, 7, Bytes::new(8));
//! let (send, receive) = (RequestId(0), RequestId(1));
//! let to = RankId(0);
//! let program = [
//!     Op::Isend { to, tag, comm, bytes, mode: SendMode::Standard, buffer: None, request: send },
//!     Op::Irecv { from: None, tag: None, comm, bytes, matched: None, buffer: None, request: receive },
//!     Op::Waitall { requests: vec![send, receive] },
//! ];
//! let (mut process, protocol) = (Process::new(RankId(0), 1), Protocol::zero());
//! for op in &program {
//!     assert_eq!(process.on(&protocol, &mut NoNetwork).start(op), Ok(CallStatus::Ready));
//! }
//! ```

mod accelerator;
mod accelerator_limit;
mod algorithms;
mod collective;
mod collectives;
mod communicator;
mod envelope;
mod error;
mod expansion;
mod hierarchy;
mod interface;
mod matching;
mod multicast_limit;
mod post_costs;
mod posted;
mod process;
mod protocol;
mod rails;
mod receives;
mod requests;
mod sends;
mod support;
#[cfg(test)]
mod tests;
mod transport;
mod windows;
mod work;

pub use accelerator::Allreduce;
pub use accelerator_limit::AcceleratorLimit;
pub use algorithms::{
    Algorithm, AlgorithmError, AlgorithmTable, COLLECTIVE_NAMES, CollectiveSize, Elements, Rule,
    collective_name, collective_of,
};
pub use collectives::CollectiveCall;
pub use communicator::Group;
pub use envelope::{
    Access, ActiveMessage, Body, Envelope, EnvelopeKind, KeptEntry, Match, MatchContext, OperationKind,
    RankEndpoints, ReceiveEntry, SendEntry,
};
pub use error::MsgError;
pub use expansion::{ExpandedCollective, ExpandedRound, ExpandedStep, Expansion};
pub use hierarchy::{Hierarchy, TopologyPlace};
pub use interface::InterfaceAnswer;
pub use multicast_limit::MulticastLimit;
pub use post_costs::{PostCost, PostCosts, Stores};
pub use process::Process;
pub use process::false_envelope::FalseEnvelope;
pub use process::memory::{received as place_of_received, sent as place_of_sent};
pub use process::rank::{CallStatus, Rank};
pub use process::report::{Blocked, BlockedCollective, Leftovers, PendingOperation, PendingState};
pub use process::stand_in::AnnouncedSend;
pub use process::tagged::{TaggedReceive, TaggedSend};
pub use protocol::{
    ActiveMessages, ClearToSend, OneSidedPath, Protocol, Rendezvous, SynchronousSends, WaitCosts, Wildcards,
};
pub use rails::{FurtherParts, RailChoice, Rails, RailsBy, Stripe, stripes};
pub use support::{supports, unsupported};
pub use transport::{GroupPosting, Posting, SendToken, Transport};
pub use work::{InMemory, Work};
