//! Input queues: one first-in first-out queue per input and virtual channel.
//!
//! Only the head of a queue is routed and requests an output; what stands behind it waits although its
//! own output may be free (head-of-line blocking, Karol, Hluchyj, Morgan 1987).

use super::buffer::PacketQueue;
use super::crossbar::InputBuffers;
use super::port::BareOutputs;
use weft_engine::prefetch;

/// A queue per input and virtual channel.
pub(crate) struct InputQueued {
    queues: Box<[PacketQueue]>,
}

impl InputBuffers for InputQueued {
    const ROUTES_ON_ARRIVAL: bool = false;
    type Outputs = BareOutputs;

    fn new(requests: usize, _outputs: usize) -> InputQueued {
        InputQueued { queues: vec![PacketQueue::EMPTY; requests].into() }
    }

    #[inline]
    fn queue_mut(&mut self, request: usize, _output: usize) -> &mut PacketQueue {
        &mut self.queues[request]
    }

    #[inline]
    fn queue(&self, request: usize, _output: usize) -> &PacketQueue {
        &self.queues[request]
    }

    #[inline]
    fn prefetch(&self) {
        prefetch(&*self.queues);
    }

    #[inline]
    fn queues(&self) -> &[PacketQueue] {
        &self.queues
    }

    fn queues_mut(&mut self) -> &mut [PacketQueue] {
        &mut self.queues
    }

    fn request_of(&self, place: usize) -> usize {
        place
    }
}
