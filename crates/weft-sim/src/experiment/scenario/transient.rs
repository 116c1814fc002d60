//! How long congestion control takes to find new shares after flows begin or stop.
//!
//! ```text
//!   rate  ──────╮    ╭╮ ╭─────────────      share: the mean of the second half of the phase
//!               ╰────╯╰─╯ ± a tenth         settled: from here on no flow's rate leaves its share by more
//!        change │◄──────►│                           than a tenth of the largest
//! ```
//! A phase is the time between two changes. The rate of a flow is the one that its source allows it, at the
//! end of each epoch: what comes of a flow is in bursts, as transfers follow each other.
//!
//! # Not modelled
//! Without congestion control nobody allows a rate, and nothing is told. A scenario with more than
//! [`MAX_FLOWS`] flows has no transients: what would be kept grows with them.

use super::file::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use weft_fabric::FlowId;
use weft_network::SimulatedNetwork;
use weft_nic::Host;
use weft_units::Time;

/// Most flows whose rates are kept.
const MAX_FLOWS: usize = 1_000;

/// The least epochs of a phase of which a transient is told.
const LEAST_EPOCHS: usize = 16;

/// A change of flows, and the time until rates have settled.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transient {
    /// The time at which flows began or stopped.
    pub at_us: f64,
    /// From then until all rates stay within a tenth of the new shares; `None`: they do not.
    pub settled_after_us: Option<f64>,
}

/// The rates of each flow, epoch by epoch.
#[derive(Serialize, Deserialize)]
pub(super) struct Watch {
    /// Times of changes, in order; the beginning is not among them.
    changes: Vec<Time>,
    /// Ends of epochs.
    ends: Vec<Time>,
    /// By flow: the epoch at whose end the source first knew a rate, and the rates from then on in bits per
    /// second. One that the source has forgotten stays as it was.
    rates: BTreeMap<FlowId, (usize, Vec<u64>)>,
}

impl Watch {
    /// Begins, where flows begin or stop within the time. `None`: nothing is to be seen.
    pub fn begin(scenario: &Scenario) -> Option<Watch> {
        let of_flow = scenario.flows.iter().flat_map(|flow| [flow.start, flow.stop]);
        let changes: BTreeSet<Time> = of_flow.filter(|&at| at > Time::ZERO && at < scenario.time).collect();
        if changes.is_empty() || scenario.flows.len() > MAX_FLOWS {
            return None;
        }
        Some(Watch { changes: changes.into_iter().collect(), ends: Vec::new(), rates: BTreeMap::new() })
    }

    /// Looks at the network at the end of an epoch.
    pub fn look<H: Host>(&mut self, network: &dyn SimulatedNetwork<H>, end: Time) {
        let epoch = self.ends.len();
        self.ends.push(end);
        network.visit_allowed_rates(&mut |flow, rate| {
            let (first, rates) = self.rates.entry(flow).or_insert((epoch, Vec::new()));
            let before = rates.last().copied().unwrap_or_default();
            rates.resize(epoch - *first, before);
            rates.push(rate.bits_per_second());
        });
    }

    /// The transients after the changes, where sources know rates; `end`: of the run.
    pub fn transients(&self, end: Time) -> Vec<Transient> {
        if self.rates.is_empty() {
            return Vec::new();
        }
        let next = self.changes.iter().copied().skip(1).chain([end]);
        let phases = self.changes.iter().copied().zip(next).filter(|(from, to)| from < to);
        let transient = |(from, to): (Time, Time)| {
            let settled = self.settled(from, to);
            let settled_after_us = settled.map(|at| at.saturating_since(from).as_us_f64());
            Transient { at_us: (from - Time::ZERO).as_us_f64(), settled_after_us }
        };
        phases.map(transient).collect()
    }

    /// The time at which rates have settled in a phase.
    fn settled(&self, from: Time, to: Time) -> Option<Time> {
        let first = self.ends.partition_point(|&end| end < from);
        let last = self.ends.partition_point(|&end| end <= to).checked_sub(1)?;
        if last < first + LEAST_EPOCHS {
            return None;
        }
        let middle = first + (last - first) / 2;
        // Flows that were heard of since the middle: others are over.
        let rate = |(begun, rates): &(usize, Vec<u64>), epoch: usize| {
            let place = epoch.checked_sub(*begun)?;
            rates.get(place).or(rates.last()).copied()
        };
        let lasts = |(begun, rates): &&(usize, Vec<u64>)| *begun <= middle && begun + rates.len() > middle;
        let share = |flow| {
            let sum: u128 = (middle..=last).filter_map(|epoch| rate(flow, epoch)).map(u128::from).sum();
            (sum / (last - middle + 1) as u128) as u64
        };
        let flows: Vec<_> = self.rates.values().filter(lasts).map(|flow| (flow, share(flow))).collect();
        let tolerance = flows.iter().map(|(_, share)| *share).max()? / 10;
        let strays = |epoch: usize| {
            flows
                .iter()
                .any(|(flow, share)| rate(flow, epoch).is_none_or(|rate| rate.abs_diff(*share) > tolerance))
        };
        let settled = (first..=last).rev().take_while(|&epoch| !strays(epoch)).last()?;
        (settled <= middle).then(|| self.ends[settled])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_units::{EndpointId, Span};

    /// Flows whose rates are known from an epoch on; epochs take 1 us.
    fn watch(changes: &[u64], flows: &[(usize, Vec<u64>)]) -> Watch {
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let id = |source| FlowId { source: EndpointId(source), destination: EndpointId(9), class: 0 };
        let rates = (0..).map(id).zip(flows.iter().cloned()).collect();
        let ends = (1..=200).map(at).collect();
        Watch { changes: changes.iter().copied().map(at).collect(), ends, rates }
    }

    fn series(parts: &[(usize, u64)]) -> Vec<u64> {
        parts.iter().flat_map(|&(count, rate)| std::iter::repeat_n(rate, count)).collect()
    }

    const END: Time = Time::from_ps(200_000_000);

    /// Catches a transient that is told too short or too long: the one flow falls to a half at once, the
    /// other begins at full rate and takes ten epochs to come down to its share.
    #[test]
    fn flows_settle_when_the_last_has_its_share() {
        let flows = [(0, series(&[(99, 1_000), (101, 500)])), (99, series(&[(10, 1_000), (91, 500)]))];
        let found = watch(&[100], &flows).transients(END);
        assert_eq!(found, [Transient { at_us: 100.0, settled_after_us: Some(10.0) }]);
    }

    /// Catches a swing of rates that is called settled, and a run without rates of which something is told.
    #[test]
    fn rates_that_swing_do_not_settle() {
        let swing: Vec<u64> = (0..200).map(|epoch| if epoch / 20 % 2 == 0 { 900 } else { 300 }).collect();
        assert_eq!(watch(&[100], &[(0, swing)]).transients(END)[0].settled_after_us, None);
        assert_eq!(watch(&[100], &[]).transients(END), []);
    }

    /// Catches phases that run into each other, and a flow that is over but is waited for.
    #[test]
    fn each_phase_has_its_own_shares() {
        let one = (0, series(&[(59, 1_000), (5, 800), (56, 500), (80, 1_000)]));
        let other = (59, series(&[(61, 500)]));
        let found = watch(&[60, 120], &[one, other]).transients(END);
        let after: Vec<_> = found.iter().map(|transient| transient.settled_after_us).collect();
        // A look at the time of a change sees what was before: the next one is an epoch later.
        assert_eq!(after, [Some(5.0), Some(1.0)]);
    }
}
