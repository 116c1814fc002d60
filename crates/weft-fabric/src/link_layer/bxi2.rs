//! The link of BXI version 2: words of 64 bits, one of them besides each packet, repetition on the link.
//!
//! ```text
//!   ┌ packet in words of 8 B ┬ word of the link level 8 B ┐
//! ```
//! # Source
//! D1.4 §9.2.3 puts this link into another card as an encrypted module; its format is not published. 100 Gb/s
//! is the rate of data, so that there is no code here. Words, framing and repetition are ours.

use super::{GapRule, ProtocolRules};
use weft_units::{Bytes, LineCode};

pub(super) const RULES: ProtocolRules = ProtocolRules {
    code: LineCode::NONE,
    word: Bytes::new(8),
    lane_word: Bytes::ZERO,
    framing: Bytes::new(8),
    smallest: Bytes::ZERO,
    frame_check: Bytes::ZERO,
    gap: GapRule::RoundUp,
    lanes: 4,
    fastest_lane: None,
    held: Bytes::ZERO,
    replays: true,
    source: "ours: the format is not published (D1.4 §9.2.3); a word of 64 bits per packet, repetition",
    is_published: false,
};
