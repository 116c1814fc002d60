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
//! accesses and for atomics: [`Protocol::one_sided`], [`Protocol::atomics`].
//!
//! Every operation is answered when it is complete at the target. A fence waits for the answers to all
//! operations of the rank, then goes through a barrier: so when it ends, the operations of all ranks are
//! complete at both sides. Flush and unlock wait for the answers alone. Post, start, complete and wait are in
//! `groups`.
//!
//! # Source
//! MPI 4.1 chapter 12; MPICH 4, `src/mpid/ch4/generic/mpidig_rma.h` (active messages and their
//! acknowledgements) and `mpidig_win.h` (`MPIDIG_mpi_win_fence`: remote completion, then a barrier).
//! MPICH 3.2.1 sums the numbers of operations by a reduce-scatter instead of acknowledging them.
//!
//! # Not modelled
//! - Exclusion by locks: the trace does not say whether they are shared, and all are taken for such; a lock is
//!   granted at once, or when it is [asked for](crate::active).
//! - What members tell each other when a window is created: it is a barrier.
//! - The order of accumulates, atomicity between native and emulated ones, and the second operand of a
//!   compare-and-swap on the wire.
//! - Request-based operations complete when they are complete at the target.

use crate::collective::executor::Call;
use crate::error::MsgError;
use crate::groups::Groups;
use crate::matching::Owner;
use crate::nic::{Access, Envelope, EnvelopeKind, Nic, SendToken};
use crate::process::{Incoming, Outgoing, Process, SendState, WaitingFor};
use crate::protocol::{ActiveMessages, LARGEST, OneSidedPath, Protocol, WaitCosts, cost};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use weft_trace::op::{Collective, CollectiveSizes, CommId, OneSided, RequestId, WindowId, WindowSync};
use weft_units::{Bytes, RankId};

/// A window, as one of its members sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Window {
    id: WindowId,
    comm: CommId,
    /// Own operations without an answer.
    pending: u32,
    /// Where the program posts and starts.
    groups: Option<Box<Groups>>,
}

/// What a synchronization waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Synchronization {
    kind: WindowSync,
    window: u32,
    /// Only the operations on this target.
    target: Option<RankId>,
    /// Whether it asks for the end of locks when these are over.
    ends_locks: bool,
}

/// The windows of one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Windows {
    table: Vec<Window>,
    waiting: Option<Synchronization>,
}

impl Windows {
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

/// An operation as the program calls it.
pub(crate) struct AccessCall {
    pub kind: OneSided,
    pub window: WindowId,
    pub target: RankId,
    pub bytes: Bytes,
    pub request: Option<RequestId>,
}

impl Access {
    /// What an operation of the program does at its target.
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
    /// A window exists from here on, for all members of `comm`.
    pub(crate) fn create_window(
        &mut self,
        window: WindowId,
        comm: CommId,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) -> Result<(), MsgError> {
        self.communicators.index(comm, self.rank, self.ranks)?;
        let windows = self.windows.get_or_insert_default();
        if windows.table.iter().any(|known| known.id == window) {
            return Err(MsgError::WindowInUse { window });
        }
        windows.table.push(Window { id: window, comm, pending: 0, groups: None });
        self.barrier(comm, protocol, nic)
    }

    /// Starts an operation on the memory of `target`.
    pub(crate) fn access(
        &mut self,
        call: &AccessCall,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) -> Result<(), MsgError> {
        let (window, comm) = self.window(call.window)?;
        self.check_peer("target", call.target, comm)?;
        if call.bytes.get() > LARGEST {
            return Err(MsgError::MessageTooLarge { bytes: call.bytes });
        }
        if let Some(request) = call.request {
            self.requests.open(request)?;
        }
        let owner = call.request.map_or(Owner::Nobody, Owner::Request);
        let access = Access::of(call.kind);
        nic.spend(Work::SendCall, protocol.send_call);
        if call.target == self.rank {
            if access.reduces() {
                nic.spend_in_memory(Work::CollectiveWork, protocol.reduction(call.bytes));
            } else {
                nic.spend_in_memory(Work::MemoryCopy, protocol.copy(call.bytes));
            }
            self.complete(owner, protocol, nic);
            return Ok(());
        }
        let mut envelope = Envelope {
            kind: EnvelopeKind::Access(access),
            collective: false,
            source: self.rank,
            // Its own number for the window: it comes back with the answer.
            tag: window as i32,
            comm,
            bytes: call.bytes,
            send: 0,
            receive: 0,
        };
        let key = self.expect_answer(window, owner, call.target, envelope);
        envelope.send = key;
        let asks = protocol.active_messages != ActiveMessages::None;
        if asks && access.reduces() && protocol.path(access) == OneSidedPath::Emulated {
            self.send_operation(access, call.target, key, call.bytes, protocol, nic);
            return Ok(());
        }
        let eager = call.bytes <= protocol.eager_limit;
        let payload = match (protocol.path(access), access.takes_data()) {
            (OneSidedPath::Native, takes_data) => {
                nic.spend(Work::DataSend, protocol.data_send);
                if takes_data { protocol.data_header + call.bytes } else { protocol.control_bytes }
            }
            (OneSidedPath::Emulated, true) if eager => {
                nic.spend(Work::SendCopy, cost(protocol.send_copy_rate, call.bytes));
                protocol.eager_header + call.bytes
            }
            (OneSidedPath::Emulated, takes_data) => {
                nic.spend(Work::ControlSend, protocol.control_send);
                if takes_data {
                    envelope.kind = EnvelopeKind::Announce(access);
                }
                protocol.control_bytes
            }
        };
        nic.post(call.target, envelope, payload, SendToken::UNAWAITED);
        Ok(())
    }

    /// Synchronizes a window.
    pub(crate) fn synchronize(
        &mut self,
        kind: WindowSync,
        window: WindowId,
        target: Option<RankId>,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) -> Result<(), MsgError> {
        let (place, comm) = self.window(window)?;
        let target = match (kind, target) {
            (
                WindowSync::Lock
                | WindowSync::Unlock
                | WindowSync::Flush
                | WindowSync::Post
                | WindowSync::Start,
                Some(target),
            ) => {
                self.check_peer("target", target, comm)?;
                Some(target)
            }
            (WindowSync::Post | WindowSync::Start, None) => {
                return Err(MsgError::NoGroup { operation: sync_name(kind).to_owned() });
            }
            _ => None,
        };
        if let (WindowSync::Post, Some(origin)) = (kind, target) {
            nic.spend(Work::SendCall, protocol.send_call);
            self.groups(window).into_iter().for_each(|groups| groups.expose(origin));
            self.tell_of_window(EnvelopeKind::Posted, origin, window, protocol, nic);
            return Ok(());
        }
        let locks = matches!(kind, WindowSync::Lock | WindowSync::LockAll);
        let asks = protocol.active_messages != ActiveMessages::None;
        if locks && !asks {
            // It is granted at once.
            return Ok(());
        }
        if locks {
            self.ask_for_locks(place, target, protocol, nic)?;
        } else if asks && protocol.wait_costs == WaitCosts::Polls {
            // MPICH polls where it need not wait, too.
            nic.spend(Work::WaitCall, protocol.wait_call * 2);
        }
        self.begin_wait(protocol, nic);
        if let Some(windows) = &mut self.windows {
            let ends_locks = asks && matches!(kind, WindowSync::Unlock | WindowSync::UnlockAll);
            windows.waiting = Some(Synchronization { kind, window: place as u32, target, ends_locks });
        }
        self.waiting = WaitingFor::Window;
        Ok(())
    }

    /// The rank waits in a synchronization: whether it is over, or goes on as a barrier.
    pub(crate) fn resume_synchronization(&mut self, protocol: &Protocol, nic: &mut impl Nic) {
        let Some(Synchronization { kind, window, target, ends_locks }) =
            self.windows.as_ref().and_then(|windows| windows.waiting)
        else {
            return;
        };
        let of_target = |outgoing: &Outgoing| {
            outgoing.state == SendState::Access
                && outgoing.envelope.tag == window as i32
                && Some(outgoing.to) == target
        };
        let Some(windows) = &mut self.windows else { return };
        let table = &mut windows.table[window as usize];
        let id = table.id;
        let pending = match (kind, target) {
            (WindowSync::Start, Some(target)) => !table.groups.get_or_insert_default().start(target),
            (WindowSync::Wait, _) => !table.groups.get_or_insert_default().wait(),
            (_, None) => table.pending > 0,
            (_, Some(_)) => self.sends.iter().any(|(_, outgoing)| of_target(outgoing)),
        };
        if pending {
            return;
        }
        if ends_locks {
            windows.waiting = Some(Synchronization { kind, window, target, ends_locks: false });
            // The communicator was there when the window was made.
            if let Err(error) = self.ask_for_locks(window as usize, target, protocol, nic) {
                self.fault = Some(Box::new(error));
            }
            return self.resume_synchronization(protocol, nic);
        }
        windows.waiting = None;
        self.waiting = WaitingFor::Nothing;
        if kind == WindowSync::Complete {
            let targets = self.groups(id).map(Groups::complete).unwrap_or_default();
            for target in targets {
                self.tell_of_window(EnvelopeKind::Completed, target, id, protocol, nic);
            }
            return;
        }
        let Some(windows) = &mut self.windows else { return };
        if matches!(kind, WindowSync::Fence | WindowSync::Free) {
            let comm = windows.table[window as usize].comm;
            // The communicator was there when the window was made, and a barrier has no sizes.
            if let Err(error) = self.barrier(comm, protocol, nic) {
                self.fault = Some(Box::new(error));
            }
        }
    }

    /// An operation of another rank is to be carried out by this rank's processor.
    pub(crate) fn carry_out(
        &mut self,
        access: Access,
        envelope: &Envelope,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        if access.takes_data() {
            nic.spend(Work::ReceiveMessage, protocol.receive_message);
            nic.spend(Work::ReceiveCopy, cost(protocol.receive_copy_rate, envelope.bytes));
        } else {
            nic.spend(Work::ControlReceive, protocol.control_receive);
        }
        self.answer(access, envelope, protocol, nic);
    }

    /// Another rank announces an operation with much data.
    pub(crate) fn admit(&mut self, envelope: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::ControlReceive, protocol.control_receive);
        let receive = self.receives.insert(Incoming { owner: Owner::Nobody, envelope: *envelope }) as u32;
        self.control(EnvelopeKind::Admit, &Envelope { receive, ..*envelope }, protocol, nic);
    }

    /// The target has room: the data goes out.
    pub(crate) fn admitted(&mut self, envelope: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::ControlReceive, protocol.control_receive);
        nic.spend(Work::DataSend, protocol.data_send);
        let data = Envelope { kind: EnvelopeKind::Data, source: self.rank, ..*envelope };
        nic.post(envelope.source, data, protocol.data_header + envelope.bytes, SendToken::UNAWAITED);
    }

    /// The data of an operation is in place: it is reduced where that is asked for, and answered.
    pub(crate) fn answer(
        &mut self,
        access: Access,
        envelope: &Envelope,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        if access.reduces() {
            nic.spend_in_memory(Work::CollectiveWork, protocol.reduction(envelope.bytes));
        }
        let payload = if !access.returns_data() {
            nic.spend(Work::ControlSend, protocol.control_send);
            protocol.control_bytes
        } else if envelope.bytes <= protocol.eager_limit {
            nic.spend(Work::ControlSend, protocol.control_send);
            nic.spend(Work::SendCopy, cost(protocol.send_copy_rate, envelope.bytes));
            protocol.eager_header + envelope.bytes
        } else {
            nic.spend(Work::DataSend, protocol.data_send);
            protocol.data_header + envelope.bytes
        };
        let answer = Envelope { kind: EnvelopeKind::Answer(access), source: self.rank, ..*envelope };
        nic.post(envelope.source, answer, payload, SendToken::UNAWAITED);
    }

    /// An operation of this rank is complete at its target, and what it returns is here.
    pub(crate) fn answered(
        &mut self,
        access: Access,
        envelope: &Envelope,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        let eager = envelope.bytes <= protocol.eager_limit;
        match (protocol.path(access), access.returns_data()) {
            // Its interface has put what came into memory, as RDMA does with data and notifications.
            (OneSidedPath::Native, _) | (OneSidedPath::Emulated, false) => {
                nic.spend(Work::ControlReceive, protocol.control_receive)
            }
            (OneSidedPath::Emulated, true) => {
                nic.spend(Work::ReceiveMessage, protocol.receive_message);
                if eager {
                    nic.spend(Work::ReceiveCopy, cost(protocol.receive_copy_rate, envelope.bytes));
                }
            }
        }
        self.done(envelope.send as usize, protocol, nic);
    }

    /// `to` is asked for something on the window in this place: the number by which it answers.
    fn expect_answer(&mut self, place: usize, owner: Owner, to: RankId, envelope: Envelope) -> u32 {
        if let Some(windows) = &mut self.windows {
            windows.table[place].pending += 1;
        }
        self.sends.insert(Outgoing { owner, to, state: SendState::Access, envelope }) as u32
    }

    /// What the send `key` asked for has been done.
    pub(crate) fn done(&mut self, key: usize, protocol: &Protocol, nic: &mut impl Nic) {
        let outgoing = self.sends.remove(key);
        if let Some(windows) = &mut self.windows {
            windows.table[outgoing.envelope.tag as usize].pending -= 1;
        }
        self.complete(outgoing.owner, protocol, nic);
    }

    /// Asks for locks of a window, or for their end: that of `target`, or of all members.
    fn ask_for_locks(
        &mut self,
        place: usize,
        target: Option<RankId>,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) -> Result<(), MsgError> {
        let comm = self.windows.as_ref().map_or(CommId::WORLD, |windows| windows.table[place].comm);
        let index = self.communicators.index(comm, self.rank, self.ranks)?;
        let targets = match target {
            Some(target) => vec![target],
            None => (0..self.communicators.size(index)).map(|m| self.communicators.rank(index, m)).collect(),
        };
        let own = self.rank;
        for to in targets.into_iter().filter(|to| *to != own) {
            let envelope = Envelope {
                kind: EnvelopeKind::Eager,
                collective: false,
                source: self.rank,
                tag: place as i32,
                comm,
                bytes: Bytes::ZERO,
                send: 0,
                receive: 0,
            };
            let key = self.expect_answer(place, Owner::Nobody, to, envelope);
            self.ask(to, key, protocol, nic);
        }
        Ok(())
    }

    /// Whether the rank waits for an operation on `to`.
    pub(crate) fn waits_for_access(&self, outgoing: &Outgoing) -> bool {
        outgoing.state == SendState::Access
            && self.waiting == WaitingFor::Window
            && self.windows.as_ref().and_then(|windows| windows.waiting).is_some_and(|waiting| {
                outgoing.envelope.tag == waiting.window as i32
                    && waiting.target.is_none_or(|target| target == outgoing.to)
            })
    }

    /// The groups of a window; `None`: there is no such window.
    pub(crate) fn groups(&mut self, window: WindowId) -> Option<&mut Groups> {
        let table = &mut self.windows.as_mut()?.table;
        let window = table.iter_mut().find(|known| known.id == window)?;
        Some(window.groups.get_or_insert_default())
    }

    /// The place of a window in the table, and its communicator.
    fn window(&self, window: WindowId) -> Result<(usize, CommId), MsgError> {
        let table = self.windows.as_ref().map_or(&[][..], |windows| &windows.table);
        let place = table.iter().position(|known| known.id == window);
        let place = place.ok_or(MsgError::UnknownWindow { rank: self.rank, window })?;
        Ok((place, table[place].comm))
    }

    /// A barrier of the library's own.
    fn barrier(&mut self, comm: CommId, protocol: &Protocol, nic: &mut impl Nic) -> Result<(), MsgError> {
        let sizes = CollectiveSizes::default();
        let call = Call { kind: Collective::Barrier, comm, root: None, sizes: &sizes, request: None };
        self.start_collective(&call, protocol, nic)
    }
}
