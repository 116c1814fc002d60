//! Virtual interfaces of live ranks: their posts, and what comes to them. The table is in [`crate::virtual_interfaces`].

use super::header::{Kind, LiveHeader};
use super::payloads::Data;
use super::posts::{Outgoing, Sender};
use super::{LiveHost, LiveParameters};
use crate::nonsense::Nonsense;
use crate::virtual_interfaces::{Carried, JOB_DOMAIN, What, ended, errno};
use weft_client::device::{Notice, NoticeKind, Post, PostKind};
use weft_msg::EnvelopeKind;
use weft_nic::gvas::Pdid;
use weft_nic::{Delivered, Failure, HostContext, Message, Primitive};
use weft_units::{Bytes, EndpointId, RankId, Time};
use weft_workload::replay::{self, Cause, MessageId};

/// What a machine has for virtual interfaces.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceLimits {
    /// How many a node has, those of its ranks' messaging included.
    pub interfaces: u32,
    /// The largest small message.
    pub small: Bytes,
}

/// A message between virtual interfaces that has not arrived.
pub(super) struct InFlight {
    /// Whom its failure is told: the seat, the interface, the kind of operation, its context. `None`: nobody, it is an answer.
    tells: Option<(usize, u16, u32, u64)>,
    payload: Option<u32>,
}

/// A message on its way out of an interface.
struct Way {
    to: EndpointId,
    to_interface: u16,
    bytes: Bytes,
    primitive: Primitive,
    payload: Option<u32>,
    token: Option<u32>,
}

impl LiveHost {
    /// Carries a post of a rank's virtual interfaces.
    pub(super) fn carry_interface(
        &mut self,
        seat: usize,
        post: &Post,
        bytes: Vec<u8>,
        at: Time,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) -> Result<(), Nonsense> {
        let kind = PostKind::of(post.kind).ok_or(Nonsense::PostKind(post.kind))?;
        match kind {
            PostKind::Open => {
                let notice = self.open(seat, post.flags & Post::PRIVATE != 0, parameters, context);
                // Where the rank waits for it, it goes on by itself.
                let at = context.now().as_ps();
                let rank = &mut self.ranks[seat];
                rank.notices.push_back((Notice { at, ..notice }, Vec::new(), rank.ledger.last()));
                return Ok(());
            }
            PostKind::Close => {
                let (number, _) = self.interfaces.of_post(post, seat)?;
                self.close(number, context);
                return Ok(());
            }
            _ => {}
        }
        let (number, open) = self.interfaces.of_post(post, seat)?;
        let domain = open.domain;
        match kind {
            PostKind::Take => {
                // Messages of the simple interface lie in no mailbox.
                if open.in_mailbox > 0 {
                    open.in_mailbox -= 1;
                    context.taken(number, at);
                }
                return Ok(());
            }
            PostKind::Share => return open.share(post),
            PostKind::Unshare => {
                open.unshare(post.key);
                return Ok(());
            }
            _ => {}
        }
        let rank = self.ranks[seat].rank;
        let carried = |what| Carried { what, from: number, domain, context: post.context };
        let to = EndpointId(post.to);
        let to_interface = u16::try_from(post.to_interface).unwrap_or(u16::MAX);
        let too_large = kind == PostKind::Small && post.length > parameters.limits.small.get();
        let error = if post.to >= parameters.nodes {
            libc::ENETUNREACH
        } else if u32::from(to_interface) >= parameters.limits.interfaces {
            libc::ENXIO
        } else if too_large {
            libc::EMSGSIZE
        } else {
            0
        };
        if error != 0 {
            let notice = ended(number, kind as u32, post.context, error);
            let rank = &mut self.ranks[seat];
            let notice = Notice { at: at.as_ps(), ..notice };
            rank.notices.push_back((notice, Vec::new(), rank.ledger.last()));
            return Ok(());
        }
        let (carried, way) = match kind {
            PostKind::Small => {
                if bytes.len() as u64 != post.length {
                    return Err(Nonsense::Length { said: post.length, carried: bytes.len() as u64 });
                }
                let (size, primitive) = (Bytes::new(post.length), Primitive::Small);
                let payload = Some(parameters.store(Data::Posted(bytes)));
                (carried(What::Small), Way { to, to_interface, bytes: size, primitive, payload, token: None })
            }
            PostKind::Put => {
                parameters.check_memory(rank, post.local, post.length)?;
                let notify = (post.flags & Post::NOTIFIES != 0).then_some((post.notify, post.data));
                let (address, length) = (post.local, post.length);
                let place = parameters.store(Data::At { rank, address, length });
                let outgoing = Outgoing { seat: seat as u32, number: 0, token: 0, capture: Some(place) };
                let token = Some(self.outgoing.insert(outgoing) as u32);
                let (bytes, primitive) = (Bytes::new(length), Primitive::Write);
                let way = Way { to, to_interface, bytes, primitive, payload: Some(place), token };
                (carried(What::Put { remote: post.remote, notify }), way)
            }
            _ => {
                let (remote, length, local) = (post.remote, post.length, post.local);
                // A request is a descriptor in the mailbox of the target's send unit.
                let bytes = parameters.control.min(parameters.limits.small);
                let (primitive, payload, token) = (Primitive::Small, None, None);
                let way = Way { to, to_interface, bytes, primitive, payload, token };
                (carried(What::Get { remote, length, local }), way)
            }
        };
        self.ranks[seat].messages_sent += 1;
        self.ranks[seat].sent += Bytes::new(post.length);
        let tells = Some((seat, number, kind as u32, post.context));
        self.send_between(carried, way, (seat, Sender::Rank), tells, at, parameters, context);
        Ok(())
    }

    fn open(
        &mut self,
        seat: usize,
        private: bool,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) -> Notice {
        let opened = Notice { kind: NoticeKind::Opened as u32, ..Notice::default() };
        let domain = match private {
            false => Some(JOB_DOMAIN),
            true => {
                u16::try_from(self.ranks[seat].rank).ok().and_then(|rank| rank.checked_add(JOB_DOMAIN + 1))
            }
        };
        let Some(domain) = domain else { return Notice { error: libc::ENOSPC, ..opened } };
        let number = self.interfaces.open(self.ranks.len(), parameters.limits.interfaces, seat, Pdid(domain));
        let Some(number) = number else { return Notice { error: libc::ENOSPC, ..opened } };
        context.open(number, Pdid(domain));
        Notice { interface: number.into(), node: context.endpoint().0, data: domain.into(), ..opened }
    }

    fn close(&mut self, number: u16, context: &mut impl HostContext<LiveHost>) {
        let Some(open) = self.interfaces.close(number) else { return };
        for _ in 0..open.in_mailbox {
            context.taken(number, context.now());
        }
        // Of the domain of nobody.
        context.open(number, Pdid(0));
    }

    /// The program has closed its rank.
    pub(super) fn close_all(&mut self, seat: usize, context: &mut impl HostContext<LiveHost>) {
        for number in self.interfaces.of_seat(seat) {
            self.close(number, context);
        }
    }

    /// Something has come for a virtual interface.
    pub(super) fn interface_delivered(
        &mut self,
        message: &Delivered<LiveHeader>,
        header: &LiveHeader,
        carried: &Carried,
        own: MessageId,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let (number, now) = (message.interface, context.now());
        parameters.in_flight().remove(&(message.from, message.number));
        let bytes = parameters.take(header.payload);
        let kind = carried.what.kind();
        let open = self.interfaces.get_mut(number);
        let keeps = matches!(carried.what, What::Small)
            && open.as_ref().is_some_and(|open| open.domain == carried.domain);
        if message.in_mailbox && !keeps {
            context.taken(number, now);
        }
        // What answers an operation of this node's, and may come too late.
        let answered = match carried.what {
            What::Got { local } => {
                let Some(open) = open else { return };
                let written = parameters.job.write(self.ranks[open.seat].rank, local, &bytes);
                Some((open.seat, if written { 0 } else { libc::EFAULT }))
            }
            What::Ended { error, .. } => {
                let Some(open) = open else { return };
                Some((open.seat, error))
            }
            _ => None,
        };
        if let Some((seat, error)) = answered {
            let notice = ended(number, kind, carried.context, error);
            return self.tell(seat, notice, Vec::new(), Cause::Arrived(own), parameters, context);
        }
        let mut written_for = None;
        let open = self.interfaces.get_mut(number);
        let refused = if open.is_some() { libc::EACCES } else { libc::ENXIO };
        let open = open.filter(|open| open.domain == carried.domain);
        let domain = open.as_ref().map_or(carried.domain, |open| open.domain);
        // Where nothing is open, the node answers, whose first rank stands for it.
        let seat = open.as_ref().map_or(0, |open| open.seat);
        let rank = self.ranks.get(seat).map_or(0, |rank| rank.rank);
        let what = match (carried.what, open) {
            (What::Small, Some(open)) => {
                open.in_mailbox += u32::from(message.in_mailbox);
                let notice = Notice {
                    kind: NoticeKind::Small as u32,
                    interface: number.into(),
                    node: message.from.0,
                    from_interface: carried.from.into(),
                    data: carried.domain.0.into(),
                    ..Notice::default()
                };
                return self.tell(seat, notice, bytes, Cause::Arrived(own), parameters, context);
            }
            (What::Put { remote, notify }, Some(open)) => {
                let error = open.put(&parameters.job, rank, remote, notify, &bytes);
                written_for = (error == 0).then_some(open.seat);
                What::Ended { kind, error }
            }
            (What::Get { remote, length, local }, Some(open)) => {
                match open.get(&parameters.job, rank, remote, length) {
                    Some(bytes) => {
                        let way = Way {
                            to: message.from,
                            to_interface: carried.from,
                            bytes: Bytes::new(length),
                            primitive: Primitive::WriteBack,
                            payload: Some(parameters.store(Data::Bytes(bytes))),
                            token: None,
                        };
                        let back = Carried { what: What::Got { local }, from: number, domain, ..*carried };
                        let by = (seat, Sender::Interface(own));
                        return self.send_between(back, way, by, None, now, parameters, context);
                    }
                    None => What::Ended { kind, error: libc::EACCES },
                }
            }
            (_, _) => What::Ended { kind, error: refused },
        };
        let bytes = parameters.control.min(parameters.limits.small);
        let (to, to_interface, primitive) = (message.from, carried.from, Primitive::Small);
        let way = Way { to, to_interface, bytes, primitive, payload: None, token: None };
        let (answer, by) =
            (Carried { what, from: number, domain, ..*carried }, (seat, Sender::Interface(own)));
        self.send_between(answer, way, by, None, now, parameters, context);
        // Behind the answer, since the rank may close the interface in its turn: one that waits looks at memory that has
        // changed.
        if let Some(seat) = written_for {
            let notice = Notice { kind: NoticeKind::Written as u32, ..Notice::default() };
            self.tell(seat, notice, Vec::new(), Cause::Arrived(own), parameters, context);
        }
    }

    /// A message between virtual interfaces has failed: its sender sees why. Says whether it was one.
    pub(super) fn interface_failed(
        &mut self,
        failure: &Failure,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) -> bool {
        let in_flight = parameters.in_flight().remove(&(context.endpoint(), failure.number));
        let Some(InFlight { tells, payload }) = in_flight else {
            // It has been delivered, and its acknowledgement was lost.
            return usize::from(failure.interface) >= self.ranks.len();
        };
        if let Some(token) = failure.token {
            let _ = self.outgoing.try_remove(token as usize);
        }
        parameters.forget(payload);
        if let Some((seat, number, kind, of)) = tells
            && self.interfaces.get_mut(number).is_some()
        {
            let notice = ended(number, kind, of, errno(failure.reason));
            let cause = self.ranks[seat].ledger.last();
            self.tell(seat, notice, Vec::new(), cause, parameters, context);
        }
        true
    }
}

impl LiveHost {
    /// Sends something from a virtual interface to another: by whom, and whom its failure is told.
    #[expect(
        clippy::too_many_arguments,
        reason = "what is sent, how, by whom, and the surroundings of a host"
    )]
    fn send_between(
        &mut self,
        carried: Carried,
        way: Way,
        (seat, sender): (usize, Sender),
        tells: Option<(usize, u16, u32, u64)>,
        at: Time,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let Way { to, to_interface, bytes, primitive, payload, token } = way;
        let mut told = parameters.told(context.output());
        let rank = self.ranks.get_mut(seat);
        let source = rank.as_ref().map_or(0, |rank| rank.rank);
        let after = rank.and_then(|rank| match sender {
            Sender::Rank => rank.ledger.posts(at, &mut told),
            Sender::Interface(cause) => rank.ledger.answers(at, cause, &mut told),
        });
        let header = LiveHeader {
            kind: Kind::Interface(carried),
            source,
            seat: 0,
            number: 0,
            payload,
            data: 0,
            with_data: false,
            token: 0,
        };
        let message = Message {
            to,
            bytes,
            born: at,
            header: Some(header),
            token,
            primitive,
            interface: carried.from,
            to_interface,
            watch: after.is_some(),
        };
        let number = context.send(message, at);
        if let Some(outgoing) = token.and_then(|token| self.outgoing.get_mut(token as usize)) {
            outgoing.number = number;
        }
        parameters.in_flight().insert((context.endpoint(), number), InFlight { tells, payload });
        if let Some(after) = after {
            let message = MessageId { source: context.endpoint(), number };
            let to = parameters.first_rank_of(to).unwrap_or(RankId(source));
            let kind = if payload.is_some() { EnvelopeKind::Data } else { EnvelopeKind::Ack };
            let post = replay::Post { message, rank: RankId(source), to, kind, payload: bytes, at, after };
            context.output().record.posts.push(post);
        }
    }
}
