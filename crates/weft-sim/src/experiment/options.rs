//! How an experiment runs: what its results do not depend on.

use super::rtl::RtlOptions;
use super::{ExperimentError, Output, Request, Start};
use crate::telemetry::TelemetryLooks;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use weft_machine::{Fabric, Machine};
use weft_results::{Beginning, Performance, ResultsWriter, Table};
use weft_units::Span;

/// How an experiment runs: what its results do not depend on.
#[derive(Clone, Debug)]
pub struct ExperimentOptions {
    /// Threads that simulate.
    pub threads: u32,
    /// The destination of results; `None`: only the report is wanted.
    pub output: Option<Output>,
    /// Whether results can be read while they are written.
    pub live: bool,
    /// Virtual time between two snapshots; `None`: none is stored.
    pub save_every: Option<Span>,
    /// The file of a timeline for Perfetto.
    pub timeline: Option<PathBuf>,
    /// Whether to check conservation of packets, credits and bytes as the run goes.
    pub check: bool,
    /// Whether telemetry may look more often, and write more, than is refused by default.
    pub unlimited: bool,
    /// The RTL that runs in step with the model; `None`: none does.
    pub rtl: Option<RtlOptions>,
    /// The command as typed, for `performance.json`.
    pub command: Vec<String>,
}

/// One thread, and nothing but the report.
impl Default for ExperimentOptions {
    fn default() -> ExperimentOptions {
        ExperimentOptions {
            threads: 1,
            output: None,
            live: false,
            save_every: None,
            timeline: None,
            check: false,
            unlimited: false,
            rtl: None,
            command: Vec::new(),
        }
    }
}

impl ExperimentOptions {
    /// Whether the run writes nothing but its report.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.output.is_none() && self.timeline.is_none()
    }

    /// Looks at links and queues at this interval.
    pub(crate) fn looks(&self, every: Span) -> TelemetryLooks {
        TelemetryLooks { every, unlimited: self.is_unlimited() }
    }

    /// Whether what is refused for its size is written all the same: that was asked for, or it has begun.
    fn is_unlimited(&self) -> bool {
        let begins = |output: &Output| matches!(output.start, Start::Fresh(_));
        self.unlimited || !self.output.as_ref().is_some_and(begins)
    }

    /// Whether the table of packets is wanted, of which a machine has some.
    ///
    /// # Errors
    /// It has none, or the run is to be saved.
    pub fn follows_packets(&self, machine: &Machine) -> Result<bool, ExperimentError> {
        match (&machine.fabric, self.save_every) {
            (Fabric::Ideal { .. }, _) => {
                self.follows_none("the ideal network has no links that packets wait for")?;
            }
            _ if machine.flows => self.follows_none("messages are fluids here, and no packets")?,
            (_, Some(_)) => self.follows_none("a run that is saved does not follow them")?,
            _ => {}
        }
        Ok(self.wants_packets() || self.counts_links_by_job())
    }

    /// Whether links are counted by job.
    pub(crate) fn counts_links_by_job(&self) -> bool {
        self.wants(Table::JobLinks)
    }

    /// Refuses the table of packets for this reason, where it is wanted.
    pub(crate) fn follows_none(&self, wrong: &str) -> Result<(), ExperimentError> {
        let option = match (self.wants_packets(), self.counts_links_by_job()) {
            (true, _) => "--tables packets",
            (false, true) => "--links-by-job",
            (false, false) => return Ok(()),
        };
        Err(ExperimentError::input(format!("{option}: {wrong}; leave it out")))
    }

    fn wants_packets(&self) -> bool {
        self.wants(Table::Packets)
    }

    fn wants(&self, table: Table) -> bool {
        self.output.as_ref().is_some_and(|output| output.tables.contains(&table))
    }

    /// Opens the results that are asked for. With them comes the state of the last snapshot, where the run
    /// resumes from it.
    ///
    /// # Errors
    /// A directory that cannot be written or resumed, and a state that does not read.
    pub(crate) fn open<S: DeserializeOwned>(
        &self,
        request: &Request,
    ) -> Result<(Option<ResultsWriter>, Option<S>), ExperimentError> {
        let Some(output) = &self.output else { return Ok((None, None)) };
        let (mut writer, state) = output.open(request)?;
        if self.live {
            writer.go_live()?;
        }
        let state = state.map(|bytes| postcard::from_bytes(&bytes)).transpose().map_err(|error| {
            ExperimentError::input(format!(
                "the saved state cannot be read: {error}; it was written by another version of weft or is \
                 damaged: run the command again"
            ))
        })?;
        Ok((Some(writer), state))
    }

    /// The speed of a command that began at `began`.
    pub(crate) fn performance(&self, began: &Beginning, packet_hops: u64) -> Performance {
        Performance {
            command: self.command.clone(),
            threads: self.threads,
            ..Performance::measured(began, packet_hops)
        }
    }
}
