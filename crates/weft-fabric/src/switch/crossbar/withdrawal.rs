//! Withdrawal of packets from a crossbar switch: see [withdrawal](crate::switch::withdrawal).

use super::{Crossbar, InputBuffers};
use crate::channel::Channel;
use crate::constants::Constants;
use crate::fault::LossCause;
use crate::packet::Packet;
use crate::switch::{Sink, SwitchContext};
use weft_topo::Routing;
use weft_units::Time;

impl<B: InputBuffers> Crossbar<B> {
    /// See [`Switch::withdraw`](crate::switch::Switch::withdraw).
    pub(in crate::switch) fn withdraw<T: Routing>(
        &mut self,
        cause: impl Fn(Channel, &Packet) -> Option<LossCause>,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        let SwitchContext { now, constants, .. } = *context;
        for place in 0..self.queues.queues().len() {
            let request = self.queues.request_of(place);
            let from = constants.channels.channel(request);
            let queue = &mut self.queues.queues_mut()[place];
            if usize::from(from.port) >= self.state.links() || queue.is_empty() {
                continue;
            }
            let head = queue.head;
            let output = self.buffer.get(head).packet.channel().port;
            let withdrawn = queue.take_out(&mut self.buffer, |packet| cause(from, packet).is_some());
            let next = queue.head;
            for &handle in &withdrawn {
                let buffered = self.buffer.get(handle);
                if B::ROUTES_ON_ARRIVAL || handle == head {
                    self.state.give_up(output, &buffered.packet, constants);
                }
                self.state.withdraw((from, buffered), cause(from, &buffered.packet), context);
            }
            if withdrawn.first() == Some(&head) {
                self.end_request(request, output.into(), now, constants);
                if !next.is_none() {
                    if !B::ROUTES_ON_ARRIVAL {
                        self.state.route(self.buffer.get_mut(next), from, context);
                    }
                    self.request(request, next, now, constants);
                }
            }
            withdrawn.into_iter().for_each(|handle| self.buffer.remove(handle));
        }
    }

    /// The head of `request`, which wanted `output`, is there no more.
    fn end_request(&mut self, request: usize, output: usize, now: Time, constants: &Constants) {
        self.requests[output * self.words as usize + request / 64] &= !(1 << (request % 64));
        self.starvation.forget(output, request, constants.channels);
        self.state.end_stall(output, now);
        if self.requests_of(output).iter().all(|&word| word == 0) {
            self.state.look_only_at(output, Time::NEVER);
        } else {
            self.state.look_no_later_than(output, constants.switch.clock.edge_at_or_after(now));
        }
    }
}
