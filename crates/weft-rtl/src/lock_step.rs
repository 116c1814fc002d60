//! All blocks in step: one of each kind at each endpoint where something happens.

use crate::difference::Difference;
use crate::endpoint::{BlockInStep, BlockPlace, EndpointInStep};
use crate::library::{RtlError, RtlLibrary};
use crate::mailbox::{self, MailboxInStep};
use crate::packetizer::{self, PacketizerInStep};
use crate::rdma_receive::{self, RdmaReceiveInStep};
use crate::segmentation::{self, SegmentationInStep};
use crate::waves::Waves;
use crate::words::edge;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::ports::{Crossing, PortEvent};
use weft_nic::segmentation::Cut;
use weft_units::{Clock, EndpointId, Time};

/// Cycles by which the RTL is behind the run: what happens at a time is reported up to a packet later.
const BEHIND: u64 = 32;
/// Cycles for which the RTL goes on behind the end of the run.
const BEYOND: u64 = 400;

/// A block that there is RTL of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BlockName {
    /// TR-488 §4.4.
    Mailbox,
    /// TR-488 §4.4.
    Packetizer,
    /// The receive unit of TR-488 §4.5.
    RdmaReceive,
    /// The send unit of TR-488 §4.5.
    Segmentation,
}

impl BlockName {
    /// The name, as in `rtl/`.
    pub const fn name(self) -> &'static str {
        match self {
            BlockName::Mailbox => mailbox::NAME,
            BlockName::Packetizer => packetizer::NAME,
            BlockName::RdmaReceive => rdma_receive::NAME,
            BlockName::Segmentation => segmentation::NAME,
        }
    }

    fn check(self, library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
        match self {
            BlockName::Mailbox => mailbox::check(library, parameters),
            BlockName::Packetizer => packetizer::check(library, parameters),
            BlockName::RdmaReceive => rdma_receive::check(library, parameters),
            BlockName::Segmentation => segmentation::check(library, parameters),
        }
    }

    fn begin(self, run: &LockStep, place: BlockPlace) -> Result<Box<dyn BlockInStep>, RtlError> {
        let library = &run.library;
        Ok(match self {
            BlockName::Mailbox => Box::new(MailboxInStep::new(library, place)?),
            BlockName::Packetizer => Box::new(PacketizerInStep::new(library, place)?),
            BlockName::RdmaReceive => Box::new(RdmaReceiveInStep::new(library, place, run.cut)?),
            BlockName::Segmentation => Box::new(SegmentationInStep::new(library, place, run.cut)?),
        })
    }
}

impl FromStr for BlockName {
    type Err = RtlError;

    fn from_str(text: &str) -> Result<BlockName, RtlError> {
        let all =
            [BlockName::Mailbox, BlockName::Packetizer, BlockName::RdmaReceive, BlockName::Segmentation];
        let found = all.into_iter().find(|block| block.name() == text);
        found.ok_or_else(|| RtlError::UnknownBlock(text.to_owned()))
    }
}

/// The RTL of a run.
pub struct LockStep {
    library: Arc<RtlLibrary>,
    blocks: BTreeSet<BlockName>,
    /// Endpoints whose blocks are in step; `None`: all.
    at: Option<BTreeSet<EndpointId>>,
    clock: Clock,
    cut: Cut,
    endpoints: BTreeMap<EndpointId, EndpointInStep>,
    /// Interfaces that are open, of endpoints where nothing else has happened.
    opened: BTreeMap<EndpointId, Vec<PortEvent>>,
    waves: Option<Waves>,
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
        blocks.iter().try_for_each(|block| block.check(library, parameters))?;
        Ok(LockStep {
            library: Arc::clone(library),
            blocks: blocks.clone(),
            at,
            clock: parameters.mailbox.clock,
            cut: parameters.rdma.send.cut,
            endpoints: BTreeMap::new(),
            opened: BTreeMap::new(),
            waves: None,
            difference: None,
        })
    }

    /// Writes the waves of the first endpoint where something happens.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn write_waves(&mut self, path: &Path) -> io::Result<()> {
        self.waves = Some(Waves::create(path, self.clock)?);
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
            self.opened.entry(endpoint).or_default().push(*event);
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
            Ok((block.name(), block.begin(self, place)?))
        };
        let mut blocks = self.blocks.iter().map(begin).collect::<Result<Vec<_>, RtlError>>()?;
        for event in self.opened.remove(&endpoint).unwrap_or_default() {
            blocks.iter_mut().for_each(|(_, block)| block.take(&event));
        }
        if let Some(waves) = self.waves.as_mut().filter(|waves| waves.endpoint.is_none()) {
            let all: Vec<_> = blocks.iter().map(|(name, block)| (*name, block.rtl())).collect();
            waves.declare(endpoint, &name(endpoint), &all);
        }
        self.endpoints.insert(endpoint, EndpointInStep { blocks });
        Ok(())
    }

    /// Steps the RTL up to where the run is, but for what may still be reported. Returns the first
    /// difference.
    pub fn advance(&mut self, now: Time) -> Option<&Difference> {
        let before = edge(&self.clock, now).saturating_sub(BEHIND);
        self.step_before(before)
    }

    /// Steps the RTL to the end of a run. Returns the first difference.
    pub fn finish(&mut self, now: Time) -> Option<&Difference> {
        self.step_before(edge(&self.clock, now) + BEYOND)
    }

    /// Ends the file of waves, if there is one.
    ///
    /// # Errors
    /// It could not be written.
    pub fn close(&mut self) -> Result<(), (PathBuf, io::Error)> {
        self.waves.take().map_or(Ok(()), Waves::finish)
    }

    fn step_before(&mut self, before: u64) -> Option<&Difference> {
        if self.difference.is_none() {
            for (endpoint, in_step) in &mut self.endpoints {
                let waves = self.waves.as_mut().filter(|waves| waves.endpoint == Some(*endpoint));
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
