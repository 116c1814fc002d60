//! The memory channel of a host, shared by its cores and its interface: a server by rate.
//!
//! ```text
//!  cell reads  ─┐
//!  cell writes ─┼─► first come, first served, at the rate that cores leave ─► done
//!  copies and reductions of cores (streams that take their share while they last)
//! ```
//! # Source
//! TR-488 §3.1: one DDR4 module per MPSoC; §4.2: the interface reads and writes it in bursts; §6.1.2: both
//! directions of traffic share the memory subsystem; §6.2: with all four cores at work the channel is the
//! bottleneck.
//!
//! # Not modelled
//! Banks, rows, refresh; of caches only that small vectors and small transfers do not leave them: cells that
//! the interface reads take the channel, though caches may have them (§4.5). A stream's share is settled
//! when it begins: it neither speeds up when another ends nor slows down when another begins, so that for a
//! while all together may get a little more than there is.

use serde::{Deserialize, Serialize};
use weft_fabric::LineRate;
use weft_units::{BitRate, Bytes, LineCode, Span, Time};

weft_keys::keys! {
    /// The memory channel's section of a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct MemoryParameters {
        /// Reads and writes together.
        rate: BitRate, not_zero("136Gb/s");
        /// Bytes up to which the data that a core reads or writes at once stays in its cache; none where not
        /// given.
        cache: Bytes = Bytes::ZERO;
        /// Latency of the memory itself, which a read of what is in no cache takes behind the port; none
        /// where not given.
        latency: Span = Span::ZERO;
        beside {
            /// The rate as the channel counts with it: every rate but zero has one.
            line: LineRate = LineRate::new(rate, LineCode::NONE)?;
        }
    }
}

impl MemoryParameters {
    /// A channel of `rate` without a cache; `None` where the rate is zero.
    pub fn new(rate: BitRate) -> Option<MemoryParameters> {
        let line = LineRate::new(rate, LineCode::NONE)?;
        Some(MemoryParameters { rate, line, cache: Bytes::ZERO, latency: Span::ZERO })
    }

    /// The latency of a read for a transfer of so many bytes: none, where a cache has them all.
    #[inline]
    pub(crate) fn read_latency(&self, transfer: Bytes) -> Span {
        if transfer <= self.cache { Span::ZERO } else { self.latency }
    }
}

/// Per second.
const PICOSECONDS: u64 = 1_000_000_000_000;

/// The work of a core on memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreWork {
    /// Bytes that the core reads and writes in all.
    pub moved: Bytes,
    /// Time that the core takes by itself.
    pub alone: Span,
    /// Begin of the work, now or later.
    pub from: Time,
}

/// Memory that a core works on, while it does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stream {
    from: Time,
    until: Time,
    /// Of the channel, reads and writes together.
    share: BitRate,
}

impl Stream {
    fn is_under_way(&self, at: Time) -> bool {
        self.from <= at && at < self.until
    }
}

/// The channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MemoryChannel {
    line: weft_fabric::Line,
    /// Time in which it has read and written for the interface.
    worked: Span,
    /// Also such as begin later: ranks are ahead of the present.
    streams: Vec<Stream>,
}

impl MemoryChannel {
    /// Reads or writes `bytes` for an interface, asked for at `now`; returns when the channel is done.
    #[inline]
    pub fn access(&mut self, bytes: Bytes, now: Time, parameters: &MemoryParameters) -> Time {
        let bytes = if self.streams.is_empty() { bytes } else { self.stretched(bytes, now, parameters) };
        let began = now.max(self.line.busy_until());
        let ended = self.line.send(&parameters.line, now, bytes);
        self.worked = self.worked.saturating_add(ended - began);
        ended
    }

    /// The time in which it has read and written for the interface.
    pub(crate) fn worked(&self) -> Span {
        self.worked
    }

    /// Bytes that would take as long on the idle channel as `bytes` take beside what cores do.
    #[cold]
    fn stretched(&mut self, bytes: Bytes, now: Time, parameters: &MemoryParameters) -> Bytes {
        self.streams.retain(|stream| stream.until > now);
        let under_way = self.streams.iter().filter(|stream| stream.is_under_way(now));
        let (sharers, taken) = under_way
            .fold((1, 0), |(sharers, taken), stream| (sharers + 1, taken + stream.share.bits_per_second()));
        let whole = parameters.rate.bits_per_second();
        let left = whole.saturating_sub(taken).max(whole.div_ceil(sharers));
        let stretched = (u128::from(bytes.get()) * u128::from(whole)).div_ceil(u128::from(left));
        Bytes::new(u64::try_from(stretched).unwrap_or(u64::MAX))
    }

    /// A core works on memory; returns the end of its work, as far as that is known at `now`.
    ///
    /// The core gets the rate that it takes by itself, or an equal part where that is less. The interface and
    /// the cores at work have the other parts.
    pub fn stream(&mut self, work: CoreWork, now: Time, parameters: &MemoryParameters) -> Time {
        let CoreWork { moved, alone, from } = work;
        if moved <= parameters.cache {
            return from.saturating_add(alone);
        }
        self.streams.retain(|stream| stream.until > now);
        let sharers = self.streams.iter().filter(|stream| stream.is_under_way(from)).count() as u64 + 2;
        let part = BitRate::from_bits_per_second(parameters.rate.bits_per_second().div_ceil(sharers));
        let span = alone.max(part.span(moved));
        let bits = u128::from(moved.get()) * 8 * u128::from(PICOSECONDS);
        let share = bits / u128::from(span.as_ps().max(1));
        let share = BitRate::from_bits_per_second(u64::try_from(share).unwrap_or(u64::MAX));
        let until = from.saturating_add(span);
        self.streams.push(Stream { from, until, share });
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabits(rate: u64) -> MemoryParameters {
        MemoryParameters::new(BitRate::from_gigabits(rate)).unwrap()
    }

    fn work(bytes: u64, alone: Span, from: Time) -> CoreWork {
        CoreWork { moved: Bytes::new(bytes), alone, from }
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

    /// Catches a core that blocks the channel, one that costs the interface nothing, and one that costs it
    /// something before it begins or after its end.
    #[test]
    fn a_core_takes_its_share_while_it_lasts() {
        let (parameters, mut channel) = (gigabits(8), MemoryChannel::default());
        let begin = Time::ZERO + Span::from_us(2);
        // 4 Gb/s by itself.
        let end = channel.stream(work(2000, Span::from_us(4), begin), Time::ZERO, &parameters);
        assert_eq!(end, begin + Span::from_us(4), "as by itself");
        let before = channel.access(Bytes::new(1000), Time::ZERO, &parameters);
        assert_eq!(before, Time::ZERO + Span::from_us(1));
        let beside = channel.access(Bytes::new(1000), begin, &parameters);
        assert_eq!(beside, begin + Span::from_us(2), "4 of 8 Gb/s are left");
        let after = channel.access(Bytes::new(1000), end, &parameters);
        assert_eq!(after, end + Span::from_us(1));
    }

    /// Catches cores that are not slowed by others, and some that are more than others by much.
    #[test]
    fn cores_that_want_too_much_get_equal_parts() {
        let (parameters, mut channel) = (gigabits(12), MemoryChannel::default());
        let alone = Span::from_us(1);
        // 8 Gb/s each.
        let ends: Vec<Time> =
            (0..3).map(|_| channel.stream(work(1000, alone, Time::ZERO), Time::ZERO, &parameters)).collect();
        let picoseconds = [1_333_334, 2_000_000, 2_666_667].map(|ps| Time::ZERO + Span::from_ps(ps));
        assert_eq!(ends, picoseconds, "halves, thirds, quarters: one is the interface's");
    }

    /// Catches what stays in the cache and costs others something, and what does not and costs nothing.
    #[test]
    fn what_fits_the_cache_does_not_reach_the_channel() {
        let (parameters, mut channel) =
            (MemoryParameters { cache: Bytes::new(1000), ..gigabits(8) }, MemoryChannel::default());
        let alone = Span::from_ns(1);
        for (moved, end) in [(1000, alone), (1001, Span::from_ps(2_002_000))] {
            assert_eq!(
                channel.stream(work(moved, alone, Time::ZERO), Time::ZERO, &parameters),
                Time::ZERO + end
            );
        }
    }

    /// Catches an interface that starves beside cores.
    #[test]
    fn the_interface_gets_an_equal_part_at_least() {
        let (parameters, mut channel) = (gigabits(8), MemoryChannel::default());
        for _ in 0..7 {
            channel.stream(work(1 << 20, Span::from_ps(1), Time::ZERO), Time::ZERO, &parameters);
        }
        assert_eq!(channel.access(Bytes::new(1000), Time::ZERO, &parameters), Time::ZERO + Span::from_us(8));
    }
}
