//! The INFN Communication IP: IntraNode ports with FIFOs on the switch of a torus of FPGAs.
//!
//! ```text
//!  kernel ─► aggregator ─► TX FIFOs ─┐ header, footer                  ┌─► TX FIFOs' readers: the switch
//!                                    ├ data ────► ports take turns ────┤
//!  packet generator ─────────────────┘                                 │
//!                                                                      │   dimension order, virtual
//!  kernel ◄─ dispatcher ◄─ RX FIFOs ◄──────────────────────────────────┘   cut-through: the fabric
//!  consumer ◄─────────────┘
//! ```
//! Kernels in logic take the place of processes: a host's virtual interface is an IntraNode port. The switch,
//! its two virtual channels, the InterNode ports and their link layer are the fabric's.
//!
//! # Deadlock
//! The interface sends nothing of its own accord: no packet sets off another one, so that there are neither
//! acknowledgements nor refusals. Dispatchers take what comes into memory. A kernel takes small messages,
//! which are packets of its own, from the receiving FIFOs itself: while it does not, packets for it wait in
//! the switch, and kernels that wait for each other so stand still for ever.
//!
//! # Source
//! TEXTAROSSA D2.8 §2, §3, §5, appendices A and B.
//!
//! # Not modelled
//! - IntraNode ports on ways of their own into the switch: those of one endpoint take turns on its link.
//!   `topology.endpoints_per_switch` gives a node several.
//! - Receiving FIFOs for headers and for data apart: their space counts together. Ports of one endpoint share
//!   theirs, as they share the link.
//! - Repetition: where the link layer does not repeat, a message with a lost or damaged packet never is
//!   whole.

mod aggregator;
mod announcement;
mod dispatcher;
mod fifo;
pub mod footer;
pub mod header;
mod host_sync;
mod lattice;
mod memory;
mod node;
mod parameters;
mod port;
pub mod registers;
pub mod self_test;

pub use aggregator::{AGGREGATOR, Aggregator, AggregatorInput, AggregatorState, Writing};
pub use announcement::Announcement;
pub use dispatcher::{DISPATCHER, Dispatcher, Piece, Progress, Reading, Reassembly};
pub use fifo::TRANSMIT_FIFO;
pub use host_sync::HostSync;
pub use lattice::Lattice;
pub use memory::{KernelMemory, Read};
pub use parameters::{ChosenMemory, CommunicationIpParameters, IntraNodeParameters, KernelBuffers, WORD};

use crate::capability::Capabilities;
use crate::host::{BlockWork, Delivered, Host, Message, NicParameters, Side};
use crate::shell::{NicBoard, NicShell};
use node::{Hardware, Incoming, IpHosted, IpNode};
use port::Port;
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::{Announced, Injection, Packet};
use weft_units::{Bytes, EndpointId, Time};

/// The interface, with its host.
pub type CommunicationIpNic<H> = NicShell<Hardware<H>, H>;

/// The interface's own events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum CommunicationIpTimer<T> {
    /// The host's.
    Host(T),
    /// A message that was posted ahead of time is due.
    Post,
    /// A message that failed as it was posted is due.
    Failed,
    /// The first message that waits for its kernel's notice is due.
    Deliver,
    /// All data of the message with this token is in the FIFO.
    Sent(u32),
}

impl<T: Payload> Payload for CommunicationIpTimer<T> {
    fn tie(&self) -> u128 {
        let kind = |kind: u128, of: u128| kind << 120 | of;
        match self {
            CommunicationIpTimer::Post => kind(0, 0),
            CommunicationIpTimer::Failed => kind(1, 0),
            CommunicationIpTimer::Deliver => kind(2, 0),
            CommunicationIpTimer::Sent(token) => kind(3, u128::from(*token)),
            CommunicationIpTimer::Host(timer) => kind(8, timer.tie()),
        }
    }
}

impl<H: Host> NicBoard<H> for Hardware<H> {
    type Parameters = CommunicationIpParameters;
    type Timer = CommunicationIpTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;

    fn new(
        endpoint: EndpointId,
        parameters: &NicParameters<CommunicationIpParameters, H::Parameters>,
    ) -> Hardware<H> {
        Hardware::at(endpoint, &parameters.interface)
    }

    fn host_timer(timer: H::Timer) -> CommunicationIpTimer<H::Timer> {
        CommunicationIpTimer::Host(timer)
    }

    fn send(node: &mut IpNode<'_, '_, '_, H>, message: Message<H::Header>, at: Time) -> u32 {
        node.accept(message, at)
    }

    fn capabilities<'n>(node: &'n mut IpNode<'_, '_, '_, H>) -> &'n mut dyn Capabilities {
        node
    }

    fn timer(hosted: &mut IpHosted<'_, '_, '_, H>, timer: CommunicationIpTimer<H::Timer>) {
        hosted.timer(timer);
    }

    fn announced(hosted: &mut IpHosted<'_, '_, '_, H>, announced: Announced<Announcement<H::Header>>) {
        hosted.node.announced(announced);
    }

    #[inline]
    fn received(hosted: &mut IpHosted<'_, '_, '_, H>, packet: &Packet) {
        if let Some(message) = hosted.node.packet(packet) {
            hosted.notify(message);
        }
    }

    #[inline]
    fn next_injection(&mut self, host: &H, _: Time, _: &CommunicationIpParameters) -> Time {
        self.ready().min(host.next_offer())
    }

    #[inline]
    fn inject(hosted: &mut IpHosted<'_, '_, '_, H>) -> Injection {
        hosted.take_offers();
        let now = hosted.node.fabric.now();
        // An offer whose time has come waits for space in the FIFOs, which the next packet makes.
        let next_offer = Some(hosted.host.next_offer()).filter(|offer| *offer > now).unwrap_or(Time::NEVER);
        hosted.node.inject(next_offer)
    }

    /// Messages that are not in the FIFOs whole, and such that have not come whole or are not noticed.
    fn unfinished(&self) -> (usize, usize) {
        let waiting = self.ports.iter().map(Port::waiting).sum();
        (waiting, self.incoming.len() + self.deliveries.len())
    }

    /// Shows the messages that come, and how much of each has.
    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        let of_incoming = |message: &Incoming<H::Header>| (message.header.header, message.reassembly.came());
        let of_due = |message: &Delivered<H::Header>| (message.header, message.bytes);
        let all = self.incoming.messages().map(of_incoming).chain(self.deliveries.iter().map(of_due));
        all.for_each(|(header, came)| header.iter().for_each(|header| visit(header, came)));
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        let [aggregators, dispatchers] = self.worked();
        visit(BlockWork { block: AGGREGATOR.name(), side: Side::Sender, worked: aggregators });
        visit(BlockWork { block: DISPATCHER.name(), side: Side::Receiver, worked: dispatchers });
    }
}
