//! The records of a task as streams.
//!
//! A record waits for one thing, so the records of a task are trees. The roots are the start of the program,
//! receptions, and ends of collectives: what waits for a send, by way of others, is done at a time that is
//! known from the root on. That makes a chain of each root:
//!
//! ```text
//!   message 4 received ─┬─ 10 ns ─ message 7 ─ 5 ns ─ message 8      wait, compute 10, isend, compute 2,
//!                       └─ 12 ns ─ message 9                         isend (9), compute 3, isend (8)
//! ```
//! A collective at the end of a chain, and what waits for it, goes on in the chain. One that others of the
//! chain do not wait for begins a chain of its own, by an event. Chains follow each other in a stream where
//! the file has all that the one needs before all of the other: a task is one process, which does what it
//! does in the order of the file. Chains whose records are mixed lie in several streams, on one core.
//!
//! All receives are posted first, in the order of the file. Messages have their numbers as tags.
//!
//! # Not modelled
//! A chain whose message comes early does not overtake the one before it in the file. Records with times of
//! their own that stand behind others are a timetable: it has a second core.

use super::collectives::{VefCollectives, not_a_member};
use super::communicators::VefCommunicators;
use super::line::{After, When};
use super::split::{EntryCounts, TaskEntry};
use crate::error::TraceError;
use crate::format::FormatWriter;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use weft_trace::op::{CommId, EventId, Op, RequestId, SendMode, SignalAt};
use weft_units::{Bytes, RankId, Span};

/// Most streams of a task.
const MAX_LANES: usize = 1 << 12;

/// Most sends of a stream that are not waited for.
const OPEN_SENDS: usize = 64;

/// Most requests of a wait.
const WAITED: usize = 1024;

/// No record.
const NONE: u32 = u32::MAX;

/// A fault of a file, with its line; and the mend.
pub(super) type LinedFault = (u64, String);

/// A record of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TaskRecord {
    id: u64,
    time: Span,
    /// The ID of what it waits for, by its kind.
    on: u64,
    bytes: Bytes,
    /// The destination, or the number of the collective.
    to: u32,
    line: u32,
    kind: AfterKind,
    is_part: bool,
}

/// The kind of thing that a record waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AfterKind {
    Start,
    Send,
    Reception,
    Collective,
}

impl TaskRecord {
    fn new(line: u64, id: u64, when: When) -> TaskRecord {
        let (kind, on) = match when.after {
            After::Start => (AfterKind::Start, 0),
            After::Send(id) => (AfterKind::Send, id),
            After::Reception(id) => (AfterKind::Reception, id),
            After::Collective(id) => (AfterKind::Collective, id),
        };
        // A line of which there are more is not told.
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        TaskRecord { id, time: when.time, on, bytes: Bytes::ZERO, to: 0, line, kind, is_part: false }
    }

    /// The fault of the record.
    fn fault(&self, fault: String) -> LinedFault {
        (self.line.into(), fault)
    }
}

/// A message to a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TaskReceive {
    id: u64,
    from: u32,
    bytes: Bytes,
}

/// The records of a task, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TaskRecords {
    task: u32,
    records: Vec<TaskRecord>,
    receives: Vec<TaskReceive>,
    /// Places of its communicators, ascending.
    communicators: Vec<u32>,
}

/// The records that wait for each thing, as lists: the first, and for each record the next.
struct TaskTrees {
    of_start: u32,
    of_record: Vec<u32>,
    of_reception: Vec<u32>,
    next: Vec<u32>,
}

/// The begin of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChainStart {
    Program,
    /// That message has come.
    Reception(u32),
    Event(EventId),
}

/// A step of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChainStep {
    Record(u32),
    /// Another chain begins.
    Fork(EventId),
}

/// A chain of records.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RecordChain {
    start: ChainStart,
    /// A part of the steps of the task.
    steps: Range<usize>,
    /// The lines from its first record to the last that must be there for it to end.
    lines: (u64, u64),
}

/// Chains one after the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct ChainLane {
    core: u32,
    chains: Vec<u32>,
    /// The last line of its last chain.
    last: Option<u64>,
}

/// A task as streams.
pub(super) struct TaskStreams {
    task: TaskRecords,
    /// Steps of all chains, each with the time since the one before.
    steps: Vec<(Span, ChainStep)>,
    chains: Vec<RecordChain>,
    lanes: Vec<ChainLane>,
    /// Of collectives that must begin in an order across streams: the event at the start of each, and the
    /// one that it waits for.
    begun: BTreeMap<u32, EventId>,
    awaited: BTreeMap<u32, EventId>,
    /// Whether somebody waits for each message to the task.
    is_awaited: Vec<bool>,
    /// Number of events so far.
    events: u32,
}

impl TaskRecords {
    pub(super) fn new(task: u32, counts: EntryCounts) -> TaskRecords {
        let records = Vec::with_capacity(counts.records);
        let receives = Vec::with_capacity(counts.receives);
        TaskRecords { task, records, receives, communicators: Vec::new() }
    }

    /// Adds an entry of a line.
    pub(super) fn push(&mut self, line: u64, entry: TaskEntry) {
        match entry {
            TaskEntry::Member { communicator } => self.communicators.push(communicator),
            TaskEntry::Receive { id, from, bytes } => self.receives.push(TaskReceive { id, from, bytes }),
            TaskEntry::Send { id, to, bytes, when } => {
                self.records.push(TaskRecord { to, bytes, ..TaskRecord::new(line, id, when) });
            }
            TaskEntry::Part { id, number, when } => {
                let record = TaskRecord { to: number, is_part: true, ..TaskRecord::new(line, id, when) };
                self.records.push(record);
            }
        }
    }

    /// The streams. `is_in_order`: each record of the file stands behind those that it waits for, so that
    /// chains can follow each other.
    ///
    /// # Errors
    /// Records that wait for what the task does not do, or for themselves.
    pub(super) fn streams(
        self,
        collectives: &VefCollectives,
        communicators: &VefCommunicators,
        is_in_order: bool,
    ) -> Result<TaskStreams, LinedFault> {
        for record in self.records.iter().filter(|record| record.is_part) {
            let communicator = collectives.communicator(record.to);
            if self.communicators.binary_search(&communicator).is_err() {
                return Err(record.fault(not_a_member(self.task, communicators.get(communicator).id)));
            }
        }
        let trees = self.trees()?;
        let is_awaited = trees.of_reception.iter().map(|first| *first != NONE).collect();
        let mut streams = TaskStreams {
            task: self,
            steps: Vec::new(),
            chains: Vec::new(),
            lanes: vec![ChainLane::default()],
            begun: BTreeMap::new(),
            awaited: BTreeMap::new(),
            is_awaited,
            events: 0,
        };
        let timetable = streams.chain_up(&trees, collectives)?;
        streams.lay(timetable, is_in_order)?;
        streams.order_collectives(collectives)?;
        Ok(streams)
    }

    /// Finds what waits for what.
    fn trees(&self) -> Result<TaskTrees, LinedFault> {
        let by_id = |is_part: bool| {
            let of_kind = |place: &u32| self.records[*place as usize].is_part == is_part;
            let mut places: Vec<u32> = (0..self.records.len() as u32).filter(of_kind).collect();
            places.sort_unstable_by_key(|place| self.records[*place as usize].id);
            places
        };
        let (sends, parts) = (by_id(false), by_id(true));
        let id = |place: &u32| self.records[*place as usize].id;
        if let Some(pair) = parts.windows(2).find(|pair| id(&pair[0]) == id(&pair[1])) {
            let fault =
                format!("task: G{} has two records of task {}; take one out", id(&pair[0]), self.task);
            return Err(self.records[pair[1] as usize].fault(fault));
        }
        let mut receptions: Vec<u32> = (0..self.receives.len() as u32).collect();
        receptions.sort_unstable_by_key(|place| self.receives[*place as usize].id);
        let mut trees = TaskTrees {
            of_start: NONE,
            of_record: vec![NONE; self.records.len()],
            of_reception: vec![NONE; self.receives.len()],
            next: vec![NONE; self.records.len()],
        };
        // Backwards, so that the lists are in the order of the file.
        for (place, record) in self.records.iter().enumerate().rev() {
            let task = self.task;
            let (fault, on) = (|fault: String| record.fault(format!("IDdep: {fault}")), record.on);
            let first = match record.kind {
                AfterKind::Start => &mut trees.of_start,
                AfterKind::Send => {
                    let found = sends.binary_search_by_key(&on, id).map(|found| sends[found]);
                    let missing = |_| {
                        fault(format!(
                            "message {on} is not sent by task {task}; name one that it sends before"
                        ))
                    };
                    &mut trees.of_record[found.map_err(missing)? as usize]
                }
                AfterKind::Collective => {
                    let found = parts.binary_search_by_key(&on, id).map(|found| parts[found]);
                    let missing = |_| {
                        fault(format!("task {task} takes no part in G{on}; name one that it takes part in"))
                    };
                    &mut trees.of_record[found.map_err(missing)? as usize]
                }
                AfterKind::Reception => {
                    let id = |place: &u32| self.receives[*place as usize].id;
                    let found = receptions.binary_search_by_key(&on, id).map(|found| receptions[found]);
                    let missing = |_| {
                        fault(format!("message {on} is not sent to task {task}; name one that it receives"))
                    };
                    &mut trees.of_reception[found.map_err(missing)? as usize]
                }
            };
            trees.next[place] = std::mem::replace(first, place as u32);
        }
        Ok(trees)
    }
}

/// A chain that is still to be made.
struct PendingChain {
    start: ChainStart,
    /// The first of the records that wait for its start.
    first: u32,
    /// Whether the others that wait for the same are not of this chain.
    is_alone: bool,
}

impl TaskStreams {
    /// Puts all records on chains. Returns the place of the first chain if it is a timetable.
    fn chain_up(
        &mut self,
        trees: &TaskTrees,
        collectives: &VefCollectives,
    ) -> Result<Option<u32>, LinedFault> {
        let mut pending = VecDeque::new();
        let begin = |start, first| PendingChain { start, first, is_alone: false };
        if trees.of_start != NONE {
            pending.push_back(begin(ChainStart::Program, trees.of_start));
        }
        let receptions = (0..).zip(&trees.of_reception).filter(|(_, first)| **first != NONE);
        pending.extend(receptions.map(|(place, first)| begin(ChainStart::Reception(place), *first)));
        let mut is_placed = vec![false; self.task.records.len()];
        while let Some(PendingChain { start, first, is_alone }) = pending.pop_front() {
            let from = self.steps.len();
            let mut ready: BinaryHeap<Reverse<(Span, u32)>> = BinaryHeap::new();
            let add = |ready: &mut BinaryHeap<Reverse<(Span, u32)>>, mut place: u32, at: Span| {
                while place != NONE {
                    let time = self.task.records[place as usize].time;
                    ready.push(Reverse((at.saturating_add(time), place)));
                    place = trees.next[place as usize];
                }
            };
            match is_alone {
                true => ready.push(Reverse((Span::ZERO, first))),
                false => add(&mut ready, first, Span::ZERO),
            }
            let mut now = Span::ZERO;
            let mut lines = (u64::MAX, 0);
            while let Some(Reverse((at, place))) = ready.pop() {
                let gap = Span::from_ps(at.as_ps() - now.as_ps());
                now = at;
                let followers = trees.of_record[place as usize];
                let is_part = self.task.records[place as usize].is_part;
                let is_last = ready.is_empty() || is_alone && place == first;
                if is_part && !is_last {
                    let event = EventId(self.events);
                    self.events += 1;
                    self.steps.push((gap, ChainStep::Fork(event)));
                    pending.push_back(PendingChain {
                        start: ChainStart::Event(event),
                        first: place,
                        is_alone: true,
                    });
                    continue;
                }
                if is_part {
                    now = Span::ZERO;
                }
                add(&mut ready, followers, now);
                self.steps.push((gap, ChainStep::Record(place)));
                is_placed[place as usize] = true;
                let record = &self.task.records[place as usize];
                let line = u64::from(record.line);
                let needed = if is_part { collectives.last_line(record.to) } else { line };
                lines = (lines.0.min(line), lines.1.max(needed));
            }
            self.chains.push(RecordChain { start, steps: from..self.steps.len(), lines });
        }
        if let Some(place) = is_placed.iter().position(|placed| !placed) {
            let record = &self.task.records[place];
            let fault =
                format!("IDdep: record {} waits for itself, by way of others; mend one of them", record.id);
            return Err(record.fault(fault));
        }
        let timed = self.task.records.iter().rfind(|record| record.kind == AfterKind::Start);
        let last = timed.map(|record| u64::from(record.line));
        let others = self.chains.iter().filter(|chain| chain.start != ChainStart::Program);
        let first = others.map(|chain| chain.lines.0).min();
        Ok((last > first && first.is_some()).then_some(0))
    }

    /// Puts chains into streams. `timetable` gets a core of its own.
    fn lay(&mut self, timetable: Option<u32>, is_in_order: bool) -> Result<(), LinedFault> {
        let mut order: Vec<u32> = (0..self.chains.len() as u32).collect();
        order.sort_unstable_by_key(|place| self.chains[*place as usize].lines);
        // Where the file does not say in which order things happen, each chain is by itself, if it can be.
        let is_shared = is_in_order || order.len() > MAX_LANES;
        for place in order {
            let (first, last) = self.chains[place as usize].lines;
            let core = u32::from(timetable == Some(place));
            let fits = |lane: &ChainLane| {
                lane.core == core && lane.last.is_none_or(|last| is_shared && last < first)
            };
            let lane = match self.lanes.iter().position(fits) {
                Some(lane) => lane,
                None if self.lanes.len() == MAX_LANES => {
                    let fault = format!(
                        "task {} has more than {MAX_LANES} chains of records at once; write each record \
                         behind those that it waits for, in the order of their times",
                        self.task.task
                    );
                    return Err((first, fault));
                }
                None => {
                    self.lanes.push(ChainLane { core, ..ChainLane::default() });
                    self.lanes.len() - 1
                }
            };
            self.lanes[lane].chains.push(place);
            self.lanes[lane].last = Some(last);
        }
        Ok(())
    }

    /// The collectives of each communicator begin in the order of their first records in the file, which is
    /// the same for all its members.
    fn order_collectives(&mut self, collectives: &VefCollectives) -> Result<(), LinedFault> {
        let mut parts: Vec<OrderedPart> = Vec::new();
        for (lane, ChainLane { chains, .. }) in self.lanes.iter().enumerate() {
            let steps = chains.iter().flat_map(|place| self.chains[*place as usize].steps.clone());
            for (position, step) in steps.enumerate() {
                if let ChainStep::Record(record) = self.steps[step].1
                    && let TaskRecord { is_part: true, to: number, .. } = self.task.records[record as usize]
                {
                    let communicator = collectives.communicator(number);
                    parts.push(OrderedPart { communicator, number, lane, position, record });
                }
            }
        }
        parts.sort_unstable();
        for pair in parts.windows(2).filter(|pair| pair[0].communicator == pair[1].communicator) {
            let (before, after) = (&pair[0], &pair[1]);
            if before.lane != after.lane {
                let event = EventId(self.events);
                self.events += 1;
                self.begun.insert(before.record, event);
                self.awaited.insert(after.record, event);
            } else if before.position > after.position {
                let [before, after] = [before, after].map(|part| &self.task.records[part.record as usize]);
                let fault = format!(
                    "ID: G{} of this COMM comes before G{} in the file, and behind it by their times; \
                     write collectives in their order",
                    before.id, after.id
                );
                return Err(before.fault(fault));
            }
        }
        Ok(())
    }

    /// Writes all operations of the task, which has been begun.
    pub(super) fn write(
        mut self,
        collectives: &VefCollectives,
        communicators: &mut VefCommunicators,
        writer: &mut dyn FormatWriter,
    ) -> Result<(), TraceError> {
        for place in &self.task.communicators {
            if let Some(creation) = communicators.get(*place).creation() {
                writer.push(&creation)?;
            }
        }
        for (number, TaskReceive { id, from, bytes }) in (0..).zip(&self.task.receives) {
            let (from, tag, request) = (Some(RankId(*from)), Some(tag(*id)), RequestId(number));
            let (comm, matched, buffer) = (CommId::WORLD, None, None);
            writer.push(&Op::Irecv { from, tag, comm, bytes: *bytes, matched, buffer, request })?;
        }
        // The other streams wait for messages when these have been posted.
        let mut posted = vec![None; self.lanes.len()];
        for (lane, posted) in self.lanes.iter().zip(&mut posted).skip(1) {
            let waits = |chain: &u32| matches!(self.chains[*chain as usize].start, ChainStart::Reception(_));
            if lane.chains.iter().any(waits) {
                let event = EventId(self.events);
                self.events += 1;
                writer.push(&Op::Signal { event, at: SignalAt::End })?;
                *posted = Some(event);
            }
        }
        let mut next_send = self.task.receives.len() as u32;
        for (number, (lane, mut posted)) in self.lanes.iter().zip(posted).enumerate() {
            if number > 0 {
                writer.begin_stream(lane.core)?;
            }
            let mut sends = Vec::new();
            for chain in lane.chains.iter().map(|place| &self.chains[*place as usize]) {
                match chain.start {
                    ChainStart::Program => {}
                    ChainStart::Event(event) => writer.push(&Op::Await { events: vec![event] })?,
                    ChainStart::Reception(place) => {
                        let events = posted.take().map(|event| vec![event]);
                        events.map_or(Ok(()), |events| writer.push(&Op::Await { events }))?;
                        writer.push(&Op::Wait { request: RequestId(place) })?;
                    }
                }
                for (gap, step) in &self.steps[chain.steps.clone()] {
                    if *gap > Span::ZERO {
                        writer.push(&Op::Compute { span: *gap })?;
                    }
                    let record = match step {
                        ChainStep::Record(record) => *record,
                        ChainStep::Fork(event) => {
                            writer.push(&Op::Signal { event: *event, at: SignalAt::End })?;
                            continue;
                        }
                    };
                    let TaskRecord { id, to, bytes, is_part, .. } = self.task.records[record as usize];
                    let op = if is_part {
                        collectives.operation(to, self.task.task, communicators)
                    } else {
                        let request = RequestId(next_send);
                        next_send += 1;
                        if sends.len() == OPEN_SENDS {
                            let requests = sends.drain(..OPEN_SENDS / 2).collect();
                            writer.push(&Op::Waitall { requests })?;
                        }
                        sends.push(request);
                        let (to, tag, comm, mode) = (RankId(to), tag(id), CommId::WORLD, SendMode::Standard);
                        Op::Isend { to, tag, comm, bytes, mode, buffer: None, request }
                    };
                    if let Some(event) = self.awaited.get(&record) {
                        writer.push(&Op::Await { events: vec![*event] })?;
                    }
                    writer.push(&op)?;
                    if let Some(event) = self.begun.get(&record) {
                        writer.push(&Op::Signal { event: *event, at: SignalAt::Start })?;
                    }
                }
            }
            if number == 0 {
                let waited = (0..).zip(&self.is_awaited).filter(|(_, is_awaited)| !**is_awaited);
                let rest: Vec<RequestId> = waited.map(|(place, _)| RequestId(place)).collect();
                for requests in rest.chunks(WAITED) {
                    writer.push(&Op::Waitall { requests: requests.to_vec() })?;
                }
            }
            if !sends.is_empty() {
                writer.push(&Op::Waitall { requests: sends })?;
            }
        }
        Ok(())
    }
}

/// A collective of the task with its place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct OrderedPart {
    communicator: u32,
    number: u32,
    lane: usize,
    position: usize,
    record: u32,
}

/// The tag of a message.
fn tag(id: u64) -> i32 {
    (id & 0x7fff_ffff) as i32
}
