//! The packetizer in the place of its model: when a packet is made, what becomes of its channel, when it is
//! repeated and given up is what the RTL does.
//!
//! At each question the RTL has been stepped up to a few cycles before the run's time, with all that has
//! crossed its ports. It is saved, runs ahead until it shows the answer, and is put back. While it looks for
//! a packet that is made, the network takes whatever is offered.

use super::inputs::{NetworkTakes, PacketizerInputs, PacketizerOutputs, PacketizerPorts, begin};
use super::number_of;
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::words::{edge, message_of};
use std::sync::Arc;
use weft_nic::edge_form::{ChannelExpiry, EdgePacketizer};
use weft_nic::gvas::Pdid;
use weft_nic::packetizer::{ChannelId, ChannelState};
use weft_nic::ports::{SmallAnswer, StoredParcel};
use weft_units::{Clock, EndpointId, Time};

/// Cycles by which the RTL stays behind the run: an answer has been on the bus before its tail is reported.
const BEHIND: u64 = 8;
/// Cycles from an answer to the change of its channel, at most.
const MOST_TO_CHANGE: u64 = 64;
/// Cycles to a packet that is made, at most: each channel has one before it. One that is not made is taken to
/// be made then, and found to be missing by the RTL in step.
const MOST_TO_MAKE: u64 = 1 << 14;

/// The block.
pub(crate) struct PacketizerInPlace {
    endpoint: EndpointId,
    clock: Clock,
    rtl: Instance,
    ports: PacketizerPorts,
    inputs: PacketizerInputs,
}

impl PacketizerInPlace {
    /// The packetizer of an endpoint, after its reset.
    pub fn new(
        library: &Arc<RtlLibrary>,
        endpoint: EndpointId,
        clock: Clock,
    ) -> Result<PacketizerInPlace, RtlError> {
        let (rtl, ports, inputs) = begin(library, endpoint)?;
        Ok(PacketizerInPlace { endpoint, clock, rtl, ports, inputs })
    }

    /// Steps the RTL up to a few cycles before `now`.
    fn advance(&mut self, now: Time) {
        let before = edge(&self.clock, now).saturating_sub(BEHIND);
        while let Some(cycle) = self.inputs.next_cycle().filter(|cycle| *cycle < before) {
            self.inputs.step(&mut self.rtl, &self.ports, cycle, NetworkTakes::InTurn);
        }
    }

    /// Runs ahead, for so many cycles behind `now` at most, until `look` has found what it looks for.
    fn ahead<T>(
        &mut self,
        now: Time,
        most: u64,
        takes: NetworkTakes,
        mut look: impl FnMut(u64, &PacketizerOutputs) -> Option<T>,
    ) -> Option<T> {
        let inputs = self.inputs.clone();
        self.rtl.save();
        let end = edge(&self.clock, now) + most;
        let mut found = None;
        while let Some(cycle) = self.inputs.next_cycle().filter(|cycle| *cycle < end) {
            let outputs = self.inputs.step(&mut self.rtl, &self.ports, cycle, takes);
            found = look(cycle, &outputs);
            if found.is_some() {
                break;
            }
        }
        self.rtl.restore();
        self.inputs = inputs;
        found
    }

    /// Runs ahead until the packet of a message is made, at `from` or later, or its channel has timed out.
    /// What is on the bus before may be a packet of the post before.
    fn made(&mut self, channel: ChannelId, message: u32, now: Time, from: Time) -> Option<u64> {
        let from = edge(&self.clock, from);
        let (index, timed_out) = (self.inputs.index(channel), number_of(ChannelState::TimedOut));
        let mut header = None;
        let look = |cycle, outputs: &PacketizerOutputs| {
            if outputs.change == Some((index, timed_out)) {
                return Some(None);
            }
            if outputs.valid == 0 {
                return None;
            }
            let began = *header.get_or_insert(cycle);
            if outputs.last != 0 {
                header = None;
            }
            let is_it = began >= from && outputs.last != 0 && message_of(outputs.data) == (message, channel);
            is_it.then_some(Some(began))
        };
        let found = self.ahead(now, MOST_TO_MAKE, NetworkTakes::All, look);
        found.unwrap_or_else(|| Some(edge(&self.clock, now) + MOST_TO_MAKE))
    }
}

impl EdgePacketizer for PacketizerInPlace {
    fn open(&mut self, interface: u16, domain: Pdid, at: Time) {
        self.inputs.open(interface, domain, edge(&self.clock, at));
    }

    fn store(&mut self, parcel: &StoredParcel, now: Time) -> Time {
        self.advance(now);
        self.inputs.stored(parcel, self.endpoint, &self.clock);
        let message = parcel.parcel.message;
        // A channel that is stored to has no packet that could time out.
        let made = self.made(parcel.channel, message, now, parcel.came).unwrap_or_default();
        self.inputs.made(parcel.channel, message, made);
        self.clock.edge(made)
    }

    fn send(&mut self, channel: ChannelId, message: u32, at: Time) {
        self.inputs.turn(channel, message, edge(&self.clock, at), false);
    }

    fn drop_stale(&mut self, channel: ChannelId, message: u32, at: Time) {
        self.inputs.turn(channel, message, edge(&self.clock, at), true);
    }

    fn answer(&mut self, answer: &SmallAnswer, at: Time) -> Option<ChannelState> {
        self.advance(at);
        self.inputs.answered(answer, self.endpoint, at, &self.clock);
        let states = [ChannelState::Acknowledged, ChannelState::NegativelyAcknowledged];
        let index = self.inputs.index(answer.channel);
        let look = |_, outputs: &PacketizerOutputs| {
            let (channel, state) = outputs.change?;
            states.into_iter().find(|known| channel == index && number_of(*known) == state)
        };
        self.ahead(at, MOST_TO_CHANGE, NetworkTakes::InTurn, look)
    }

    fn expire(&mut self, channel: ChannelId, message: u32, at: Time) -> ChannelExpiry {
        self.advance(at);
        match self.made(channel, message, at, at) {
            Some(made) => {
                self.inputs.made(channel, message, made);
                ChannelExpiry::Repeated(self.clock.edge(made))
            }
            None => ChannelExpiry::GivenUp,
        }
    }

    fn made_behind(&mut self, channel: ChannelId, message: u32, at: Time) -> Time {
        // A channel that is stored to has no packet that could time out.
        let made = self.made(channel, message, at, at).unwrap_or_default();
        self.inputs.made(channel, message, made);
        self.clock.edge(made)
    }
}
