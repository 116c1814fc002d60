//! Calls of a rank that is the hardware behind its node's ports: kernels that keep their own time.
//!
//! ```text
//!   kernels ── send_packet, at the rank's clock ──► port            wait_until: something has come, or that
//!           ◄─ take_packet, with its time ───────── port            time; computes_until: neither is wanted
//!           ── free_packet, at the rank's clock ──► port
//! ```
//! Packets take no time of the rank's, and nothing is polled: a kernel is woken by its FIFO.
//!
//! # Source
//! TEXTAROSSA D2.8 §2, §3.

use super::Rank;
use super::interfaces::descriptor;
use crate::device::{Call, Post, PostKind, State};
use crate::interface::{Address, Arrival, Small, WantedDomain};
use crate::operation::Lent;

impl Rank {
    /// Allocates the virtual interface of that number; see `weft_port_open`.
    ///
    /// # Errors
    /// The errno of the system software's refusal.
    pub fn open_port(&mut self, number: u16) -> Result<Address, i32> {
        let (data, flags) = (WantedDomain::Job.into(), Post::NAMED);
        self.open(Post { data, flags, to_interface: number.into(), ..Post::default() })
    }

    /// Sends a packet whose header carries words of the program; see `weft_port_send`.
    ///
    /// # Errors
    /// EMSGSIZE: it is too large.
    pub fn send_packet(
        &mut self,
        number: u16,
        to: Address,
        header: [u8; Post::HEADER],
        payload: Lent,
    ) -> Result<(), i32> {
        if payload.length > self.largest_small() {
            return Err(libc::EMSGSIZE);
        }
        self.enter(Call::Send);
        let bytes = [&header[..], &payload.copy()].concat();
        let flags = Post::HEADED | Post::SILENT;
        let post = Post { length: payload.length as u64, flags, ..descriptor(number, to, 0) };
        self.port.post_raw(PostKind::Small, post, &bytes);
        self.port.leave();
        Ok(())
    }

    /// Takes the oldest packet that has come, header first, and when; see `weft_port_take`.
    pub fn take_packet(&mut self, number: u16) -> Option<(Vec<u8>, Arrival)> {
        let Small { from, bytes, at, way } = self.interfaces.of(number)?.mailbox.pop_front()?;
        Some((bytes, way.arrival(from, at)))
    }

    /// The oldest packet leaves the receiving FIFOs now; see `weft_port_free`.
    pub fn free_packet(&mut self, number: u16) {
        self.enter(Call::None);
        self.port.post_raw(PostKind::Take, Post { interface: number.into(), ..Post::default() }, &[]);
        self.port.leave();
    }

    /// Takes the end of the oldest packet sent: when the port had all of it, in ps.
    ///
    /// # Errors
    /// The errno of one that has failed.
    pub fn take_sent(&mut self, number: u16) -> Result<Option<u64>, i32> {
        let Some(interface) = self.interfaces.of(number) else { return Err(libc::EBADF) };
        match interface.completions.pop_front() {
            Some(failed) => Err(failed.error),
            None => Ok(interface.sent.pop_front()),
        }
    }

    /// Waits until something has come, or until `until`, in ps; see `weft_wait_until`. `None`: for ever,
    /// unless nothing can come. Returns whether something has.
    pub fn wait_until(&mut self, until: Option<u64>) -> bool {
        self.enter(Call::Poll);
        self.port.polled_interface = self.interfaces.open.first().map(|interface| interface.own.interface);
        let mut any = self.take_notices();
        if !any {
            match until {
                None => self.port.wait(State::Wait, 0),
                Some(ps) if ps > self.port.shared.clock() => self.port.wait_until(ps),
                Some(_) => {}
            }
            any = self.take_notices();
        }
        if let Some(ps) = until.filter(|_| !any) {
            self.port.computes_until(ps);
        }
        self.port.leave();
        any
    }

    /// The program has computed until `ps`; see `weft_pass_until`.
    pub fn pass_until(&mut self, ps: u64) {
        self.enter(Call::None);
        self.port.computes_until(ps);
        self.port.leave();
    }

    /// Says what a kernel of this process has done with so much time; see `weft_kernel_time`.
    pub fn tell_kernel_time(&mut self, names: &[u8], activity: u32, ps: u64) {
        self.enter(Call::None);
        let post = Post { data: activity.into(), length: ps, ..Post::default() };
        self.port.post_raw(PostKind::KernelTime, post, names);
        self.port.leave();
    }

    /// Reads a register of the node's network interface, or writes `value` there; see `weft_register_read`.
    ///
    /// # Errors
    /// The errno of its refusal.
    pub fn access_register(&mut self, address: u32, value: Option<u32>) -> Result<u32, i32> {
        self.enter(Call::None);
        // The access is at the rank's time.
        self.port.gives_way();
        self.take_notices();
        self.interfaces.register = None;
        let kind = if value.is_some() { PostKind::WriteRegister } else { PostKind::ReadRegister };
        let data = value.unwrap_or_default().into();
        self.port.post_raw(kind, Post { key: address.into(), data, ..Post::default() }, &[]);
        let answer = loop {
            self.port.hand_over(State::Ready);
            self.take_notices();
            if let Some(answer) = self.interfaces.register.take() {
                break answer;
            }
        };
        self.port.leave();
        answer
    }
}
