//! The allreduce module in the interface: its packets and timers. Vectors travel as times; where a run moves
//! real data, announcements carry their bytes.

use super::bytes::{DataOfHost, Reduced};
use super::header::Header;
use super::node::{ExanetNode, report_port};
use super::{Announcement, ExanetNic, ExanetTimer};
use crate::allreduce::{
    AcceleratorError, AllreduceRequest, Module, ModuleCallbacks, ModuleContext, ModulePacket,
    ModulePacketKind, ModuleState, OperationId,
};
use crate::data::Words;
use crate::failure::{Failure, FailureReason};
use crate::host::Host;
use crate::memory_path::MemoryPath;
use crate::observer::{Observer as _, Stage};
use crate::ports::{Crossing, ModuleCrossing, PacketOfModule};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use weft_fabric::{Addressing, InterfaceContext, Packet};
use weft_units::{Bytes, CountLedger, EndpointId, Span, Time};

/// The module, with its packets in the order in which they are due.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Reductions {
    module: Module,
    packets: VecDeque<ModulePacket>,
    /// Requests that are not done, by token.
    requests: BTreeMap<u32, Request>,
}

/// A request of the host.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Request {
    /// The number of the request among the messages.
    number: u32,
    /// The end of the last state that was reported, if the request is watched.
    reported: Option<Time>,
}

impl Reductions {
    /// The time at which a packet is due; [`Time::NEVER`]: there is none.
    #[inline]
    pub fn due(&self) -> Time {
        self.packets.front().map_or(Time::NEVER, |packet| packet.due)
    }

    /// The payload of a packet that is due at `now`.
    pub fn ready(&self, now: Time) -> Option<Bytes> {
        self.packets.front().filter(|packet| packet.due <= now).map(|packet| packet.bytes)
    }

    /// Requests that are not done.
    pub fn unfinished(&self) -> usize {
        self.module.unfinished()
    }
}

/// The module's way out while it is called.
struct Outlet<'a, 'b, 'c, H: Host> {
    fabric: &'a mut InterfaceContext<'b, 'c, ExanetNic<H>>,
    packets: &'a mut VecDeque<ModulePacket>,
    requests: &'a mut BTreeMap<u32, Request>,
    failures: &'a mut Vec<(Time, Failure)>,
    repairs: &'a mut Option<Box<CountLedger>>,
    data: Option<&'a mut DataOfHost<H::Header>>,
    /// Endpoints of a board.
    board: u32,
    /// Time to look up the receiver of a vector.
    lookup: Span,
    /// Whether what crosses ports is reported.
    watched: bool,
}

/// The surroundings of the module.
type Surroundings<'s, 'a, 'b, 'c, H> = ModuleContext<'s, Outlet<'a, 'b, 'c, H>>;

impl<H: Host> Outlet<'_, '_, '_, H> {
    /// Reports a state of a watched request, which began where the last reported one ended. In the state the
    /// request waited until `began`; `None`: not at all.
    fn report(&mut self, token: u32, state: ModuleState, began: Option<Time>, ended: Time) {
        let Some(Request { number, reported: Some(reported) }) = self.requests.get_mut(&token) else {
            return;
        };
        let (message, came) = (*number, std::mem::replace(reported, ended));
        let (endpoint, block, began) = (self.fabric.endpoint(), state.block(), began.unwrap_or(came));
        if came < ended {
            let source = endpoint;
            self.fabric.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
    }

    /// Puts a packet among those that wait, behind all that are due no later.
    fn queue(&mut self, packet: ModulePacket, again: bool) {
        let lookup = self.lookup;
        self.crossed(|| {
            let looked_up = match packet.step {
                ModulePacketKind::Ask | ModulePacketKind::NotYet | ModulePacketKind::Failed => Span::ZERO,
                _ if again => Span::ZERO,
                _ => lookup,
            };
            let (due, values) = (packet.due, packet.values.clone());
            ModuleCrossing::Made { packet: of_packet(&packet), from: due - looked_up, due, values }
        });
        let place = self.packets.partition_point(|other| other.due <= packet.due);
        self.packets.insert(place, packet);
        self.fabric.request_injection();
    }
}

/// A packet as it is reported.
fn of_packet(packet: &ModulePacket) -> PacketOfModule {
    let ModulePacket { to: other, id, step, bytes, .. } = *packet;
    PacketOfModule { other, id, step, bytes }
}

impl<H: Host> ModuleCallbacks for Outlet<'_, '_, '_, H> {
    fn crossed(&mut self, what: impl FnOnce() -> ModuleCrossing) {
        if self.watched {
            report_port(self.fabric, Crossing::Module(what()));
        }
    }

    fn wake(&mut self, at: Time, id: OperationId) {
        self.fabric.set_timer(at, ExanetTimer::Reduction(id));
    }

    fn send(&mut self, packet: ModulePacket) {
        self.queue(packet, false);
    }

    fn send_again(&mut self, packet: ModulePacket) {
        self.repairs.get_or_insert_default().counts.resent += 1;
        self.queue(packet, true);
    }

    fn timed_out(&mut self) {
        self.repairs.get_or_insert_default().counts.timeouts += 1;
    }

    fn came_again(&mut self) {
        self.repairs.get_or_insert_default().counts.duplicates += 1;
    }

    fn begins(&mut self, token: u32, at: Time) {
        // Until then an earlier request had the module.
        self.report(token, ModuleState::Programming, Some(at), at);
    }

    fn was(&mut self, token: u32, state: ModuleState, until: Time) {
        self.report(token, state, None, until);
    }

    fn finished(&mut self, at: Time, token: u32, values: Option<Vec<u8>>) {
        self.requests.remove(&token);
        if let Some(data) = self.data.as_deref_mut() {
            let here = self.fabric.endpoint();
            let values = &values.unwrap_or_default();
            data.reduced(&Reduced { token, values, board: self.board }, here, self.fabric.output());
        }
        self.fabric.set_timer(at, ExanetTimer::Accelerated(token));
    }

    fn arm(&mut self, at: Time) {
        self.fabric.set_timer(at, ExanetTimer::ReductionLate);
    }

    fn failed(&mut self, at: Time, request: &AllreduceRequest, other: EndpointId) {
        let AllreduceRequest { token, interface, .. } = *request;
        let number = self.requests.remove(&token).map_or(0, |request| request.number);
        if let Some(data) = self.data.as_deref_mut() {
            data.memory.forget_reduction(token);
        }
        let reason = FailureReason::Reduction;
        let failure = Failure { to: other, number, interface, token: Some(token), reason };
        let at = at.max(self.fabric.now());
        self.failures.push((at, failure));
        self.fabric.set_timer(at, ExanetTimer::Failed);
    }
}

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// Calls the module in its surroundings; `None`: the machine has no accelerator.
    fn with_module<R>(
        &mut self,
        call: impl FnOnce(&mut Module, &mut MemoryPath<'_>, &mut Surroundings<'_, '_, '_, '_, H>) -> R,
    ) -> Option<R> {
        let parameters = self.parameters.allreduce.as_ref()?;
        let hardware = &mut *self.hardware;
        let mut path = hardware.memory.path(self.parameters);
        let Reductions { module, packets, requests } = &mut **hardware.reductions.get_or_insert_default();
        let (failures, repairs) = (&mut hardware.failures, &mut hardware.repairs);
        let data = hardware.data.as_deref_mut();
        let (fabric, board) = (&mut *self.fabric, parameters.limits.board);
        let (now, lookup, watched) = (fabric.now(), parameters.lookup, hardware.watched);
        let mut outlet =
            Outlet { fabric, packets, requests, failures, repairs, data, board, lookup, watched };
        let mut context = ModuleContext { now, parameters, callbacks: &mut outlet };
        Some(call(module, &mut path, &mut context))
    }

    /// A rank asks for an allreduce at `at`, now or later. Returns its number.
    pub(super) fn reduce(&mut self, request: AllreduceRequest, at: Time) -> Result<u32, AcceleratorError> {
        let limits = self.parameters.allreduce.as_ref().ok_or(AcceleratorError::Absent)?.limits;
        limits.check(&request.members)?;
        let (token, number) = (request.token, self.hardware.take_number());
        let reported = request.watch.then_some(at);
        let reductions = self.hardware.reductions.get_or_insert_default();
        reductions.requests.insert(token, Request { number, reported });
        let values = self.hardware.data.as_mut().map(|data| data.memory.reduce(number, &request));
        let accepted = self.with_module(|module, _, context| module.request(request, values, at, context));
        accepted.unwrap_or(Err(AcceleratorError::Absent))?;
        Ok(number)
    }

    /// It may be time to ask for vectors that have not come.
    pub(super) fn reduction_late(&mut self) {
        self.with_module(|module, _, context| module.expired(context));
    }

    /// The time for which the module wanted to be woken.
    pub(super) fn wake_reduction(&mut self, id: OperationId) {
        self.with_module(|module, path, context| module.woken(id, path, context));
    }

    /// Reports a packet of another module.
    #[cold]
    pub(super) fn module_packet_arrived(&mut self, packet: &Packet, id: OperationId, step: ModulePacketKind) {
        let values = self.hardware.data.as_ref().map(|data| data.memory.vector_of(packet.source, id, step));
        let (damaged, bytes) = (packet.is_corrupted(), packet.payload());
        let packet = PacketOfModule { other: packet.source, id, step, bytes };
        self.port(|| Crossing::Module(ModuleCrossing::Arrived { packet, damaged, values }));
    }

    /// A packet of another module has come. A damaged one only takes its time on the way in.
    pub(super) fn reduction_packet(&mut self, packet: &Packet, id: OperationId, step: ModulePacketKind) {
        let (other, bytes) = (packet.source, packet.payload());
        if packet.is_corrupted() {
            self.with_module(|module, _, context| module.take_words(bytes, context.now, context.parameters));
            return;
        }
        let values = self.hardware.data.as_mut().map(|data| data.memory.vector_of(other, id, step));
        let packet = PacketOfModule { other, id, step, bytes };
        self.with_module(|module, _, context| module.received(&packet, values, context));
    }

    /// The module's packet that is due; an announcement carries the bytes of its vector.
    pub(super) fn next_reduction(&mut self) -> Option<Packet> {
        let now = self.fabric.now();
        let reductions = self.hardware.reductions.as_deref_mut().filter(|it| it.due() <= now)?;
        let packet = reductions.packets.pop_front()?;
        self.port(|| Crossing::Module(ModuleCrossing::Sent(of_packet(&packet))));
        let ModulePacket { to, id, step, bytes, values, .. } = packet;
        let vector = values.unwrap_or_default();
        for words in Words::of(id, step, &vector) {
            self.fabric.announce(to, id.group, Announcement::Words(words));
        }
        let addressing = Addressing { source: self.fabric.endpoint(), destination: to, message: id.group };
        Some(Header::Reduction(id, step).packet(addressing, bytes.get() as u32))
    }
}
