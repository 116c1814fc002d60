//! RTL of the interface in step with a run.

use super::ExperimentError;
use std::collections::BTreeSet;
use std::path::PathBuf;
use weft_machine::{Fabric, Machine, Nic};
use weft_nic::ports::PortEvent;
use weft_rtl::{BlockName, LockStep, RtlError, RtlLibrary};
use weft_topo::{Layout, Topology};
use weft_units::{EndpointId, Time};

/// The RTL that runs in step with the model.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtlOptions {
    /// Names of blocks.
    pub blocks: Vec<String>,
    /// Names of the endpoints whose blocks they are; empty: all.
    pub at: Vec<String>,
    /// The file for waves of the first run.
    pub waves: Option<PathBuf>,
}

/// The RTL of a run, and the names of its endpoints.
pub(crate) struct RtlOfRun {
    lock_step: LockStep,
    layout: Layout,
    difference: Option<String>,
}

impl RtlOptions {
    /// The RTL of a run of this number.
    pub(crate) fn begin(
        &self,
        machine: &Machine,
        layout: &Layout,
        run: u32,
    ) -> Result<RtlOfRun, ExperimentError> {
        let blocks = self.blocks.iter().map(|name| name.parse::<BlockName>());
        let blocks = blocks.collect::<Result<BTreeSet<_>, _>>().map_err(ExperimentError::input)?;
        let parameters = match &machine.nic {
            Nic::Exanet(nic) => nic.parameters(0),
            Nic::Carvnet(nic) => nic.parameters(0),
            _ => {
                let block = blocks.first().map_or("such block", |block| block.name());
                return Err(ExperimentError::input(RtlError::NoBlock(block)));
            }
        };
        if machine.flows || matches!(machine.fabric, Fabric::Ideal { .. }) {
            return Err(ExperimentError::input(
                "--rtl: blocks of the interface take packets word by word, and this network has none; take \
                 packets with --set fabric.kind=packet",
            ));
        }
        let at = self.at.iter().map(|name| layout.endpoint(name)).collect::<Result<BTreeSet<_>, _>>();
        let at = at.map_err(ExperimentError::input)?;
        let at = Some(at).filter(|at| !at.is_empty());
        let library = RtlLibrary::load(&RtlLibrary::place()).map_err(ExperimentError::input)?;
        let lock_step = LockStep::new(&library, &blocks, &parameters, at);
        let mut lock_step = lock_step.map_err(ExperimentError::input)?;
        if let (0, Some(path)) = (run, &self.waves) {
            lock_step.write_waves(path).map_err(|error| file_error(path, &error))?;
        }
        Ok(RtlOfRun { lock_step, layout: layout.clone(), difference: None })
    }
}

fn file_error(path: &std::path::Path, error: &std::io::Error) -> ExperimentError {
    ExperimentError::input(format!("--waves {}: {error}; name a file that can be written", path.display()))
}

impl RtlOfRun {
    /// Takes what has crossed ports up to `now`, and steps the RTL.
    pub(crate) fn take(&mut self, events: &[PortEvent], now: Time) -> Result<(), ExperimentError> {
        let name = |endpoint: EndpointId| self.layout.endpoint_name(endpoint);
        for event in events {
            self.lock_step.take(event, name).map_err(ExperimentError::input)?;
        }
        let difference = self.lock_step.advance(now);
        self.difference = difference.map(|difference| difference.tell(&name(difference.endpoint)));
        Ok(())
    }

    /// Steps the RTL to the end of a run that is over at `now`.
    pub(crate) fn finish(&mut self, now: Time) -> Result<(), ExperimentError> {
        let name = |endpoint: EndpointId| self.layout.endpoint_name(endpoint);
        let difference = self.lock_step.finish(now);
        self.difference = difference.map(|difference| difference.tell(&name(difference.endpoint)));
        self.lock_step.close().map_err(|(path, error)| file_error(&path, &error))
    }

    /// The first difference, in words.
    pub(crate) fn difference(&self) -> Option<&str> {
        self.difference.as_deref()
    }
}
