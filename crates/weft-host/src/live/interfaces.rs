//! Virtual interfaces of live ranks: their posts, and the messages that arrive for them. The table is in
//! [`crate::virtual_interfaces`].

use super::header::{LiveHeader, LiveKind};
use super::payloads::Data;
use super::ports::PortAction;
use super::posts::{Sender, SilentEnd, Taken};
use super::rails::HandedOver;
use super::{Handler, LiveHost};
use crate::nonsense::Nonsense;
use crate::rank_memory::{PageFault, RankMemory};
use crate::virtual_interfaces::{Carried, What, ended, errno, field_errno, put, register_errno};
use weft_client::device::{Notice, NoticeKind, Post, PostKind};
use weft_client::interface::{WantedDomain, WantedMemory, WantedPath, Way};
use weft_msg::EnvelopeKind;
use weft_nic::apenetx::{ChosenDelivery, CompletionPath, MemoryKind};
use weft_nic::gvas::{Gvas, Pdid};
use weft_nic::{Delivered, Failure, HostContext, Message, MessageOptions, Primitive, RegisterError};
use weft_units::{Address, Bytes, EndpointId, RankId, Time};
use weft_workload::replay::{self, Cause, MessageId};

/// The limits of a machine's virtual interfaces.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceLimits {
    /// Virtual interfaces of a node, those of its ranks' messaging included.
    pub interfaces: u32,
    /// Endpoints of a node, each of which has as many of these.
    pub endpoints: u32,
    /// Those of them that have a page of RDMA channels: the first so many.
    pub pages: u32,
    /// Bytes of the largest small message.
    pub small: Bytes,
}

/// An operation of a virtual interface: whoever began it hears of its failure.
#[derive(Clone, Copy)]
struct Operation {
    /// The seat of the rank that began it.
    seat: usize,
    /// The virtual interface that it began on.
    interface: u16,
    /// The kind of post that it is.
    kind: u32,
    /// The program's own number for it.
    context: u64,
}

/// A message between virtual interfaces that has not arrived.
pub(super) struct InFlight {
    /// The operation that fails with it; `None`: it is an answer.
    operation: Option<Operation>,
    payload: Option<u32>,
}

/// A message between virtual interfaces, on its way to the endpoint that sends it.
#[derive(Clone)]
pub(super) struct Departing {
    pub message: Message<LiveHeader>,
    at: Time,
    payload: Option<u32>,
    /// The operation that fails with it.
    operation: Option<Operation>,
    /// The step after which a rank has sent it, where the critical path is recorded.
    after: Option<(RankId, u32)>,
}

/// A message from one virtual interface to another.
struct Outbound {
    carried: Carried,
    /// The node and its virtual interface for which it is.
    to: u32,
    to_interface: u16,
    bytes: Bytes,
    /// The place of the data in the memory of the rank, if it lies there.
    buffer: Address,
    primitive: Primitive,
    /// The path of its completion, if the program has chosen one.
    options: MessageOptions,
    payload: Option<u32>,
    /// Key of the entry that waits until the interface has taken the data.
    outgoing: Option<u32>,
    /// The seat of the rank that sends, and whether its interface does so in its place.
    seat: usize,
    sender: Sender,
    /// The operation that fails with the message.
    operation: Option<Operation>,
}

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// At `at`, the oldest message is taken out of the queue of a virtual interface.
    pub(super) fn take(&mut self, interface: u16, at: Time) {
        self.act_at_port(interface, PortAction::Take(at));
    }

    /// Carries a post of a rank's virtual interfaces.
    pub(super) fn carry_interface(
        &mut self,
        seat: usize,
        post: &Post,
        bytes: Vec<u8>,
        at: Time,
    ) -> Result<(), Nonsense> {
        let kind = PostKind::of(post.kind).ok_or(Nonsense::PostKind(post.kind))?;
        if let PostKind::Open | PostKind::ReadRegister | PostKind::WriteRegister = kind {
            let notice =
                if kind == PostKind::Open { self.open(seat, post) } else { self.register(kind, post) };
            self.keep_for(seat, notice, self.context.now());
            return Ok(());
        }
        let (number, open) = self.host.interfaces.of_post(post, seat)?;
        match kind {
            PostKind::Close => self.close(number),
            PostKind::Restrict => open.is_restricted = true,
            PostKind::Take => {
                // Messages of the overheads interface lie in no mailbox.
                if open.in_mailbox > 0 {
                    open.in_mailbox -= 1;
                    self.take(number, at);
                }
            }
            _ => match self.refusal(seat, kind, post) {
                0 => return self.carry_operation(seat, post, bytes, at),
                errno => self.keep_for(seat, ended(number, kind as u32, post.context, errno), at),
            },
        }
        Ok(())
    }

    /// Keeps a notice until the rank takes it: a rank that waits for it goes on by itself.
    fn keep_for(&mut self, seat: usize, notice: Notice, at: Time) {
        let rank = &mut self.host.ranks[seat];
        let notice = Notice { at: at.as_ps(), ..notice };
        rank.notices.push_back((notice, Vec::new(), rank.ledger.last()));
    }

    /// The errno with which the interface refuses a descriptor, or 0.
    fn refusal(&self, seat: usize, kind: PostKind, post: &Post) -> i32 {
        let limits = self.parameters.limits;
        // A read comes back by channels of the interface that is read from.
        let served = if kind == PostKind::Get { limits.pages } else { limits.interfaces };
        // The rank of the address is known at the target: the interface says it.
        if chosen(post).is_none() {
            libc::EINVAL
        } else if let Err(error) = Gvas::new(Pdid::default(), post.to, 0, 0) {
            field_errno(&error)
        } else if post.to >= self.parameters.nodes {
            libc::ENETUNREACH
        } else if target_interface(post) >= served {
            libc::ENXIO
        } else if kind == PostKind::Small && post.length > limits.small.get() {
            libc::EMSGSIZE
        } else if kind == PostKind::Get && !self.has_room(seat, post) {
            PageFault::ERRNO
        } else {
            0
        }
    }

    /// Whether a rank has the memory that it wants to read into.
    fn has_room(&self, seat: usize, post: &Post) -> bool {
        let rank = self.host.ranks[seat].rank;
        RankMemory::of(&self.parameters.job, rank).contains(post.local, post.length)
    }

    /// Carries a small message, an RDMA write or an RDMA read.
    fn carry_operation(
        &mut self,
        seat: usize,
        post: &Post,
        bytes: Vec<u8>,
        at: Time,
    ) -> Result<(), Nonsense> {
        let (number, open) = self.host.interfaces.of_post(post, seat)?;
        let domain = open.place.domain();
        let rank = self.host.ranks[seat].rank;
        let carried = |what| Carried { what, from: number, domain, context: post.context };
        let operation = Operation { seat, interface: number, kind: post.kind, context: post.context };
        let mut outbound = Outbound {
            carried: carried(What::Small),
            to: post.to,
            to_interface: target_interface(post) as u16,
            bytes: Bytes::new(post.length),
            buffer: Address::default(),
            primitive: Primitive::Small,
            options: MessageOptions::NONE,
            payload: None,
            outgoing: None,
            seat,
            sender: Sender::Rank,
            operation: Some(operation),
        };
        match PostKind::of(post.kind) {
            Some(PostKind::Small) => {
                let header = if post.flags & Post::HEADED != 0 { Post::HEADER } else { 0 };
                let carried = bytes.len() as u64;
                if carried.checked_sub(header as u64) != Some(post.length) {
                    return Err(Nonsense::Length { said: post.length, carried });
                }
                if post.flags & Post::SILENT != 0 {
                    let ends = SilentEnd { interface: number, context: post.context, kind: PostKind::Small };
                    let taken = Taken { token: None, capture: None, ends: Some(ends) };
                    outbound.outgoing = Some(self.host.outgoing.insert(seat, taken));
                }
                outbound.payload = Some(self.parameters.store(Data::Posted(bytes)));
            }
            Some(PostKind::Put) => {
                let (address, length) = (post.local, post.length);
                self.parameters.check_memory(rank, address, length)?;
                let notify = (post.flags & Post::NOTIFIES != 0).then_some((post.notify, post.data));
                let place = self.parameters.store(Data::At { rank, address, length });
                let is_silent = post.flags & Post::SILENT != 0;
                let ends = SilentEnd { interface: number, context: post.context, kind: PostKind::Put };
                let ends = is_silent.then_some(ends);
                let taken = Taken { token: None, capture: Some(place), ends };
                outbound.options = chosen(post).unwrap_or_default();
                outbound.carried = carried(What::Put { remote: post.remote, notify, is_silent });
                outbound.outgoing = Some(self.host.outgoing.insert(seat, taken));
                outbound.buffer = self.parameters.job.reach(rank).place(address, length);
                outbound.primitive = Primitive::Write;
                outbound.payload = Some(place);
            }
            _ => {
                let (remote, length, local) = (post.remote, post.length, post.local);
                outbound.primitive = Primitive::ReadRequest;
                outbound.carried = carried(What::Get { remote, length, local });
                outbound.bytes = self.parameters.control.min(self.parameters.limits.small);
            }
        }
        self.host.ranks[seat].counts_sent(Bytes::new(post.length));
        self.send_between(outbound, at);
        Ok(())
    }

    /// Reads or writes a register of the network interface now.
    fn register(&mut self, kind: PostKind, post: &Post) -> Notice {
        let answered = Notice { kind: NoticeKind::Register as u32, data: post.data, ..Notice::default() };
        let accessed = match (self.context.capabilities().registers(), u32::try_from(post.key)) {
            (None, _) => Err(RegisterError::NoRegisters),
            (Some(registers), Ok(address)) if kind == PostKind::WriteRegister => {
                let written = registers.write_register(address, post.data as u32);
                if written.is_ok() {
                    self.write_beside(address, post.data as u32);
                }
                written.map(|()| post.data as u32)
            }
            (Some(registers), Ok(address)) => registers.read_register(address),
            (Some(_), Err(_)) => return Notice { error: libc::EFAULT, ..answered },
        };
        match accessed {
            Ok(value) => Notice { data: value.into(), ..answered },
            Err(error) => Notice { error: register_errno(&error), ..answered },
        }
    }

    /// Opens an interface for a rank, the one that it names or any, in the domain that it names, and tells it
    /// which it has got.
    fn open(&mut self, seat: usize, post: &Post) -> Notice {
        let opened = Notice { kind: NoticeKind::Opened as u32, ..Notice::default() };
        match self.allocate(seat, post) {
            Ok((number, place)) => {
                self.act_at_port(number, PortAction::Open(place.domain()));
                let (node, data) = (place.node().0, place.domain().0.into());
                Notice { interface: number.into(), node, data, ..opened }
            }
            Err(error) => Notice { error, ..opened },
        }
    }

    /// Allocates an interface: its number, and where its process is in the global address space. The error is
    /// an errno.
    fn allocate(&mut self, seat: usize, post: &Post) -> Result<(u16, Gvas), i32> {
        let wanted = WantedDomain::of(post.data).ok_or(libc::EINVAL)?;
        let domain = self.parameters.domains.open(wanted, self.host.ranks[seat].rank)?;
        let rank = u8::try_from(seat).map_err(|_| libc::EOVERFLOW)?;
        let node = self.own_node();
        let place = Gvas::new(domain, node, rank, 0).map_err(|_| libc::EOVERFLOW)?;
        let all = self.parameters.limits.interfaces;
        let named = (post.flags & Post::NAMED != 0).then_some(post.to_interface);
        let (numbers, none) = match named {
            Some(named) if named >= all => return Err(libc::ENXIO),
            Some(named) => (named..named + 1, libc::EBUSY),
            None => ((self.host.ranks.len() as u32).max(self.parameters.first_free)..all, libc::ENOSPC),
        };
        let (home, parameters) = (self.context.endpoint(), self.parameters);
        let claims = |number: u16| parameters.own_port(home, number);
        let number = self.host.interfaces.open(numbers, claims, (seat, place)).ok_or(none)?;
        Ok((number, place))
    }

    fn close(&mut self, number: u16) {
        let Some(open) = self.host.interfaces.close(number) else { return };
        for _ in 0..open.in_mailbox {
            self.take(number, self.context.now());
        }
        // As one that nobody has opened: whoever is of domain 0 finds none in the table.
        self.act_at_port(number, PortAction::Open(Pdid(0)));
        self.parameters.disown_port(self.context.endpoint(), number);
    }

    /// The program has closed its rank.
    pub(super) fn close_all(&mut self, seat: usize) {
        for number in self.host.interfaces.of_seat(seat) {
            self.close(number);
        }
    }

    /// A message for a virtual interface has arrived.
    pub(super) fn interface_delivered(
        &mut self,
        message: &Delivered<LiveHeader>,
        header: &LiveHeader,
        carried: &Carried,
    ) {
        let number = message.interface;
        self.parameters.in_flight().remove(&(message.from, message.number));
        let bytes = self.parameters.take(header.payload);
        let open = self.host.interfaces.get_mut(number);
        let keeps = matches!(carried.what, What::Small)
            && open.as_ref().is_some_and(|open| open.place.domain() == carried.domain);
        if message.in_mailbox && !keeps {
            self.take(number, self.context.now());
        }
        match carried.what {
            What::Got { .. } | What::Ended { .. } => self.operation_ended(message, carried, &bytes),
            What::Small | What::Put { .. } | What::Get { .. } => self.serve(message, carried, bytes),
        }
    }

    /// The answer to an operation of this endpoint's has arrived, which may be too late.
    fn operation_ended(&mut self, message: &Delivered<LiveHeader>, carried: &Carried, bytes: &[u8]) {
        let Some(open) = self.host.interfaces.get_mut(message.interface) else { return };
        let seat = open.seat;
        let error = match carried.what {
            What::Got { local } => {
                let rank = self.host.ranks[seat].rank;
                put(&RankMemory::of(&self.parameters.job, rank), local, None, bytes)
            }
            What::Ended { error, .. } => error,
            What::Small | What::Put { .. } | What::Get { .. } => return,
        };
        let notice = ended(message.interface, carried.what.kind(), carried.context, error);
        let cause = MessageId { source: message.from, number: message.number };
        self.tell(seat, notice, Vec::new(), Cause::Arrived(cause));
    }

    /// Serves an operation of a peer: a small message goes to the program, the others are answered by the
    /// interface.
    fn serve(&mut self, message: &Delivered<LiveHeader>, carried: &Carried, bytes: Vec<u8>) {
        let number = message.interface;
        let cause = MessageId { source: message.from, number: message.number };
        let kind = carried.what.kind();
        let mut written_for = None;
        let open = self.host.interfaces.get_mut(number);
        let refused = if open.is_some() { libc::EACCES } else { libc::ENXIO };
        let open = open.filter(|open| open.place.domain() == carried.domain);
        // Where nothing is open, the node answers, whose first rank stands for it.
        let seat = open.as_ref().map_or(0, |open| open.seat);
        let rank = self.host.ranks.get(seat).map_or(0, |rank| rank.rank);
        let memory = RankMemory::of(&self.parameters.job, rank);
        let (mut read, mut buffer, mut answers) = (None, Address::default(), true);
        let what = match (carried.what, open) {
            (What::Small, Some(open)) => {
                open.in_mailbox += u32::from(message.in_mailbox);
                let notice = Notice {
                    kind: NoticeKind::Small as u32,
                    interface: number.into(),
                    node: self.parameters.node_ports.node(message.from),
                    from_interface: carried.from.into(),
                    way: Way { hops: message.hops, channel: message.channel }.into(),
                    data: carried.domain.0.into(),
                    ..Notice::default()
                };
                return self.tell(seat, notice, bytes, Cause::Arrived(cause));
            }
            (What::Put { remote, notify, is_silent }, Some(open)) => {
                let data = (remote, bytes.len() as u64);
                let admits = open.admits_write(&self.parameters.job.reach(rank), data, notify);
                let error = if admits { put(&memory, remote, notify, &bytes) } else { PageFault::ERRNO };
                written_for = (error == 0).then_some(seat);
                answers = error != 0 || !is_silent;
                What::Ended { kind, error }
            }
            (What::Get { remote, length, local }, Some(open)) => {
                let admits = open.admits_read(&self.parameters.job.reach(rank), (remote, length));
                match if admits { memory.get(remote, length) } else { Err(PageFault) } {
                    Ok(bytes) => {
                        read = Some(bytes);
                        buffer = self.parameters.job.reach(rank).place(remote, length);
                        What::Got { local }
                    }
                    Err(PageFault) => What::Ended { kind, error: PageFault::ERRNO },
                }
            }
            (_, _) => What::Ended { kind, error: refused },
        };
        let bytes = match &read {
            Some(bytes) => Bytes::new(bytes.len() as u64),
            None => self.parameters.control.min(self.parameters.limits.small),
        };
        let outbound = Outbound {
            carried: Carried { what, from: number, ..*carried },
            to: self.parameters.node_ports.node(message.from),
            to_interface: carried.from,
            bytes,
            buffer,
            primitive: if read.is_some() { Primitive::WriteBack } else { Primitive::Small },
            options: MessageOptions::NONE,
            payload: read.map(|bytes| self.parameters.store(Data::Bytes(bytes))),
            outgoing: None,
            seat,
            sender: Sender::Interface(cause),
            operation: None,
        };
        if answers {
            self.send_between(outbound, self.context.now());
        }
        // After the answer, since the rank may close the interface in its turn: a rank that waits looks at
        // its memory again.
        if let Some(seat) = written_for {
            let notice = Notice { kind: NoticeKind::Written as u32, ..Notice::default() };
            self.tell(seat, notice, Vec::new(), Cause::Arrived(cause));
        }
    }

    /// The data of an operation that nobody answers has been taken: this message of the rank in `seat`.
    pub(super) fn end_silently(&mut self, (seat, message): (usize, MessageId), ends: SilentEnd) {
        let SilentEnd { interface, context, kind } = ends;
        if self.host.interfaces.get_mut(interface).is_some() {
            let notice = ended(interface, kind as u32, context, 0);
            self.tell(seat, notice, Vec::new(), Cause::Sent(message));
        }
    }

    /// A message between virtual interfaces, which endpoint `by` has sent, has failed: its sender sees why.
    /// Says whether it was one.
    pub(super) fn interface_failed(&mut self, by: EndpointId, failure: &Failure) -> bool {
        let in_flight = self.parameters.in_flight().remove(&(by, failure.number));
        let Some(InFlight { operation, payload }) = in_flight else {
            // It has been delivered, and its acknowledgement was lost.
            return usize::from(failure.interface) >= self.host.ranks.len();
        };
        if let Some(token) = failure.token {
            let _ = self.host.outgoing.remove(token);
        }
        self.parameters.forget(payload);
        if let Some(Operation { seat, interface, kind, context }) = operation
            && self.host.interfaces.get_mut(interface).is_some()
        {
            let notice = ended(interface, kind, context, errno(failure.reason));
            let cause = self.host.ranks[seat].ledger.last();
            self.tell(seat, notice, Vec::new(), cause);
        }
        true
    }

    /// Sends a message from one virtual interface to another.
    fn send_between(&mut self, outbound: Outbound, at: Time) {
        let Outbound { carried, bytes, buffer, primitive, payload, outgoing, operation, .. } = outbound;
        let by = self.place_of(carried.from);
        let to = self.parameters.node_ports.place(outbound.to, outbound.to_interface);
        let mut told = self.parameters.told(self.context.output());
        let rank = self.host.ranks.get_mut(outbound.seat);
        let source = rank.as_ref().map_or(0, |rank| rank.rank);
        let after = rank.and_then(|rank| match outbound.sender {
            Sender::Rank => rank.ledger.posts(at, &mut told),
            Sender::Interface(cause) => rank.ledger.answers(at, cause, &mut told),
        });
        let header = LiveHeader { payload, ..LiveHeader::new(LiveKind::Interface(carried), source, 0) };
        let message = Message {
            header: Some(header),
            token: outgoing,
            primitive,
            purpose: header.kind.purpose(),
            interface: by.interface,
            to_interface: to.interface,
            buffer,
            watch: after.is_some(),
            of_program: outbound.outgoing.is_some(),
            options: outbound.options,
            ..Message::new(to.endpoint, bytes, at)
        };
        let after = after.map(|after| (RankId(source), after));
        let departing = Departing { message, at, payload, operation, after };
        if by.endpoint != self.context.endpoint() {
            return self.hand_over(by.endpoint, HandedOver::Departing(departing));
        }
        let number = self.depart(departing);
        if let Some(key) = outgoing {
            self.host.outgoing.set_message(key, MessageId { source: by.endpoint, number });
        }
    }

    /// Sends a message between virtual interfaces by a port of this endpoint. Returns its number.
    pub(super) fn depart(&mut self, departing: Departing) -> u32 {
        let Departing { message, at, payload, operation, after } = departing;
        let (to, bytes) = (message.to, message.bytes);
        let number = self.context.send(message, at);
        self.report_payload(number, payload, bytes);
        let source = self.context.endpoint();
        self.parameters.in_flight().insert((source, number), InFlight { operation, payload });
        if let Some((rank, after)) = after {
            let message = MessageId { source, number };
            let to = self.parameters.first_rank_of(to).unwrap_or(rank);
            let kind = if payload.is_some() { EnvelopeKind::Data } else { EnvelopeKind::Ack };
            let post = replay::PostedMessage { message, rank, to, kind, payload: bytes, at, after };
            self.context.output().record.posts.push(post);
        }
        number
    }
}

/// The delivery that a post chooses; `None`: there is no such path.
fn chosen(post: &Post) -> Option<MessageOptions> {
    let completion = match WantedPath::of(post.flags >> Post::PATH_SHIFT & Post::PATH_MASK)? {
        WantedPath::Machine => None,
        WantedPath::Kernel => Some(CompletionPath::Kernel),
        WantedPath::Remapped => Some(CompletionPath::Remapped),
        WantedPath::Direct => Some(CompletionPath::Direct),
        WantedPath::UserQueue => Some(CompletionPath::UserQueue),
    };
    let memory = |shift: u32| match WantedMemory::of(post.flags >> shift) {
        WantedMemory::Machine => None,
        WantedMemory::Host => Some(MemoryKind::Host),
        WantedMemory::GpuDirect => Some(MemoryKind::GpuDirect),
        WantedMemory::GpuStaged => Some(MemoryKind::GpuStaged),
    };
    let (source, target) = (memory(Post::SOURCE_SHIFT), memory(Post::TARGET_SHIFT));
    Some(ChosenDelivery { completion, source, target }.options())
}

/// The virtual interface that a post names at its target; one that no endpoint has, where the number is no
/// such.
fn target_interface(post: &Post) -> u32 {
    post.to_interface.min(u16::MAX.into())
}
