//! Virtual output queues: a queue per input, virtual channel and output, so that nothing waits behind
//! a packet for another output. Packets are routed when they arrive. The queues of an input and
//! virtual channel share its buffer and its credits.

use super::buffer::PacketQueue;
use super::crossbar::InputBuffers;
use super::port::BareOutputs;

/// A queue per input, virtual channel and output.
pub(crate) struct VirtualOutputQueued {
    outputs: usize,
    queues: Box<[PacketQueue]>,
}

impl InputBuffers for VirtualOutputQueued {
    const ROUTES_ON_ARRIVAL: bool = true;
    type Outputs = BareOutputs;

    fn new(requests: usize, outputs: usize) -> VirtualOutputQueued {
        VirtualOutputQueued { outputs, queues: vec![PacketQueue::EMPTY; requests * outputs].into() }
    }

    #[inline]
    fn queue_mut(&mut self, request: usize, output: usize) -> &mut PacketQueue {
        &mut self.queues[request * self.outputs + output]
    }

    #[inline]
    fn queue(&self, request: usize, output: usize) -> &PacketQueue {
        &self.queues[request * self.outputs + output]
    }

    /// Far more queues than packets.
    #[inline]
    fn prefetch(&self) {}

    #[inline]
    fn queues(&self) -> &[PacketQueue] {
        &self.queues
    }

    fn queues_mut(&mut self) -> &mut [PacketQueue] {
        &mut self.queues
    }

    fn request_of(&self, place: usize) -> usize {
        place / self.outputs
    }
}
