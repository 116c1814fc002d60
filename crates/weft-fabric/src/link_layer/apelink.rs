//! APElink: the link of INFN's APEnet cards, by the Link Ctrl of the Communication IP.
//!
//! ```text
//!   ┌ start word 16 B ┬ header 16 B ┬ payload in words of 16 B ┬ footer 16 B ┐
//! ```
//! # Source
//! D2.8 §2: words of 128 bits from the switch, 64B/66B transceivers of 1 to 2 lanes, 4 announced, and Link
//! Ctrl
//! blocks that "establish the logical link" with detection and correction of errors. D1.4 §9.2 names APElink
//! and says no more.
//!
//! # Not modelled
//! The word that tells of credits: it goes between packets, and how often is not published. One word that
//! marks the start of a packet is ours.

use super::{GapRule, ProtocolRules};
use weft_units::{Bytes, LineCode};

pub(super) const RULES: ProtocolRules = ProtocolRules {
    code: LineCode::B64_66,
    word: Bytes::new(16),
    lane_word: Bytes::new(8),
    framing: Bytes::new(16),
    smallest: Bytes::ZERO,
    frame_check: Bytes::ZERO,
    gap: GapRule::RoundUp,
    lanes: 4,
    fastest_lane: None,
    held: Bytes::ZERO,
    replays: true,
    source: "D2.8 §2 for words of 128 bits, code, lanes and repetition; the start word is ours",
    is_published: false,
};
