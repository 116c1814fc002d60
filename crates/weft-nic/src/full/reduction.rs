//! The allreduce module in the interface: its packets and timers. Vectors travel as times, and beside their
//! packets as bytes where a run moves real data.

use super::bytes::DataOfHost;
use super::{Announcement, FullNic, FullParameters, FullTimer, Hardware, Label};
use crate::allreduce::{
    AcceleratorError, AllreduceParameters, AllreduceRequest, Module, ModulePacket, ModuleState,
    ModuleSurface, OperationId, Step,
};
use crate::data::Words;
use crate::host::{Failure, FailureReason, Host};
use crate::memory_path::MemoryPath;
use crate::observer::{Block, Observer as _, Stage};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use weft_fabric::{InterfaceContext, Packet, Part};
use weft_units::{EndpointId, Time};

/// The module, with its packets in the order in which they are due.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Reductions {
    module: Module,
    packets: VecDeque<ModulePacket>,
    /// By token: what is not done.
    requests: BTreeMap<u32, Asked>,
}

/// A request of the host.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Asked {
    /// Its number among the messages.
    number: u32,
    /// Until when the observer has been told of it, if it is to be told.
    told: Option<Time>,
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
    packets: &'a mut VecDeque<ModulePacket>,
    requests: &'a mut BTreeMap<u32, Asked>,
    failures: &'a mut VecDeque<(Time, Failure)>,
    data: Option<&'a mut DataOfHost<H::Header>>,
    /// Endpoints of a board.
    board: u32,
}

impl<H: Host> Outlet<'_, '_, '_, H> {
    /// Tells the observer of a request: that it waited from what was told last until it `began`, `None`: not at all.
    fn tell(&mut self, token: u32, state: ModuleState, began: Option<Time>, ended: Time) {
        let Some(Asked { number, told: Some(told) }) = self.requests.get_mut(&token) else { return };
        let (message, came) = (*number, std::mem::replace(told, ended));
        let (endpoint, block, began) =
            (self.context.endpoint(), Block::Allreduce(state), began.unwrap_or(came));
        if came < ended {
            let source = endpoint;
            self.context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
    }
}

impl<H: Host> ModuleSurface for Outlet<'_, '_, '_, H> {
    fn wake(&mut self, at: Time, id: OperationId) {
        self.context.set_timer(at, FullTimer::Reduction(id));
    }

    fn send(&mut self, packet: ModulePacket) {
        let place = self.packets.partition_point(|other| other.due <= packet.due);
        self.packets.insert(place, packet);
        self.context.request_pump();
    }

    fn begins(&mut self, token: u32, at: Time) {
        // Until then an earlier request had the module.
        self.tell(token, ModuleState::Programming, Some(at), at);
    }

    fn was(&mut self, token: u32, state: ModuleState, until: Time) {
        self.tell(token, state, None, until);
    }

    fn finished(&mut self, at: Time, token: u32, values: Option<Vec<u8>>) {
        self.requests.remove(&token);
        if let Some(data) = self.data.as_deref_mut() {
            let here = self.context.endpoint();
            data.reduced(token, &values.unwrap_or_default(), self.board, here, self.context.output());
        }
        self.context.set_timer(at, FullTimer::Accelerated(token));
    }

    fn arm(&mut self, at: Time) {
        self.context.set_timer(at, FullTimer::ReductionLate);
    }

    fn failed(&mut self, at: Time, request: &AllreduceRequest, other: EndpointId) {
        let AllreduceRequest { token, interface, .. } = *request;
        let number = self.requests.remove(&token).map_or(0, |asked| asked.number);
        if let Some(data) = self.data.as_deref_mut() {
            data.memory.forget_reduction(token);
        }
        let reason = FailureReason::Reduction;
        let failure = Failure { to: other, number, interface, token: Some(token), reason };
        let at = at.max(self.context.now());
        self.failures.push_back((at, failure));
        self.context.set_timer(at, FullTimer::Failed);
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
        let allreduce = parameters.allreduce.as_ref()?;
        let Reductions { module, packets, requests } = &mut **self.reductions.get_or_insert_default();
        let (failures, data, board) = (&mut self.failures, self.data.as_deref_mut(), allreduce.limits.board);
        let mut outlet = Outlet { context, packets, requests, failures, data, board };
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
        let limits = parameters.allreduce.as_ref().ok_or(AcceleratorError::Absent)?.limits;
        limits.check(&request.members)?;
        let (token, number) = (request.token, self.take_number());
        let told = request.watch.then_some(at);
        self.reductions.get_or_insert_default().requests.insert(token, Asked { number, told });
        let values = self.data.as_mut().map(|data| data.memory.reduce(number, &request));
        let asked = self.with_module(parameters, context, |module, allreduce, _, outlet| {
            module.request(request, values, at, allreduce, outlet)
        });
        asked.unwrap_or(Err(AcceleratorError::Absent))?;
        Ok(number)
    }

    /// It may be time to ask for what has not come.
    pub(super) fn reduction_late(
        &mut self,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        let now = context.now();
        self.with_module(parameters, context, |module, allreduce, _, outlet| {
            module.expired(now, allreduce, outlet);
        });
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
        let from = packet.source;
        let values = self.data.as_mut().map(|data| data.memory.vector_of(from, id, step));
        self.with_module(parameters, context, |module, allreduce, _, outlet| {
            module.received(from, (id, step), values, now, allreduce, outlet);
        });
    }

    /// The module's packet that is due; the bytes of its vector go beside it.
    pub(super) fn next_reduction(
        &mut self,
        from: EndpointId,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Option<Packet> {
        let reductions = self.reductions.as_deref_mut().filter(|it| it.due() <= context.now())?;
        let ModulePacket { to, id, step, bytes, values, .. } = reductions.packets.pop_front()?;
        let (label, group, header) = pack(id, step);
        let vector = values.unwrap_or_default();
        Words::of(id, step, &vector)
            .for_each(|words| context.announce(to, group, Announcement::Words(words)));
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
        Step::Ask => (Label::AskVector, 0),
        Step::NotYet => (Label::NoVectorYet, 0),
        Step::Failed => (Label::VectorFailed, 0),
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
        Label::AskVector => Step::Ask,
        Label::NoVectorYet => Step::NotYet,
        Label::VectorFailed => Step::Failed,
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
        let steps =
            [Step::Contribution(3), Step::Exchange(8), Step::Result, Step::Ask, Step::NotYet, Step::Failed];
        for step in steps {
            let (label, group, fields) = pack(id, step);
            assert_eq!(unpack(label, group, fields), Some((id, step)));
        }
        assert_eq!(unpack(Label::Cell, 0, 0), None);
    }
}
