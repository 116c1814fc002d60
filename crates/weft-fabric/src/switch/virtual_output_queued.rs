//! Virtual output queues: a queue per input, virtual channel and output, so that nothing waits behind
//! a packet for another output. Packets are routed when they arrive. The queues of an input and
//! virtual channel share its buffer and its credits.

use super::crossbar::InputBuffers;
use super::pool::{NONE, Queue};
use serde::{Deserialize, Serialize};

/// A queue per input, virtual channel and output.
#[derive(Serialize, Deserialize)]
pub(crate) struct VirtualOutputQueues {
    outputs: usize,
    queues: Vec<Queue>,
}

impl InputBuffers for VirtualOutputQueues {
    const ROUTES_ON_ARRIVAL: bool = true;

    fn new(requests: usize, outputs: usize) -> VirtualOutputQueues {
        VirtualOutputQueues { outputs, queues: vec![Queue::EMPTY; requests * outputs] }
    }

    #[inline]
    fn queue_mut(&mut self, request: usize, output: usize) -> &mut Queue {
        &mut self.queues[request * self.outputs + output]
    }

    #[inline]
    fn queue(&self, request: usize, output: usize) -> &Queue {
        &self.queues[request * self.outputs + output]
    }

    /// Far more queues than packets.
    #[inline]
    fn prefetch(&self) {}

    fn heads(&self) -> Vec<(usize, u32)> {
        let heads = self.queues.iter().enumerate().map(|(index, q)| (index / self.outputs, q.head));
        heads.filter(|&(_, head)| head != NONE).collect()
    }
}
