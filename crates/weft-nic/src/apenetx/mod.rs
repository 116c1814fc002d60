//! The interface of the APEnetX card: a PCIe port, its queues, packets of APEnet, and the software around it.
//!
//! ```text
//!            ┌ LibQCM ─ system call ─ driver ─► doorbell ─► descriptor fetch ─┐
//!  host ─────┤                                                               ├─► data ─► packets ─► fabric
//!   ▲        └ LibQCM ─► line of 64 B (fast send) ───────────────────────────┘
//!   │
//!   └── completion: kernel, remapped, direct, user-queue ◄── entry ◄── data ◄── packets ◄───────── fabric
//! ```
//! The blocks are plain data that answer with times and know neither the fabric nor an event queue; `node.rs`
//! joins them to both. A step within the card, such as a doorbell or the fetch of a descriptor, is no event:
//! nobody outside sees it. All that are due are carried out in their order before anything else happens to
//! the card, and the fabric asks for a packet no sooner than one can be ready. Where somebody follows a
//! message, its steps have timers.
//!
//! # Deadlock
//! A packet that arrives goes to memory, whatever else waits: no packet sets off another one, and none waits
//! at an endpoint for one to be sent. There is one class of packets, data, and for the proof of freedom from
//! deadlock endpoints are sinks.
//!
//! # Source
//! APX §3: the card and its software. D1.4 §9.2.1: its optimizations.
//!
//! # Not modelled
//! - Registration and deregistration of buffers as system calls: programs have done it before they send.
//! - Repair from end to end, protection at the target: the documents name none.
//! - For all else see the blocks.

mod card_to_host;
mod completion;
mod delivery;
mod descriptor;
mod gpu;
mod host_to_card;
mod node;
mod parameters;
mod part;
mod process;
mod software;
mod translation;

pub use card_to_host::Announcement;
pub use completion::{ChosenCompletion, CompletionPath, CompletionState, KernelWait};
pub use delivery::ChosenDelivery;
pub use descriptor::{DescriptorEvent, DescriptorState};
pub use gpu::{GpuParameters, MemoryKind};
pub use parameters::{
    ApenetxParameters, CardParameters, CardToHostParameters, HostToCardParameters, PcieHostParameters,
};
pub use part::CardPart;
pub use software::SoftwareParameters;

use crate::capability::Capabilities;
use crate::host::{BlockWork, Delivered, Host, Incoming, Message, NicParameters, Side};
use crate::shell::{NicBoard, NicShell};
use host_to_card::FetchedPacket;
use node::{ApenetxHosted, Card, CardNode};
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::{Announced, Injection, Packet};
use weft_units::{Address, Bytes, EndpointId, Time};

/// The interface, with its host.
pub type ApenetxNic<H> = NicShell<Card<H>, H>;

/// The interface's own events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum ApenetxTimer<T> {
    /// The host's.
    Host(T),
    /// A post is due, or a step of a message whose steps somebody sees.
    Step,
    /// All data of a message is in the card.
    Taken,
    /// The host sees that the data of the message with this token has been taken.
    Sent(u32),
    /// The first message that waits for the host's notice is due.
    Deliver,
    /// A message that failed as it was posted is due.
    Failed,
}

impl<T: Payload> Payload for ApenetxTimer<T> {
    fn tie(&self) -> u128 {
        let kind = |kind: u128, of: u128| kind << 120 | of;
        match self {
            ApenetxTimer::Step => kind(0, 0),
            ApenetxTimer::Taken => kind(3, 0),
            ApenetxTimer::Deliver => kind(4, 0),
            ApenetxTimer::Failed => kind(5, 0),
            ApenetxTimer::Sent(token) => kind(6, u128::from(*token)),
            ApenetxTimer::Host(timer) => kind(7, timer.tie()),
        }
    }
}

impl<T: Copy + Send + Sync> Payload for Announcement<T> {
    fn tie(&self) -> u128 {
        // Of a message there is one.
        0
    }
}

impl<H: Host> NicBoard<H> for Card<H> {
    type Parameters = ApenetxParameters;
    type Timer = ApenetxTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;

    fn new(_: EndpointId, _: &NicParameters<ApenetxParameters, H::Parameters>) -> Card<H> {
        Card::default()
    }

    fn host_timer(timer: H::Timer) -> ApenetxTimer<H::Timer> {
        ApenetxTimer::Host(timer)
    }

    #[inline]
    fn send(node: &mut CardNode<'_, '_, '_, H>, message: Message<H::Header>, at: Time) -> u32 {
        node.accept(message, at)
    }

    fn capabilities<'n>(node: &'n mut CardNode<'_, '_, '_, H>) -> &'n mut dyn Capabilities {
        node
    }

    fn timer(hosted: &mut ApenetxHosted<'_, '_, '_, H>, timer: ApenetxTimer<H::Timer>) {
        hosted.timer(timer);
    }

    /// The host says where the message goes to.
    fn announced(hosted: &mut ApenetxHosted<'_, '_, '_, H>, announced: Announced<Announcement<H::Header>>) {
        let Announced { from, message, content } = announced;
        let mut buffer = Address::default();
        if let Some(header) = &content.header {
            let incoming = Incoming { header, bytes: content.bytes, interface: content.interface };
            buffer = hosted.host.destination(incoming, hosted.parameters, &mut hosted.node);
        }
        hosted.node.hardware.expect((from, message), content, buffer);
    }

    #[inline]
    fn received(hosted: &mut ApenetxHosted<'_, '_, '_, H>, packet: &Packet) {
        hosted.node.catch_up_before();
        if let Some(message) = hosted.node.packet(packet) {
            hosted.notify(message);
        }
    }

    #[inline]
    fn next_injection(&mut self, host: &H, _: Time, parameters: &ApenetxParameters) -> Time {
        let offer = match self.takes_offers(parameters) {
            true => host.next_offer(),
            // Whatever makes room for another asks for a packet.
            false => Time::NEVER,
        };
        self.not_before(parameters).min(offer)
    }

    #[inline]
    fn inject(hosted: &mut ApenetxHosted<'_, '_, '_, H>) -> Injection {
        hosted.node.catch_up();
        let next_offer = hosted.take_offers();
        hosted.node.inject(next_offer)
    }

    /// Messages that have not left whole, and such that have not arrived whole.
    fn unfinished(&self) -> (usize, usize) {
        let last = |packet: &&FetchedPacket| packet.is_whole || packet.index == 0;
        let packets = self.send.packets.iter().filter(last).count();
        let calls = self.posts.len() + self.processes.waiting() + self.stores.len();
        (calls + self.send.waiting() + packets, self.receive.unfinished() + self.due.len())
    }

    /// Shows the messages that come, and how much of each has.
    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        let of_due = |message: &Delivered<H::Header>| (message.header, message.bytes);
        let all = self.receive.arriving().chain(self.due.entries().map(of_due));
        all.for_each(|(header, came)| header.iter().for_each(|header| visit(header, came)));
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        let (calls, out, [back, handler], [down, up]) = self.worked();
        for (side, block, worked) in [
            (Side::Sender, CardPart::Library.block().name(), calls),
            (Side::Sender, CardPart::HostToCard.block().name(), out),
            (Side::Sender, down.0, down.1),
            (Side::Sender, up.0, up.1),
            (Side::Receiver, CardPart::CardToHost.block().name(), back),
            (Side::Receiver, CardPart::Driver.block().name(), handler),
        ] {
            visit(BlockWork { block, side, worked });
        }
    }
}
