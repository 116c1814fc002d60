//! Rails of a rank: the interfaces of its host beside the one at which it sits.
//!
//! ```text
//!   rank at endpoint 0 ── Send ──► endpoint 1 ── message ──► endpoint 5 ── Delivered ──► rank at endpoint 4
//!          ▲                          │
//!          └────────── Sent, Failed ──┘
//! ```
//! A rank's messaging is at one endpoint. The other endpoints of its host have it as a guest: they send what
//! it hands them, and hand on what comes for it. Endpoints of a host hang off one switch, so that this is an
//! event that takes no time. See [`weft_msg::Rails`] for who decides.

use super::interface::options;
use super::transport::RankContext;
use super::{ReplayHeader, ReplayHost, ReplayParameters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use weft_fabric::Purpose;
use weft_msg::SendToken;
use weft_nic::{Delivered, Failure, FailureReason, HostContext, Message, Primitive, TokenWhenAcknowledged};
use weft_units::{Address, Bytes, EndpointId, Time};

/// The interfaces of a host, as a rank at one of them numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostRails {
    /// Interfaces of a host that its ranks use; 1: each its own only.
    pub count: u32,
}

impl HostRails {
    /// Rail `rail` of a rank at `home`: the endpoints of its host from there on, around.
    pub fn endpoint(self, home: EndpointId, rail: u32) -> EndpointId {
        let first = home.0 - home.0 % self.count;
        EndpointId(first + (home.0 - first + rail) % self.count)
    }

    /// The rail that an endpoint of its host is to a rank at `home`: the opposite of [`HostRails::endpoint`].
    fn rail(self, home: EndpointId, endpoint: EndpointId) -> u32 {
        (endpoint.0 % self.count + self.count - home.0 % self.count) % self.count
    }

    /// The virtual interface that a rank has at each endpoint of its host: the one of seat `seat` at `home`.
    pub(super) fn interface(self, home: EndpointId, seat: u32) -> u16 {
        (seat * self.count + home.0 % self.count) as u16
    }
}

/// An event between endpoints of one host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum RailEvent {
    /// A rank at another endpoint sends by this one.
    Send(GuestMessage),
    /// The message that this endpoint's rank keeps under this key has gone out.
    Sent(u32),
    /// A message has come for a rank of this endpoint.
    Delivered(Delivered<ReplayHeader>),
    /// A message of a rank of this endpoint has failed.
    Failed(GuestFailure),
}

impl RailEvent {
    /// A number that no other event between two endpoints has at one time.
    pub(super) fn tie(&self) -> u128 {
        let kind =
            |kind: u128, from: u32, number: u32| kind << 64 | u128::from(from) << 32 | u128::from(number);
        match self {
            // Parts of one message go out at once, and end as they like.
            RailEvent::Sent(key) => kind(1, 0, *key),
            RailEvent::Failed(failure) => kind(2, failure.from.0, failure.number),
            RailEvent::Delivered(message) => kind(3, message.from.0, message.number),
            RailEvent::Send(message) => kind(4, message.home.0, message.order),
        }
    }
}

/// A message of a rank at another endpoint of the host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct GuestMessage {
    /// The rank's own endpoint.
    home: EndpointId,
    /// One more than the key under which it keeps the message there.
    key_after: Option<NonZeroU32>,
    /// Counts what that endpoint has handed over.
    order: u32,
    bytes: Bytes,
    created_at: Time,
    acknowledged: bool,
    header: ReplayHeader,
    primitive: Primitive,
    purpose: Purpose,
    interface: u16,
    buffer: Address,
}

/// A message of a rank that has failed at another endpoint of its host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct GuestFailure {
    /// The endpoint by which it went out, and its number there.
    from: EndpointId,
    number: u32,
    /// The endpoint that it was for.
    to: EndpointId,
    /// The rank's virtual interface.
    interface: u16,
    reason: FailureReason,
}

/// A send that waits for the interface to take it.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum PendingSend {
    /// Of a rank of this endpoint.
    Own {
        /// The rank, among those of the endpoint.
        seat: u32,
        /// The rank's token for the send.
        token: SendToken,
        /// The interface's number of the message.
        number: u32,
        /// Parts that have not gone out.
        parts: u32,
    },
    /// Of a rank at another endpoint of the host, which keeps it under this key if it wants to know.
    Guest { home: EndpointId, key: Option<u32> },
}

/// The parts of striped messages for one rank that have come, where others have not.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stripes {
    /// Parts that are missing, by source and its number of the message.
    missing: BTreeMap<(u32, u32), u32>,
}

impl Stripes {
    /// A part of message `number` of `source`, of so many, has come; whether the message is whole.
    pub fn arrive(&mut self, source: u32, number: u32, parts: u32) -> bool {
        let missing = self.missing.entry((source, number)).or_insert(parts);
        *missing -= 1;
        let whole = *missing == 0;
        if whole {
            self.missing.remove(&(source, number));
        }
        whole
    }
}

impl<C: HostContext<ReplayHost>> RankContext<'_, C> {
    /// Hands a message over at `at`, by rail `rail`. Returns the number that the interface gives it, where it
    /// is the rank's own.
    pub(super) fn send_by(&mut self, rail: u32, message: Message<ReplayHeader>, at: Time) -> Option<u32> {
        if rail == 0 {
            return Some(self.host.send(message, at));
        }
        let home = self.host.endpoint();
        let order = *self.handed_over;
        *self.handed_over = order.wrapping_add(1);
        let Message { bytes, created_at, header, token: key, primitive, purpose, interface, buffer, .. } =
            message;
        let acknowledged = message.options.get::<TokenWhenAcknowledged>().is_some();
        let event = RailEvent::Send(GuestMessage {
            home,
            key_after: key.and_then(|key| NonZeroU32::new(key + 1)),
            order,
            bytes,
            created_at,
            acknowledged,
            header: header.expect("ranks send every message with a header"),
            primitive,
            purpose,
            interface,
            buffer,
        });
        let endpoint = self.parameters.rails().endpoint(home, rail);
        self.host.set_timer_of(endpoint, at, event.into());
        None
    }
}

impl ReplayHost {
    /// Something has come from another endpoint of the host.
    pub(super) fn rail_event(
        &mut self,
        event: RailEvent,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        match event {
            RailEvent::Send(message) => self.send_for_guest(&message, parameters.rails(), context),
            RailEvent::Sent(key) => self.part_sent(key, parameters, context),
            RailEvent::Delivered(message) => self.arrived(&message, parameters, context),
            RailEvent::Failed(GuestFailure { number, to, interface, reason, .. }) => {
                let failure = Failure { to, number, interface, token: None, reason };
                self.fail_rank(&failure, parameters, context);
            }
        }
    }

    fn send_for_guest(
        &mut self,
        message: &GuestMessage,
        rails: HostRails,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        let GuestMessage { home, bytes, created_at, acknowledged, header, primitive, purpose, .. } = *message;
        let GuestMessage { key_after, interface, buffer, .. } = *message;
        let key = key_after.map(|after| after.get() - 1);
        let rail = rails.rail(home, context.endpoint());
        // Also a send that nobody waits for is kept: its failure is its rank's.
        let token = self.pending_sends.insert(PendingSend::Guest { home, key }) as u32;
        let message = Message {
            header: Some(header),
            token: Some(token),
            primitive,
            purpose,
            interface,
            to_interface: rails.interface(header.home, header.seat),
            buffer,
            options: options(acknowledged),
            // Interfaces that tell the memory of a program apart are no rails.
            ..Message::new(rails.endpoint(header.home, rail), bytes, created_at)
        };
        let now = context.now();
        context.send(message, now);
    }

    /// A message for a rank at another endpoint of the host has come: whether it has been handed on.
    pub(super) fn hand_on(
        message: &Delivered<ReplayHeader>,
        context: &mut impl HostContext<ReplayHost>,
    ) -> bool {
        let header = message.header.as_ref();
        let Some(home) = header.and_then(|it| it.home_elsewhere(context.endpoint())) else { return false };
        if message.in_mailbox {
            context.capabilities().take(message.interface, message.noticed);
        }
        let event = RailEvent::Delivered(Delivered { in_mailbox: false, ..*message });
        context.set_timer_of(home, context.now(), event.into());
        true
    }

    /// A message of a guest has failed: its own endpoint is told. `None`: it is of a rank of this endpoint.
    pub(super) fn fail_guest(
        &mut self,
        failure: &Failure,
        context: &mut impl HostContext<ReplayHost>,
    ) -> Option<()> {
        let token = failure.token? as usize;
        let PendingSend::Guest { home, .. } = *self.pending_sends.get(token)? else { return None };
        self.pending_sends.remove(token);
        let Failure { to, number, interface, reason, .. } = *failure;
        let from = context.endpoint();
        let event = RailEvent::Failed(GuestFailure { from, number, to, interface, reason });
        context.set_timer_of(home, context.now(), event.into());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_engine::Event;
    use weft_fabric::{Interface, Wire};
    use weft_nic::OverheadsNic;

    /// Catches two ranks of a host with one virtual interface, and rails that leave the host.
    #[test]
    fn ranks_of_a_host_have_interfaces_of_their_own_at_each_rail() {
        let rails = HostRails { count: 4 };
        let all = (0..3).flat_map(|seat| (4..8).map(move |home| (EndpointId(home), seat)));
        let mut interfaces: Vec<u16> = all.map(|(home, seat)| rails.interface(home, seat)).collect();
        interfaces.sort_unstable();
        assert_eq!(interfaces, (0..12).collect::<Vec<u16>>());
        let of = |home| (0..4).map(|rail| rails.endpoint(EndpointId(home), rail).0).collect::<Vec<u32>>();
        assert_eq!((of(4), of(6)), (vec![4, 5, 6, 7], vec![6, 7, 4, 5]));
        let back = |home| of(home).iter().map(|it| rails.rail(EndpointId(home), EndpointId(*it))).collect();
        let all: [Vec<u32>; 2] = [back(4), back(6)];
        assert_eq!(all, [vec![0, 1, 2, 3], vec![0, 1, 2, 3]]);
    }

    /// Catches events that no longer fit in two cache lines: the engine moves larger ones by a call of
    /// memcpy, which took 4.7 % of an allreduce.
    #[test]
    fn an_event_fits_in_two_cache_lines() {
        type Nic = OverheadsNic<ReplayHost>;
        type OnWire = Wire<<Nic as Interface>::Timer, <Nic as Interface>::Announcement>;
        let bytes = size_of::<Event<OnWire>>();
        assert!(bytes <= 128, "{bytes} bytes; ReplayHeader takes {}", size_of::<ReplayHeader>());
    }

    /// Catches a message that is whole too early, and one of another source that counts.
    #[test]
    fn a_message_is_whole_with_its_last_part() {
        let mut stripes = Stripes::default();
        let parts = [(1, 7), (1, 7), (2, 7), (1, 8), (1, 7), (2, 7)];
        let whole = parts.map(|(from, of)| stripes.arrive(from, of, 3));
        assert_eq!(whole, [false, false, false, false, true, false]);
        assert_eq!(stripes.missing.len(), 2);
    }
}
