//! Each job alone: the same machine, seed, places and start, and nobody else.
//!
//! ```text
//!   together   a ────────────┤      run time of a beside b
//!                 b ──────────────┤
//!   alone      a ────────┤          isolated run time of a: the slow-down is their ratio
//!                 b ──────────┤     from its own start on, at the same edges of clocks
//! ```
//! The other jobs are there without ranks, so that the job keeps its number, its traffic class and the seats
//! of its ranks. What is beside the ranks is not there.

use super::run::{rows, setup_of};
use super::{ReplayRequest, ReplayRow};
use crate::experiment::ranks::{ByJob, RankRun, RunStep, Setup, Surroundings};
use crate::experiment::{Control, ExperimentError, ExperimentOptions};
use std::sync::Arc;
use weft_machine::Machine;
use weft_results::{Conclusion, Ending, ResultsWriter};
use weft_topo::Layout;
use weft_trace::op::Op;
use weft_units::RankId;
use weft_workload::replay::{Generated, Operations, Program};

/// A replay whose jobs are to run alone.
pub(super) struct Isolated<'a> {
    pub request: &'a ReplayRequest,
    pub machine: &'a Machine,
    pub layout: &'a Layout,
    pub options: &'a ExperimentOptions,
    pub control: Control<'a>,
}

/// A job without ranks.
struct Nobody;

impl Generated for Nobody {
    fn name(&self) -> &'static str {
        "nobody"
    }

    fn ranks(&self) -> u32 {
        0
    }

    fn operations(&self, _: RankId) -> u64 {
        0
    }

    fn operation(&self, _: RankId, _: u64) -> Option<Op> {
        None
    }
}

impl Isolated<'_> {
    /// Runs each of these jobs alone, and adds what that says to the rows. Telemetry of the rates of jobs
    /// goes on in the writer.
    pub fn compare(
        &self,
        placed: &[Program],
        rows: &mut [ReplayRow],
        mut writer: Option<&mut ResultsWriter>,
    ) -> Result<Conclusion, ExperimentError> {
        for (number, row) in rows.iter_mut().enumerate() {
            let alone = |(other, program): (usize, &Program)| match other == number {
                true => program.clone(),
                false => Program { operations: Operations::Generated(Arc::new(Nobody)), places: Vec::new() },
            };
            let programs = placed.iter().enumerate().map(alone).collect();
            let doing = format!("{} alone", row.trace);
            let time = match self.run_alone((number, programs), &doing, writer.as_deref_mut())? {
                Ok(time) => time,
                Err(Conclusion { ended, detail }) => {
                    let detail = detail.map(|detail| format!("{doing}: {detail}"));
                    return Ok(Conclusion { ended, detail });
                }
            };
            let together = row.figures.run_time_us;
            if let Some(job) = &mut row.job {
                job.isolated_run_time_us = Some(time);
                job.slowdown = (time > 0.0).then(|| together / time);
            }
        }
        Ok(Ending::Finished.into())
    }

    /// The run time of a job alone in us, or why it has none.
    fn run_alone(
        &self,
        (number, programs): (usize, Vec<Program>),
        doing: &str,
        mut writer: Option<&mut ResultsWriter>,
    ) -> Result<Result<f64, Conclusion>, ExperimentError> {
        let Isolated { request, machine, layout, options, control } = self;
        let setup = setup_of(request, machine, layout, programs)?;
        let by_job = ByJob { rates: setup.by_job.rates.min(1), links: false };
        // Of a job alone telemetry is the rate of the job.
        let looks = request.telemetry.map(|every| options.looks(every));
        let telemetry = looks.filter(|_| by_job.rates > 0 && writer.is_some());
        let threads = options.threads;
        let setup = Setup { threads, breakdown: false, by_job, telemetry, beside: None, ..setup };
        let mut run = RankRun::new(setup, None, |_| ())?;
        let mut around = Surroundings {
            writer: writer.as_deref_mut(),
            check: options.check,
            telemetry_alone: true,
            ..Surroundings::alone(control.interrupt)
        };
        let conclusion = loop {
            match run.step(None, &mut around)? {
                RunStep::Ended(conclusion) => break conclusion,
                RunStep::Epoch | RunStep::SaveDue => control.progress.advance(run.share(), doing),
            }
        };
        if let Some(writer) = writer {
            run.finish_telemetry(writer)?;
        }
        if conclusion.ended != Ending::Finished {
            return Ok(Err(conclusion));
        }
        let rows = rows(&run, request, layout, &run.crossed());
        Ok(Ok(rows[number].figures.run_time_us))
    }
}
