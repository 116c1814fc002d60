//! Messages that arrive for ranks.

use super::header::{LiveHeader, LiveKind, LiveMessage, LiveRead, LiveWrite};
use super::payloads::Data;
use super::ports::PortAction;
use super::posts::{Parcel, Sender, carries_data};
use super::{Handler, LiveHost};
use crate::rank_memory::RankMemory;
use crate::reach::ExpectedData;
use crate::tag::program_tag;
use weft_client::device::{Notice, NoticeKind, Post, RawEnvelope, State};
use weft_msg::{Body, EnvelopeKind};
use weft_nic::{Delivered, HostContext, Primitive};
use weft_units::{Bytes, RankId};
use weft_workload::replay::{Cause, MessageClass, MessageId, ReplayedMessage};

/// The entries of tables on a message with data of ranks.
struct Reported {
    bytes: Bytes,
    class: MessageClass,
    tag: Option<i32>,
}

/// The data beside a message, and the flags, of a notice.
fn with_data(data: Option<u64>) -> (u64, u32) {
    (data.unwrap_or(0), if data.is_some() { Post::WITH_DATA } else { 0 })
}

impl Reported {
    /// RDMA, by which MPICH carries out puts and gets.
    fn one_sided(bytes: Bytes) -> Reported {
        Reported { bytes, class: MessageClass::OneSided, tag: None }
    }

    /// A message with this tag. Without one it is an active message, by which MPICH carries out what else
    /// there is on windows.
    fn of_tag(bytes: Bytes, tag: Option<u64>) -> Reported {
        let Some(bits) = tag else { return Reported::one_sided(bytes) };
        let tag = program_tag(bits);
        let class = if tag.is_some() { MessageClass::PointToPoint } else { MessageClass::Collective };
        Reported { bytes, class, tag }
    }
}

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// A message, or a part of one, has arrived at the endpoint of its rank.
    pub(super) fn arrive_home(mut self, message: &Delivered<LiveHeader>) {
        self.end_turn_under_way();
        let header = *message.header.as_ref().expect("ranks send every message with a header");
        let (mut whole, part) = (*message, header.part);
        if part.parts > 1 {
            let stripes = &mut self.host.ranks[header.seat as usize].stripes;
            if !stripes.arrive(header.source, part.stripe, part.parts.into()) {
                return;
            }
            whole.bytes = part.whole;
        }
        let message = &whole;
        let cause = MessageId { source: message.from, number: message.number };
        match header.kind {
            LiveKind::Interface(carried) => self.interface_delivered(message, &header, &carried),
            LiveKind::Message(sent) => self.message_arrived(message, &header, &sent),
            LiveKind::Write(write) => {
                self.leave_mailbox(message, &header);
                self.report(message, &header, Reported::one_sided(message.bytes));
                self.written(&header, &write, cause);
            }
            LiveKind::Read(read) => {
                self.leave_mailbox(message, &header);
                self.read_for(&header, &read, cause);
            }
            LiveKind::Done { token, error } => {
                self.leave_mailbox(message, &header);
                self.done(header.seat as usize, token, error, cause);
            }
            LiveKind::Answer { local, token, opening } => {
                self.leave_mailbox(message, &header);
                self.report(message, &header, Reported::one_sided(message.bytes));
                let bytes = self.parameters.take(header.payload);
                let rank = self.host.ranks[header.seat as usize].rank;
                // A rank that has been closed since has its memory back.
                let lent = self.parameters.job.reach(rank).opening == opening;
                let written = lent && RankMemory::of(&self.parameters.job, rank).write(local, &bytes);
                let error = if written { 0 } else { libc::EFAULT };
                self.done(header.seat as usize, token, error, cause);
            }
        }
    }

    /// Takes a message out of the mailbox at once: nothing waits for it there.
    fn leave_mailbox(&mut self, message: &Delivered<LiveHeader>, header: &LiveHeader) {
        if message.in_mailbox {
            self.act(header.seat as u16, PortAction::Take(self.context.now()));
        }
    }

    /// A message of messaging has arrived: it is delivered in its order, with those that waited for it.
    fn message_arrived(&mut self, message: &Delivered<LiveHeader>, header: &LiveHeader, sent: &LiveMessage) {
        let cause = MessageId { source: message.from, number: message.number };
        let rank = &mut self.host.ranks[header.seat as usize];
        let is_ordered = sent.envelope.is_ordered();
        let mut next = match is_ordered {
            true => rank.order.arrive(header.source, sent.number, *header),
            false => Some(*header),
        };
        let takes =
            matches!(rank.wants, State::Ready | State::Wait | State::Poll | State::Until | State::Run);
        if message.in_mailbox && takes && next.is_some() {
            rank.in_mailbox += 1;
        } else {
            // For a rank outside virtual time nothing waits. And a message that comes early must not keep out
            // the one that it waits for: the library takes it out and keeps it.
            self.leave_mailbox(message, header);
        }
        if carries_data(&sent.envelope) {
            self.report(message, header, Reported::of_tag(sent.envelope.bytes, sent.tag));
        }
        while let Some(header) = next.take() {
            if let LiveKind::Message(sent) = header.kind {
                self.deliver(&header, &sent, cause);
            }
            // Those that have waited for it are ordered too.
            if is_ordered {
                next = self.host.ranks[header.seat as usize].order.next(header.source);
            }
        }
    }

    /// The interface answers a read: with the bytes, or with a refusal.
    fn read_for(&mut self, header: &LiveHeader, read: &LiveRead, cause: MessageId) {
        let LiveRead { remote, key, length, local, opening, token } = *read;
        let seat = header.seat as usize;
        let rank = self.host.ranks[seat].rank;
        let region = self.parameters.job.reach(rank).regions.get(&key).copied();
        let bytes = match region.is_some_and(|region| region.permits(remote, length, false)) {
            true => RankMemory::of(&self.parameters.job, rank).read(remote, length).ok(),
            false => None,
        };
        let Some(bytes) = bytes else {
            return self.answer(header, LiveKind::Done { token, error: libc::EACCES }, cause);
        };
        let mut answer = self.back(header, LiveKind::Answer { local, token, opening });
        self.host.ranks[seat].counts_sent(Bytes::new(length));
        answer.payload = Some(self.parameters.store(Data::Bytes(bytes)));
        let buffer = self.parameters.job.reach(rank).place_in_region(key, remote, length);
        let now = self.context.now();
        let parcel = Parcel {
            to: header.source,
            header: answer,
            bytes: Bytes::new(length),
            buffer,
            primitive: Primitive::WriteBack,
            created_at: now,
            kind: EnvelopeKind::Data,
            taken: None,
        };
        self.send(seat, parcel, Sender::Interface(cause), now);
    }

    /// A write or read of a rank has ended with this errno, or 0.
    fn done(&mut self, seat: usize, token: u32, error: i32, cause: MessageId) {
        let notice = Notice { kind: NoticeKind::Done as u32, token, error, ..Notice::default() };
        self.tell(seat, notice, Vec::new(), Cause::Arrived(cause));
    }

    /// Delivers a message of messaging, whose turn it is.
    fn deliver(&mut self, header: &LiveHeader, sent: &LiveMessage, cause: MessageId) {
        let bytes = self.parameters.take(header.payload);
        let seat = header.seat as usize;
        let mut small = Vec::new();
        match sent.envelope.body {
            Body::Data { receive, .. } => {
                // It goes where this rank has said, not where the sender says.
                let number = self.host.ranks[seat].rank;
                let expected = self.parameters.job.reach(number).expected.remove(&receive.0);
                if let Some(ExpectedData { address, length, .. }) = expected {
                    let length = bytes.len().min(length as usize);
                    RankMemory::of(&self.parameters.job, number).write(address, &bytes[..length]);
                }
            }
            _ => small = bytes,
        }
        let (data, flags) = with_data(sent.data);
        let (kind, envelope) = (NoticeKind::Message as u32, RawEnvelope::from(&sent.envelope));
        let notice = Notice { kind, envelope, data, flags, ..Notice::default() };
        self.tell(seat, notice, small, Cause::Arrived(cause));
    }

    /// A peer has written into a rank's memory.
    fn written(&mut self, header: &LiveHeader, write: &LiveWrite, own: MessageId) {
        let LiveWrite { remote, key, endpoints, token, data } = *write;
        let (seat, bytes) = (header.seat as usize, self.parameters.take(header.payload));
        let rank = self.host.ranks[seat].rank;
        let region = self.parameters.job.reach(rank).regions.get(&key).copied();
        let permitted = region.is_some_and(|region| region.permits(remote, bytes.len() as u64, true));
        let written = permitted && RankMemory::of(&self.parameters.job, rank).write(remote, &bytes);
        let error = if written { 0 } else { libc::EACCES };
        self.answer(header, LiveKind::Done { token, error }, own);
        if written {
            // A rank that waits looks at its memory again.
            let (kind, (data, flags)) = (NoticeKind::Written as u32, with_data(data));
            // Of an RDMA write a rank looks at no more than these.
            let (bytes, endpoints) = (bytes.len() as u64, RawEnvelope::endpoint_bits(endpoints));
            let envelope = RawEnvelope { source: header.source, bytes, endpoints, ..RawEnvelope::default() };
            let notice = Notice { kind, data, flags, envelope, ..Notice::default() };
            self.tell(seat, notice, Vec::new(), Cause::Arrived(own));
        }
    }

    /// The header of an answer to a message.
    fn back(&self, to: &LiveHeader, kind: LiveKind) -> LiveHeader {
        let seat = self.parameters.seating.seat(RankId(to.source)).map_or(0, |(_, seat)| seat);
        LiveHeader::new(kind, self.host.ranks[to.seat as usize].rank, seat)
    }

    /// The interface answers a message that has just arrived, by nothing but the fields of a packet.
    fn answer(&mut self, to: &LiveHeader, kind: LiveKind, cause: MessageId) {
        let (seat, now) = (to.seat as usize, self.context.now());
        let control = Parcel::control(to.source, self.back(to, kind), self.parameters, now);
        let parcel = Parcel { bytes: Bytes::ZERO, ..control };
        self.send(seat, parcel, Sender::Interface(cause), now);
    }

    /// Reports a message with data of ranks.
    fn report(&mut self, message: &Delivered<LiveHeader>, header: &LiveHeader, reported: Reported) {
        let Reported { bytes, class, tag } = reported;
        let rank = &mut self.host.ranks[header.seat as usize];
        rank.messages_received += 1;
        rank.received += bytes;
        let delivered = ReplayedMessage {
            delivered: self.context.now(),
            source: message.from,
            destination: self.context.endpoint(),
            number: message.number,
            source_rank: RankId(header.source),
            destination_rank: RankId(rank.rank),
            class,
            tag,
            bytes,
            posted: message.created_at,
            hops: message.hops,
        };
        self.context.output().delivered(0, delivered, self.parameters.wanted);
    }
}
