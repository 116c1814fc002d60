//! The operations of a rank, of all its streams, in an order that its events and requests allow.
//!
//! ```text
//!   stream 0   isend r1 ─ signal e1 ─ wait r1 ┐
//!   stream 1   await e1 ─ compute             ├──▶ isend r1, signal e1, wait r1, await e1, compute
//! ```
//! A stream is read until its next operation needs something that another has not come to: an event, the
//! start of a request, or the end of one whose number is used again. Where all need something, the first of
//! them is read on: whoever checks the operations then finds what is missing. Operations that wait for others
//! come when no stream has anything else to do: done one after the other, they keep the other streams.

use crate::error::TraceError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_trace::op::{EventId, Op, RequestId, StreamId};
use weft_trace::{Cursor, ReadError, TraceSource, streams};
use weft_units::RankId;

/// An operation with its place.
pub(crate) struct PlacedOp {
    /// The stream.
    pub(crate) stream: StreamId,
    /// Operations of the stream before it.
    pub(crate) position: u64,
    pub(crate) op: Op,
}

/// A thing that a stream needs before it can go on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum OrderNeed {
    Event(EventId),
    /// It has been started, and not waited for.
    Started(RequestId),
    /// The number is free.
    Free(RequestId),
}

impl OrderNeed {
    fn is_event(self) -> bool {
        matches!(self, OrderNeed::Event(_))
    }
}

struct StreamReading {
    cursor: Box<dyn Cursor>,
    /// The next operation.
    next: Option<Op>,
    position: u64,
}

/// The operations of a rank. Holds one of each stream.
pub(crate) struct RankOrder {
    streams: Vec<StreamReading>,
    /// Streams that can go on, as far as is known.
    ready: VecDeque<usize>,
    waiting: BTreeMap<OrderNeed, Vec<usize>>,
    /// Streams whose next operation may wait for another rank.
    at_calls: VecDeque<usize>,
    /// Events among what they wait for.
    awaited: usize,
    events: BTreeSet<EventId>,
    requests: BTreeSet<RequestId>,
}

impl RankOrder {
    /// The operations of a rank of a trace.
    ///
    /// # Errors
    /// There is no such rank.
    pub(crate) fn of(trace: &dyn TraceSource, rank: RankId) -> Result<RankOrder, ReadError> {
        let open = |stream| {
            let cursor = trace.stream(rank, stream)?;
            Ok(StreamReading { cursor, next: None, position: 0 })
        };
        let streams = streams(trace, rank).map(open).collect::<Result<Vec<StreamReading>, ReadError>>()?;
        let ready = (0..streams.len()).collect();
        Ok(RankOrder {
            streams,
            ready,
            waiting: BTreeMap::new(),
            at_calls: VecDeque::new(),
            awaited: 0,
            events: BTreeSet::new(),
            requests: BTreeSet::new(),
        })
    }

    /// Events that are signalled and not awaited, or awaited and not signalled, as far as it has read.
    pub(crate) fn open_events(&self) -> usize {
        self.events.len() + self.awaited
    }

    /// The next operation; `None`: there are no more.
    pub(crate) fn next(&mut self) -> Result<Option<PlacedOp>, TraceError> {
        loop {
            let Some(&place) = self.ready.front() else {
                if let Some(place) = self.at_calls.pop_front() {
                    match self.need(place) {
                        None => {
                            self.ready.push_front(place);
                            return self.take(place);
                        }
                        Some(need) => self.wait(need, place),
                    }
                    continue;
                }
                // What they need comes never: the first of them is read on.
                let Some((need, mut places)) = self.waiting.pop_first() else { return Ok(None) };
                let place = places.remove(0);
                self.awaited -= usize::from(need.is_event());
                places.into_iter().for_each(|place| self.wait(need, place));
                self.ready.push_front(place);
                return self.take(place);
            };
            let stream = &mut self.streams[place];
            if stream.next.is_none() {
                stream.next = stream.cursor.next().transpose()?;
            }
            let (several, next) = (self.streams.len() > 1, &self.streams[place].next);
            match next {
                None => drop(self.ready.pop_front()),
                // One stream alone waits for nobody.
                Some(_) if !several => return self.take(place),
                Some(op) => {
                    let keeps_others = may_wait(op);
                    match self.need(place) {
                        None if !keeps_others => return self.take(place),
                        None => self.at_calls.push_back(place),
                        Some(need) => self.wait(need, place),
                    }
                    self.ready.pop_front();
                }
            }
        }
    }

    /// The need of a stream's next operation that is not met.
    fn need(&self, place: usize) -> Option<OrderNeed> {
        need(self.streams[place].next.as_ref()?, &self.events, &self.requests)
    }

    /// The next operation of a stream, with what it does to events and requests.
    fn take(&mut self, place: usize) -> Result<Option<PlacedOp>, TraceError> {
        let stream = &mut self.streams[place];
        let Some(op) = stream.next.take() else { return Ok(None) };
        let position = stream.position;
        stream.position += 1;
        if self.streams.len() > 1 {
            self.carry_out(&op);
        }
        Ok(Some(PlacedOp { stream: StreamId(place as u32), position, op }))
    }

    fn carry_out(&mut self, op: &Op) {
        match op {
            Op::Signal { event, .. } => {
                self.events.insert(*event);
                self.wake(OrderNeed::Event(*event));
            }
            Op::Await { events } => {
                for event in events {
                    self.events.remove(event);
                }
            }
            Op::Waitany { requests, completed } => {
                if let Some(request) = requests.get(*completed as usize) {
                    self.end(*request);
                }
            }
            op => {
                for request in ended(op) {
                    self.end(*request);
                }
                if let Some(request) = started(op) {
                    self.requests.insert(request);
                    self.wake(OrderNeed::Started(request));
                }
            }
        }
    }

    fn end(&mut self, request: RequestId) {
        self.requests.remove(&request);
        self.wake(OrderNeed::Free(request));
    }

    fn wait(&mut self, need: OrderNeed, place: usize) {
        let places = self.waiting.entry(need).or_default();
        self.awaited += usize::from(places.is_empty() && need.is_event());
        places.push(place);
    }

    fn wake(&mut self, need: OrderNeed) {
        let Some(places) = self.waiting.remove(&need) else { return };
        self.awaited -= usize::from(need.is_event());
        self.ready.extend(places);
    }
}

/// The first thing that an operation needs and that is not there.
fn need(op: &Op, events: &BTreeSet<EventId>, requests: &BTreeSet<RequestId>) -> Option<OrderNeed> {
    let is_absent = |request: &&RequestId| !requests.contains(*request);
    match op {
        Op::Await { events: awaited } => {
            awaited.iter().find(|event| !events.contains(*event)).map(|event| OrderNeed::Event(*event))
        }
        Op::Waitany { requests, .. } => {
            requests.iter().find(is_absent).map(|request| OrderNeed::Started(*request))
        }
        op => match started(op) {
            Some(request) => requests.contains(&request).then_some(OrderNeed::Free(request)),
            None => ended(op).iter().find(is_absent).map(|request| OrderNeed::Started(*request)),
        },
    }
}

/// The request that an operation starts.
fn started(op: &Op) -> Option<RequestId> {
    match op {
        Op::Isend { request, .. } | Op::Irecv { request, .. } => Some(*request),
        Op::Collective { request, .. } | Op::OneSided { request, .. } => *request,
        _ => None,
    }
}

/// The requests that an operation waits for.
fn ended(op: &Op) -> &[RequestId] {
    match op {
        Op::Wait { request } => std::slice::from_ref(request),
        Op::Waitall { requests } => requests,
        _ => &[],
    }
}

/// Whether an operation may wait for what other ranks do.
fn may_wait(op: &Op) -> bool {
    matches!(
        op,
        Op::Wait { .. }
            | Op::Waitall { .. }
            | Op::Waitany { .. }
            | Op::Probe { .. }
            | Op::Collective { request: None, .. }
            | Op::Sync { .. }
    )
}
