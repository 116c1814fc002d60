//! Experiments: typed requests go in, typed reports come out.
//!
//! ```text
//!  options ──► Request ──► Experiment::run(ExperimentOptions, Control) ──► Report
//!                │                         where to write,    Ctrl-C,
//!                │                         threads            progress
//!                └─► run.json: the whole of what decides the results
//! ```
//!
//! A [`Request`] holds everything that the results depend on, the text of the machine file included, so
//! that it can be run again from `run.json` alone. [`ExperimentOptions`] hold the rest.

pub mod app;
mod busiest;
mod control;
mod energy;
mod error;
pub mod explain;
mod findings;
pub mod kernels;
mod link_table;
pub mod live;
pub mod load;
pub mod machine;
mod message_table;
mod options;
pub mod osu;
mod output;
mod packet_table;
pub mod path;
mod ranks;
pub mod replay;
mod report;
mod request;
mod rtl;
mod saved;
pub mod scenario;
pub mod trace;
pub mod traffic;
pub mod validate;

pub use control::{Control, Estimate, Interrupt, Preparation, ProgressListener, Silent};
pub use energy::EnergyFigures;
pub use error::ExperimentError;
pub use findings::{ExperimentRun, Findings};
pub use options::ExperimentOptions;
pub use output::{Manifest, Output, Start, read_manifest, read_request};
pub use ranks::Placement;
pub use report::{Measured, Report};
pub use request::{MachineInput, Request};
pub use rtl::{BlockCompared, RtlOptions, RtlTally, WavesOptions};
pub use weft_rtl::WavesError;

use serde::Serialize;
use weft_fabric::Stuck;
use weft_machine::Machine;
use weft_network::Crossed;
use weft_results::{Beginning, Conclusion, Ending, Totals};

/// An experiment on a machine: a request that makes rows.
pub trait Experiment {
    /// A row of its report.
    type Row: Serialize;

    /// The machine that it runs on.
    fn machine(&self) -> &MachineInput;

    /// The request that results keep.
    fn request(&self) -> Request;

    /// The machine as the experiment takes it.
    fn adapted(&self, machine: Machine) -> Machine {
        machine
    }

    /// Refuses what cannot be done, opens the results and does the work.
    ///
    /// # Errors
    /// As of [`Experiment::run`].
    fn findings(&self, run: &mut ExperimentRun<'_>) -> Result<Findings<Self::Row>, ExperimentError>;

    /// Runs it. An interrupted run reports the rows that were measured.
    ///
    /// # Errors
    /// A machine that cannot be simulated, work that the machine cannot do, and results that cannot be
    /// written.
    fn run(
        &self,
        options: &ExperimentOptions,
        control: Control<'_>,
    ) -> Result<Report<Self::Row>, ExperimentError> {
        let (began, request, writer) = (Beginning::now(), self.request(), None);
        let preparation = options.is_unwritten().then(|| control.interrupt.prepare());
        let machine = &self.adapted(machine::checked(self.machine())?);
        let mut run = ExperimentRun { request, machine, options, control, writer, preparation, began };
        let findings = self.findings(&mut run)?;
        findings.report(run.request, machine, run.writer)
    }
}

/// Adds to the totals of a command what has crossed links in one of its runs.
pub(crate) fn add_crossed(totals: &mut Totals, crossed: &Crossed) {
    totals.packets += crossed.packets;
    totals.packet_hops += crossed.packet_hops;
    totals.counts += crossed.counts;
    energy::add(totals, &crossed.energy);
}

/// The conclusion of a run in which nothing moves any more.
pub(crate) fn conclusion(stuck: &Stuck) -> Conclusion {
    let lines = |title: &str, lines: &[String]| {
        lines.iter().fold(title.to_owned(), |text, line| format!("{text}\n  {line}"))
    };
    match stuck {
        Stuck::Deadlock { cycle } => {
            Conclusion::new(Ending::Deadlock, lines("these buffers wait for one another", cycle))
        }
        Stuck::Blocked { waiting } => {
            Conclusion::new(Ending::NoProgress, lines("nothing moves any more", waiting))
        }
    }
}
