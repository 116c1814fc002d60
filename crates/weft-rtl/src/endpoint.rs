//! The blocks of one endpoint in step.

use crate::block::BlockInStep;
use crate::difference::Difference;
use crate::waves::Waves;
use weft_units::{Clock, EndpointId};

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

/// The blocks of an endpoint.
pub(crate) struct EndpointInStep {
    pub blocks: Vec<(&'static str, Box<dyn BlockInStep>)>,
}

impl EndpointInStep {
    /// Steps the blocks, in the order of their cycles, as far as before a cycle.
    ///
    /// # Errors
    /// The first difference.
    pub fn advance(&mut self, before: u64, mut waves: Option<&mut Waves>) -> Result<(), Difference> {
        loop {
            let next = self.blocks.iter().filter_map(|(_, block)| block.next_cycle()).min();
            let Some(cycle) = next.filter(|cycle| *cycle < before) else { return Ok(()) };
            for (name, block) in &mut self.blocks {
                if block.next_cycle() == Some(cycle) {
                    let stepped = block.step();
                    if let Some(waves) = waves.as_deref_mut() {
                        waves.sample(name, block.rtl(), cycle);
                    }
                    stepped?;
                }
            }
        }
    }
}
