//! Four facts of a packet in one byte.

use crate::packet::MessagePart;
use serde::{Deserialize, Serialize};

/// Whether a packet is a piece of its message, is watched, is corrupted, has met congestion (ECN CE): each a
/// bit. An enumeration, so that the byte has values to spare, in which an event keeps what kind of event it
/// is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum PacketFlags {
    #[default]
    Whole,
    Piece,
    WatchedWhole,
    WatchedPiece,
    CorruptedWhole,
    CorruptedPiece,
    CorruptedWatchedWhole,
    CorruptedWatchedPiece,
    EcnWhole,
    EcnPiece,
    EcnWatchedWhole,
    EcnWatchedPiece,
    EcnCorruptedWhole,
    EcnCorruptedPiece,
    EcnCorruptedWatchedWhole,
    EcnCorruptedWatchedPiece,
}

impl PacketFlags {
    const PIECE: u8 = 1;
    const WATCHED: u8 = 2;
    const CORRUPTED: u8 = 4;
    const ECN: u8 = 8;

    const ALL: [PacketFlags; 16] = [
        PacketFlags::Whole,
        PacketFlags::Piece,
        PacketFlags::WatchedWhole,
        PacketFlags::WatchedPiece,
        PacketFlags::CorruptedWhole,
        PacketFlags::CorruptedPiece,
        PacketFlags::CorruptedWatchedWhole,
        PacketFlags::CorruptedWatchedPiece,
        PacketFlags::EcnWhole,
        PacketFlags::EcnPiece,
        PacketFlags::EcnWatchedWhole,
        PacketFlags::EcnWatchedPiece,
        PacketFlags::EcnCorruptedWhole,
        PacketFlags::EcnCorruptedPiece,
        PacketFlags::EcnCorruptedWatchedWhole,
        PacketFlags::EcnCorruptedWatchedPiece,
    ];

    /// Those of a packet that is neither watched nor corrupted nor has met congestion.
    pub(crate) const fn of(part: MessagePart) -> PacketFlags {
        match part {
            MessagePart::Whole => PacketFlags::Whole,
            MessagePart::Piece => PacketFlags::Piece,
        }
    }

    #[inline(always)]
    const fn has(self, bit: u8) -> bool {
        self as u8 & bit != 0
    }

    #[inline(always)]
    const fn with(self, bit: u8, is_set: bool) -> PacketFlags {
        let others = self as u8 & !bit;
        PacketFlags::ALL[(if is_set { others | bit } else { others }) as usize & 15]
    }

    #[inline(always)]
    pub(crate) const fn part(self) -> MessagePart {
        if self.has(PacketFlags::PIECE) { MessagePart::Piece } else { MessagePart::Whole }
    }

    #[inline(always)]
    pub(crate) const fn is_watched(self) -> bool {
        self.has(PacketFlags::WATCHED)
    }

    #[inline(always)]
    pub(crate) const fn watched(self, is_watched: bool) -> PacketFlags {
        self.with(PacketFlags::WATCHED, is_watched)
    }

    #[inline(always)]
    pub(crate) const fn is_corrupted(self) -> bool {
        self.has(PacketFlags::CORRUPTED)
    }

    #[inline(always)]
    pub(crate) const fn corrupted(self, is_corrupted: bool) -> PacketFlags {
        self.with(PacketFlags::CORRUPTED, is_corrupted)
    }

    /// Whether a link has marked it as one that met congestion: ECN CE of IP, FECN of InfiniBand.
    #[inline(always)]
    pub(crate) const fn has_ecn(self) -> bool {
        self.has(PacketFlags::ECN)
    }

    #[inline(always)]
    pub(crate) const fn ecn(self, has_ecn: bool) -> PacketFlags {
        self.with(PacketFlags::ECN, has_ecn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a flag that changes another.
    #[test]
    fn each_flag_is_kept_by_itself() {
        for part in [MessagePart::Whole, MessagePart::Piece] {
            for (watched, corrupted) in [(false, false), (true, false), (false, true), (true, true)] {
                for flags in [
                    PacketFlags::of(part).watched(watched).corrupted(corrupted),
                    PacketFlags::of(part).corrupted(corrupted).watched(watched),
                ] {
                    assert_eq!(
                        (flags.part(), flags.is_watched(), flags.is_corrupted()),
                        (part, watched, corrupted)
                    );
                    assert!(!flags.watched(false).is_watched() && !flags.corrupted(false).is_corrupted());
                    let ecn = flags.ecn(true);
                    assert_eq!(
                        (ecn.part(), ecn.is_watched(), ecn.is_corrupted()),
                        (part, watched, corrupted)
                    );
                    assert!(ecn.has_ecn() && !flags.has_ecn() && ecn.ecn(false) == flags);
                }
            }
        }
    }
}
