//! A rank: messaging in the program's own process, and its turns.
//!
//! ```text
//!   weft_send ──► Process ──► Port::post ──► outbox ┐
//!   weft_poll ──► inbox ──► Process ──► completions │   the turn passes when the rank polls and nothing
//!                   ▲                               ▼   can have come, when its outbox is full, and when it
//!                   └────────── simulator ──────────┘   waits
//! ```
//! # Not modelled
//! Threads: one thread of a process is the rank.

mod interfaces;
mod notices;
mod ports;
mod progress;
mod services;

use crate::blocking::{self, WaitKind};
use crate::device::{Call, Post, PostKind, RawEnvelope, Shared, State};
use crate::interface::Interfaces;
use crate::operation::{About, Completion, Kept, Lent, Operation, Source, endpoints_in, flag};
use crate::port::Port;
use weft_msg::{
    Envelope, KeptEntry, PostCosts, Process, Protocol, RankEndpoints, TaggedReceive, TaggedSend, Transport,
    Work,
};
use weft_units::{Bytes, RankId};

pub use interfaces::Transfer;
pub use services::ServiceRequest;

/// Messages up to this size can be sent without keeping the buffer.
pub const INJECT_LIMIT: usize = 4096;
/// Payloads up to this size are copied when they are posted; others are read when the interface does.
const LARGEST_COPY: usize = 256 << 10;

/// This process's side of a job.
pub struct Rank {
    pub(crate) process: Process,
    pub(crate) protocol: Protocol,
    pub(crate) posts: PostCosts,
    pub(crate) port: Port,
    pub(crate) interfaces: Interfaces,
}

impl Rank {
    /// A rank on its device. `shared` and `lists` are two mappings of it.
    pub fn new(shared: &'static Shared, lists: Shared) -> Option<Rank> {
        let identity = shared.identity();
        let (mut protocol, posts): (Protocol, PostCosts) = postcard::from_bytes(&shared.protocol()).ok()?;
        protocol.eager_limit = protocol.eager_limit.min(Bytes::new(LARGEST_COPY as u64));
        let port = Port::new(shared, lists, protocol.further_parts(identity.rails));
        let process = Process::new(RankId(identity.rank), identity.ranks);
        Some(Rank { process, protocol, posts, port, interfaces: Interfaces::default() })
    }

    /// The rank's number.
    pub fn number(&self) -> u32 {
        self.port.number
    }

    /// Ranks of the job.
    pub fn count(&self) -> u32 {
        self.port.shared.identity().ranks
    }

    /// The rank's clock, in ps.
    pub fn clock(&self) -> u64 {
        self.port.shared.clock()
    }

    /// Charges what the program has computed so far to the clock now, where computing is measured.
    pub fn settle(&mut self) {
        self.make_up();
        self.port.settle();
    }

    /// The program has called `MPI_Pcontrol`, which takes no time.
    pub fn mark(&mut self, level: i32) {
        self.port.mark(level);
    }

    /// The program has slept: it goes on when virtual time, in which others run, has reached its clock.
    pub fn slept(&mut self) {
        self.port.gives_way();
    }

    /// Charges the search of list entries; see `weft_search`.
    pub fn search(&mut self, entries: u64) {
        self.enter(Call::Receive);
        self.port.spend(Work::Matching, self.protocol.matching_entry * entries.min(u64::from(u32::MAX)));
        self.port.leave();
    }

    /// Sets the space that a multi-receive buffer must have left to take another message, in bytes.
    pub fn set_min_multi_receive(&mut self, bytes: usize) {
        self.port.min_multi_receive = bytes;
    }

    /// Says whether the library above keeps completions that the program has not read; see
    /// `weft_set_unread`.
    pub fn set_unread(&mut self, unread: bool) {
        self.port.has_unread = unread;
    }

    /// Sends a message; see `weft_send`.
    pub fn send(&mut self, message: OutgoingMessage, options: CallOptions) -> Result<(), i32> {
        let OutgoingMessage { to, tag, buffer, data } = message;
        let CallOptions { flags, context, endpoints } = options;
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
            endpoints,
            tagged: flags & flag::TAGGED != 0,
            tag,
            bytes: Bytes::new(buffer.length as u64),
            synchronous: flags & flag::MATCH_COMPLETE != 0,
            key: Some(key),
        };
        if to == self.number() {
            let kept = self.port.kept.insert(Kept { bytes: buffer.copy(), data }) as u32;
            let kept = KeptEntry::new(kept);
            self.process.on(&self.protocol, &mut self.port).send_to_own(&send, kept);
        } else {
            self.port.sending = Some(Source { buffer, data });
            self.process.on(&self.protocol, &mut self.port).send_tagged(&send);
            self.port.sending = None;
        }
        self.withdraw_exhausted();
        self.port.leave();
        Ok(())
    }

    /// Posts a receive; see `weft_receive`.
    pub fn receive(&mut self, selector: Selector, buffer: Lent, options: CallOptions) {
        let CallOptions { flags, context, .. } = options;
        self.enter(Call::Receive);
        let repeats = flags & flag::MULTI_RECEIVE != 0;
        let operation = if repeats {
            let (used, min_left) = (0, self.port.min_multi_receive);
            let (pending, closed, cancelled) = (0, false, false);
            Operation::MultiReceive { context, flags, buffer, used, min_left, pending, closed, cancelled }
        } else {
            let Selector { from: peer, tag, ignore: ignored } = selector;
            let about = About { peer, tag, ignored, bytes: buffer.length as u64 };
            Operation::Receive { context, flags, buffer, outcome: None, about }
        };
        let key = self.port.operations.insert(operation) as u32;
        let bytes = Bytes::new(buffer.length as u64);
        let receive = TaggedReceive { repeats, ..selector.receive(options, bytes, key) };
        self.process.on(&self.protocol, &mut self.port).receive_tagged(&receive);
        self.withdraw_exhausted();
        self.port.leave();
    }

    /// Looks for a message that no receive has taken; see `weft_peek`. What is claimed comes back, for
    /// [`Rank::receive_claimed`].
    pub fn peek(
        &mut self,
        selector: Selector,
        options: CallOptions,
    ) -> Option<(Completion, Option<Envelope>)> {
        let CallOptions { flags, context, .. } = options;
        self.enter(Call::Poll);
        let like = selector.receive(options, Bytes::ZERO, u32::MAX);
        let is_there = self.process.has(&like);
        let about = About { peer: selector.from, tag: selector.tag, ignored: like.ignore, bytes: 0 };
        self.port.pattern.looks_for((!is_there).then_some(about));
        // A rank that looks in vain, over and over, waits as one that polls does.
        self.make_progress(!is_there);
        if !is_there && blocking::is_inside(WaitKind::Probing) {
            self.yields();
        }
        let found = self.process.on(&self.protocol, &mut self.port).peek(&like);
        if found.is_some() {
            self.port.pattern.begin_again();
        }
        let found = found.map(|envelope| {
            let mut completion = self.port.describe(&envelope, context, flag::RECEIVED);
            completion.length = envelope.bytes.get() as usize;
            let takes = flags & (flag::CLAIM | flag::DISCARD) != 0;
            let taken = if takes { self.process.claim(&like) } else { None };
            match taken {
                Some(envelope) if flags & flag::DISCARD != 0 => {
                    self.discard(&envelope);
                    (completion, None)
                }
                taken => (completion, taken),
            }
        });
        self.port.leave();
        found
    }

    /// Receives a message that was claimed, or drops it.
    pub fn receive_claimed(&mut self, envelope: &Envelope, buffer: Lent, options: CallOptions) {
        let CallOptions { flags, context, .. } = options;
        self.enter(Call::Receive);
        if flags & flag::DISCARD != 0 {
            let completion = self.port.describe(envelope, context, flag::RECEIVED);
            self.discard(envelope);
            if flags & flag::COMPLETION != 0 {
                self.port.completions.push_back(completion);
            }
        } else {
            let bytes = buffer.length as u64;
            let (peer, tag) = (Some(envelope.source.0), tag_of(envelope));
            let about = About { peer, tag, ignored: 0, bytes };
            let operation = Operation::Receive { context, flags, buffer, outcome: None, about };
            let key = self.port.operations.insert(operation) as u32;
            let bytes = Bytes::new(buffer.length as u64);
            let receive = Selector::of_tag(tag).receive(options, bytes, key);
            self.process.on(&self.protocol, &mut self.port).receive_claimed(envelope, &receive);
        }
        self.port.leave();
    }

    /// Receives a message into nothing.
    fn discard(&mut self, envelope: &Envelope) {
        let (buffer, about) = (Lent::default(), About::default());
        let operation = Operation::Receive { context: 0, flags: 0, buffer, outcome: None, about };
        let key = self.port.operations.insert(operation) as u32;
        let options = CallOptions { flags: 0, context: 0, endpoints: RankEndpoints::FIRST };
        let receive = Selector::of_tag(tag_of(envelope)).receive(options, Bytes::ZERO, key);
        self.process.on(&self.protocol, &mut self.port).receive_claimed(envelope, &receive);
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

    /// The program calls.
    pub(crate) fn enter(&mut self, call: Call) {
        self.make_up();
        self.port.enter(call);
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
        // What reaches the memory before the rank's clock finds it registered.
        self.port.gives_way();
        self.port.post_raw(PostKind::Unregister, Post { key, ..Post::default() }, &[]);
        self.port.leave();
    }

    /// RDMA write; see `weft_write`.
    pub fn write(&mut self, to: RemotePlace, local: Lent, data: u64, options: CallOptions) {
        let flags = if options.flags & flag::DATA != 0 { Post::WITH_DATA } else { 0 };
        let post = Post { flags, data, ..to.post(options.endpoints) };
        self.remote(PostKind::Write, post, local, options);
    }

    /// RDMA read; see `weft_read`.
    pub fn read(&mut self, from: RemotePlace, local: Lent, options: CallOptions) {
        self.remote(PostKind::Read, from.post(options.endpoints), local, options);
    }

    /// RDMA of this kind between `local` and the place that `post` names.
    fn remote(&mut self, kind: PostKind, post: Post, local: Lent, options: CallOptions) {
        let CallOptions { flags, context, .. } = options;
        // A read is asked for by a control message.
        let (call, done, payload) = match kind {
            PostKind::Write => (Call::Write, flag::WRITTEN, Bytes::new(local.length as u64)),
            _ => (Call::Read, flag::READ, self.protocol.control_bytes),
        };
        let completion = Completion::of(context, done);
        self.enter(call);
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
        self.port.hand_over_parts(payload);
        self.port.leave();
    }

    /// Forgets what is under way, so that no buffer of the program is touched any more: it may be opened
    /// again. Injected messages still arrive.
    pub fn close(&mut self) {
        let injected = |(_, operation): (usize, &Operation)| match operation {
            Operation::Send { copy, .. } | Operation::Forgotten { copy, .. } => !copy.is_empty(),
            _ => false,
        };
        while self.port.operations.iter().any(injected) {
            self.enter(Call::Poll);
            if !self.take_notices() {
                self.port.wait(State::Wait, 0);
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
                Operation::Send { .. } | Operation::Remote { .. } | Operation::Request { .. } => 1,
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
    fn post(self, endpoints: RankEndpoints) -> Post {
        let envelope =
            RawEnvelope { endpoints: RawEnvelope::endpoint_bits(endpoints), ..RawEnvelope::default() };
        Post { to: self.rank, envelope, remote: self.address, key: self.key, ..Post::default() }
    }
}

/// The tag of a message that is to be matched.
fn tag_of(envelope: &Envelope) -> u64 {
    envelope.matching().map_or(0, |matching| matching.tag64())
}

/// The manner in which the program wants an operation, and its name for it.
#[derive(Clone, Copy, Debug)]
pub struct CallOptions {
    /// Flags of `weft.h`.
    pub flags: u64,
    /// Comes back in the completion.
    pub context: usize,
    /// From which endpoint of this rank to which of the peer's it goes; a receive's message comes the other
    /// way.
    pub endpoints: RankEndpoints,
}

impl CallOptions {
    /// Of a call with these flags; `None`: they name an endpoint that no rank has.
    pub fn of(flags: u64, context: usize) -> Option<CallOptions> {
        endpoints_in(flags).map(|endpoints| CallOptions { flags, context, endpoints })
    }
}

/// A message that the program sends.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingMessage {
    /// The receiver.
    pub to: u32,
    /// The tag; of no meaning without `TAGGED`.
    pub tag: u64,
    /// The payload.
    pub buffer: Lent,
    /// Travels into the receiver's completion, with `DATA`.
    pub data: u64,
}

/// The messages that a receive accepts.
#[derive(Clone, Copy, Debug)]
pub struct Selector {
    /// The sender; `None`: any.
    pub from: Option<u32>,
    /// The tag; of no meaning without `TAGGED`.
    pub tag: u64,
    /// Bits of the tag that need not be equal.
    pub ignore: u64,
}

impl Selector {
    /// Messages of this tag, from anybody.
    fn of_tag(tag: u64) -> Selector {
        Selector { from: None, tag, ignore: 0 }
    }

    /// A receive of one such message into `bytes`.
    fn receive(self, options: CallOptions, bytes: Bytes, key: u32) -> TaggedReceive {
        let Selector { from, tag, ignore } = self;
        let CallOptions { flags, endpoints, .. } = options;
        let tagged = flags & flag::TAGGED != 0;
        // Without tags there is nothing to compare.
        let ignore = if tagged { ignore } else { u64::MAX };
        let (from, endpoints) = (from.map(RankId), endpoints.reversed());
        TaggedReceive { from, endpoints, tagged, tag, ignore, bytes, repeats: false, key }
    }
}
