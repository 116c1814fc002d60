//! The model: the functions that it must provide, and the context in which they are called.

use crate::event::{Event, Payload, SiteId};
use crate::event_queue::{Note, PendingEvents};
use crate::own_events::OwnEvents;
use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_units::{Span, Time};

/// Pulses: virtual times at which all sites stand still, so that the model may look at all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulses {
    /// Between two of them; they fall on its multiples, zero left out. Not zero.
    pub interval: Span,
    /// The last so many matter, at least one. Of pulses between which nothing happens, only these are made.
    pub remembered: u64,
}

/// A model: read-only data shared by all sites, and what a site does with an event.
pub trait Model: Sync + Sized {
    /// The content of an event.
    type Payload: Payload + Serialize + DeserializeOwned;
    /// Something that a site learns ahead of the time from which it counts: for what is so frequent that
    /// an event each would cost too much, such as credits. The site takes account of it by itself. Its
    /// order only makes snapshots independent of partitions.
    type Note: Copy + Ord + Send + Sync + Serialize + DeserializeOwned;
    /// The state of one site.
    type Site: Send + Serialize + DeserializeOwned;
    /// Reports of a partition; collected by the experiment between runs.
    /// Must not influence the model.
    type Output: Send + Default;

    /// Handles one event of `site`.
    fn handle(
        &self,
        site: &mut Self::Site,
        event: &Event<Self::Payload>,
        output: &mut Self::Output,
        context: &mut Context<'_, Self::Payload, Self::Note>,
    );

    /// The turn of `site` is near: asks for the memory that it will touch, with
    /// [`prefetch`](fn@crate::prefetch).
    /// The site itself has been asked for before. Must change nothing but speed.
    #[inline]
    fn prefetch(&self, site: &Self::Site) {
        let _ = site;
    }

    /// The same for what one event of that turn will touch beside it.
    #[inline]
    fn prefetch_event(&self, site: &Self::Site, event: &Event<Self::Payload>) {
        let _ = (site, event);
    }

    /// Gives a site a note that counts from `time` on, when the window that holds `time` begins, at `start`:
    /// what comes to the site earlier has been handled. The order of notes must not influence the model, nor
    /// where windows begin.
    fn note(&self, site: &mut Self::Site, start: Time, time: Time, note: Self::Note);

    /// The run is about to be saved, and all that comes before `before` has been handled: brings the state of
    /// a site into a form that does not depend on how windows were cut. Must not influence the model.
    fn settle(&self, site: &mut Self::Site, before: Time) {
        let _ = (site, before);
    }

    /// The next time at which the site wants to decide something; [`Time::NEVER`]: when an event has come.
    /// Read after every event and decision.
    fn decision(site: &Self::Site) -> Time;

    /// Decides, at the time that [`Model::decision`] named, after all events of that instant.
    fn decide(
        &self,
        site: &mut Self::Site,
        output: &mut Self::Output,
        context: &mut Context<'_, Self::Payload, Self::Note>,
    );

    /// The times at which [`Model::pulse`] is called. `None`: never, and a run costs no more than without.
    fn pulses(&self) -> Option<Pulses> {
        None
    }

    /// A pulse: all that comes before `at` has been handled at every site, and nothing from `at` on. What
    /// sites share may change here, and only here. A change of a site must not bring its decision forward.
    fn pulse<'a>(&mut self, at: Time, sites: impl Iterator<Item = &'a mut Self::Site>)
    where
        Self: 'a,
    {
        let _ = (at, sites.count());
    }

    /// The part of what sites share that pulses change, as bytes of a snapshot.
    fn save_shared(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Puts back what [`Model::save_shared`] gave, and says whether it can be of this model.
    fn resume_shared(&mut self, saved: &[u8]) -> bool {
        saved.is_empty()
    }
}

/// The context in which a site handles an event or decides: it has the clock, and sends events and notes.
pub struct Context<'a, P: Payload, K> {
    pub(crate) now: Time,
    pub(crate) site: SiteId,
    pub(crate) window_end: Time,
    pub(crate) undisturbed_until: Time,
    /// The time of the first of the events that the site has sent itself.
    pub(crate) first_own: Time,
    pub(crate) own: &'a mut OwnEvents<P>,
    pub(crate) outgoing: &'a mut PendingEvents<P, K>,
}

impl<P: Payload, K: Copy> Context<'_, P, K> {
    /// Takes the first of the events that the site has sent itself.
    #[inline]
    pub(crate) fn take_own(&mut self) -> Option<Event<P>> {
        let event = self.own.take();
        self.first_own = self.own.first_time();
        event
    }

    /// The present virtual time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The site at which the event happens.
    #[inline]
    pub fn site(&self) -> SiteId {
        self.site
    }

    /// While an event is handled: when the next one comes to this site at the earliest, unless it sends
    /// itself one. What would be decided before can be decided at once, with what is sent for it.
    #[inline]
    pub fn undisturbed_until(&self) -> Time {
        self.undisturbed_until
    }

    /// Sends an event: to this site at any time from now on, to another after at least the lookahead.
    ///
    /// Panics where that is violated: the model would depend on the order of sites.
    #[inline(always)]
    pub fn send(&mut self, event: Event<P>) {
        self.send_with(event.head(), move || event.payload);
    }

    /// The same for an event whose payload is made where the event stays: it is not copied there.
    #[inline(always)]
    pub fn send_with(&mut self, head: Event<()>, payload: impl FnOnce() -> P) {
        if head.time >= self.window_end {
            self.outgoing.push_with(head, payload);
        } else {
            self.send_to_itself(head.with(payload()));
        }
    }

    #[inline]
    fn send_to_itself(&mut self, event: Event<P>) {
        assert!(
            event.site == self.site && event.time >= self.now,
            "an event for site {} at {} was sent by site {} at {}: sooner than the lookahead",
            event.site.0,
            event.time,
            self.site.0,
            self.now
        );
        self.first_own = self.first_own.min(event.time);
        self.own.push(event);
    }

    /// Sends a note to another site, to count from `time` on, which is at least the lookahead away.
    #[inline(always)]
    pub fn send_note(&mut self, time: Time, site: SiteId, note: K) {
        assert!(time >= self.window_end, "a note was sent by site {} sooner than the lookahead", self.site.0);
        self.outgoing.push_note(Note { time, site, note });
    }
}
