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
//! acknowledgements nor refusals. An endpoint takes whatever comes.
//!
//! # Source
//! TEXTAROSSA D2.8 §2, §3, §5, appendices A and B.
//!
//! # Not modelled
//! - IntraNode ports on ways of their own into the switch: those of one endpoint take turns on its link.
//!   `topology.endpoints_per_switch` gives a node several.
//! - A receiving FIFO that is full and holds packets up in the switch: the dispatcher takes a word per cycle,
//!   and kernels have space for what was sent to them.
//! - `num_of_hops`, `out_of_lattice` and `virt_chan` of headers on their way: the fabric has the same in its
//!   packets.
//! - Repetition: where the link layer does not repeat, a message with a lost or damaged packet never is
//!   whole.

mod aggregator;
mod announcement;
mod dispatcher;
mod fifo;
pub mod footer;
pub mod header;
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
pub use lattice::Lattice;
pub use memory::{KernelMemory, Read};
pub use parameters::{ChosenMemory, CommunicationIpParameters, IntraNodeParameters, KernelBuffers, WORD};

use crate::host::{BlockWork, Host, Nic, NicParameters, Side};
use crate::hosted::Hosted;
use crate::observer::Observer as _;
use node::{Hardware, IpNode};
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::{Announced, HopRecord, Injection, Interface, InterfaceContext, Packet};
use weft_units::{Bytes, EndpointId, Time};

/// The interface, with its host.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct CommunicationIpNic<H: Host> {
    /// The host.
    pub host: H,
    hardware: Hardware<H>,
}

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

impl<H: Host> CommunicationIpNic<H> {
    /// The host and its node, as the fabric calls them.
    #[inline]
    fn hosted<'a, 'b, 'c>(
        &'a mut self,
        parameters: &'a NicParameters<CommunicationIpParameters, H::Parameters>,
        fabric: &'a mut InterfaceContext<'b, 'c, Self>,
    ) -> Hosted<'a, H, IpNode<'a, 'b, 'c, H>> {
        let node = IpNode { hardware: &mut self.hardware, parameters: &parameters.interface, fabric };
        Hosted { host: &mut self.host, parameters: &parameters.host, node }
    }
}

impl<H: Host> Nic<H> for CommunicationIpNic<H> {
    fn new(host: H, endpoint: EndpointId, parameters: &Self::Parameters) -> CommunicationIpNic<H> {
        CommunicationIpNic { host, hardware: Hardware::new(endpoint, &parameters.interface) }
    }

    fn host_timer(_: &Self::Parameters, timer: H::Timer) -> CommunicationIpTimer<H::Timer> {
        CommunicationIpTimer::Host(timer)
    }

    fn host(&self) -> &H {
        &self.host
    }

    fn unfinished(&self) -> (usize, usize) {
        self.hardware.unfinished()
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        self.hardware.visit_arriving(visit);
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        let [aggregators, dispatchers] = self.hardware.worked();
        visit(BlockWork { block: AGGREGATOR.name(), side: Side::Sender, worked: aggregators });
        visit(BlockWork { block: DISPATCHER.name(), side: Side::Receiver, worked: dispatchers });
    }
}

impl<H: Host> Interface for CommunicationIpNic<H> {
    type Parameters = NicParameters<CommunicationIpParameters, H::Parameters>;
    type Timer = CommunicationIpTimer<H::Timer>;
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

    fn announced(
        &mut self,
        announced: Announced<Self::Announcement>,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        self.hosted(parameters, context).node.announced(announced);
    }

    #[inline]
    fn received(
        &mut self,
        packet: &Packet,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let mut hosted = self.hosted(parameters, context);
        if let Some(message) = hosted.node.packet(packet) {
            hosted.notify(message);
        }
    }

    fn hop(output: &mut H::Output, hop: &HopRecord) {
        output.hop(hop);
    }

    #[inline]
    fn next_injection(&mut self, _: Time, _: &Self::Parameters) -> Time {
        self.hardware.ready().min(self.host.next_offer())
    }

    #[inline]
    fn inject(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Injection {
        let mut hosted = self.hosted(parameters, context);
        hosted.take_offers();
        let now = hosted.node.fabric.now();
        // An offer whose time has come waits for space in the FIFOs, which the next packet makes.
        let next_offer = Some(hosted.host.next_offer()).filter(|offer| *offer > now).unwrap_or(Time::NEVER);
        hosted.node.inject(next_offer)
    }
}
