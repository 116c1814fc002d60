//! The way in from the host: what it posts enters the blocks in the order of time.

use super::rdma::descriptor;
use super::{Announcement, FullNic, FullParameters, FullTimer, Hardware, Header};
use crate::allreduce::{AcceleratorError, AcceleratorLimits, AllreduceRequest};
use crate::gvas::Pdid;
use crate::host::{Failure, FailureReason, Host, HostContext, Message, Primitive};
use crate::observer::{Block, BlockChange, Observer as _, Stage, StateChange};
use crate::packetizer::{ChannelChange, ChannelId, Parcel};
use crate::rdma::{ChannelKind, Descriptor};
use serde::{Deserialize, Serialize};
use weft_fabric::InterfaceContext;
use weft_units::{Bytes, EndpointId, Span, Time};

/// What a host has posted, to enter the blocks at its time.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Post {
    pub at: Time,
    pub what: Posted,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum Posted {
    Small { interface: u16, parcel: Parcel },
    Write(ChannelKind, Descriptor),
}

/// What a host may do when the interface calls it.
pub(super) struct AtHost<'a, 'b, 'c, H: Host> {
    pub hardware: &'a mut Hardware<H>,
    pub parameters: &'a FullParameters,
    pub interface: &'a mut InterfaceContext<'b, 'c, FullNic<H>>,
}

impl<H: Host> HostContext<H> for AtHost<'_, '_, '_, H> {
    #[inline]
    fn now(&self) -> Time {
        self.interface.now()
    }

    #[inline]
    fn endpoint(&self) -> EndpointId {
        self.interface.endpoint()
    }

    #[inline]
    fn output(&mut self) -> &mut H::Output {
        self.interface.output()
    }

    fn set_timer(&mut self, at: Time, timer: H::Timer) {
        self.interface.set_timer(at, FullTimer::Host(timer));
    }

    #[inline]
    fn send(&mut self, message: Message<H::Header>, at: Time) -> u32 {
        self.hardware.accept(message, at, self.parameters, self.interface)
    }

    fn in_memory(&mut self, moved: Bytes, alone: Span, from: Time) -> Time {
        let now = self.interface.now();
        self.hardware.memory.stream(moved, alone, from, now, &self.parameters.memory)
    }

    fn accelerator(&self) -> Option<AcceleratorLimits> {
        self.parameters.allreduce.map(|allreduce| allreduce.limits)
    }

    fn allreduce(&mut self, request: AllreduceRequest, at: Time) -> Result<u32, AcceleratorError> {
        self.hardware.allreduce(request, at, self.parameters, self.interface)
    }

    fn request_offer(&mut self) {
        self.interface.request_pump();
    }

    fn quiet_until(&self) -> Time {
        let arrives = self.now().saturating_add(self.parameters.least_notice());
        let due = self.hardware.due.front().map_or(Time::MAX, |due| due.noticed);
        let failed = self.hardware.failures.front().map_or(Time::MAX, |(at, _)| *at);
        let next = arrives.min(due).min(failed);
        Time::from_ps(next.as_ps().saturating_sub(1)).max(self.now())
    }

    fn open(&mut self, interface: u16, domain: Pdid) {
        if u32::from(interface) < self.parameters.packetizer.interfaces {
            self.hardware.packetizer.open(interface, domain);
        }
        if u32::from(interface) < self.parameters.mailbox.interfaces {
            self.hardware.mailbox.open(interface, domain);
        }
    }

    fn taken(&mut self, interface: u16, at: Time) {
        if u32::from(interface) < self.parameters.mailbox.interfaces {
            self.hardware.mailbox.take(interface, at);
        }
    }
}

impl<H: Host> Hardware<H> {
    /// Takes a message of the host, which enters the blocks at `at`. Returns its number.
    #[inline]
    pub(super) fn accept(
        &mut self,
        message: Message<H::Header>,
        at: Time,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> u32 {
        let at = at.max(context.now());
        let number = self.take_number();
        let Message { to, bytes, born, header, token, primitive, interface, to_interface, watch } = message;
        let fits = bytes <= parameters.packetizer.payload;
        let small = match primitive {
            Primitive::Automatic => fits,
            Primitive::Small => true,
            Primitive::Write | Primitive::WriteBack => false,
        };
        let pages = parameters.rdma.send.pages;
        let no_page = !small && u32::from(interface.max(to_interface)) >= pages;
        let reason = if no_page || u32::from(interface) >= parameters.packetizer.interfaces {
            Some(FailureReason::NoInterface)
        } else if to.index() >= context.endpoints() {
            Some(FailureReason::NoNode)
        } else {
            (small && !fits).then_some(FailureReason::TooLarge)
        };
        if let Some(reason) = reason {
            let failure = Failure { to, number, interface, token, reason };
            self.failures.push_back((at, failure));
            context.set_timer(at, FullTimer::Failed);
            return number;
        }
        let domain = self.packetizer.domain(interface);
        let announced = Header { bytes, born, header, interface: to_interface, domain, first: 0, watch };
        context.announce(to, number, Announcement::Header(announced));
        let what = if small {
            let (message, refused) = (number, 0);
            Posted::Small { interface, parcel: Parcel { to, message, bytes, born, refused, token, watch } }
        } else {
            let kind = match primitive {
                Primitive::WriteBack => ChannelKind::Read,
                _ => ChannelKind::Write,
            };
            Posted::Write(kind, descriptor(&message, number, domain))
        };
        self.post(Post { at, what }, parameters, context);
        number
    }

    /// Puts a post behind all that are no later, and carries out what is due.
    pub(super) fn post(
        &mut self,
        post: Post,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        let place = match self.posts.back() {
            Some(last) if last.at > post.at => self.posts.partition_point(|other| other.at <= post.at),
            _ => self.posts.len(),
        };
        self.posts.insert(place, post);
        if post.at > context.now() {
            context.set_timer(post.at, FullTimer::Post);
        } else {
            self.carry_out(parameters, context);
        }
    }

    /// Carries out the posts that are due.
    pub(super) fn carry_out(
        &mut self,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        let now = context.now();
        while let Some(post) = self.posts.front().filter(|post| post.at <= now) {
            let what = post.what;
            self.posts.pop_front();
            match what {
                Posted::Small { interface, parcel } => {
                    let packetizer = &parameters.packetizer;
                    let channel = self.packetizer.post(
                        now,
                        interface,
                        parcel,
                        packetizer,
                        &mut channel_report(context),
                    );
                    if let Some(channel) = channel {
                        self.store(now, channel, parcel, parameters, context);
                    }
                }
                Posted::Write(kind, descriptor) => self.write(kind, descriptor, parameters, context),
            }
        }
        context.request_pump();
    }

    /// The processor stores a parcel, which it has wanted to since `since`, into its channel.
    #[inline]
    pub(super) fn store(
        &mut self,
        since: Time,
        channel: ChannelId,
        parcel: Parcel,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        let now = context.now();
        let bytes = parcel.bytes + parameters.packetizer.descriptor;
        let stored = self.host_port.store(now, bytes, &parameters.host_port);
        let made = self.packetizer.start(stored.ended, &parameters.packetizer);
        self.transmit.small(made.ended, channel, parcel.message);
        if let Some(token) = parcel.token.filter(|_| parcel.refused == 0) {
            context.set_timer(stored.issued, FullTimer::Sent(token));
        }
        if parcel.watch {
            let endpoint = context.endpoint();
            let mut stage = |block, came, began, ended| {
                let (source, message) = (endpoint, parcel.message);
                context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
            };
            if since < now {
                stage(Block::Packetizer, since, now, now);
            }
            stage(Block::HostPort, now, stored.began, stored.ended);
            stage(Block::Packetizer, stored.ended, made.began, made.ended);
        }
    }
}

/// Reports changes of channels to the observer.
pub(super) fn channel_report<'a, H: Host>(
    context: &'a mut InterfaceContext<'_, '_, FullNic<H>>,
) -> impl FnMut(ChannelChange) + 'a {
    let (endpoint, at) = (context.endpoint(), context.now());
    let output = context.output();
    move |change| output.state(&StateChange { endpoint, at, change: BlockChange::Packetizer(change) })
}
