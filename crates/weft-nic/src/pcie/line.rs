//! One direction of the port: a serial line.
//!
//! Its work is counted in bytes since it was last idle, so that rounding never accumulates. What comes at a
//! time to come leaves a gap before it, which others that come earlier may use: the work is conserved.

use super::parameters::PcieParameters;
use super::window::Kept;
use serde::{Deserialize, Serialize};
use weft_units::{Span, Time};

/// The line.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Line {
    /// The time since which it has been busy.
    since: Time,
    /// Bytes since then.
    bytes: u64,
    free: Time,
    /// The gap before that: from, to.
    gap: (Time, Time),
    /// TLPs of the other direction that are not acknowledged.
    owed: u32,
    worked: Span,
}

/// The place of a run on the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Since {
    /// The time at which the first TLP began.
    pub began: Time,
    /// The beginning of the busy period.
    since: Time,
    /// Bytes of the busy period before it.
    before: u64,
}

impl Since {
    /// The run as a window keeps it.
    #[inline]
    pub(super) fn run(self, count: u32, bytes: u32, each: [u32; 3]) -> Kept {
        Kept { since: self.since, before: self.before, bytes, count, each, back: Span::ZERO }
    }
}

impl Line {
    /// The other direction has carried TLPs, which are to be acknowledged here.
    #[inline]
    pub(super) fn owe(&mut self, tlps: u32) {
        self.owed = self.owed.saturating_add(tlps);
    }

    /// Carries `count` TLPs of `bytes` each that come at `came`. Returns their place, and when the last has
    /// left.
    #[inline]
    pub(super) fn carry_run(
        &mut self,
        came: Time,
        count: u32,
        bytes: u32,
        parameters: &PcieParameters,
    ) -> (Since, Time) {
        let all = u64::from(count) * u64::from(bytes);
        if came > self.free {
            // Idle until then; acknowledgements have gone meanwhile.
            self.gap = (self.free, came);
            (self.since, self.bytes, self.owed) = (came, 0, 0);
            return self.append(came, all, parameters);
        }
        let (from, to) = self.gap;
        let began = came.max(from);
        let takes = parameters.wire(all);
        if began.saturating_add(takes) <= to {
            let left = began + takes;
            self.gap = if left - from < to - left || began == from { (left, to) } else { (from, began) };
            self.worked = self.worked.saturating_add(takes);
            return (Since { began, since: began, before: 0 }, left);
        }
        if self.owed >= parameters.acknowledged {
            let packets = self.owed / parameters.acknowledged.max(1);
            self.owed -= packets * parameters.acknowledged.max(1);
            // An acknowledgement, and a packet with credits.
            self.bytes += u64::from(packets) * 2 * parameters.link_packet;
        }
        let began = (self.since + parameters.wire(self.bytes)).max(came);
        self.append(began, all, parameters)
    }

    #[inline]
    fn append(&mut self, began: Time, all: u64, parameters: &PcieParameters) -> (Since, Time) {
        let place = Since { began, since: self.since, before: self.bytes };
        self.bytes += all;
        self.free = self.since + parameters.wire(self.bytes);
        self.worked = self.worked.saturating_add(self.free.saturating_since(began));
        (place, self.free)
    }

    pub(super) fn worked(&self) -> Span {
        self.worked
    }
}
