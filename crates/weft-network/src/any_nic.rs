//! The interfaces of all models as one type, so that a network is compiled once for a host, and not once for
//! each pair of host and interface.
//!
//! ```text
//!   fabric ──► AnyNic ── match ──► the interface of the machine
//!     ▲                                │ timers, announcements
//!     └──────── as one of five ◄───────┘
//! ```
//! All interfaces of a machine are of one model. So a call asks which one it is, and hands itself on.

use serde::{Deserialize, Serialize};
use weft_engine::{Event, Payload};
use weft_fabric::{Announced, HopRecord, Injection, Interface, InterfaceContext, Packet, Wire};
use weft_nic::{
    ApenetxNic, BlockWork, CommunicationIpNic, ExanetNic, Host, Nic, Observer as _, OverheadsNic, PortalsNic,
    Refused,
};
use weft_units::{Bytes, EndpointId, Time};
use weft_workload::host::{NoRanks, SharedHost};
use weft_workload::replay::ReplayHost;
use weft_workload::traffic::TrafficSource;

/// A thing for which each model of an interface has a type of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum OfModel<O, P, E, C, A> {
    /// Overheads per message and per packet.
    Overheads(O),
    /// The transport of BXI machines.
    Portals(P),
    /// The blocks of the ExaNet interface.
    Exanet(E),
    /// The blocks of the INFN Communication IP.
    CommunicationIp(C),
    /// The card of APEnetX.
    Apenetx(A),
}

/// An interface of one of the models, with its host. Large ones lie apart, so that machines of small ones
/// take no more memory for them.
pub type AnyNic<H> = OfModel<
    OverheadsNic<H>,
    Box<PortalsNic<H>>,
    Box<ExanetNic<H>>,
    CommunicationIpNic<H>,
    Box<ApenetxNic<H>>,
>;

/// The parameters of an interface of one of the models, with its host.
pub type AnyParameters<H> = OfModel<
    <OverheadsNic<H> as Interface>::Parameters,
    <PortalsNic<H> as Interface>::Parameters,
    <ExanetNic<H> as Interface>::Parameters,
    <CommunicationIpNic<H> as Interface>::Parameters,
    <ApenetxNic<H> as Interface>::Parameters,
>;

/// A timer of such an interface.
pub type AnyTimer<H> = OfModel<
    <OverheadsNic<H> as Interface>::Timer,
    <PortalsNic<H> as Interface>::Timer,
    <ExanetNic<H> as Interface>::Timer,
    <CommunicationIpNic<H> as Interface>::Timer,
    <ApenetxNic<H> as Interface>::Timer,
>;

/// An announcement of such an interface.
pub type AnyAnnouncement<H> = OfModel<
    <OverheadsNic<H> as Interface>::Announcement,
    <PortalsNic<H> as Interface>::Announcement,
    <ExanetNic<H> as Interface>::Announcement,
    <CommunicationIpNic<H> as Interface>::Announcement,
    <ApenetxNic<H> as Interface>::Announcement,
>;

/// Bytes of an event of a network with such interfaces.
const fn event<H: Host>() -> usize {
    size_of::<Event<Wire<AnyTimer<H>, AnyAnnouncement<H>>>>()
}

const _: () = assert!(event::<TrafficSource>() == 64, "an event of traffic is a cache line");
const _: () = assert!(event::<SharedHost<NoRanks>>() == 64, "an event of flows is a cache line");
const _: () = assert!(event::<SharedHost<ReplayHost>>() <= 128, "larger ones are moved by a call of memcpy");

/// Does the same with what is inside, whichever model it is of.
macro_rules! of_any {
    ($any:expr, $own:ident => $call:expr) => {
        match $any {
            OfModel::Overheads($own) => $call,
            OfModel::Portals($own) => $call,
            OfModel::Exanet($own) => $call,
            OfModel::CommunicationIp($own) => $call,
            OfModel::Apenetx($own) => $call,
        }
    };
}

/// Calls an interface with what belongs to its model, and with the context that it is lent.
macro_rules! of_same {
    ($any:ident, $context:ident, $own:tt, $call:expr) => {
        match $any {
            OfModel::Overheads(nic) => of_same!(@ Overheads, nic, $context, $own, $call),
            OfModel::Portals(nic) => of_same!(@ Portals, &mut **nic, $context, $own, $call),
            OfModel::Exanet(nic) => of_same!(@ Exanet, &mut **nic, $context, $own, $call),
            OfModel::CommunicationIp(nic) => of_same!(@ CommunicationIp, nic, $context, $own, $call),
            OfModel::Apenetx(nic) => of_same!(@ Apenetx, &mut **nic, $context, $own, $call),
        }
    };
    (@ $model:ident, $nic:expr, $context:ident, ($($own:ident),*), $call:expr) => {{
        $(let OfModel::$model($own) = $own else { of_another_model() };)*
        $context.lend(OfModel::$model, OfModel::$model, |context| $call($nic, $($own,)* context))
    }};
}

/// Something that belongs to an interface of another model has come to one.
#[cold]
fn of_another_model() -> ! {
    unreachable!("all interfaces of a machine are of one model")
}

impl<O: Payload, P: Payload, E: Payload, C: Payload, A: Payload> Payload for OfModel<O, P, E, C, A> {
    #[inline]
    fn tie(&self) -> u128 {
        of_any!(self, own => own.tie())
    }
}

impl<H: Host> Interface for AnyNic<H> {
    type Parameters = AnyParameters<H>;
    type Timer = AnyTimer<H>;
    type Announcement = AnyAnnouncement<H>;
    type Output = H::Output;

    fn tells_when_ready(&self) -> bool {
        of_any!(self, nic => nic.tells_when_ready())
    }

    fn answers(&self) -> bool {
        of_any!(self, nic => nic.answers())
    }

    fn is_active(&self) -> bool {
        of_any!(self, nic => nic.is_active())
    }

    fn start(&mut self, parameters: &Self::Parameters, context: &mut InterfaceContext<'_, '_, Self>) {
        of_same!(self, context, (parameters), Interface::start)
    }

    fn timer(
        &mut self,
        timer: Self::Timer,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        of_same!(self, context, (timer, parameters), Interface::timer)
    }

    fn announced(
        &mut self,
        announced: Announced<Self::Announcement>,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let Announced { from, message, content } = announced;
        of_same!(self, context, (content, parameters), |nic, content, parameters, context| {
            Interface::announced(nic, Announced { from, message, content }, parameters, context)
        })
    }

    #[inline]
    fn received(
        &mut self,
        packet: &Packet,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        of_same!(self, context, (parameters), |nic, parameters, context| {
            Interface::received(nic, packet, parameters, context)
        })
    }

    fn hop(output: &mut H::Output, hop: &HopRecord) {
        output.hop(hop);
    }

    #[inline]
    fn next_injection(&mut self, free: Time, parameters: &Self::Parameters) -> Time {
        match (self, parameters) {
            (OfModel::Overheads(nic), OfModel::Overheads(own)) => nic.next_injection(free, own),
            (OfModel::Portals(nic), OfModel::Portals(own)) => nic.next_injection(free, own),
            (OfModel::Exanet(nic), OfModel::Exanet(own)) => nic.next_injection(free, own),
            (OfModel::CommunicationIp(nic), OfModel::CommunicationIp(own)) => nic.next_injection(free, own),
            (OfModel::Apenetx(nic), OfModel::Apenetx(own)) => nic.next_injection(free, own),
            _ => of_another_model(),
        }
    }

    #[inline]
    fn inject(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Injection {
        of_same!(self, context, (parameters), Interface::inject)
    }
}

impl<H: Host> Nic<H> for AnyNic<H> {
    fn new(host: H, endpoint: EndpointId, parameters: &AnyParameters<H>) -> AnyNic<H> {
        match parameters {
            OfModel::Overheads(own) => OfModel::Overheads(Nic::new(host, endpoint, own)),
            OfModel::Portals(own) => OfModel::Portals(Box::new(Nic::new(host, endpoint, own))),
            OfModel::Exanet(own) => OfModel::Exanet(Box::new(Nic::new(host, endpoint, own))),
            OfModel::CommunicationIp(own) => OfModel::CommunicationIp(Nic::new(host, endpoint, own)),
            OfModel::Apenetx(own) => OfModel::Apenetx(Box::new(Nic::new(host, endpoint, own))),
        }
    }

    fn host_timer(parameters: &AnyParameters<H>, timer: H::Timer) -> AnyTimer<H> {
        match parameters {
            OfModel::Overheads(own) => OfModel::Overheads(OverheadsNic::<H>::host_timer(own, timer)),
            OfModel::Portals(own) => OfModel::Portals(PortalsNic::<H>::host_timer(own, timer)),
            OfModel::Exanet(own) => OfModel::Exanet(ExanetNic::<H>::host_timer(own, timer)),
            OfModel::CommunicationIp(own) => {
                OfModel::CommunicationIp(CommunicationIpNic::<H>::host_timer(own, timer))
            }
            OfModel::Apenetx(own) => OfModel::Apenetx(ApenetxNic::<H>::host_timer(own, timer)),
        }
    }

    fn host(&self) -> &H {
        of_any!(self, nic => nic.host())
    }

    fn unfinished(&self) -> (usize, usize) {
        of_any!(self, nic => nic.unfinished())
    }

    fn refused(&self) -> Refused {
        of_any!(self, nic => nic.refused())
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        of_any!(self, nic => nic.visit_arriving(visit));
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        of_any!(self, nic => nic.visit_work(visit));
    }
}
