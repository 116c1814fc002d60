//! A rank: messaging in the program's own process, and its turns.
//!
//! ```text
//!   weft_send ──► Process ──► Port::post ──► outbox ┐
//!   weft_poll ──► inbox ──► Process ──► completions │   the turn passes when the rank polls and nothing can
//!                   ▲                               ▼   have come, when its outbox is full, and when it waits
//!                   └────────── simulator ──────────┘
//! ```
//! # When a rank waits
//! MPICH's blocking calls poll and yield in turn; its tests never yield. An empty poll, a yield and another
//! empty poll mean that the rank does nothing until something comes: it is resumed when that comes, which ends the poll under
//! way. Where a machine file says what taking a message costs, that was measured with ranks that polled: the part of a poll that
//! passes on average before one sees the message is in it. Anything that costs time in between, or
//! a look at the clock, begins the count anew. Looking for a message (`weft_peek`) never waits. Inside a
//! [blocking call](crate::blocking) a rank that waits has no turn for what ends nothing: see [`crate::stand_in`].
//!
//! # Not modelled
//! Threads: one thread of a process is the rank.

use crate::blocking::{self, Kind};
use crate::clock;
use crate::device::{Call, Post, PostKind, Shared, State};
use crate::interface::Interfaces;
use crate::operation::{About, Completion, Kept, Lent, Operation, Source, flag};
use crate::port::Port;
use crate::within;
use std::sync::LazyLock;
use weft_msg::{Envelope, Nic, Process, Protocol, TaggedReceive, TaggedSend, Work};
use weft_units::{Bytes, RankId};

/// Pairs of an empty poll and a yield after which a rank is taken to wait at its next empty poll. Each costs a turn.
const PAIRS: u32 = 1;
/// Empty polls in a row after which a rank is taken to wait, with fast polling: MPICH empties its queues by some, at its
/// end, without waiting.
const JUMP: u32 = 64;
/// Empty polls in a row after which it is where it synchronizes a window: MPICH 5 makes up to three there without waiting (one for
/// its counters, one in each loop that tests behind its body).
const SYNCHRONIZES: u32 = 8;
/// How many empty polls in a row of a call follow on no completion where MPICH 5 looks through so many requests: it polls before each eighth of
/// them, if `MPIR_CVAR_REQUEST_POLL_FREQ` does not say otherwise, and behind the last. What it has completed when it was just past that request it
/// sees in its next look, which `MPI_Waitsome` takes to the end (`MPIR_Waitany_state`, `MPIR_Waitsome_state`).
fn more_than_two_looks(requests: u32) -> u32 {
    static BETWEEN: LazyLock<u32> = LazyLock::new(|| {
        let set = std::env::var("MPIR_CVAR_REQUEST_POLL_FREQ").ok();
        set.and_then(|set| set.parse().ok()).filter(|requests| *requests > 0).unwrap_or(8)
    });
    2 * (requests / *BETWEEN) + 2
}

/// Messages up to this size can be sent without keeping the buffer.
pub const INJECT_LIMIT: usize = 4096;
/// Payloads up to this size are copied when they are posted; others are read when the interface does.
const LARGEST_COPY: usize = 256 << 10;

/// This process's side of a job.
pub struct Rank {
    pub(crate) process: Process,
    pub(crate) protocol: Protocol,
    pub(crate) port: Port,
    pub(crate) interfaces: Interfaces,
}

impl Rank {
    /// A rank on its device. `shared` and `lists` are two mappings of it.
    pub fn new(shared: &'static Shared, lists: Shared) -> Option<Rank> {
        let identity = shared.identity();
        let mut protocol: Protocol = postcard::from_bytes(&shared.protocol()).ok()?;
        protocol.eager_limit = protocol.eager_limit.min(Bytes::new(LARGEST_COPY as u64));
        let port = Port::new(shared, lists);
        let process = Process::new(RankId(identity.rank), identity.ranks);
        Some(Rank { process, protocol, port, interfaces: Interfaces::default() })
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

    /// What the program has computed so far moves the clock now, where computing is measured.
    pub fn settle(&mut self) {
        self.make_up();
        self.port.settle();
    }

    /// The program has slept: it goes on when virtual time, in which others run, has reached its clock.
    pub fn slept(&mut self) {
        self.port.gives_way();
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
        self.enter(Call::Send);
        let data = (flags & flag::DATA != 0).then_some(data);
        let inject = flags & flag::INJECT != 0;
        let reports = flags & flag::COMPLETION != 0 && !inject;
        let completion = reports.then(|| Completion::of(context, flag::SENT | flags & flag::TAGGED));
        let copy = if inject { buffer.copy() } else { Vec::new() };
        let buffer = match inject {
            true => Lent { address: copy.as_ptr() as usize, length: copy.len() },
            false => buffer,
        };
        let about = About { peer: Some(to), tag, ignored: 0, bytes: buffer.length as u64 };
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
        self.enter(Call::Receive);
        let repeats = flags & flag::MULTI_RECEIVE != 0;
        let operation = if repeats {
            let (used, pending, closed, cancelled) = (0, 0, false, false);
            Operation::MultiReceive { context, flags, buffer, used, pending, closed, cancelled }
        } else {
            let about = About { peer: from, tag, ignored: ignore, bytes: buffer.length as u64 };
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
        self.enter(Call::Poll);
        let like = like(from, tag, ignore, flags, Bytes::ZERO, u32::MAX);
        let is_there = self.process.has(&like);
        let about = About { peer: from, tag, ignored: like.ignore, bytes: 0 };
        self.port.looked_for = (!is_there).then_some(about);
        // A rank that looks in vain, over and over, waits as one that polls does.
        self.make_progress(!is_there);
        if !is_there && blocking::is_inside(Kind::Probing) {
            self.yields();
        }
        let found = self.process.peek(&like, &self.protocol, &mut self.port);
        if found.is_some() {
            self.port.begin_again();
        }
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
        self.enter(Call::Receive);
        if flags & flag::DISCARD != 0 {
            let completion = self.port.describe(envelope, context, flag::RECEIVED);
            self.discard(envelope);
            if flags & flag::COMPLETION != 0 {
                self.port.completions.push_back(completion);
            }
        } else {
            let bytes = buffer.length as u64;
            let (peer, tag) = (Some(envelope.source.0), envelope.tag64());
            let about = About { peer, tag, ignored: 0, bytes };
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
        self.make_up();
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
        self.begin_poll();
        self.port.polled_interface = None;
        if self.port.completions.is_empty() {
            self.make_progress(true);
            if blocking::is_inside(Kind::Polling) {
                self.yields();
            }
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

    /// The program calls.
    pub(crate) fn enter(&mut self, call: Call) {
        self.make_up();
        self.port.enter(call);
    }

    /// The program polls: what it has computed is charged, and whether it has looked at the clock is seen.
    pub(crate) fn begin_poll(&mut self) {
        if self.port.pairs < PAIRS {
            self.make_up();
        }
        self.port.enter(Call::Poll);
        if clock::reads() != self.port.clock_reads {
            self.port.clock_reads = clock::reads();
            self.port.begin_again();
        }
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
        self.enter(Call::None);
        self.port.post_raw(PostKind::Register, post, &[]);
        self.port.leave();
    }

    /// Lets them no more.
    pub fn unregister(&mut self, key: u64) {
        self.enter(Call::None);
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
        self.enter(if kind == PostKind::Write { Call::Write } else { Call::Read });
        self.port.spend(Work::SendCall, self.protocol.send_call);
        self.port.spend(Work::DataSend, self.protocol.data_send);
        let reports = flags & flag::COMPLETION != 0 && flags & flag::INJECT == 0;
        let about = About { peer: Some(post.to), tag: 0, ignored: 0, bytes: local.length as u64 };
        let operation = Operation::Remote { completion, reports, about };
        let token = self.port.operations.insert(operation) as u32 + 1;
        let copied = kind == PostKind::Write && (flags & flag::INJECT != 0 || local.length <= INJECT_LIMIT);
        let bytes = if copied { local.copy() } else { Vec::new() };
        let (address, length) = (if copied { 0 } else { local.address as u64 }, local.length as u64);
        let post = Post { token, local: address, length, ..post };
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
            self.enter(Call::Poll);
            if !self.take_notices() {
                self.port.wait(State::Wait);
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
        self.interfaces.clear();
        self.port.exhausted.clear();
        if self.port.joined() {
            self.port.post_raw(PostKind::Forget, Post::default(), &[]);
        }
    }

    /// Takes what has come; polling costs time and, where nothing can have come yet, the turn.
    pub(crate) fn make_progress(&mut self, polls: bool) {
        if self.take_notices() {
            return;
        }
        let port = &mut self.port;
        let waited = blocking::take_put_off();
        if polls && !waited && port.pairs < PAIRS && port.may_put_off() {
            blocking::put_off();
            port.polled_empty = true;
            return;
        }
        port.polls_in_vain();
        let (synchronizes, scans) =
            (blocking::is_inside(Kind::Synchronizing), blocking::is_inside(Kind::Scanning));
        if synchronizes || scans {
            port.begin_to_count();
        }
        port.empty_polls += u32::from(polls);
        let in_a_row = match port.jumps {
            _ if synchronizes => SYNCHRONIZES,
            _ if scans => more_than_two_looks(within::first_argument()),
            true => JUMP,
            false => u32::MAX,
        };
        let waits = polls && (port.pairs >= PAIRS || port.empty_polls >= in_a_row);
        port.polled_empty = polls;
        if waits {
            if waited && port.polled_interface.is_none() {
                port.tell_open(&self.process);
            }
            port.wait(if waited { State::Poll } else { State::Wait });
            port.lists.set_nothing_open();
            self.take_notices();
        } else {
            self.look();
        }
    }

    /// Whatever can have come by the rank's clock has, and is taken.
    fn look(&mut self) {
        if self.port.shared.clock() > self.port.shared.quiet_until() {
            self.port.hand_over(State::Ready);
            self.take_notices();
        }
    }

    /// A poll that was put off is made: another call follows than the poll that it was put off to.
    pub(crate) fn make_up(&mut self) {
        if blocking::take_put_off() {
            self.port.polls_in_vain();
            self.port.empty_polls += 1;
            self.look();
        }
    }

    /// Withdraws multi-receive buffers that have no room for another message.
    pub(crate) fn withdraw_exhausted(&mut self) {
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
