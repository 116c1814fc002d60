//! Calls of a rank on its virtual interfaces.

use super::Rank;
use crate::device::{Call, Post, PostKind, State};
use crate::interface::{Address, Delivery, Interface, InterfaceCompletion, Small, WantedDomain};
use crate::operation::Lent;
use weft_msg::{Transport, Work};
use weft_units::Bytes;

impl Rank {
    /// Allocates a virtual interface in a protection domain; see `weft_interface_allocate`.
    ///
    /// # Errors
    /// The errno of the system software's refusal.
    pub fn open_interface(&mut self, domain: WantedDomain) -> Result<Address, i32> {
        self.open(Post { data: u64::from(domain), ..Post::default() })
    }

    /// Asks the system software for a virtual interface.
    pub(super) fn open(&mut self, post: Post) -> Result<Address, i32> {
        self.enter(Call::None);
        self.interfaces.answer = None;
        self.port.post_raw(PostKind::Open, post, &[]);
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
        // What reaches the interface before the rank's clock finds it open.
        self.port.gives_way();
        self.interfaces.open.retain(|interface| interface.own.interface != number);
        self.port.post_raw(PostKind::Close, Post { interface: number.into(), ..Post::default() }, &[]);
        self.port.leave();
    }

    /// Only registered memory is reached by it from now on; see `weft_interface_restrict`.
    pub fn restrict_interface(&mut self, number: u16) {
        self.enter(Call::None);
        self.port.post_raw(PostKind::Restrict, Post { interface: number.into(), ..Post::default() }, &[]);
        self.port.leave();
    }

    /// The address of an interface of this rank; `None`: it is not open.
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
        self.port.spend(Work::SendCall, self.posts.small(Bytes::new(bytes.len() as u64)));
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
        let taken = small.map(|Small { from, bytes, .. }| {
            buffer.fill(&bytes);
            self.port.post_raw(PostKind::Take, Post { interface: number.into(), ..Post::default() }, &[]);
            self.port.pattern.begin_again();
            (bytes.len(), from)
        });
        self.port.leave();
        taken
    }

    /// RDMA write, and behind it a word at `notify` in the target's memory; see `weft_interface_write`.
    pub fn put(&mut self, number: u16, transfer: Transfer, notify: Option<(u64, u64)>) {
        self.enter(Call::Write);
        let (place, data) = notify.unwrap_or_default();
        let flags = if notify.is_some() { Post::NOTIFIES } else { 0 };
        self.write_by(Post { notify: place, data, flags, ..transfer.descriptor(number) });
    }

    /// RDMA write with a choice of how both sides learn of its end; see `weft_interface_deliver`.
    pub fn deliver(
        &mut self,
        number: u16,
        transfer: Transfer,
        (place, data): (u64, u64),
        delivery: Delivery,
    ) {
        self.enter(Call::Write);
        let silent = if delivery.is_answered { 0 } else { Post::SILENT };
        let notifies = if place != 0 { Post::NOTIFIES } else { 0 };
        let [source, target] = delivery.memories.map(|memory| memory as u32);
        let memories = source << Post::SOURCE_SHIFT | target << Post::TARGET_SHIFT;
        let flags = silent | notifies | memories | (delivery.path as u32) << Post::PATH_SHIFT;
        self.write_by(Post { notify: place, data, flags, ..transfer.descriptor(number) });
    }

    /// Posts an RDMA write, by which its call ends.
    fn write_by(&mut self, post: Post) {
        self.port.post_raw(PostKind::Put, post, &[]);
        self.port.spend(Work::DataSend, self.posts.write());
        self.port.leave();
    }

    /// RDMA read; see `weft_interface_read`.
    pub fn get(&mut self, number: u16, transfer: Transfer) {
        self.enter(Call::Read);
        self.port.post_raw(PostKind::Get, transfer.descriptor(number), &[]);
        self.port.spend(Work::DataSend, self.posts.read());
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
            self.port.pattern.begin_again();
        }
        self.port.leave();
        taken
    }
}

/// An RDMA transfer between this rank's memory and that behind another interface.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The rank's own memory.
    pub local: Lent,
    /// The place at the peer.
    pub remote: Address,
    /// The program's name for the operation.
    pub context: usize,
}

impl Transfer {
    /// The fields of its post that do not depend on its direction.
    fn descriptor(self, interface: u16) -> Post {
        let (local, length) = self.local.place();
        Post { local, length, ..descriptor(interface, self.remote, self.context) }
    }
}

/// The fields that the posts of all operations of an interface share.
pub(super) fn descriptor(interface: u16, to: Address, context: usize) -> Post {
    Post {
        to: to.node,
        to_interface: to.interface.into(),
        remote: to.memory,
        interface: interface.into(),
        context: context as u64,
        ..Post::default()
    }
}
