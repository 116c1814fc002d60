//! The PCI Express port of a card, transaction by transaction.
//!
//! ```text
//!   processor ── store: MWr ═══════════════════► card     doorbells, lines
//!   memory    ── data: CplD ═══════════════════► card  ┐
//!   memory    ◄══════════ requests: MRd ── card        ┘  a read
//!   memory    ◄══════════ data: MWr ────── card           a write, completion entries, interrupts
//! ```
//! Each direction is a serial line: packets of the transaction layer (TLPs) follow each other, each with its
//! framing, header and CRC. A receiver has so many credits for headers and data: a TLP that finds none waits.
//! A read takes a tag until its last completion has come, and space for its data from the start. TLPs that
//! are posted keep their order, so that what announces data is never in memory before the data.
//!
//! # Source
//! PCI Express Base Specification 4.0, §2.2 (TLPs), §2.3.1.1 (read completion boundary), §2.4 (ordering),
//! §2.6 (credits), §3.5 (acknowledgements), §4.2.2 (128b/130b). APX §3.1 and D1.4 §9.2.1: Gen3 and Gen4, x16.
//!
//! # Not modelled
//! Bit errors and replay of the data link layer, relaxed ordering, several virtual channels, power states.
//! Devices that share the lanes, switches between card and root. A memory that is busy with something else.

mod line;
mod parameters;
mod tlp;
mod window;

pub use parameters::{Memory, PcieGeneration, PcieLanes, PcieParameters};
pub use tlp::{Pieces, split};

use line::Line;
use serde::{Deserialize, Serialize};
use tlp::Run;
use weft_units::{Bytes, Span, Time};
use window::Window;

/// The port.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pcie {
    /// From the root to the card.
    down: Line,
    /// From the card to the root.
    up: Line,
    /// Credits of the card for what processors store.
    stores: Window,
    /// Credits of the root for what the card writes.
    writes: Window,
    /// Credits of the root for requests.
    requests: Window,
    /// Tags of reads, and space for their completions.
    reads: Window,
    /// The time at which the last posted TLP of the card is in memory.
    committed: Time,
    /// The time at which a memory that is slower than the port is free.
    limited: Time,
}

/// A transfer over the port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The time of the request.
    pub came: Time,
    /// The time at which its first TLP was on the line.
    pub began: Time,
    /// The time at which its last TLP has left its sender.
    pub left: Time,
    /// The time at which all of it is at the other side: in the card, or to be seen in memory.
    pub ended: Time,
}

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressRange {
    /// The first address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Pcie {
    /// A processor stores `bytes` into the card, by one TLP for each line of the largest payload.
    pub fn store(&mut self, came: Time, bytes: u64, parameters: &PcieParameters) -> Transfer {
        let pieces = split(AddressRange { address: 0, bytes }, parameters.max_payload);
        let (limits, back) = (parameters.posted_limits(), parameters.one_way + parameters.one_way);
        let way = Way { window: &mut self.stores, line: &mut self.down, limits, back };
        let (began, left) = way.post_all(came, &pieces, parameters);
        self.up.owe(pieces.count());
        Transfer { came, began, left, ended: left + parameters.one_way }
    }

    /// The card writes a range of `memory`. `translate` answers when the address of what is at the root at
    /// a time is known there.
    #[inline]
    pub fn write(
        &mut self,
        came: Time,
        range: AddressRange,
        (memory, parameters): (&Memory, &PcieParameters),
        translate: impl FnOnce(Time) -> Time,
    ) -> Transfer {
        let (began, left, kept_up) = self.post_write(came, range, (memory, parameters));
        let seen = translate(left + parameters.one_way).max(kept_up) + memory.write;
        // Posted TLPs pass no other: of two, the later one is never seen first.
        self.committed = self.committed.max(seen);
        Transfer { came, began, left, ended: self.committed }
    }

    /// The same where the address is known: entries and signals of a driver.
    #[inline(never)]
    pub fn write_mapped(
        &mut self,
        came: Time,
        range: AddressRange,
        of: (&Memory, &PcieParameters),
    ) -> Transfer {
        self.write(came, range, of, |at| at)
    }

    /// The TLPs of a write. Returns when the first began, when the last has left, and when the memory has
    /// kept up with them.
    #[inline(never)]
    fn post_write(
        &mut self,
        came: Time,
        range: AddressRange,
        (memory, parameters): (&Memory, &PcieParameters),
    ) -> (Time, Time, Time) {
        let pieces = split(range, parameters.max_payload);
        let back = parameters.one_way + parameters.one_way + memory.write;
        let limits = parameters.posted_limits();
        let way = Way { window: &mut self.writes, line: &mut self.up, limits, back };
        let (began, left) = way.post_all(came, &pieces, parameters);
        self.down.owe(pieces.count());
        (began, left, self.keep_up(memory, began + parameters.one_way, range.bytes))
    }

    /// The card reads a range of `memory`. `translate` is as that of [`Pcie::write`], and the first request
    /// asks for it. On its own, whatever translates: descriptors and data are read by the same instructions.
    #[inline(never)]
    pub fn read(
        &mut self,
        came: Time,
        range: AddressRange,
        of: (&Memory, &PcieParameters),
        translate: &mut dyn FnMut(Time) -> Time,
    ) -> Transfer {
        let mut transfer = Transfer { came, began: Time::NEVER, left: came, ended: came };
        // All requests but the first begin at a multiple of their size, and find the translation there.
        let (mut address, mut known) = (range.address, Known { translate, at: None });
        split(range, of.1.max_read_request).visit_runs(|count, bytes| {
            let requests = (count, AddressRange { address: std::mem::take(&mut address), bytes });
            self.read_run(&mut transfer, requests, of, &mut known);
        });
        transfer
    }

    /// Reads by a run of equal requests, the first of which begins at the address.
    #[inline(never)]
    fn read_run(
        &mut self,
        transfer: &mut Transfer,
        (count, AddressRange { address, bytes }): (u32, AddressRange),
        (memory, parameters): (&Memory, &PcieParameters),
        known: &mut Known<'_>,
    ) {
        let mut rest = count;
        let completions = parameters.completions(address, bytes);
        let each = parameters.space(&completions, bytes);
        while rest > 0 {
            let limits = parameters.read_limits();
            // Without space for all of them one goes at a time, when a tag and space for its data are free.
            let (group, at) = match self.reads.take(transfer.left, rest, each, limits) {
                true => (rest, transfer.left),
                false => (1, self.reads.take_next(transfer.left, each, (limits, parameters))),
            };
            let run = Run { count: group, bytes: parameters.request_header as u32, each: [1, 0, 0] };
            let (limits, back) = (parameters.request_limits(), parameters.one_way + parameters.one_way);
            let mut way = Way { window: &mut self.requests, line: &mut self.up, limits, back };
            let (began, left) = way.post(at, run, parameters);
            let first = began + parameters.wire(parameters.request_header) + parameters.one_way;
            let ready = first.max(known.at(first)) + memory.read;
            let wire = completions.wire(parameters, bytes);
            let (since, sent) = self.down.carry_run(ready, group, wire, parameters);
            // A tag is free when the card has the last of its data.
            let kept = since.run(group, wire, each).back(parameters.one_way);
            self.reads.keep(kept, parameters);
            self.down.owe(group);
            self.up.owe(group * completions.count());
            transfer.began = transfer.began.min(began);
            transfer.left = left;
            let kept_up = self.keep_up(memory, ready, u64::from(group) * bytes);
            transfer.ended = transfer.ended.max(sent.max(kept_up) + parameters.one_way);
            rest -= group;
        }
    }

    /// The time at which a memory that is slower than the port is done with `bytes` that it begins on at
    /// `from`.
    #[inline]
    fn keep_up(&mut self, memory: &Memory, from: Time, bytes: u64) -> Time {
        let Some(rate) = memory.rate else { return from };
        self.limited = self.limited.max(from) + rate.span(Bytes::new(bytes));
        self.limited
    }

    /// The time in which each direction has carried TLPs, by name.
    pub fn worked(&self) -> [(&'static str, Span); 2] {
        [("pcie, to the card", self.down.worked()), ("pcie, to the host", self.up.worked())]
    }
}

/// The address of a read at the root.
struct Known<'a> {
    translate: &'a mut dyn FnMut(Time) -> Time,
    /// The time at which it is known, when a request has asked.
    at: Option<Time>,
}

impl Known<'_> {
    /// The time at which it is known, asked for at `now`.
    #[inline]
    fn at(&mut self, now: Time) -> Time {
        *self.at.get_or_insert_with(|| (self.translate)(now))
    }
}

/// A line with the credits of its far end for one kind of TLPs.
struct Way<'a> {
    window: &'a mut Window,
    line: &'a mut Line,
    limits: [u64; 3],
    /// From a TLP's leaving to its credits' return.
    back: Span,
}

impl Way<'_> {
    /// Posts the pieces of a range. Returns when the first began and the last has left.
    #[inline(never)]
    fn post_all(mut self, came: Time, pieces: &Pieces, parameters: &PcieParameters) -> (Time, Time) {
        let (mut first, mut last) = (Time::NEVER, came);
        pieces.visit_runs(|count, bytes| {
            // Behind what is already on the line: none takes a gap that one before it has left.
            let (began, left) = self.post(last, parameters.posted(count, bytes), parameters);
            first = first.min(began);
            last = left;
        });
        (first, last)
    }

    /// Puts a run of equal TLPs on the line, each as soon as it has credits. Returns when the first began and
    /// the last has left.
    #[inline(never)]
    fn post(&mut self, came: Time, run: Run, parameters: &PcieParameters) -> (Time, Time) {
        if !self.window.take(came, run.count, run.each, self.limits) {
            return self.post_one_by_one(came, run, parameters);
        }
        let (since, left) = self.line.carry_run(came, run.count, run.bytes, parameters);
        self.window.keep(since.run(run.count, run.bytes, run.each).back(self.back), parameters);
        (since.began, left)
    }

    /// The same where there are not credits for all.
    #[cold]
    fn post_one_by_one(&mut self, came: Time, run: Run, parameters: &PcieParameters) -> (Time, Time) {
        let mut first = None;
        let mut last = came;
        for _ in 0..run.count {
            let at = self.window.take_next(last, run.each, (self.limits, parameters));
            let (since, left) = self.line.carry_run(at, 1, run.bytes, parameters);
            self.window.keep(since.run(1, run.bytes, run.each).back(self.back), parameters);
            first = first.or(Some(since.began));
            last = left;
        }
        (first.unwrap_or(came), last)
    }
}

#[cfg(test)]
mod tests;
