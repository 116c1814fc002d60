//! All blocks in step: one of each kind at each endpoint where something happens.

use crate::block::BlockName;
use crate::difference::Difference;
use crate::endpoint::{BlockPlace, EndpointInStep};
use crate::library::{RtlError, RtlLibrary};
use crate::waves::{WaveWindow, Waves, WavesError};
use crate::words::edge;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::ports::{Crossing, PortEvent};
use weft_units::{Clock, EndpointId, Time};

/// Cycles for which the RTL goes on behind the end of the run.
const BEYOND: u64 = 400;

/// The RTL of a run.
pub struct LockStep {
    library: Arc<RtlLibrary>,
    blocks: BTreeSet<BlockName>,
    /// Endpoints whose blocks are in step; `None`: all.
    at: Option<BTreeSet<EndpointId>>,
    clock: Clock,
    endpoints: BTreeMap<EndpointId, EndpointInStep>,
    /// Interfaces that are open, of endpoints where nothing else has happened.
    opened: BTreeMap<EndpointId, Vec<PortEvent>>,
    waves: Option<Waves>,
    /// Cycles by which the RTL is behind the run.
    behind: u64,
    /// The first difference: nothing is compared behind it.
    difference: Option<Difference>,
}

impl LockStep {
    /// The blocks of a machine in step with its run, at some endpoints or at all.
    ///
    /// # Errors
    /// A library that does not fit the machine.
    pub fn new(
        library: &Arc<RtlLibrary>,
        blocks: &BTreeSet<BlockName>,
        parameters: &ExanetParameters,
        at: Option<BTreeSet<EndpointId>>,
    ) -> Result<LockStep, RtlError> {
        let library = library.of_machine(parameters);
        blocks.iter().try_for_each(|block| library.check_bus(block.name()))?;
        blocks.iter().try_for_each(|block| block.check(&library, parameters))?;
        let behind: BTreeSet<u64> = blocks.iter().map(|block| block.behind()).collect();
        // The accelerator's vectors are known as they are only so far behind the run.
        if blocks.contains(&BlockName::Allreduce) && behind.len() > 1 {
            return Err(RtlError::Apart);
        }
        Ok(LockStep {
            library,
            blocks: blocks.clone(),
            at,
            clock: parameters.mailbox.clock,
            endpoints: BTreeMap::new(),
            opened: BTreeMap::new(),
            waves: None,
            behind: behind.last().copied().unwrap_or_default(),
            difference: None,
        })
    }

    /// Writes the waves of the first endpoint where something happens.
    ///
    /// # Errors
    /// The file cannot be made, or the window has no time in it.
    pub fn write_waves(&mut self, path: &Path, window: WaveWindow) -> Result<(), WavesError> {
        self.waves = Some(Waves::create(path, self.clock, window)?);
        Ok(())
    }

    /// Takes what has crossed ports: the events of an endpoint in their order. `name` names endpoints.
    ///
    /// # Errors
    /// The library has not what its blocks need.
    pub fn take(&mut self, event: &PortEvent, name: impl Fn(EndpointId) -> String) -> Result<(), RtlError> {
        let endpoint = event.endpoint;
        if self.at.as_ref().is_some_and(|at| !at.contains(&endpoint)) {
            return Ok(());
        }
        if let Crossing::Opened { .. } = event.what
            && !self.endpoints.contains_key(&endpoint)
        {
            self.opened.entry(endpoint).or_default().push(event.clone());
            return Ok(());
        }
        if !self.endpoints.contains_key(&endpoint) {
            self.begin(endpoint, name)?;
        }
        if let Some(in_step) = self.endpoints.get_mut(&endpoint) {
            in_step.blocks.iter_mut().for_each(|(_, block)| block.take(event));
        }
        Ok(())
    }

    fn begin(&mut self, endpoint: EndpointId, name: impl Fn(EndpointId) -> String) -> Result<(), RtlError> {
        let clock = self.clock;
        let begin = |block: &BlockName| {
            let place = BlockPlace { block: block.name(), endpoint, clock };
            Ok((block.name(), block.begin(&self.library, place)?))
        };
        let mut blocks = self.blocks.iter().map(begin).collect::<Result<Vec<_>, RtlError>>()?;
        for event in self.opened.remove(&endpoint).unwrap_or_default() {
            blocks.iter_mut().for_each(|(_, block)| block.take(&event));
        }
        if let Some(waves) = self.waves.as_mut().filter(|waves| waves.endpoint().is_none()) {
            let all: Vec<_> = blocks.iter().map(|(name, block)| (*name, block.rtl())).collect();
            waves.declare(endpoint, &name(endpoint), &all);
        }
        self.endpoints.insert(endpoint, EndpointInStep { blocks });
        Ok(())
    }

    /// Steps the RTL up to where the run is, but for what may still be reported. Returns the first
    /// difference.
    pub fn advance(&mut self, now: Time) -> Option<&Difference> {
        let before = edge(&self.clock, now).saturating_sub(self.behind);
        self.step_before(before)
    }

    /// Steps the RTL to the end of a run. Returns the first difference.
    pub fn finish(&mut self, now: Time) -> Option<&Difference> {
        self.step_before(edge(&self.clock, now) + BEYOND)
    }

    /// Ends the file of waves, if there is one, of a run that is over at `end`.
    ///
    /// # Errors
    /// It could not be written, or has nothing in it.
    pub fn close(&mut self, end: Time) -> Result<(), WavesError> {
        self.waves.take().map_or(Ok(()), |waves| waves.finish(end))
    }

    fn step_before(&mut self, before: u64) -> Option<&Difference> {
        if self.difference.is_none() {
            for (endpoint, in_step) in &mut self.endpoints {
                let waves = self.waves.as_mut().filter(|waves| waves.endpoint() == Some(*endpoint));
                if let Err(difference) = in_step.advance(before, waves) {
                    // The earliest, whichever endpoint is looked at first.
                    let earliest = self.difference.take().into_iter().chain([difference]);
                    self.difference = earliest.min_by_key(|difference| (difference.at, difference.endpoint));
                }
            }
        }
        self.difference.as_ref()
    }
}
