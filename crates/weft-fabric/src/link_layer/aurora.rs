//! Xilinx Aurora 64B/66B: blocks of 8 B on each of up to 4 lanes, a frame ends with a separator block.
//!
//! ```text
//!   lane 0  ┌ 8 B data ┬ 8 B data ┬ separator: count, 0 to 7 B │ next frame
//!   lane 1  └ 8 B data ┴ 8 B data ┴ idle                       │
//! ```
//! The separator holds what is left over of the frame, 7 B at most, and one byte of its 8 is its own: n bytes
//! take n + 1, rounded up to the word of all lanes, since frames begin at the first lane.
//!
//! # Source
//! AMD PG074, Aurora 64B/66B LogiCORE IP, section Aurora 64B/66B Frames. The fastest lane is that of a GTY
//! transceiver. Lanes above 16.375 Gb/s end a frame with a word of separators on all lanes instead, which is
//! as long on one lane.
//!
//! # Not modelled
//! Clock compensation: at most 8 blocks of 4,992, 0.16 % (PG074, Clock Compensation Logic). Repetition is no
//! part of Aurora: a layer above it may have one, by `replay`.

use super::{GapRule, ProtocolRules};
use weft_units::{BitRate, Bytes, LineCode};

pub(super) const RULES: ProtocolRules = ProtocolRules {
    code: LineCode::B64_66,
    word: Bytes::new(8),
    lane_word: Bytes::new(8),
    framing: Bytes::new(1),
    smallest: Bytes::ZERO,
    frame_check: Bytes::ZERO,
    gap: GapRule::RoundUp,
    lanes: 4,
    fastest_lane: Some(BitRate::from_bits_per_second(32_750_000_000)),
    held: Bytes::ZERO,
    replays: false,
    source: "AMD PG074, Aurora 64B/66B: blocks of 8 B, one byte of the last is the separator's count",
    is_published: true,
};
