//! Rails of real ranks: the interfaces of a host beside the one at which a rank sits.
//!
//! ```text
//!   rank at endpoint 0 ── Send ──► endpoint 1 ── message ──► endpoint 5 ── Delivered ──► rank at endpoint 4
//!          ▲                          │
//!          └────────── Sent, Failed ──┘
//! ```
//! A rank has its turns and its messaging at one endpoint. The other endpoints of its host send what that one
//! hands them, and hand on what comes for it, at the same instant. [`weft_msg::Rails`] decides which message
//! goes where.
//!
//! Further parts of a message that the library hands over leave later by `data_send` each. The rank, or its
//! stand-in, has moved its own clock by that ([`weft_msg::FurtherParts`]).
//!
//! # Not modelled
//! Virtual interfaces: their operations go by the endpoint at which they were opened.

use super::header::{LiveHeader, Resume};
use super::{Handler, LiveHost};
use weft_msg::{RailChoice, RailsBy, Stripe, stripes};
use weft_nic::{Delivered, Failure, HostContext, Message};
use weft_units::{Bytes, EndpointId, Span, Time};
use weft_workload::host::TOKEN_BITS;

/// Marks the token of a message that an endpoint sends for another of its host: the highest bit that a
/// program's tokens have.
const GUEST: u32 = 1 << (TOKEN_BITS - 1);

/// The place of a message among the parts of what a rank sends.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct SendPart {
    /// The rail by which it goes: 0 is the endpoint at which the receiving rank sits.
    pub rail: u8,
    /// Parts of the message.
    pub parts: u8,
    /// Number of the message among those that the sending rank has cut.
    pub stripe: u32,
    /// Payload of all parts together.
    pub whole: Bytes,
}

impl SendPart {
    /// A message in one part, by the first rail.
    pub const ALONE: SendPart = SendPart { rail: 0, parts: 1, stripe: 0, whole: Bytes::ZERO };
}

/// The words of one endpoint to another of its host.
#[derive(Clone)]
pub(super) enum HandedOver {
    /// A message of a rank there is to be sent, at this time: a rank may be ahead of virtual time.
    Send(Message<LiveHeader>, Time),
    /// The interface has taken a part of the message that is kept under this key there.
    Sent(u32),
    /// A message for a rank there has come.
    Delivered(Delivered<LiveHeader>),
    /// A message of a rank there has failed.
    Failed(Failure),
}

/// A message that an endpoint sends for a rank at another.
#[derive(Clone, Copy)]
pub(super) struct Guest {
    home: EndpointId,
    /// The key under which it is kept there, if somebody waits for it.
    key: Option<u32>,
}

/// The circumstances of a message on its way out.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    /// The seat of the rank.
    pub seat: usize,
    /// Whether it carries data of ranks.
    pub has_data: bool,
    /// Whether the rank's processor hands it over, and not its interface.
    pub by_processor: bool,
    pub at: Time,
}

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// Sends a message by the rails of its host. Returns its number, where it goes by the first one.
    pub(super) fn send_by_rails(
        &mut self,
        message: Message<LiveHeader>,
        departure: Departure,
    ) -> Option<u32> {
        let (rails, rank) = (self.parameters.rails.count, &mut self.host.ranks[departure.seat]);
        let rail = match self.parameters.protocol.rail_choice(message.bytes, rails) {
            RailChoice::First => 0,
            RailChoice::Next => {
                // Control messages take turns by themselves: else data could get every other rail only.
                let turn = &mut rank.next_rail[usize::from(departure.has_data)];
                let next = (*turn + 1) % rails;
                std::mem::replace(turn, next)
            }
            RailChoice::All => return self.send_parts(message, departure),
        };
        self.send_by(message, SendPart { rail: rail as u8, ..SendPart::ALONE }, departure.at)
    }

    /// Sends a message in parts, one by each rail.
    fn send_parts(&mut self, message: Message<LiveHeader>, departure: Departure) -> Option<u32> {
        let (rails, rank) = (self.parameters.rails.count, &mut self.host.ranks[departure.seat]);
        let stripe = rank.striped;
        rank.striped = stripe.wrapping_add(1);
        if let Some(key) = message.token {
            self.host.outgoing.set_parts(key, rails);
        }
        let protocol = &self.parameters.protocol;
        let by_library = departure.by_processor && protocol.rails_by == RailsBy::Software;
        let each = if by_library { protocol.data_send } else { Span::ZERO };
        let (mut at, mut number) = (departure.at, None);
        for Stripe { rail, offset, bytes } in stripes(message.bytes, rails) {
            let part = SendPart { rail: rail as u8, parts: rails as u8, stripe, whole: message.bytes };
            let buffer = message.buffer.plus(offset.get());
            number = self.send_by(Message { bytes, buffer, ..message }, part, at).or(number);
            at = at.saturating_add(each);
        }
        number
    }

    /// Sends a message, or a part, by its rail. Returns its number, where that is the first one.
    fn send_by(&mut self, message: Message<LiveHeader>, part: SendPart, at: Time) -> Option<u32> {
        let header = message.header.map(|header| LiveHeader { part, ..header });
        let message = Message { header, ..message };
        if part.rail == 0 {
            let number = self.context.send(message, at);
            self.report_payload(number, header.and_then(|header| header.payload), message.bytes);
            return Some(number);
        }
        let (rails, rail) = (self.parameters.rails, u32::from(part.rail));
        let to = rails.endpoint(message.to, rail);
        let by = rails.endpoint(self.context.endpoint(), rail);
        self.hand_over(by, HandedOver::Send(Message { to, watch: false, ..message }, at));
        None
    }

    /// Reports the bytes of a small message, where what crosses the ports of interfaces is reported. They are
    /// the last of it, behind the words of messaging.
    #[inline]
    pub(super) fn report_payload(&mut self, number: u32, payload: Option<u32>, bytes: Bytes) {
        let mut words = [0; 64];
        if !self.parameters.ports.reported || bytes.get() > words.len() as u64 {
            return;
        }
        let payloads = self.parameters.payloads();
        let Some(carried) = payload.and_then(|payload| payloads.posted_bytes(payload)) else { return };
        let end = bytes.get() as usize;
        let count = carried.len().min(end);
        words[end - count..end].copy_from_slice(&carried[..count]);
        drop(payloads);
        let message = (self.context.endpoint(), number);
        self.context.output().payloads.push((message, words));
    }

    /// Hands something to another endpoint of the host.
    fn hand_over(&mut self, to: EndpointId, handed: HandedOver) {
        let (from, order) = (self.context.endpoint(), self.host.handed_over);
        self.host.handed_over = order.wrapping_add(1);
        self.parameters.handed_over().insert((from, order), handed);
        self.context.set_timer_of(to, self.context.now(), Resume::Rail { from, order });
    }

    /// Takes what another endpoint of the host has handed over.
    pub(super) fn take_over(self, from: EndpointId, order: u32) {
        let handed = self.parameters.handed_over().remove(&(from, order));
        match handed.expect("an endpoint announces what it has handed over, once") {
            HandedOver::Send(message, at) => {
                let guest = Guest { home: from, key: message.token };
                let token = self.host.guests.insert(guest) as u32 | GUEST;
                // Also one that nobody waits for is kept: its failure is its rank's.
                self.context.send(Message { token: Some(token), ..message }, at);
            }
            HandedOver::Sent(key) => self.data_taken(key),
            HandedOver::Delivered(message) => self.arrive_home(&message),
            HandedOver::Failed(failure) => self.lost(&failure),
        }
    }

    /// Takes out the guest to whom a token belongs; `None`: the message is of a rank of this endpoint.
    fn take_guest(&mut self, token: u32) -> Option<Guest> {
        (token & GUEST != 0).then(|| self.host.guests.remove((token & !GUEST) as usize))
    }

    /// The interface has taken the data of a message. Says whether it was a guest's, who has been told.
    pub(super) fn tell_guest_of_sent(&mut self, token: u32) -> bool {
        let Some(Guest { home, key }) = self.take_guest(token) else { return false };
        if let Some(key) = key {
            self.hand_over(home, HandedOver::Sent(key));
        }
        true
    }

    /// A message has failed. Says whether it was a guest's, who has been told.
    pub(super) fn tell_guest_of_failure(&mut self, failure: &Failure) -> bool {
        let Some(Guest { home, key }) = failure.token.and_then(|token| self.take_guest(token)) else {
            return false;
        };
        self.hand_over(home, HandedOver::Failed(Failure { token: key, ..*failure }));
        true
    }

    /// A message has come by this interface: it goes to the endpoint of its rank.
    pub(super) fn arrive(mut self, message: &Delivered<LiveHeader>) {
        let rail = message.header.map_or(0, |header| u32::from(header.part.rail));
        if rail == 0 {
            return self.arrive_home(message);
        }
        let rails = self.parameters.rails;
        let home = rails.endpoint(self.context.endpoint(), rails.count - rail);
        self.hand_over(home, HandedOver::Delivered(*message));
    }
}
