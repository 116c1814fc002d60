//! Throughput of flows: payload that came after warm-up, over the time in which it did.
//!
//! ```text
//!   0 ──── warm-up ────┬──────────── measured ────────────┐
//!                      │   ┌ first transfer               │ end of the run, or
//!                      └───┴──────── payload ─────────────┘ last delivery of flows that have ended
//! ```
//! Payload counts when it has come to its destination, whether or not its transfer is whole. So the figure
//! depends neither on the sizes of transfers nor on how long the scenario goes on when they have ended.

use super::file::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_network::SimulatedNetwork;
use weft_units::{Bytes, Time};
use weft_workload::host::{RankHost, SharedHeader, SharedHost};
use weft_workload::scenario::{FlowPlan, FlowTally, ScenarioOutput};

/// Payload that has come since the run began, by flow.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(super) struct Came(BTreeMap<u32, Bytes>);

impl Came {
    /// The payload that has come by now.
    pub(super) fn by_now<R: RankHost>(
        output: &ScenarioOutput,
        network: &dyn SimulatedNetwork<SharedHost<R>>,
    ) -> Came {
        let mut came: BTreeMap<u32, Bytes> =
            output.flows.iter().map(|(&flow, tally)| (flow, tally.bytes)).collect();
        network.visit_arriving(&mut |header, bytes| {
            if let SharedHeader::Flows(of) = header {
                *came.entry(of.flow()).or_default() += bytes;
            }
        });
        Came(came)
    }

    /// The payload of all flows.
    pub(super) fn sum(&self) -> Bytes {
        self.0.values().copied().sum()
    }

    fn of(&self, flow: u32) -> Bytes {
        self.0.get(&flow).copied().unwrap_or_default()
    }
}

/// The counts of a run when it has ended.
pub(super) struct Counts<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) output: &'a ScenarioOutput,
    /// Payload that came before the end of warm-up.
    pub(super) before: &'a Came,
    /// Payload that came in all.
    pub(super) came: &'a Came,
    /// The end of the run.
    pub(super) end: Time,
}

/// Payload, and the time in which it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delivered {
    pub(super) payload: Bytes,
    from: Time,
    until: Time,
}

impl Counts<'_> {
    /// The transfers of a flow.
    pub(super) fn tally(&self, flow: u32) -> FlowTally {
        self.output.flows.get(&flow).copied().unwrap_or_default()
    }

    /// The payload of a flow; `None`: it began no transfer.
    pub(super) fn delivered(&self, flow: u32, plan: &FlowPlan) -> Option<Delivered> {
        let tally = self.tally(flow);
        let over_at = match plan.transfers {
            Some(most) if tally.begun >= most => Some(Time::ZERO),
            _ => Some(plan.stop).filter(|stop| *stop < self.end),
        };
        let over_at = over_at.filter(|_| tally.delivered == tally.begun);
        let until = over_at.map_or(self.end, |stop| stop.max(tally.last));
        let from = tally.first?.max(self.scenario.warm_up);
        let payload = self.came.of(flow) - self.before.of(flow);
        Some(Delivered { payload, from, until: until.max(from) })
    }
}

impl Delivered {
    /// The payload of this and another flow, in the time of both.
    pub(super) fn and(self, other: Delivered) -> Delivered {
        let (payload, from) = (self.payload + other.payload, self.from.min(other.from));
        Delivered { payload, from, until: self.until.max(other.until) }
    }

    /// The time in us.
    pub(super) fn time_us(&self) -> f64 {
        (self.until - self.from).as_us_f64()
    }

    /// The throughput in 10⁹ bit/s.
    pub(super) fn gbps(&self) -> f64 {
        if self.until == self.from { 0.0 } else { self.payload.bits() as f64 * 1e-3 / self.time_us() }
    }
}
