//! What arrives for ranks.

use super::header::{Kind, LiveHeader};
use super::payloads::Data;
use super::posts::{Parcel, Sender, carries_data};
use super::{LiveHost, LiveParameters};
use crate::tag::program_tag;
use weft_client::device::{Notice, NoticeKind, Post, RawEnvelope, State};
use weft_msg::{Envelope, EnvelopeKind};
use weft_nic::{Delivered, HostContext, Primitive};
use weft_units::{Bytes, RankId};
use weft_workload::replay::{Cause, MessageId, ReplayedMessage};

impl LiveHost {
    /// A message has arrived.
    pub(super) fn arrive(
        &mut self,
        message: &Delivered<LiveHeader>,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let header = *message.header.as_ref().expect("ranks send every message with a header");
        let own = MessageId { source: message.from, number: message.number };
        if let Kind::Interface(carried) = &header.kind {
            return self.interface_delivered(message, &header, carried, own, parameters, context);
        }
        let seat = header.seat as usize;
        let rank = &mut self.ranks[seat];
        let turn = match header.kind {
            Kind::Message(_) if header.is_matched() => {
                rank.order.arrive(header.source, header.number, header)
            }
            _ => Some(header),
        };
        if message.in_mailbox {
            let takes = matches!(rank.wants, State::Ready | State::Wait | State::Poll | State::Run);
            if takes && matches!(header.kind, Kind::Message(_)) && turn.is_some() {
                rank.in_mailbox += 1;
            } else {
                // The interface's own, or for a rank that is outside virtual time: nothing waits for it. And what comes early must not
                // keep out what it waits for: the library takes it out and keeps it.
                context.taken(seat as u16, context.now());
            }
        }
        match header.kind {
            Kind::Message(envelope) => {
                if carries_data(&envelope) {
                    let tag = envelope.is_tagged().then(|| program_tag(envelope.tag64())).flatten();
                    self.report(message, &header, (envelope.bytes, tag), parameters, context);
                }
                if !header.is_matched() {
                    return self.deliver(&header, &envelope, own, parameters, context);
                }
                let mut turn = turn;
                while let Some(next) = turn {
                    if let Kind::Message(envelope) = next.kind {
                        self.deliver(&next, &envelope, own, parameters, context);
                    }
                    turn = self.ranks[seat].order.next(header.source);
                }
            }
            Kind::Write { remote, key } => {
                self.report(message, &header, (message.bytes, None), parameters, context);
                self.written(&header, remote, key, own, parameters, context);
            }
            Kind::Read { remote, key, length, local, opening } => {
                let rank = self.ranks[seat].rank;
                let region = parameters.job.reach(rank).regions.get(&key).copied();
                let bytes = match region.is_some_and(|region| region.permits(remote, length, false)) {
                    true => parameters.job.read(rank, remote, length).ok(),
                    false => None,
                };
                let Some(bytes) = bytes else {
                    let refusal = Kind::Done { token: header.token, error: libc::EACCES };
                    return self.answer(&header, refusal, own, parameters, context);
                };
                let kind = Kind::Answer { local, token: header.token, opening };
                let mut answer = self.back(&header, kind, parameters);
                self.ranks[seat].counts_sent(Bytes::new(length));
                answer.payload = Some(parameters.store(Data::Bytes(bytes)));
                let now = context.now();
                let parcel = Parcel {
                    to: header.source,
                    header: answer,
                    bytes: Bytes::new(length),
                    primitive: Primitive::Write,
                    born: now,
                    kind: EnvelopeKind::Data,
                    then: None,
                };
                self.send(seat, parcel, Sender::Interface(own), now, parameters, context);
            }
            Kind::Done { token, error } => {
                let notice = Notice { kind: NoticeKind::Done as u32, token, error, ..Notice::default() };
                self.tell(seat, notice, Vec::new(), Cause::Arrived(own), parameters, context);
            }
            Kind::Answer { local, token, opening } => {
                self.report(message, &header, (message.bytes, None), parameters, context);
                let bytes = parameters.take(header.payload);
                let rank = self.ranks[seat].rank;
                // A rank that has been closed since has its memory back.
                let lent = parameters.job.reach(rank).opening == opening;
                let error = if lent && parameters.job.write(rank, local, &bytes) { 0 } else { libc::EFAULT };
                let notice = Notice { kind: NoticeKind::Done as u32, token, error, ..Notice::default() };
                self.tell(seat, notice, Vec::new(), Cause::Arrived(own), parameters, context);
            }
            // Has had its own way above.
            Kind::Interface(_) => {}
        }
    }

    /// A message of messaging has had its turn.
    fn deliver(
        &mut self,
        header: &LiveHeader,
        envelope: &Envelope,
        cause: MessageId,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let bytes = parameters.take(header.payload);
        let seat = header.seat as usize;
        let mut small = Vec::new();
        match envelope.kind {
            EnvelopeKind::Data => {
                // It goes where this rank has said, not where the sender says.
                let number = self.ranks[seat].rank;
                let expected = parameters.job.reach(number).expected.remove(&envelope.receive);
                if let Some((address, length)) = expected {
                    let length = bytes.len().min(length as usize);
                    parameters.job.write(number, address, &bytes[..length]);
                }
            }
            _ => small = bytes,
        }
        let notice = Notice {
            kind: NoticeKind::Message as u32,
            envelope: RawEnvelope::from(envelope),
            data: header.data,
            flags: if header.with_data { Post::WITH_DATA } else { 0 },
            ..Notice::default()
        };
        self.tell(seat, notice, small, Cause::Arrived(cause), parameters, context);
    }

    /// A peer has written into a rank's memory.
    fn written(
        &mut self,
        header: &LiveHeader,
        remote: u64,
        key: u64,
        own: MessageId,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let (seat, bytes) = (header.seat as usize, parameters.take(header.payload));
        let rank = self.ranks[seat].rank;
        let region = parameters.job.reach(rank).regions.get(&key).copied();
        let permitted = region.is_some_and(|region| region.permits(remote, bytes.len() as u64, true));
        let written = permitted && parameters.job.write(rank, remote, &bytes);
        let error = if written { 0 } else { libc::EACCES };
        self.answer(header, Kind::Done { token: header.token, error }, own, parameters, context);
        if written {
            // A rank that waits looks at memory that has changed.
            let (kind, data) = (NoticeKind::Written as u32, header.data);
            let flags = if header.with_data { Post::WITH_DATA } else { 0 };
            let length = Bytes::new(bytes.len() as u64);
            let from = RankId(header.source);
            let about = Envelope::of_real_rank(EnvelopeKind::Eager, false, from, 0, length);
            let envelope = RawEnvelope::from(&about);
            let notice = Notice { kind, data, flags, envelope, ..Notice::default() };
            self.tell(seat, notice, Vec::new(), Cause::Arrived(own), parameters, context);
        }
    }

    /// The header of an answer to a message.
    fn back(&self, to: &LiveHeader, kind: Kind, parameters: &LiveParameters) -> LiveHeader {
        let seat = parameters.seating.seat(RankId(to.source)).map_or(0, |(_, seat)| seat);
        LiveHeader {
            kind,
            source: self.ranks[to.seat as usize].rank,
            seat,
            number: 0,
            payload: None,
            data: 0,
            with_data: false,
            token: 0,
        }
    }

    /// The interface answers a message, which has come just now.
    fn answer(
        &mut self,
        to: &LiveHeader,
        kind: Kind,
        cause: MessageId,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let (seat, now) = (to.seat as usize, context.now());
        let parcel = Parcel::control(to.source, self.back(to, kind, parameters), parameters, now);
        self.send(seat, parcel, Sender::Interface(cause), now, parameters, context);
    }

    /// Reports a message with data of ranks: how much, and its tag if it has one.
    fn report(
        &mut self,
        message: &Delivered<LiveHeader>,
        header: &LiveHeader,
        (bytes, tag): (Bytes, Option<i32>),
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let rank = &mut self.ranks[header.seat as usize];
        rank.messages_received += 1;
        rank.received += bytes;
        let delivered = ReplayedMessage {
            delivered: context.now(),
            source: message.from,
            destination: context.endpoint(),
            number: message.number,
            source_rank: RankId(header.source),
            destination_rank: RankId(rank.rank),
            tag,
            bytes,
            posted: message.born,
            hops: message.hops,
        };
        context.output().delivered(0, delivered, parameters.wanted);
    }
}
