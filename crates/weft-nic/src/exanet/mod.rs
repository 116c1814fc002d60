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
//! An endpoint takes whatever arrives at once, into memory or not at all: no packet waits on a link for an
//! endpoint, and none at an endpoint for another one to be sent. What a packet sets off, an answer, waits in
//! a queue of its own that holds one per packet that others have outstanding, and never in the way of what
//! arrives. So no
//! class of packets waits for another: for the proof of freedom from deadlock, endpoints are sinks.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.2 to §4.5, §5.1.
//!
//! # Not modelled
//! - Priorities among blocks (§4.2): they take turns. Traffic classes and congestion control, which the text
//!   asks for (§4, §4.2) and does not describe, are those of the fabric.
//! - Resources of the FPGA (§4.6), and the versions for RISC-V cores (§4.2).
//!
//! For all else see the blocks.

mod announcement;
mod bytes;
mod capabilities;
mod check;
mod class;
mod header;
mod node;
mod options;
mod parameters;
mod post;
mod rdma;
mod receive;
mod reduction;
mod requests;
mod small;
mod transmit;
pub mod wire;

use announcement::Expected;
pub use announcement::{Announcement, MessageFields, SimulationWords};
pub use check::CheckParameters;
pub use class::Class;
pub use header::Header;
pub use node::MemoryBlocks;
pub use options::TokenWhenAcknowledged;
pub use parameters::ExanetParameters;

use crate::allreduce::OperationId;
use crate::block::Block;
use crate::capability::Capabilities;
use crate::host::{BlockWork, Delivered, Host, Message, NicParameters, Refused, Side};
use crate::iommu::IOMMU;
use crate::mailbox::MAILBOX;
use crate::observer::Stage;
use crate::packetizer::{ChannelId, EnginePacket, PACKETIZER, Packetizer};
use crate::ports::Crossing;
use crate::rdma::{Rdma, Task};
use crate::shell::{NicBoard, NicShell};
use node::{ExanetHosted, ExanetNode, Hardware};
use reduction::Reductions;
use serde::{Deserialize, Serialize};
use transmit::{Answer, Candidate, Turn};
use weft_engine::Payload;
use weft_fabric::{Addressing, Announced, Injection, InterfaceContext, MessagePart, Packet, PacketLabel};
use weft_units::{Bytes, CountLedger, EndpointId, Time};

/// The interface, with its host.
pub type ExanetNic<H> = NicShell<Hardware<H>, H>;

/// The interface's own events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum ExanetTimer<T> {
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
    /// The first request of a read without a verdict gets it.
    Request,
    /// The first small message that has waited for a slot of the mailbox has been taken.
    Slot,
}

impl<T: Payload> Payload for ExanetTimer<T> {
    fn tie(&self) -> u128 {
        let kind = |kind: u128, of: u128| kind << 120 | of;
        match self {
            ExanetTimer::Post => kind(0, 0),
            ExanetTimer::Failed => kind(1, 0),
            ExanetTimer::Deliver => kind(2, 0),
            ExanetTimer::Sent(token) => kind(3, u128::from(*token)),
            ExanetTimer::Retransmission(id) => {
                kind(4, u128::from(id.interface) << 16 | u128::from(id.channel))
            }
            ExanetTimer::Rdma(task) if task.comes_last() => kind(12, u128::from(task.tie())),
            ExanetTimer::Rdma(task) => kind(5, u128::from(task.tie())),
            ExanetTimer::Reduction(OperationId { group, sequence, block }) => {
                let operation = u128::from(*group) << 32 | u128::from(*sequence);
                kind(6, operation << 32 | u128::from(*block))
            }
            ExanetTimer::Accelerated(token) => kind(7, u128::from(*token)),
            ExanetTimer::Host(timer) => kind(8, timer.tie()),
            ExanetTimer::ReductionLate => kind(9, 0),
            ExanetTimer::Request => kind(10, 0),
            ExanetTimer::Slot => kind(11, 0),
        }
    }
}

impl<H: Host> NicBoard<H> for Hardware<H> {
    type Parameters = ExanetParameters;
    type Timer = ExanetTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;

    fn new(endpoint: EndpointId, parameters: &NicParameters<ExanetParameters, H::Parameters>) -> Hardware<H> {
        let mut hardware = Hardware::with_data(H::data(&parameters.host));
        let ports = H::ports(&parameters.host);
        (hardware.watched, hardware.in_place) = (ports.reported, ports.blocks(endpoint));
        hardware
    }

    fn host_timer(timer: H::Timer) -> ExanetTimer<H::Timer> {
        ExanetTimer::Host(timer)
    }

    #[inline]
    fn send(node: &mut ExanetNode<'_, '_, '_, H>, message: Message<H::Header>, at: Time) -> u32 {
        node.accept(message, at)
    }

    fn capabilities<'n>(node: &'n mut ExanetNode<'_, '_, '_, H>) -> &'n mut dyn Capabilities {
        node
    }

    fn timer(hosted: &mut ExanetHosted<'_, '_, '_, H>, timer: ExanetTimer<H::Timer>) {
        hosted.timer(timer);
    }

    fn announced(hosted: &mut ExanetHosted<'_, '_, '_, H>, announced: Announced<Announcement<H::Header>>) {
        hosted.announced(announced);
    }

    #[inline]
    fn received(hosted: &mut ExanetHosted<'_, '_, '_, H>, packet: &Packet) {
        if let Some(notice) = hosted.node.packet(packet) {
            hosted.notify(notice);
        }
        hosted.report_damage();
    }

    #[inline]
    fn next_injection(&mut self, host: &H, _: Time, _: &ExanetParameters) -> Time {
        // Whether an offer would be begun on is asked when its time has come.
        self.transmit.ready(self.large_ready()).min(host.next_offer())
    }

    fn inject(hosted: &mut ExanetHosted<'_, '_, '_, H>) -> Injection {
        let now = hosted.node.fabric.now();
        if hosted.host.next_offer() <= now {
            hosted.take_offers();
        }
        // An offer whose time has come waits for space in the blocks, which asks for a packet when it is
        // there.
        let next_offer = Some(hosted.host.next_offer()).filter(|offer| *offer > now).unwrap_or(Time::NEVER);
        hosted.node.inject(next_offer)
    }

    fn counts(&self) -> Option<&CountLedger> {
        self.repairs.as_deref()
    }

    fn counts_mut(&mut self) -> Option<&mut CountLedger> {
        self.repairs.as_deref_mut()
    }

    fn unfinished(&self) -> (usize, usize) {
        let posts = self.posts.len() + self.packetizer.unfinished() + self.rdma.unfinished();
        let posts = posts + self.reductions.as_ref().map_or(0, |reductions| reductions.unfinished());
        (posts, self.headers.len() + self.deliveries.len())
    }

    fn refused(&self) -> Refused {
        let mut refused = Refused::default();
        let Hardware { packetizer, posts, .. } = self;
        for parcel in packetizer.parcels().chain(posts.parcels()).filter(|parcel| parcel.refused > 0) {
            refused += Refused { messages: 1, repeats: parcel.refused.into() };
        }
        refused
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        let of_expected = |message: &Expected<H::Header>| (message.header, message.came);
        let of_due = |message: &Delivered<H::Header>| (message.header, message.bytes);
        let Hardware { headers, deliveries, .. } = self;
        let all = headers.messages().map(of_expected).chain(deliveries.iter().map(of_due));
        all.for_each(|(header, came)| header.iter().for_each(|header| visit(header, came)));
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        let Hardware { memory, packetizer, mailbox, rdma, .. } = self;
        let [stores, reads, writes] = memory.port.worked();
        let [agent, contexts, send] = rdma.worked();
        for (side, (block, worked)) in [
            (Side::Sender, (PACKETIZER.name(), packetizer.worked())),
            (Side::Sender, agent),
            (Side::Sender, contexts),
            (Side::Sender, send),
            (Side::Sender, stores),
            (Side::Sender, reads),
            (Side::Receiver, writes),
            (Side::Receiver, (MAILBOX.name(), mailbox.worked())),
            (Side::Sender, (IOMMU.name(), memory.iommu.worked())),
            (Side::Sender, (Block::MEMORY.name(), memory.channel.worked())),
        ] {
            visit(BlockWork { block, side, worked });
        }
    }
}

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// The next packet for the link. The host offers its next message at `next_offer`.
    #[inline]
    fn inject(&mut self, next_offer: Time) -> Injection {
        let (now, source) = (self.fabric.now(), self.fabric.endpoint());
        let large_ready = self.hardware.large_ready();
        let Hardware { transmit, packetizer, rdma, reductions, .. } = &mut *self.hardware;
        let fabric = &*self.fabric;
        let (admits_all, waiting) = (fabric.admits_all(), Waiting { packetizer, rdma, reductions });
        let turn = transmit
            .next(now, large_ready, |candidate| admits_all || admits::<H>(fabric, &waiting, candidate));
        match turn {
            Turn::Answer(Answer { to: destination, message, channel, refusal }) => {
                let refused = |refusal| Header::Refused(channel, refusal);
                let header = refusal.map_or(Header::Acknowledgement(channel), refused);
                Injection::Packet(header.packet(Addressing { source, destination, message }, 0))
            }
            Turn::Packetizer(packet) => self.small_packet(&packet),
            Turn::Rdma => match self.next_reduction().or_else(|| self.rdma_packet()) {
                Some(packet) => Injection::Packet(packet),
                None => Injection::not_before(next_offer),
            },
            Turn::NotBefore(time) => Injection::not_before(time.min(next_offer)),
        }
    }

    /// A packet that the engine has made.
    #[inline(never)]
    fn small_packet(&mut self, packet: &EnginePacket) -> Injection {
        let (now, source) = (self.fabric.now(), self.fabric.endpoint());
        let EnginePacket { made: ready, channel, message, .. } = *packet;
        let Some(parcel) = self.hardware.packetizer.parcel_of(packet).copied() else {
            // It has been answered before it could be repeated.
            if let Some(packetizer) = self.hardware.packetizer_in_place() {
                packetizer.drop_stale(channel, message, now);
            }
            self.port(|| Crossing::Stale { channel, message });
            return Injection::NotBefore(now);
        };
        if parcel.refused > 0 || self.hardware.packetizer.repeated(channel) {
            self.hardware.ledger().counts.resent += 1;
        }
        let timer = self.hardware.packetizer.sent(now, channel, &self.parameters.packetizer);
        if let Some(at) = timer {
            self.fabric.set_timer(at, ExanetTimer::Retransmission(channel));
        }
        if parcel.watch {
            let (endpoint, block, came, began, ended) = (source, Block::TRANSMIT, ready, now, now);
            self.stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        let addressing = Addressing { source, destination: parcel.to, message };
        if let Some(packetizer) = self.hardware.packetizer_in_place() {
            packetizer.send(channel, message, now);
        }
        self.port(|| Crossing::Sent { channel, message });
        let header = match parcel.is_request {
            true => Header::ReadRequest(channel),
            false => Header::Small(channel),
        };
        let owner = (parcel.to_interface, parcel.domain);
        let mut packet = header.to_mailbox(addressing, parcel.bytes, owner).of_class(parcel.class);
        packet.watch(parcel.watch);
        Injection::Packet(packet)
    }
}

/// The blocks that have packets, as the network is asked whether it takes them.
struct Waiting<'a> {
    packetizer: &'a Packetizer,
    rdma: &'a Rdma,
    reductions: &'a Option<Box<Reductions>>,
}

/// Whether the network takes a packet of the candidate's traffic class now.
#[cold]
fn admits<H: Host>(
    fabric: &InterfaceContext<'_, '_, ExanetNic<H>>,
    waiting: &Waiting<'_>,
    candidate: Candidate,
) -> bool {
    const ANSWER: PacketLabel = PacketLabel::acknowledgement(0);
    const DATA: PacketLabel = PacketLabel::data(0);
    let (now, Waiting { packetizer, rdma, reductions }) = (fabric.now(), waiting);
    match candidate {
        Candidate::Answer => fabric.admits(ANSWER, MessagePart::Whole, 0),
        Candidate::Small(channel) => {
            // One that has been answered before it could be repeated needs no place.
            packetizer.parcel(channel).is_none_or(|parcel| fabric.admits_class(parcel.class))
        }
        Candidate::Rdma => match reductions.as_deref().and_then(|reductions| reductions.ready(now)) {
            Some(bytes) => fabric.admits(DATA, MessagePart::Whole, bytes.get() as u32),
            None if rdma.answers_next(now) => fabric.admits(ANSWER, MessagePart::Whole, 0),
            None => fabric.admits_class(rdma.next_class()),
        },
    }
}
