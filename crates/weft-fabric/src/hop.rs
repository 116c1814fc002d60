//! The record of a watched packet's crossing of one link: the raw material of breakdowns.
//!
//! ```text
//!  came ─► ready ─ to the clock edge, pipeline ─► could ── waits ──► began ══ on the line ══► ended ─► free
//!     stored, where it must be                              │         │ + latency: head at far end
//!                                     crossed ─► output buffer, where there is one
//! ```
//! The times of one packet are a chain: `began` plus latency and routing of one link is `came` on the next.
//! At an endpoint a packet has arrived with its tail, at `ended` plus both.

use crate::link::LinkEnd;
use crate::packet::Packet;
use weft_topo::LinkClass;
use weft_units::{Bytes, EndpointId, Span, SwitchId, Time};

/// One link, crossed by a packet that its interface wants [watched](crate::Packet::watch), or by any where
/// all are followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopRecord {
    /// The endpoint that sends the packet.
    pub source: EndpointId,
    /// The endpoint that the packet is for.
    pub destination: EndpointId,
    /// The packet's message, counted by the source.
    pub message: u32,
    /// Payload of the packet.
    pub payload: Bytes,
    /// Whether its interface wants it watched.
    pub is_watched: bool,
    /// The link's beginning.
    pub from: LinkEnd,
    /// The switch that it leads to; `None`: it leads to an endpoint.
    pub to: Option<SwitchId>,
    /// The link's kind.
    pub class: LinkClass,
    /// The virtual channel on which it crossed the link.
    pub virtual_channel: u8,
    /// Links that it had crossed before, injection included.
    pub hops: u8,
    /// Time at which the head came to the switch; at an endpoint, at which the interface handed over the
    /// packet.
    pub came: Time,
    /// Time at which enough of it had come to go on: all of it where packets are stored.
    pub ready: Time,
    /// Time at which its head could have been on the line had nothing else been there.
    pub could: Time,
    /// Time at which its head was in the output buffer of a switch that has some; elsewhere as `began`.
    pub crossed: Time,
    /// Time at which its head was on the line.
    pub began: Time,
    /// Time before that for which it waited for the link to wake, and for nothing else.
    pub waking: Span,
    /// Time at which its tail was.
    pub ended: Time,
    /// Time from which the line could take another packet.
    pub free: Time,
    /// From the line to the far end.
    pub latency: Span,
    /// Of the routing logic there, before the packet asks for an output.
    pub routing: Span,
}

/// The link that a packet has crossed.
pub(crate) struct CrossedLink {
    pub(crate) from: LinkEnd,
    pub(crate) to: Option<SwitchId>,
    pub(crate) class: LinkClass,
    pub(crate) vc: u8,
    pub(crate) latency: Span,
    pub(crate) routing: Span,
}

/// The times of the crossing, as in [`HopRecord`].
pub(crate) struct Instants {
    pub(crate) came: Time,
    pub(crate) ready: Time,
    pub(crate) could: Time,
    pub(crate) crossed: Time,
    pub(crate) began: Time,
    pub(crate) waking: Span,
    pub(crate) ended: Time,
    pub(crate) free: Time,
}

impl HopRecord {
    /// The record of one packet, one link and the times of the crossing.
    pub(crate) fn new(packet: &Packet, link: CrossedLink, instants: Instants) -> HopRecord {
        let Packet { source, destination, message, bytes, hops, .. } = *packet;
        let CrossedLink { from, to, class, vc: virtual_channel, latency, routing } = link;
        let Instants { came, ready, could, crossed, began, waking, ended, free } = instants;
        HopRecord {
            source,
            destination,
            message,
            payload: Bytes::new(bytes.into()),
            is_watched: packet.is_watched(),
            from,
            to,
            class,
            virtual_channel,
            hops,
            came,
            ready,
            could,
            crossed,
            began,
            waking,
            ended,
            free,
            latency,
            routing,
        }
    }
}
