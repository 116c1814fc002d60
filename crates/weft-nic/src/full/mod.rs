//! The block-level interface: the ExaNet network interface of packetizer, mailbox, RDMA and host port.
//!
//! ```text
//!            ┌ stores ─► packetizer ─────────────┐
//!  host ─────┤                                   ├─► transmit ─► fabric
//!   ▲  port  └ stores ─► writes ◄─ reads, port ──┘      ▲
//!   │                                                   │ acknowledgements
//!   └──── polls ◄── writes, port ◄── mailbox, cells ◄───┴──────────── fabric
//! ```
//! The blocks are plain data that answer with times and know neither the fabric nor an event queue; here
//! they are joined to both.
//!
//! # Deadlock
//! An endpoint consumes whatever arrives at once, into memory or not at all: no packet waits at an
//! endpoint for another one to be sent. What a packet sets off, an answer, waits in a queue of its own
//! that holds one per packet that others have outstanding, and never in the way of what arrives. So no
//! class of packets waits for another: for the proof of freedom from deadlock, endpoints are sinks.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.2 to §4.5, §5.1.
//!
//! # Not modelled
//! See the blocks.

mod bytes;
mod check;
mod class;
mod label;
mod parameters;
mod post;
mod rdma;
mod receive;
mod reduction;
mod transmit;

pub use check::CheckParameters;
pub use class::Class;
pub use label::Label;
pub use parameters::FullParameters;

use crate::allreduce::OperationId;
use crate::data::Words;
use crate::gvas::Pdid;
use crate::host::{Delivered, Failure, Host, Nic, Offer};
use crate::host_port::HostPort;
use crate::iommu::Iommu;
use crate::mailbox::Mailbox;
use crate::memory::MemoryChannel;
use crate::observer::{Block, Observer as _, Stage};
use crate::packetizer::{ChannelId, Packetizer};
use crate::rdma::{Rdma, Task};
use bytes::DataOfHost;
use post::{AtHost, Post};
use receive::News;
use reduction::Reductions;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use transmit::{Transmit, Turn};
use weft_engine::Payload;
use weft_fabric::{HopRecord, Interface, InterfaceContext, Packet, Part, Supply};
use weft_units::{Bytes, EndpointId, Time};

/// The interface, with its host.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct FullNic<H: Host> {
    /// The host.
    pub host: H,
    hardware: Hardware<H>,
}

/// The blocks, and what lies between them.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
struct Hardware<H: Host> {
    host_port: HostPort,
    packetizer: Packetizer,
    mailbox: Mailbox,
    rdma: Rdma,
    /// None before the first is asked for: most nodes of most machines have none.
    reductions: Option<Box<Reductions>>,
    memory: MemoryChannel,
    iommu: Iommu,
    transmit: Transmit,
    /// Where messages carry real bytes.
    data: Option<Box<DataOfHost<H::Header>>>,
    /// What the host has posted ahead of time, in the order of time.
    posts: VecDeque<Post>,
    /// Messages that failed as they were posted, and when the host is told.
    failures: VecDeque<(Time, Failure)>,
    /// Headers of messages for this interface whose packets have not come.
    headers: BTreeMap<(EndpointId, u32), Header<H::Header>>,
    /// Messages that have come, in the order in which the host notices them.
    due: VecDeque<Due<H::Header>>,
    next_number: u32,
    /// Throws of the dice that decide whether a check finds damage.
    checks: u64,
}

/// What the headers of a message's packets say.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Header<T> {
    bytes: Bytes,
    born: Time,
    header: Option<T>,
    interface: u16,
    domain: Pdid,
    /// Of an RDMA write: the transaction of its first block.
    first: u32,
    /// Whether it is watched.
    watch: bool,
}

/// What an interface tells another beside its packets: the simulation's stand-in for fields of headers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Announcement<T> {
    /// What the packets of a message say.
    Header(Header<T>),
    /// The cells of an RDMA write say this, too.
    Transfer {
        /// The transaction of its first block.
        first: u32,
    },
    /// The message has failed.
    Withdrawn,
    /// Where messages carry real bytes: where in its message the source has read a cell.
    Read {
        /// What tells the cell from others.
        cell: u64,
        /// The first byte.
        offset: u64,
    },
    /// Where messages carry real bytes: a part of a vector between reduction modules.
    Words(Words),
}

impl<T: Copy + Send + Sync> Payload for Announcement<T> {
    fn tie(&self) -> u128 {
        // What others speak of comes first: a transfer may begin at the instant of its message's post.
        let kind = |kind: u64, of: u64| u128::from(kind << 60 | of & ((1 << 60) - 1));
        match self {
            Announcement::Header(_) => kind(0, 0),
            Announcement::Transfer { first } => kind(1, u64::from(*first)),
            Announcement::Read { cell, .. } => kind(2, *cell),
            Announcement::Words(words) => kind(3, u64::from(words.part)),
            Announcement::Withdrawn => kind(4, 0),
        }
    }
}

/// A message that the host will notice.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Due<T> {
    noticed: Time,
    from: EndpointId,
    number: u32,
    bytes: Bytes,
    born: Time,
    hops: u8,
    header: Option<T>,
    interface: u16,
    in_mailbox: bool,
}

/// The interface's own events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum FullTimer<T> {
    /// The host's.
    Host(T),
    /// A post is due.
    Post,
    /// A message that failed as it was posted is due.
    Failed,
    /// The first message that waits for the host's notice is due.
    Deliver,
    /// All data of the message with this token has been taken.
    Sent(u32),
    /// Time may be up for the packet of a channel.
    Retransmission(ChannelId),
    /// The RDMA engine wants to be woken.
    Rdma(Task),
    /// The reduction module wants to be woken.
    Reduction(OperationId),
    /// The allreduce with this token is done.
    Accelerated(u32),
    /// The reduction module may have waited too long.
    ReductionLate,
}

impl<T: Payload> Payload for FullTimer<T> {
    fn tie(&self) -> u128 {
        let kind = |kind: u128, of: u128| kind << 120 | of;
        match self {
            FullTimer::Post => kind(0, 0),
            FullTimer::Failed => kind(1, 0),
            FullTimer::Deliver => kind(2, 0),
            FullTimer::Sent(token) => kind(3, u128::from(*token)),
            FullTimer::Retransmission(id) => kind(4, u128::from(id.interface) << 16 | u128::from(id.channel)),
            FullTimer::Rdma(task) => kind(5, u128::from(task.tie())),
            FullTimer::Reduction(OperationId { group, sequence, block }) => {
                let operation = u128::from(*group) << 32 | u128::from(*sequence);
                kind(6, operation << 32 | u128::from(*block))
            }
            FullTimer::Accelerated(token) => kind(7, u128::from(*token)),
            FullTimer::Host(timer) => kind(8, timer.tie()),
            FullTimer::ReductionLate => kind(9, 0),
        }
    }
}

impl<H: Host> Hardware<H> {
    fn new(data: Option<u64>) -> Hardware<H> {
        Hardware {
            data: data.map(|seed| Box::new(DataOfHost::new(seed))),
            host_port: HostPort::default(),
            packetizer: Packetizer::default(),
            mailbox: Mailbox::default(),
            rdma: Rdma::default(),
            reductions: None,
            memory: MemoryChannel::default(),
            iommu: Iommu::default(),
            transmit: Transmit::default(),
            posts: VecDeque::new(),
            failures: VecDeque::new(),
            headers: BTreeMap::new(),
            due: VecDeque::new(),
            next_number: 0,
            checks: 0,
        }
    }

    fn take_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }

    /// When the blocks that share a turn on the link, RDMA and reductions, have a packet.
    #[inline]
    fn large_ready(&self) -> Time {
        let reductions = self.reductions.as_ref().map_or(Time::MAX, |reductions| reductions.due());
        self.rdma.next_outgoing().min(reductions)
    }

    /// Whether another message of the host would be begun on soon.
    fn takes_offers(&self, parameters: &FullParameters) -> bool {
        self.packetizer.waiting() == 0 && self.rdma.under_way() < parameters.rdma.send.write_channels as usize
    }
}

impl<H: Host> FullNic<H> {
    fn with_host<'b, 'c>(
        &mut self,
        parameters: &(FullParameters, H::Parameters),
        context: &mut InterfaceContext<'b, 'c, Self>,
        call: impl FnOnce(&mut H, &H::Parameters, &mut AtHost<'_, 'b, 'c, H>),
    ) {
        let hardware = &mut self.hardware;
        let mut at_host = AtHost { hardware, parameters: &parameters.0, interface: context };
        call(&mut self.host, &parameters.1, &mut at_host);
    }

    fn tell(
        &mut self,
        news: News<H::Header>,
        parameters: &(FullParameters, H::Parameters),
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        match news {
            News::Failure(failure) => self.fail(failure, parameters, context),
            News::Message(due) if H::PASSIVE || due.noticed <= context.now() => {
                self.deliver(due, parameters, context);
            }
            News::Message(due) => {
                debug_assert!(due.noticed >= context.now().saturating_add(parameters.0.least_notice()));
                let queue = &mut self.hardware.due;
                let place = queue.partition_point(|other| other.noticed <= due.noticed);
                queue.insert(place, due);
                context.set_timer(due.noticed, FullTimer::Deliver);
            }
        }
    }

    #[inline]
    fn deliver(
        &mut self,
        due: Due<H::Header>,
        parameters: &(FullParameters, H::Parameters),
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let Due { noticed, from, number, bytes, born, hops, header, interface, in_mailbox } = due;
        if H::PASSIVE && in_mailbox {
            self.hardware.mailbox.take(interface, noticed);
        }
        let delivered = Delivered { from, number, bytes, born, noticed, hops, header, interface, in_mailbox };
        self.with_host(parameters, context, |host, shared, at_host| {
            host.delivered(&delivered, shared, at_host)
        });
    }

    fn fail(
        &mut self,
        failure: Failure,
        parameters: &(FullParameters, H::Parameters),
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        self.with_host(parameters, context, |host, shared, at_host| host.failed(&failure, shared, at_host));
    }

    /// Draws what the host offers, as long as it would be begun on.
    fn take_offers(
        &mut self,
        parameters: &(FullParameters, H::Parameters),
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let now = context.now();
        while self.host.next_offer() <= now && self.hardware.takes_offers(&parameters.0) {
            let Offer::Message(message) = self.host.offer(&parameters.1, now) else { return };
            self.hardware.accept(message, now, &parameters.0, context);
        }
    }
}

impl<H: Host> Nic<H> for FullNic<H> {
    fn new(host: H, _: EndpointId, parameters: &Self::Parameters) -> FullNic<H> {
        FullNic { host, hardware: Hardware::new(H::data(&parameters.1)) }
    }

    fn host_timer(timer: H::Timer) -> FullTimer<H::Timer> {
        FullTimer::Host(timer)
    }

    fn host(&self) -> &H {
        &self.host
    }

    fn unfinished(&self) -> (usize, usize) {
        let hardware = &self.hardware;
        let posts = hardware.posts.len() + hardware.packetizer.unfinished() + hardware.rdma.under_way();
        let posts = posts + hardware.reductions.as_ref().map_or(0, |reductions| reductions.unfinished());
        (posts, hardware.headers.len() + hardware.due.len())
    }
}

impl<H: Host> Interface for FullNic<H> {
    type Parameters = (FullParameters, H::Parameters);
    type Timer = FullTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;
    type Output = H::Output;

    fn is_active(&self) -> bool {
        self.host.is_active()
    }

    fn start(&mut self, parameters: &Self::Parameters, context: &mut InterfaceContext<'_, '_, Self>) {
        self.with_host(parameters, context, |host, shared, at_host| host.start(shared, at_host));
        context.request_pump();
    }

    fn timer(
        &mut self,
        timer: Self::Timer,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        match timer {
            FullTimer::Host(timer) => self.with_host(parameters, context, |host, shared, at_host| {
                host.timer(timer, shared, at_host);
            }),
            FullTimer::Sent(token) => self.with_host(parameters, context, |host, shared, at_host| {
                host.sent(token, shared, at_host);
            }),
            FullTimer::Post => self.hardware.carry_out(&parameters.0, context),
            FullTimer::Failed => {
                let now = context.now();
                let place = self.hardware.failures.iter().position(|(at, _)| *at <= now);
                if let Some((_, failure)) = place.and_then(|place| self.hardware.failures.remove(place)) {
                    self.fail(failure, parameters, context);
                }
            }
            FullTimer::Deliver => {
                if let Some(due) = self.hardware.due.pop_front() {
                    self.deliver(due, parameters, context);
                }
            }
            FullTimer::Reduction(id) => {
                self.hardware.reduction_due(id, &parameters.0, context);
                self.tell_of_data(parameters, context);
            }
            FullTimer::ReductionLate => self.hardware.reduction_late(&parameters.0, context),
            FullTimer::Accelerated(token) => self.with_host(parameters, context, |host, shared, at_host| {
                host.accelerated(token, shared, at_host);
            }),
            FullTimer::Rdma(task) => {
                if let Some(failure) = self.hardware.rdma_task(task, &parameters.0, context) {
                    self.fail(failure, parameters, context);
                }
            }
            FullTimer::Retransmission(channel) => {
                if let Some(failure) = self.hardware.expired(channel, &parameters.0, context) {
                    self.fail(failure, parameters, context);
                }
            }
        }
    }

    fn announced(
        &mut self,
        from: EndpointId,
        message: u32,
        what: Self::Announcement,
        _: &Self::Parameters,
        _: &mut InterfaceContext<'_, '_, Self>,
    ) {
        match what {
            Announcement::Header(header) => {
                if let Some(data) = &mut self.hardware.data {
                    data.memory.expect(from, message, header.bytes);
                }
                self.hardware.headers.insert((from, message), header);
            }
            Announcement::Transfer { first } => {
                if let Some(header) = self.hardware.headers.get_mut(&(from, message)) {
                    header.first = first;
                }
            }
            Announcement::Withdrawn => {
                self.hardware.headers.remove(&(from, message));
                if let Some(data) = &mut self.hardware.data {
                    data.memory.forget(from, message);
                }
            }
            Announcement::Read { cell, offset } => {
                if let Some(data) = &mut self.hardware.data {
                    data.memory.cell_read(from, message, cell, offset);
                }
            }
            Announcement::Words(words) => {
                if let Some(data) = &mut self.hardware.data {
                    data.memory.words(from, &words);
                }
            }
        }
    }

    #[inline]
    fn received(
        &mut self,
        packet: &Packet,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        if let Some(news) = self.hardware.packet(packet, &parameters.0, context) {
            self.tell(news, parameters, context);
        }
        self.tell_of_data(parameters, context);
    }

    fn hop(output: &mut H::Output, hop: &HopRecord) {
        output.hop(hop);
    }

    #[inline]
    fn next_supply(&mut self, _: Time, _: &Self::Parameters) -> Time {
        // Whether an offer would be begun on is asked when its time has come.
        self.hardware.transmit.ready(self.hardware.large_ready()).min(self.host.next_offer())
    }

    fn supply(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Supply {
        self.take_offers(parameters, context);
        let now = context.now();
        // An offer whose time has come waits for room in the blocks, which asks for a packet when it is there.
        let next_offer = Some(self.host.next_offer()).filter(|offer| *offer > now).unwrap_or(Time::MAX);
        let hardware = &mut self.hardware;
        let from = context.endpoint();
        match hardware.transmit.next(now, hardware.large_ready()) {
            Turn::Answer(answer) => {
                let mut packet = Packet::new(from, answer.to, answer.message, 0, now, Part::Whole);
                packet.label = answer.label;
                Supply::Packet(packet)
            }
            Turn::Packetizer { ready, channel, message } => {
                let parcel = hardware.packetizer.parcel(channel).copied();
                let Some(parcel) = parcel.filter(|parcel| parcel.message == message) else {
                    // It has been answered before it could be repeated.
                    return Supply::NotBefore(now);
                };
                if let Some(at) = hardware.packetizer.sent(now, channel, &parameters.0.packetizer) {
                    context.set_timer(at, FullTimer::Retransmission(channel));
                }
                if parcel.watch {
                    let (endpoint, source, message, block) = (from, from, parcel.message, Block::Transmit);
                    let (came, began, ended) = (ready, now, now);
                    context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
                }
                let bytes = parcel.bytes.get() as u32;
                let mut packet =
                    Packet::new(from, parcel.to, parcel.message, bytes, parcel.born, Part::Whole);
                packet.label = Label::Small as u8;
                packet.watch = parcel.watch;
                Supply::Packet(packet)
            }
            Turn::Rdma => {
                let reduction = hardware.next_reduction(from, context);
                match reduction.or_else(|| hardware.rdma_packet(&parameters.0, context)) {
                    Some(packet) => Supply::Packet(packet),
                    None => Supply::not_before(next_offer),
                }
            }
            Turn::NotBefore(time) => Supply::not_before(time.min(next_offer)),
        }
    }
}
