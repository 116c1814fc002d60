//! The allreduce module in the interface: its packets and timers. Vectors travel as times only.

use super::{FullNic, FullParameters, FullTimer, Hardware, Label};
use crate::allreduce::{
    AcceleratorError, AllreduceParameters, AllreduceRequest, Module, ModulePacket, ModuleSurface,
    OperationId, Step,
};
use crate::host::Host;
use crate::memory_path::MemoryPath;
use crate::observer::{Block, Observer as _, Stage};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use weft_fabric::{InterfaceContext, Packet, Part};
use weft_units::{Bytes, EndpointId, Time};

/// A packet of the module that waits for the link.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Waiting {
    due: Time,
    to: EndpointId,
    id: OperationId,
    step: Step,
    bytes: Bytes,
}

/// The module, with its packets in the order in which they are due.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Reductions {
    module: Module,
    packets: VecDeque<Waiting>,
    /// By token: requests that the observer is to be told of, with their numbers and since when.
    watched: BTreeMap<u32, (u32, Time)>,
}

impl Reductions {
    /// When a packet is due; [`Time::MAX`]: there is none.
    #[inline]
    pub fn due(&self) -> Time {
        self.packets.front().map_or(Time::MAX, |packet| packet.due)
    }

    /// Requests that are not done.
    pub fn unfinished(&self) -> usize {
        self.module.unfinished()
    }
}

/// What the module reaches of the interface while it is called.
struct Outlet<'a, 'b, 'c, H: Host> {
    context: &'a mut InterfaceContext<'b, 'c, FullNic<H>>,
    packets: &'a mut VecDeque<Waiting>,
    watched: &'a mut BTreeMap<u32, (u32, Time)>,
}

impl<H: Host> ModuleSurface for Outlet<'_, '_, '_, H> {
    fn wake(&mut self, at: Time, id: OperationId) {
        self.context.set_timer(at, FullTimer::Reduction(id));
    }

    fn send(&mut self, packet: ModulePacket) {
        let ModulePacket { to, id, step, bytes, due, .. } = packet;
        let place = self.packets.partition_point(|other| other.due <= due);
        self.packets.insert(place, Waiting { due, to, id, step, bytes });
        self.context.request_pump();
    }

    fn finished(&mut self, at: Time, token: u32, _: Option<Vec<u8>>) {
        if let Some((message, came)) = self.watched.remove(&token) {
            let (endpoint, block) = (self.context.endpoint(), Block::Allreduce);
            let (source, began, ended) = (endpoint, came, at);
            self.context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        self.context.set_timer(at, FullTimer::Accelerated(token));
    }
}

impl<H: Host> Hardware<H> {
    fn with_module<R>(
        &mut self,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
        call: impl FnOnce(&mut Module, &AllreduceParameters, &mut MemoryPath<'_>, &mut Outlet<'_, '_, '_, H>) -> R,
    ) -> Option<R> {
        let mut path = MemoryPath {
            port: &mut self.host_port,
            port_parameters: &parameters.host_port,
            memory: &mut self.memory,
            memory_parameters: &parameters.memory,
            iommu: &mut self.iommu,
            iommu_parameters: &parameters.iommu,
        };
        let Reductions { module, packets, watched } = &mut self.reductions;
        let mut outlet = Outlet { context, packets, watched };
        let allreduce = parameters.allreduce.as_ref()?;
        Some(call(module, allreduce, &mut path, &mut outlet))
    }

    /// A rank asks for an allreduce at `at`, now or later. Returns its number.
    pub(super) fn allreduce(
        &mut self,
        request: AllreduceRequest,
        at: Time,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Result<u32, AcceleratorError> {
        let (token, watch) = (request.token, request.watch);
        let asked = self.with_module(parameters, context, |module, allreduce, _, outlet| {
            module.request(request, None, at, allreduce, outlet)
        });
        asked.unwrap_or(Err(AcceleratorError::Absent))?;
        let number = self.take_number();
        if watch {
            self.reductions.watched.insert(token, (number, at));
        }
        Ok(number)
    }

    /// What the module wanted to be woken for.
    pub(super) fn reduction_due(
        &mut self,
        id: OperationId,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        let now = context.now();
        self.with_module(parameters, context, |module, allreduce, path, outlet| {
            module.woken(id, now, allreduce, path, outlet);
        });
    }

    /// A packet of another module has come.
    pub(super) fn reduction_packet(
        &mut self,
        packet: &Packet,
        label: Label,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        let now = context.now();
        let Some((id, step)) = unpack(label, packet.message, packet.born.as_ps()) else { return };
        self.with_module(parameters, context, |module, allreduce, _, outlet| {
            module.received(id, step, None, now, allreduce, outlet);
        });
    }

    /// The module's packet that is due.
    pub(super) fn next_reduction(&mut self, from: EndpointId, now: Time) -> Option<Packet> {
        if self.reductions.due() > now {
            return None;
        }
        let Waiting { to, id, step, bytes, .. } = self.reductions.packets.pop_front()?;
        let (label, group, header) = pack(id, step);
        let header = Time::from_ps(header);
        let mut packet = Packet::new(from, to, group, bytes.get() as u32, header, Part::Whole);
        packet.label = label as u8;
        Some(packet)
    }
}

/// An operation and its step as the label, the message and the eight bytes of a packet that the network
/// carries unread.
fn pack(id: OperationId, step: Step) -> (Label, u32, u64) {
    let OperationId { group, sequence, block } = id;
    let (label, number) = match step {
        Step::Contribution(member) => (Label::Contribution, member),
        Step::Exchange(level) => (Label::Exchange, level),
        Step::Result => (Label::Result, 0),
    };
    (label, group, u64::from(sequence) << 32 | u64::from(block & 0xFF_FFFF) << 8 | u64::from(number))
}

/// What [`pack`] packed.
fn unpack(label: Label, group: u32, fields: u64) -> Option<(OperationId, Step)> {
    let number = fields as u8;
    let step = match label {
        Label::Contribution => Step::Contribution(number),
        Label::Exchange => Step::Exchange(number),
        Label::Result => Step::Result,
        _ => return None,
    };
    let (sequence, block) = ((fields >> 32) as u32, (fields >> 8 & 0xFF_FFFF) as u32);
    Some((OperationId { group, sequence, block }, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_are_written() {
        let id = OperationId { group: 0xFFFF_FFFE, sequence: 0xFFFF_FFFD, block: 0xFF_FFFC };
        for step in [Step::Contribution(3), Step::Exchange(8), Step::Result] {
            let (label, group, fields) = pack(id, step);
            assert_eq!(unpack(label, group, fields), Some((id, step)));
        }
        assert_eq!(unpack(Label::Cell, 0, 0), None);
    }
}
