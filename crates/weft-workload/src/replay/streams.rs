//! A rank with several streams, or with events: its streams take turns on its cores.
//!
//! ```text
//!   core 0   stream 0 ─ compute ─ isend ─ wait … ┐ in a call: the core is free
//!            stream 2            compute ────────┘
//!   core 1   stream 1 ─ await e ──────── compute            e: signalled by another stream
//! ```
//! A stream is ready from a time on: when its last operation has ended, what its call waits for is there, or
//! its events have happened. A core gives the next turn, one operation, to the stream that has been ready
//! longest, ties by number. Streams share the queues of the rank's messaging: of two calls on two cores the
//! later waits until the earlier is over.
//!
//! A message that has come is taken by a core with a stream in a call that waits, at the time at which the
//! core is free; of several by the one that is free first. When all streams are over, core 0 takes it.
//!
//! The rank's own fields are those of the stream that has the turn: [`ReplayRank::turn_to`] puts them in, and
//! [`ReplayRank::end_turn`] takes them out.
//!
//! # Not modelled
//! The polls of a library that polls before it waits: waits of such a rank cost nothing of their own.

use super::calls::OpenCall;
use super::memory::OpenWork;
use super::rank::{InterfaceEvent, ReplayRank, State};
use super::record::{Cause, Moment};
use super::report::Activity;
use super::transport::{CallStart, CallTransport, RankContext};
use super::{Operations, ReplayHost, ReplayParameters, ReplayTimer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_msg::{Blocked, CallStatus, Process};
use weft_nic::HostContext;
use weft_trace::op::{EventId, Op, SignalAt, StreamId};
use weft_trace::{Cursor, Kind, TraceSource};
use weft_units::{RankId, Time};

/// Turns that a rank takes in one go: what it posts meanwhile takes memory in the interface.
const MAX_TURNS: u32 = 128;

/// The streams of a rank.
#[derive(Serialize, Deserialize)]
pub(super) struct RankStreams {
    streams: Vec<RankStream>,
    cores: Vec<RankCore>,
    /// Events that are signalled and not awaited, or awaited and not signalled.
    events: BTreeMap<EventId, OpenEvent>,
    /// The stream whose turn it is, or was last.
    current: StreamId,
    unfinished: u32,
    /// The time at which the rank is called back, if it is.
    called_at: Option<Time>,
}

/// A stream while it has not the turn.
#[derive(Serialize, Deserialize)]
struct RankStream {
    core: usize,
    /// The operations to come; a rank that was saved opens its trace again.
    #[serde(skip)]
    cursor: Option<Box<dyn Cursor>>,
    /// The operation that was read ahead.
    #[serde(skip)]
    ahead: VecDeque<Op>,
    /// Operations that it has begun.
    position: u64,
    state: StreamState,
    /// From when on it can go on.
    ready: Time,
    /// The cause of what it does next.
    last: Cause,
    /// The call that it is in.
    call: Option<Kind>,
    open: OpenCall,
    #[serde(skip)]
    operation: &'static str,
}

/// The progress of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum StreamState {
    /// It goes on at its turn.
    Ready,
    /// It is in a call that waits.
    InCall,
    /// It waits for so many events.
    Awaits(u32),
    /// It is in a computation whose end the memory of its host decides.
    Working(OpenWork),
    /// It has done all its operations.
    Finished,
}

/// A core of a rank.
#[derive(Clone, Default, Serialize, Deserialize)]
struct RankCore {
    /// The end of its work so far.
    clock: Time,
    /// The cause of what follows that work.
    last: Cause,
    /// Streams that can go on, and from when.
    ready: BTreeSet<(Time, StreamId)>,
    /// Streams in calls that wait.
    in_call: BTreeSet<StreamId>,
    /// The stream that keeps the core busy until the memory of its host has served it.
    working: Option<StreamId>,
}

/// An event that has only been signalled, or only been awaited.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum OpenEvent {
    Signalled { at: Time, cause: Cause },
    Awaited(StreamId),
}

/// The next thing that a rank does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum StreamTurn {
    /// It takes the next event of its interface, in the call of this stream.
    Take(StreamId),
    /// The stream carries out its next operation.
    GoOn(StreamId),
}

impl RankStreams {
    /// The streams of a recorded rank at the start of its program; `None`: it has one, without events.
    pub fn of(operations: &Operations, rank: RankId) -> Option<Box<RankStreams>> {
        let Operations::Recorded(trace) = operations else { return None };
        let stream_cores = trace.stream_cores(rank);
        if stream_cores.len() == 1 && !has_events(&**trace) {
            return None;
        }
        let stream = |core: &u32| RankStream {
            core: *core as usize,
            cursor: None,
            ahead: VecDeque::new(),
            position: 0,
            state: StreamState::Ready,
            ready: Time::ZERO,
            last: Cause::Beginning,
            call: None,
            open: OpenCall::default(),
            operation: "",
        };
        let streams: Vec<RankStream> = stream_cores.iter().map(stream).collect();
        let count = streams.iter().map(|stream| stream.core + 1).max().unwrap_or(1);
        let mut cores = vec![RankCore::default(); count];
        for (number, stream) in streams.iter().enumerate() {
            cores[stream.core].ready.insert((Time::ZERO, StreamId(number as u32)));
        }
        let unfinished = streams.len() as u32;
        let (events, current) = (BTreeMap::new(), StreamId::FIRST);
        Some(Box::new(RankStreams { streams, cores, events, current, unfinished, called_at: None }))
    }

    /// No stream goes on before this time, at which the program begins.
    pub fn begin_at(&mut self, start: Time) {
        self.streams.iter_mut().for_each(|stream| stream.ready = start);
        for core in &mut self.cores {
            core.clock = start;
            core.ready = core.ready.iter().map(|(_, stream)| (start, *stream)).collect();
        }
        self.called_at = Some(start);
    }

    /// Number of cores.
    pub fn cores(&self) -> u32 {
        self.cores.len() as u32
    }

    /// Whether it is the last stream of the rank that has ended.
    pub fn is_over(&self) -> bool {
        self.unfinished == 0
    }

    /// The position of the operation that was begun last, in the stream whose turn it is.
    pub fn position(&self) -> (StreamId, u64) {
        (self.current, self.streams[self.current.index()].position)
    }

    /// The calls, or events, that streams wait for.
    pub fn blocked(&self, process: &Process, rank: RankId) -> Vec<Blocked> {
        let mut awaited: BTreeMap<StreamId, Vec<EventId>> = BTreeMap::new();
        for (event, open) in &self.events {
            if let OpenEvent::Awaited(stream) = open {
                awaited.entry(*stream).or_default().push(*event);
            }
        }
        let of_events = awaited.into_iter().map(|(stream, events)| Blocked {
            rank,
            stream: Some(stream),
            call: Kind::Await.name(),
            events,
            collectives: Vec::new(),
            pending: Vec::new(),
        });
        self.in_call().filter_map(|stream| process.stream_waiting_for(stream)).chain(of_events).collect()
    }

    /// Streams in calls that wait.
    fn in_call(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.cores.iter().flat_map(|core| core.in_call.iter().copied())
    }

    /// The next turn and its time; `None`: nothing can go on. `event`: since when an event of the interface
    /// can be taken.
    fn next_turn(&self, event: Option<Time>) -> Option<(Time, StreamTurn)> {
        let of_core = |core: &RankCore| {
            let (ready, stream) = core.ready.first()?;
            Some((core.clock.max(*ready), StreamTurn::GoOn(*stream)))
        };
        let taking =
            |core: &RankCore, at: Time| Some((core.clock.max(at), StreamTurn::Take(*core.in_call.first()?)));
        let free = || self.cores.iter().filter(|core| core.working.is_none());
        let operations = free().filter_map(of_core);
        let events = event.into_iter().flat_map(|at| free().filter_map(move |core| taking(core, at)));
        let next = operations.chain(events).min();
        match (next, event) {
            (None, Some(at)) if self.is_over() => {
                Some((self.cores[0].clock.max(at), StreamTurn::Take(StreamId::FIRST)))
            }
            _ => next,
        }
    }

    /// An event has happened. Errors with the reason if it has before.
    fn signal(&mut self, event: EventId, at: Time, cause: Cause) -> Result<(), String> {
        match self.events.remove(&event) {
            None => drop(self.events.insert(event, OpenEvent::Signalled { at, cause })),
            Some(OpenEvent::Awaited(stream)) => self.awake(stream, at, cause),
            Some(OpenEvent::Signalled { .. }) => {
                return Err(format!("event {} is signalled again before it has been awaited", event.0));
            }
        }
        Ok(())
    }

    /// One of the events that a stream waits for has happened.
    fn awake(&mut self, number: StreamId, at: Time, cause: Cause) {
        let stream = &mut self.streams[number.index()];
        if at >= stream.ready {
            (stream.ready, stream.last) = (at, cause);
        }
        if let StreamState::Awaits(left) = stream.state {
            stream.state = StreamState::Awaits(left - 1);
            if left == 1 {
                stream.state = StreamState::Ready;
                self.cores[stream.core].ready.insert((stream.ready, number));
            }
        }
    }

    /// A stream in a call can go on.
    fn call_over(&mut self, number: StreamId, at: Time, cause: Cause) {
        let stream = &mut self.streams[number.index()];
        stream.state = StreamState::Ready;
        (stream.ready, stream.last) = (at, cause);
        let core = &mut self.cores[stream.core];
        core.in_call.remove(&number);
        core.ready.insert((at, number));
    }
}

/// Whether ranks of a trace have events.
fn has_events(trace: &dyn TraceSource) -> bool {
    let kinds = [Kind::Signal(SignalAt::Start), Kind::Signal(SignalAt::End), Kind::Await];
    kinds.into_iter().any(|kind| trace.operations_of(kind) > 0)
}

impl ReplayRank {
    /// Goes on with its streams for as long as nothing else can come first.
    pub(super) fn go_on_streams(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let mut left = MAX_TURNS;
        while self.state != State::Failed {
            let event = self.events.front().map(|(at, _)| *at);
            let Some(streams) = &mut self.streams else { return };
            let Some((time, turn)) = streams.next_turn(event) else { return };
            let now = context.host.now();
            if time > now || left == 0 {
                let at = time.max(now);
                if streams.called_at.is_none_or(|called| called > at || called < now || left == 0) {
                    streams.called_at = Some(at);
                    context.host.set_timer(at, ReplayTimer::Rank(context.seat));
                }
                return;
            }
            left -= 1;
            match turn {
                StreamTurn::GoOn(stream) => {
                    self.turn_to(stream, context);
                    self.next_of_stream(context);
                    self.end_turn();
                    // It may have ended the call of another: by a message to itself, or a receive.
                    self.resume_calls(context);
                }
                StreamTurn::Take(stream) => self.take_in_call(stream, context),
            }
        }
    }

    /// The timer of the rank has come.
    pub(super) fn called_back(&mut self, now: Time) {
        if let Some(streams) = &mut self.streams
            && streams.called_at.is_some_and(|at| at <= now)
        {
            streams.called_at = None;
        }
    }

    /// A stream has the turn, from when it and its core are ready.
    fn turn_to(&mut self, number: StreamId, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let Some(streams) = &mut self.streams else { return };
        streams.current = number;
        let stream = &mut streams.streams[number.index()];
        let core = &mut streams.cores[stream.core];
        core.ready.remove(&(stream.ready, number));
        let account = &mut self.account;
        account.core = stream.core as u32;
        (account.clock, account.last_steps.own) = (core.clock, core.last);
        if stream.ready > core.clock {
            account.draw(Activity::Wait, core.clock..stream.ready, context);
            (account.clock, account.last_steps.own) = (stream.ready, stream.last);
        }
        (account.call, account.operation) = (stream.call, stream.operation);
        account.calls.set_open(stream.open);
        self.process.switch_to(number);
        self.state = match stream.state {
            StreamState::InCall => State::Blocked,
            StreamState::Ready | StreamState::Awaits(_) => State::Running,
            StreamState::Working(work) => State::Working(work),
            StreamState::Finished => State::Finished,
        };
    }

    /// The turn is over: the stream and its core go on from here.
    fn end_turn(&mut self) {
        let Some(streams) = &mut self.streams else { return };
        let number = streams.current;
        let stream = &mut streams.streams[number.index()];
        let core = &mut streams.cores[stream.core];
        let account = &mut self.account;
        (core.clock, core.last) = (account.clock, account.last_steps.own);
        (stream.call, stream.operation) = (account.call, account.operation);
        stream.open = account.calls.take_open();
        match (self.state, stream.state) {
            (State::Running, StreamState::Ready | StreamState::InCall | StreamState::Working(_)) => {
                stream.state = StreamState::Ready;
                // Later only where its events happen later.
                if stream.ready <= account.clock {
                    (stream.ready, stream.last) = (account.clock, account.last_steps.own);
                }
                core.in_call.remove(&number);
                core.ready.insert((stream.ready, number));
            }
            (State::Blocked, _) => {
                stream.state = StreamState::InCall;
                core.in_call.insert(number);
            }
            (State::Working(work), _) => {
                stream.state = StreamState::Working(work);
                core.working = Some(number);
            }
            _ => {}
        }
    }

    /// The traffic with memory of a core is done.
    pub(super) fn end_work_of_streams(
        &mut self,
        core: u32,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let Some(streams) = &mut self.streams else { return };
        let Some(number) = streams.cores[core as usize].working.take() else { return };
        self.turn_to(number, context);
        if let State::Working(work) = self.state {
            self.work_done(work, context);
        }
        self.end_turn();
        self.go_on_streams(context);
    }

    /// The stream with the turn carries out its next operation.
    fn next_of_stream(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        self.account.calls.end(self.account.clock);
        match self.read_ahead(context.parameters) {
            Some(Ok(Op::Signal { event, .. })) => {
                self.signal(event, self.account.clock, self.account.last_steps.own, context);
            }
            Some(Ok(Op::Await { events })) => self.await_events(&events),
            Some(Ok(op)) => {
                self.signal_starts(&op, context);
                if self.state == State::Running {
                    self.carry_out(&op, context);
                }
            }
            Some(Err(reason)) => self.fail(reason, context),
            None => self.finish_stream(context),
        }
    }

    /// The next operation of the stream with the turn, which counts as begun; `None`: there are no more.
    fn read_ahead(&mut self, parameters: &ReplayParameters) -> Option<Result<Op, String>> {
        let op = self.peek(parameters)?;
        let streams = self.streams.as_mut()?;
        let stream = &mut streams.streams[streams.current.index()];
        if op.is_ok() {
            stream.ahead.pop_front();
            stream.position += 1;
            self.position += 1;
        }
        Some(op)
    }

    /// The next operation of the stream with the turn.
    fn peek(&mut self, parameters: &ReplayParameters) -> Option<Result<Op, String>> {
        let RankStreams { streams, current, .. } = self.streams.as_deref_mut()?;
        let stream = &mut streams[current.index()];
        if let Some(op) = stream.ahead.front() {
            return Some(Ok(op.clone()));
        }
        let Operations::Recorded(trace) = &parameters.programs()[self.account.program as usize].operations
        else {
            return None;
        };
        let cursor = match &mut stream.cursor {
            Some(cursor) => cursor,
            none => match trace.stream_at(self.account.rank, *current, stream.position) {
                Ok(cursor) => none.insert(cursor),
                Err(error) => return Some(Err(error.to_string())),
            },
        };
        match cursor.next()? {
            Ok(op) => {
                stream.ahead.push_back(op.clone());
                Some(Ok(op))
            }
            Err(error) => Some(Err(error.to_string())),
        }
    }

    /// The events that are signalled when an operation starts, which it does now.
    fn signal_starts(&mut self, op: &Op, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let Moment { at, cause } = self.start_of(op);
        while let Some(Ok(Op::Signal { event, at: SignalAt::Start })) = self.peek(context.parameters) {
            let _ = self.read_ahead(context.parameters);
            self.signal(event, at, cause, context);
        }
    }

    /// The time at which an operation starts that has the turn.
    fn start_of(&self, op: &Op) -> Moment {
        let account = &self.account;
        let is_call = !matches!(op, Op::Compute { .. } | Op::Work { .. } | Op::Marker { .. });
        match is_call && account.queues_free > account.clock {
            true => Moment { at: account.queues_free, cause: account.last_steps.queues },
            false => Moment { at: account.clock, cause: account.last_steps.own },
        }
    }

    fn signal(
        &mut self,
        event: EventId,
        at: Time,
        cause: Cause,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let signalled = self.streams.as_mut().map_or(Ok(()), |streams| streams.signal(event, at, cause));
        if let Err(reason) = signalled {
            self.fail(reason, context);
        }
    }

    /// The stream with the turn waits for events, as far as they have not happened.
    fn await_events(&mut self, events: &[EventId]) {
        let Some(streams) = &mut self.streams else { return };
        let number = streams.current;
        let stream = &mut streams.streams[number.index()];
        let account = &mut self.account;
        (stream.ready, stream.last) = (account.clock, account.last_steps.own);
        let mut missing = 0;
        for event in events {
            match streams.events.remove(event) {
                Some(OpenEvent::Signalled { at, cause }) if at > stream.ready => {
                    (stream.ready, stream.last) = (at, cause);
                }
                Some(OpenEvent::Signalled { .. }) => {}
                _ => {
                    streams.events.insert(*event, OpenEvent::Awaited(number));
                    missing += 1;
                }
            }
        }
        if missing > 0 {
            stream.state = StreamState::Awaits(missing);
        }
    }

    /// The stream with the turn has no more operations.
    fn finish_stream(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let Some(streams) = &mut self.streams else { return };
        let stream = &mut streams.streams[streams.current.index()];
        (stream.state, stream.cursor) = (StreamState::Finished, None);
        streams.unfinished -= 1;
        self.state = State::Finished;
        if streams.is_over() {
            let of_cores = streams.cores.iter().map(|core| (core.clock, core.last));
            let own = (self.account.clock, self.account.last_steps.own);
            let (clock, last) = of_cores.fold(own, |a, b| if b.0 > a.0 { b } else { a });
            let (at_work, cause) = own;
            (self.account.clock, self.account.last_steps.own) = (clock, last);
            self.finish(context);
            (self.account.clock, self.account.last_steps.own) = (at_work, cause);
        }
    }

    /// The next event of the interface is taken in the call of a stream.
    fn take_in_call(
        &mut self,
        number: StreamId,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let Some((at, event)) = self.events.pop_front() else { return };
        self.turn_to(number, context);
        let account = &self.account;
        let since = match account.queues_free > at {
            true => Moment { at: account.queues_free, cause: account.last_steps.queues },
            false => Moment { at, cause: event.cause() },
        };
        self.handle_in_call(event, since, context);
        self.account.queues_free = self.account.clock;
        self.account.last_steps.queues = self.account.last_steps.own;
        self.end_turn();
        self.resume_calls(context);
    }

    /// Streams whose calls wait for what has come go on from when the rank's queues are free.
    pub(super) fn resume_calls(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let Some(streams) = &self.streams else { return };
        let in_call: Vec<StreamId> = streams.in_call().collect();
        for number in in_call {
            self.process.switch_to(number);
            if self.process.still_waits() {
                continue;
            }
            let (at, cause) = (self.account.queues_free, self.account.last_steps.queues);
            // The work that remains is beside the cores: none is busy with it.
            let start = CallStart { at, cause, call: None, continues: true };
            let protocol = &context.parameters.protocol;
            let mut transport = CallTransport::new(start, &mut self.account, context);
            let status = self.process.on(protocol, &mut transport).resume();
            let (clock, last) = transport.end();
            (self.account.queues_free, self.account.last_steps.queues) = (clock, last);
            if status == CallStatus::Ready
                && let Some(streams) = &mut self.streams
            {
                streams.call_over(number, clock, last);
            }
        }
    }

    /// Takes an event in the background of its streams.
    pub(super) fn handle_beside_streams(
        &mut self,
        event: InterfaceEvent,
        now: Time,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let account = &self.account;
        let cause = if now > account.queues_free { event.cause() } else { account.last_steps.queues };
        let start = CallStart::new(account.queues_free.max(now), cause, None);
        // No stream has the turn: the calls are resumed one by one.
        self.state = State::Running;
        let (free, last) = self.process_event(event, start, context);
        (self.account.queues_free, self.account.last_steps.queues) = (free, last);
        self.resume_calls(context);
        self.go_on_streams(context);
    }
}
