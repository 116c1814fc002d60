//! The stand-in of a rank that waits: it answers in the rank's place, so that the rank takes no turn for a
//! notice that ends nothing.
//!
//! ```text
//!   rank        waits, says what it has open ············· goes on, and is handed all of it ──►
//!   simulator   ▲   announcement ─► clears it   clearance ─► data        what ends something ┘
//! ```
//! Messaging is the rank's own ([`Process`]), and so are its costs and the polls at which it sees a notice.
//! Inside a blocking call of MPI the program does not see a notice that ends nothing, so the rank's reaction
//! to it is known. Later the rank takes the same notices, marked as answered: it reaches the same state, and
//! posts and pays nothing again.

use weft_client::device::{
    Call, Identity, LogEntry, Notice, NoticeKind, OpenReceive, OpenSend, Post, PostKind, RawEnvelope, Reason,
    token_bits,
};
use weft_msg::{
    Body, Envelope, FurtherParts, Posting, Process, Protocol, ReceiveEntry, SendEntry, Transport, Work,
};
use weft_units::{Bytes, RankId, Span};

/// Answers in place of a rank.
#[derive(Debug)]
pub struct StandIn {
    process: Process,
    receives: Vec<OpenReceive>,
    sends: Vec<OpenSend>,
    /// The MPI call that the rank waits in.
    within: u32,
    poll: Span,
    rails: u32,
}

/// A rank's reaction to a notice, computed in its place.
#[derive(Debug)]
pub struct Answer {
    /// The rank's clock afterwards, in ps.
    pub clock: u64,
    /// Posts that the rank would have made.
    pub posts: Vec<Post>,
    /// Entries of the rank's log: the reasons for which its clock moved.
    pub log: Vec<LogEntry>,
}

impl StandIn {
    /// The stand-in of a rank that waits inside the MPI call of number `within` with these operations open.
    /// If the rank has lied about its operations, only the rank suffers.
    pub fn new(
        identity: &Identity,
        (receives, sends): (Vec<OpenReceive>, Vec<OpenSend>),
        within: u32,
    ) -> StandIn {
        let Identity { rank, ranks, poll, rails, .. } = *identity;
        let process = Process::standing_in(
            (RankId(rank), ranks),
            receives.iter().map(OpenReceive::receive),
            sends.iter().map(OpenSend::send),
        );
        StandIn { process, receives, sends, within, poll, rails }
    }

    /// Whether a notice of this kind may end nothing: a receive's data and an acknowledgement always end an
    /// operation.
    pub fn may_answer(notice: &Notice) -> bool {
        let body = notice.envelope.envelope().map(|envelope| envelope.body);
        notice.kind == NoticeKind::Message as u32
            && matches!(
                body,
                Some(Body::Eager { .. } | Body::RequestToSend { .. } | Body::ClearToSend { .. })
            )
    }

    /// The rank's reaction at `clock`, in ps, to a notice with `bytes` bytes. `None`: the rank must react
    /// itself, and no stand-in may answer for it from then on.
    pub fn answer(
        &mut self,
        clock: u64,
        notice: &Notice,
        bytes: usize,
        protocol: &Protocol,
    ) -> Option<Answer> {
        if !StandIn::may_answer(notice) {
            return None;
        }
        let mut envelope = notice.envelope.envelope()?;
        if let Body::ClearToSend { send: cleared, .. } = &mut envelope.body {
            // Its own entries are places in the list.
            let number = cleared.index();
            *cleared = SendEntry::new(self.sends.iter().position(|send| send.number == number)? as u32);
        }
        self.process.check_delivered(&envelope, Bytes::new(bytes as u64)).ok()?;
        let mut desk = Desk {
            receives: &self.receives,
            sends: &self.sends,
            within: self.within,
            parts: protocol.further_parts(self.rails),
            clock,
            begun: clock,
            buffer: None,
            posts: Vec::new(),
            log: Vec::new(),
            is_over: false,
        };
        desk.pass(notice.at.saturating_sub(clock), Reason::Works(Work::Poll));
        desk.tell(Reason::Takes);
        desk.begun = desk.clock;
        self.process.on(protocol, &mut desk).delivered(envelope);
        let Desk { clock, posts, log, is_over, .. } = desk;
        (!is_over).then_some(Answer { clock, posts, log })
    }

    /// The entry in the rank's log of the empty poll at `clock`, in ps, with which it goes on to wait.
    pub fn polls(&self, clock: u64) -> LogEntry {
        entry(clock.saturating_add(self.poll.as_ps()), Reason::Works(Work::Poll), false, self.within)
    }
}

/// The earliest clock at which a rank that waits at `clock` can act on a notice, in ps: it sees the notice at
/// once, and handling it takes time.
pub fn idle_until(clock: u64, notice: &Notice, protocol: &Protocol) -> u64 {
    let kind = notice.envelope.envelope().filter(|_| notice.kind == NoticeKind::Message as u32);
    let busy = kind.map_or(Span::ZERO, |envelope| Process::least_work(envelope.kind(), protocol));
    clock.max(notice.at).saturating_add(busy.as_ps())
}

/// An entry as the rank's own log would hold it.
fn entry(until: u64, reason: Reason, first: bool, within: u32) -> LogEntry {
    LogEntry { until, reason, call: Call::Poll, first, within, anew: false }
}

/// The machine as messaging sees it while it answers.
struct Desk<'s> {
    receives: &'s [OpenReceive],
    sends: &'s [OpenSend],
    within: u32,
    parts: FurtherParts,
    clock: u64,
    begun: u64,
    /// The buffer of the announced message that has met a receive.
    buffer: Option<(u64, u64)>,
    posts: Vec<Post>,
    log: Vec<LogEntry>,
    /// Whether the answer ends an operation, or cannot be known here.
    is_over: bool,
}

impl Desk<'_> {
    fn pass(&mut self, ps: u64, reason: Reason) {
        if ps > 0 {
            self.clock = self.clock.saturating_add(ps);
            self.tell(reason);
        }
    }

    fn tell(&mut self, reason: Reason) {
        // The work for a notice begins after the rank has taken the notice.
        let first = self.log.last().is_some_and(|last| last.reason == Reason::Takes);
        self.log.push(entry(self.clock, reason, first, self.within));
    }
}

impl Transport for Desk<'_> {
    fn spend(&mut self, work: Work, span: Span) {
        self.pass(span.as_ps(), Reason::Works(work));
    }

    // The process's own entries are places in the lists.
    fn post(&mut self, Posting { to, mut envelope, payload, mut token, .. }: Posting) {
        let memory = match &mut envelope.body {
            Body::ClearToSend { receive, .. } => {
                let announced = self.receives.get(receive.0 as usize);
                self.buffer.zip(announced).map(|(buffer, announced)| {
                    *receive = ReceiveEntry(announced.number);
                    buffer
                })
            }
            Body::Data { send, .. } => self.sends.get(send.index() as usize).map(|open| {
                let announced = open.send();
                *send = announced.send;
                if token.is_awaited() {
                    token = announced.token();
                }
                (open.address, open.length)
            }),
            _ => None,
        };
        let Some((local, length)) = memory else {
            self.is_over = true;
            return;
        };
        self.posts.push(Post {
            kind: PostKind::Message as u32,
            to: to.0,
            at: self.clock,
            begun: self.begun,
            envelope: RawEnvelope::from(&envelope),
            token: token_bits(token),
            local,
            length,
            logged: self.log.len() as u32,
            ..Post::default()
        });
        self.spend(Work::DataSend, self.parts.time(payload));
    }

    fn announced(&mut self, key: u32, _: ReceiveEntry, _: &Envelope) {
        // One that repeats takes what fits, piece after piece.
        let open = self.receives.iter().find(|open| open.key == key && !open.receive().repeats);
        self.buffer = open.map(|open| (open.address, open.length));
    }

    fn received(&mut self, _: u32, _: Option<ReceiveEntry>, _: &Envelope) {
        self.is_over = true;
    }

    fn completed(&mut self, _: u32) {
        self.is_over = true;
    }
}
