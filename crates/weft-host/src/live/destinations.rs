//! Destinations of messages: the place of their data in the memory of the rank that they are for.
//!
//! | message | its place |
//! |---|---|
//! | data of messaging | one buffer for each sender, as of a trace without addresses; or the program's |
//! | RDMA write | the piece of a region that the writer names |
//! | answer to an RDMA read | the reader's buffer |
//! | the same of virtual interfaces | what the initiator names: nothing is registered |
//! | anything else | 0: it comes by the mailbox, or is the library's |
//!
//! Places are given in the order of the rank's events in virtual time: what it has posted before counts
//! first.
//!
//! # Not modelled
//! The places of a collective's messages in the memory of real processes. An MPI library sends many of them
//! from vectors of its own, and which memory its heap gives it depends on how many notices it takes at a
//! time: that must change no result. The recorder, which sees the program's buffers alone, notes them.
//!
//! Of a message that goes by several rails, each part comes to the beginning of the buffer.

use super::header::{LiveHeader, LiveKind, LiveWrite};
use super::ports::PortPlace;
use super::{Handler, LiveHost};
use crate::virtual_interfaces::{Carried, What};
use weft_msg::Body;
use weft_nic::{HostContext, Incoming};
use weft_units::Address;

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// The place of the data of a message that is on its way.
    pub(super) fn destination(mut self, message: Incoming<'_, LiveHeader>) -> Address {
        let (seat, length) = (message.header.seat as usize, message.bytes.get());
        match message.header.kind {
            LiveKind::Message(sent) => match sent.envelope.body {
                Body::Data { receive, .. } => {
                    let reach = self.parameters.job.reach(self.host.ranks[seat].rank);
                    reach.expected.get(&receive.0).map_or(Address::default(), |expected| expected.place)
                }
                _ => Address::default(),
            },
            LiveKind::Write(LiveWrite { remote, key, .. }) => {
                self.end_turn_under_way();
                let rank = self.host.ranks[seat].rank;
                self.parameters.job.reach(rank).place_in_region(key, remote, length)
            }
            LiveKind::Answer { local, opening, .. } => {
                self.end_turn_under_way();
                let mut reach = self.parameters.job.reach(self.host.ranks[seat].rank);
                // A rank that has been closed since may be another program, which has not named this.
                if reach.opening == opening { reach.place(local, length) } else { Address::default() }
            }
            LiveKind::Interface(carried) => self.interface_destination(message.interface, &carried, length),
            LiveKind::Done { .. } | LiveKind::Read(_) => Address::default(),
        }
    }

    /// The place of data between virtual interfaces: none, where the interface would not take it.
    fn interface_destination(&mut self, interface: u16, carried: &Carried, length: u64) -> Address {
        let address = match carried.what {
            What::Put { remote, .. } => remote,
            What::Got { local } => local,
            What::Small | What::Get { .. } | What::Ended { .. } => return Address::default(),
        };
        // The rank may open or close it in its turn.
        self.end_turn_under_way();
        let place = PortPlace { endpoint: self.context.endpoint(), interface };
        let open = self.host.interfaces.get_mut(self.parameters.node_ports.port(place));
        let seat = open.filter(|open| open.place.domain() == carried.domain).map(|open| open.seat);
        seat.map_or(Address::default(), |seat| {
            self.parameters.job.reach(self.host.ranks[seat].rank).place(address, length)
        })
    }
}
