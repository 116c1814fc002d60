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
use weft_units::{Bytes, CountLedger, EndpointId, Time};
use weft_workload::host::{NoRanks, SharedHost};
use weft_workload::replay::ReplayHost;
use weft_workload::traffic::TrafficSource;

/// Makes of the list of models what each has once. `$` comes first, for the macros that it makes.
macro_rules! models {
    ($d:tt $($(#[$doc:meta])* $model:ident = $nic:ident, in $held:ty;)*) => {
        /// A thing for which each model of an interface has a type of its own.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum OfModel<$($model),*> {
            $($(#[$doc])* $model($model),)*
        }

        /// An interface of one of the models, with its host. Large ones lie apart, so that machines of small
        /// ones take no more memory for them.
        pub type AnyNic<H> = OfModel<$($held),*>;

        /// The parameters of an interface of one of the models, with its host.
        pub type AnyParameters<H> = OfModel<$(<$nic<H> as Interface>::Parameters),*>;

        /// A timer of such an interface.
        pub type AnyTimer<H> = OfModel<$(<$nic<H> as Interface>::Timer),*>;

        /// An announcement of such an interface.
        pub type AnyAnnouncement<H> = OfModel<$(<$nic<H> as Interface>::Announcement),*>;

        /// Does the same with what is inside, whichever model it is of.
        macro_rules! of_any {
            ($d any:expr, $d own:ident => $d call:expr) => {
                match $d any {
                    $(OfModel::$model($d own) => $d call,)*
                }
            };
        }

        /// Calls an interface with what belongs to its model, and with the context that it is lent.
        macro_rules! of_same {
            ($d any:ident, $d context:ident, ($d($d own:ident),*), $d call:expr) => {
                match $d any {
                    $(OfModel::$model(nic) => {
                        $d(let OfModel::$model($d own) = $d own else { of_another_model() };)*
                        let nic: &mut $nic<H> = nic;
                        $d context.lend(OfModel::$model, OfModel::$model, |context| {
                            $d call(nic, $d($d own,)* context)
                        })
                    })*
                }
            };
        }

        impl<$($model: Payload),*> Payload for OfModel<$($model),*> {
            #[inline]
            fn tie(&self) -> u128 {
                of_any!(self, own => own.tie())
            }
        }

        /// Makes an interface of the model of its parameters.
        fn make<H: Host>(host: H, endpoint: EndpointId, parameters: &AnyParameters<H>) -> AnyNic<H> {
            match parameters {
                $(OfModel::$model(own) => {
                    let nic: $nic<H> = Nic::new(host, endpoint, own);
                    OfModel::$model(nic.into())
                })*
            }
        }

        /// A timer of the host as one of the interface with these parameters.
        fn host_timer<H: Host>(parameters: &AnyParameters<H>, timer: H::Timer) -> AnyTimer<H> {
            match parameters {
                $(OfModel::$model(own) => OfModel::$model($nic::<H>::host_timer(own, timer)),)*
            }
        }

        /// As [`Interface::next_injection`].
        #[inline]
        fn next_injection<H: Host>(nic: &mut AnyNic<H>, free: Time, parameters: &AnyParameters<H>) -> Time {
            match (nic, parameters) {
                $((OfModel::$model(nic), OfModel::$model(own)) => nic.next_injection(free, own),)*
                _ => of_another_model(),
            }
        }
    };
}

models! { $
    /// Overheads per message and per packet.
    Overheads = OverheadsNic, in OverheadsNic<H>;
    /// The transport of BXI machines.
    Portals = PortalsNic, in Box<PortalsNic<H>>;
    /// The blocks of the ExaNet interface.
    Exanet = ExanetNic, in Box<ExanetNic<H>>;
    /// The blocks of the INFN Communication IP.
    CommunicationIp = CommunicationIpNic, in CommunicationIpNic<H>;
    /// The card of APEnetX.
    Apenetx = ApenetxNic, in Box<ApenetxNic<H>>;
}

/// Bytes of an event of a network with such interfaces.
const fn event<H: Host>() -> usize {
    size_of::<Event<Wire<AnyTimer<H>, AnyAnnouncement<H>>>>()
}

const _: () = assert!(event::<TrafficSource>() == 64, "an event of traffic is a cache line");
const _: () = assert!(event::<SharedHost<NoRanks>>() == 64, "an event of flows is a cache line");
const _: () = assert!(event::<SharedHost<ReplayHost>>() <= 128, "larger ones are moved by a call of memcpy");

/// Something that belongs to an interface of another model has come to one.
#[cold]
fn of_another_model() -> ! {
    unreachable!("all interfaces of a machine are of one model")
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

    fn counts(&self) -> Option<&CountLedger> {
        of_any!(self, nic => nic.counts())
    }

    fn counts_mut(&mut self) -> Option<&mut CountLedger> {
        of_any!(self, nic => nic.counts_mut())
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
        next_injection(self, free, parameters)
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
        make(host, endpoint, parameters)
    }

    fn host_timer(parameters: &AnyParameters<H>, timer: H::Timer) -> AnyTimer<H> {
        host_timer::<H>(parameters, timer)
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
