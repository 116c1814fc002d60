//! The RDMA engine in the interface: its cells, answers and tasks as packets and timers.
//!
//! Messages carry no addresses. All sends of a process are from one buffer and all that it receives goes
//! to another, as in the loops of benchmarks: what was touched before is mapped and translated again.

use super::{Announcement, Due, FullNic, FullParameters, FullTimer, Hardware, Header, Label};
use crate::host::{Failure, FailureReason, Host, Message};
use crate::memory_path::MemoryPath;
use crate::observer::{Block, BlockChange, Observer as _, Stage, StateChange};
use crate::rdma::{
    Arrival, Cell, CellId, ChannelKind, Descriptor, Location, Outgoing, Rdma, RdmaChange, RdmaParameters,
    Reply, Surface, Task, TransferError, TransferHeader, TransferStage,
};
use weft_fabric::{InterfaceContext, Packet, Part};
use weft_units::{EndpointId, Time};

/// Where every process has the data that it sends.
const SEND_BUFFER: u64 = 0x10_0000_0000;
/// Where every process has what it receives.
const RECEIVE_BUFFER: u64 = 0x20_0000_0000;

/// What the engine reaches of the interface while it is called.
pub(super) struct Outlet<'a, 'b, 'c, H: Host> {
    context: &'a mut InterfaceContext<'b, 'c, FullNic<H>>,
    /// A transfer of this host that has failed.
    failure: Option<Failure>,
}

impl<H: Host> Surface for Outlet<'_, '_, '_, H> {
    fn wake(&mut self, at: Time, task: Task) {
        self.context.set_timer(at, FullTimer::Rdma(task));
    }

    fn announce(&mut self, to: EndpointId, header: TransferHeader) {
        let TransferHeader { message, first, .. } = header;
        self.context.announce(to, message, Announcement::Transfer { first });
    }

    fn ended(&mut self, descriptor: &Descriptor, outcome: Result<(), TransferError>) {
        let Descriptor { source, to, message: number, token, .. } = *descriptor;
        let interface = source.space as u16;
        match outcome {
            Ok(()) => {
                if let Some(token) = token {
                    self.context.set_timer(self.context.now(), FullTimer::Sent(token));
                }
            }
            Err(error) => {
                let reason = match error {
                    TransferError::TimedOut => FailureReason::TimedOut,
                    TransferError::Protection => FailureReason::Domain,
                };
                self.context.announce(to, number, Announcement::Withdrawn);
                self.failure = Some(Failure { to, number, token, interface, reason });
            }
        }
    }

    #[cold]
    fn stage(&mut self, stage: TransferStage) {
        let endpoint = self.context.endpoint();
        let TransferStage { source, message, block, came, began, ended } = stage;
        let source = source.unwrap_or(endpoint);
        self.context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
    }

    fn changed(&mut self, change: RdmaChange) {
        let (endpoint, at) = (self.context.endpoint(), self.context.now());
        let change = BlockChange::Rdma(change);
        self.context.output().state(&StateChange { endpoint, at, change });
    }
}

/// The descriptor of a message; its post is not at the unit yet.
pub(super) fn descriptor<T>(message: &Message<T>, number: u32, domain: crate::gvas::Pdid) -> Descriptor {
    let Message { to, bytes, interface, to_interface, token, watch, .. } = *message;
    Descriptor {
        source: Location { space: interface.into(), address: SEND_BUFFER },
        to,
        destination: Location { space: to_interface.into(), address: RECEIVE_BUFFER },
        bytes,
        domain,
        message: number,
        posted: Time::ZERO,
        token,
        watch,
    }
}

impl<H: Host> Hardware<H> {
    /// Calls the engine with all that it reaches; a transfer that has failed meanwhile comes with the result.
    #[inline]
    fn with_rdma<R>(
        &mut self,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
        call: impl FnOnce(&mut Rdma, &RdmaParameters, &mut MemoryPath<'_>, &mut Outlet<'_, '_, '_, H>) -> R,
    ) -> (R, Option<Failure>) {
        let mut path = MemoryPath {
            port: &mut self.host_port,
            port_parameters: &parameters.host_port,
            memory: &mut self.memory,
            memory_parameters: &parameters.memory,
            iommu: &mut self.iommu,
            iommu_parameters: &parameters.iommu,
        };
        let mut outlet = Outlet { context, failure: None };
        let result = call(&mut self.rdma, &parameters.rdma, &mut path, &mut outlet);
        (result, outlet.failure)
    }

    /// A process, or the unit itself for a remote one, writes a descriptor into a channel of its page.
    pub(super) fn write(
        &mut self,
        kind: ChannelKind,
        mut descriptor: Descriptor,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        let now = context.now();
        let stored = self.host_port.store(now, parameters.rdma.send.descriptor, &parameters.host_port);
        descriptor.posted = stored.ended;
        if descriptor.watch {
            let (endpoint, message, block) = (context.endpoint(), descriptor.message, Block::HostPort);
            let (source, came, began, ended) = (endpoint, now, stored.began, stored.ended);
            context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        let page = descriptor.source.space;
        self.with_rdma(parameters, context, |rdma, rdma_parameters, _, outlet| {
            rdma.post(page, kind, descriptor, stored.ended, rdma_parameters, outlet);
        });
    }

    /// What the engine wanted to be woken for. Returns a transfer that has failed.
    pub(super) fn rdma_task(
        &mut self,
        task: Task,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Option<Failure> {
        let now = context.now();
        let ((), failure) = self.with_rdma(parameters, context, |rdma, rdma_parameters, path, outlet| {
            rdma.wake(task, now, rdma_parameters, path, outlet);
        });
        context.request_pump();
        failure
    }

    /// The packet that the engine has for the link.
    #[inline]
    pub(super) fn rdma_packet(
        &mut self,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Option<Packet> {
        let (from, now) = (context.endpoint(), context.now());
        let (outgoing, _) = self.with_rdma(parameters, context, |rdma, rdma_parameters, path, outlet| {
            rdma.take_outgoing(now, rdma_parameters, path, outlet)
        });
        Some(match outgoing? {
            Outgoing::Cell(Cell { to, message, bytes, id, watch, address }) => {
                if self.data.is_some() {
                    let (cell, offset) = (id.pack(), address.wrapping_sub(SEND_BUFFER));
                    context.announce(to, message, Announcement::Read { cell, offset });
                }
                let mut packet =
                    Packet::new(from, to, message, bytes.get() as u32, in_header(id), Part::Piece);
                packet.label = Label::Cell as u8;
                packet.watch = watch;
                packet
            }
            Outgoing::Reply(Reply { to, message, id, answer, .. }) => {
                let mut packet = Packet::new(from, to, message, 0, in_header(id), Part::Whole);
                packet.label = Label::block_answer(answer) as u8;
                packet
            }
        })
    }

    /// A cell has come. Returns the message that it completes.
    #[inline]
    pub(super) fn cell(
        &mut self,
        packet: &Packet,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Option<Due<H::Header>> {
        if self.finds_damage(packet, parameters, context.endpoint()) {
            // Its block will be sent again.
            return None;
        }
        let tail = context.now();
        let Packet { source, message, hops, .. } = *packet;
        let id = CellId::unpack(packet.born.as_ps());
        let Some(&header) = self.headers.get(&(source, message)) else {
            self.rdma.late_cell(source, message, id, tail);
            context.request_pump();
            return None;
        };
        let Header { bytes, interface, domain, first, born, header, watch } = header;
        let destination = Location { space: interface.into(), address: RECEIVE_BUFFER };
        let transfer = TransferHeader { destination, bytes, domain, first, message, watch };
        let owner = self.packetizer.domain(interface);
        let arrival = Arrival { source, id, transfer: &transfer, owner, tail };
        let (landing, _) = self.with_rdma(parameters, context, |rdma, rdma_parameters, path, outlet| {
            rdma.cell(&arrival, rdma_parameters, path, outlet)
        });
        if id.last {
            // There may be an answer to send.
            context.request_pump();
        }
        if landing.stored {
            let offset = landing.address.wrapping_sub(RECEIVE_BUFFER);
            self.write_cell(packet, offset, context.endpoint());
        }
        let notified = landing.notified?;
        self.headers.remove(&(source, message));
        let noticed = notified + parameters.mailbox.poll;
        if watch {
            let (endpoint, block, came) = (context.endpoint(), Block::Polling, notified);
            let (began, ended) = (notified, noticed);
            context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        let (from, number, in_mailbox) = (source, message, false);
        let due = Due { noticed, from, number, bytes, born, hops, header, interface, in_mailbox };
        self.compare(&due, context);
        Some(due)
    }

    /// An answer to a block of this interface has come.
    pub(super) fn block_answer(
        &mut self,
        packet: &Packet,
        label: Label,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        let now = context.now();
        let (id, answer) = (CellId::unpack(packet.born.as_ps()), label.as_block_answer());
        let Some(answer) = answer else { return };
        self.with_rdma(parameters, context, |rdma, rdma_parameters, _, outlet| {
            rdma.answer(id, answer, now, rdma_parameters, outlet);
        });
    }
}

/// What tells a cell from others, in the eight bytes of a packet that the network carries unread.
fn in_header(id: CellId) -> Time {
    Time::from_ps(id.pack())
}
