//! Runs points one after another, each on a network of its own.

use super::breakdown::Breakdown;
use super::plan::Point;
use crate::experiment::ranks::{self, ByJob, Drawing, RankRun, RunStep, Setup, Surroundings, Tally};
use crate::experiment::{Control, Estimate, ExperimentError, ExperimentOptions};
use serde::{Deserialize, Serialize};
use weft_machine::Machine;
use weft_network::Crossed;
use weft_results::{Conclusion, Ending, ResultsWriter, Stopwatch, Table};
use weft_topo::Layout;
use weft_units::memory::peak_memory;
use weft_units::{Bytes, RankId, Span, Time};
use weft_workload::osu::{Figures, Window};
use weft_workload::replay::{ComputeScale, Operations, Program, ReplayParameters};

/// The outcome of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub figures: Figures,
    /// The iteration that stands for the others: the last one, on the rank whose time counts or, of
    /// collectives, on the rank that ended last.
    pub typical: Option<Typical>,
    pub breakdown: Option<Breakdown>,
    pub compared_bytes: Option<u64>,
    pub crossed: Crossed,
    pub messages: u64,
    pub payload: Bytes,
    pub end: Time,
    pub packet_hops_per_second: f64,
    pub build_time_s: f64,
    pub peak_memory_bytes: u64,
}

/// An iteration on a rank's clock: what a breakdown explains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Typical {
    pub rank: RankId,
    pub window: Window,
}

/// The state of a command between two epochs: what a resumed one needs.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    /// Of the runs that are done.
    outcomes: Vec<Outcome>,
    run: Tally,
    network: Vec<u8>,
}

/// The settings that all points share.
pub(super) struct Series<'a> {
    pub machine: &'a Machine,
    pub layout: &'a Layout,
    pub seed: u64,
    /// Whether the typical iteration of each run is to be explained.
    pub breakdown: bool,
    /// Whether messages carry real bytes.
    pub data: bool,
    /// The interval of telemetry.
    pub telemetry: Option<Span>,
    pub options: &'a ExperimentOptions,
    pub control: Control<'a>,
}

/// How a series ended, with the runs that are done.
pub(super) struct Done {
    pub ended: Ending,
    pub detail: Option<String>,
    pub outcomes: Vec<Outcome>,
    /// The run that did not come to its end, if there is one.
    pub cut_short: Option<CutShort>,
}

/// The traffic of a run that did not come to its end.
pub(super) struct CutShort {
    /// The virtual time that it came to.
    pub at: Time,
    pub crossed: Crossed,
}

impl Point {
    /// For people: what is being done.
    pub fn doing(&self) -> String {
        let algorithm = self.algorithm.map_or(String::new(), |algorithm| format!(", {algorithm}"));
        format!("{}, {} ranks, {} B{algorithm}", self.benchmark, self.places.len(), self.bytes.get())
    }

    /// The operations of its ranks.
    fn operations(&self) -> Operations {
        Operations::Generated(self.program.clone())
    }

    /// The outcome of a finished run, from the clocks of its ranks.
    fn outcome(&self, run: &RankRun, hops_per_second: f64, build_time_s: f64) -> Outcome {
        let times = run.stopwatches();
        let last = |rank: usize| {
            let window = times[rank].last()?;
            Some(Typical { rank: RankId::from(rank), window })
        };
        let typical = match self.benchmark.timed_rank() {
            Some(rank) => last(rank as usize),
            None => (0..times.len()).filter_map(last).max_by_key(|typical| {
                // The first of equals.
                (typical.window.to, std::cmp::Reverse(typical.rank))
            }),
        };
        let delivered = run.delivered(0);
        Outcome {
            figures: self.program.figures(times),
            typical,
            breakdown: None,
            compared_bytes: run.moves_data().then(|| run.compared().bytes.get()),
            crossed: run.crossed(),
            messages: delivered.completion.count(),
            payload: delivered.bytes,
            end: run.end(),
            packet_hops_per_second: hops_per_second,
            build_time_s,
            peak_memory_bytes: peak_memory().unwrap_or(0),
        }
    }
}

impl Series<'_> {
    /// The time and memory that all points will take.
    pub fn estimate(&self, points: &[Point]) -> Result<Estimate, ExperimentError> {
        let mut estimate =
            Estimate { wall_seconds: Some(0.0), memory_bytes: 0, is_least: false, has_rtl: false };
        for point in points {
            let operations = point.operations();
            let memory = ranks::memory(self.machine, std::slice::from_ref(&operations));
            estimate.memory_bytes = estimate.memory_bytes.max(memory);
            let seconds = ranks::seconds(self.machine, self.layout, &operations)?;
            estimate.wall_seconds = estimate.wall_seconds.map(|sum| sum + seconds);
        }
        Ok(estimate)
    }

    /// The run of a point. `adjust` has it report more than the clocks, such as what a critical path is
    /// made of.
    pub fn start(
        &self,
        point: &Point,
        number: u32,
        saved: Option<(Tally, Vec<u8>)>,
        adjust: impl FnOnce(&mut ReplayParameters),
    ) -> Result<RankRun, ExperimentError> {
        let follows_packets = self.options.follows_packets(self.machine)?;
        let setup = Setup {
            follows_packets,
            run: number,
            machine: self.machine,
            layout: self.layout,
            programs: vec![Program { operations: point.operations(), places: point.places.to_vec() }],
            starts: vec![Time::ZERO],
            names: vec![point.benchmark.to_string()],
            protocol: (*point.protocol).clone(),
            seed: self.seed,
            threads: self.options.threads,
            data: self.data,
            breakdown: false,
            compute_scale: ComputeScale::default(),
            region: None,
            telemetry: self.telemetry.map(|every| self.options.looks(every)),
            by_job: ByJob::default(),
            beside: None,
            rtl: self.options.rtl.as_ref(),
        };
        RankRun::new(setup, saved, |parameters| {
            parameters.report_clocks = true;
            adjust(parameters);
        })
    }

    /// Runs the points that are not done yet.
    pub fn run(
        &self,
        points: &[Point],
        saved: Option<Saved>,
        mut writer: Option<&mut ResultsWriter>,
        mut drawing: Option<&mut Drawing>,
    ) -> Result<Done, ExperimentError> {
        let (mut outcomes, mut resumed) = match saved {
            Some(Saved { outcomes, run, network }) => (outcomes, Some((run, network))),
            None => (Vec::new(), None),
        };
        let mut since_saved = Span::ZERO;
        for (number, point) in points.iter().enumerate().skip(outcomes.len()) {
            let building = Stopwatch::start();
            let wants = |table| writer.as_deref().is_some_and(|writer| writer.wants(table));
            let mut run = self.start(point, number as u32, resumed.take(), |parameters| {
                parameters.wanted.messages = wants(Table::Messages);
                parameters.wanted.flows = wants(Table::Flows);
                parameters.wanted.timeline = drawing.is_some();
            })?;
            if let (0, Some(drawing)) = (number, drawing.as_deref_mut()) {
                drawing.name_tracks(run.seating(), &[point.benchmark.to_string()], self.layout)?;
            }
            let build_time_s = building.seconds();
            let simulating = Stopwatch::start();
            let hops_before = run.crossed().packet_hops;
            let mut around = Surroundings {
                interrupt: self.control.interrupt,
                writer: writer.as_deref_mut(),
                drawing: drawing.as_deref_mut(),
                check: self.options.check,
                telemetry_alone: false,
            };
            let mut saved_at = run.now();
            let Conclusion { ended, detail } = loop {
                let every = self.options.save_every.filter(|_| around.writer.is_some());
                let wait = every
                    .map(|every| Span::from_ps(every.as_ps().saturating_sub(since_saved.as_ps()).max(1)));
                match run.step(wait.map(|wait| saved_at.saturating_add(wait)), &mut around)? {
                    RunStep::Epoch => {}
                    RunStep::SaveDue => {
                        (since_saved, saved_at) = (Span::ZERO, run.now());
                        if let Some(writer) = &mut around.writer {
                            save(&outcomes, &mut run, writer)?;
                        }
                    }
                    RunStep::Ended(conclusion) => break conclusion,
                }
                let share = (number as f64 + run.share()) / points.len() as f64;
                self.control.progress.advance(share, &point.doing());
            };
            if ended != Ending::Finished {
                let detail = detail.map(|detail| format!("{}: {detail}", point.doing()));
                let cut_short = Some(CutShort { at: run.now(), crossed: run.crossed() });
                return Ok(Done { ended, detail, outcomes, cut_short });
            }
            since_saved = since_saved.saturating_add(run.now().saturating_since(saved_at));
            let wall = simulating.seconds();
            let hops = (run.crossed().packet_hops - hops_before) as f64;
            let mut outcome = point.outcome(&run, if wall > 0.0 { hops / wall } else { 0.0 }, build_time_s);
            if let (true, Some(typical)) = (self.breakdown, outcome.typical) {
                outcome.breakdown = self.explained(point, number as u32, typical)?;
                if outcome.breakdown.is_none() {
                    let cut_short = Some(CutShort { at: run.now(), crossed: run.crossed() });
                    return Ok(Done { ended: Ending::Interrupted, detail: None, outcomes, cut_short });
                }
            }
            outcomes.push(outcome);
            if let Some(writer) = writer.as_deref_mut() {
                run.write_tables(writer)?;
            }
            if let Some(drawing) = drawing.as_deref_mut() {
                drawing.next_run(run.end());
            }
        }
        Ok(Done { ended: Ending::Finished, detail: None, outcomes, cut_short: None })
    }
}

fn save(outcomes: &[Outcome], run: &mut RankRun, writer: &mut ResultsWriter) -> Result<(), ExperimentError> {
    let (tally, network) = run.state()?;
    let state = postcard::to_stdvec(&(outcomes, tally, network)).map_err(ExperimentError::input)?;
    Ok(writer.save(&state)?)
}
