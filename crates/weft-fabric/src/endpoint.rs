//! An endpoint's half of its link: takes packets from the interface and injects them.
//!
//! The other direction needs no state here: endpoints consume whatever arrives, so the last link has
//! no credits and is never the reason for a deadlock.

use crate::fault::Fault;
use crate::packet::{Credit, Packet, Wire, kind};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_engine::{Context, Event, Order, Payload};
use weft_units::{EndpointId, Line, Span, Time};

/// The sending half.
#[derive(Serialize, Deserialize)]
pub(crate) struct Endpoint<N> {
    pub(crate) id: EndpointId,
    pub(crate) interface: N,
    pub(crate) line: Line,
    /// Room that is left in the switch's input buffer.
    pub(crate) credits: u32,
    /// Room that is known to become free there: when, and how much, in the order in which it comes.
    expected: VecDeque<(Time, u32)>,
    /// When the next pump is due; a pump at another time is stale.
    pub(crate) pump: Time,
    /// A packet that waits for credits, and since when.
    pub(crate) staged: Option<(Packet, Time)>,
    /// How its link to the switch fails, if it does.
    pub(crate) fault: Option<Box<Fault>>,
    /// Packets that the interface has supplied since the run began.
    pub(crate) supplied: u64,
    pub(crate) packets: u64,
    /// How many of them were acknowledgements.
    pub(crate) acknowledgements: u64,
    pub(crate) payload: u64,
    pub(crate) stalled: Span,
    pub(crate) received: u64,
    pub(crate) received_payload: u64,
}

impl<N> Endpoint<N> {
    pub(crate) fn new(id: EndpointId, interface: N, credits: u32) -> Endpoint<N> {
        Endpoint {
            id,
            interface,
            line: Line::default(),
            credits,
            expected: VecDeque::new(),
            pump: Time::MAX,
            staged: None,
            fault: None,
            supplied: 0,
            packets: 0,
            acknowledgements: 0,
            payload: 0,
            stalled: Span::ZERO,
            received: 0,
            received_payload: 0,
        }
    }

    /// Room will become free in the switch's buffer at `time`.
    #[inline]
    pub(crate) fn expect_credit(&mut self, time: Time, amount: u32) {
        // An output-queued switch may tell of a later one first.
        if self.expected.back().is_none_or(|&(last, _)| last <= time) {
            self.expected.push_back((time, amount));
        } else {
            let place = self.expected.partition_point(|&(other, _)| other <= time);
            self.expected.insert(place, (time, amount));
        }
    }

    /// Takes account of the credits that have come by `now`.
    #[inline]
    pub(crate) fn collect_credits(&mut self, now: Time) {
        while let Some(&(time, amount)) = self.expected.front()
            && time <= now
        {
            self.credits += amount;
            self.expected.pop_front();
        }
    }

    /// When the next credit comes, if one is known to come.
    #[inline]
    pub(crate) fn next_credit(&self) -> Time {
        self.expected.front().map_or(Time::MAX, |&(time, _)| time)
    }

    /// Credits that it has or is known to get.
    pub(crate) fn all_credits(&self) -> u64 {
        u64::from(self.credits) + self.expected.iter().map(|&(_, amount)| u64::from(amount)).sum::<u64>()
    }

    /// Makes sure that `entity`, which it is in its site, looks for a packet to inject at `at`.
    #[inline]
    pub(crate) fn pump_at<T: Payload, A: Payload>(
        &mut self,
        at: Time,
        entity: u32,
        events: &mut Context<'_, Wire<T, A>, Credit>,
    ) {
        schedule_pump(&mut self.pump, at, entity, events);
    }
}

/// Makes sure that `entity` looks for a packet to inject at `at`; `due` is when it will anyway.
#[inline]
pub(crate) fn schedule_pump<T: Payload, A: Payload>(
    due: &mut Time,
    at: Time,
    entity: u32,
    events: &mut Context<'_, Wire<T, A>, Credit>,
) {
    if at < *due {
        *due = at;
        let (site, order) = (events.site(), Order::new(entity, kind::PUMP));
        events.send(Event { time: at, site, order, payload: Wire::Pump });
    }
}
