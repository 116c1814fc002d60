//! Figures of the services of a scenario and of their clients.

use super::file::{ClientGroup, Scenario, ServiceGroup};
use serde::{Deserialize, Serialize};
use weft_units::{Span, Time};
use weft_workload::services::key_value::{ClientTally, KeyValueOutput, KeyValueParameters, StoreTally};

/// Figures of the clients of a service in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientFigures {
    /// Clients: one at each endpoint.
    pub clients: u64,
    /// Requests that were answered after warm-up.
    pub requests: u64,
    /// Requests that had been made at the end of the run, and had not been answered or given up.
    pub requests_under_way: u64,
    /// Requests that the interface has given up.
    pub requests_failed: u64,
    /// The time in which they were answered: from the end of warm-up, or from `start` where that is later, to
    /// the end of the run, or to the last answer where all clients have made their number of requests.
    pub measured_us: f64,
    /// `requests` over `measured_us`.
    pub requests_per_second: f64,
    /// From request to answer, of requests that begin after warm-up.
    pub latency_mean_us: Option<f64>,
    /// The same, of half of them at most.
    pub latency_p50_us: Option<f64>,
    /// The same, of 99 in 100.
    pub latency_p99_us: Option<f64>,
    /// The same, of 999 in 1,000.
    pub latency_p999_us: Option<f64>,
}

/// Figures of a service in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ServiceFigures {
    /// Endpoints with a store.
    pub stores: u64,
    /// Threads of each.
    pub threads: u32,
    /// Requests that were served.
    pub served: u64,
    /// Gets among them that found no value.
    pub misses: u64,
    /// The share of the time after warm-up in which threads served, the mean of all.
    pub busy_share: f64,
    /// How long requests have waited for a thread, of those that came after warm-up.
    pub wait_mean_us: Option<f64>,
    /// The same, of 99 in 100 at most.
    pub wait_p99_us: Option<f64>,
    /// The most requests that waited at one endpoint when a thread took the next.
    pub most_waiting: u64,
    /// Answers that the interface has given up.
    pub answers_failed: u64,
}

impl Scenario {
    /// The parameters of its services.
    pub(super) fn key_value(&self) -> KeyValueParameters {
        KeyValueParameters {
            stores: self.services.iter().map(|service| service.plan.clone()).collect(),
            clients: self.clients.iter().map(|clients| clients.plan.clone()).collect(),
            at: (0..)
                .zip(&self.services)
                .flat_map(|(number, of)| of.at.iter().map(move |at| (*at, number)))
                .collect(),
            counted_from: self.warm_up,
        }
    }
}

fn micros(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_us_f64)
}

/// The figures of each group of clients, in the order of the file, of a run that ended at `end`.
pub(super) fn of_clients(scenario: &Scenario, output: &KeyValueOutput, end: Time) -> Vec<ClientFigures> {
    let figures = |(ClientGroup { from, plan, .. }, number): (&ClientGroup, u32)| {
        let none = ClientTally::default();
        let tally = output.clients.get(&number).unwrap_or(&none);
        let all = plan.requests.map(|each| each.saturating_mul(from.len() as u64));
        let until = if all.is_some_and(|all| tally.answered >= all) { tally.last } else { end };
        let measured_us = until.saturating_since(scenario.warm_up.max(plan.start)).as_us_f64();
        ClientFigures {
            clients: from.len() as u64,
            requests: tally.counted,
            requests_under_way: tally.begun - tally.answered - tally.failed,
            requests_failed: tally.failed,
            measured_us,
            requests_per_second: if measured_us > 0.0 {
                tally.counted as f64 / measured_us * 1e6
            } else {
                0.0
            },
            latency_mean_us: micros(tally.latency.mean()),
            latency_p50_us: micros(tally.latency.percentile(50)),
            latency_p99_us: micros(tally.latency.percentile(99)),
            latency_p999_us: micros(tally.latency.per_mille(999)),
        }
    };
    scenario.clients.iter().zip(0..).map(figures).collect()
}

/// The figures of each service, in the order of the file, of a run that ended at `end`.
pub(super) fn of_services(scenario: &Scenario, output: &KeyValueOutput, end: Time) -> Vec<ServiceFigures> {
    let figures = |(ServiceGroup { at, plan, .. }, number): (&ServiceGroup, u32)| {
        let none = StoreTally::default();
        let tally = output.stores.get(&number).unwrap_or(&none);
        let threads = at.len() as f64 * f64::from(plan.threads);
        let had = end.saturating_since(scenario.warm_up).as_us_f64() * threads;
        let busy = tally.counted as f64 * plan.service_time.as_us_f64();
        ServiceFigures {
            stores: at.len() as u64,
            threads: plan.threads,
            served: tally.served,
            misses: tally.misses,
            // A request that was begun before the end of warm-up counts as a whole.
            busy_share: if had > 0.0 { (busy / had).min(1.0) } else { 0.0 },
            wait_mean_us: micros(tally.waits.mean()),
            wait_p99_us: micros(tally.waits.percentile(99)),
            most_waiting: tally.longest_queue,
            answers_failed: tally.failed,
        }
    };
    scenario.services.iter().zip(0..).map(figures).collect()
}
