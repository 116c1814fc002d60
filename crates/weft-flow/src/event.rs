//! Events of a network of fluids, and their order.

use serde::{Deserialize, Serialize};
use weft_engine::{Event, Order, Payload, SiteId};
use weft_units::{EndpointId, Time};

/// An event of the network.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum FlowEvent<T> {
    /// The host begins.
    Start,
    /// A timer of the host.
    Timer(T),
    /// The interface takes a message over.
    Post(MessageHandle),
    /// The fluids of a message begin.
    Begin(MessageHandle),
    /// The data of a message is taken: the host's token, and the message's number.
    Taken {
        /// The host's name for the message.
        token: u32,
        /// The message, counted by its sender.
        number: u32,
    },
    /// The receiver notices a message.
    Deliver(MessageHandle),
    /// The host may have a message.
    Ask,
}

/// A message: its place in the list of those under way, and its name, by which events are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MessageHandle {
    pub(crate) place: u32,
    pub(crate) from: EndpointId,
    pub(crate) number: u32,
}

/// Kinds of events. **Their order decides results**: an endpoint handles those of one instant in this order.
#[derive(Clone, Copy)]
#[repr(u32)]
enum FlowEventKind {
    Deliver,
    Taken,
    Timer,
    Start,
    Post,
    Begin,
    Ask,
}

impl<T: Payload> Payload for FlowEvent<T> {
    fn tie(&self) -> u128 {
        match self {
            FlowEvent::Start | FlowEvent::Ask => 0,
            FlowEvent::Timer(timer) => timer.tie(),
            FlowEvent::Post(key) | FlowEvent::Begin(key) | FlowEvent::Deliver(key) => {
                u128::from(key.from.0) << 32 | u128::from(key.number)
            }
            FlowEvent::Taken { number, .. } => u128::from(*number),
        }
    }
}

impl<T> FlowEvent<T> {
    fn kind(&self) -> FlowEventKind {
        match self {
            FlowEvent::Start => FlowEventKind::Start,
            FlowEvent::Timer(_) => FlowEventKind::Timer,
            FlowEvent::Post(_) => FlowEventKind::Post,
            FlowEvent::Begin(_) => FlowEventKind::Begin,
            FlowEvent::Taken { .. } => FlowEventKind::Taken,
            FlowEvent::Deliver(_) => FlowEventKind::Deliver,
            FlowEvent::Ask => FlowEventKind::Ask,
        }
    }

    /// The event of an endpoint at a time.
    pub(crate) fn at(self, endpoint: EndpointId, time: Time) -> Event<FlowEvent<T>> {
        Event { time, site: SiteId(0), order: Order::new(endpoint.0, self.kind() as u32), payload: self }
    }
}
