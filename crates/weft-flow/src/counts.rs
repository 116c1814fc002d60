//! Counts of lines: of fluids that have ended, and of those under way up to now.
//!
//! A stream is counted into its lines when it ends. Whoever looks before sees what its fluids have carried by
//! then, by the shares that they had: so no line shows more than its rate, and nothing is counted twice.

use crate::messages::{Between, Fluid, FluidStream, PARTS_OF_A_BIT, parts};
use crate::shares::FluidId;
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};
use weft_units::{Span, Time};

/// The counts of a line.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct LineCount {
    pub packets: u64,
    /// Bytes of these packets: header, payload and footer.
    pub packet_bytes: u64,
    /// Their payload.
    pub payload: u64,
    /// Parts of a bit on the line, before its code.
    pub parts: u128,
}

impl AddAssign for LineCount {
    fn add_assign(&mut self, other: LineCount) {
        self.packets += other.packets;
        self.packet_bytes += other.packet_bytes;
        self.payload += other.payload;
        self.parts += other.parts;
    }
}

impl Sub for LineCount {
    type Output = LineCount;

    fn sub(self, before: LineCount) -> LineCount {
        LineCount {
            packets: self.packets - before.packets,
            packet_bytes: self.packet_bytes - before.packet_bytes,
            payload: self.payload - before.payload,
            parts: self.parts - before.parts,
        }
    }
}

impl FluidStream {
    /// The parts of a bit that each of its fluids has carried by now: together no more than the stream has.
    fn carried_by<'a>(
        &'a self,
        fluids: &'a [Fluid],
        now: Time,
    ) -> impl Iterator<Item = (FluidId, u128)> + 'a {
        // Its end is rounded up. What the last picosecond has too much goes off the fluids that move in it.
        let mut excess = parts(self.share, now - self.since).saturating_sub(self.left);
        self.fluids.iter().map(move |id| {
            let fluid = &fluids[id.index()];
            let too_much = excess.min(parts(fluid.share, Span::from_ps(1)));
            excess -= too_much;
            (*id, fluid.carried + parts(fluid.share, now - fluid.since) - too_much)
        })
    }

    /// The counts of so many parts of a bit of it, rounded down.
    fn count_of(&self, carried: u128) -> LineCount {
        let bits = carried / PARTS_OF_A_BIT;
        let whole = u128::from(self.wire_bits);
        let part = |all: u64| (u128::from(all) * bits).checked_div(whole).unwrap_or(0) as u64;
        LineCount {
            packets: part(self.packets),
            packet_bytes: part(self.packet_bytes),
            payload: part(self.payload),
            parts: carried,
        }
    }
}

impl<T> Between<T> {
    /// Counts a stream that has ended.
    pub(crate) fn count(&mut self, stream: &FluidStream, now: Time) {
        // Up to one fluid after the other, so that nothing is lost by rounding. None gets less than it had
        // by itself before.
        let (mut upto, mut before) = (0, LineCount::default());
        for (id, carried) in stream.carried_by(&self.fluids, now) {
            upto += carried;
            let mut all = stream.count_of(upto);
            if Some(&id) == stream.fluids.last() {
                let FluidStream { packets, packet_bytes, payload, .. } = *stream;
                all = LineCount { packets, packet_bytes, payload, ..all };
            }
            for line in self.shares.lines_of(id) {
                self.crossed[line.index()] += all - before;
            }
            before = all;
        }
    }

    /// The counts of all lines by now, since the counters were last reset.
    pub(crate) fn crossed_by(&self, now: Time) -> Vec<LineCount> {
        let mut counts = self.crossed_since_start(now);
        counts.iter_mut().zip(&self.crossed_before).for_each(|(count, before)| *count = *count - *before);
        counts
    }

    /// Sets the counters to zero.
    pub(crate) fn reset_counters(&mut self, now: Time) {
        self.crossed_before = self.crossed_since_start(now);
        self.counted_from = now;
    }

    fn crossed_since_start(&self, now: Time) -> Vec<LineCount> {
        let mut counts = self.crossed.clone();
        for (_, stream) in &self.streams {
            for (id, carried) in stream.carried_by(&self.fluids, now) {
                let count = stream.count_of(carried);
                self.shares.lines_of(id).for_each(|line| counts[line.index()] += count);
            }
        }
        counts
    }
}
