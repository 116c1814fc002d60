//! Copies of packets for groups in a crossbar switch: see [replication](crate::switch::replication).

use super::{Crossbar, InputBuffers};
use crate::channel::Channel;
use crate::constants::Constants;
use crate::switch::SwitchContext;
use crate::switch::buffer::{BufferHandle, Buffered};

impl<B: InputBuffers> Crossbar<B> {
    /// Queues a copy at a replication port.
    pub(in crate::switch) fn queue_copy<T, S>(
        &mut self,
        through: Channel,
        copy: &Buffered,
        context: &SwitchContext<'_, T, S>,
    ) {
        let SwitchContext { now, constants, .. } = *context;
        let request = constants.channels.number(through);
        let queue = self.queues.queue_mut(request, copy.packet.channel().port.into());
        if queue.push(&mut self.buffer, copy) {
            let head = queue.head;
            self.request(request, head, now, constants);
        }
    }

    /// The switch with as many inputs as its ports are now. It must be empty.
    pub(in crate::switch) fn with_ports_again(self, constants: &Constants) -> Crossbar<B> {
        let arbiter = self.state.arbiter_state(constants);
        Crossbar::new(self.state, arbiter, constants.channels)
    }

    /// Whether a packet in the buffer is a copy, which has been routed.
    #[inline]
    pub(super) fn is_copy(&self, handle: BufferHandle) -> bool {
        self.buffer.get(handle).packet.is_multicast()
    }
}
