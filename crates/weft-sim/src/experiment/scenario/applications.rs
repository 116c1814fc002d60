//! Recorded programs beside the flows of a scenario: their ranks on the machine, and when they end.
//!
//! ```text
//!   [[applications]] ── trace, places ──► ranks ─┐
//!                                                ├─► one network, one virtual time
//!   [[flows]] ───────────── one more virtual ────┘
//!                           interface per endpoint
//! ```

use super::beside::HostsBeside;
use super::file::{self, Scenario};
use super::{Building, ScenarioRequest, Way};
use crate::experiment::ranks::{check_joined, core_speed, hosts, progress_rule};
use crate::experiment::replay::{self, TraceInput};
use crate::experiment::{ExperimentError, machine};
use serde::{Deserialize, Serialize};
use std::path::Path;
use weft_assembly as assembly;
use weft_fabric::HopRecord;
use weft_formats::Trace;
use weft_msg::{Algorithm, Wildcards};
use weft_network::{NetworkSetup, SimulatedNetwork};
use weft_results::{Conclusion, Ending};
use weft_topo::Topology as _;
use weft_units::{EndpointId, Span};
use weft_workload::host::{Hops, NoRanks, RankHost, SharedHost, SharedParameters};
use weft_workload::replay::{
    Operations, Program, RankFailure, RankReport, ReplayHost, ReplayOutput, ReplayParameters,
};

/// Figures of an application in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ApplicationFigures {
    /// The number of ranks.
    pub ranks: u64,
    /// From its start to the end of its last rank; `None`: it has not ended within the scenario's time.
    pub completion_max_us: Option<f64>,
    /// The share of its ranks' time in which they neither compute nor are in the messaging library, of those
    /// that have ended.
    pub wait_share: Option<f64>,
}

/// The traces that a scenario file names, from its folder.
///
/// # Errors
/// A file that is no scenario, and a trace that is not there: with the command that makes it, where the file
/// names one.
pub fn traces(name: &str, text: &str, folder: &Path) -> Result<Vec<TraceInput>, ExperimentError> {
    let named = file::traces(name, text)?;
    let open = |trace: file::NamedTrace| {
        let path = folder.join(&trace.path);
        match (path.metadata(), trace.kernel) {
            (Err(_), Some(kernel)) => kernel.map(TraceInput::kernel),
            (Err(_), None) => Err(trace.missing),
            // A device may have no end.
            (Ok(found), _) if !found.is_file() => Err(trace.no_file),
            (Ok(_), _) => TraceInput::at(&path),
        }
    };
    named.into_iter().map(open).collect()
}

/// The ranks of a scenario: those of its applications, or none.
pub(super) trait Ranks: RankHost {
    /// The links that packets have crossed since it was last asked, where that is followed.
    fn hops(output: &mut Self::Output) -> &mut Vec<HopRecord>;

    /// The first fault of a rank; `None`: there is none.
    fn fault(output: &Self::Output) -> Option<RankFailure>;

    /// Adds those of a host.
    fn add_to(&self, all: &mut Vec<RankReport>);
}

impl Ranks for NoRanks {
    fn hops(output: &mut Hops) -> &mut Vec<HopRecord> {
        &mut output.0
    }

    fn fault(_: &Hops) -> Option<RankFailure> {
        None
    }

    fn add_to(&self, _: &mut Vec<RankReport>) {}
}

impl Ranks for ReplayHost {
    fn hops(output: &mut ReplayOutput) -> &mut Vec<HopRecord> {
        &mut output.hops
    }

    fn fault(output: &ReplayOutput) -> Option<RankFailure> {
        output.faults.iter().min().cloned()
    }

    fn add_to(&self, all: &mut Vec<RankReport>) {
        all.extend(self.ranks());
    }
}

/// All ranks, by program and rank.
pub(super) fn ranks<R: Ranks>(network: &dyn SimulatedNetwork<SharedHost<R>>) -> Vec<RankReport> {
    let mut ranks = Vec::new();
    network.visit_hosts(&mut |_, host| host.ranks.add_to(&mut ranks));
    ranks.sort_by_key(|rank| (rank.program, rank.rank));
    ranks
}

/// The end of a run in which nothing is pending: `None` where all ranks have ended.
pub(super) fn standstill<R: Ranks>(
    scenario: &Scenario,
    network: &dyn SimulatedNetwork<SharedHost<R>>,
) -> Option<Conclusion> {
    let ranks = ranks(network);
    let waits = ranks.iter().find(|rank| !rank.finished)?;
    let name = &scenario.applications[waits.program as usize].group.name;
    let waiting = format!("\"{name}\": rank {} waits, and nothing is on its way", waits.rank);
    Some(match network.lost_packets() {
        Some(lost) => Conclusion::new(Ending::LostData, format!("{lost}\n{waiting}")),
        None => Conclusion::new(Ending::NoProgress, waiting),
    })
}

/// The figures of the applications.
pub(super) fn figures(scenario: &Scenario, ranks: &[RankReport]) -> Vec<ApplicationFigures> {
    let figures = |program: u32| {
        let own: Vec<_> = ranks.iter().filter(|rank| rank.program == program).collect();
        let has_ended = own.iter().all(|rank| rank.finished);
        let run_time = own.iter().map(|rank| rank.run_time()).max().filter(|_| has_ended);
        let time: f64 = own.iter().map(|rank| rank.core_time().as_us_f64()).sum();
        let waited: f64 = own.iter().map(|rank| rank.wait().as_us_f64()).sum();
        ApplicationFigures {
            ranks: own.len() as u64,
            completion_max_us: run_time.map(Span::as_us_f64),
            wait_share: (has_ended && time > 0.0).then(|| waited / time),
        }
    };
    (0..scenario.applications.len() as u32).map(figures).collect()
}

impl ScenarioRequest {
    /// The programs of its traces, on their places.
    fn programs(
        &self,
        scenario: &Scenario,
        machine: &weft_machine::Machine,
        layout: &weft_topo::Layout,
    ) -> Result<Vec<Program>, ExperimentError> {
        for (application, trace) in scenario.applications.iter().zip(&self.traces) {
            let per_host = application.ranks_per_host.unwrap_or(machine.host.cores) as usize;
            let seats = application.on.len() * per_host;
            if let Some(kernel) = trace.kernel.as_ref().filter(|kernel| kernel.ranks as usize > seats) {
                return Err(application.places.too_few(seats, kernel.ranks));
            }
        }
        let traces = replay::open_traces(&self.traces)?;
        let program = |(application, trace): (&file::Application, Trace)| {
            let per_host = application.ranks_per_host.unwrap_or(machine.host.cores) as usize;
            let seats = application.on.iter().flat_map(|&endpoint| std::iter::repeat_n(endpoint, per_host));
            let at: Vec<EndpointId> = seats.take(trace.ranks() as usize).collect();
            if at.len() < trace.ranks() as usize {
                return Err(application.places.too_few(at.len(), trace.ranks()));
            }
            Ok((trace, at))
        };
        let seated: Vec<_> =
            scenario.applications.iter().zip(traces).map(program).collect::<Result<_, _>>()?;
        // All at once, so that two applications do not get one core.
        let all: Vec<EndpointId> = seated.iter().flat_map(|(_, at)| at.iter().copied()).collect();
        let mut places = hosts(machine).at(&all).map_err(ExperimentError::input)?.into_iter();
        let place = |(trace, at): (Trace, Vec<EndpointId>)| {
            let places: Vec<_> = places.by_ref().take(at.len()).collect();
            check_joined(&places, layout)?;
            Ok::<_, ExperimentError>(Program { places, operations: Operations::Recorded(trace.source()) })
        };
        let programs = seated.into_iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let kernels = self.traces.iter().map(|trace| trace.kernel.as_ref());
        let lack =
            replay::memory_lack(machine, kernels.zip(programs.iter().map(|program| &program.places[..])))?;
        match lack {
            None => Ok(programs),
            Some(lack) => {
                let place = &scenario.applications[lack.program].trace;
                let mend = lack.mend("`ranks_per_host`");
                Err(ExperimentError::input(format!("{place}: {lack}; {mend}")))
            }
        }
    }

    /// The network under one way, with the ranks of the applications and the flows beside them.
    ///
    /// # Errors
    /// A machine that cannot have it, and ranks that do not fit on it.
    pub(super) fn network_with_ranks(
        &self,
        way: &Way,
        scenario: &Scenario,
        building: Building<'_>,
    ) -> Result<Box<dyn SimulatedNetwork<SharedHost<ReplayHost>>>, ExperimentError> {
        let machine = machine::checked(&way.machine)?;
        let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
        let protocol = assembly::protocol(&machine, Wildcards::Recorded).map_err(ExperimentError::input)?;
        let multicasts = protocol.algorithms.names(Algorithm::Multicast);
        let programs = self.programs(scenario, &machine, &layout)?;
        let cores = core_speed(&machine, &layout, &programs)?;
        let mut parameters = ReplayParameters::new(programs, protocol, progress_rule(&machine));
        let scales = scenario.applications.iter().map(|application| application.compute_scale);
        parameters.compute_scales = scales.collect();
        parameters.starts = scenario.applications.iter().map(|application| application.start).collect();
        parameters.rails = assembly::rails(&machine, &layout).map_err(ExperimentError::input)?;
        let fullest = parameters.seating().fullest_endpoint().map_or(0, |(_, ranks)| ranks);
        let interface = fullest * parameters.rails;
        let users = assembly::InterfaceUsers { ranks: interface, beside: scenario.interfaces() };
        assembly::check_interfaces(&machine, users).map_err(ExperimentError::input)?;
        parameters.cores = cores;
        parameters.follow_topology(&layout);
        let groups =
            if multicasts { parameters.make_groups(machine.multicast.len() as u32) } else { Vec::new() };
        let mut hosts = parameters.hosts(layout.endpoints()).into_iter();
        let mut beside = HostsBeside::new(scenario, self.seed);
        let mut host = |endpoint| beside.put(hosts.next().unwrap_or_default(), endpoint);
        let Building { threads, saved, follows_packets, .. } = building;
        let setup = NetworkSetup {
            threads,
            saved,
            groups,
            follows_packets,
            ..NetworkSetup::new(&machine, layout, self.seed)
        };
        let beside = scenario.parameters(interface as u16, building.report_transfers);
        let parameters = SharedParameters { ranks: parameters, beside };
        setup.with_ranks(parameters, &mut host).map_err(ExperimentError::input)
    }
}
