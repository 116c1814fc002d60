//! Programs of Python, stepped while they run.
//!
//! ```text
//!  a rank asks ──► its queue ──► operation
//!                      ▲ empty: step(rank, now, received) under Python's lock ──► a few operations
//! ```
//! `step` is of `weft/_program.py`: it advances the generator of a rank. An exception of a program is kept,
//! and ends the run.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::c_long;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_cli::{ReceivedMessage, Stepped};
use weft_trace::Kind;
use weft_trace::op::{CollectiveBuffers, CollectiveSizes, CommId, Op, RequestId};
use weft_units::{Bytes, RankId, Span, Time};

/// The largest buffer, of receives that take messages of any size.
const ANY_SIZE: Bytes = Bytes::new(1 << 62);

/// A program of Python: its name, its ranks, and the function that steps one of them.
pub struct Program {
    name: String,
    step: Py<PyAny>,
    queues: Vec<Mutex<RankQueue>>,
    watch: Arc<Watch>,
}

/// Between a rank and its program.
#[derive(Default)]
struct RankQueue {
    /// Operations that the program has asked for and that have not begun.
    operations: VecDeque<Op>,
    /// Messages of which the program has not been told.
    received: Vec<ReceivedMessage>,
}

/// The caller's view of programs that run: who is being stepped, and what was raised.
#[derive(Default)]
pub struct Watch {
    /// Threads of Python's own numbers in which a program is at work.
    threads: Mutex<BTreeSet<u64>>,
    /// By program and rank.
    raised: Mutex<BTreeMap<(usize, u32), PyErr>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// The exception of the lowest rank that has raised one: which is first may depend on the threads.
    pub fn take_raised(&self) -> Option<PyErr> {
        lock(&self.raised).pop_first().map(|(_, error)| error)
    }

    /// Raises KeyboardInterrupt in programs that are at work.
    pub fn interrupt(&self, py: Python<'_>) {
        for &thread in lock(&self.threads).iter() {
            let exception = py.get_type::<PyKeyboardInterrupt>();
            // SAFETY: Python's lock is held, and the type lives as long as Python.
            unsafe { pyo3::ffi::PyThreadState_SetAsyncExc(thread as c_long, exception.as_ptr()) };
        }
    }
}

/// A program with its place among those of a call.
pub struct Placed {
    index: usize,
    program: Program,
}

impl Placed {
    /// Program `index` of a call: `(name, ranks, step)`.
    pub fn new(index: usize, (name, ranks, step): (String, u32, Py<PyAny>), watch: Arc<Watch>) -> Placed {
        let queues = (0..ranks).map(|_| Mutex::default()).collect();
        Placed { index, program: Program { name, step, queues, watch } }
    }

    /// The next operations of a rank; `None`: its program is over.
    fn step(&self, rank: RankId, at: Time, received: &[ReceivedMessage]) -> PyResult<Option<Vec<Op>>> {
        Python::attach(|py| {
            let thread: u64 = py.import("threading")?.call_method0("get_ident")?.extract()?;
            let received: Vec<_> = received
                .iter()
                .map(|message| (message.request.0, message.source.0, message.tag, message.bytes.get()))
                .collect();
            lock(&self.program.watch.threads).insert(thread);
            let stepped = self.program.step.bind(py).call1((rank.0, at.as_ps(), received));
            lock(&self.program.watch.threads).remove(&thread);
            match stepped? {
                none if none.is_none() => Ok(None),
                some => some.try_iter()?.map(|one| operation(&one?)).collect::<PyResult<_>>().map(Some),
            }
        })
    }
}

impl Stepped for Placed {
    fn name(&self) -> &str {
        &self.program.name
    }

    fn ranks(&self) -> u32 {
        self.program.queues.len() as u32
    }

    fn next(&self, rank: RankId, at: Time, received: &[ReceivedMessage]) -> Result<Option<Op>, String> {
        let mut queue = lock(&self.program.queues[rank.index()]);
        queue.received.extend(received);
        if let Some(op) = queue.operations.pop_front() {
            // What the program waits for is not over yet.
            return Ok(Some(op));
        }
        let received = std::mem::take(&mut queue.received);
        match self.step(rank, at, &received) {
            Ok(None) => Ok(None),
            Ok(Some(operations)) => {
                queue.operations.extend(operations);
                let none = || "the program has asked for nothing: this is a bug in weft".to_owned();
                queue.operations.pop_front().ok_or_else(none).map(Some)
            }
            Err(error) => {
                let text = error.to_string();
                lock(&self.program.watch.raised).insert((self.index, rank.0), error);
                Err(text)
            }
        }
    }
}

/// An operation as `weft/_program.py` writes it: its name, and what belongs to it.
fn operation(of: &Bound<'_, PyAny>) -> PyResult<Op> {
    let of = of.cast::<PyTuple>()?;
    let name = of.get_item(0)?;
    let name = name.cast::<PyString>()?.to_str()?.to_owned();
    let comm = CommId::WORLD;
    Ok(match Kind::from_name(name.as_bytes()) {
        Some(Kind::Compute) => Op::Compute { span: Span::from_ps(of.get_item(1)?.extract()?) },
        Some(Kind::Work) => {
            let (_, flops, bytes): (String, u64, u64) = of.extract()?;
            Op::Work { flops, bytes: Bytes::new(bytes) }
        }
        Some(Kind::Marker) => Op::Marker { text: of.get_item(1)?.extract()? },
        Some(Kind::Isend(mode)) => {
            let (_, to, tag, bytes, request): (String, u32, i32, u64, u32) = of.extract()?;
            let (to, bytes, request) = (RankId(to), Bytes::new(bytes), RequestId(request));
            Op::Isend { to, tag, comm, bytes, mode, buffer: None, request }
        }
        Some(Kind::Irecv) => {
            let (_, from, tag, bytes, request): (String, Option<u32>, Option<i32>, Option<u64>, u32) =
                of.extract()?;
            let (from, bytes) = (from.map(RankId), bytes.map_or(ANY_SIZE, Bytes::new));
            Op::Irecv { from, tag, comm, bytes, matched: None, buffer: None, request: RequestId(request) }
        }
        Some(Kind::Waitall) => {
            let requests: Vec<u32> = of.get_item(1)?.extract()?;
            Op::Waitall { requests: requests.into_iter().map(RequestId).collect() }
        }
        Some(Kind::Wait) => Op::Wait { request: RequestId(of.get_item(1)?.extract()?) },
        Some(Kind::Collective(kind)) => {
            type Collective = (String, Option<u32>, (u64, u64), (Vec<u64>, Vec<u64>), u32, Option<u32>);
            let (_, root, (send, receive), (send_counts, receive_counts), element, request): Collective =
                of.extract()?;
            let (send, receive) = (Bytes::new(send), Bytes::new(receive));
            let sizes = CollectiveSizes {
                send,
                receive,
                send_counts,
                receive_counts,
                element,
                ..CollectiveSizes::default()
            };
            let (root, request) = (root.map(RankId), request.map(RequestId));
            Op::Collective { kind, comm, root, sizes, buffers: CollectiveBuffers::default(), request }
        }
        _ => {
            let message = format!("weft has no operation {name}: this is a bug in weft");
            return Err(pyo3::exceptions::PyRuntimeError::new_err(message));
        }
    })
}
