//! Events of the fabric: for whom, in which order, and with what they carry.

use crate::packet::Packet;
use crate::pause::Pause;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_engine::{Order, Payload};
use weft_units::EndpointId;

/// A part of a site that handles events of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entity {
    /// The switch of the site.
    Switch,
    /// An endpoint, by its place among those of the site.
    Endpoint(u32),
}

impl Entity {
    /// The order of an event of this entity.
    #[inline(always)]
    pub(crate) fn order(self, kind: EventKind) -> Order {
        let number = match self {
            Entity::Switch => 0,
            Entity::Endpoint(place) => place + 1,
        };
        Order::new(number, kind as u32)
    }

    /// The entity of an event of this order.
    #[inline(always)]
    pub(crate) fn of(order: Order) -> Entity {
        match order.entity() {
            0 => Entity::Switch,
            number => Entity::Endpoint(number - 1),
        }
    }
}

/// Kinds of events. **Their order decides results**: an entity handles the events of one instant in this
/// order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum EventKind {
    /// An announcement comes before the first packet of its message.
    Announcement,
    /// A pause frame takes effect before anything is sent.
    Pause,
    /// A packet.
    Packet,
    /// A timer of an interface.
    Timer,
    /// The interface begins.
    Start,
    /// An injection sees all that this instant has brought.
    Injection,
}

/// The content of an event of the fabric. `T`: an interface's timer; `A`: its announcement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned, A: Serialize + DeserializeOwned")]
pub enum Wire<T, A> {
    /// At a switch: the head of a packet has arrived. At an endpoint: its tail has.
    Packet(Packet),
    /// A pause frame takes effect at the sender of a link.
    Pause(Pause),
    /// The endpoint may be able to inject.
    Inject,
    /// The interface begins.
    Start,
    /// A timer that the interface set.
    Timer(T),
    /// A message of one interface to another about a message, ahead of its packets: the simulation's stand-in
    /// for header fields, so that they need not travel in every packet. It arrives before the first packet
    /// and costs no virtual time.
    Announcement {
        /// The endpoint that announces.
        from: EndpointId,
        /// The message, counted by the source.
        message: u32,
        /// The content.
        what: A,
    },
}

impl<T: Payload, A: Payload> Payload for Wire<T, A> {
    #[inline]
    fn tie(&self) -> u128 {
        match self {
            Wire::Packet(p) => {
                let channel = p.channel();
                let link = u128::from(channel.port) << 8 | u128::from(channel.vc);
                let label = u128::from(p.label.bits()) << 64;
                link << 96 | label | u128::from(p.source.0) << 32 | u128::from(p.message)
            }
            Wire::Pause(Pause { channel, stops }) => {
                u128::from(channel.port) << 16 | u128::from(channel.vc) << 8 | u128::from(*stops)
            }
            Wire::Inject | Wire::Start => 0,
            Wire::Timer(timer) => timer.tie(),
            Wire::Announcement { from, message, what } => {
                // Announcements of one message at one instant are ordered as well, by 64 bits of their own.
                u128::from(from.0) << 96 | u128::from(*message) << 64 | what.tie()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_engine::Event;

    #[derive(Clone, Copy)]
    struct Never;
    impl Payload for Never {
        fn tie(&self) -> u128 {
            0
        }
    }

    /// Catches a field that pushes the event of the hot path over a cache line.
    #[test]
    fn an_event_is_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 48);
        assert_eq!(size_of::<Event<Wire<Never, ()>>>(), 64);
    }

    /// Catches another order of events at one instant: the switch first, then its endpoints, each kind by
    /// kind.
    #[test]
    fn events_of_an_instant_keep_their_order() {
        let kinds = [
            EventKind::Announcement,
            EventKind::Pause,
            EventKind::Packet,
            EventKind::Timer,
            EventKind::Start,
            EventKind::Injection,
        ];
        let entities = [Entity::Switch, Entity::Endpoint(0), Entity::Endpoint(1)];
        let orders: Vec<Order> =
            entities.iter().flat_map(|entity| kinds.map(|kind| entity.order(kind))).collect();
        assert!(orders.is_sorted_by(|one, next| one < next));
        assert!(entities.iter().all(|&entity| Entity::of(entity.order(EventKind::Timer)) == entity));
    }
}
