//! Virtual interfaces: the user-space communication API of ExaNet, without messaging above it.
//!
//! ```text
//!   weft_interface_send  ──► packetizer ─────────► mailbox ──► weft_interface_receive
//!   weft_interface_write ──► RDMA ───────────────► shared memory, then the notification word
//!   weft_interface_read  ──► RDMA of the target ─► own memory
//!                              └── ended, refused ──► weft_interface_poll
//! ```
//! Only opening and closing go through the system software; all else are stores and loads of the process's own. The
//! software above costs nothing here: what a descriptor takes is the interface's time, and an empty poll takes
//! the machine's `host.poll`.
//!
//! # Source
//! FORTH-ICS / TR-488 §5.1.
//!
//! # Not modelled
//! Virtual time of opening and closing, which are system calls.

use crate::device::{Call, Notice, NoticeKind, Post, PostKind, State};
use crate::operation::{Lent, flag};
use crate::rank::Rank;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::c_void;

/// A place in the global virtual address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Address {
    /// A virtual address in the process that owns the interface. Small messages go to the interface, and do not use it.
    pub memory: u64,
    /// The node: which network interface of the machine.
    pub node: u32,
    /// The virtual interface there.
    pub interface: u16,
    /// Its protection domain. Only told: who may reach what is decided by the domains that the system software has
    /// noted at both ends.
    pub domain: u16,
}

/// An operation of a virtual interface that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct InterfaceCompletion {
    /// As given to the operation.
    pub context: *mut c_void,
    /// Which it was: WEFT_SENT (told only where it has failed), WEFT_WRITTEN or WEFT_READ.
    pub flags: u64,
    /// 0, or an errno: EACCES (refused: another protection domain, or memory that is not shared so), ENXIO (no such
    /// interface), ENETUNREACH (no such node), ETIMEDOUT (never acknowledged), EFAULT (the local buffer).
    pub error: i32,
}

/// A small message that has come.
struct Small {
    from: Address,
    bytes: Vec<u8>,
}

/// A virtual interface of this rank.
#[derive(Default)]
struct Interface {
    own: Address,
    mailbox: VecDeque<Small>,
    completions: VecDeque<InterfaceCompletion>,
    /// Pieces of shared memory, by number.
    shares: BTreeSet<u64>,
    next_share: u64,
}

/// The virtual interfaces of a rank.
#[derive(Default)]
pub struct Interfaces {
    open: Vec<Interface>,
    /// What the system software said to the last wish for one.
    answer: Option<Result<Address, i32>>,
}

impl Interfaces {
    /// The interfaces are no more.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    fn of(&mut self, number: u16) -> Option<&mut Interface> {
        self.open.iter_mut().find(|interface| interface.own.interface == number)
    }

    /// Something has happened to them.
    pub(crate) fn notice(&mut self, notice: &Notice, bytes: Vec<u8>) {
        let (node, number) = (notice.node, notice.interface as u16);
        match NoticeKind::of_interface(notice.kind) {
            Some(NoticeKind::Opened) => {
                let own = Address { memory: 0, node, interface: number, domain: notice.data as u16 };
                self.answer = Some(if notice.error == 0 { Ok(own) } else { Err(notice.error) });
            }
            Some(NoticeKind::Small) => {
                let (interface, domain) = (notice.from_interface as u16, notice.data as u16);
                let from = Address { memory: 0, node, interface, domain };
                if let Some(interface) = self.of(number) {
                    interface.mailbox.push_back(Small { from, bytes });
                }
            }
            _ => {
                let flags = match notice.token {
                    kind if kind == PostKind::Put as u32 => flag::WRITTEN,
                    kind if kind == PostKind::Get as u32 => flag::READ,
                    _ => flag::SENT,
                };
                let (context, error) = (notice.data as *mut c_void, notice.error);
                if let Some(interface) = self.of(number) {
                    interface.completions.push_back(InterfaceCompletion { context, flags, error });
                }
            }
        }
    }
}

impl Rank {
    /// Allocates a virtual interface; see `weft_interface_allocate`.
    ///
    /// # Errors
    /// ENOSPC: the node has no more.
    pub fn open_interface(&mut self, private: bool) -> Result<Address, i32> {
        self.enter(Call::None);
        let flags = if private { Post::PRIVATE } else { 0 };
        self.interfaces.answer = None;
        self.port.post_raw(PostKind::Open, Post { flags, ..Post::default() }, &[]);
        // The system software answers before virtual time goes on.
        let answer = loop {
            self.port.hand_over(State::Ready);
            self.take_notices();
            if let Some(answer) = self.interfaces.answer.take() {
                break answer;
            }
        };
        if let Ok(own) = answer {
            self.interfaces.open.push(Interface { own, ..Interface::default() });
        }
        self.port.leave();
        answer
    }

    /// Gives it back; see `weft_interface_free`. What is under way is forgotten.
    pub fn close_interface(&mut self, number: u16) {
        self.enter(Call::None);
        self.interfaces.open.retain(|interface| interface.own.interface != number);
        self.port.post_raw(PostKind::Close, Post { interface: number.into(), ..Post::default() }, &[]);
        self.port.leave();
    }

    /// Where an interface of this rank is; `None`: it is not open.
    pub fn interface_address(&mut self, number: u16) -> Option<Address> {
        self.interfaces.of(number).map(|interface| interface.own)
    }

    /// Bytes of the largest small message.
    pub fn largest_small(&self) -> usize {
        self.port.shared.identity().small as usize
    }

    /// Sends a small message; see `weft_interface_send`.
    ///
    /// # Errors
    /// EMSGSIZE: it is too large.
    pub fn send_small(&mut self, number: u16, to: Address, bytes: Lent, context: usize) -> Result<(), i32> {
        if bytes.length > self.largest_small() {
            return Err(libc::EMSGSIZE);
        }
        self.enter(Call::Send);
        let post = descriptor(number, to, context);
        let bytes = bytes.copy();
        self.port.post_raw(PostKind::Small, Post { length: bytes.len() as u64, ..post }, &bytes);
        self.port.leave();
        Ok(())
    }

    /// Takes the oldest small message: its length, as much of it as fits in `buffer`, and who sent it.
    pub fn receive_small(&mut self, number: u16, buffer: Lent) -> Option<(usize, Address)> {
        self.begin_poll();
        if self.interfaces.of(number).is_some_and(|interface| interface.mailbox.is_empty()) {
            self.port.polled_interface = Some(number);
            self.make_progress(true);
        }
        let small = self.interfaces.of(number).and_then(|interface| interface.mailbox.pop_front());
        let taken = small.map(|Small { from, bytes }| {
            buffer.fill(&bytes);
            self.port.post_raw(PostKind::Take, Post { interface: number.into(), ..Post::default() }, &[]);
            self.port.begin_again();
            (bytes.len(), from)
        });
        self.port.leave();
        taken
    }

    /// Lets peers of the interface's domain reach memory: the number of the share.
    pub fn share(&mut self, number: u16, memory: Lent, may_read: bool, may_write: bool) -> Option<u64> {
        let interface = self.interfaces.of(number)?;
        let key = interface.next_share;
        interface.next_share += 1;
        interface.shares.insert(key);
        let flags = if may_read { Post::MAY_READ } else { 0 } | if may_write { Post::MAY_WRITE } else { 0 };
        let (local, length) = (memory.address as u64, memory.length as u64);
        self.enter(Call::None);
        let post = Post { flags, local, length, key, interface: number.into(), ..Post::default() };
        self.port.post_raw(PostKind::Share, post, &[]);
        self.port.leave();
        Some(key)
    }

    /// Lets them no more; says whether it was shared.
    pub fn unshare(&mut self, number: u16, key: u64) -> bool {
        if !self.interfaces.of(number).is_some_and(|interface| interface.shares.remove(&key)) {
            return false;
        }
        self.enter(Call::None);
        let post = Post { key, interface: number.into(), ..Post::default() };
        self.port.post_raw(PostKind::Unshare, post, &[]);
        self.port.leave();
        true
    }

    /// RDMA write, and behind it a word at `notify` in the target's memory; see `weft_interface_write`.
    pub fn put(&mut self, number: u16, local: Lent, to: Address, notify: Option<(u64, u64)>, context: usize) {
        self.enter(Call::Write);
        let post = descriptor(number, to, context);
        let (place, data) = notify.unwrap_or_default();
        let post = Post {
            local: local.address as u64,
            length: local.length as u64,
            notify: place,
            data,
            flags: if notify.is_some() { Post::NOTIFIES } else { 0 },
            ..post
        };
        self.port.post_raw(PostKind::Put, post, &[]);
        self.port.leave();
    }

    /// RDMA read; see `weft_interface_read`.
    pub fn get(&mut self, number: u16, local: Lent, from: Address, context: usize) {
        self.enter(Call::Read);
        let post = descriptor(number, from, context);
        let (address, length) = (local.address as u64, local.length as u64);
        self.port.post_raw(PostKind::Get, Post { local: address, length, ..post }, &[]);
        self.port.leave();
    }

    /// Makes progress and takes completions of an interface; see `weft_interface_poll`.
    pub fn poll_interface(
        &mut self,
        number: u16,
        mut take: impl FnMut(InterfaceCompletion) -> bool,
    ) -> usize {
        self.begin_poll();
        if self.interfaces.of(number).is_some_and(|interface| interface.completions.is_empty()) {
            self.port.polled_interface = Some(number);
            self.make_progress(true);
        }
        let mut taken = 0;
        if let Some(interface) = self.interfaces.of(number) {
            while interface.completions.front().is_some_and(|completion| take(*completion)) {
                interface.completions.pop_front();
                taken += 1;
            }
        }
        if taken > 0 {
            self.port.begin_again();
        }
        self.port.leave();
        taken
    }
}

/// What all operations of an interface say.
fn descriptor(interface: u16, to: Address, context: usize) -> Post {
    Post {
        to: to.node,
        to_interface: to.interface.into(),
        remote: to.memory,
        interface: interface.into(),
        context: context as u64,
        ..Post::default()
    }
}
