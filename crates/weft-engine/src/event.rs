//! Events and their total order.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use weft_units::Time;

/// A part of the model whose state only its own events touch: a switch with its endpoints, say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SiteId(pub u32);

impl SiteId {
    /// The site as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The part of an event's order that ranks before its payload: entity within the site, then kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Order(u32);

impl Order {
    /// Entities of one site are numbered below this.
    pub const ENTITIES: u32 = 1 << 27;
    /// Kinds of events are numbered below this.
    pub const KINDS: u32 = 1 << 5;

    /// The order of an event of `kind` for the entity numbered `entity` within its site.
    #[inline]
    pub const fn new(entity: u32, kind: u32) -> Order {
        debug_assert!(entity < Order::ENTITIES && kind < Order::KINDS);
        Order(entity << 5 | kind)
    }

    /// Ascends as the order does.
    #[inline]
    pub(crate) const fn rank(self) -> u32 {
        self.0
    }

    /// The entity within the site.
    #[inline]
    pub const fn entity(self) -> u32 {
        self.0 >> 5
    }
}

/// The model's own part of an event.
pub trait Payload: Copy + Send + Sync {
    /// A number that tells apart events of one time and [`Order`]: the source, then that source's sequence
    /// number. Two events that agree in this too must be such that handling them in either order is the same.
    fn tie(&self) -> u128;
}

/// Nothing to tell apart.
impl Payload for () {
    fn tie(&self) -> u128 {
        0
    }
}

/// Something that happens at a site: all that a site learns, and all that it tells others, but for notes.
///
/// The order is total and knows neither partitions nor threads: time, phase, entity, kind, source,
/// sequence. The phase is not written down: at each instant a site handles all its events first (what
/// comes in), and only then decides (arbitration; [`Model::decide`](crate::Model::decide)).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Event<P> {
    /// The time at which it happens.
    pub time: Time,
    /// The site that handles it.
    pub site: SiteId,
    /// The order among the events of a site at one time.
    pub order: Order,
    /// The model's own part.
    pub payload: P,
}

impl Event<()> {
    /// The same event with a payload.
    #[inline(always)]
    pub(crate) fn with<P>(self, payload: P) -> Event<P> {
        let Event { time, site, order, .. } = self;
        Event { time, site, order, payload }
    }
}

impl<P: Payload> Event<P> {
    /// The same event without its payload.
    #[inline(always)]
    pub(crate) fn head(&self) -> Event<()> {
        let Event { time, site, order, .. } = *self;
        Event { time, site, order, payload: () }
    }

    /// Compares two events of one site.
    #[inline]
    pub fn compare(&self, other: &Event<P>) -> Ordering {
        self.time
            .cmp(&other.time)
            .then_with(|| self.order.cmp(&other.order))
            .then_with(|| self.payload.tie().cmp(&other.payload.tie()))
    }
}

/// An event in a heap whose top is the earliest.
#[derive(Clone, Copy)]
pub(crate) struct Earliest<P>(pub Event<P>);

impl<P: Payload> PartialEq for Earliest<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P: Payload> Eq for Earliest<P> {}

impl<P: Payload> PartialOrd for Earliest<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P: Payload> Ord for Earliest<P> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.compare(&self.0)
    }
}
