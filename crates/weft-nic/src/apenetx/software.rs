//! The software around the card: LibQCM and the driver, as named costs.
//!
//! ```text
//!  driver   LibQCM ─► system call ─► copy ─► driver ─► doorbell       the request, then the tx descriptor
//!  fast     LibQCM ─► line of 64 B
//! ```
//! # Source
//! APX §3.2: the send request is wrapped into a transmission request by LibQCM, passed to the driver by an
//! IOCTL, which forges a tx descriptor. D1.4 §9.2.1: the fast send is a store of one line by the library. No
//! cost is printed: all are in the machine file, with their source.
//!
//! # Not modelled
//! The process goes on while its request is in the driver; its next request waits until the call is over.
//! Cores that calls and handlers take from other processes.

use super::part::CardPart;
use serde::{Deserialize, Serialize};
use weft_units::Span;

weft_keys::keys! {
    /// The costs.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct SoftwareParameters {
        /// The library, LibQCM, packs a request, or makes the line of a fast send.
        library: Span;
        /// Into the kernel and back.
        system_call: Span;
        /// The driver forges a descriptor and puts it into the ring.
        send: Span, key("driver_send");
        /// A request or a completion is copied between kernel and process.
        copy: Span;
        /// From an interrupt at the root to the driver's handler.
        interrupt: Span;
        /// The driver reads a completion and finds its process.
        receive: Span, key("driver_receive");
        /// The scheduler wakes a process.
        context_switch: Span;
        /// The process finds, among the completions that a system call has copied, those of its buffers.
        search: Span;
        /// A poll that finds a completion.
        poll: Span;
        /// An entry of the user's queue: its buffer found, the consumer's index written.
        queue_entry: Span;
    }
}

impl SoftwareParameters {
    /// The cost of a step on the way in.
    #[inline]
    pub(super) const fn takes(&self, part: CardPart) -> Span {
        match part {
            CardPart::Library => self.library,
            CardPart::SystemCall => self.system_call,
            CardPart::Driver => self.receive,
            CardPart::Copy => self.copy,
            CardPart::Interrupt => self.interrupt,
            CardPart::ContextSwitch => self.context_switch,
            CardPart::Search => self.search,
            CardPart::Polling => self.poll,
            CardPart::QueueEntry => self.queue_entry,
            _ => Span::ZERO,
        }
    }

    /// The steps of a send until the doorbell or the line, with their costs.
    #[inline]
    pub(super) fn send_steps(&self, fast: bool) -> [(CardPart, Span); 4] {
        let driver = |span| if fast { Span::ZERO } else { span };
        [
            (CardPart::Library, self.library),
            (CardPart::SystemCall, driver(self.kernel_entry())),
            (CardPart::Copy, driver(self.copy)),
            (CardPart::Driver, driver(self.send)),
        ]
    }

    /// The first half of a system call.
    #[inline]
    const fn kernel_entry(&self) -> Span {
        Span::from_ps(self.system_call.as_ps() / 2)
    }

    /// The rest of a system call, behind the doorbell.
    #[inline]
    pub(super) fn out_of_kernel(&self, fast: bool) -> Span {
        if fast { Span::ZERO } else { self.system_call.saturating_sub(self.kernel_entry()) }
    }

    /// How long a process is in a call that sends.
    pub fn send_call(&self, fast: bool) -> Span {
        let steps = self.send_steps(fast).into_iter().map(|(_, takes)| takes);
        steps.fold(self.out_of_kernel(fast), Span::saturating_add)
    }

    #[cfg(test)]
    pub(super) fn of_ns(ns: [u64; 10]) -> SoftwareParameters {
        let [library, system_call, send, copy, interrupt, receive, rest @ ..] = ns.map(Span::from_ns);
        let [context_switch, search, poll, queue_entry] = rest;
        SoftwareParameters {
            library,
            system_call,
            send,
            copy,
            interrupt,
            receive,
            context_switch,
            search,
            poll,
            queue_entry,
        }
    }
}
