//! The link layer's state at a sender, per direction, and a packet's way over the line.

use super::bit_errors::PacketErrors;
use super::credit_words::CreditWords;
use super::fec::{Codewords, Group};
use super::power::{PowerReport, PowerState};
use super::replay::ReplayBuffer;
use super::{GapRule, LinkLayer};
use crate::credit::TailOut;
use crate::link::{EarliestSend, Line, LineRate};
use serde::{Deserialize, Serialize};
use weft_engine::Stream;
use weft_units::{BitRate, Bytes, CountLedger, PacketCounts, Span, Time};

/// The layer of a kind of link, made ready.
#[derive(Clone, Debug)]
pub(crate) struct LayerKind {
    pub(crate) layer: LinkLayer,
    rate: LineRate,
    latency: Span,
    framing: Bytes,
    /// The largest packet on the line.
    largest: Bytes,
    /// Size of the replay buffer, where it can run full.
    window: Option<Bytes>,
    packets: Option<PacketErrors>,
    codewords: Option<Codewords>,
}

/// The link and the packets that a layer works for.
pub(crate) struct LayerLoad {
    pub(crate) rate: (BitRate, LineRate),
    pub(crate) latency: Span,
    pub(crate) framing: Bytes,
    /// The largest packet: header, payload and footer.
    pub(crate) packet: Bytes,
}

impl LayerKind {
    /// The layer of links under `load`. `None`: packets go onto the line as they are.
    pub(crate) fn new(layer: &LinkLayer, load: &LayerLoad) -> Option<LayerKind> {
        let LayerLoad { rate, latency, framing, packet } = *load;
        let largest = layer.most_on_line(packet, framing);
        let window = layer.replay.and_then(|replay| replay.buffer).filter(|size| {
            // Bytes that pass until the answer to the first is back: a round trip, and the packet itself.
            let round_trip = rate.1.pieces_until(Time::ZERO + latency * 2, Bytes::new(1)) + 1;
            size.get() < round_trip + 2 * largest.get()
        });
        let codewords = layer.fec.and_then(|fec| Codewords::new(fec, layer.symbol_errors, rate));
        let packets = PacketErrors::new(layer.bit_errors);
        let kind =
            LayerKind { layer: *layer, rate: rate.1, latency, framing, largest, window, packets, codewords };
        (kind.takes_all() || layer.word > Bytes::new(1)).then_some(kind)
    }

    /// Whether packets of any size take the layer's own way.
    fn takes_all(&self) -> bool {
        let LinkLayer { gap, smallest, .. } = self.layer;
        gap == GapRule::DeficitIdle
            || smallest > Bytes::ZERO
            || self.has_errors()
            || self.window.is_some()
            || self.layer.power.is_some()
            || self.layer.credit > Bytes::ZERO
    }

    fn has_errors(&self) -> bool {
        self.packets.is_some() || self.codewords.is_some()
    }

    /// Whether a packet may be repeated, or the replay buffer run full.
    pub(crate) fn repeats(&self) -> bool {
        self.window.is_some() || self.layer.replay.is_some() && self.has_errors()
    }

    /// A packet takes the layer's own way if one of these bits is set in the count of its bytes and `framed`.
    pub(crate) fn special(&self) -> u64 {
        let word = self.layer.word.get();
        if self.takes_all() || !word.is_power_of_two() { u64::MAX } else { word - 1 }
    }

    /// Whether the largest packet is more likely hit than not, so that a link would repeat it for ever.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.packets.as_ref().is_some_and(|packets| packets.of(self.largest.bits()).is_likely())
    }

    /// Whether the replay buffer does not hold the largest packet; its size on the line.
    pub(crate) fn lacks_space_for(&self) -> Option<Bytes> {
        self.window.filter(|&size| size < self.largest).map(|_| self.largest)
    }
}

/// The state of one direction.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct LayerState {
    /// Bytes that the line has carried beyond packets and framing since the counters were last reset:
    /// padding, repeated packets and words for credits, less the gaps that were cut short.
    extra: i64,
    /// Bytes by which gaps were short: deficit idle count.
    deficit: u8,
    /// Words for credits, where they take bandwidth.
    words: Option<Box<CreditWords>>,
    /// Power states, where the machine says what they take.
    power: Option<Box<PowerState>>,
    noise: Option<Box<Noise>>,
}

/// Errors of one direction, and what they lead to.
#[derive(Clone, Serialize, Deserialize)]
struct Noise {
    rng: Stream,
    replay: ReplayBuffer,
    /// The last code words that random numbers were drawn for.
    group: Option<Group>,
    ledger: CountLedger,
}

/// A packet's way over the line.
#[derive(Clone, Copy)]
pub(crate) struct OnLine {
    /// Time at which the head of the attempt that comes through is on the line.
    pub(crate) began: Time,
    /// Time at which its tail is.
    pub(crate) ended: Time,
    /// Time at which the tail of the first attempt is: the packet is then out of the sender's buffer.
    pub(crate) left: Time,
    /// Time from which the line can take another packet.
    pub(crate) free: Time,
    /// Time that the packet waited before that for the link to wake.
    pub(crate) waking: Span,
    /// Whether it arrives in error.
    pub(crate) is_corrupted: bool,
}

impl LayerState {
    pub(crate) fn new(kind: &LayerKind, rng: Stream) -> LayerState {
        let noise = (kind.has_errors() || kind.window.is_some()).then(|| {
            Box::new(Noise {
                rng,
                replay: ReplayBuffer::default(),
                group: None,
                ledger: CountLedger::default(),
            })
        });
        let words = (kind.layer.credit > Bytes::ZERO).then(Box::default);
        let power = kind.layer.power.map(|power| Box::new(PowerState::new(power)));
        LayerState { extra: 0, deficit: 0, words, power, noise }
    }

    /// Bytes that the line has carried beyond packets and framing.
    pub(crate) fn extra(&self) -> i64 {
        self.extra
    }

    /// Repetition, FEC and packets that travelled on in error, since the counters were last reset.
    /// `None`: its packets come through.
    #[inline]
    pub(crate) fn counts(&self) -> Option<&PacketCounts> {
        self.noise.as_ref().map(|noise| &noise.ledger.counts)
    }

    /// The same since the run began.
    pub(crate) fn total(&self) -> PacketCounts {
        self.noise.as_ref().map_or_else(PacketCounts::default, |noise| noise.ledger.total())
    }

    /// Power states until `now` of a line that has carried `bytes`; `None`: the machine says nothing of them.
    pub(crate) fn power(&self, now: Time, bytes: Bytes) -> Option<PowerReport> {
        self.power.as_ref().map(|power| power.report(now, bytes))
    }

    /// Begins to count anew at `now`.
    pub(crate) fn reset(&mut self, now: Time) {
        self.power.iter_mut().for_each(|power| power.reset(now));
        self.extra = 0;
        if let Some(noise) = &mut self.noise {
            noise.ledger.reset();
        }
    }

    /// Gives a credit of the other direction back, for the space of a packet whose `tail` leaves the buffer;
    /// returns when the last bit of that has left. The packets of this direction go over `line`.
    pub(crate) fn give_back(&mut self, kind: &LayerKind, line: &mut Line, tail: TailOut) -> Time {
        let Some(words) = &mut self.words else { return tail.left };
        let word = kind.layer.credit;
        self.extra += word.get() as i64;
        words.occupy(line, &kind.rate, word, tail.granted);
        words.announce(&kind.rate, word, tail.left)
    }

    /// Bytes of words for credits that the line has carried since the run began.
    pub(crate) fn credit_words(&self) -> Bytes {
        self.words.as_ref().map_or(Bytes::ZERO, |words| words.carried())
    }

    /// Whether credits of the other direction take bandwidth.
    pub(crate) fn gives_credits(&self) -> bool {
        self.words.is_some()
    }

    /// The time from which no packet and no word for a credit is on `line`.
    pub(crate) fn idle_from(&self, kind: &LayerKind, line: &Line) -> Time {
        let mut line = *line;
        if let Some(words) = &self.words {
            words.clone().occupy(&mut line, &kind.rate, kind.layer.credit, Time::NEVER);
        }
        line.busy_until()
    }

    /// Sends a packet of `packet` bytes over `line`.
    pub(crate) fn carry(
        &mut self,
        kind: &LayerKind,
        line: &mut Line,
        packet: Bytes,
        earliest: EarliestSend,
    ) -> OnLine {
        let head =
            self.power.as_mut().map_or(earliest.head, |power| power.wake(earliest.head, earliest.told));
        let idle = line.busy_until();
        let on_line = self.carry_awake(kind, line, packet, EarliestSend { head, ..earliest });
        let Some(power) = &mut self.power else { return on_line };
        power.sent(line.busy_until(), earliest.granted);
        OnLine { waking: head.max(idle) - earliest.head.max(idle), ..on_line }
    }

    /// The same over a line that is awake.
    fn carry_awake(
        &mut self,
        kind: &LayerKind,
        line: &mut Line,
        packet: Bytes,
        earliest: EarliestSend,
    ) -> OnLine {
        if let Some(words) = &mut self.words {
            words.occupy(line, &kind.rate, kind.layer.credit, earliest.granted);
        }
        let bytes = self.frame(kind, packet, line.busy_until() < earliest.head);
        self.extra += bytes.get() as i64 - (packet + kind.framing).get() as i64;
        let mut began = earliest.head.max(line.busy_until());
        let sent = line.send(&kind.rate, began, bytes);
        line.hold(earliest.tail);
        let left = line.busy_until();
        if left > sent {
            // Idle words filled the time until the tail came.
            self.deficit = 0;
        }
        let Some(noise) = &mut self.noise else {
            return OnLine { began, ended: left, left, free: left, waking: Span::ZERO, is_corrupted: false };
        };
        let mut ended = left;
        let mut is_hit = noise.hit(kind, bytes, (began, ended));
        if kind.layer.replay.is_some() {
            while is_hit {
                noise.ledger.counts.replayed += 1;
                self.extra += bytes.get() as i64;
                began = ended + kind.latency * 2;
                ended = line.send(&kind.rate, began, bytes);
                is_hit = noise.hit(kind, bytes, (began, ended));
            }
        }
        if let Some(size) = kind.window {
            let answer = ended + kind.latency * 2;
            line.hold(noise.replay.hold((answer, bytes), kind.largest, size));
        }
        noise.ledger.counts.corrupted += u64::from(is_hit);
        OnLine { began, ended, left, free: line.busy_until(), waking: Span::ZERO, is_corrupted: is_hit }
    }

    /// Sends a pause frame of so many bytes over `line` from `now` on, and wakes it where it sleeps; returns
    /// when the last bit of the frame has left.
    pub(crate) fn carry_frame(&mut self, rate: &LineRate, line: &mut Line, frame: Bytes, now: Time) -> Time {
        let Some(power) = &mut self.power else { return line.send(rate, now, frame) };
        let ended = line.send(rate, power.wake(now, now), frame);
        power.sent(ended, now);
        ended
    }

    /// Bytes of a packet's frame on the line.
    fn frame(&mut self, kind: &LayerKind, packet: Bytes, is_idle: bool) -> Bytes {
        let LinkLayer { smallest, word, gap, .. } = kind.layer;
        match gap {
            GapRule::RoundUp => kind.layer.most_on_line(packet, kind.framing),
            GapRule::DeficitIdle => {
                let deficit = if is_idle { 0 } else { self.deficit };
                let due = (packet.max(smallest) + kind.framing).get() + u64::from(deficit);
                self.deficit = (due % word.get()) as u8;
                Bytes::new(due - due % word.get())
            }
        }
    }
}

impl Noise {
    /// Whether an attempt on the line is hit.
    fn hit(&mut self, kind: &LayerKind, bytes: Bytes, passes: (Time, Time)) -> bool {
        let mut is_hit = false;
        if let Some(codewords) = &kind.codewords {
            let outcome = codewords.pass(passes, &mut self.group, &mut self.rng);
            self.ledger.counts.corrected_codewords += outcome.corrected;
            self.ledger.counts.uncorrected_codewords += outcome.uncorrected;
            is_hit = outcome.is_lost;
        }
        if let Some(packets) = &kind.packets {
            is_hit |= packets.strike(bytes.bits(), &mut self.rng);
        }
        is_hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_layer::LinkProtocol;
    use proptest::prelude::*;
    use weft_units::LineCode;

    /// A layer of Ethernet at 100 Gb/s, where a byte takes 80 ps.
    fn ethernet() -> (LayerKind, LineRate) {
        let rules = LinkProtocol::Ethernet.rules();
        let layer =
            LinkLayer { word: rules.word, smallest: rules.smallest, gap: rules.gap, ..LinkLayer::PLAIN };
        let rate = BitRate::from_gigabits(100);
        let line = LineRate::new(rate, LineCode::NONE).unwrap();
        let load = LayerLoad {
            rate: (rate, line),
            latency: Span::from_ps(100_000),
            framing: rules.framing,
            packet: Bytes::new(9_000),
        };
        (LayerKind::new(&layer, &load).unwrap(), line)
    }

    proptest! {
        /// Catches a gap that is not 12 B on average, one below 5 B, a start that is not at a word, and a
        /// deficit that outlives a busy period.
        #[test]
        fn gaps_are_twelve_bytes_on_average(packets in prop::collection::vec(64u64..9_000, 2..300)) {
            let (kind, _) = ethernet();
            let mut state = LayerState::new(&kind, Stream::new(1, 2, 3));
            let mut line = Line::default();
            let at_once =
                EarliestSend { head: Time::ZERO, tail: Time::ZERO, granted: Time::ZERO, told: Time::ZERO };
            let (mut gaps, mut end) = (0, 0);
            for &packet in &packets {
                let on_line = state.carry(&kind, &mut line, Bytes::new(packet), at_once);
                prop_assert_eq!(on_line.began.as_ps(), end);
                prop_assert_eq!(on_line.began.as_ps() % 640, 0, "starts at a word of 8 B");
                end = on_line.ended.as_ps();
                let gap = (end - on_line.began.as_ps()) / 80 - 8 - packet;
                prop_assert!((5..20).contains(&gap), "{}", gap);
                gaps += gap;
            }
            let behind = packets.len() as u64 * 12 - gaps;
            prop_assert!(behind < 8, "the line owes {} B", behind);
            prop_assert_eq!(state.extra(), -(behind as i64));
            let later = EarliestSend { head: Time::from_ps(end + 1), ..at_once };
            let first = state.carry(&kind, &mut line, Bytes::new(68), later);
            prop_assert_eq!(first.ended - first.began, Span::from_ps(88 * 80));
        }
    }
}
