//! Link layers: what a link puts on its line for a packet, and what becomes of bits in error.
//!
//! ```text
//!   packet (header, payload, footer)
//!     │  + framing: start and end words, preamble, gap           [`ProtocolRules`], a file per protocol
//!     │  at least the smallest frame, rounded up to a word       [`LinkLayer::average_on_line`]
//!     ▼
//!   line ══ attempt ══► hit by a bit error?  ([`bit_errors`])  ──no──► far end
//!             ▲         by a code word that FEC cannot mend? ([`fec`])
//!             │                │ yes
//!             └── replay: the answer comes a latency after the bad tail ([`replay`])
//!                 no replay: the packet travels on, marked
//! ```
//! A link whose layer rounds, replays, has errors or [power states](power) keeps a [`LayerState`] per
//! direction beside its sender. The others have none, and a packet that is whole words as it is never looks
//! at it. Words that give [credits](credit_words) back are in it too, which every packet looks at.
//!
//! # Not modelled
//! Characters that keep the two clocks together (Aurora's clock compensation, alignment markers of Ethernet,
//! which take the place of idle characters), link training, errors in answers and credits, and the sender's
//! word clock: a frame that finds the line idle starts at once, and words are counted from there.

mod apelink;
mod apenet_bxi2;
mod aurora;
mod bit_errors;
mod bxi2;
mod credit_words;
mod ethernet;
mod exanet;
mod fec;
mod power;
mod replay;
mod state;

pub use bit_errors::{ErrorRate, PER};
pub use fec::{Fec, FecFigures};
pub use power::{LinkPower, OffParameters, PowerReport, SleepParameters};
pub(crate) use state::{LayerKind, LayerLoad, LayerState, OnLine};

use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, LineCode, Span};

/// A link layer that a machine file can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LinkProtocol {
    /// Links of ExaNeSt between FPGAs.
    Exanet,
    /// INFN's APElink.
    Apelink,
    /// Xilinx Aurora 64B/66B.
    Aurora,
    /// The link of BXI version 2.
    Bxi2,
    /// Ethernet.
    Ethernet,
    /// The link of BXI version 2 behind the adapter of an APEnet card.
    ApenetBxi2,
}

/// Rules of a protocol: all that it adds to a packet. One constant per protocol, each in a file of its own.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolRules {
    /// Line code. Of Ethernet none: its rate is that of the MAC.
    pub code: LineCode,
    /// Frames are whole words of this size.
    pub word: Bytes,
    /// Bytes that a lane carries at a time: a frame is whole words of all lanes. Zero where the word is the
    /// same for any number of lanes.
    pub lane_word: Bytes,
    /// Bytes on the line besides the packet.
    pub framing: Bytes,
    /// Smallest frame, framing not counted; short packets are padded.
    pub smallest: Bytes,
    /// Frame check sequence, which a packet's own footer of as much or more holds.
    pub frame_check: Bytes,
    /// The rule by which gaps between frames make up for rounding.
    pub gap: GapRule,
    /// Most lanes that a link may have.
    pub lanes: u32,
    /// Fastest lane; `None`: the protocol has no limit of its own.
    pub fastest_lane: Option<BitRate>,
    /// Bytes that adapters at the two ends hold together before they hand them on: time on top of the link's
    /// latency.
    pub held: Bytes,
    /// Whether the link sends again what has not come through.
    pub replays: bool,
    /// Document and section, or `ours` with the reason.
    pub source: &'static str,
    /// Whether `source` states all the numbers; if not, some are an estimate.
    pub is_published: bool,
}

/// The rule for the gap after a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GapRule {
    /// Each frame is rounded up to whole words.
    RoundUp,
    /// Deficit idle count: a gap is shortened or lengthened so that frames start at whole words and the
    /// average gap is exact.
    DeficitIdle,
}

impl LinkProtocol {
    /// All of them.
    pub const ALL: [LinkProtocol; 6] = [
        LinkProtocol::Exanet,
        LinkProtocol::Apelink,
        LinkProtocol::Aurora,
        LinkProtocol::Bxi2,
        LinkProtocol::Ethernet,
        LinkProtocol::ApenetBxi2,
    ];

    /// The rules.
    pub const fn rules(self) -> &'static ProtocolRules {
        match self {
            LinkProtocol::Exanet => &exanet::RULES,
            LinkProtocol::Apelink => &apelink::RULES,
            LinkProtocol::Aurora => &aurora::RULES,
            LinkProtocol::Bxi2 => &bxi2::RULES,
            LinkProtocol::Ethernet => &ethernet::RULES,
            LinkProtocol::ApenetBxi2 => &apenet_bxi2::RULES,
        }
    }

    /// The FEC that links of `rate` have unless a machine file says otherwise.
    pub fn usual_fec(self, rate: BitRate) -> Option<Fec> {
        match self {
            LinkProtocol::Ethernet => ethernet::usual_fec(rate),
            LinkProtocol::Exanet
            | LinkProtocol::Apelink
            | LinkProtocol::Aurora
            | LinkProtocol::Bxi2
            | LinkProtocol::ApenetBxi2 => None,
        }
    }
}

/// Repetition on the link: go-back-N.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReplayParameters {
    /// Bytes on the line that may lack an answer; `None`: as many as a link's round trip needs.
    pub buffer: Option<Bytes>,
}

/// The link layer of a kind of link, per direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkLayer {
    /// Frames are whole words of this size, all lanes together. At least a byte.
    pub word: Bytes,
    /// Bytes of the link's framing that are rounded up to words together with the packet; the others are an
    /// average that comes on top.
    pub framed: Bytes,
    /// Smallest frame, framing not counted.
    pub smallest: Bytes,
    /// The rule for the gap after a frame.
    pub gap: GapRule,
    /// Repetition on the link; `None`: a packet in error travels on, marked.
    pub replay: Option<ReplayParameters>,
    /// Chance of a bit to be wrong, after FEC if there is any.
    pub bit_errors: ErrorRate,
    /// Forward error correction. Its time is in the link's latency already.
    pub fec: Option<Fec>,
    /// Chance of a symbol of FEC to be wrong on the line.
    pub symbol_errors: ErrorRate,
    /// Bytes on the line that give the space of one packet back to the sender of the other direction; zero:
    /// credits take no bandwidth.
    #[serde(default)]
    pub credit: Bytes,
    /// Power and when it sleeps; `None`: nothing is known of its power, and it is always on.
    #[serde(default)]
    pub power: Option<LinkPower>,
}

impl LinkLayer {
    /// A line that takes packets as they are, without errors.
    pub const PLAIN: LinkLayer = LinkLayer {
        word: Bytes::new(1),
        framed: Bytes::ZERO,
        smallest: Bytes::ZERO,
        gap: GapRule::RoundUp,
        replay: None,
        bit_errors: ErrorRate::NONE,
        fec: None,
        symbol_errors: ErrorRate::NONE,
        credit: Bytes::ZERO,
        power: None,
    };

    /// The longest time that it takes to wake; zero for one that never sleeps.
    pub(crate) fn longest_wake(&self) -> Span {
        self.power.and_then(|power| power.sleep).map_or(Span::ZERO, |sleep| sleep.longest_wake())
    }

    /// Bytes that the line carries for a packet of `packet` bytes and `framing`; with deficit idle count on
    /// average, else always.
    pub fn average_on_line(&self, packet: Bytes, framing: Bytes) -> Bytes {
        let frame = packet.max(self.smallest);
        match self.gap {
            GapRule::RoundUp => {
                round_up(frame + self.framed, self.word) + framing.saturating_sub(self.framed)
            }
            GapRule::DeficitIdle => frame + framing,
        }
    }

    /// The most bytes that the line carries for it.
    pub fn most_on_line(&self, packet: Bytes, framing: Bytes) -> Bytes {
        match self.gap {
            GapRule::RoundUp => self.average_on_line(packet, framing),
            GapRule::DeficitIdle => round_up(packet.max(self.smallest) + framing, self.word),
        }
    }

    /// The least bytes that the line carries for it.
    pub fn least_on_line(&self, packet: Bytes, framing: Bytes) -> Bytes {
        let average = self.average_on_line(packet, framing);
        match self.gap {
            GapRule::RoundUp => average,
            GapRule::DeficitIdle => Bytes::new(average.get() - average.get() % self.word.get()),
        }
    }
}

fn round_up(bytes: Bytes, word: Bytes) -> Bytes {
    word * bytes.div_ceil(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches rules that no link could follow, and sources that are left out.
    #[test]
    fn the_rules_make_sense() {
        for protocol in LinkProtocol::ALL {
            let rules = protocol.rules();
            assert!(rules.word > Bytes::ZERO && rules.lanes > 0, "{protocol:?}");
            assert!(rules.code.payload <= rules.code.wire, "{protocol:?}");
            assert!(rules.source.len() > 10, "{protocol:?}");
        }
    }

    /// Catches a word or a frame that is rounded the wrong way: sizes by hand.
    #[test]
    fn frames_by_hand() {
        let layer = LinkLayer { word: Bytes::new(16), framed: Bytes::new(1), ..LinkLayer::PLAIN };
        let on_line = |layer: &LinkLayer, packet: u64, framing: u64| {
            let (packet, framing) = (Bytes::new(packet), Bytes::new(framing));
            [
                layer.least_on_line(packet, framing).get(),
                layer.average_on_line(packet, framing).get(),
                layer.most_on_line(packet, framing).get(),
            ]
        };
        assert_eq!(on_line(&layer, 287, 1), [288; 3]);
        assert_eq!(on_line(&layer, 288, 1), [304; 3]);
        // Of 9 B of framing 8 are an average.
        assert_eq!(on_line(&layer, 288, 9), [312; 3]);
        assert_eq!(on_line(&LinkLayer::PLAIN, 77, 3), [80; 3]);
        let ethernet = LinkLayer {
            word: Bytes::new(8),
            smallest: Bytes::new(64),
            gap: GapRule::DeficitIdle,
            ..LinkLayer::PLAIN
        };
        assert_eq!(on_line(&ethernet, 30, 20), [80, 84, 88]);
        assert_eq!(on_line(&ethernet, 65, 20), [80, 85, 88]);
    }
}
