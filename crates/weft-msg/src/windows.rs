//! The windows of one rank: its operations on them, and what a synchronization waits for.
//!
//! ```text
//!   Windows ─┬─ table: Window ─┬─ pending   own operations without an answer
//!            │                 └─ exposure  who may access whom, between post and wait, start and complete
//!            └─ waiting: the synchronization that the rank is in
//! ```

use crate::error::MsgError;
use crate::protocol::OneSidedPath;
use crate::sends::Sends;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_trace::op::{CommId, OneSided, RequestId, WindowId, WindowSync};
use weft_units::{Address, Bytes, RankId};

/// An operation as the program calls it.
pub(crate) struct AccessCall {
    pub kind: OneSided,
    pub window: WindowId,
    pub target: RankId,
    pub bytes: Bytes,
    pub buffer: Option<Address>,
    pub request: Option<RequestId>,
}

/// A message by which one member of a window tells another that an epoch begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EpochNotice {
    /// The sender may be accessed: a post.
    Posted,
    /// The accesses of the sender are over: a complete.
    Completed,
}

/// The epochs of one window that both sides bound, as one rank sees them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Exposure {
    /// Whom the rank may access until it completes.
    started: Vec<RankId>,
    /// Who may access the rank until it has waited.
    exposed: Vec<RankId>,
    /// Posts of others for this rank that no start has taken.
    posts: BTreeMap<RankId, u32>,
    /// Completes of others that no wait has taken.
    completes: BTreeMap<RankId, u32>,
}

/// Takes one of `from`, if there is one.
fn take(counts: &mut BTreeMap<RankId, u32>, from: RankId) -> bool {
    match counts.get_mut(&from) {
        Some(count) if *count > 1 => *count -= 1,
        Some(_) => drop(counts.remove(&from)),
        None => return false,
    }
    true
}

impl Exposure {
    /// The rank lets `origin` access it.
    pub fn expose(&mut self, origin: RankId) {
        self.exposed.push(origin);
    }

    /// Takes the post of `target`, which may be accessed from now on; whether there was one.
    fn start(&mut self, target: RankId) -> bool {
        let posted = take(&mut self.posts, target);
        if posted {
            self.started.push(target);
        }
        posted
    }

    /// Ends the rank's accesses: who is to be told.
    pub fn complete(&mut self) -> Vec<RankId> {
        std::mem::take(&mut self.started)
    }

    /// Ends the accesses of others, if all that were let in have completed; whether they had.
    fn wait(&mut self) -> bool {
        let over = self.exposed.iter().all(|origin| self.completes.contains_key(origin));
        if over {
            for origin in std::mem::take(&mut self.exposed) {
                take(&mut self.completes, origin);
            }
        }
        over
    }

    /// `from` has posted or completed.
    pub fn note(&mut self, notice: EpochNotice, from: RankId) {
        let counts = match notice {
            EpochNotice::Posted => &mut self.posts,
            EpochNotice::Completed => &mut self.completes,
        };
        *counts.entry(from).or_default() += 1;
    }
}

/// A window, as one of its members sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Window {
    id: WindowId,
    comm: CommId,
    /// The place of the rank's part in its memory; `None`: not known.
    memory: Option<Address>,
    /// Own operations without an answer.
    pending: u32,
    /// The epochs of post and start; `None` until the program uses them.
    exposure: Option<Box<Exposure>>,
}

/// A synchronization that a rank waits in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Synchronization {
    pub kind: WindowSync,
    /// The rank's own number for the window.
    pub window: u32,
    /// Only the operations on this target are waited for; `None`: those on all.
    pub target: Option<RankId>,
    /// Whether it asks for the end of locks when the operations are over.
    pub ends_locks: bool,
    /// Polls before it goes on when nothing is waited for any more.
    pub polls: u32,
}

impl Synchronization {
    /// Polls of one of this kind behind the answer to its last operation, which came by `path`.
    ///
    /// # Source
    /// Counted in runs of `weft run` (MPICH 5.0.2, `ch4:ofi` without atomics): one poll for the counters of
    /// RDMA, one in a loop for active messages behind it. An answer by RDMA comes before both of them, that
    /// of an active message ends the loop. A flush has one poll more then.
    pub fn polls_at_end(kind: WindowSync, path: OneSidedPath) -> u32 {
        use WindowSync::{Complete, Fence, Flush, FlushAll, Free, Unlock, UnlockAll};
        match (kind, path) {
            (Complete | Fence | Flush | FlushAll | Free | Unlock | UnlockAll, OneSidedPath::Native) => 2,
            (Flush | FlushAll, OneSidedPath::Emulated) => 1,
            _ => 0,
        }
    }
}

/// The windows of one rank. It numbers them by itself, from 0.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Windows {
    table: Vec<Window>,
    /// The synchronization that the rank waits in.
    pub waiting: Option<Synchronization>,
}

impl Windows {
    /// A window exists from here on, for all members of `comm`.
    ///
    /// # Errors
    /// Its number is in use.
    pub fn create(
        &mut self,
        window: WindowId,
        comm: CommId,
        memory: Option<Address>,
    ) -> Result<(), MsgError> {
        if self.table.iter().any(|known| known.id == window) {
            return Err(MsgError::WindowInUse { window });
        }
        self.table.push(Window { id: window, comm, memory, pending: 0, exposure: None });
        Ok(())
    }

    /// The rank's own number for a window, and its communicator; `None`: there is no such window.
    pub fn find(&self, window: WindowId) -> Option<(u32, CommId)> {
        let number = self.table.iter().position(|known| known.id == window)?;
        Some((number as u32, self.table[number].comm))
    }

    /// The place of the rank's part of a window; `None`: not known.
    pub fn memory(&self, window: u32) -> Option<Address> {
        self.table.get(window as usize)?.memory
    }

    /// The name of a window at all members.
    pub fn id(&self, window: u32) -> WindowId {
        self.table[window as usize].id
    }

    /// The communicator of a window.
    pub fn comm(&self, window: u32) -> CommId {
        self.table[window as usize].comm
    }

    /// One more operation of the rank waits for an answer.
    pub fn expect_answer(&mut self, window: u32) {
        self.table[window as usize].pending += 1;
    }

    /// One operation of the rank has its answer, by this path.
    pub fn answered(&mut self, window: u32, path: OneSidedPath) {
        self.table[window as usize].pending -= 1;
        if let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.window == window) {
            waiting.polls = Synchronization::polls_at_end(waiting.kind, path);
        }
    }

    /// The epochs of a window that both sides bound; `None`: there is no such window.
    pub fn exposure(&mut self, window: WindowId) -> Option<&mut Exposure> {
        let window = self.table.iter_mut().find(|known| known.id == window)?;
        Some(window.exposure.get_or_insert_default())
    }

    /// Whether a synchronization must go on waiting, with these sends of the rank.
    pub fn must_wait(&mut self, synchronization: &Synchronization, sends: &Sends) -> bool {
        let Synchronization { kind, window, target, .. } = *synchronization;
        let table = &mut self.table[window as usize];
        match (kind, target) {
            (WindowSync::Start, Some(target)) => !table.exposure.get_or_insert_default().start(target),
            (WindowSync::Wait, _) => !table.exposure.get_or_insert_default().wait(),
            (_, None) => table.pending > 0,
            (_, Some(target)) => sends.accesses(target, window),
        }
    }

    /// Whether the synchronization that the rank is in waits for an operation on `target` in this window.
    pub fn waits_for_access(&self, target: RankId, window: u32) -> bool {
        self.waiting.is_some_and(|waiting| {
            window == waiting.window && waiting.target.is_none_or(|awaited| awaited == target)
        })
    }

    /// The name of the synchronization that the rank waits in.
    pub fn call(&self) -> &'static str {
        self.waiting.map_or("a synchronization", |waiting| sync_name(waiting.kind))
    }
}

/// The name of a synchronization.
pub(crate) fn sync_name(kind: WindowSync) -> &'static str {
    match kind {
        WindowSync::Fence => "window fence",
        WindowSync::Post => "window post",
        WindowSync::Start => "window start",
        WindowSync::Complete => "window complete",
        WindowSync::Wait => "window wait",
        WindowSync::Lock => "window lock",
        WindowSync::Unlock => "window unlock",
        WindowSync::LockAll => "window lock-all",
        WindowSync::UnlockAll => "window unlock-all",
        WindowSync::Flush => "window flush",
        WindowSync::FlushAll => "window flush-all",
        WindowSync::Free => "window free",
    }
}
