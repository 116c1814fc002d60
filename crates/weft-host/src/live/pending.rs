//! The pending work of ranks, counted where something beside them keeps the network busy.
//!
//! ```text
//!   timers      set ───────── fired ────┐
//!   messages    sent ──────── arrived   ├─► none of them: no rank goes on by itself, as in a network that is
//!   their data  handed over ─ taken     │   dry; virtual time stands at the end of that window
//!   requests    made ──────── answered ─┘
//! ```
//! A network with ranks alone is dry when nothing is pending in it. Flows and clients beside them go on, so
//! what is pending of the ranks is counted by itself. The thread that simulates counts, and stops itself: it
//! is at the same virtual time in every run.

use super::{LiveHost, Resume};
use crate::job::Job;
use crate::lock::lock;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use weft_nic::{Capabilities, Failure, Host, HostContext, Message};
use weft_units::{EndpointId, Time};

/// The pending work of all ranks.
#[derive(Debug, Default)]
pub struct PendingWork(Mutex<WorkCounts>);

#[derive(Debug, Default)]
struct WorkCounts {
    timers: u64,
    /// Messages that have not arrived, by sender and number.
    messages: BTreeSet<(EndpointId, u32)>,
    /// Messages whose data the interface has not taken, by sender and token.
    untaken: BTreeSet<(EndpointId, u32)>,
    /// Requests to services.
    requests: u64,
}

impl PendingWork {
    /// Whether there is none.
    pub(crate) fn is_none(&self) -> bool {
        let WorkCounts { timers, messages, untaken, requests } = &*lock(&self.0);
        *timers == 0 && *requests == 0 && messages.is_empty() && untaken.is_empty()
    }

    /// A timer of a host is set.
    pub(crate) fn timer_set(&self) {
        lock(&self.0).timers += 1;
    }
}

/// The count of pending work in the hands of a host; `None`: nothing is beside the ranks, nothing is counted.
#[derive(Debug, Default)]
pub(super) struct WorkCounter(Option<Arc<PendingWork>>);

impl WorkCounter {
    /// Counts from now on.
    pub fn begin(&mut self) -> Arc<PendingWork> {
        Arc::clone(self.0.get_or_insert_default())
    }

    /// A timer has fired.
    pub fn fired(&self) {
        self.change(|counts| counts.timers -= 1);
    }

    /// A message has arrived.
    pub fn arrived(&self, from: EndpointId, number: u32) {
        self.change(|counts| _ = counts.messages.remove(&(from, number)));
    }

    /// The data of a message has been taken.
    pub fn taken(&self, from: EndpointId, token: u32) {
        self.change(|counts| _ = counts.untaken.remove(&(from, token)));
    }

    /// A rank asks a service.
    pub fn asked(&self) {
        self.change(|counts| counts.requests += 1);
    }

    /// It has an answer, or will have none.
    pub fn answered(&self) {
        self.change(|counts| counts.requests -= 1);
    }

    /// A message has failed.
    pub fn failed(&self, from: EndpointId, failure: &Failure) {
        self.arrived(from, failure.number);
        failure.token.into_iter().for_each(|token| self.taken(from, token));
    }

    fn change(&self, change: impl FnOnce(&mut WorkCounts)) {
        if let Some(work) = &self.0 {
            change(&mut lock(&work.0));
        }
    }

    /// Stops the simulation at the end of its window, if it counts and nothing is pending.
    pub fn stop_if_none(&self, job: &Job) {
        if self.0.as_ref().is_some_and(|work| work.is_none()) {
            job.pause_simulation();
        }
    }

    /// The interface, with a count of what is asked of it.
    pub fn count<'a, C>(&'a self, context: &'a mut C) -> CountingContext<'a, C> {
        CountingContext { pending: self, context }
    }
}

/// An interface that counts what a host asks of it.
pub(super) struct CountingContext<'a, C> {
    pending: &'a WorkCounter,
    context: &'a mut C,
}

impl<C: HostContext<LiveHost>> HostContext<LiveHost> for CountingContext<'_, C> {
    fn now(&self) -> Time {
        self.context.now()
    }

    fn endpoint(&self) -> EndpointId {
        self.context.endpoint()
    }

    fn output(&mut self) -> &mut <LiveHost as Host>::Output {
        self.context.output()
    }

    fn set_timer(&mut self, at: Time, timer: Resume) {
        self.pending.change(|counts| counts.timers += 1);
        self.context.set_timer(at, timer);
    }

    fn set_timer_of(&mut self, endpoint: EndpointId, at: Time, timer: Resume) {
        self.pending.change(|counts| counts.timers += 1);
        self.context.set_timer_of(endpoint, at, timer);
    }

    fn send(&mut self, message: Message<<LiveHost as Host>::Header>, at: Time) -> u32 {
        let (from, token) = (self.context.endpoint(), message.token);
        let number = self.context.send(message, at);
        self.pending.change(|counts| {
            counts.messages.insert((from, number));
            counts.untaken.extend(token.map(|token| (from, token)));
        });
        number
    }

    fn request_offer(&mut self) {
        self.context.request_offer();
    }

    fn capabilities(&mut self) -> &mut dyn Capabilities {
        self.context.capabilities()
    }
}
