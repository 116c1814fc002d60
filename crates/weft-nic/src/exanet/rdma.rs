//! The RDMA engine in the interface: its cells, answers and tasks as packets and timers.
//!
//! # Not modelled
//! - Destination addresses in descriptors. The addresses of a message stand in its descriptor at the source,
//!   and in its record at the destination. In hardware the initiator knows both, and every cell carries that
//!   of its payload (TR-488 §4.3, §4.5); here a cell names its transfer, and [`wire`](super::wire) has its
//!   bytes at the destination. So no address holds a node for the target's interface to remove (§5.2.1).
//! - A process that waits for a channel of its page with its descriptor (§4.5): the descriptor is stored at
//!   once, and waits in the unit. Where descriptors have channels in SRAM, a process waits for space in its
//!   own.

use super::announcement::Expected;
use super::header::Header;
use super::node::{ExanetNode, Hardware, report_port};
use super::{Announcement, ExanetNic, ExanetTimer, SimulationWords};
use crate::block::Block;
use crate::failure::{Failure, FailureReason};
use crate::host::{Delivered, Host, Message};
use crate::host_port::HOST_PORT;
use crate::memory_path::MemoryPath;
use crate::observer::{BlockChange, Observer as _, Stage, StateChange};
use crate::ports::{BlockReply, CellArrival, Crossing};
use crate::rdma::{
    Answer, Arrival, Cell, CellId, ChannelKind, DESCRIPTOR_CHANNEL, Descriptor, EngineContext, LateCell,
    Location, Rdma, RdmaCallbacks, RdmaChange, RdmaPacket, Reply, Task, TransferError, TransferHeader,
    TransferStage,
};
use weft_fabric::{Addressing, ClassTag, InterfaceContext, Packet};
use weft_units::{Address, EndpointId, Time};

/// The engine's way out while it is called.
struct Outlet<'a, 'b, 'c, H: Host> {
    fabric: &'a mut InterfaceContext<'b, 'c, ExanetNic<H>>,
    /// A transfer of this host that has failed.
    failure: Option<Failure>,
    /// Time-outs of blocks.
    timeouts: u64,
    /// A descriptor channel that has space again.
    space: Option<(u32, ChannelKind)>,
    /// The words on the message that is posted, if it has not been announced.
    words: Option<SimulationWords<H::Header>>,
    /// Whether what crosses ports is reported.
    watched: bool,
}

/// The surroundings of the engine.
type Engine<'s, 'a, 'b, 'c, H> = EngineContext<'s, Outlet<'a, 'b, 'c, H>>;

impl<H: Host> RdmaCallbacks for Outlet<'_, '_, '_, H> {
    const HEARS_CHANGES: bool = H::Output::HEARS_STATES;
    // What is due is retired before such a host is asked for messages, and before each that it posts.
    const RETIRES: bool = H::PASSIVE && !H::Output::HEARS_STATES;

    fn wake(&mut self, at: Time, task: Task) {
        self.fabric.set_timer(at, ExanetTimer::Rdma(task));
    }

    fn announce(&mut self, to: EndpointId, header: TransferHeader) {
        let TransferHeader { message, first, .. } = header;
        let announcement = match self.words.take() {
            Some(mut words) => {
                words.fields.first = first;
                Announcement::Header(words)
            }
            None => Announcement::Transfer { first },
        };
        self.fabric.announce(to, message, announcement);
    }

    fn ended(&mut self, descriptor: &Descriptor, outcome: Result<(), TransferError>) {
        let Descriptor { source, to, message: number, token, .. } = *descriptor;
        let interface = source.space as u16;
        match outcome {
            Ok(()) => {
                if let Some(token) = token {
                    self.fabric.set_timer(self.fabric.now(), ExanetTimer::Sent(token));
                }
            }
            Err(error) => {
                let reason = match error {
                    TransferError::TimedOut => FailureReason::TimedOut,
                    TransferError::Protection => FailureReason::Domain,
                };
                self.fabric.announce(to, number, Announcement::Withdrawn);
                self.failure = Some(Failure { to, number, token, interface, reason });
            }
        }
    }

    fn timed_out(&mut self, blocks: u64) {
        self.timeouts += blocks;
    }

    fn space(&mut self, page: u32, kind: ChannelKind) {
        self.space = Some((page, kind));
    }

    #[cold]
    fn stage(&mut self, stage: TransferStage) {
        let endpoint = self.fabric.endpoint();
        let TransferStage { source, message, block, came, began, ended } = stage;
        let source = source.unwrap_or(endpoint);
        self.fabric.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
    }

    #[inline]
    fn hears_ports(&self) -> bool {
        self.watched
    }

    #[cold]
    fn port(&mut self, what: Crossing) {
        report_port(self.fabric, what);
    }

    fn changed(&mut self, change: RdmaChange) {
        let (endpoint, at) = (self.fabric.endpoint(), self.fabric.now());
        let change = BlockChange::Rdma(change);
        self.fabric.output().state(&StateChange { endpoint, at, change });
    }
}

/// The descriptor of a message; its post is not at the unit yet.
pub(super) fn descriptor<T>(
    (message, class): (&Message<T>, ClassTag),
    number: u32,
    domain: crate::gvas::Pdid,
) -> Descriptor {
    let Message { to, bytes, interface, to_interface, buffer, token, watch, .. } = *message;
    Descriptor {
        source: Location { space: interface.into(), address: buffer },
        to,
        // Where it goes to is known at the destination.
        destination: Location { space: to_interface.into(), address: Address::default() },
        bytes,
        domain,
        message: number,
        posted: Time::ZERO,
        token,
        watch,
        class,
    }
}

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// Calls the engine in its surroundings. A transfer that has failed meanwhile comes with the result.
    #[inline]
    fn with_rdma<R>(
        &mut self,
        call: impl FnOnce(&mut Rdma, &mut MemoryPath<'_>, &mut Engine<'_, '_, '_, '_, H>) -> R,
    ) -> (R, Option<Failure>) {
        let parameters = &self.parameters.rdma;
        let mut path = self.hardware.memory.path(self.parameters);
        let watched = self.hardware.watched;
        let mut outlet =
            Outlet { fabric: self.fabric, failure: None, timeouts: 0, space: None, words: None, watched };
        let now = outlet.fabric.now();
        let mut context = EngineContext { now, parameters, callbacks: &mut outlet };
        let result = call(&mut self.hardware.rdma, &mut path, &mut context);
        let Outlet { failure, timeouts, space, .. } = outlet;
        if timeouts > 0 {
            self.hardware.ledger().counts.timeouts += timeouts;
        }
        // As many descriptors are kept as the space of one is taken: each is stored in place of another.
        if let Some((page, kind)) = space
            && let Some((since, descriptor)) = self.hardware.posts.take_kept(page, kind)
        {
            self.write(kind, descriptor, (since, None));
        }
        (result, failure)
    }

    /// A process wants to store a descriptor: it does so at once, or when there is space for it. Its
    /// message is announced by `words`, if they are given. What a process writes elsewhere it has put into
    /// its own memory before, so that those pages are mapped.
    pub(super) fn write_when_space(
        &mut self,
        kind: ChannelKind,
        descriptor: Descriptor,
        words: Option<SimulationWords<H::Header>>,
    ) {
        let (now, page) = (self.fabric.now(), descriptor.source.space);
        let Hardware { posts, rdma, memory, .. } = &mut *self.hardware;
        if kind == ChannelKind::Write {
            memory.iommu.map(descriptor.source, descriptor.bytes, now, &self.parameters.iommu);
        }
        if !posts.keeps(page, kind) && rdma.has_space(page, kind, &self.parameters.rdma.send) {
            return self.write(kind, descriptor, (now, words));
        }
        posts.keep(now, kind, descriptor);
        if let Some(words) = words {
            self.fabric.announce(descriptor.to, descriptor.message, Announcement::Header(words));
        }
    }

    /// A process stores a descriptor into a channel of its page; that of a request, the unit writes itself.
    /// It has waited for space since `since`. Its message is announced by `words`, if they are given,
    /// together with its transfer where it finds a channel of the unit at once.
    #[inline(never)]
    fn write(
        &mut self,
        kind: ChannelKind,
        mut descriptor: Descriptor,
        (since, words): (Time, Option<SimulationWords<H::Header>>),
    ) {
        let now = self.fabric.now();
        let by_unit = kind == ChannelKind::Read && self.parameters.has_requests();
        let stored = (!by_unit).then(|| {
            let (bytes, port) = (self.parameters.rdma.send.descriptor, &self.parameters.host_port);
            self.hardware.memory.port.store(now, bytes, port)
        });
        descriptor.posted = stored.map_or(now, |stored| stored.ended);
        if descriptor.watch {
            let (endpoint, message) = (self.fabric.endpoint(), descriptor.message);
            let mut stage = |block, came, began, ended| {
                let source = endpoint;
                self.stage(&Stage { endpoint, source, message, block, came, began, ended });
            };
            if since < now {
                stage(DESCRIPTOR_CHANNEL, since, now, now);
            }
            if let Some(stored) = stored {
                stage(HOST_PORT, now, stored.began, stored.ended);
            }
        }
        // A passive host may post at times of its own, too.
        self.retire_due();
        let page = descriptor.source.space;
        let (left, _) = self.with_rdma(|rdma, _, context| {
            context.callbacks.words = words;
            rdma.post(page, kind, descriptor, context);
            context.callbacks.words
        });
        if let Some(words) = left {
            self.fabric.announce(descriptor.to, descriptor.message, Announcement::Header(words));
        }
    }

    /// The time for which the engine wanted to be woken. Returns a transfer that has failed.
    pub(super) fn wake_rdma(&mut self, task: Task) -> Option<Failure> {
        let ((), failure) = self.with_rdma(|rdma, path, context| rdma.wake(task, path, context));
        self.fabric.request_injection();
        failure
    }

    /// The host may have messages: transfers that have ended by now make space for theirs.
    #[inline]
    pub(super) fn retire_due(&mut self) {
        self.with_rdma(|rdma, _, context| rdma.retire_due(context));
    }

    /// The host has a message, which waits for a transfer to end.
    pub(super) fn await_ends(&mut self) {
        self.with_rdma(|rdma, _, context| rdma.await_ends(context));
    }

    /// The packet that the engine has for the link.
    #[inline]
    pub(super) fn rdma_packet(&mut self) -> Option<Packet> {
        let (outgoing, _) = self.with_rdma(|rdma, _, context| rdma.take_outgoing(context));
        let is_cell = matches!(outgoing, Some(RdmaPacket::Cell(_)));
        if is_cell && self.hardware.rdma.may_fetch(&self.parameters.rdma.send) {
            self.with_rdma(|rdma, path, context| rdma.refill(path, context));
        }
        let source = self.fabric.endpoint();
        Some(match outgoing? {
            RdmaPacket::Cell(Cell { to, message, bytes, id, watch, offset, class, repeated }) => {
                if repeated {
                    self.hardware.ledger().counts.resent += 1;
                }
                if self.hardware.data.is_some() {
                    self.fabric.announce(to, message, Announcement::Read { cell: id, offset });
                }
                self.port(|| Crossing::CellSent(id));
                let addressing = Addressing { source, destination: to, message };
                let packet = Header::Cell(id).packet(addressing, bytes.get() as u32);
                let mut packet = packet.in_block(id.block()).of_class(class);
                packet.watch(watch);
                packet
            }
            RdmaPacket::Reply(Reply { to, message, id, answer, .. }) => {
                self.port(|| Crossing::BlockReplied { to, id, answer });
                let addressing = Addressing { source, destination: to, message };
                Header::BlockAnswer(id, answer).packet(addressing, 0)
            }
        })
    }

    /// A cell has come. Returns the message that it completes.
    #[inline]
    pub(super) fn cell(&mut self, packet: &Packet, id: CellId) -> Option<Delivered<H::Header>> {
        if self.hardware.check.finds(packet, self.fabric.endpoint(), self.parameters.check) {
            self.damaged_cell(packet, id);
            return None;
        }
        let watched = self.hardware.watched;
        let Hardware { headers, packetizer, memory, rdma, repairs, .. } = &mut *self.hardware;
        let Some(expected) = headers.get_mut((packet.source, packet.message)) else {
            self.late_cell(packet, id, false);
            return None;
        };
        let (transfer, tail) = (&expected.transfer, self.fabric.now());
        let (interface, first) = (expected.interface(), transfer.first);
        let owner = expected.has_place.then(|| packetizer.domain(interface));
        let arrival = Arrival { source: packet.source, id, transfer, owner, tail };
        // No transfer of this host ends with it: there is neither a failure nor space for a descriptor.
        let mut outlet =
            Outlet { fabric: self.fabric, failure: None, timeouts: 0, space: None, words: None, watched };
        let parameters = &self.parameters.rdma;
        let mut context = EngineContext { now: tail, parameters, callbacks: &mut outlet };
        let outcome = rdma.cell(&arrival, &mut memory.path(self.parameters), &mut context);
        if outcome.answered || outcome.kept > 0 {
            self.fabric.request_injection();
        }
        let (write, transfer) = (rdma.last_write(), *transfer);
        if outcome.repeated {
            repairs.get_or_insert_default().counts.duplicates += 1;
        }
        if outcome.stored {
            expected.came = (expected.came + packet.payload()).min(expected.transfer.bytes);
        }
        if outcome.stored && self.hardware.data.is_some() {
            self.write_cell(packet, id, first);
        }
        self.port_of_cell(packet, id, |arrival| CellArrival {
            transfer: Some(transfer),
            write,
            block: outcome.block,
            ends: outcome.notified.is_some(),
            answered: outcome.answered,
            kept: outcome.kept,
            ..arrival
        });
        outcome.notified.and_then(|notified| self.message_written(packet, notified))
    }

    /// Reports a cell that has come, where that is wanted; `known` says what is known of it.
    #[inline]
    fn port_of_cell(&mut self, packet: &Packet, id: CellId, known: impl FnOnce(CellArrival) -> CellArrival) {
        let (tail, Packet { source: from, message, .. }) = (self.fabric.now(), *packet);
        let waiting = self.hardware.rdma.blocks_wait();
        self.port(|| {
            Crossing::CellArrived(known(CellArrival {
                head: tail - packet.serialization(),
                from,
                message,
                id,
                bytes: packet.payload(),
                transfer: None,
                damaged: false,
                write: None,
                block: false,
                ends: false,
                answered: false,
                kept: 0,
                waiting,
            }))
        });
    }

    /// A cell has come that is found to be damaged: its block will be sent again.
    #[cold]
    fn damaged_cell(&mut self, packet: &Packet, id: CellId) {
        let Hardware { headers, packetizer, memory, rdma, .. } = &mut *self.hardware;
        let Some(expected) = headers.get((packet.source, packet.message)) else {
            return self.late_cell(packet, id, true);
        };
        let owner = expected.has_place.then(|| packetizer.domain(expected.interface()));
        let (transfer, tail) = (expected.transfer, self.fabric.now());
        let arrival = Arrival { source: packet.source, id, transfer: &transfer, owner, tail };
        let is_written =
            rdma.damaged_cell(&arrival, &self.parameters.rdma, &mut memory.path(self.parameters));
        let write = rdma.last_write();
        if is_written && self.hardware.data.is_some() {
            self.write_cell(packet, id, transfer.first);
        }
        let transfer = Some(transfer);
        self.port_of_cell(packet, id, |arrival| CellArrival { transfer, damaged: true, write, ..arrival });
    }

    /// A cell has come of a transfer that is not known any more: its words go to memory, damaged or not.
    #[cold]
    fn late_cell(&mut self, packet: &Packet, id: CellId, damaged: bool) {
        if !damaged {
            self.hardware.ledger().counts.duplicates += 1;
        }
        let Packet { source, message, .. } = *packet;
        let late =
            LateCell { source, message, id, bytes: packet.payload(), tail: self.fabric.now(), damaged };
        let Hardware { memory, rdma, .. } = &mut *self.hardware;
        rdma.late_cell(late, &mut memory.path(self.parameters));
        let write = rdma.last_write();
        let answered = id.last && !damaged;
        self.port_of_cell(packet, id, |arrival| CellArrival { damaged, write, answered, ..arrival });
        self.fabric.request_injection();
    }

    /// The last cell of a message has come, whose notification is written at `notified`.
    #[inline(never)]
    fn message_written(&mut self, packet: &Packet, notified: Time) -> Option<Delivered<H::Header>> {
        let (endpoint, Packet { source, message, hops, .. }) = (self.fabric.endpoint(), *packet);
        let expected = self.hardware.headers.remove((source, message))?;
        let (interface, Expected { transfer, created_at, header, .. }) = (expected.interface(), expected);
        let TransferHeader { bytes, watch, .. } = transfer;
        let noticed = notified + self.parameters.rdma.receive.poll;
        if watch {
            let (block, came, began, ended) = (Block::POLLING, notified, notified, noticed);
            self.stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        let (from, number, in_mailbox) = (source, message, false);
        let message = Delivered {
            noticed,
            from,
            number,
            bytes,
            created_at,
            hops,
            channel: 0,
            header,
            interface,
            in_mailbox,
        };
        self.compare(&message);
        Some(message)
    }

    /// A cell of a message whose first block is `first` is written, where messages carry real bytes.
    #[cold]
    fn write_cell(&mut self, packet: &Packet, id: CellId, first: u32) {
        let Some(data) = &mut self.hardware.data else { return };
        let block = id.transaction.wrapping_sub(first);
        let offset = self.parameters.rdma.send.cut.offset(block, id.index).get();
        let (Packet { source, message, .. }, bad) = (*packet, packet.is_corrupted());
        data.memory.write_cell((source, message, id), offset, packet.payload().get(), bad);
        if self.hardware.headers.get((source, message)).is_none() {
            data.check_late((source, message), self.fabric.endpoint());
        }
    }

    /// An answer to a block of this interface has come, from an endpoint.
    pub(super) fn block_answer(&mut self, from: EndpointId, id: CellId, answer: Answer) {
        let (taken, _) = self.with_rdma(|rdma, _, context| rdma.answer(id, answer, context));
        self.port(|| Crossing::BlockAnswered(BlockReply { from, id, answer, taken }));
    }
}
