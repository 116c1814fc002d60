//! Faults of links: packets lost or corrupted by chance, and links that fail for good.
//!
//! ```text
//!  line ══ packet ══► link off when the tail would arrive? ──yes──► dropped: dead link
//!                       └─no─► dice: dropped · corrupted (travels on, marked) · whole
//! ```
//! A dropped packet has been on the line. Its room in the buffer that it never reached is given back to the
//! sender when the far end could have said so, a link's latency after its tail was due, so that credits stay
//! whole. A dead link goes on taking packets and loses them all: whatever waits for it drains. A dead switch
//! is one all of whose links are dead.
//!
//! # Not modelled
//! Bits: a corrupted packet keeps its route, and whoever receives it finds out. Repair on the link (replay
//! buffers), routing around dead links, and links that come back.

use serde::{Deserialize, Serialize};
use weft_engine::Stream;
use weft_units::Time;

/// Chances are counted in millionths.
pub const MILLION: u32 = 1_000_000;

/// How one direction of a link fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FaultParameters {
    /// Of a million packets so many are lost.
    pub drop: u32,
    /// Of a million packets so many are corrupted; together with `drop` at most [`MILLION`].
    pub corrupt: u32,
    /// From when on it loses everything; `None`: never.
    pub off_at: Option<Time>,
}

impl FaultParameters {
    /// Whether the link never fails.
    pub fn is_none(&self) -> bool {
        *self == FaultParameters::default()
    }
}

/// Packets that one or several links have lost or corrupted, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FaultCounts {
    /// Lost by chance.
    pub dropped: u64,
    /// Lost because the link was off.
    pub dead: u64,
    /// Lost because the buffer behind the link was full: at its tail under drop; under pause, because the
    /// head-room was too small.
    pub full: u64,
    /// Corrupted; they travelled on.
    pub corrupted: u64,
}

impl FaultCounts {
    /// Packets that went no further.
    pub fn lost(&self) -> u64 {
        self.dropped + self.dead + self.full
    }
}

impl std::ops::AddAssign for FaultCounts {
    fn add_assign(&mut self, other: FaultCounts) {
        self.dropped += other.dropped;
        self.dead += other.dead;
        self.full += other.full;
        self.corrupted += other.corrupted;
    }
}

/// The faults of one direction of a link.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Fault {
    parameters: FaultParameters,
    dice: Stream,
    /// Since the counters were last reset.
    pub(crate) counts: FaultCounts,
    /// Before that.
    before: FaultCounts,
}

/// The outcome of a packet's crossing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Arrives,
    /// It arrives, marked.
    Corrupted,
    Lost,
}

impl Fault {
    pub(crate) fn new(parameters: FaultParameters, dice: Stream) -> Fault {
        Fault { parameters, dice, counts: FaultCounts::default(), before: FaultCounts::default() }
    }

    /// Decides on a packet whose tail would arrive at `tail`.
    pub(crate) fn strike(&mut self, tail: Time) -> Fate {
        let FaultParameters { drop, corrupt, off_at } = self.parameters;
        if off_at.is_some_and(|off| tail >= off) {
            self.counts.dead += 1;
            return Fate::Lost;
        }
        if drop + corrupt == 0 {
            return Fate::Arrives;
        }
        let thrown = self.dice.below(MILLION);
        if thrown < drop {
            self.counts.dropped += 1;
            return Fate::Lost;
        }
        if thrown < drop + corrupt {
            self.counts.corrupted += 1;
            return Fate::Corrupted;
        }
        Fate::Arrives
    }

    /// Whether the link never fails.
    pub(crate) fn is_none(&self) -> bool {
        self.parameters.is_none()
    }

    /// Begins to count anew.
    pub(crate) fn reset(&mut self) {
        self.before += self.counts;
        self.counts = FaultCounts::default();
    }

    /// Since the run began.
    pub(crate) fn total(&self) -> FaultCounts {
        let mut total = self.before;
        total += self.counts;
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strikes(parameters: FaultParameters, packets: u32) -> FaultCounts {
        let mut fault = Fault::new(parameters, Stream::new(5, 6, 7));
        let mut marked = 0;
        for number in 0..u64::from(packets) {
            let fate = fault.strike(Time::from_ps(number));
            marked += u64::from(fate == Fate::Corrupted);
        }
        assert_eq!(marked, fault.counts.corrupted, "a packet is marked if and only if it is counted");
        fault.reset();
        assert_eq!(fault.counts, FaultCounts::default());
        fault.total()
    }

    /// Catches chances that are off by a factor, or that share their dice wrongly.
    #[test]
    fn chances_are_met() {
        let counts = strikes(FaultParameters { drop: 100_000, corrupt: 50_000, off_at: None }, 100_000);
        // Five standard deviations of the binomial: 474 and 345.
        assert!(counts.dropped.abs_diff(10_000) < 474, "{counts:?}");
        assert!(counts.corrupted.abs_diff(5_000) < 345, "{counts:?}");
        let all = strikes(FaultParameters { drop: 400_000, corrupt: 600_000, off_at: None }, 1000);
        assert_eq!(all.dropped + all.corrupted, 1000);
    }

    /// Catches an off time that is one too late or too early.
    #[test]
    fn a_link_is_off_from_its_time_on() {
        let counts = strikes(FaultParameters { off_at: Some(Time::from_ps(10)), ..Default::default() }, 100);
        assert_eq!(counts, FaultCounts { dead: 90, ..Default::default() });
    }
}
