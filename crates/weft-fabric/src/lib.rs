//! Packets, links, switches, arbiters and flow control; the ideal network.
//!
//! ```text
//!  interface ─ endpoint ══link══ switch ══link══ switch ══link══ endpoint ─ interface
//!      │          │                 │
//!   injects    credits for       input buffers (a queue per virtual channel, or per virtual
//!   packets    the next buffer   channel and output) → arbiter → crossbar → line
//! ```
//!
//! # The way of a packet
//!
//! 1. The link of an endpoint can take a packet. The endpoint asks its [`Interface`] (`interface.rs`) for one
//!    (`network.rs`, `inject`). Without credits for the switch's buffer (`credit.rs`) the packet is staged in
//!    the endpoint (`endpoint.rs`) until they return.
//! 2. The endpoint's `LinkSender` (`link.rs`) puts it on the line: it spends credits, computes when head and
//!    tail are at the far end, as the link layer says (`link_layer/`), and lets the link's faults decide
//!    (`fault.rs`). An event (`event.rs`) carries it to the switch.
//! 3. The head arrives at the switch (`switch/crossbar.rs`, `arrive`), which routes it. A packet that is sure
//!    to win its output at the next clock edge passes; any other goes into the input buffer
//!    (`switch/buffer.rs`).
//! 4. At a clock edge the switch arbitrates (`decide`). Each free output grants one of the requests at the
//!    heads of queues (`arbiter/`). A request that a busy input keeps from going is not passed over for ever
//!    (`switch/starvation.rs`).
//! 5. The granted packet crosses the pipeline and is sent over the next link, again by a `LinkSender`
//!    (`switch/port/transmit.rs`). The space that it leaves returns as a credit to where it came from.
//! 6. The tail arrives at the destination's endpoint, and its interface receives the packet.
//!
//! Where the routing looks beyond its switch, all switches publish their queues on a board (`queue_board.rs`)
//! at pulses of the engine.
//!
//! A watched packet leaves a [`HopRecord`] for each link (`hop.rs`). `conservation.rs` checks that no packet
//! and no credit is lost, `deadlock.rs` says who waits for whom when nothing moves.
//!
//! A site of the engine is a switch with its endpoints. The same interface runs on the packet network
//! ([`Network`]) and on the ideal one ([`Ideal`]).

pub mod arbiter;
mod build;
mod channel;
mod congestion;
mod conservation;
mod constants;
mod credit;
mod deadlock;
mod endpoint;
mod event;
mod fault;
mod flags;
mod flow_meter;
mod hop;
mod ideal;
mod injection;
mod interface;
mod link;
mod link_counts;
mod link_keys;
mod link_layer;
mod multicast;
mod network;
mod outlet;
mod packet;
pub mod parameters;
mod part_power;
mod pause;
mod queue_board;
mod queue_report;
mod receive_buffer;
mod reroute;
mod retransmission;
mod switch;
mod traffic_class;
mod wake_signal;

pub use build::{BuildError, MAX_CHANNELS, NetworkParameters, SwitchBuffer};
pub use congestion::CongestionError;
pub use conservation::{Census, NotConserved, census, check_credits, check_packets};
pub use credit::Credit;
pub use deadlock::{Stuck, stuck};
pub use event::Wire;
pub use fault::{FaultParameters, MILLION, OffInterval, OffTimes};
pub use flow_meter::{FlowCount, FlowId};
pub use hop::HopRecord;
pub use ideal::{Ideal, IdealSite};
pub use interface::{Announced, Directory, Injection, Interface, InterfaceContext};
pub use link::{Line, LineRate, LinkEnd, LinkParameters, LinkReport};
pub use link_counts::LinkCounts;
pub use link_keys::{FecName, LinkKeys, LinkPowerKeys, PowerPolicy, ProtocolName};
pub use link_layer::{
    ErrorRate, Fec, FecFigures, GapRule, LinkLayer, LinkPower, LinkProtocol, OffParameters, PER, PowerReport,
    ProtocolRules, ReplayParameters, SleepParameters,
};
pub use multicast::{GroupError, GroupMembers, MulticastGroup};
pub use network::{Network, Overrun, Site};
pub use packet::{Addressing, HeaderBits, MessagePart, Packet, PacketLabel};
pub use part_power::{MAX_POWER, PartPower, Passed};
pub use pause::{Headroom, Pause};
pub use queue_board::Publishing;
pub use queue_report::{QueueReport, QueueSide};
pub use receive_buffer::ReceiveSpace;
pub use reroute::{InForce, Reroutes};
pub use traffic_class::{
    ClassTableError, ClassTag, MAX_CLASSES, Minimum, Operations, Purpose, TrafficClass, TrafficClasses,
    TrafficKind, WHOLE_SHARE, percent,
};
