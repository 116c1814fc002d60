//! Where the events of an interface go: to the engine, or to the interface that it is a part of.
//!
//! ```text
//!   fabric ─ context of N ─► interface N, one of several models
//!                               └─ lends it: context of I ─► interface I
//!   engine ◄──── event of N ──── Relayed ◄──── event of I ────┘
//! ```

use crate::credit::Credit;
use crate::event::Wire;
use weft_engine::{Context, Event, Payload};
use weft_units::EndpointId;

/// The way out for the events of an interface with these timers and announcements.
pub(crate) enum EventOutlet<'a, 'b, T: Payload, A: Payload> {
    /// The engine takes them.
    Engine(&'a mut Context<'b, Wire<T, A>, Credit>),
    /// The interface that it is a part of makes them its own.
    Outer(&'a mut dyn Relay<T, A>),
}

/// A way on for the events of an inner interface, each with its time and order. Their content is lent, and
/// copied once: to where the event stays.
pub(crate) trait Relay<T, A> {
    /// Sends a timer on.
    fn timer(&mut self, head: Event<()>, timer: &T);
    /// Sends an announcement on: by whom, of which message, and the content.
    fn announcement(&mut self, head: Event<()>, of: (EndpointId, u32), what: &A);
}

impl<T: Payload, A: Payload> EventOutlet<'_, '_, T, A> {
    /// Sends a timer.
    #[inline(always)]
    pub(crate) fn timer(&mut self, head: Event<()>, timer: impl FnOnce() -> T) {
        match self {
            EventOutlet::Engine(events) => events.send_with(head, move || Wire::Timer(timer())),
            EventOutlet::Outer(outer) => outer.timer(head, &timer()),
        }
    }

    /// Sends an announcement: by whom, of which message, and the content.
    #[inline(always)]
    pub(crate) fn announcement(&mut self, head: Event<()>, of: (EndpointId, u32), what: impl FnOnce() -> A) {
        match self {
            EventOutlet::Engine(events) => {
                let (from, message) = of;
                events.send_with(head, move || Wire::Announcement { from, message, what: what() });
            }
            EventOutlet::Outer(outer) => outer.announcement(head, of, &what()),
        }
    }

    /// Sends an event of the fabric's own, which never holds the context of an inner interface.
    #[inline(always)]
    pub(crate) fn send(&mut self, event: Event<Wire<T, A>>) {
        match self {
            EventOutlet::Engine(events) => events.send(event),
            EventOutlet::Outer(_) => unreachable!("an inner interface sends timers and announcements"),
        }
    }

    /// The same for an event whose payload is made where the event stays: it is not copied there.
    #[inline(always)]
    pub(crate) fn send_with(&mut self, head: Event<()>, payload: impl FnOnce() -> Wire<T, A>) {
        match self {
            EventOutlet::Engine(events) => events.send_with(head, payload),
            EventOutlet::Outer(_) => unreachable!("an inner interface sends timers and announcements"),
        }
    }
}

/// The outlet of an outer interface, with how it makes timers and announcements of an inner one its own.
pub(crate) struct Relayed<'o, O, FT, FA> {
    pub(crate) outer: &'o mut O,
    pub(crate) timer: FT,
    pub(crate) announcement: FA,
}

impl<T, A, U, B, FT, FA> Relay<T, A> for Relayed<'_, EventOutlet<'_, '_, U, B>, FT, FA>
where
    T: Payload,
    A: Payload,
    U: Payload,
    B: Payload,
    FT: Fn(T) -> U,
    FA: Fn(A) -> B,
{
    fn timer(&mut self, head: Event<()>, timer: &T) {
        self.outer.timer(head, || (self.timer)(*timer));
    }

    fn announcement(&mut self, head: Event<()>, of: (EndpointId, u32), what: &A) {
        self.outer.announcement(head, of, || (self.announcement)(*what));
    }
}
