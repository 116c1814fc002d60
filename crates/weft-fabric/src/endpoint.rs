//! An endpoint's half of its link: takes packets from the interface and injects them.
//!
//! The other direction needs no state here: endpoints consume whatever arrives, so the last link has
//! no credits and is never the reason for a deadlock.

use crate::fault::Fault;
use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, Line, Span, Time};

/// The sending half.
#[derive(Serialize, Deserialize)]
pub(crate) struct Endpoint<N> {
    pub(crate) id: EndpointId,
    pub(crate) interface: N,
    pub(crate) line: Line,
    /// Room that is left in the switch's input buffer.
    pub(crate) credits: u32,
    /// When the next pump is due; a pump at another time is stale.
    pub(crate) pump: Time,
    /// A packet that waits for credits, and since when.
    pub(crate) staged: Option<(Packet, Time)>,
    /// How its link to the switch fails, if it does.
    pub(crate) fault: Option<Box<Fault>>,
    /// Packets that the interface has supplied since the run began.
    pub(crate) supplied: u64,
    pub(crate) packets: u64,
    /// How many of them were acknowledgements.
    pub(crate) acknowledgements: u64,
    pub(crate) payload: u64,
    pub(crate) stalled: Span,
    pub(crate) received: u64,
    pub(crate) received_payload: u64,
}

impl<N> Endpoint<N> {
    pub(crate) fn new(id: EndpointId, interface: N, credits: u32) -> Endpoint<N> {
        Endpoint {
            id,
            interface,
            line: Line::default(),
            credits,
            pump: Time::MAX,
            staged: None,
            fault: None,
            supplied: 0,
            packets: 0,
            acknowledgements: 0,
            payload: 0,
            stalled: Span::ZERO,
            received: 0,
            received_payload: 0,
        }
    }
}
