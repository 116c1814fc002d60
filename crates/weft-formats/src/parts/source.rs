//! The bytes of a part: numbers and texts as the recorder writes them.

use std::io::{self, BufRead};
use weft_trace::op::RequestId;
use weft_units::Address;

/// Largest number of ranks; a larger one is taken for damage.
pub(super) const MAX_RANKS: u32 = 1 << 24;

/// Longest text; a longer one is taken for damage.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Why decoding cannot go on: the bytes end, or they are wrong.
pub(super) enum Stop {
    Ended,
    Wrong(String),
    Failed(io::Error),
}

/// Bytes with a position.
pub(super) struct Source<R> {
    pub bytes: R,
    pub position: u64,
}

impl<R: BufRead> Source<R> {
    pub fn byte(&mut self) -> Result<u8, Stop> {
        let mut one = [0];
        self.fill(&mut one)?;
        Ok(one[0])
    }

    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Stop> {
        self.bytes.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Stop::Ended,
            _ => Stop::Failed(error),
        })?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    pub fn fixed(&mut self) -> Result<u32, Stop> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// An unsigned number in LEB128.
    pub fn number(&mut self) -> Result<u64, Stop> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Stop::Wrong("a number of more than 64 bits".into()))
    }

    /// 0, -1, 1, -2, … are written as 0, 1, 2, 3, …
    pub fn signed(&mut self) -> Result<i64, Stop> {
        Ok(unzigzag(self.number()?))
    }

    pub fn below(&mut self, limit: u64, what: &str) -> Result<u64, Stop> {
        let value = self.number()?;
        if value < limit {
            Ok(value)
        } else {
            Err(Stop::Wrong(format!("{what} {value}, expected less than {limit}")))
        }
    }

    pub fn request(&mut self) -> Result<RequestId, Stop> {
        let number = self.below(1 << 32, "request number")?;
        Ok(RequestId(u32::try_from(number).map_err(|_| Stop::Wrong(format!("request number {number}")))?))
    }

    /// An address of the process; `None`: no buffer.
    pub fn address(&mut self) -> Result<Option<Address>, Stop> {
        Ok(Some(self.number()?).filter(|&address| address != 0).map(Address::new))
    }

    /// World rank of the first member, and its count.
    pub fn id(&mut self) -> Result<u64, Stop> {
        let first = self.below(u64::from(MAX_RANKS), "first member")?;
        let count = self.below(1 << 32, "count of communicators")?;
        Ok(first << 32 | count)
    }

    pub fn text(&mut self, length: u64) -> Result<String, Stop> {
        if length > MAX_TEXT_BYTES {
            return Err(Stop::Wrong(format!("a text of {length} bytes")));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
