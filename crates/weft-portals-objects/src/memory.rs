//! Memory of a process, and regions of it.

use crate::error::PortalsError;
use serde::{Deserialize, Serialize};

/// Memory of a process, as the interface reaches it. `None`: nothing is mapped there.
pub trait Memory {
    /// Reads bytes.
    fn read(&self, address: u64, length: u64) -> Option<Vec<u8>>;

    /// Writes bytes.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()>;
}

/// A piece of memory: address and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// The address of the first byte.
    pub start: u64,
    /// Bytes.
    pub length: u64,
}

/// A region: one piece of memory, or several one after the other (`PTL_IOVEC`).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Region {
    pieces: Vec<Piece>,
    length: u64,
}

impl Region {
    /// One piece.
    pub fn one(start: u64, length: u64) -> Region {
        Region { pieces: vec![Piece { start, length }], length }
    }

    /// Several pieces.
    ///
    /// # Errors
    /// Pieces that are longer together than an address can count.
    pub fn of(pieces: Vec<Piece>) -> Result<Region, PortalsError> {
        let length = pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.length));
        Ok(Region { pieces, length: length.ok_or(PortalsError::ArgumentInvalid)? })
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The address of the byte at `offset`; that behind the last one for the end of the region.
    pub fn address(&self, offset: u64) -> u64 {
        match self.parts(offset, 0).next() {
            Some((start, _)) => start,
            None => self.pieces.last().map_or(0, |piece| piece.start.wrapping_add(piece.length)),
        }
    }

    /// The parts of the pieces that `length` bytes from `offset` on lie in; for 0 bytes, the one at `offset`.
    fn parts(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut skip = offset;
        let mut left = Some(length);
        self.pieces.iter().filter_map(move |piece| {
            let skipped = skip.min(piece.length);
            skip -= skipped;
            let room = piece.length - skipped;
            let wanted = left.filter(|_| room > 0)?;
            let part = room.min(wanted);
            left = (wanted > part).then_some(wanted - part);
            Some((piece.start.wrapping_add(skipped), part))
        })
    }

    /// Reads bytes of the region.
    pub fn read(&self, offset: u64, length: u64, memory: &impl Memory) -> Option<Vec<u8>> {
        if length == 0 {
            return Some(Vec::new());
        }
        let mut bytes = Vec::new();
        for (start, part) in self.parts(offset, length) {
            bytes.extend(memory.read(start, part)?);
        }
        (bytes.len() as u64 == length).then_some(bytes)
    }

    /// Writes bytes into the region.
    pub fn write(&self, offset: u64, bytes: &[u8], memory: &mut impl Memory) -> Option<()> {
        if bytes.is_empty() {
            return Some(());
        }
        let mut rest = bytes;
        for (start, part) in self.parts(offset, bytes.len() as u64) {
            let (now, later) = rest.split_at_checked(usize::try_from(part).ok()?)?;
            memory.write(start, now)?;
            rest = later;
        }
        rest.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches pieces that are left out, and bytes beyond the last one.
    #[test]
    fn pieces_are_one_after_the_other() {
        let pieces = [(100, 3), (200, 0), (300, 4)].map(|(start, length)| Piece { start, length });
        let region = Region::of(pieces.to_vec()).unwrap();
        assert_eq!(region.parts(2, 3).collect::<Vec<_>>(), [(102, 1), (300, 2)]);
        assert_eq!(region.parts(3, 4).collect::<Vec<_>>(), [(300, 4)]);
        assert_eq!([0, 3, 7].map(|offset| region.address(offset)), [100, 300, 304]);
        let endless = Piece { start: 0, length: u64::MAX };
        assert_eq!(Region::of(vec![endless, endless]), Err(PortalsError::ArgumentInvalid));
    }
}
