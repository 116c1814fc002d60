//! The mailbox of the send unit: takes requests of reads, and starts a read channel for each.
//!
//! ```text
//!  request ─► damaged? ─► came before? ─► page? ─► domain? ─► a free read channel? ─► posted ─► agent
//!                │             └─► acknowledged │       │                │  acknowledged
//!                └──────────────────────────────┴───────┴────────────────┴─► refused
//! ```
//! Requests come from packetizers, as small messages do, and are answered like those: one that is refused
//! because no channel is free is sent again after its packetizer's pause. There is no queue beside the
//! channels, no entry in memory, no process that polls, and no store over the host port.
//!
//! # Source
//! TR-488 §4.5.1: the issuer uses "its packetizer to forward [the request] to a special mailbox allocated to
//! the RDMA Send unit in the node with the source data. The Send unit then allocates an available Read
//! channel in the targeted page (protected by the PDID in the request), and completes the RDMA Read operation
//! with an RDMA write". All else is ours: the order of the checks, which is that of the
//! [mailbox](crate::mailbox); the refusal where no channel is free; the time of the verdict, of which the
//! text has none. One request is looked at at a time, from the edge of its footer on, and the words of the
//! next are taken behind those of its answer.

use super::Rdma;
use super::send::SendParameters;
use super::transfer::ChannelKind;
use crate::gvas::Pdid;
use crate::mailbox::{Envelope, Refusal, VERDICT_CYCLES};
use crate::server::{Server, Service};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::Packet;
use weft_units::{Bytes, Time};

/// The block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequestMailbox {
    verdicts: Server,
    /// Requests without a verdict, in the order of their tails.
    came: VecDeque<CameRequest>,
}

/// A request whose tail has come.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CameRequest {
    /// The packet.
    pub packet: Packet,
    /// How the block looks at it: it `came` with its tail, and has its verdict as that has `ended`.
    pub look: Service,
}

/// Header and footer of a packet, of 16 bytes each: all that an answer is.
const CONTROL_WORDS: Bytes = Bytes::new(32);

impl RequestMailbox {
    /// The tail of a request has come at `tail`. Returns when its verdict is [due](RequestMailbox::take_due).
    pub fn arrive(&mut self, packet: Packet, tail: Time, parameters: &SendParameters) -> Time {
        let look = self.look(tail, packet.payload(), parameters);
        self.came.push_back(CameRequest { packet, look });
        look.ended
    }

    /// How the block looks at a request of this payload whose tail has come at `tail`.
    pub fn look(&mut self, tail: Time, payload: Bytes, parameters: &SendParameters) -> Service {
        let SendParameters { clock, word, .. } = parameters;
        let cycles = |bytes: Bytes| bytes.div_ceil(*word);
        // Its words were not taken before the answer to the request ahead of it had gone.
        let footer = tail.max(clock.later_edge(self.verdicts.free(), cycles(payload + CONTROL_WORDS)));
        let look = self.verdicts.serve(footer, VERDICT_CYCLES, clock);
        self.verdicts.hold(clock.later_edge(look.ended, cycles(CONTROL_WORDS)), clock);
        Service { came: tail, ..look }
    }

    /// The request whose verdict is due: they come to it in the order of their tails.
    pub fn take_due(&mut self) -> Option<CameRequest> {
        self.came.pop_front()
    }
}

impl Rdma {
    /// The mailbox for requests of reads.
    pub fn requests(&mut self) -> &mut RequestMailbox {
        self.requests.get_or_insert_default()
    }

    /// The verdict on a request that has not come before, for a page of the domain `owner`. One that is good
    /// gets the channel if it is posted now.
    ///
    /// # Errors
    /// The reason for which the request is refused.
    pub fn judge(&self, request: &Envelope, owner: Pdid, parameters: &SendParameters) -> Result<(), Refusal> {
        let Envelope { interface, domain, damaged } = *request;
        let page = u32::from(interface);
        if damaged {
            return Err(Refusal::Damaged);
        }
        if page >= parameters.pages || parameters.channels(ChannelKind::Read) == 0 {
            return Err(Refusal::Interface);
        }
        domain.check(owner).map_err(|_| Refusal::Domain)?;
        if self.has_read_channel(page, parameters) { Ok(()) } else { Err(Refusal::Full) }
    }

    /// Whether a descriptor of a read would be taken at once: by a channel of its page, or where the unit has
    /// contexts, by its descriptor channel.
    fn has_read_channel(&self, page: u32, parameters: &SendParameters) -> bool {
        const KIND: ChannelKind = ChannelKind::Read;
        self.has_space(page, KIND, parameters)
            && (parameters.contexts.is_some()
                || self.descriptors.held((page, KIND)) == 0
                    && self.send.channels.has_free(page, KIND, parameters))
    }
}
