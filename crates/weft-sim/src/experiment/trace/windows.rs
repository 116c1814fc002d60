//! One-sided operations as messages, for formats that do not carry them: of windows that fences alone
//! synchronize.
//!
//! ```text
//!   put         origin ── data ──▶ target                          the target receives within the fence
//!   get         origin ── request ──▶ target ── data ──▶ origin    that ends the epoch
//!   fence       receives of what came, answers, a wait for them and the rank's own; then a barrier
//! ```
//! Accumulates are puts, and operations that fetch a result are gets with data in both directions. The trace
//! is read once before, since a target must know what comes to it. Windows that are locked, flushed or posted
//! stay as they are.

use std::collections::{BTreeMap, BTreeSet};
use weft_formats::{Trace, TraceError};
use weft_trace::op::{CommId, OneSided, Op, RequestId, SendMode, WindowId, WindowSync};
use weft_trace::{Kind, streams};
use weft_units::{Bytes, RankId};

/// An operation as its target sees it.
#[derive(Clone, Copy, Debug)]
struct IncomingAccess {
    origin: RankId,
    kind: OneSided,
    bytes: Bytes,
}

impl IncomingAccess {
    /// Bytes to the target.
    fn request(self) -> Bytes {
        if self.kind == OneSided::Get { Bytes::ZERO } else { self.bytes }
    }

    /// Whether the target answers.
    fn is_answered(self) -> bool {
        !matches!(self.kind, OneSided::Put | OneSided::Accumulate)
    }
}

/// The one-sided operations of a trace, by where they go.
#[derive(Debug, Default)]
pub(super) struct WindowAccesses {
    /// Windows that something else than fences synchronizes.
    others: BTreeSet<WindowId>,
    /// By window, fences before, and target: in the order of each origin.
    incoming: BTreeMap<(WindowId, u32, RankId), Vec<IncomingAccess>>,
    /// Windows as they come, for their tags.
    numbers: BTreeMap<WindowId, u32>,
}

impl WindowAccesses {
    /// Reads a trace for them, if it has any.
    ///
    /// # Errors
    /// What cannot be read.
    pub(super) fn of(trace: &Trace) -> Result<WindowAccesses, TraceError> {
        let mut found = WindowAccesses::default();
        if trace.operations_of(Kind::Window) == 0 {
            return Ok(found);
        }
        for rank in (0..trace.ranks()).map(RankId) {
            let mut fences: BTreeMap<WindowId, u32> = BTreeMap::new();
            let ops = streams(&**trace, rank).map(|stream| trace.stream(rank, stream));
            for op in ops.collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
                match op? {
                    Op::Sync { kind: WindowSync::Fence, window, .. } => {
                        *fences.entry(window).or_default() += 1
                    }
                    Op::Sync { kind, window, .. } if kind != WindowSync::Free => {
                        found.others.insert(window);
                    }
                    Op::OneSided { kind, window, target, bytes, .. } if target != rank => {
                        let epoch = fences.get(&window).copied().unwrap_or(0);
                        let access = IncomingAccess { origin: rank, kind, bytes };
                        found.incoming.entry((window, epoch, target)).or_default().push(access);
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// Whether fences alone synchronize a window.
    pub(super) fn has_fences_only(&self, window: WindowId) -> bool {
        !self.others.contains(&window)
    }
}

/// The first tag of windows: behind those of collectives. Each has two, one for answers.
const FIRST_TAG: i32 = (1 << 30) + (1 << 29);

/// Windows that have tags of their own.
const WINDOWS: u32 = 1 << 28;

/// The first request of messages that end with a fence. A trace counts them upwards from 0, and rounds of
/// collectives downwards from the end.
const FIRST_REQUEST: u32 = 1 << 31;

/// A window of a rank.
#[derive(Debug)]
struct OpenWindow {
    comm: CommId,
    /// Fences so far.
    fences: u32,
    /// Messages of the rank's own operations since the last.
    pending: Vec<RequestId>,
    /// The tag of messages to targets, and that of answers.
    tags: [i32; 2],
}

/// The windows of a rank, while its operations are turned into messages.
#[derive(Debug)]
pub(super) struct RankWindows {
    open: BTreeMap<WindowId, OpenWindow>,
    next_request: u32,
}

impl Default for RankWindows {
    fn default() -> RankWindows {
        RankWindows { open: BTreeMap::new(), next_request: FIRST_REQUEST }
    }
}

impl RankWindows {
    /// A window exists from here on.
    pub(super) fn create(&mut self, window: WindowId, comm: CommId, accesses: &mut WindowAccesses) {
        let known = accesses.numbers.len() as u32;
        let number = *accesses.numbers.entry(window).or_insert(known) % WINDOWS;
        let request = FIRST_TAG + 2 * number.cast_signed();
        let tags = [request, request + 1];
        self.open.insert(window, OpenWindow { comm, fences: 0, pending: Vec::new(), tags });
    }

    /// The communicator of a window of the rank.
    pub(super) fn comm(&self, window: WindowId) -> Option<CommId> {
        self.open.get(&window).map(|open| open.comm)
    }

    fn request(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId(self.next_request - 1)
    }

    /// The messages of an operation of the rank. They end with the next fence, also where the program waits
    /// for it before: its target is not there until then.
    pub(super) fn access(&mut self, op: &Op) -> Vec<Op> {
        let Op::OneSided { kind, window, target, bytes, .. } = *op else { return Vec::new() };
        let [request, answer] = [self.request(), self.request()];
        let Some(open) = self.open.get_mut(&window) else { return Vec::new() };
        let access = IncomingAccess { origin: target, kind, bytes };
        open.pending.push(request);
        let answer = access.is_answered().then(|| {
            open.pending.push(answer);
            receive(target, open.tags[1], bytes, answer)
        });
        answer.into_iter().chain([send(target, open.tags[0], access.request(), request)]).collect()
    }

    /// The messages of a fence of `rank`, before its barrier.
    pub(super) fn fence(&mut self, window: WindowId, rank: RankId, accesses: &WindowAccesses) -> Vec<Op> {
        let Some(open) = self.open.get_mut(&window) else { return Vec::new() };
        let (tags, epoch, mut pending) = (open.tags, open.fences, std::mem::take(&mut open.pending));
        open.fences += 1;
        let incoming = accesses.incoming.get(&(window, epoch, rank)).map_or(&[][..], Vec::as_slice);
        let mut ops = Vec::new();
        let mut received = Vec::new();
        for access in incoming {
            let request = self.request();
            ops.push(receive(access.origin, tags[0], access.request(), request));
            received.push(request);
        }
        if !received.is_empty() {
            ops.push(Op::Waitall { requests: received });
        }
        for access in incoming.iter().filter(|access| access.is_answered()) {
            let request = self.request();
            ops.push(send(access.origin, tags[1], access.bytes, request));
            pending.push(request);
        }
        if !pending.is_empty() {
            ops.push(Op::Waitall { requests: pending });
        }
        ops
    }
}

fn send(to: RankId, tag: i32, bytes: Bytes, request: RequestId) -> Op {
    let (comm, mode, buffer) = (CommId::WORLD, SendMode::Standard, None);
    Op::Isend { to, tag, comm, bytes, mode, buffer, request }
}

fn receive(from: RankId, tag: i32, bytes: Bytes, request: RequestId) -> Op {
    let (from, tag, comm) = (Some(from), Some(tag), CommId::WORLD);
    Op::Irecv { from, tag, comm, bytes, matched: None, buffer: None, request }
}
