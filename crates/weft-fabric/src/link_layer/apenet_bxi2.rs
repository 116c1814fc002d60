//! The link of BXI version 2 behind an adapter for APEnet packets.
//!
//! ```text
//!   APEnet packet ─► adapter: words of 16 B in frames of BXI ═══ bxi2 ═══► adapter ─► APEnet packet
//!   ┌ word of the link level 8 B ┬ header 16 B ┬ payload in words of 16 B ┬ footer 16 B ┬ to 16 B ┐
//! ```
//! Nothing of a packet changes: header, payload and footer cross as they are.
//!
//! # Source
//! D1.4 §9.2.3: the link layer of BXI was ported onto the APEnetX prototype, and an adapter between the
//! protocols of both built. The format of neither is published: that a frame carries whole words of APEnet,
//! and that each end holds one of them, is ours, as are the rules of [`bxi2`](super::bxi2).
//!
//! # Not modelled
//! Two clocks at the adapter, and the FIFOs between them.

use super::{GapRule, ProtocolRules};
use weft_units::{Bytes, LineCode};

pub(super) const RULES: ProtocolRules = ProtocolRules {
    code: LineCode::NONE,
    word: Bytes::new(16),
    lane_word: Bytes::ZERO,
    framing: Bytes::new(8),
    smallest: Bytes::ZERO,
    frame_check: Bytes::ZERO,
    gap: GapRule::RoundUp,
    lanes: 4,
    fastest_lane: None,
    held: Bytes::new(32),
    replays: true,
    source: "ours: the adapter of D1.4 §9.2.3 is not published; whole words of 16 B on the link of BXI",
    is_published: false,
};
