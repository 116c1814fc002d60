//! The events that a site sends itself within a window.
//!
//! ```text
//!   order   ·  (time, 1) (time, 3) (time, 2)     those before `next` have been taken
//!                 │                    │
//!   events  [   ][ 1 ][ 2 ][ 3 ]                 each stays where it was written, until it is taken
//! ```
//! Most come later than all before, so that the order grows at its end. In a heap each would be moved
//! several times with all of its payload.

use crate::event::{Event, Payload};
use std::cmp::Ordering;
use weft_units::Time;

/// Events of one site, in their order.
pub(crate) struct OwnEvents<P> {
    events: Vec<Event<P>>,
    /// Places of events that have been taken.
    free: Vec<u32>,
    /// Times and places of the events, in order from `next` on.
    order: Vec<(Time, u32)>,
    next: usize,
}

/// Entries of events that have been taken, at which they are forgotten: a window may be as long as the run.
const FORGOTTEN_AT: usize = 256;

impl<P> Default for OwnEvents<P> {
    fn default() -> Self {
        OwnEvents { events: Vec::new(), free: Vec::new(), order: Vec::new(), next: 0 }
    }
}

impl<P: Payload> OwnEvents<P> {
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The first event.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Event<P>> {
        self.order.get(self.next).map(|&(_, place)| &self.events[place as usize])
    }

    /// The time of the first event; [`Time::NEVER`]: there is none.
    #[inline]
    pub(crate) fn first_time(&self) -> Time {
        self.order.get(self.next).map_or(Time::NEVER, |&(time, _)| time)
    }

    /// Adds an event.
    #[inline]
    pub(crate) fn push(&mut self, event: Event<P>) {
        let place = self.free.pop().unwrap_or(self.events.len() as u32);
        let entry = (event.time, place);
        match self.order.last() {
            Some(&(last, _)) if last >= event.time => {
                let waiting = &self.order[self.next..];
                let turn = waiting.partition_point(|&(time, place)| {
                    let other = &self.events[place as usize];
                    time < event.time || time == event.time && other.compare(&event) != Ordering::Greater
                });
                self.order.insert(self.next + turn, entry);
            }
            _ => self.order.push(entry),
        }
        match self.events.get_mut(place as usize) {
            Some(free) => *free = event,
            None => self.events.push(event),
        }
    }

    /// Takes the first event.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Event<P>> {
        let &(_, place) = self.order.get(self.next)?;
        self.free.push(place);
        self.next += 1;
        if self.next == self.order.len() {
            self.order.clear();
            self.next = 0;
        } else if self.next == FORGOTTEN_AT {
            self.order.drain(..FORGOTTEN_AT);
            self.next = 0;
        }
        Some(self.events[place as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Order, SiteId};
    use proptest::prelude::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Tie(u8);

    impl Payload for Tie {
        fn tie(&self) -> u128 {
            self.0.into()
        }
    }

    proptest! {
        /// Catches an event that is taken out of turn, twice, or not at all.
        #[test]
        fn each_event_is_taken_once_and_in_order(
            steps in prop::collection::vec(prop::option::of((0u64..6, 0u32..2, 0u8..2)), 1..80),
        ) {
            let (mut own, mut known, mut now) = (OwnEvents::default(), Vec::new(), Time::ZERO);
            for step in steps {
                if let Some((after, sender, tie)) = step {
                    let (time, order) = (Time::from_ps(now.as_ps() + after), Order::new(sender, 0));
                    let event = Event { time, site: SiteId(0), order, payload: Tie(tie) };
                    own.push(event);
                    known.push(event);
                    known.sort_by(Event::compare);
                } else {
                    let expected = (!known.is_empty()).then(|| known.remove(0));
                    let key = |event: Event<Tie>| (event.time, event.order, event.payload);
                    let taken = own.take();
                    prop_assert_eq!(taken.map(key), expected.map(key));
                    now = taken.map_or(now, |event| event.time);
                }
                prop_assert_eq!(own.first_time(), known.first().map_or(Time::NEVER, |first| first.time));
                prop_assert_eq!(own.is_empty(), known.is_empty());
            }
        }
    }
}
