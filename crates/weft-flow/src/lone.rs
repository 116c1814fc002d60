//! A message that is alone on its path: what its fluid is made of.
//!
//! ```text
//!   host    posts ──────────────────────────────── is told that its data is taken
//!   fluid     ├─ start-up ─┤▒▒▒▒ wire / most ▒▒▒▒┤
//!   receiver                                      ├─ end ─┤ notices
//! ```
//! The fluid crosses all links of the path at once, no faster than the slowest block, engine or link of the
//! way lets a message of this size go. What blocks and links take one after the other lies in front of it and
//! behind it.

use crate::messages::PARTS_OF_A_BIT;
use serde::{Deserialize, Serialize};
use weft_nic::{FailureReason, Primitive};
use weft_topo::LinkClass;
use weft_units::{BitRate, Bytes, Span};

/// The times of a message that is alone on its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LoneMessage {
    /// From when the host posts it until its fluid begins.
    pub start_up: Span,
    /// Bits that it puts on the line that it holds longest, before the line's code.
    pub wire_bits: u64,
    /// The most of them in a second; not zero.
    pub most: BitRate,
    /// From when its fluid ends until the receiving host notices it.
    pub end: Span,
    /// The time at which its sender hears that all data is taken.
    pub taken: DataTaken,
    /// The least time from when an interface begins to send one of them until it begins to send the next.
    pub send_gap: Span,
    /// The same time where many follow each other for long, and how much sooner than that a few may go:
    /// channels of the interface that are free at first, and then wait for each other.
    pub steady_gap: Span,
    /// By how much.
    pub slack: Span,
    /// Whether it holds a channel of its interface until its fluid ends. One that fits into the buffer of a
    /// switch does not: its interface is done with it when it would be on an idle network.
    pub holds_channel: bool,
    /// The least time from when one of them is noticed at an interface until the next is.
    pub receive_gap: Span,
    /// Packets that it would be.
    pub packets: u64,
    /// Links that each of them would cross, injection and ejection included.
    pub links: u8,
}

impl LoneMessage {
    /// How long its fluid lasts.
    pub(crate) fn lasts(&self) -> Span {
        let parts = u128::from(self.wire_bits) * PARTS_OF_A_BIT;
        Span::from_ps((parts / u128::from(self.most.bits_per_second().max(1))) as u64)
    }
}

/// The time at which the sender of a message hears that its interface has taken all data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DataTaken {
    /// So long after it was posted, whatever happens to it on the way.
    AfterPosting(Span),
    /// So long after the end of its fluid.
    AfterFluid(Span),
}

impl Default for DataTaken {
    fn default() -> DataTaken {
        DataTaken::AfterPosting(Span::ZERO)
    }
}

/// A message as far as its times depend on it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct LoneCase {
    /// The kinds of the links that it crosses, injection and ejection included.
    pub path: Vec<LinkClass>,
    /// Whether it is for the endpoint that sends it.
    pub to_itself: bool,
    /// Payload.
    pub bytes: Bytes,
    /// How it travels, where the interface has a choice.
    pub primitive: Primitive,
    /// Whether its data lies in memory of a program.
    pub of_program: bool,
    /// Whether its sender hears of it when the receiver has acknowledged it, where the interface can.
    pub is_acknowledged: bool,
}

/// The interfaces of a machine, as far as fluids see them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedEngine {
    /// The rate of the engine that all messages of an interface share.
    pub rate: BitRate,
    /// Messages whose fluids an interface sends at a time.
    pub channels: u32,
}

/// Whoever knows lone messages.
pub trait LoneMessages: Send + Sync {
    /// The times of a lone message.
    ///
    /// # Errors
    /// The reason for which the interface refuses it.
    fn of(&self, case: &LoneCase) -> Result<LoneMessage, FailureReason>;

    /// The engine of an interface.
    fn engine(&self) -> SharedEngine;
}
