//! Four facts of a packet in one byte.

use crate::packet::Part;
use serde::{Deserialize, Serialize};

/// Whether a packet is a piece of its message, is watched, is bad, has met congestion: each a bit. An
/// enumeration, so that the byte has values to spare, in which an event keeps what kind of event it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum Marks {
    #[default]
    Whole,
    Piece,
    WatchedWhole,
    WatchedPiece,
    BadWhole,
    BadPiece,
    BadWatchedWhole,
    BadWatchedPiece,
    SlowWhole,
    SlowPiece,
    SlowWatchedWhole,
    SlowWatchedPiece,
    SlowBadWhole,
    SlowBadPiece,
    SlowBadWatchedWhole,
    SlowBadWatchedPiece,
}

impl Marks {
    const PIECE: u8 = 1;
    const WATCHED: u8 = 2;
    const BAD: u8 = 4;
    const SLOW: u8 = 8;

    const ALL: [Marks; 16] = [
        Marks::Whole,
        Marks::Piece,
        Marks::WatchedWhole,
        Marks::WatchedPiece,
        Marks::BadWhole,
        Marks::BadPiece,
        Marks::BadWatchedWhole,
        Marks::BadWatchedPiece,
        Marks::SlowWhole,
        Marks::SlowPiece,
        Marks::SlowWatchedWhole,
        Marks::SlowWatchedPiece,
        Marks::SlowBadWhole,
        Marks::SlowBadPiece,
        Marks::SlowBadWatchedWhole,
        Marks::SlowBadWatchedPiece,
    ];

    /// Those of a packet that is neither watched nor bad nor has met congestion.
    pub(crate) const fn of(part: Part) -> Marks {
        match part {
            Part::Whole => Marks::Whole,
            Part::Piece => Marks::Piece,
        }
    }

    #[inline(always)]
    const fn has(self, bit: u8) -> bool {
        self as u8 & bit != 0
    }

    #[inline(always)]
    const fn with(self, bit: u8, is_set: bool) -> Marks {
        let others = self as u8 & !bit;
        Marks::ALL[(if is_set { others | bit } else { others }) as usize & 15]
    }

    #[inline(always)]
    pub(crate) const fn part(self) -> Part {
        if self.has(Marks::PIECE) { Part::Piece } else { Part::Whole }
    }

    #[inline(always)]
    pub(crate) const fn is_watched(self) -> bool {
        self.has(Marks::WATCHED)
    }

    #[inline(always)]
    pub(crate) const fn watched(self, is_watched: bool) -> Marks {
        self.with(Marks::WATCHED, is_watched)
    }

    #[inline(always)]
    pub(crate) const fn is_bad(self) -> bool {
        self.has(Marks::BAD)
    }

    #[inline(always)]
    pub(crate) const fn bad(self, is_bad: bool) -> Marks {
        self.with(Marks::BAD, is_bad)
    }

    /// Whether a link has marked it as one that met congestion.
    #[inline(always)]
    pub(crate) const fn is_slow(self) -> bool {
        self.has(Marks::SLOW)
    }

    #[inline(always)]
    pub(crate) const fn slow(self, is_slow: bool) -> Marks {
        self.with(Marks::SLOW, is_slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a mark that changes another.
    #[test]
    fn each_mark_is_kept_by_itself() {
        for part in [Part::Whole, Part::Piece] {
            for (watched, bad) in [(false, false), (true, false), (false, true), (true, true)] {
                for marks in
                    [Marks::of(part).watched(watched).bad(bad), Marks::of(part).bad(bad).watched(watched)]
                {
                    assert_eq!((marks.part(), marks.is_watched(), marks.is_bad()), (part, watched, bad));
                    assert!(!marks.watched(false).is_watched() && !marks.bad(false).is_bad());
                    let slow = marks.slow(true);
                    assert_eq!((slow.part(), slow.is_watched(), slow.is_bad()), (part, watched, bad));
                    assert!(slow.is_slow() && !marks.is_slow() && slow.slow(false) == marks);
                }
            }
        }
    }
}
