//! The link: its line, the sending of packets over it, and its counters.
//!
//! ```text
//!              ┌─ credits left? ─┐   ┌── line: framing, rate ──┐
//!   packet ──► │     Credits     │──►│ head begins … tail ends │── latency ──► input buffer, or an
//!              └────────▲────────┘   └───────────┬─────────────┘               endpoint
//!                       │                  fault: lost? corrupted? …
//!                       └── ReturningCredits ◄────── latency ─── space becomes free, or the packet was lost
//! ```
//! An endpoint and an output of a switch send in the same way, by [`LinkSender`]. It borrows its state from
//! where the hot path wants it: a port keeps its line and what it has carried in its one cache line, and
//! credits, faults and rare counters in tables of their own.
//!
//! What a link layer adds to a packet, and what it repairs, is in `link_layer/`.
//!
//! # Not modelled
//! Repair of a packet that a fault has lost: it stays lost, and its credit returns.

use crate::congestion::LinkControl;
use crate::credit::Credits;
use crate::fault::{Fate, Fault};
use crate::link_counts::LinkCounts;
use crate::link_layer::{LayerKind, LayerState, LinkLayer, OnLine, PowerReport};
use crate::packet::Packet;
use crate::parameters::Speedup;
use crate::pause::PAUSE_FRAME;
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;
use weft_topo::{Attachment, LinkClass};
use weft_units::{BitRate, Bytes, EndpointId, LineCode, PacketCounts, PortId, Span, SwitchId, Time};

/// One kind of link, per direction, as a machine file has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkParameters {
    /// Bits per second on the line, coding included.
    pub rate: BitRate,
    /// Line code.
    pub code: LineCode,
    /// From the last stage of the sender to the first of the receiver: SERDES and wire. Credits take
    /// the same time back.
    pub latency: Span,
    /// Bytes that the line carries for every packet besides its header, payload and footer
    /// (start and end of packet, inter-packet gap).
    pub framing: Bytes,
    /// Of the logic in the switch behind the link that deals with a packet before it asks for an output.
    pub routing: Span,
    /// Link layer.
    pub layer: LinkLayer,
}

impl LinkParameters {
    /// Bytes that the line carries for a packet with header, payload and footer of `packet`: on average,
    /// where gaps make up for rounding.
    pub fn bytes_on_line(&self, packet: Bytes) -> Bytes {
        self.layer.average_on_line(packet, self.framing)
    }
}

/// The beginning of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LinkEnd {
    /// At an endpoint: injection.
    Endpoint(EndpointId),
    /// At a port of a switch.
    Port(SwitchId, PortId),
}

/// Counters of one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkReport {
    /// The link's beginning.
    pub from: LinkEnd,
    /// The link's end.
    pub to: Attachment,
    /// The link's kind.
    pub class: LinkClass,
    /// Packets.
    pub packets: u64,
    /// Payload.
    pub payload: Bytes,
    /// Time during which the line was busy with bits, those of pause frames included.
    pub busy: Span,
    /// Time during which a packet could have gone but for credits or a pause.
    pub stalled: Span,
    /// Time during which the sender of a virtual channel was paused.
    pub paused: Span,
    /// Pause frames that its sender has obeyed.
    pub pause_frames: u64,
    /// The most that one virtual channel's buffer behind it has held. Counted under pause and drop; zero
    /// under credits, and where it leads to an endpoint.
    pub most_held: Bytes,
    /// The rate that it offers each flow, where congestion control knows one of links.
    pub fair_rate: Option<BitRate>,
    /// Packets of these to which it did something, or that found no space behind it.
    pub counts: PacketCounts,
    /// Power states; `None`: the machine says nothing of them.
    pub power: Option<PowerReport>,
}

/// Time per byte on a line, exactly: shared by all links of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineRate {
    /// Picoseconds per byte are `numerator / denominator`, in lowest terms.
    numerator: u64,
    denominator: u64,
}

impl LineRate {
    /// A line of `rate` bits per second under `code`. `None` where the rate or the code is zero, or so
    /// uneven that one byte exceeds 64-bit arithmetic.
    pub fn new(rate: BitRate, code: LineCode) -> Option<LineRate> {
        let numerator = 8u128 * 1_000_000_000_000 * u128::from(code.wire);
        let denominator = u128::from(rate.bits_per_second()) * u128::from(code.payload);
        if numerator == 0 || denominator == 0 {
            return None;
        }
        let common = gcd(numerator, denominator);
        Some(LineRate {
            numerator: u64::try_from(numerator / common).ok()?,
            denominator: u64::try_from(denominator / common).ok()?,
        })
    }

    /// The rate of something that is faster by `speedup`. `None`: its time per byte is not exact in 64 bits.
    pub(crate) fn sped_up(&self, speedup: Speedup) -> Option<LineRate> {
        let numerator = u128::from(self.numerator) * 1_000;
        let denominator = u128::from(self.denominator) * u128::from(speedup.thousandths());
        let common = gcd(numerator, denominator);
        Some(LineRate {
            numerator: u64::try_from(numerator / common).ok()?,
            denominator: u64::try_from(denominator / common).ok()?,
        })
    }

    /// Bits of packets per second.
    pub(crate) fn bit_rate(&self) -> BitRate {
        let bits =
            8u128 * 1_000_000_000_000 * u128::from(self.denominator) / u128::from(self.numerator.max(1));
        BitRate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// A line on which nothing takes time.
    pub const INSTANT: LineRate = LineRate { numerator: 0, denominator: 1 };

    /// Time that `data` takes on an idle line.
    #[inline]
    pub fn span(&self, data: Bytes) -> Span {
        Span::from_ps(self.exact(data, 0).0)
    }

    /// Whole pieces of `piece` that pass from the beginning of time until `time`.
    pub(crate) fn pieces_until(&self, time: Time, piece: Bytes) -> u64 {
        let units = u128::from(time.as_ps()) * u128::from(self.denominator);
        u64::try_from(units / (u128::from(self.numerator) * u128::from(piece.get()))).unwrap_or(u64::MAX)
    }

    /// Bytes that a line carries in a time, begun ones included.
    pub(crate) fn bytes_in(&self, span: Span) -> Bytes {
        // A division of 64 bits takes a fraction of the time.
        if let Some(bytes) = span.as_ps().checked_mul(self.denominator) {
            return Bytes::new(bytes.div_ceil(self.numerator.max(1)));
        }
        let bytes = u128::from(span.as_ps()) * u128::from(self.denominator);
        let bytes = bytes.div_ceil(u128::from(self.numerator).max(1));
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Whether bytes take less time than on `other`.
    pub fn is_faster_than(&self, other: &LineRate) -> bool {
        u128::from(self.numerator) * u128::from(other.denominator)
            < u128::from(other.numerator) * u128::from(self.denominator)
    }

    /// (picoseconds rounded up, how much that is too late in 1/denominator ps), for data that begins
    /// `early` before a whole picosecond.
    #[inline(always)]
    fn exact(&self, data: Bytes, early: u64) -> (u64, u64) {
        match data.get().checked_mul(self.numerator) {
            Some(units) if units >= early => {
                let units = units - early;
                if self.denominator == 1 {
                    return (units, 0);
                }
                let ps = units.div_ceil(self.denominator);
                (ps, ps * self.denominator - units)
            }
            // Nothing to send, or less than the picosecond that is already paid for.
            Some(units) => (0, early - units),
            None => self.exact_of_many(data, early),
        }
    }

    /// The same where 64 bits do not hold the product.
    #[cold]
    fn exact_of_many(&self, data: Bytes, early: u64) -> (u64, u64) {
        let units = u128::from(data.get()) * u128::from(self.numerator) - u128::from(early);
        let ps = units.div_ceil(u128::from(self.denominator));
        let late = (ps * u128::from(self.denominator) - units) as u64;
        (u64::try_from(ps).unwrap_or(u64::MAX), late)
    }
}

/// The transmitter of one link: turns bytes into the time their last bit leaves.
///
/// Within a busy period the end of every packet is computed from the number of bits since the
/// period began, so that a thousand packets end exactly where one of a thousand times the size does.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Line {
    /// End of the last byte sent, rounded up to a picosecond.
    busy_until: Time,
    /// By how much the last byte really ended earlier than `busy_until`, in 1/denominator ps of its rate.
    early: u64,
}

impl Line {
    /// The time from which the line is free.
    #[inline]
    pub const fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Sends `data` at `rate`, the first bit not before `start` nor before the line is free, and returns
    /// the time at which the last bit has left.
    #[inline(always)]
    pub fn send(&mut self, rate: &LineRate, start: Time, data: Bytes) -> Time {
        // No branch predictor can guess whether the line is idle.
        let early = select_unpredictable(start > self.busy_until, 0, self.early);
        let base = start.max(self.busy_until);
        let (ps, new_early) = rate.exact(data, early);
        self.busy_until = base + Span::from_ps(ps);
        self.early = new_early;
        self.busy_until
    }

    /// Keeps the line occupied until `until`, which may lie beyond the last bit (a bubble).
    #[inline]
    pub fn hold(&mut self, until: Time) {
        // Where a packet is as long on both lines, rounding decides, which no branch predictor can guess.
        let beyond = until > self.busy_until;
        self.early = select_unpredictable(beyond, 0, self.early);
        self.busy_until = self.busy_until.max(until);
    }
}

/// One kind of link, made ready for the hot path.
#[derive(Clone, Debug)]
pub(crate) struct LinkKind {
    pub(crate) rate: LineRate,
    /// The same in bits of packets per second.
    pub(crate) bit_rate: BitRate,
    /// The same in bits of the largest packets, each with the framing of the link that adds most.
    pub(crate) carries: BitRate,
    pub(crate) latency: Span,
    /// Of the routing logic behind it, which a packet passes after the latency. A credit does not.
    pub(crate) routing: Span,
    pub(crate) framing: Bytes,
    /// Of that, what is rounded up to words with the packet.
    pub(crate) framed: Bytes,
    /// A packet takes the way of the link layer if one of these bits is set in the count of its bytes and
    /// `framed`.
    pub(crate) special: u64,
    /// The link layer; `None`: packets go onto the line as they are.
    pub(crate) layer: Option<Box<LayerKind>>,
}

impl LinkKind {
    /// Whether a packet goes onto the line as it is.
    #[inline(always)]
    pub(crate) fn takes_as_is(&self, packet: Bytes) -> bool {
        (packet + self.framed).get() & self.special == 0
    }

    /// Whether it may carry a packet more than once, or wait for answers before it carries the next one.
    pub(crate) fn repeats(&self) -> bool {
        self.layer.as_deref().is_some_and(LayerKind::repeats)
    }

    /// The longest time that a packet takes on the idle line.
    #[inline]
    pub(crate) fn longest(&self, packet: Bytes) -> Span {
        let bytes = match &self.layer {
            None => packet + self.framing,
            Some(kind) => kind.layer.most_on_line(packet, self.framing),
        };
        self.rate.span(bytes)
    }

    /// The shortest.
    pub(crate) fn shortest(&self, packet: Bytes) -> Span {
        self.rate.span(self.least_on_line(packet))
    }

    /// The fewest bytes that the line carries for a packet.
    pub(crate) fn least_on_line(&self, packet: Bytes) -> Bytes {
        match &self.layer {
            None => packet + self.framing,
            Some(kind) => kind.layer.least_on_line(packet, self.framing),
        }
    }

    /// Bytes that the line carries for a packet: on average, where gaps make up for rounding.
    pub(crate) fn average_on_line(&self, packet: Bytes) -> Bytes {
        match &self.layer {
            None => packet + self.framing,
            Some(kind) => kind.layer.average_on_line(packet, self.framing),
        }
    }

    /// The rate of `packet`s, each of which counts as so many bytes.
    pub(crate) fn carries_of(&self, counted: Bytes, packet: Bytes) -> BitRate {
        let bits = u128::from(self.bit_rate.bits_per_second()) * u128::from(counted.get());
        let bits = bits / u128::from(self.average_on_line(packet).get().max(1));
        BitRate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// Time during which packets of `overhead` bytes besides their payload, and framing, occupy the line, and
    /// `extra` bytes of its layer.
    pub(crate) fn line_time(&self, carried: CarriedCounts, overhead: Bytes, extra: i64) -> Span {
        self.rate.span(self.bytes_of(carried, overhead, extra))
    }

    /// The bytes that occupy it.
    fn bytes_of(&self, carried: CarriedCounts, overhead: Bytes, extra: i64) -> Bytes {
        let bytes = Bytes::new(carried.payload) + (overhead + self.framing) * carried.packets;
        Bytes::new(bytes.get().saturating_add_signed(extra))
    }
}

/// Packets that a link has carried since the counters were last reset, lost ones included.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct CarriedCounts {
    pub(crate) packets: u64,
    /// Their payload in bytes.
    pub(crate) payload: u64,
}

/// Time during which a packet could have gone but for credits. Whether it is running is kept by the owner.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct CreditStall {
    /// Stalls that are over.
    total: Span,
    /// Beginning of the last stall.
    since: Time,
}

impl CreditStall {
    /// Credits are lacking from `now` on.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time) {
        self.since = now;
    }

    /// The beginning of the stall that is running.
    #[inline]
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// The packet goes at `now`.
    #[inline]
    pub(crate) fn end(&mut self, now: Time) {
        self.total += now - self.since;
    }

    /// All stalls until `now`.
    pub(crate) fn total(&self, is_running: bool, now: Time) -> Span {
        self.total + if is_running { now.saturating_since(self.since) } else { Span::ZERO }
    }

    /// Counts anew; a stall that is running counts from `now` on.
    pub(crate) fn reset(&mut self, now: Time) {
        *self = CreditStall { total: Span::ZERO, since: now };
    }
}

/// The sending half of a link, borrowed from the endpoint or port that owns its state.
pub(crate) struct LinkSender<'a> {
    pub(crate) kind: &'a LinkKind,
    pub(crate) line: &'a mut Line,
    pub(crate) credits: &'a mut Credits,
    pub(crate) carried: &'a mut CarriedCounts,
    pub(crate) acknowledgements: &'a mut u64,
    /// `None`: the link never fails.
    pub(crate) fault: Option<&'a mut Fault>,
    /// `None`: the link's layer adds nothing to the packet.
    pub(crate) layer: Option<&'a mut LayerState>,
}

/// Bytes of a packet (header, payload and footer), and the units of credit that it takes in a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) bytes: Bytes,
    pub(crate) space: u32,
}

/// Times before which a packet's head and tail cannot be on the line, the time of the decision that it goes,
/// and the time at which its [wake-up signal](crate::wake_signal) has come.
#[derive(Clone, Copy)]
pub(crate) struct EarliestSend {
    pub(crate) head: Time,
    pub(crate) tail: Time,
    pub(crate) granted: Time,
    pub(crate) told: Time,
}

/// A packet that has been sent.
#[derive(Clone, Copy)]
pub(crate) struct SentPacket {
    /// Time at which its head had come to the line.
    pub(crate) came: Time,
    /// Time at which its head is on the line, in the attempt that comes through.
    pub(crate) began: Time,
    /// Time at which its tail has left the line.
    pub(crate) ended: Time,
    /// Time at which its tail has left the line for the first time, and with it the sender's buffer.
    pub(crate) left: Time,
    /// Time from which the line can take another packet.
    pub(crate) free: Time,
    /// Time that it waited before `began` for the link to wake.
    pub(crate) waking: Span,
    /// From the line to where the packet asks for its next output: latency and routing logic.
    pub(crate) latency: Span,
    /// Of that, the latency alone.
    pub(crate) wire: Span,
    pub(crate) fate: Fate,
}

impl LinkSender<'_> {
    /// Sends a packet as soon as the line is free. There must be credits for it.
    #[inline(always)]
    pub(crate) fn send(self, packet: &Packet, size: Size, earliest: EarliestSend) -> SentPacket {
        let LinkSender { kind, line, credits, carried, acknowledgements, fault, layer } = self;
        let OnLine { began, ended, left, free, waking, is_corrupted } = match layer.zip(kind.layer.as_deref())
        {
            Some((state, layer)) => state.carry(layer, line, size.bytes, earliest),
            None => {
                let began = earliest.head.max(line.busy_until());
                line.send(&kind.rate, began, size.bytes + kind.framing);
                line.hold(earliest.tail);
                let ended = line.busy_until();
                OnLine { began, ended, left: ended, free: ended, waking: Span::ZERO, is_corrupted: false }
            }
        };
        credits.spend(size.space);
        carried.packets += 1;
        carried.payload += u64::from(packet.bytes);
        if packet.label.is_acknowledgement() {
            *acknowledgements += 1;
        }
        let latency = kind.latency + kind.routing;
        let tail = ended + latency;
        let mut fate = fault.map_or(Fate::Arrives, |fault| fault.strike(began, tail));
        if is_corrupted && fate != Fate::Lost {
            fate = Fate::Corrupted;
        }
        SentPacket {
            came: earliest.head,
            began,
            ended,
            left,
            free,
            waking,
            latency,
            wire: kind.latency,
            fate,
        }
    }

    /// Sends a copy right after the packet that was `sent`; `None`: there are no credits for it.
    #[cold]
    pub(crate) fn copy(self, packet: &Packet, size: Size, sent: &SentPacket) -> Option<SentPacket> {
        if !self.credits.cover(size.space) {
            return None;
        }
        let LinkSender { kind, line, credits, carried, acknowledgements, fault, layer } = self;
        let sender = LinkSender { kind, line, credits, carried, acknowledgements, fault: None, layer };
        let after = sent.ended;
        let mut copy = sender.send(
            packet,
            size,
            EarliestSend { head: after, tail: after, granted: Time::ZERO, told: after },
        );
        if let Some(fault) = fault
            && fault.copy(copy.began, copy.tail()) == Fate::Lost
        {
            copy.fate = Fate::Lost;
        }
        Some(copy)
    }
}

impl SentPacket {
    /// Time at which the packet's head is at the far end, ready to ask for an output.
    #[inline(always)]
    pub(crate) fn head(&self) -> Time {
        self.began + self.latency
    }

    /// Time at which its tail is.
    #[inline(always)]
    pub(crate) fn tail(&self) -> Time {
        self.ended + self.latency
    }

    /// The same packet where it is held up, so that one of up to `largest` on the line that follows it
    /// closely overtakes it.
    pub(crate) fn held_up(self, largest: Span) -> SentPacket {
        let by = (self.ended - self.began) + largest;
        SentPacket { began: self.began + by, ended: self.ended + by, ..self }
    }

    /// Time at which the credit of a lost packet returns: when the far end could have answered its tail.
    pub(crate) fn credit_back(&self) -> Time {
        self.ended + self.wire * 2
    }

    /// Writes into the packet what the crossing has done to it. `MAY_FAIL`: the link may have corrupted it.
    #[inline(always)]
    pub(crate) fn stamp<const MAY_FAIL: bool>(&self, packet: &mut Packet) {
        packet.serialization = (self.ended - self.began).as_ps() as u32;
        packet.hops = packet.hops.saturating_add(1);
        if MAY_FAIL && self.fate == Fate::Corrupted {
            packet.corrupt();
        }
    }
}

/// The sending half of a link, to be reported.
pub(crate) struct SenderState<'a> {
    pub(crate) kind: &'a LinkKind,
    pub(crate) class: LinkClass,
    pub(crate) carried: CarriedCounts,
    pub(crate) stalled: Span,
    pub(crate) paused: Span,
    /// Pause frames that the sender has obeyed.
    pub(crate) obeyed: u64,
    /// Pause frames that the line has carried.
    pub(crate) frames: u64,
    pub(crate) counts: LinkCounts,
    pub(crate) layer: Option<&'a LayerState>,
    pub(crate) control: Option<&'a LinkControl>,
    pub(crate) now: Time,
}

impl SenderState<'_> {
    /// The counters of the link that joins two ends; packets have `overhead` bytes besides their payload.
    pub(crate) fn report(self, from: LinkEnd, to: Attachment, overhead: Bytes) -> LinkReport {
        let SenderState { kind, class, carried, stalled, paused, obeyed, frames, .. } = self;
        let SenderState { counts, layer, control, now, .. } = self;
        let LinkCounts { packets, counts, .. } = counts;
        let extra = layer.map_or(0, LayerState::extra);
        let bytes = kind.bytes_of(carried, overhead, extra) + (PAUSE_FRAME + kind.framing) * frames;
        let of_frames = kind.rate.span((PAUSE_FRAME + kind.framing) * frames);
        LinkReport {
            from,
            to,
            class,
            packets,
            payload: Bytes::new(carried.payload),
            busy: kind.line_time(carried, overhead, extra) + of_frames,
            stalled,
            paused,
            pause_frames: obeyed,
            most_held: Bytes::ZERO,
            fair_rate: control.and_then(LinkControl::fair_rate),
            counts,
            power: layer.and_then(|layer| layer.power(now, bytes)),
        }
    }
}

const fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_code_lengthens_the_packet() {
        let rate = LineRate::new(BitRate::from_gigabits(66), LineCode::B64_66).unwrap();
        assert_eq!(rate.span(Bytes::new(8_000)), Span::from_us(1));
    }

    proptest! {
        /// Catches rounding per packet: n packets must end where one of n times the size does.
        #[test]
        fn rounding_does_not_accumulate(
            rate in 1_000_000u64..2_000_000_000_000,
            sizes in prop::collection::vec(1u64..10_000, 1..200),
        ) {
            let rate = LineRate::new(BitRate::from_bits_per_second(rate), LineCode::B64_66).unwrap();
            let mut line = Line::default();
            let mut end = Time::ZERO;
            for size in &sizes {
                end = line.send(&rate, Time::ZERO, Bytes::new(*size));
            }
            prop_assert_eq!(end - Time::ZERO, rate.span(Bytes::new(sizes.iter().sum())));
        }
    }
}
