//! All blocks in step: one of each kind at each endpoint where something happens.

use crate::block::BlockName;
use crate::counts::Counts;
use crate::difference::Difference;
use crate::endpoint::{BlockOfEndpoint, BlockPlace, EndpointInStep};
use crate::library::{RtlError, RtlLibrary};
use crate::waves::{WaveWindow, Waves, WavesError, WrittenWaves};
use crate::words::edge;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_nic::ExanetParameters;
use weft_nic::ports::{Crossing, PortEvent};
use weft_units::{Clock, EndpointId, Time};

/// Cycles for which the RTL goes on behind the end of the run.
const BEYOND: u64 = 400;
/// Cycles for which the RTL follows a run before it looks whether the user asks it to end.
const STRIDE: u64 = 1 << 16;
/// Cycles behind a difference that are in its waves.
const BEHIND_DIFFERENCE: u64 = 32;
/// Changes of ports that are kept for the waves of a difference: of all blocks, 32 bytes each, and of one.
const MOST_CHANGES: usize = 1 << 23;
const MOST_OF_BLOCK: usize = 1 << 13;

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
    /// The edge that the RTL has followed the run to.
    reached: u64,
    /// Cycles by which the slowest block is behind the run.
    behind: u64,
    /// The earliest difference so far: nothing is compared behind it.
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
        blocks.iter().try_for_each(|block| block.check(&library, parameters))?;
        Ok(LockStep {
            library,
            blocks: blocks.clone(),
            at,
            clock: parameters.mailbox.clock,
            endpoints: BTreeMap::new(),
            opened: BTreeMap::new(),
            waves: None,
            reached: 0,
            behind: blocks.iter().map(|block| block.behind()).max().unwrap_or_default(),
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
            in_step.blocks.iter_mut().for_each(|in_step| in_step.block.take(event));
        }
        Ok(())
    }

    fn begin(&mut self, endpoint: EndpointId, name: impl Fn(EndpointId) -> String) -> Result<(), RtlError> {
        let has_waves = self.waves.is_some();
        let begin = |block: &BlockName| {
            let place = BlockPlace { block: block.name(), endpoint, clock: self.clock };
            BlockOfEndpoint::begin(&self.library, *block, place, has_waves)
        };
        let blocks = self.blocks.iter().map(begin).collect::<Result<Vec<_>, RtlError>>()?;
        let mut in_step = EndpointInStep { name: name(endpoint), blocks };
        for event in self.opened.remove(&endpoint).unwrap_or_default() {
            in_step.blocks.iter_mut().for_each(|in_step| in_step.block.take(&event));
        }
        self.endpoints.insert(endpoint, in_step);
        Ok(())
    }

    /// Steps the RTL up to where the run is, but for what may still be reported, or until the user asks it to
    /// end. Returns the first difference, when no earlier one can come any more.
    pub fn advance(&mut self, now: Time, interrupt: &AtomicBool) -> Option<&Difference> {
        let now = edge(&self.clock, now);
        while self.reached < now && !interrupt.load(Ordering::Relaxed) {
            self.reached = now.min(self.reached + STRIDE);
            let reached = self.reached;
            self.step_before(|behind| reached.saturating_sub(behind));
        }
        let passed = self.reached.saturating_sub(self.behind);
        self.difference.as_ref().filter(|difference| difference.edge + BEHIND_DIFFERENCE < passed)
    }

    /// Steps the RTL to the end of a run. Returns the first difference.
    pub fn finish(&mut self, now: Time) -> Option<&Difference> {
        let end = edge(&self.clock, now) + BEYOND;
        self.step_before(|_| end);
        self.difference.as_ref()
    }

    /// The first difference so far, of a run that ends amid what is under way.
    pub fn difference(&self) -> Option<&Difference> {
        self.difference.as_ref()
    }

    /// Ends the file of waves, if there is one, of a run that is over at `end`: with the waves around the
    /// difference, if there is one.
    ///
    /// # Errors
    /// It could not be written, or has nothing in it.
    pub fn close(&mut self, end: Time) -> Result<Option<WrittenWaves>, WavesError> {
        let Some(mut waves) = self.waves.take() else { return Ok(None) };
        let of_difference = self.difference.as_ref().map(|difference| difference.endpoint);
        let in_step = of_difference.and_then(|endpoint| self.endpoints.get_mut(&endpoint));
        let (Some(difference), Some(in_step)) = (&self.difference, in_step) else {
            return waves.finish(end).map(Some);
        };
        let endpoint = difference.endpoint;
        let of_endpoint = Some(&mut waves).filter(|waves| waves.endpoint() == Some(endpoint));
        in_step.go_on(difference.edge + 1 + BEHIND_DIFFERENCE, of_endpoint);
        waves.finish_with(difference, &in_step.name, &in_step.waves(), end).map(Some)
    }

    /// The packets of each block that were compared, by endpoint.
    pub fn counts(&self) -> impl Iterator<Item = (EndpointId, BlockName, Counts)> {
        self.endpoints.iter().flat_map(|(endpoint, in_step)| {
            in_step.blocks.iter().map(|block| (*endpoint, block.name, block.counter.counts))
        })
    }

    /// Waves are of the endpoint that is stepped first.
    fn begin_waves(&mut self, before: impl Fn(u64) -> u64) {
        let Some(waves) = self.waves.as_mut().filter(|waves| waves.endpoint().is_none()) else { return };
        let next = |in_step: &EndpointInStep| in_step.next_before(|block| before(block.behind()));
        let all = self.endpoints.iter().filter_map(|it| Some((next(it.1)?, it)));
        if let Some((_, (endpoint, in_step))) = all.min_by_key(|(cycle, (endpoint, _))| (*cycle, **endpoint))
        {
            waves.declare(*endpoint, &in_step.name, &in_step.waves());
        }
    }

    /// Steps each block as far as before a cycle that depends on how far it is behind the run, and none past
    /// a difference.
    fn step_before(&mut self, before: impl Fn(u64) -> u64) {
        let blocks = self.endpoints.len() * self.blocks.len();
        let keep = (MOST_CHANGES / blocks.max(1)).min(MOST_OF_BLOCK);
        self.begin_waves(&before);
        for (endpoint, in_step) in &mut self.endpoints {
            let waves = self.waves.as_mut().filter(|waves| waves.endpoint() == Some(*endpoint));
            let past = self.difference.as_ref().map_or(u64::MAX, |difference| difference.edge + 1);
            let of_block = |block: BlockName| before(block.behind()).min(past);
            if let Err(difference) = in_step.advance(of_block, keep, waves) {
                let all = self.difference.take().into_iter().chain([difference]);
                self.difference = all.min_by_key(Difference::order);
            }
        }
    }
}
