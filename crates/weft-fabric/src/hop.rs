//! What a watched packet did on one link: the raw material of breakdowns.
//!
//! ```text
//!  came ─► ready ─ to the clock edge, pipeline ─► could ── waits ──► began ══ on the line ══► ended ─► free
//!     stored, where it must be                                       │ + latency: head at far end
//! ```
//! The times of one packet are a chain: `began` plus the latency of one link is `came` on the next; at
//! an endpoint a packet has arrived with its tail, `ended` plus the latency.

use crate::network::LinkEnd;
use weft_topo::LinkClass;
use weft_units::{EndpointId, Span, SwitchId, Time};

/// One link, crossed by a packet that its interface wants [watched](crate::Packet::watch).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopRecord {
    /// Where the packet comes from.
    pub source: EndpointId,
    /// Its message, counted by the source.
    pub message: u32,
    /// The interface's own mark on the packet.
    pub label: u8,
    /// Where the link begins.
    pub from: LinkEnd,
    /// The switch that it leads to; `None`: it leads to an endpoint.
    pub to: Option<SwitchId>,
    /// Its kind.
    pub class: LinkClass,
    /// When the head came to the switch; at an endpoint, when the interface supplied the packet.
    pub came: Time,
    /// When enough of it had come to go on: all of it where packets are stored.
    pub ready: Time,
    /// When its head could have been on the line had nothing else been there.
    pub could: Time,
    /// When its head was on the line.
    pub began: Time,
    /// When its tail was.
    pub ended: Time,
    /// When the line could take another packet.
    pub free: Time,
    /// From there to the far end.
    pub latency: Span,
}
