//! An interface as one of several programs sees it.

use super::{RankHost, SharedHeader, SharedHost, SharedOutput, SharedTimer, TOKEN_BITS};
use std::marker::PhantomData;
use weft_nic::gvas::Pdid;
use weft_nic::{
    AllreduceAccelerator, Capabilities, Failure, Host, HostContext, HostMemory, Mailboxes, Message,
    QuietTime, RegisterAccess,
};
use weft_units::{EndpointId, Time};

/// A kind of program in a host with ranks `R`.
pub(super) trait Tenant<R: RankHost> {
    /// The program.
    type Program: Host;
    /// The number that tells its tokens from those of others; less than 16.
    const NUMBER: u32;

    /// The program's header as one of the host.
    fn header(header: <Self::Program as Host>::Header) -> SharedHeader<R::Header>;

    /// The program's timer as one of the host.
    fn timer(timer: <Self::Program as Host>::Timer) -> SharedTimer<R::Timer>;

    /// The program's part of the output.
    fn output(output: &mut SharedOutput<R::Output>) -> &mut <Self::Program as Host>::Output;
}

/// The interface that is lent to a program while it is called.
pub(super) struct Lent<'c, R, T, C> {
    context: &'c mut C,
    /// The virtual interface that is number 0 to the program.
    first: u16,
    program: PhantomData<(R, T)>,
}

impl<'c, R: RankHost, T: Tenant<R>, C> Lent<'c, R, T, C> {
    #[inline]
    pub fn new(context: &'c mut C, first: u16) -> Lent<'c, R, T, C> {
        Lent { context, first, program: PhantomData }
    }

    /// The program's own number of a virtual interface.
    pub fn own_interface(&self, interface: u16) -> u16 {
        interface.wrapping_sub(self.first)
    }

    /// A failure of one of its messages, as it knows the message.
    pub fn own_failure(&self, failure: &Failure) -> Failure {
        let token = failure.token.map(|token| token & ((1 << TOKEN_BITS) - 1));
        Failure { interface: self.own_interface(failure.interface), token, ..*failure }
    }

    /// A token of the program as one of the host.
    #[inline]
    fn token(token: u32) -> u32 {
        debug_assert!(token >> TOKEN_BITS == 0, "a program has fewer messages under way");
        T::NUMBER << TOKEN_BITS | token
    }
}

impl<R: RankHost, T: Tenant<R>, C: HostContext<SharedHost<R>>> HostContext<T::Program> for Lent<'_, R, T, C> {
    #[inline]
    fn now(&self) -> Time {
        self.context.now()
    }

    #[inline]
    fn endpoint(&self) -> EndpointId {
        self.context.endpoint()
    }

    #[inline]
    fn output(&mut self) -> &mut <T::Program as Host>::Output {
        T::output(self.context.output())
    }

    #[inline]
    fn set_timer(&mut self, at: Time, timer: <T::Program as Host>::Timer) {
        self.context.set_timer(at, T::timer(timer));
    }

    fn set_timer_of(&mut self, endpoint: EndpointId, at: Time, timer: <T::Program as Host>::Timer) {
        self.context.set_timer_of(endpoint, at, T::timer(timer));
    }

    #[inline]
    fn send(&mut self, message: Message<<T::Program as Host>::Header>, at: Time) -> u32 {
        let message = Message {
            token: message.token.map(Self::token),
            interface: message.interface.wrapping_add(self.first),
            to_interface: message.to_interface.wrapping_add(self.first),
            ..message.with_header(message.header.map(T::header))
        };
        self.context.send(message, at)
    }

    fn request_offer(&mut self) {
        self.context.request_offer();
    }

    fn capabilities(&mut self) -> &mut dyn Capabilities {
        self
    }
}

/// Those of the interface; mailboxes by the program's own numbers of virtual interfaces.
impl<R: RankHost, T, C: HostContext<SharedHost<R>>> Capabilities for Lent<'_, R, T, C> {
    fn multicasts(&mut self) -> bool {
        self.context.capabilities().multicasts()
    }

    fn memory(&mut self) -> Option<&mut dyn HostMemory> {
        self.context.capabilities().memory()
    }

    fn mailboxes(&mut self) -> Option<&mut dyn Mailboxes> {
        match self.context.capabilities().mailboxes() {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn quiet_time(&mut self) -> Option<&mut dyn QuietTime> {
        self.context.capabilities().quiet_time()
    }

    fn accelerator(&mut self) -> Option<&mut dyn AllreduceAccelerator> {
        self.context.capabilities().accelerator()
    }

    fn registers(&mut self) -> Option<&mut dyn RegisterAccess> {
        self.context.capabilities().registers()
    }
}

impl<R: RankHost, T, C: HostContext<SharedHost<R>>> Mailboxes for Lent<'_, R, T, C> {
    fn open(&mut self, interface: u16, domain: Pdid) {
        self.context.capabilities().open(interface.wrapping_add(self.first), domain);
    }

    #[inline]
    fn taken(&mut self, interface: u16, at: Time) {
        self.context.capabilities().take(interface.wrapping_add(self.first), at);
    }
}
