//! Who answers in place of a rank that waits, so that it need not take a turn for what ends nothing.
//!
//! ```text
//!   rank        waits, says what it has open ············· goes on, and is handed all of it ──►
//!   simulator   ▲   announcement ─► clears it   clearance ─► data        what ends something ┘
//! ```
//! Messaging is the rank's own ([`Process`]), and so are its costs and the polls at which it sees what has come: what a rank does
//! inside a [blocking call](crate::blocking) with something that ends nothing is known, since its program does not learn of it. Later
//! the rank takes the same notices, marked as answered: its state becomes what it would have been, and nothing is posted or paid
//! for again.

use crate::device::{Call, Entry, Notice, NoticeKind, OpenReceive, OpenSend, Post, PostKind, RawEnvelope};
use crate::device::{Reason, token_bits};
use weft_msg::{Envelope, EnvelopeKind, Nic, Process, Protocol, SendToken, Work};
use weft_units::{Bytes, RankId, Span};

/// Who answers in place of a rank.
#[derive(Debug)]
pub struct StandIn {
    process: Process,
    receives: Vec<OpenReceive>,
    sends: Vec<OpenSend>,
    /// The MPI call that the rank waits in.
    within: u32,
    poll: Span,
}

/// What a rank would have done.
#[derive(Debug)]
pub struct Answer {
    /// Its clock afterwards, in ps.
    pub clock: u64,
    /// What it would have posted.
    pub posts: Vec<Post>,
    /// What its clock has moved for.
    pub log: Vec<Entry>,
}

impl StandIn {
    /// Who answers in place of this rank of so many, which waits in this MPI call and polls in this time. What it says that it has
    /// open need not be true: it does no harm but to the rank.
    pub fn new(
        (rank, ranks): (u32, u32),
        (receives, sends): (Vec<OpenReceive>, Vec<OpenSend>),
        within: u32,
        poll: Span,
    ) -> StandIn {
        let process = Process::standing_in(
            (RankId(rank), ranks),
            receives.iter().map(OpenReceive::receive),
            sends.iter().map(OpenSend::send),
        );
        StandIn { process, receives, sends, within, poll }
    }

    /// Whether there can be an answer that ends nothing: the data of a receive and an acknowledgement always end something.
    pub fn may_answer(notice: &Notice) -> bool {
        let kind = notice.envelope.envelope().map(|envelope| envelope.kind);
        notice.kind == NoticeKind::Message as u32
            && matches!(
                kind,
                Some(EnvelopeKind::Eager | EnvelopeKind::RequestToSend | EnvelopeKind::ClearToSend)
            )
    }

    /// What the rank would do at `clock`, in ps, with a notice and so many bytes beside it. `None`: it must see to it itself; then
    /// nobody may answer for it any more.
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
        if envelope.kind == EnvelopeKind::ClearToSend {
            // Its own numbers are places in the list.
            envelope.send = self.sends.iter().position(|send| send.number == envelope.send)? as u32;
        }
        self.process.check_delivered(&envelope, Bytes::new(bytes as u64)).ok()?;
        let mut desk = Desk {
            receives: &self.receives,
            sends: &self.sends,
            within: self.within,
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
        self.process.delivered(envelope, protocol, &mut desk);
        let Desk { clock, posts, log, is_over, .. } = desk;
        (!is_over).then_some(Answer { clock, posts, log })
    }

    /// The poll in vain by which a rank goes on to wait, at `clock`, in ps: its clock then, and the entry of its log.
    pub fn polls(&self, clock: u64) -> Entry {
        entry(clock.saturating_add(self.poll.as_ps()), Reason::Works(Work::Poll), false, self.within)
    }
}

/// Until when a rank that waits at `clock` can have done nothing with a notice, all in ps: it sees it at once, and is then busy
/// with it.
pub fn idle_until(clock: u64, notice: &Notice, protocol: &Protocol) -> u64 {
    let kind = notice.envelope.envelope().filter(|_| notice.kind == NoticeKind::Message as u32);
    let busy = kind.map_or(Span::ZERO, |envelope| Process::least_work(envelope.kind, protocol));
    clock.max(notice.at).saturating_add(busy.as_ps())
}

/// As the rank's own log says it.
fn entry(until: u64, reason: Reason, first: bool, within: u32) -> Entry {
    Entry { until, reason, call: Call::Poll, first, within, anew: false }
}

/// What messaging sees of the machine meanwhile.
struct Desk<'s> {
    receives: &'s [OpenReceive],
    sends: &'s [OpenSend],
    within: u32,
    clock: u64,
    begun: u64,
    /// The buffer of the announced message that has met a receive.
    buffer: Option<(u64, u64)>,
    posts: Vec<Post>,
    log: Vec<Entry>,
    /// Whether something is received or complete, or cannot be known here.
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
        // What a rank does for a notice begins behind its taking it.
        let first = self.log.last().is_some_and(|last| last.reason == Reason::Takes);
        self.log.push(entry(self.clock, reason, first, self.within));
    }
}

impl Nic for Desk<'_> {
    fn spend(&mut self, work: Work, span: Span) {
        self.pass(span.as_ps(), Reason::Works(work));
    }

    // The process's own numbers are places in the lists.
    fn post(&mut self, to: RankId, mut envelope: Envelope, _: Bytes, mut token: SendToken) {
        let memory = match envelope.kind {
            EnvelopeKind::ClearToSend => {
                let announced = self.receives.get(envelope.receive as usize);
                self.buffer.zip(announced).map(|(buffer, announced)| {
                    envelope.receive = announced.number;
                    buffer
                })
            }
            EnvelopeKind::Data => self.sends.get(envelope.send as usize).map(|open| {
                let send = open.send();
                envelope.send = send.number;
                if token.is_awaited() {
                    token = send.token();
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
    }

    fn announced(&mut self, key: u32, _: u32, _: &Envelope) {
        // One that repeats takes what fits, piece after piece.
        let open = self.receives.iter().find(|open| open.key == key && !open.receive().repeats);
        self.buffer = open.map(|open| (open.address, open.length));
    }

    fn received(&mut self, _: u32, _: &Envelope) {
        self.is_over = true;
    }

    fn completed(&mut self, _: u32) {
        self.is_over = true;
    }
}
