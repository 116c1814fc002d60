//! Runs a replay: from the request to results and report.
//!
//! ```text
//!  open, check, place ──► RankRun ──► epoch ──► epoch ──► … ──► rows
//!                                       │ progress
//!                                       └ at the times of --save-every: snapshot
//! ```

use super::programs;
use super::{Figures, ReplayReport, ReplayRequest, ReplayRow, Wildcards};
use crate::assembly;
use crate::experiment::busiest::Busiest;
use crate::experiment::machine::{assumed, described};
use crate::experiment::ranks::{
    self, Drawing, RankRun, Setup, Shared, Step, Surroundings, Tally, figures, next_multiple,
};
use crate::experiment::{Context, Estimate, ExperimentError, Measured, Request, RunOptions, add_crossed};
use crate::machine::{self, Machine};
use crate::network::{Crossed, LinkUse};
use crate::results::{
    Ending, Performance, ResultsWriter, RunManifest, Stopwatch, Table, Totals, date, peak_memory,
};
use weft_topo::Layout;
use weft_trace::Trace;
use weft_units::{Bytes, Time};
use weft_workload::replay::{Operations, RankReport, Wanted};

/// The traces of a command run side by side in one virtual time: they are one run of its tables.
pub(super) const RUN: u32 = 0;

/// Replays the traces together.
pub fn run(
    request: &ReplayRequest,
    options: &RunOptions,
    context: Context<'_>,
) -> Result<ReplayReport, ExperimentError> {
    let (started, stopwatch) = (date(), Stopwatch::start());
    let input = &request.machine;
    let machine =
        machine::check_text(&input.name, &input.text, &input.sets).map_err(ExperimentError::input)?;
    let traces = programs::open(request)?;
    let estimate = estimate(&machine, &operations(&traces))?;
    assembly::check_memory(&machine, Bytes::new(estimate.memory_bytes)).map_err(ExperimentError::input)?;
    context.progress.estimate(estimate);
    let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;

    let (mut writer, saved) = match &options.output {
        Some(output) => {
            let (writer, saved) = output.open(&Request::Replay(request.clone()))?;
            (Some(writer), saved)
        }
        None => (None, None),
    };
    let saved = saved.map(|bytes| read_state(&bytes)).transpose()?;

    let building = Stopwatch::start();
    let wants = |table| writer.as_ref().is_some_and(|writer| writer.wants(table));
    let (messages, flows) = (wants(Table::Messages), wants(Table::Flows));
    let setup = setup(request, &machine, &layout, traces, options.threads)?;
    let names = setup.names.clone();
    let mut run = RankRun::new(setup, saved, |parameters| {
        let messages = messages || request.breakdown;
        parameters.wanted = Wanted { messages, flows, timeline: options.timeline.is_some() };
    })?;
    let mut drawing = options.timeline.as_deref().map(Drawing::create).transpose()?;
    if let Some(drawing) = &mut drawing {
        drawing.name_tracks(run.seating(), &names, &layout)?;
    }
    let build_time_s = building.seconds();

    let simulating = Stopwatch::start();
    let (ended, detail) = epochs(&mut run, options, context, writer.as_mut(), drawing.as_mut())?;
    let simulated = simulating.seconds();
    run.break_down(writer.as_mut())?;
    let crossed = run.crossed();
    let rows = rows(&run, request, &layout, &crossed);
    let mut performance = Performance::measured(options, started, &stopwatch, crossed.packet_hops);
    let packet_hops_per_second = if simulated > 0.0 { crossed.packet_hops as f64 / simulated } else { 0.0 };
    performance.packet_hops_per_second = packet_hops_per_second;
    if let Some(drawing) = drawing {
        drawing.finish()?;
    }
    if let Some(mut writer) = writer {
        run.write_tables(&mut writer)?;
        let totals = totals(&rows, run.end(), &crossed);
        let rows = rows.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        let manifest = RunManifest {
            detail: detail.clone(),
            rows: rows.map_err(ExperimentError::input)?,
            assumed: assumed(&machine),
            ..RunManifest::new(Request::Replay(request.clone()), described(&machine), ended, totals)
        };
        writer.finish(manifest, performance.clone())?;
    }
    let peak_memory_bytes = peak_memory().unwrap_or(0);
    let measured = |row| Measured { row, packet_hops_per_second, build_time_s, peak_memory_bytes };
    Ok(ReplayReport { ended, detail, rows: rows.into_iter().map(measured).collect(), performance })
}

/// The operations of the traces.
pub(super) fn operations(traces: &[Trace]) -> Vec<Operations> {
    traces.iter().cloned().map(Operations::from).collect()
}

/// What is to be run.
pub(super) fn setup<'a>(
    request: &ReplayRequest,
    machine: &'a Machine,
    layout: &'a Layout,
    traces: Vec<Trace>,
    threads: u32,
) -> Result<Setup<'a>, ExperimentError> {
    Ok(Setup {
        run: RUN,
        machine,
        layout,
        programs: programs::place(request, machine, layout, traces)?,
        names: request.traces.iter().map(|trace| trace.name.clone()).collect(),
        protocol: protocol(machine, request.wildcards)?,
        seed: request.seed,
        threads,
        data: request.data,
        breakdown: request.breakdown,
    })
}

/// What the run will take.
fn estimate(machine: &Machine, operations: &[Operations]) -> Result<Estimate, ExperimentError> {
    let seconds = operations.iter().map(|program| ranks::seconds(machine, program));
    let wall_seconds = Some(seconds.sum::<Result<f64, _>>()?);
    Ok(Estimate { wall_seconds, memory_bytes: ranks::memory(machine, operations) })
}

fn protocol(machine: &Machine, wildcards: Wildcards) -> Result<weft_msg::Protocol, ExperimentError> {
    let wildcards = match wildcards {
        Wildcards::Recorded => weft_msg::Wildcards::Recorded,
        Wildcards::Free => weft_msg::Wildcards::Free,
    };
    assembly::protocol(machine, wildcards).map_err(ExperimentError::input)
}

/// A snapshot: what was counted, then the network's state.
fn read_state(bytes: &[u8]) -> Result<(Tally, Vec<u8>), ExperimentError> {
    postcard::from_bytes(bytes).map_err(|error| {
        ExperimentError::input(format!(
            "the saved state cannot be read: {error}; it was written by another version of weft or is damaged"
        ))
    })
}

/// Runs epoch after epoch.
fn epochs(
    run: &mut RankRun,
    options: &RunOptions,
    context: Context<'_>,
    writer: Option<&mut ResultsWriter>,
    drawing: Option<&mut Drawing>,
) -> Result<(Ending, Option<String>), ExperimentError> {
    let every = options.save_every.filter(|_| writer.is_some());
    let mut next_save = every.map(|every| next_multiple(run.now(), every));
    let mut around = Surroundings { interrupt: context.interrupt, writer, drawing, check: options.check };
    loop {
        match run.step(next_save, &mut around)? {
            Step::Epoch => {
                let now = (run.now() - Time::ZERO).as_us_f64();
                context.progress.advance(run.share(), &format!("at {now:.1} us"));
            }
            Step::SaveDue => {
                let state = postcard::to_stdvec(&run.state()?).map_err(ExperimentError::input)?;
                if let Some(writer) = &mut around.writer {
                    writer.save(&state)?;
                }
                next_save = every.map(|every| next_multiple(run.now(), every));
            }
            Step::Ended(ending, detail) => return Ok((ending, detail)),
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
    let shared = Shared {
        layout,
        end: run.end(),
        busiest: &busiest,
        packet_hops: crossed.packet_hops,
        packets_dropped: crossed.faults.lost(),
        seed: request.seed,
        compared_bytes: request.data.then(|| run.compared().bytes.get()),
    };
    let row = |(program, trace): (u32, &super::TraceInput)| {
        let own: Vec<RankReport> = ranks.iter().copied().filter(|rank| rank.program == program).collect();
        let delivered = run.delivered(program as usize);
        let figures = figures(run.first_rank(program), &own, &delivered, &shared);
        let figures = Figures { breakdown: run.classes(program), ..figures };
        ReplayRow { run: RUN, trace: trace.name.clone(), figures }
    };
    (0..).zip(&request.traces).map(row).collect()
}

fn totals(rows: &[ReplayRow], end: Time, crossed: &Crossed) -> Totals {
    let mut totals = Totals {
        end,
        messages: rows.iter().map(|row| row.figures.messages).sum(),
        payload: Bytes::new(rows.iter().map(|row| row.figures.bytes).sum()),
        ..Totals::default()
    };
    add_crossed(&mut totals, crossed);
    totals
}
