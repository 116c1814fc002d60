//! Withdrawal: a switch drops packets from the midst of its input buffers.
//!
//! ```text
//!   input 2, vc 1  ▢ ▣ ▢ ▣ ──►  ▢ ▢       ▣: dropped, with its cause; its space is free as if it had left
//! ```
//! Packets in input buffers have been granted nothing yet. What has been granted an output is on its way
//! through the pipeline, in an output buffer or on the line, and goes on.

use super::buffer::Buffered;
use super::{Sink, SwitchContext, SwitchState};
use crate::channel::Channel;
use crate::constants::Constants;
use crate::credit::{Credit, TailOut};
use crate::fault::LossCause;
use crate::packet::Packet;
use weft_units::Time;

impl SwitchState {
    /// A packet in an input buffer is dropped. Its space is free as if it had been granted at the next clock
    /// edge, or when its tail has come.
    pub(super) fn withdraw<T>(
        &mut self,
        (from, buffered): (Channel, &Buffered),
        cause: Option<LossCause>,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        let SwitchContext { now, constants, .. } = *context;
        cause.into_iter().for_each(|cause| cause(&mut self.failover.ledger.counts));
        let edge = constants.switch.clock.edge_at_or_after(now);
        let left = buffered.tail().max(constants.through_pipeline(edge));
        if !constants.has_credits {
            return self.expect_departure(from, buffered.space, left, constants);
        }
        let credit = Credit { channel: from, amount: buffered.space };
        self.give_back(credit, TailOut { granted: now, left }, constants, context.sink);
    }

    /// A routed packet no longer waits for its output.
    pub(super) fn give_up(&mut self, output: u16, packet: &Packet, constants: &Constants) {
        self.ports[usize::from(output)].waiting -= constants.packet_bytes(packet).get() as u32;
    }

    /// Ends the stall of an output: the packets that waited for its credits may be there no more.
    pub(super) fn end_stall(&mut self, output: usize, now: Time) {
        let port = &mut self.ports[output];
        if std::mem::take(&mut port.stalls) {
            self.stalls[output].end(now);
            self.stalling -= 1;
        }
    }
}
