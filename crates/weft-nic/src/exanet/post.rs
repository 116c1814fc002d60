//! The way in from the host: its posts enter the blocks in the order of time.

use super::node::ExanetNode;
use super::options::TokenWhenAcknowledged;
use super::rdma::descriptor;
use super::wire::RequestWords;
use super::{Announcement, ExanetNic, ExanetTimer, MessageFields, SimulationWords};
use crate::failure::{Failure, FailureReason};
use crate::gvas::Gvas;
use crate::host::{Host, Message, Primitive};
use crate::host_port::HOST_PORT;
use crate::observer::{BlockChange, Observer as _, Stage, StateChange};
use crate::packetizer::{ChannelChange, ChannelId, EnginePacket, PACKETIZER, Parcel};
use crate::ports::{Crossing, PortEvent, StoredParcel};
use crate::rdma::{ChannelKind, Descriptor};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use weft_fabric::InterfaceContext;
use weft_units::Time;

/// A post of a host, to enter the blocks at its time.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Post {
    pub(super) at: Time,
    pub(super) what: Posted,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum Posted {
    Small(Parcel),
    Write(ChannelKind, Descriptor),
}

/// Posts ahead of time, in the order of time; those of one time in the order in which they came.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Posts {
    queue: VecDeque<Post>,
    /// Descriptors whose descriptor channel is full, and since when each waits in its process.
    kept: BTreeMap<(u32, ChannelKind), VecDeque<(Time, Descriptor)>>,
}

impl Posts {
    fn insert(&mut self, post: Post) {
        let place = match self.queue.back() {
            Some(last) if last.at > post.at => self.queue.partition_point(|other| other.at <= post.at),
            _ => self.queue.len(),
        };
        self.queue.insert(place, post);
    }

    /// Takes the first post that is due at `now`.
    fn pop_due(&mut self, now: Time) -> Option<Posted> {
        self.queue.front().filter(|post| post.at <= now)?;
        self.queue.pop_front().map(|post| post.what)
    }

    /// Whether a post is due at `now`.
    fn is_due(&self, now: Time) -> bool {
        self.queue.front().is_some_and(|post| post.at <= now)
    }

    /// Posts that have not entered the blocks.
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.kept.values().map(VecDeque::len).sum::<usize>()
    }

    /// Small messages that have not entered the blocks.
    pub(super) fn parcels(&self) -> impl Iterator<Item = &Parcel> {
        self.queue.iter().filter_map(|post| match &post.what {
            Posted::Small(parcel) => Some(parcel),
            Posted::Write(..) => None,
        })
    }

    /// A descriptor waits since `now` for space in its descriptor channel.
    pub(super) fn keep(&mut self, now: Time, kind: ChannelKind, descriptor: Descriptor) {
        self.kept.entry((descriptor.source.space, kind)).or_default().push_back((now, descriptor));
    }

    /// Whether a descriptor waits for space in a descriptor channel.
    pub(super) fn keeps(&self, page: u32, kind: ChannelKind) -> bool {
        self.kept.contains_key(&(page, kind))
    }

    /// Takes the descriptor that has waited longest for space in a descriptor channel, and since when.
    pub(super) fn take_kept(&mut self, page: u32, kind: ChannelKind) -> Option<(Time, Descriptor)> {
        let queue = self.kept.get_mut(&(page, kind))?;
        let kept = queue.pop_front();
        if queue.is_empty() {
            self.kept.remove(&(page, kind));
        }
        kept
    }
}

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// Takes a message of the host, which enters the blocks at `at`. Returns its number.
    #[inline]
    pub(super) fn accept(&mut self, message: Message<H::Header>, at: Time) -> u32 {
        let at = at.max(self.fabric.now());
        let number = self.hardware.take_number();
        let is_request = message.primitive == Primitive::ReadRequest && self.parameters.has_requests();
        let bytes = if is_request { RequestWords::SIZE } else { message.bytes };
        let message = Message { bytes, ..message };
        let Message { to, created_at, header, token, primitive, interface, to_interface, .. } = message;
        let Message { options, watch, .. } = message;
        let small = match primitive {
            Primitive::Automatic => bytes <= self.parameters.packetizer.payload,
            Primitive::Small | Primitive::ReadRequest => true,
            Primitive::Write | Primitive::WriteBack => false,
        };
        if let Some(reason) = self.refusal(&message, small) {
            self.fail_later(at, Failure { to, number, interface, token, reason });
            return number;
        }
        let domain = self.hardware.packetizer.domain(interface);
        let fields = MessageFields { interface: to_interface, domain, first: 0 };
        let words = SimulationWords { fields, bytes, created_at, header, watch };
        let class = self.fabric.class_of(&message.purpose, bytes);
        let what = if small {
            let (message, refused) = (number, 0);
            let told = Parcel {
                interface,
                domain,
                to_interface,
                is_request,
                to,
                message,
                bytes,
                created_at,
                refused,
                token,
                acknowledged: options.get::<TokenWhenAcknowledged>().is_some(),
                watch,
                class,
            };
            Posted::Small(told)
        } else {
            let kind = match primitive {
                Primitive::WriteBack => ChannelKind::Read,
                _ => ChannelKind::Write,
            };
            Posted::Write(kind, descriptor((&message, class), number, domain))
        };
        if at <= self.fabric.now() && !self.hardware.posts.is_due(at) {
            self.carry_out(what, Some(words));
            self.fabric.request_injection();
        } else {
            self.fabric.announce(to, number, Announcement::Header(words));
            self.post(Post { at, what });
        }
        number
    }

    /// The reason for which the interface does not carry a message, `small` or as a write, if there is one.
    /// A write takes a channel of its initiator's page. At its target it needs no page, only an interface:
    /// the receive unit knows all of them by their domains.
    #[inline]
    fn refusal(&self, message: &Message<H::Header>, small: bool) -> Option<FailureReason> {
        let Message { to, bytes, interface, to_interface, buffer, .. } = *message;
        let interfaces = self.parameters.packetizer.interfaces;
        let own = if small { interfaces } else { interfaces.min(self.parameters.rdma.send.pages) };
        // The mailbox answers for those of small messages.
        let no_target = !small && u32::from(to_interface) >= interfaces;
        if no_target || u32::from(interface) >= own {
            Some(FailureReason::NoInterface)
        } else if to.index() >= self.fabric.endpoints() {
            Some(FailureReason::NoNode)
        } else if !small && !Gvas::reaches(buffer, bytes) {
            Some(FailureReason::Address)
        } else {
            (small && bytes > self.parameters.packetizer.payload).then_some(FailureReason::TooLarge)
        }
    }

    /// Puts a post behind all that are no later, and carries out the posts that are due.
    pub(super) fn post(&mut self, post: Post) {
        self.hardware.posts.insert(post);
        if post.at > self.fabric.now() {
            self.fabric.set_timer(post.at, ExanetTimer::Post);
        } else {
            self.carry_out_posts();
        }
    }

    /// Carries out the posts that are due.
    pub(super) fn carry_out_posts(&mut self) {
        let now = self.fabric.now();
        while let Some(posted) = self.hardware.posts.pop_due(now) {
            self.carry_out(posted, None);
        }
        self.fabric.request_injection();
    }

    /// Carries out a post, and announces its message by `words`, if they are given.
    fn carry_out(&mut self, posted: Posted, words: Option<SimulationWords<H::Header>>) {
        let now = self.fabric.now();
        match posted {
            Posted::Small(parcel) => {
                if let Some(words) = words {
                    self.fabric.announce(parcel.to, parcel.message, Announcement::Header(words));
                }
                let watched = self.hardware.watched;
                let packetizer = &mut self.hardware.packetizer;
                let parameters = &self.parameters.packetizer;
                let channel =
                    packetizer.post(now, parcel, parameters, &mut channel_report(self.fabric, watched));
                if let Some(channel) = channel {
                    self.store(now, channel, parcel);
                }
            }
            Posted::Write(kind, descriptor) => self.write_when_space(kind, descriptor, words),
        }
    }

    /// The processor stores a parcel, which it has wanted to since `since`, into its channel.
    #[inline]
    pub(super) fn store(&mut self, since: Time, channel: ChannelId, parcel: Parcel) {
        let now = self.fabric.now();
        let bytes = parcel.bytes + self.parameters.packetizer.descriptor;
        let stored = self.hardware.memory.port.store(now, bytes, &self.parameters.host_port);
        let (hardware, parameters, came) = (&mut *self.hardware, &self.parameters.packetizer, stored.ended);
        let edge = parameters.clock.edge_at_or_after(came);
        hardware.packetizer.store(channel, edge);
        let in_channel = || StoredParcel { channel, parcel, came, payload: None };
        let found = hardware.packetizer_in_place().map(|packetizer| packetizer.store(&in_channel(), now));
        let made = hardware.packetizer.start_as(came, found, parameters);
        let message = parcel.message;
        hardware.transmit.small.push_back(EnginePacket { came: edge, made: made.ended, channel, message });
        self.port(|| Crossing::Stored { parcel: in_channel(), made: made.ended });
        if let Some(token) = parcel.token.filter(|_| parcel.refused == 0 && !parcel.acknowledged) {
            self.fabric.set_timer(stored.issued, ExanetTimer::Sent(token));
        }
        if parcel.watch {
            let endpoint = self.fabric.endpoint();
            let mut stage = |block, came, began, ended| {
                let (source, message) = (endpoint, parcel.message);
                self.stage(&Stage { endpoint, source, message, block, came, began, ended });
            };
            if since < now {
                stage(PACKETIZER, since, now, now);
            }
            stage(HOST_PORT, now, stored.began, stored.ended);
            stage(PACKETIZER, stored.ended, made.began, made.ended);
        }
    }
}

/// Reports changes of channels to the observer.
pub(super) fn channel_report<'a, H: Host>(
    fabric: &'a mut InterfaceContext<'_, '_, ExanetNic<H>>,
    watched: bool,
) -> impl FnMut(ChannelChange) + 'a {
    let (endpoint, at) = (fabric.endpoint(), fabric.now());
    let output = fabric.output();
    move |change| {
        output.state(&StateChange { endpoint, at, change: BlockChange::Packetizer(change) });
        if watched {
            output.port(&PortEvent { endpoint, at, what: Crossing::Channel(change) });
        }
    }
}
