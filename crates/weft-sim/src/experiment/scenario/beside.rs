//! Flows, services and clients of a scenario beside ranks, whoever the ranks are.
//!
//! ```text
//!   [[flows]], [[services]], [[clients]] ──► BesideRanks ──► hosts, parameters ──► network with the ranks
//!                                                                                       │ epoch by epoch
//!                     a row for each group ◄── figures ◄── GroupOutputs ◄───────────────┘
//! ```
//! What comes before the file's `warm_up` or after its `time` is not counted.

use super::file::{self, OnMachine, Scenario};
use super::row::{self, Figures};
use super::services;
use super::throughput::{Came, Counts};
use crate::experiment::ExperimentError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_assembly as assembly;
use weft_machine::Machine;
use weft_network::SimulatedNetwork;
use weft_topo::Layout;
use weft_units::{Bytes, EndpointId, Time};
use weft_workload::host::{Beside, RankHost, SharedHost, SharedOutput};
use weft_workload::scenario::{Generators, ScenarioOutput, ScenarioParameters};
use weft_workload::services::key_value::{KeyValue, KeyValueOutput};

/// Parts of a scenario's time at whose ends it is looked whether ranks have ended.
const LOOKS: u64 = 400;

/// A scenario file whose flows, services and clients go beside the ranks of a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScenarioFile {
    /// The file's name without its folder.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

impl ScenarioFile {
    /// The flows, services and clients that it puts beside the ranks of a command. `seed`: of all its random
    /// decisions.
    ///
    /// # Errors
    /// A file that is no scenario of this machine, or has applications: the command has one.
    pub fn beside(
        &self,
        machine: &Machine,
        layout: &Layout,
        seed: u64,
    ) -> Result<BesideRanks, ExperimentError> {
        file::refuse_applications(&self.name, &self.text)?;
        let scenario = file::read((&self.name, &self.text), &OnMachine::of(machine, layout), seed)?;
        if scenario.flows.is_empty() && scenario.services.is_empty() {
            let mend = "add [[flows]] or [[services]]";
            return Err(ExperimentError::input(format!(
                "{}: nothing goes beside the ranks; {mend}",
                self.name
            )));
        }
        Ok(BesideRanks { scenario, seed })
    }
}

/// Flows, services and clients that go beside the ranks of a command.
#[derive(Clone, Debug)]
pub struct BesideRanks {
    scenario: Scenario,
    seed: u64,
}

impl BesideRanks {
    /// Their parameters, where ranks leave virtual interfaces from this one on.
    ///
    /// # Errors
    /// The machine has not so many interfaces.
    pub fn parameters(&self, machine: &Machine, interface: u32) -> Result<Beside, ExperimentError> {
        let users = assembly::InterfaceUsers { ranks: interface, beside: self.scenario.interfaces() };
        assembly::check_interfaces(machine, users).map_err(ExperimentError::input)?;
        Ok(self.scenario.parameters(interface as u16, false))
    }

    /// The programs of each endpoint.
    pub fn hosts(&self) -> HostsBeside {
        HostsBeside::new(&self.scenario, self.seed)
    }

    /// The next time after `now` at which it is looked whether the ranks have ended. What has begun by the
    /// scenario's time may take much longer than they do, and they much longer than it: each time that the
    /// run is twice as long the looks are half as many. They do not depend on where else a run stops.
    pub(crate) fn next_look(&self, now: Time) -> Time {
        let time = self.scenario.time;
        let doublings = (now.as_ps() / time.as_ps().max(1)).checked_ilog2().unwrap_or(0);
        let every = (time.as_ps() / LOOKS).max(1) << doublings;
        let next = Time::from_ps((now.as_ps() / every + 1).saturating_mul(every));
        if now < time { next.min(time) } else { next }
    }

    /// The time at which a network with these must stop next, for what has been gathered; `None`: none.
    pub(crate) fn next_stop(&self, gathered: &GroupOutputs) -> Option<Time> {
        let Scenario { warm_up, time, .. } = self.scenario;
        match (&gathered.before, &gathered.at_end) {
            (_, Some(_)) => None,
            (None, None) => Some(warm_up),
            (Some(_), None) => Some(time),
        }
    }

    /// The network has come to that time.
    pub(crate) fn stop_at<R: RankHost>(
        &self,
        stop: Time,
        gathered: &mut GroupOutputs,
        network: &mut dyn SimulatedNetwork<SharedHost<R>>,
    ) {
        network.visit_outputs(&mut |part| gathered.take(part));
        if gathered.before.is_none() {
            gathered.end_warm_up(network);
        }
        if stop >= self.scenario.time {
            gathered.end(network);
        }
    }

    /// A row for each group of the run of this number, which ends here, unless it has come to the scenario's
    /// time before.
    pub(crate) fn rows<R: RankHost>(
        &self,
        run: u32,
        gathered: &mut GroupOutputs,
        network: &dyn SimulatedNetwork<SharedHost<R>>,
    ) -> Vec<GroupRow> {
        gathered.end(network);
        let end = gathered.end_time(&self.scenario, network.now());
        let (flows, others) = gathered.figures(&self.scenario, end);
        let row = |(group, figures): (&file::Group, Figures)| GroupRow {
            run,
            group: group.name.clone(),
            role: group.role.clone(),
            figures,
        };
        self.scenario.all_groups().zip(flows.into_iter().chain(others)).map(row).collect()
    }
}

/// The row of a group beside ranks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GroupRow {
    /// The run: the column `run` of the tables.
    pub run: u32,
    /// The name of the group in the file.
    pub group: String,
    /// `victim`, `aggressor` or `background`; of a service `service`.
    pub role: String,
    /// The group's figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The programs beside the ranks of each endpoint.
pub struct HostsBeside {
    /// The numbers of the flows that begin there.
    flows: BTreeMap<EndpointId, Vec<u32>>,
    key_value: BTreeMap<EndpointId, KeyValue>,
    seed: u64,
}

impl HostsBeside {
    /// Those of a scenario.
    pub(super) fn new(scenario: &Scenario, seed: u64) -> HostsBeside {
        let mut flows = BTreeMap::<EndpointId, Vec<u32>>::new();
        for (flow, number) in scenario.flows.iter().zip(0..) {
            flows.entry(flow.source).or_default().push(number);
        }
        HostsBeside { flows, key_value: file::by_endpoint(scenario, seed), seed }
    }

    /// The host of an endpoint, of which there is one, with these ranks.
    pub fn put<R>(&mut self, ranks: R, endpoint: EndpointId) -> SharedHost<R> {
        let flows = self.flows.get(&endpoint).map_or(&[][..], Vec::as_slice);
        SharedHost {
            flows: Generators::new(flows, self.seed),
            key_value: self.key_value.remove(&endpoint).unwrap_or_default(),
            ..SharedHost::alone(ranks)
        }
    }
}

impl Scenario {
    /// Virtual interfaces that flows and services take at an endpoint.
    pub(super) fn interfaces(&self) -> u32 {
        if self.services.is_empty() { 1 } else { Beside::INTERFACES.into() }
    }

    /// The parameters of flows, services and clients, from this virtual interface on.
    pub(super) fn parameters(&self, interface: u16, report_transfers: bool) -> Beside {
        let (flows, counted_from) = (self.flows.clone(), self.warm_up);
        let flows = ScenarioParameters { flows, counted_from, report_transfers };
        Beside { interface, flows, key_value: self.key_value() }
    }
}

/// The outputs of flows, services and clients since the run began, up to the scenario's time.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct GroupOutputs {
    pub(super) flows: ScenarioOutput,
    key_value: KeyValueOutput,
    /// Payload of flows that had come at the end of warm-up; `None`: it goes on.
    before: Option<Came>,
    /// Payload of flows that had come at the end. What comes later is not counted.
    at_end: Option<Came>,
}

impl GroupOutputs {
    /// Takes what hosts of a partition have reported.
    pub fn take<O>(&mut self, part: &mut SharedOutput<O>) {
        let SharedOutput { flows, key_value, .. } = part;
        if self.at_end.is_some() {
            (*flows, *key_value) = Default::default();
        }
        self.flows.take(flows);
        self.key_value.take(key_value);
    }

    /// Warm-up ends.
    pub(super) fn end_warm_up<R: RankHost>(&mut self, network: &dyn SimulatedNetwork<SharedHost<R>>) {
        self.before = Some(Came::by_now(&self.flows, network));
    }

    /// The measured time ends, unless it has ended.
    pub(super) fn end<R: RankHost>(&mut self, network: &dyn SimulatedNetwork<SharedHost<R>>) {
        let came = self.at_end.get_or_insert_with(|| Came::by_now(&self.flows, network));
        self.before.get_or_insert_with(|| came.clone());
    }

    /// The end of the measured time, in a network that has come to `now`.
    pub(super) fn end_time(&self, scenario: &Scenario, now: Time) -> Time {
        // A network that stands is at the beginning of its last window, in which something may have come.
        let flows = self.flows.flows.values().map(|flow| flow.last);
        let last = flows.chain(self.key_value.clients.values().map(|tally| tally.last)).max();
        now.max(last.unwrap_or(Time::ZERO)).min(scenario.time)
    }

    /// Messages that were delivered.
    pub(super) fn messages(&self) -> u64 {
        self.flows.flows.values().map(|flow| flow.delivered).sum::<u64>() + self.key_value.messages
    }

    /// Payload that has come.
    pub(super) fn payload(&self) -> Bytes {
        self.at_end.as_ref().map_or(Bytes::ZERO, Came::sum) + self.key_value.payload
    }

    /// The figures of each group of flows, then those of clients and services, when the measured time has
    /// ended.
    pub(super) fn figures(&self, scenario: &Scenario, end: Time) -> (Vec<Figures>, Vec<Figures>) {
        let none = Came::default();
        let (before, came) = (self.before.as_ref().unwrap_or(&none), self.at_end.as_ref().unwrap_or(&none));
        let counts = Counts { scenario, output: &self.flows, before, came, end };
        let flows = row::of_groups(&counts).into_iter().map(Figures::Flows);
        let clients = services::of_clients(scenario, &self.key_value, end).into_iter().map(Figures::Clients);
        let services =
            services::of_services(scenario, &self.key_value, end).into_iter().map(Figures::Service);
        (flows.collect(), clients.chain(services).collect())
    }
}
