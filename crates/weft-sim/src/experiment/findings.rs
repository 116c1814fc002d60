//! The beginning and the end that experiments have in common.
//!
//! ```text
//!  machine, checked ──► all that may be refused ──► open: estimate, warnings, results ──► epochs
//!                                                                                           │
//!                                          Report ◄── run.json ◄── Findings ◄───────────────┘
//! ```

use super::explain::Explained;
use super::machine::{assumed, described, warn_of_failures, warn_of_order};
use super::scenario::GroupRow;
use super::{
    Control, Estimate, ExperimentError, ExperimentOptions, Manifest, Measured, Preparation, Report, Request,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_machine::Machine;
use weft_results::{Beginning, Conclusion, Performance, ResultsWriter, Totals};
use weft_topo::Layout;

/// An experiment that is under way.
pub struct ExperimentRun<'a> {
    pub(super) request: Request,
    pub(super) machine: &'a Machine,
    pub(super) options: &'a ExperimentOptions,
    pub(super) control: Control<'a>,
    /// The results, once open; `None`: only the report is wanted.
    pub(super) writer: Option<ResultsWriter>,
    /// To be dropped when the first network is built.
    pub(super) preparation: Option<Preparation>,
    pub(super) began: Beginning,
}

impl ExperimentRun<'_> {
    /// Says what will be taken, warns of failures of these seeds and of packets out of order, and opens the
    /// results.
    /// With them comes the state of the last snapshot, where the run resumes from it.
    ///
    /// It is for work that nothing speaks against: of what is refused nothing is estimated.
    pub(super) fn open<S: DeserializeOwned>(
        &mut self,
        layout: &Layout,
        estimate: Option<Estimate>,
        seeds: &[u64],
    ) -> Result<Option<S>, ExperimentError> {
        let progress = self.control.progress;
        let has_rtl = self.options.rtl.is_some();
        let estimate = estimate.map(|estimate| Estimate { has_rtl, ..estimate });
        estimate.into_iter().for_each(|estimate| progress.estimate(estimate));
        warn_of_failures(self.machine, layout, seeds, progress)?;
        warn_of_order(self.machine, layout, progress);
        if self.machine.flows && self.options.threads > 1 {
            progress.warn("--threads does nothing with flows: one thread solves their shares");
        }
        let (writer, saved) = self.options.open(&self.request)?;
        self.writer = writer;
        Ok(saved)
    }

    /// The speed so far, at which this process has simulated so many packet-hops.
    pub(super) fn performance(&self, packet_hops: u64) -> Performance {
        self.options.performance(&self.began, packet_hops)
    }
}

/// All that the report and `run.json` say of an experiment.
pub struct Findings<R> {
    pub(super) conclusion: Conclusion,
    pub(super) rows: Vec<Measured<R>>,
    /// The rows of what was beside ranks.
    pub(super) beside: Vec<GroupRow>,
    pub(super) totals: Totals,
    /// Explanations that cannot be made later.
    pub(super) explained: Vec<Explained>,
    pub(super) performance: Performance,
}

impl<R: Serialize> Findings<R> {
    /// Closes the results of `request` with `run.json`, and reports.
    pub(super) fn report(
        self,
        request: Request,
        machine: &Machine,
        writer: Option<ResultsWriter>,
    ) -> Result<Report<R>, ExperimentError> {
        let Findings { conclusion, rows, beside, totals, explained, performance } = self;
        let Conclusion { ended, detail } = conclusion;
        if let Some(writer) = writer {
            let values = rows.iter().map(|measured| serde_json::to_value(&measured.row));
            let values = values.chain(beside.iter().map(serde_json::to_value));
            let manifest = Manifest {
                detail: detail.clone(),
                rows: values.collect::<Result<_, _>>().map_err(ExperimentError::input)?,
                explained,
                assumed: assumed(machine),
                ..Manifest::new(request, described(machine), ended, totals)
            };
            writer.finish(manifest, performance.clone())?;
        }
        Ok(Report { ended, detail, rows, beside, performance })
    }
}
