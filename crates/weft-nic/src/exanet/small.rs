//! The way of a small message through the interface that it is for: mailbox, answer, entry, host.
//!
//! ```text
//!   packet ─┬─ a slot ─────────────────────► verdict ─┬─► answer
//!           └─ none: waits, in its turn ──────┘       └─► entry ─► host port ─► process
//! ```
//!
//! # Not modelled
//! Packets that wait hold up nothing else: the way from the link to the mailbox has room for all of them.

use super::announcement::Expected;
use super::header::Header;
use super::node::{ExanetNode, Hardware};
use super::transmit::Answer;
use super::{ExanetNic, ExanetTimer};
use crate::block::Block;
use crate::host::{Delivered, Host};
use crate::host_port::HOST_PORT;
use crate::mailbox::{Envelope, MAILBOX, QueueChange, Refusal, Taken};
use crate::observer::{BlockChange, Observer as _, Stage, StateChange};
use crate::packetizer::ChannelId;
use crate::ports::{Arrival, Crossing, PortEvent, SmallPacket, Verdict};
use crate::server::Service;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::{InterfaceContext, Packet};
use weft_units::{Bytes, Time};

/// Bytes of a word of a packet, and words of header and footer: TR-488 §4.1.
const WORD: Bytes = Bytes::new(16);
const CONTROL_WORDS: u64 = 2;

/// A small message that has come.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct CamePacket {
    packet: Packet,
    /// Header and tail, as they have come.
    came: Taken,
    channel: ChannelId,
    damaged: bool,
}

/// Small messages that wait for a slot of the mailbox, in the order in which they have come.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct WaitingPackets {
    packets: VecDeque<CamePacket>,
}

impl CamePacket {
    fn words(&self) -> u64 {
        self.packet.payload().div_ceil(WORD) + CONTROL_WORDS
    }
}

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// The tail of a packet for the mailbox has come.
    pub(super) fn small(&mut self, packet: &Packet, channel: ChannelId) -> Option<Delivered<H::Header>> {
        let (now, parameters) = (self.fabric.now(), self.parameters);
        let damaged = self.hardware.check.finds(packet, self.fabric.endpoint(), parameters.check);
        let came = Taken { head: now - packet.serialization(), tail: now };
        let came = CamePacket { packet: *packet, came, channel, damaged };
        let Hardware { waiting, mailbox, .. } = &*self.hardware;
        let is_first = waiting.as_ref().is_none_or(|waiting| waiting.packets.is_empty());
        if is_first && mailbox.takes(came.came, came.words(), &parameters.mailbox) == came.came {
            return self.taken(&came, came.came);
        }
        self.wait(came);
        None
    }

    /// All slots of the mailbox are taken.
    #[cold]
    fn wait(&mut self, came: CamePacket) {
        let packet = self.seen(&came);
        self.port(|| Crossing::Waits(packet));
        let waiting = self.hardware.waiting.get_or_insert_default();
        waiting.packets.push_back(came);
        if waiting.packets.len() == 1 {
            self.await_slot();
        }
    }

    /// Has the first packet that waits taken when there is a slot for it.
    fn await_slot(&mut self) {
        let Hardware { waiting, mailbox, .. } = &*self.hardware;
        let Some(first) = waiting.as_ref().and_then(|waiting| waiting.packets.front()) else { return };
        let taken = mailbox.takes(first.came, first.words(), &self.parameters.mailbox);
        self.fabric.set_timer(taken.tail, ExanetTimer::Slot);
    }

    /// The first packet that has waited has been taken, with its last word now.
    #[cold]
    pub(super) fn slot_taken(&mut self) -> Option<Delivered<H::Header>> {
        let came = self.hardware.waiting.as_mut()?.packets.pop_front()?;
        let taken = self.hardware.mailbox.takes(came.came, came.words(), &self.parameters.mailbox);
        let delivered = self.taken(&came, taken);
        self.await_slot();
        delivered
    }

    /// A packet as the mailbox sees it.
    fn seen(&self, came: &CamePacket) -> SmallPacket {
        let CamePacket { packet, came: Taken { head, .. }, channel, damaged } = *came;
        let Packet { source: from, message, .. } = packet;
        let (bytes, target) = (packet.payload(), Some(Header::owner_of(&packet)));
        SmallPacket { head, from, message, channel, bytes, target, damaged, payload: None }
    }

    /// The mailbox has a packet whole now, which it has taken from `taken.head` on.
    fn taken(&mut self, came: &CamePacket, taken: Taken) -> Option<Delivered<H::Header>> {
        let CamePacket { packet, channel, .. } = *came;
        let Packet { source: from, message: number, hops, .. } = packet;
        let parameters = self.parameters;
        let small = SmallPacket { head: taken.head, ..self.seen(came) };
        // Headers are kept until their packet is accepted.
        let expected = self.hardware.headers.get((from, number)).copied();
        let in_place = if self.hardware.in_place.is_some() { self.verdict_in_place(&small) } else { None };
        let (checked, put) = in_place.unwrap_or_else(|| self.verdict(&small));
        let hardware = &mut *self.hardware;
        let (refusal, is_put) = (put.err(), put == Ok(true));
        let words = parameters.mailbox.entry.div_ceil(parameters.host_port.word);
        let free = parameters.mailbox.clock.later_edge(checked.ended, if is_put { words } else { 0 });
        hardware.mailbox.hold_slot(taken, came.came, free, &parameters.mailbox);
        if is_put {
            hardware.mailbox.accept(from, number, &parameters.mailbox);
        }
        let answer = Answer { to: from, message: number, channel, refusal };
        hardware.transmit.answer(checked.ended, answer);
        self.port(|| {
            let verdict = Verdict { checked: checked.ended, refusal, put: is_put };
            Crossing::Arrived(Arrival { packet: small, verdict })
        });
        self.fabric.request_injection();
        put.ok()?;
        let Some(Expected { header, created_at, transfer, .. }) = expected else {
            self.repeated(is_put.then_some(checked.ended), &small);
            return None;
        };
        let (interface, hardware, bytes) = (expected?.interface(), &mut *self.hardware, transfer.bytes);
        if let Some(data) = &mut hardware.data {
            data.memory.write((from, number), (0, 0), packet.payload().get(), packet.is_corrupted());
        }
        hardware.headers.remove((from, number));
        let entry = parameters.mailbox.entry.max(bytes);
        let written = hardware.memory.port.write(checked.ended, entry, &parameters.host_port);
        let noticed = written.ended + parameters.mailbox.poll;
        if packet.is_watched() {
            let endpoint = self.fabric.endpoint();
            let mut stage = |block, came, began, ended| {
                let (source, message) = (from, number);
                self.stage(&Stage { endpoint, source, message, block, came, began, ended });
            };
            stage(MAILBOX, came.came.tail, checked.began, checked.ended);
            stage(HOST_PORT, checked.ended, written.began, written.ended);
            stage(Block::POLLING, written.ended, written.ended, noticed);
        }
        let message = Delivered {
            noticed,
            from,
            number,
            bytes,
            created_at,
            hops,
            channel: 0,
            header,
            interface,
            in_mailbox: true,
        };
        self.compare(&message);
        Some(message)
    }

    /// A packet has been acknowledged whose message was here before, or is given up. If it has been put all
    /// the same, at `put`, its process finds that as it sees the entry.
    #[cold]
    fn repeated(&mut self, put: Option<Time>, packet: &SmallPacket) {
        let (hardware, parameters) = (&mut *self.hardware, self.parameters);
        hardware.ledger().counts.duplicates += 1;
        if let Some((put, (interface, _))) = put.zip(packet.target) {
            let written = hardware.memory.port.write(put, parameters.mailbox.entry, &parameters.host_port);
            hardware.take_entry(interface, written.ended + parameters.mailbox.poll);
        }
    }

    /// Whether a packet was accepted before, as the model's mailbox knows.
    fn was_accepted(&self, packet: &SmallPacket) -> bool {
        let SmallPacket { from, message, .. } = *packet;
        match self.parameters.mailbox.remembered {
            Some(_) => self.hardware.mailbox.has_accepted(from, message),
            None => self.hardware.headers.get((from, message)).is_none(),
        }
    }

    /// The verdict of the model's mailbox on a packet whose last word is here now, and the time for it;
    /// whether it is put.
    #[inline]
    fn verdict(&mut self, packet: &SmallPacket) -> (Service, Result<bool, Refusal>) {
        let SmallPacket { head, target, damaged, .. } = *packet;
        let was_accepted = !damaged && self.was_accepted(packet);
        let (now, parameters, watched) = (self.fabric.now(), &self.parameters.mailbox, self.hardware.watched);
        let (hardware, report) = (&mut *self.hardware, &mut queue_report(self.fabric, watched));
        let checked = hardware.mailbox.check(head, now, parameters);
        if was_accepted {
            return (checked, Ok(false));
        }
        let (interface, domain) = target.unwrap_or_default();
        let envelope = Envelope { interface, domain, damaged };
        let put = hardware.mailbox.put(now, &envelope, parameters, report).map(|()| true);
        (checked, put)
    }

    /// The same of the mailbox in the place of the model's; `None`: there is none.
    #[cold]
    fn verdict_in_place(&mut self, packet: &SmallPacket) -> Option<(Service, Result<bool, Refusal>)> {
        let (now, parameters, watched) = (self.fabric.now(), &self.parameters.mailbox, self.hardware.watched);
        let (hardware, report) = (&mut *self.hardware, &mut queue_report(self.fabric, watched));
        let Verdict { checked, refusal, put } = hardware.mailbox_in_place()?.arrive(packet, now);
        let checked = hardware.mailbox.check_until(packet.head, now, checked, &parameters.clock);
        match packet.target {
            Some((to, _)) if put => hardware.mailbox.follow_put(now, to, parameters, report),
            Some((to, _)) if refusal == Some(Refusal::Full) => {
                hardware.mailbox.follow_takes(now, to, parameters, report);
            }
            _ => {}
        }
        Some((checked, refusal.map_or(Ok(put), Err)))
    }
}

/// Reports changes of queues to the observer.
fn queue_report<'a, H: Host>(
    fabric: &'a mut InterfaceContext<'_, '_, ExanetNic<H>>,
    watched: bool,
) -> impl FnMut(QueueChange) + 'a {
    let (endpoint, now) = (fabric.endpoint(), fabric.now());
    let output = fabric.output();
    move |change| {
        let at = change.at;
        output.state(&StateChange { endpoint, at, change: BlockChange::Mailbox(change) });
        if watched {
            output.port(&PortEvent { endpoint, at: now, what: Crossing::Queue(change) });
        }
    }
}
