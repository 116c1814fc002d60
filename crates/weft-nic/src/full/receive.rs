//! The way in from the network: what each kind of packet sets off.

use super::label::Label;
use super::post::{Post, Posted, channel_report};
use super::{Announcement, Due, FullNic, FullParameters, FullTimer, Hardware, Header};
use crate::host::{Failure, FailureReason, Host};
use crate::mailbox::QueueChange;
use crate::observer::{Block, BlockChange, Observer as _, Stage, StateChange};
use crate::packetizer::{ChannelId, Packetizer, Parcel};
use crate::reliability::Expiry;
use weft_fabric::{InterfaceContext, Packet};
use weft_units::Time;

/// What the host is to be told of a packet.
pub(super) enum News<T> {
    /// A message has come.
    Message(Due<T>),
    /// One of its own has failed.
    Failure(Failure),
}

impl<H: Host> Hardware<H> {
    /// The tail of a packet has come.
    #[inline]
    pub(super) fn packet(
        &mut self,
        packet: &Packet,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Option<News<H::Header>> {
        let label = Label::of(packet.label)?;
        match label {
            Label::Small => self.small(packet, parameters, context).map(News::Message),
            Label::Cell => self.cell(packet, parameters, context).map(News::Message),
            // A damaged answer says nothing: the packet will be repeated.
            _ if packet.bad => None,
            module if module.is_of_reduction() => {
                self.reduction_packet(packet, module, parameters, context);
                None
            }
            answer if answer.as_block_answer().is_some() => {
                self.block_answer(packet, answer, parameters, context);
                None
            }
            answer => self.answer(packet.message, answer, parameters, context).map(News::Failure),
        }
    }

    /// A packet for the mailbox.
    fn small(
        &mut self,
        packet: &Packet,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Option<Due<H::Header>> {
        let now = context.now();
        let Packet { source: from, message: number, hops, born, .. } = *packet;
        let checked = self.mailbox.check(now - packet.stretch(), now, &parameters.mailbox);
        // Headers are kept until their packet is accepted, so that one without repeats what has been: the
        // hardware sees it by the sequence number of its source's channel.
        let Some(&header) = self.headers.get(&(from, number)) else {
            self.transmit.answer(checked.ended, from, number, Label::Acknowledgement);
            context.request_pump();
            return None;
        };
        let Header { interface, domain, bytes, header, .. } = header;
        let mailbox = &parameters.mailbox;
        let damaged = self.finds_damage(packet, parameters, context.endpoint());
        let put = self.mailbox.put(now, interface, domain, damaged, mailbox, &mut queue_report(context));
        let answer = put.map_or_else(Label::refusal, |()| Label::Acknowledgement);
        self.transmit.answer(checked.ended, from, number, answer);
        context.request_pump();
        put.ok()?;
        self.write_small(packet);
        self.headers.remove(&(from, number));
        let entry = parameters.mailbox.entry.max(bytes);
        let written = self.host_port.write(checked.ended, entry, &parameters.host_port);
        let noticed = written.ended + parameters.mailbox.poll;
        if packet.watch {
            let endpoint = context.endpoint();
            let mut stage = |block, came, began, ended| {
                let (source, message) = (from, number);
                context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
            };
            stage(Block::Mailbox, now, checked.began, checked.ended);
            stage(Block::HostPort, checked.ended, written.began, written.ended);
            stage(Block::Polling, written.ended, written.ended, noticed);
        }
        let due = Due { noticed, from, number, bytes, born, hops, header, interface, in_mailbox: true };
        self.compare(&due, context);
        Some(due)
    }

    /// An answer to a packet of this packetizer.
    fn answer(
        &mut self,
        message: u32,
        answer: Label,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Option<Failure> {
        let accepted = answer == Label::Acknowledgement;
        let answered = self.packetizer.answered(message, accepted, &mut channel_report(context));
        let (channel, parcel) = answered?;
        let interface = channel.interface;
        let again = |refused, pause| {
            let parcel = Parcel { refused, ..parcel };
            Post { at: context.now() + pause, what: Posted::Small { interface, parcel } }
        };
        let (post, reason) = match answer {
            Label::RefusedFull => {
                let refused = parcel.refused.saturating_add(1);
                (Some(again(refused, Packetizer::pause(refused, &parameters.packetizer))), None)
            }
            Label::RefusedDamaged => (Some(again(parcel.refused.max(1), Default::default())), None),
            Label::RefusedDomain => (None, Some(FailureReason::Domain)),
            Label::RefusedInterface => (None, Some(FailureReason::NoInterface)),
            _ => (None, None),
        };
        // Whoever waits for a channel comes before what is posted again.
        self.serve_waiting(interface, parameters, context);
        if let Some(post) = post {
            self.post(post, parameters, context);
        }
        reason.map(|reason| self.fail(interface, parcel, reason, context))
    }

    /// Channels of an interface have become free.
    fn serve_waiting(
        &mut self,
        interface: u16,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        loop {
            let packetizer = &parameters.packetizer;
            let next = self.packetizer.next_waiting(interface, packetizer, &mut channel_report(context));
            let Some((since, parcel, channel)) = next else { break };
            self.store(since, channel, parcel, parameters, context);
        }
        // There may be room for an offer of the host, too.
        context.request_pump();
    }

    /// A message will not arrive any more; what the receiver knows of it is withdrawn.
    fn fail(
        &mut self,
        interface: u16,
        parcel: Parcel,
        reason: FailureReason,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Failure {
        let Parcel { to, message: number, token, .. } = parcel;
        context.announce(to, number, Announcement::Withdrawn);
        Failure { to, number, interface, token, reason }
    }

    /// The retransmission timer of a channel has fired.
    pub(super) fn expired(
        &mut self,
        channel: ChannelId,
        parameters: &FullParameters,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) -> Option<Failure> {
        let now: Time = context.now();
        let packetizer = &parameters.packetizer;
        let (expiry, parcel) =
            self.packetizer.expired(now, channel, packetizer, &mut channel_report(context));
        match expiry {
            Expiry::Settled => None,
            Expiry::NotBefore(at) => {
                context.set_timer(at, FullTimer::Retransmission(channel));
                None
            }
            Expiry::Repeat => {
                let Parcel { message, watch, .. } = *self.packetizer.parcel(channel)?;
                if watch {
                    let waited = self.packetizer.waited(channel, packetizer);
                    let since = Time::from_ps(now.as_ps().saturating_sub(waited.as_ps()));
                    let (endpoint, block) = (context.endpoint(), Block::Timeout);
                    let (source, came, began, ended) = (endpoint, since, since, now);
                    context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
                }
                let made = self.packetizer.start(now, &parameters.packetizer);
                self.transmit.small(made.ended, channel, message);
                context.request_pump();
                None
            }
            Expiry::GiveUp => {
                self.serve_waiting(channel.interface, parameters, context);
                parcel.map(|parcel| self.fail(channel.interface, parcel, FailureReason::TimedOut, context))
            }
        }
    }
}

/// Reports changes of queues to the observer.
fn queue_report<'a, H: Host>(
    context: &'a mut InterfaceContext<'_, '_, FullNic<H>>,
) -> impl FnMut(QueueChange) + 'a {
    let endpoint = context.endpoint();
    let output = context.output();
    move |change| {
        let at = change.at;
        output.state(&StateChange { endpoint, at, change: BlockChange::Mailbox(change) });
    }
}
