//! A host whose interface several programs share, each by virtual interfaces of its own.
//!
//! ```text
//!   ranks ── virtual interfaces 0, 1, … ──┐
//!                                         ├──► interface ──► fabric
//!   flows ── the first that no rank has ──┤
//!   stores, clients ── the next ──────────┘
//! ```
//! Each of them is a [`Host`] that knows nothing of the others. It is called with the interface as it sees
//! it, with headers, timers, tokens and output of its own (`lent`), and could have an interface to itself.
//! The ranks may be those of a replay, processes, or [none](NoRanks). What is beside them is listed in
//! `shared_host!`: another kind of program is a line of it.

mod lent;
mod no_ranks;

pub use no_ranks::{Hops, Never, NoRanks};

use crate::replay::ReplayHost;
use crate::scenario::Generators;
use crate::services::key_value::{KeyValue, RankAnswer, RankRequest};
use lent::{Lent, Tenant};
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::HopRecord;
use weft_nic::data::DataError;
use weft_nic::edge_form::PortUse;
use weft_nic::ports::PortEvent;
use weft_nic::{Delivered, Failure, Host, HostContext, Incoming, Observer, Offer, Stage, StateChange};
use weft_units::{Address, Bytes, Time};

/// Ranks that may share a host.
pub trait RankHost: Host {
    /// Whether they ask services. The hosts of others pay nothing for it.
    const ASK: bool = false;

    /// The next request to a service that they have made and nobody has taken.
    fn next_request(&mut self) -> Option<RankRequest> {
        None
    }

    /// A request has ended.
    fn answered(&mut self, _: &RankAnswer, _: &Self::Parameters, _: &mut impl HostContext<Self>) {}
}

impl RankHost for ReplayHost {}

/// Bits of a program's own token; those above say whose it is.
pub const TOKEN_BITS: u32 = 28;

/// Makes the shared host, its parameters, headers, timers and output of a list of programs beside the ranks,
/// which take as many virtual interfaces, in this order.
macro_rules! shared_host {
    ($($(#[$meaning:meta])* $name:ident($field:ident): $program:ty,)*) => {
        /// The programs of a host, counted.
        #[derive(Clone, Copy)]
        enum Number { Ranks, $($name),* }

        /// The programs behind one endpoint.
        #[derive(Default, Serialize, Deserialize)]
        #[serde(bound = "R: RankHost")]
        pub struct SharedHost<R> {
            /// The ranks.
            pub ranks: R,
            $($(#[$meaning])* pub $field: $program,)*
        }

        impl<R> SharedHost<R> {
            /// Ranks with nothing beside them.
            pub fn alone(ranks: R) -> SharedHost<R> {
                SharedHost { ranks, $($field: Default::default(),)* }
            }
        }

        /// The header of a message, by the kind of program that sends and gets it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum SharedHeader<H> {
            /// Of ranks.
            Ranks(H),
            $($(#[$meaning])* $name(<$program as Host>::Header),)*
        }

        /// A timer, by the kind of program that has set it.
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        pub enum SharedTimer<T> {
            /// Of ranks.
            Ranks(T),
            $($(#[$meaning])* $name(<$program as Host>::Timer),)*
        }

        impl<T: Payload> Payload for SharedTimer<T> {
            fn tie(&self) -> u128 {
                match self {
                    SharedTimer::Ranks(timer) => timer.tie(),
                    $(SharedTimer::$name(timer) => (Number::$name as u128) << 100 | timer.tie(),)*
                }
            }
        }

        /// The output of the programs.
        #[derive(Default)]
        pub struct SharedOutput<O> {
            /// Of ranks, with what interfaces report of all messages.
            pub ranks: O,
            $($(#[$meaning])* pub $field: <$program as Host>::Output,)*
        }

        /// The parameters of the programs beside the ranks.
        #[derive(Default)]
        pub struct Beside {
            /// The first virtual interface that no rank has, at any endpoint.
            pub interface: u16,
            $($(#[$meaning])* pub $field: <$program as Host>::Parameters,)*
        }

        impl Beside {
            /// Virtual interfaces that the programs beside the ranks take at an endpoint.
            pub const INTERFACES: u16 = [$(Number::$name),*].len() as u16;
        }

        /// The kinds of programs, as types.
        mod tenants {
            /// The ranks.
            pub(super) enum Ranks {}
            $($(#[$meaning])* pub(super) enum $name {})*
        }

        impl<R: RankHost> Tenant<R> for tenants::Ranks {
            type Program = R;
            const NUMBER: u32 = Number::Ranks as u32;

            fn header(header: R::Header) -> SharedHeader<R::Header> {
                SharedHeader::Ranks(header)
            }

            fn timer(timer: R::Timer) -> SharedTimer<R::Timer> {
                SharedTimer::Ranks(timer)
            }

            fn output(output: &mut SharedOutput<R::Output>) -> &mut R::Output {
                &mut output.ranks
            }
        }

        $(impl<R: RankHost> Tenant<R> for tenants::$name {
            type Program = $program;
            const NUMBER: u32 = Number::$name as u32;

            fn header(header: <$program as Host>::Header) -> SharedHeader<R::Header> {
                SharedHeader::$name(header)
            }

            fn timer(timer: <$program as Host>::Timer) -> SharedTimer<R::Timer> {
                SharedTimer::$name(timer)
            }

            fn output(output: &mut SharedOutput<R::Output>) -> &mut <$program as Host>::Output {
                &mut output.$field
            }
        })*

        impl<R: RankHost> Host for SharedHost<R> {
            type Parameters = SharedParameters<R::Parameters>;
            type Timer = SharedTimer<R::Timer>;
            type Header = SharedHeader<R::Header>;
            type Output = SharedOutput<R::Output>;

            const PASSIVE: bool = R::PASSIVE;

            fn is_active(&self) -> bool {
                self.ranks.is_active() $(|| self.$field.is_active())*
            }

            fn start(&mut self, parameters: &Self::Parameters, context: &mut impl HostContext<Self>) {
                self.ranks.start(&parameters.ranks, &mut parameters.lend::<R, tenants::Ranks, _>(context));
                $(self.$field.start(
                    &parameters.beside.$field,
                    &mut parameters.lend::<R, tenants::$name, _>(context),
                );)*
            }

            fn timer(
                &mut self,
                timer: Self::Timer,
                parameters: &Self::Parameters,
                context: &mut impl HostContext<Self>,
            ) {
                match timer {
                    SharedTimer::Ranks(timer) => {
                        let mut lent = parameters.lend::<R, tenants::Ranks, _>(context);
                        self.ranks.timer(timer, &parameters.ranks, &mut lent);
                    }
                    $(SharedTimer::$name(timer) => {
                        let mut lent = parameters.lend::<R, tenants::$name, _>(context);
                        self.$field.timer(timer, &parameters.beside.$field, &mut lent);
                    })*
                }
                self.pass_on(parameters, context);
            }

            fn sent(
                &mut self,
                token: u32,
                parameters: &Self::Parameters,
                context: &mut impl HostContext<Self>,
            ) {
                let own = token & ((1 << TOKEN_BITS) - 1);
                match token >> TOKEN_BITS {
                    $(number if number == Number::$name as u32 => {
                        let mut lent = parameters.lend::<R, tenants::$name, _>(context);
                        self.$field.sent(own, &parameters.beside.$field, &mut lent);
                    })*
                    _ => {
                        let mut lent = parameters.lend::<R, tenants::Ranks, _>(context);
                        self.ranks.sent(own, &parameters.ranks, &mut lent);
                    }
                }
                self.pass_on(parameters, context);
            }

            fn destination(
                &mut self,
                message: Incoming<'_, Self::Header>,
                parameters: &Self::Parameters,
                context: &mut impl HostContext<Self>,
            ) -> Address {
                let Incoming { bytes, .. } = message;
                let place = match message.header {
                    SharedHeader::Ranks(header) => {
                        let mut lent = parameters.lend::<R, tenants::Ranks, _>(context);
                        let message = Incoming { header, bytes, interface: message.interface };
                        self.ranks.destination(message, &parameters.ranks, &mut lent)
                    }
                    $(SharedHeader::$name(header) => {
                        let mut lent = parameters.lend::<R, tenants::$name, _>(context);
                        let interface = lent.own_interface(message.interface);
                        let message = Incoming { header, bytes, interface };
                        self.$field.destination(message, &parameters.beside.$field, &mut lent)
                    })*
                };
                self.pass_on(parameters, context);
                place
            }

            #[inline]
            fn delivered(
                &mut self,
                message: &Delivered<Self::Header>,
                parameters: &Self::Parameters,
                context: &mut impl HostContext<Self>,
            ) {
                let header = match message.header {
                    $(Some(SharedHeader::$name(header)) => {
                        // None of them keeps what it gets. The interface does this for passive hosts.
                        if !R::PASSIVE && message.in_mailbox {
                            let now = context.now();
                            context.capabilities().take(message.interface, now);
                        }
                        let mut lent = parameters.lend::<R, tenants::$name, _>(context);
                        let interface = lent.own_interface(message.interface);
                        let message = Delivered { interface, ..message.with_header(Some(header)) };
                        self.$field.delivered(&message, &parameters.beside.$field, &mut lent);
                        return self.pass_on(parameters, context);
                    })*
                    Some(SharedHeader::Ranks(header)) => Some(header),
                    None => None,
                };
                let mut lent = parameters.lend::<R, tenants::Ranks, _>(context);
                self.ranks.delivered(&message.with_header(header), &parameters.ranks, &mut lent);
                self.pass_on(parameters, context);
            }

            fn accelerated(
                &mut self,
                token: u32,
                parameters: &Self::Parameters,
                context: &mut impl HostContext<Self>,
            ) {
                // Ranks alone ask for reductions.
                let mut lent = parameters.lend::<R, tenants::Ranks, _>(context);
                self.ranks.accelerated(token, &parameters.ranks, &mut lent);
            }

            fn failed(
                &mut self,
                failure: &Failure,
                parameters: &Self::Parameters,
                context: &mut impl HostContext<Self>,
            ) {
                let after_ranks = failure.interface.checked_sub(parameters.beside.interface);
                match after_ranks.map_or(0, |place| u32::from(place) + 1) {
                    $(number if number == Number::$name as u32 => {
                        let mut lent = parameters.lend::<R, tenants::$name, _>(context);
                        let failure = lent.own_failure(failure);
                        self.$field.failed(&failure, &parameters.beside.$field, &mut lent);
                    })*
                    _ => {
                        let mut lent = parameters.lend::<R, tenants::Ranks, _>(context);
                        self.ranks.failed(failure, &parameters.ranks, &mut lent);
                    }
                }
                self.pass_on(parameters, context);
            }

            fn data(parameters: &Self::Parameters) -> Option<u64> {
                R::data(&parameters.ranks)
            }

            fn ports(parameters: &Self::Parameters) -> PortUse {
                R::ports(&parameters.ranks)
            }

            fn damaged(
                &mut self,
                error: &DataError,
                header: Option<&Self::Header>,
                context: &mut impl HostContext<Self>,
            ) {
                let header = match header {
                    Some(SharedHeader::Ranks(header)) => Some(header),
                    _ => None,
                };
                self.ranks.damaged(error, header, &mut Lent::<R, tenants::Ranks, _>::new(context, 0));
            }

            /// All of them post, and offer nothing.
            fn next_offer(&self) -> Time {
                Time::NEVER
            }

            fn offer(&mut self, _: &Self::Parameters, _: Time) -> Offer<Self::Header> {
                Offer::Nothing
            }
        }
    };
}

shared_host! {
    /// Flows of transfers.
    Flows(flows): Generators,
    /// Key-value stores and their clients.
    KeyValue(key_value): KeyValue,
}

impl<R: RankHost> SharedHost<R> {
    /// Hands requests of ranks to the service of this endpoint's, which asks the one that they are for, and
    /// answers to ranks.
    #[inline]
    fn pass_on(
        &mut self,
        parameters: &SharedParameters<R::Parameters>,
        context: &mut impl HostContext<SharedHost<R>>,
    ) {
        if !R::ASK {
            return;
        }
        loop {
            if let Some(request) = self.ranks.next_request() {
                let mut lent = parameters.lend::<R, tenants::KeyValue, _>(context);
                self.key_value.ask_for_rank(request, &parameters.beside.key_value, &mut lent);
            } else if let Some(answer) = self.key_value.next_answer() {
                let mut lent = parameters.lend::<R, tenants::Ranks, _>(context);
                self.ranks.answered(&answer, &parameters.ranks, &mut lent);
            } else {
                return;
            }
        }
    }
}

/// The parameters that all hosts of a run share.
pub struct SharedParameters<P> {
    /// Of ranks.
    pub ranks: P,
    /// Of the programs beside them.
    pub beside: Beside,
}

impl<P> SharedParameters<P> {
    /// Ranks with nothing beside them.
    pub fn alone(ranks: P) -> SharedParameters<P> {
        SharedParameters { ranks, beside: Beside { interface: u16::MAX, ..Beside::default() } }
    }

    /// The interface as a program sees it.
    #[inline]
    fn lend<'c, R: RankHost, T: Tenant<R>, C>(&self, context: &'c mut C) -> Lent<'c, R, T, C> {
        let first = match T::NUMBER {
            0 => 0,
            number => self.beside.interface.saturating_add(number as u16 - 1),
        };
        Lent::new(context, first)
    }
}

impl<O: Observer> Observer for SharedOutput<O> {
    const HEARS_STATES: bool = O::HEARS_STATES;

    fn hop(&mut self, hop: &HopRecord) {
        self.ranks.hop(hop);
    }

    fn stage(&mut self, stage: &Stage) {
        self.ranks.stage(stage);
    }

    fn state(&mut self, change: &StateChange) {
        self.ranks.state(change);
    }

    fn port(&mut self, event: &PortEvent) {
        self.ranks.port(event);
    }

    fn failed(&mut self, failure: &Failure) {
        self.ranks.failed(failure);
    }

    fn compared(&mut self, bytes: Bytes) {
        self.ranks.compared(bytes);
    }

    fn damaged(&mut self, error: &DataError) {
        self.ranks.damaged(error);
    }
}
