//! Runs a replay: from the request to results and report.
//!
//! ```text
//!  open, check, place ──► RankRun ──► epoch ──► epoch ──► … ──► rows
//!                                       │ progress
//!                                       └ at the times of --save-every: snapshot
//! ```

use super::isolated::Isolated;
use super::programs;
use super::{Figures, JobFigures, ReplayRequest, ReplayRow, Wildcards};
use crate::experiment::busiest::Busiest;
use crate::experiment::ranks::{
    self, ByJob, Drawing, RankRun, RunStep, Setup, Shared, Surroundings, Tally, call_figures, end_of,
    figures, next_multiple,
};
use crate::experiment::{
    EnergyFigures, Estimate, Experiment, ExperimentError, ExperimentOptions, ExperimentRun, Findings,
    MachineInput, Measured, ProgressListener, Request, add_crossed,
};
use weft_assembly as assembly;
use weft_machine::Machine;
use weft_network::{Crossed, LinkUse};
use weft_results::{Conclusion, Ending, Performance, Stopwatch, Table, Totals};
use weft_topo::Layout;
use weft_units::memory::peak_memory;
use weft_units::{Bytes, Span, Time};
use weft_workload::replay::{Operations, Program, RankReport, Wanted};

/// The traces of a command run side by side in one virtual time: they are one run of its tables.
pub(super) const RUN: u32 = 0;

impl Experiment for ReplayRequest {
    type Row = ReplayRow;

    fn machine(&self) -> &MachineInput {
        &self.machine
    }

    fn request(&self) -> Request {
        Request::Replay(self.clone())
    }

    /// Replays the traces together.
    fn findings(&self, experiment: &mut ExperimentRun<'_>) -> Result<Findings<ReplayRow>, ExperimentError> {
        let &mut ExperimentRun { machine, options, control, .. } = experiment;
        check_saving(self, options)?;
        check_starts(self)?;
        check_beside(self, options)?;
        let programs = programs::open(self, machine)?;
        let memory = Bytes::new(ranks::memory(machine, &programs));
        assembly::check_memory(machine, memory).map_err(ExperimentError::input)?;
        let layout = assembly::layout(machine).map_err(ExperimentError::input)?;
        let mut estimate = estimate(machine, &layout, &programs)?;
        if self.isolated {
            // All of it once more, job by job.
            estimate.wall_seconds = estimate.wall_seconds.map(|seconds| 2.0 * seconds);
        }
        let (follows_packets, links) = (options.follows_packets(machine)?, options.counts_links_by_job());
        let setup = setup(self, machine, &layout, programs)?;
        let by_job = ByJob { links, ..setup.by_job };
        let telemetry = self.telemetry.map(|every| options.looks(every));
        let (threads, rtl) = (options.threads, options.rtl.as_ref());
        let setup = Setup { threads, follows_packets, by_job, telemetry, rtl, ..setup };
        let placed = if self.isolated { setup.programs.clone() } else { Vec::new() };
        // A snapshot: what was counted, then the network's state.
        let saved = experiment.open::<(Tally, Vec<u8>)>(&layout, Some(estimate), &[self.seed])?;

        let building = Stopwatch::start();
        let wants = |table| experiment.writer.as_ref().is_some_and(|writer| writer.wants(table));
        let (messages, flows) = (wants(Table::Messages), wants(Table::Flows));
        let names = setup.names.clone();
        let mut run = RankRun::new(setup, saved, |parameters| {
            let Wanted { messages: needed, regions, .. } = parameters.wanted;
            let (messages, timeline) = (messages || needed, options.timeline.is_some());
            parameters.wanted = Wanted { messages, flows, timeline, regions };
        })?;
        let mut drawing = options.timeline.as_deref().map(Drawing::create).transpose()?;
        if let Some(drawing) = &mut drawing {
            drawing.name_tracks(run.seating(), &names, &layout)?;
        }
        let build_time_s = building.seconds();
        drop(experiment.preparation.take());

        let around = Surroundings {
            interrupt: control.interrupt,
            writer: experiment.writer.as_mut(),
            drawing: drawing.as_mut(),
            telemetry_alone: false,
            check: options.check,
        };
        let simulating = Stopwatch::start();
        let mut conclusion = epochs(&mut run, around, options.save_every, control.progress)?;
        let simulated = simulating.seconds();
        run.break_down(experiment.writer.as_mut())?;
        let crossed = run.crossed();
        let mut rows = rows(&run, self, &layout, &crossed);
        let beside = run.group_rows();
        let packet_hops_per_second =
            if simulated > 0.0 { crossed.packet_hops as f64 / simulated } else { 0.0 };
        let performance = experiment.performance(crossed.packet_hops);
        let performance = Performance { packet_hops_per_second, ..performance };
        if let Some(mut drawing) = drawing {
            drawing.close_regions(&run.ranks().iter().map(|rank| rank.end).collect::<Vec<_>>())?;
            drawing.finish()?;
        }
        let totals = totals(&run, self, &crossed);
        if let Some(writer) = &mut experiment.writer {
            run.write_tables(writer)?;
        }
        // The jobs alone need its memory.
        drop(run);
        if self.isolated && conclusion.ended == Ending::Finished {
            let isolated = Isolated { request: self, machine, layout: &layout, options, control };
            conclusion = isolated.compare(&placed, &mut rows, experiment.writer.as_mut())?;
        }
        let peak_memory_bytes = peak_memory().unwrap_or(0);
        let measured = |row| Measured { row, packet_hops_per_second, build_time_s, peak_memory_bytes };
        let rows = rows.into_iter().map(measured).collect();
        Ok(Findings { conclusion, rows, beside, totals, explained: Vec::new(), performance })
    }
}

/// Refuses times of start that are not one for each job.
fn check_starts(request: &ReplayRequest) -> Result<(), ExperimentError> {
    let (starts, jobs) = (request.starts.len(), request.traces.len());
    if starts == 0 || starts == jobs {
        return Ok(());
    }
    let example: Vec<&str> = (0..jobs).map(|job| if job == 0 { "0" } else { "10ms" }).collect();
    Err(ExperimentError::input(format!(
        "--start has {starts} time{} and there {} {jobs} trace{}; write one for each, such as --start {}",
        if starts == 1 { "" } else { "s" },
        if jobs == 1 { "is" } else { "are" },
        if jobs == 1 { "" } else { "s" },
        example.join(",")
    )))
}

/// Refuses what is told of the messages of ranks alone, where there are others.
fn check_beside(request: &ReplayRequest, options: &ExperimentOptions) -> Result<(), ExperimentError> {
    let Some(file) = &request.scenario else { return Ok(()) };
    let what = if request.data {
        "--data compares memory of ranks, and flows and services have none"
    } else if options.counts_links_by_job() {
        "--links-by-job tells jobs apart by their endpoints, at which there are flows and services too"
    } else {
        return Ok(());
    };
    Err(ExperimentError::input(format!("{what}; leave it out, or --scenario {}", file.name)))
}

/// Refuses to save, or to run again, what a stepped program keeps to itself.
fn check_saving(request: &ReplayRequest, options: &ExperimentOptions) -> Result<(), ExperimentError> {
    let stepped = request.traces.iter().find(|input| input.stepped.is_some());
    if let Some(input) = stepped.filter(|_| request.isolated) {
        return Err(ExperimentError::input(format!(
            "--isolated: {} is stepped as it runs, and cannot be run once more alone; leave the option out",
            input.name
        )));
    }
    match stepped.filter(|_| options.save_every.is_some()) {
        Some(input) => Err(ExperimentError::input(format!(
            "--save-every: the state of {} is its own, and cannot be saved; leave the option out",
            input.name
        ))),
        None => Ok(()),
    }
}

/// The programs that are to be run, by one thread, on their places.
pub(super) fn setup<'a>(
    request: &ReplayRequest,
    machine: &'a Machine,
    layout: &'a Layout,
    programs: Vec<Operations>,
) -> Result<Setup<'a>, ExperimentError> {
    setup_of(request, machine, layout, programs::place(request, machine, layout, programs)?)
}

/// The programs that have their places.
pub(super) fn setup_of<'a>(
    request: &ReplayRequest,
    machine: &'a Machine,
    layout: &'a Layout,
    programs: Vec<Program>,
) -> Result<Setup<'a>, ExperimentError> {
    let jobs = request.traces.len() as u32;
    let beside = request.scenario.as_ref();
    let beside = beside.map(|file| file.beside(machine, layout, request.seed)).transpose()?;
    // Jobs are told apart by their endpoints.
    let rates = if jobs > 1 && beside.is_none() { jobs } else { 0 };
    Ok(Setup {
        run: RUN,
        machine,
        layout,
        programs,
        starts: starts(request),
        names: request.traces.iter().map(|trace| trace.name.clone()).collect(),
        protocol: protocol(machine, request.wildcards)?,
        seed: request.seed,
        threads: 1,
        data: request.data,
        breakdown: request.breakdown,
        compute_scale: request.compute_scale,
        region: request.region,
        telemetry: None,
        follows_packets: false,
        by_job: ByJob { rates, links: false },
        beside,
        rtl: None,
    })
}

/// The times at which the jobs start.
fn starts(request: &ReplayRequest) -> Vec<Time> {
    let none = request.traces.iter().map(|_| Span::ZERO);
    let starts = if request.starts.is_empty() { none.collect() } else { request.starts.clone() };
    starts.into_iter().map(|start| Time::ZERO + start).collect()
}

/// The time and memory that the run will take.
fn estimate(
    machine: &Machine,
    layout: &Layout,
    operations: &[Operations],
) -> Result<Estimate, ExperimentError> {
    let seconds = operations.iter().map(|program| ranks::seconds(machine, layout, program));
    // Nobody knows the length of a program that is stepped.
    let stepped = operations.iter().any(|program| matches!(program, Operations::Stepped(_)));
    let wall_seconds = Some(seconds.sum::<Result<f64, _>>()?).filter(|_| !stepped);
    Ok(Estimate {
        wall_seconds,
        memory_bytes: ranks::memory(machine, operations),
        is_least: false,
        has_rtl: false,
    })
}

fn protocol(machine: &Machine, wildcards: Wildcards) -> Result<weft_msg::Protocol, ExperimentError> {
    let wildcards = match wildcards {
        Wildcards::Recorded => weft_msg::Wildcards::Recorded,
        Wildcards::Free => weft_msg::Wildcards::Free,
    };
    assembly::protocol(machine, wildcards).map_err(ExperimentError::input)
}

/// Runs epoch after epoch.
fn epochs(
    run: &mut RankRun,
    mut around: Surroundings<'_>,
    save_every: Option<Span>,
    progress: &dyn ProgressListener,
) -> Result<Conclusion, ExperimentError> {
    let every = save_every.filter(|_| around.writer.is_some());
    let mut next_save = every.map(|every| next_multiple(run.now(), every));
    loop {
        match run.step(next_save, &mut around)? {
            RunStep::Epoch => {
                let now = (run.now() - Time::ZERO).as_us_f64();
                progress.advance(run.share(), &format!("at {now:.1} us"));
            }
            RunStep::SaveDue => {
                let state = postcard::to_stdvec(&run.state()?).map_err(ExperimentError::input)?;
                if let Some(writer) = &mut around.writer {
                    writer.save(&state)?;
                }
                next_save = every.map(|every| next_multiple(run.now(), every));
            }
            RunStep::Ended(conclusion) => return Ok(conclusion),
        }
    }
}

/// A row for each trace.
pub(super) fn rows(
    run: &RankRun,
    request: &ReplayRequest,
    layout: &Layout,
    crossed: &Crossed,
) -> Vec<ReplayRow> {
    let ranks = run.ranks();
    let mut busiest = Busiest::new(Shared::BUSIEST);
    run.visit_links(&mut |link: LinkUse| busiest.see(link));
    let delivered = (0..request.traces.len()).map(|program| run.delivered(program).bytes.get()).sum();
    let delivered = Bytes::new(delivered);
    let shared = Shared {
        layout,
        end: run.end(),
        busiest: &busiest,
        packet_hops: crossed.packet_hops,
        counts: crossed.counts,
        energy: EnergyFigures::of(&crossed.energy, delivered),
        seed: request.seed,
        compared_bytes: request.data.then(|| run.compared().bytes.get()),
    };
    let region = request.region.and_then(|region| run.region(region));
    let calls = run.calls();
    let row = |(program, trace): (u32, &super::TraceInput)| {
        let own: Vec<RankReport> = ranks.iter().copied().filter(|rank| rank.program == program).collect();
        let delivered = run.delivered(program as usize);
        let first_rank = run.first_rank(program);
        let figures = match &region {
            Some(region) => region.figures(program, first_rank, &shared),
            None => Figures {
                calls: call_figures(program, &calls),
                ..figures(first_rank, &own, &delivered, &shared)
            },
        };
        let figures = Figures { breakdown: run.classes(program), ..figures };
        let job = request.has_jobs().then(|| job_figures(program, &own, &figures));
        let unrecorded = run.unrecorded(program);
        ReplayRow { run: RUN, trace: trace.name.clone(), unrecorded, job, figures }
    };
    (0..).zip(&request.traces).map(row).collect()
}

/// A job's figures beside those of its program, without those of the job alone.
fn job_figures(job: u32, ranks: &[RankReport], figures: &Figures) -> JobFigures {
    let start = ranks.iter().map(|rank| rank.start).min().unwrap_or(Time::ZERO);
    let us = |time: Time| (time - Time::ZERO).as_us_f64();
    let Figures { run_time_us, bytes, .. } = *figures;
    JobFigures {
        job,
        start_us: us(start),
        end_us: us(end_of(ranks)),
        throughput_gbps: if run_time_us > 0.0 { bytes as f64 * 8e-3 / run_time_us } else { 0.0 },
        isolated_run_time_us: None,
        slowdown: None,
    }
}

fn totals(run: &RankRun, request: &ReplayRequest, crossed: &Crossed) -> Totals {
    let delivered: Vec<_> = (0..request.traces.len()).map(|program| run.delivered(program)).collect();
    let mut totals = Totals {
        end: run.end(),
        messages: delivered.iter().map(|program| program.completion.count()).sum(),
        payload: Bytes::new(delivered.iter().map(|program| program.bytes.get()).sum()),
        ..Totals::default()
    };
    add_crossed(&mut totals, crossed);
    totals
}
