//! One-sided communication: windows, operations on the memory of others, and their synchronization.
//!
//! ```text
//!   native                 origin                     target's interface      target's processor
//!     put, accumulate      ── Access(data) ─────────▶ writes, reduces
//!                          ◀───────────── Answer ────
//!     get, fetch           ── Access ───────────────▶ reads
//!                          ◀─────── Answer(data) ────
//!
//!   emulated
//!     fits the eager limit ── Access(data) ─────────────────────────────────▶ copies, reduces
//!                          ◀────────────────────────────── Answer(data) ─────
//!     longer               ── Announce ─────────────────────────────────────▶
//!                          ◀─────────────────────────────────────── Admit ───
//!                          ── Data ─────────────────▶ written in place ─────▶ reduces
//!                          ◀────────────────────────────── Answer(data) ─────
//! ```
//! Emulated, an operation is done when the target's progress rule lets it notice the request; natively its
//! processor spends nothing and no rule applies. Which of the two it is the machine says, apart for plain
//! accesses and for atomics: [`Protocol::one_sided`](crate::Protocol::one_sided),
//! [`Protocol::atomics`](crate::Protocol::atomics).
//!
//! Every operation is answered when it is complete at the target. A fence waits for the answers to all
//! operations of the rank, then goes through a barrier: so when it ends, the operations of all ranks are
//! complete at both sides. Flush and unlock wait for the answers alone. Post, start, complete and wait are in
//! `post_start`.
//!
//! # Source
//! MPI 4.1 chapter 12; MPICH 4, `src/mpid/ch4/generic/mpidig_rma.h` (active messages and their
//! acknowledgements) and `mpidig_win.h` (`MPIDIG_mpi_win_fence`: remote completion, then a barrier).
//! MPICH 3.2.1 sums the numbers of operations by a reduce-scatter instead of acknowledging them.
//!
//! # Not modelled
//! - Exclusion by locks: the trace does not say whether they are shared, and all are taken for such; a lock
//!   is granted at once, or when it is asked for (see `active`).
//! - What members tell each other when a window is created: it is a barrier.
//! - The order of accumulates, atomicity between native and emulated ones, and the second operand of a
//!   compare-and-swap on the wire.
//! - Request-based operations complete when they are complete at the target.

use super::rank::Rank;
use super::{Process, WaitingFor, memory};
use crate::collectives::CollectiveCall;
use crate::envelope::{Access, Body, Envelope, MAX_MESSAGE_BYTES, ReceiveEntry, SendEntry};
use crate::error::MsgError;
use crate::matching::Owner;
use crate::protocol::{ActiveMessages, OneSidedPath, WaitCosts, cost};
use crate::receives::PendingReceive;
use crate::sends::{PendingSend, Purpose};
use crate::transport::Transport;
use crate::windows::{AccessCall, EpochNotice, Exposure, Synchronization, sync_name};
use crate::work::Work;
use weft_trace::op::{
    Collective, CollectiveBuffers, CollectiveSizes, CommId, OneSided, WindowId, WindowSync,
};
use weft_units::{Address, Bytes, RankId};

impl Access {
    /// The action of an operation of the program at its target.
    fn of(kind: OneSided) -> Access {
        match kind {
            OneSided::Put => Access::Put,
            OneSided::Get => Access::Get,
            OneSided::Accumulate => Access::Accumulate,
            OneSided::GetAccumulate | OneSided::FetchAndOp | OneSided::CompareAndSwap => Access::Fetch,
        }
    }
}

impl Process {
    /// The rank's own number for a window, and its communicator.
    fn window(&self, window: WindowId) -> Result<(u32, CommId), MsgError> {
        let found = self.windows.as_ref().and_then(|windows| windows.find(window));
        found.ok_or(MsgError::UnknownWindow { rank: self.rank, window })
    }

    /// `to` is asked for this on the window of this number: the entry that its answer names.
    fn expect_answer(
        &mut self,
        (access, window): (Access, u32),
        owner: Owner,
        to: RankId,
        (bytes, buffer): (Bytes, Address),
    ) -> SendEntry {
        if let Some(windows) = &mut self.windows {
            windows.expect_answer(window);
        }
        self.sends.insert(PendingSend {
            owner,
            to,
            bytes,
            purpose: Purpose::Access { window, access },
            buffer,
        })
    }

    /// Whether the rank waits for the operation that this send is.
    pub(super) fn waits_for_access(&self, send: &PendingSend) -> bool {
        let Purpose::Access { window, .. } = send.purpose else { return false };
        self.call.waiting == WaitingFor::Window
            && self.windows.as_ref().is_some_and(|windows| windows.waits_for_access(send.to, window))
    }
}

impl<T: Transport> Rank<'_, T> {
    /// A window exists from here on, for all members of `comm`.
    pub(super) fn create_window(
        &mut self,
        window: WindowId,
        comm: CommId,
        memory: Option<Address>,
    ) -> Result<(), MsgError> {
        let Process { communicators, windows, rank, ranks, .. } = &mut *self.process;
        communicators.index(comm, *rank, *ranks)?;
        windows.get_or_insert_default().create(window, comm, memory)?;
        self.barrier(comm)
    }

    /// Starts an operation on the memory of `target`.
    pub(super) fn access(&mut self, call: &AccessCall) -> Result<(), MsgError> {
        let (window, comm) = self.process.window(call.window)?;
        self.process.check_peer("target", call.target, comm)?;
        if call.bytes.get() > MAX_MESSAGE_BYTES {
            return Err(MsgError::MessageTooLarge { bytes: call.bytes });
        }
        if let Some(request) = call.request {
            self.process.requests.open(request)?;
        }
        let owner = call.request.map_or(Owner::Nobody, Owner::Request);
        let access = Access::of(call.kind);
        let asks = self.protocol.active_messages != ActiveMessages::None;
        let by_message = asks && access.reduces() && self.protocol.path(access) == OneSidedPath::Emulated;
        let to_own = call.target == self.process.rank;
        // An active message has the call of its own send, and MPICH works on its own memory without one.
        if !(if to_own { self.protocol.keeps_own_messages() } else { by_message }) {
            self.spend(Work::SendCall, self.protocol.send_call);
        }
        if to_own {
            self.access_own(access, call.bytes);
            self.complete(owner);
            return Ok(());
        }
        let buffer = call.buffer.unwrap_or_else(|| memory::origin(window));
        let send = self.process.expect_answer((access, window), owner, call.target, (call.bytes, buffer));
        if by_message {
            self.send_operation(access, call.target, send, call.bytes);
        } else {
            self.request_access(access, call, (send, window));
        }
        Ok(())
    }

    /// Carries out an operation on the rank's own memory.
    fn access_own(&mut self, access: Access, bytes: Bytes) {
        let protocol = self.protocol;
        match access.reduces() {
            true => self.transport.spend_in_memory(Work::CollectiveWork, protocol.reduction(bytes)),
            false => self.transport.spend_in_memory(Work::MemoryCopy, protocol.copy(bytes)),
        }
    }

    /// Sends the request of an operation, or its announcement.
    fn request_access(&mut self, access: Access, call: &AccessCall, (send, window): (SendEntry, u32)) {
        let protocol = self.protocol;
        let mut body = Body::Access { access, send, window };
        let payload = match (protocol.path(access), access.takes_data()) {
            (OneSidedPath::Native, takes_data) => {
                self.spend(Work::DataSend, protocol.data_send);
                if takes_data { protocol.data_header + call.bytes } else { protocol.control_bytes }
            }
            (OneSidedPath::Emulated, true) if call.bytes <= protocol.eager_limit => {
                self.spend(Work::SendCopy, cost(protocol.send_copy_rate, call.bytes));
                protocol.eager_header + call.bytes
            }
            (OneSidedPath::Emulated, takes_data) => {
                self.spend(Work::ControlSend, protocol.control_send);
                if takes_data {
                    body = Body::Announce { access, send, window };
                }
                protocol.control_bytes
            }
        };
        self.post(call.target, call.bytes, body, payload);
    }

    /// Synchronizes a window.
    pub(super) fn synchronize(
        &mut self,
        kind: WindowSync,
        id: WindowId,
        target: Option<RankId>,
    ) -> Result<(), MsgError> {
        use WindowSync::{Flush, Lock, LockAll, Post, Start, Unlock, UnlockAll};
        let (window, comm) = self.process.window(id)?;
        let target = match (kind, target) {
            (Lock | Unlock | Flush | Post | Start, Some(target)) => {
                self.process.check_peer("target", target, comm)?;
                Some(target)
            }
            (Post | Start, None) => return Err(MsgError::NoGroup { operation: sync_name(kind).to_owned() }),
            _ => None,
        };
        if let (Post, Some(origin)) = (kind, target) {
            self.expose(id, origin);
            return Ok(());
        }
        let locks = matches!(kind, Lock | LockAll);
        let asks = self.protocol.active_messages != ActiveMessages::None;
        if locks && !asks {
            // It is granted at once.
            return Ok(());
        }
        if locks {
            self.ask_for_locks(window, target)?;
        }
        self.process.call.waiting = WaitingFor::Window;
        self.begin_wait();
        if let Some(windows) = &mut self.process.windows {
            let ends_locks = asks && matches!(kind, Unlock | UnlockAll);
            let polls = Synchronization::polls_at_end(kind, OneSidedPath::Native);
            windows.waiting = Some(Synchronization { kind, window, target, ends_locks, polls });
        }
        Ok(())
    }

    /// Lets `origin` access the rank, and tells it.
    fn expose(&mut self, window: WindowId, origin: RankId) {
        if self.protocol.active_messages == ActiveMessages::None || origin == self.process.rank {
            // An active message has the call of its own send.
            self.spend(Work::SendCall, self.protocol.send_call);
        }
        if let Some(exposure) = self.process.windows.as_mut().and_then(|windows| windows.exposure(window)) {
            exposure.expose(origin);
        }
        self.notify_epoch(EpochNotice::Posted, origin, window);
    }

    /// Ends the synchronization that the rank waits in if it can, or carries it on as a barrier.
    pub(super) fn resume_synchronization(&mut self) {
        let Process { windows: Some(windows), sends, .. } = &mut *self.process else { return };
        let Some(synchronization) = windows.waiting else { return };
        if windows.must_wait(&synchronization, sends) {
            return;
        }
        let Synchronization { kind, window, target, ends_locks, polls } = synchronization;
        let protocol = self.protocol;
        if protocol.active_messages != ActiveMessages::None && protocol.wait_costs == WaitCosts::Polls {
            self.spend(Work::WaitCall, protocol.wait_call * u64::from(polls));
        }
        let Process { windows: Some(windows), .. } = &mut *self.process else { return };
        if ends_locks {
            windows.waiting = Some(Synchronization { ends_locks: false, polls: 0, ..synchronization });
            // The communicator was there when the window was made.
            if let Err(error) = self.ask_for_locks(window, target) {
                self.process.fail_later(error);
            }
            return self.resume_synchronization();
        }
        windows.waiting = None;
        let (id, comm) = (windows.id(window), windows.comm(window));
        let started = match kind {
            WindowSync::Complete => windows.exposure(id).map(Exposure::complete).unwrap_or_default(),
            _ => Vec::new(),
        };
        self.process.call.waiting = WaitingFor::Nothing;
        for target in started {
            self.notify_epoch(EpochNotice::Completed, target, id);
        }
        if matches!(kind, WindowSync::Fence | WindowSync::Free) {
            // The communicator was there when the window was made, and a barrier has no sizes.
            if let Err(error) = self.barrier(comm) {
                self.process.fail_later(error);
            }
        }
    }

    /// An operation of another rank is to be carried out by this rank's processor.
    pub(super) fn carry_out(&mut self, access: Access, request: &Envelope, origin: (SendEntry, u32)) {
        if access.takes_data() {
            self.spend(Work::ReceiveMessage, self.protocol.receive_message);
            self.spend(Work::ReceiveCopy, cost(self.protocol.receive_copy_rate, request.bytes));
        } else {
            self.spend(Work::ControlReceive, self.protocol.control_receive);
        }
        self.answer(access, request, origin);
    }

    /// Another rank announces an operation with much data.
    pub(super) fn admit(&mut self, send: SendEntry, announced: Envelope) {
        self.spend(Work::ControlReceive, self.protocol.control_receive);
        let buffer = match announced.body {
            Body::Announce { window, .. } => self.process.window_memory(window),
            _ => Address::default(),
        };
        let receive =
            self.process.receives.insert(PendingReceive { owner: Owner::Nobody, announced, buffer });
        self.post_control(announced.source, announced.bytes, Body::Admit { send, receive });
    }

    /// The target has room: the data goes out.
    pub(super) fn admitted(&mut self, to: RankId, bytes: Bytes, (send, receive): (SendEntry, ReceiveEntry)) {
        self.spend(Work::ControlReceive, self.protocol.control_receive);
        self.spend(Work::DataSend, self.protocol.data_send);
        self.post(to, bytes, Body::Data { send, receive }, self.protocol.data_header + bytes);
    }

    /// The data of an operation is in place: it is reduced where that is asked for, and answered. `request`
    /// is the operation or its announcement; `origin` names it at the rank that has asked for it.
    pub(super) fn answer(&mut self, access: Access, request: &Envelope, (send, window): (SendEntry, u32)) {
        let (protocol, bytes) = (self.protocol, request.bytes);
        if access.reduces() {
            self.transport.spend_in_memory(Work::CollectiveWork, protocol.reduction(bytes));
        }
        let payload = if !access.returns_data() {
            self.spend(Work::ControlSend, protocol.control_send);
            protocol.control_bytes
        } else if bytes <= protocol.eager_limit {
            self.spend(Work::ControlSend, protocol.control_send);
            self.spend(Work::SendCopy, cost(protocol.send_copy_rate, bytes));
            protocol.eager_header + bytes
        } else {
            self.spend(Work::DataSend, protocol.data_send);
            protocol.data_header + bytes
        };
        self.post(request.source, bytes, Body::Answer { access, send, window }, payload);
    }

    /// An operation of this rank is complete at its target, and the data that it returns is here.
    pub(super) fn answered(&mut self, access: Access, bytes: Bytes, send: SendEntry) {
        let protocol = self.protocol;
        match (protocol.path(access), access.returns_data()) {
            // Its interface has put the data into memory, as RDMA does with data and notifications.
            (OneSidedPath::Native, _) | (OneSidedPath::Emulated, false) => {
                self.spend(Work::ControlReceive, protocol.control_receive)
            }
            (OneSidedPath::Emulated, true) => {
                self.spend(Work::ReceiveMessage, protocol.receive_message);
                if bytes <= protocol.eager_limit {
                    self.spend(Work::ReceiveCopy, cost(protocol.receive_copy_rate, bytes));
                }
            }
        }
        self.operation_done(send, protocol.path(access));
    }

    /// The operation of this rank in entry `send` has been carried out, by this path.
    pub(super) fn operation_done(&mut self, send: SendEntry, path: OneSidedPath) {
        let done = self.process.sends.take(send);
        if let (Some(windows), Purpose::Access { window, .. }) = (&mut self.process.windows, done.purpose) {
            windows.answered(window, path);
        }
        self.complete(done.owner);
    }

    /// Asks for locks of a window, or for their end: that of `target`, or of all members.
    fn ask_for_locks(&mut self, window: u32, target: Option<RankId>) -> Result<(), MsgError> {
        let Process { communicators, windows, rank, ranks, .. } = &mut *self.process;
        let own = *rank;
        let comm = windows.as_ref().map_or(CommId::WORLD, |windows| windows.comm(window));
        let index = communicators.index(comm, own, *ranks)?;
        let targets = match target {
            Some(target) => vec![target],
            None => communicators.group(index).ranks().collect(),
        };
        for to in targets.into_iter().filter(|to| *to != own) {
            let nothing = (Bytes::ZERO, Address::default());
            let operation = self.process.expect_answer((Access::Fetch, window), Owner::Nobody, to, nothing);
            self.ask(to, operation);
        }
        Ok(())
    }

    /// A barrier of the library's own.
    fn barrier(&mut self, comm: CommId) -> Result<(), MsgError> {
        let sizes = CollectiveSizes::default();
        let (kind, buffers) = (Collective::Barrier, CollectiveBuffers::default());
        let call = CollectiveCall { kind, comm, root: None, sizes: &sizes, buffers, request: None };
        self.start_collective(&call)
    }
}
