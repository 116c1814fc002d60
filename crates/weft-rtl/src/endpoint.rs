//! The blocks of one endpoint in step.

use crate::block::{BlockInStep, BlockName};
use crate::counts::Counter;
use crate::difference::Difference;
use crate::library::{RtlError, RtlLibrary};
use crate::waves::{RecentChanges, Waves, WavesOfBlock};
use std::sync::Arc;
use weft_units::{Clock, EndpointId};

/// Cycles in which one block may run ahead of the others of its endpoint: waves are written behind the last.
const AHEAD: u64 = 256;

/// Where a block is, to name a difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPlace {
    pub block: &'static str,
    pub endpoint: EndpointId,
    pub clock: Clock,
}

impl BlockPlace {
    /// Compares a signal in a cycle.
    #[inline]
    pub fn compare(&self, edge: u64, signal: &'static str, rtl: u128, model: u128) -> Result<(), Difference> {
        if rtl == model { Ok(()) } else { Err(self.difference(edge, signal, rtl, model)) }
    }

    /// A signal that differs.
    #[cold]
    pub fn difference(&self, edge: u64, signal: &'static str, rtl: u128, model: u128) -> Difference {
        let BlockPlace { block, endpoint, clock, .. } = *self;
        Difference { block, endpoint, edge, at: clock.edge(edge), signal, rtl, model }
    }
}

/// A block of an endpoint.
pub(crate) struct BlockOfEndpoint {
    pub name: BlockName,
    pub block: Box<dyn BlockInStep>,
    pub counter: Counter,
    /// The last changes of its ports, where waves may be wanted of them.
    recent: Option<RecentChanges>,
}

impl BlockOfEndpoint {
    /// A block after its reset.
    ///
    /// # Errors
    /// The library has not what it needs.
    pub fn begin(
        library: &Arc<RtlLibrary>,
        name: BlockName,
        place: BlockPlace,
        has_waves: bool,
    ) -> Result<BlockOfEndpoint, RtlError> {
        let block = name.begin(library, place)?;
        let counter = Counter::new(block.rtl());
        let recent = has_waves.then(|| RecentChanges::new(block.rtl()));
        Ok(BlockOfEndpoint { name, block, counter, recent })
    }

    /// The next cycle, if it is before another.
    fn next_before(&self, before: u64) -> Option<u64> {
        self.block.next_cycle().filter(|cycle| *cycle < before)
    }

    /// Steps it as far as before a cycle, and keeps so many changes; with `waves`, all.
    ///
    /// # Errors
    /// The first difference.
    fn advance(&mut self, before: u64, keep: usize, mut waves: Option<&mut Waves>) -> Result<(), Difference> {
        while let Some(cycle) = self.next_before(before) {
            let stepped = self.block.step();
            self.counter.step(self.block.rtl());
            if let Some(recent) = &mut self.recent {
                recent.take(self.block.rtl(), cycle);
                match waves.as_deref_mut() {
                    Some(waves) => waves.step(cycle),
                    None => recent.keep(keep),
                }
            }
            stepped?;
        }
        Ok(())
    }

    /// The waves, where they are kept.
    fn waves(&self) -> Option<WavesOfBlock<'_>> {
        let recent = self.recent.as_ref()?;
        Some(WavesOfBlock { name: self.name.name(), rtl: self.block.rtl(), recent })
    }
}

/// The blocks of an endpoint.
pub(crate) struct EndpointInStep {
    pub name: String,
    pub blocks: Vec<BlockOfEndpoint>,
}

impl EndpointInStep {
    /// The next cycle of a block, where it is before one of the block's own.
    pub fn next_before(&self, before: impl Fn(BlockName) -> u64) -> Option<u64> {
        self.blocks.iter().filter_map(|block| block.next_before(before(block.name))).min()
    }

    /// Steps each block as far as before a cycle of its own, but not past a difference, and keeps so many
    /// changes of each. `waves` are those of this endpoint.
    ///
    /// # Errors
    /// The first difference.
    pub fn advance(
        &mut self,
        before: impl Fn(BlockName) -> u64,
        keep: usize,
        mut waves: Option<&mut Waves>,
    ) -> Result<(), Difference> {
        let mut first: Option<Difference> = None;
        loop {
            let past = first.as_ref().map_or(u64::MAX, |difference| difference.edge + 1);
            let Some(next) = self.next_before(|block| before(block).min(past)) else { break };
            let end = past.min(next + AHEAD);
            let mut passed = end;
            for block in &mut self.blocks {
                let before = before(block.name).min(end);
                passed = passed.min(before);
                if let Err(difference) = block.advance(before, keep, waves.as_deref_mut()) {
                    passed = passed.min(difference.edge + 1);
                    first = first.into_iter().chain([difference]).min_by_key(Difference::order);
                }
            }
            self.write(passed, keep, waves.as_deref_mut());
        }
        first.map_or(Ok(()), Err)
    }

    /// Steps all blocks as far as before a cycle behind a difference, whatever they put out.
    pub fn go_on(&mut self, before: u64, mut waves: Option<&mut Waves>) {
        for block in &mut self.blocks {
            while block.advance(before, usize::MAX, waves.as_deref_mut()).is_err() {}
        }
        self.write(before, usize::MAX, waves);
    }

    /// Writes what all blocks have passed.
    fn write(&mut self, before: u64, keep: usize, waves: Option<&mut Waves>) {
        let Some(waves) = waves else { return };
        waves.write(&self.waves(), before);
        self.blocks.iter_mut().filter_map(|block| block.recent.as_mut()).for_each(|recent| recent.keep(keep));
    }

    /// The waves of the blocks.
    pub fn waves(&self) -> Vec<WavesOfBlock<'_>> {
        self.blocks.iter().filter_map(BlockOfEndpoint::waves).collect()
    }
}
