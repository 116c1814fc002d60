//! The links of ExaNeSt between FPGAs: cells of whole 128-bit words.
//!
//! ```text
//!   ┌ header 16 B ┬ payload in words of 16 B ┬ footer 16 B ┐   header and footer are the packet's own
//! ```
//! # Source
//! TR-488 §4.2: payload in 128-bit words, and 32 B of header and footer that hold the transport, the routing
//! and the link-level protocol. The code is that of the 64B/66B transceivers of its descendant (D2.8 §2).
//!
//! # Not modelled
//! Control words that the routing logic sends between cells for flow control (TR-488 §6.1.2): a machine file
//! gives their average as `framing`. The text has no repetition on the link; that there is one is ours. Whole
//! words inside FPGAs (§4.2): the machine's links there have no protocol, and a packet takes the time of its
//! bytes.

use super::{GapRule, ProtocolRules};
use weft_units::{Bytes, LineCode};

pub(super) const RULES: ProtocolRules = ProtocolRules {
    code: LineCode::B64_66,
    word: Bytes::new(16),
    lane_word: Bytes::ZERO,
    framing: Bytes::ZERO,
    smallest: Bytes::ZERO,
    frame_check: Bytes::ZERO,
    gap: GapRule::RoundUp,
    lanes: 4,
    fastest_lane: None,
    held: Bytes::ZERO,
    replays: true,
    source: "TR-488 §4.2 for words and framing; code and replay are ours",
    is_published: false,
};
