//! Ethernet: preamble, frame of at least 64 B, frame check sequence, gap of 12 B on average.
//!
//! ```text
//!   │ preamble, SFD 8 B │ frame ≥ 64 B, check sequence in it │ gap: 12 B on average │ next, at a word of 8 B
//! ```
//! The rate of an Ethernet link is that of its MAC. 64B/66B, its transcoding to 256B/257B, the parity of
//! RS-FEC and
//! alignment markers are paid by the faster line: 100 Gb/s × 66/64 = 100 Gb/s × 257/256 × 528/514 = 103.125
//! Gb/s. Alignment markers take the place of idle characters, which the gaps have to spare.
//!
//! With deficit idle count the transmitter starts each frame at a whole word and keeps count of the bytes by
//! which
//! gaps were short. n bytes with preamble and gap take n rounded down to words, and what is cut off is added
//! to the next frame: the line falls behind by less than a word, and the average gap is 12 B to the bit.
//!
//! # Source
//! IEEE 802.3: clauses 3 (frame), 46.3.1.4 and 81.3.1.4 (gap, deficit idle count, start in lane 0 of 8), 82
//! (markers), 91 and 119 (RS-FEC); D1.4 §6 lists the same parts.

use super::{Fec, GapRule, ProtocolRules};
use weft_units::{BitRate, Bytes, LineCode};

pub(super) const RULES: ProtocolRules = ProtocolRules {
    code: LineCode::NONE,
    word: Bytes::new(8),
    lane_word: Bytes::ZERO,
    framing: Bytes::new(8 + 12),
    smallest: Bytes::new(64),
    frame_check: Bytes::new(4),
    gap: GapRule::DeficitIdle,
    lanes: 4,
    fastest_lane: None,
    held: Bytes::ZERO,
    replays: false,
    source: "IEEE 802.3: preamble 8 B, smallest frame 64 B, gap 12 B with deficit idle count",
    is_published: true,
};

/// The FEC that a rate has in the standard: RS(528,514) at 25 and 100 Gb/s, RS(544,514) at 50, 200, 400 and
/// 800 Gb/s, none below.
pub(super) fn usual_fec(rate: BitRate) -> Option<Fec> {
    [Fec::Rs528, Fec::Rs544].into_iter().find(|fec| fec.fits(rate))
}
