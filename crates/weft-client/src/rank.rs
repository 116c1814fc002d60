//! A rank: messaging in the program's own process, and its turns.
//!
//! ```text
//!   weft_send ──► Process ──► Port::post ──► outbox ┐
//!   weft_poll ──► inbox ──► Process ──► completions │   the turn passes when the rank polls and nothing can
//!                   ▲                               ▼   have come, when its outbox is full, and when it waits
//!                   └────────── simulator ──────────┘
//! ```
//! # When a rank waits
//! MPICH's blocking calls poll and yield in turn; its tests never yield. Two such pairs and a third empty
//! poll mean that the rank does nothing until something comes: it is resumed at the poll that would have
//! seen it, so that the time is that of polling all the while. Anything that costs time in between, or
//! a look at the clock, begins the count anew. Looking for a message (`weft_peek`) never waits.
//!
//! # Not modelled
//! Threads: one thread of a process is the rank.

use crate::clock;
use crate::device::{
    HostModel, Notice, NoticeKind, Post, PostKind, RawEnvelope, Shared, State, Turn, token_bits,
};
use crate::operation::{About, Announced, Completion, Kept, Lent, Operation, Source, flag};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;
use weft_msg::{Envelope, EnvelopeKind, Nic, Process, Protocol, SendToken, TaggedReceive, TaggedSend, Work};
use weft_units::{Bytes, RankId, Span};

/// Pairs of an empty poll and a yield after which a rank is taken to wait.
const PAIRS: u32 = 2;
/// Empty polls in a row after which a rank is taken to wait, with fast polling: MPICH empties its queues by some, at its
/// end, without waiting.
const JUMP: u32 = 64;
/// Messages up to this size can be sent without keeping the buffer.
pub const INJECT_LIMIT: usize = 4096;
/// Payloads up to this size are copied when they are posted; others are read when the interface does.
const LARGEST_COPY: usize = 256 << 10;
/// How often a rank without its turn looks whether the simulator lives.
const LOOK: Duration = Duration::from_secs(2);
/// What must be left in a multi-receive buffer.
const MIN_MULTI_RECEIVE: usize = 64;
/// Messages in such a buffer begin at multiples of this.
const ALIGNMENT: usize = 16;

/// This process's side of a job.
pub struct Rank {
    process: Process,
    protocol: Protocol,
    port: Port,
}

/// The rank's clock, device and data: what messaging sees of the machine.
struct Port {
    shared: &'static Shared,
    number: u32,
    /// A second handle for what needs it exclusively: lists of the device.
    lists: Shared,
    host: HostModel,
    poll: Span,
    jumps: bool,
    /// Bytes of the outbox's arena in use.
    used: usize,
    /// CPU time of this thread when the program was last given control, in ns.
    left_at: u64,
    operations: Slab<Operation>,
    kept: Slab<Kept>,
    /// Buffers for announced data, by the receive's number in messaging.
    expected: BTreeMap<u32, Lent>,
    /// Sources of announced messages, by the send's number in messaging.
    sources: BTreeMap<u32, Source>,
    announced: Announced,
    /// The send that is being posted.
    sending: Option<Source>,
    completions: VecDeque<Completion>,
    /// Multi-receive buffers that take no more.
    exhausted: Vec<u32>,
    min_multi_receive: usize,
    pairs: u32,
    polled_empty: bool,
    empty_polls: u32,
    clock_reads: u32,
}

impl Rank {
    /// A rank on its device. `shared` and `lists` are two mappings of it.
    pub fn new(shared: &'static Shared, lists: Shared) -> Option<Rank> {
        let identity = shared.identity();
        let mut protocol: Protocol = postcard::from_bytes(&shared.protocol()).ok()?;
        protocol.eager_limit = protocol.eager_limit.min(Bytes::new(LARGEST_COPY as u64));
        let port = Port {
            shared,
            number: identity.rank,
            lists,
            host: identity.host,
            poll: identity.poll,
            jumps: identity.jumps,
            used: 0,
            left_at: 0,
            operations: Slab::new(),
            kept: Slab::new(),
            expected: BTreeMap::new(),
            sources: BTreeMap::new(),
            announced: Announced::new(),
            sending: None,
            completions: VecDeque::new(),
            exhausted: Vec::new(),
            min_multi_receive: MIN_MULTI_RECEIVE,
            pairs: 0,
            polled_empty: false,
            empty_polls: 0,
            clock_reads: 0,
        };
        Some(Rank { process: Process::new(RankId(identity.rank), identity.ranks), protocol, port })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.port.number
    }

    /// Ranks of the job.
    pub fn count(&self) -> u32 {
        self.port.shared.identity().ranks
    }

    /// Its clock, in ps.
    pub fn clock(&self) -> u64 {
        self.port.shared.clock()
    }

    /// What must be left in a multi-receive buffer.
    pub fn set_min_multi_receive(&mut self, bytes: usize) {
        self.port.min_multi_receive = bytes;
    }

    /// Sends a message; see `weft_send`.
    pub fn send(
        &mut self,
        to: u32,
        tag: u64,
        buffer: Lent,
        data: u64,
        flags: u64,
        context: usize,
    ) -> Result<(), i32> {
        if to >= self.count() || flags & flag::INJECT != 0 && buffer.length > INJECT_LIMIT {
            return Err(libc::EINVAL);
        }
        self.port.enter();
        let data = (flags & flag::DATA != 0).then_some(data);
        let inject = flags & flag::INJECT != 0;
        let reports = flags & flag::COMPLETION != 0 && !inject;
        let completion = reports.then(|| Completion::of(context, flag::SENT | flags & flag::TAGGED));
        let copy = if inject { buffer.copy() } else { Vec::new() };
        let buffer = match inject {
            true => Lent { address: copy.as_ptr() as usize, length: copy.len() },
            false => buffer,
        };
        let about = About { peer: Some(to), tag, bytes: buffer.length as u64 };
        let key = self.port.operations.insert(Operation::Send { completion, copy, about }) as u32;
        let send = TaggedSend {
            to: RankId(to),
            tagged: flags & flag::TAGGED != 0,
            tag,
            bytes: Bytes::new(buffer.length as u64),
            synchronous: flags & flag::MATCH_COMPLETE != 0,
            key: Some(key),
        };
        if to == self.number() {
            let kept = self.port.kept.insert(Kept { bytes: buffer.copy(), data }) as u32;
            self.process.send_to_own(&send, kept, &self.protocol, &mut self.port);
        } else {
            self.port.sending = Some(Source { buffer, data });
            self.process.send_tagged(&send, &self.protocol, &mut self.port);
            self.port.sending = None;
        }
        self.withdraw_exhausted();
        self.port.leave();
        Ok(())
    }

    /// Posts a receive; see `weft_receive`.
    pub fn receive(
        &mut self,
        from: Option<u32>,
        tag: u64,
        ignore: u64,
        buffer: Lent,
        flags: u64,
        context: usize,
    ) {
        self.port.enter();
        let repeats = flags & flag::MULTI_RECEIVE != 0;
        let operation = if repeats {
            let (used, pending, closed, cancelled) = (0, 0, false, false);
            Operation::MultiReceive { context, flags, buffer, used, pending, closed, cancelled }
        } else {
            let about = About { peer: from, tag, bytes: buffer.length as u64 };
            Operation::Receive { context, flags, buffer, outcome: None, about }
        };
        let key = self.port.operations.insert(operation) as u32;
        let bytes = Bytes::new(buffer.length as u64);
        let receive = like(from, tag, ignore, flags, bytes, key);
        let receive = TaggedReceive { repeats, ..receive };
        self.process.receive_tagged(&receive, &self.protocol, &mut self.port);
        self.withdraw_exhausted();
        self.port.leave();
    }

    /// Looks for a message that no receive has taken; see `weft_peek`. What is claimed comes back, for
    /// [`Rank::receive_claimed`].
    pub fn peek(
        &mut self,
        from: Option<u32>,
        tag: u64,
        ignore: u64,
        flags: u64,
        context: usize,
    ) -> Option<(Completion, Option<Envelope>)> {
        self.port.enter();
        self.port.begin_again();
        self.make_progress(false);
        let like = like(from, tag, ignore, flags, Bytes::ZERO, u32::MAX);
        let found = self.process.peek(&like, &self.protocol, &mut self.port);
        let found = found.map(|envelope| {
            let mut completion = self.port.describe(&envelope, context, flag::RECEIVED);
            completion.length = envelope.bytes.get() as usize;
            let takes = flags & (flag::CLAIM | flag::DISCARD) != 0;
            let taken = if takes { self.process.claim(&like) } else { None };
            if flags & flag::DISCARD != 0
                && let Some(envelope) = taken
            {
                self.discard(&envelope);
                return (completion, None);
            }
            (completion, taken)
        });
        self.port.leave();
        found
    }

    /// Receives a message that was claimed, or drops it.
    pub fn receive_claimed(&mut self, envelope: &Envelope, buffer: Lent, flags: u64, context: usize) {
        self.port.enter();
        if flags & flag::DISCARD != 0 {
            let completion = self.port.describe(envelope, context, flag::RECEIVED);
            self.discard(envelope);
            if flags & flag::COMPLETION != 0 {
                self.port.completions.push_back(completion);
            }
        } else {
            let bytes = buffer.length as u64;
            let about = About { peer: Some(envelope.source.0), tag: envelope.tag64(), bytes };
            let operation = Operation::Receive { context, flags, buffer, outcome: None, about };
            let key = self.port.operations.insert(operation) as u32;
            let bytes = Bytes::new(buffer.length as u64);
            let receive = like(None, envelope.tag64(), 0, flags, bytes, key);
            self.process.receive_claimed(envelope, &receive, &self.protocol, &mut self.port);
        }
        self.port.leave();
    }

    /// Receives a message into nothing.
    fn discard(&mut self, envelope: &Envelope) {
        let (buffer, about) = (Lent::default(), About::default());
        let operation = Operation::Receive { context: 0, flags: 0, buffer, outcome: None, about };
        let key = self.port.operations.insert(operation) as u32;
        let receive = like(None, envelope.tag64(), 0, 0, Bytes::ZERO, key);
        self.process.receive_claimed(envelope, &receive, &self.protocol, &mut self.port);
    }

    /// Cancels the receive of that context; says whether it was posted.
    pub fn cancel(&mut self, context: usize) -> bool {
        let of_context = |operation: &Operation| match operation {
            Operation::Receive { context: own, .. } | Operation::MultiReceive { context: own, .. } => {
                *own == context
            }
            _ => false,
        };
        let keys: Vec<usize> = self
            .port
            .operations
            .iter()
            .filter(|(_, operation)| of_context(operation))
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            if self.process.withdraw(key as u32) {
                if let Operation::MultiReceive { pending: 1.., closed, cancelled, .. } =
                    &mut self.port.operations[key]
                {
                    // It is given back when the messages that it has taken are there.
                    (*closed, *cancelled) = (true, true);
                    return true;
                }
                let flags = match self.port.operations.remove(key) {
                    Operation::Receive { flags, .. } => flags & flag::TAGGED,
                    _ => flag::BUFFER_RELEASED,
                };
                let mut completion = Completion::of(context, flag::RECEIVED | flags);
                completion.error = libc::ECANCELED;
                self.port.completions.push_back(completion);
                return true;
            }
        }
        false
    }

    /// Makes progress and takes completions; see `weft_poll`.
    pub fn poll(&mut self, mut take: impl FnMut(Completion) -> bool) -> usize {
        self.port.enter();
        if clock::reads() != self.port.clock_reads {
            self.port.clock_reads = clock::reads();
            self.port.begin_again();
        }
        if self.port.completions.is_empty() {
            self.make_progress(true);
        }
        let mut taken = 0;
        while let Some(completion) = self.port.completions.front() {
            if !take(*completion) {
                break;
            }
            self.port.completions.pop_front();
            taken += 1;
        }
        if taken > 0 {
            self.port.begin_again();
        }
        self.port.leave();
        taken
    }

    /// The program has nothing to do; see `weft_yield`.
    pub fn yields(&mut self) {
        if std::mem::take(&mut self.port.polled_empty) {
            self.port.pairs += 1;
        }
    }

    /// Lets peers reach memory.
    pub fn register(&mut self, memory: Lent, key: u64, may_read: bool, may_write: bool) {
        let flags = if may_read { Post::MAY_READ } else { 0 } | if may_write { Post::MAY_WRITE } else { 0 };
        let post = Post {
            flags,
            local: memory.address as u64,
            length: memory.length as u64,
            key,
            ..Post::default()
        };
        self.port.enter();
        self.port.post_raw(PostKind::Register, post, &[]);
        self.port.leave();
    }

    /// Lets them no more.
    pub fn unregister(&mut self, key: u64) {
        self.port.enter();
        self.port.post_raw(PostKind::Unregister, Post { key, ..Post::default() }, &[]);
        self.port.leave();
    }

    /// RDMA write; see `weft_write`.
    pub fn write(&mut self, to: RemotePlace, local: Lent, data: u64, flags: u64, context: usize) {
        let completion = Completion::of(context, flag::WRITTEN);
        let flags_of_post = if flags & flag::DATA != 0 { Post::WITH_DATA } else { 0 };
        let post = Post { flags: flags_of_post, data, ..to.post() };
        self.remote(PostKind::Write, post, local, flags, completion);
    }

    /// RDMA read; see `weft_read`.
    pub fn read(&mut self, from: RemotePlace, local: Lent, flags: u64, context: usize) {
        let completion = Completion::of(context, flag::READ);
        self.remote(PostKind::Read, from.post(), local, flags, completion);
    }

    fn remote(&mut self, kind: PostKind, post: Post, local: Lent, flags: u64, completion: Completion) {
        self.port.enter();
        self.port.spend(Work::SendCall, self.protocol.send_call);
        self.port.spend(Work::DataSend, self.protocol.data_send);
        let reports = flags & flag::COMPLETION != 0 && flags & flag::INJECT == 0;
        let about = About { peer: Some(post.to), tag: 0, bytes: local.length as u64 };
        let operation = Operation::Remote { completion, reports, about };
        let token = self.port.operations.insert(operation) as u32 + 1;
        let copied = kind == PostKind::Write && (flags & flag::INJECT != 0 || local.length <= INJECT_LIMIT);
        let bytes = if copied { local.copy() } else { Vec::new() };
        let (address, length) = (if copied { 0 } else { local.address as u64 }, local.length as u64);
        let post = Post { token, local: address, length, payload: length, ..post };
        self.port.post_raw(kind, post, &bytes);
        self.port.leave();
    }

    /// Forgets what is under way, so that no buffer of the program is touched any more: it may be opened again.
    /// Injected messages still arrive.
    pub fn close(&mut self) {
        let injected = |(_, operation): (usize, &Operation)| match operation {
            Operation::Send { copy, .. } | Operation::Forgotten { copy, .. } => !copy.is_empty(),
            _ => false,
        };
        while self.port.operations.iter().any(injected) {
            self.port.enter();
            if !self.take_notices() {
                self.port.wait();
            }
        }
        let keys: Vec<usize> = self.port.operations.iter().map(|(key, _)| key).collect();
        for key in keys {
            let withdrawn = self.process.withdraw(key as u32);
            let operation = &mut self.port.operations[key];
            let left = match operation {
                Operation::Receive { .. } => u32::from(!withdrawn),
                Operation::MultiReceive { pending, .. } => *pending,
                Operation::Forgotten { left, .. } => *left,
                Operation::Send { .. } | Operation::Remote { .. } => 1,
            };
            *operation = Operation::Forgotten { copy: Vec::new(), left };
            if left == 0 {
                self.port.operations.remove(key);
            }
        }
        self.port.expected.values_mut().for_each(|buffer| *buffer = Lent::default());
        self.port.completions.clear();
        self.port.exhausted.clear();
        if self.port.joined() {
            self.port.post_raw(PostKind::Forget, Post::default(), &[]);
        }
    }

    /// Takes what has come; polling costs time and, where nothing can have come yet, the turn.
    fn make_progress(&mut self, polls: bool) {
        if self.take_notices() {
            return;
        }
        let port = &mut self.port;
        let clock = port.shared.clock().saturating_add(port.poll.as_ps());
        port.shared.set_clock(clock);
        port.empty_polls += u32::from(polls);
        let waits = polls && (port.pairs >= PAIRS || port.jumps && port.empty_polls >= JUMP);
        port.polled_empty = polls;
        if waits {
            port.wait();
        } else if clock > port.shared.quiet_until() {
            port.hand_over(State::Ready);
        } else {
            return;
        }
        self.take_notices();
    }

    /// Takes all notices; says whether there were any.
    fn take_notices(&mut self) -> bool {
        let notices = self.port.lists.take_notices();
        let any = !notices.is_empty();
        for (notice, bytes) in notices {
            self.port.catch_up_with(notice.at);
            self.notice(&notice, bytes);
            // Before the next message can match a buffer that has no room for it.
            self.withdraw_exhausted();
        }
        if any {
            self.port.begin_again();
        }
        any
    }

    fn notice(&mut self, notice: &Notice, bytes: Vec<u8>) {
        let (process, protocol, port) = (&mut self.process, &self.protocol, &mut self.port);
        let data = (notice.flags & Post::WITH_DATA != 0).then_some(notice.data);
        match notice.kind {
            kind if kind == NoticeKind::Message as u32 => {
                let Some(mut envelope) = notice.envelope.envelope() else { return };
                match envelope.kind {
                    EnvelopeKind::Eager => envelope.send = port.kept.insert(Kept { bytes, data }) as u32,
                    EnvelopeKind::RequestToSend => {
                        if let Some(data) = data {
                            port.announced.insert((envelope.source.0, envelope.send), data);
                        }
                    }
                    _ => {}
                }
                process.delivered(envelope, protocol, port);
            }
            kind if kind == NoticeKind::Sent as u32 => {
                process.sent(SendToken::from_bits(NonZeroU32::new(notice.token)), protocol, port);
            }
            kind if kind == NoticeKind::Done as u32 => {
                let key = notice.token.wrapping_sub(1) as usize;
                if let Some(Operation::Remote { mut completion, reports, .. }) =
                    port.operations.try_remove(key)
                    && (reports || notice.error != 0)
                {
                    completion.error = notice.error;
                    port.completions.push_back(completion);
                }
            }
            // Without data the rank only looks at its memory again.
            _ => {
                if let (Some(data), Some(envelope)) = (data, notice.envelope.envelope()) {
                    let mut completion = Completion::of(0, flag::REMOTE_WRITE | flag::DATA);
                    (completion.data, completion.source) = (data, envelope.source.0);
                    completion.length = envelope.bytes.get() as usize;
                    port.completions.push_back(completion);
                }
            }
        }
    }

    /// Withdraws multi-receive buffers that have no room for another message.
    fn withdraw_exhausted(&mut self) {
        while let Some(key) = self.port.exhausted.pop() {
            self.process.withdraw(key);
            self.port.release(key);
        }
    }
}

/// Memory of a peer.
#[derive(Clone, Copy, Debug)]
pub struct RemotePlace {
    /// The peer.
    pub rank: u32,
    /// The address there.
    pub address: u64,
    /// Under which key it is registered.
    pub key: u64,
}

impl RemotePlace {
    fn post(self) -> Post {
        Post { to: self.rank, remote: self.address, key: self.key, ..Post::default() }
    }
}

/// A receive like the caller's.
fn like(from: Option<u32>, tag: u64, ignore: u64, flags: u64, bytes: Bytes, key: u32) -> TaggedReceive {
    let tagged = flags & flag::TAGGED != 0;
    // Without tags there is nothing to compare.
    let ignore = if tagged { ignore } else { u64::MAX };
    TaggedReceive { from: from.map(RankId), tagged, tag, ignore, bytes, repeats: false, key }
}

impl Port {
    /// Whether it is in virtual time.
    fn joined(&self) -> bool {
        self.shared.state() == Some(State::Run)
    }

    /// The program has called: what it has computed is charged, and a rank outside virtual time joins.
    fn enter(&mut self) {
        if !self.joined() {
            self.hand_over(State::Ready);
        } else {
            let span = match self.host {
                HostModel::None => 0,
                HostModel::Fixed(span) => span.as_ps(),
                HostModel::Cpu(millionths) => {
                    let ns = clock::thread_cpu_ns().saturating_sub(self.left_at);
                    (u128::from(ns) * u128::from(millionths) / 1000) as u64
                }
            };
            if span > 0 {
                self.shared.set_clock(self.shared.clock().saturating_add(span));
            }
        }
    }

    /// The program goes on.
    fn leave(&mut self) {
        if matches!(self.host, HostModel::Cpu(_)) {
            self.left_at = clock::thread_cpu_ns();
        }
    }

    /// Whatever looked like waiting is not.
    fn begin_again(&mut self) {
        (self.pairs, self.polled_empty, self.empty_polls) = (0, false, 0);
    }

    /// Gives the turn away and sleeps until it is back.
    fn hand_over(&mut self, state: State) {
        self.shared.set_state(state);
        self.shared.give_turn(Turn::Simulator);
        while self.shared.turn() == Turn::Simulator {
            self.shared.sleep_while(Turn::Simulator, Some(LOOK));
            if !self.shared.has_simulator() {
                // Killed: nothing of the job is to stay behind.
                std::process::exit(137);
            }
        }
        // The simulator has taken all posts.
        self.used = 0;
    }

    /// Gives the turn away until there is a notice.
    fn wait(&mut self) {
        self.begin_again();
        self.lists.set_awaited(self.operations.iter().filter_map(|(_, operation)| operation.awaited()));
        self.hand_over(State::Wait);
    }

    /// The poll at which a rank that polls sees what came at `ps`.
    fn catch_up_with(&mut self, ps: u64) {
        let clock = self.shared.clock();
        if ps > clock {
            let behind = ps - clock;
            let polls = behind.div_ceil(self.poll.as_ps().max(1));
            let later =
                if self.poll == Span::ZERO { behind } else { polls.saturating_mul(self.poll.as_ps()) };
            self.shared.set_clock(clock.saturating_add(later));
        }
    }

    fn post_raw(&mut self, kind: PostKind, post: Post, bytes: &[u8]) {
        let mut post = Post { kind: kind as u32, at: self.shared.clock(), ..post };
        while let Err(refused) = self.lists.post(post, bytes, &mut self.used) {
            post = refused;
            self.hand_over(State::Ready);
        }
        // What it causes can come at any time from now on.
        self.shared.set_quiet_until(self.shared.quiet_until().min(self.shared.clock()));
    }

    /// A completion that says what an envelope does.
    fn describe(&self, envelope: &Envelope, context: usize, flags: u64) -> Completion {
        let data = match envelope.kind {
            EnvelopeKind::Eager => self.kept.get(envelope.send as usize).and_then(|kept| kept.data),
            EnvelopeKind::RequestToSend if envelope.source.0 == self.number => {
                self.kept.get(envelope.receive as usize).and_then(|kept| kept.data)
            }
            _ => self.announced.get(&(envelope.source.0, envelope.send)).copied(),
        };
        let tagged = if envelope.is_tagged() { flag::TAGGED } else { 0 };
        let with_data = if data.is_some() { flag::DATA } else { 0 };
        Completion {
            data: data.unwrap_or(0),
            tag: envelope.tag64(),
            source: envelope.source.0,
            ..Completion::of(context, flags | tagged | with_data)
        }
    }

    /// Room for the message of `envelope` in the buffer of the receive `key`.
    fn place(&mut self, key: u32, envelope: &Envelope) -> Lent {
        let bytes = envelope.bytes.get() as usize;
        match self.operations.get_mut(key as usize) {
            Some(Operation::Receive { buffer, .. }) => *buffer,
            Some(Operation::MultiReceive { buffer, used, pending, closed, .. }) => {
                let place =
                    Lent { address: buffer.address + *used, length: (buffer.length - *used).min(bytes) };
                // The next message begins where any type may lie.
                *used = (*used + place.length).next_multiple_of(ALIGNMENT).min(buffer.length);
                *pending += 1;
                if buffer.length - *used < self.min_multi_receive.max(1) && !*closed {
                    *closed = true;
                    self.exhausted.push(key);
                }
                place
            }
            _ => Lent::default(),
        }
    }

    /// Gives a multi-receive buffer back when its last message is there.
    fn release(&mut self, key: u32) {
        if let Some(Operation::MultiReceive { context, pending: 0, closed: true, cancelled, .. }) =
            self.operations.get(key as usize)
        {
            let mut completion = Completion::of(*context, flag::RECEIVED | flag::BUFFER_RELEASED);
            completion.error = if *cancelled { libc::ECANCELED } else { 0 };
            self.operations.remove(key as usize);
            self.completions.push_back(completion);
        }
    }
}

impl Nic for Port {
    fn spend(&mut self, _: Work, span: Span) {
        if span > Span::ZERO {
            self.shared.set_clock(self.shared.clock().saturating_add(span.as_ps()));
        }
    }

    fn post(&mut self, to: RankId, envelope: Envelope, payload: Bytes, token: SendToken) {
        let mut post = Post {
            to: to.0,
            envelope: RawEnvelope::from(&envelope),
            payload: payload.get(),
            token: token_bits(token),
            ..Post::default()
        };
        let mut bytes = Vec::new();
        match envelope.kind {
            EnvelopeKind::Eager => {
                if let Some(Source { buffer, data }) = self.sending {
                    bytes = buffer.copy();
                    (post.data, post.flags) = with_data(data);
                }
            }
            EnvelopeKind::RequestToSend => {
                if let Some(source) = self.sending {
                    self.sources.insert(envelope.send, source);
                    (post.data, post.flags) = with_data(source.data);
                }
            }
            EnvelopeKind::ClearToSend => {
                let place = self.expected.get(&envelope.receive).copied().unwrap_or_default();
                (post.local, post.length) = (place.address as u64, place.length as u64);
            }
            EnvelopeKind::Data => {
                if let Some(Source { buffer, .. }) = self.sources.remove(&envelope.send) {
                    (post.local, post.length) = (buffer.address as u64, buffer.length as u64);
                }
            }
            // The program above has one-sided operations of its own, and the rendezvous writes.
            _ => {}
        }
        self.post_raw(PostKind::Message, post, &bytes);
    }

    fn announced(&mut self, key: u32, receive: u32, envelope: &Envelope) {
        let place = self.place(key, envelope);
        self.expected.insert(receive, place);
    }

    fn received(&mut self, key: u32, envelope: &Envelope) {
        let mut completion = self.describe(envelope, 0, flag::RECEIVED);
        let length = envelope.bytes.get() as usize;
        let own = envelope.source.0 == self.number;
        let place = if own || envelope.kind == EnvelopeKind::Eager {
            let place = self.place(key, envelope);
            let kept = if envelope.kind == EnvelopeKind::Eager { envelope.send } else { envelope.receive };
            if let Some(kept) = self.kept.try_remove(kept as usize) {
                place.fill(&kept.bytes);
            }
            place
        } else {
            self.announced.remove(&(envelope.source.0, envelope.send));
            self.expected.remove(&envelope.receive).unwrap_or_default()
        };
        completion.length = length.min(place.length);
        completion.overflow = length - completion.length;
        completion.error = if completion.overflow > 0 { libc::EMSGSIZE } else { 0 };
        match self.operations.get_mut(key as usize) {
            Some(Operation::Receive { context, outcome, .. }) => {
                completion.context = *context;
                *outcome = Some(completion);
            }
            Some(Operation::MultiReceive { context, flags, pending, .. }) => {
                *pending -= 1;
                completion.context = *context;
                completion.buffer = place.address;
                completion.flags |= flag::MULTI_RECEIVE;
                if *flags & flag::COMPLETION != 0 || completion.error != 0 {
                    self.completions.push_back(completion);
                }
            }
            _ => {}
        }
    }

    fn wants_more(&mut self, key: u32) -> bool {
        matches!(self.operations.get(key as usize), Some(Operation::MultiReceive { closed: false, .. }))
    }

    fn completed(&mut self, key: u32) {
        match self.operations.get(key as usize) {
            Some(Operation::MultiReceive { .. }) => return self.release(key),
            Some(Operation::Forgotten { left: 2.., .. }) => {
                if let Operation::Forgotten { left, .. } = &mut self.operations[key as usize] {
                    *left -= 1;
                }
                return;
            }
            Some(_) => {}
            None => return,
        }
        match self.operations.remove(key as usize) {
            Operation::Send { completion, .. } => self.completions.extend(completion),
            Operation::Receive { flags, outcome, .. } => {
                let reports = |c: &Completion| flags & flag::COMPLETION != 0 || c.error != 0;
                self.completions.extend(outcome.filter(reports));
            }
            Operation::MultiReceive { .. } | Operation::Remote { .. } | Operation::Forgotten { .. } => {}
        }
    }
}

fn with_data(data: Option<u64>) -> (u64, u32) {
    (data.unwrap_or(0), if data.is_some() { Post::WITH_DATA } else { 0 })
}
