//! Lookahead: how far the sites of a model may run ahead of one another.
//!
//! ```text
//!   site 0 ──●──────────────► an event sent at ● reaches another site no earlier than one lookahead later
//!   site 1 ──┼──────────────●─
//!            └─ lookahead ──┘
//! ```
//! Whatever one site does now reaches another only after the lookahead. So all sites can be worked off for a
//! window of that length without asking what the others do. A longer lookahead means fewer windows: less work
//! for one thread, and fewer barriers for several. It is the least latency of the links between sites. Where
//! a site knows what it will send some time before it sends it, that notice is added.

use weft_units::{Span, Time};

/// The least time that an event takes from one site to another. Windows are no longer than this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookahead(Span);

/// A cut between two sites across which events would take no time.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{cut} has no latency, so the two sides cannot be separate sites; give it a latency of at least 1ps")]
pub struct ZeroLatencyCut {
    /// The name of the link between the two sites.
    pub cut: String,
}

impl Lookahead {
    /// Sites that never send each other anything.
    pub const UNLIMITED: Lookahead = Lookahead(Span::MAX);

    /// The lookahead of a model whose sites are joined by `cuts` of the given latencies and names.
    ///
    /// # Errors
    /// The first cut without latency.
    pub fn across<'a>(cuts: impl IntoIterator<Item = (Span, &'a str)>) -> Result<Lookahead, ZeroLatencyCut> {
        let mut least = Span::MAX;
        for (latency, cut) in cuts {
            if latency == Span::ZERO {
                return Err(ZeroLatencyCut { cut: cut.to_owned() });
            }
            least = least.min(latency);
        }
        Ok(Lookahead(least))
    }

    /// The lookahead where whatever goes from one site to another is known at least `notice` before it sets
    /// out.
    pub fn with_notice(self, notice: Span) -> Lookahead {
        Lookahead(Span::from_ps(self.0.as_ps().saturating_add(notice.as_ps())))
    }

    /// The least time between sites.
    pub const fn span(self) -> Span {
        self.0
    }

    /// Windows of this lookahead. Those of unlimited lookahead last 16 µs, which bounds what is sorted
    /// at once.
    pub(crate) const fn windows(self) -> Windows {
        let length = self.0.as_ps();
        Windows::new(if length > 1 << 24 { 1 << 24 } else { length }, length == u64::MAX)
    }
}

/// Virtual time cut into windows of equal length.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    /// Picoseconds.
    length: u64,
    /// Whether sites never send each other anything.
    unlimited: bool,
    /// floor(2^64 / length): finding the window of each event that is sent must not divide.
    reciprocal: u64,
}

impl Windows {
    const fn new(length: u64, unlimited: bool) -> Windows {
        // Of length 1 the quotient does not fit; one less is corrected below as any other.
        let reciprocal = (1u128 << 64) / length as u128;
        Windows {
            length,
            unlimited,
            reciprocal: if reciprocal > u64::MAX as u128 { u64::MAX } else { reciprocal as u64 },
        }
    }

    /// The window in which `time` lies.
    #[inline]
    pub(crate) const fn of(&self, time: Time) -> u64 {
        let ps = time.as_ps();
        let below = ((ps as u128 * self.reciprocal as u128) >> 64) as u64;
        // The reciprocal is short by less than 1, so the quotient by at most 1.
        below + (ps - below * self.length >= self.length) as u64
    }

    /// Their length; `None` where only memory bounds it.
    pub(crate) const fn span(&self) -> Option<Span> {
        if self.unlimited { None } else { Some(Span::from_ps(self.length)) }
    }

    /// The beginning of a window.
    #[inline]
    pub(crate) const fn start(&self, window: u64) -> Time {
        Time::from_ps(window.saturating_mul(self.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_without_latency_is_refused_by_name() {
        let cuts = [(Span::from_ns(5), "link A"), (Span::ZERO, "link B")];
        assert!(Lookahead::across(cuts).unwrap_err().to_string().starts_with("link B has no latency"));
    }

    proptest! {
        /// Catches a reciprocal that puts an event into a neighbouring window.
        #[test]
        fn every_time_lies_in_its_window(length in 1u64..1 << 40, ps in 0u64..u64::MAX) {
            let windows = Windows::new(length, false);
            prop_assert_eq!(windows.of(Time::from_ps(ps)), ps / length);
        }
    }
}
