//! Queues of a switch as its routing sees them: bytes that wait for an output, and those in the buffer
//! behind its link.
//!
//! ```text
//!   inputs: waiting ──► output ──line──► buffer behind: taken, as far as credits have not returned
//!           └──────────────── queued ──────────────┘
//! ```

use super::port::{Port, SwitchState};
use crate::channel::ChannelNumbers;
use crate::constants::Constants;
use crate::credit::{Credits, ReturningCredits};
use crate::parameters::CreditUnit;
use crate::receive_buffer::is_endpoint;
use weft_topo::LocalView;
use weft_units::{PortId, SwitchId, Time};

/// All that says what is before the outputs of a switch.
pub(super) struct Occupancy<'a> {
    ports: &'a [Port],
    credits: &'a [Credits],
    returning: &'a ReturningCredits,
    /// Space of the empty buffers behind a link between switches, by virtual channel.
    spaces: &'a [u32],
    /// The same behind the link to an endpoint, for all of them.
    receive_buffer: u32,
    channels: ChannelNumbers,
    unit: CreditUnit,
}

impl<'a> Occupancy<'a> {
    #[inline(always)]
    pub(super) fn new(
        (ports, credits, returning): (&'a [Port], &'a [Credits], &'a ReturningCredits),
        constants: &'a Constants,
    ) -> Occupancy<'a> {
        let Constants { buffers: spaces, channels, .. } = constants;
        let (channels, unit) = (*channels, constants.switch.credit);
        let receive_buffer = constants.receive_buffer.unwrap_or(0);
        Occupancy { ports, credits, returning, spaces, receive_buffer, channels, unit }
    }

    /// Bytes that wait for or occupy the buffer behind an output, at `now`.
    #[inline]
    pub(super) fn queued(&self, output: usize, now: Time) -> u64 {
        // Here and below loops, and neither `sum` nor `zip`, which quick builds would call for each output.
        let mut freed = 0;
        for (time, credit) in self.returning.of(output) {
            freed += if time <= now { credit.amount } else { 0 };
        }
        self.beyond(output, freed)
    }

    /// The same, where `freed` of the credits have returned and are not counted yet.
    #[inline]
    fn beyond(&self, output: usize, freed: u32) -> u64 {
        let credits = &self.credits[self.channels.of_port(output)];
        let to_endpoint = is_endpoint(self.ports[output].peer);
        let mut taken = 0;
        for (vc, credits) in credits.iter().enumerate() {
            taken += credits.taken_of(if to_endpoint { self.receive_buffer } else { self.spaces[vc] });
        }
        self.unit.bytes(taken - freed).get() + u64::from(self.ports[output].waiting)
    }
}

/// The view that a routing has of its switch, and of what others have published.
pub(super) struct QueueView<'a> {
    pub(super) now: Time,
    pub(super) constants: &'a Constants,
    pub(super) state: &'a mut SwitchState,
    /// Whether all credits that have returned by now are counted.
    pub(super) has_counted: bool,
}

impl LocalView for QueueView<'_> {
    #[inline]
    fn queued(&self, port: PortId) -> u64 {
        let SwitchState { ports, credits, returning, .. } = &*self.state;
        let own = Occupancy::new((ports, credits, returning), self.constants);
        match self.has_counted {
            true => own.beyond(port.index(), 0),
            false => own.queued(port.index(), self.now),
        }
    }

    #[inline]
    fn take_stock(&mut self) {
        let SwitchState { credits, returning, .. } = &mut *self.state;
        returning.count(self.now, credits, self.constants.channels);
        self.has_counted = true;
    }

    #[inline]
    fn published(&self, switch: SwitchId, port: PortId) -> u64 {
        self.constants.board.queued(switch, port, self.now)
    }

    #[inline]
    fn turn(&mut self) -> u32 {
        self.state.routing_pointer = self.state.routing_pointer.wrapping_add(1);
        self.state.routing_pointer
    }

    #[inline]
    fn random(&mut self) -> u64 {
        self.state.rng.next_u64()
    }
}

/// The same where links of the switch may be off: their queues are longer than any other.
pub(super) struct LinkStateView<'a>(pub(super) QueueView<'a>);

impl LocalView for LinkStateView<'_> {
    fn queued(&self, port: PortId) -> u64 {
        self.0.state.longest_if_off(port.index(), self.0.queued(port), self.0.now)
    }

    fn take_stock(&mut self) {
        self.0.take_stock();
    }

    fn published(&self, switch: SwitchId, port: PortId) -> u64 {
        self.0.published(switch, port)
    }

    fn turn(&mut self) -> u32 {
        self.0.turn()
    }

    fn random(&mut self) -> u64 {
        self.0.random()
    }
}
