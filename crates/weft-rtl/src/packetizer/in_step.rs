//! The packetizer in step with its model.
//!
//! The network takes a packet in the cycle in which the model's does: the RTL has to offer it by then, and no
//! earlier than the model's engine has made it.

use super::inputs::{NetworkTakes, PacketizerInputs, PacketizerOutputs, PacketizerPorts, begin};
use super::{check, number_of};
use crate::block::BlockInStep;
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::library::{Instance, RtlError, RtlLibrary};
use crate::words::edge;
use std::collections::VecDeque;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::packetizer::{ChannelChange, ChannelId, ChannelInput, ChannelState};
use weft_nic::ports::{Crossing, PortEvent};
use weft_units::Time;

/// Cycles from a change in the model to that in the RTL, at most: what comes takes turns at the table.
const MOST_LATE: u64 = 64;

/// The block.
pub(crate) struct PacketizerInStep {
    place: BlockPlace,
    rtl: Instance,
    ports: PacketizerPorts,
    inputs: PacketizerInputs,
    /// By channel: the states to come, each with the cycle by which it has come.
    states: Vec<VecDeque<(u64, ChannelState)>>,
    /// States to come, over all channels.
    states_to_come: usize,
}

impl PacketizerInStep {
    /// A channel is to have this state by a cycle.
    fn expect_state(&mut self, channel: ChannelId, by: u64, state: ChannelState) {
        let index = self.inputs.index(channel);
        self.states[index].push_back((by, state));
        self.states_to_come += 1;
    }

    fn changed(&mut self, change: &ChannelChange, at: Time) {
        let by = edge(&self.place.clock, at) + MOST_LATE;
        let channel = change.channel;
        match change.input {
            // Expected as it is stored; and no change. The RTL has what was answered until the next post.
            ChannelInput::Post | ChannelInput::Repeat | ChannelInput::Clear => return,
            ChannelInput::Acknowledge | ChannelInput::Refuse | ChannelInput::GiveUp => {}
        }
        self.expect_state(channel, by, change.to);
    }

    /// Compares what the network is offered with what the model sends.
    fn compare_packet(&self, cycle: u64, outputs: &PacketizerOutputs) -> Result<(), Difference> {
        let PacketizerOutputs { taken, valid, data, last, expected, may_be_offered, .. } = *outputs;
        let place = &self.place;
        if !taken {
            let too_early = valid != 0 && !may_be_offered;
            return place.compare(cycle, "m_axis_net_tvalid", too_early.into(), 0);
        }
        let Some((word, is_last)) = expected else { return Ok(()) };
        place.compare(cycle, "m_axis_net_tvalid", valid, 1)?;
        place.compare(cycle, "m_axis_net_tdata", data, word)?;
        place.compare(cycle, "m_axis_net_tlast", last, is_last.into())
    }

    /// Compares a channel's change with that of the model.
    fn compare_state(&mut self, cycle: u64, change: Option<(usize, u128)>) -> Result<(), Difference> {
        let Some((channel, found)) = change else { return Ok(()) };
        let Some((_, state)) = self.states[channel].pop_front() else {
            return self.place.compare(cycle, "change_valid", 1, 0);
        };
        self.states_to_come -= 1;
        self.place.compare(cycle, "change_state", found, number_of(state))
    }

    /// Finds a change of the model that the RTL does not make.
    fn compare_late_states(&self, cycle: u64) -> Result<(), Difference> {
        if self.states_to_come > 0 && cycle.is_multiple_of(MOST_LATE) {
            let late =
                |states: &VecDeque<(u64, ChannelState)>| states.front().is_some_and(|(by, _)| *by < cycle);
            if self.states.iter().any(late) {
                return self.place.compare(cycle, "change_valid", 0, 1);
            }
        }
        Ok(())
    }
}

impl BlockInStep for PacketizerInStep {
    fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
        check(library, parameters)
    }

    fn begin(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<PacketizerInStep, RtlError> {
        let (rtl, ports, inputs) = begin(library, place.endpoint)?;
        let states = vec![VecDeque::new(); inputs.all()];
        Ok(PacketizerInStep { place, rtl, ports, inputs, states, states_to_come: 0 })
    }

    fn take(&mut self, event: &PortEvent) {
        let (BlockPlace { clock, endpoint, .. }, at) = (self.place, event.at);
        let now = edge(&clock, at);
        match event.what {
            Crossing::Opened { interface, domain } => self.inputs.open(interface, domain, now),
            Crossing::Stored { parcel, made } => {
                self.inputs.stored(&parcel, endpoint, &clock);
                let by = edge(&clock, parcel.came) + MOST_LATE;
                self.expect_state(parcel.channel, by, ChannelState::Ongoing);
                self.inputs.made(parcel.channel, parcel.parcel.message, edge(&clock, made));
            }
            Crossing::Made { channel, message, made } => {
                self.inputs.made(channel, message, edge(&clock, made));
            }
            Crossing::Sent { channel, message } => self.inputs.turn(channel, message, now, false),
            Crossing::Stale { channel, message } => self.inputs.turn(channel, message, now, true),
            Crossing::Answered(answer) => self.inputs.answered(&answer, endpoint, at, &clock),
            Crossing::Channel(change) => self.changed(&change, at),
            _ => {}
        }
    }

    fn next_cycle(&self) -> Option<u64> {
        let awaited = (self.states_to_come > 0).then_some(self.inputs.cycle);
        self.inputs.next_cycle().or(awaited)
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let outputs = self.inputs.step(&mut self.rtl, &self.ports, cycle, NetworkTakes::InTurn);
        self.compare_packet(cycle, &outputs)?;
        self.compare_state(cycle, outputs.change)?;
        self.compare_late_states(cycle)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}
