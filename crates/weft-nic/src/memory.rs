//! The memory channel of a host, shared by its cores and its interfaces: a server by rate.
//!
//! ```text
//!  cell reads  ─┐
//!  cell writes ─┼─► first come, first served, at the rate that copies leave ─► done
//!  copies of cores (streams that take their share while they last)
//! ```
//! # Source
//! TR-488 §3.1: one DDR4 module per MPSoC; §4.2: the interface reads and writes it in bursts; §6.1.2: both
//! directions of traffic share the memory subsystem.
//!
//! # Not modelled
//! Banks, rows, refresh, the caches' hits. A copy's share is settled when it begins: it does not speed up
//! when another ends.

use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, LineCode, LineRate, Time};

/// What a machine file says of the memory channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemoryParameters {
    rate: BitRate,
    line: LineRate,
}

impl MemoryParameters {
    /// A channel of `rate`, reads and writes together; `None` where the rate is zero or too uneven to
    /// compute with.
    pub fn new(rate: BitRate) -> Option<MemoryParameters> {
        Some(MemoryParameters { rate, line: LineRate::new(rate, LineCode::NONE)? })
    }

    /// Reads and writes together.
    pub fn rate(&self) -> BitRate {
        self.rate
    }
}

/// However many copies there are, an access gets at least this part of the channel: 1/64.
const LEAST_SHARE: u64 = 64;

/// A copy by a core, while it lasts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stream {
    until: Time,
    /// Of the channel, reads and writes together.
    share: BitRate,
}

/// The channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MemoryChannel {
    line: weft_units::Line,
    copies: Vec<Stream>,
}

impl MemoryChannel {
    /// Reads or writes `bytes` for an interface, asked for at `now`; returns when the channel is done.
    #[inline]
    pub fn access(&mut self, bytes: Bytes, now: Time, parameters: &MemoryParameters) -> Time {
        let bytes = if self.copies.is_empty() { bytes } else { self.stretched(bytes, now, parameters) };
        self.line.send(&parameters.line, now, bytes)
    }

    /// Bytes that would take as long on the idle channel as `bytes` take beside the copies under way.
    #[cold]
    fn stretched(&mut self, bytes: Bytes, now: Time, parameters: &MemoryParameters) -> Bytes {
        let (whole, left) = (parameters.rate.bits_per_second(), self.left(now, parameters));
        let stretched = (u128::from(bytes.get()) * u128::from(whole)).div_ceil(u128::from(left));
        Bytes::new(u64::try_from(stretched).unwrap_or(u64::MAX))
    }

    /// Bits per second that copies leave; never zero, however many there are.
    fn left(&mut self, now: Time, parameters: &MemoryParameters) -> u64 {
        self.copies.retain(|copy| copy.until > now);
        let taken: u64 = self.copies.iter().map(|copy| copy.share.bits_per_second()).sum();
        let whole = parameters.rate.bits_per_second();
        whole.saturating_sub(taken).max(whole.div_ceil(LEAST_SHARE))
    }

    /// A core begins to copy `bytes` at `now`, by itself at `rate`; returns when it is done.
    ///
    /// Every byte is read and written, which takes twice the copy's rate of the channel. The copy gets
    /// at most half of what earlier ones have left, so that nobody is starved.
    pub fn copy(&mut self, bytes: Bytes, rate: BitRate, now: Time, parameters: &MemoryParameters) -> Time {
        let wanted = rate.bits_per_second().saturating_mul(2);
        let share = wanted.min(self.left(now, parameters) / 2).max(2);
        let until = now.saturating_add(BitRate::from_bits_per_second(share / 2).span(bytes));
        self.copies.push(Stream { until, share: BitRate::from_bits_per_second(share) });
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_units::Span;

    fn gigabits(rate: u64) -> MemoryParameters {
        MemoryParameters::new(BitRate::from_gigabits(rate)).unwrap()
    }

    /// Catches accesses that overlap, and gaps between them.
    #[test]
    fn accesses_are_served_one_after_the_other() {
        let (parameters, mut channel) = (gigabits(8), MemoryChannel::default());
        let first = channel.access(Bytes::new(1000), Time::ZERO, &parameters);
        let second = channel.access(Bytes::new(500), Time::from_ps(10), &parameters);
        assert_eq!(first, Time::ZERO + Span::from_us(1));
        assert_eq!(second, first + Span::from_ns(500));
    }

    /// Catches a copy that blocks the channel, one that costs the interface nothing, and one that costs
    /// it something after its end.
    #[test]
    fn a_copy_takes_its_share_while_it_lasts() {
        let (parameters, mut channel) = (gigabits(8), MemoryChannel::default());
        let end = channel.copy(Bytes::new(1000), BitRate::from_gigabits(2), Time::ZERO, &parameters);
        assert_eq!(end, Time::ZERO + Span::from_us(4), "at its own rate");
        let beside = channel.access(Bytes::new(1000), Time::ZERO, &parameters);
        assert_eq!(beside, Time::ZERO + Span::from_us(2), "4 of 8 Gb/s are left");
        let after = channel.access(Bytes::new(1000), end, &parameters);
        assert_eq!(after, end + Span::from_us(1));
    }

    /// Catches shares that add up to more than the channel.
    #[test]
    fn many_copies_leave_something() {
        let (parameters, mut channel) = (gigabits(8), MemoryChannel::default());
        for _ in 0..40 {
            channel.copy(Bytes::new(1 << 20), BitRate::from_gigabits(100), Time::ZERO, &parameters);
        }
        assert!(channel.access(Bytes::new(1), Time::ZERO, &parameters) > Time::ZERO);
    }
}
