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
pub use descriptor::{DescriptorEvent, DescriptorState};
pub use gpu::{GpuParameters, MemoryKind};
pub use parameters::{
    ApenetxParameters, CardParameters, CardToHostParameters, HostToCardParameters, PcieHostParameters,
};
pub use part::CardPart;
pub use software::SoftwareParameters;

use crate::host::{BlockWork, Host, Incoming, Nic, NicParameters, Side};
use crate::hosted::Hosted;
use crate::observer::Observer as _;
use node::{ApenetxHosted, Card, CardNode};
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::{Announced, HopRecord, Injection, Interface, InterfaceContext, Packet};
use weft_units::{Address, Bytes, EndpointId, Time};

/// The interface, with its host.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct ApenetxNic<H: Host> {
    /// The host.
    pub host: H,
    card: Card<H>,
}

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

impl<H: Host> ApenetxNic<H> {
    /// The host and its node, as the fabric calls them.
    #[inline]
    fn hosted<'a, 'b, 'c>(
        &'a mut self,
        parameters: &'a NicParameters<ApenetxParameters, H::Parameters>,
        fabric: &'a mut InterfaceContext<'b, 'c, Self>,
    ) -> ApenetxHosted<'a, 'b, 'c, H> {
        let node = CardNode { card: &mut self.card, parameters: &parameters.interface, fabric };
        Hosted { host: &mut self.host, parameters: &parameters.host, node }
    }
}

impl<H: Host> Nic<H> for ApenetxNic<H> {
    fn new(host: H, _: EndpointId, _: &Self::Parameters) -> ApenetxNic<H> {
        ApenetxNic { host, card: Card::default() }
    }

    fn host_timer(_: &Self::Parameters, timer: H::Timer) -> ApenetxTimer<H::Timer> {
        ApenetxTimer::Host(timer)
    }

    fn host(&self) -> &H {
        &self.host
    }

    fn unfinished(&self) -> (usize, usize) {
        self.card.unfinished()
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        self.card.visit_arriving(visit);
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        let (calls, out, [back, handler], [down, up]) = self.card.worked();
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

impl<H: Host> Interface for ApenetxNic<H> {
    type Parameters = NicParameters<ApenetxParameters, H::Parameters>;
    type Timer = ApenetxTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;
    type Output = H::Output;

    fn tells_when_ready(&self) -> bool {
        true
    }

    fn is_active(&self) -> bool {
        self.host.is_active()
    }

    fn start(&mut self, parameters: &Self::Parameters, context: &mut InterfaceContext<'_, '_, Self>) {
        self.hosted(parameters, context).start();
        context.request_injection();
    }

    fn timer(
        &mut self,
        timer: Self::Timer,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        self.hosted(parameters, context).timer(timer);
    }

    /// The host says where the message goes to.
    fn announced(
        &mut self,
        announced: Announced<Self::Announcement>,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let Announced { from, message, content } = announced;
        let mut buffer = Address::default();
        if let Some(header) = &content.header {
            let incoming = Incoming { header, bytes: content.bytes, interface: content.interface };
            let Hosted { host, parameters, mut node } = self.hosted(parameters, context);
            buffer = host.destination(incoming, parameters, &mut node);
        }
        self.card.expect((from, message), content, buffer);
    }

    #[inline]
    fn received(
        &mut self,
        packet: &Packet,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let mut hosted = self.hosted(parameters, context);
        hosted.node.catch_up_before();
        if let Some(message) = hosted.node.packet(packet) {
            hosted.notify(message);
        }
    }

    fn hop(output: &mut H::Output, hop: &HopRecord) {
        output.hop(hop);
    }

    #[inline]
    fn next_injection(&mut self, _: Time, parameters: &Self::Parameters) -> Time {
        let offer = match self.card.takes_offers(&parameters.interface) {
            true => self.host.next_offer(),
            // Whatever makes room for another asks for a packet.
            false => Time::NEVER,
        };
        self.card.not_before(&parameters.interface).min(offer)
    }

    #[inline]
    fn inject(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Injection {
        let mut hosted = self.hosted(parameters, context);
        hosted.node.catch_up();
        let next_offer = hosted.take_offers();
        hosted.node.inject(next_offer)
    }
}
