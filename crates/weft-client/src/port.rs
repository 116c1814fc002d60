//! The machine as messaging sees it in a real rank: the clock, the device, and the data of operations.
//!
//! ```text
//!   Process ── spend ──► clock                     the program's buffers
//!           ── post ───► outbox of the device ◄──── bytes of small messages, addresses of large ones
//!           ── announced, received, completed ────► buffers filled, completions
//! ```

use crate::blocking::{self, WaitKind};
use crate::clock;
use crate::device::{
    Awaited, AwaitedKind, Call, HostModel, Log, OPEN, OpenReceive, OpenSend, Post, PostKind, RawEnvelope,
    Reason, Shared, State, Turn, token_bits,
};
use crate::one_core::OneCore;
use crate::operation::{Announced, Completion, Kept, Lent, Operation, Source, endpoint_flags, flag};
use crate::poll_pattern::{PollPattern, SYNCHRONIZING_EMPTY_POLLS};
use crate::within;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::time::Duration;
use weft_msg::{Body, Envelope, FurtherParts, KeptEntry, Posting, Process, ReceiveEntry, Transport, Work};
use weft_units::{Bytes, Span};

/// Real time between two checks of a rank without its turn whether the simulator lives.
const SIMULATOR_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The space that a multi-receive buffer must have left to take another message, in bytes.
const MIN_MULTI_RECEIVE: usize = 64;
/// Messages in such a buffer begin at multiples of this.
const ALIGNMENT: usize = 16;

/// The rank's clock, device and data: what messaging sees of the machine.
pub(crate) struct Port {
    pub(crate) shared: &'static Shared,
    pub(crate) number: u32,
    /// A second handle for what needs it exclusively: lists of the device.
    pub(crate) lists: Shared,
    pub(crate) host: HostModel,
    pub(crate) poll: Span,
    pub(crate) jumps: bool,
    parts: FurtherParts,
    /// Bytes of the outbox's arena in use.
    pub(crate) used: usize,
    log: Log,
    /// The clock when the present call, or what it does for a notice, began, in ps.
    begun: u64,
    /// CPU time of this thread when the program was last given control, in ns.
    pub(crate) left_at: u64,
    pub(crate) operations: Slab<Operation>,
    pub(crate) kept: Slab<Kept>,
    /// Buffers for announced data, by the receive's number in messaging.
    pub(crate) expected: BTreeMap<u32, Lent>,
    /// Sources of announced messages, by the send's number in messaging.
    pub(crate) sources: BTreeMap<u32, Source>,
    pub(crate) announced: Announced,
    /// The send that is being posted.
    pub(crate) sending: Option<Source>,
    pub(crate) completions: VecDeque<Completion>,
    /// Multi-receive buffers that take no more.
    pub(crate) exhausted: Vec<u32>,
    pub(crate) min_multi_receive: usize,
    pub(crate) pattern: PollPattern,
    /// Whether what it takes now was answered by the simulator while it waited: paid for, and posted.
    pub(crate) is_answered: bool,
    /// Whether the library above keeps completions that the program has not read.
    pub(crate) has_unread: bool,
    /// The virtual interface that it polls, if it polls one.
    pub(crate) polled_interface: Option<u16>,
    /// The core on which the job runs, and its stay there.
    core: Option<usize>,
    one_core: Option<OneCore>,
}

impl Port {
    /// The port of a rank on its device. `shared` and `lists` are two mappings of it.
    pub(crate) fn new(shared: &'static Shared, lists: Shared, parts: FurtherParts) -> Port {
        let identity = shared.identity();
        Port {
            shared,
            number: identity.rank,
            lists,
            host: identity.host,
            poll: identity.poll,
            jumps: identity.jumps,
            parts,
            used: 0,
            log: Log::default(),
            begun: 0,
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
            pattern: PollPattern::default(),
            is_answered: false,
            has_unread: false,
            polled_interface: None,
            core: None,
            one_core: None,
        }
    }

    /// Whether it is in virtual time.
    pub(crate) fn joined(&self) -> bool {
        self.shared.state() == Some(State::Run)
    }

    /// The program has called: what it has computed is charged, and a rank outside virtual time joins.
    pub(crate) fn enter(&mut self, call: Call) {
        if !self.joined() {
            self.hand_over(State::Ready);
            self.log.tell_outside(&mut self.lists);
        } else {
            self.log.tell_outside(&mut self.lists);
            self.charge();
        }
        if call != Call::Poll {
            self.pattern.looks_for(None);
        }
        self.log.enter(call);
        self.begun = self.shared.clock();
    }

    /// Charges what the program has computed so far to the clock now, where computing is measured.
    pub(crate) fn settle(&mut self) {
        if self.joined() {
            self.log.tell_outside(&mut self.lists);
            if matches!(self.host, HostModel::Cpu(_)) {
                self.charge();
                self.left_at = clock::thread_cpu_ns();
            }
        }
    }

    /// The program marks the time at which it is.
    pub(crate) fn mark(&mut self, level: i32) {
        self.settle();
        self.log.tell_outside(&mut self.lists);
        self.log.mark(level, &mut self.lists);
    }

    /// Outside of its calls, the program lets the others go on until its clock.
    pub(crate) fn gives_way(&mut self) {
        if self.joined() {
            self.log.tell_outside(&mut self.lists);
            self.hand_over(State::Ready);
        }
    }

    /// Moves the clock by the time that the program has computed since it was last charged.
    fn charge(&mut self) {
        let span = match self.host {
            HostModel::None => 0,
            HostModel::Fixed(span) => span.as_ps(),
            HostModel::Cpu(millionths) => {
                let ns = clock::thread_cpu_ns().saturating_sub(self.left_at);
                (u128::from(ns) * u128::from(millionths) / 1000) as u64
            }
        };
        clock::add_program_ps(span);
        self.pass(span, Reason::Computes);
    }

    /// The clock moves, for this reason.
    pub(crate) fn pass(&mut self, ps: u64, reason: Reason) {
        if ps > 0 {
            self.shared.set_clock(self.shared.clock().saturating_add(ps));
            self.log.tell(reason, &mut self.lists);
        }
    }

    /// The rank takes its next notice.
    pub(crate) fn takes(&mut self) {
        self.log.tell(Reason::Takes, &mut self.lists);
        self.begun = self.shared.clock();
    }

    /// The program goes on.
    pub(crate) fn leave(&mut self) {
        if matches!(self.host, HostModel::Cpu(_)) {
            self.left_at = clock::thread_cpu_ns();
        }
    }

    /// Gives the turn away and sleeps until it is back.
    pub(crate) fn hand_over(&mut self, state: State) {
        self.shared.set_state(state);
        self.shared.give_turn(Turn::Simulator);
        while self.shared.turn() == Turn::Simulator {
            self.shared.sleep_while(Turn::Simulator, Some(SIMULATOR_CHECK_INTERVAL));
            if self.shared.turn() == Turn::Simulator && !self.shared.has_simulator() {
                // Killed: nothing of the job is to stay behind.
                std::process::exit(137);
            }
        }
        // The simulator has taken all posts, and the log.
        self.used = 0;
        self.log.handed_over();
        self.follow_core();
    }

    /// Goes to the core on which the job runs, or back to those on which it may run.
    fn follow_core(&mut self) {
        let core = self.shared.core();
        if core != self.core {
            self.core = core;
            // It leaves the one before it goes to another.
            self.one_core = None;
            self.one_core = core.and_then(OneCore::on);
        }
    }

    /// Whether a poll that has found nothing may be put off: the program does not see it, and no measured or
    /// fixed time of its own would come between.
    pub(crate) fn may_put_off(&self) -> bool {
        // Where a window is synchronized, polls in a row are a wait: so many less one. Once one of them has
        // been made, all are.
        let more = if blocking::is_inside(WaitKind::Synchronizing) && !self.pattern.has_empty_polls() {
            SYNCHRONIZING_EMPTY_POLLS - 1
        } else {
            u32::from(!blocking::is_inside(WaitKind::Synchronizing))
        };
        let is_free = blocking::hides_polls() && self.host == HostModel::None;
        is_free && !self.has_unread && !self.pattern.has_pairs() && blocking::polls_put_off() < more
    }

    /// The time of a poll that finds nothing.
    pub(crate) fn polls_in_vain(&mut self) {
        self.pass(self.poll.as_ps(), Reason::Works(Work::Poll));
    }

    /// Gives the turn away until there is a notice, as [`State::Wait`] or [`State::Poll`] say. `polls`: those
    /// that it makes after the first.
    pub(crate) fn wait(&mut self, state: State, polls: u32) {
        self.pattern.begin_again();
        let (call, calls) = within::current();
        self.shared.set_within(call, calls);
        self.shared.set_polls(polls);
        if self.pattern.is_woken_in_vain() {
            self.tell_awaited();
        }
        self.hand_over(state);
        // The polls after the first.
        self.log.tell(Reason::Works(Work::Poll), &mut self.lists);
    }

    /// Gives the turn away until there is a notice or virtual time has reached `ps`.
    pub(crate) fn wait_until(&mut self, ps: u64) {
        self.pattern.begin_again();
        self.shared.set_until(ps);
        self.hand_over(State::Until);
        self.log.tell(Reason::Works(Work::Poll), &mut self.lists);
    }

    /// The program has computed until `ps`.
    pub(crate) fn computes_until(&mut self, ps: u64) {
        let span = ps.saturating_sub(self.shared.clock());
        clock::add_program_ps(span);
        self.pass(span, Reason::Computes);
    }

    /// Says what the rank waits for, should nothing ever come.
    fn tell_awaited(&mut self) {
        let interface = self.polled_interface.map(|number| Awaited {
            kind: AwaitedKind::Interface as u32,
            peer: number.into(),
            ..Awaited::default()
        });
        let operations = self.operations.iter().filter_map(|(_, operation)| operation.awaited());
        let looked_for = self.pattern.looked_for().map(|about| about.awaited(AwaitedKind::Receive));
        self.lists.set_awaited(interface.into_iter().chain(looked_for).chain(operations));
    }

    /// Says what the rank has open while it waits: nothing but notices can make it go on otherwise than by
    /// polling.
    pub(crate) fn tell_open(&mut self, process: &Process) {
        let buffer_of = |key: u32| match self.operations.get(key as usize) {
            Some(Operation::Receive { buffer, .. }) => buffer.place(),
            _ => Lent::default().place(),
        };
        let once = process.open_receives().filter(|receive| !receive.repeats).take(OPEN).count();
        let numbers = process
            .next_receives(once)
            .into_iter()
            .map(|receive| receive.0)
            .chain(std::iter::repeat(u32::MAX));
        let receives = process.open_receives().zip(numbers);
        let receives =
            receives.map(|(receive, number)| OpenReceive::new(&receive, buffer_of(receive.key), number));
        let data_of =
            |send: u32| self.sources.get(&send).map_or(Lent::default(), |source| source.buffer).place();
        let sends = process.open_sends().map(|send| OpenSend::new(&send, data_of(send.send.index())));
        self.lists.set_open(receives, sends);
    }

    /// A rank that waits sees what came at `ps` at once: the poll under way ends with it. What it takes on
    /// average until a poll sees it is part of what taking it costs, in machine files calibrated with ranks
    /// that polled.
    pub(crate) fn catch_up_with(&mut self, ps: u64) {
        let behind = ps.saturating_sub(self.shared.clock());
        self.pass(behind, Reason::Works(Work::Poll));
    }

    pub(crate) fn post_raw(&mut self, kind: PostKind, post: Post, bytes: &[u8]) {
        let mut post = Post { kind: kind as u32, at: self.shared.clock(), begun: self.begun, ..post };
        post.logged = self.log.seal(&self.lists);
        while !self.lists.post(post, bytes, &mut self.used) {
            self.hand_over(State::Ready);
            post.logged = self.log.seal(&self.lists);
        }
        // What it causes can come at any time from now on.
        self.shared.set_quiet_until(self.shared.quiet_until().min(self.shared.clock()));
    }

    /// The library hands the parts of a message that it has posted, after the first, to the other rails.
    pub(crate) fn hand_over_parts(&mut self, payload: Bytes) {
        self.pass(self.parts.time(payload).as_ps(), Reason::Works(Work::DataSend));
    }

    /// A completion that says what an envelope does.
    pub(crate) fn describe(&self, envelope: &Envelope, context: usize, flags: u64) -> Completion {
        let data = match (envelope.kept, envelope.announces()) {
            (Some(kept), _) => self.kept.get(kept.index() as usize).and_then(|kept| kept.data),
            (None, Some(send)) => self.announced.get(&(envelope.source.0, send.index())).copied(),
            (None, None) => None,
        };
        let matching = envelope.matching();
        let is_tagged = matching.is_some_and(|matching| matching.is_tagged());
        let tagged = if is_tagged { flag::TAGGED } else { 0 };
        let with_data = if data.is_some() { flag::DATA } else { 0 };
        let endpoints = matching.map_or(0, |matching| endpoint_flags(matching.context.endpoints()));
        Completion {
            data: data.unwrap_or(0),
            tag: matching.map_or(0, |matching| matching.tag64()),
            source: envelope.source.0,
            ..Completion::of(context, flags | tagged | with_data | endpoints)
        }
    }

    /// Room for the message of `envelope` in the buffer of the receive `key`.
    pub(crate) fn place(&mut self, key: u32, envelope: &Envelope) -> Lent {
        let bytes = envelope.bytes.get() as usize;
        match self.operations.get_mut(key as usize) {
            Some(Operation::Receive { buffer, .. }) => *buffer,
            Some(Operation::MultiReceive { buffer, used, min_left, pending, closed, .. }) => {
                let place =
                    Lent { address: buffer.address + *used, length: (buffer.length - *used).min(bytes) };
                // The next message begins where any type may lie.
                *used = (*used + place.length).next_multiple_of(ALIGNMENT).min(buffer.length);
                *pending += 1;
                if buffer.length - *used < (*min_left).max(1) && !*closed {
                    *closed = true;
                    self.exhausted.push(key);
                }
                place
            }
            _ => Lent::default(),
        }
    }

    /// Gives a multi-receive buffer back when its last message is there.
    pub(crate) fn release(&mut self, key: u32) {
        if let Some(Operation::MultiReceive { context, pending: 0, closed: true, cancelled, .. }) =
            self.operations.get(key as usize)
        {
            let mut completion = Completion::of(*context, flag::BUFFER_RELEASED);
            completion.error = if *cancelled { libc::ECANCELED } else { 0 };
            self.operations.remove(key as usize);
            self.completions.push_back(completion);
        }
    }
}

impl Transport for Port {
    fn spend(&mut self, work: Work, span: Span) {
        if self.is_answered {
            return;
        }
        self.pass(span.as_ps(), Reason::Works(work));
    }

    fn post(&mut self, Posting { to, envelope, payload, token, .. }: Posting) {
        let mut post = Post {
            to: to.0,
            envelope: RawEnvelope::from(&envelope),
            token: token_bits(token),
            ..Post::default()
        };
        let mut bytes = Vec::new();
        match envelope.body {
            Body::Eager { .. } => {
                if let Some(Source { buffer, data }) = self.sending {
                    bytes = buffer.copy();
                    (post.data, post.flags) = with_data(data);
                }
            }
            Body::RequestToSend { send, .. } => {
                if let Some(source) = self.sending {
                    self.sources.insert(send.index(), source);
                    (post.data, post.flags) = with_data(source.data);
                }
            }
            Body::ClearToSend { receive, .. } => {
                let place = self.expected.get(&receive.0).copied().unwrap_or_default();
                (post.local, post.length) = (place.address as u64, place.length as u64);
            }
            Body::Data { send, .. } => {
                if let Some(Source { buffer, .. }) = self.sources.remove(&send.index()) {
                    (post.local, post.length) = (buffer.address as u64, buffer.length as u64);
                }
            }
            // The program above has one-sided operations of its own, and the rendezvous writes.
            _ => {}
        }
        if !self.is_answered {
            self.post_raw(PostKind::Message, post, &bytes);
            self.hand_over_parts(payload);
        }
    }

    fn announced(&mut self, key: u32, receive: ReceiveEntry, envelope: &Envelope) {
        let place = self.place(key, envelope);
        self.expected.insert(receive.0, place);
    }

    fn received(&mut self, key: u32, receive: Option<ReceiveEntry>, envelope: &Envelope) {
        let mut completion = self.describe(envelope, 0, flag::RECEIVED);
        let length = envelope.bytes.get() as usize;
        let place = match receive {
            None => {
                let place = self.place(key, envelope);
                let kept = envelope.kept.map(KeptEntry::index);
                if let Some(kept) = kept.and_then(|kept| self.kept.try_remove(kept as usize)) {
                    place.fill(&kept.bytes);
                }
                place
            }
            Some(receive) => {
                if let Some(send) = envelope.announces() {
                    self.announced.remove(&(envelope.source.0, send.index()));
                }
                self.expected.remove(&receive.0).unwrap_or_default()
            }
        };
        completion.length = length.min(place.length);
        completion.overflow = length - completion.length;
        completion.error = if completion.overflow > 0 { libc::EMSGSIZE } else { 0 };
        match self.operations.get_mut(key as usize) {
            Some(Operation::Receive { context, outcome, .. }) => {
                completion.context = *context as *mut c_void;
                *outcome = Some(completion);
            }
            Some(Operation::MultiReceive { context, flags, pending, .. }) => {
                *pending -= 1;
                completion.context = *context as *mut c_void;
                completion.buffer = place.address as *mut c_void;
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
            Operation::MultiReceive { .. }
            | Operation::Remote { .. }
            | Operation::Request { .. }
            | Operation::Forgotten { .. } => {}
        }
    }
}

fn with_data(data: Option<u64>) -> (u64, u32) {
    (data.unwrap_or(0), if data.is_some() { Post::WITH_DATA } else { 0 })
}
