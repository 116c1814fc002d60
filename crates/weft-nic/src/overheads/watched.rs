//! Watched messages on their way out of an interface that is modelled by its overheads.
//!
//! ```text
//!  posted ── per-message overhead ─► queued ── others ──► gap ─► first packet ── own, others ──► last packet
//! ```

use crate::block::Block;
use crate::observer::{Observer, Stage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_units::{EndpointId, Span, Time};

/// The watched messages of one interface that have not left it whole, by number.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Watched {
    messages: BTreeMap<u32, Leaving>,
    /// The message of the last packet.
    last: Option<u32>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Leaving {
    /// The time from which its first packet may go, gap aside.
    posted: Time,
    /// The time at which its first packet went.
    first: Option<Time>,
    /// How long the interface's own pace, not the line, held back its packets after the first.
    paced: Span,
}

/// A watched message that the host hands over.
pub(crate) struct Posted {
    pub message: u32,
    /// The time of the host's post.
    pub at: Time,
    /// The end of the per-message overhead.
    pub ready: Time,
    /// The block that the overhead is of.
    pub block: Block,
}

/// A packet that the interface supplies.
pub(crate) struct Supplied {
    pub message: u32,
    /// Whether it is the last of its message.
    pub last: bool,
    pub now: Time,
    /// Before the first packet of a message.
    pub gap: Span,
    /// Since the packet before, where that is what it waited for.
    pub pace: Option<Span>,
    /// The block that supplies it.
    pub block: Block,
}

impl Watched {
    /// The host of `endpoint` hands a message over.
    pub fn post(&mut self, endpoint: EndpointId, posted: &Posted, observer: &mut impl Observer) {
        let Posted { message, at, ready, block } = *posted;
        self.messages.insert(message, Leaving { posted: ready, first: None, paced: Span::ZERO });
        let source = endpoint;
        observer.stage(&Stage { endpoint, source, message, block, came: at, began: at, ended: ready });
    }

    /// A packet is supplied. Returns whether it is to be watched.
    #[inline]
    pub fn supply(&mut self, endpoint: EndpointId, packet: &Supplied, observer: &mut impl Observer) -> bool {
        if self.messages.is_empty() {
            return false;
        }
        self.supply_watched(endpoint, packet, observer)
    }

    #[cold]
    fn supply_watched(
        &mut self,
        endpoint: EndpointId,
        packet: &Supplied,
        observer: &mut impl Observer,
    ) -> bool {
        let own_before = self.last.replace(packet.message) == Some(packet.message);
        let Some(leaving) = self.messages.get_mut(&packet.message) else { return false };
        let (source, message, block, now) = (endpoint, packet.message, packet.block, packet.now);
        let stage = |came, work: Span| {
            let began = Time::from_ps(now.as_ps().saturating_sub(work.as_ps())).max(came);
            Stage { endpoint, source, message, block, came, began, ended: now }
        };
        let watch = match leaving.first {
            None => {
                leaving.first = Some(now);
                observer.stage(&stage(leaving.posted, packet.gap));
                true
            }
            Some(first) => {
                leaving.paced += packet.pace.filter(|_| own_before).unwrap_or(Span::ZERO);
                if packet.last {
                    observer.stage(&stage(first, leaving.paced));
                }
                packet.last
            }
        };
        if packet.last {
            self.messages.remove(&packet.message);
        }
        watch
    }

    /// A message will not be sent whole.
    pub fn withdraw(&mut self, message: u32) {
        self.messages.remove(&message);
    }
}
