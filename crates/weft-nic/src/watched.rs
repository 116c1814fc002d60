//! Watched messages on their way out of the simple interface.
//!
//! ```text
//!  posted ── per-message overhead ─► queued ── others ──► gap ─► first packet ── own, others ──► last packet
//! ```

use crate::observer::{Block, Observer, Stage};
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
    /// When its first packet may go, gap aside.
    posted: Time,
    /// When its first packet went.
    first: Option<Time>,
    /// How long the interface's own pace, not the line, held back its packets after the first.
    paced: Span,
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
}

impl Watched {
    /// A message is handed over at `at` and may go from `posted` on.
    pub fn post(
        &mut self,
        endpoint: EndpointId,
        message: u32,
        at: Time,
        posted: Time,
        observer: &mut impl Observer,
    ) {
        self.messages.insert(message, Leaving { posted, first: None, paced: Span::ZERO });
        let block = Block::Interface;
        observer.stage(&Stage {
            endpoint,
            source: endpoint,
            message,
            block,
            came: at,
            began: at,
            ended: posted,
        });
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
        let (source, message, block, now) = (endpoint, packet.message, Block::Interface, packet.now);
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
}
