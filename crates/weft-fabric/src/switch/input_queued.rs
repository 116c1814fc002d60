//! Input queues: one first-in first-out queue per input and virtual channel.
//!
//! Only the head of a queue is routed and requests an output; what stands behind it waits although its
//! own output may be free (head-of-line blocking, Karol, Hluchyj, Morgan 1987).

use super::buffer::Queue;
use super::crossbar::InputBuffers;
use super::port::BareOutputs;
use weft_engine::prefetch;

/// A queue per input and virtual channel.
pub(crate) struct InputQueued {
    queues: Box<[Queue]>,
}

impl InputBuffers for InputQueued {
    const ROUTES_ON_ARRIVAL: bool = false;
    type Outputs = BareOutputs;

    fn new(requests: usize, _outputs: usize) -> InputQueued {
        InputQueued { queues: vec![Queue::EMPTY; requests].into() }
    }

    #[inline]
    fn queue_mut(&mut self, request: usize, _output: usize) -> &mut Queue {
        &mut self.queues[request]
    }

    #[inline]
    fn queue(&self, request: usize, _output: usize) -> &Queue {
        &self.queues[request]
    }

    #[inline]
    fn prefetch(&self) {
        prefetch(&*self.queues);
    }

    #[inline]
    fn queues(&self) -> &[Queue] {
        &self.queues
    }

    fn queues_mut(&mut self) -> &mut [Queue] {
        &mut self.queues
    }

    fn request_of(&self, place: usize) -> usize {
        place
    }
}
