//! The link: its line, the sending of packets over it, and its counters.
//!
//! ```text
//!              ┌─ credits left? ─┐   ┌── line: framing, rate ──┐
//!   packet ──► │     Credits     │──►│ head begins … tail ends │── latency ──► input buffer, or an
//!              └────────▲────────┘   └───────────┬─────────────┘               endpoint
//!                       │                  fault: lost? corrupted?
//!                       └── ReturningCredits ◄────── latency ─── room becomes free, or the packet was lost
//! ```
//! An endpoint and an output of a switch send in the same way, by [`Sender`]. It borrows its state from where
//! the hot path wants it: a port keeps its line and what it has carried in its one cache line, and credits,
//! faults and rare counters in tables of their own.
//!
//! # Not modelled
//! Repair on the link: a packet that is lost stays lost, and its credit returns.

use crate::credit::Credits;
use crate::fault::{Fate, Fault, FaultCounts};
use crate::packet::Packet;
use crate::pause::PAUSE_FRAME;
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;
use weft_topo::{Attachment, LinkClass};
use weft_units::{BitRate, Bytes, EndpointId, LineCode, PortId, Span, SwitchId, Time};

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
    /// Packets of these that it has lost or corrupted, or that found no room behind it.
    pub faults: FaultCounts,
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

    /// A line on which nothing takes time.
    pub const INSTANT: LineRate = LineRate { numerator: 0, denominator: 1 };

    /// Time that `data` takes on an idle line.
    #[inline]
    pub fn span(&self, data: Bytes) -> Span {
        Span::from_ps(self.exact(data, 0).0)
    }

    /// Bytes that a line carries in a time, begun ones included.
    pub(crate) fn bytes_in(&self, span: Span) -> Bytes {
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
    #[inline]
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
            None => {
                let units = u128::from(data.get()) * u128::from(self.numerator) - u128::from(early);
                let ps = units.div_ceil(u128::from(self.denominator));
                let late = (ps * u128::from(self.denominator) - units) as u64;
                (u64::try_from(ps).unwrap_or(u64::MAX), late)
            }
        }
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
    #[inline]
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkKind {
    pub(crate) rate: LineRate,
    pub(crate) latency: Span,
    /// Of the routing logic behind it, which a packet passes after the latency. A credit does not.
    pub(crate) routing: Span,
    pub(crate) framing: Bytes,
}

impl LinkKind {
    /// Time during which packets of `overhead` bytes besides their payload, and framing, occupy the line.
    pub(crate) fn line_time(&self, carried: Carried, overhead: Bytes) -> Span {
        self.rate.span(Bytes::new(carried.payload) + (overhead + self.framing) * carried.packets)
    }
}

/// Packets that a link has carried since the counters were last reset, lost ones included.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub(crate) packets: u64,
    /// Their payload in bytes.
    pub(crate) payload: u64,
}

/// Time during which a packet could have gone but for credits. Whether it is running is kept by the owner.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Stall {
    /// Stalls that are over.
    total: Span,
    /// Beginning of the last stall.
    since: Time,
}

impl Stall {
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
        *self = Stall { total: Span::ZERO, since: now };
    }
}

/// The sending half of a link, borrowed from the endpoint or port that owns its state.
pub(crate) struct Sender<'a> {
    pub(crate) kind: &'a LinkKind,
    pub(crate) line: &'a mut Line,
    pub(crate) credits: &'a mut Credits,
    pub(crate) carried: &'a mut Carried,
    pub(crate) acknowledgements: &'a mut u64,
    /// `None`: the link never fails.
    pub(crate) fault: Option<&'a mut Fault>,
}

/// Bytes of a packet (header, payload and footer), and the units of credit that it takes in a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) bytes: Bytes,
    pub(crate) room: u32,
}

/// Times before which a packet's head and tail cannot be on the line.
#[derive(Clone, Copy)]
pub(crate) struct Earliest {
    pub(crate) head: Time,
    pub(crate) tail: Time,
}

/// A packet that has been sent.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    /// Time at which its head is on the line.
    pub(crate) began: Time,
    /// Time at which its tail has left the line, which is then free.
    pub(crate) ended: Time,
    /// From the line to where the packet asks for its next output: latency and routing logic.
    pub(crate) latency: Span,
    /// Of that, the latency alone.
    pub(crate) wire: Span,
    pub(crate) fate: Fate,
}

impl Sender<'_> {
    /// Sends a packet as soon as the line is free. There must be credits for it.
    #[inline(always)]
    pub(crate) fn send(self, packet: &Packet, size: Size, earliest: Earliest) -> Sent {
        let Sender { kind, line, credits, carried, acknowledgements, fault } = self;
        let began = earliest.head.max(line.busy_until());
        line.send(&kind.rate, began, size.bytes + kind.framing);
        line.hold(earliest.tail);
        let ended = line.busy_until();
        credits.spend(size.room);
        carried.packets += 1;
        carried.payload += u64::from(packet.bytes);
        if packet.label.is_acknowledgement() {
            *acknowledgements += 1;
        }
        let latency = kind.latency + kind.routing;
        let tail = ended + latency;
        let fate = fault.map_or(Fate::Arrives, |fault| fault.strike(tail));
        Sent { began, ended, latency, wire: kind.latency, fate }
    }
}

impl Sent {
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

    /// Time at which the credit of a lost packet returns: when the far end could have answered its tail.
    pub(crate) fn credit_back(&self) -> Time {
        self.ended + self.wire * 2
    }

    /// Writes into the packet what the crossing has done to it. `MAY_FAIL`: the link may have corrupted it.
    #[inline(always)]
    pub(crate) fn stamp<const MAY_FAIL: bool>(&self, packet: &mut Packet) {
        packet.stretch = (self.ended - self.began).as_ps() as u32;
        packet.hops = packet.hops.saturating_add(1);
        if MAY_FAIL {
            if self.fate == Fate::Corrupted {
                packet.corrupt();
            }
        }
    }
}

/// The sending half of a link, to be reported.
pub(crate) struct SenderState<'a> {
    pub(crate) kind: &'a LinkKind,
    pub(crate) class: LinkClass,
    pub(crate) carried: Carried,
    pub(crate) stalled: Span,
    pub(crate) paused: Span,
    /// Pause frames that the sender has obeyed.
    pub(crate) obeyed: u64,
    /// Pause frames that the line has carried.
    pub(crate) frames: u64,
    pub(crate) fault: Option<&'a Fault>,
}

impl SenderState<'_> {
    /// The counters of the link that joins two ends; packets have `overhead` bytes besides their payload.
    pub(crate) fn report(self, from: LinkEnd, to: Attachment, overhead: Bytes) -> LinkReport {
        let SenderState { kind, class, carried, stalled, paused, obeyed, frames, fault } = self;
        let of_frames = kind.rate.span((PAUSE_FRAME + kind.framing) * frames);
        LinkReport {
            from,
            to,
            class,
            packets: carried.packets,
            payload: Bytes::new(carried.payload),
            busy: kind.line_time(carried, overhead) + of_frames,
            stalled,
            paused,
            pause_frames: obeyed,
            most_held: Bytes::ZERO,
            faults: fault.map_or(FaultCounts::default(), |fault| fault.counts),
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
